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
#     course: "11"
#     title_en: Code that is not PyTorch
#     title_zh: 不是 PyTorch 的代码
#     minutes: 50
# ---

# %% [markdown] lang="en" pair="intro"
# # 11 · Code that is not PyTorch
#
# The forward that you need is written already: in NumPy, in Fortran, in a simulator that your institute bought. Autograd cannot look inside. A Function can wrap it and say what the gradient is. There are three ways to know that: derive it, approximate it, or do without.
#
# **After it you can**
#
# - leave PyTorch in `forward` and come back with the right dtype;
# - say why `once_differentiable` belongs on such a backward;
# - write a backward that asks a black box for differences, and say what it costs;
# - choose the step for a dtype, and know where the error curve has its bottom;
# - answer the question that a blog post about custom Functions left open: *can the numerical derivative be the backward?*
#
# **You need** notebooks 01 to 03. **Time**: about 50 minutes.

# %% [markdown] lang="zh" pair="intro" of="a8d81298"
# # 11 · 不是 PyTorch 的代码
#
# 你要的前向早就有人写好了：用 NumPy，用 Fortran，或者藏在研究所买来的仿真软件里。自动求导看不到里面。但可以用一个 Function 把它包起来，由你说明梯度是什么。怎样才知道梯度是什么？这一课讲三条路：推导、近似，或者不要梯度。
#
# **学完之后，你能够**
#
# - 在 `forward` 里离开 PyTorch，再带着正确的 dtype 回来；
# - 说明这样的 backward 为什么要加上 `once_differentiable`；
# - 写一个向黑箱要差分的 backward，并说出它的代价；
# - 为不同的 dtype 选步长，知道误差曲线的最低点在哪里；
# - 回答一篇讲自定义 Function 的博客留下的问题：*能不能直接拿数值导数当 backward？*
#
# **预备知识**：01 到 03。**用时**：约 50 分钟。

# %% tags=["setup"]
import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="leave"
# ## 1. Leaving, and coming back
#
# **Predict.** `np.exp` of a tensor: does it work? With `requires_grad=True`? And does the graph know about it?

# %% [markdown] lang="zh" pair="leave" of="9b41e888"
# ## 1. 离开，再回来
#
# **先猜一猜。** 把张量交给 `np.exp`，能算吗？`requires_grad=True` 的呢？计算图知道发生了什么吗？

# %%
x = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
print(np.exp(torch.zeros(2)))
try:
    np.exp(x)
except RuntimeError as error:
    print(str(error).splitlines()[0])

y = torch.from_numpy(np.exp(x.detach().numpy())).sum()
print("y needs a gradient:", y.requires_grad)
nbautograd.explain(y)

# %% [markdown] lang="en" pair="function-around"
# `np.exp` accepts a plain tensor and returns one. PyTorch refuses to hand over a tensor that requires grad, since its history would be lost. If you insist, with `detach()`, the history is lost. `explain` says so: `y` does not require grad.
#
# Inside a Function's `forward` nothing is recorded anyway, so leaving is allowed there, without `detach()`. `backward` repairs the tape: it says what the gradient is.
#
# Four things go wrong again and again:
#
# - **The way back changes the dtype.** NumPy likes float64. A float32 model then gets a float64 output, and the next layer complains, or worse, does not.
# - **`backward` leaves PyTorch too**, so a second derivative would be taken of a constant. This Function's part would be missing, silently. `@once_differentiable` makes it an error, wherever `grad_output` needs a gradient (behind a plain `.sum()` it does not: notebook 08).
# - **NumPy shares memory.** `x.numpy()` is not a copy: `array = x.numpy(); array *= 2` changes the caller's tensor.
# - **An array without dimensions turns into a number.** `np.exp` of one gives an `np.float64`, which `torch.from_numpy` refuses. `np.asarray(...)` around it gives an array again.
#
# ### Exercise `numpy_softplus`
#
# $\operatorname{softplus}(x) = \log(1 + e^x)$, computed by NumPy in `forward` **and** in `backward`. It must take float32 and float64 and give back the same, survive $x = 800$, and refuse a second derivative. (`np.logaddexp(a, b)` is $\log(e^a + e^b)$ without overflow.)

