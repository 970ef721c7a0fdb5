"""An error of ours in any part of a check: a wrong gradient is never right by it, and the report says what failed."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import signal
from collections.abc import Callable
from typing import Any

import pytest
from fn import Fn
from injected import broken
from own_mistakes import normal

import nbautograd
from nbautograd.core import stumbles
from nbautograd.core.checking import gradcheck, report_verdict
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.diagnosis import table
from nbautograd.core.checking.probes.run_probes import PROBES
from nbautograd.core.checking.repair.kinds import KINDS

# Wrong for a gradient that is not contiguous, which the probe of layouts alone finds.
ByView = Fn.of("ByView", "x: save(x); return x * x", "g: (x,) = saved; return 2 * x * g.view(-1).view(x.shape)")
# Wrong by a factor.
Linear = Fn.of("Linear", "x, w: save(x, w); return x @ w", "g: x, w = saved; return 0.5 * g @ w.t(), x.t() @ g")


class Cube(Fn):
    """Right, with a jvp of its own and a vmap, so that every probe has something to ask."""

    def forward(x):
        return x**3

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t

    def vmap(info, in_dims, x):
        return Cube.apply(x), in_dims[0]


def checked_with_stumble(check: Callable[[], GradcheckReport], part: str) -> GradcheckReport:
    """Return the report of a check in which one part is made to fail; the part is in the list and in the report."""
    report = check()
    assert {one.part for one in stumbles.recent()} == {part}
    stumbles.forget()
    found = report.findings + (report.order2.findings if report.order2 is not None else ())
    note = next(finding for finding in found if finding.code == "stumbled")
    assert note.kind == "note"
    assert note.params["part"] == part
    assert note.what in " ".join(str(report).split())
    assert "report-bug" in str(report)
    return report


check_right = functools.partial(nbautograd.gradcheck, Cube, (normal(2, 3),))


def test_nothing_stumbles_where_nothing_is_made_to() -> None:
    assert check_right().verdict == "right"
    assert nbautograd.gradcheck(Linear, (normal(2, 3), normal(3, 2))).verdict == "wrong"


@pytest.mark.parametrize("name", [*PROBES])
def test_no_gradient_is_right_where_a_probe_failed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROBES, name, broken())
    report = checked_with_stumble(check_right, name)
    if name == "over_reverse":  # it is asked about second derivatives
        assert report.order2 is not None
        report = report.order2
    assert report.verdict == "cannot tell"
    assert "AttributeError: renamed" in str(report.reason)
    assert report.to_dict()["verdict"] == "cannot tell"


@pytest.mark.parametrize(
    "name", [name for name in PROBES if name not in ("over_reverse", "layout", "vmap_rule", "batched")]
)
def test_a_gradient_that_another_probe_finds_wrong_stays_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROBES, name, broken())
    report = checked_with_stumble(functools.partial(nbautograd.gradcheck, ByView, (normal(3, 4),)), name)
    assert report.verdict == "wrong"
    assert "fails_noncontiguous_grad" in {finding.code for finding in report.findings}


def test_a_wrong_gradient_is_not_right_where_the_probe_that_finds_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    check = functools.partial(nbautograd.gradcheck, ByView, (normal(3, 4),))
    assert check().verdict == "wrong"
    monkeypatch.setitem(PROBES, "layout", broken())
    assert checked_with_stumble(check, "layout").verdict == "cannot tell"


check_wrong = functools.partial(nbautograd.gradcheck, Linear, (normal(2, 3), normal(3, 2)))


@pytest.mark.parametrize("number", range(len(table.HYPOTHESES)))
def test_a_cause_that_cannot_be_looked_for_leaves_the_verdict(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    row = table.HYPOTHESES[number]
    spoilt = broken(), row[1]
    rows = (spoilt, *(other for other in table.HYPOTHESES if other is not row))  # first, so that it is asked
    monkeypatch.setattr(table, "HYPOTHESES", rows)
    monkeypatch.setattr(gradcheck, "Mending", lambda: lambda _, findings, clues=None: findings)
    report = checked_with_stumble(check_wrong, "hypothesis")
    assert report.verdict == "wrong"
    assert any(finding.kind == "bug" and finding.where == (0, 0) for finding in report.findings)


# Wrong by a factor, in one line.
Doubled = Fn.of("Doubled", "x: return 2 * x", "g: return g")


@pytest.mark.parametrize("name", [*KINDS])
def test_an_edit_that_cannot_be_made_leaves_the_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, name, dataclasses.replace(KINDS[name], rule=broken()))
    report = checked_with_stumble(functools.partial(nbautograd.gradcheck, Doubled, (normal(1),)), f"edit {name}")
    assert report.verdict == "wrong"


PARTS: list[tuple[str, Any, str, str]] = [  # part, what is spoilt, the verdict on what is right, on what is wrong
    ("blocks", (gradcheck.GradcheckRun, "find_blocks"), "cannot tell", "cannot tell"),
    ("blocks", (gradcheck.GradcheckRun, "_judged"), "cannot tell", "cannot tell"),
    ("curves", (gradcheck.GradcheckRun, "add_curves"), "right", "wrong"),
    ("diagnosis", (report_verdict, "diagnose"), "cannot tell", "wrong"),
    ("second order", (report_verdict, "second_order"), "right", "wrong"),
]


@pytest.mark.parametrize(("part", "place", "right", "wrong"), PARTS, ids=[f"{p}-{place[1]}" for p, place, *_ in PARTS])
def test_a_part_of_the_check_that_failed(part, place, right, wrong, monkeypatch):
    monkeypatch.setattr(*place, broken())
    report = checked_with_stumble(check_right, part)
    assert report.verdict == right
    assert part != "second order" or (report.order2 is not None and report.order2.verdict == "cannot tell")
    if part != "second order":  # which is only asked of what is right
        assert checked_with_stumble(check_wrong, part).verdict == wrong


@pytest.mark.parametrize("raised", [SystemExit(7), TimeoutError("too long")], ids=["an exit", "a timeout"])
@pytest.mark.parametrize("at", range(1, 40, 6))
def test_what_the_handler_of_a_signal_raises_ends_the_check(raised: BaseException, at: int) -> None:
    """It may come in any call, as of a scheduler that ends a job."""

    def stop(number: int, frame: Any) -> None:
        raise raised

    calls = itertools.count(1)
    function = Fn.of("Struck", "x: save(x); return x.sin()", "g: (x,) = saved; strike(); return g * x.cos()")
    globals()["strike"] = lambda: signal.raise_signal(signal.SIGTERM) if next(calls) == at else None
    before = signal.signal(signal.SIGTERM, stop)
    stumbles.forget()
    try:
        with pytest.raises(type(raised)):
            nbautograd.gradcheck(function, (normal(3),))
        assert not stumbles.recent()
    finally:
        signal.signal(signal.SIGTERM, before)
