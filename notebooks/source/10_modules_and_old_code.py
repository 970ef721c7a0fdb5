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
#     course: "10"
#     title_en: Modules and old code
#     title_zh: 模块与旧代码
#     minutes: 45
# ---

# %% [markdown] lang="en" pair="intro"
# # 10 · Modules and old code
#
# A Function computes and keeps nothing. Weights have to live somewhere. The optimizer finds them, they are saved to disk and moved to another dtype: that is what a **module** is for. And much code that you will meet was written for a PyTorch that no longer exists.
#
# **After it you can**
#
# - say which of Function, functional and module to write;
# - put a Function of your own into a module that saves, loads and converts, and train it with an optimizer of torch's;
# - read a Function from 2017 and write it for today;
# - find the slips in an old module, some of which never were right;
# - say what took the place of an API that died.
#
# **You need** notebooks 01 and 02. **Time**: about 45 minutes.

# %% [markdown] lang="zh" pair="intro" of="dbaf5d34"
# # 10 · 模块与旧代码
#
# Function 只管计算，什么也不保存。权重总得有个地方住：优化器要找得到，能存盘，能换 dtype——这就是**模块**的用处。另外，你会遇到大量为早已不存在的 PyTorch 写的代码。
#
# **学完之后，你能够**
#
# - 判断该写 Function、函数式接口还是模块；
# - 把自己的 Function 放进模块，能保存、能加载、能转换，并用 torch 的优化器训练它；
# - 读懂 2017 年的 Function，并改写成今天的样子；
# - 找出旧模块里的毛病，其中有的从来就没对过；
# - 说出不在了的 API 如今由什么代替。
#
# **预备知识**：01、02。**用时**：约 45 分钟。

# %% tags=["setup"]
import math

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="three"
# ## 1. Three forms of the same thing
#
# | form | what it holds | example |
# |---|---|---|
# | **Function** | nothing; how to compute, and how to send a gradient back | `LinearFunction` |
# | **functional** | nothing; a plain function with defaults around `apply` | `torch.nn.functional.linear` |
# | **module** | parameters and buffers; calls the functional | `torch.nn.Linear` |
#
# PyTorch 2.13 lets `apply` take keyword arguments, 2.6 does not. Names, defaults and a docstring that hold in every version belong in the functional form. Anything without parameters needs no module.
#
# Here are the first two. **Predict.** The graph of `linear(x, w)` below: how many leaves, and what are they called?

# %% [markdown] lang="zh" pair="three" of="d48d7bad"
# ## 1. 同一件事的三种写法
#
# | 写法 | 保存什么 | 例子 |
# |---|---|---|
# | **Function** | 什么也不保存；说明怎样计算、怎样把梯度传回去 | `LinearFunction` |
# | **函数式** | 什么也不保存；`apply` 外面一个带默认值的普通函数 | `torch.nn.functional.linear` |
# | **模块** | 参数和缓冲区；调用函数式接口 | `torch.nn.Linear` |
#
# `apply` 在 PyTorch 2.13 里接受关键字参数，在 2.6 里不接受；参数名、默认值和文档若要在各个版本里都管用，应当写在函数式那一层。没有参数的东西，用不着模块。
#
# 下面是前两种。**先猜一猜。** `linear(x, w)` 的计算图里有几个叶子？各叫什么？