# %% [markdown] lang="zh" pair="function-around" of="d5e41640"
# 普通张量，`np.exp` 能算，得到的也还是张量。需要梯度的张量，PyTorch 不肯交出去，因为历史会丢；你若坚持用 `detach()`，历史就真的丢了。`explain` 说的就是这个：`y` 不需要梯度。
#
# 在 Function 的 `forward` 里，反正什么都不会被记录，所以可以放心离开，也用不着 `detach()`；由 `backward` 来补上这一段：它说明梯度是什么。
#
# 有四件事经常出错：
#
# - **回来时 dtype 变了。** NumPy 偏爱 float64。float32 的模型于是得到 float64 的输出，下一层会报错——更糟的是不报错。
# - **`backward` 也离开了 PyTorch**，二阶导数就成了对常数求导：这个 Function 的那一份会悄悄丢掉。加上 `@once_differentiable` 就会明确报错，前提是 `grad_output` 需要梯度（后面只接 `.sum()` 时不需要，见第 08 课）。
# - **NumPy 共享内存。** `x.numpy()` 不是副本：`array = x.numpy(); array *= 2` 改的是调用者的张量。
# - **没有维度的数组会变成一个数。** 对它用 `np.exp`，得到的是 `np.float64`，`torch.from_numpy` 不收。外面套一层 `np.asarray(...)`，就又是数组了。
#
# ### 练习 `numpy_softplus`
#
# $\operatorname{softplus}(x) = \log(1 + e^x)$，`forward` **和** `backward` 都用 NumPy 计算。float32 进就 float32 出，float64 进就 float64 出；$x = 800$ 时不能溢出；拒绝二次求导。（`np.logaddexp(a, b)` 就是不会溢出的 $\log(e^a + e^b)$。）

