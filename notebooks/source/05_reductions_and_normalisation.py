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
#     course: "05"
#     title_en: Reductions and normalisation
#     title_zh: 归约与归一化
#     minutes: 95
# ---

# %% [markdown] lang="en" pair="intro"
# # 05 · Reductions and normalisation
#
# A reduction makes few numbers of many: a sum, a mean, a maximum. On the way back few gradients become many again, and each reduction has its own idea of who gets how much. After them come two operations that most networks have: softmax with cross-entropy, and layer normalisation.
#
# **After it you can**
#
# - say of a reduction how it shares its gradient out, and write that for any dimension;
# - compute `logsumexp` and cross-entropy of logits of any size, and their gradients, without overflow;
# - derive the backward of a normalisation, with the paths through mean and variance;
# - bring the gradient of a gather home, where one row was taken twice;
# - train a small network with operations of your own.
#
# **You need** notebooks 01 to 04. **Time**: about 95 minutes.

# %% [markdown] lang="zh" pair="intro" of="21333bce"
# # 05 · 归约与归一化
#
# 归约把许多数变成少数几个：求和、求平均、取最大。回程时，少数几个梯度又要变回许多个，而每种归约对“谁分多少”各有主张。再往后，是多数网络都有的两种运算：softmax 加交叉熵，以及层归一化。
#
# **学完之后，你能够**
#
# - 说出一种归约怎样分配它的梯度，并对任意维度写出来；
# - 无论 logits 多大，都能算出 `logsumexp`、交叉熵以及它们的梯度，而不溢出；
# - 推导归一化的 backward，包括经过均值和方差的那两条路；
# - 同一行被取了两次时，把 gather 的梯度正确地带回来；
# - 用自己写的运算训练一个小网络。
#
# **预备知识**：01 到 04。**用时**：约 95 分钟。

# %% tags=["setup"]
import math

import matplotlib.pyplot as plt
import torch
from torch.autograd import Function

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="share"
# ## 1. Who gets how much
#
# Five numbers go in, one comes out, and a gradient of 1 comes back to it. **Predict** the five gradients for the sum, the mean, the maximum and $\operatorname{logsumexp}(x) = \log \sum_i e^{x_i}$. Which of them add up to 1?

# %% [markdown] lang="zh" pair="share" of="4c716fdb"
# ## 1. 谁分多少
#
# 五个数进去，一个数出来，回到它那里的梯度是 1。**先猜一猜**：求和、求平均、取最大以及 $\operatorname{logsumexp}(x) = \log \sum_i e^{x_i}$，各自的五个梯度是多少？哪几组加起来等于 1？

# %%
x = torch.tensor([0.5, 2.0, 1.2, -1.0, 1.8], dtype=torch.float64, requires_grad=True)
reductions = {
    "sum": torch.sum,
    "mean": torch.mean,
    "max": torch.max,
    "logsumexp": lambda x: torch.logsumexp(x, 0),
}
figure, axes = plt.subplots(1, 4, figsize=(9, 2.2), sharey=True, layout="constrained")
for axis, (name, reduce) in zip(axes, reductions.items(), strict=True):
    (shares,) = torch.autograd.grad(reduce(x), x)
    axis.bar(range(5), shares)
    axis.set(title=name, xticks=range(5), xticklabels=[f"{v:g}" for v in x.tolist()], ylim=(0, 1.1))
    print(f"{name:>9}", [round(share, 2) for share in shares.tolist()], "together", round(float(shares.sum()), 6))
plt.show()

# %% [markdown] lang="en" pair="mean-task"
# The sum copies the gradient to everybody, the mean shares it equally, the maximum gives it all to one. `logsumexp` lies between: it gives most to the largest, and its shares have a name, **softmax**. All but the sum pass on exactly 1 in total.
#
# ## 2. The mean: putting a dimension back
#
# A mean over `dim` has one dimension fewer than its input, unless `keepdim=True`. `grad_output` has the shape of the *output*. So `backward` must put the dimension back before it can spread the gradient along it.
#
# Forget that, and broadcasting lines up the *last* dimensions instead. Mostly shapes do not fit then and you get an error. **Predict**: for which inputs do they fit nevertheless?
#
# ### Exercise `mean_over`
#
# Write `backward` of `Mean.apply(x, dim, keepdim)`. The checks take other dimensions, counted from the front and from the back.

