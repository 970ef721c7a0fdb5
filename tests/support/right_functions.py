"""Right Functions, by the code of the finding that a hasty check would accuse them with."""

from __future__ import annotations

import torch
from fn import Fn
from own_mistakes import Mistake, draw
from torch import Tensor
from torch.autograd.function import once_differentiable

RIGHT: list[Mistake] = []


def right(code, inputs, call=None):
    def keep(cls):
        RIGHT.append(Mistake(cls.__name__, call or cls.apply, inputs, (code,)))
        return cls

    return keep


# ---- shared_state: a floating argument that needs no gradient is special, so that no other value of it is fair ----


def binary() -> Tensor:
    return (draw(6, seed=3) > 0).detach().double()


@right("shared_state", lambda: (draw(6), binary()))
class MaskSquared(Fn):
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask * mask

    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask, None


@right("shared_state", lambda: (draw(4, 3), torch.eye(3, dtype=torch.float64)[[0, 2, 1, 0]]))
class CrossEntropyOfOneHot(Fn):
    def forward(ctx, x, target):
        ctx.save_for_backward(x.softmax(1), target)
        return -(target * x.log_softmax(1)).sum()

    @once_differentiable
    def backward(ctx, g):
        p, target = ctx.saved_tensors
        return g * (p - target), None


@right("shared_state", lambda: (draw(6), 2 * binary() - 1))
class SquaredMargin(Fn):
    def forward(ctx, x, label):
        ctx.save_for_backward(x, label)
        return (1 - label * x) ** 2

    def backward(ctx, g):
        x, label = ctx.saved_tensors
        return g * 2 * (x - label), None


def symmetric() -> Tensor:
    a = draw(4, 4, seed=5).detach()
    return a + a.t()


@right("shared_state", lambda: (draw(4), symmetric()))
class QuadraticForm(Fn):
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x @ a @ x

    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return 2 * g * (a @ x), None


@right("shared_state", lambda: (draw(4, 2), torch.linalg.qr(draw(4, 4, seed=6).detach())[0]))
class SolvesWithOrthonormal(Fn):
    def forward(ctx, x, q):
        ctx.save_for_backward(q)
        return torch.linalg.solve(q, x)

    def backward(ctx, g):
        (q,) = ctx.saved_tensors
        return q @ g, None


@right("shared_state", lambda: (draw(5, 3), torch.nn.functional.normalize(draw(3, seed=7).detach(), dim=0)))
class ProjectsAwayFromUnit(Fn):
    def forward(ctx, x, n):
        ctx.save_for_backward(n)
        return x - (x @ n)[:, None] * n / (n @ n)

    def backward(ctx, g):
        (n,) = ctx.saved_tensors
        return g - (g @ n)[:, None] * n, None


@right("shared_state", lambda: (draw(3, 4), draw(4, seed=8, low=0.1).detach().softmax(0)))
class WeightedMean(Fn):
    def forward(ctx, x, weights):
        ctx.save_for_backward(weights)
        return (x * weights).sum(1) / weights.sum()

    def backward(ctx, g):
        (weights,) = ctx.saved_tensors
        return g[:, None] * weights, None


def rotation() -> Tensor:
    angle = torch.tensor(0.7, dtype=torch.float64)
    return torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).reshape(2, 2)


@right("shared_state", lambda: (draw(2, 5), rotation()))
class TurnsBack(Fn):
    def forward(ctx, x, r):
        ctx.save_for_backward(r)
        return torch.linalg.inv(r) @ x

    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return r @ g, None


@right("shared_state", lambda: (draw(6), binary()))
class RefusesOtherMasks(Fn):
    def forward(ctx, x, mask):
        if not ((mask == 0) | (mask == 1)).all():
            raise ValueError("the mask must be binary")
        ctx.save_for_backward(mask)
        return x * mask**3

    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask, None


@right("shared_state", lambda: (draw(6),))
class CountsItsCalls(Fn):
    calls = 0

    def forward(ctx, x):
        CountsItsCalls.calls += 1
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