# %% tags=["shown"]
# %%autograd_function
class WeightedSum(Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_output.mm(weight) if ctx.needs_input_grad[0] else None
        grad_weight = grad_output.t().mm(input) if ctx.needs_input_grad[1] else None
        grad_bias = grad_output.sum(0) if ctx.needs_input_grad[2] else None
        return grad_input, grad_weight, grad_bias


def linear(input, weight, bias=None):
    return WeightedSum.apply(input, weight, bias)


x, w = torch.randn(2, 4), torch.randn(3, 4, requires_grad=True)
y = linear(x, w)
# %autograd_graph y

# %% [markdown] lang="en" pair="register"
# One leaf: `x` needs no gradient, and a bias was not given. `linear(x, w, bias=b)` works too, and in every version of PyTorch.
#
# Now the home for `w`. A module **registers** what is assigned to an attribute, if it is an `nn.Parameter` or another module. A registered parameter appears in `parameters()` and in `state_dict()`, and follows `.double()` and `.to(device)`. A **buffer**, a tensor that needs no gradient, is in `state_dict()` and follows too, but is not in `parameters()`. What is not registered stays behind, silently.
#
# **Predict.** Which of these three does `state_dict()` know?

# %% [markdown] lang="zh" pair="register" of="0789987f"
# 只有一个叶子：`x` 不需要梯度，偏置没有给。`linear(x, w, bias=b)` 也行，而且在 PyTorch 的各个版本里都行。
#
# 现在给 `w` 安个家。模块会**登记**赋给属性的东西，条件是它是 `nn.Parameter`，或者另一个模块。登记过的参数，会出现在 `parameters()` 和 `state_dict()` 里，也会跟着 `.double()`、`.to(device)` 走。不需要梯度的张量可以登记为**缓冲区**：它在 `state_dict()` 里，也跟着走，只是不在 `parameters()` 里。没登记的就悄悄留在原地。
#
# **先猜一猜。** 下面三个当中，`state_dict()` 认识哪几个？

# %% tags=["shown"]
class Home(nn.Module):
    def __init__(self):
        super().__init__()
        self.parameter = nn.Parameter(torch.zeros(2))
        self.plain = torch.zeros(2, requires_grad=True)
        self.register_buffer("buffer", torch.zeros(2))


home = Home().double()
print(list(home.state_dict()))
print({name: getattr(home, name).dtype for name in ("parameter", "plain", "buffer")})

# %% [markdown] lang="en" pair="module-task"
# `state_dict()` knows `parameter` and `buffer`, not the plain tensor; that one stayed float32. An optimizer would not know it either, and training would go on without it.
#
# ### Exercise `linear_module`
#
# Write the module on top of `linear` from above. It takes `input_features, output_features, bias=True`. Its parameters are `weight` (out × in) and `bias`; without bias, `bias` is `None`. They begin with small random numbers of both signs, such as uniform in ±0.1. It computes in float64 after `.double()`. When printed it tells its sizes: `input_features=4, output_features=3, bias=False`.

# %% [markdown] lang="zh" pair="module-task" of="ef5d46ad"
# `state_dict()` 认识 `parameter` 和 `buffer`，不认识普通张量；后者还是 float32。优化器同样不认识它，训练会撇下它照样进行。
#
# ### 练习 `linear_module`
#
# 在上面的 `linear` 之上写出模块。参数是 `input_features, output_features, bias=True`；两个参数叫 `weight`（输出 × 输入）和 `bias`；不要偏置时，`bias` 是 `None`；初始值是较小的随机数，有正有负，例如在 ±0.1 之间均匀分布；`.double()` 之后用 float64 计算；打印时要说出尺寸：`input_features=4, output_features=3, bias=False`。

# %% exercise="linear_module"
# %%exercise linear_module
class Linear(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        ### BEGIN SOLUTION
        super().__init__()
        self.input_features, self.output_features = input_features, output_features
        self.weight = nn.Parameter(torch.empty(output_features, input_features).uniform_(-0.1, 0.1))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features).uniform_(-0.1, 0.1))
        else:
            self.register_parameter("bias", None)
        ### END SOLUTION

    def forward(self, input):
        ### BEGIN SOLUTION
        return linear(input, self.weight, self.bias)
        ### END SOLUTION

    def extra_repr(self):
        ### BEGIN SOLUTION
        return (
            f"input_features={self.input_features}, output_features={self.output_features}, "
            f"bias={self.bias is not None}"
        )
        ### END SOLUTION

# %% [markdown] lang="en" pair="module-learns"
# ### It learns
#
# The spiral arms of notebook 02 again. There every weight was carried from step to step by hand. Now modules own them, and an optimizer finds those that are registered. In the second network the first layer's weight is a plain tensor, as `plain` was above.
#
# **Predict.** Its gradient arrives all the same, in every step. What becomes of the loss?

# %% [markdown] lang="zh" pair="module-learns" of="2a069ac9"
# ### 它在学习
#
# 还是第 02 课的旋臂。那时每个权重都要亲手从这一步带到下一步；现在权重归模块所有，优化器自己就能找到——前提是登记过。第二个网络里，第一层的权重是一个普通张量，就像上面的 `plain`。
#
# **先猜一猜。** 它的梯度每一步照样到达。损失会怎样？

