"""Where backward raised: the statement, and what the names in it were."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking.problem import Problem
from nbautograd.core.user_source import methods_of

SAVED = ("saved_tensors", "saved_variables")


@dataclass(frozen=True)
class Raised:
    """The last line of backward that an exception passed through.

    Attributes:
        function: the syntax tree of backward; None without its source.
        line: its line in the file or cell.
        values: the local names with their values at that moment.
    """

    function: user_source.FunctionNode | None
    line: int
    values: Mapping[str, Any]

    def statement(self) -> ast.stmt | None:
        """The innermost statement at the line."""
        found = [n for n in ast.walk(self.function) if isinstance(n, ast.stmt)] if self.function is not None else []
        inside = [n for n in found if n.lineno <= self.line <= (n.end_lineno or n.lineno) and n is not self.function]
        return min(inside, key=lambda n: (n.end_lineno or n.lineno) - n.lineno, default=None)

    def shapes(self) -> dict[str, list[int]]:
        """The tensors that the statement reads by name, with their shapes, in order."""
        statement = self.statement()
        nodes = [n for n in ast.walk(statement) if isinstance(n, ast.Name)] if statement is not None else []
        read = sorted((n for n in nodes if isinstance(n.ctx, ast.Load)), key=lambda n: (n.lineno, n.col_offset))
        known = ((n.id, self.values.get(n.id)) for n in read)
        return {name: list(value.shape) for name, value in known if isinstance(value, Tensor)}

    def came_as_none(self) -> bool:
        """Whether a grad_output was None when backward raised."""
        if self.function is None:
            return False
        return any(self.values.get(name.lstrip("*"), 0) is None for name in user_source.parameters(self.function)[1:])

    def not_unpacked(self) -> bool:
        """Whether all of ``ctx.saved_tensors`` is used as if it were a tensor."""
        return self.function is not None and any(True for _ in _whole(self.function))


def raised_in_backward(error: BaseException, subject: Problem) -> Raised | None:
    """Where in backward an exception was raised; None when it did not pass through it."""
    codes = methods_of(subject.cls).codes if subject.cls is not None else {}
    backward: set[CodeType] = {code for name, code in codes.items() if name in ("backward", "vjp")}
    hits = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code in backward]
    if not hits:
        return None
    frame, line = hits[-1]
    return Raised(user_source.method_at(frame.f_code), line, dict(frame.f_locals))


def _whole(function: user_source.FunctionNode) -> Iterator[ast.AST]:
    """Where the tuple of saved tensors, or a name for all of it, is an operand or an argument or is asked a method."""
    names = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_saved(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        operands = [
            *([node.left, node.right] if isinstance(node, ast.BinOp) else []),
            *([node.operand] if isinstance(node, ast.UnaryOp) else []),
            *([node.left, *node.comparators] if isinstance(node, ast.Compare) else []),
            *(node.args if isinstance(node, ast.Call) and not _takes_tuples(node) else []),
            *([node.value] if isinstance(node, ast.Attribute) else []),
        ]
        yield from (n for n in operands if _is_saved(n) or (isinstance(n, ast.Name) and n.id in names))


def _is_saved(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SAVED


def _takes_tuples(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in {
        "len",
        "list",
        "tuple",
        "zip",
        "enumerate",
        "reversed",
        "map",
        "stack",
        "cat",
        "print",
        "iter",
        "next",
    }
