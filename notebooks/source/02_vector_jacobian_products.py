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
#     course: "02"
#     title_en: Vector-Jacobian products and the linear layer
#     title_zh: 向量-雅可比积与线性层
#     minutes: 90
# ---

# %% [markdown] lang="en" pair="intro"
# # 02 · Vector–Jacobian products and the linear layer
#
# `backward` never sees a Jacobian. One tensor arrives, `grad_output`; `backward` multiplies it by the Jacobian without building it, and hands the product on. This notebook is about that product, and about the layer that nearly every network is made of.
#
# **After it you can**
#
# - say what `grad_output` is and what `backward` returns, with shapes;
# - derive the backward of a matrix product from its indices, and check it by shapes;
# - handle an optional bias and `ctx.needs_input_grad`;
# - undo broadcasting: sum over the axes along which forward repeated;
# - name tests that a wrong backward passes by luck: square matrices, sizes without a 1, an upstream gradient of ones;
# - train a network whose only layers are yours.
#
# **You need** notebook 01. **Time**: about 90 minutes. Wherever it says **Predict**, decide before you run the cell.

# %% [markdown] lang="zh" pair="intro" of="d69492d3"
# # 02 · 向量-雅可比积与线性层
#
# `backward` 从来见不到雅可比矩阵。到它手里的只有一个张量 `grad_output`；它算出这个张量与雅可比矩阵的乘积，再交给上一级——矩阵本身却不必造出来。这一课讲的就是这个乘积，以及几乎每个网络都离不开的线性层。
#
# **学完之后，你能够**
#
# - 说清楚 `grad_output` 是什么、`backward` 该返回什么，以及它们各自的形状；
# - 从下标出发推导矩阵乘积的反向传播，再用形状核对；
# - 正确处理可选的偏置和 `ctx.needs_input_grad`；
# - 撤销广播：沿 forward 复制过的那些轴求和；
# - 指出会让错误的 backward 侥幸过关的测试：方阵、没有 1 的尺寸，以及全为 1 的上游梯度；
# - 训练一个网络，它的层全是你自己写的。
#
# **预备知识**：01。**用时**：约 90 分钟。看到**先猜一猜**，请先拿定主意再运行单元格。

# %% tags=["setup"]
import math

import matplotlib.pyplot as plt
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="jacobian"
# ## 1. How large is a Jacobian?
#
# Take $Y = A\,B$ with $A$ of 2×2 and $B$ of 2×3. Each of the 6 numbers in $Y$ has a partial derivative with respect to each of the 4 numbers in $A$. Written as a table with one row per output and one column per input, that is the **Jacobian**.
#
# **Predict.** How many entries does it have, and how many of them must be 0 whatever $B$ is?

# %% [markdown] lang="zh" pair="jacobian" of="36d497ef"
# ## 1. 雅可比矩阵有多大？
#
# 设 $Y = A\,B$，$A$ 是 2×2，$B$ 是 2×3。$Y$ 的 6 个数，每一个对 $A$ 的 4 个数都有偏导数。把它们排成一张表，一行对应一个输出，一列对应一个输入，这就是**雅可比矩阵**。
#
# **先猜一猜。** 它一共有多少项？其中有多少项，无论 $B$ 取什么值都必定为 0？

# %%
a = torch.arange(4, dtype=torch.float64).reshape(2, 2).requires_grad_()
b = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()


def product(a, b):
    return a @ b


# %jacobian product(a, b)

# %% [markdown] lang="en" pair="too-large"
# 6 × 4 = 24 entries for $A$ (the block for $B$ is a click away). Half of them are always 0, because row $i$ of $Y$ depends only on row $i$ of $A$. (Two more are 0 here because $b_{00}$ happens to be 0.)
#
# Now a real layer: 512 features in, 512 out, a batch of 64. Its Jacobian with respect to the input has 32768 × 32768 entries: 8.6 GB in float64, for one layer. So nobody builds it.
#
# ## 2. What `backward` computes instead
#
# Training has one number at its end, the loss $L$. Suppose we already know how it changes with each output: $g_{ij} = \partial L / \partial y_{ij}$. That is `grad_output`, the **upstream gradient**, and it has the shape of the output. The chain rule then asks for one product, a row vector times the Jacobian:
#
# $$\frac{\partial L}{\partial a_{kl}} = \sum_{ij} g_{ij}\, \frac{\partial y_{ij}}{\partial a_{kl}}$$
#
# A **vector–Jacobian product**, VJP for short. The result has the shape of the input. `backward` is this product, nothing else.
#
# **Predict.** Below, `g` says that the loss grows with $y_{00}$, twice as fast with $y_{02}$, and against $y_{11}$. The last line computes the same twice: with the whole Jacobian, and the way PyTorch does it. What shape do both have?