@right("shared_state", lambda: (draw(6),))
class RemembersForSpeed(Fn):
    tables: dict = {}

    def forward(ctx, x):
        key = tuple(x.tolist())
        if key not in RemembersForSpeed.tables:
            RemembersForSpeed.tables[key] = x.exp()
        ctx.save_for_backward(RemembersForSpeed.tables[key])
        return RemembersForSpeed.tables[key].clone()

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


# ---- wrong_noncontiguous_input: random numbers drawn in the layout of the input, ties, round-off ----


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class Dropout(Fn):
    def forward(ctx, x):
        mask = (torch.rand_like(x) > 0.5).to(x) * 2
        ctx.save_for_backward(mask)
        return x * mask

    @once_differentiable
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class GaussianNoise(Fn):
    def forward(ctx, x):
        noise = 1 + torch.randn_like(x)
        ctx.save_for_backward(noise)
        return x * noise

    def backward(ctx, g):
        (noise,) = ctx.saved_tensors
        return g * noise


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class ExponentialClocks(Fn):
    def forward(ctx, x):
        clocks = torch.empty_like(x).exponential_()
        y = (x - clocks.log()).softmax(-1)
        ctx.save_for_backward(y)
        return y

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True))


@right("wrong_noncontiguous_input", lambda: (draw(4, 3), 0.3))
class AlphaDropout(Fn):
    def forward(ctx, x, p):
        gate = torch.empty_like(x).bernoulli_(1 - p)
        ctx.save_for_backward(gate)
        return torch.where(gate > 0, x, x.new_tensor(-1.7))

    def backward(ctx, g):
        (gate,) = ctx.saved_tensors
        return g * gate, None


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class Centred(Fn):
    def forward(ctx, x):
        return (x + 1e6) - (x + 1e6).mean()

    def backward(ctx, g):
        return g - g.mean()


@right("wrong_noncontiguous_input", lambda: (draw(5, 4),))
class SoftmaxOfAll(Fn):
    def forward(ctx, x):
        y = x.reshape(-1).softmax(0).reshape(x.shape)
        ctx.save_for_backward(y)
        return y

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum())


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class LargestOfAll(Fn):
    def forward(ctx, x):
        flat = x.reshape(-1)
        index = flat.argmax()
        ctx.index, ctx.shape = index, x.shape
        return flat[index]

    def backward(ctx, g):
        found = g.new_zeros(ctx.shape)
        found.view(-1)[ctx.index] = g
        return found


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class RandomSigns(Fn):
    def forward(ctx, x):
        signs = 2.0 * torch.randint_like(x, 2) - 1
        ctx.save_for_backward(signs)
        return x * signs

    def backward(ctx, g):
        (signs,) = ctx.saved_tensors
        return g * signs


@right("wrong_noncontiguous_input", lambda: (draw(5, 3),))
class MedianOfColumns(Fn):
    """Of an input that is one number everywhere, any entry may be the median."""

    def forward(ctx, x):
        values, ctx.rows = x.kthvalue(3, 0)  # ``median`` itself reads foreign memory there, in torch 2.13
        ctx.shape = x.shape
        return values

    def backward(ctx, g):
        return g.new_zeros(ctx.shape).scatter(0, ctx.rows[None], g[None])


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class RandomLeaks(Fn):
    def forward(ctx, x):
        slope = torch.where(x > 0, torch.ones_like(x), torch.empty_like(x).uniform_(0.1, 0.3))
        ctx.save_for_backward(slope)
        return x * slope

    def backward(ctx, g):
        (slope,) = ctx.saved_tensors
        return g * slope


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class MixesInNoise(Fn):
    def forward(ctx, x):
        share = torch.rand_like(x)
        ctx.save_for_backward(share)
        return share * x + (1 - share) * torch.randn_like(x)

    def backward(ctx, g):
        (share,) = ctx.saved_tensors
        return g * share


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class NoisyGates(Fn):
    def forward(ctx, x):
        gates = torch.randn_like(x).sigmoid()
        ctx.save_for_backward(gates)
        return x * gates

    def backward(ctx, g):
        (gates,) = ctx.saved_tensors
        return g * gates


