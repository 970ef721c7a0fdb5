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
#     course: "09"
#     title_en: Forward mode, vmap and torch.func
#     title_zh: 前向模式、vmap 与 torch.func
#     minutes: 60
# ---

# %% [markdown] lang="en" pair="intro"
# # 09 · Forward mode, vmap and torch.func
#
# `torch.func` turns functions into functions. `grad(f)` is the gradient of `f`, `vmap(f)` is `f` for a whole batch, `jvp` pushes a direction through `f`. They can be stacked: `vmap(grad(f))`. Your own Function takes part if it has `setup_context`, a vmap rule, and a `jvp` for forward mode.
#
# **After it you can**
#
# - push a tangent forward with `jvp`, and say when that is cheaper than going backward;
# - move an old `forward(ctx, …)` to `setup_context`, so that `torch.func` accepts it;
# - give a Function a vmap rule, generated or written by hand;
# - compute per-sample gradients without a loop;
# - build a Hessian from a forward and a backward mode.
#
# **You need** notebooks 01 to 04, and 08 for the last part. **Time**: about 60 minutes.

# %% [markdown] lang="zh" pair="intro" of="0c3ac072"
# # 09 · 前向模式、vmap 与 torch.func
#
# `torch.func` 把函数变成函数：`grad(f)` 是 `f` 的梯度，`vmap(f)` 是对整个批次做 `f`，`jvp` 则把一个方向推过 `f`。它们还能叠起来用，比如 `vmap(grad(f))`。你自己写的 Function 只要具备三样东西，也能加入进来：`setup_context`、vmap 规则，以及需要前向模式时的 `jvp`。
#
# **学完之后，你能够**
#
# - 用 `jvp` 把切向量往前推，并说出什么时候这比反向更划算；
# - 把老式的 `forward(ctx, …)` 改成 `setup_context` 写法，让 `torch.func` 接受它；
# - 给 Function 配上 vmap 规则：自动生成，或者手写；
# - 不写循环，算出每个样本各自的梯度；
# - 用一次前向模式加一次反向模式拼出黑塞矩阵。
#
# **预备知识**：01 到 04；最后一节要用到 08。**用时**：约 60 分钟。

# %% tags=["setup"]
import numpy as np
import torch
from torch.autograd import Function
from torch.func import grad, jacfwd, jacrev, jvp, vmap

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="forward"
# ## 1. Forward instead of backward
#
# `backward` gets a gradient at the output and multiplies by the Jacobian from the left. $g^\top J$ is one combination of **rows** at a time. **Forward mode** starts with a direction $t$ at the input and multiplies from the right. $J\,t$ is one combination of **columns** at a time, while the values are computed.
#
# **Predict**: a function from 1 number to 1000 numbers: which mode gets its whole Jacobian in one go? And a loss of 1000 parameters?
#
# A Function takes part with one more static method, `jvp(ctx, t)`. It gets one tangent per input and returns one per output. What it needs must be saved *for forward*: `ctx.save_for_forward(...)`, beside `save_for_backward`.
#
# Below, `jvp` has a slip. **Predict**: is `backward` wrong?

# %% [markdown] lang="zh" pair="forward" of="52aba109"
# ## 1. 往前推，而不是往回传
#
# `backward` 从输出端的梯度出发，从左边乘雅可比矩阵：$g^\top J$，一次得到**行**的一个组合。**前向模式**从输入端的方向 $t$ 出发，从右边乘：$J\,t$，一次得到**列**的一个组合，而且是边算函数值边得到。
#
# **先猜一猜**：一个从 1 个数到 1000 个数的函数，用哪种模式一次就能得到整个雅可比矩阵？如果是 1000 个参数的损失函数呢？
#
# Function 想参与前向模式，要再写一个静态方法 `jvp(ctx, t)`：每个输入对应一个传进来的切向量，每个输出对应一个返回的切向量。它要用的张量得专门**为前向模式**保存：`ctx.save_for_forward(...)`，与 `save_for_backward` 并列。
#
# 下面的 `jvp` 有一处笔误。**先猜一猜**：`backward` 会不会也跟着错？

# %%
x = torch.tensor([0.3, -1.2, 1.8], dtype=torch.float64, requires_grad=True)