# %% [markdown] lang="zh" pair="too-large" of="43cc7238"
# 对 $A$ 来说，一共 6 × 4 = 24 项（点一下可以切换到 $B$ 的那一块），其中一半恒为 0：$Y$ 的第 $i$ 行只依赖 $A$ 的第 $i$ 行。（这里另有两项为 0，只是因为 $b_{00}$ 恰好是 0。）
#
# 再看一个真实的层：输入 512 维，输出 512 维，批大小 64。它对输入的雅可比矩阵有 32768 × 32768 项，用 float64 存要 8.6 GB，而这只是一层。所以没有人会真把它造出来。
#
# ## 2. `backward` 实际在算什么
#
# 训练的终点是一个数：损失 $L$。假设已经知道它随每个输出怎样变化：$g_{ij} = \partial L / \partial y_{ij}$。这就是 `grad_output`，也叫**上游梯度**，形状与输出相同。接下来链式法则只要一次乘法，行向量乘雅可比矩阵：
#
# $$\frac{\partial L}{\partial a_{kl}} = \sum_{ij} g_{ij}\, \frac{\partial y_{ij}}{\partial a_{kl}}$$
#
# 这就是**向量-雅可比积**（vector–Jacobian product，VJP），结果的形状与输入相同。`backward` 要算的就是它，仅此而已。
#
# **先猜一猜。** 下面的 `g` 表示：损失随 $y_{00}$ 增大，随 $y_{02}$ 以两倍的速度增大，随 $y_{11}$ 减小。最后一行用两种办法算同一个量：一种用完整的雅可比矩阵，一种照 PyTorch 的做法。它们的形状是什么？

# %%
g = torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0]], dtype=torch.float64)
J = torch.from_numpy(nbautograd.jacobian(product, (a, b)).blocks[0, 0].analytical())
(g.flatten() @ J).reshape(2, 2), torch.autograd.grad(product(a, b), a, g)[0]

# %% [markdown] lang="en" pair="indices"
# That of $A$, 2×2.
#
# ## 3. Matrix calculus by indices
#
# You never need to remember the backward of a matrix product. Write one element of the forward, differentiate, and read off which index is summed:
#
# $$y_{ij} = \sum_k a_{ik}\, b_{kj}$$
#
# $$\frac{\partial L}{\partial a_{ik}} = \sum_j g_{ij}\, b_{kj} \;\Rightarrow\; \frac{\partial L}{\partial A} = G\,B^\top
# \qquad\qquad
# \frac{\partial L}{\partial b_{kj}} = \sum_i a_{ik}\, g_{ij} \;\Rightarrow\; \frac{\partial L}{\partial B} = A^\top G$$
#
# Then check by shapes: (2×3)(3×2) = 2×2 is the shape of $A$, and (2×2)(2×3) = 2×3 that of $B$.
#
# Here it is as a Function. Below it we take the plainest loss there is, the sum of all outputs.
#
# **Predict.** With `loss = y.sum()`, what is `grad_output`? And will the two rows of the gradient of `a` be equal, or not?

