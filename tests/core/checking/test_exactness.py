"""Exactness: what iterates or approximates is right to that, and wrong where it lacks a small number of forward."""

from __future__ import annotations

import math

import pytest
import torch
from fn import Fn
from torch import Tensor

import nbautograd
from nbautograd.core.checking import directional
from nbautograd.core.checking.exactness import slight_blocks
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.run import GradcheckRun

EPSILON = 1e-6


def draw(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(shape, dtype=torch.float64, generator=generator)).requires_grad_()


def positive(*shape: int) -> Tensor:
    return (draw(*shape).detach().abs() + 0.3).requires_grad_()


def until(tolerance, start, step):
    """Iterate until nothing moves by more than the tolerance."""
    for _ in range(2_000):
        last, start = start, step(start)
        if (start - last).abs().max() < tolerance:
            break
    return start


# y = tanh(W y + x), its adjoint solved like it.
FixedPoint = Fn.of("FixedPoint", "x, w, tolerance: ctx.tolerance = tolerance; "
    "y = until(tolerance, torch.zeros_like(x), lambda y: torch.tanh(y @ w.t() + x)); save(w, y); return y",
    "g: w, y = saved; slope = 1 - y * y; v = until(ctx.tolerance, g, lambda u: g + (u * slope) @ w) * slope; "
    "return v, v.t() @ y, None")  # fmt: skip


class Sinkhorn(Fn):
    """A plan with uniform marginals."""

    def forward(ctx, cost, tolerance):
        even = -math.log(len(cost))

        def step(f):
            return even - torch.logsumexp(even - torch.logsumexp(f[:, None] - cost, 0) - cost, 1)

        f = until(tolerance, torch.zeros_like(cost[0]), step)
        plan = torch.exp(f[:, None] + even - torch.logsumexp(f[:, None] - cost, 0) - cost)
        ctx.save_for_backward(plan)
        return plan

    def backward(ctx, g):
        (plan,) = ctx.saved_tensors
        a, b = plan.sum(1), plan.sum(0)
        both = torch.cat([torch.cat([a.diag(), plan], 1), torch.cat([plan.t(), b.diag()], 1)])
        u = torch.linalg.pinv(both) @ torch.cat([(plan * g).sum(1), (plan * g).sum(0)])
        return -plan * (g - u[: len(a), None] - u[len(a) :]), None


PowerIteration = Fn.of("PowerIteration",
    "a, tolerance: s = (a + a.t()) / 2; start = torch.full_like(s[0], len(s) ** -0.5); "
    "v = until(tolerance, start, lambda v: s @ v / (s @ v).norm()); save(v); return v @ s @ v",
    "g: (v,) = saved; return g * torch.outer(v, v), None")  # fmt: skip
# Abramowitz and Stegun 7.1.26, off by 1.5e-7, with the exact derivative.
Erf = Fn.of("Erf", "x: save(x); t = 1 / (1 + 0.3275911 * x.abs()); "
    "p = 0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))); "
    "return x.sign() * (1 - t * p * torch.exp(-x * x))",
    "g: (x,) = saved; return g * 2 / math.sqrt(math.pi) * torch.exp(-x * x)")  # fmt: skip


class Implicit(Fn):
    """Hands on what a fixed point found, and solves for its gradient, as torchdeq 0.1.0 does."""

    def forward(ctx, step, y, factor):
        ctx.step, ctx.factor = step, factor
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        y = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            after = ctx.step(y)
        u = until(1e-6, g, lambda u: g + torch.autograd.grad(after, y, u, retain_graph=True)[0])
        return None, ctx.factor * u, None


def equilibrium(x, w, factor=1.0):
    def step(y):
        return torch.tanh(y @ w.t() + x)

    with torch.no_grad():
        y = until(1e-6, torch.zeros_like(x), step)
    return Implicit.apply(step, step(y), factor)


def cost() -> Tensor:
    return draw(4, 4).detach().abs().requires_grad_()


def spectrum() -> Tensor:
    a = draw(4, 4).detach()
    return (a @ a.t()).requires_grad_()


Guarded = Fn.of("Guarded", "x, eps: y = x.sqrt(); save(y); ctx.eps = eps; return y",
    "g: (y,) = saved; return g / (2 * (y + ctx.eps)), None")  # fmt: skip


