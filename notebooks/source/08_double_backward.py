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
#     course: "08"
#     title_en: Double backward
#     title_zh: 二次反向传播
#     minutes: 65
# ---

# %% [markdown] lang="en" pair="intro"
# # 08 · Double backward
#
# A gradient is a function of the inputs like any other, so it has a gradient, too. Hessians, gradient penalties, meta-learning and physics-informed nets all ask for it. Your `backward` can deliver it without a line more, or destroy it without a word.
#
# **After it you can**
#
# - read the graph of a gradient and see where a second backward will go;
# - say why an intermediate result that is saved makes second derivatives wrong, and cure it in two ways;
# - find what cuts the graph in a `backward`: `.data`, `.detach()`, `no_grad`;
# - decide when `@once_differentiable` is the honest answer;
# - differentiate twice through code that PyTorch does not know.
#
# **You need** notebooks 01 to 04. **Time**: about 65 minutes.

# %% [markdown] lang="zh" pair="intro" of="0b478c4b"
# # 08 · 二次反向传播
#
# 梯度也是输入的函数，和别的函数没有两样，所以梯度也有梯度。黑塞矩阵、梯度惩罚、元学习、物理信息神经网络都要用到它。你的 `backward` 可能一行不多写就能支持它，也可能一声不响地把它毁掉。
#
# **学完之后，你能够**
#
# - 看懂“梯度的计算图”，知道第二次反向传播会走到哪里；
# - 说清为什么保存中间结果会让二阶导数出错，并用两种办法解决；
# - 找出 `backward` 里切断计算图的地方：`.data`、`.detach()`、`no_grad`；
# - 判断什么时候写 `@once_differentiable` 才是诚实的做法；
# - 对 PyTorch 不认识的代码求二阶导数。
#
# **预备知识**：01 到 04。**用时**：约 65 分钟。

# %% tags=["setup"]
import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="twice"
# ## 1. The graph of a gradient
#
# With `create_graph=True`, PyTorch records what `backward` computes, as if it were a forward. The result `g` then has a graph of its own, and a second backward walks through that one.
#
# Here is `Exp` from notebook 01. It saves its **output**. **Predict** how the graph of `g` will look: does it lead back to `x`? Through which nodes?

# %% [markdown] lang="zh" pair="twice" of="6c6d0cf0"
# ## 1. 梯度的计算图
#
# 加上 `create_graph=True`，PyTorch 会像记录前向那样记录 `backward` 里的每一步计算。得到的 `g` 于是有了自己的计算图，第二次反向传播走的就是这张图。
#
# 下面是 01 里的 `Exp`，它保存的是**输出**。**先猜一猜** `g` 的计算图长什么样：能走回 `x` 吗？经过哪些节点？

# %%
x = torch.tensor([0.3, -1.2, 1.8], dtype=torch.float64, requires_grad=True)

# %% tags=["shown"]
# %%autograd_function
class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y