# %% [markdown] lang="zh" pair="indices" of="10d9c1ba"
# 与 $A$ 相同：2×2。
#
# ## 3. 用下标做矩阵求导
#
# 矩阵乘积的反向传播不用死记。写出前向的一个元素，求导，看是哪个下标被求和掉了：
#
# $$y_{ij} = \sum_k a_{ik}\, b_{kj}$$
#
# $$\frac{\partial L}{\partial a_{ik}} = \sum_j g_{ij}\, b_{kj} \;\Rightarrow\; \frac{\partial L}{\partial A} = G\,B^\top
# \qquad\qquad
# \frac{\partial L}{\partial b_{kj}} = \sum_i a_{ik}\, g_{ij} \;\Rightarrow\; \frac{\partial L}{\partial B} = A^\top G$$
#
# 再用形状核对：(2×3)(3×2) = 2×2，正是 $A$ 的形状；(2×2)(2×3) = 2×3，正是 $B$ 的形状。
#
# 写成 Function 就是下面这样。再下面取一个最简单的损失：所有输出之和。
#
# **先猜一猜。** 当 `loss = y.sum()` 时，`grad_output` 是什么？`a` 的梯度的两行相等吗？

# %%
# %%autograd_function
class Product(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output @ weight.t(), input.t() @ grad_output

# %%
loss = Product.apply(a, b).sum()
loss.backward()
# %autograd_calls Product

# %% [markdown] lang="en" pair="ones"
# Open both calls. `grad_output` is all ones: each output adds to the sum with weight 1. And the rows of `grad_input` are equal, since all rows of $G$ are. Remember these ones; in section 7 they will mislead us.
#
# ## 4. The linear layer
#
# Now yours. $Y = X\,W + b$, where the bias may be missing. Three things are new.
#
# - **An optional argument.** `backward` returns one value per argument of `forward`. For a missing bias that value is `None`. Further `None`s at the end do no harm.
# - **A bias is repeated.** The same $b_j$ is added to every row, so every row sends a gradient back to it.
# - **`ctx.needs_input_grad`** says, for each argument *of this call*, whether anybody wants its gradient. Compute only those that are wanted. In the first layer of a network, for instance, nobody asks for the gradient of the data.
#
# ### Exercise `linear_xw`
#
# Fill in both methods. `input` is (batch × in), `weight` is (in × out), `bias` has `out` elements or is `None`. **Predict** first: how long is `ctx.needs_input_grad` in `LinearFunction.apply(x, w)`?

# %% [markdown] lang="zh" pair="ones" of="9f1fea00"
# 点开两次调用看看。`grad_output` 全是 1：每个输出都以权重 1 计入总和。`grad_input` 的各行相等，因为 $G$ 的各行相等。请记住这些 1，到第 7 节，它们会骗我们一回。
#
# ## 4. 线性层
#
# 轮到你了：$Y = X\,W + b$，偏置可有可无。这里有三处新东西。
#
# - **可选参数。** `forward` 有几个参数，`backward` 就返回几个值；偏置缺席时，它的位置上返回 `None`。末尾多出来的 `None` 无妨。
# - **偏置被重复使用。** 同一个 $b_j$ 加到了每一行上，所以每一行都会给它送回一份梯度。
# - **`ctx.needs_input_grad`** 逐个说明*这次调用*的参数里，谁的梯度有人要。没人要的就不必算。比如网络的第一层，没有人需要数据本身的梯度。
#
# ### 练习 `linear_xw`
#
# 补全两个方法。`input` 是（批 × in），`weight` 是（in × out），`bias` 有 `out` 个元素，也可以是 `None`。**先猜一猜**：调用 `LinearFunction.apply(x, w)` 时，`ctx.needs_input_grad` 有多长？

# %% exercise="linear_xw"
# %%exercise linear_xw
class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ### BEGIN SOLUTION
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight)
        if bias is not None:
            output = output + bias
        return output
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight.t())
        if ctx.needs_input_grad[1]:
            grad_weight = input.t().mm(grad_output)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias
        ### END SOLUTION

# %% [markdown] lang="en" pair="prints"
# Two: one for each argument of the call. So look at `needs_input_grad[2]` only where there is a bias.
#
# One of the notebooks that this course grew from begins with this layer. It prints what comes in and what goes out. Here it is with its prints and its `sum(0).squeeze(0)`, to which section 7 comes back.
#
# **Predict** the three gradients that backward prints under the one that came in, for $A = \begin{pmatrix}0&1\\2&3\end{pmatrix}$, $B = \begin{pmatrix}0&1&2\\3&4&5\end{pmatrix}$, and the sum as loss. The third is short.

