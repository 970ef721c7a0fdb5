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
#     course: "12"
#     title_en: Extending torch
#     title_zh: 扩展 torch
#     minutes: 65
# ---

# %% [markdown] lang="en" pair="intro"
# # 12 · Extending torch
#
# A custom Function adds an operation. Sometimes you want something else: a new **kind of object** that `torch.add` and `torch.mean` accept. PyTorch asks politely before it computes. In this notebook you learn to answer.
#
# **After it you can**
#
# - give a class of your own to torch functions, through `__torch_function__`;
# - say when to answer, when to return `NotImplemented`, and who is asked next;
# - write a fallback that does not call itself for ever;
# - keep information on a subclass of `torch.Tensor` through whatever is computed with it.
#
# **You need** Python classes; notebook 01 helps. **Time**: about 65 minutes.

# %% [markdown] lang="zh" pair="intro" of="d2abbb0d"
# # 12 · 扩展 torch
#
# 自定义 Function 给 PyTorch 增加一种运算。有时你要的却是别的：让 `torch.add`、`torch.mean` 认识一种**新的对象**。PyTorch 在动手计算之前会先礼貌地问一声，这一课就学怎样回答。
#
# **学完之后，你能够**
#
# - 通过 `__torch_function__` 让自己的类参与 torch 函数的运算；
# - 说清什么时候该回答、什么时候该返回 `NotImplemented`，以及接下来会问谁；
# - 写一个不会没完没了调用自己的兜底方案；
# - 在 `torch.Tensor` 的子类上附带信息，无论怎样计算都不丢。
#
# **预备知识**：Python 的类；学过 01 更好。**用时**：约 65 分钟。

# %% tags=["setup"]
import matplotlib.pyplot as plt
import torch

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="stranger"
# ## 1. A stranger at the door
#
# A diagonal matrix with one number all along its diagonal is determined by two numbers: its size and that value. No need to store the zeros.
#
# **Predict.** What does `torch.mean` say to such an object? And how would you tell it what the mean is?

# %% [markdown] lang="zh" pair="stranger" of="c8191987"
# ## 1. 门外的陌生人
#
# 对角线上全是同一个数的对角矩阵，只用两个数就能说清：大小和数值。那些 0 不必存下来。
#
# **先猜一猜。** 把这样的对象交给 `torch.mean`，它会怎么说？你又该怎样告诉它均值是多少？

# %%
class Stranger:
    def __init__(self, n, value):
        self.n, self.value = n, value

    def tensor(self):
        return self.value * torch.eye(self.n)


try:
    torch.mean(Stranger(5, 2))
except TypeError as error:
    print(str(error).splitlines()[0])

# %% [markdown] lang="en" pair="asked"
# It raises a `TypeError`: `tensor()` is there, and nobody calls it. Torch takes a tensor or an object that says: *ask me*. It says so by having a method `__torch_function__`, and torch then calls it instead of computing:
#
# | argument | what it is |
# |---|---|
# | `func` | the function that was called, `torch.mean` itself |
# | `types` | the types among the arguments that have the method |
# | `args`, `kwargs` | the arguments, as they came; `kwargs` may be `None` |
#
# Run the next cell. The first line asks nbautograd to write down every such question.
#
# **Predict.** How many questions will there be, and which of them gets no answer?

# %% [markdown] lang="zh" pair="asked" of="757c5379"
# 它抛出 `TypeError`：`tensor()` 明明在那里，却没有谁去调用它。torch 只接受张量，或者一个表示“请来问我”的对象：只要它有 `__torch_function__` 方法，torch 就不自己计算，而是调用这个方法：
#
# | 参数 | 含义 |
# |---|---|
# | `func` | 被调用的函数，例如 `torch.mean` 本身 |
# | `types` | 参数当中带有这个方法的那些类型 |
# | `args`、`kwargs` | 原样传来的参数；`kwargs` 可能是 `None` |
#
# 运行下一个单元格。第一行请 nbautograd 把每一次询问都记下来。
#
# **先猜一猜。** 一共会有几次询问？哪一次没人回答？

# %% tags=["shown"]
@nbautograd.trace
class Guest:
    def __init__(self, n, value):
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.mean:
            return args[0].value / args[0].n
        return NotImplemented


