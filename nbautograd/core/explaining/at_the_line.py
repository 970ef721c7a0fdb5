"""Errors that torch raises on the very line that is to blame: which tensor there, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable

import torch

from nbautograd.core.explaining.cause import ErrorCause, finding
from nbautograd.core.explaining.in_place import written_name
from nbautograd.core.explaining.no_grad import differentiated
from nbautograd.core.explaining.program import Program
from nbautograd.core.explaining.watch import creation_line
from nbautograd.core.values import sizes_text

# kind -> which of the tensors that the line mentions torch means
MEANT: dict[str, Callable[[torch.Tensor], bool]] = {
    "leaf": lambda t: any(of is not None and of.is_leaf and of.requires_grad for of in (t, t._base)),
    "view": lambda t: t._is_view(),
    "numpy": lambda t: t.requires_grad,
    "integer": lambda t: not (t.is_floating_point() or t.is_complex()),
    "not_a_leaf": lambda t: not t.is_leaf,
    "optimize_non_leaf": lambda t: not t.is_leaf,
    "inference": lambda t: t.is_inference(),
    "deepcopy": lambda t: not t.is_leaf,
    "not_scalar": lambda t: t.numel() != 1,
}

# kind -> the variable of torch's function that holds the tensor
HANDED_BY = {"optimize_non_leaf": "param", "deepcopy": "self"}

# kind -> the attributes of the tensor which torch refuses
OWNED = dict.fromkeys(("integer", "not_a_leaf"), ("requires_grad", "requires_grad_")) | {"numpy": ("numpy",)}


def at_the_line(program: Program, kind: str) -> ErrorCause | None:
    """Explain an error that needs no more than the line that raised and its tensors."""
    did = program.caller
    if did is None:
        return None
    found: list[tuple[str, torch.Tensor | None]]
    if kind == "not_scalar":
        roots = [root for root in program.roots if MEANT[kind](root)]
        only = differentiated(program) if len(program.roots) == 1 else ""
        found = [(only or _name(program, root), root) for root in roots]
    elif kind in HANDED_BY:
        handed = program.torch_object(torch.Tensor, HANDED_BY[kind])
        found = [(_name(program, handed), handed)]
    else:
        found = [(name, t) for name, t in _mentioned(program, kind) if MEANT[kind](t)]
        if kind in ("leaf", "view"):
            found = [one for one in found if one[0] == written_name(program.statement)][:1]
        elif kind in OWNED:
            found = _owned(program, kind, found)
        found = found if len(found) == 1 else []  # which of them torch means is not shown
    name, tensor = found[0] if found else ("", None)
    made = creation_line(program, tensor)
    shape = "" if tensor is None else sizes_text(tensor.shape)
    dtype = "" if tensor is None else str(tensor.dtype).removeprefix("torch.")
    shown = {"name": name or "?", "shape": shape, "dtype": dtype, "line": did.line, "text": did.text}
    what = (finding(f"{kind}.what", did, **shown),) if name else ()
    return ErrorCause(kind, (*what, finding(f"{kind}.rule")), name, made, did)


def _name(program: Program, tensor: torch.Tensor | None) -> str:
    name = program.name_of(tensor)
    return name if program.tensors.get(name) is tensor else ""


def _owned(
    program: Program, kind: str, found: list[tuple[str, torch.Tensor | None]]
) -> list[tuple[str, torch.Tensor | None]]:
    """Return the tensor whose attribute access raised."""
    here = program.statement
    parts = [n.value for n in ast.walk(here) if isinstance(n, ast.Attribute) and n.attr in OWNED[kind]] if here else []
    names = [ast.unparse(part) for part in parts]
    if not names:
        data = program.torch_object(torch.Tensor, "data")  # of a parameter that is made
        return [one for one in found if kind == "numpy" or one[1] is data]
    inside = {ast.unparse(n) for part in parts for n in ast.walk(part) if isinstance(n, (ast.Name, ast.Attribute))}
    if len(names) == 1 and names[0] not in program.tensors and all(name in inside for name, _ in found):
        return [(names[0], None)] if kind == "numpy" else []
    return [one for one in found if one[0] in names] or [one for one in found if kind == "numpy"]


def _mentioned(program: Program, kind: str) -> list[tuple[str, torch.Tensor]]:
    here = program.statement
    parts = [] if here is None else [p for p in ast.walk(here) if isinstance(p, (ast.Name, ast.Attribute))]
    names = dict.fromkeys(map(ast.unparse, parts))
    found = [(name, program.tensors[name]) for name in names if name in program.tensors]
    inside = tuple(f"{name}{mark}" for name in names for mark in ".[") if kind == "inference" else ()
    return [*found, *(one for one in program.tensors.items() if one[0].startswith(inside))]
