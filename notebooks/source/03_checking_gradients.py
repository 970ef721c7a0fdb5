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
#     course: "03"
#     title_en: Checking gradients, and what checks miss
#     title_zh: 检查梯度，以及检查看不到的东西
#     minutes: 70
# ---

# %% [markdown] lang="en" pair="intro"
# # 03 · Checking gradients, and what checks miss
#
# A wrong backward often trains: more slowly, to another place, or so well that nobody looks. It says nothing. So everyone who writes one checks it, most often with finite differences. In this notebook you build such a check, tune it, and then cheat it.
#
# **After it you can**
#
# - compare a backward with central differences, entry by entry;
# - explain the two errors of a difference, and choose the step for float64 and float32;
# - run `torch.autograd.gradcheck` and `%gradcheck`, and read what they say;
# - choose inputs that do not hide a mistake;
# - name three faults that a gradient check cannot see, and one that it sees only at other points.
#
# **You need** notebooks 01 and 02. **Time**: about 70 minutes.

# %% [markdown] lang="zh" pair="intro" of="b61f2aec"
# # 03 · 检查梯度，以及检查看不到的东西
#
# backward 写错了，训练往往照样能跑：也许慢一些，也许走偏了，也许好得没人去看；它一声不吭。所以写 backward 的人都要检查它，最常用的办法是有限差分。这一课里，你要自己造一个这样的检查，把它调好，然后再骗过它。
#
# **学完之后，你能够**
#
# - 用中心差分逐个元素地核对 backward；
# - 说清差分的两种误差，并为 float64 和 float32 选好步长；
# - 使用 `torch.autograd.gradcheck` 和 `%gradcheck`，读懂它们的结论；
# - 选出不会掩盖错误的输入；
# - 说出梯度检查看不到的三种毛病，以及换个点才看得到的一种。
#
# **预备知识**：01 和 02。**用时**：约 70 分钟。

# %% tags=["setup"]
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd
import matplotlib.pyplot as plt

# %% [markdown] lang="en" pair="difference"
# ## 1. Two witnesses
#
# There are two ways to learn how output $i$ changes with input $j$. One is to ask `backward`. The other needs no derivative at all: move input $j$ a little to both sides and look at the output.
#
# $$\Bigl|\; \frac{f_i(\dots, x_j + \varepsilon, \dots) - f_i(\dots, x_j - \varepsilon, \dots)}{2\,\varepsilon} \;-\; (J_f)_{ij} \;\Bigr| \;\le\; \alpha \qquad \text{for all } i, j$$
#
# That is the whole of a gradient check. It costs two forwards per *input element*. So it is a test for small inputs, and hardly ever a way to train (notebook 11).
#
# Here is the linear layer twice: right, and without one transpose.

# %% [markdown] lang="zh" pair="difference" of="6a98a2a0"
# ## 1. 两个证人
#
# 想知道第 $i$ 个输出随第 $j$ 个输入怎样变化，有两个办法。一个是问 `backward`；另一个完全不需要导数：把第 $j$ 个输入向两边各挪一点，看输出怎么变。
#
# $$\Bigl|\; \frac{f_i(\dots, x_j + \varepsilon, \dots) - f_i(\dots, x_j - \varepsilon, \dots)}{2\,\varepsilon} \;-\; (J_f)_{ij} \;\Bigr| \;\le\; \alpha \qquad \text{对所有 } i, j$$
#
# 梯度检查说到底就是这个式子：减号后面的 $J_f$ 由 backward 给出，前面的差商叫**数值梯度**。它为*每个输入元素*做两次 forward，所以只适合在小输入上做测试，几乎不能用来训练（第 11 课）。
#
# 下面是两份线性层：一份正确，一份少了一个转置。

