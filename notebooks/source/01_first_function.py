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
#     course: "01"
#     title_en: Your first Function; the tape
#     title_zh: 第一个 Function；计算的磁带
#     minutes: 85
# ---

# %% [markdown] lang="en" pair="intro"
# # 01 · Your first Function; the tape
#
# PyTorch knows the derivatives of its own operations and of what is composed of them. For the rest you write a `torch.autograd.Function`. Its `forward` computes, its `backward` says how a gradient gets home.
#
# **After it you can**
#
# - read the graph that PyTorch keeps while you compute, and carry a gradient through it by hand;
# - write `forward` and `backward`, pass tensors between them through `ctx`, and call the pair with `apply`;
# - say when each of the two runs, and what `ctx` is;
# - write the engine itself, and let it train a small network;
# - tell when you need a Function, and when you do not.
#
# **You need** Python, tensors, partial derivatives and the chain rule. **Time**: about 85 minutes, with a pause after section 6. Run the cells from top to bottom with **Shift+Enter**. Wherever it says **Predict**, decide first; a wrong guess teaches more than a right one.
#
# In an exercise, replace `...  # your code here` and run the cell. It says below what is right and what is not yet. Add `--hints where` to its first line to be told more. `%exercises NAME` on top of a later cell stops that cell while the answer is missing. `!nbautograd explain leaf tensor` says what a term means.

# %% [markdown] lang="zh" pair="intro" of="b13a8e96"
# # 01 · 第一个 Function；计算的磁带
#
# PyTorch 知道自家每种运算的导数，由它们组合成的也知道。其余的就要由你写一个 `torch.autograd.Function`：`forward` 负责计算，`backward` 说明梯度怎样回家。
#
# **学完之后，你能够**
#
# - 读懂 PyTorch 边算边记下的计算图，并亲手把梯度沿着它传回去；
# - 写出 `forward` 和 `backward`，用 `ctx` 在两者之间传递张量，用 `apply` 调用它们；
# - 说出这两个方法各在什么时候运行，以及 `ctx` 究竟是什么；
# - 写出引擎本身，并用它训练一个小网络；
# - 判断什么时候需要自定义 Function，什么时候不需要。
#
# **预备知识**：Python、张量、偏导数和链式法则。**用时**：约 85 分钟，可以在第 6 节之后歇一歇。用 **Shift+Enter** 从上到下依次运行。看到**先猜一猜**，请先拿定主意：猜错比猜对学到的更多。
#
# 做练习时，把 `...  # 在此作答` 换成你的代码，再运行这一格；下面会说哪些对了，哪些还不对。在第一行加上 `--hints where`，提示会更多。后面有些格子顶上写着 `%exercises 名字`：那道练习还没有作答时，这一格就不往下运行。遇到不懂的术语，可以运行 `!nbautograd explain 叶子张量`。

# %% tags=["setup"]
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="tape"
# ## 1. The tape
#
# While you compute, PyTorch writes down one **node** per operation, and one for each tensor of yours that requires grad. From each operation arrows lead back to the nodes that its inputs came from. This is the graph, or the tape, since it is played backwards later.
#
# Take $f(x_1, x_2) = x_1 x_2 + \sin x_1$, in small steps:
#
# | step | |
# |---|---|
# | $w_1 = x_1$ | |
# | $w_2 = x_2$ | |
# | $w_3 = w_1 w_2$ | the product |
# | $w_4 = \sin w_1$ | the sine |
# | $w_5 = w_3 + w_4$ | the result |
#
# **Predict.** How many nodes will the graph have, and which one do two arrows point at?

# %% [markdown] lang="zh" pair="tape" of="a7fa8215"
# ## 1. 一盘磁带
#
# 你一边计算，PyTorch 一边记录：每次运算记一个**节点**，你的每个需要梯度的张量也有一个；从每次运算出发，有箭头指回它的输入所来自的节点。这就是计算图；因为之后要倒着播放，也有人叫它“磁带”（tape）。
#
# 以 $f(x_1, x_2) = x_1 x_2 + \sin x_1$ 为例，拆成几小步：
#
# | 步骤 | |
# |---|---|
# | $w_1 = x_1$ | |
# | $w_2 = x_2$ | |
# | $w_3 = w_1 w_2$ | 乘积 |
# | $w_4 = \sin w_1$ | 正弦 |
# | $w_5 = w_3 + w_4$ | 结果 |
#
# **先猜一猜。** 计算图里会有几个节点？哪一个节点有两个箭头指向它？

