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
#     course: "06"
#     title_en: Kinks and surrogates
#     title_zh: 折点与替代梯度
#     minutes: 55
# ---

# %% [markdown] lang="en" pair="intro"
# # 06 · Kinks and surrogates
#
# Some functions have a corner, and some jump. Training goes on all the same, because somebody decided what `backward` says there. In this notebook that somebody is you.
#
# **After it you can**
#
# - say which values are a fair derivative at a kink, and which one your `backward` gives there;
# - state a convention for the ends of an interval, and keep it;
# - tell a gradient that is *wrong* from one that differs from the true derivative *on purpose*: a straight-through or a surrogate gradient;
# - read the verdict *cannot tell*, and know what it does not say;
# - find kinks from one-sided differences.
#
# **You need** notebooks 01 to 03: a Function, a vector–Jacobian product, a gradient check. **Time**: about 55 minutes.

# %% [markdown] lang="zh" pair="intro" of="fc1f3b74"
# # 06 · 折点与替代梯度
#
# 有的函数在某处拐个弯，留下一个折点；有的干脆跳变。训练却照样进行——因为有人规定了 `backward` 在那里该返回什么。这一课，做规定的人就是你。
#
# **学完之后，你能够**
#
# - 说出在折点处哪些值可以算作合理的导数，你的 `backward` 返回的是其中哪一个；
# - 为区间端点约定一种取法，并严格遵守它；
# - 分清两种情况：梯度**写错了**，还是**有意**不同于真实导数（直通估计、替代梯度）；
# - 读懂“无法判断”这个结论，知道它没有说什么；
# - 用单侧差分找出折点。
#
# **预备知识**：01 到 03（Function、向量-雅可比积、梯度检查）。**用时**：约 55 分钟。

# %% tags=["setup"]
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="abs-uv"
# ## 1. The absolute value of a product
#
# François Fleuret's course on deep learning (EE-559) has this example. A function of two tensors of the same shape gives, element by element,
#
# $$y_i = |u_i\, v_i| .$$
#
# **Predict.** Away from $u_i v_i = 0$, what is $\partial y_i / \partial u_i$? Two candidates: $|v_i|$, and $\operatorname{sign}(u_i v_i)\, v_i$. Try both with $u = -2,\ v = 1$ before you write a line.

# %% [markdown] lang="zh" pair="abs-uv" of="a2688c78"
# ## 1. 乘积的绝对值
#
# François Fleuret 的深度学习课（EE-559）里有这样一个例子：输入两个形状相同的张量，逐元素计算
#
# $$y_i = |u_i\, v_i| .$$
#
# **先猜一猜。** 当 $u_i v_i \ne 0$ 时，$\partial y_i / \partial u_i$ 等于什么？有两个候选：$|v_i|$ 和 $\operatorname{sign}(u_i v_i)\, v_i$。动手之前，先代入 $u = -2,\ v = 1$ 比一比。

# %% [markdown] lang="en" pair="abs-uv-task"
# The second: near $u = -2$, $v = 1$ the function is $-u$, so the slope is $-1$; $|v|$ is 1.
#
# ### Exercise `abs_uv`
#
# Write both methods. Two tensors come in, so two gradients go out, in the same order. The checks also look at points where $u_i$ or $v_i$ is exactly 0. A value between the two slopes passes, NaN does not.

# %% [markdown] lang="zh" pair="abs-uv-task" of="4c76f948"
# 是第二个：在 $u = -2,\ v = 1$ 附近，函数就是 $-u$，斜率是 $-1$；而 $|v|$ 是 1。
#
# ### 练习 `abs_uv`
#
# 把两个方法都写出来。输入两个张量，就要按同样的顺序返回两个梯度。检查时也会取 $u_i$ 或 $v_i$ 恰好为 0 的点：取两侧斜率之间的值都行，NaN 不行。

# %% exercise="abs_uv"
# %%exercise abs_uv
class AbsUV(Function):
    @staticmethod
    def forward(ctx, u, v):
        ### BEGIN SOLUTION
        ctx.save_for_backward(u, v)
        return (u * v).abs()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        u, v = ctx.saved_tensors
        sign = (u * v).sign()
        return grad_output * sign * v, grad_output * sign * u
        ### END SOLUTION

