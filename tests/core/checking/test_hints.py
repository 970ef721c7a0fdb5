"""An exercise may want less than all: hints cut sentences, lines and fixes."""

from __future__ import annotations

import pytest
from fn import Fn
from own_mistakes import draw
from said import pattern

import nbautograd
from nbautograd.core.checking.repair import search
from nbautograd.errors import CallError

MeanOfProduct = Fn.of("MeanOfProduct", "a, b: save(a, b); return a * b",
    "g: a, b = saved; grad_a = g * b; grad_b = -g * a; return grad_a, grad_b")  # fmt: skip


def first(hints: str) -> nbautograd.types.Finding:
    report = nbautograd.gradcheck(MeanOfProduct, (draw(3), draw(3, seed=1)), hints=hints)
    assert report.verdict == "wrong"
    return report.findings[0]


def test_none_tells_only_which_gradient_is_wrong() -> None:
    found = first("none")
    assert (found.code, found.line, found.fix) == ("wrong_unclassified", None, None)
    assert found.params["input"] == "b"


def test_what_tells_the_cause_and_no_place_and_no_advice() -> None:
    found = first("what")
    assert (found.code, found.line, found.fix) == ("sign", None, None)
    assert found.message_id == "causes.sign"
    assert found.advice == ""


def test_fix_tells_all() -> None:
    found = first("fix")
    assert found.fix.verified
    assert found.fix.source.strip() == "grad_b = g * a"
    assert found.example


@pytest.mark.parametrize("hints", ["none", "what", "where"])
def test_no_time_is_spent_on_a_fix_that_nobody_wants(hints: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(search.Repair, "__init__", never)
    assert first(hints).fix is None


def test_a_word_that_is_no_hint_is_refused_with_advice() -> None:
    with pytest.raises(CallError, match=pattern("checking.hints_unknown")):
        nbautograd.gradcheck(MeanOfProduct, (draw(3), draw(3)), hints="all")
