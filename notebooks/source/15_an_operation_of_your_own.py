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
#     course: "15"
#     title_en: An operation of your own
#     title_zh: 你自己的运算
#     minutes: 60
# ---

# %% [markdown] lang="en" pair="intro"
# # 15 · An operation of your own
#
# The last notebook but for a supplement. You choose an operation, write it, and ship it with a test. By now you know how to find out whether an operation is right. Whether the *test* is any good is another question. Spoil the backward a little, in twenty ways, and count how many of these **mutants** the test notices.
#
# **After it you can**
#
# - say how good a test is, by a number;
# - choose inputs at which mistakes show;
# - ship an operation with evidence.
#
# **You need** notebooks 01 to 05. **Time**: about 60 minutes with an operation from the list; one from your own work takes what it takes.

# %% [markdown] lang="zh" pair="intro" of="319c1682"
# # 15 · 你自己的运算
#
# 除了一篇补充，这是最后一课。你来选一个运算，写出来，连同测试一起交付。运算对不对，你已经知道怎样检查。那么*测试*好不好呢？这是另一个问题，也有办法回答：把 backward 稍稍改坏，改出二十个各不相同的版本，再数一数这些**变异体**（mutant）有多少逃不过测试。
#
# **学完之后，你能够**
#
# - 用一个数衡量测试有多好；
# - 选出能暴露错误的输入；
# - 交付一个有测试作保证的运算。
#
# **预备知识**：01 到 05。**用时**：从给出的运算里选一个，约 60 分钟；选自己工作中的运算，就看它有多难了。

# %% tags=["setup"]
import matplotlib.pyplot as plt
import torch
from torch.autograd import Function

import nbautograd
from nbautograd.course.mutants import kills, mutants

# %load_ext nbautograd

# %% [markdown] lang="en" pair="mutants"
# ## 1. Twenty ways to be wrong
#
# `Pool` is a mean of values, weighted by the softmax of scores: attention, for one query. Its backward is right. `mutants` makes twenty copies, each with one edit, such as a flipped sign, a mean for a sum, or swapped gradients. Every one of them runs, autograd takes what it returns without a word, and it is wrong.

# %% [markdown] lang="zh" pair="mutants" of="3e4d30c4"
# ## 1. 二十种错法
#
# `Pool` 是一组值的加权平均，权重是分数的 softmax，也就是只有一个查询的注意力。它的 backward 是对的。`mutants` 把它复制二十份，每份改动一处：变个正负号、把求和换成平均、多乘一个因子、漏掉一个名字、对调两个梯度。每一份都能运行，返回的梯度自动求导也照单全收，却都是错的。

# %% tags=["shown"]
class Pool(Function):
    @staticmethod
    def forward(ctx, scores, values):
        p = scores.softmax(1)
        ctx.save_for_backward(p, values)
        return (p * values).sum(1)

    @staticmethod
    def backward(ctx, g):
        p, values = ctx.saved_tensors
        mean = (p * values).sum(1, keepdim=True)
        grad_scores = g[:, None] * p * (values - mean)
        return grad_scores, g[:, None] * p


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


torch.manual_seed(0)
points = torch.randn(4, 2, 12, dtype=torch.float64).unflatten(2, (3, 4))
spoiled = mutants(Pool, [(scores, values) for scores, values in points], seed=34)
for number, mutant in enumerate(spoiled, 1):
    print(f"{number:>2}  {mutant.kind:<34} {mutant.after.strip()}")

# %% [markdown] lang="en" pair="tests"
# ## 2. Six tests
#
# A test receives the Function and either fails an `assert` or passes. `kills(test, function)` is True when it objects. Here are six, from one that only runs the code to a good one. The right gradients come from autograd of the same formula in plain torch.
#
# **Predict** the six numbers before you run it.

# %% [markdown] lang="zh" pair="tests" of="d9e0446b"
# ## 2. 六个测试
#
# 测试接收一个 Function，发现不对就用 `assert` 报错，否则什么也不做。只要它报错，`kills(test, function)` 就是 True。下面是六个测试，从只把代码跑一遍的到真正管用的。正确的梯度这样得到：用普通的 torch 运算写出同一个公式，再交给自动求导。
#
# 运行之前，**先猜一猜**那六个数。

