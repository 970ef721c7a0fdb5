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
#     course: "13"
#     title_en: Implicit differentiation
#     title_zh: 隐函数求导
#     minutes: 70
# ---

# %% [markdown] lang="en" pair="intro"
# # 13 · Implicit differentiation
#
# Some results are not computed by a formula but *found*: by iterating until nothing moves, by solving an equation, by minimising. Autograd would follow every step of the search and keep all of it. You need not. If a result satisfies an equation, its derivative follows from the equation alone, whichever way you found it.
#
# **After it you can**
#
# - write a backward of one solve for a forward of a thousand steps;
# - derive it from $F(y, a) = 0$, for one number, for a fixed point and for a minimum;
# - keep as many bytes after 1000 iterations as after one;
# - let gradient descent choose a hyperparameter.
#
# **You need** notebooks 01 to 04 and matrices. **Time**: about 70 minutes.

# %% [markdown] lang="zh" pair="intro" of="fcd90191"
# # 13 · 隐函数求导
#
# 有些结果不是照公式算出来的，而是*找*出来的：迭代到不再变化，解一个方程，或者求一个最小值。自动求导会跟着搜索的每一步走，并且统统留存。其实不必：结果既然满足一个方程，它的导数就由这个方程决定，与你怎样找到它无关。
#
# **学完之后，你能够**
#
# - 前向迭代一千步，而 backward 只解一次方程；
# - 从 $F(y, a) = 0$ 出发推导它：对一个数、对不动点、对最小值；
# - 迭代 1000 次所保存的字节数，和迭代一次一样多；
# - 让梯度下降来挑选超参数。
#
# **预备知识**：01 到 04，以及矩阵。**用时**：约 70 分钟。

# %% tags=["setup"]
import matplotlib.pyplot as plt
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="unrolled"
# ## 1. Following every step
#
# Newton's method for $\sqrt a$ starts somewhere and repeats $y \leftarrow \frac12 (y + a/y)$. Autograd can differentiate that loop as it is; this is called **unrolling**. `kept` counts the bytes that a computation leaves for backward.
#
# **Predict.** How do the bytes grow with the number of iterations? And after which iteration is the *gradient* right: with the value, earlier, or later?

# %% [markdown] lang="zh" pair="unrolled" of="de7a0fb1"
# ## 1. 每一步都跟着走
#
# 用牛顿法求 $\sqrt a$：从某处出发，反复做 $y \leftarrow \frac12 (y + a/y)$。自动求导可以原样对这个循环求导，这叫做**展开**（unrolling）。`kept` 统计一次计算为反向传播留下了多少字节。
#
# **先猜一猜。** 字节数怎样随迭代次数增长？*梯度*在第几次迭代之后才对：和数值同时、更早，还是更晚？

# %% tags=["shown"]
def newton_sqrt(a, steps):
    y = torch.ones_like(a)
    for _ in range(steps):
        y = (y + a / y) / 2
    return y


def kept(run):
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor  # kept alive, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    del result
    return sum(tensor.untyped_storage().nbytes() for tensor in storages.values())


a = torch.full((100,), 9.0, dtype=torch.float64, requires_grad=True)
for steps in (1, 2, 3, 4, 5, 6, 16):
    y = newton_sqrt(a, steps)
    (slope,) = torch.autograd.grad(y.sum(), a)
    of_value, of_gradient = abs(y[0].item() / 3 - 1), abs(slope[0].item() * 6 - 1)
    size = kept(lambda steps=steps: newton_sqrt(a, steps))
    print(f"{steps:>2} steps: {size:>6} bytes, relative error {of_value:.0e} of the value, {of_gradient:.0e} of the gradient")

