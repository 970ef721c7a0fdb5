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
#     course: "14"
#     title_en: Saving memory
#     title_zh: 节省内存
#     minutes: 80
# ---

# %% [markdown] lang="en" pair="intro"
# # 14 · Saving memory
#
# Training needs more memory than using a network. Often most of it is neither weights nor gradients, but what forward leaves for backward. You write both, so you decide how much that is.
#
# **After it you can**
#
# - measure what waits for backward, and watch it grow and shrink during a step;
# - keep one tensor where a chain of operations keeps three;
# - compute again what is cheap to compute and large to keep;
# - write an activation in place, and take its derivative from the output;
# - write a checkpoint that stays right when there are random numbers inside.
#
# **You need** notebooks 01 to 05 and 07. **Time**: about 80 minutes.

# %% [markdown] lang="zh" pair="intro" of="2768372a"
# # 14 · 节省内存
#
# 训练一个网络比使用它更费内存；多出来的部分，大头往往既不是权重也不是梯度，而是前向为反向保存的张量。前向和反向都由你来写，保存多少也就由你决定。
#
# **学完之后，你能够**
#
# - 测出有多少字节是为反向传播留着的，看它在一步训练里怎样涨上去、又降下来；
# - 把原本要保存三个张量的一串运算，改成只保存一个；
# - 算起来快、存起来大的张量，不保存，用时再重算；
# - 写一个原地的激活函数，由输出求导数；
# - 写一个检查点，块里用到随机数也不出错。
#
# **预备知识**：01 到 05，以及 07。**用时**：约 80 分钟。

# %% tags=["setup"]
import weakref

import matplotlib.pyplot as plt
import torch
from torch.autograd import Function
from torch.nn import functional as F

import nbautograd

# %load_ext nbautograd

# %% [markdown] lang="en" pair="mountain"
# ## 1. What waits for backward
#
# torch can call two functions of yours (`saved_tensors_hooks`): one when a tensor is saved for backward, one when it is taken out again. `Ledger` hands out a slip for each saved tensor. When autograd drops the slip, the bytes are free again. A storage that is saved twice counts once; the parameters, which are there anyway, do not count.
#
# **Predict** the curve of one training step of twelve equal layers. Where is its highest point, and what does it look like on both sides?

# %% [markdown] lang="zh" pair="mountain" of="0f10f2e8"
# ## 1. 为反向传播留着的内存
#
# torch 允许你提供两个函数：每次为反向保存张量时调用一个，每次取出时调用另一个（`saved_tensors_hooks`）。`Ledger`（账本）给每个保存的张量开一张票据（`Slip`）；自动求导丢掉票据时，对应的字节就释放了。同一块存储保存两次只算一次；参数本来就在内存里，不计入。
#
# **先猜一猜**：一个由十二个相同的层组成的网络，训练一步，这条内存曲线是什么样？最高点在哪里，两侧是什么形状？

# %%
class Slip:
    def __init__(self, ledger, tensor):
        self.tensor = tensor
        ledger.count(tensor, +1)
        weakref.finalize(self, ledger.count, tensor, -1)  # runs when the slip is dropped


class Ledger:
    """Bytes that wait for backward, from moment to moment."""

    def __init__(self, free=()):
        self.free = {p.untyped_storage().data_ptr() for p in free}
        self.slips, self.now, self.curve = {}, 0, [0]

    def count(self, tensor, change):
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
        before = self.slips.get(key, 0)
        self.slips[key] = before + change
        if key not in self.free and (before == 0 or before + change == 0):
            self.now += change * storage.nbytes()
            self.curve.append(self.now)

    def open(self):
        return torch.autograd.graph.saved_tensors_hooks(lambda tensor: Slip(self, tensor), lambda slip: slip.tensor)


def step(network, x):
    """One forward and one backward; the bytes that wait, from moment to moment."""
    ledger = Ledger([x, *network.parameters()])
    network.zero_grad()
    with ledger.open():
        network(x).square().mean().backward()
    return ledger.curve


def waiting(run):
    """The bytes that a forward leaves behind."""
    ledger = Ledger()
    with ledger.open():
        result = run()
    del result
    return max(ledger.curve)