# %%
def plain(scores, values):
    return (scores.softmax(1) * values).sum(1)


def compare(function, scores, values, g):
    leaves = scores.clone().requires_grad_(), values.clone().requires_grad_()
    right = torch.autograd.grad(plain(*leaves), leaves, g)
    found = torch.autograd.grad(function.apply(*leaves), leaves, g.clone(), materialize_grads=True)
    assert all(torch.allclose(a, b) for a, b in zip(found, right, strict=True))


def it_runs(function):
    random_x = random(3, 4).requires_grad_()
    function.apply(random_x, random_x).sum().backward()


def right_values(function):
    scores, values = random(3, 4), random(3, 4)
    assert torch.allclose(function.apply(scores, values), plain(scores, values))


def at_ones(function):
    compare(function, torch.ones(3, 3, dtype=torch.float64), torch.ones(3, 3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))


def one_row(function):
    compare(function, random(1, 4), random(1, 4), torch.ones(1, dtype=torch.float64))


def upstream_ones(function):
    compare(function, random(3, 4), random(3, 4), torch.ones(3, dtype=torch.float64))


def all_random(function):
    compare(function, random(3, 4), random(3, 4), random(3))


tests = [it_runs, right_values, at_ones, one_row, upstream_ones, all_random]
table = [[kills(test, mutant.function) for mutant in spoiled] for test in tests]
plt.figure(figsize=(8, 2.8), layout="constrained")
plt.pcolormesh(table, cmap="RdYlGn", edgecolors="white", linewidth=2, vmin=-0.2, vmax=1.2)
plt.yticks([k + 0.5 for k in range(6)], [f"{t.__name__}  {sum(row)}/{len(row)}" for t, row in zip(tests, table, strict=True)])
plt.xticks([k + 0.5 for k in range(len(spoiled))], range(1, len(spoiled) + 1))
plt.xlabel("mutant: green is found, red gets through")
plt.gca().invert_yaxis()
plt.show()
print({test.__name__: sum(row) for test, row in zip(tests, table, strict=True)})

# %% [markdown] lang="en" pair="telling-task"
# Green grows downwards. Tests that only run the code, or look at values, see nothing of a backward. Ones are bad numbers to test with. Multiply by them, average over them, swap them: everything stays the same.
#
# ### Exercise `telling_inputs`
#
# Find one point at which the comparison alone kills all twenty. It is `telling = (scores, values, grad_output)`, three float64 tensors of shapes (n, k), (n, k) and (n,), with numbers that *you write down*. What cannot tell by itself is refused: a single row, a row of equal numbers, a constant `grad_output`. Twenty numbers in all are allowed; how few are enough?

# %% [markdown] lang="zh" pair="telling-task" of="1723fab6"
# 越往下，绿色越多。只把代码跑一遍、或者只看前向数值的测试，对 backward 一无所知。全用 1 来测也很糟：乘以 1、对一排 1 求平均、把它们互换，结果都不变。
#
# ### 练习 `telling_inputs`
#
# 找出一组能揭穿它们的输入：三个 float64 张量 `telling = (scores, values, grad_output)`，形状是 (n, k)、(n, k) 和 (n,)，里面的数由*你自己写下*；只在这一点上比较，就能杀死全部二十个变异体。本来就分辨不出错误的输入不算数：只有一行、某一行各个数都一样、`grad_output` 是常数。一共最多用二十个数；最少要几个？

# %% exercise="telling_inputs"
# %%exercise telling_inputs
telling = (
    ### BEGIN SOLUTION
    torch.tensor([[0.3, -1.2, 0.8], [1.5, 0.1, -0.4]], dtype=torch.float64),
    torch.tensor([[2.0, -0.7, 1.1], [-1.6, 0.9, 0.4]], dtype=torch.float64),
    torch.tensor([1.3, -0.6], dtype=torch.float64),
    ### END SOLUTION
)

