"""Views that need no kernel: the script that a page brings with what a widget stores, and a report as such a page."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from html import escape
from typing import Any

from nbautograd.views.bundle import html
from nbautograd.views.issue import for_issue
from nbautograd.widgets.base import STATIC, Question, ViewWidget, deflated, labels
from nbautograd.widgets.encoding import encode, with_answers
from nbautograd.widgets.front_ends import fresh_anchor
from nbautograd.widgets.states import TextAnswer

KEPT = ("_kind", "_colours", "_labels", "state", "tab", "selection")
MOST_LETTERS = 2_000_000  # characters of one frozen view, its report not counted

# four bytes in five letters, as base64.b85encode has them, where base64 takes five and a third; `own` is empty where a
# view before it on the page has brought the same, see `brought_once`
SCRIPT = """<script type="module">
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%%&()*+-;<=>?@^_`{|}~";
function bytes(text) {
  const count = Math.ceil(text.length / 5), view = new DataView(new ArrayBuffer(4 * count)), full = text.padEnd(5 * count, "~");
  for (let k = 0; k < count; k++) view.setUint32(4 * k, [...full.slice(5 * k, 5 * k + 5)].reduce((n, c) => 85 * n + digits.indexOf(c), 0));
  return view.buffer.slice(0, Math.floor(text.length * 0.8));
}
const unpack = async (text) => new Response(new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
const own = "%s";
if (own) window.nbag = unpack(own).then((it) => URL.createObjectURL(new Blob([it], { type: "text/javascript" })));
const { thaw } = await import(await window.nbag);
thaw(JSON.parse(await unpack("%s")));
</script>"""  # noqa: E501


def script(stored: Mapping[str, Any], anchor: str) -> str:
    """Return the ``<script>`` that puts the interactive view in the place of the static report.

    Args:
        stored: the state of a widget as notebooks store it: ``state`` and ``buffers``.
        anchor: class of the static report on the page.

    Returns:
        The element; or ``""`` when it would be longer than ``MOST_LETTERS`` characters.
    """
    return _script({name: part for name, part in _with_bytes(stored).items() if name in KEPT}, anchor)


def brought_once(page: str) -> str:
    """Return a page in which the first of its views brings the script that all of them run."""
    text = base64.b85encode(deflated("widget.js")).decode()
    first, *others = page.split(text)
    return text.join((first, "".join(others))) if others else page


def _script(traits: dict[str, Any], anchor: str) -> str:
    traits["_labels"] = {**labels(), **traits.get("_labels", {})}
    sheet = (STATIC / "widget.css").read_text(encoding="utf-8")
    stored = zlib.compress(json.dumps({**traits, "_anchor": anchor, "_stylesheet": sheet}).encode(), 9)
    made = SCRIPT % tuple(base64.b85encode(part).decode() for part in (deflated("widget.js"), stored))
    return made if len(made) <= MOST_LETTERS else ""


def _with_bytes(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the traits, each buffer where it belongs as ``{"$b64": text}``."""
    traits: dict[str, Any] = json.loads(json.dumps(stored["state"]))
    for buffer in stored.get("buffers", ()):
        *way, last = buffer["path"]
        place: Any = traits
        for step in way:
            place = place[step]
        place[last] = {"$b64": buffer["data"]}
    return traits


PAGE = """<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{font:14px/1.45 system-ui,sans-serif;margin:16px}}</style>
</head><body>{report}{script}</body></html>"""


def frozen_report(view: ViewWidget) -> TextAnswer:
    """Return a view's value as one page that needs neither kernel nor network, with the answers to likely questions."""
    anchor, state = fresh_anchor(), with_answers(view.make_state(view.value), view.questions(), view.value)
    traits = {name: getattr(view, name) for name in KEPT if name != "state"}
    stored = {**traits, "state": {"$b64": base64.b64encode(encode(state)).decode()}}
    title = escape(str(getattr(view.value, "function", "")))
    return TextAnswer(text=PAGE.format(title=title, report=html(view.value, anchor), script=_script(stored, anchor)))


def taken_along(view: ViewWidget) -> dict[str, Question]:
    """Return the questions for a report as text for an issue, and as a page of its own; the page hands out both."""
    return {
        "text": lambda question: TextAnswer(text=for_issue(view.value, redact=question.get("redacted") is True)),
        "page": lambda _question: frozen_report(view),
    }