# %%
# %exercises linear_module
draw = torch.Generator().manual_seed(0)
radius = torch.rand(3, 60, generator=draw).sqrt()
angle = 2 * math.pi / 3 * torch.arange(3)[:, None] + 4 * radius
points = 3 * torch.stack([radius * angle.cos(), radius * angle.sin()], -1).reshape(-1, 2)
points += 0.06 * torch.randn(points.shape, generator=draw)
arms = torch.arange(3).repeat_interleave(60)


class Homeless(Linear):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        weight = self.weight.detach().requires_grad_()
        del self.weight
        self.weight = weight  # no nn.Parameter: nobody registers it


plt.figure(figsize=(6, 2.8), layout="constrained")
for kind in (Linear, Homeless):
    torch.manual_seed(0)
    net = nn.Sequential(kind(2, 64), nn.Tanh(), Linear(64, 3))
    optimizer, before, losses = torch.optim.Adam(net.parameters(), lr=0.05), net[0].weight.clone(), []
    for _ in range(200):
        loss = nn.functional.cross_entropy(net(points), arms)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    gradient, moved = net[0].weight.grad.abs().max().item(), (net[0].weight - before).abs().max().item()
    plt.semilogy(losses, label=kind.__name__)
    print(f"{kind.__name__:>8}: {len(list(net.parameters()))} parameters, loss {losses[0]:.2f} -> {losses[-1]:.3f}")
    print(f"          first weight: |gradient| up to {gradient:.2g}, moved by up to {moved:.2g}")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.show()

# %% [markdown] lang="en" pair="homeless"
# It goes down, and stops higher. The first weight never moves, and the rest of the network learns what it can. Worse, `zero_grad` does not know the tensor either, so its `.grad` is the sum over all steps.

# %% [markdown] lang="zh" pair="homeless" of="85ec561b"
# 还是在下降，但停在更高的地方：第一个权重从来不动，网络的其余部分只能尽力而为。更糟的是，`zero_grad` 也不认识这个张量，所以它的 `.grad` 是所有步骤之和。

# %% [markdown] lang="en" pair="legacy"
# ## 2. A Function from 2017
#
# Before PyTorch 0.2 a Function was an object: it was made, perhaps with arguments, and then called. `self` did what `ctx` does today. Here is one of that kind. Ask nbautograd about it.
#
# **Predict.** What must change in `forward`, in `backward`, and in the line that calls it?

# %% [markdown] lang="zh" pair="legacy" of="a6e95dcb"
# ## 2. 一个 2017 年的 Function
#
# 在 PyTorch 0.2 之前，Function 是对象：先创建（也许带参数），再调用。今天 `ctx` 做的事，那时由 `self` 来做。下面就是这样一个。让 nbautograd 看看它。
#
# **先猜一猜。** `forward`、`backward`，还有调用它的那一行，各要改什么？

# %% tags=["shown"]
# %%autograd_function
class AddConstant(Function):
    def __init__(self, constant):
        super().__init__()
        self.constant = constant

    def forward(self, tensor):
        return tensor + self.constant

    def backward(self, grad_output):
        return grad_output


try:
    AddConstant(2.0)(torch.ones(3))
except RuntimeError as error:
    print(str(error).split(".")[0])

# %% [markdown] lang="en" pair="transpose" tags=["shown"]
# The migration is written under the cell. Methods are static, and `ctx` replaces `self`. What `__init__` took becomes an argument of `forward`. `backward` returns one value for **each** argument, so `None` for the constant.
#
# The old notes mention a `Transpose` too, which is told in `__init__` which two dimensions to swap. Here it is in their style, and below it as one writes it today. (The old one returned a view of its input; today's returns memory of its own, as notebook 07 asks.)

# %% [markdown] lang="zh" pair="transpose" tags=["shown"] of="94d1e858"
# 单元格下面已经写出了改写的结果：静态方法，`ctx` 代替 `self`，原来 `__init__` 接受的东西变成 `forward` 的参数；`backward` 要为**每个**参数返回一个值，所以常数对应的是 `None`。
#
# 旧笔记里还提到一个 `Transpose`，由 `__init__` 得知要交换哪两个维度。下一格先按那时的写法写出，再给出今天的写法。（旧的返回的是输入的视图；新的照 07 的要求，返回自己的内存。）

