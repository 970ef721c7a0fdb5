"""Right Functions that look suspicious, by what they look like."""

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


@right("shared_state", lambda: (draw(5, 3), torch.nn.functional.normalize(draw(3, seed=7).detach(), dim=0)))
class ProjectsAwayFromUnit(Fn):
    def forward(ctx, x, n):
        ctx.save_for_backward(n)
        return x - (x @ n)[:, None] * n / (n @ n)

    def backward(ctx, g):
        (n,) = ctx.saved_tensors
        return g - (g @ n)[:, None] * n, None


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


@right("wrong_noncontiguous_input", lambda: (draw(4, 3),))
class Centred(Fn):
    def forward(ctx, x):
        return (x + 1e6) - (x + 1e6).mean()

    def backward(ctx, g):
        return g - g.mean()


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
class MixesInNoise(Fn):
    def forward(ctx, x):
        share = torch.rand_like(x)
        ctx.save_for_backward(share)
        return share * x + (1 - share) * torch.randn_like(x)

    def backward(ctx, g):
        (share,) = ctx.saved_tensors
        return g * share


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


@right("wrong_noncontiguous_grad", lambda: (draw(4, 3),))
class DropoutDrawnAgain(Fn):
    def forward(ctx, x):
        ctx.state = torch.get_rng_state()
        return x * (torch.rand(x.shape, dtype=x.dtype) > 0.5)

    def backward(ctx, g):
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(ctx.state)
            return g * (torch.rand(g.shape, dtype=g.dtype) > 0.5)


@right("wrong_noncontiguous_grad", lambda: (draw(2, 129),))
class ComparesWithAllOthers(Fn):
    """The Laplacian of the graph in which each entry of a row is the neighbour of all others."""

    def forward(ctx, x):
        return x.shape[1] * x - x.sum(1, keepdim=True)

    def backward(ctx, g):
        return g.shape[1] * g - g.sum(1, keepdim=True)


@right("wrong_noncontiguous_grad", lambda: (draw(2, 129), draw(2, 129, seed=1)))
class CentredDifference(Fn):
    def forward(ctx, a, b):
        difference = a - b
        return difference - difference.mean(1, keepdim=True)

    def backward(ctx, g):
        centred = g - g.mean(1, keepdim=True)
        return centred, -centred


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


@right("double_backward_wrong", lambda: (draw(5, low=-5e-6, high=5e-6),))
class SteepStep(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (2e5 * x).sigmoid()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = (2e5 * x).sigmoid()
        return 2e5 * g * y * (1 - y)


@right("double_backward_wrong", lambda: (draw(4, low=1e-6, high=3e-6),))
class LengthOfAShortVector(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.norm()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x / x.norm()
