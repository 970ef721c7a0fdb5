"""The line of the calling code that changes a variable in place, read from its source; nothing is run."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import FrameType
from typing import NamedTuple

from nbautograd.core.graphs.names import calling_frame
from nbautograd.core.user_source import in_place, tree_of

CELLS = 20  # how many of the notebook's latest cells are looked at


class ChangingLine(NamedTuple):
    """A line that changes a variable in place: its number in the cell or file, from 1, and what is written there."""

    line: int
    text: str


class CallerCode:
    """Source of the code that called this package: a file, a function, or the notebook's cells, the latest first."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources

    @classmethod
    def here(cls) -> CallerCode:
        """Return the code that called this package."""
        frame = calling_frame()
        return cls([] if frame is None else [piece for piece in _sources(frame) if piece])

    def change(self, name: str) -> ChangingLine | None:
        """Return the last line that changes the variable ``name`` in place, of the latest source that has one."""
        return next((line for code in self._sources if (line := find_change(name, code))), None)


def find_change(name: str, code: str) -> ChangingLine | None:
    """Find the last line of some code that changes the variable ``name`` in place.

    Example:
        >>> from nbautograd.core.graphs.caller_code import find_change
        >>> find_change("y", "y[0] = 3").text
        'y[0] = 3'
    """
    # walking a cell's tree for each of many stale tensors is what costs: a name that is not written there needs none
    changes = [node for node in _nodes(code) if _changes(node, name)] if name in code else []
    return max((ChangingLine(node.lineno, ast.unparse(node)) for node in changes), default=None)


def _sources(frame: FrameType) -> Iterator[str]:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    if code.co_name == "<module>":
        yield "".join(lines)
        cells = frame.f_globals.get("In")
        if isinstance(cells, list):
            yield from [cell for cell in reversed(cells[-CELLS:]) if isinstance(cell, str)]
        return
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    body = lines[code.co_firstlineno - 1 : last]
    indent = len(body[0]) - len(body[0].lstrip()) if body else 0
    # as many lines before it as in the file, so that line numbers are the file's
    yield "\n" * (code.co_firstlineno - 1) + "".join(line[indent:] or "\n" for line in body)


def _changes(node: ast.stmt | ast.expr, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        target: ast.expr = node.target
        return _is(target, name) or (isinstance(target, ast.Subscript) and _is(target.value, name))
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) and _is(target.value, name) for target in node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
        return in_place(node.func.attr)
    return False


@lru_cache(maxsize=CELLS)
def _nodes(code: str) -> tuple[ast.stmt | ast.expr, ...]:
    tree = tree_of(code)
    nodes = () if tree is None else ast.walk(tree)
    return tuple([node for node in nodes if isinstance(node, (ast.AugAssign, ast.Assign, ast.Call))])


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name
