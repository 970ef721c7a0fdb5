"""A stored widget as HTML that needs no kernel and no network: the static report, and a script that brings it to life.

The report stays readable where scripts do not run. Module, stylesheet and state go deflated in base64, so nothing that
they contain can end the script or be read as markup.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from nbautograd.widgets.base import STATIC, deflated, labels

KEPT = ("_kind", "_colours", "_labels", "state", "tab", "selection")
MOST = 2_000_000  # characters of one frozen view, its report not counted

_SCRIPT = """<script type="module">
const unpack = async (text) => new Response(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
const address = URL.createObjectURL(new Blob([await unpack("%s")], { type: "text/javascript" }));
const { thaw } = await import(address);
thaw(JSON.parse(await unpack("%s")));
</script>"""  # noqa: E501


def script(stored: Mapping[str, Any], anchor: str) -> str:
    """Return the ``<script>`` that puts the interactive view in the place of the static report.

    Args:
        stored: the state of a widget as notebooks store it: ``state`` and ``buffers``.
        anchor: class of the static report on the page.

    Returns:
        The element; or ``""`` when it would be longer than ``MOST`` characters.
    """
    traits = {name: part for name, part in _with_bytes(stored).items() if name in KEPT}
    traits["_labels"] = {**labels(), **traits.get("_labels", {})}
    sheet = (STATIC / "widget.css").read_text(encoding="utf-8")
    written = _packed(json.dumps({**traits, "_anchor": anchor, "_stylesheet": sheet}).encode())
    made = _SCRIPT % (base64.b64encode(deflated("widget.js")).decode(), written)
    return made if len(made) <= MOST else ""


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


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()
