"""A method of the user's compiled anew from a changed syntax tree: a witness that leaves the class as it is."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from nbautograd.core import user_source

Method = tuple[FunctionType, ast.FunctionDef]


def method(entry: Any) -> Method | None:
    """Return a method's function with its syntax, line numbers of its cell or file; None where there is no text."""
    function = inspect.unwrap(entry) if callable(entry) else None
    tree = user_source.method_at(function.__code__) if isinstance(function, FunctionType) else None
    return (function, tree) if isinstance(function, FunctionType) and isinstance(tree, ast.FunctionDef) else None


def recompiled(function: FunctionType, tree: ast.FunctionDef, given: Mapping[str, Any]) -> FunctionType | None:
    """Return a changed method, without decorators, that sees what the user's sees, and these names besides."""
    tree.decorator_list = []
    names = dict.fromkeys((*function.__code__.co_freevars, *given))
    around = ast.parse(f"def _around({', '.join(names)}):\n    pass")
    around.body[0].body = [tree]  # type: ignore[attr-defined]
    try:
        module = compile(ast.fix_missing_locations(around), "<nbautograd witness>", "exec")
    except (SyntaxError, ValueError):
        return None
    cells = {name: CellType(value) for name, value in given.items()}
    return closed_over(module, tree.name, function, cells, function.__globals__)


def closed_over(
    module: CodeType, name: str, function: FunctionType, cells: Mapping[str, CellType], namespace: dict[str, Any]
) -> FunctionType:
    """Return the function of this name, compiled inside another one, with the variables around the user's function.

    Args:
        module: what was compiled: one function, whose arguments are the variables around the one that is wanted.
        name: of the function that is wanted.
        function: the user's.
        cells: further variables; one of the user's with the same name comes first.
        namespace: its globals.
    """
    outer = next(c for c in module.co_consts if isinstance(c, CodeType))
    code = next(c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == name)
    around = {**cells, **dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))}
    closure = tuple(around[name] for name in code.co_freevars)
    changed = FunctionType(code, namespace, function.__name__, function.__defaults__, closure)
    changed.__kwdefaults__ = function.__kwdefaults__
    return changed


def expressions(tree: ast.FunctionDef) -> list[ast.expr]:
    """Return the expressions of a method that something is computed from, outermost first in each statement."""
    found: list[ast.expr] = []
    for statement in user_source.own_nodes(tree):
        value = getattr(statement, "value", None)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)) and value is not None:
            kinds = (ast.Name, ast.BinOp, ast.Call, ast.UnaryOp, ast.Subscript, ast.Compare)
            inside = (n for n in _values(value) if isinstance(n, kinds))
            found += [n for n in inside if isinstance(getattr(n, "ctx", ast.Load()), ast.Load)]
    return found


def _values(root: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and those inside; neither what is called nor what belongs to ctx."""
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.id == "ctx":
            continue
        if isinstance(node, ast.expr):
            yield node
        for name, child in ast.iter_fields(node):
            if isinstance(node, ast.Call) and name == "func":
                stack += [child.value] if isinstance(child, ast.Attribute) else []
            else:
                stack += [c for c in (child if isinstance(child, list) else [child]) if isinstance(c, ast.AST)]


class Wrapped(ast.NodeTransformer):
    """Wraps expressions into calls of a function that is given their number and their value.

    Args:
        nodes: of the tree, or of the one that it was copied from.
        name: of the function.
        first: number of the first of them.
    """

    def __init__(self, nodes: Sequence[ast.expr], name: str, first: int = 0) -> None:
        self.numbers, self.name = {_place(node): k for k, node in enumerate(nodes, first)}, name

    def visit(self, node: ast.AST) -> Any:
        """Visit a node."""
        inside, number = self.generic_visit(node), self.numbers.get(_place(node))
        if number is None:
            return inside
        call = ast.Call(ast.Name(self.name, ast.Load()), [ast.Constant(number), inside], [])  # type: ignore[list-item]
        return ast.copy_location(call, node)


def _place(node: ast.AST) -> tuple[Any, ...]:
    ends = (getattr(node, k, None) for k in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
    return (*ends, type(node))