# %% [markdown] lang="en" pair="at-the-kink"
# ## 2. At the kink itself
#
# At $u = 0$ the graph of $|u v|$ has a corner. The slope from the right is $+|v|$, the one from the left is $-|v|$; there is no derivative. Every number between the two is a **subgradient**, and each is a fair answer. (For a corner that points up the proper word is *generalised gradient*; we use one word for both.) An optimizer needs *one*.
#
# PyTorch has made this choice many times, and not always in the same way.
#
# **Predict.** What do these four give as the gradient at exactly 0: `relu`, `abs`, `clamp(0, 1)`, and `maximum` of the input and 0? There will be one row for each; the column *your backward* shows PyTorch's own gradient here.

# %% [markdown] lang="zh" pair="at-the-kink" of="fe1f2fdc"
# ## 2. 折点上
#
# 在 $u = 0$ 处，$|u v|$ 的图像有一个折角：右侧斜率是 $+|v|$，左侧斜率是 $-|v|$，导数不存在。两者之间的每个数都叫**次梯度**，取哪个都说得通（朝上的折角，严格说应叫“广义梯度”，这里统称次梯度）；但优化器只要**一个**。
#
# PyTorch 做过许多次这样的选择，而且并不总是同一种取法。
#
# **先猜一猜。** 在恰好为 0 的点上，`relu`、`abs`、`clamp(0, 1)`，以及“输入与 0 取 `maximum`”，梯度各是多少？运行之后，每个函数占一行；“你的 backward”在这里就是 PyTorch 自己的结果。

# %%
def four(x):
    return torch.cat((x.relu(), x.abs(), x.clamp(0, 1), torch.maximum(x, torch.zeros_like(x))))


origin = torch.zeros(1, dtype=torch.float64, requires_grad=True)
# %jacobian four(origin)

# %% [markdown] lang="en" pair="four"
# Four corners, three answers: 0 for `relu`, 0 for `abs`, 1 for `clamp`, ½ for `maximum`. None is wrong.
#
# Now the column *finite differences*. A central difference straddles the corner and gives the **mean** of both slopes: ½ for `relu`, 0 for `abs`. So a naive comparison calls `relu` wrong at 0, and `abs` right only because its corner is symmetric. `torch.autograd.gradcheck` does just that. `%gradcheck` looks at both sides first.
#
# **Predict** the verdict for `relu` at 0.

# %% [markdown] lang="zh" pair="four" of="5f5bd5bf"
# 四个折点，三种答案：`relu` 给 0，`abs` 给 0，`clamp` 给 1，`maximum` 给 ½。没有一个是错的。
#
# 再看“有限差分”那一栏。中心差分横跨折点，得到的是两侧斜率的**平均值**：`relu` 是 ½，`abs` 是 0。所以天真地一比较，就会说 `relu` 在 0 处错了，而 `abs` 对了，只不过因为它的折角恰好对称。`torch.autograd.gradcheck` 正是这样比的；`%gradcheck` 会先分别看两侧。
#
# **先猜一猜** `relu` 在 0 处的结论。

# %%
# %gradcheck torch.relu(origin)

# %% [markdown] tags=["shown"] lang="en" pair="subgradient"
# *Subgradient (at a kink)*: the gradient lies between the slopes of the two sides. That is all that a general check can ask there.
#
# One thing cannot be excused by a kink: a value outside the two slopes, or a NaN. `u * v / (u * v).abs()` is a perfectly good sign function, until $u = 0$.

# %% [markdown] tags=["shown"] lang="zh" pair="subgradient" of="406998bd"
# “次梯度（在折点上）”的意思是：返回的梯度落在两侧斜率之间。在折点上，通用的检查不能要求更多。
#
# 但有两件事不能拿折点当借口：值落在两侧斜率之外，或者出现 NaN。用 `u * v / (u * v).abs()` 求符号本来完全可以，直到 $u = 0$ 为止。

# %% [markdown] lang="en" pair="clamp"
# ## 3. A convention, and how to keep it
#
# If any subgradient will do, why care? Because training depends on it. What is exactly 0 in front of `relu` never moves; in front of `clamp(0, 1)` it does. Take a clamp that leaks. Inside the interval it is the identity, outside it goes on with a small slope $s$.
#
# $$y = \begin{cases} hi + s\,(x - hi) & x > hi \\ x & lo \le x \le hi \\ lo + s\,(x - lo) & x < lo \end{cases}$$
#
# **The convention**: the ends belong to the inside. At $x = lo$ and at $x = hi$ the gradient is passed on with factor 1.
#
# ### Exercise `leaky_clamp`
#
# `lo`, `hi` and `slope` are Python numbers. **Predict** first: how many values does `backward` return?