# %%
(g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
# %autograd_graph g

# %% [markdown] lang="en" pair="exp-why"
# `g = grad_output * y`, and the `y` that comes out of `ctx.saved_tensors` is *the output*, with `ExpBackward` still attached. So the way back goes `MulBackward0` → `ExpBackward` → `x`, and the second derivative is right. `save_for_backward` knows inputs and outputs, and gives them back with their place in the graph.
#
# What if you save something that is neither?

# %% [markdown] lang="zh" pair="exp-why" of="ee198605"
# `g = grad_output * y`，而从 `ctx.saved_tensors` 取回的 `y` **就是那个输出**，身后仍然连着 `ExpBackward`。所以返回的路径是 `MulBackward0` → `ExpBackward` → `x`，二阶导数是对的。`save_for_backward` 认得输入和输出，取回时会连同它们在计算图里的位置一起还给你。
#
# 如果保存的东西既不是输入、也不是输出呢？

# %% [markdown] lang="en" pair="trap"
# ## 2. The silent trap
#
# The cube computes its derivative $3x^2$ in the forward, since it is at hand, and saves it.
#
# **Predict**: Is the gradient right? Is the second derivative? Will there be an error?

# %% [markdown] lang="zh" pair="trap" of="7394cdbf"
# ## 2. 无声的陷阱
#
# 下面这个三次方函数在前向里顺手算好了导数 $3x^2$，并把它保存下来。
#
# **先猜一猜**：梯度对吗？二阶导数对吗？会报错吗？

# %%
# %%autograd_function --inputs x --order 2
class ForgetfulCube(Function):
    @staticmethod
    def forward(ctx, x):
        dx = 3 * x**2
        ctx.save_for_backward(dx)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (dx,) = ctx.saved_tensors
        return grad_output * dx

# %%
(g,) = torch.autograd.grad(ForgetfulCube.apply(x).sum(), x, create_graph=True)
# %autograd_graph g

# %% [markdown] lang="en" pair="trap-why"
# The gradient is right, and it has no graph at all. Inside `forward` nothing is recorded, so `dx` is a constant to PyTorch. In a loss of several terms there would not even be an error. The contribution of this Function would just be missing.
#
# Two cures:
#
# 1. **Compute in `backward`** from saved inputs: `3 * x**2` is then recorded. Costs the computation again.
# 2. **Return the intermediate as an output** as well, and save that. It gets a place in the graph, and `backward` gets one more argument: the gradient that flows back *into the intermediate*.

# %% [markdown] lang="zh" pair="trap-why" of="f26cd0a5"
# 梯度是对的，却完全没有计算图。`forward` 内部什么也不会被记录，所以在 PyTorch 眼里 `dx` 只是常数。如果损失由好几项组成，连报错都不会有：只是少了这个 Function 的那一份。
#
# 两种办法：
#
# 1. **在 `backward` 里计算**：由保存的输入算出 `3 * x**2`，这一步就会被记录。代价是重算一遍。
# 2. **把中间结果也作为输出返回**，再保存这个输出。它在计算图里有了位置，`backward` 也多收到一个参数：流回**这个中间结果**的梯度。

# %% [markdown] lang="en" pair="cube-task"
# ### Exercise `my_cube`
#
# The second cure. `forward` is done: it returns $x^3$ and $dx = 3x^2$; `setup_context` saves both. Callers use the first output; a few use the second one as well. Write `backward`.
#
# **Predict**: during an ordinary `loss.backward()`, what is `grad_dx`? And when you differentiate a second time?

# %% [markdown] lang="zh" pair="cube-task" of="30c74f1d"
# ### 练习 `my_cube`
#
# 用第二种办法。`forward` 已经写好：返回 $x^3$ 和 $dx = 3x^2$；`setup_context` 把两者都保存了。调用者用第一个输出，也有少数人会用第二个。请写出 `backward`。
#
# **先猜一猜**：普通的一次 `loss.backward()` 里，`grad_dx` 是什么？第二次求导时呢？

# %% exercise="my_cube"
# %%exercise my_cube
class MyCube(Function):
    @staticmethod
    def forward(x):
        dx = 3 * x**2
        return x**3, dx

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        _, dx = output
        ctx.save_for_backward(x, dx)

    @staticmethod
    def backward(ctx, grad_output, grad_dx):
        ### BEGIN SOLUTION
        x, dx = ctx.saved_tensors
        return grad_output * dx + grad_dx * 6 * x
        ### END SOLUTION

# %% [markdown] lang="en" pair="sinh"
# Zeros in an ordinary backward. In a second one, what flows back into `dx`; times $6x$ it is the second derivative.
#
# ## 3. More than one intermediate
#
# $$\sinh x = \tfrac12\,(e^{x} - e^{-x}), \qquad \cosh x = \tfrac12\,(e^{x} + e^{-x}) .$$
#
# Both need the same two exponentials, so `forward` keeps them. They are intermediates; they are returned as outputs.
#
# ### Exercise `sinh`
#
# Write `backward` from the saved exponentials, without calling `exp` again. Three gradients come in. **Predict** the sign of the third term before you run it.

# %% [markdown] lang="zh" pair="sinh" of="aac57209"
# 普通的反向传播里全是零；第二次时，是流回 `dx` 的梯度，乘上 $6x$ 就是二阶导数。
#
# ## 3. 不止一个中间结果
#
# $$\sinh x = \tfrac12\,(e^{x} - e^{-x}), \qquad \cosh x = \tfrac12\,(e^{x} + e^{-x}) .$$
#
# 两者用到的是同样两个指数，所以 `forward` 把它们留了下来。它们是中间结果，因此也作为输出返回。
#
# ### 练习 `sinh`
#
# 用保存的两个指数写出 `backward`，不要再调用 `exp`。会有三个梯度传进来。运行之前，**先猜一猜**第三项的符号。

# %% exercise="sinh"
# %%exercise sinh
class Sinh(Function):
    @staticmethod
    def forward(ctx, x):
        grown, shrunk = x.exp(), (-x).exp()
        ctx.save_for_backward(grown, shrunk)
        return (grown - shrunk) / 2, grown, shrunk

    @staticmethod
    def backward(ctx, grad_sinh, grad_grown, grad_shrunk):
        ### BEGIN SOLUTION
        grown, shrunk = ctx.saved_tensors
        cosh = (grown + shrunk) / 2
        return grad_sinh * cosh + grad_grown * grown - grad_shrunk * shrunk
        ### END SOLUTION

# %% [markdown] lang="en" pair="cut"
# Minus, since $e^{-x}$ falls.
#
# ## 4. Scissors in `backward`
#
# Old code is full of `.data`, and careful people write `with torch.no_grad()` where they mean "this is only the backward". Both cut.
#
# **Predict**: which of the two lines of this `backward` ruins the second derivative: the first, the second, or each alone?

# %% [markdown] lang="zh" pair="cut" of="406adbfa"
# 负号，因为 $e^{-x}$ 是递减的。
#
# ## 4. `backward` 里的剪刀
#
# 老代码里到处是 `.data`，谨慎的人又喜欢写 `with torch.no_grad()`，觉得“这里不过是反向”。两者都会剪断计算图。
#
# **先猜一猜**：下面 `backward` 的两行里，是哪一行毁了二阶导数？第一行、第二行，还是各自都会？

# %% tags=["shown"]
# %%autograd_function --inputs x --order 2
class CutSilu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0].data
        with torch.no_grad():
            s = x.sigmoid()
        return grad_output * (s + x * s * (1 - s))