torch.manual_seed(0)
x = torch.randn(256, 64)
layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Softplus()) for _ in range(12)]
plain = step(torch.nn.Sequential(*layers), x)
plt.figure(figsize=(6, 2.5), layout="constrained")
plt.plot([size / 1e6 for size in plain])
plt.ylabel("MB that wait")
plt.xlabel("forward, then backward")
plt.show()
print(f"{max(plain) / 1e6:.2f} MB at the top; one activation takes {x.numel() * 4 / 1e6:.3f} MB")

# %% [markdown] lang="en" pair="entropy-task"
# A mountain: every layer of forward carries something up, every layer of backward takes it down. Its *top* must fit next to the weights, their gradients and what is just being computed. Each layer leaves two tensors there: the input of its activation, and the activation, which is the next layer's input. The rest of this notebook makes the mountain lower, in four ways. It counts what *waits*: a tensor that a method uses in passing is not in it.
#
# ## 2. Keep one tensor
#
# In a language model the largest tensor is often the last. The logits have one row for each word of text, one column for each word of the vocabulary. A loss written as a chain of operations keeps several of that size. For the loss with **label smoothing** $s$, where $1-s$ goes to the right class, and $s$ is spread evenly over all $C$,
#
# $$L = -\frac1N \sum_n \sum_c q_{nc} \log p_{nc}, \qquad p = \operatorname{softmax}(x), \qquad q_{nc} = (1 - s)\,[c = t_n] + \frac sC,$$
#
# the derivative is as short as without smoothing: $\partial L / \partial x = (p - q) / N$.
#
# ### Exercise `lean_cross_entropy`
#
# Write `LeanCrossEntropy.apply(logits, target, smoothing)`; first derivatives are enough. What waits for backward may be *one* tensor of the logits' size, and a number or two for each row. Everything in torch is allowed this time, except to ask autograd, in either method. Logits of ±1000 are among the inputs.

# %% [markdown] lang="zh" pair="entropy-task" of="e10c06a2"
# 像一座山：前向每经过一层就堆高一点，反向每经过一层就降低一点。除了权重、它们的梯度和正在计算的东西，内存还必须容得下*山顶*；每一层在山顶都占着两个张量：激活函数的输入，以及它的输出（也就是下一层的输入）。接下来用四种办法把这座山削低。这里只统计*留着*的：方法里临时用一下的张量不算。
#
# ## 2. 只留一个张量
#
# 在语言模型里，最大的张量常常是最后一个：logits，文本的每个词一行，词表的每个词一列。把损失写成一串运算，就要保存好几个这么大的张量。带**标签平滑** $s$ 的损失，先给正确的类别 $1 - s$，再把 $s$ 平均分给所有类别：
#
# $$L = -\frac1N \sum_n \sum_c q_{nc} \log p_{nc}, \qquad p = \operatorname{softmax}(x), \qquad q_{nc} = (1 - s)\,[c = t_n] + \frac sC,$$
#
# 它的导数和不做平滑时一样简短：$\partial L / \partial x = (p - q) / N$。
#
# ### 练习 `lean_cross_entropy`
#
# 写出 `LeanCrossEntropy.apply(logits, target, smoothing)`，只要求一阶导数。为反向保存的，只能有*一个* logits 大小的张量，外加每行一两个数。这一次 torch 里的函数都可以用，只是两个方法里都不能调用自动求导。输入里会有 ±1000 的 logits。

# %% exercise="lean_cross_entropy"
# %%exercise lean_cross_entropy
class LeanCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, target, smoothing):
        ### BEGIN SOLUTION
        log_p = logits.log_softmax(1)
        ctx.save_for_backward(log_p, target)
        ctx.smoothing = smoothing
        of_target = log_p.gather(1, target[:, None]).mean()
        return -(1 - smoothing) * of_target - smoothing * log_p.mean()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        log_p, target = ctx.saved_tensors
        rows, classes = log_p.shape
        slope = log_p.exp() - ctx.smoothing / classes
        slope[torch.arange(rows), target] -= 1 - ctx.smoothing
        return grad_output * slope / rows, None, None
        ### END SOLUTION

