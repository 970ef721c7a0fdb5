"""The front end without Jupyter: its ES modules straight from ``frontend/``, a fake model, a real browser."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import sample_values
from widget_page import BLANK, HARNESS, ORIGIN, RENDER, ROOT, TYPES, packed

from nbautograd.widgets.encoding import encode


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The values that the tests of the views made by hand."""
    return sample_values


@pytest.fixture
def blank(page: Any) -> Any:
    """An empty page on which ``/frontend/*`` are the sources."""

    def serve(route: Any) -> None:
        path = route.request.url.removeprefix(ORIGIN)
        file = ROOT / path.lstrip("/")
        if path.startswith("/frontend/") and file.is_file():
            route.fulfill(body=file.read_text(encoding="utf-8"), content_type=TYPES[file.suffix])
        else:
            route.fulfill(body=BLANK, content_type="text/html")

    page.route(f"{ORIGIN}/**", serve)
    page.goto(f"{ORIGIN}/")
    yield page
    assert page.errors == []
    assert page.refused == []


@pytest.fixture
def load(blank: Any) -> Callable[..., Any]:
    """Give the page a fake model of a value's widget; nothing is drawn yet."""

    def give(value: Any, **traits: Any) -> Any:
        from nbautograd.widgets.live import widget

        view = widget(value, **{k: v for k, v in traits.items() if k in ("tab", "selection", "anchor")})
        names = ("_module", "_stylesheet", "_anchor", "_colours", "state", "tab", "selection")
        sent = {name: packed(value) for name, value in view.get_state(names).items()}
        sent["_stylesheet"] = packed(zlib.compress((ROOT / "frontend" / "widget.css").read_bytes()))
        blank.evaluate(HARNESS, [traits.get("kind", view._kind), sent, view._labels])
        view.close()
        return blank

    return give


@pytest.fixture
def show(load: Callable[..., Any]) -> Callable[..., Any]:
    """Draw a value's widget on the page."""

    def draw(value: Any, **traits: Any) -> Any:
        tab = load(value, **traits)
        tab.evaluate(RENDER)
        return tab

    return draw


@pytest.fixture
def asking(show: Callable[..., Any]) -> Callable[..., Any]:
    """Draw a graph, or a report with one, whose questions are answered by the widget's own Python."""

    def draw(value: Any) -> Any:
        from nbautograd.widgets.live import widget

        page = show(value)
        view = widget(value)
        questions = view.questions()
        view.close()

        def answer(question: dict[str, Any]) -> str:
            data: str = packed(encode(questions[question["kind"]](question)))["$b64"]
            return data

        page.expose_function("askPython", answer)
        page.evaluate("() => { nb.model.send = (q) => askPython(q).then((data) => nb.reply({ id: q.id }, [data])); }")
        return page

    return draw
