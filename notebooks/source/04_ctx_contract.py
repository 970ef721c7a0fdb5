# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   nbautograd:
#     course: "04"
#     title_en: The ctx contract
#     title_zh: ctx 的约定
#     minutes: 75
# ---

# %% [markdown] lang="en" pair="intro"
# # 04 · The ctx contract
#
# Between `forward` and `backward` lies `ctx`. It carries tensors and numbers from one to the other. There you tell autograd what is special about your outputs. Many of the errors that PyTorch raises about a Function are about this contract; other breaches pass in silence.
#
# **After it you can**
#
# - write a Function in both styles, with and without `setup_context`;
# - put each thing where it belongs: tensors into `save_for_backward`, everything else on `ctx`;
# - return the right number of gradients, and `None` in the right places;
# - handle outputs that nobody uses, and outputs that have no gradient;
# - tell which return statements PyTorch refuses, and which it forgives.
#
# **You need** notebooks 01 to 03. **Time**: about 75 minutes.

# %% [markdown] lang="zh" pair="intro" of="22bcdf28"
# # 04 · ctx 的约定
#
# `forward` 和 `backward` 之间隔着一个 `ctx`。它把张量和数从一边带到另一边；你的输出有什么特别之处，也通过它告诉 autograd。PyTorch 对 Function 报的错，很多出在这份约定上；还有一些违约，它根本不报错。
#
# **学完之后，你能够**
#
# - 用两种写法写 Function：带 `setup_context` 的和不带的；
# - 把东西各归其位：张量交给 `save_for_backward`，其余的挂在 `ctx` 上；
# - 返回正确个数的梯度，并在该写 `None` 的位置写 `None`；
# - 处理没人使用的输出，以及没有梯度的输出；
# - 分清哪些返回语句 PyTorch 会拒绝，哪些它会放过。
#
# **预备知识**：01 到 03。**用时**：约 75 分钟。

# %% tags=["setup"]
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="styles"
# ## 1. Two styles
#
# So far `forward` got `ctx` and did two jobs: it computed, and it saved. The newer style separates them.
#
# | | `forward` | `setup_context` |
# |---|---|---|
# | combined | `forward(ctx, *args)`: computes and saves | – |
# | separate | `forward(*args)`: computes, sees no `ctx` | `setup_context(ctx, inputs, output)`: saves, computes nothing |
#
# The separate style is the one to prefer: `torch.func` (notebook 09) accepts no other. `inputs` is the tuple of arguments *that `forward` got*; `output` is what it returned. Some cells below have the combined style, which is shorter.
#
# Here is the linear layer in the separate style.

# %% [markdown] lang="zh" pair="styles" of="df9f5aa4"
# ## 1. 两种写法
#
# 到目前为止，`forward` 拿着 `ctx` 身兼两职：既计算，又保存。较新的写法把两件事分开。
#
# | | `forward` | `setup_context` |
# |---|---|---|
# | 合在一起 | `forward(ctx, *args)`：计算并保存 | 无 |
# | 分开 | `forward(*args)`：只计算，见不到 `ctx` | `setup_context(ctx, inputs, output)`：只保存，不计算 |
#
# 推荐分开的写法：`torch.func`（第 09 课）只认这一种。`inputs` 是 *`forward` 收到的*参数组成的元组；`output` 是它的返回值。后面有些格子为了简短，用的是合在一起的写法。
#
# 下面用分开的写法写线性层。

# %%
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
w = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
b = torch.randn(5, dtype=torch.float64, requires_grad=True)

# %%
# %%autograd_function --inputs x,w,b
class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias=None):
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias

# %% [markdown] lang="en" pair="wrap"
# Called as `apply(x, w)`, this one still gives `setup_context` three inputs. In this style PyTorch fills in the defaults of `forward` first. Keywords, as in `apply(x, weight=w)`, depend on the version: PyTorch 2.13 takes them, 2.6 does not. So give users a function of your own around it. It has names, defaults and a docstring, and works in every version:
#
# ```python
# def linear(input, weight, bias=None):
#     return LinearFunction.apply(input, weight, bias)
# ```
#
# The bare `linear = LinearFunction.apply` is fine where nothing is optional.