APPROXIMATE = {
    "a guard that the caller sets": (Guarded, lambda: (positive(6), 1e-6)),
    "fixed point 1e-6": (FixedPoint, lambda: (draw(3, 4), draw(4, 4, seed=1, scale=0.2), 1e-6)),
    "Sinkhorn 1e-6": (Sinkhorn, lambda: (cost(), 1e-6)),
    "power iteration 1e-6": (PowerIteration, lambda: (spectrum(), 1e-6)),
    "erf": (Erf, lambda: (draw(3, 4),)),
    "implicit gradient": (equilibrium, lambda: (draw(3, 4), draw(4, 4, seed=1, scale=0.2))),
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_what_is_as_exact_as_its_solver_is_right_to_that(name: str) -> None:
    fn, inputs = APPROXIMATE[name]
    report = nbautograd.gradcheck(fn, inputs(), order=1)
    assert report.verdict == "right"
    off = max(block.deviation for block in report.blocks.values())
    assert 1e-9 < off < 1e-5
    assert {block.verdict for block in report.blocks.values()} == {"match"}
    assert report.reason.message_id == "checking.exact_to"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["power iteration 1e-6", "implicit gradient"])
@pytest.mark.parametrize("draws", [0, 3, 7, 18])
def test_what_a_solver_leaves_at_other_inputs_is_no_mistake_in_whatever_direction(name, draws, monkeypatch) -> None:
    drawn = directional.random_direction
    monkeypatch.setattr(directional, "random_direction", lambda x, seed: drawn(x, (seed * 2654435761 + draws) % 2**31))
    fn, inputs = APPROXIMATE[name]
    assert nbautograd.gradcheck(fn, inputs(), order=1).verdict == "right"


FixedPointOff = FixedPoint.of("FixedPointOff", backward="g: x, w, none = FixedPoint.backward(ctx, g); "
    "return 1.01 * x, w, none")  # fmt: skip
LooseBackward = FixedPoint.of("LooseBackward", "x, w, tolerance: y = FixedPoint.forward(ctx, x, w, 1e-13); "
    "ctx.tolerance = tolerance; return y")  # fmt: skip
LooseBackwardOff = LooseBackward.of("LooseBackwardOff", backward="g: x, w, none = LooseBackward.backward(ctx, g); "
    "return 1.05 * x, w, none")  # fmt: skip
PowerIterationOff = PowerIteration.of(
    "PowerIterationOff", backward="g: return 1.05 * PowerIteration.backward(ctx, g)[0], None"
)
SinkhornOff = Sinkhorn.of("SinkhornOff", backward="g: return 1.01 * Sinkhorn.backward(ctx, g)[0], None")
SinkhornFarOff = Sinkhorn.of("SinkhornFarOff", backward="g: return 1.5 * Sinkhorn.backward(ctx, g)[0], None")
# Not an iteration: what it calls depends on the values, and how often with it.
Branching = Fn.of("Branching",
    "x: save(x); ctx.up = bool(x.mean() > 0); return x.sin() if ctx.up else (2 * x).sin().exp()",
    "g: (x,) = saved; one = 1.05 * g * x.cos() if ctx.up else 1.05 * g * 2 * (2 * x).cos() * (2 * x).sin().exp(); "
    "return one")  # fmt: skip


def near_zero():
    """Numbers whose mean is near 0, where it branches."""
    x = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    return (x.requires_grad_(),)


@pytest.mark.parametrize(
    ("fn", "inputs", "verdict"),
    [
        (FixedPoint, lambda: (draw(3, 4), draw(4, 4, seed=1, scale=0.35), 1e-6), "cannot tell"),
        (LooseBackward, lambda: (draw(3, 4), draw(4, 4, seed=1, scale=0.35), 1e-3), "cannot tell"),
        (PowerIteration, lambda: (spectrum(), 1e-4), "cannot tell"),
        (Sinkhorn, lambda: (cost(), 1e-4), "cannot tell"),
        (LooseBackwardOff, lambda: (draw(2, 3), draw(3, 3, seed=1, scale=0.35), 1e-3), "wrong"),
        (PowerIterationOff, lambda: (spectrum(), 1e-4), "wrong"),
        (FixedPointOff, lambda: (draw(2, 3), draw(3, 3, seed=1, scale=0.35), 1e-6), "wrong"),
        (SinkhornOff, lambda: (cost(), 1e-6), "wrong"),
        (SinkhornFarOff, lambda: (cost(), 1e-4), "wrong"),
        (Branching, near_zero, "wrong"),
    ],
)
def test_what_last_steps_of_a_solver_leave_is_not_wrong_and_more_is(fn, inputs, verdict: str) -> None:
    report = nbautograd.gradcheck(fn, inputs(), order=1, hints="none")
    assert report.verdict == verdict
    assert {f.where[1] for f in report.findings if f.kind == "bug"} == ({0} if verdict == "wrong" else set())


def after(steps, start, step):
    for _ in range(steps):
        start = step(start)
    return start


def counted(factor: float):  # y = x + cos(y) / 2 after so many steps, with the gradient of the limit
    return Fn.of("Counted",
        "x, steps: y = after(steps, torch.zeros_like(x), lambda y: x + y.cos() / 2); save(y); return y",
        f"g: (y,) = saved; return {factor} * g / (1 + y.sin() / 2), None")  # fmt: skip