# %%
w1 = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
w2 = torch.tensor(4.2, dtype=torch.float64, requires_grad=True)
w3 = w1 * w2
w4 = w1.sin()
w5 = w3 + w4
# %autograd_graph w5

# %% [markdown] lang="en" pair="reverse"
# Five: an addition, a product, a sine, and the two **leaves** where your own tensors are. Both the product and the sine point at `w1`.
#
# ## 2. Playing it backwards
#
# **Reverse accumulation** asks one question at every node: how fast does the *final result* change with the value here? That number is written with a bar,
#
# $$\bar w_i = \frac{\partial f}{\partial w_i} .$$
#
# At the end it is $\bar w_5 = \partial f / \partial f = 1$: the seed. From there one rule leads all the way back. A node's bar is the bar of the node after it, times the local derivative. **Where several paths arrive, their contributions are added**.
#
# For a product $w_3 = w_1 w_2$, the local derivative with respect to $w_1$ is $w_2$, and the other way round.
#
# ### Exercise `reverse_by_hand`
#
# Write `bars(w1, w2)`: five numbers $\bar w_1 … \bar w_5$, by hand, without autograd. **Predict**: which term is easiest to forget?

# %% [markdown] lang="zh" pair="reverse" of="d5d25276"
# 一共五个：一个加法、一个乘法、一个正弦，还有两个**叶子张量**，也就是你自己的张量所在之处。乘法和正弦都指向 `w1`。
#
# ## 2. 倒着播放
#
# **反向累积**（reverse accumulation）在每个节点上只问一件事：*最终结果*随这里的值变化得多快？这个数用加横线的字母表示：
#
# $$\bar w_i = \frac{\partial f}{\partial w_i} .$$
#
# 末端是 $\bar w_5 = \partial f / \partial f = 1$，这是起点。从这里出发，只用一条规则就能一路走回去：一个节点的 $\bar w$，等于它后面那个节点的 $\bar w$ 乘以局部导数；**如果有几条路汇到一处，就把各路的贡献加起来**。
#
# 对乘积 $w_3 = w_1 w_2$ 来说，对 $w_1$ 的局部导数是 $w_2$，反之亦然。
#
# ### 练习 `reverse_by_hand`
#
# 写一个 `bars(w1, w2)`，亲手算出五个数 $\bar w_1 … \bar w_5$，不用自动求导。**先猜一猜**：哪一项最容易漏掉？

# %% exercise="reverse_by_hand"
# %%exercise reverse_by_hand
import math


def bars(w1, w2):
    # return (bar1, bar2, bar3, bar4, bar5)
    ### BEGIN SOLUTION
    bar5 = 1.0
    bar4 = bar5
    bar3 = bar5
    bar2 = bar3 * w1
    bar1 = bar3 * w2 + bar4 * math.cos(w1)
    return bar1, bar2, bar3, bar4, bar5
    ### END SOLUTION

# %% [markdown] lang="en" pair="see-bars"
# One of the two in $\bar w_1$: two paths arrive there. The blog post that this graph comes from has only one.
#
# The graph can show the bars. `nbautograd.backward` sends a gradient back through it, as `w5.backward()` would, and writes on each arrow the size of its gradient. Your own tensors are left as they were.
#
# **Predict** the numbers on the two arrows into `w1`, for $w_1 = 0.5$ and $w_2 = 4.2$.

# %% [markdown] lang="zh" pair="see-bars" of="1fdbadb2"
# 是 $\bar w_1$ 的两项之一：有两条路汇到那里，而这张图所出自的那篇博客只写了一条。
#
# 计算图可以把这些数显示出来。`nbautograd.backward` 会像 `w5.backward()` 那样把梯度传回去，并在每个箭头上写出经过它的梯度有多大；你自己的张量不会被改动。
#
# **先猜一猜**：$w_1 = 0.5$、$w_2 = 4.2$ 时，指向 `w1` 的两个箭头上各是什么数？