# %% tags=["shown"]
class OldTranspose(Function):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x):
        return x.transpose(self.first, self.second)

    def backward(self, grad_output):
        return grad_output.transpose(self.first, self.second)


class Transpose(Function):
    @staticmethod
    def forward(ctx, x, first, second):
        ctx.dims = first, second
        return x.transpose(first, second).clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.transpose(*ctx.dims), None, None


cube = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
try:
    OldTranspose(0, 2)(cube)
except RuntimeError as error:
    print(str(error).split(".")[0])
print("today:", torch.autograd.gradcheck(Transpose.apply, (cube, 0, 2)))

# %% [markdown] lang="en" pair="migrate-task" tags=["shown"]
# ### Exercise `migrate_linear`
#
# The linear layer of the old notes, abridged:
#
# ```python
# class LinearFunction(Function):
#     def forward(self, input, weight, bias=None):
#         self.save_for_backward(input, weight, bias)
#         output = input.mm(weight.t())
#         if bias is not None:
#             output += bias.unsqueeze(0).expand_as(output)
#         return output
#
#     def backward(self, grad_output):
#         input, weight, bias = self.saved_tensors
#         ...
#         if bias is not None and self.needs_input_grad[2]:
#             grad_bias = grad_output.sum(0).squeeze(0)
#         return grad_input, grad_weight, grad_bias
# ```
#
# Write it for today. It has one slip that only shows for a layer with a single output: you met it in notebook 02.

# %% [markdown] lang="zh" pair="migrate-task" tags=["shown"] of="6883fa70"
# ### 练习 `migrate_linear`
#
# 旧笔记里的线性层，有删节：
#
# ```python
# class LinearFunction(Function):
#     def forward(self, input, weight, bias=None):
#         self.save_for_backward(input, weight, bias)
#         output = input.mm(weight.t())
#         if bias is not None:
#             output += bias.unsqueeze(0).expand_as(output)
#         return output
#
#     def backward(self, grad_output):
#         input, weight, bias = self.saved_tensors
#         ...
#         if bias is not None and self.needs_input_grad[2]:
#             grad_bias = grad_output.sum(0).squeeze(0)
#         return grad_input, grad_weight, grad_bias
# ```
#
# 请改写成今天的样子。里面还有一处疏忽，只有输出维度为 1 时才会暴露——你在 02 里见过。

# %% exercise="migrate_linear"
# %%exercise migrate_linear
class LinearFunction(Function):
    ### BEGIN SOLUTION
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

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
    ### END SOLUTION

# %% [markdown] lang="en" pair="old-module" tags=["shown"]
# ## 3. A module that never worked
#
# The same notes have a module, too. It stands in the next cell without its comments (the function around it only keeps your own `Linear` from being replaced). It holds four slips: in 2017 it did not work either.
#
# **Predict.** Before you run it, mark the four. (The Function that it wants to call was named `Linear` as well; here it is `WeightedSum`.)

# %% [markdown] lang="zh" pair="old-module" tags=["shown"] of="34da1f3f"
# ## 3. 从来没对过的模块
#
# 那份笔记里还有一个模块，下一格里照原样写着，只去掉了注释（外面套一个函数，只是为了不覆盖你自己的 `Linear`）。里面有四处毛病：在 2017 年它也不能用。
#
# **先猜一猜。** 先别运行，把四处都标出来。（它想调用的 Function 当年也叫 `Linear`，在这里是 `WeightedSum`。）

# %% tags=["shown"]
def notes_of_2017():
    class Linear(nn.Module):
        def __init__(self, input_features, output_features, bias=True):
            self.input_features = input_features
            self.output_features = output_features
            self.weight = nn.Parameter(torch.Tensor(input_features, output_features))
            if bias:
                self.bias = nn.Parameter(torch.Tensor(output_features))
            else:
                self.register_parameter("bias", None)
            self.weight.data.uniform_(-0.1, 0.1)
            if bias is not None:
                self.bias.data.uniform_(-0.1, 0.1)

        def forward(self, input):
            return Linear()(input, self.weight, self.bias)

    return Linear


