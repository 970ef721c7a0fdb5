"""Cuts: where the user's own lines take a tensor out of the graph, or change it in place.

A detached tensor leaves no trace in the graph; what remains is the line that did it. Only the code that calls is read:
its function, its file outside functions, or the notebook's latest cells.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType

PACKAGE = __name__.partition(".")[0]
CELLS = 20  # how many of the notebook's latest cells are looked at
CUTTING = {
    **dict.fromkeys(("detach", "detach_", "data"), "detach"),
    **dict.fromkeys(("item", "tolist", "numpy"), "python"),
    **dict.fromkeys(("long", "int", "bool", "short", "byte", "argmax", "argmin", "argsort"), "integer"),
}
KINDS = (ast.Attribute, ast.With, ast.AugAssign, ast.Assign, ast.Call)
SILENT = {"no_grad", "inference_mode"}


@dataclass(frozen=True)
class Cut:
    """A line that takes a tensor out of the graph.

    Attributes:
        reason: ``"detach"``, ``"python"`` (a Python number, list or array was made), ``"integer"`` or ``"no_grad"``.
        line: in the cell or file, from 1.
        text: what is written there, such as ``"a.detach()"``.
    """

    reason: str
    line: int
    text: str


def find_cut(name: str, code: str) -> Cut | None:
    """Find the last line of some code that takes the variable ``name`` out of the graph.

    Example:
        >>> from nbautograd.core.graphs.cuts import find_cut
        >>> find_cut("a", "b = a * 2\\nloss = (a.detach() * c).sum()")
        Cut(reason='detach', line=2, text='a.detach()')
    """
    found = [cut for node in _nodes(code) for cut in _cuts(node, name)] if name in code else []
    return max(found, key=lambda cut: cut.line, default=None)


def find_change(name: str, code: str) -> Cut | None:
    """Find the last line of some code that changes the variable ``name`` in place.

    Example:
        >>> from nbautograd.core.graphs.cuts import find_change
        >>> find_change("y", "y[0] = 3").text
        'y[0] = 3'
    """
    found = [node for node in _nodes(code) if _changes(node, name)] if name in code else []
    cuts = [Cut("changed", node.lineno, ast.unparse(node)) for node in found]  # type: ignore[attr-defined]
    return max(cuts, key=lambda cut: cut.line, default=None)


def _changes(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        target: ast.expr = node.target
        return _is(target, name) or (isinstance(target, ast.Subscript) and _is(target.value, name))
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) and _is(target.value, name) for target in node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
        return node.func.attr.endswith("_") and not node.func.attr.startswith(("_", "requires_grad", "detach"))
    return False


def carried(name: str, code: str, known: set[str]) -> set[str]:
    """The variables that hold what was made of ``name`` on the far side of a cut.

    Args:
        name: a variable.
        code: where to look, statement by statement.
        known: such variables of earlier code.
    """
    nodes = _nodes(code)
    lines = {cut.line for node in nodes for cut in _cuts(node, name)} if name in code else set()
    held = set(known)
    assigned = [node for node in nodes if isinstance(node, (ast.Assign, ast.AugAssign))]
    for statement in sorted(assigned, key=lambda node: node.lineno):
        parts = list(ast.walk(statement))
        names = [part for part in parts if isinstance(part, ast.Name)]
        if any(getattr(part, "lineno", 0) in lines for part in parts) or any(part.id in held for part in names):
            held |= {part.id for part in names if isinstance(part.ctx, ast.Store)}
    return held


@lru_cache(maxsize=CELLS)
def _nodes(code: str) -> tuple[ast.AST, ...]:
    """What of the code can cut or change; empty when it is no Python, such as a cell with magics."""
    tree = _tree(code)
    return () if tree is None else tuple([node for node in ast.walk(tree) if isinstance(node, KINDS)])


@lru_cache(maxsize=CELLS)
def _tree(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _cuts(node: ast.AST, name: str) -> Iterator[Cut]:
    if isinstance(node, ast.Attribute) and node.attr in CUTTING and _is(node.value, name):
        text = ast.unparse(node) + ("" if node.attr == "data" else "()")
        yield Cut(CUTTING[node.attr], node.lineno, text)
    if isinstance(node, ast.With) and (silent := _silent(node)):
        for use in (part for line in node.body for part in ast.walk(line)):
            if isinstance(use, ast.Name) and use.id == name and isinstance(use.ctx, ast.Load):
                yield Cut("no_grad", use.lineno, f"with {silent}")


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name


def _silent(node: ast.With) -> str:
    for item in node.items:
        call = item.context_expr
        function = call.func if isinstance(call, ast.Call) else call
        if (isinstance(function, ast.Attribute) and function.attr in SILENT) or (
            isinstance(function, ast.Name) and function.id in SILENT
        ):
            return ast.unparse(call)
    return ""


class CallersCode:
    """The code that called this package, read when first asked for."""

    def __init__(self) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
            frame = frame.f_back
        self._pieces = [] if frame is None else [piece for piece in _pieces(frame) if piece]
        self._line = 0 if frame is None else frame.f_lineno

    def cut(self, name: str) -> Cut | None:
        """The line that cuts ``name`` off, in the calling code or the latest cell that has one."""
        return next((cut for code in self._pieces if (cut := find_cut(name, code))), None)

    def leads(self, name: str, goals: set[str]) -> bool:
        """Whether what a cut made of ``name`` goes on into one of the variables ``goals``, or into the calling line."""
        held: set[str] = set()
        for code in reversed(self._pieces):
            held = carried(name, code, held)
        return bool(held & goals) or any(self._called_with(name, held))

    def _called_with(self, name: str, held: set[str]) -> Iterator[bool]:
        """Whether the statement that called uses one of the variables, or cuts by itself."""
        tree = _tree(self._pieces[0]) if self._pieces else None
        for statement in ast.walk(tree) if tree is not None else ():
            if isinstance(statement, ast.stmt) and statement.lineno <= self._line <= (statement.end_lineno or 0):
                for part in ast.walk(statement) if not hasattr(statement, "body") else ():
                    yield isinstance(part, ast.Name) and part.id in held
                    yield any(_cuts(part, name))

    def change(self, name: str) -> Cut | None:
        """The line that changes ``name`` in place."""
        return next((found for code in self._pieces if (found := find_change(name, code))), None)


def _pieces(frame: FrameType) -> Iterator[str]:
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