# %%
# %%autograd_function --inputs x
class SlippedSquare(Function):
    generate_vmap_rule = True  # for section 2

    @staticmethod
    def forward(x):
        return x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * x

# %% [markdown] lang="en" pair="forward-task"
# Forward mode for the 1000 outputs, backward for the loss. And the verdict blames `jvp` alone: `backward` agrees with finite differences in every entry, and `jvp` contradicts both. Two methods are two statements about one derivative, and training in reverse mode would never notice that they differ.
#
# ### Exercise `forward_cube`
#
# The cube of notebook 08, with forward mode; it must still be differentiable twice. **Predict**, for a function of two inputs and three outputs: how many values does `backward` return, and how many `jvp`?

# %% [markdown] lang="zh" pair="forward-task" of="9ed6f430"
# 1000 个输出的用前向模式，损失函数用反向模式。至于后一问：结论只怪 `jvp`，`backward` 与有限差分处处一致，是 `jvp` 和两者都对不上。两个方法是对同一个导数的两份说法；如果只用反向模式训练，永远发现不了它们互相矛盾。
#
# ### 练习 `forward_cube`
#
# 08 里的三次方函数，这次加上前向模式，而且仍要能求二阶导数。**先猜一猜**：一个有两个输入、三个输出的函数，`backward` 返回几个值，`jvp` 返回几个？

