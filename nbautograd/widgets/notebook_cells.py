"""Cells of the notebook as its page knows them: which cell a file name of IPython's stands for, and its text."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass
from typing import Any

MOST_KEPT = 1000  # cells; a long day in one notebook has some hundred different texts


@dataclass(frozen=True)
class NotebookCell:
    """A cell that ran.

    Attributes:
        id: the page's id for it, as the notebook stores it; empty where the front end sends none.
        text: as it stands on the page, with its magics.
    """

    id: str
    text: str


_cells: dict[str, NotebookCell] = {}  # by the file name that IPython compiled it by


def remember_running(shell: Any) -> None:
    """Remember the cell that the kernel runs now; nothing where no page has asked for it."""
    kernel: Any = getattr(shell, "kernel", None)
    parent = kernel.get_parent("shell") if hasattr(kernel, "get_parent") else {}
    text, cell = parent.get("content", {}).get("code"), parent.get("metadata", {}).get("cellId")
    if not text or not cell:
        return
    file = shell.compile.get_code_name(text, text, shell.execution_count)
    _cells.pop(file, None)  # of two cells of one text the one that ran last has made what is there now
    _cells[file] = NotebookCell(str(cell), text)
    while len(_cells) > MOST_KEPT:
        del _cells[next(iter(_cells))]


def running_cell() -> NotebookCell | None:
    """Return the cell that runs now, or ran last; None where no page has said its text."""
    return next(reversed(_cells.values()), None)


def cell_of_file(file: str) -> NotebookCell | None:
    """Return the cell that was compiled by this name; None for a file on disk."""
    if file in _cells:
        return _cells[file]
    if not file or os.path.isfile(file):
        return None
    text = "".join(linecache.getlines(file))  # it ran before the extension was loaded
    return NotebookCell("", text) if text else None