# %% [markdown] lang="en" pair="newton-task"
# The bytes grow with every step. The gradient is right later than the value. Its error is larger by a factor that about doubles with each step, until both are gone.
#
# ## 2. The equation knows
#
# The result satisfies $F(y, a) = y^2 - a = 0$. Move $a$ a little, and $y$ moves so that this stays true:
#
# $$\frac{\partial F}{\partial y}\,dy + \frac{\partial F}{\partial a}\,da = 0 \quad\Rightarrow\quad \frac{dy}{da} = -\left(\frac{\partial F}{\partial y}\right)^{-1} \frac{\partial F}{\partial a}$$
#
# That is the **implicit function theorem**. It needs an invertible $\partial F/\partial y$, and nothing in it says how $y$ was found.
#
# ### Exercise `newton_root`
#
# Write `Root`: `forward` by Newton's method, `backward` from the equation. Use only the four operations of arithmetic on tensors: no `sqrt`, no power, nothing outside of torch. The inputs lie between $10^{-8}$ and $10^8$. The checks allow as many bytes as one result has, and differentiate twice.

# %% [markdown] lang="zh" pair="newton-task" of="3e3ac0e9"
# 每多一步，字节数就多一份。梯度比数值晚一些才对：它的误差比数值的大，每多一步，倍数大约翻一番，直到两者都消失。
#
# ## 2. 方程什么都知道
#
# 结果满足 $F(y, a) = y^2 - a = 0$。让 $a$ 动一点点，$y$ 也跟着动，使等式继续成立：
#
# $$\frac{\partial F}{\partial y}\,dy + \frac{\partial F}{\partial a}\,da = 0 \quad\Rightarrow\quad \frac{dy}{da} = -\left(\frac{\partial F}{\partial y}\right)^{-1} \frac{\partial F}{\partial a}$$
#
# 这就是**隐函数定理**。它要求 $\partial F/\partial y$ 可逆；至于 $y$ 是怎样找到的，里面只字未提。
#
# ### 练习 `newton_root`
#
# 写出 `Root`：`forward` 用牛顿法，只对张量做四则运算（不用 `sqrt`，不用乘方，也不离开 torch），`backward` 由方程得出。输入在 $10^{-8}$ 到 $10^8$ 之间。检查只允许保存一份结果那么多的字节，还会求两次导。