# %% [markdown] lang="zh" pair="prints" of="dceeb513"
# 长度是 2：这次调用有几个参数，就有几项。所以有偏置时才去看 `needs_input_grad[2]`。
#
# 本课程参考的一份笔记讲的是扩展 PyTorch，开头就是这个层，把传进来的和传出去的都打印出来。下面连同 print 一起照写，`sum(0).squeeze(0)` 也照原样，第 7 节还会说到它。
#
# **先猜一猜** backward 收到 `grad_output` 之后打印的三个梯度：$A = \begin{pmatrix}0&1\\2&3\end{pmatrix}$，$B = \begin{pmatrix}0&1&2\\3&4&5\end{pmatrix}$，损失是所有输出之和。第三个很短。

# %% tags=["shown"]
class PrintingLinear(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight)
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        print("FORWARD: output=", output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        print("BACKWARD: grad_output=", grad_output)
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight.t())
        if ctx.needs_input_grad[1]:
            grad_weight = input.t().mm(grad_output)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0).squeeze(0)
        print("BACKWARD: grad_input=", grad_input)
        print("BACKWARD: grad_weight=", grad_weight)
        print("BACKWARD: grad_bias=", grad_bias)
        return grad_input, grad_weight, grad_bias


A = torch.arange(4).view(2, 2).double().requires_grad_()
B = torch.arange(6).view(2, 3).double().requires_grad_()
torch.sum(PrintingLinear.apply(A, B)).backward()

# %% [markdown] lang="en" pair="luck"
# ## 5. The luck of square matrices
#
# Below, the gradient of `weight` lost its transpose. `a` is 2×2, so the shapes fit either way.
#
# **Predict.** Does the cell fail? If not, which of the two gradients will the report object to?

# %% [markdown] lang="zh" pair="luck" of="005fe0f8"
# ## 5. 方阵带来的侥幸
#
# 下面这段代码里，`weight` 的梯度丢了转置。`a` 是 2×2，转不转置形状都对得上。
#
# **先猜一猜。** 这个单元格会报错吗？如果不报错，报告会对两个梯度中的哪一个提出异议？

