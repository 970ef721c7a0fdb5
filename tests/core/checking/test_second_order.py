"""Second derivatives: right ones pass, lost ones are found with their guilty tensor, unclaimed ones are respected."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from fn import Fn, source_line
from functions_checked import RoundStraightThrough
from own_mistakes import draw
from said import pattern

import nbautograd
from nbautograd.core.checking import second_order
from nbautograd.core.checking.problem import Problem
from nbautograd.core.display import Phrase
from nbautograd.errors import GradcheckError
from nbautograd.pytest_plugin import assert_gradients

MyCube = Fn.of("MyCube", "x: return x**3, 3 * x**2",
    "grad_output, grad_dx: x, dx = saved; return grad_output * dx + grad_dx * 6 * x",
    setup_context="inputs, output: (x,) = inputs; _, dx = output; save(x, dx)")  # fmt: skip
MyCubeWithoutGradDx = MyCube.of("MyCubeWithoutGradDx",
    backward="grad_output, grad_dx: _, dx = saved; return grad_output * dx")  # fmt: skip
Sine = Fn.of("Sine", "x: save(x); return x.sin()", "g: (x,) = saved; return g * x.cos()", once=True)
ThroughNumpy = Fn.of("ThroughNumpy", "x: save(x); return x.sin()",
    "g: (x,) = saved; return torch.from_numpy(g.numpy() * x.detach().cos().numpy())")  # fmt: skip


def test_the_cube_without_its_second_share_names_the_tensor() -> None:
    fn, x = (lambda x: MyCubeWithoutGradDx.apply(x)[0]), draw(4)
    assert torch.autograd.gradcheck(fn, (x,))
    report = nbautograd.gradcheck(fn, (x,))
    assert report.verdict == "right"
    assert {b.verdict for b in report.blocks.values()} == {"match"}
    assert report.order2.verdict == "wrong"
    assert report.order2.blocks[0, 0].verdict == "mismatch"
    [cause] = report.order2.findings
    assert (cause.code, cause.kind) == ("double_backward_wrong", "bug")
    with pytest.raises(nbautograd.CallError, match="verdict"):
        bool(report.order2)
    assert cause.params["name"] == "dx"
    assert cause.params["why"].message_id == "causes.why_output_ignored"


@pytest.mark.parametrize(("order", "counts"), [(None, False), (1, False), (2, True)])
def test_second_derivatives_count_where_order_is_two(order: int | None, counts: bool) -> None:
    report = nbautograd.gradcheck(CubeOfData, draw(4), order=order)
    assert report.verdict == "right"
    assert report.wrong is counts
    assert bool(report) is not counts
    if counts:
        with pytest.raises(GradcheckError, match=pattern("views.headline.second_wrong")):
            report.raise_if_wrong()
        with pytest.raises(GradcheckError):
            assert_gradients(CubeOfData, draw(4), order=order)
    else:
        assert report.raise_if_wrong() is report
        assert assert_gradients(CubeOfData, draw(4), order=order).verdict == "right"


def test_with_order_two_what_cannot_be_looked_at_does_not_count_as_right() -> None:
    report = nbautograd.gradcheck(Sine, draw(4), order=2)
    assert report.verdict == "right"
    assert report.order2.verdict == "cannot tell"
    assert report.order2.reason.message_id == "checking.order2_not_claimed"
    assert not report
    assert not report.wrong


Solve = Fn.of("Solve", "a, b: save(a, b); return torch.linalg.solve(a, b)",
    "g: a, b = saved; v = torch.linalg.solve(a.mT, g); "
    "return -v.unsqueeze(-1) * torch.linalg.solve(a, b), v")  # fmt: skip


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("size", [4, 6])
def test_an_ill_conditioned_solve_is_never_called_wrong_in_any_order(condition: float, size: int) -> None:
    u, v = (torch.linalg.qr(draw(size, size, seed=s).detach())[0] for s in (1, 2))
    values = torch.logspace(0, -math.log10(condition), size, dtype=torch.float64)
    report = nbautograd.gradcheck(Solve, ((u * values @ v).requires_grad_(), draw(size)), hints="where")
    assert [f for f in report.findings if f.kind != "note"] == []
    assert report.verdict in ("right", "cannot tell")
    assert report.order2 is None or report.order2.verdict != "wrong"


def test_second_derivatives_are_silent_where_the_first_ones_are_not_right() -> None:
    report = nbautograd.gradcheck(RoundStraightThrough, draw(4), order=2)
    assert (report.verdict, report.order2) == ("cannot tell", None)
    assert not report


def test_once_differentiable_is_respected() -> None:
    report = nbautograd.gradcheck(Sine, (draw(4),))
    assert report.verdict == "right"
    assert report.order2 is None


AtTimes = Fn.of("AtTimes", "x: save(x); return x.sin()",
    "g: (x,) = saved; "
    "return g * x.cos() if not torch.is_grad_enabled() or next(AtTimes.runs) < 2 else 1 / 0")  # fmt: skip
AtTimes.runs = itertools.count(1)
Leaves = Fn.of("Leaves", "x: save(x); return x.sin()",
    "g: (x,) = saved; return g * x.cos() if not torch.is_grad_enabled() else exit(3)")  # fmt: skip


@pytest.mark.parametrize(
    ("function", "said"), [(ThroughNumpy, "numpy"), (AtTimes, "division by zero"), (Leaves, "SystemExit: 3")]
)
def test_a_clear_error_in_the_second_order_is_a_lint(function: Any, said: str) -> None:
    report = nbautograd.gradcheck(function, (draw(6),))
    assert report.verdict == "right"
    assert [(f.code, f.kind) for f in report.findings] == [("double_backward_unsupported", "lint")]
    assert said in report.findings[0].params["said"]


CubeOfData = Fn.of("CubeOfData", "x: save(x); return x**3", "g: (x,) = saved; return 3 * x.data**2 * g")
Product = Fn.of("Product", "x, w: save(x, w); return torch.relu(x @ w)",
    "g: x, w = saved; g = g * (x @ w > 0); return g @ w.t(), x.t() @ g")  # fmt: skip


def test_a_large_function_is_sampled() -> None:
    report = nbautograd.gradcheck(Product, (draw(40, 20), draw(20, 30, seed=1)))
    assert report.verdict == "right"
    assert report.order2.verdict == "right"
    assert {b.verdict for b in report.order2.blocks.values()} == {"match"}
    assert all(b.shape == (1, 1) for b in report.order2.blocks.values())
    assert isinstance(report.order2.reason, Phrase)
    assert report.order2.reason.message_id == "checking.sampled_directions"


def test_a_large_function_of_complex_numbers_is_left_out() -> None:
    z = torch.complex(draw(200), draw(200, seed=1)).detach().requires_grad_()

    Square = Fn.of("Square", "z: save(z); return z * z", "g: (z,) = saved; return 2 * g * z.conj()")
    report = nbautograd.gradcheck(Square, z)
    assert report.verdict == "right"
    assert report.order2 is None


# Backward is a Function of its own, with a wrong sign in the second.
Cosine = Fn.of("Cosine", "g, x: save(g, x); return g * x.cos()",
    "gg: g, x = saved; return gg * x.cos(), gg * g * x.sin()")  # fmt: skip
SineByCosine = Fn.of("SineByCosine", "x: save(x); return x.sin()", "g: (x,) = saved; return Cosine.apply(g, x)")
# Changes its input without a word to torch, which matters to what else is made of it.
Clamped = Fn.of("Clamped", "x: x.clamp_(min=0); save(x); return x", "g: (y,) = saved; return g * (y > 0)")
# One number of twelve: more runs than the first derivatives took.
CubesOfData = Fn.of("CubesOfData", "x: save(x); return (x**3).sum()", "g: (x,) = saved; return 3 * x.data**2 * g")


def clamped_and_squared(x):
    y = x * 1.0
    return Clamped.apply(y) + y * y


@pytest.mark.parametrize(
    ("fn", "size", "named"),
    [
        (SineByCosine, 4, ["Cosine"]),
        (clamped_and_squared, 6, ["Clamped", None]),  # what is around it may be wrong as well
        (CubesOfData, 12, [None]),
    ],
)
def test_a_wrong_second_derivative_is_a_risk_of_the_function_that_is_wrong(fn, size, named) -> None:
    report = nbautograd.gradcheck(fn, draw(size))
    assert report.verdict == "right"
    assert {(risk.code, risk.kind) for risk in report.findings} == {("not_twice_differentiable", "lint")}
    assert [risk.params.get("function") for risk in report.findings] == named
    for name, risk in zip(named, report.findings, strict=True):
        if name is not None:
            assert source_line(globals()[name], risk.line).startswith(("return gg", "def forward"))


class OnlyNumbers(Fn):
    """Leaves torch for each of its steps, so that no two points are had at once."""

    WRONG = False

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sum(x * float(k) for k in x.detach().sum().reshape(1).numpy() * 0 + 1.0) * x**2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * (x.detach() if OnlyNumbers.WRONG else x) ** 2 * g


def counted_runs(order: int | None) -> tuple[int, nbautograd.types.GradcheckReport]:
    problems: list[Problem] = []
    plain = Problem.__init__

    def init(self, *given, **named):
        plain(self, *given, **named)
        problems.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Problem, "__init__", init)
        report = nbautograd.gradcheck(OnlyNumbers, draw(30), order=order)
    return problems[0].meter.runs, report


def test_what_takes_too_many_runs_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnlyNumbers, "WRONG", True)
    monkeypatch.setattr(second_order, "SUSPICION_RUNS", 5)
    _, report = counted_runs(None)
    assert report.verdict == "right"
    assert (report.order2.verdict, report.order2.findings) == ("cannot tell", ())
    assert report.order2.reason.message_id == "checking.order2_left_out"
    _, report = counted_runs(2)  # asked for them, they are checked whatever they take
    assert report.order2.verdict == "wrong"
