"""The front end without Jupyter: its ES modules straight from ``frontend/``, a fake model, a real browser."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

import pytest
import sample_values
from widget_page import BLANK, HARNESS, RENDER, ROOT, TYPES, packed

from nbautograd.widgets.encoding import encode


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The values that the tests of the views made by hand."""
    return sample_values


class Sources(BaseHTTPRequestHandler):
    """Serves ``/frontend/*``, and an empty page for all else. What a tab has read of the sources it keeps."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a source or the empty page."""
        file = ROOT / self.path.lstrip("/")
        source = self.path.startswith("/frontend/") and file.is_file()
        body = file.read_bytes() if source else BLANK.encode()
        self.send_response(200)
        self.send_header("Content-Type", TYPES[file.suffix] if source else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=3600" if source else "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def origin() -> Iterator[str]:
    """The address of the sources."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Sources) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    """One tab for all tests of a file: a new one takes longer than most of them."""
    context = chromium.new_context()
    tab = context.new_page()
    tab.errors, tab.asked = [], []
    tab.on("pageerror", lambda error: tab.errors.append(f"{error}\n{error.stack or ''}"))
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.expose_function("askPython", lambda question: tab.answer(question))
    yield tab
    context.close()


@pytest.fixture
def blank(tab: Any, origin: str) -> Any:
    """An empty page on which ``/frontend/*`` are the sources; nothing is left there of the test before."""
    tab.goto(origin)
    tab.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    tab.set_viewport_size({"width": 1000, "height": 760})
    tab.emulate_media(
        media="screen", color_scheme="light", reduced_motion="reduce", forced_colors="none", contrast="no-preference"
    )
    tab.context.clear_permissions()
    tab.mouse.move(0, 0)
    tab.errors.clear()
    tab.asked.clear()
    yield tab
    assert tab.errors == []
    assert [url for url in tab.asked if not url.startswith((origin, "blob:", "data:", "file:"))] == []


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
        view.close()

        def answer(question: dict[str, Any]) -> str:
            data: str = packed(encode(view.questions()[question["kind"]](question)))["$b64"]
            return data

        page.answer = answer
        page.evaluate("() => { nb.model.send = (q) => askPython(q).then((data) => nb.reply({ id: q.id }, [data])); }")
        return page

    return draw
