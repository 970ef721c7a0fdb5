"""Write what the front end takes from Python: colours, signs of verdicts, the types of documents, states and answers.

``python frontend/generate.py``, then ``npm run build``. A test asks `stale`.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.block import Entry
from nbautograd.views import document, jacobian, layout, packing, phrases, theme, to_json
from nbautograd.views.builders.blocks import TONE
from nbautograd.views.to_json import NOT_FOR_PAGES
from nbautograd.widgets import marks, states

FRONTEND = Path(__file__).resolve().parent
COLOURS = re.compile(r"(?<=by frontend/generate.py \*/\n).*?(?=/\* end of colours \*/)", re.DOTALL)
SIMPLE = {str: "string", bool: "boolean", int: "number", float: "number", bytes: "DataView", type(None): "null"}
STORED = (document.Series, document.PageOnly)  # a live view gets what is in them
SHARED = ("views.line", "widgets.more", "widgets.apply_and_run")  # words of the reports that the extension says too
# what to_json makes of these is not what their fields say
DRAWN = """
/** A small heat map; `exact` where each of its cells is one element, drawn on a scale of its own without `most`. */
export interface Thumbnail {
  kind: "thumbnail";
  alt: string;
  array: import("./states").Packed;
  exact: boolean;
  name: string;
  shape: number[];
  sampled: boolean;
  pooling: import("./states").Pooling | null;
  most?: number;
  floor?: number;
}

/** The picture of a graph under its name; without a layout where it is too large. */
export interface Drawing {
  kind: "drawing";
  title: string;
  layout: import("./states").Layout | null;
}

/** A block of a Jacobian with its heat maps. */
export interface Heatmaps {
  kind: "heatmaps";
  block: import("./types").WholeBlock;
}
"""


def generated() -> dict[str, str]:
    """Return the files of the front end that hold something of Python's, by name, as they should be."""
    sheet = (FRONTEND / "widget.css").read_text(encoding="utf-8")
    return {
        "widget.css": COLOURS.sub(lambda _: f"{theme.style_variables()}\n", sheet),
        "tree.d.ts": document_types(),
        "states.d.ts": state_types(),
        "verdicts.js": verdicts(),
        "lab/marks.d.ts": mark_types(),
        "lab/catalogue.js": catalogue(),
    }


def catalogue() -> str:
    """Return the words of the JupyterLab extension in every language."""
    ids = {key: key.partition(".")[2] for key in messages.catalogue("en") if key[:4] == "lab." or key in SHARED}
    tables = {lang: {ids[key]: messages.catalogue(lang)[key] for key in ids} for lang in messages.LANGUAGES}
    head = "// Written by frontend/generate.py from nbautograd/messages/: the words of the JupyterLab extension."
    # prettier leaves it as it is: keys that need quotes, and long lines, are as JSON has them
    words = json.dumps(tables, ensure_ascii=False, indent=2)
    return f"{head}\n\n// prettier-ignore\nexport const WORDS = {words};\n"


def mark_types() -> str:
    """Return the types of what the JupyterLab extension reads from the outputs of a notebook."""
    classes = [c for c in vars(marks).values() if getattr(c, "__module__", "") == marks.__name__]
    head = "// Written by frontend/generate.py from nbautograd/widgets/marks.py."
    parts = map(_interface, filter(dataclasses.is_dataclass, classes))
    return "\n".join((head, *(f"\n{part}" for part in parts), ""))


def verdicts() -> str:
    """Return a class for each tone, a sign and a class for each verdict, and the order in which blocks are listed."""
    classes = {getattr(theme, name): name.lower() for name in ("GOOD", "BAD", "OPEN", "PLAIN")}
    tones = {tone: classes[colour] for tone, colour in theme.TONES.items()}
    of_blocks = {verdict: [mark, tones[TONE[verdict]]] for verdict, mark in phrases.MARKS.items()}
    of_reports = {verdict: [mark, tones[verdict]] for verdict, mark in phrases.VERDICT_MARKS.items()}
    parts = (
        "// Written by frontend/generate.py from nbautograd/views/: theme.py, phrases.py, jacobian.py.",
        _table("Record<string, string>", "a class for the tone of a chip or a card", "TONES", tones),
        _table(
            "Record<string, [string, string]>",
            "a sign and a class for each verdict, of a block or of a report",
            "SIGNS",
            {**of_blocks, **of_reports},
        ),
        _table("Record<string, number>", "blocks that tell most come first", "RANKS", jacobian.RANK),
    )
    return "\n\n".join(parts) + "\n"