# %% [markdown] lang="zh" pair="mean-task" of="74a928de"
# 求和把梯度原样抄给每一个，求平均则平分，取最大全给一个。`logsumexp` 居中：最大的分到最多，它的分法有个名字，叫 **softmax**。除了求和，其余三种都是收到多少就分出多少，不多也不少。
#
# ## 2. 平均：把维度放回去
#
# 沿 `dim` 求平均，输出比输入少一个维度，除非 `keepdim=True`。`grad_output` 的形状和*输出*一样，所以 `backward` 必须先把那个维度放回原处，才能沿着它把梯度铺开。
#
# 忘了这一步，广播就会去对齐*最后*几个维度。多数时候形状对不上，会报错。**先猜一猜**：什么样的输入偏偏对得上？
#
# ### 练习 `mean_over`
#
# 写出 `Mean.apply(x, dim, keepdim)` 的 `backward`。检查会换用别的维度，有从前往后数的，也有从后往前数的。

# %% exercise="mean_over"
# %%exercise mean_over
class Mean(Function):
    @staticmethod
    def forward(ctx, x, dim, keepdim):
        ctx.dim, ctx.keepdim, ctx.shape = dim, keepdim, x.shape
        return x.mean(dim, keepdim=keepdim)

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        if not ctx.keepdim:
            grad_output = grad_output.unsqueeze(ctx.dim)
        return grad_output.expand(ctx.shape) / ctx.shape[ctx.dim], None, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="max-task"
# For a square matrix and `dim=1` they fit. The gradient is spread along the wrong dimension, with the right shape, the right total and no error. That is why the first check takes a square one.
#
# ## 3. The maximum: one takes it all
#
# $\max$ gives the gradient to the entry that was largest, and nothing to the others. So it is enough to know **where** the largest stood. The others do not matter, and the input need not be kept.
#
# `Max.apply(x, dim)` returns two tensors, values and indices, as `torch.max` does. Then `backward` gets two gradients. Indices are whole numbers and have no derivative: what arrives for them means nothing.
#
# `scatter` writes numbers to the places that an index names, along one dimension: `zeros.scatter(dim, index, numbers)`.
#
# ### Exercise `max_over`
#
# Write `Max`. The checks look at how many bytes are kept: the indices, and no copy of the input.

# %% [markdown] lang="zh" pair="max-task" of="af87167d"
# 方阵加上 `dim=1` 对得上：梯度沿着错误的维度铺开，形状对，总和也对，而且不报错。所以第一项检查用的就是方阵。
#
# ## 3. 最大：一个拿走全部
#
# $\max$ 把梯度给了最大的那一项，其余的什么也分不到。所以只要知道最大的在**哪里**就够了；别的数是多少无关紧要，输入也不必保存。
#
# `Max.apply(x, dim)` 返回两个张量：最大值和下标，和 `torch.max` 一样。于是 `backward` 会收到两个梯度。下标是整数，没有导数，为它们送来的东西没有意义。
#
# `scatter` 沿着某个维度，把数写到下标指出的位置上：`zeros.scatter(dim, index, numbers)`。
#
# ### 练习 `max_over`
#
# 写出 `Max`。检查会看你保存了多少字节：只存下标，不存输入的副本。

# %% exercise="max_over"
# %%exercise max_over
class Max(Function):
    @staticmethod
    def forward(ctx, x, dim):
        ### BEGIN SOLUTION
        values, indices = x.max(dim)
        ctx.save_for_backward(indices)
        ctx.dim, ctx.shape = dim, x.shape
        return values, indices
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_values, grad_indices):
        ### BEGIN SOLUTION
        (indices,) = ctx.saved_tensors
        zeros = grad_values.new_zeros(ctx.shape)
        places = indices.unsqueeze(ctx.dim)
        return zeros.scatter(ctx.dim, places, grad_values.unsqueeze(ctx.dim)), None
        ### END SOLUTION