# %% exercise="newton_root"
# %%exercise newton_root
class Root(Function):
    @staticmethod
    def forward(ctx, a):
        ### BEGIN SOLUTION
        y = torch.ones_like(a)
        for _ in range(40):
            y = (y + a / y) / 2
        ctx.save_for_backward(y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (y,) = ctx.saved_tensors
        return grad_output / (2 * y)
        ### END SOLUTION

# %% [markdown] tags=["shown"] lang="en" pair="fixed-task"
# ## 3. A fixed point
#
# A layer may be defined by where it comes to rest: $y = \tanh(W y + x)$, iterated until $y$ no longer changes. (Such layers are called deep equilibrium models.) Here $F(y) = y - \tanh(Wy + x)$, and with $D = \operatorname{diag}(1 - y^2)$, the derivative of tanh,
#
# $$(I - D W)\,dy = D\,dx + D\,dW\,y .$$
#
# `backward` wants the other direction: from $g$ to the gradients. Solve **one transposed system**, and the rest are products:
#
# $$(I - D W)^{\mathsf T} u = g \qquad \frac{\partial L}{\partial x} = D u \qquad \frac{\partial L}{\partial W} = (D u)\,y^{\mathsf T}$$
#
# **Predict.** What would it mean to leave the solve out, and take $u = g$?
#
# ### Exercise `fixed_point`
#
# Write `FixedPoint.apply(W, x)` for a square `W` and a vector `x`. In the checks `W` is so small that iterating from zero converges within 100 steps. `torch.linalg.solve(A, b)` solves $A u = b$. Keep no step but the last. First derivatives are enough.

# %% [markdown] tags=["shown"] lang="zh" pair="fixed-task" of="849aebac"
# ## 3. 不动点
#
# 一层网络也可以由它“停在哪里”来定义：$y = \tanh(W y + x)$，一直迭代到 $y$ 不再变化。（这样的层叫做深度均衡模型。）这里 $F(y) = y - \tanh(Wy + x)$；记 tanh 的导数为 $D = \operatorname{diag}(1 - y^2)$，就有
#
# $$(I - D W)\,dy = D\,dx + D\,dW\,y .$$
#
# `backward` 要的是反方向：从 $g$ 得到各个梯度。只需解**一个转置的方程组**，其余都是乘法：
#
# $$(I - D W)^{\mathsf T} u = g \qquad \frac{\partial L}{\partial x} = D u \qquad \frac{\partial L}{\partial W} = (D u)\,y^{\mathsf T}$$
#
# **先猜一猜。** 如果不解方程，直接取 $u = g$，意味着什么？
#
# ### 练习 `fixed_point`
#
# 对方阵 `W` 和向量 `x` 写出 `FixedPoint.apply(W, x)`。检查所用的 `W` 足够小，从零开始迭代 100 步以内必定收敛。`torch.linalg.solve(A, b)` 解 $A u = b$。除了最后一步，别的都不要保存。只要求一阶导数。

# %% exercise="fixed_point"
# %%exercise fixed_point
class FixedPoint(Function):
    @staticmethod
    def forward(ctx, W, x):
        ### BEGIN SOLUTION
        y = torch.zeros_like(x)
        for _ in range(100):
            y = torch.tanh(W @ y + x)
        ctx.save_for_backward(W, y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        W, y = ctx.saved_tensors
        slope = 1 - y * y
        A = torch.eye(len(y), dtype=y.dtype) - slope[:, None] * W
        u = torch.linalg.solve(A.T, grad_output)
        return torch.outer(slope * u, y), slope * u
        ### END SOLUTION

# %% [markdown] lang="en" pair="bytes"
# It would be the gradient of the last step alone, as if $y$ on the right-hand side had been a constant. (For a large $n$ nobody builds the matrix: iterate $u \leftarrow g + (DW)^{\mathsf T} u$, one vector-Jacobian product a step.)
#
# Now the picture: bytes and error by the number of iterations. The error is measured against 1000 unrolled steps.

# %% [markdown] lang="zh" pair="bytes" of="d0777e09"
# 那就成了只对最后一步求导，好像右边的 $y$ 是常数一样。（$n$ 很大时，没有人会造出这个矩阵：改为迭代 $u \leftarrow g + (DW)^{\mathsf T} u$，每一步只要一个向量-雅可比积。）
#
# 现在来看图：保存的字节数和误差随迭代次数怎样变化。误差是相对展开 1000 步的结果量的。

# %% tags=["shown"]
# %exercises fixed_point
torch.manual_seed(0)
W = torch.randn(20, 20, dtype=torch.float64)
W = (W / torch.linalg.matrix_norm(W, 2) * 0.9).requires_grad_()
x = torch.randn(20, dtype=torch.float64, requires_grad=True)


def unrolled(steps):
    y = torch.zeros_like(x)
    for _ in range(steps):
        y = torch.tanh(W @ y + x)
    return y


counts = [1, 2, 5, 10, 20, 50, 100, 200]
exact, implicit = (torch.autograd.grad(y.sum(), x)[0] for y in (unrolled(1000), FixedPoint.apply(W, x)))
errors = [(torch.autograd.grad(unrolled(n).sum(), x)[0] - exact).abs().max().item() for n in counts]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(counts, [kept(lambda n=n: unrolled(n)) for n in counts], "o-", label="unrolled")
left.axhline(kept(lambda: FixedPoint.apply(W, x)), color="C1", label="implicit")
left.set(xlabel="iterations", ylabel="bytes kept for backward", ylim=(0, None))
left.legend()
right.semilogy(counts, errors, "o-")
right.set(xlabel="iterations", ylabel="error of the unrolled gradient")
plt.show()
print("unrolled, 200 iterations:", kept(lambda: unrolled(200)), "bytes")
print("implicit:", kept(lambda: FixedPoint.apply(W, x)), "bytes")
print(f"error of the implicit gradient: {(implicit - exact).abs().max().item():.0e}")

# %% [markdown] lang="en" pair="ridge-task"
# The bytes of the unrolled loop grow with every step, those of the implicit one do not. The error falls with every step until it reaches the round-off.
#
# ## 4. A minimum
#
# Ridge regression finds the $w$ that minimises $\lVert Xw - t\rVert^2 + \lambda \lVert w \rVert^2$. At the minimum the gradient vanishes, which is again an equation:
#
# $$A\,w = X^{\mathsf T} t \qquad A = X^{\mathsf T} X + \lambda I$$
#
# Move $X$, $t$ and $\lambda$ a little, with $r = t - Xw$ for what is left over:
#
# $$A\,dw = dX^{\mathsf T} r + X^{\mathsf T} dt - X^{\mathsf T} dX\, w - d\lambda\, w$$
#
# One solve $A u = g$ ($A$ is its own transpose), then read off what stands beside each of $dX$, $dt$, $d\lambda$ in $u^{\mathsf T} A\,dw$.
#
# **Predict.** How often does $dX$ stand there, and so how many terms has the gradient of $X$?
#
# ### Exercise `ridge`
#
# Write `Ridge.apply(X, t, strength)`; `strength` is $\lambda$, a tensor without dimensions. First derivatives are enough.

# %% [markdown] lang="zh" pair="ridge-task" of="70862402"
# 展开的字节数每步都在涨，隐式的不变。误差逐步下降，直到只剩舍入误差。
#
# ## 4. 最小值
#
# 岭回归要找使 $\lVert Xw - t\rVert^2 + \lambda \lVert w \rVert^2$ 最小的 $w$。在最小值处梯度为零，这又是一个方程：
#
# $$A\,w = X^{\mathsf T} t \qquad A = X^{\mathsf T} X + \lambda I$$
#
# 让 $X$、$t$、$\lambda$ 各动一点点，记残差 $r = t - Xw$：
#
# $$A\,dw = dX^{\mathsf T} r + X^{\mathsf T} dt - X^{\mathsf T} dX\, w - d\lambda\, w$$
#
# 解一次 $A u = g$（$A$ 的转置就是它自己），再从 $u^{\mathsf T} A\,dw$ 里读出 $dX$、$dt$、$d\lambda$ 各自旁边的那一项。
#
# **先猜一猜。** 上式里 $dX$ 出现了几次？$X$ 的梯度因此有几项？
#
# ### 练习 `ridge`
#
# 写出 `Ridge.apply(X, t, strength)`；`strength` 就是 $\lambda$，一个没有维度的张量。只要求一阶导数。

# %% exercise="ridge"
# %%exercise ridge
class Ridge(Function):
    @staticmethod
    def forward(ctx, X, t, strength):
        ### BEGIN SOLUTION
        A = X.T @ X + strength * torch.eye(X.shape[1], dtype=X.dtype)
        w = torch.linalg.solve(A, X.T @ t)
        ctx.save_for_backward(X, t, A, w)
        return w
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        X, t, A, w = ctx.saved_tensors
        u = torch.linalg.solve(A, grad_output)
        rest = t - X @ w
        grad_X = torch.outer(rest, u) - torch.outer(X @ u, w)
        return grad_X, X @ u, -(u @ w)
        ### END SOLUTION

# %% [markdown] lang="en" pair="tune"
# Twice: through $r$ and beside $w$. Two terms.
#
# ## 5. Learn the hyperparameter
#
# How strong should $\lambda$ be? Usually one tries values on a grid. But your `Ridge` has a gradient with respect to it. Fit on one half of the data, measure the loss on the other half, and walk down. ($\lambda = e^{s}$ keeps it positive.)
#
# **Predict** the sign of the gradient at a very small $\lambda$, for data with much noise.

# %% [markdown] lang="zh" pair="tune" of="100c1c36"
# 两次：一次与 $r$ 相乘，一次与 $w$ 相乘。所以有两项。
#
# ## 5. 让超参数自己学
#
# $\lambda$ 该取多大？通常是在网格上一个个试。可你的 `Ridge` 对它有梯度：用一半数据拟合，在另一半上量损失，然后往下走。（令 $\lambda = e^{s}$，它就总是正的。）
#
# **先猜一猜**：数据噪声很大、$\lambda$ 很小时，梯度是什么符号？

# %%
# %exercises ridge
torch.manual_seed(3)
X = torch.randn(40, 15, dtype=torch.float64)
t = X @ torch.randn(15, dtype=torch.float64) * 0.5 + 1.5 * torch.randn(40, dtype=torch.float64)


def held_out(s):
    w = Ridge.apply(X[:20], t[:20], s.exp())
    return (X[20:] @ w - t[20:]).square().mean()


s, walk = torch.tensor(-4.0, dtype=torch.float64, requires_grad=True), []
for _ in range(60):
    loss = held_out(s)
    (slope,) = torch.autograd.grad(loss, s)
    walk.append((s.exp().item(), loss.item()))
    s = (s - 1.0 * slope.clamp(-1, 1)).detach().requires_grad_()

grid = torch.linspace(-5, 7, 200, dtype=torch.float64)
valley = [held_out(point).item() for point in grid]
plt.figure(figsize=(6, 3), layout="constrained")
plt.semilogx(grid.exp(), valley, label="loss on held-out data")
plt.plot(*zip(*walk, strict=True), "o-", markersize=4, label="gradient descent")
plt.xlabel("strength")
plt.legend()
plt.show()
print(f"strength {walk[0][0]:.3f} -> {walk[-1][0]:.2f}, best on the grid {grid.exp()[torch.tensor(valley).argmin()]:.2f}")

# %% [markdown] lang="en" pair="end"
# Negative: with more $\lambda$ the held-out loss falls, and the walk goes right, down to the valley. (That half is used up now: an honest test needs data that chose nothing.)
#
# **What to keep**
#
# - A result that satisfies $F(y, a) = 0$ has $dy/da = -F_y^{-1} F_a$. How it was found does not matter, as long as it was found. Far from the solution the formula is wrong.
# - `backward` solves one *transposed* linear system, then multiplies.
# - What is kept does not depend on the number of iterations.
# - At a minimum the equation is that the gradient vanishes. Its derivative is the Hessian, which is why a singular one stops you.

# %% [markdown] lang="zh" pair="end" of="02550a5f"
# 负的：$\lambda$ 大一些，留出数据上的损失就小一些，于是往右走，一直走到谷底。（那一半数据就此用掉了：要公正地评测，得用没有参与过挑选的数据。）
#
# **记住这些**
#
# - 满足 $F(y, a) = 0$ 的结果，导数是 $dy/da = -F_y^{-1} F_a$。怎样找到的无所谓，但必须真的找到：离解还远时，这个公式是错的。
# - `backward` 解一个*转置的*线性方程组，其余是乘法。
# - 保存多少，与迭代次数无关。
# - 在最小值处，方程就是“梯度为零”；方程的导数是黑塞矩阵，所以它奇异时就走不下去了。

# %% [raw] lang="zh"
# # kept alive, so that no address is used twice → # 留住它，免得同一地址用两次
#  steps: {size:>6} bytes, relative error {of_value:.0e} of the value, {of_gradient:.0e} of the gradient →  步：{size:>6} 字节，相对误差：值 {of_value:.0e}，梯度 {of_gradient:.0e}
# unrolled, 200 iterations: → 展开，200 次迭代：
# implicit: → 隐式：
# error of the implicit gradient: → 隐式梯度的误差：
# , "bytes") → , "字节")
# strength {walk[0][0]:.3f} -> {walk[-1][0]:.2f}, best on the grid { → 强度 {walk[0][0]:.3f} -> {walk[-1][0]:.2f}，网格上最好的是 {

# %%
# %exercises
