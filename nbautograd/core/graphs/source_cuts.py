"""Cuts: where the user's own lines take a tensor out of the graph, or change it in place.

A detached tensor leaves no trace in the graph; what remains is the line that did it. Only the code that calls is read:
its function, its file outside functions, or the notebook's latest cells.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from nbautograd.core import user_source

CELLS = 20  # how many of the notebook's latest cells are looked at
CUTTING = {
    **dict.fromkeys(("detach", "detach_", "data"), "detach"),
    **dict.fromkeys(("item", "tolist", "numpy"), "python"),
    **dict.fromkeys(("long", "int", "bool", "short", "byte", "argmax", "argmin", "argsort"), "integer"),
}
KINDS = (ast.AugAssign, ast.Assign, ast.Call)
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


def find_change(name: str, code: str) -> Cut | None:
    """Find the last line of some code that changes the variable ``name`` in place.

    Example:
        >>> from nbautograd.core.graphs.source_cuts import find_change
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
        return user_source.in_place(node.func.attr)
    return False


@lru_cache(maxsize=CELLS)
def _nodes(code: str) -> tuple[ast.AST, ...]:
    """Return the syntax nodes that can change a tensor; none for what is no Python, such as a magic."""
    tree = user_source.tree_of(code)
    return () if tree is None else tuple([node for node in ast.walk(tree) if isinstance(node, KINDS)])


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name


def silence(node: ast.With | ast.expr) -> str:
    """Return the text of a ``with`` item or decorator that turns gradients off; empty otherwise."""
    for call in [item.context_expr for item in node.items] if isinstance(node, ast.With) else [node]:
        function = call.func if isinstance(call, ast.Call) else call
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        off = name == "set_grad_enabled" and isinstance(call, ast.Call) and ast.unparse(call).endswith("(False)")
        if name in SILENT or off:
            return ast.unparse(call)
    return ""