# %%
# %%autograd_function --inputs a,b
class LostTranspose(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output.mm(weight.t()), input.mm(grad_output)

# %% [markdown] lang="en" pair="batched"
# It ran, and the gradient of `weight` is wrong. The report shows where and, under *Summary*, even the change that mends it. With an `a` of 3×2 PyTorch would have complained at once. **So test with sizes that are all different**: 3, 4, 5.
#
# ## 6. The layer as PyTorch stores it
#
# `torch.nn.Linear` keeps its weight the other way round, (out × in), and computes $Y = X\,W^\top$. It also takes inputs with *any number* of leading dimensions: one vector, a batch, a batch of sequences. The last dimension is the one with the features.
#
# ### Exercise `linear_xwt`
#
# Write it, without bias. `input` is (… × in), `weight` is (out × in). Derive the gradient of `weight` by indices again. If `input` has four dimensions, over which must it be summed? **Predict**: which line of your 2-d solution will not survive?

# %% [markdown] lang="zh" pair="batched" of="f20cc590"
# 代码照常运行，`weight` 的梯度却是错的；报告指出了错在哪里；“概要”一页里，连怎么改也试好了。如果 `a` 是 3×2，PyTorch 当场就会报错。**所以，测试时让各个尺寸互不相同**：3、4、5。
#
# ## 6. PyTorch 自己的存法
#
# `torch.nn.Linear` 把权重反过来存，形状是（out × in），算的是 $Y = X\,W^\top$。它的输入前面可以有*任意多*个维度：一个向量、一批向量、一批序列都行，最后一维才是特征。
#
# ### 练习 `linear_xwt`
#
# 写出它，不带偏置。`input` 是（… × in），`weight` 是（out × in）。`weight` 的梯度还是从下标推导，然后想一想：如果 `input` 有四维，要对哪几维求和？**先猜一猜**：二维的写法里，哪一行会失灵？

# %% exercise="linear_xwt"
# %%exercise linear_xwt
class LinearT(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        ### BEGIN SOLUTION
        rows = input.reshape(-1, weight.shape[1])
        grad_input = grad_output @ weight
        grad_weight = grad_output.reshape(-1, weight.shape[0]).t() @ rows
        return grad_input, grad_weight
        ### END SOLUTION

# %% [markdown] lang="en" pair="squeeze"
# The line with `input.t()`: `t()` takes two dimensions at most.
#
# ## 7. Two more tests that a wrong backward passes
#
# ### A shape that breaks it
#
# This line for the bias has stood in many tutorials, and PyTorch's own notes once had it: `grad_output.sum(0).squeeze(0)`. The `squeeze` is meant to tidy up. It works for (batch, in, out) = (3, 4, 5). For some sizes it does not.
#
# ### Exercise `break_squeeze`
#
# Give sizes `(batch, in_features, out_features)` for which this bias gradient has the wrong shape. Think it through on paper; **predict**, then let the cell judge.

# %% [markdown] lang="zh" pair="squeeze" of="99e9bca9"
# 是写着 `input.t()` 的那一行：`t()` 最多只能用于二维。
#
# ## 7. 错误的 backward 还能通过的两种测试
#
# ### 一个让它出错的形状
#
# 偏置的梯度，许多教程里是这么写的，PyTorch 的文档也曾这样写：`grad_output.sum(0).squeeze(0)`。加上 `squeeze` 本是想收拾得整齐些。（批大小，in，out）=（3, 4, 5）时它没有问题，换成某些尺寸就不行了。
#
# ### 练习 `break_squeeze`
#
# 给出一组尺寸 `(batch, in_features, out_features)`，使这样算出的偏置梯度形状不对。先在纸上推一推、**猜一猜**，再让单元格来评判。

# %% exercise="break_squeeze"
# %%exercise break_squeeze
# sizes = (batch, in_features, out_features)
### BEGIN SOLUTION
sizes = (3, 4, 1)
### END SOLUTION

# %% [markdown] lang="en" pair="upstream-ones"
# An `out_features` of 1: then `sum(0)` has one number, and `squeeze` removes its only dimension.
#
# ### An upstream gradient of ones
#
# `y.sum().backward()`, then a look at `.grad`: the quickest test there is. Here is a backward that does not use `grad_output` at all.
#
# **Predict.** What does the comparison with PyTorch's own product say in the first cell? And what does `%gradcheck` say in the second?

# %% [markdown] lang="zh" pair="upstream-ones" of="9f17c22d"
# 让 `out_features` 等于 1：这时 `sum(0)` 只有一个数，`squeeze` 连它唯一的维度也去掉了。
#
# ### 全为 1 的上游梯度
#
# 先 `y.sum().backward()`，再看看 `.grad`：没有比这更省事的测试了。下面这个 backward 压根没用到 `grad_output`。
#
# **先猜一猜。** 第一个单元格把它和 PyTorch 自己的乘积比较，结果会怎样？第二个单元格里，`%gradcheck` 又会怎么说？

# %% tags=["shown"]
class Deaf(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        ones = input.new_ones(len(input), weight.shape[1])
        return ones.mm(weight.t()), input.t().mm(ones)


x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
w = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
ours = torch.autograd.grad(Deaf.apply(x, w).sum(), (x, w))
native = torch.autograd.grad(torch.mm(x, w).sum(), (x, w))
[torch.equal(mine, theirs) for mine, theirs in zip(ours, native)]

# %%
# %gradcheck Deaf.apply(x, w)

# %% [markdown] lang="en" pair="line-by-line"
# Where in `backward` does it go wrong? The report above ends with **Backward in slow motion**, and the next cell shows it by itself. A random gradient arrives, then `backward` runs line by line: what each line computed, and what it should have. Space plays, the arrow keys step. The first ✗ is at `ones`: there the gradient that arrived should be.

# %% [markdown] lang="zh" pair="line-by-line" of="c9915b6f"
# `backward` 从哪里开始出错？上面的报告末尾有**慢动作看 backward**，下一个单元格单独显示它。一个随机梯度到达，然后 `backward` 逐行运行：每一行算出了什么，本该是什么。空格键播放，方向键逐步查看。第一个 ✗ 在 `ones`：那里本该是到达的梯度。

# %%
nbautograd.gradcheck(Deaf, (x, w)).slow_motion()

# %% [markdown] lang="en" pair="fool"
# Exactly equal, and wrong. The sum sends back ones, the one upstream gradient for which `Deaf` is right. A random upstream gradient, of both signs, tells them apart.
#
# ### Exercise `fool_the_sum`
#
# The best way to understand a test is to fool it. Write `Fooling`: its forward is the honest product `input` times `weight`. Its backward is right whenever `grad_output` is all ones, and wrong for some others. Not by ignoring `grad_output`, if you can: find a slip that somebody could really make.

# %% [markdown] lang="zh" pair="fool" of="93eff8fd"
# 两者完全相等，却是错的。求和送回来的全是 1，而 `Deaf` 恰恰只在这时才对。换成有正有负的随机上游梯度，立见分晓。
#
# ### 练习 `fool_the_sum`
#
# 想了解一个测试，就去骗过它。写一个 `Fooling`：forward 老老实实算 `input` 乘 `weight`；backward 在 `grad_output` 全为 1 时是对的，对另一些上游梯度却是错的。如果可以，别用“完全不理 `grad_output`”这一招，想一个别人真有可能犯的错。

# %% exercise="fool_the_sum"
# %%exercise fool_the_sum
class Fooling(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        ### BEGIN SOLUTION
        grad_input = grad_output.mm(weight.t())
        grad_weight = input.t().mm(grad_output.abs())
        return grad_input, grad_weight
        ### END SOLUTION

# %% [markdown] lang="en" pair="broadcast"
# ## 8. Undo the broadcasting
#
# `a + b` works for shapes that differ, because the smaller tensor is repeated. Missing dimensions in front are made up, and dimensions of size 1 are stretched. What forward repeats, `backward` must **sum**: each copy sends a gradient home, and home is one place.
#
# | forward | shapes | gradient of the second |
# |---|---|---|
# | repeats in front | (3, 4) + (4,) | sum over dimension 0 |
# | stretches a 1 | (3, 4) + (3, 1) | sum over dimension 1, and keep it |
# | both | (2, 3, 4) + (3, 1) | yours to say |
#
# **Predict** the third line. In the graph below you see that PyTorch's own `+` knows the shapes it has to come back to.

# %% [markdown] lang="zh" pair="broadcast" of="c40039f9"
# ## 8. 撤销广播
#
# 形状不同也能算 `a + b`，是因为较小的张量被重复使用了：前面缺的维度补上，尺寸为 1 的维度拉长。前向重复过的，`backward` 就要**求和**：每一份副本都往家里寄回一份梯度，而家只有一个。
#
# | 前向 | 形状 | 第二个张量的梯度 |
# |---|---|---|
# | 在前面补维 | (3, 4) + (4,) | 对第 0 维求和 |
# | 拉长尺寸 1 | (3, 4) + (3, 1) | 对第 1 维求和，并保留这一维 |
# | 两者都有 | (2, 3, 4) + (3, 1) | 你来说 |
#
# **先猜一猜**第三行。从下面的计算图可以看到，PyTorch 自己的加法知道该回到什么形状。

# %%
big = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
small = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
total = (big + small).sum()
nbautograd.backward(total)

# %% [markdown] lang="en" pair="broadcast-task"
# The third: sum over dimensions 0 and 2, and keep the 2, so that (3, 1) comes out.
#
# ### Exercise `broadcast_add`
#
# Write `Add` for two tensors of any shapes that broadcast, those without dimensions included. Return each gradient in the shape of its input.
#
# PyTorch forgives a little here: a gradient that is too large is summed down in silence. The checks will object if you rely on it; a helper function is welcome.

# %% [markdown] lang="zh" pair="broadcast-task" of="06a1ce66"
# 第三行：对第 0 维和第 2 维求和，并保留第 2 维，得到 (3, 1)。
#
# ### 练习 `broadcast_add`
#
# 为任意两个可以广播的张量写出 `Add`，没有维度的标量张量也包括在内。每个梯度都要以其输入的形状返回。
#
# PyTorch 在这里会宽容一些：梯度的形状偏大，它就悄悄替你求和。但这道题的检查不认这个。写一个辅助函数是好主意。

# %% exercise="broadcast_add"
# %%exercise broadcast_add
### BEGIN SOLUTION
def summed_to(gradient, shape):
    extra = gradient.dim() - len(shape)
    gradient = gradient.sum(tuple(range(extra))) if extra else gradient
    stretched = [k for k, size in enumerate(shape) if size == 1 and gradient.shape[k] != 1]
    return gradient.sum(stretched, keepdim=True) if stretched else gradient


### END SOLUTION
class Add(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.shapes = a.shape, b.shape
        return a + b

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        a_shape, b_shape = ctx.shapes
        return summed_to(grad_output, a_shape), summed_to(grad_output, b_shape)
        ### END SOLUTION

# %% [markdown] lang="en" pair="layers-learn"
# ## 9. Your layers learn
#
# Three spiral arms, and a network of two layers, both yours: `LinearFunction`, a $\tanh$ between. Everything that its weights will know arrives through the `backward` that you wrote.
#
# Beside it the same network with one product of the backward replaced. The second layer has to hand $g\,W^\top$ to the first. It hands on $g\,B$ instead, with a random matrix $B$ that has nothing to do with $W$. A third one hands on zeros, so that its first layer stays as it began. **Predict.** What do their losses do?

# %% [markdown] lang="zh" pair="layers-learn" of="829175af"
# ## 9. 你的层在学习
#
# 三条旋臂，一个两层的网络，两层都是你写的 `LinearFunction`，中间夹一个 $\tanh$。权重将来学到的一切，都要经过你写的 `backward` 才能到达。
#
# 旁边是同一个网络，只是 backward 换了一个乘积：第二层本该把 $g\,W^\top$ 交给第一层，现在交的却是 $g\,B$，其中 $B$ 是一个随机矩阵，与 $W$ 毫无关系。还有第三个，交出去的是零，第一层于是始终不动。**先猜一猜**：它们的损失会怎样？

# %%
# %exercises linear_xw
draw = torch.Generator().manual_seed(0)
radius = torch.rand(3, 60, generator=draw).sqrt()
angle = 2 * math.pi / 3 * torch.arange(3)[:, None] + 4 * radius
points = 3 * torch.stack([radius * angle.cos(), radius * angle.sin()], -1).reshape(-1, 2)
points += 0.06 * torch.randn(points.shape, generator=draw)
arms = torch.arange(3).repeat_interleave(60)
B = torch.randn(3, 64, generator=draw)


class Another(LinearFunction):
    @staticmethod
    def backward(ctx, grad_output):
        grad_input, *others = LinearFunction.backward(ctx, grad_output)
        return grad_output @ B, *others


class Frozen(LinearFunction):
    @staticmethod
    def backward(ctx, grad_output):
        grad_input, *others = LinearFunction.backward(ctx, grad_output)
        return 0 * grad_input, *others


def network(weights, last, x):
    return last(torch.tanh(LinearFunction.apply(x, *weights[:2])), *weights[2:])


def train(last, steps=200, rate=0.5):
    torch.manual_seed(0)
    weights = [2 * torch.randn(2, 64), torch.randn(64), torch.randn(64, 3) / 8, torch.zeros(3)]
    weights, losses = [w.requires_grad_() for w in weights], []
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(network(weights, last, points), arms)
        losses.append(loss.item())
        slopes = torch.autograd.grad(loss, weights)
        weights = [(w - rate * slope).detach().requires_grad_() for w, slope in zip(weights, slopes, strict=True)]
    return weights, losses


grid = torch.stack(torch.meshgrid(torch.linspace(-3.4, 3.4, 120), torch.linspace(-3.4, 3.4, 120), indexing="xy"), -1)
figure, axes = plt.subplots(1, 4, figsize=(12, 3), layout="constrained")
kinds = {"g Wᵀ": LinearFunction.apply, "g B, random": Another.apply, "0, frozen": Frozen.apply}
for axis, (name, last) in zip(axes, kinds.items()):
    weights, losses = train(last)
    with torch.no_grad():
        regions = network(weights, last, grid.reshape(-1, 2)).argmax(1).reshape(120, 120)
    axis.contourf(grid[..., 0], grid[..., 1], regions, levels=[-0.5, 0.5, 1.5, 2.5], alpha=0.3)
    axis.scatter(points[:, 0], points[:, 1], c=arms, s=8)
    axis.set(title=name, xticks=[], yticks=[], aspect="equal")
    axes[3].semilogy(losses, label=name)
    print(f"{name:>12}: loss {losses[0]:.3f} -> {losses[-1]:.4f}")
axes[3].set(xlabel="step", ylabel="loss")
axes[3].legend()
plt.show()

# %% [markdown] lang="en" pair="feedback"
# Your layers tell the arms apart. So do those with $g\,B$. This is **feedback alignment** (Lillicrap, Cownden, Tweed and Akerman, *Nature Communications* 2016). Its finders asked whether a brain could do without $W^\top$. While it learns, $W$ turns towards $B^\top$, so that $g\,B$ comes to point to the same side as $g\,W^\top$. And the first layer does learn by it. If it never moves, as 64 random features, the loss ends about twice as high.
#
# As a learning rule that is remarkable. As the gradient of this network it is wrong, and no curve says so. A check does:

# %% [markdown] lang="zh" pair="feedback" of="6d654964"
# 你的层把三条旋臂分开了。用 $g\,B$ 的也分开了：这叫**反馈对齐**（feedback alignment；Lillicrap、Cownden、Tweed 与 Akerman，*Nature Communications* 2016），提出它的人想知道，大脑没有 $W^\top$ 行不行。在学习过程中，$W$ 会渐渐转向 $B^\top$，于是 $g\,B$ 与 $g\,W^\top$ 指向同一侧（夹角小于 90°）。第一层也确实靠它学到了东西：第一层若始终不动，只有 64 个随机特征，最后的损失大约高一倍。
#
# 作为学习规则，这很了不起；作为这个网络的梯度，它是错的，而没有哪条曲线会告诉你。检查会：

# %%
# %exercises linear_xw
x, w = torch.randn(2, 64, dtype=torch.float64), torch.randn(64, 3, dtype=torch.float64)
bias, B = torch.zeros(3).double(), B.double()
for last in (LinearFunction, Another):
    print(last.__name__, nbautograd.gradcheck(last, tuple(t.requires_grad_() for t in (x, w, bias))).verdict)

# %% [markdown] lang="en" pair="forgives"
# ## 10. What autograd forgives
#
# Two things that look like mistakes but are not, because the engine corrects them:
#
# - a gradient of a larger shape, one that the input broadcasts to, is summed down. An unsummed bias gradient trains correctly (nbautograd mentions it as a risk, not as a mistake);
# - further `None`s at the end of what `backward` returns are ignored.
#
# And one that nobody mends: a gradient of the right shape with wrong numbers. For that there are checks, and **notebook 03** takes them apart.
#
# **What to keep.** `backward` gets $g$ in the shape of the output and returns $g\,J$ in the shape of the input. Derive by indices, check by shapes, test with sizes that differ, one of them 1, and a random upstream gradient.

# %% [markdown] lang="zh" pair="forgives" of="5290a08e"
# ## 10. autograd 会原谅什么
#
# 有两种疏忽其实不算错，引擎会替你补上：
#
# - 梯度的形状比输入大、但可由输入广播而来，引擎会把它求和回去：偏置的梯度忘了求和，训练照样正确（nbautograd 只提醒一句，不判错）；
# - `backward` 返回值末尾多出来的 `None` 会被忽略。
#
# 还有一种谁也不会替你补：形状对，数值错。这就要靠检查了，**第 03 课**会把检查本身拆开来看。
#
# **记住这些。** `backward` 收到与输出同形的 $g$，返回与输入同形的 $g\,J$。用下标推导，用形状核对；测试时各个尺寸互不相同，其中有一个是 1，上游梯度随机取。

# %% [raw] lang="zh"
# : loss {losses[0] → ：损失 {losses[0]
# "0, frozen" → "0，不动"

# %%
# %exercises
