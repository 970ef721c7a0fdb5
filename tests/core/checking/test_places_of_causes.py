"""The place that a sentence names: a part of a tensor, a line, what a factor belongs to."""

from __future__ import annotations

import ast
import re

import pytest
import torch
from fn import Fn
from own_mistakes import MISTAKES, draw, first

import nbautograd
from nbautograd.core.checking.repair.grammar import edits
from nbautograd.core.checking.repair.script import Hints, names, read
from nbautograd.core.display import render
from nbautograd.core.user_source import function_class

pytestmark = pytest.mark.usefixtures("without_fixes")


def complex_draw(*shape: int) -> torch.Tensor:
    return torch.complex(draw(*shape).detach(), draw(*shape, seed=1).detach()).requires_grad_()


Centred = Fn.of("Centred", "z: return z - z.mean((0, 1), keepdim=True)", "g: return g")
InstanceNorm = Fn.of("InstanceNorm", "x: inv = (x.var((1, 2), keepdim=True, unbiased=False) + 1e-5).rsqrt(); "
    "xh = (x - x.mean((1, 2), keepdim=True)) * inv; save(xh, inv); return xh",
    "g: xh, inv = saved; return inv * (g - xh * (g * xh).mean((1, 2), keepdim=True))")  # fmt: skip


@pytest.mark.usefixtures("fixes")
@pytest.mark.parametrize(
    ("fn", "inputs", "change"),
    [
        (Centred, (complex_draw(3, 2),), "g.mean((0, 1), keepdim=True)"),
        (Centred, (draw(3, 2),), "g.mean((0, 1), keepdim=True)"),
        (InstanceNorm, (draw(2, 3, 4),), "g.mean((1, 2), keepdim=True)"),
    ],
)
def test_a_mean_over_several_dimensions_is_mended(fn, inputs, change: str) -> None:
    found = first(fn, *inputs)
    assert change in found.fix.source
    assert found.line == found.fix.line


LAST: dict[str, torch.Tensor] = {}


ReadsAGlobal = Fn.of("ReadsAGlobal", 'x: LAST["x"] = x; return x * x', 'g: two = 2; return g * two * LAST["x"]')


class ReadsItsClass(Fn):
    scale = None

    def forward(ctx, x):
        ReadsItsClass.scale = x
        return x * x

    def backward(ctx, g):
        two = 2
        return g * two * ReadsItsClass.scale


def twice(fn):
    return lambda x, y: fn.apply(x) + fn.apply(y)


@pytest.mark.parametrize("fn", [ReadsAGlobal, ReadsItsClass])
def test_state_is_placed_where_backward_reads_it(fn) -> None:
    line = fn.backward.__code__.co_firstlineno + 2
    for found in (first(fn, draw(4)), first(twice(fn), draw(4), draw(4, seed=1))):
        assert (found.code, found.line) == ("shared_state", line)


# Torch puts zeros in the place of None here, so that backward never meets one; it draws random numbers.
TwoOutputs = Fn.of("TwoOutputs", "x: save(x); return x.exp(), x * 1.0",
    "g, h: (x,) = saved; small = (g != 0).to(g) * (h != 0).to(g); return g * x.exp() + h + small * g")  # fmt: skip


def test_a_none_that_never_arrives_is_no_cause() -> None:
    report = nbautograd.gradcheck(TwoOutputs, (draw(4),), order=1)
    assert "undefined_grad" not in {found.code for found in report.findings}


TwoReturns = Fn.of("TwoReturns",
    "x, w, b=None: save(x, w); ctx.biased = b is not None; return x * w if b is None else x * w + b",
    "g: x, w = saved; if ctx.biased: return g * w, g * x.exp(), g; return g * w, g * x.cos(), None")  # fmt: skip


class TwoAssignments(Fn):
    def forward(ctx, x, kind):
        ctx.save_for_backward(x)
        ctx.kind = kind
        return x.sin() * x if kind else x.exp()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if ctx.kind:  # noqa: SIM108 - two lines are what this is about
            gx = g * x.cos() * x
        else:
            gx = g * x.exp() / 3
        return gx, None


EarlyReturn = Fn.of("EarlyReturn", "x, w: save(x, w); return x @ w",
    "g: x, w = saved; if not ctx.needs_input_grad[1]: return 2 * g @ w.t(), None; "
    "return g @ w.t(), x.t() @ g * 3")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "inputs", "line", "expression"),
    [
        (TwoReturns, (draw(3), draw(3, seed=1), draw(3, seed=2)), 3, "g * x.exp()"),
        (TwoReturns, (draw(3), draw(3, seed=1)), 4, "g * x.cos()"),
        (TwoAssignments, (draw(4), True), 3, "g * x.cos() * x"),
        (TwoAssignments, (draw(4), False), 5, "g * x.exp() / 3"),
        (EarlyReturn, (draw(2, 3), draw(3, 2).detach()), 3, "2 * g @ w.t()"),
        (EarlyReturn, (draw(2, 3), draw(3, 2)), 4, "x.t() @ g * 3"),
    ],
)
def test_the_value_that_is_named_is_the_one_that_ran(fn, inputs, line: int, expression: str) -> None:
    found = first(fn, *inputs)
    assert (found.line, found.params["value"].params["line"]) == (fn.backward.__code__.co_firstlineno + line,) * 2
    assert found.params["value"].params["expression"] == expression