# ---- wrong_noncontiguous_grad: gradients that are nothing but round-off, whose sums run in another order ----


@right("wrong_noncontiguous_grad", lambda: ((draw(6, 50).detach() + 1000).requires_grad_(),))
class SoftmaxFarOut(Fn):
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True))


@right("wrong_noncontiguous_grad", lambda: ((draw(6, 65).detach() + 1e4).requires_grad_(),))
class LayerNorm(Fn):
    def forward(ctx, x):
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
        ctx.save_for_backward(centred * scale, scale)
        return centred * scale

    @once_differentiable
    def backward(ctx, g):
        y, scale = ctx.saved_tensors
        return scale * (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True))


@right("wrong_noncontiguous_grad", lambda: ((1e3 * draw(4, 65).detach()).requires_grad_(),))
class SubtractsTheMean(Fn):
    def forward(ctx, x):
        return x - x.mean(1, keepdim=True)

    def backward(ctx, g):
        return g - g.mean(1, keepdim=True)


@right("wrong_noncontiguous_grad", lambda: ((100 * draw(9, 31).detach()).requires_grad_(),))
class LogSoftmax(Fn):
    def forward(ctx, x):
        y = x.log_softmax(0)
        ctx.save_for_backward(y)
        return y

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g - y.exp() * g.sum(0)


@right("wrong_noncontiguous_grad", lambda: (draw(4, 3),))
class DropoutDrawnAgain(Fn):
    def forward(ctx, x):
        ctx.state = torch.get_rng_state()
        return x * (torch.rand(x.shape, dtype=x.dtype) > 0.5)

    def backward(ctx, g):
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(ctx.state)
            return g * (torch.rand(g.shape, dtype=g.dtype) > 0.5)


@right("wrong_noncontiguous_grad", lambda: (draw(5, 13),))
class SubtractsTheMeanOfAll(Fn):
    def forward(ctx, x):
        return x - x.mean()

    def backward(ctx, g):
        return g - g.mean()


@right("wrong_noncontiguous_grad", lambda: (draw(2, 129),))
class ComparesWithAllOthers(Fn):
    """The Laplacian of the graph in which each entry of a row is the neighbour of all others."""

    def forward(ctx, x):
        return x.shape[1] * x - x.sum(1, keepdim=True)

    def backward(ctx, g):
        return g.shape[1] * g - g.sum(1, keepdim=True)


@right("wrong_noncontiguous_grad", lambda: (draw(2, 130),))
class CentresInGroups(Fn):
    def forward(ctx, x):
        groups = x.reshape(len(x), 2, -1)
        return (groups - groups.mean(-1, keepdim=True)).reshape(x.shape)

    def backward(ctx, g):
        groups = g.reshape(len(g), 2, -1)
        return (groups - groups.mean(-1, keepdim=True)).reshape(g.shape)


@right("wrong_noncontiguous_grad", lambda: (draw(3, 65),))
class CentresRowsAndColumns(Fn):
    def forward(ctx, x):
        return x - x.mean(1, keepdim=True) - x.mean(0) + x.mean()

    def backward(ctx, g):
        return g - g.mean(1, keepdim=True) - g.mean(0) + g.mean()


@right("wrong_noncontiguous_grad", lambda: (draw(2, 129), draw(2, 129, seed=1)))
class CentredDifference(Fn):
    def forward(ctx, a, b):
        difference = a - b
        return difference - difference.mean(1, keepdim=True)

    def backward(ctx, g):
        centred = g - g.mean(1, keepdim=True)
        return centred, -centred


@right("wrong_noncontiguous_grad", lambda: (draw(333),))
class TakesOutTheConstant(Fn):
    """The projection onto what is orthogonal to a constant."""

    def forward(ctx, x):
        return x - x.sum() / x.numel()

    def backward(ctx, g):
        return g - g.sum() / g.numel()


# ---- hidden_input: leaves that forward makes itself, and parameters that backward does serve ----