# %% exercise="numpy_softplus"
# %%exercise numpy_softplus
class Softplus(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        array = x.numpy()
        ctx.save_for_backward(x)
        return torch.from_numpy(np.asarray(np.logaddexp(0, array), dtype=array.dtype))
        ### END SOLUTION

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        array = x.numpy()
        slope = np.exp(-np.logaddexp(0, -array))
        return grad_output * torch.from_numpy(np.asarray(slope, dtype=array.dtype))
        ### END SOLUTION

# %% [markdown] tags=["shown"] lang="en" pair="correlate"
# ## 2. A filter
#
# `np.correlate(signal, kernel, "valid")` slides the kernel along the signal: $y_i = \sum_j s_{i+j}\, k_j$. Two inputs, so two gradients. Write them as sums over $i$ of $g_i$ times what stands beside it:
#
# $$\frac{\partial L}{\partial k_j} = \sum_i g_i\, s_{i+j} \qquad\qquad \frac{\partial L}{\partial s_n} = \sum_i g_i\, k_{n-i}$$
#
# over those $i$ for which the element exists. The first is a correlation again, the second a convolution; `np.convolve` turns the kernel round by itself.
#
# **Predict.** The signal has 7 elements, the kernel 3. How long is $g$, and which mode of `np.convolve` (`"full"`, `"same"`, `"valid"`) gives back 7?
#
# ### Exercise `numpy_correlate`
#
# Write both methods with NumPy. The checks also try a kernel of one element, a kernel as long as the signal, and a signal that is every second element of something longer.

# %% [markdown] tags=["shown"] lang="zh" pair="correlate" of="0b040bd8"
# ## 2. 滤波器
#
# `np.correlate(signal, kernel, "valid")` 让核沿信号滑动：$y_i = \sum_j s_{i+j}\, k_j$。两个输入，就有两个梯度。把它们写成对 $i$ 的求和，$g_i$ 乘以旁边的那一项：
#
# $$\frac{\partial L}{\partial k_j} = \sum_i g_i\, s_{i+j} \qquad\qquad \frac{\partial L}{\partial s_n} = \sum_i g_i\, k_{n-i}$$
#
# 求和只取元素存在的那些 $i$。前一个还是相关运算，后一个是卷积；翻转核这一步，`np.convolve` 自己会做。
#
# **先猜一猜。** 信号有 7 个元素，核有 3 个。$g$ 有多长？`np.convolve` 的哪种模式（`"full"`、`"same"`、`"valid"`）能变回 7 个？
#
# ### 练习 `numpy_correlate`
#
# 用 NumPy 写出两个方法。检查时还会试只有一个元素的核、和信号一样长的核，以及从更长的序列里隔一个取一个得到的信号。

# %% exercise="numpy_correlate"
# %%exercise numpy_correlate
class Correlate(Function):
    @staticmethod
    def forward(ctx, signal, kernel):
        ### BEGIN SOLUTION
        ctx.save_for_backward(signal, kernel)
        return torch.from_numpy(np.correlate(signal.numpy(), kernel.numpy(), "valid"))
        ### END SOLUTION

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        signal, kernel = (saved.numpy() for saved in ctx.saved_tensors)
        g = grad_output.numpy()
        grad_signal = np.convolve(g, kernel, "full")
        grad_kernel = np.correlate(signal, g, "valid")
        return torch.from_numpy(grad_signal), torch.from_numpy(grad_kernel)
        ### END SOLUTION

# %% [markdown] lang="en" pair="question"
# $g$ has 5 elements, and `"full"` gives back 7.
#
# ## 3. The open question
#
# A blog post that explains custom Functions ends with a question. *If I do not know the derivative, can `backward` take differences of `forward` instead?*
#
# It can. Move $x$ by a small step $h$ and watch the output:
#
# $$\text{forward difference: } \frac{f(x+h)-f(x)}{h} \qquad \text{central difference: } \frac{f(x+h)-f(x-h)}{2h}$$
#
# For an output of many numbers and an upstream gradient $g$, the gradient of $x_n$ is $\sum_i g_i\,$ times the difference of $y_i$, with **only $x_n$ moved**. So each element of $x$ costs calls of its own.
#
# **Predict.** `x` has 6 elements. How many calls does a backward with central differences need? And for a picture of 224 × 224 × 3?
#
# ### Exercise `numerical_backward`
#
# `box` is a function from a NumPy array to a NumPy array, and nobody knows what is in it. Write `Numerical.apply(box, x)`: forward calls it, backward takes central differences. Make at most $2n + 1$ calls for forward and backward together. The error must be below one millionth of the largest gradient; `x` is float64. The checks also try a matrix, and every second element of something longer.

# %% [markdown] lang="zh" pair="question" of="af1f528d"
# $g$ 有 5 个元素，`"full"` 能变回 7 个。
#
# ## 3. 那个没有回答的问题
#
# 有一篇博客用例子讲解自定义 Function，结尾留下一个问题：*要是我不知道导数，`backward` 能不能改用 `forward` 的差分？*
#
# 能。让 $x$ 移动一小步 $h$，看输出怎样变：
#
# $$\text{前向差分：} \frac{f(x+h)-f(x)}{h} \qquad \text{中心差分：} \frac{f(x+h)-f(x-h)}{2h}$$
#
# 输出有很多个数、上游梯度是 $g$ 时，$x_n$ 的梯度是 $\sum_i g_i\,$ 乘以**只移动 $x_n$** 时 $y_i$ 的差分。所以 $x$ 的每个元素都要单独调用。
#
# **先猜一猜。** `x` 有 6 个元素，中心差分的一次反向要调用几次？如果是 224 × 224 × 3 的图片呢？
#
# ### 练习 `numerical_backward`
#
# `box` 是一个从 NumPy 数组到 NumPy 数组的函数，谁也不知道里面是什么。写出 `Numerical.apply(box, x)`：前向调用它，反向用中心差分。前向加反向最多调用 $2n + 1$ 次，误差小于最大梯度的百万分之一；`x` 是 float64。检查还会用到一个矩阵，以及从更长的信号里隔一个取一个的输入。

# %% exercise="numerical_backward"
# %%exercise numerical_backward
class Numerical(Function):
    @staticmethod
    def forward(ctx, box, x):
        ### BEGIN SOLUTION
        ctx.box = box
        ctx.save_for_backward(x)
        return torch.from_numpy(box(x.numpy()))
        ### END SOLUTION

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        g = grad_output.numpy()
        grad, h = np.zeros(x.shape), 1e-5
        for n in range(x.numel()):
            step = np.zeros(x.shape)
            step.flat[n] = h
            slope = (ctx.box(x.numpy() + step) - ctx.box(x.numpy() - step)) / (2 * h)
            grad.flat[n] = (g * slope).sum()
        return None, torch.from_numpy(grad)
        ### END SOLUTION

# %% [markdown] lang="en" pair="curve"
# It works, and it agrees with the derivative. It *is* what a gradient check compares with. So what is the price?
#
# **The calls.** $2n$ of them, 12 for six inputs and 301,056 for the picture, where a derived backward needs about one. If a call takes 50 ms, one backward takes 0.6 seconds for the six, and four hours for the picture.
#
# **The digits.** Notebook 03 drew the curve. With a large step the difference misses the curvature; with a small one the round-off is divided by $h$. For float64 the central difference is best near $h = 10^{-5}$, with some eleven digits; the forward difference near $10^{-8}$, with eight. For float32 the forward difference keeps three to four, near $h = 3\cdot10^{-4}$. A step of $10^{-8}$ keeps none: $x + h$ is $x$.

# %% [markdown] lang="zh" pair="curve" of="f247730e"
# 行得通，而且和导数一致。梯度检查拿来对照的*就是*它。那么代价是什么？
#
# **调用次数。** 要 $2n$ 次：六个输入 12 次，图片 301,056 次；而推导出来的 backward 大约只要一次。假如调用一次要 50 毫秒，六个输入 0.6 秒就好，图片做一次反向就要四个小时。
#
# **有效数字。** 曲线在 notebook 03 里画过：步长大，看不到曲率；步长小，舍入误差要除以 $h$。用 float64，中心差分在 $h = 10^{-5}$ 附近最好，约有十一位有效数字；前向差分在 $10^{-8}$ 附近最好，约八位。用 float32，前向差分在 $h = 3\cdot10^{-4}$ 附近只剩三四位，步长取 $10^{-8}$ 就一位也不剩：$x + h$ 就是 $x$。

# %% [markdown] lang="en" pair="answer"
# ## 4. So, when?
#
# First literally as the blog asks it, with a forward difference. **Predict** how many digits of the gradient of $x^3$ at 2 are right with $\epsilon = 10^{-1}$, $10^{-4}$, $10^{-8}$ and $10^{-13}$.
#
# Then with a central one, checked: the numerical backward passes the check of first derivatives. Asked for the second ones, with `--order 2`, the report says that there are none.

# %% [markdown] lang="zh" pair="answer" of="ff46d21f"
# ## 4. 那么，什么时候可以？
#
# 先照博客的问法，用前向差分。**先猜一猜**：$\epsilon$ 取 $10^{-1}$、$10^{-4}$、$10^{-8}$、$10^{-13}$ 时，$x^3$ 在 2 处的梯度各有几位有效数字？
#
# 再用中心差分，并检查一下：数值的 backward 能通过一阶导数的检查。再用 `--order 2` 问二阶导数，报告会说明：没有。

# %%
def f(a):
    return a**3


class Approximate(Function):
    @staticmethod
    def forward(ctx, a, epsilon):
        ctx.save_for_backward(a)
        ctx.epsilon = epsilon
        return f(a)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (a,) = ctx.saved_tensors
        return grad_output * (f(a + ctx.epsilon) - f(a)) / ctx.epsilon, None


two = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
for epsilon in (1e-1, 1e-4, 1e-8, 1e-13):
    print(epsilon, torch.autograd.grad(Approximate.apply(two, epsilon), two)[0].item())

# %% tags=["shown"]
class NumericalSin(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        h = 1e-5
        return grad_output * (torch.sin(x + h) - torch.sin(x - h)) / (2 * h)


points = torch.linspace(0.5, 2, 5, dtype=torch.float64, requires_grad=True)
# %gradcheck --order 2 NumericalSin.apply(points)

# %% [markdown] lang="en" pair="rank"
# About 1, 4, 8 and 3 digits: too large a step, then too small a one.
#
# ### When are differences good enough?
#
# Six situations. **Predict**: in which of them is a backward by central differences acceptable?
#
# | | `inputs` | `seconds` | `patience` | `noise` | `digits` | `order` |
# |---|---|---|---|---|---|---|
# | check a backward in a test | 20 | 1e-4 | 10 | 2e-16 | 6 | 1 |
# | a layer with a million inputs | 10⁶ | 0.01 | 10 | 2e-16 | 6 | 1 |
# | a closed simulator with 3 parameters | 3 | 1 | 10 | 2e-16 | 6 | 1 |
# | training in float16 | 3 | 1e-3 | 10 | 1e-3 | 3 | 1 |
# | a simulator that draws new random numbers in each call | 3 | 1 | 10 | 0.05 | 2 | 1 |
# | a loss that needs second derivatives | 3 | 1 | 10 | 2e-16 | 6 | 2 |
#
# `seconds` is what one call takes, `patience` what one backward may take. `noise` is the relative error of one value. `digits` is how many digits of the gradient have to be right, `order` that of the derivatives. At the bottom of its curve a central difference has a relative error near `noise ** (2 / 3)`.

# %% [markdown] lang="zh" pair="rank" of="05cc8b3c"
# 大约 1、4、8、3 位：先是步长太大，后来步长太小。
#
# ### 差分什么时候够用？
#
# 六种情形。**先猜一猜**：哪些情形能接受用中心差分做 backward？
#
# | | `inputs` | `seconds` | `patience` | `noise` | `digits` | `order` |
# |---|---|---|---|---|---|---|
# | 在测试里检查一个 backward | 20 | 1e-4 | 10 | 2e-16 | 6 | 1 |
# | 有一百万个输入的层 | 10⁶ | 0.01 | 10 | 2e-16 | 6 | 1 |
# | 有 3 个参数的封闭模拟器 | 3 | 1 | 10 | 2e-16 | 6 | 1 |
# | 用 float16 训练 | 3 | 1e-3 | 10 | 1e-3 | 3 | 1 |
# | 每次调用都取新随机数的模拟器 | 3 | 1 | 10 | 0.05 | 2 | 1 |
# | 需要二阶导数的损失 | 3 | 1 | 10 | 2e-16 | 6 | 2 |
#
# `seconds` 是调用一次要几秒，`patience` 是一次 backward 最多等几秒；`noise` 是一个值的相对误差，`digits` 是梯度要有几位是对的；`order` 是要几阶导数。中心差分在曲线最低点的相对误差约为 `noise ** (2 / 3)`。

# %%
situations = {
    "check a backward in a test": (20, 1e-4, 10, 2e-16, 6, 1),
    "a layer with a million inputs": (10**6, 0.01, 10, 2e-16, 6, 1),
    "a closed simulator": (3, 1, 10, 2e-16, 6, 1),
    "training in float16": (3, 1e-3, 10, 1e-3, 3, 1),
    "a random simulator": (3, 1, 10, 0.05, 2, 1),
    "second derivatives": (3, 1, 10, 2e-16, 6, 2),
}
for name, (inputs, seconds, patience, noise, digits, order) in situations.items():
    in_time = 2 * inputs * seconds <= patience
    enough_digits = noise ** (2 / 3) <= 10.0**-digits
    print(f"{name:30} in time: {in_time!s:5}  enough digits: {enough_digits!s:5}  first order: {order == 1}")

# %% [markdown] lang="en" pair="library-op"
# In two of them: the test, and the closed simulator. (With a fixed seed in each call, the random simulator is a third.)
#
# ## 5. An operation with a name
#
# `torch.compile` looks *into* a Function; where it meets code that it cannot trace, it breaks the graph or refuses. An operation with a name is taken whole, and reasoned about without running it. For that there is `torch.library.custom_op`: the same foreign code, in three parts that are registered one by one.
#
# | part | says |
# |---|---|
# | the function under `@torch.library.custom_op(name, mutates_args=())` | what it computes; its annotations become the schema, and it promises to change no argument and to return new memory |
# | `op.register_fake` | shape and dtype of the result, **without computing**: the compiler calls it with tensors that hold no numbers |
# | `op.register_autograd(backward, setup_context=...)` | the gradient, with `ctx` as in a Function. `backward` must be made of operations that PyTorch knows, for the compiler looks inside |
#
# `torch.library.opcheck(op, arguments)` tests these promises. It does **not** test whether the gradient is right: that is what a gradient check is for. **Predict**: which of the two notices a `register_fake` with the wrong dtype, and which a forgotten `grad_output`?
#
# ### Exercise `library_op`
#
# Make softplus an operation for float32 and float64, with its fake and its gradient. Compute it by `np.logaddexp`, as in section 1. `x.numpy()` is all right here too, for inside there are no gradients.

# %% [markdown] lang="zh" pair="library-op" of="7c567c97"
# 两种：测试，以及封闭的模拟器。（带随机性的模拟器，若每次调用都固定种子，就是第三种。）
#
# ## 5. 有名字的运算
#
# `torch.compile` 会看到 Function *里面*去；遇到跟踪不了的代码，就打断计算图，或者拒绝。有名字的运算则被当作一个整体，不运行它也能推断它。为此有 `torch.library.custom_op`：同样的外来代码，拆成三份，逐一登记。
#
# | 部分 | 说明什么 |
# |---|---|
# | `@torch.library.custom_op(name, mutates_args=())` 下面的函数 | 它算什么；类型注解成为它的模式（schema）；它承诺不改动任何参数，并且返回新的内存 |
# | `op.register_fake` | 结果的形状和 dtype，**但不去计算**：编译器会用没有数值的张量来调用它 |
# | `op.register_autograd(backward, setup_context=...)` | 梯度，`ctx` 和 Function 里的一样。`backward` 必须由 PyTorch 认得的运算组成，因为编译器会往里看 |
#
# `torch.library.opcheck(op, arguments)` 检验这些承诺。但它**不**检验梯度对不对，那是梯度检查的事。**先猜一猜**：`register_fake` 的 dtype 写错了，由哪一个发现？忘了乘 `grad_output` 呢？
#
# ### 练习 `library_op`
#
# 把 softplus 做成一个运算：和第 1 节一样用 `np.logaddexp` 计算（这里也可以用 `x.numpy()`，因为里面没有梯度），float32 和 float64 都要能用，并登记它的 fake 和梯度。

# %% exercise="library_op"
# %%exercise library_op
@torch.library.custom_op("student::softplus", mutates_args=())
def softplus(x: torch.Tensor) -> torch.Tensor:
    ### BEGIN SOLUTION
    array = x.numpy()
    return torch.from_numpy(np.asarray(np.logaddexp(0, array), dtype=array.dtype))
    ### END SOLUTION


# now softplus.register_fake and softplus.register_autograd
### BEGIN SOLUTION
@softplus.register_fake
def shape_and_dtype(x):
    return torch.empty_like(x)


def save_input(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def softplus_backward(ctx, grad_output):
    (x,) = ctx.saved_tensors
    return grad_output * torch.sigmoid(x)


softplus.register_autograd(softplus_backward, setup_context=save_input)
### END SOLUTION

# %% [markdown] lang="en" pair="end"
# opcheck notices the dtype, a gradient check the forgotten `grad_output`: you need both. As long as you stay in eager mode, a Function is simpler.
#
# ## 6. Other ways out
#
# - **C++ and CUDA**: `torch.utils.cpp_extension`. (Old notes speak of `torch.utils.ffi`; that has been gone since PyTorch 1.0.)
# - **No gradient at all**: with few parameters, an optimizer that needs none.
#
# **What to keep.** Leave in `forward`, come back with the same dtype, and say the gradient in `backward`. Put `@once_differentiable` on it if it leaves as well. Differences are an answer for a black box with few inputs, in float64, once. For anything else: derive, and let a check take the differences.

# %% [markdown] lang="zh" pair="end" of="cf8050eb"
# dtype 由 opcheck 发现，忘了的 `grad_output` 由梯度检查发现：两样都需要。只要停留在即时执行模式，Function 更简单。
#
# ## 6. 其他出路
#
# - **C++ 与 CUDA**：`torch.utils.cpp_extension`。（旧笔记里的 `torch.utils.ffi` 从 PyTorch 1.0 起就没有了。）
# - **干脆不要梯度**：参数很少时，可以用不需要梯度的优化方法。
#
# **记住这些。** 在 `forward` 里离开，带着同样的 dtype 回来，在 `backward` 里说明梯度；如果它也离开了 PyTorch，就加上 `@once_differentiable`。差分适合这样的场合：黑箱、输入少、float64、偶尔一次。其余情形：自己推导，让检查去做差分。

# %% [raw] lang="zh"
# y needs a gradient: → y 需要梯度：
# check a backward in a test → 在测试里检查 backward
# a layer with a million inputs → 有一百万个输入的层
# a closed simulator → 看不到内部的模拟器
# training in float16 → 用 float16 训练
# a random simulator → 带随机性的模拟器
# second derivatives → 二阶导数
# in time: {in_time!s:5}  enough digits: {enough_digits!s:5}  first order: { → 来得及：{in_time!s:5}  位数够：{enough_digits!s:5}  只要一阶：{

# %%
# %exercises
