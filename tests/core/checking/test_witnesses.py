"""Who took part in a check, and what each said."""

from __future__ import annotations

import functions_checked as checked
import pytest
import torch
from fn import Fn
from own_mistakes import normal

from nbautograd import gradcheck
from nbautograd.core.torch_private.ctx import sees_earlier_apply

pytestmark = pytest.mark.usefixtures("without_fixes")


def said(report, witness, where=(0, 0)):
    return next(s for s in report.blocks[where].witnesses if s.witness == witness)


@pytest.mark.parametrize("fn", [checked.Exp, *[lambda x, apply=checked.Exp.apply: apply(x)] * sees_earlier_apply])
def test_autograd_of_the_forward_is_exact(fn):
    statement = said(gradcheck(fn, normal(4)), "autograd of forward")
    assert statement.took_part
    assert statement.largest_difference < 1e-14
    assert not said(gradcheck(checked.Exp, normal(4)), "jvp").took_part


@pytest.mark.parametrize("fn", [checked.NumpySin, torch.exp])
def test_it_is_not_asked_where_it_knows_nothing(fn):
    statement = said(gradcheck(fn, normal(4), order=1), "autograd of forward")
    assert not statement.took_part
    assert str(statement.says)


def test_it_decides_where_differences_are_noise():
    Noisy = Fn.of(
        "Noisy", "x: save(x); return x.sin() * 1e-9 + 1e6", "grad: return grad * ctx.saved_tensors[0].cos() * 1e-9"
    )
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Noisy, x, order=1).blocks[0, 0].verdict == "match"
    if sees_earlier_apply:
        assert gradcheck(lambda x, apply=Noisy.apply: apply(x), x, order=1).blocks[0, 0].verdict == "match"
    assert gradcheck(lambda x: Noisy.apply(x), x, order=1).blocks[0, 0].verdict == "match"


def test_the_functions_own_jvp_is_heard(monkeypatch):
    right = gradcheck(checked.OwnJvp, normal(5))
    assert said(right, "jvp").took_part
    assert right.verdict == "right"
    monkeypatch.setattr(checked.OwnJvp, "factor", 1.5)
    wrong = gradcheck(checked.OwnJvp, normal(5))
    assert wrong.verdict == "wrong"
    assert [f.code for f in wrong.findings if f.kind == "bug"] == ["jvp_wrong"]


def test_autograd_of_the_forward_reaches_through_a_wrapper():
    for fn, wrong in ((checked.Offset, True), (checked.Exp, False)):
        kept = fn.apply
        for apply in (lambda x, fn=fn: fn.apply(x), *[kept] * sees_earlier_apply):
            reaches_through(fn, lambda x, apply=apply: 2 * apply(x).sin(), wrong)


def reaches_through(fn, callable_around, wrong):
    report = gradcheck(callable_around, normal(10), order=1)
    statement = said(report, "autograd of forward")
    assert statement.took_part
    assert (statement.apart > 1e-7) is wrong
    assert (report.blocks[0, 0].verdict == "mismatch") is wrong
    assert "e+" not in statement.says
    assert "apply" not in vars(fn)
