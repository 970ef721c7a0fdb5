"""The call tree of dispatches: words, folding, escaping."""

from __future__ import annotations

import re

from said import pattern, says

from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.core.values import Value
from nbautograd.views.bundle import html, text


def one(index: int, parent: int | None = None, **fields: object) -> Dispatch:
    known = {"protocol": "__torch_function__", "owner": "Scalar", "func": "torch.add", "outcome": "returned"}
    return Dispatch(index, parent, **{**known, **fields})  # type: ignore[arg-type]


def test_of_several_classes_each_row_says_which_was_asked() -> None:
    lines = text(
        DispatchLog(
            (one(0, handler="add", handler_line=7), one(1, owner="Other"), one(2, protocol="__torch_dispatch__"))
        )
    ).splitlines()
    assert [line.split()[:3] for line in lines[-4:]] == [
        ["call", "asked", "answered"],
        ["torch.add()", "Scalar", "add,"],
        ["torch.add()", "Other", "the"],
        ["torch.add()", "Scalar", "(dispatch)"],
    ]


def test_who_answered_is_told_where_it_was_not_the_method_that_was_asked() -> None:
    told = [
        says(text(DispatchLog((one(0, **row),))), "views.column.answer")
        for row in ({}, {"handler": "add"}, {"outcome": "raised"})
    ]
    assert told == [False, True, True]


def test_a_call_that_the_second_type_answers_is_no_complaint() -> None:
    asked = {"types": ("Scalar", "Other")}
    log = DispatchLog((one(0, outcome="NotImplemented", **asked), one(1, owner="Other", **asked)))
    assert not says(text(log), "tracing.nobody")
    twice = DispatchLog((one(0, outcome="NotImplemented"), one(1, outcome="NotImplemented")))
    assert len(re.findall(pattern("tracing.nobody"), text(twice))) == 1


def test_names_that_are_markup_stay_names() -> None:
    page = html(DispatchLog((one(0, owner="<b>", func="<script>", result=Value("r", "X", "<img src=x>")),)))
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


def stored(inside: int, **last: object) -> str:
    """A page of one call with so many inside, the last of them different, and one call after it."""
    children = [one(1 + k, 0, **(last if k == inside - 1 else {})) for k in range(inside)]
    return html(DispatchLog((one(0), *children, one(50))))


def test_a_fold_begins_open_only_where_something_in_it_went_wrong() -> None:
    assert "<details open" not in stored(9).replace(' style="margin:2px 0 6px 0"', "")
    assert "<details open" in stored(9, outcome="NotImplemented").replace(' style="margin:2px 0 6px 0"', "")
