"""Errors that are not torch's, behind which there is a ``.grad`` that is None, or a number that is not finite.

Most programs meet both this way: ``'NoneType' object has no attribute 'zero_'``, ``assert torch.isfinite(loss)``.
"""

from __future__ import annotations

import ast
import cmath
import linecache
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from nbautograd.core import stumbles
from nbautograd.core.explaining.program import Program
from nbautograd.core.explaining.watch import all_finite
from nbautograd.core.user_source import tree_of

# words by which torch, torch.distributions, sklearn and scipy refuse a number that is not finite
_NOT_FINITE = re.compile(r"\bnan\b|\binf(s|inity)?\b|\b(in|non-?)?finite\b|invalid values", re.IGNORECASE)
# attributes of a tensor that say nothing of its numbers
_ABOUT = {"shape", "dtype", "device", "ndim", "layout", "requires_grad", "grad_fn", "is_leaf", "size", "dim", "numel"}


class Symptom(NamedTuple):
    """What an error shows of a tensor: ``"grad_none"``, ``"not_finite"``, or ``"grad_not_finite"`` of its ``.grad``."""

    kind: str
    tensor: torch.Tensor
    name: str


def symptom_of(program: Program) -> Symptom | None:
    """Return what the statement that raised shows of the tensors that it reads; None where it shows nothing."""
    error, here = program.error, program.statement
    if error is None or here is None:
        return None
    words = stumbles.said(error)
    if isinstance(error, (AttributeError, TypeError)) and "NoneType" in words:
        return next(_without_grad(program, here), None)
    by_user = isinstance(here, (ast.Assert, ast.Raise))
    # where None is wanted, something else failed
    asked = [here.test] if isinstance(here, ast.Assert) and ".grad is None" not in ast.unparse(here.test) else []
    asked += _conditions(program, here) if isinstance(here, ast.Raise) else []
    if (found := next((one for part in asked for one in _without_grad(program, part)), None)) is not None:
        return found
    if by_user or _NOT_FINITE.search(words):
        read = [here, *asked] if isinstance(here, ast.Raise) else [here]
        return next((one for part in read for one in _not_finite(program, part, infinite=by_user)), None)
    return None


def _without_grad(program: Program, here: ast.AST) -> Iterator[Symptom]:
    reads = [n for n in ast.walk(here) if isinstance(n, ast.Attribute) and n.attr == "grad"]
    frame = program.frames[-1][0]
    empty = {n.id for n in ast.walk(here) if isinstance(n, ast.Name) and frame.f_locals.get(n.id, here) is None}
    for given in ast.walk(_file_tree(program)) if empty else ():
        if isinstance(given, ast.Assign) and ast.unparse(given.targets[0]) in empty:
            reads += [given.value] if isinstance(given.value, ast.Attribute) and given.value.attr == "grad" else []
    for read in reads:
        name = ast.unparse(read.value)
        for one in (*_looped_over(program, here, name), _tensor(program, read.value)):
            if one is not None and _grad(one) is None:
                yield Symptom("grad_none", one, _better_name(program, one, name))


def _looped_over(program: Program, here: ast.AST, name: str) -> Iterator[torch.Tensor]:
    """Yield the parameters that a comprehension's variable stood for: from Python 3.12 on no frame keeps it."""
    for loop in (n for n in ast.walk(here) if isinstance(n, ast.comprehension) and ast.unparse(n.target) == name):
        owner, _, call = ast.unparse(loop.iter).rpartition(".")
        if call == "parameters()" and isinstance(module := program.variables.get(owner), torch.nn.Module):
            yield from module.parameters()


def _conditions(program: Program, here: ast.stmt) -> Iterator[ast.expr]:
    blocks = [n for n in ast.walk(_file_tree(program)) if isinstance(n, (ast.If, ast.While))]
    around = [b for b in blocks if b.lineno <= here.lineno <= (b.end_lineno or 0)]
    yield from (block.test for block in sorted(around, key=lambda block: -block.lineno))


def _not_finite(program: Program, part: ast.AST, infinite: bool) -> Iterator[Symptom]:
    """Yield what some source reads that is not finite; infinities count only where a program itself refused them."""
    about = {id(n.value) for n in ast.walk(part) if isinstance(n, ast.Attribute) and n.attr in _ABOUT}
    for node in ast.walk(part):
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or id(node) in about:
            continue
        name = ast.unparse(node)
        tensor = _tensor(program, node)
        if tensor is not None and _bad(tensor, infinite):
            yield Symptom("not_finite", tensor, _better_name(program, tensor, name))
        elif isinstance(node, ast.Attribute) and node.attr == "grad":
            owner = _tensor(program, node.value)
            if owner is not None and _grad(owner) is not None and _bad(owner.grad, infinite):
                yield Symptom("grad_not_finite", owner, _better_name(program, owner, ast.unparse(node.value)))
        elif isinstance(value := program.variables.get(name), (float, complex)) and not cmath.isfinite(value):
            read_out = [(n, t) for n, t in program.tensors.items() if t.numel() == 1 and _bad(t, infinite)]
            yield from (Symptom("not_finite", t, n) for n, t in read_out)


def _tensor(program: Program, node: ast.expr) -> torch.Tensor | None:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
        key = program.variables.get(node.slice.id)
        return program.tensors.get(f"{ast.unparse(node.value)}[{key!r}]") if isinstance(key, (str, int)) else None
    return program.tensors.get(ast.unparse(node))


def _bad(tensor: Any, infinite: bool) -> bool:
    return not all_finite(tensor) and (infinite or bool(tensor.detach().isnan().any()))


def _grad(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a tensor's ``.grad`` without torch's warning about tensors that are no leaves."""
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None


def _better_name(program: Program, tensor: torch.Tensor, written: str) -> str:
    return (program.name_of(tensor) if isinstance(tensor, torch.nn.Parameter) else "") or written


def _file_tree(program: Program) -> ast.AST:
    code = program.frames[-1][0].f_code
    return tree_of("".join(linecache.getlines(code.co_filename, program.frames[-1][0].f_globals))) or ast.Pass()