# %%
nbautograd.backward(w5)

# %% [markdown] lang="en" pair="own-node"
# 4.2 from the product and $\cos 0.5 \approx 0.88$ from the sine; their sum is the gradient of `w1`.
#
# ## 3. A node of your own
#
# A Function is a pair of static methods.
#
# - `forward(ctx, *args)` gets the arguments and returns the result. Inside it nothing is recorded.
# - `backward(ctx, grad_output)` gets the bar of the result, its gradient. It returns this call's contribution to the bar of each argument; the engine adds. **One value per argument of `forward`, in the same order**.
# - `ctx` belongs to one call. What `forward` leaves there, `backward` finds: `ctx.save_for_backward(...)` and `ctx.saved_tensors`.
#
# You call neither. You call `Dummy.apply(x)`, and later `loss.backward()`.
#
# Here is one that does nothing worth mentioning. The line on top records what it does.
#
# **Predict.** How many nodes of yours will the graph have, and where does the product stand?

# %% [markdown] lang="zh" pair="own-node" of="4c801c91"
# 从乘积来的是 4.2，从正弦来的是 $\cos 0.5 \approx 0.88$；两者之和就是 `w1` 的梯度。
#
# ## 3. 你自己的节点
#
# 一个 Function 就是一对静态方法。
#
# - `forward(ctx, *args)` 接收参数，返回结果。在它里面发生的运算不会被记录。
# - `backward(ctx, grad_output)` 接收结果的 $\bar w$（上游梯度），返回这次调用对各个参数的 $\bar w$ 的贡献，由引擎来累加。**`forward` 有几个参数就返回几个值，顺序相同**。
# - `ctx` 属于某一次调用。`forward` 放进去的，`backward` 能取出来：`ctx.save_for_backward(...)` 和 `ctx.saved_tensors`。
#
# 这两个方法都不由你来调用。你调用的是 `Dummy.apply(x)`，以及之后的 `loss.backward()`。
#
# 下面这个 Function 没做什么值得一提的事。最上面那一行会记录它的一举一动。
#
# **先猜一猜。** 计算图里会有几个你自己的节点？乘法站在什么位置？

# %%
# %%autograd_function
class Dummy(Function):
    @staticmethod
    def forward(ctx, x):
        return x + 0

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output

# %%
y = Dummy.apply(w1)
z = Dummy.apply(3 * y)
# %autograd_graph z

# %% [markdown] lang="en" pair="order-task"
# Two, one for each call, with the product between them. In the picture your own nodes are the blue boxes. PyTorch calls each of them `DummyBackward`, as `z.grad_fn` would tell you.
#
# Now play this program through, *before* you run the next cell:
#
# ```python
# y = Dummy.apply(w1)
# z = Dummy.apply(3 * y)
# loss = z * z
# loss.backward()
# ```
#
# Six things happen across the two calls: each one's node is created, its `forward` runs, and its `backward` runs. **Predict** their order. A hint for the nodes: `forward` receives `ctx` as its first argument.

# %% [markdown] lang="zh" pair="order-task" of="fb0b7ed5"
# 两个，每次调用一个，乘法夹在中间。图里你自己的节点画成蓝框；PyTorch 给它们取的名字是 `DummyBackward`，看一下 `z.grad_fn` 就知道。
#
# 在脑子里把这段程序跑一遍，*先别*运行下一个单元格：
#
# ```python
# y = Dummy.apply(w1)
# z = Dummy.apply(3 * y)
# loss = z * z
# loss.backward()
# ```
#
# 两次调用一共发生六件事：各自的节点建立，各自的 `forward` 运行，各自的 `backward` 运行。**先猜一猜**它们的先后。关于节点有一个提示：`forward` 的第一个参数就是 `ctx`。

# %% [markdown] lang="en" pair="order-see"
# `%autograd_calls` lists what ran, oldest first, with the time of each.

# %% [markdown] lang="zh" pair="order-see" of="6ddf203f"
# `%autograd_calls` 按先后列出运行过的方法，以及各自的时间。

