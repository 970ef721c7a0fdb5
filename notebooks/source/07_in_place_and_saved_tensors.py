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
#     course: "07"
#     title_en: In-place operations and saved tensors
#     title_zh: 原地操作与保存的张量
#     minutes: 60
# ---

# %% [markdown] lang="en" pair="intro"
# # 07 · In-place operations and saved tensors
#
# `backward` runs long after `forward`, on tensors that were kept in between. If somebody writes into them meanwhile, the gradient is wrong. PyTorch guards against this with a plain counter. This notebook shows what the counter sees, and what it does not.
#
# **After it you can**
#
# - say which operations keep their input, which their output, and which keep nothing;
# - read the error "modified by an inplace operation", and mend it without guessing;
# - write a Function that works in place, and declare it with `mark_dirty`;
# - leave `grad_output` alone, and explain whom it hurts if you do not;
# - spot a Function that never lets go of its memory, and one that returns a view.
#
# **You need** notebooks 01 to 04. **Time**: about 60 minutes.

# %% [markdown] lang="zh" pair="intro" of="7e9e848a"
# # 07 · 原地操作与保存的张量
#
# `backward` 在 `forward` 之后很久才运行，用的是中间保存下来的张量。如果这期间有人改写了它们，梯度就错了。PyTorch 靠一个朴素的计数器来防范。这一课就来看：这个计数器看得见什么，又看不见什么。
#
# **学完之后，你能够**
#
# - 说出哪些运算保存输入，哪些保存输出，哪些什么都不保存；
# - 读懂“modified by an inplace operation”这个报错，不靠瞎猜就能改好；
# - 写一个原地操作的 Function，并用 `mark_dirty` 声明；
# - 不去动 `grad_output`，并说清动了它会伤到谁；
# - 认出一直不释放内存的 Function，以及返回视图的 Function。
#
# **预备知识**：01 到 04。**用时**：约 60 分钟。

# %% tags=["setup"]
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="versions"
# ## 1. A counter on every tensor
#
# Each tensor has a version, `t._version`. Every operation in place adds one, unless it writes through `t.data`. When a tensor is saved for backward its version is noted; when it is taken out again, the two are compared.
#
# **Predict**: the exponential is its own derivative, and the sine's is the cosine. Which of the two nodes below keeps its *input*, and which its *output*? In the picture, click a node to see what it saved.

# %% [markdown] lang="zh" pair="versions" of="9073dc85"
# ## 1. 每个张量都有一个计数器
#
# 每个张量都带着版本号 `t._version`，每做一次原地操作就加一，只有绕道 `t.data` 的写入不算。张量保存下来时会记下版本号，取出来时再对一对。
#
# **先猜一猜**：指数函数的导数是它自己，正弦的导数是余弦。下图里这两个节点，哪个保存的是**输入**，哪个保存的是**输出**？在图中点一下节点，就能看到它保存了什么。

# %%
x = torch.tensor([0.3, -1.2, 1.8], dtype=torch.float64, requires_grad=True)
chain = (2 * x).sin().exp()
# %autograd_graph chain

# %% [markdown] lang="en" pair="keeps"
# `SinBackward0` keeps `self`, its input. `ExpBackward0` keeps `result`, its output. The multiplication by 2 keeps the 2. None of the three keeps more than its derivative needs.
#
# So here is a small program, and its error. **Predict** which line is to blame before you read the message.

# %% [markdown] lang="zh" pair="keeps" of="44ca256a"
# `SinBackward0` 保存的是 `self`，也就是输入；`ExpBackward0` 保存的是 `result`，也就是输出；乘以 2 的节点只保存了 2。这三个节点都没有保存导数用不到的东西。
#
# 下面是一小段程序和它的报错。读报错之前，**先猜一猜**是哪一行惹的祸。

# %% tags=["raises-exception"]
y = 3 * x
z = y**2
y += 1
total = (z + y).sum()
total.backward()

# %% [markdown] lang="en" pair="error"
# To blame is `y += 1`. Read it from the middle. *output 0 of Add…* names the operation that last wrote the tensor: the in-place addition. *is at version 1; expected version 0* says that it was changed once after it was saved. Here `y**2` keeps `y`, because the derivative is $2y$, and `y += 1` writes over it.
#
# Two ways to mend it. Move one line, so that the change comes *before* the tensor is saved; the program then computes something else. Or make a new tensor, `y = y + 1`, as the cell below does.

