"""A check says how far it is, and can be stopped at any moment with what it has."""

from __future__ import annotations

import functions_checked as checked
import numpy as np
import pytest
import torch
from fn import Fn
from own_mistakes import normal
from said import says

from nbautograd import Budget, gradcheck
from nbautograd.core.checking import report_verdict
from nbautograd.core.checking.diagnosis import table
from nbautograd.core.checking.probes.run_probes import PROBES

# Leaves torch, so that every row and column is asked on its own.
OneByOne = Fn.of("OneByOne", "x: save(x); return torch.from_numpy(np.cumsum(x.numpy() ** 2))",
    "grad: (x,) = saved; return torch.from_numpy(np.cumsum(grad.numpy()[::-1])[::-1].copy()) * 2 * x")  # fmt: skip


@pytest.mark.parametrize("returned", [None, (), 3])
def test_a_forward_without_a_tensor_is_a_verdict_where_progress_is_shown(returned):
    class Nothing(Fn):
        def forward(ctx, x):
            return returned

        def backward(ctx, *grads):
            return None

    assert gradcheck(Nothing, normal(3), progress=lambda *done: None).verdict == gradcheck(Nothing, normal(3)).verdict


def test_progress_goes_up_to_the_end():
    told = []
    report = gradcheck(OneByOne, normal(40), progress=lambda *said: told.append(said))
    assert report.verdict == "right"
    done, totals, what = zip(*told, strict=True)
    assert list(done) == sorted(set(done))
    assert done[0] == 0
    assert done[-1] == totals[-1]
    assert len(set(totals)) == 1
    assert len(told) > 20
    assert any("d " in text and " / d x" in text for text in what)


def stopped_at(moment, calls):
    def stop(done, total, what):
        calls.append(done)
        if done >= moment:
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize("moment", [0, 5, 40, 60, 95, 100])
def test_a_check_can_be_stopped_at_any_moment(moment):
    calls = []
    report = gradcheck(OneByOne, normal(400), progress=stopped_at(moment, calls))
    assert not report.complete
    assert report.verdict == "cannot tell"
    done = (moment > 50) + (moment > 99)
    assert [b.verdict for b in report.blocks.values()] == [[], ["undecided"], ["match"]][done]
    why = ("checking.interrupted_early", "checking.because_interrupted", "views.evidence.incomplete")[done]
    assert report.reason.message_id == why


def test_columns_that_were_asked_are_kept():
    report = gradcheck(OneByOne, normal(400), progress=stopped_at(60, []))
    (block,) = report.blocks.values()
    assert (block.verdict, block.reason) == ("undecided", "interrupted")
    numerical = block.numerical()
    known = np.isfinite(numerical).all(axis=0)
    assert 0 < known.sum() < 400
    np.testing.assert_allclose(numerical[:, known], block.analytical()[:, known], rtol=1e-6, atol=1e-8)


Exp = Fn.of("Exp", "x: y = x.exp(); save(y); return y", "grad: return 1.5 * grad * ctx.saved_tensors[0]")
# Doubles what it should not, and keeps its output on ctx.
Stateful = Fn.of("Stateful", "x: ctx.y = x.sin(); save(x); return ctx.y",
    "grad: (x,) = saved; return 2 * grad * x.cos()")  # fmt: skip


def test_a_check_stopped_while_it_looks_for_causes_keeps_those_that_it_has():
    whole, calls = [], []
    gradcheck(Stateful, normal(5), order=1, progress=lambda done, total, what: whole.append(done))
    after_values = [done for done in whole if 100 < done < 200]
    assert len(after_values) > 5
    report = gradcheck(Stateful, normal(5), order=1, progress=stopped_at(after_values[-4], calls))
    assert not report.complete
    assert report.verdict == "wrong"
    assert [f.where for f in report.findings] == [(0, 0)]


class Listening:
    """Takes note of what it is told, and of the verdict between it."""

    def __init__(self, stop: bool = False) -> None:
        self.what: list[str] = []
        self.reports = []
        self.stop = stop

    def __call__(self, done, total, what):
        self.what.append(what)

    def verdict_known(self, report):
        self.reports.append(report)
        if self.stop:
            raise KeyboardInterrupt


def test_a_wrong_verdict_comes_before_causes_and_fixes(monkeypatch):
    listening, seen = Listening(), []
    for where, name in ((vars(table), "evidence"), (PROBES, "linearity")):
        plain = where[name]
        monkeypatch.setitem(where, name, lambda *a, p=plain: (seen.append(len(listening.reports)), p(*a))[1])
    gradcheck(Exp, normal(3), progress=listening)
    assert seen
    assert set(seen) == {1}
    assert any(says(what, "checking.known_wrong") for what in listening.what)


def test_a_right_verdict_comes_before_second_derivatives(monkeypatch):
    listening, seen = Listening(), []
    plain = report_verdict.second_order
    monkeypatch.setattr(report_verdict, "second_order", lambda *a: (seen.append(len(listening.reports)), plain(*a))[1])
    gradcheck(checked.Exp, normal(3), progress=listening)
    assert seen == [1]


class Interrupted:
    """Makes running sums with a doubled gradient, whose forward is interrupted in one of its calls."""

    def __init__(self, at: int) -> None:
        self.calls, self.at = 0, at

    def count(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt

    def elementwise(self):
        class Sine(Fn):
            def forward(ctx, x):
                self.count()
                ctx.save_for_backward(x)
                return torch.from_numpy(np.sin(x.numpy()))

            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 2 * grad * x.cos()

        return Sine

    def dense(self):
        class Sums(Fn):
            def forward(ctx, x):
                self.count()
                return torch.from_numpy(np.cumsum(x.numpy()))

            def backward(ctx, grad):
                return torch.from_numpy(2 * np.cumsum(grad.numpy()[::-1])[::-1].copy())

        return Sums


@pytest.mark.parametrize(
    ("kind", "size", "at", "given"),
    [("elementwise", 50, 12, None), ("dense", 30, 50, None), ("dense", 2000, 120, Budget(seconds=None, bytes=10**7))],
    ids=["elementwise", "dense", "sampled"],
)
def test_what_one_large_block_showed_until_then_is_said(kind, size, at, given):
    made = Interrupted(at)
    report = gradcheck(getattr(made, kind)(), normal(size), budget=given)
    assert made.calls == at
    assert report.verdict == "cannot tell"
    assert not report.complete
    assert report.reason.message_id == "checking.example"
    [block] = report.blocks.values()
    assert 0 < block.wrong <= block.matrices.known
    assert block.worst.analytical == pytest.approx(2 * block.worst.numerical, rel=1e-5)


@pytest.mark.parametrize("at", [6, 12, 20])
def test_nothing_is_said_of_one_that_is_right_so_far(at):
    made = Interrupted(at)

    def right(x):
        made.count()
        return x.cumsum(0).relu()

    report = gradcheck(right, normal(40, seed=3))
    assert made.calls == at
    assert report.verdict == "cannot tell"
    assert getattr(report.reason, "message_id", "") != "checking.example"
    assert all(block.wrong == 0 for block in report.blocks.values())