g = Guest(5, 2)
print(torch.mean(g))
try:
    torch.mul(g, 3)
except TypeError as error:
    print("TypeError")
nbautograd.dispatches(Guest)

# %% [markdown] lang="en" pair="table"
# Two questions. `torch.mean` was handled; `torch.mul` was not. The method returned `NotImplemented`, no other type could handle it, so torch raised.
#
# `NotImplemented` is not an error. It means *I do not know; ask the next one*. If two types override, torch asks one after the other until one answers: a subclass before its parent, else from left to right. So a good guest looks at `types` first. If there is a type that it does not know, it lets that type speak.
#
# Asking `if func is ...` does not scale. The usual way is a **table** from torch function to your implementation, filled by a decorator.
#
# ### Exercise `scalar_tensor`
#
# Write the class; keep its table, `HANDLED`, in which `torch.mean` and `torch.add` are looked up. What it must do:
#
# - `torch.mean` gives the mean as a number;
# - `torch.add` of two of them gives a new `ScalarTensor`; of different sizes, a `ValueError`; with a tensor on either side, a tensor;
# - for a function that is not in the table, return `NotImplemented`, so that torch raises its own `TypeError`. Do so too for a type that is neither yours nor a tensor.
#
# Arguments may come by name: `torch.mean(input=s)`.

# %% [markdown] lang="zh" pair="table" of="d318983b"
# 两次询问。`torch.mean` 得到了回答；`torch.mul` 没有：方法返回了 `NotImplemented`，又没有别人可问，torch 便抛出异常。
#
# `NotImplemented` 不是错误，它的意思是“我不知道，请问下一位”。如果有两个类型都带这个方法，torch 会依次询问（子类先于父类，其余从左到右），直到有人回答。所以懂礼貌的客人会先看 `types`：里面有自己不认识的类型，就让对方来说。
#
# 一个个地写 `if func is ...` 不是办法。通常的做法是用一张**表**，从 torch 函数查到你的实现，再用装饰器往里填。
#
# ### 练习 `scalar_tensor`
#
# 写出这个类，并保留它的表 `HANDLED`，`torch.mean` 和 `torch.add` 都到表里去查。要求：
#
# - `torch.mean` 给出均值，是一个数；
# - 两个这样的对象相加，得到一个新的 `ScalarTensor`；大小不同时抛出 `ValueError`；任一侧是张量时，得到张量；
# - 表里没有的函数，返回 `NotImplemented`，让 torch 抛出它自己的 `TypeError`；参数里出现既不是你的、也不是张量的类型时，也返回 `NotImplemented`。
#
# 参数可能按名字传来：`torch.mean(input=s)`。

# %% exercise="scalar_tensor"
# %%exercise scalar_tensor
class ScalarTensor:
    HANDLED = {}

    def __init__(self, n, value):
        self.n, self.value = n, value

    def tensor(self):
        return self.value * torch.eye(self.n)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        known = all(issubclass(t, (torch.Tensor, ScalarTensor)) for t in types)
        if func not in cls.HANDLED or not known:
            return NotImplemented
        return cls.HANDLED[func](*args, **(kwargs or {}))
        ### END SOLUTION


def implements(torch_function):
    def register(function):
        ScalarTensor.HANDLED[torch_function] = function
        return function

    return register


@implements(torch.mean)
def mean(input):
    ### BEGIN SOLUTION
    return input.value / input.n
    ### END SOLUTION


@implements(torch.add)
def add(input, other):
    ### BEGIN SOLUTION
    if isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor):
        if input.n != other.n:
            raise ValueError(f"sizes {input.n} and {other.n} do not match")
        return ScalarTensor(input.n, input.value + other.value)
    return torch.add(*(x.tensor() if isinstance(x, ScalarTensor) else x for x in (input, other)))
    ### END SOLUTION

# %% [markdown] lang="en" pair="order"
# ## 2. Who is asked, and where the answer comes from
#
# nbautograd can write down what your class is asked. The tree below shows the questions of one mixed addition.
#
# **Predict.** `torch.add(s, ones)` reaches your `add`, which calls `torch.add` once more. Will the second call be a question as well?

