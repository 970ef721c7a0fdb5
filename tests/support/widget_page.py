"""A page of its own for a widget: the sources in ``frontend/``, and a fake model in the place of Jupyter's."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from said import pattern

from nbautograd import messages
from nbautograd.widgets.encoding import encode

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
  const { decode } = await import("/frontend/wire.js");
  const bytesAsText = (_, v) => v instanceof DataView
    ? { $b64: btoa(String.fromCharCode(...new Uint8Array(v.buffer, v.byteOffset, v.byteLength))) } : v;
  const change = async (part) => {
    const text = JSON.stringify({ ...(await decode(model.get("state"))), ...part }, bytesAsText);
    const deflated = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"));
    model.set("state", new DataView(await new Response(deflated).arrayBuffer()));
  };
  const reply = (content, buffers = []) => fire("msg:custom", content, buffers.map((b) => unpack({ $b64: b })));
  window.nb = { model, saved, sent, listeners, widget, reply, change, decode };
}"""
RENDER = """async () => { const el = document.createElement("div"); el.id = "view"; document.body.append(el);
                    nb.cleanup = await nb.widget.render({ model: nb.model, el }); }"""


PAGE_ONLY = ("region", "landmark-one-main", "page-has-heading-one", "heading-order")  # about a page, not a part of one
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {rule: {"enabled": False} for rule in PAGE_ONLY},
}


def words(message_id: str, /, **known: Any) -> re.Pattern[str]:
    """What finds a sentence of ours on a page; a parameter that is not given may be anything."""
    return re.compile(pattern(message_id, **known).replace("`", "`?"))  # which a page shows as code


def tab(page: Any, part: str) -> Any:
    """The tab of a part of a report, by the end of its message's id."""
    return page.get_by_role("tab", name=messages.text(f"views.part.{part}"))


def panel(page: Any, part: str) -> Any:
    """What a tab shows."""
    return page.get_by_role("tabpanel", name=messages.text(f"views.part.{part}"))


def button(page: Any, message_id: str, **params: Any) -> Any:
    """The button that says this."""
    return page.get_by_role("button", name=words(message_id, **params))


def reads(reading: Any, **numbers: str) -> None:
    """Expect a reading to give these numbers of its entry: ``analytical``, ``numerical``, ``difference``."""
    from playwright.sync_api import expect

    for name, number in numbers.items():
        said = words(f"views.panel.{name}").pattern + rf"\s*{re.escape(number)}"
        expect(reading).to_contain_text(re.compile(said))


def in_scheme(page: Any, scheme: str) -> None:
    """Show the page in a light or a dark colour scheme, or in the forced colours of high contrast."""
    if scheme == "forced":
        page.emulate_media(forced_colors="active", contrast="more")
    page.evaluate("s => { document.documentElement.style.cssText = `color-scheme: ${s}; background: Canvas`; }", scheme)


def violations(page: Any, **options: Any) -> list[tuple[str, str]]:
    """What axe finds on the page: its rules, and where each is broken first."""
    from axe_playwright_python.sync_playwright import Axe

    response = Axe().run(page, **{"options": RULES, **options}).response
    assert response["passes"], "axe looked at nothing"
    return [(one["id"], one["nodes"][0]["html"][:160]) for one in response["violations"]]


def answer(page: Any, question: Any, reply: Any) -> None:
    """Answer a question that the page asked, as Python does."""
    page.evaluate("([id, data]) => nb.reply({ id }, [data])", [question["id"], packed(encode(reply))["$b64"]])


def packed(value: Any) -> Any:
    """State with its bytes as text, so that it can be handed to the browser."""
    if isinstance(value, bytes):
        return {"$b64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {k: packed(v) for k, v in value.items()}
    return [packed(v) for v in value] if isinstance(value, (list, tuple)) else value


FRAMES = 1000  # pairs of them, half a minute, before a graph that never stands still fails its test
STILL = """() => new Promise((done) => {
  const view = () => document.querySelector(".nbag-live").shadowRoot.querySelector(".graph-frame")?.dataset.view;
  const before = view();
  requestAnimationFrame(() => requestAnimationFrame(() => done(before !== undefined && view() === before && before)));
})"""


def part_in_sight(page: Any) -> list[float]:
    """The part of a graph that its frame shows, as x, y, width and height: once it is drawn and stands still."""
    # asked anew in each pair of frames: under load `wait_for_function` takes a promise for its answer
    view = next(filter(None, (page.evaluate(STILL) for _ in range(FRAMES))))
    return [float(number) for number in view.split()]