def _table(kind: str, words: str, name: str, table: Mapping[str, Any]) -> str:
    """Return a constant as prettier writes it."""
    shown = {key: key if key.isidentifier() else json.dumps(key) for key in table}
    lines = (f"  {shown[key]}: {json.dumps(value, ensure_ascii=False)}," for key, value in table.items())
    return "\n".join((f"/** @type {{{kind}}} {words} */", f"export const {name} = {{", *lines, "};"))


def document_types() -> str:
    """Return the types of what ``views.to_json`` makes of a document."""
    blocks = [b for b in typing.get_args(document.Block) if b not in STORED]
    spans = [s for s in typing.get_args(document.Span) if s is not str]
    drawn = (document.Thumbnail, document.Drawing, document.Heatmaps)
    written = [_interface(cls) for cls in (*spans, *blocks) if cls not in drawn]
    unions = [
        f"export type Span = string | {' | '.join(s.__name__ for s in spans)};",
        "export type Cell = Span | Span[];",
        f"export type Block = {' | '.join(b.__name__ for b in blocks)};",
    ]
    head = "// Written by frontend/generate.py from nbautograd/views/document.py: what views/to_json.py makes of it."
    return "\n".join((head, *(f"\n{part}" for part in (*written, DRAWN.strip(), "\n".join(unions))), ""))


def state_types() -> str:
    """Return the types of states and answers as ``views.to_json`` writes them."""
    drawn = (to_json.Pooling, Entry, layout.Line, layout.Box, layout.Path, layout.Layout)
    homes = (packing, states)
    own = [c for home in homes for c in vars(home).values() if getattr(c, "__module__", "") == home.__name__]
    classes = filter(dataclasses.is_dataclass, own)
    head = "// Written by frontend/generate.py from nbautograd/widgets/states.py: what views/to_json.py makes of it."
    parts = (
        'import type { Block } from "./tree";',
        f"export type Figure = {_union(packing.Figure)};",
        *map(_interface, (*drawn, *classes)),
    )
    return "\n".join((head, *(f"\n{part}" for part in parts), ""))


def _interface(cls: Any) -> str:
    """Return the type of a part of a document, or of a state, of which a field goes unless it is None by default."""
    hints, part = typing.get_type_hints(cls), cls in to_json.PARTS
    lines = [f'  kind: "{cls.__name__.lower()}";'] if part else []
    for f in dataclasses.fields(cls):
        if f.name not in NOT_FOR_PAGES:
            left_out = f.default is not dataclasses.MISSING and (part or f.default is None)
            hint = hints[f.name] if part or not left_out else _without_none(hints[f.name])
            lines.append(f"  {f.name}{'?' if left_out else ''}: {_type(hint)};")
    summary = (cls.__doc__ or "").split("\n")[0]
    return "\n".join((f"/** {summary} */", f"export interface {cls.__name__} {{", *lines, "}"))


def _without_none(hint: Any) -> Any:
    if hint == packing.Figure:
        return hint
    return typing.Union[tuple(one for one in typing.get_args(hint) if one is not type(None))]  # noqa: UP007


def _union(hint: Any) -> str:
    return " | ".join(map(_type, typing.get_args(hint)))


def _type(hint: Any) -> str:
    named = {
        document.Span: "Span",
        document.Cell: "Cell",
        document.Block: "Block",
        packing.Figure: "Figure",
        float | complex: "Figure",
    }
    if hint in named:
        return named[hint]
    if hint in SIMPLE:
        return SIMPLE[hint]
    if dataclasses.is_dataclass(hint):
        return str(hint.__name__)
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(f'"{word}"' for word in arguments)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _union(hint)
    if typing.get_origin(hint) is Mapping:
        return f"Record<{', '.join(map(_type, arguments))}>"
    if typing.get_origin(hint) is Sequence or arguments[1:] == (Ellipsis,):
        inner = _type(arguments[0])
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if typing.get_origin(hint) is tuple:
        return f"[{', '.join(map(_type, arguments))}]"
    raise TypeError(hint)


def stale() -> dict[str, str]:
    """Return those that are not as they should be."""
    written = {name: file.read_text("utf-8") for name in generated() if (file := FRONTEND / name).exists()}
    return {name: text for name, text in generated().items() if written.get(name) != text}


if __name__ == "__main__":
    for name, text in stale().items():
        (FRONTEND / name).write_text(text, encoding="utf-8")