# %% [markdown] lang="zh" pair="wrap" of="9cbf2c79"
# 这里调用 `apply(x, w)`，`setup_context` 收到的仍是三个输入：用这种写法时，PyTorch 会先补上 `forward` 的默认值。关键字参数（如 `apply(x, weight=w)`）则要看版本：PyTorch 2.13 接受，2.6 不接受。所以，最好在外面套一层自己的函数给别人用。它有参数名、默认值和文档，在哪个版本里都能用：
#
# ```python
# def linear(input, weight, bias=None):
#     return LinearFunction.apply(input, weight, bias)
# ```
#
# 没有可选参数时，直接写 `linear = LinearFunction.apply` 就行。

# %%
def linear(input, weight, bias=None):
    return LinearFunction.apply(input, weight, bias)


print("the same without a bias:", torch.equal(LinearFunction.apply(x, w), linear(x, w)))
# %gradcheck linear(x, w)

# %% [markdown] lang="en" pair="attributes"
# ## 2. What goes where
#
# | what | where |
# |---|---|
# | every tensor that backward needs | `ctx.save_for_backward(...)`, once, all together |
# | numbers, shapes, flags, texts | `ctx.anything = ...` |
#
# `save_for_backward` takes tensors (and `None`) only. One that is neither input nor output may go there too, but is not in the graph. Second derivatives are lost (notebook 08). And a tensor on `ctx.anything` is not watched: change it in place before `backward`, and nobody notices.
#
# **Predict.** `Square` below keeps its input as an attribute. After the call the input is changed in place. Does the last line raise? If not: what is the gradient at 3?

# %% [markdown] lang="zh" pair="attributes" of="4a7d6578"
# ## 2. 各归其位
#
# | 什么 | 放在哪里 |
# |---|---|
# | backward 要用的每个张量 | `ctx.save_for_backward(...)`，只调用一次，一起放 |
# | 数、形状、开关、文字 | `ctx.随便什么名字 = ...` |
#
# `save_for_backward` 只收张量（和 `None`）。既非输入也非输出的张量也可以放进去，但它在计算图里没有位置，二阶导数就丢了（第 08 课）。而挂在 `ctx` 属性上的张量没有人看管：在 `backward` 之前原地改了它，谁也不会察觉。
#
# **先猜一猜。** 下面的 `Square` 把输入存成了属性；调用之后，输入又被原地修改。最后一行会报错吗？如果不会，在 3 处的梯度是多少？

# %%
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2 * ctx.x


three = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
moved = three * 1
square = Square.apply(moved)
moved.add_(1)
torch.autograd.grad(square, three)[0]

# %% [markdown] lang="en" pair="constant-task"
# The answer is 8; it should be 6; nothing warned you. With `save_for_backward` PyTorch would have raised an error. (`%gradcheck Square.apply(three)` does mention it.)
#
# ### Exercise `mul_constant`
#
# $y = c\,x$, where $c$ is a Python number, the second argument. Use the style you like. **Predict**: how many values does `backward` return, and what is the second?

# %% [markdown] lang="zh" pair="constant-task" of="2a69fbf9"
# 得到 8，正确的是 6，而且一声不吭。若用 `save_for_backward`，PyTorch 就会报错。（`%gradcheck Square.apply(three)` 会提到这一点。）
#
# ### 练习 `mul_constant`
#
# $y = c\,x$，其中 $c$ 是一个 Python 数，作为第二个参数。两种写法任选。**先猜一猜**：`backward` 要返回几个值？第二个是什么？

# %% exercise="mul_constant"
# %%exercise mul_constant
class MulConstant(Function):
    ### BEGIN SOLUTION
    @staticmethod
    def forward(tensor, constant):
        return tensor * constant

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.constant = inputs

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.constant, None
    ### END SOLUTION

