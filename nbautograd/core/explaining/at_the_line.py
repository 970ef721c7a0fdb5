"""Errors that torch raises on the very line that is to blame: which tensor there, and what to write instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import torch

from nbautograd.core.explaining.cause import ErrorCause, said
from nbautograd.core.explaining.in_place import writes
from nbautograd.core.explaining.no_grad import differentiated
from nbautograd.core.explaining.program import Program
from nbautograd.core.explaining.watch import line_that_made
from nbautograd.core.values import sizes_text

# kind -> which of the tensors that the line mentions torch means
MEANT: dict[str, Callable[[torch.Tensor], bool]] = {
    "leaf": lambda t: (t.is_leaf and t.requires_grad) or _view_of_leaf(t),
    "view": lambda t: t._is_view(),
    "numpy": lambda t: t.requires_grad,
    "integer": lambda t: not (t.is_floating_point() or t.is_complex()),
    "not_a_leaf": lambda t: not t.is_leaf,
    "optimize_non_leaf": lambda t: not t.is_leaf,
    "inference": lambda t: t.is_inference(),
    "deepcopy": lambda t: not t.is_leaf,
    "not_scalar": lambda t: t.numel() != 1,
}

# kinds whose line hands over a module as a whole; elsewhere what a module computes is meant, not its parameters
HANDED = ("optimize_non_leaf", "inference", "deepcopy")


def at_the_line(program: Program, kind: str) -> ErrorCause | None:
    """Explain an error that needs no more than the line that raised and its tensors."""
    did = program.caller
    if did is None:
        return None
    found: list[tuple[str, torch.Tensor | None]]
    if kind == "not_scalar":
        found = [(program.name_of(root) or differentiated(program), root) for root in program.roots]
    else:
        found = [(name, tensor) for name, tensor in mentioned(program, kind in HANDED) if MEANT[kind](tensor)]
        if kind in ("leaf", "view"):
            found = _written_into(program, found)
    if kind == "numpy" and (owner := _owner(program, "numpy")):
        found = [(owner, program.tensors.get(owner))]
    if len(found) > 1 and kind not in (
        "optimize_non_leaf",
        "deepcopy",
        "not_scalar",
    ):  # which of them torch means is not shown
        found = []
    name, tensor = found[0] if found else ("", None)
    made = line_that_made(program, name, tensor)
    shape = "" if tensor is None else sizes_text(tensor.shape)
    dtype = "" if tensor is None else str(tensor.dtype).removeprefix("torch.")
    shown = {"name": name or "?", "shape": shape, "dtype": dtype, "line": did.line, "text": did.text}
    shown["argument"] = "grad_outputs" if re.search(r"\bgrad\(", did.text) else "gradient"
    what = said(f"{kind}.what" if name else f"{kind}.known", did, **shown)
    return ErrorCause(kind, (what, said(f"{kind}.rule", None, **shown)), name, made, did)


def _written_into(
    program: Program, found: list[tuple[str, torch.Tensor | None]]
) -> list[tuple[str, torch.Tensor | None]]:
    """Return those into which the statement that raised writes, as it reads; else the only one, where there is one."""
    for source in program.code[:1]:
        here = [s for s in source.statements if s.lineno <= source.line <= (s.end_lineno or 0)]
        into = [one for one in found for s in here[-1:] if one[1] is not None and writes(s, {one[0]}, program, one[1])]
        return into[:1] or (found if len(found) == 1 else [])
    return []


def mentioned(program: Program, handed: bool) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors that the statement which raised mentions, in the order in which they stand.

    Args:
        program: the evidence.
        handed: add the tensors of the modules and containers that it mentions.
    """
    for source in program.code[:1]:
        here = [s for s in source.statements if s.lineno <= source.line <= (s.end_lineno or 0)]
        names = [ast.unparse(p) for s in here[-1:] for p in ast.walk(s) if isinstance(p, (ast.Name, ast.Attribute))]
        found = [(name, program.tensors[name]) for name in dict.fromkeys(names) if name in program.tensors]
        inside = [
            (path, tensor)
            for name in dict.fromkeys(names)
            for path, tensor in program.tensors.items()
            if handed and path.startswith((f"{name}.", f"{name}["))
        ]
        return [*found, *inside]
    return []


def _owner(program: Program, method: str) -> str:
    """Return what a method is called on in the statement that raised, as it is written, where it is called once."""
    for source in program.code[:1]:
        here = [s for s in source.statements if s.lineno <= source.line <= (s.end_lineno or 0)]
        calls = [part.func for s in here[-1:] for part in ast.walk(s) if isinstance(part, ast.Call)]
        owners = [f.value for f in calls if isinstance(f, ast.Attribute) and f.attr == method]
        return ast.unparse(owners[0]) if len(owners) == 1 else ""
    return ""


def _view_of_leaf(tensor: torch.Tensor) -> bool:
    base = tensor._base
    return base is not None and base.is_leaf and base.requires_grad