# %% [markdown] lang="en" pair="lse-task"
# If two entries are equally large, `torch.max(x, dim)` names one index and gives that one everything. `torch.amax` and `torch.max(x)`, which have no indices, share equally among them. Both are allowed: at a tie the maximum has a kink, and notebook 06 is about those.
#
# ## 4. logsumexp: a maximum without corners
#
# $y = \log \sum_i e^{x_i}$ looks harmless until an $x_i$ is 1000: $e^{1000}$ is infinite in float64. Take the largest out first, with $m = \max_i x_i$:
#
# $$y = m + \log \sum_i e^{x_i - m}$$
#
# Now every exponent is at most 0, and one of them *is* 0. So the logarithm never sees 0 either, if one entry of the row is finite. (No other row is asked for.) The derivative is the softmax, and with $y$ at hand it needs no new sum:
#
# $$\frac{\partial y}{\partial x_i} = \frac{e^{x_i}}{\sum_j e^{x_j}} = e^{x_i - y}$$
#
# **Predict.** What does the formula for the derivative do with $x_i = 1000$? And with $x_i = -\infty$, which is how an attention mask says "not this one"?
#
# ### Exercise `logsumexp`
#
# Write `LogSumExp.apply(x)` over the last dimension, from torch's `exp`, `log`, sums and maximum, without `torch.logsumexp` or `softmax`. It must take rows with entries near 1000, near -1000, and with $-\infty$.

# %% [markdown] lang="zh" pair="lse-task" of="91a8cd08"
# 如果有两项并列最大，`torch.max(x, dim)` 只报一个下标，把梯度全给它；`torch.amax` 和 `torch.max(x)` 没有下标，就在它们之间平分。两种都说得通：并列之处是最大值的折点，第 06 课专讲这个。
#
# ## 4. logsumexp：没有棱角的最大值
#
# $y = \log \sum_i e^{x_i}$ 看着人畜无害，直到有个 $x_i$ 等于 1000：$e^{1000}$ 在 float64 里是无穷大。先把最大的提出来，记 $m = \max_i x_i$：
#
# $$y = m + \log \sum_i e^{x_i - m}$$
#
# 现在每个指数都不大于 0，而且必有一个*等于* 0，所以只要这一行里有一个数是有限的，对数也不会碰到 0（别的行不作要求）。导数就是 softmax，手头有了 $y$，连和都不必再求：
#
# $$\frac{\partial y}{\partial x_i} = \frac{e^{x_i}}{\sum_j e^{x_j}} = e^{x_i - y}$$
#
# **先猜一猜。** $x_i = 1000$ 时，这个导数公式会怎样？$x_i = -\infty$ 呢？（注意力掩码就是用它来说“这一个不算”的。）
#
# ### 练习 `logsumexp`
#
# 沿最后一个维度写出 `LogSumExp.apply(x)`，只用 torch 的 `exp`、`log`、求和与取最大，不用 `torch.logsumexp`，也不用 `softmax`。某些行里会有接近 1000、接近 -1000 以及等于 $-\infty$ 的数，都要能算。

