"""The front end without Jupyter: its ES modules straight from ``frontend/``, a fake model, a real browser."""

from __future__ import annotations

import base64
import importlib.util
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORIGIN = "http://127.0.0.1:1"  # nothing listens there: every request is answered from the files
BLANK = "<!doctype html><html lang='en'><head><title>nbautograd</title></head><body style='margin:12px'></body></html>"
TYPES = {".js": "text/javascript", ".css": "text/css"}

HARNESS = """async ([kind, traits, words]) => {
  const unpack = (v) => {
    if (Array.isArray(v)) return v.map(unpack);
    if (!v || typeof v !== "object") return v;
    if ("$b64" in v) {
      const bytes = Uint8Array.from(atob(v.$b64), (c) => c.charCodeAt(0));
      const shifted = new Uint8Array(bytes.length + 3);  // a buffer of Jupyter's may start anywhere
      shifted.set(bytes, 3);
      return new DataView(shifted.buffer, 3, bytes.length);
    }
    return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, unpack(x)]));
  };
  const state = { ...unpack(traits), _kind: kind, _labels: words };
  const listeners = {}, saved = [], sent = [];
  const fire = (event, ...args) => { for (const f of [...(listeners[event] || [])]) f(...args); };
  const model = {
    get: (k) => state[k],
    set(k, v) { const old = state[k]; state[k] = v; if (old !== v) fire("change:" + k); },
    save_changes() { saved.push({ tab: state.tab, selection: state.selection }); },
    send(content) { sent.push(content); },
    on(e, f) { (listeners[e] ||= []).push(f); },
    off(e, f) { listeners[e] = (listeners[e] || []).filter((g) => g !== f); },
  };
  const { default: widget } = await import("/frontend/widget.js");
  const reply = (content, buffers = []) => fire("msg:custom", content, buffers.map((b) => unpack({ $b64: b })));
  window.nb = { model, saved, sent, listeners, widget, reply };
}"""
RENDER = """async () => { const el = document.createElement("div"); el.id = "view"; document.body.append(el);
                    nb.cleanup = await nb.widget.render({ model: nb.model, el }); }"""


def packed(value: Any) -> Any:
    """State with its bytes as text, so that it can be handed to the browser."""
    if isinstance(value, bytes):
        return {"$b64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {k: packed(v) for k, v in value.items()}
    return [packed(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The values that the tests of the views made by hand."""
    name = "sample_values"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "views" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


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
        sent = {name: packed(getattr(view, name)) for name in names}
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

        def answer(question: dict[str, Any]) -> dict[str, Any]:
            reply, _ = questions[question["kind"]](question)
            return {"id": question["id"], **reply}

        page.expose_function("askPython", answer)
        page.evaluate("() => { nb.model.send = (q) => askPython(q).then((reply) => nb.reply(reply)); }")
        return page

    return draw