# %% [markdown] lang="en" pair="unused"
# Two: one for each argument. The second is `None`, as $c$ is no tensor.
#
# ## 3. Outputs that nobody uses
#
# A Function may return a tuple of tensors; `backward` then gets one gradient for each. What if the caller uses only one of them?
#
# PyTorch makes up a tensor of zeros for the other, so that you need not think about it. That costs memory and a multiplication by zeros. With `ctx.set_materialize_grads(False)` you say: give me `None` instead, I shall deal with it.
#
# **Predict.** Below, only the first of two outputs is used. What is shown under *in* for the backward: two tensors, or a tensor and `None`?

# %% [markdown] lang="zh" pair="unused" of="c6f99f18"
# 两个，每个参数一个；$c$ 不是张量，所以第二个是 `None`。
#
# ## 3. 没人使用的输出
#
# Function 可以返回由张量组成的元组，`backward` 则为每个输出各收到一个梯度。如果调用者只用了其中一个呢？
#
# PyTorch 会为另一个造一个全零张量，免得你操心。但这要占内存，还要做一次乘以零的乘法。调用 `ctx.set_materialize_grads(False)`，意思就是：给我 `None` 好了，我自己处理。
#
# **先猜一猜。** 下面两个输出只用到第一个。backward 的“输入”一栏会是什么：两个张量，还是一个张量和一个 `None`？

# %%
# %%autograd_function
class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, grad_double, grad_triple):
        return grad_double * 2 + grad_triple * 3

# %%
double, triple = Twice.apply(x)
double.sum().backward()
# %autograd_calls Twice

# %% [markdown] lang="en" pair="none-task"
# Two tensors, the second full of zeros.
#
# ### Exercise `mul_constant_none`
#
# A single output can count as unused too, if whatever uses it returns None as its gradient. Rewrite `MulConstant` so that no zeros are materialized in that case. `backward` gets `None`, and returns only `None`.
#
# **Predict**: what does `None * 2.0` do?

# %% [markdown] lang="zh" pair="none-task" of="cdd7c8eb"
# 两个张量，第二个全是零。
#
# ### 练习 `mul_constant_none`
#
# 只有一个输出时，它也可能没人使用：后面的运算可能什么梯度也不送回来。请再写一次 `MulConstant`，让 PyTorch 这时不必造全零张量：`backward` 收到 `None`，返回的也全是 `None`。
#
# **先猜一猜**：`None * 2.0` 会怎样？

# %% exercise="mul_constant_none"
# %%exercise mul_constant_none
class MulConstant(Function):
    ### BEGIN SOLUTION
    @staticmethod
    def forward(tensor, constant):
        return tensor * constant

    @staticmethod
    def setup_context(ctx, inputs, output):
        tensor, constant = inputs
        ctx.set_materialize_grads(False)
        ctx.constant = constant

    @staticmethod
    def backward(ctx, grad_output):
        if grad_output is None:
            return None, None
        return grad_output * ctx.constant, None
    ### END SOLUTION

# %% [markdown] lang="en" pair="sin-cos-task"
# It raises a `TypeError`, so ask first.
#
# ### Exercise `sin_cos`
#
# `SinCos` returns the pair $(\sin x, \cos x)$. Ask not to be given zeros, and handle the `None`s. The derivative of each is made of the other, so **predict**: do you need to save anything besides the outputs?

# %% [markdown] lang="zh" pair="sin-cos-task" of="03b3b548"
# 会抛出 `TypeError`，所以要先判断。
#
# ### 练习 `sin_cos`
#
# `SinCos` 返回一对 $(\sin x, \cos x)$。请声明不要全零张量，并处理好 `None`。每个输出的导数正好由另一个输出构成，**先猜一猜**：除了这两个输出，还需要保存别的吗？

