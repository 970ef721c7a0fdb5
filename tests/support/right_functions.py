"""Right Functions that look suspicious, by what they look like."""

from __future__ import annotations

import torch
from fn import Fn
from own_mistakes import Catalogue, draw
from torch import Tensor
from torch.autograd.function import once_differentiable

RIGHT = Catalogue()
case, written = RIGHT.case, RIGHT.written


# ---- shared_state: a floating argument that needs no gradient is special, so that no other value of it is fair ----


def binary() -> Tensor:
    return (draw(6, seed=3) > 0).detach().double()


# fmt: off
case("MaskSquared", "x, mask: save(mask); return x * mask * mask", "g: (mask,) = saved; return g * mask, None",
     lambda: (draw(6), binary()), "shared_state")
case("CrossEntropyOfOneHot", "x, target: save(x.softmax(1), target); return -(target * x.log_softmax(1)).sum()",
     "g: p, target = saved; return g * (p - target), None",
     lambda: (draw(4, 3), torch.eye(3, dtype=torch.float64)[[0, 2, 1, 0]]), "shared_state", once=True)


def symmetric() -> Tensor:
    a = draw(4, 4, seed=5).detach()
    return a + a.t()


case("QuadraticForm", "x, a: save(x, a); return x @ a @ x", "g: x, a = saved; return 2 * g * (a @ x), None",
     lambda: (draw(4), symmetric()), "shared_state")
case("ProjectsAwayFromUnit", "x, n: save(n); return x - (x @ n)[:, None] * n / (n @ n)",
     "g: (n,) = saved; return g - (g @ n)[:, None] * n, None",
     lambda: (draw(5, 3), torch.nn.functional.normalize(draw(3, seed=7).detach(), dim=0)), "shared_state")
case("RefusesOtherMasks",
     'x, mask: if not ((mask == 0) | (mask == 1)).all(): raise ValueError("the mask must be binary"); save(mask); '
     'return x * mask**3', "g: (mask,) = saved; return g * mask, None", lambda: (draw(6), binary()), "shared_state")


@written(lambda: (draw(6),), "shared_state")
class CountsItsCalls(Fn):
    calls = 0

    def forward(ctx, x):
        CountsItsCalls.calls += 1
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


@written(lambda: (draw(6),), "shared_state")
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


case("Dropout", "x: mask = (torch.rand_like(x) > 0.5).to(x) * 2; save(mask); return x * mask",
     "g: (mask,) = saved; return g * mask", lambda: (draw(4, 3),), "wrong_noncontiguous_input", once=True)
case("ExponentialClocks",
     "x: clocks = torch.empty_like(x).exponential_(); y = (x - clocks.log()).softmax(-1); save(y); return y",
     "g: (y,) = saved; return y * (g - (g * y).sum(-1, keepdim=True))", lambda: (draw(4, 3),),
     "wrong_noncontiguous_input", once=True)
case("Centred", "x: return (x + 1e6) - (x + 1e6).mean()", "g: return g - g.mean()", lambda: (draw(4, 3),),
     "wrong_noncontiguous_input")
case("LargestOfAll",
     "x: flat = x.reshape(-1); index = flat.argmax(); ctx.index, ctx.shape = index, x.shape; return flat[index]",
     "g: found = g.new_zeros(ctx.shape); found.view(-1)[ctx.index] = g; return found", lambda: (draw(4, 3),),
     "wrong_noncontiguous_input")


@written(lambda: (draw(5, 3),), "wrong_noncontiguous_input")
class MedianOfColumns(Fn):
    """Of an input that is one number everywhere, any entry may be the median."""

    def forward(ctx, x):
        values, ctx.rows = x.kthvalue(3, 0)  # ``median`` itself reads foreign memory there, in torch 2.13
        ctx.shape = x.shape
        return values

    def backward(ctx, g):
        return g.new_zeros(ctx.shape).scatter(0, ctx.rows[None], g[None])