# %% [markdown] lang="en" pair="entropy-measured"
# Compare with the chain, and with torch's own, which is fused as well, at 2000 words of a vocabulary of 1000. (If yours saves what is neither input nor output, such as $\log p$, a second derivative through it is incomplete, often silently; notebook 08 says what to do.)

# %% [markdown] lang="zh" pair="entropy-measured" of="6babef13"
# 来比一比三种写法：一串运算、torch 自带的（同样是融合实现）、你写的；文本 2000 个词，词表 1000 个词。（如果你保存的既不是输入也不是输出，例如 $\log p$，那么经过它的二阶导数是不完整的，而且常常没有提示；怎么办见 08。）

# %%
# %exercises lean_cross_entropy
def chained(logits, target, smoothing):
    shifted = logits - logits.amax(1, keepdim=True)
    p = shifted.exp() / shifted.exp().sum(1, keepdim=True)
    wanted = torch.full_like(p, smoothing / p.shape[1])
    wanted = wanted.scatter_add(1, target[:, None], torch.full_like(p[:, :1], 1 - smoothing))
    return -(wanted * p.log()).sum(1).mean()


logits, target = torch.randn(2000, 1000, requires_grad=True), torch.randint(0, 1000, (2000,))
losses = {
    "chained": chained,
    "torch": lambda x, t, s: F.cross_entropy(x, t, label_smoothing=s),
    "yours": LeanCrossEntropy.apply,
}
for name, loss in losses.items():
    (slope,) = torch.autograd.grad(loss(logits, target, 0.1), logits)
    size = waiting(lambda loss=loss: loss(logits, target, 0.1))
    print(f"{name:<8} keeps {size / logits.nbytes:.1f} times the logits, sum of |gradient| {slope.abs().sum():.4f}")

# %% [markdown] tags=["shown"] lang="en" pair="norm-task"
# ## 3. Compute it again
#
# A convolution keeps its input. A batch norm behind it keeps *its* input, which is the convolution's output: as large again, and often larger. But from input and weight that output can be had a second time, for the price of one more convolution. This is **recomputation**, the trade of time for memory.
#
# With $y = \operatorname{conv}(x, w)$, and mean $\mu$ and (biased) variance $\sigma^2$ of each channel over batch and image, $z = (y - \mu)\,r$ with $r = 1/\sqrt{\sigma^2 + 10^{-5}}$:
#
# $$\frac{\partial L}{\partial y} = r \left( g - \overline{g} - z\, \overline{g z} \right)$$
#
# where a bar is the mean over the same elements (notebook 05 has the same three paths, along rows). From there, torch has both gradients of a convolution: `torch.nn.grad.conv2d_input(x.shape, w, grad_y)` and `torch.nn.grad.conv2d_weight(x, w.shape, grad_y)`.
#
# ### Exercise `recomputed_norm`
#
# Write `ConvNorm.apply(x, weight)`: `F.conv2d`, then normalised with the statistics of this batch. Keep the two inputs, and at most two numbers for each channel.

# %% [markdown] tags=["shown"] lang="zh" pair="norm-task" of="b3c55d84"
# ## 3. 重新算一遍
#
# 卷积要保存它的输入。后面的批归一化也要保存*自己的*输入，也就是卷积的输出：同样大，往往还更大。但只要有输入和权重，这个输出随时可以重新算出来，代价是多做一次卷积。这就是**重算**：用时间换内存。
#
# 记 $y = \operatorname{conv}(x, w)$；对每个通道，在整批、整幅图上求均值 $\mu$ 和（有偏）方差 $\sigma^2$；$z = (y - \mu)\,r$，其中 $r = 1/\sqrt{\sigma^2 + 10^{-5}}$：
#
# $$\frac{\partial L}{\partial y} = r \left( g - \overline{g} - z\, \overline{g z} \right)$$
#
# 式中的横线表示在同样的元素上取均值（就是 05 里的三条路径，那里是按行取的）。再往回一步，卷积的两个梯度 torch 都有现成的：`torch.nn.grad.conv2d_input(x.shape, w, grad_y)` 和 `torch.nn.grad.conv2d_weight(x, w.shape, grad_y)`。
#
# ### 练习 `recomputed_norm`
#
# 写出 `ConvNorm.apply(x, weight)`：先 `F.conv2d`，再用这一批的统计量归一化。只保存两个输入，外加每个通道至多两个数。