# %% [markdown] lang="en" pair="silu-task"
# Each alone. `.data` cuts `x`, and `s` with it, so that no graph is left. `no_grad` cuts `s` only: a wrong second derivative comes back, without an error.
#
# ### Exercise `silu`
#
# Repair it. The formula of its gradient is right; keep it:
#
# $$\frac{d}{dx}\, x\,\sigma(x) = \sigma(x) + x\,\sigma(x)\,(1 - \sigma(x)) .$$

# %% [markdown] lang="zh" pair="silu-task" of="7ea476cd"
# 各自都会。`.data` 剪断 `x`，`s` 也随之断了，计算图一点不剩；`no_grad` 只剪断 `s`，会得到错误的二阶导数，而且不报错。
#
# ### 练习 `silu`
#
# 把它修好。梯度公式本身没有错，可以保留：
#
# $$\frac{d}{dx}\, x\,\sigma(x) = \sigma(x) + x\,\sigma(x)\,(1 - \sigma(x)) .$$

# %% exercise="silu"
# %%exercise silu
class Silu(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x)
        return x * x.sigmoid()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad_output * (s + x * s * (1 - s))
        ### END SOLUTION

# %% [markdown] lang="en" pair="once"
# ## 5. To refuse is honest
#
# Sometimes second derivatives are not worth the work. Then say so. With `@once_differentiable`, a second backward through this node raises an error instead of giving a wrong number. (Not all of them come to it, see below.)
#
# **Predict** the verdict for the forgetful cube with that one line added.