case("MixesInNoise", "x: share = torch.rand_like(x); save(share); return share * x + (1 - share) * torch.randn_like(x)",
     "g: (share,) = saved; return g * share", lambda: (draw(4, 3),), "wrong_noncontiguous_input")


# ---- wrong_noncontiguous_grad: gradients that are nothing but round-off, whose sums run in another order ----


case("SoftmaxFarOut", "x: y = x.softmax(-1); save(y); return y",
     "g: (y,) = saved; return y * (g - (g * y).sum(-1, keepdim=True))",
     lambda: ((draw(6, 50).detach() + 1000).requires_grad_(),), "wrong_noncontiguous_grad", once=True)
case("LayerNorm",
     "x: centred = x - x.mean(-1, keepdim=True); scale = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt(); "
     "save(centred * scale, scale); return centred * scale",
     "g: y, scale = saved; return scale * (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True))",
     lambda: ((draw(6, 65).detach() + 1e4).requires_grad_(),), "wrong_noncontiguous_grad", once=True)


@written(lambda: (draw(4, 3),), "wrong_noncontiguous_grad")
class DropoutDrawnAgain(Fn):
    def forward(ctx, x):
        ctx.state = torch.get_rng_state()
        return x * (torch.rand(x.shape, dtype=x.dtype) > 0.5)

    def backward(ctx, g):
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(ctx.state)
            return g * (torch.rand(g.shape, dtype=g.dtype) > 0.5)


# The Laplacian of the graph in which each entry of a row is the neighbour of all others.
case("ComparesWithAllOthers", "x: return x.shape[1] * x - x.sum(1, keepdim=True)",
     "g: return g.shape[1] * g - g.sum(1, keepdim=True)", lambda: (draw(2, 129),), "wrong_noncontiguous_grad")
case("CentredDifference", "a, b: difference = a - b; return difference - difference.mean(1, keepdim=True)",
     "g: centred = g - g.mean(1, keepdim=True); return centred, -centred", lambda: (draw(2, 129), draw(2, 129, seed=1)),
     "wrong_noncontiguous_grad")


# ---- hidden_input: leaves that forward makes itself, and parameters that backward does serve ----


@written(lambda: (draw(5),), "hidden_input")
class RunsAGraphOfItsOwn(Fn):
    def forward(ctx, x):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            ctx.inner, ctx.result = inner, inner.sin() * inner
        return ctx.result * 1.0

    @once_differentiable
    def backward(ctx, g):
        return torch.autograd.grad(ctx.result, ctx.inner, g, retain_graph=True)[0]


case("FixedPoint",
     "x: y = torch.ones_like(x).requires_grad_(); for _ in range(40): y = (y + x.detach() / y) / 2; save(y); return y",
     "g: (y,) = saved; return g / (2 * y)", lambda: (draw(5, low=0.5),), "hidden_input", once=True)


WEIGHT = draw(5, seed=9)


@written(lambda: (draw(5),), "hidden_input")
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


case("ReadsAParameterDetached", "x: save(x); return x * WEIGHT.detach()", "g: return g * WEIGHT.detach()",
     lambda: (draw(5),), "hidden_input")


CODEBOOK = draw(5, seed=10)


# A parameter that only decides: no gradient could reach it.
case("CountsNear", "x: ctx.scale = 1.0 + float((x > CODEBOOK).sum() * 0); return x * ctx.scale",
     "g: return g * ctx.scale", lambda: (draw(5),), "hidden_input")
case("GatedByAParameter", "x: save(CODEBOOK > 0); return torch.where(CODEBOOK > 0, x, 2 * x)",
     "g: (gate,) = saved; return torch.where(gate, g, 2 * g)", lambda: (draw(5),), "hidden_input")
# As kernels that add to a main gradient: what backward fills in by hand is no input that was forgotten.
case("ServesAParameterItself", "x: save(x); return x * WEIGHT",
     "g: (x,) = saved; WEIGHT.grad = g * x if WEIGHT.grad is None else WEIGHT.grad + g * x; return g * WEIGHT.detach()",
     lambda: (draw(5),), "hidden_input", once=True)


