"""The notebook's cells: how far each of them ran, so that they can be read as one program."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from typing import Any

from nbautograd.core.user_source import tree_of

RAN: dict[int, tuple[str, int | None]] = {}  # a cell's number -> its text; the line that raised, None if none did

_COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith)


def note(number: int, text: str, raised: int | None) -> None:
    """Note how far a cell ran: to its end, or to the line that raised, 0 where nothing of it ran."""
    RAN[number] = (text, raised)


def earlier(number: int, scope: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return the cells before one with their numbers, each as far as it ran for certain.

    They reach back to the first of which it is not known how far it ran: one that ran before the extension was loaded,
    or that raised inside a loop or a block.
    """
    cells = scope.get("In")
    found: list[tuple[int, str]] = []
    for i in range(number - 1, 0, -1):
        text, raised = RAN.get(i, ("", None))
        if not isinstance(cells, list) or i not in RAN or cells[i : i + 1] != [text]:
            break
        if raised is not None:
            tree = tree_of(text)
            at = next((s for s in tree.body if s.lineno <= raised <= (s.end_lineno or 0)), None) if tree else None
            if raised and (at is None or isinstance(at, _COMPOUND)):
                break
            text = "\n".join(text.splitlines()[: at.lineno - 1]) if at is not None else ""
        found.insert(0, (i, text))
    return found


def file_of(text: str) -> str:
    """Return the file name that a cell was compiled by; empty where it is not known."""
    source = text.strip()
    entries = [(name, entry) for name, entry in linecache.cache.items() if len(entry) == 4]
    return next((name for name, entry in reversed(entries) if "".join(entry[2]).strip() == source), "")