# %% [markdown] lang="en" pair="own-task"
# Ten: two rows of two.
#
# ## 3. Yours
#
# Now choose. Some that are worth having, and long enough: the cosine similarity of rows; squared distances between two sets of points; logsumexp with a temperature; a soft maximum, $\sum x\,e^{tx} / \sum e^{tx}$; the Huber loss between two tensors, with its mean; a polynomial by Horner's rule, with its coefficients as a second input; bilinear interpolation; the geometric mean; $x^{\mathsf T} A x$ for each row; a Gaussian's log density. Better still, one from your own work.
#
# ### Exercise `own_operation`
#
# Write `Own`, with as many arguments as you like. Besides `forward` and `backward` it has two static methods. `plain(*inputs)` computes the same in torch's own operations, short rather than fast. `example(seed)` returns a tuple of inputs, other ones for each seed, floating tensors in float64. By these your operation is judged like every exercise of this course. Its backward must have enough lines for twenty mutants. Some entry of a gradient must depend on other entries of the inputs (in a sum of squares none does). (`Pool` is taken.)

# %% [markdown] lang="zh" pair="own-task" of="dff9c234"
# 十个：两行，每行两个。
#
# ## 3. 你的运算
#
# 现在选一个运算。下面这些值得写，长度也够：两组行向量的余弦相似度；两组点之间的距离平方；带温度的 logsumexp；软最大值 $\sum x\,e^{tx} / \sum e^{tx}$；两个张量之间的 Huber 损失，再取平均；用秦九韶算法求多项式，系数作为第二个输入；双线性插值；几何平均；逐行的 $x^{\mathsf T} A x$；高斯分布的对数密度。要是选你自己工作中用得到的，那就更好。
#
# ### 练习 `own_operation`
#
# 写出 `Own`，参数个数随你。除 `forward` 与 `backward` 之外，它还有两个静态方法：`plain(*inputs)`，用 torch 自带的运算写出同一个函数，求短不求快；`example(seed)`，返回由输入组成的元组，种子不同，数就不同，浮点张量一律用 float64。你的运算就按这份声明来评判，和本课程的每道练习一样；此外，它的 backward 要足够长，能生成二十个变异体；梯度里还要有某个元素取决于输入的其他元素（平方和就没有这样的元素）。（`Pool` 已经用过了，不算。）

# %% exercise="own_operation"
# %%exercise own_operation
class Own(Function):
    @staticmethod
    def forward(ctx, a, b):
        ### BEGIN SOLUTION
        length_a, length_b = a.norm(dim=1, keepdim=True), b.norm(dim=1, keepdim=True)
        along_a, along_b = a / length_a, b / length_b
        y = (along_a * along_b).sum(1, keepdim=True)
        ctx.save_for_backward(length_a, length_b, along_a, along_b, y)
        return y[:, 0]
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        length_a, length_b, along_a, along_b, y = ctx.saved_tensors
        g = grad_output[:, None]
        grad_a = g * (along_b - y * along_a) / length_a
        grad_b = g * (along_a - y * along_b) / length_b
        return grad_a, grad_b
        ### END SOLUTION

    @staticmethod
    def plain(a, b):
        ### BEGIN SOLUTION
        return torch.cosine_similarity(a, b, dim=1)
        ### END SOLUTION

    @staticmethod
    def example(seed):
        ### BEGIN SOLUTION
        generator = torch.Generator().manual_seed(seed)
        draw = torch.randn(2, 3, 4, dtype=torch.float64, generator=generator)
        return draw[0], draw[1]
        ### END SOLUTION

# %% [markdown] lang="en" pair="test-task"
# ## 4. Your test
#
# What you ship is the pair: the operation, and the test that whoever changes it later will run.
#
# ### Exercise `own_test`
#
# Write `test(function)`. If a Function that claims to be yours has a wrong gradient, it objects, with `assert` or by returning `False`. It may use `plain`, differences, `torch.autograd.gradcheck`, whatever you have learnt to trust. It is run on
#
# - your operation, which it must accept, whatever the random numbers and however backward is written: compare with a tolerance;
# - backwards that return None, zeros, or one gradient twice as large, or put the mean of `grad_output` in the place of each of its numbers: all must die;
# - twenty mutants, drawn anew each time: eighteen must die;
# - the same mutants in the place of `Own.backward`, since that is where somebody will change it: a test that compares with `Own` itself would see nothing.

