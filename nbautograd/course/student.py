"""The student version of a source notebook: one language, no solutions, no outputs, the same bytes each time."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nbautograd import messages
from nbautograd.course import nbgrader
from nbautograd.course.exercise import Exercise
from nbautograd.course.source import Cell, Source, SourceError, digest, stripped, without_magics
from nbautograd.course.translations import stale

Find = Callable[[str], Exercise]
OURS = ("tags", "exercise", "expects", "lang", "pair", "of")
DROPPED = {"right", "wrong"}
PRIVATE = {*DROPPED, "shown"}  # tags for the author's eyes


def notebook(source: Source, lang: str, find: Find) -> dict[str, Any]:
    """The student's notebook as JSON-ready data, nbformat 4.5.

    Args:
        source: the source notebook.
        lang: ``"en"`` or ``"zh"``.
        find: from an exercise's name to the exercise.

    Raises:
        SourceError: for a cell that cannot be released.
    """
    cells = _named([_cell(source, cell, lang, find) for cell in _chosen(source, lang)])
    named = source.metadata
    # of what the student sees: an answer that only the author sees makes no new version
    about = {"name": source.name, "language": lang, "content": digest(written({"cells": cells}))[:16]}
    about.update({k: str(named[k]) for k in ("course", "minutes") if k in named})
    title = named.get(f"title_{lang}")
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "nbautograd": {**about, **({"title": title} if title else {})},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def written(content: Mapping[str, Any]) -> str:
    """The text of an ``.ipynb`` file, the same on every machine."""
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _chosen(source: Source, lang: str) -> Iterator[Cell]:
    for cell in source.cells:
        if not DROPPED & set(cell.tags) and cell.lang in ("", lang):
            yield cell


def _cell(source: Source, cell: Cell, lang: str, find: Find) -> dict[str, Any]:
    text = _text(source, cell, lang)
    if cell.kind == "code":
        _parses(text)
    made: dict[str, Any] = {"cell_type": cell.kind, "id": _id(cell), "metadata": _metadata(cell, text, find)}
    made["source"] = text.splitlines(keepends=True)
    if cell.kind == "code":
        made.update({"execution_count": None, "outputs": []})
    elif cell.attachments:
        made["attachments"] = dict(cell.attachments)
    return made


def _text(source: Source, cell: Cell, lang: str) -> str:
    if cell.kind != "code":
        old = lang == cell.lang == "zh" and cell in list(stale(source))
        with messages.speaking(lang):
            return f"> *{messages.text('course.stale_note')}*\n\n{cell.text}" if old else cell.text
    return stripped(speaking(cell.text, lang) if "setup" in cell.tags else cell.text, lang)


def speaking(setup: str, lang: str) -> str:
    """The setup cell with a line that makes reports speak the notebook's language, whatever the machine's is.

    Example:
        >>> from nbautograd.course.student import speaking
        >>> print(speaking("import nbautograd\\n%load_ext nbautograd", "zh"))
        import nbautograd
        nbautograd.set_language("zh")
        %load_ext nbautograd
    """
    line = f'nbautograd.set_language("{lang}")\n'
    imported = "" if re.search(r"^import nbautograd$", setup, re.MULTILINE) else "import nbautograd\n"
    return re.sub(r"^%load_ext nbautograd", f"{imported}{line}%load_ext nbautograd", setup, count=1, flags=re.MULTILINE)


def _metadata(cell: Cell, text: str, find: Find) -> dict[str, Any]:
    kept = {k: v for k, v in cell.metadata.items() if k not in OURS}
    tags = [tag for tag in cell.tags if tag not in PRIVATE]
    made: dict[str, Any] = {**kept, **({"tags": tags} if tags else {})}
    if cell.is_answer:
        made["nbautograd"] = {"exercise": cell.exercise}
        made["nbgrader"] = nbgrader.answer(cell.exercise, text, find(cell.exercise).points)
    elif "setup" in tags:
        made["nbgrader"] = nbgrader.read_only("setup", text, cell.kind)
    return made


def _id(cell: Cell) -> str:
    """A name that stays when other cells are edited, where the source names the cell; else a common one."""
    name = cell.exercise or cell.metadata.get("pair") or ("code" if cell.kind == "code" else "text")
    return re.sub(r"[^A-Za-z0-9_-]", "-", str(name))[:56]


def _named(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: dict[str, int] = {}
    for cell in cells:
        count = seen.get(cell["id"], 0)
        seen[cell["id"]] = count + 1
        if count:
            cell["id"] = f"{cell['id']}-{count}"
    return cells


def _parses(text: str) -> None:
    try:
        ast.parse(without_magics(text))
    except (SyntaxError, ValueError) as error:  # ValueError in Python 3.10: null bytes
        first = next(iter(text.strip().splitlines()), "")
        reason = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else str(error)
        raise SourceError("course.no_python", text=first, reason=reason) from None