# %% exercise="recomputed_norm"
# %%exercise recomputed_norm
class ConvNorm(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x, weight)
        y = F.conv2d(x, weight)
        mean, var = y.mean((0, 2, 3), keepdim=True), y.var((0, 2, 3), correction=0, keepdim=True)
        return (y - mean) * (var + 1e-5).rsqrt()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        x, weight = ctx.saved_tensors
        y = F.conv2d(x, weight)
        mean, var = y.mean((0, 2, 3), keepdim=True), y.var((0, 2, 3), correction=0, keepdim=True)
        r = (var + 1e-5).rsqrt()
        z = (y - mean) * r
        along = (grad_output * z).mean((0, 2, 3), keepdim=True)
        grad_y = r * (grad_output - grad_output.mean((0, 2, 3), keepdim=True) - z * along)
        grad_x = torch.nn.grad.conv2d_input(x.shape, weight, grad_y)
        return grad_x, torch.nn.grad.conv2d_weight(x, weight.shape, grad_y)
        ### END SOLUTION

# %% [markdown] lang="en" pair="norm-measured"
# **Predict**: eight channels in, thirty-two out. By which factor does the memory shrink, and what does it cost?

# %% [markdown] lang="zh" pair="norm-measured" of="5cf00eb6"
# **先猜一猜**：输入 8 个通道，输出 32 个。内存会降到几分之一？代价是什么？

# %%
# %exercises recomputed_norm
images, weight = torch.randn(16, 8, 28, 28, requires_grad=True), torch.randn(32, 8, 3, 3, requires_grad=True)
pairs = {
    "two layers": lambda: F.batch_norm(F.conv2d(images, weight), None, None, training=True),
    "yours": lambda: ConvNorm.apply(images, weight),
}
for name, run in pairs.items():
    print(f"{name:<10} {waiting(run) / 1e6:.2f} MB wait")
cotangent = torch.randn(16, 32, 26, 26)
both = [torch.autograd.grad(run(), (images, weight), cotangent) for run in pairs.values()]
print("the same gradients:", all(torch.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(*both, strict=True)))

# %% [markdown] lang="en" pair="inplace-task"
# It shrinks 4.4 times, for one convolution more.
#
# ## 4. In place, and backward from the output
#
# A layer's activation keeps its own input although nobody else wants it. If the activation can be undone, its derivative follows from the *output*, which the next layer keeps anyway. Then the input may be overwritten. The softplus $y = \log(1 + e^x)$ is such a one:
#
# $$\frac{dy}{dx} = \frac{e^x}{1 + e^x} = 1 - e^{-y}$$
#
# ### Exercise `softplus_in_place`
#
# Write `SoftplusInPlace`. It writes its result into the very tensor that it was given and says so (`ctx.mark_dirty`, notebook 07). It returns that tensor and keeps nothing else. Inputs as large as ±1000 must come out right. Near $y = 0$ a function in torch keeps the digits of $1 - e^{-y}$.

# %% [markdown] lang="zh" pair="inplace-task" of="1af26659"
# 降到 1/4.4，代价是多做一次卷积。
#
# ## 4. 原地写入，由输出求导
#
# 激活函数要保存自己的输入，可是除了它，没有谁还用得着这个输入。如果激活函数可逆，导数就能由*输出*算出，而输出反正要为下一层保存；这样，输入就可以覆盖掉。softplus，$y = \log(1 + e^x)$，就是这样的函数：
#
# $$\frac{dy}{dx} = \frac{e^x}{1 + e^x} = 1 - e^{-y}$$
#
# ### 练习 `softplus_in_place`
#
# 写出 `SoftplusInPlace`：把结果直接写进传入的张量，向自动求导声明这一点（`ctx.mark_dirty`，见 07），再返回这个张量，此外什么都不保存。输入大到 ±1000 也要算对；$y$ 接近 0 时，torch 里有一个函数可以算 $1 - e^{-y}$ 而不损失有效数字。