# wrong, for the power is one too many; of a large one nothing of that is left
Norm = Fn.of("Norm", "x, p: ctx.p = p; y = (x**p).sum() ** (1 / p); save(x, y); return y",
    "g: x, y = saved; return g * (x / y) ** ctx.p, None")  # fmt: skip


# forgets the bound, which the inputs given do not meet
Capped = Fn.of("Capped",
    "x, steps: y = after(steps, torch.zeros_like(x), lambda y: x.clamp(max=1) + y.cos() / 2); save(y); return y",
    "g: (y,) = saved; return g / (1 + y.sin() / 2), None")  # fmt: skip

Clamp = Fn.of("Clamp", "x, most: return x.clamp(-most, most)", "g: return g, None")  # of a large bound, nothing is cut


@pytest.mark.parametrize(
    ("fn", "inputs", "verdict"),
    [
        (counted(1.0), (draw(3), 4), "cannot tell"),
        (counted(1.0), (draw(3), 64), "right"),
        (counted(1.02), (draw(3), 4), "wrong"),
        (Norm, (torch.tensor([1.0, 0.5, 0.3], dtype=torch.float64, requires_grad=True), 2), "wrong"),
        (Capped, (torch.full((8,), 0.95, dtype=torch.float64, requires_grad=True), 4), "wrong"),
        (Clamp, (torch.tensor([0.5, -3.0, 2.5], dtype=torch.float64, requires_grad=True), 2), "wrong"),
    ],
    ids=[
        "few steps",
        "many steps",
        "few steps and a factor",
        "a number that backward is told",
        "a bound nearby",
        "a bound",
    ],
)
def test_a_gradient_of_the_limit_is_not_wrong_after_few_steps(fn, inputs, verdict: str) -> None:
    report = nbautograd.gradcheck(fn.apply, inputs)
    assert report.verdict == verdict
    assert ("= 64" in str(report)) == (verdict == "cannot tell")
    assert "64" not in str(report.redact())


def test_a_gradient_that_is_solved_for_on_what_is_handed_on_is_wrong_by_a_factor():
    report = nbautograd.gradcheck(equilibrium, (draw(3, 4), draw(4, 4, seed=1, scale=0.2), 1.05), hints="none")
    assert report.verdict == "wrong"


def test_a_callable_around_it_is_right_to_that_as_well() -> None:
    inputs = draw(3, 4), draw(4, 4, seed=1, scale=0.2)
    report = nbautograd.gradcheck(lambda x, w: FixedPoint.apply(x, w, 1e-6).exp(), inputs, order=1)
    assert report.verdict == "right"
    assert not [f for f in report.findings if f.kind == "bug"]


RmsNorm = Fn.of("RmsNorm", "x: save(x); return x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()",
    "g: (x,) = saved; r = x.pow(2).mean(-1, keepdim=True).rsqrt(); "
    "return r * (g - x * r * r * (g * x).mean(-1, keepdim=True))")  # fmt: skip
BatchNorm = Fn.of("BatchNorm", "x, eps: save(x); return (x - x.mean(0)) / (x.var(0, unbiased=False) + eps).sqrt()",
    "g: (x,) = saved; s = x.var(0, unbiased=False).sqrt(); h = (x - x.mean(0)) / s; "
    "return (g - g.mean(0) - h * (g * h).mean(0)) / s, None")  # fmt: skip
Logarithm = Fn.of("Logarithm", "x: save(x); return torch.log(x.abs() + EPSILON)", "g: return g / ctx.saved_tensors[0]")
EpsilonBehind = Fn.of("EpsilonBehind", "x: save(x); return x.rsqrt()",
    "g: (x,) = saved; return -0.5 * g / (x * x.sqrt() + 1e-6)")  # fmt: skip


FORGOTTEN = {
    "a number in forward": (RmsNorm, lambda: (draw(3, 4),)),
    "an argument": (BatchNorm, lambda: (draw(5, 3), 1e-6)),
    "a global": (Logarithm, lambda: (positive(6),)),
    "a number in backward": (EpsilonBehind, lambda: (positive(6),)),
    "inside a callable": (lambda x: BatchNorm.apply(x, 1e-6).exp(), lambda: (draw(5, 3),)),
}


@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_forgotten_epsilon_is_wrong_however_small(name: str) -> None:
    fn, inputs = FORGOTTEN[name]
    run = GradcheckRun(Problem(fn, inputs()), None, None, None)
    with run.problem.session():
        run.find_blocks()
    assert slight_blocks(run)  # the difference alone proves nothing
    report = nbautograd.gradcheck(fn, inputs(), order=1)
    assert report.verdict == "wrong"
    assert any(finding.kind == "bug" for finding in report.findings)