# %% [markdown] lang="zh" pair="error" of="fc00f408"
# 是 `y += 1` 惹的祸。从中间读起：*output 0 of Add…* 说的是张量现在是谁的输出，正是那次原地加法；*is at version 1; expected version 0* 说的是它在保存之后又被改了一次。这里 `y**2` 保存了 `y`，因为导数是 $2y$；而 `y += 1` 把它改写了。
#
# 改法有两种。一种是挪动一行，在张量被保存**之前**就改好它，不过这样算的就是另一个东西了；另一种是生成新的张量 `y = y + 1`，下面就是这种写法。

# %%
y = 3 * x
z = y**2
y = y + 1
total = (z + y).sum()
# %autograd_graph total

# %% [markdown] lang="en" pair="survive"
# ### A prediction: which survive?
#
# Eight little programs. Each is given `h`, computes `y` from it, and then changes `h` or `y` in place. After that comes `backward`. In which does it **still work**?
#
# **Predict** all eight from the derivatives: what does each keep, and what is changed?

# %% [markdown] lang="zh" pair="survive" of="6c99331c"
# ### 猜一猜：哪些能活下来？
#
# 有八段小程序。每一段都拿到 `h`，由它算出 `y`，再原地改动 `h` 或 `y`，最后调用 `backward`。哪几段**仍然能正常工作**？
#
# 请根据导数**先猜一猜**全部八段：每种运算保存了什么，改动的又是什么？

# %%
programs = {
    "exp, then y": lambda h: h.exp().add_(1),
    "exp, then h": lambda h: (h.exp(), h.add_(1))[0],
    "sin, then y": lambda h: h.sin().add_(1),
    "sin, then h": lambda h: (h.sin(), h.add_(1))[0],
    "3 * h, then h": lambda h: (3 * h, h.add_(1))[0],
    "h * h, then h": lambda h: (h * h, h.add_(1))[0],
    "relu, then y": lambda h: h.relu().add_(1),
    "h + h, then h": lambda h: (h + h, h.add_(1))[0],
}

# %%
for name, program in programs.items():
    y = program(1 * x)
    try:
        torch.autograd.grad(y.sum(), x)
        print(f"{name:14} works")
    except RuntimeError:
        print(f"{name:14} raises an error")

# %% [markdown] lang="en" pair="in-place"
# Four work: `exp` with `h` changed, `sin` with `y` changed, `3 * h` and `h + h`. `exp` and `relu` keep their output, `sin` and a product their inputs, a sum and a multiple keep no tensor. Only a change of what is kept does harm.
#
# ## 2. A Function that works in place
#
# To save memory, a Function may write its result over its input. It must say so with `ctx.mark_dirty(x)` and return that very tensor. Autograd then knows that `x` *is now the output* of this Function.
#
# **Predict**: `forward` below forgets `mark_dirty`. The numbers in `h` change all the same. What is the gradient of `h.sum()` with respect to `x`: $e^x$, or 1? Look at the graph: which node does `h` come from?

# %% [markdown] lang="zh" pair="in-place" of="c5bdd602"
# 有四段能工作：改 `h` 的 `exp`，改 `y` 的 `sin`，还有 `3 * h` 和 `h + h`。`exp` 和 `relu` 保存输出，`sin` 和乘积保存输入，和与倍数不保存张量。只有改动了保存下来的东西，才会出错。
#
# ## 2. 原地操作的 Function
#
# 为了省内存，Function 可以把结果直接写进输入里。这时它必须用 `ctx.mark_dirty(x)` 声明，并返回同一个张量。这样自动求导才知道：`x` **现在是**这个 Function 的输出。
#
# **先猜一猜**：下面的 `forward` 忘了 `mark_dirty`，`h` 里的数照样变了。那么 `h.sum()` 对 `x` 的梯度是 $e^x$ 还是 1？看看计算图：`h` 出自哪个节点？

# %% tags=["shown"]
# %%autograd_function
class UnmarkedExp(Function):
    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y

# %%
h = 1 * x
y = UnmarkedExp.apply(h)
# %autograd_graph h, y

# %% [markdown] lang="en" pair="leaf"
# `y` comes from `UnmarkedExpBackward`, and `h`, which holds the same numbers, still comes from `MulBackward0`. Whoever goes on with `h` gets the gradient 1, silently. PyTorch's `gradcheck` of `y` does not notice: the gradient through `y` is right. (`%gradcheck UnmarkedExp.apply(1 * x)` looks at the input too, and objects.)
#
# One more rule. A **leaf** that requires grad must not be changed in place while autograd records. It would become the output of a node, and no longer be a leaf. (Optimizers write under `no_grad`.) So in-place Functions are called on something computed, such as `1 * x` or `x.clone()`.
#
# ### Exercise `exp_in_place`
#
# The exponential in place, declared as it should be. Its `backward` multiplies, and does not call `exp` again. **Predict**: what is right to save, the old `x` or the new one?