# %% exercise="logsumexp"
# %%exercise logsumexp
class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        largest = x.amax(-1, keepdim=True)
        y = largest + (x - largest).exp().sum(-1, keepdim=True).log()
        y = y.squeeze(-1)
        ctx.save_for_backward(x, y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        x, y = ctx.saved_tensors
        shares = (x - y.unsqueeze(-1)).exp()
        return grad_output.unsqueeze(-1) * shares
        ### END SOLUTION

# %% [markdown] lang="en" pair="ce-task"
# At 1000, $y$ is at least 1000, so the share is at most 1; at $-\infty$ it is exactly 0.
#
# ## 5. Softmax and cross-entropy belong together
#
# A classifier gives a row of logits $z$, one per class. The loss is the negative logarithm of the softmax of the right class $t$:
#
# $$\ell = -\log \frac{e^{z_t}}{\sum_j e^{z_j}} = \operatorname{logsumexp}(z) - z_t$$
#
# One after the other, softmax and logarithm are fragile. $10^{-400}$ is 0 in float64, and its logarithm $-\infty$. Together they are as tame as in section 4. And look at the derivative:
#
# $$\frac{\partial \ell}{\partial z_i} = p_i - [i = t] \qquad p = \operatorname{softmax}(z)$$
#
# What the network believes, minus what is true. **Predict**: what is the sum of this gradient over the classes, for any logits?

# %% [markdown] lang="zh" pair="ce-task" of="eed4a091"
# 在 1000 处，$y$ 不小于 1000，所以份额不超过 1；在 $-\infty$ 处，份额恰好是 0。
#
# ## 5. softmax 和交叉熵本是一家
#
# 分类器给出一行 logits $z$，每类一个；损失是正确类别 $t$ 分到的 softmax 份额取负对数：
#
# $$\ell = -\log \frac{e^{z_t}}{\sum_j e^{z_j}} = \operatorname{logsumexp}(z) - z_t$$
#
# 先 softmax 再取对数，分开来算很脆弱：$10^{-400}$ 的份额在 float64 里就是 0，取对数得 $-\infty$。合在一起，就和第 4 节一样稳当了。再看它的导数：
#
# $$\frac{\partial \ell}{\partial z_i} = p_i - [i = t] \qquad p = \operatorname{softmax}(z)$$
#
# 网络相信的，减去事实。**先猜一猜**：不管 logits 是多少，这个梯度对各类别求和等于几？

# %%
far = torch.tensor([0.0, 1000.0], dtype=torch.float64, requires_grad=True)
apart = -far.softmax(0).log()[0]
together = far.logsumexp(0) - far[0]
for name, loss in (("apart", apart), ("together", together)):
    (slope,) = torch.autograd.grad(loss, far)
    print(f"{name:>8}: loss {loss.item():g}, gradient {slope.tolist()}")

# %% [markdown] lang="en" pair="ce-exercise"
# Apart, the gradient is NaN, and one NaN in one weight is the end of a training run. Together it is $(-1, 1)$, which adds up to 0 as it always does.
#
# ### Exercise `cross_entropy`
#
# `CrossEntropy.apply(logits, target)`: logits of shape (n, classes), target n whole numbers, the loss the **mean** over the n rows. Write both methods from the formulas of sections 4 and 5, without torch's own losses, `log_softmax` or `softmax`. `target` gets no gradient. First derivatives are enough, here and in `layer_norm`: you may save intermediates (notebook 08 tells the price).

# %% [markdown] lang="zh" pair="ce-exercise" of="c345c8d0"
# 分开来算，梯度是 NaN；一个权重里有一个 NaN，整次训练就完了。合起来算是 $(-1, 1)$，加起来等于 0，而且永远如此。
#
# ### 练习 `cross_entropy`
#
# `CrossEntropy.apply(logits, target)`：logits 的形状是 (n, 类别数)，target 是 n 个整数，损失是 n 行的**平均**。两个方法都照第 4、5 节的公式写，不用 torch 现成的损失函数，也不用 `log_softmax` 和 `softmax`。`target` 没有梯度。这里和 `layer_norm` 都只要一阶导数，所以可以保存中间结果（代价见第 08 课）。

# %% exercise="cross_entropy"
# %%exercise cross_entropy
class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, target):
        ### BEGIN SOLUTION
        shifted = logits - logits.amax(1, keepdim=True)
        logp = shifted - shifted.exp().sum(1, keepdim=True).log()
        ctx.save_for_backward(logp, target)
        return -logp.gather(1, target[:, None]).mean()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        logp, target = ctx.saved_tensors
        belief = logp.exp()
        truth = torch.zeros_like(belief).scatter(1, target[:, None], 1.0)
        return grad_output * (belief - truth) / len(target), None
        ### END SOLUTION