# %%
loss = z * z
loss.backward()
# %autograd_calls Dummy

# %% [markdown] lang="en" pair="multiply"
# Node, `forward`, node, `forward`; then `backward` of the second call and `backward` of the first. A node can send its bar on only when all of it has arrived, so `backward` runs in reverse order. And the node comes before `forward`, because **`ctx` is the node**. The object that `forward` gets as `ctx` is in the graph.
#
# ## 4. A product of your own
#
# $f(a, b) = a\,b$, element by element. With $J$ for the final result, `backward` gets $\partial J/\partial f$ and answers
#
# $$\frac{\partial J}{\partial a} = \frac{\partial J}{\partial f}\; b , \qquad \frac{\partial J}{\partial b} = \frac{\partial J}{\partial f}\; a .$$
#
# ### Exercise `multiply`
#
# Write the class, and below it the one line that makes a callable `multiply` of it. **Predict**: what do you need in `backward` that only `forward` has seen?
#
# From here on you write the derivative yourself: no method asks autograd for it.

# %% [markdown] lang="zh" pair="multiply" of="f6e030bb"
# 节点、`forward`，节点、`forward`；然后是第二次调用的 `backward`，最后是第一次的。一个节点要等 $\bar w$ 到齐了才往回传，所以 `backward` 的先后正好相反。节点之所以先于 `forward` 出现，是因为 **`ctx` 就是节点**：`forward` 收到的那个 `ctx`，正是站在计算图里的那个对象。
#
# ## 4. 自己写一个乘积
#
# 逐元素的 $f(a, b) = a\,b$。用 $J$ 表示最终结果，`backward` 收到 $\partial J/\partial f$，应当回答
#
# $$\frac{\partial J}{\partial a} = \frac{\partial J}{\partial f}\; b , \qquad \frac{\partial J}{\partial b} = \frac{\partial J}{\partial f}\; a .$$
#
# ### 练习 `multiply`
#
# 写出这个类，再在下面用一行代码得到可以直接调用的 `multiply`。**先猜一猜**：`backward` 需要哪些只有 `forward` 见过的东西？
#
# 从这里开始，导数都由你自己来写：两个方法都不去问自动求导。

# %% exercise="multiply"
# %%exercise multiply
class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ### BEGIN SOLUTION
        ctx.save_for_backward(a, b)
        return a * b
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a
        ### END SOLUTION


# multiply = what a caller uses
### BEGIN SOLUTION
multiply = Multiply.apply
### END SOLUTION

# %% [markdown] lang="en" pair="compare"
# Both factors: the gradient of each is made of the other.
#
# ## 5. Beside the native product
#
# `%autograd_compare` puts two calls side by side: values, gradients, graphs, bytes kept, time.
#
# **Predict.** Will the two graphs have the same shape? Which of the two is faster?

# %% [markdown] lang="zh" pair="compare" of="7fb13f84"
# 需要两个因子：每一个的梯度都要用到另一个。
#
# ## 5. 与原生的乘积并排
#
# `%autograd_compare` 把两个调用放在一起比：数值、梯度、计算图、保存的字节数、时间。
#
# **先猜一猜。** 两张计算图的样子一样吗？哪一个更快？

# %%
# %exercises multiply
a = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
b = torch.tensor([4.0, 5.0, -6.0], dtype=torch.float64, requires_grad=True)
# %autograd_compare multiply(a, b) a * b --hints what

# %% [markdown] lang="en" pair="same-task"
# The same shape: your `MultiplyBackward` stands where `MulBackward0` stands. Yours is slower, because every call goes through Python. A Function is not made for speed in small operations.
#
# Three pairs, a Function on the left and native code on the right. **Predict**: do the two graphs have the same shape, names aside?
#
# | | the Function | native |
# |---|---|---|
# | A | `multiply(a, b)` | `a * b` |
# | B | `multiply(a, a)` | `a ** 2` |
# | C | one Function whose `forward` returns `a * b + b` | `a * b + b` |