def fixed(values) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


# ---- small_systematic: less precision inside than outside ----


case("NormInSingle",
     "x: low = x.float(); scale = (low.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt(); save(low, scale); "
     "return (low * scale).to(x.dtype)", "g: x, scale = saved; y, g = x * scale, g.float(); "
     "return (scale * (g - y * (g * y).mean(-1, keepdim=True))).double()", lambda: (draw(3, 40),), "small_systematic",
     once=True)
case("ProductInSingle", "x, w: save(x, w); return (x.float() @ w.float()).to(x.dtype)",
     "g: x, w = saved; return (g.float() @ w.float().t()).to(x.dtype), (x.float().t() @ g.float()).to(w.dtype)",
     lambda: (draw(4, 300), draw(300, 5, seed=1)), "small_systematic", once=True)
case("ExpInHalf", "x: y = x.half().exp(); save(y); return y.to(x.dtype)",
     "g: (y,) = saved; return (g.half() * y).double()", lambda: (draw(64),), "small_systematic", once=True)
case("DistancesInSingle", "a, b: save(a, b); return (a.float() - b.float()).pow(2).sum(1).to(a.dtype)",
     "g: a, b = saved; gradient = (2 * g[:, None].float() * (a.float() - b.float())).double(); "
     "return gradient, -gradient", lambda: (draw(6, 8), draw(6, 8, seed=1)), "small_systematic", once=True)


# ---- double_backward_wrong: the first order is already uncertain ----


def ill_conditioned(power: int, seed: int = 0) -> Tensor:
    q, _ = torch.linalg.qr(draw(4, 4, seed=seed).detach())
    return (q @ torch.diag(10.0 ** -fixed([0, power / 3, power / 1.5, power])) @ q.t()).requires_grad_()


case("Solve", "a, b: x = torch.linalg.solve(a, b); save(a, b); return x",
     "g: a, b = saved; x, w = torch.linalg.solve(a, b), torch.linalg.solve(a.mT, g); return -w[:, None] * x, w",
     lambda: (ill_conditioned(5), draw(4, seed=1)), "double_backward_wrong")
case("Inverse", "a: save(a); return torch.linalg.inv(a)",
     "g: (a,) = saved; y = torch.linalg.inv(a).mT; return -y @ g @ y", lambda: (ill_conditioned(5, 1),),
     "double_backward_wrong")
case("SharpReciprocal", "x: save(x); return 1 / x", "g: (x,) = saved; return -g / x**2",
     lambda: (draw(5, low=1e-5, high=2e-5),), "double_backward_wrong")
case("FastWave", "x: save(x); return (x * x).sin()", "g: (x,) = saved; return g * 2 * x * (x * x).cos()",
     lambda: (draw(5, low=10, high=100),), "double_backward_wrong")
case("LeastSquares", "a, b: save(a, b); return torch.linalg.solve(a.mT @ a, a.mT @ b)",
     "g: a, b = saved; normal = a.mT @ a; x, w = torch.linalg.solve(normal, a.mT @ b), torch.linalg.solve(normal, g); "
     "return torch.outer(b - a @ x, w) - torch.outer(a @ w, x), a @ w",
     lambda: (ill_conditioned(2, 2), draw(4, seed=3)), "double_backward_wrong")
case("SteepStep", "x: save(x); return (2e5 * x).sigmoid()",
     "g: (x,) = saved; y = (2e5 * x).sigmoid(); return 2e5 * g * y * (1 - y)", lambda: (draw(5, low=-5e-6, high=5e-6),),
     "double_backward_wrong")
case("LengthOfAShortVector", "x: save(x); return x.norm()", "g: (x,) = saved; return g * x / x.norm()",
     lambda: (draw(4, low=1e-6, high=3e-6),), "double_backward_wrong")