# The same with a second input, whose gradient is plainly wrong.
BesideAMistake = Erf.of("BesideAMistake", "x, y: ctx.y = y; return Erf.forward(ctx, x) * y",
    "g: return Erf.backward(ctx, g) * ctx.y, 3 * g")  # fmt: skip


def test_beside_a_mistake_it_is_not_named() -> None:
    report = nbautograd.gradcheck(BesideAMistake, (draw(4), draw(4, seed=1)), order=1)
    assert report.verdict == "wrong"
    assert {f.where for f in report.findings if f.kind == "bug"} == {(0, 1)}


# A sine by three terms, whose gradient is off by little for small inputs alone.
ShortSeries = Fn.of("ShortSeries", "x: save(x); return x - x**3 / 6 + x**5 / 120",
    "g: (x,) = saved; return g * x.cos()")  # fmt: skip


def test_time_up_while_a_change_is_looked_for_leaves_nothing_wrong(monkeypatch) -> None:
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("nbautograd.core.checking.gradcheck.Mending", lambda: interrupted)
    fn, inputs = APPROXIMATE["erf"]
    report = nbautograd.gradcheck(fn, inputs(), order=1)
    assert (report.verdict, report.complete) == ("cannot tell", False)
    assert not [f for f in report.findings if f.kind == "bug"]


# Sorted numbers; backward hands the gradients back to where they came from, or in the wrong order.
Sorted = Fn.of("Sorted", "x: y, at = x.sort(); save(at); return y",
    "g: (at,) = saved; return torch.zeros_like(g).scatter(0, at, g)")  # fmt: skip
SortedWrong = Sorted.of("SortedWrong", "x: return Sorted.forward(ctx, x)", "g: return g[saved[0].flip(0)]")
# A parabola whose gradient is forgotten where x is 0.
Parabola = Fn.of(
    "Parabola", "x: save(x); return x * x + x", "g: (x,) = saved; return g * torch.where(x == 0, 0, 2 * x + 1)"
)


@pytest.mark.parametrize(
    ("fn", "x", "why"),
    [
        (Sorted, [1.0, 1.0, 1.0], "checking.because_kink"),
        (torch.linalg.eigvalsh, torch.eye(3).tolist(), "checking.because_kink"),
        (ShortSeries, [0.42, 0.41, 0.42], "checking.because_approximate"),  # it is off by more nearby
        (SortedWrong, [1.0, 1.0, 1.0], ""),
        (Parabola, [0.0, 1.0, 1.0], ""),
    ],
)
def test_where_forward_has_no_derivative_nothing_is_wrong_that_is_right_beside_it(fn, x, why: str) -> None:
    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    report = nbautograd.gradcheck(fn, x, order=1)
    assert (report.verdict, getattr(report.reason, "message_id", "")) == ("cannot tell" if why else "wrong", why)


def conjugate_gradients(factor):
    def solve(A, b):
        x, r, p = torch.zeros_like(b), b.clone(), b.clone()
        for _ in range(100):
            rs, Ap = r @ r, A @ p
            a = rs / (p @ Ap)
            x, r = x + a * p, r - a * Ap
            if (r @ r).sqrt() < 1e-10:
                return x
            p = r + (r @ r) / rs * p
        return x

    class Solve(torch.autograd.Function):
        @staticmethod
        def forward(ctx, A, b):
            x = solve(A, b)
            ctx.save_for_backward(A, x)
            return x

        @staticmethod
        def backward(ctx, g):
            A, x = ctx.saved_tensors
            u = torch.linalg.solve(A.T, g)
            return -factor * torch.outer(u, x), u

    return Solve


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "cannot tell"), (1.05, "wrong")])
def test_the_residue_of_a_solver_has_slopes_of_its_own_over_as_little(factor: float, verdict: str) -> None:
    torch.manual_seed(0)
    B = torch.randn(4, 4, dtype=torch.float64)
    inputs = B @ B.T + 3 * torch.eye(4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    report = nbautograd.gradcheck(conjugate_gradients(factor), tuple(x.requires_grad_() for x in inputs), order=1)
    assert report.verdict == verdict


def test_the_callers_own_tolerance_decides() -> None:
    fn, inputs = APPROXIMATE["erf"]
    assert nbautograd.gradcheck(fn, inputs(), order=1, rtol=1e-9, atol=0.0).verdict == "wrong"


DividesByZero = Fn.of("DividesByZero", "x: return x * x", "g: return 2 * g / 0.0")


@pytest.mark.parametrize("shape", [(5,), (400, 500)])
def test_a_gradient_that_is_infinite_or_nan_is_no_approximation(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), requires_grad=True)
    found = nbautograd.gradcheck(DividesByZero, x)
    assert (found.verdict, found.findings[0].code) == ("wrong", "nonfinite")
    (told,) = nbautograd.audit(DividesByZero, x).functions
    assert told.verdict == "wrong"
