"""A source notebook as data: its cells, and for each exercise the cell with its solution."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbautograd.errors import NbautogradError

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
PLACEHOLDER = {"en": "...  # your code here", "zh": "...  # 在此作答"}
_CELL = re.compile(r"^# %%", re.MULTILINE)
_MAGIC = re.compile(r"^([ \t]*)(%%|[%!]).*$", re.MULTILINE)
# a release writes a kernelspec of its own; jupytext refuses half of one
_KERNELSPEC = re.compile(r"\A(# ---\n(?:#.*\n)*?)(# +)kernelspec:\n(?:\2 +.*\n)*")
_REGION = re.compile(rf"^([ \t]*){BEGIN}[ \t]*\n(.*?)^[ \t]*{END}[ \t]*$", re.MULTILINE | re.DOTALL)


class SourceError(NbautogradError, ValueError):
    """A source notebook that cannot be released; its reader is the author."""


@dataclass(frozen=True, eq=False)
class SourceCell:
    """One cell of a source notebook.

    Attributes:
        node: the NotebookNode that jupytext made of it.
    """

    node: Any

    @property
    def kind(self) -> str:
        """``"markdown"``, ``"code"`` or ``"raw"``."""
        return str(self.node.cell_type)

    @property
    def text(self) -> str:
        """Its source."""
        return str(self.node.source)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Return the fields of its marker line."""
        return {k: v for k, v in self.node.metadata.items() if k != "lines_to_next_cell"}

    @property
    def tags(self) -> tuple[str, ...]:
        """The cell's tags."""
        return tuple(self.metadata.get("tags", ()))

    @property
    def exercise(self) -> str:
        """The exercise that it belongs to; empty for none."""
        return str(self.metadata.get("exercise", ""))

    @property
    def is_answer(self) -> bool:
        """Return True if this is the cell with the skeleton and the solution."""
        return self.kind == "code" and bool(self.exercise)

    @property
    def lang(self) -> str:
        """The language of a cell of text; empty where it serves both."""
        return str(self.metadata.get("lang", ""))

    @property
    def is_words(self) -> bool:
        """Return True if this is the table of what code cells print and comment, in Chinese."""
        return self.kind == "raw" and self.lang == "zh"


@dataclass(frozen=True)
class Source:
    """A source notebook.

    Attributes:
        path: its file.
        cells: in order.
        metadata: of the notebook.
        hash: of the file's text.
    """

    path: Path
    cells: tuple[SourceCell, ...]
    metadata: Mapping[str, Any]
    hash: str

    @property
    def name(self) -> str:
        """Such as ``"01_first_function"``."""
        return self.path.stem

    @property
    def answers(self) -> tuple[SourceCell, ...]:
        """The exercises' cells, in order."""
        return tuple(cell for cell in self.cells if cell.is_answer)


def read(path: Path) -> Source:
    """Read a source notebook: text in py:percent, or an ``.ipynb`` with the same metadata.

    Raises:
        SourceError: when it cannot be read.
    """
    try:
        import jupytext
    except ModuleNotFoundError:
        raise SourceError("course.no_jupytext") from None
    try:
        text = path.read_text(encoding="utf-8")
        fmt = "ipynb" if path.suffix == ".ipynb" else "py:percent"
        # any text is a notebook of one cell to jupytext, and what is not is quoted in its error
        if not (_is_json(text) if fmt == "ipynb" else _CELL.search(text)):
            raise SourceError("course.not_a_source", path=path)
        notebook = jupytext.reads(_KERNELSPEC.sub(r"\1", text), fmt=fmt)
    except SourceError:
        raise
    except Exception as error:
        raise SourceError("course.unreadable", path=path, reason=" ".join(str(error).split())[:200]) from None
    about = notebook.metadata.get("nbautograd")
    return Source(path, tuple(map(SourceCell, notebook.cells)), about if isinstance(about, dict) else {}, digest(text))


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def stamp(text: str) -> str:
    """Return the digest by which a translation remembers the text that it was made from."""
    return digest(text.strip())[:8]


def without_magics(text: str) -> str:
    """Return a cell's Python alone, each line where it was: cell magics emptied, line magics and ``!`` as ``pass``."""
    return _MAGIC.sub(lambda found: "" if found[2] == "%%" else f"{found[1]}pass", text)


def solved(cell: SourceCell) -> str:
    """Return the cell with its solution, without the markers."""
    return re.sub(rf"^[ \t]*({BEGIN}|{END})[ \t]*\n?", "", cell.text, flags=re.MULTILINE)


def stripped(text: str, lang: str) -> str:
    """Return a cell's text with each solution region replaced by one line that stands for the answer.

    Raises:
        SourceError: for a marker without its partner.
    """
    done = _REGION.sub(lambda found: found[1] + PLACEHOLDER[lang], text)
    if BEGIN in done or END in done:
        raise SourceError("course.marker_alone", text=text.strip().splitlines()[0])
    return done


def solution_lines(cell: SourceCell) -> Iterator[str]:
    """Yield the lines inside the solution regions of a cell."""
    for region in _REGION.finditer(cell.text):
        yield from region[2].splitlines()