@right("hidden_input", lambda: (draw(5),))
class RunsAGraphOfItsOwn(Fn):
    def forward(ctx, x):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            ctx.inner, ctx.result = inner, inner.sin() * inner
        return ctx.result * 1.0

    @once_differentiable
    def backward(ctx, g):
        return torch.autograd.grad(ctx.result, ctx.inner, g, retain_graph=True)[0]


@right("hidden_input", lambda: (draw(5, low=0.5),))
class FixedPoint(Fn):
    def forward(ctx, x):
        y = torch.ones_like(x).requires_grad_()
        for _ in range(40):
            y = (y + x.detach() / y) / 2
        ctx.save_for_backward(y)
        return y

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g / (2 * y)


WEIGHT = draw(5, seed=9)


@right("hidden_input", lambda: (draw(5),))
class Recomputes(Fn):
    """As torch.utils.checkpoint: the parameter gets its gradient from the backward inside backward."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * WEIGHT).sin()

    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            (again * WEIGHT).sin().backward(g)
        return again.grad


@right("hidden_input", lambda: (draw(5),))
class ReadsAParameterDetached(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * WEIGHT.detach()

    def backward(ctx, g):
        return g * WEIGHT.detach()


CODEBOOK = draw(5, seed=10)


@right("hidden_input", lambda: (draw(5),))
class CountsNear(Fn):
    """A parameter that only decides: no gradient could reach it."""

    def forward(ctx, x):
        ctx.scale = 1.0 + float((x > CODEBOOK).sum() * 0)
        return x * ctx.scale

    def backward(ctx, g):
        return g * ctx.scale


@right("hidden_input", lambda: (draw(5),))
class ShapedLikeAParameter(Fn):
    def forward(ctx, x):
        return x.expand_as(WEIGHT) * torch.ones_like(WEIGHT, requires_grad=False) * 3

    def backward(ctx, g):
        return 3 * g


@right("hidden_input", lambda: (draw(5),))
class GatedByAParameter(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(CODEBOOK > 0)
        return torch.where(CODEBOOK > 0, x, 2 * x)

    def backward(ctx, g):
        (gate,) = ctx.saved_tensors
        return torch.where(gate, g, 2 * g)


@right("hidden_input", lambda: (draw(5),))
class ServesAParameterItself(Fn):
    """As kernels that add to a main gradient: what backward fills in by hand is no input that was forgotten."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * WEIGHT

    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        WEIGHT.grad = g * x if WEIGHT.grad is None else WEIGHT.grad + g * x
        return g * WEIGHT.detach()


def fixed(values) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


# ---- small_systematic: less precision inside than outside ----


@right("small_systematic", lambda: (draw(3, 40),))
class NormInSingle(Fn):
    def forward(ctx, x):
        low = x.float()
        scale = (low.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
        ctx.save_for_backward(low, scale)
        return (low * scale).to(x.dtype)

    @once_differentiable
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        y, g = x * scale, g.float()
        return (scale * (g - y * (g * y).mean(-1, keepdim=True))).double()


@right("small_systematic", lambda: (draw(3, 20),))
class LayerNormInHalf(Fn):
    def forward(ctx, x):
        low = x.bfloat16()
        y = low * 2
        return y.to(x.dtype)

    @once_differentiable
    def backward(ctx, g):
        return (g.bfloat16() * 2).double()


@right("small_systematic", lambda: (draw(4, 300), draw(300, 5, seed=1)))
class ProductInSingle(Fn):
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x.float() @ w.float()).to(x.dtype)

    @once_differentiable
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g.float() @ w.float().t()).to(x.dtype), (x.float().t() @ g.float()).to(w.dtype)


@right("small_systematic", lambda: (draw(64),))
class ExpInHalf(Fn):
    def forward(ctx, x):
        y = x.half().exp()
        ctx.save_for_backward(y)
        return y.to(x.dtype)

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return (g.half() * y).double()