# %% [markdown] lang="en" pair="norm"
# ## 6. A normalisation has three paths
#
# Layer normalisation takes each row $x$ of $n$ numbers to mean 0 and variance 1, and then scales and shifts it:
#
# $$\hat x = \frac{x - \mu}{\sigma} \qquad y = w\,\hat x + b \qquad \mu = \frac1n\sum x_i \qquad \sigma^2 = \frac1n\sum (x_i - \mu)^2 + \varepsilon$$
#
# An $x_i$ reaches $\hat x$ along three paths: directly, through $\mu$ and through $\sigma$. With $h = w\,g$, what arrives at $\hat x$:
#
# | path | contribution to $\partial L/\partial x_i$ |
# |---|---|
# | direct | $h_i/\sigma$ |
# | through $\mu$ | $-\frac1n\sum_j h_j / \sigma$ |
# | through $\sigma$ | $-\hat x_i\,\frac1n\sum_j h_j \hat x_j / \sigma$ |
#
# There is a picture for it. Adding a constant to all $x_i$ does not change $\hat x$, and neither does (but for $\varepsilon$) stretching $x$ away from its mean. So a gradient has nothing to say in those two directions: the second and the third path *remove* them.
#
# **Predict** the sum of $\partial L/\partial x$ over a row.
#
# ### Exercise `layer_norm`
#
# Write `LayerNorm.apply(x, weight, bias)` with $\varepsilon = 10^{-5}$ over the last dimension. `x` may have any number of dimensions; `weight` and `bias` serve all its rows.

# %% [markdown] lang="zh" pair="norm" of="db8fc8fa"
# ## 6. 归一化有三条路
#
# 层归一化把 $n$ 个数组成的每一行 $x$ 变成均值 0、方差 1，再缩放、平移：
#
# $$\hat x = \frac{x - \mu}{\sigma} \qquad y = w\,\hat x + b \qquad \mu = \frac1n\sum x_i \qquad \sigma^2 = \frac1n\sum (x_i - \mu)^2 + \varepsilon$$
#
# 从 $x_i$ 到 $\hat x$ 有三条路：直接过去、经过 $\mu$、经过 $\sigma$。记到达 $\hat x$ 的梯度为 $h = w\,g$：
#
# | 路径 | 对 $\partial L/\partial x_i$ 的贡献 |
# |---|---|
# | 直接 | $h_i/\sigma$ |
# | 经过 $\mu$ | $-\frac1n\sum_j h_j / \sigma$ |
# | 经过 $\sigma$ | $-\hat x_i\,\frac1n\sum_j h_j \hat x_j / \sigma$ |
#
# 可以这样想：给所有 $x_i$ 加上同一个常数，$\hat x$ 不变；把 $x$ 从均值处拉伸，$\hat x$ 也不变（除去 $\varepsilon$ 的一点影响）。所以在这两个方向上，梯度无话可说；第二、第三条路的作用正是把它们*去掉*。
#
# **先猜一猜**：$\partial L/\partial x$ 对一行求和等于几？
#
# ### 练习 `layer_norm`
#
# 写出 `LayerNorm.apply(x, weight, bias)`，取 $\varepsilon = 10^{-5}$，沿最后一个维度；`x` 可以有任意多个维度，`weight` 和 `bias` 由所有的行共用。

# %% exercise="layer_norm"
# %%exercise layer_norm
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ### BEGIN SOLUTION
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        normed = centred * scale
        ctx.save_for_backward(normed, scale, weight)
        return normed * weight + bias
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        normed, scale, weight = ctx.saved_tensors
        h = grad_output * weight
        mean_path = h.mean(-1, keepdim=True)
        scale_path = normed * (h * normed).mean(-1, keepdim=True)
        grad_x = scale * (h - mean_path - scale_path)
        rows = tuple(range(grad_output.dim() - 1))
        grad_weight = (grad_output * normed).sum(rows) if rows else grad_output * normed
        grad_bias = grad_output.sum(rows) if rows else grad_output
        return grad_x, grad_weight, grad_bias
        ### END SOLUTION

