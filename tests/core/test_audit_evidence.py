"""What excuses a gradient that a check calls wrong, each beside a real fault that stays wrong."""

from __future__ import annotations

import pytest
import torch
from fn import Fn

import nbautograd
from nbautograd.core.checking.budget import OutOfBudgetError
from nbautograd.inspection import audit_checks, evidence

pytestmark = pytest.mark.usefixtures("without_fixes")
LONG = {"budget": 3600.0, "per_function": 3600.0}


def doubles(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def situation_of(function, *arguments, backward=True):
    with nbautograd.audit(**LONG) as audit:
        y = function.apply(*arguments)
        if backward:
            y.sum().abs().backward()
    [found] = audit.report().functions
    [situation] = found.situations
    return situation


def reason(situation):
    return getattr(situation.reason, "message_id", "").removeprefix("audit.")


# Takes any matrix, and has a backward for symmetric ones.
Solve = Fn.of("Solve", "matrix, b: x = torch.linalg.solve(matrix, b); save(matrix, x); return x",
    "grad: matrix, x = saved; left = torch.linalg.solve(matrix, grad); "
    "return -(left @ x.mH + x @ left.mH) / 2, left")  # fmt: skip
SolveOff = Solve.of("SolveOff", backward="grad: matrix, b = Solve.backward(ctx, grad); return 2 * matrix, b")
# Off in one pair of entries, on both sides of the diagonal.
SolveOneOff = Solve.of("SolveOneOff",
    backward="grad: matrix, b = Solve.backward(ctx, grad); matrix[0, 1] += 0.1; matrix[1, 0] += 0.1; "
    "return matrix, b")  # fmt: skip
# Reads one triangle, and returns the gradient of a matrix of which both are read.
SolveByCholesky = Solve.of("SolveByCholesky",
    "matrix, b: x = torch.cholesky_solve(b, torch.linalg.cholesky(matrix)); save(matrix, x); return x",
    "grad: matrix, x = saved; left = torch.linalg.solve(matrix, grad); return -left @ x.mT, left")  # fmt: skip
# The same, and half of it to each side, as for a matrix that stays symmetric.
SolveHalves = SolveByCholesky.of("SolveHalves",
    backward="grad: matrix, b = SolveByCholesky.backward(ctx, grad); return (matrix + matrix.mT) / 2, b")  # fmt: skip
Product = Fn.of("Product", "a, b: save(a, b); return a @ b + 1", "grad: a, b = saved; return grad @ b.mT, a.mT @ grad")
ProductTransposed = Product.of("ProductTransposed", backward="grad: a, b = Product.backward(ctx, grad); return a.mT, b")
# Every entry is right at a symmetric matrix, and at no other.
Square = Fn.of("Square", "m, b: save(m, b); return m @ m @ b",
    "grad: m, b = saved; return grad @ (m @ b).mT + m @ grad @ b.mT, m @ m @ grad")  # fmt: skip
# Every entry is right at ones, which are symmetric as well.
SquaredAtOne = Fn.of(
    "SquaredAtOne", "m, b: save(m, b); return m**2 @ b", "grad: m, b = saved; return 2 * grad @ b.mT, (m**2).mT @ grad"
)


def matrix(kind):
    root = doubles(4, 4)
    made = {
        "ones": torch.ones(4, 4, dtype=torch.float64),
        "identity": torch.eye(4, dtype=torch.float64),
        "covariance": root @ root.mT + 4 * torch.eye(4, dtype=torch.float64),
        "batch": torch.stack([root + root.mT, torch.eye(4, dtype=torch.float64)]) + 9 * torch.eye(4).double(),
        "any": root + 4 * torch.eye(4, dtype=torch.float64),
        "hermitian": root @ root.mT + 1j * (root - root.mT) + 9 * torch.eye(4),
    }
    return made[kind].requires_grad_()


@pytest.mark.parametrize(
    ("function", "kind", "verdict"),
    [
        (Solve, "covariance", "cannot tell"),
        (Solve, "batch", "cannot tell"),
        (Solve, "any", "wrong"),  # the program itself breaks the promise
        (SolveOff, "covariance", "wrong"),
        (Solve, "hermitian", "cannot tell"),
        (SolveOff, "batch", "wrong"),
        (SolveOff, "hermitian", "wrong"),
        (SolveOneOff, "covariance", "wrong"),
        (SolveByCholesky, "covariance", "cannot tell"),
        (SolveHalves, "covariance", "cannot tell"),
        (Square, "covariance", "cannot tell"),
        (Square, "any", "wrong"),
        (SquaredAtOne, "ones", "wrong"),
        *((Product, kind, "right") for kind in ("ones", "identity", "covariance", "any")),
        *((ProductTransposed, kind, "wrong") for kind in ("ones", "identity", "covariance", "any")),
    ],
)
def test_a_symmetric_matrix_is_a_promise_of_the_callers_where_another_point_says_so(function, kind, verdict):
    given = matrix(kind)
    situation = situation_of(function, given, doubles(4, 2, seed=1).to(given.dtype).requires_grad_())
    assert situation.verdict == verdict
    assert reason(situation) == ("symmetric" if verdict == "cannot tell" else "")


class FixedPoint(Fn):
    """x = cos(a x), iterated until a step is small; its backward is that of the limit."""

    def forward(ctx, a, tol):
        x = torch.ones_like(a)
        for _ in range(1000):
            x, before = torch.cos(a * x), x
            if (x - before).abs().max() < tol:
                break
        ctx.save_for_backward(a, x)
        return x

    def backward(ctx, grad):
        a, x = ctx.saved_tensors
        sine = torch.sin(a * x)
        return -grad * sine * x / (1 + sine * a), None


FixedPointOff = FixedPoint.of("FixedPointOff", backward="grad: return 1.5 * FixedPoint.backward(ctx, grad)[0], None")
# Under a name that says nothing.
FixedPointTo = FixedPoint.of("FixedPointTo", "a, stop: return FixedPoint.forward(ctx, a, stop)")
FixedPointWithOptions = FixedPoint.of("FixedPointWithOptions",
    "a, options: return FixedPoint.forward(ctx, a, options.pop('rtol'))")  # fmt: skip


class Bisected(Fn):
    """Weights that sum to 2 (sigmoids, all moved by one number): halvings stop in steps, between which it is flat."""

    def forward(ctx, a, tol):
        low, high = torch.tensor(-20.0, dtype=a.dtype), torch.tensor(20.0, dtype=a.dtype)
        while high - low > tol:
            middle = (low + high) / 2
            low, high = (middle, high) if torch.sigmoid(a + middle).sum() < 2 else (low, middle)
        y = torch.sigmoid(a + (low + high) / 2)
        ctx.save_for_backward(y)
        return y

    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        slope = y * (1 - y)
        return slope * (grad - (slope * grad).sum() / slope.sum()), None


BisectedOff = Bisected.of("BisectedOff", backward="grad: gradient, none = Bisected.backward(ctx, grad); "
    "return gradient * torch.linspace(1, 1.5, len(grad), dtype=grad.dtype), none")  # fmt: skip
# Its number is small and no tolerance: the term that backward leaves out vanishes with it.
Bent = Fn.of("Bent", "a, number: return a + number * a**2", "grad: return grad, None")
# Backward forgets what is named like a tolerance.
Logarithm = Fn.of(
    "Logarithm", "a, eps: save(a); return torch.log(a + eps)", "grad: return grad / ctx.saved_tensors[0], None"
)


@pytest.mark.parametrize(
    ("function", "argument", "verdict", "why"),
    [
        (FixedPoint, 1e-3, "cannot tell", "checking.because_approximate"),
        (FixedPointWithOptions, {"rtol": 1e-3}, "cannot tell", "checking.because_approximate"),
        (FixedPointTo, 1e-3, "cannot tell", "checking.because_approximate"),
        (FixedPoint, 1e-6, "right", "checking.exact_to"),
        (FixedPoint, 1e-14, "right", ""),
        (FixedPointOff, 1e-3, "wrong", ""),
        (FixedPointOff, 1e-6, "wrong", ""),
        (Bent, 1e-3, "wrong", ""),
        (Logarithm, 1e-4, "wrong", ""),
    ],
)
def test_a_difference_that_a_tighter_tolerance_takes_away_is_no_wrong_gradient(function, argument, verdict, why):
    a = torch.linspace(0.2, 0.6, 4, dtype=torch.float64).requires_grad_()
    situation = situation_of(function, a, argument)
    assert (situation.verdict, reason(situation)) == (verdict, why)


@pytest.mark.parametrize(
    ("function", "verdict", "why"),
    [(Bisected, "cannot tell", "checking.because_approximate"), (BisectedOff, "wrong", "")],
)
def test_steps_of_a_solver_that_no_direction_shows_clearly_are_no_wrong_gradient(function, verdict, why):
    torch.manual_seed(1)
    situation = situation_of(function, torch.randn(15, dtype=torch.float64).requires_grad_(), 1e-4)
    assert (situation.verdict, reason(situation)) == (verdict, why)


class ByHand(Fn):
    """Adds the gradient of its weight to ``.grad`` itself, as code that saves memory does."""

    def forward(ctx, x, weight):
        ctx.save_for_backward(x)
        ctx.weight = weight
        return x * weight

    @staticmethod
    def deliver(weight, grad):
        weight.grad = grad.detach() if weight.grad is None else weight.grad + grad.detach()

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        ByHand.deliver(ctx.weight, grad * x)
        return grad * ctx.weight, None


ByHandHalf = ByHand.of("ByHandHalf",
    backward="g: (x,) = saved; ByHand.deliver(ctx.weight, g * x / 2); return g * ctx.weight, None")  # fmt: skip
# Its other gradient is wrong.
ByHandOff = ByHand.of("ByHandOff", backward="grad: return 2 * ByHand.backward(ctx, grad)[0], None")
ByHandNever = ByHand.of("ByHandNever", backward="grad: return grad * ctx.weight, None")


@pytest.mark.parametrize(
    ("function", "verdict", "why"),
    [
        (ByHand, "right", "counted"),
        (ByHandHalf, "cannot tell", "delivered"),
        (ByHandOff, "wrong", ""),
        (ByHandNever, "wrong", ""),
    ],
)
def test_a_gradient_that_is_delivered_by_hand_is_counted_where_it_arrives(function, verdict, why):
    weight = doubles(4, seed=1).requires_grad_()
    situation = situation_of(function, doubles(4).requires_grad_(), weight)
    assert (situation.verdict, reason(situation)) == (verdict, why)


Sine = Fn.of("Sine", "x: save(x); return x.sin()", "grad: (x,) = saved; return grad * x.cos()")
SineOff = Sine.of("SineOff", backward="grad: return 1.1 * Sine.backward(ctx, grad)")
# Its forward leaves torch, so that autograd says nothing of it.
SineOffInNumpy = SineOff.of("SineOffInNumpy", "x: save(x); return torch.from_numpy(x.detach().numpy()).sin()")


@pytest.mark.parametrize(
    ("function", "drawn", "confirmed"),
    [
        (Sine, False, False),  # a check that errs is contradicted by autograd of forward, and made-up inputs not asked
        (SineOff, False, True),
        (SineOffInNumpy, False, True),  # by differences with other steps
    ],
)
def test_a_second_witness_bears_a_wrong_gradient_out(function, drawn, confirmed):
    inputs = (doubles(4).requires_grad_(),)
    report = nbautograd.gradcheck(function, inputs, order=1)
    for block in report.blocks.values():
        object.__setattr__(block, "verdict", "mismatch")
    assert evidence.second_witness(function, inputs, report, lambda: drawn) is confirmed


def time_is_up(*_):
    raise OutOfBudgetError


@pytest.mark.parametrize("witness", [None, lambda *_: False, time_is_up], ids=["own", "none", "no time"])
def test_without_a_second_witness_or_time_for_one_it_cannot_be_told(monkeypatch, witness):
    monkeypatch.setattr(audit_checks, "second_witness", witness or audit_checks.second_witness)
    situation = situation_of(SineOff, doubles(4).requires_grad_())
    assert (situation.verdict, reason(situation)) == (("cannot tell", "one_witness") if witness else ("wrong", ""))


def scaled(name, turned):
    return Fn.of(name, "s: e = torch.randn(4, 2, dtype=s.dtype); save(e); return s * e",
                 f"g: (e,) = saved; return (g * {turned}).sum().reshape(1)")  # fmt: skip


DROPPED = "x: m = (torch.rand_like(x) > 0.3) / 0.7; save(m); return x * m"


@pytest.mark.parametrize(
    ("fn", "size", "verdict"),
    [
        (
            scaled("Turned", "(e + 0.4 * e.flip(1) * torch.tensor([1.0, -1.0]))"),
            1,
            "cannot tell",
        ),  # as by transport
        (scaled("Mirrored", "(e + e.flip(1))"), 1, "wrong"),
        (scaled("Unscaled", "(0.8 * e)"), 1, "wrong"),
        (scaled("Right", "e"), 1, "right"),
        (Fn.of("Expected", DROPPED, "g: return g"), 6, "wrong"),
        (Fn.of("DrawnAgain", DROPPED, "g: return g * (torch.rand_like(g) > 0.3) / 0.7"), 6, "wrong"),
        (Fn.of("NotScaled", DROPPED, "g: (m,) = saved; return g * (m > 0)"), 6, "wrong"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_gradient_that_is_right_on_average_is_not_wrong(fn, size, verdict):
    found = situation_of(fn, torch.linspace(0.5, 1.5, size, dtype=torch.float64).requires_grad_())
    assert (found.verdict, reason(found) == "on_average") == (verdict, verdict == "cannot tell")