# %% [markdown] lang="zh" pair="order" of="3349c609"
# ## 2. 问了谁，答案从哪来
#
# nbautograd 可以记下别人问了你的类什么。下面的调用树显示一次混合加法里的所有询问。
#
# **先猜一猜。** `torch.add(s, ones)` 会走到你的 `add`，而 `add` 又调用了一次 `torch.add`。这第二次调用也算一次询问吗？

# %%
nbautograd.trace(ScalarTensor)
before = len(nbautograd.dispatches(ScalarTensor))
try:
    torch.add(ScalarTensor(2, 3.0), torch.ones(2, 2))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
nbautograd.dispatches(ScalarTensor)[before:]

# %% [markdown] lang="en" pair="fallback" tags=["shown"]
# One question only: by the time of the second call both arguments are plain tensors, and torch computes without asking.
#
# Writing out every function is much work. It is tempting to turn *whatever came* into tensors and call `func` again. The Chinese notes that this course grew from do it in two lines:
#
# ```python
# args = [a.tensor() if hasattr(a, "tensor") else a for a in args]
# return func(*args, **kwargs)
# ```
#
# **Predict.** `torch.mul(s, s)` works with it. What happens with `torch.stack([s, s])`?

# %% [markdown] lang="zh" pair="fallback" tags=["shown"] of="ff9ff756"
# 只有一次询问：到第二次调用时，两个参数都已经是普通张量，torch 直接计算，不再问谁。
#
# 把每个函数都写一遍太费事，于是很想把*传来的一切*都变成张量，再调用一次 `func`。本课程所依据的中文笔记用两行就做到了：
#
# ```python
# args = [a.tensor() if hasattr(a, "tensor") else a for a in args]
# return func(*args, **kwargs)
# ```
#
# **先猜一猜。** 这样写，`torch.mul(s, s)` 没有问题。那么 `torch.stack([s, s])` 会怎样？

# %% tags=["shown"]
@nbautograd.trace
class Eager:
    def __init__(self, n, value):
        self.n, self.value = n, value

    def tensor(self):
        return self.value * torch.eye(self.n)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.tensor() if hasattr(a, "tensor") else a for a in args]
        return func(*args, **(kwargs or {}))


s = Eager(2, 3.0)
print(torch.mul(s, s))
try:
    torch.stack([s, s])
except RecursionError:
    print("RecursionError")
nbautograd.dispatches(Eager)

# %% [markdown] lang="en" pair="fallback-task"
# It never ends. The list has no method `tensor`, so it is passed on as it is, with the objects still in it. torch finds them and asks again, and again. The tree shows that chain once and names it.
#
# ### Exercise `dense_fallback`
#
# Repair the fallback. Whatever is not in the table is computed on tensors. Your objects may be anywhere in the arguments: in a list, a tuple, a list of lists, or a keyword argument. `torch.mean` still comes from the table. (torch itself takes no list of lists; libraries on top of it do, and ask in the same way. The checks have such a function, `grid`, which puts `[[s, t], [t, s]]` together into one matrix.)

# %% [markdown] lang="zh" pair="fallback-task" of="722a48e7"
# 它停不下来。列表没有 `tensor` 方法，于是原样传了下去，里面的对象还在；torch 又发现了它们，又来询问，如此反复。调用树只把这条长链显示一次，并说明了原因。
#
# ### 练习 `dense_fallback`
#
# 修好这个兜底方案。凡是表里没有的函数，都换成张量来算——不管你的对象藏在参数的什么地方：列表、元组、列表的列表，或者按名字传的参数。`torch.mean` 仍然查表。（torch 自己不接受列表的列表，建在它上面的库却会，而且用同样的方式询问。检查里就有这样一个函数 `grid`，它把 `[[s, t], [t, s]]` 拼成一个矩阵。）

