"""The table of hypotheses: none is named by the entries alone in which it was found."""

from __future__ import annotations

import pytest
import torch
from fn import Fn, source_line
from functions_checked import AttentionWrong
from own_mistakes import draw

import nbautograd

pytestmark = pytest.mark.usefixtures("without_fixes")


# Minus the right gradient for five elements, and something else for any other number of them.
SignHere = Fn.of("SignHere", "x: save(x); return x * x",
    "g: (x,) = saved; return -2 * g * x if len(x) == 5 else 3 * g * x.abs()")  # fmt: skip


def test_a_cause_that_holds_at_the_inputs_alone_is_not_named() -> None:
    found = nbautograd.gradcheck(SignHere.apply, (draw(5),), order=1).findings[0]
    assert found.code in ("wrong_derivative", "wrong_unclassified")


# Two outputs, of which the gradient of one is right and that of the other is half of it.
TwoRatios = Fn.of("TwoRatios", "x: save(x); return x.mean(1), (x * x).mean(1)",
    "gm, gv: (x,) = saved; return (gm[:, None] + gv[:, None] * x).expand_as(x) / x.shape[1]")  # fmt: skip


def test_the_ratio_of_one_output_is_measured_by_that_output_alone() -> None:
    found = nbautograd.gradcheck(TwoRatios.apply, (draw(3, 4),), order=1).findings[0]
    assert (found.message_id, found.where, found.params["ratio"]) == ("causes.constant_factor", (1, 0), "0.5")


def test_the_line_that_only_wrong_gradients_use_is_named() -> None:
    report = nbautograd.gradcheck(AttentionWrong.apply, (draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)), order=1)
    wrong = [f for f in report.findings if f.kind == "bug"]
    assert {f.where[1] for f in wrong} == {0, 1}
    for found in wrong:
        assert found.message_id == "causes.wrong_line_gradient"
        assert source_line(AttentionWrong, found.line).startswith("ds = ")


# Two shares of an input; the first output's gradient is used, but never gets through.
Masked = Fn.of("Masked", "x: save(x); return x.relu(), -(-x).relu()",
    "ga, gb: (x,) = saved; return ga * (x > 100) + gb * (x < 0)")  # fmt: skip


def test_a_gradient_that_is_used_in_vain_is_not_called_unused() -> None:
    found = nbautograd.gradcheck(Masked.apply, (draw(6),), order=1).findings[0]
    assert found.message_id == "causes.output_grad_ignored"


class Outside(Fn):
    def forward(ctx, f, x, phi):
        ctx.f = f
        ctx.save_for_backward(x, phi)
        return f(x).detach()

    def backward(ctx, g):
        x, phi = ctx.saved_tensors
        with torch.enable_grad():
            y = ctx.f(x.detach().requires_grad_())
        return None, g, torch.autograd.grad(y, phi, g)[0]


def test_what_a_copy_of_an_input_may_have_made_backward_raise_is_no_verdict() -> None:
    phi = draw(3, seed=1)
    report = nbautograd.gradcheck(Outside.apply, (lambda x: x + phi**2, draw(3), phi), order=1)
    assert report.verdict == "cannot tell"
    assert [f.code for f in report.findings] == ["input_read_outside"]
