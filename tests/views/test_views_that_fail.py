"""An error of ours in any builder or writer: a plain sentence in its place, never a traceback of ours."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from injected import broken

import nbautograd
from nbautograd.core import stumbles
from nbautograd.views import bundle
from nbautograd.views.builders import build
from nbautograd.views.builders import report as report_builder

KINDS = sorted((cls for cls in build.registry if cls is not object), key=lambda cls: cls.__name__)


@pytest.fixture(autouse=True)
def kept():
    """Each of these tests makes a part fail, and the list has it."""
    yield
    assert stumbles.recent()
    assert all("renamed" in one.what for one in stumbles.recent())
    stumbles.forget()


@pytest.mark.parametrize("cls", KINDS, ids=[cls.__name__ for cls in KINDS])
@pytest.mark.filterwarnings("ignore")
def test_a_builder_that_fails_leaves_a_sentence(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = build.registry[cls]
    monkeypatch.setattr(cls, "__repr__", lambda self: f"<{cls.__name__} in one line>")
    build.register(cls, broken("views/injected.py"))
    try:
        value = object.__new__(cls)
        shown = [bundle.text(value), bundle.html(value), *bundle.mimebundle(value).values()]
    finally:
        build.register(cls, plain)
    for one in shown:
        assert "renamed" in one
        assert "Traceback" not in one
        assert "in one line" in one


@pytest.fixture(scope="module")
def report() -> Any:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    return nbautograd.inspect(Double, x)


Double = Fn.of("Double", "x: return 2 * x", "g: return 2 * g")


@pytest.mark.parametrize("writer", ["to_text", "page"])
def test_a_writer_that_fails_leaves_a_sentence(writer: str, report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, calls = getattr(bundle, writer), []

    def once(document: Any) -> Any:
        calls.append(document)
        return broken("views/injected.py")() if len(calls) == 1 else plain(document)

    monkeypatch.setattr(bundle, writer, once)
    shown = bundle.text(report) if writer == "to_text" else bundle.html(report)
    assert "Double" in shown
    assert "renamed" in shown


@pytest.mark.parametrize("part", report_builder.PARTS[:4])
def test_a_part_that_fails_leaves_the_others(part: str, report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = report_builder._inside
    failing = broken("views/injected.py")
    monkeypatch.setattr(report_builder, "_inside", lambda r, p, told: failing() if p == part else plain(r, p, told))
    html = bundle.html(report)
    assert "renamed" in html
    assert html.count("<details") >= 3
    assert "right" in bundle.text(report)