# %% tags=["shown"] exercise="dense_fallback"
# %%exercise dense_fallback
class DenseScalar:
    HANDLED = {torch.mean: lambda input: input.value / input.n}

    def __init__(self, n, value):
        self.n, self.value = n, value

    def tensor(self):
        return self.value * torch.eye(self.n)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        kwargs = kwargs or {}
        if func in cls.HANDLED:
            return cls.HANDLED[func](*args, **kwargs)
        args = cls.dense(args)
        kwargs = {name: cls.dense(value) for name, value in kwargs.items()}
        return func(*args, **kwargs)

    @classmethod
    def dense(cls, value):
        if isinstance(value, cls):
            return value.tensor()
        if isinstance(value, (list, tuple)):
            return type(value)(cls.dense(item) for item in value)
        return value
        ### END SOLUTION

# %% [markdown] lang="en" pair="subclass"
# ## 3. A tensor with something to remember
#
# A subclass of `torch.Tensor` **is** a tensor: every function takes it, and the result is of the subclass too. What it does not do by itself is carry over what you hung on it.
#
# **Predict.** `x` is 3 metres and 4 metres. Which of these know that: `x + x`, `x[1:]`, `x.sum()`?

# %% [markdown] lang="zh" pair="subclass" of="ce57b7a3"
# ## 3. 记得住事情的张量
#
# `torch.Tensor` 的子类**就是**张量：每个函数都接受它，结果也还是这个子类。它不会自动做的，是把你附在上面的信息带到结果里。
#
# **先猜一猜。** `x` 是 3 米和 4 米。`x + x`、`x[1:]`、`x.sum()` 当中，谁还知道单位是米？

# %% tags=["shown"]
@nbautograd.trace
class Forgetful(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)


x = torch.tensor([3.0, 4.0]).as_subclass(Forgetful)
x.unit = "m"
for result in (x + x, x[1:], x.sum()):
    print(type(result).__name__, getattr(result, "unit", "no unit"))
nbautograd.dispatches(Forgetful)

# %% [markdown] lang="en" pair="subclass-task"
# Three results of the right type, and none has a unit. The method above does what the base class does. It is the one place that sees every call, so it can pass the unit on.
#
# Inside the method call **`super().__torch_function__`**, not `func` itself: torch then computes without asking you again. (Even reading `x.shape` is a question.)
#
# ### Exercise `unit_tensor`
#
# Every floating tensor that comes out of a computation with units has that unit. There may be several, as from `torch.max(x, dim=0)` or `x.split(1)`. Whole numbers, such as indices, may go without. Numbers and plain tensors have none and disturb nobody. Two different units in one call raise a `ValueError`, also in a list, in a list of lists (for `grid`, as above), or by name. Gradients still flow. (A square metre is a matter for another day: the unit of `x * x` stays `"m"`.)

# %% [markdown] lang="zh" pair="subclass-task" of="77b0b6c1"
# 三个结果类型都对，却都没有单位。上面的方法做的只是基类做的事；但它是唯一能看到每一次调用的地方，单位正该从这里传下去。
#
# 在方法里调用 **`super().__torch_function__`**，而不是 `func` 本身，这样 torch 计算时就不会再来问你。（连读取 `x.shape` 都算一次询问。）
#
# ### 练习 `unit_tensor`
#
# 凡是有单位的量参与计算，结果里的浮点张量都带着那个单位；一次返回好几个结果时也一样，例如 `torch.max(x, dim=0)`、`x.split(1)`。位置之类的整数可以不带。数和普通张量没有单位，也不影响别人。一次调用里出现两个不同的单位，就抛出 `ValueError`——不管它们在哪里：列表里、列表的列表里（比如前面的 `grid`），或者按名字传来，都算。梯度照常流动。（平方米以后再说：`x * x` 的单位仍是 `"m"`。）

# %% exercise="unit_tensor"
# %%exercise unit_tensor
class UnitTensor(torch.Tensor):
    unit = None

    @staticmethod
    def __new__(cls, data, unit):
        return torch.as_tensor(data).as_subclass(cls)

    def __init__(self, data, unit):
        self.unit = unit

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        units = cls.units_of((args, kwargs or {}))
        if len(units) > 1:
            raise ValueError(f"different units: {sorted(units)}")
        result = super().__torch_function__(func, types, args, kwargs)
        for quantity in cls.inside(result) if units else ():
            quantity.unit = min(units)
        return result

    @classmethod
    def units_of(cls, value):
        return {quantity.unit for quantity in cls.inside(value)} - {None}

    @classmethod
    def inside(cls, value):
        if isinstance(value, cls):
            return [value]
        if isinstance(value, dict):
            value = list(value.values())
        return [found for item in value for found in cls.inside(item)] if isinstance(value, (list, tuple)) else []
        ### END SOLUTION