# %% [markdown] lang="zh" pair="once" of="921f1b7a"
# ## 5. 拒绝也是一种诚实
#
# 有时候二阶导数不值得费这个功夫。那就明说：加上 `@once_differentiable`，第二次反向传播走到这个节点时会直接报错，而不是给出一个错误的数。（并非每次都会走到，见下文。）
#
# **先猜一猜**：给那个“健忘”的三次方加上这一行之后，结论是什么？

# %%
# %%autograd_function --inputs x --order 2
class HonestCube(Function):
    @staticmethod
    def forward(ctx, x):
        dx = 3 * x**2
        ctx.save_for_backward(dx)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (dx,) = ctx.saved_tensors
        return grad_output * dx

# %% [markdown] lang="en" pair="once-after"
# Right; second derivatives were asked for, and are not checked, since none are promised.
#
# The decorator puts an error node in the place of the gradient's graph. It raises only when the engine *enters* it:
#
# | the second backward | |
# |---|---|
# | `.backward()` | enters it: an error |
# | `torch.autograd.grad` | enters only what leads to the inputs asked about, and this node leads to none: an error about an unused tensor, or `None` with `allow_unused=True`, as if nothing depended on it |
# | either, where `grad_output` needs no gradient, as behind a plain `.sum()` | there is no node: the first gradient came back **without a graph and without an error** |
#
# **Predict** for the loss $\sum_i g_i + \sum_i x_i^2$, where $g = \nabla \sum_i x_i^3$: what should its gradient be, and what comes out? And what if the cubes are squared before they are summed?

# %% [markdown] lang="zh" pair="once-after" of="fd136663"
# 结论是“正确”；虽然问了二阶导数，但既然没有承诺，也就不去检查。
#
# 装饰器用一个报错节点代替了梯度的计算图。只有引擎**走进**它时才会报错：
#
# | 第二次反向传播 | |
# |---|---|
# | `.backward()` | 会走进去：报错 |
# | `torch.autograd.grad` | 只走进能通到所问输入的节点，而这个节点哪个也不通：报错说张量没有用到；加上 `allow_unused=True` 则返回 `None`，看上去就像“与它无关” |
# | 两者之一，而 `grad_output` 不需要梯度，例如后面只接了一个 `.sum()` | 没有这个节点：第一次得到的梯度**没有计算图，也没有报错** |
#
# **先猜一猜**：损失是 $\sum_i g_i + \sum_i x_i^2$，其中 $g = \nabla \sum_i x_i^3$。它的梯度应当是多少？实际会得到什么？如果先平方再求和，又会怎样？

# %%
def cubes_then_squares(cube):
    (g,) = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum() + (x**2).sum(), x)[0]


print("right: ", cubes_then_squares(lambda x: x**3))
print("silent:", cubes_then_squares(HonestCube.apply))

(g,) = torch.autograd.grad((HonestCube.apply(x) ** 2).sum(), x, create_graph=True)
print("unused:", torch.autograd.grad(g.sum(), x, allow_unused=True))
try:
    g.sum().backward()
except RuntimeError as error:
    print("loud:  ", error)

# %% [markdown] lang="en" pair="once-silent"
# $8x$ is right, and $2x$ came out: the contribution of the cube is missing, without a word. With the squares, `torch.autograd.grad` returns `None` (`allow_unused=True`), and `.backward()` raises. The last line of defence is your own: after `create_graph=True`, look at `g.requires_grad`. Where it is `False`, a second derivative through it will be missing.

# %% [markdown] lang="zh" pair="once-silent" of="42e4fe65"
# 正确的是 $8x$，得到的是 $2x$：三次方的那一份不见了，却没有任何提示。先平方时，`grad` 返回 `None`，`.backward()` 报错。最后一道防线要靠自己：用了 `create_graph=True` 之后，看一眼 `g.requires_grad`；若是 `False`，经过它的二阶导数就会缺失。

