"""Cells of a notebook: which of them made what a cell reads, so that those are run again together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import nn

from nbautograd.core.explaining.program import Program, cell_number
from nbautograd.core.user_source import codes_in, tree_of

_MAGIC = re.compile(r"^(\s*)(\w+ = )?get_ipython\(\)\.(run_line_magic|system|getoutput)\(.*")


def without_magics(cell: str) -> str:
    """Return a cell, as IPython keeps it, without its line magics: they act outside, or would explain again."""
    return "\n".join(_MAGIC.sub(r"\1pass", row) for row in cell.split("\n"))


def cell_of(program: Program) -> int | None:
    """Return the number of the cell that an error came out of; None outside of a notebook."""
    if not program.frames:
        return None
    frame = program.frames[0][0]
    return cell_number(frame.f_code.co_filename, frame.f_globals)


def first_needed(names: Sequence[str], last: int, scope: Mapping[str, Any], whole: bool = False) -> int:
    """Return the first cell that made something which a run has to compute again.

    That is what has a graph, since the graph of a tensor is gone or would be freed, and what holds a NaN. Other
    variables are as good as they are.

    Args:
        names: variables that the run is about, whatever they hold.
        last: the cell that ends the run.
        scope: the notebook's variables, with its cells as ``In``.
        whole: True to go back as well through what has no graph, where the question is why it has none.
    """
    cells: list[str] = scope["In"]
    first, seen = last, set[tuple[str, int]]()
    if not torch.is_grad_enabled():  # an earlier cell has left them switched off
        first = next((n for n in range(last, 0, -1) if switches_off(cells[n], scope)), last)
    waiting = [(name, last + 1, True) for name in names]
    waiting += [(name, last, False) for name in reads(cells[last], scope)]
    while waiting:
        name, before, asked = waiting.pop()
        made = next((n for n in range(before - 1, 0, -1) if name in _assigns(cells[n])), None)
        if made is None or (name, made) in seen or not (asked or _matters(name, made, scope, whole)):
            continue
        seen.add((name, made))
        first = min(first, made)
        waiting += [(other, made, False) for other in reads(cells[made], scope)]
    return first


def last_assigned(names: Sequence[str], before: int, scope: Mapping[str, Any]) -> int:
    """Return the last cell before another one that assigns one of some variables; 0 where none does."""
    cells: list[str] = scope["In"]
    return next((n for n in range(before - 1, 0, -1) if not _assigns(cells[n]).isdisjoint(names)), 0)


def _matters(name: str, made: int, scope: Mapping[str, Any], whole: bool) -> bool:
    """Return True for a variable that has to be computed again to see how it came about."""
    value = scope.get(name)
    tensors = Program(scope={name: value}).tensors.values()
    if any(t.grad_fn is not None or bool(t.detach().isnan().any()) for t in tensors):
        return True
    if isinstance(value, nn.Module):
        return whole and not all(parameter.requires_grad for parameter in value.parameters())
    # made of something that learns: else it is data
    others = [scope.get(other) for other in reads(scope["In"][made], scope)] if whole and tensors else []
    learning = Program(scope={str(k): other for k, other in enumerate(others)}).tensors.values()
    return any(t.requires_grad for t in learning)


def reads(cell: str, scope: Mapping[str, Any]) -> list[str]:
    """Return the variables that a cell reads before it assigns them itself, and those that its functions read."""
    own: set[str] = set()
    found: dict[str, None] = {}
    for statement in getattr(tree_of(cell), "body", []):
        loads = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        loads += [ast.unparse(n.target) for n in ast.walk(statement) if isinstance(n, ast.AugAssign)]
        found |= dict.fromkeys(name for name in loads if name not in own)
        own |= _stored(statement)
    functions = [f for name in found if isinstance(f := scope.get(name), FunctionType) and f.__module__ == "__main__"]
    inner = [name for f in functions for code in codes_in(f.__code__) for name in code.co_names if name in scope]
    return [*dict.fromkeys([*found, *inner])]


def switches_off(cell: str, scope: Mapping[str, Any]) -> bool:
    """Return True for a cell that switches gradients off for good, itself or by a function that it calls."""
    functions = [f for name in reads(cell, scope) if isinstance(f := scope.get(name), FunctionType)]
    codes = [code for function in functions for code in codes_in(function.__code__)]
    return "set_grad_enabled(False)" in cell or any("set_grad_enabled" in code.co_names for code in codes)


def _assigns(cell: str) -> set[str]:
    return set().union(*map(_stored, getattr(tree_of(cell), "body", [])))


def _stored(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    return {n.id for n in _outside_functions(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _outside_functions(child)