# A fixed point, whose backward transposes.
Implicit = Fn.of("Implicit", "w, x: z = 0 * x; for _ in range(60): z = torch.tanh(z @ w.t() / 4 + x); "
    "save(w, z); return z",
    "g: w, z = saved; d, y = 1 - z * z, g; for _ in range(60): y = g + (y * d) @ w.t() / 4; h = y * d; "
    "return h.t() @ z / 4, h")  # fmt: skip


def test_several_wrong_gradients_are_placed_at_what_they_are_all_computed_from() -> None:
    found = nbautograd.gradcheck(Implicit, (draw(3, 3), draw(2, 3, seed=1)), order=1).findings
    line = Implicit.backward.__code__.co_firstlineno + 5
    assert [(f.params["input"], f.params["name"], f.line) for f in found] == [("w", "h", line), ("x", "h", line)]


# Another formula without the flag, where backward has no line of its own.
Flagged = Fn.of("Flagged",
    "x, training: save(x); ctx.training = training; return x.sin().exp() if training else x.exp()",
    "g: (x,) = saved; if ctx.training: return g * x.sin().exp() * x.cos(), None; "
    "return torch.addcmul(g, g * x, x), None")  # fmt: skip
# A constant, as of a dropout that is not training.
FlaggedTimes = Fn.of("FlaggedTimes", "x, training: return x * 2 if training else x * 3", "g: return g * 2, None")
WITH_FLAG = "With `training=True` it agrees"


@pytest.mark.parametrize(
    ("fn", "training", "said"), [(Flagged, False, WITH_FLAG), (Flagged, True, None), (FlaggedTimes, False, WITH_FLAG)]
)
def test_the_flag_with_which_a_gradient_is_right_comes_first(fn, training, said) -> None:
    report = nbautograd.gradcheck(fn, (draw(4), training), order=1)
    assert [f.advice[: len(said or "")] for f in report.findings] == [said] * (said is not None)


NotReturned = Fn.of("NotReturned", "x: ctx.mark_dirty(x); return x * 2", "g: return 2 * g")
SavesANumber = Fn.of("SavesANumber", "x: y = x * 2; save(x, 3); return y", "g: return 2 * g")
WrongShape = Fn.of("WrongShape", "x: return x * 2", "g: g = 2 * g; return g.sum(0)")


@pytest.mark.parametrize(
    ("fn", "method", "line"), [(NotReturned, "forward", 1), (SavesANumber, "forward", 2), (WrongShape, "backward", 2)]
)
def test_what_torch_refuses_is_placed_at_its_line(fn, method: str, line: int) -> None:
    found = first(fn, draw(3))
    assert (found.code, found.line) == ("exception", getattr(fn, method).__code__.co_firstlineno + line)


# The gradient of x is off by one in a hundred, which numbers of half precision hide.
RoundsInside = Fn.of("RoundsInside", "x, w: save(x, w); return x.half().to(x.dtype).exp() * w",
    "g: x, w = saved; return g * x.exp() * w * 1.01, g * x.exp() * 2")  # fmt: skip


def test_beside_what_is_wrong_nothing_is_right_that_could_not_be_seen() -> None:
    report = nbautograd.gradcheck(RoundsInside, (draw(4), draw(4, seed=1)), order=1)
    assert (report.blocks[0, 0].verdict, report.reason.message_id) == ("match", "checking.resolution")
    assert str(report.reason) in " ".join(render("text", report).split())


Tanh = Fn.of("Tanh", "x, y, z: save(x, y, z); return (x * y * z).tanh()",
    "g: x, y, z = saved; h = (x * y * z).tanh(); gh = g * (1 - h); "
    "return gh * y * z, gh * x * z, gh * x * y")  # fmt: skip


def test_inputs_that_go_wrong_at_one_place_have_one_paragraph() -> None:
    report = nbautograd.gradcheck(Tanh, (draw(4), draw(4, seed=1), draw(4, seed=2)), order=1)
    assert len(report.findings) == 3
    shown = render("text", report)
    assert shown.count("gh = g * (1 - h)") == 1
    assert "`x`, `y` and `z` goes" in shown


Leaky = Fn.of("Leaky", "x, alpha: save(x); ctx.alpha = alpha; return torch.where(x >= alpha, x * x, alpha * x)",
    "g: (x,) = saved; alpha = ctx.alpha; return torch.where(x >= alpha, g * x, alpha * g), None")  # fmt: skip


OURS = re.compile(r"(?<![\w.])_(held|seen|cut|noted|chosen|around)\b")


@pytest.mark.parametrize("fn", [Leaky, *dict.fromkeys(filter(None, (function_class(m.fn) for m in MISTAKES)))])
def test_no_name_of_ours_is_in_what_is_shown_of_backward(fn) -> None:
    script, shown = read(fn), list[str]()
    factors = {id(node): ("* 2", "/ n") for node in ast.walk(script.tree)}
    for edit in edits(script, names(script), Hints(factors), {}):
        shown += [edit.replacement, script.changed(edit.changes)]
    assert shown
    assert not [text for text in shown if OURS.search(text)]