try:
    notes_of_2017()(4, 3)
except AttributeError as error:
    print(error)

# %% [markdown] lang="en" pair="repair-task"
# That was the first. It never comes as far as the other three; they are named after the exercise.
#
# ### Exercise `repair_module`
#
# Repair it, under the name `Repaired`. It is checked like `linear_module`, its sizes when printed included.

# %% [markdown] lang="zh" pair="repair-task" of="ffb40f2b"
# 这是第一处。它根本走不到另外三处；练习之后会一一说明。
#
# ### 练习 `repair_module`
#
# 请把它修好，取名 `Repaired`。检查和 `linear_module` 一样，打印时也要说出尺寸。

# %% exercise="repair_module"
# %%exercise repair_module
class Repaired(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, input_features, output_features, bias=True):
        super().__init__()
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.Tensor(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.Tensor(output_features))
        else:
            self.register_parameter("bias", None)
        self.weight.data.uniform_(-0.1, 0.1)
        if self.bias is not None:
            self.bias.data.uniform_(-0.1, 0.1)

    def forward(self, input):
        return WeightedSum.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "input_features={}, output_features={}, bias={}".format(
            self.input_features, self.output_features, self.bias is not None
        )
    ### END SOLUTION

# %% [markdown] lang="en" pair="dead"
# The four: no `super().__init__()`; a `weight` of (in × out) for an `mm(weight.t())`; `bias is not None`, which is true of `False`; and `Linear()` in `forward`, which is the module itself and not the Function.
#
# ## 4. What died, and what took its place
#
# Six lines that you will meet in old notebooks, and their lines of today:
#
# | then | today |
# |---|---|
# | `Variable(torch.randn(3), requires_grad=True)` | `torch.randn(3, requires_grad=True)` |
# | `Linear()(input, weight)` | `Linear.apply(input, weight)` |
# | `self.needs_input_grad[0]` | `ctx.needs_input_grad[0]` |
# | `loss.data[0]` | `loss.item()` |
# | `Variable(x, volatile=True)` | `with torch.no_grad():` |
# | `torch.utils.ffi` | `torch.utils.cpp_extension` |

# %% [markdown] lang="zh" pair="dead" of="d866a132"
# 四处是：没有 `super().__init__()`；`weight` 是（输入 × 输出），却用 `mm(weight.t())`；`bias is not None` 对 `False` 也成立；`forward` 里的 `Linear()` 是模块自己，不是那个 Function。
#
# ## 4. 谁不在了，谁接了班
#
# 下面六行，你会在旧笔记本里见到；右边是今天的写法：
#
# | 从前 | 今天 |
# |---|---|
# | `Variable(torch.randn(3), requires_grad=True)` | `torch.randn(3, requires_grad=True)` |
# | `Linear()(input, weight)` | `Linear.apply(input, weight)` |
# | `self.needs_input_grad[0]` | `ctx.needs_input_grad[0]` |
# | `loss.data[0]` | `loss.item()` |
# | `Variable(x, volatile=True)` | `with torch.no_grad():` |
# | `torch.utils.ffi` | `torch.utils.cpp_extension` |

# %% [markdown] lang="en" pair="end"
# **What to keep.** A Function owns nothing, a module owns what it registers. Names and defaults that hold in every version live around `apply`. Old code: static methods, `ctx` for `self`, one gradient for each argument of `forward`. And a note that has been copied for years is not thereby right: run it, and look.

# %% [markdown] lang="zh" pair="end" of="f8fcc68d"
# **记住这些。** Function 什么也不拥有，模块拥有它登记过的东西。在各个版本里都管用的参数名和默认值，写在 `apply` 外面。旧代码：改成静态方法，`self` 换成 `ctx`，`forward` 的每个参数都要有一个梯度。还有，一份被传抄多年的笔记并不因此就是对的：运行它，看一看。

# %% [raw] lang="zh"
# # no nn.Parameter: nobody registers it → # 不是 nn.Parameter：没有谁登记它
#  parameters, loss { →  个参数，损失 {
# first weight: |gradient| up to {gradient:.2g}, moved by up to {moved:.2g} → 第一个权重：|梯度| 最大 {gradient:.2g}，最多移动了 {moved:.2g}
# "today:" → "如今："

# %%
# %exercises
