"""Errors of which the line is known: which tensor torch means there, or which value of a Function's own methods."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import torch

from nbautograd.core.contract import rules
from nbautograd.core.explaining.cause import ErrorCause, SourceLine, finding
from nbautograd.core.explaining.in_place import written_name
from nbautograd.core.explaining.no_grad import differentiated
from nbautograd.core.explaining.program import Program, cell_number
from nbautograd.core.explaining.watch import creation_line
from nbautograd.core.torch_private.nodes import function_of
from nbautograd.core.user_source import FunctionSource, assignments, calls_of, methods_of, read_source, returns
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


NAME = re.compile(r"unction '?(\w+?)Backward\w*'?")
NUMBERS = re.compile(r"expected (\d+), got (\d+)")
INDEX = re.compile(r"at index (\d+)")
SHAPES = re.compile(r"got \[(.*?)\] but expected shape compatible with \[(.*?)\]")
DEVICES = re.compile(r"expected device (\S+) but got (\S+)")


def returned(program: Program, kind: str) -> ErrorCause | None:
    """Explain an error about what a Function's backward returned, or what its forward marked and saved."""
    cls = _function(program)
    source = read_source(cls) if cls is not None else None
    if cls is None or source is None:
        return None
    words = str(program.error)
    index = int(found[1]) if (found := INDEX.search(words)) else 0
    if kind == "returned_type":
        index = -1
    *others, last = source.inputs or ("",)
    argument = source.inputs[index] if 0 <= index < len(others) else last if index == len(others) else ""
    if last.startswith("*") and index >= len(others):
        argument = f"{last.lstrip('*')}[{index - len(others)}]"
    did = returned_line(program, cls, source, index, kind)
    shown: dict[str, Any] = {"function": cls.__name__, "argument": argument, "inputs": ", ".join(source.inputs)}
    shown |= {"line": did.line if did is not None else 0, "number": index + 1}
    for pattern, names in (
        (NUMBERS, ("expected", "got")),
        (SHAPES, ("got", "expected")),
        (DEVICES, ("expected", "got")),
    ):
        if found := pattern.search(words):
            said_so = (sizes_text(g.split(", ")) if pattern is SHAPES else g for g in found.groups())
            shown |= dict(zip(names, said_so, strict=True))
    named = kind in ("returned_shape", "returned_device")
    shows = did is not None or (named and argument)
    what = (finding(f"{kind}.what", did, **shown),) if shows else ()
    return ErrorCause(
        kind, (*what, finding(f"{kind}.rule", None, **shown)), argument if named else "", None, did, shown
    )


def _function(program: Program) -> type | None:
    """Return the Function that torch complains of: by its name, else the only one of the user's in the graph."""
    functions = {cls for node in program.nodes() if (cls := function_of(node)) is not None}
    named = NAME.search(str(program.error))
    if named is not None:
        return next((cls for cls in functions if cls.__name__ == named[1]), None)
    for frame, _ in reversed(program.frames):
        values = {**frame.f_globals, **frame.f_locals}
        classes = [v for v in values.values() if isinstance(v, type) and hasattr(v, "backward") and hasattr(v, "apply")]
        for cls in classes:
            methods = (getattr(cls, name, None) for name in ("forward", "backward", "setup_context"))
            if any(getattr(method, "__code__", None) is frame.f_code for method in methods):
                return cls
    if len(functions) == 1:
        return functions.pop()
    called = re.findall(r"(\w+)\.apply\(", program.caller.text) if program.caller is not None else []
    return next((cls for name in called if isinstance(cls := program.variables.get(name), type)), None)


def returned_line(program: Program, cls: type, source: FunctionSource, index: int, kind: str) -> SourceLine | None:
    """Return the line of the value that was returned, or of the call in forward; None where it may be another."""
    method = "forward" if kind in ("mark_dirty", "save_for_backward") else "backward"
    names = ("forward", "setup_context") if method == "forward" else ("backward",)
    trees = [tree for tree in map(methods_of(cls).tree, names) if tree is not None]
    if method == "forward":
        lines = {call.lineno for tree in trees for call in calls_of(tree, kind)}
    else:
        lines = {end.lineno for tree in trees for end in returns(tree)}
    if kind not in ("mark_dirty", "save_for_backward", "returned_number", "returned_type") and len(lines) == 1:
        written = rules.returned(source, index)
        given = [
            e.lineno
            for e in assignments(trees[0], (written and written.name) or "")
            if getattr(e, "value", "") is not None
        ]
        blocks = [n for n in ast.walk(trees[0]) if isinstance(n, (ast.If, ast.For, ast.While, ast.Try))]
        one_of_several = len(given) > 1 and any(b.lineno <= at <= (b.end_lineno or 0) for b in blocks for at in given)
        lines = set() if written is None or written.line is None or one_of_several else {written.line}
    if len(lines) != 1:
        return None
    line, rows = lines.pop(), source.text.splitlines()
    at = line - source.first_line
    text = rows[at].strip() if 0 <= at < len(rows) else ""
    return SourceLine(line, text, f"{source.name}.{method}", source.file, cell_number(source.file, program.variables))