# %% [markdown] lang="zh" pair="same-task" of="bb304691"
# 样子一样：你的 `MultiplyBackward` 站在 `MulBackward0` 的位置上。你的要慢一些，因为每次调用都要经过 Python。对很小的运算来说，自定义 Function 并不是为了快。
#
# 下面三组，左边用 Function，右边用原生代码。**先猜一猜**：不管节点叫什么名字，两边的计算图样子一样吗？
#
# | | 用 Function | 原生 |
# |---|---|---|
# | A | `multiply(a, b)` | `a * b` |
# | B | `multiply(a, a)` | `a ** 2` |
# | C | 一个 Function，`forward` 返回 `a * b + b` | `a * b + b` |

# %%
# %exercises multiply
class ProductAndSum(Function):  # no backward: only its graph is looked at
    @staticmethod
    def forward(ctx, a, b):
        return a * b + b


pairs = {
    "A": (multiply(a, b), a * b),
    "B": (multiply(a, a), a**2),
    "C": (ProductAndSum.apply(a, b), a * b + b),
}
for name, (own, native) in pairs.items():
    for who, y in (("Function", own), ("native", native)):
        print(name, f"{who:8}", "arrows to", [type(node).__name__ for node, _ in y.grad_fn.next_functions])

# %% [markdown] lang="en" pair="same-see"
# In A both graphs have the same shape; in B and C they differ. In B the native side is odd: one arrow leaves a power, although a square has two equal factors. What happens inside your `forward`, as in C, leaves no nodes at all.

# %% [markdown] lang="zh" pair="same-see" of="b431ae7d"
# A 组样子一样，B、C 两组不一样。B 组里出人意料的是原生的写法：平方虽有两个相同的因子，从乘方节点出发的箭头却只有一个。至于 C 组，你的 `forward` 里面发生的事不会留下任何节点。

# %% [markdown] lang="en" pair="exp"
# ## 6. Keep the output
#
# For $y = e^x$ the derivative is $e^x$ again, which is $y$. So there is no need to keep $x$ and compute the exponential a second time: keep the output. An output may go through `save_for_backward` just as an input may.
#
# Never put it on `ctx` yourself (`ctx.y = y`). The output knows its node, the node is `ctx`, and `ctx` would know the output. Such a circle keeps its memory. `save_for_backward` knows how to avoid that.
#
# ### Exercise `exp`
#
# Write `Exp`. Its `backward` multiplies; it does not call `exp`. The checks look at what is saved.

# %% [markdown] lang="zh" pair="exp" of="1009e2cd"
# ## 6. 保存输出
#
# $y = e^x$ 的导数还是 $e^x$，也就是 $y$ 本身。所以不必保存 $x$、再算一遍指数，保存输出就行。`save_for_backward` 既能保存输入，也能保存输出。
#
# 但不要自己把它挂到 `ctx` 上（`ctx.y = y`）。输出认得它的节点，节点就是 `ctx`，而 `ctx` 又认得输出：绕成一圈，内存就不放手了。`save_for_backward` 懂得避开这个圈。
#
# ### 练习 `exp`
#
# 写出 `Exp`。它的 `backward` 只做乘法，不再调用 `exp`。检查会看你保存了什么。