# %% [markdown] lang="zh" pair="leaf" of="200597f5"
# `y` 出自 `UnmarkedExpBackward`，而装着同样数值的 `h` 仍然出自 `MulBackward0`。谁接着用 `h`，得到的梯度就是 1，而且不声不响。PyTorch 对 `y` 做 `gradcheck` 也发现不了：经过 `y` 的梯度没有错。（`%gradcheck UnmarkedExp.apply(1 * x)` 连输入也看，会判它错。）
#
# 还有一条规矩：只要自动求导在记录，需要梯度的**叶子张量**就不许原地修改：一改它就成了某个节点的输出，不再是叶子。（优化器是在 `no_grad` 下改参数的。）所以原地操作的 Function 要作用在算出来的张量上，例如 `1 * x` 或 `x.clone()`。
#
# ### 练习 `exp_in_place`
#
# 写一个原地的指数函数，并按规矩声明。它的 `backward` 只做乘法，不再调用 `exp`。**先猜一猜**：应该保存旧的 `x`，还是新的 `x`？

# %% exercise="exp_in_place"
# %%exercise exp_in_place
class ExpInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (y,) = ctx.saved_tensors
        return grad_output * y
        ### END SOLUTION

# %% [markdown] lang="en" pair="grad-output"
# The new one: it is the output $e^x$, which is the derivative.
#
# ## 3. `grad_output` is not yours
#
# It is tempting to save memory in `backward` as well: `grad_output *= s`. But the engine may hand the *same* tensor to several nodes.
#
# **Predict**: for `total = Greedy(w, 3) + w`, the gradient is $3 + 1 = 4$. What will `w.grad` be?

# %% [markdown] lang="zh" pair="grad-output" of="21eb3c2f"
# 保存新的：它就是输出 $e^x$，也就是导数。
#
# ## 3. `grad_output` 不是你的
#
# 在 `backward` 里也想省点内存：`grad_output *= s`。可是引擎可能把**同一个**张量交给好几个节点。
#
# **先猜一猜**：`total = Greedy(w, 3) + w` 的梯度应当是 $3 + 1 = 4$。`w.grad` 会是多少？

