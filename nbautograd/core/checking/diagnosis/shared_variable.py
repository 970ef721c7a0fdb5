"""The variable of backward that all wrong gradients are computed from, and no right one."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nbautograd.core import user_source
from nbautograd.core.checking.backward_lines import backward_tree
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.problem import Problem
from nbautograd.core.user_source import assigned, names_read, names_written, reached


@dataclass(frozen=True)
class SharedVariable:
    """A local variable of backward.

    Attributes:
        name: in the source.
        line: of its last assignment, in the cell or file.
        inputs: positions of the inputs whose gradients are wrong.
    """

    name: str
    line: int
    inputs: frozenset[int]


def shared_variable(problem: Problem, blocks: Mapping[tuple[int, int], Block]) -> SharedVariable | None:
    """Find the variable that every wrong gradient is computed from and no right one; None where there is none.

    Of several the one that is computed last is returned. One wrong gradient alone shares nothing.
    """
    wrong = frozenset(i for (_, i), b in blocks.items() if b.verdict == "mismatch")
    right = frozenset(i for _, i in blocks) - wrong
    function = backward_tree(problem)
    if function is None or len(wrong) < 2 or not right:
        return None
    returns = user_source.returns(function)
    value = returns[0].value if len(returns) == 1 else None
    if not isinstance(value, ast.Tuple) or any(isinstance(item, ast.Starred) for item in value.elts):
        return None
    sources, lines = _assigned_from(function)
    used = {}
    for i in wrong | right:
        argument = problem.arguments.get(i)
        if argument is None or argument >= len(value.elts):
            return None
        used[i] = reached(names_read(value.elts[argument]), sources)
    shared = frozenset.intersection(*(used[i] for i in wrong)) - frozenset[str]().union(*(used[i] for i in right))
    last = max((name for name in shared if name in lines), key=lambda name: lines[name], default=None)
    return None if last is None else SharedVariable(last, lines[last], wrong)


def _assigned_from(function: ast.FunctionDef) -> tuple[dict[str, frozenset[str]], dict[str, int]]:
    """Return the names that each variable is computed from, and the line of its last assignment.

    What is unpacked from ctx was computed in forward, so it is a source and no variable of backward's.
    """
    sources: dict[str, frozenset[str]] = {}
    lines: dict[str, int] = {}
    for target, value in assigned(user_source.own_nodes(function)):
        read = names_read(value)
        from_ctx = isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "ctx"
        for name in names_written(target):
            sources[name] = sources.get(name, frozenset()) | read
            if not from_ctx:
                lines[name] = value.lineno
    return sources, lines