# %% [markdown] lang="en" pair="gather-task"
# Zero: adding a constant to the whole row changes nothing, so the gradient has no component in that direction.
#
# ## 7. Gather and scatter
#
# `table[index]` takes rows out of a table: a word's vector from its number. On the way back every row that came out brings its gradient home to the row that it was taken from. A row that was never taken gets zero. And a row that was taken three times?
#
# **Predict** what `grad[index] = g` leaves there.
#
# ### Exercise `take_rows`
#
# Write `TakeRows.apply(table, index)`. `table` has two dimensions. `index` may have any shape; it may name a row several times, and may be empty.

# %% [markdown] lang="zh" pair="gather-task" of="b9fbea59"
# 等于零：给整行加上同一个常数，结果不变，所以梯度在这个方向上没有分量。
#
# ## 7. gather 与 scatter
#
# `table[index]` 从表里取出若干行，比如按编号取一个词的向量。回程时，取出去的每一行都要把梯度送回它的来处。从没被取过的行得零。那么，被取了三次的行呢？
#
# **先猜一猜**：`grad[index] = g` 会在那里留下什么？
#
# ### 练习 `take_rows`
#
# 写出 `TakeRows.apply(table, index)`。`table` 有两个维度。`index` 可以是任意形状，同一行可以出现多次，也可以是空的。

# %% exercise="take_rows"
# %%exercise take_rows
class TakeRows(Function):
    @staticmethod
    def forward(ctx, table, index):
        ### BEGIN SOLUTION
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (index,) = ctx.saved_tensors
        grad_table = grad_output.new_zeros(ctx.shape)
        grad_table.index_add_(0, index.flatten(), grad_output.reshape(-1, ctx.shape[1]))
        return grad_table, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="train"
# Taking is `gather`, bringing back is `scatter` **with addition**; the one is the other's backward. `grad[index] = g` keeps only one of the three (torch does not promise which). `grad[index] += g` does no better: it reads, adds and writes each row once. In torch, `index_add_` adds at every mention, and so does `index_put_(..., accumulate=True)`.
#
# ## 8. Train with what you wrote
#
# A network of your `LayerNorm` and your `CrossEntropy` learns to tell three spiral arms apart. Next to it is the same network with mean and scale taken for constants in the gradient: the first path alone.
#
# **Predict.** Does the second one learn at all? Would you see from its loss alone that its gradient is wrong?

# %% [markdown] lang="zh" pair="train" of="5f5d1263"
# 取出去是 `gather`，送回来是**带累加的** `scatter`，两者互为对方的 backward。`grad[index] = g` 三份里只留一份（是哪一份，torch 不作保证）；`grad[index] += g` 也好不到哪里去：每一行只读一次、加一次、写一次。torch 里逐次累加的是 `index_add_`，还有 `index_put_(..., accumulate=True)`。
#
# ## 8. 用自己写的运算来训练
#
# 用你的 `LayerNorm` 和 `CrossEntropy` 搭一个网络，学着分辨三条旋臂。旁边是同一个网络，不过归一化的梯度把均值和尺度当成常数，只走第一条路。
#
# **先猜一猜。** 后者究竟学不学得会？光看损失，你能发现它的梯度是错的吗？

# %% tags=["shown"]
# %exercises layer_norm cross_entropy
draw = torch.Generator().manual_seed(0)
radius = torch.rand(3, 60, generator=draw).sqrt()
angle = 2 * math.pi / 3 * torch.arange(3)[:, None] + 4 * radius
points = 3 * torch.stack([radius * angle.cos(), radius * angle.sin()], -1).reshape(-1, 2)
points += 0.06 * torch.randn(points.shape, generator=draw)
arms = torch.arange(3).repeat_interleave(60)


def first_path_alone(x, weight, bias):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
    return (x - mean.detach()) / (variance.detach() + 1e-5).sqrt() * weight + bias


def network(weights, normalise, x):
    x = torch.cat([x, torch.ones(len(x), 1)], 1)
    for w, gain, shift in (weights[:3], weights[3:6]):
        x = torch.tanh(normalise(x @ w, gain, shift))
    return x @ weights[6]