# %% exercise="forward_cube"
# %%exercise forward_cube
class ForwardCube(Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ### BEGIN SOLUTION
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2
        ### END SOLUTION

    @staticmethod
    def jvp(ctx, t):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        return t * 3 * x**2
        ### END SOLUTION

# %%
# %exercises forward_cube
jvp(ForwardCube.apply, (x.detach(),), (torch.ones_like(x),))

# %% [markdown] lang="en" pair="port"
# Two from `backward`, one for each input; three from `jvp`, one for each output. `torch.func.jvp`, just called, gives the value and the tangent together.
#
# ## 2. The old way to write `forward`
#
# This is how many tutorials still write it, with `ctx` as the first argument of `forward`. It works with `loss.backward()`. **Predict** what `torch.func.grad` says.

# %% [markdown] lang="zh" pair="port" of="4f037d4a"
# `backward` 返回两个，每个输入一个；`jvp` 返回三个，每个输出一个。刚才调用的 `torch.func.jvp` 把函数值和切向量一起给出。
#
# ## 2. 老式的 `forward`
#
# 很多教程仍然这样写：`ctx` 是 `forward` 的第一个参数。用 `loss.backward()` 没有问题。**先猜一猜** `torch.func.grad` 会怎么说。

# %% tags=["shown"]
class CombinedLinear(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias
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


rows = torch.randn(4, 3, dtype=torch.float64)
weight = torch.randn(2, 3, dtype=torch.float64)
bias = torch.randn(2, dtype=torch.float64)

# %% tags=["raises-exception"]
grad(lambda weight: CombinedLinear.apply(rows, weight, bias).sum())(weight)

# %% [markdown] lang="en" pair="port-why"
# It refuses. The transforms need `forward` as a function of tensors alone, without `ctx`. So split it:
#
# 1. `forward(input, weight, bias)` computes and nothing else;
# 2. `setup_context(ctx, inputs, output)` saves and computes nothing. `inputs` holds *all* arguments of `forward`, those that were left out with their defaults.
#
# For `vmap` one line more: `generate_vmap_rule = True` in the class. PyTorch then runs all your methods under vmap. So they must be made of torch operations. They must not write a batched tensor in place into an unbatched one. **Predict**: which line above would break if only `bias` is batched?
#
# ### Exercise `linear_ported`
#
# Port it. Both ways of leaving `bias` out must work: not given, and given as `None`.

# %% [markdown] lang="zh" pair="port-why" of="51365878"
# 它拒绝了。这些变换需要把 `forward` 看成只与张量有关的函数，而把 `ctx` 放在一边。所以要拆成两半：
#
# 1. `forward(input, weight, bias)` 只负责计算；
# 2. `setup_context(ctx, inputs, output)` 只负责保存，不做计算。`inputs` 里是 `forward` 的**全部**参数，没有给出的用默认值补齐。
#
# 想用 `vmap`，还要在类里加一行：`generate_vmap_rule = True`。PyTorch 会在 vmap 下运行你的各个方法，所以它们必须由 torch 运算组成，而且不能把带批次的张量原地写进不带批次的张量。**先猜一猜**：如果只有 `bias` 带批次，上面哪一行会出错？
#
# ### 练习 `linear_ported`
#
# 把它移植过来。`bias` 不给，或者给 `None`，两种情况都要能用。

# %% exercise="linear_ported"
# %%exercise linear_ported
class LinearPorted(Function):
    generate_vmap_rule = True

    ### BEGIN SOLUTION
    @staticmethod
    def forward(input, weight, bias=None):
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight)
        ctx.has_bias = bias is not None

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias
    ### END SOLUTION

# %% [markdown] lang="en" pair="vmap"
# `output += bias`, for it writes the batched `bias` into an `output` that is not.
#
# ## 3. A vmap rule by hand
#
# `generate_vmap_rule` cannot help when `forward` leaves torch: numpy knows nothing of vmap's batched tensors. Then you write the rule:
#
# ```python
# @staticmethod
# def vmap(info, in_dims, *inputs):
#     ...
#     return output, out_dim
# ```
#
# `in_dims` has one entry per input: the dimension that is the batch, or `None` for an input that all share. `info.batch_size` is the size of the batch. The return value says where the batch is in the output. Usually the rule moves each batch dimension to the front, and calls the Function again, on the whole batch.
#
# **Predict** `in_dims` and the shapes that the rule sees for `vmap(f, in_dims=(None, 1))` with a matrix of shape (2, 3) and vectors of shape (3, 5).

# %% [markdown] lang="zh" pair="vmap" of="2b864bd6"
# 出错的是 `output += bias`：带批次的 `bias` 写进了不带批次的 `output`。
#
# ## 3. 手写 vmap 规则
#
# 如果 `forward` 离开了 torch，`generate_vmap_rule` 就帮不上忙了：numpy 不认得 vmap 的批次张量。这时要自己写规则：
#
# ```python
# @staticmethod
# def vmap(info, in_dims, *inputs):
#     ...
#     return output, out_dim
# ```
#
# `in_dims` 对每个输入有一项：哪一维是批次，或者 `None`，表示这个输入由所有样本共用。`info.batch_size` 是批次大小。返回值里还要说明输出的哪一维是批次。通常的做法是：把各输入的批次维挪到最前面，再对整个批次调用一次这个 Function。
#
# **先猜一猜**：对形状 (2, 3) 的矩阵和形状 (3, 5) 的一组向量做 `vmap(f, in_dims=(None, 1))`，规则里看到的 `in_dims` 和各个形状是什么？

# %%
seen = []


class Peek(Function):
    @staticmethod
    def forward(A, x):
        return A @ x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return None, None

    @staticmethod
    def vmap(info, in_dims, A, x):
        seen.append({"in_dims": in_dims, "A": tuple(A.shape), "x": tuple(x.shape), "batch": info.batch_size})
        return A @ x, 1


vmap(Peek.apply, in_dims=(None, 1))(torch.randn(2, 3), torch.randn(3, 5)).shape, seen

# %% [markdown] lang="en" pair="vmap-task"
# The rule sees both tensors whole, (2, 3) and (3, 5), and `in_dims` as you gave it.
#
# ### Exercise `mat_vec`
#
# A matrix times a vector, computed by numpy. `forward` and `backward` are done, and work with batch dimensions in front. Write `vmap`. Either input, or both, may be batched, along any dimension.

# %% [markdown] lang="zh" pair="vmap-task" of="d1f58b0f"
# 规则看到的是两个完整的张量，(2, 3) 和 (3, 5)；`in_dims` 就是你给的那个。
#
# ### 练习 `mat_vec`
#
# 矩阵乘向量，由 numpy 计算。`forward` 和 `backward` 已经写好，并且支持在前面加批次维。请写出 `vmap`：两个输入可能有一个带批次，也可能都带，批次可以在任何一维。

# %% exercise="mat_vec"
# %%exercise mat_vec
class MatVec(Function):
    @staticmethod
    def forward(A, x):
        y = A.detach().numpy() @ x.detach().numpy()[..., None]
        return torch.from_numpy(y[..., 0].copy())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        A, x = ctx.saved_tensors
        column = grad_output.unsqueeze(-1)
        return column * x.unsqueeze(-2), (A.mT @ column).squeeze(-1)

    @staticmethod
    def vmap(info, in_dims, A, x):
        ### BEGIN SOLUTION
        A_dim, x_dim = in_dims
        A = A.expand(info.batch_size, *A.shape) if A_dim is None else A.movedim(A_dim, 0)
        x = x.expand(info.batch_size, *x.shape) if x_dim is None else x.movedim(x_dim, 0)
        return MatVec.apply(A, x), 0
        ### END SOLUTION

# %% [markdown] lang="en" pair="per-sample"
# ## 4. A gradient for each sample
#
# `loss.backward()` gives one gradient for the whole batch. Differential privacy, influence functions and the search for mislabelled samples want one gradient **per sample**. The loop over samples is slow. `vmap` of `grad` says the same in one line. Write the loss *of one sample*, take its gradient, map it over the batch.
#
# **Predict** for the model `prediction = weight @ x + bias`, `weight` of shape (3,), and 5 samples: the shapes of the per-sample gradients of `weight` and `bias`.
#
# ### Exercise `per_sample`
#
# Squared error, $(w^\top x_i + b - y_i)^2$. Return both gradients, of `weight` and of `bias`, one per sample. All samples share the parameters.

# %% [markdown] lang="zh" pair="per-sample" of="e1230b1c"
# ## 4. 每个样本各自的梯度
#
# `loss.backward()` 只给一个梯度，整个批次合在一起。差分隐私、影响函数、寻找标错的样本，都需要**每个样本各自的**梯度。逐个样本循环太慢，`vmap` 加 `grad` 一行就能说清：写出**一个样本**的损失，求它的梯度，再映射到整个批次。
#
# **先猜一猜**：模型是 `prediction = weight @ x + bias`，`weight` 形状为 (3,)，共 5 个样本。`weight` 和 `bias` 的逐样本梯度各是什么形状？
#
# ### 练习 `per_sample`
#
# 用平方误差 $(w^\top x_i + b - y_i)^2$。返回 `weight` 和 `bias` 两者的逐样本梯度。参数由所有样本共用。

# %% exercise="per_sample"
# %%exercise per_sample
def per_sample(weight, bias, inputs, targets):
    ### BEGIN SOLUTION
    def loss(weight, bias, x, y):
        return (weight @ x + bias - y) ** 2

    return vmap(grad(loss, argnums=(0, 1)), in_dims=(None, None, 0, 0))(weight, bias, inputs, targets)
    ### END SOLUTION

# %% [markdown] lang="en" pair="mislabelled"
# Shapes (5, 3) and (5,): the batch comes first.
#
# Sixty samples; in three of them somebody turned the sign of the target round. A plane is fitted to all sixty. Each sample's gradient then says how hard it pulls at the plane.
#
# **Predict**: what would `loss.backward()`, the sum of the sixty, have told you?

# %% [markdown] lang="zh" pair="mislabelled" of="52808c76"
# 形状是 (5, 3) 和 (5,)：批次在最前面。
#
# 六十个样本，其中三个的目标值被人弄反了正负号。先用全部六十个拟合一个平面，再看每个样本的梯度：它有多大，说明这个样本把平面拉得有多用力。
#
# **先猜一猜**：如果用 `loss.backward()`，也就是六十个梯度之和，你会看到什么？

# %%
# %exercises per_sample
import matplotlib.pyplot as plt

draw = torch.Generator().manual_seed(0)
samples = torch.randn(60, 3, generator=draw)
targets = samples @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 + 0.2 * torch.randn(60, generator=draw)
targets[[11, 37, 52]] *= -1
plane = torch.linalg.lstsq(torch.cat([samples, torch.ones(60, 1)], 1), targets[:, None]).solution[:, 0]

of_weight, of_bias = per_sample(plane[:3], plane[3], samples, targets)
gradients = torch.cat([of_weight, of_bias[:, None]], 1)
sizes = gradients.norm(dim=1)
plt.figure(figsize=(7, 2.4), layout="constrained")
plt.bar(range(60), sizes, color=["tab:red" if k in (11, 37, 52) else "silver" for k in range(60)])
plt.xlabel("sample")
plt.ylabel("size of its gradient")
plt.show()
print(f"size of the sum {gradients.sum(0).norm():.3f}, the three largest: {sorted(sizes.topk(3).indices.tolist())}")

# %% [markdown] lang="en" pair="hessian"
# Nothing: where the plane fits best, the gradients cancel. One by one they name the three. (For a plane the residuals alone would name them, too; for a network you need the gradients.)
#
# ## 5. A Hessian, forward over reverse
#
# The Hessian is the Jacobian of the gradient. The gradient has as many inputs as outputs, so either mode will do for the outer one. Usual is: reverse inside, forward outside, `jacfwd(jacrev(f))`. A Function in `f` then needs all of it: a `backward` that can be differentiated, a `jvp`, and a vmap rule.
#
# **Predict** the Hessian of $f(x) = \sum_i x_i^3$: which entries are not zero? The Jacobian view of its gradient shows it.

# %% [markdown] lang="zh" pair="hessian" of="9e265136"
# 什么也看不到：在拟合得最好的地方，它们互相抵消了。逐个来看，三个标错的样本就现形了。（对平面来说，只看残差也能找出它们；换成网络，就要看梯度了。）
#
# ## 5. 黑塞矩阵：前向套反向
#
# 黑塞矩阵就是梯度的雅可比矩阵。梯度的输入和输出一样多，所以外层用哪种模式都行。通常的搭配是里层反向、外层前向：`jacfwd(jacrev(f))`。`f` 里如果有你的 Function，那么前面学的全都用得上：可以再求导的 `backward`、`jvp`，还有 vmap 规则。
#
# **先猜一猜** $f(x) = \sum_i x_i^3$ 的黑塞矩阵：哪些元素不为零？看看它的梯度的雅可比矩阵就知道了。

# %%
gradient = grad(lambda x: (x**3).sum())
# %jacobian gradient(x)

# %% [markdown] lang="en" pair="hessian-task"
# The diagonal alone, $6x_i$.
#
# ### Exercise `hessian_of`
#
# `f` takes a vector and gives one number. Return its Hessian at `x`, a matrix. The check uses functions with a Function like your `ForwardCube` inside.

# %% [markdown] lang="zh" pair="hessian-task" of="4d607af2"
# 只有对角线，$6x_i$。
#
# ### 练习 `hessian_of`
#
# `f` 接受一个向量，返回一个数。请返回它在 `x` 处的黑塞矩阵。检查所用的函数里含有像你的 `ForwardCube` 那样的 Function。

# %% exercise="hessian_of"
# %%exercise hessian_of
def hessian_of(f, x):
    ### BEGIN SOLUTION
    return jacfwd(jacrev(f))(x)
    ### END SOLUTION

# %% [markdown] lang="en" pair="end"
# ## What you take along
#
# - Backward: $g^\top J$, good for few outputs. Forward: $J\,t$, good for few inputs.
# - `torch.func` needs `forward` without `ctx`, and `setup_context`.
# - `jvp` uses what `save_for_forward` kept. It is a second statement about the same derivative: check both.
# - vmap: generated where everything is torch, by hand where it is not. Say where the batch is, in and out.

# %% [markdown] lang="zh" pair="end" of="6de868e3"
# ## 带走这几点
#
# - 反向：$g^\top J$，适合输出少的情形；前向：$J\,t$，适合输入少的情形。
# - `torch.func` 要求 `forward` 不带 `ctx`，另写 `setup_context`。
# - `jvp` 用的是 `save_for_forward` 保存的张量。它是对同一个导数的第二份说法，两份都要检查。
# - vmap 规则：全是 torch 运算时自动生成，否则手写。要说清批次在哪一维，进来和出去都要说。

# %% [raw] lang="zh"
# # for section 2 → # 第 2 节要用
# size of the sum {gradients.sum(0).norm():.3f}, the three largest: { → 和的大小 {gradients.sum(0).norm():.3f}，最大的三个：{

# %%
# %exercises