# %% [markdown] lang="zh" pair="clamp" of="798c4106"
# ## 3. 约定，以及守住约定
#
# 既然任何次梯度都行，何必在意取哪个？因为训练会因此不同：恰好为 0 的数，后面接 `relu` 就永远不动，后面接 `clamp(0, 1)` 就会动。来看一个“会泄漏”的截断函数：区间内恒等，区间外以很小的斜率 $s$ 继续延伸。
#
# $$y = \begin{cases} hi + s\,(x - hi) & x > hi \\ x & lo \le x \le hi \\ lo + s\,(x - lo) & x < lo \end{cases}$$
#
# **约定**：端点算作区间内部。在 $x = lo$ 和 $x = hi$ 处，梯度都以系数 1 通过。
#
# ### 练习 `leaky_clamp`
#
# `lo`、`hi`、`slope` 都是 Python 数。**先猜一猜**：`backward` 要返回几个值？

# %% exercise="leaky_clamp"
# %%exercise leaky_clamp
class LeakyClamp(Function):
    @staticmethod
    def forward(ctx, x, lo, hi, slope):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi, ctx.slope = lo, hi, slope
        inside = x.clamp(lo, hi)
        return inside + slope * (x - inside)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        ### BEGIN SOLUTION
        inside = (x >= ctx.lo) & (x <= ctx.hi)
        grad_x = torch.where(inside, grad_output, ctx.slope * grad_output)
        return grad_x, None, None, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="staircase"
# Four: a gradient for `x`, and `None` three times.
#
# ## 4. A staircase has no slope
#
# Rounding is flat between its jumps, so its true derivative is 0 almost everywhere. Here is a Function that says so.
#
# **Predict** two things: the verdict, and what gradient descent will do with such a layer in front of the loss.

# %% [markdown] lang="zh" pair="staircase" of="1080694c"
# 四个：`x` 的梯度，再加三个 `None`。
#
# ## 4. 台阶没有斜率
#
# 取整函数在两次跳变之间是平的，所以它真正的导数几乎处处为 0。下面这个 Function 就如实返回 0。
#
# **先猜一猜**两件事：检查的结论是什么；如果损失之前有这样一层，梯度下降会怎样？

# %%
steps = torch.tensor([0.3, -1.2, 1.8], dtype=torch.float64, requires_grad=True)

# %%
# %%autograd_function --inputs steps
class HonestRound(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return torch.zeros_like(grad_output)

# %% [markdown] lang="en" pair="ste"
# Right, and useless: nothing in front of it will ever move. So people lie on purpose. In the forward pass they round. In the backward pass they pretend that it was the identity, and pass `grad_output` straight through. This is the **straight-through estimator**, which Bengio, Léonard and Courville (2013) took from a lecture of Hinton's. Quantised networks are trained with it.
#
# **Predict**: with `return grad_output` in the cell above, is the verdict *right*, *wrong* or *cannot tell*? Edit it and try.

# %% [markdown] lang="zh" pair="ste" of="686deeed"
# 结论是“正确”，却毫无用处：它前面的参数永远不会动。于是人们有意“说谎”：前向时照常取整，反向时假装它是恒等函数，把上游梯度 `grad_output` 原样传下去。这就是**直通估计**，见 Bengio、Léonard 与 Courville（2013），主意来自 Hinton 的一次讲课；量化网络正是这样训练的。
#
# **先猜一猜**：把上面那格的返回值改成 `return grad_output`，结论会是“正确”“错误”还是“无法判断”？改了试试。

# %% [markdown] lang="en" pair="ste-verdict"
# *Cannot tell*: the forward is flat wherever finite differences look, and a slope comes back. That it does not say *wrong*, as torch's gradcheck does, is a decision: this may be on purpose. A gradient check compares `backward` with the derivative of `forward`. A straight-through gradient is *not* that derivative, so no check of this kind can vouch for it. You can only check it against what you **declared**.
#
# ### Exercise `round_ste`
#
# Round to steps of `1 / levels`: with `levels = 4` that is to the nearest quarter. Hand the gradient straight through.

# %% [markdown] lang="zh" pair="ste-verdict" of="61bd0d8a"
# “无法判断”：凡是有限差分看得到的地方，前向都是平的，返回的却是一个斜率。torch 的 gradcheck 会判错；这里不判错，是有意的选择，因为你可能本来就想这样。梯度检查比较的是 `backward` 与 `forward` 的导数；而直通估计的梯度**本来就不是**这个导数，所以这类检查无法为它作保，只能拿它和你**声明过的**梯度相比。
#
# ### 练习 `round_ste`
#
# 以 `1 / levels` 为步长取整，例如 `levels = 4` 就是取到最近的四分之一。反向时让梯度直接通过。

# %% exercise="round_ste"
# %%exercise round_ste
class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x, levels):
        ### BEGIN SOLUTION
        return (x * levels).round() / levels
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        return grad_output, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="spike"
# ## 5. A neuron that fires or does not
#
# A spiking neuron, here at one instant, gives 1 when its potential $v$ is above 0, and 0 otherwise. Straight-through would pretend that the slope is 1 everywhere, even for a neuron that is nowhere near its threshold. A **surrogate gradient** pretends that the step is a smooth function which is steep at the threshold. A popular one (Zenke and Ganguli, 2018) uses the slope of the *fast sigmoid* $v / (1 + k|v|)$:
#
# $$\frac{\partial y}{\partial v} := \frac{1}{(1 + k\,|v|)^2}$$
#
# The `:=` matters: this is a definition, not a derivation. And the surrogate lives in `backward` alone. What goes forward stays 0 or 1.
#
# **Predict**: which neurons learn fastest, those at $v = 0$, at $v = 3$, or at $v = -3$?
#
# ### Exercise `spike`
#
# `k` is a Python number; return 1 or 0 in the dtype of `v`. Besides the gradient, the check trains a net of two neurons with your Function. Its loss must fall below 0.05. The net is in the next cell. Run that first.

