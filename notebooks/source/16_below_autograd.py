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
#     course: "16"
#     title_en: 'Below autograd: dispatch and modes'
#     title_zh: 自动求导之下：分派与模式
#     minutes: 40
# ---

# %% [markdown] lang="en" pair="intro"
# # 16 · Below autograd: dispatch and modes
#
# A supplement, for those who want to see the engine room. In notebook 12 torch asked your objects before it computed. Below autograd it asks once more. There **every operation** of a program comes by, also those of backward.
#
# **After it you can**
#
# - wrap a tensor, through `__torch_dispatch__`, and see what reaches the lowest level;
# - log a whole program with a mode;
# - find the operation that made the first NaN of a training step, forward or backward.
#
# **You need** notebooks 01 and 12. **Time**: about 40 minutes.

# %% [markdown] lang="zh" pair="intro" of="de3aefc7"
# # 16 · 自动求导之下：分派与模式
#
# 这一课是补充，写给想到机房里看一看的人。在 12 里，torch 计算之前会先问你的对象。在自动求导的下面，它还会再问一次；程序的**每一个运算**都从那里经过，反向传播自己做的也不例外。
#
# **学完之后，你能够**
#
# - 包装一个张量，通过 `__torch_dispatch__` 看到最底层发生了什么；
# - 用“模式”记录整个程序；
# - 找出一步训练里第一个 NaN 是哪个运算造成的，不管它出在前向还是反向。
#
# **预备知识**：01 和 12。**用时**：约 40 分钟。

# %% tags=["setup"]
import math

import matplotlib.pyplot as plt
import torch

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="dispatch"
# ## 1. One floor below
#
# `__torch_function__` is asked at the front door: `torch.add`, `x.sum()`, as you wrote them. Autograd works behind that door. Below it comes a second question, `__torch_dispatch__`. Here the functions are the primitive ones, such as `aten.add.Tensor`, and **backward's own operations come by as well**.
#
# A wrapper uses it. It says *I am a 2×2 float tensor*, holds another tensor, and answers each operation by computing with that. torch's sharded and masked tensors, `DTensor` and `MaskedTensor`, are built like that. To look first, the cell uses a mode (section 2). Modes live in `torch.utils._python_dispatch`: the underscore says that torch may move it.
#
# **Predict.** `y = x * x; y.sum().backward()`: which primitive operations will be seen?

# %% [markdown] lang="zh" pair="dispatch" of="b8b727e1"
# ## 1. 再往下一层
#
# `__torch_function__` 守在大门口：看到的是你写下的 `torch.add`、`x.sum()`。进门之后才轮到自动求导；自动求导的下面还有第二次询问，`__torch_dispatch__`：这里的函数都是最基本的运算，例如 `aten.add.Tensor`，而且**反向传播自己做的运算也会经过这里**。
#
# 包装器就靠它：一个对象声称“我是 2×2 的浮点张量”，里面装着另一个张量，每来一个运算，就用里面那个去算。torch 的分片张量 `DTensor`、带掩码的张量 `MaskedTensor` 都是这样做出来的。下面的单元格先用模式（第 2 节）来看一看。模式在 `torch.utils._python_dispatch` 里：名字带下划线，表示 torch 可能会改动它。
#
# **先猜一猜。** `y = x * x; y.sum().backward()` 会经过哪些基本运算？