# %% exercise="exp"
# %%exercise exp
class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        y = x.exp()
        ctx.save_for_backward(y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (y,) = ctx.saved_tensors
        return grad_output * y
        ### END SOLUTION

# %% [markdown] lang="en" pair="engine"
# ## 7. The engine in twenty lines
#
# What you did by hand in section 2, a program can do for any graph. A value remembers which values it was computed from, each with the local derivative. That is the whole tape; the operations below write it while they compute. What is missing is `backward`, which plays it.
#
# Two things make it right:
#
# - **A node waits** until everything has arrived in it. Its turn comes after the turns of all nodes that were computed from it.
# - **What arrives is added** to what is there.
#
# **Predict.** Is it enough to go level by level, first the result, then its parents, then theirs? Draw $u + \sin u$ with $u = w_1 w_2$ and try.
#
# ### Exercise `engine`
#
# Write `backward`. Afterwards `v.grad` holds the bar of every value `v` that the result came from, and of the result itself. Each `grad` was 0.0 before. The checks also square a number 14 times in a row: 14 nodes, and 16384 paths from end to start. Go through nodes, not through paths; recursion will do.

# %% [markdown] lang="zh" pair="engine" of="4308d128"
# ## 7. 二十行写出一个引擎
#
# 第 2 节里你亲手做的事，程序可以对任何计算图去做。每个值都记住自己是由哪些值算出来的，并附上对它们的局部导数：整盘磁带就是这些，下面的运算一边计算一边就写好了。还缺一个 `backward`，负责把它倒着播放。
#
# 要做对，靠两条：
#
# - **节点要等**：该到的都到齐了，才轮到它往回传。也就是说，凡是由它算出来的节点，都要排在它前面。
# - **到达的要累加**，加到已有的数上。
#
# **先猜一猜。** 一层一层地走，先结果，再它的上一层，再上上一层，这样行吗？画出 $u + \sin u$（其中 $u = w_1 w_2$）试一试。
#
# ### 练习 `engine`
#
# 写出 `backward`。运行之后，结果本身以及参与算出结果的每个值 `v`，其 `v.grad` 都是它的 $\bar w$；在此之前，所有的 `grad` 都是 0.0。检查还会把一个数连续平方 14 次：只有 14 个节点，从末端到起点却有 16384 条路。请逐个走节点，不要逐条走路径；用递归就行。

# %% exercise="engine"
# %%exercise engine
import math


class Value:
    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents = data, 0.0, parents

    def __add__(self, other):
        return Value(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        return Value(self.data * other.data, ((self, other.data), (other, self.data)))

    def sin(self):
        return Value(math.sin(self.data), ((self, math.cos(self.data)),))

    def backward(self):
        # self.parents: pairs of a value and the local derivative towards it
        ### BEGIN SOLUTION
        order, seen = [], set()

        def visit(value):
            if value not in seen:
                seen.add(value)
                for parent, _ in value.parents:
                    visit(parent)
                order.append(value)

        visit(self)
        self.grad = 1.0
        for value in reversed(order):
            for parent, local in value.parents:
                parent.grad += value.grad * local
        ### END SOLUTION

# %% [markdown] lang="en" pair="engine-learns"
# No: level by level, $u$ in $u + \sin u$ would be sent on before the contribution of $\sin u$ has arrived.
#
# That is an engine. PyTorch's is written in C++, has tensors instead of numbers and a thread for each GPU. The two rules are the same.
#
# It is enough to learn with. Below, a network of six sines, 18 weights, is fitted to 24 points of a curve, by your `backward` alone. Next to it is the same network with one symbol changed. A weight keeps what arrived **last**, as with `=` instead of `+=` in `backward`. Every weight is used at all 24 points, so 24 contributions arrive in it, and 23 are lost.
#
# **Predict.** Will the second one learn nothing, learn slowly, or learn something else?

# %% [markdown] lang="zh" pair="engine-learns" of="e7433374"
# 不行：一层一层地走，$u + \sin u$ 里的 $u$ 还没等到 $\sin u$ 的那一份就往回传了。
#
# 这就是一个引擎。PyTorch 的引擎用 C++ 写成，存的是张量而不是数，并为每个 GPU 开一个线程；但那两条规则是一样的。
#
# 有它就能学习了。下面用六个正弦搭一个网络，共 18 个权重，去拟合曲线上的 24 个点，全靠你写的 `backward`。旁边是同一个网络，好像只改了一个符号：每个权重只留下**最后**到达的那一份，就好像 `backward` 里写的是 `=` 而不是 `+=`。每个权重在 24 个点上都用到，会有 24 份贡献到达，于是丢了 23 份。
#
# **先猜一猜。** 后者会什么也学不到、学得慢，还是学成别的样子？

# %%
import random

import matplotlib.pyplot as plt


class Forgetful(Value):
    """A value whose grad keeps what came last: adding to it replaces what was there."""

    @property
    def grad(self):
        return self.__dict__.get("last", 0.0)

    @grad.setter
    def grad(self, total):
        self.last = total - self.grad


def network(weights, x):
    y = Value(0.0)
    for k in range(0, len(weights), 3):
        y = y + weights[k] * (weights[k + 1] * x + weights[k + 2]).sin()
    return y


def train(kind, steps=120, rate=0.01):
    draw = random.Random(1)
    weights, losses = [kind(draw.uniform(-1.5, 1.5)) for _ in range(18)], []
    for _ in range(steps):
        loss = Value(0.0)
        for x, target in points:
            miss = network(weights, Value(x)) + Value(-target)
            loss = loss + miss * miss
        loss.backward()
        losses.append(loss.data / len(points))
        weights = [kind(w.data - rate * w.grad) for w in weights]
    return weights, losses


points = [(x, math.sin(2 * x) + 0.5 * x) for x in (k / 6 - 2 for k in range(24))]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for kind, label in ((Value, "+="), (Forgetful, "=")):
    weights, losses = train(kind)
    left.semilogy(losses, label=label)
    right.plot([x for x, _ in points], [network(weights, Value(x)).data for x, _ in points], label=label)
    print(f"{label:>2}  loss {losses[0]:.3f} -> {losses[-1]:.3f}")
right.plot(*zip(*points, strict=True), "k.", label="points")
left.set(xlabel="step", ylabel="loss")
right.legend()
plt.show()

# %% [markdown] lang="en" pair="when"
# It learns something else: the lost contributions were the other points' votes. One symbol, and no error anywhere. This is what a wrong gradient looks like, and much of this course is about noticing.
#
# ## 8. When to write a Function, and when not
#
# | write one, if | because |
# |---|---|
# | an operation has no useful derivative (rounding, a threshold) | you decide what its gradient shall be: notebook 06 |
# | the computation leaves PyTorch (NumPy, SciPy, your own C++) | autograd sees nothing there: notebook 11 |
# | several operations together need fewer saved tensors or a more stable derivative than one by one | you choose what is kept: notebooks 05 and 14 |
#
# | do not, if | instead |
# |---|---|
# | the operations exist in PyTorch | use them; their gradients are there |
# | you want to keep parameters or other state | an `nn.Module`: notebook 10 |
# | you want to look at a gradient, scale or clip it on its way | a hook, `tensor.register_hook` |
#
# **What to keep.** PyTorch records nodes; a Function adds one of its own. `backward` gets the bar of the output and returns a contribution to the bar of each input. `ctx` is the node. Call `apply`.
#
# **Next**: notebook 02, where the inputs are matrices.

# %% [markdown] lang="zh" pair="when" of="3405f15c"
# 学成了别的样子：丢掉的那些贡献，正是其余各点的意见。只差一个符号，哪里都不报错。错误的梯度就是这副模样，这门课有一大半是在教你怎样看出来。
#
# ## 8. 什么时候该写 Function，什么时候不该
#
# | 适合写 | 原因 |
# |---|---|
# | 运算没有可用的导数（取整、阈值） | 梯度取什么由你规定：第 06 课 |
# | 计算离开了 PyTorch（NumPy、SciPy、自己的 C++） | autograd 在那里什么也看不见：第 11 课 |
# | 几个运算合在一起，要保存的张量更少，或导数更稳定 | 保存什么由你决定：第 05、14 课 |
#
# | 不必写 | 换成 |
# |---|---|
# | PyTorch 已有这些运算 | 直接用，梯度是现成的 |
# | 想保存参数或别的状态 | `nn.Module`：第 10 课 |
# | 想在半路上查看、缩放或截断梯度 | 钩子：`tensor.register_hook` |
#
# **记住这些。** PyTorch 记录节点，一个 Function 就加进一个自己的节点。`backward` 收到输出的 $\bar w$，返回对每个输入的 $\bar w$ 的贡献。`ctx` 就是节点。要用 `apply` 来调用。
#
# **下一课**：02，输入换成矩阵。

# %% [raw] lang="zh"
# "arrows to" → "箭头指向"
# # no backward: only its graph is looked at → # 没有 backward：只看它的计算图
#   loss {losses[0] →   损失 {losses[0]
# A value whose grad keeps what came last: adding to it replaces what was there. → 一个值，grad 只留最后来的：再加上去就顶掉原来的。

# %%
# %exercises
