"""The student version of a source notebook: one language, no solutions, no outputs, the same bytes each time."""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from nbautograd import messages
from nbautograd.course import nbgrader
from nbautograd.course.exercise import Exercise
from nbautograd.course.source import Source, SourceCell, SourceError, digest, stripped, without_magics
from nbautograd.course.translations import code_words

OURS = ("tags", "exercise", "lang", "pair", "of")
PRIVATE = {"shown"}  # tags for the author's eyes


def notebook(
    source: Source, lang: str, outdated: Collection[SourceCell], graded: Mapping[str, Exercise] | None = None
) -> Any:
    """Make the student's notebook, a NotebookNode of nbformat 4.5.

    Args:
        source: the source notebook.
        lang: ``"en"`` or ``"zh"``.
        outdated: the cells whose translation is older than the text it was made from.
        graded: for nbgrader the exercises, by name: each gets a cell of points below it, and all cells its metadata.

    Raises:
        SourceError: for a cell that cannot be released.
    """
    from nbformat import NotebookNode, v4

    words = code_words(source) if lang == "zh" else {}
    chosen = [cell for cell in source.cells if cell.lang in ("", lang) and not cell.is_words]
    made = [new for cell in chosen for new in _cells(cell, lang, words, graded or {}, cell in outdated)]
    content = v4.new_notebook(cells=_named(made))
    named = source.metadata
    about = {"name": source.name, "language": lang, "content": digest(written(NotebookNode(cells=content.cells)))[:16]}
    about.update({k: str(named[k]) for k in ("course", "minutes") if k in named})
    if named.get(f"title_{lang}"):
        about["title"] = named[f"title_{lang}"]
    content.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "nbautograd": about,
    }
    return content


def written(content: Any) -> str:
    """Return the text of an ``.ipynb`` file, or of its cells alone, the same on every machine."""
    from nbformat.v4.rwbase import split_lines

    return json.dumps(split_lines(copy.deepcopy(content)), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _cells(
    cell: SourceCell, lang: str, words: Mapping[str, str], graded: Mapping[str, Exercise], outdated: bool
) -> Iterator[Any]:
    """Make what a cell becomes; ``graded`` holds the exercises that get a cell of points for nbgrader."""
    from nbformat import v4

    text = cell.text
    if cell.kind == "code":
        if not cell.is_answer:
            for english, chinese in words.items():
                text = text.replace(english, chinese)
        text = stripped(speaking(text, lang), lang)
        try:
            ast.parse(without_magics(text))
        except (SyntaxError, ValueError) as error:  # ValueError in Python 3.11: null bytes
            first = next(iter(text.strip().splitlines()), "")
            reason = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else str(error)
            raise SourceError("course.no_python", text=first, reason=reason) from None
    elif outdated and lang == cell.lang:
        with messages.speaking(lang):
            text = f"> *{messages.text('course.stale_note')}*\n\n{text}"
    new: Any = {"code": v4.new_code_cell, "markdown": v4.new_markdown_cell, "raw": v4.new_raw_cell}[cell.kind]
    exercise = graded.get(cell.exercise) if cell.is_answer else None
    if exercise is not None:
        text = nbgrader.with_regions(text)
    made = new(text, id=_id(cell), metadata=_metadata(cell, text, bool(graded)))
    if cell.kind != "code" and cell.node.get("attachments"):
        made.attachments = cell.node.attachments
    yield made
    if exercise is not None:
        name, text = f"{exercise.name}-points", nbgrader.points_cell(exercise.name, exercise.answer)
        about = {"nbgrader": nbgrader.graded(name, text, exercise.points)}
        yield v4.new_code_cell(text, id=name[:56], metadata=about)


def speaking(setup: str, lang: str) -> str:
    """Return the setup cell with a line that makes reports speak the notebook's language, whatever the machine's is."""
    line = f'nbautograd.set_language("{lang}")\n'
    imported = "" if re.search(r"^import nbautograd$", setup, re.MULTILINE) else "import nbautograd\n"
    return re.sub(r"^%load_ext nbautograd", f"{imported}{line}%load_ext nbautograd", setup, count=1, flags=re.MULTILINE)


def _metadata(cell: SourceCell, text: str, graded: bool) -> dict[str, Any]:
    kept = {k: v for k, v in cell.metadata.items() if k not in OURS}
    tags = [tag for tag in cell.tags if tag not in PRIVATE]
    made: dict[str, Any] = {**kept, **({"tags": tags} if tags else {})}
    if cell.is_answer:
        made["nbautograd"] = {"exercise": cell.exercise}
        if graded:
            made["nbgrader"] = nbgrader.solution(cell.exercise, text)
    elif graded and "setup" in tags:
        made["nbgrader"] = nbgrader.read_only("setup", text, cell.kind)
    return made


def _id(cell: SourceCell) -> str:
    """Return a name that stays when other cells are edited, where the source names the cell; else a common one."""
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