# %%
# %%autograd_function
class Greedy(Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        grad_output *= ctx.s
        return grad_output, None

# %%
w = torch.tensor([2.0], requires_grad=True)
total = Greedy.apply(w, 3.0) + w
nbautograd.backward(total)

# %% [markdown] lang="en" pair="greedy"
# 6. The edge to the branch on the right shows `|g| 1`: what set out. The node of the sum sends *one* tensor both ways. `Greedy` triples it on its way to `w`, and what set out as 1 arrives as 3. So 3 + 3.
#
# And a plain gradient check of `Greedy` alone? `torch.autograd.gradcheck` is content: each single product is right. `%gradcheck` also checks that `grad_output` is unchanged.
#
# ### Exercise `scale_by`
#
# Repair it. `s` is a Python number.

# %% [markdown] lang="zh" pair="greedy" of="d11d0dee"
# 是 6。右边那条支路的边上写着 `|g| 1`，出发时确实是 1。可是加法节点把**同一个**张量送往两边，`Greedy` 在送往 `w` 的路上把它乘了三倍，于是出发时的 1 到达时成了 3：3 + 3。
#
# 那单独对 `Greedy` 做普通的梯度检查呢？`torch.autograd.gradcheck` 很满意：每一次单独的乘积都是对的。`%gradcheck` 还会检查 `grad_output` 有没有变。
#
# ### 练习 `scale_by`
#
# 把它修好。`s` 是 Python 数。

# %% exercise="scale_by"
# %%exercise scale_by
class ScaleBy(Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        return grad_output * ctx.s, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="leak"
# ## 4. A Function that never lets go
#
# An output knows its node (`grad_fn`), and the node *is* `ctx`. If `ctx` holds the output as an attribute, the two hold each other. When the last variable is gone, the memory is not. It waits for Python's garbage collector, which may come too late on a GPU.
#
# `save_for_backward` knows about outputs and makes no such reference cycle.
#
# **Predict** what the report has to say besides *right*.

# %% [markdown] lang="zh" pair="leak" of="7ada1044"
# ## 4. 不肯放手的 Function
#
# 输出认得自己的节点（`grad_fn`），而这个节点**就是** `ctx`。如果 `ctx` 又把输出当属性存着，两者就互相抓住不放。最后一个变量消失了，内存却还在，要等 Python 的垃圾回收；在 GPU 上，显存可能等不到那一刻就满了。
#
# `save_for_backward` 认得输出，不会形成这样的循环引用。
#
# **先猜一猜**：除了“正确”，报告还会说什么？

# %% tags=["shown"]
# %%autograd_function --inputs x
class LeakyTanh(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (1 - ctx.y**2)

# %% [markdown] lang="en" pair="tanh-task"
# That `ctx.y` holds the output, and what to write instead.
#
# ### Exercise `tanh`
#
# Write it without the reference cycle, so that it can be differentiated twice. The check looks at memory after the last reference is gone.

# %% [markdown] lang="zh" pair="tanh-task" of="044c4fed"
# 它还说，`ctx.y` 存着输出，并告诉你该怎么写。
#
# ### 练习 `tanh`
#
# 写一个没有循环引用的版本，并且要能求二阶导数。检查时会看：最后一个引用消失之后，内存是否随之释放。

# %% exercise="tanh"
# %%exercise tanh
class Tanh(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        y = x.tanh()
        ctx.save_for_backward(y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y**2)
        ### END SOLUTION

# %% [markdown] lang="en" pair="view"
# ## 5. A view in, a view out
#
# `x.view(1, -1)` copies nothing, nor does `x[:n]`: they are **views** of `x`. If `forward` returns one, the output shares its memory with the input. As long as nobody writes into either, all is well.
#
# **Predict**: what happens in the last line?

# %% [markdown] lang="zh" pair="view" of="1e1d2f39"
# ## 5. 进来是视图，出去还是视图
#
# `x.view(1, -1)` 和 `x[:n]` 都不复制任何东西，它们是 `x` 的**视图**。如果 `forward` 直接返回视图，输出就和输入共用一块内存。只要没人写它们，就相安无事。
#
# **先猜一猜**：下面最后一行会怎样？

# %% tags=["raises-exception"]
class AsRow(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.size = x.size()
        return x.view(1, -1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.reshape(ctx.size)


row = AsRow.apply(2 * x)
row.mul_(10)

# %% [markdown] lang="en" pair="view-why"
# It is forbidden, and the message is unusually frank about the reason. By its rules for views, autograd would now have to override your `backward`. Your caller did nothing wrong; the Function handed out something that is not its own.
#
# ### Exercise `head`
#
# Return the first `n` rows. A caller may change them in place, without an error and without touching the input. **Predict**: does `.contiguous()` make a copy of the first rows of a contiguous tensor?

# %% [markdown] lang="zh" pair="view-why" of="980047dc"
# 这是不允许的，而报错难得把原因说得这么直白：按照视图的规则，自动求导这时只能绕过你的 `backward`。调用者没做错什么，是 Function 把不属于自己的东西交了出去。
#
# ### 练习 `head`
#
# 返回前 `n` 行，让调用者可以原地修改它：不报错，也不会碰到输入。**先猜一猜**：对连续张量的前几行调用 `.contiguous()`，会复制吗？

# %% exercise="head"
# %%exercise head
class Head(Function):
    @staticmethod
    def forward(ctx, x, n):
        ### BEGIN SOLUTION
        ctx.shape = x.shape
        ctx.n = n
        return x[:n].clone()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        grad_x = grad_output.new_zeros(ctx.shape)
        grad_x[: ctx.n] = grad_output
        return grad_x, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="end"
# No: `.contiguous()` copies nothing where all is in order already. `.clone()` does.
#
# ## What you take along
#
# - The version counter sees what happens to *saved* tensors between forward and backward. It does not see what goes through `.data`, nor that `mark_dirty` is missing, nor what you do to `grad_output`.
# - In place means: change it, mark it, return it, and never a leaf that requires grad, while autograd records.
# - Inputs and outputs go through `save_for_backward`. An output as an attribute of `ctx` is a reference cycle.
# - Return what is yours. A view of the input is not.

# %% [markdown] lang="zh" pair="end" of="bf3257a0"
# 不会：本来就连续，`.contiguous()` 便什么也不复制；`.clone()` 才会复制。
#
# ## 带走这几点
#
# - 版本计数器看得见**保存的**张量在前向与反向之间发生了什么；看不见绕道 `.data` 的写入和漏掉的 `mark_dirty`，也看不见你对 `grad_output` 做了什么。
# - 原地操作要做到：改它、标记它、返回它，而且自动求导在记录时，绝不用在需要梯度的叶子张量上。
# - 输入和输出都走 `save_for_backward`。把输出当作 `ctx` 的属性，就成了循环引用。
# - 只返回属于自己的东西。输入的视图不属于你。

# %% [raw] lang="zh"
# {name:14} works → {name:14} 可以
# {name:14} raises an error → {name:14} 报错

# %%
# %exercises