# %% [markdown] lang="en" pair="black-box"
# ## 6. Twice through a black box
#
# PyTorch cannot record numpy. If `backward` calls numpy, then its result is a constant to the second backward. The way out: give the backward a Function **of its own**. Sine asks for cosine, cosine asks for sine, and each `backward` calls the other's `apply`.
#
# ### Exercise `numpy_sin`
#
# Write `NumpySin`, and in the same cell the Function that its `backward` needs. All sines and cosines come from numpy. **Predict** how often you can differentiate the result.

# %% [markdown] lang="zh" pair="black-box" of="3b95c998"
# ## 6. 两次穿过黑盒
#
# PyTorch 记录不了 numpy。如果 `backward` 里用 numpy 计算，在第二次反向传播看来，结果就只是常数。出路是：给反向过程也配**一个自己的 Function**。正弦求导要用余弦，余弦求导又要用正弦，每个 `backward` 都去调用对方的 `apply`。
#
# ### 练习 `numpy_sin`
#
# 写出 `NumpySin`，并在同一格里写出它的 `backward` 需要的那个 Function。正弦和余弦都由 numpy 计算。**先猜一猜**：这样得到的结果能求几阶导数？

# %% exercise="numpy_sin"
# %%exercise numpy_sin
class NumpySin(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        return grad_output * NumpyCos.apply(x)
        ### END SOLUTION


### BEGIN SOLUTION
class NumpyCos(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.cos(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return -grad_output * NumpySin.apply(x)
### END SOLUTION

# %% [markdown] lang="en" pair="penalty"
# As often as you like.
#
# ## 7. What it is good for: a gradient penalty
#
# The critic of a Wasserstein GAN must not be steeper than 1. A usual way is to ask for slope 1 at a batch of points (Gulrajani and others, 2017). One adds to the loss
#
# $$P = \frac1n \sum_{i=1}^{n} \bigl(\lVert \nabla_{x_i} f(x_i) \rVert_2 - 1\bigr)^2 ,$$
#
# and the optimizer differentiates $P$, which *contains a gradient*.
#
# **Predict**: which option of `torch.autograd.grad` does the inner gradient need? What happens to the training without it: an error, or nothing?
#
# ### Exercise `gradient_penalty`
#
# `f` takes a batch, shape `(n, d)`, and gives `n` numbers, one for each row; `x` requires grad. Return $P$, ready to be differentiated.

# %% [markdown] lang="zh" pair="penalty" of="9105b5d4"
# 想求几阶都行。
#
# ## 7. 它有什么用：梯度惩罚
#
# Wasserstein GAN 里的判别网络，斜率不能超过 1。常见的办法是要求它在一批点上斜率为 1（Gulrajani 等，2017）：在损失里加上
#
# $$P = \frac1n \sum_{i=1}^{n} \bigl(\lVert \nabla_{x_i} f(x_i) \rVert_2 - 1\bigr)^2 ,$$
#
# 而优化器要对 $P$ 求导，$P$ 里面又**含有梯度**。
#
# **先猜一猜**：里面这个梯度要用到 `torch.autograd.grad` 的哪个选项？如果漏了它，训练会报错，还是什么也不发生？
#
# ### 练习 `gradient_penalty`
#
# `f` 接受一个批次，形状为 `(n, d)`，返回 `n` 个数，每行一个；`x` 需要梯度。请返回 $P$，而且它要能继续求导。

# %% exercise="gradient_penalty"
# %%exercise gradient_penalty
def gradient_penalty(f, x):
    ### BEGIN SOLUTION
    (grad,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return ((grad.norm(dim=1) - 1) ** 2).mean()
    ### END SOLUTION

# %% [markdown] lang="en" pair="penalty-learns"
# `create_graph=True`. Without it $P$ has no graph. Alone it raises an error; added to another loss it is a constant, and nothing happens.
#
# ### The contribution that is missing, step after step
#
# A critic of one hidden layer is trained by its penalty alone, which asks for slope 1 everywhere. One uses torch's tanh. The other uses a tanh that saves its derivative, as the cube of section 2 did. The *first* derivatives of both are the same.
#
# **Predict** the two curves.

# %% [markdown] lang="zh" pair="penalty-learns" of="e620d254"
# 是 `create_graph=True`。没有它，$P$ 就没有计算图：单独用会报错；加在别的损失上，它只是一个常数，什么也不发生。
#
# ### 每一步都缺的那一份
#
# 只用惩罚项训练一个只有一个隐藏层的判别网络，也就是只要求斜率处处为 1：一次用 torch 的 tanh，一次用保存了导数的 tanh，就像第 2 节的立方那样。两者的*一阶*导数完全一样。
#
# **先猜一猜**这两条曲线。

# %% tags=["shown"]
# %exercises gradient_penalty
import matplotlib.pyplot as plt


class ForgetfulTanh(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(1 - y**2)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (dy,) = ctx.saved_tensors
        return grad_output * dy


def train(tanh):
    torch.manual_seed(0)
    weight, bias, last = torch.randn(2, 32), torch.zeros(32), torch.randn(32) / 32**0.5
    optimizer = torch.optim.Adam([p.requires_grad_() for p in (weight, bias, last)], lr=0.01)
    points, losses = torch.randn(128, 2, requires_grad=True), []
    for _ in range(300):
        penalty = gradient_penalty(lambda x: tanh(x @ weight + bias) @ last, points)
        optimizer.zero_grad()
        penalty.backward()
        optimizer.step()
        losses.append(penalty.item())
    return losses


plt.figure(figsize=(6, 2.8), layout="constrained")
for name, tanh in (("torch's tanh", torch.tanh), ("one that forgets", ForgetfulTanh.apply)):
    losses = train(tanh)
    plt.semilogy(losses, label=name)
    print(f"{name:>16}: penalty {losses[0]:.2f}, smallest {min(losses):.4f}, at the end {losses[-1]:.4f}")
plt.xlabel("step")
plt.ylabel("penalty")
plt.legend()
plt.show()

# %% [markdown] lang="en" pair="end"
# At first both sink. Then the one that forgets climbs again, away from its goal. Part of its gradient is missing, and nothing raises an error.
#
# ## What you take along
#
# - `create_graph=True` records `backward` as if it were a forward. What that `backward` does with torch, on saved inputs and outputs, can be differentiated again.
# - Neither input nor output? Compute it in `backward`, or make it an output and handle its gradient.
# - `.data`, `.detach()`, `no_grad`, numpy: the first derivative never notices.
# - `@once_differentiable` costs one line and makes a second backward raise, wherever `grad_output` needs a gradient. Where it does not, as behind `.sum()`, the contribution is still missing in silence: look at `g.requires_grad`.

# %% [markdown] lang="zh" pair="end" of="12b8d76b"
# 起初两条都在下降。后来，健忘的那条又升了回去，离目标越来越远：它的梯度缺了一份，却没有任何报错。
#
# ## 带走这几点
#
# - `create_graph=True` 会像记录前向那样记录 `backward`。只要 `backward` 用 torch 对保存的输入和输出做计算，就能再求一次导。
# - 既非输入也非输出？要么在 `backward` 里重算，要么把它变成输出，并处理流回它的梯度。
# - `.data`、`.detach()`、`no_grad`、numpy：只看一阶导数，永远察觉不到。
# - `@once_differentiable` 只要一行，就能让第二次反向传播报错，前提是 `grad_output` 需要梯度。若不需要（例如后面只有 `.sum()`），那一份仍会无声地缺失：看一眼 `g.requires_grad`。

# %% [raw] lang="zh"
# "right: " → "正确："
# "silent:" → "不声不响地错："
# "unused:" → "没有用到："
# "loud:  " → "报错："
# : penalty {losses[0]:.2f}, smallest {min(losses):.4f}, at the end { → ：惩罚项 {losses[0]:.2f}，最小 {min(losses):.4f}，最后 {

# %%
# %exercises