# %% [markdown] lang="zh" pair="test-task" of="27dc1691"
# ## 4. 你的测试
#
# 要交付的是一对：一个运算，一个测试；日后谁改动了运算，就要运行这个测试。
#
# ### 练习 `own_test`
#
# 写出 `test(function)`：如果传进来的 Function 自称是你的运算，梯度却不对，就用 `assert` 报错，或者返回 `False`。可以用 `plain`、差分、`torch.autograd.gradcheck`，或者你学到的任何信得过的办法。它会在这些上面运行：
#
# - 你的运算：不论随机数是多少、backward 怎样写，都必须通过：比较时要留容差；
# - 返回 None、返回 0、某个梯度成了两倍，或者把 `grad_output` 的每个数都换成它们平均值的 backward：都要杀死；
# - 每次重新抽取的二十个变异体：至少杀死十八个；
# - 同样的变异体放在 `Own.backward` 的位置上：以后有人改动，改的正是那里；拿 `Own` 自己作比较的测试，什么也看不出来。

# %% exercise="own_test"
# %%exercise own_test
def test(function):
    ### BEGIN SOLUTION
    for seed in range(3):
        leaves = [x.clone().requires_grad_() for x in Own.example(seed)]
        expected = Own.plain(*leaves)
        y = function.apply(*leaves)
        assert torch.allclose(y, expected)
        g = torch.randn(y.shape, dtype=y.dtype)
        right = torch.autograd.grad(expected, leaves, g)
        found = torch.autograd.grad(y, leaves, g.clone(), allow_unused=True)
        assert all(a is not None and torch.allclose(a, b) for a, b in zip(found, right, strict=True))
    ### END SOLUTION


shipped = Own, test

# %% [markdown] lang="en" pair="score"
# Your score, mutant by mutant. If one gets through, its edit stands beneath: is it a mistake that somebody could make?

# %% [markdown] lang="zh" pair="score" of="78b30f2f"
# 下面逐个变异体列出你的成绩。有漏网的，就会写出它改了什么：这样的错误，真会有人犯吗？

# %%
# %exercises own_test
own, own_tests = shipped
made = mutants(own, [own.example(seed) for seed in range(4)])
killed = [kills(own_tests, mutant.function) for mutant in made]
plt.figure(figsize=(8, 0.9), layout="constrained")
plt.pcolormesh([killed], cmap="RdYlGn", edgecolors="white", linewidth=2, vmin=-0.2, vmax=1.2)
plt.yticks([])
plt.xticks([k + 0.5 for k in range(len(made))], range(1, len(made) + 1))
plt.title(f"{sum(killed)} of {len(made)} killed")
plt.show()
print(f"score: {sum(killed)} of {len(made)}")
for number, (mutant, found) in enumerate(zip(made, killed, strict=True), 1):
    if not found:
        print(f"{number} gets through:\n{mutant}")

# %% [markdown] lang="en" pair="end"
# **What to keep**
#
# - A test is worth what it notices. Mutants count it.
# - Four habits cost nothing: random numbers of both signs, shapes that are not square, more than one row, a random `grad_output`.
# - The plain formula is the specification; ship it with the operation.
# - Values are not everything. Dtypes, writes in place, second derivatives and vmap have checks of their own (03, 04, 07, 08, 09). `nbautograd.gradcheck` asks for them together.
#
# That was the course; 16 is a supplement. `%exercises` shows what is left.

# %% [markdown] lang="zh" pair="end" of="e2bf8091"
# **记住这些**
#
# - 测试好不好，看它能发现多少错误；变异体把这变成了一个数。
# - 有正有负的随机数、不是方阵的形状、不止一行、随机的 `grad_output`：四个不费事的好习惯。
# - 直接写出的公式就是规格说明，请和运算一起交付。
# - 数值不是全部：dtype、原地写入、二阶导数、vmap 都各有检查（03、04、07、08、09），`nbautograd.gradcheck` 会一并过问。
#
# 课程到这里就结束了，16 是补充。`%exercises` 会告诉你还剩下什么。

# %% [raw] lang="zh"
# score: {sum(killed)} of {len(made)} → 得分：{len(made)} 个里杀掉 {sum(killed)} 个
#  gets through:\n →  没被发现：\n

# %%
# %exercises