# %% [markdown] lang="zh" pair="spike" of="e210b4de"
# ## 5. 要么发放、要么沉默的神经元
#
# 脉冲神经元（这里只看一个瞬间）的膜电位 $v$ 大于 0 时输出 1，否则输出 0。直通估计会假装斜率处处为 1，哪怕神经元离阈值还很远。**替代梯度**则假装这个阶跃是一条光滑曲线，在阈值附近最陡。常用的一种（Zenke 与 Ganguli，2018）取“快速 sigmoid” $v / (1 + k|v|)$ 的斜率：
#
# $$\frac{\partial y}{\partial v} := \frac{1}{(1 + k\,|v|)^2}$$
#
# 注意这里的 `:=`：它是定义，不是推导出来的。替代函数只出现在 `backward` 里，前向传出去的仍然只有 0 和 1。
#
# **先猜一猜**：$v = 0$、$v = 3$、$v = -3$ 的神经元，哪个学得最快？
#
# ### 练习 `spike`
#
# `k` 是 Python 数；返回的 1 和 0 要与 `v` 的 dtype 相同。除了梯度，检查还会用你的 Function 训练一个只有两个神经元的网络，损失必须降到 0.05 以下。网络写在下一格，请先运行它。

# %%
def train(spike, k=5.0, rounds=200):
    """Two spiking neurons learn OR and AND of two bits; the losses on the way."""
    bits = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    wanted = torch.stack((bits.amax(1), bits.amin(1)), dim=1)
    weight = torch.full((2, 2), 0.2, requires_grad=True)
    bias = torch.tensor([-0.9, 0.1], requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias], lr=0.2)
    losses = []
    for _ in range(rounds):
        fired = spike(bits @ weight + bias, k)
        if fired is None:  # the exercise is not answered yet
            break
        loss = ((fired - wanted) ** 2).mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses

# %% exercise="spike"
# %%exercise spike
class Spike(Function):
    @staticmethod
    def forward(ctx, v, k):
        ### BEGIN SOLUTION
        ctx.save_for_backward(v)
        ctx.k = k
        return (v > 0).to(v.dtype)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (v,) = ctx.saved_tensors
        return grad_output / (1 + ctx.k * v.abs()) ** 2, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="spike-after"
# Those at $v = 0$, with slope 1. At 3 and at $-3$, with $k = 5$, it is 1/256.
#
# Look at the loss on its way, next to that of the same net with the derivative that a step really has. Then look at the graph of two outputs of one neuron. Your Function is the node between them and the weights. What travels back through that node is your surrogate.
#
# **Predict** the shape of both curves: smooth like that of an ordinary net, a staircase, or neither?

# %% [markdown] lang="zh" pair="spike-after" of="342d48c0"
# $v = 0$ 的最快，斜率是 1；在 3 和 -3 处，取 $k = 5$，斜率都是 1/256。
#
# 看看损失的变化过程，旁边是同一个网络用阶跃真正的导数训练的结果；再看一个神经元的两个输出背后的计算图：输出与权重之间的那个节点就是你的 Function，往回流过它的就是你的替代梯度。
#
# **先猜一猜**两条曲线的形状：像普通网络那样平滑，像台阶，还是都不像？

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(6, 2.6), layout="constrained")
for name, spike in (("your surrogate", Spike.apply), ("the true derivative", lambda v, k: (v > 0) + 0 * v)):
    losses = train(spike)
    plt.plot(losses, label=name)
    print(f"{name}: loss", " -> ".join(f"{loss:.2f}" for loss in losses[:1] + losses[-1:]))
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.show()

