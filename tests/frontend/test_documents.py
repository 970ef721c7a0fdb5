"""Documents on a page by themselves: a trace of dispatches, a tree that folds; exercises and ways to their answers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from playwright.sync_api import expect
from widget_page import button, in_scheme, violations

from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.core.values import Value
from nbautograd.course import rendering as _registers  # noqa: F401
from nbautograd.course.progress import CourseProgress, ProgressRow
from nbautograd.course.result import ExerciseResult
from nbautograd.views.bundle import mimebundle

pytestmark = pytest.mark.browser


def dispatch(index: int, parent: int | None, func: str, **more: Any) -> Dispatch:
    return Dispatch(index, parent, "__torch_function__", "Scalar", func, **more)


@pytest.fixture
def trace() -> DispatchLog:
    """Return a trace of three calls inside each other, and one after them."""
    long = Value("0", "Scalar", "<ScalarTensor _N=3 _value=2.123 name='a name that is quite long' more=1>")
    return DispatchLog(
        (
            dispatch(0, None, "torch.add", args=(long, long)),
            dispatch(1, 0, "torch.mean"),
            dispatch(2, 1, "torch.sum"),
            dispatch(3, None, "torch.mul", outcome="NotImplemented"),
        )
    )


def rows(page: Any) -> list[str]:
    return [row.locator("th code").inner_text() for row in page.locator("tbody tr:visible").all()]


def test_a_trace_is_a_tree_that_folds(show: Any, trace: DispatchLog) -> None:
    page = show(trace)
    outer, inner = (button(page, "widgets.inside_count", count=count) for count in (2, 1))
    names = [row.split("(")[0] for row in rows(page)]
    assert names == ["torch.add", "torch.mean", "torch.sum", "torch.mul"]
    assert rows(page)[0] == "torch.add(<ScalarTensor _N=3 …>, <ScalarTensor _N=3 …>)"  # by whole attributes
    inner.click()
    expect(inner).to_have_attribute("aria-expanded", "false")
    assert len(rows(page)) == 3
    outer.press("Enter")
    assert len(rows(page)) == 2
    outer.press("Enter")  # what is folded inside stays so
    assert len(rows(page)) == 3
    inner.click()
    assert len(rows(page)) == 4


@pytest.mark.parametrize(("width", "scheme"), [(480, "light"), (1000, "dark")])
def test_a_trace_is_seen_whole_at_any_width_and_axe_finds_nothing(
    show: Any, trace: DispatchLog, width: int, scheme: str
) -> None:
    page = show(trace)
    in_scheme(page, scheme)
    assert violations(page) == []
    page.set_viewport_size({"width": width, "height": 800})
    assert page.locator(".scroll").evaluate("r => r.scrollWidth - r.clientWidth") <= 0
    for row in page.locator("tbody tr").all():
        boxes = [part.bounding_box() for part in row.locator("code, .verdict").all()]
        for one, other in combinations(boxes, 2):
            assert one["x"] + one["width"] <= other["x"] or one["y"] + one["height"] <= other["y"] + 1, "they overlap"
    lefts = [code.bounding_box()["x"] for code in page.locator("tbody th code").all()]
    assert lefts[0] < lefts[1] < lefts[2]


def test_the_name_of_an_exercise_leads_to_its_answer(show: Any) -> None:
    page = show(CourseProgress((ProgressRow("multiply", 2, "passed"), ProgressRow("exp"))))
    expect(page.get_by_role("button", name="exp")).to_have_count(0)  # nothing was tried
    stored = mimebundle(ExerciseResult("multiply", "Multiply", "failed"))["text/html"]
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', `<div style='height: 4000px'></div>${html}`)",
                  stored)  # fmt: skip
    answer = page.locator(".nbag-at-exercise-multiply")
    expect(answer).not_to_be_in_viewport()
    page.get_by_role("button", name="multiply").click()
    expect(answer).to_be_in_viewport()