# %% tags=["shown"]
@nbautograd.trace
class Peek(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
with Peek():
    (x * x).sum().backward()
nbautograd.dispatches(Peek)

# %% [markdown] lang="en" pair="dispatch-task"
# There are two operations forward. Then backward begins with a one (`ones_like`) and spreads it (`expand`). It multiplies with what was saved, once for each branch of `x * x`, and adds the two. The `detach` at the end puts the sum into `x.grad`. You derived this order in notebook 01; here it is, one primitive at a time.
#
# ### Exercise `counting_wrapper`
#
# `Counting` wraps a tensor. Write `__torch_dispatch__`. Unwrap what came, wherever it is, compute, and wrap every tensor that comes out (some functions give several). Count each operation under `str(func)` in `Counting.counts`. `__new__` is given: it makes an object of the inner tensor's shape, dtype and device, without data of its own.

# %% [markdown] lang="zh" pair="dispatch-task" of="c99ec339"
# 前向两个运算；接着反向传播从一个 1 开始（`ones_like`），把它铺开（`expand`），再为 `x * x` 的两个分支各乘一次保存的张量，然后加起来；末尾的 `detach` 把这个和放进 `x.grad`。这个次序你在 01 里推导过，现在它一个运算一个运算地摆在眼前。
#
# ### 练习 `counting_wrapper`
#
# `Counting` 包装一个张量。请写出 `__torch_dispatch__`：把传来的包装拆开（不管在参数的哪里），计算，再把结果里的每个张量重新包好（有的函数会返回好几个），并在 `Counting.counts` 里以 `str(func)` 为键给每个运算计数。`__new__` 已经给出：它造出的对象，形状、dtype 和设备都与里面的张量相同，自己却没有数据。

# %% exercise="counting_wrapper"
# %%exercise counting_wrapper
import collections
from torch.utils._pytree import tree_map


class Counting(torch.Tensor):
    counts = collections.Counter()

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"Counting({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        cls.counts[str(func)] += 1
        bare_args, bare_kwargs = tree_map(lambda a: a.inner if isinstance(a, cls) else a, (args, kwargs or {}))
        result = func(*bare_args, **bare_kwargs)
        return tree_map(lambda r: cls(r) if isinstance(r, torch.Tensor) else r, result)
        ### END SOLUTION

# %% [markdown] lang="en" pair="modes"
# ## 2. Everything at once
#
# A type is asked only about calls with an object of its own. Inside a `with` block a **mode** is asked about everything: `TorchFunctionMode` at the front door, `TorchDispatchMode` one floor below. `Peek` above was one. torch's FLOP counter is a mode, and so are checks of this course.
#
# While a mode's method runs, the mode itself is switched off. So calling `func` there does not ask this mode again.
#
# ### Exercise `op_log`
#
# Write the mode `OpLog`. After `with OpLog() as log:` the list `log.names` holds the name, `str(func)`, of every primitive operation in order, those of backward among them. One log inside another: both see what the inner block does.

# %% [markdown] lang="zh" pair="modes" of="c58f4bec"
# ## 2. 一网打尽
#
# 类型只在参数里有自己的对象时才会被询问。**模式**则在 `with` 块里对一切运算都被询问：`TorchFunctionMode` 守大门，`TorchDispatchMode` 守下面一层。上面的 `Peek` 就是一个。torch 的 FLOP 计数器里就有一个模式；本课程检查你写的 Function 时，也用到模式。
#
# 模式的方法运行时，这个模式本身是关着的，所以在里面调用 `func`，不会再次询问这个模式。
#
# ### 练习 `op_log`
#
# 写出模式 `OpLog`。在 `with OpLog() as log:` 之后，列表 `log.names` 按次序保存每个基本运算的名字 `str(func)`，包括反向传播的那些。一个日志套在另一个里面时，里层的运算两个都能看到。

# %% exercise="op_log"
# %%exercise op_log
from torch.utils._python_dispatch import TorchDispatchMode


class OpLog(TorchDispatchMode):
    ### BEGIN SOLUTION
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
    ### END SOLUTION

# %% [markdown] lang="en" pair="nan"
# ## 3. Who made the first NaN?
#
# Six points should stay apart. The loss is the sum of $e^{-d}$ over the distances $d$ of all pairs $(i, j)$, $i = j$ included.
#
# **Predict.** The loss is an ordinary number, and so is every number on the way to it. And the gradient?

# %% [markdown] lang="zh" pair="nan" of="c4a72bb6"
# ## 3. 第一个 NaN 是谁造成的？
#
# 让六个点彼此躲开：损失是所有点对 $(i, j)$（包括 $i = j$）的距离 $d$ 的 $e^{-d}$ 之和。
#
# **先猜一猜。** 损失是一个普通的数，一路算下来的每个数也都普通。那么梯度呢？

# %%
def crowding(points):
    apart = points[:, None] - points[None]
    distances = (apart * apart).sum(-1).sqrt()
    return (-distances).exp().sum()


points = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
loss = crowding(points)
loss.backward()
print(f"loss {loss.item():.2f}")
print(points.grad)

# %% [markdown] lang="en" pair="nan-task"
# All of it is NaN. One operation made the first number that was not finite; the others passed it on. A look at the values of forward does not find it. A mode does, as backward comes by as well.
#
# ### Exercise `nan_watch`
#
# Write the mode `NanWatch`. After `with NanWatch() as watch:`, `watch.first` is the `str(func)` of the first operation with a NaN or an infinity in its result, although **everything it was given was finite**. That means tensors and numbers, in lists too, and by name. `None` if there was none. Nothing else changes. (Look at the arguments before the operation runs: it may write over them.)

# %% [markdown] lang="zh" pair="nan-task" of="9abae787"
# 梯度全是 NaN。可是第一个“不是有限数”的数，只是某一个运算造成的，其余的不过是往下传。只看前向的数值找不到它；用模式就找得到，因为反向传播也从这里经过。
#
# ### 练习 `nan_watch`
#
# 写出模式 `NanWatch`。在 `with NanWatch() as watch:` 之后，`watch.first` 是这样一个运算的名字 `str(func)`：结果里出现了 NaN 或无穷大，而**传给它的一切都是有限的**——张量和数都算，列表里的、按名字传的也算——并且它是第一个。没有这样的运算就是 `None`。除此之外什么都不改变。（要在运算之前查看参数：它可能把结果写在上面。）

# %% exercise="nan_watch"
# %%exercise nan_watch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def finite(item):
    if isinstance(item, torch.Tensor):
        return bool(item.isfinite().all())
    return not isinstance(item, float) or math.isfinite(item)


class NanWatch(TorchDispatchMode):
    ### BEGIN SOLUTION
    def __init__(self):
        super().__init__()
        self.first = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        fine = all(map(finite, tree_leaves((args, kwargs))))
        result = func(*args, **kwargs)
        if self.first is None and fine and not all(map(finite, tree_leaves(result))):
            self.first = str(func)
        return result
    ### END SOLUTION

# %% [markdown] lang="en" pair="nan-seen"
# One training step, operation by operation. `Sizes` notes the largest number in each result; your watch names the culprit.
#
# **Predict** where it stands: on the way forward, or on the way back?

# %% [markdown] lang="zh" pair="nan-seen" of="7178d167"
# 把一步训练一个运算一个运算地摊开来看。`Sizes` 记下每个结果里最大的数；你的 `NanWatch` 指出是谁造成的。
#
# **先猜一猜。** 它出在前向的路上，还是反向的路上？

# %%
# %exercises nan_watch
class Sizes(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.rows = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.rows.append((str(func), result.abs().max().item()))
        return result


with NanWatch() as watch, Sizes() as sizes:
    loss = crowding(points)
    turn = len(sizes.rows)
    loss.backward()

names, largest = zip(*sizes.rows, strict=True)
ill = [not math.isfinite(value) for value in largest]
place = next(k for k in range(len(names)) if ill[k])
plt.figure(figsize=(8, 3), layout="constrained")
plt.axvspan(place - 0.5, len(names) - 0.5, color="tab:red", alpha=0.12)
for colour, start, stop, label in (("tab:blue", 0, turn, "forward"), ("tab:orange", turn, len(names), "backward")):
    there = [k for k in range(start, stop) if not ill[k]]
    plt.semilogy(there, [largest[k] for k in there], "o-", color=colour, label=label)
plt.annotate(watch.first, (place - 0.5, 1), (6, 40), textcoords="offset points", color="tab:red")
plt.xticks(range(len(names)), [name.split(".")[1] for name in names], rotation=60, ha="right")
plt.ylabel("largest number")
plt.legend(loc="lower left")
plt.show()
print(f"{watch.first} is operation {place + 1} of {len(names)}, and backward begins with operation {turn + 1}")

# %% [markdown] lang="en" pair="nan-mend"
# On the way back. The square root of 0 is 0, and its slope there is infinite: `backward` divides by twice the root. Times the slope of `apart * apart`, which is 0, it becomes NaN. Each point is at distance 0 from itself.
#
# Masking afterwards does not help: then `backward` divides 0 by twice the root, and 0/0 is NaN. The square root must not see the 0 at all.

# %% [markdown] lang="zh" pair="nan-mend" of="eb43a5d5"
# 在反向的路上。0 的平方根是 0，那里的斜率却是无穷大：反向要除以平方根的两倍。再乘上 `apart * apart` 的斜率，也就是 0，就成了 NaN。每个点到自己的距离都是 0。
#
# 事后再盖住是没有用的：这时反向用 0 除以平方根的两倍，而 0/0 是 NaN。必须根本不让平方根看到这个 0。

# %%
# %exercises nan_watch
itself = torch.eye(6, dtype=torch.bool)


def masked_after(points):
    apart = points[:, None] - points[None]
    distances = (apart * apart).sum(-1).sqrt()
    return (-distances).exp().masked_fill(itself, 0).sum()


def masked_before(points):
    apart = points[:, None] - points[None]
    distances = (apart * apart).sum(-1).masked_fill(itself, 1).sqrt()
    return (-distances).exp().masked_fill(itself, 0).sum()


for way in (masked_after, masked_before):
    points.grad = None
    with NanWatch() as watch:
        way(points).backward()
    print(f"{way.__name__:<13} first: {watch.first}, finite: {bool(points.grad.isfinite().all())}")

# %% [markdown] lang="en" pair="end"
# **What to keep**
#
# - A wrapper is asked about its own; a mode about everything, as long as its block lasts.
# - Below autograd there is no difference between forward and backward: both are operations.
# - Unwrap and look everywhere, in lists, in keywords, in numbers, and before the operation runs.
# - The first number that is not finite has one author. `torch.autograd.detect_anomaly()` looks for NaN alone, and names the node that made the first, with its forward line. Here that is the product `apart * apart`, not the root that made the infinity. A mode names the operation, and does so for infinities too.

# %% [markdown] lang="zh" pair="end" of="5ac2b40e"
# **记住这些**
#
# - 包装器只会被问到与自己有关的运算；模式在它的 `with` 块里什么都会被问到。
# - 在自动求导的下面，前向和反向没有分别，都是一个个运算。
# - 拆包装、查数值，都要查到每一处：列表里、按名字传的参数里、普通的数；而且要赶在运算之前。
# - 第一个“不是有限数”的数只有一个源头。`torch.autograd.detect_anomaly()` 只找 NaN，并指出造成第一个 NaN 的节点和它那行前向代码：在这里是乘积 `apart * apart`，而不是造成无穷大的平方根。模式指出的是那个运算，而且无穷大也不放过。

# %% [raw] lang="zh"
# loss {loss.item():.2f} → 损失 {loss.item():.2f}
#  is operation {place + 1} of {len(names)}, and backward begins with operation {turn + 1} →  是 {len(names)} 个运算中的第 {place + 1} 个，backward 从第 {turn + 1} 个开始
#  first: {watch.first}, finite: { →  第一处：{watch.first}，有限：{

# %%
# %exercises