# %% exercise="softplus_in_place"
# %%exercise softplus_in_place
class SoftplusInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        x.copy_(F.softplus(x))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (y,) = ctx.saved_tensors
        return -grad_output * torch.expm1(-y)
        ### END SOLUTION

# %% [markdown] tags=["shown"] lang="en" pair="checkpoint-task"
# ## 5. A checkpoint
#
# Recomputation needs no formula of yours if autograd does it. Keep the *inputs* of a whole block and run it without a graph. In backward run it again, this time with one. That is a **checkpoint**.
#
# Three things go wrong if nobody thinks of them. The second run needs gradients switched on, and leaves of its own. The graph must end at the block's inputs. If the block draws **random numbers**, as dropout does, the second run drops other elements. Then the gradient belongs to another function. `torch.get_rng_state()` and `torch.set_rng_state(state)` take torch back to a moment; `with torch.random.fork_rng(devices=[])` puts things back as they were.
#
# **Predict**: would a test that compares gradients without dropout notice?
#
# ### Exercise `checkpoint`
#
# Write `Checkpoint.apply(function, *inputs)` for a `function` of tensors that returns one tensor. It runs once in forward and once in backward. Some inputs may want no gradient, among them tensors of whole numbers. After backward the random numbers continue as if backward had drawn none. `torch.autograd.grad` is allowed here.

# %% [markdown] tags=["shown"] lang="zh" pair="checkpoint-task" of="cc6b1ff9"
# ## 5. 检查点
#
# 把重算交给自动求导，就用不着你推公式：只保存整个块的*输入*，前向时运行一遍，不建图；反向时再运行一遍，这次建图。这就是**检查点**（checkpoint）。
#
# 有三处容易出错。第二遍运行时要开启梯度；要用新的叶子张量，让图到块的输入为止。另外，如果块里用到**随机数**（例如 dropout），第二遍丢弃的元素就和第一遍不同，得到的是另一个函数的梯度。`torch.get_rng_state()` 与 `torch.set_rng_state(state)` 能让 torch 回到某个时刻；`with torch.random.fork_rng(devices=[])` 在结束时把随机数的状态恢复原样。
#
# **先猜一猜**：只在没有 dropout 时比较梯度的测试，能发现这个错误吗？
#
# ### 练习 `checkpoint`
#
# 写出 `Checkpoint.apply(function, *inputs)`，`function` 接受若干张量，返回一个张量。它在前向里运行一次，反向里运行一次；有的输入不需要梯度，其中可能有整数张量。反向之后再取随机数，结果要和反向没有取过随机数一样。这里允许用 `torch.autograd.grad`。

# %% exercise="checkpoint"
# %%exercise checkpoint
class Checkpoint(Function):
    @staticmethod
    def forward(ctx, function, *inputs):
        ### BEGIN SOLUTION
        ctx.function, ctx.state = function, torch.get_rng_state()
        ctx.save_for_backward(*inputs)
        return function(*inputs)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        wanted = ctx.needs_input_grad[1:]
        copies = [x.detach().requires_grad_(w) for x, w in zip(ctx.saved_tensors, wanted, strict=True)]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            y = ctx.function(*copies)
        found = iter(torch.autograd.grad(y, [x for x in copies if x.requires_grad], grad_output))
        return None, *(next(found) if w else None for w in wanted)
        ### END SOLUTION

# %% [markdown] lang="en" pair="range"
# No: without random numbers the second run is the first.
#
# ## 6. The mountain again
#
# Twelve layers in four ways: as they are, with your softplus in place, each pair of layers behind a checkpoint, and both. (In the checkpoint the parameters are inputs too: only what goes in as an input gets a gradient.)
#
# **Predict**: what does the curve of the checkpoint look like on its way down?

# %% [markdown] lang="zh" pair="range" of="884538a7"
# 不能：没有随机数，第二遍和第一遍是一样的。
#
# ## 6. 再看那座山
#
# 还是那十二层，四种做法：原样；用你的原地 softplus；每两层放进一个检查点；两种都用。（检查点里，参数也是输入：只有作为输入传进去的才会得到梯度。）
#
# **先猜一猜**：用检查点时，曲线下降的那一侧是什么样子？