# %%
class Linear(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output.mm(weight.t()), input.t().mm(grad_output)


class NoTranspose(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output.mm(weight.t()), input.mm(grad_output)


m = torch.arange(4, dtype=torch.float64).reshape(2, 2).requires_grad_()
w = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()

# %% [markdown] lang="en" pair="torch-gradcheck"
# PyTorch's own check returns `True`, or raises an error that holds two whole Jacobians; with `raise_exception=False` it returns `False`.
#
# **Predict** the two answers below. Then run the cell after it, and compare how much each of the two tools tells you.

# %% [markdown] lang="zh" pair="torch-gradcheck" of="b3414a16"
# PyTorch 自带的检查要么返回 `True`，要么抛出异常，异常里是两个完整的雅可比矩阵；加上 `raise_exception=False`，就改为返回 `False`。
#
# **先猜一猜**下面的两个答案。再运行后面那一格，比一比两个工具各告诉了你多少。

# %%
[
    torch.autograd.gradcheck(function.apply, (m, w), eps=1e-6, atol=1e-4, raise_exception=False)
    for function in (Linear, NoTranspose)
]

# %%
# %gradcheck NoTranspose.apply(m, w)

# %% [markdown] lang="en" pair="large"
# Small inputs are chosen on purpose. Here is the right layer again, with inputs nearer to real ones. **Predict** how long PyTorch's check will take, and run it.

# %% [markdown] lang="zh" pair="large" of="29db5c19"
# 输入取得这么小，是有意的。下面还是那个正确的层，输入更接近真实的大小。**先猜一猜** PyTorch 的检查要花多久，再运行。

# %%
data = torch.randn(20, 20, dtype=torch.float64, requires_grad=True)
weights = torch.randn(20, 30, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Linear.apply, (data, weights), eps=1e-6, atol=1e-4)

# %% [markdown] lang="en" pair="own-task"
# About a second. Two thousand calls of forward for one small layer. 600 outputs and 1000 inputs make 600,000 entries; doubling every size makes 16 times as many. `fast_mode=True` asks for one random combination instead of every entry. It is quick, but it can miss a single wrong entry.
#
# ### Exercise `my_gradcheck`
#
# Write your own. `fn` takes the tensors in `inputs` (float64, they require grad) and returns one tensor. Return `True` or `False`, and leave `inputs` as they are. Compute the differences yourself, without a ready-made check. It will be tried on ten right backwards and ten wrong ones. It may misjudge one of each, unless that shows a whole kind of mistake that it can never see.
#
# **Predict**, before you write: will you send a `grad_output` of ones?

# %% [markdown] lang="zh" pair="own-task" of="d467f8ec"
# 一秒上下。这么小的一层，forward 就调用了两千次：600 个输出、1000 个输入，一共 60 万个元素；各个尺寸都加倍，就是 16 倍。`fast_mode=True` 不逐个元素查，只查一个随机组合，快得多；代价是单独一个元素的错误可能漏掉。
#
# ### 练习 `my_gradcheck`
#
# 自己写一个。`fn` 接收 `inputs` 里的张量（float64，需要梯度），返回一个张量。你的函数返回 `True` 或 `False`，并且不改动 `inputs`。差分要自己来做，不能交给现成的检查。评判时会拿十个正确的和十个错误的 backward 来试，每组可以判错一个，除非这一个说明有一整类错误永远查不出来。
#
# 动手之前**先猜一猜**：你会送进全为 1 的 `grad_output` 吗？

# %% exercise="my_gradcheck"
# %%exercise my_gradcheck
def my_gradcheck(fn, inputs, eps=1e-6, tol=1e-4):
    ### BEGIN SOLUTION
    output = fn(*inputs)
    g = torch.randn_like(output)
    analytical = torch.autograd.grad(output, inputs, g)
    for k, x in enumerate(inputs):
        for i in range(x.numel()):
            values = []
            for step in (eps, -eps):
                moved = [t.detach().clone() for t in inputs]
                moved[k].view(-1)[i] += step
                values.append((fn(*moved) * g).sum())
            numerical = (values[0] - values[1]) / (2 * eps)
            error = (numerical - analytical[k].reshape(-1)[i]).abs()
            if error > tol * (1 + numerical.abs()):
                return False
    return True
    ### END SOLUTION

# %% [markdown] lang="en" pair="steps"
# Not ones: a backward that is right for ones alone would pass. Random numbers, of both signs.
#
# ## 2. How large a step?
#
# A smaller step should be more exact. Until it is not: the two values of $f$ become so alike that their difference is mostly rounding.
#
# | | error from the curve of $f$ | error from rounding |
# |---|---|---|
# | forward difference, $(f(x+\varepsilon) - f(x))/\varepsilon$ | about $\varepsilon$ | about $u/\varepsilon$ |
# | central difference | about $\varepsilon^2$ | about $u/\varepsilon$ |
#
# Here $u$ is the precision: 2·10⁻¹⁶ for float64, 1·10⁻⁷ for float32. The sum of both errors is a valley.
#
# **Predict** where its floor lies: at which $\varepsilon$ are the two errors in a row of the table equal? (You get a square root and a cube root.) Then let the cell draw it for $f = \sin$.

# %% [markdown] lang="zh" pair="steps" of="8ab364bc"
# 不要全为 1：那样，只在上游梯度全为 1 时才对的 backward 也会过关。要取有正有负的随机数。
#
# ## 2. 步长取多大？
#
# 步长越小，似乎就越准。可小到一定程度，$f$ 的两个值几乎一样，差里剩下的大半是舍入误差。
#
# | | $f$ 的弯曲带来的误差 | 舍入带来的误差 |
# |---|---|---|
# | 前向差分 $(f(x+\varepsilon) - f(x))/\varepsilon$ | 约 $\varepsilon$ | 约 $u/\varepsilon$ |
# | 中心差分 | 约 $\varepsilon^2$ | 约 $u/\varepsilon$ |
#
# 其中 $u$ 是精度：float64 为 2·10⁻¹⁶，float32 为 1·10⁻⁷。两种误差之和，画出来是一条山谷。
#
# **先猜一猜**谷底在哪里：表中每一行的两种误差，在哪个 $\varepsilon$ 处相等？（一个是平方根，一个是立方根。）然后让单元格以 $f = \sin$ 为例画出来。

# %%
epsilons = 10.0 ** torch.arange(-15, 0, 0.25)
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for dtype, color in ((torch.float64, "tab:blue"), (torch.float32, "tab:orange")):
    x = torch.linspace(0.5, 2, 100, dtype=dtype)
    forward = [((x + e).sin() - x.sin()).div(e).sub(x.cos()).abs().max().item() for e in epsilons.tolist()]
    central = [((x + e).sin() - (x - e).sin()).div(2 * e).sub(x.cos()).abs().max().item() for e in epsilons.tolist()]
    name = str(dtype).removeprefix("torch.")
    axes.loglog(epsilons, forward, "--", color=color, label=f"{name}, forward")
    axes.loglog(epsilons, central, "-", color=color, label=f"{name}, central")
axes.set(xlabel="ε", ylabel="largest error")
axes.legend()
axes.grid(alpha=0.3)
plt.show()

# %% [markdown] lang="en" pair="steps-task"
# The picture: four valleys. From the left the blue ones fall as $1/\varepsilon$, ragged, since rounding is a matter of luck. The orange ones begin flat. Up to about 10⁻⁸ the sum $x + \varepsilon$ *is* $x$ in float32. The difference is 0, and the error is the whole derivative. To the right the dashed ones (forward) rise as $\varepsilon$, the solid ones (central) as $\varepsilon^2$. The floor of a central difference is lower and further right. In float32 everything happens at much larger steps; even its floor is only near 10⁻⁵.
#
# Hence the advice to check in **float64**. `torch.autograd.gradcheck` with its usual step of 10⁻⁶ fails for nearly every float32 Function, right or wrong. `%gradcheck` tries a ladder of steps, and says *cannot tell* where even the best one is not exact enough.
#
# ### Exercise `best_step`
#
# Read off the step at the floor of each valley, within a factor of ten.

# %% [markdown] lang="zh" pair="steps-task" of="2ba01722"
# 图上是四条山谷。左侧，蓝线按 $1/\varepsilon$ 下降，参差不齐，因为舍入误差带着运气。橙线起初是平的：步长不到约 10⁻⁸ 时，float32 里的 $x + \varepsilon$ *就是* $x$，差为 0，误差等于整个导数。右侧，虚线（前向差分）按 $\varepsilon$ 上升，实线（中心差分）按 $\varepsilon^2$ 上升。中心差分的谷底更低，也更靠右；float32 的一切都发生在大得多的步长上，连谷底也在 10⁻⁵ 上下。
#
# 所以才有那条忠告：检查要用 **float64**。`torch.autograd.gradcheck` 默认步长是 10⁻⁶，对 float32 的 Function，不管对错，几乎一律判为失败。`%gradcheck` 会试一整列步长，如果连最好的那个都不够准，它就说“无法判断”。
#
# ### 练习 `best_step`
#
# 读出每条山谷谷底处的步长，误差在十倍以内即可。

# %% exercise="best_step"
# %%exercise best_step
# steps = {"forward64": step, "central64": step, "forward32": step, "central32": step}
### BEGIN SOLUTION
steps = {"forward64": 1e-8, "central64": 1e-5, "forward32": 3e-4, "central32": 5e-3}
### END SOLUTION

# %% [markdown] lang="en" pair="hiding"
# $\sqrt u$ and $\sqrt[3] u$: about 10⁻⁸ and 6·10⁻⁶ for float64, 3·10⁻⁴ and 5·10⁻³ for float32.
#
# ## 3. Inputs that hide a mistake
#
# A check looks at one point. In section 1 it found the missing transpose of `NoTranspose`, for the input `m`. For some inputs it would not.
#
# ### Exercise `hiding_input`
#
# Find a 2×2 float64 tensor `a`, without a zero in it. A gradient check that looks only at `a` and `w` must find nothing in `NoTranspose.apply(a, w)`. **Predict** first: what must be true of `a`, if $A\,G$ and $A^\top G$ are to be the same for every $G$?

# %% [markdown] lang="zh" pair="hiding" of="1ebffe7f"
# 分别是 $\sqrt u$ 和 $\sqrt[3] u$：float64 约为 10⁻⁸ 和 6·10⁻⁶，float32 约为 3·10⁻⁴ 和 5·10⁻³。
#
# ## 3. 会掩盖错误的输入
#
# 一次检查只看一个点。第 1 节里，它用输入 `m` 查出了 `NoTranspose` 少了转置；换成某些输入，就查不出来了。
#
# ### 练习 `hiding_input`
#
# 找一个 2×2 的 float64 张量 `a`，其中没有 0，使任何只看 `a` 和 `w` 这一点的梯度检查，都查不出 `NoTranspose.apply(a, w)` 的错。**先猜一猜**：要让 $A\,G$ 和 $A^\top G$ 对每个 $G$ 都相等，`a` 必须满足什么？

# %% exercise="hiding_input"
# %%exercise hiding_input
# a = torch.tensor([[..., ...], [..., ...]], dtype=torch.float64)
### BEGIN SOLUTION
a = torch.tensor([[1.0, 2.0], [2.0, 3.0]], dtype=torch.float64)
### END SOLUTION

# %% [markdown] lang="en" pair="hiding-see"
# It must be symmetric. See it with the plainest one, a matrix of ones. PyTorch's check looks at these inputs and nowhere else; `%gradcheck` goes on and tries others. **Predict** what each of them says.

# %% [markdown] lang="zh" pair="hiding-see" of="0939cfea"
# `a` 必须对称。用最简单的一个来看看：全为 1 的矩阵。PyTorch 的检查只看这组输入；`%gradcheck` 还会换别的输入再试。**先猜一猜**两边各说什么。

# %% tags=["shown"]
same = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
print("torch:", torch.autograd.gradcheck(NoTranspose.apply, (same, w)))
# %gradcheck NoTranspose.apply(same, w)

# %% [markdown] lang="en" pair="mutants"
# Right at these inputs, wrong at others. So: random numbers, of both signs, sizes that all differ, and more than one point.
#
# ## 4. What a gradient check cannot see
#
# Four backwards for $y = x^3$. The first cell defines them and asks `torch.autograd.gradcheck`, at the points 0.5, 1 and 2.

# %% [markdown] lang="zh" pair="mutants" of="4c57edf0"
# 在这组输入上对，换一组就错。所以：输入要随机、有正有负，各个尺寸互不相同，而且不止查一个点。
#
# ## 4. 梯度检查看不到什么
#
# 下面是 $y = x^3$ 的四个 backward。单元格定义它们，并在 0.5、1、2 三个点上询问 `torch.autograd.gradcheck`。

# %% tags=["shown"]
def cube_with(gradient):
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return gradient(grad_output, x)

    return Cube


A = cube_with(lambda g, x: g.mul_(3 * x * x))
B = cube_with(lambda g, x: (3 * x * x * g).float())
C = cube_with(lambda g, x: 3 * x.detach() ** 2 * g)
D = cube_with(lambda g, x: 3 * x * x.abs() * g)

x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
[torch.autograd.gradcheck(mutant.apply, (x,), raise_exception=False) for mutant in (A, B, C, D)]

# %% [markdown] lang="en" pair="which-task"
# Four times `True`. And each has a fault that will hurt somebody.
#
# ### Exercise `which_check`
#
# Which of these five questions finds which fault? One is not needed.
#
# - is it right at other inputs?
# - is it right for a random `grad_output`?
# - is the second derivative right?
# - is `grad_output` unchanged?
# - is the dtype kept? (The engine casts back to float64: look at the digits.)
#
# Answer with code. Under each of `"A"` to `"D"` goes a check. It is a function that gets a Function and a point `x` of positive numbers. It returns `True` for a right backward, `False` for one with that fault. Your checks will also be tried on other Functions with the same faults.

# %% [markdown] lang="zh" pair="which-task" of="2bbdf78a"
# 四个都是 `True`。可每一个都有毛病，迟早会害到别人。
#
# ### 练习 `which_check`
#
# 下面五个问题，哪个能查出哪个毛病？有一个用不上。
#
# - 换一些输入，还对吗？
# - 用随机的 `grad_output`，还对吗？
# - 二阶导数对不对？
# - `grad_output` 有没有被改动？
# - dtype 有没有保持？（引擎会转回 float64，要看位数。）
#
# 用代码作答。在 `"A"` 到 `"D"` 每个键下放一个检查：它是一个函数，参数是一个 Function 和一个全为正数的点 `x`；backward 正确时返回 `True`，有那种毛病时返回 `False`。评判时用的不只是立方，还有带同样毛病的别的函数。

# %% exercise="which_check"
# %%exercise which_check
def right_elsewhere(function, x):
    ### BEGIN SOLUTION
    return torch.autograd.gradcheck(function.apply, (-x,), raise_exception=False)
    ### END SOLUTION


def second_is_right(function, x):
    ### BEGIN SOLUTION
    return torch.autograd.gradgradcheck(function.apply, (x,), raise_exception=False)
    ### END SOLUTION


def keeps_grad_output(function, x):
    ### BEGIN SOLUTION
    g = torch.randn_like(x)
    before = g.clone()
    torch.autograd.grad(function.apply(x), x, g)
    return torch.equal(g, before)
    ### END SOLUTION


def keeps_dtype(function, x):
    ### BEGIN SOLUTION
    (found,) = torch.autograd.grad(function.apply(x), x, torch.randn_like(x))
    return not torch.equal(found, found.float().double())
    ### END SOLUTION


# checks = {"A": ..., "B": ..., "C": ..., "D": ...}
### BEGIN SOLUTION
checks = {"A": keeps_grad_output, "B": keeps_dtype, "C": second_is_right, "D": right_elsewhere}
### END SOLUTION

# %% [markdown] lang="en" pair="which-see"
# `grad_output` for A, dtype for B, the second derivative for C, other inputs for D. `%gradcheck` asks the first three of these as well. Look at `C`, whose gradient is right at every point there is. **Predict** the two verdicts for `D` in the second cell: at the same three points, and at `-x`.

# %% [markdown] lang="zh" pair="which-see" of="feacf31b"
# A 是 `grad_output`，B 是 dtype，C 是二阶导数，D 是换一些输入。前三样，`%gradcheck` 也会问。来看看 `C`，它的梯度在任何点上都是对的。**先猜一猜**第二格里对 `D` 的两个结论：在这三个点上是什么，换成 `-x` 又是什么？

# %%
# %gradcheck C.apply(x)

# %%
[nbautograd.gradcheck(D.apply, (at,)).verdict for at in (x, -x)]

# %% [markdown] lang="en" pair="sly"
# Right at positive numbers, all of them, and wrong at negative ones. `%gradcheck` does try other inputs than yours, but of the same signs: you have to supply both signs.
#
# ### Exercise `slips_through`
#
# The same game from the other side. Write `Sly` for $y = x^3$: `torch.autograd.gradcheck` must return `True` at random points of both signs. Yet something about its backward must be wrong at these very points. Being wrong elsewhere, as D is, does not count. You may use an idea from above, or a better one.

# %% [markdown] lang="zh" pair="sly" of="6a32fcb2"
# 正数处处都对，负数就错了。`%gradcheck` 除了你给的输入还会试别的，但符号与你的相同：正负两种都要由你来给。
#
# ### 练习 `slips_through`
#
# 反过来再玩一次。为 $y = x^3$ 写一个 `Sly`：在有正有负的随机点上，`torch.autograd.gradcheck` 都要返回 `True`，但就在这些点上，它的 backward 必须有毛病；像 D 那样只在别处出错的不算。可以借用上面的主意，有更妙的就更好。

# %% exercise="slips_through"
# %%exercise slips_through
class Sly(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        ### BEGIN SOLUTION
        grad_output *= 3 * x**2
        return grad_output
        ### END SOLUTION

# %% [markdown] lang="en" pair="end"
# ## 5. What to keep
#
# - Central difference, float64, a step near the cube root of the precision, a tolerance relative to the size of the numbers.
# - A random `grad_output`, of both signs; random inputs, of both signs, sizes that differ; more than one point.
# - A gradient check asks about *values* only. PyTorch's by default sends unit vectors back, never a negative number: even `grad_output.abs()` slips through. Ask as well: does backward change what it is given? Is the dtype kept? Is the second derivative right, if anybody will want it?
# - In a test, `nbautograd.gradcheck(fn, inputs, order=2).raise_if_wrong()`, or the pytest fixture `assert_gradients` with `order=2`, catches the first and the last. A lost dtype is only mentioned in the report.
#
# And at a kink, such as `relu` at 0, the difference itself is wrong. That is **notebook 06**. First comes **notebook 04**: what `ctx` promises.

# %% [markdown] lang="zh" pair="end" of="ff146f45"
# ## 5. 记住这些
#
# - 中心差分，float64，步长取精度的立方根左右，容差要相对于数的大小来定。
# - `grad_output` 要随机、有正有负；输入要随机、有正有负，各个尺寸互不相同；不止查一个点。
# - 梯度检查只问*数值*；而且 PyTorch 的检查默认送回去的都是单位向量，从不含负数，连 `grad_output.abs()` 都能混过去。还要多问几句：backward 改动了收到的东西吗？dtype 保持了吗？如果有人要用，二阶导数对吗？
# - 写测试时，用 `nbautograd.gradcheck(fn, inputs, order=2).raise_if_wrong()`，或 pytest 的 `assert_gradients`（加上 `order=2`）：第一问和最后一问不过关，测试就失败；dtype 丢了，则只写在报告里。
#
# 而在折点上，比如 `relu` 在 0 处，差分本身就不对了。那是**第 06 课**的内容。先来看**第 04 课**：`ctx` 都承诺了什么。

# %%
# %exercises