# %% [markdown] lang="en" pair="units-seen"
# A stone thrown upwards, its height measured with noise, smoothed by a moving mean, every tenth value kept. Nobody writes the unit down a second time.
#
# **Predict** what the axis says, and where the word comes from.

# %% [markdown] lang="zh" pair="units-seen" of="fe711838"
# 向上抛出一块石头，测得的高度带着噪声；先做滑动平均，再每十个取一个。单位没有人再写第二遍。
#
# **先猜一猜**：纵轴上写着什么？那个字是从哪里来的？

# %%
# %exercises unit_tensor
seconds = torch.linspace(0, 4, 200)
noise = torch.randn(200, generator=torch.Generator().manual_seed(0))
height = UnitTensor(20 * seconds - 4.9 * seconds**2 + noise, "m")
smooth = height.unfold(0, 15, 1).mean(1)
kept = smooth[::10]

plt.figure(figsize=(6, 2.6), layout="constrained")
plt.plot(seconds, height.as_subclass(torch.Tensor), ".", markersize=3, color="silver", label="measured")
plt.plot(seconds[7:-7], smooth.as_subclass(torch.Tensor), label="smoothed")
plt.plot(seconds[7:-7:10], kept.as_subclass(torch.Tensor), "o", label="kept")
plt.xlabel("time in s")
plt.ylabel(f"height in {kept.unit}")
plt.legend()
plt.show()
print("units:", height.unit, smooth.unit, kept.unit)

# %% [markdown] lang="en" pair="end"
# The axis says "m": `unfold`, `mean` and the slice all went through your method, and each passed the unit on.
#
# ## 4. Which door?
#
# | you want | take |
# |---|---|
# | an operation with a gradient of its own | `torch.autograd.Function` (01 to 09) |
# | an operation that `torch.compile` and export know by name | `torch.library.custom_op` (11) |
# | your object in torch functions | `__torch_function__` |
# | a tensor that remembers something | a subclass with `__torch_function__` |
# | a tensor that stores its data in another way | a wrapper with `__torch_dispatch__` (16) |
# | to watch or change everything in a block | a mode (16) |
#
# **What to keep.** Torch asks; you answer, or return `NotImplemented`. Convert everything, not only what is in sight. In a subclass of Tensor, go on through `super()`. And when it does not end, look at the tree.
#
# **Next**: notebook 13, where forward is a search and backward solves one equation. To go one floor down, to the operations that backward itself runs, see notebook 16.

# %% [markdown] lang="zh" pair="end" of="557d0842"
# 纵轴上写着 “m”：`unfold`、`mean` 和切片都经过你的方法，每一次都把单位传了下去。
#
# ## 4. 走哪扇门？
#
# | 你想要 | 就用 |
# |---|---|
# | 一个自带梯度的运算 | `torch.autograd.Function`（01 到 09） |
# | 一个 `torch.compile` 和导出都叫得出名字的运算 | `torch.library.custom_op`（11） |
# | 让自己的对象参与 torch 函数 | `__torch_function__` |
# | 一个记得住事情的张量 | 带 `__torch_function__` 的子类 |
# | 一个用别的方式存数据的张量 | 带 `__torch_dispatch__` 的包装器（16） |
# | 观察或改变一个块里的一切 | 模式（16） |
#
# **记住这些。** torch 来问，你要么回答，要么返回 `NotImplemented`。要转换就全部转换，不要只转换看得见的。在 Tensor 的子类里，通过 `super()` 继续往下走。停不下来的时候，去看那棵调用树。
#
# **接下来**：13 里，前向是一次搜索，反向只解一个方程。想往下走一层、看看反向传播自己做了哪些运算的，请看 16。

# %% [raw] lang="zh"
# "no unit" → "没有单位"
# "units:" → "单位："

# %%
# %exercises