def train(normalise, steps=300, rate=0.5, width=32):
    torch.manual_seed(0)
    weights = [torch.randn(3, width), torch.ones(width), torch.zeros(width)]
    weights += [torch.randn(width, width) / width**0.5, torch.ones(width), torch.zeros(width)]
    weights += [torch.randn(width, 3) / width**0.5]
    weights, losses = [w.requires_grad_() for w in weights], []
    for _ in range(steps):
        loss = CrossEntropy.apply(network(weights, normalise, points), arms)
        losses.append(loss.item())
        slopes = torch.autograd.grad(loss, weights)
        weights = [(w - rate * slope).detach().requires_grad_() for w, slope in zip(weights, slopes, strict=True)]
    return weights, losses


grid = torch.stack(torch.meshgrid(torch.linspace(-3.4, 3.4, 120), torch.linspace(-3.4, 3.4, 120), indexing="xy"), -1)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for axis, normalise, name in ((axes[0], LayerNorm.apply, "all three paths"), (axes[1], first_path_alone, "one path")):
    weights, losses = train(normalise)
    with torch.no_grad():
        regions = network(weights, normalise, grid.reshape(-1, 2)).argmax(1).reshape(120, 120)
    axis.contourf(grid[..., 0], grid[..., 1], regions, levels=[-0.5, 0.5, 1.5, 2.5], alpha=0.3)
    axis.scatter(points[:, 0], points[:, 1], c=arms, s=8)
    axis.set(title=name, xticks=[], yticks=[], aspect="equal")
    axes[2].semilogy(losses, label=name)
    print(f"{name:>15}: loss {losses[0]:.3f} -> {losses[-1]:.4f}")
axes[2].set(xlabel="step", ylabel="loss")
axes[2].legend()
plt.show()

# %% [markdown] lang="en" pair="check-it"
# It learns, it tells the arms apart, and its curve is even the smoother one here. Nobody would search for a bug there. A check finds it at once:

# %% [markdown] lang="zh" pair="check-it" of="7937ae8d"
# 它学得会，三条旋臂也分得清，在这里曲线甚至还更平滑。没有人会想到去那里找错。检查一下，立刻现形：

# %%
# %exercises layer_norm cross_entropy
x = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
gain = torch.ones(4, dtype=torch.float64, requires_grad=True)
shift = torch.zeros(4, dtype=torch.float64, requires_grad=True)
for normalise in (LayerNorm.apply, first_path_alone):
    print(nbautograd.gradcheck(normalise, (x, gain, shift)).verdict)

# %% [markdown] lang="en" pair="end"
# **What to keep**
#
# | forward | backward |
# |---|---|
# | sum | repeats |
# | mean | repeats, divided by how many |
# | max | goes to one, by its index |
# | logsumexp | shares by softmax, $e^{x - y}$ |
# | cross-entropy of logits | belief minus truth, divided by the number of rows |
# | normalisation | direct, minus its mean, minus its part along $\hat x$ |
# | gather | scatter with addition |
#
# A loss that goes down is no proof of a gradient.
#
# **Next**: notebook 06, where the derivative does not exist, and you say what it is.

# %% [markdown] lang="zh" pair="end" of="ee787ad1"
# **记住这些**
#
# | 前向 | 反向 |
# |---|---|
# | 求和 | 原样复制 |
# | 平均 | 复制，再除以个数 |
# | 最大 | 按下标交给那一个 |
# | logsumexp | 按 softmax 分配，$e^{x - y}$ |
# | 对 logits 的交叉熵 | 相信的减去事实，再除以行数 |
# | 归一化 | 直接的一份，减去它的均值，再减去沿 $\hat x$ 的那一部分 |
# | gather | 带累加的 scatter |
#
# 损失在下降，并不证明梯度是对的。
#
# **下一课**：06，导数不存在的地方，由你来规定它。

# %% [raw] lang="zh"
# "apart" → "分开"
# "together" → "合计"
# : loss {loss.item():g}, gradient {slope → ：损失 {loss.item():g}，梯度 {slope
# : loss {losses[0] → ：损失 {losses[0]

# %%
# %exercises