# %% exercise="sin_cos"
# %%exercise sin_cos
class SinCos(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        ctx.set_materialize_grads(False)
        sin, cos = x.sin(), x.cos()
        ctx.save_for_backward(sin, cos)
        return sin, cos
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        ### BEGIN SOLUTION
        sin, cos = ctx.saved_tensors
        if grad_sin is None:
            return None if grad_cos is None else -grad_cos * sin
        if grad_cos is None:
            return grad_sin * cos
        return grad_sin * cos - grad_cos * sin
        ### END SOLUTION

# %% [markdown] lang="en" pair="kill"
# No: the outputs are enough.
#
# ## 4. A Function that stops gradients
#
# François Fleuret's course (EE-559) has a Function that sets the first `n` columns of a table to zero, `KillHead`. What is its gradient? A column that was overwritten has no influence on anything, so nothing comes back to it. The others pass.
#
# Two things are easy to get wrong: the table belongs to the caller, and so does `grad_output`. Neither may be changed in place.
#
# ### Exercise `kill_head`
#
# `input` has two dimensions, `n` is a whole number. One of the checks trains: gradient descent on `x`, so that `KillHead.apply(x, 2)` comes close to a given table. **Predict**: can the loss go to 0? (The loop below answers.)

# %% [markdown] lang="zh" pair="kill" of="71584611"
# 不需要，有这两个输出就够了。
#
# ## 4. 一个拦住梯度的 Function
#
# François Fleuret 的课（EE-559）里有一个 `KillHead`：它把一张表的前 `n` 列置零。它的梯度是什么？被覆盖的列对什么都没有影响，所以不会有梯度回到那里；其余各列照常通过。
#
# 有两处容易犯错：表是调用者的，`grad_output` 也是别人的，两者都不许原地修改。
#
# ### 练习 `kill_head`
#
# `input` 有两个维度，`n` 是整数。有一项检查会真的训练：对 `x` 做梯度下降，使 `KillHead.apply(x, 2)` 接近一张给定的表。**先猜一猜**：损失能降到 0 吗？（后面的循环会回答。）

# %% exercise="kill_head"
# %%exercise kill_head
class KillHead(Function):
    @staticmethod
    def forward(ctx, input, n):
        ### BEGIN SOLUTION
        ctx.n = n
        result = input.clone()
        result[:, :n] = 0
        return result
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        grad_input = grad_output.clone()
        grad_input[:, : ctx.n] = 0
        return grad_input, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="kill-see"
# Beside the same thing in native code, a product with a mask. **Predict**: will values and gradients be equal in every element? (Fleuret's own check used a 10×20 table of numbers between -1 and 1 and `n = 4`; it is the input here.)

# %% [markdown] lang="zh" pair="kill-see" of="1afc6be7"
# 把它和原生写法（乘一个掩码）放在一起。**先猜一猜**：数值和梯度的每个元素都相等吗？（这里的输入照 Fleuret 自己的检查：一张 10×20 的表，数值在 -1 到 1 之间，`n = 4`。）

# %%
# %exercises kill_head
def masked(input, n):
    return input * (torch.arange(input.shape[1]) >= n)


table = torch.empty(10, 20, dtype=torch.float64).uniform_(-1, 1).requires_grad_()
# %autograd_compare KillHead.apply(table, 4) masked(table, 4)

# %% [markdown] lang="en" pair="kill-loop"
# Both are. And Fleuret's loop: five steps of gradient descent on `x`, through your `KillHead`, then once more through the native product. **Predict**: will a single digit differ?

# %% [markdown] lang="zh" pair="kill-loop" of="83b988b2"
# 都相等。再来看 Fleuret 的那个循环：对 `x` 做五步梯度下降，先用你的 `KillHead`，再用原生乘积。**先猜一猜**：会有哪怕一位数字不同吗？

# %%
# %exercises kill_head
def descend(killhead):
    torch.manual_seed(0)
    y = torch.empty(3, 8).normal_()
    x = torch.empty(y.size()).normal_().requires_grad_()
    criterion = torch.nn.MSELoss()
    optimizer = torch.optim.SGD([x], lr=1.0)
    losses = []
    for k in range(5):
        r = killhead(x, 2)
        loss = criterion(r, y)
        print(k, loss.item())
        losses.append(loss.item())

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


print("to the last digit:", descend(KillHead.apply) == descend(masked))

# %% [markdown] lang="en" pair="topk-task"
# No digit differs. The loss sinks, and cannot reach 0: two columns of the output stay 0, whatever the target says there.
#
# ## 5. Outputs without a gradient
#
# Some outputs have no derivative worth the name: an index, a mask, a count. Integers never require grad; a floating one does, unless you say `ctx.mark_non_differentiable(it)`. Forget it, and `output.requires_grad` promises something that your backward does not keep.
#
# ### Exercise `top_k`
#
# `TopK.apply(x, k)` returns two tensors. The first has the `k` largest values of each row, in the order of `x.topk(k)`. The second, `mask`, has the shape and dtype of `x`: 1.0 where a value was taken, else 0.0. The gradient of a value goes back to where it came from; `mask` has none. **Predict**: how many arguments does `backward` have?

# %% [markdown] lang="zh" pair="topk-task" of="b30876a7"
# 一位也不差。损失在下降，却降不到 0：输出有两列始终为 0，不管目标在那里是多少。
#
# ## 5. 没有梯度的输出
#
# 有些输出谈不上什么导数：下标、掩码、计数。整数张量从不需要梯度；浮点张量则需要，除非你声明 `ctx.mark_non_differentiable(它)`。忘了声明，`output.requires_grad` 就许下了一个你的 backward 并不兑现的诺言。
#
# ### 练习 `top_k`
#
# `TopK.apply(x, k)` 返回两个张量：每行最大的 `k` 个值，顺序与 `x.topk(k)` 相同；以及一个与 `x` 同形、同 dtype 的 `mask`，被选中的位置是 1.0，其余是 0.0。值的梯度回到它来的地方；`mask` 没有梯度。**先猜一猜**：`backward` 有几个参数？

# %% exercise="top_k"
# %%exercise top_k
class TopK(Function):
    @staticmethod
    def forward(ctx, x, k):
        values, indices = x.topk(k, dim=-1)
        mask = torch.zeros_like(x).scatter(-1, indices, 1.0)
        ### BEGIN SOLUTION
        ctx.save_for_backward(indices)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(mask)
        ### END SOLUTION
        return values, mask

    ### BEGIN SOLUTION
    @staticmethod
    def backward(ctx, grad_values, grad_mask):
        (indices,) = ctx.saved_tensors
        grad_x = grad_values.new_zeros(ctx.shape)
        return grad_x.scatter(-1, indices, grad_values), None
    ### END SOLUTION

# %% [markdown] lang="en" pair="raise-task"
# Three: `ctx`, and one for each output. What arrives for the mask is ignored.
#
# ## 6. Six return statements
#
# In notebook 02 some wrong answers were forgiven. Time to be exact. The Function below has three arguments: `x` (3×4) requires grad, `w` (3×4) does *not*, `name` is a text, no tensor. `g` is `grad_output`, also 3×4.
#
# | | `backward` ends with |
# |---|---|
# | A | `return (g * w)[0], None, None` |
# | B | `return g * w, g * x, None` |
# | C | `return g * w, g * x, g.sum()` |
# | D | `return g * w, None` |
# | E | `return g * w, None, None, None` |
# | F | `return (g * w).expand(2, 3, 4), None, None` |
#
# **Predict**: which of them does PyTorch refuse with an error? Not refused does not mean right.

# %% [markdown] lang="zh" pair="raise-task" of="1c0bfb26"
# 三个：`ctx`，再加每个输出一个；为掩码送来的不必理会。
#
# ## 6. 六条返回语句
#
# 第 02 课里，有些写错的答案被放过了。现在来弄个明白。设 Function 有三个参数：`x` 是 3×4，需要梯度；`w` 是 3×4，*不*需要梯度；`name` 是一段文字，不是张量。`g` 就是 `grad_output`，也是 3×4。
#
# | | `backward` 的最后一行 |
# |---|---|
# | A | `return (g * w)[0], None, None` |
# | B | `return g * w, g * x, None` |
# | C | `return g * w, g * x, g.sum()` |
# | D | `return g * w, None` |
# | E | `return g * w, None, None, None` |
# | F | `return (g * w).expand(2, 3, 4), None, None` |
#
# **先猜一猜**：PyTorch 会对哪几条报错？没报错不等于对。

# %%
returns = {
    "A": lambda g, x, w: ((g * w)[0], None, None),
    "B": lambda g, x, w: (g * w, g * x, None),
    "C": lambda g, x, w: (g * w, g * x, g.sum()),
    "D": lambda g, x, w: (g * w, None),
    "E": lambda g, x, w: (g * w, None, None, None),
    "F": lambda g, x, w: ((g * w).expand(2, 3, 4), None, None),
}


class Returning(Function):
    @staticmethod
    def forward(ctx, x, w, name):
        ctx.save_for_backward(x, w)
        ctx.returned = returns[name]
        return x * w

    @staticmethod
    def backward(ctx, g):
        return ctx.returned(g, *ctx.saved_tensors)


wanted, fixed = torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.randn(3, 4, dtype=torch.float64)
for name in returns:
    try:
        Returning.apply(wanted, fixed, name).sum().backward()
        print(name, "no error")
    except RuntimeError as error:
        print(name, "refused:", str(error)[:90])

# %% [markdown] lang="en" pair="raise-see"
# A, C and D. A gradient must have the shape of its input, or one that the input broadcasts to. What is no tensor has none, and there is one value for each argument. A gradient that nobody asked for is only wasted, as in B, and a `None` too many is forgiven.
#
# The most dangerous one is F. There is no error, and the gradient is twice too large, because the engine sums two copies of it. The cell below asks for its verdict.

# %% [markdown] lang="zh" pair="raise-see" of="bbdf52c6"
# 是 A、C、D。梯度的形状要与它的输入相同，或者可由输入广播而来；不是张量的没有梯度；每个参数对应一个返回值。没人要的梯度只是白算（B），多出来的 `None` 也不追究（E）。
#
# 最危险的是 F：不报错，梯度却大了一倍，因为引擎把两份加在了一起。下面这一格来问它的结论。

# %%
class TwoCopies(Function):
    @staticmethod
    def forward(ctx, x, w, n):
        ctx.save_for_backward(w)
        return x * w + n

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return (g * w).expand(2, 3, 4), None, None


# %gradcheck TwoCopies.apply(wanted, fixed, 1.0)

# %% [markdown] lang="en" pair="end"
# ## 7. What to keep
#
# | the contract | |
# |---|---|
# | arguments of `forward` | as many values from `backward`; `None` for what is no tensor (a gradient there is an error) or needs none (one there is only wasted) |
# | outputs of `forward` | as many arguments of `backward` after `ctx` |
# | `save_for_backward` | the tensors that backward needs, once; inputs and outputs keep their place in the graph |
# | `ctx.name = ...` | whatever is no tensor |
# | `set_materialize_grads(False)` | unused outputs arrive as `None` |
# | `mark_non_differentiable(out)` | floating outputs without a gradient |
# | what you are given | belongs to others: never change it in place, unless you `mark_dirty` it (notebook 07) |
#
# **Next**: notebook 05, where many numbers become one, and one gradient many.

# %% [markdown] lang="zh" pair="end" of="fbd5e375"
# ## 7. 记住这些
#
# | 约定 | |
# |---|---|
# | `forward` 有几个参数 | `backward` 就返回几个值；不是张量的位置必须是 `None`（返回梯度会报错），不需要梯度的张量写 `None` 即可（返回梯度只是白算） |
# | `forward` 有几个输出 | `backward` 在 `ctx` 之后就有几个参数 |
# | `save_for_backward` | 保存 backward 要用的张量，只调用一次；输入和输出会保住在计算图里的位置 |
# | `ctx.名字 = ...` | 一切不是张量的东西 |
# | `set_materialize_grads(False)` | 没用到的输出以 `None` 送来 |
# | `mark_non_differentiable(out)` | 没有梯度的浮点输出 |
# | 别人交给你的张量 | 是别人的：不要原地修改，除非用 `mark_dirty` 声明（第 07 课） |
#
# **下一课**：05，许多个数变成一个，一个梯度又变回许多个。

# %% [raw] lang="zh"
# the same without a bias: → 没有偏置也一样：
# to the last digit: → 每一位都相同：
# "no error" → "没有报错"
# "refused:" → "被拒绝："

# %%
# %exercises