@right("small_systematic", lambda: (draw(30, low=-6, high=6),))
class GradientInSingle(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() * 100

    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (100 * g.float() * x.float().cos()).double()


@right("small_systematic", lambda: (draw(5, 8), draw(8, seed=2)))
class RmsNormInSingle(Fn):
    def forward(ctx, x, w):
        low = x.float()
        scale = (low.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        ctx.save_for_backward(x, w, scale)
        return (low * scale).to(x.dtype) * w

    @once_differentiable
    def backward(ctx, g):
        x, w, scale = ctx.saved_tensors
        y = (x.float() * scale).double()
        gw = g * w
        return scale.double() * (gw - y * (gw * y).mean(-1, keepdim=True)), (g * y).sum(0)


@right("small_systematic", lambda: (draw(6, 5), draw(5, seed=2)))
class SoftmaxInSingle(Fn):
    def forward(ctx, x, w):
        y = (x * w).float().softmax(-1)
        ctx.save_for_backward(x, w, y)
        return y.to(x.dtype)

    @once_differentiable
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        y = y.double()
        inner = y * (g - (g * y).sum(-1, keepdim=True))
        return inner * w, (inner * x).sum(0)


@right("small_systematic", lambda: (draw(48),))
class SigmoidInHalf(Fn):
    def forward(ctx, x):
        y = x.bfloat16().sigmoid()
        ctx.save_for_backward(y)
        return y.to(x.dtype)

    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return (g.bfloat16() * y * (1 - y)).double()


@right("small_systematic", lambda: (draw(6, 8), draw(6, 8, seed=1)))
class DistancesInSingle(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a.float() - b.float()).pow(2).sum(1).to(a.dtype)

    @once_differentiable
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        gradient = (2 * g[:, None].float() * (a.float() - b.float())).double()
        return gradient, -gradient


# ---- double_backward_wrong: the first order is already uncertain ----


def ill_conditioned(power: int, seed: int = 0) -> Tensor:
    q, _ = torch.linalg.qr(draw(4, 4, seed=seed).detach())
    return (q @ torch.diag(10.0 ** -fixed([0, power / 3, power / 1.5, power])) @ q.t()).requires_grad_()


@right("double_backward_wrong", lambda: (ill_conditioned(5), draw(4, seed=1)))
class Solve(Fn):
    def forward(ctx, a, b):
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(a, b)
        return x

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        x, w = torch.linalg.solve(a, b), torch.linalg.solve(a.mT, g)
        return -w[:, None] * x, w


@right("double_backward_wrong", lambda: (ill_conditioned(5, 1),))
class Inverse(Fn):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.linalg.inv(a)

    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        y = torch.linalg.inv(a).mT
        return -y @ g @ y


@right("double_backward_wrong", lambda: (draw(5, low=1e-5, high=2e-5),))
class SharpReciprocal(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1 / x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -g / x**2


@right("double_backward_wrong", lambda: (draw(5, low=10, high=100),))
class FastWave(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sin()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x * (x * x).cos()


@right("double_backward_wrong", lambda: (ill_conditioned(2, 2), draw(4, seed=3)))
class LeastSquares(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.linalg.solve(a.mT @ a, a.mT @ b)

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        normal = a.mT @ a
        x, w = torch.linalg.solve(normal, a.mT @ b), torch.linalg.solve(normal, g)
        return torch.outer(b - a @ x, w) - torch.outer(a @ w, x), a @ w


@right("double_backward_wrong", lambda: (ill_conditioned(5, 3),))
class LogDeterminant(Fn):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.linalg.slogdet(a)[1]

    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * torch.linalg.inv(a).mT


@right("double_backward_wrong", lambda: (draw(5, low=1e-7, high=1e-6),))
class RootNearZero(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sqrt()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (2 * x.sqrt())


@right("double_backward_wrong", lambda: (draw(5, low=-5e-6, high=5e-6),))
class SteepStep(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (2e5 * x).sigmoid()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = (2e5 * x).sigmoid()
        return 2e5 * g * y * (1 - y)


@right("double_backward_wrong", lambda: (draw(5, low=1e-6, high=3e-6),))
class LogNearZero(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.log()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / x


@right("double_backward_wrong", lambda: (draw(4, low=1e-6, high=3e-6),))
class LengthOfAShortVector(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.norm()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x / x.norm()