# %%
w = torch.tensor([0.2, 0.2], requires_grad=True)
bits = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
fired = Spike.apply(bits @ w - 0.3, 5.0)
# %autograd_graph fired

# %% [markdown] lang="en" pair="find"
# A staircase: the loss changes only when a neuron begins to fire, or ceases to. With the true derivative, which is 0, the curve is flat: nothing is learnt.
#
# ## 6. Find the kinks yourself
#
# How did the checker know that `relu` has a kink at 0? It looked to both sides. With a small step $h$,
#
# $$\text{right} = \frac{f(x+h) - f(x)}{h}, \qquad \text{left} = \frac{f(x) - f(x-h)}{h} .$$
#
# Where $f$ is smooth the two differ by about $h\,f''(x)$, which is tiny. At a kink they differ by the size of the corner.
#
# **Predict**: for $f(x) = e^{5x}$ at $x = 1$ and $h = 10^{-6}$, about how far apart are the two slopes? Is a threshold of `tol = 0.05` safe?
#
# ### Exercise `find_kinks`
#
# `f` works element by element. Return a bool tensor of the shape of `x`: `True` where the two slopes differ by more than `tol`.

# %% [markdown] lang="zh" pair="find" of="ae9b2b46"
# 像台阶：只有某个神经元从沉默转为发放，或者反过来，损失才会变。用真正的导数，也就是 0，得到的是一条平直的线，什么也没学到。
#
# ## 6. 自己动手找折点
#
# 检查器怎么知道 `relu` 在 0 处有折点？它往两边各看了一眼。取一个小步长 $h$，
#
# $$\text{右} = \frac{f(x+h) - f(x)}{h}, \qquad \text{左} = \frac{f(x) - f(x-h)}{h} .$$
#
# 在光滑处，两者大约只差 $h\,f''(x)$，非常小；在折点处，两者之差就是折角的大小。
#
# **先猜一猜**：$f(x) = e^{5x}$，$x = 1$，$h = 10^{-6}$，两个斜率大约差多少？阈值 `tol = 0.05` 够不够稳妥？
#
# ### 练习 `find_kinks`
#
# `f` 是逐元素的函数。返回一个与 `x` 形状相同的布尔张量：两侧斜率之差超过 `tol` 的地方为 `True`。

# %% exercise="find_kinks"
# %%exercise find_kinks
def find_kinks(f, x, h=1e-6, tol=0.05):
    ### BEGIN SOLUTION
    right = (f(x + h) - f(x)) / h
    left = (f(x) - f(x - h)) / h
    return (right - left).abs() > tol
    ### END SOLUTION

# %% [markdown] lang="en" pair="end"
# About $h f'' = 10^{-6} \cdot 25\,e^{5} \approx 0.004$, so 0.05 is safe.
#
# ## What you take along
#
# - At a kink, every value between the one-sided slopes is a valid choice. NaN, or a value outside, is not.
# - If you promise one of them, test it exactly there: random points never hit a kink.
# - *Wrong* means that `backward` contradicts `forward`. *Cannot tell (flat)* means that it may be a surrogate: check it against its definition.
# - A surrogate belongs in `backward`. If it shows in `forward`, you have another network.

# %% [markdown] lang="zh" pair="end" of="639046d0"
# 大约差 $h f'' = 10^{-6} \cdot 25\,e^{5} \approx 0.004$，所以 0.05 够稳妥。
#
# ## 带走这几点
#
# - 在折点处，两侧斜率之间的任何值都合理；NaN 或区间之外的值不行。
# - 如果你承诺了其中一个，就要恰好在折点处测试：随机点永远碰不到折点。
# - “错误”是说 `backward` 与 `forward` 相矛盾；“无法判断（平坦）”是说它可能是替代梯度，要对照定义来检查。
# - 替代函数只属于 `backward`。如果它跑进了 `forward`，那就成了另一个网络。

# %% [raw] lang="zh"
# Two spiking neurons learn OR and AND of two bits; the losses on the way. → 两个脉冲神经元学习两个比特的“或”与“与”；返回途中的损失。
# # the exercise is not answered yet → # 练习还没有作答
# {name}: loss" → {name}：损失"

# %%
# %exercises