# %%
# %exercises softplus_in_place checkpoint
class InPlace(torch.nn.Module):
    def forward(self, h):
        return SoftplusInPlace.apply(h)


class Behind(torch.nn.Module):
    """A block behind a checkpoint."""

    def __init__(self, block):
        super().__init__()
        self.block, self.names = block, [name for name, _ in block.named_parameters()]

    def run(self, x, *parameters):
        return torch.func.functional_call(self.block, dict(zip(self.names, parameters, strict=True)), (x,))

    def forward(self, x):
        return Checkpoint.apply(self.run, x, *self.block.parameters())


def in_pairs(layers):
    return [Behind(torch.nn.Sequential(*layers[k : k + 2])) for k in range(0, len(layers), 2)]


linear = [layer[0] for layer in layers]
in_place = [torch.nn.Sequential(layer, InPlace()) for layer in linear]
ways = {"as it is": layers, "in place": in_place, "checkpoints": in_pairs(layers), "both": in_pairs(in_place)}
plt.figure(figsize=(7, 3), layout="constrained")
first = None
for name, chosen in ways.items():
    curve = step(torch.nn.Sequential(*chosen), x)
    slopes = [layer.weight.grad.clone() for layer in linear]
    first = first or slopes
    same = all(torch.allclose(a, b, rtol=1e-3, atol=1e-7) for a, b in zip(first, slopes, strict=True))
    plt.plot([k / (len(curve) - 1) for k in range(len(curve))], [size / 1e6 for size in curve], label=name)
    print(f"{name:<12} {max(curve) / 1e6:.2f} MB at the top, the same gradients: {same}")
plt.ylabel("MB that wait")
plt.xlabel("forward, then backward")
plt.legend()
plt.show()

# %% [markdown] lang="en" pair="end"
# It is a saw: each block climbs once more, while it is computed again, and then comes down.
#
# **What to keep**
#
# - The top of the mountain counts. It is what waits when forward ends, and what a recomputed block adds on the way down.
# - Fuse: one Function in place of a chain keeps what its own derivative needs, not what each step needs.
# - Recompute what is large and cheap. What the rest of the network keeps anyway costs you nothing: prefer to save inputs and outputs.
# - In place pays where the derivative can be read off the output; `mark_dirty` keeps it honest.
# - If you run something twice, use the same random numbers, and restore the generator afterwards. torch has the checkpoint ready made: `torch.utils.checkpoint`.

# %% [markdown] lang="zh" pair="end" of="6c262b5d"
# 像锯齿：每一块重算时先升上去一截，再降下来。
#
# **记住这些**
#
# - 决定内存的是山顶：前向结束时保存着的，加上反向途中重算一个块时多出来的。
# - 融合：用一个 Function 代替一串运算，只需保存它自己的导数要用的，而不是每一步要用的。
# - 占内存大、算起来快的，就重算。网络的其他部分反正要保存的张量，你再保存也不多占内存：所以优先保存输入和输出。
# - 导数能由输出算出时，原地写入才划算；别忘了用 `mark_dirty` 如实告诉自动求导。
# - 同一段计算要运行两遍，就得用同样的随机数，而且不影响之后的随机数。检查点 torch 有现成的：`torch.utils.checkpoint`。

# %% [raw] lang="zh"
# # runs when the slip is dropped → # 凭条被丢掉时运行
# Bytes that wait for backward, from moment to moment. → 随时间变化、等着 backward 的字节数。
# One forward and one backward; the bytes that wait, from moment to moment. → 一次 forward 和一次 backward；随时间变化、等着的字节数。
# The bytes that a forward leaves behind. → 一次 forward 留下的字节数。
#  MB at the top; one activation takes { →  MB 是最高点；一个激活值占 {
# keeps {size / logits.nbytes:.1f} times the logits, sum of |gradient| { → 留下 logits 的 {size / logits.nbytes:.1f} 倍，|梯度| 之和 {
#  MB wait") →  MB 在等")
# the same gradients: → 梯度相同：
# A block behind a checkpoint. → 放在检查点后面的一块。
#  MB at the top, the same gradients: { →  MB 是最高点，梯度相同：{

# %%
# %exercises
