"""Second backward: what was freed, by which earlier backward, and what ties the two together."""

from __future__ import annotations

import ast
from typing import Any

import torch

from nbautograd.core.explaining.cause import Edit, ErrorCause, Place, said
from nbautograd.core.explaining.program import Program
from nbautograd.core.explaining.watch import freed_by, made_at
from nbautograd.core.torch_private.nodes import all_gone, function_of, node_name, raw_slots

DIFFERENTIATES = ("backward", "grad")


def freed(program: Program) -> ErrorCause | None:
    """Explain the error of a graph that an earlier backward freed; None where nothing in it is freed."""
    nodes = program.nodes()
    gone = [node for node in nodes if is_freed(node)]
    if not gone:
        return None
    earlier = next((ran for node in gone if (ran := freed_by(node)) is not None), None)
    did = earlier.spot.place() if earlier is not None and earlier.spot is not None else _earlier_line(program)
    here = program.caller
    name = _shared(program, set(gone))
    root = next((program.name_of(root) for root in program.roots), "")
    again = did is not None and here is not None and (did.line, did.file) == (here.line, here.file)
    made = _made(program, name, gone, earlier)
    op = node_name(gone[0])
    shown = {"name": name or root, "root": root, "op": op, "line": did.line if did else 0}
    if did is None:
        facts = [said("freed.somewhere", None, **shown)]
    elif again:
        facts = [said("freed.same_line", did, **shown)]
    else:
        facts = [said("freed.by_line", did, **shown)]
    kind = "freed_again"
    if name and name != root:
        kind = "freed_carried" if again and _carried(program, name) else "freed_shared"
        facts.append(said(f"freed.{kind.removeprefix('freed_')}", made, **shown))
    elif again and _carried(program, root):
        kind = "freed_carried"
        facts.append(said("freed.carried", made, **shown))
    elif again and not _made_in_loop(program, root):
        facts.append(said("freed.graph_outside_loop", made, **shown))
    elif again:
        kind = "freed_carried"
    facts.append(said(f"freed.advice_{kind.removeprefix('freed_')}", None, **shown))
    edits = (_retain(did),) if did is not None and kind != "freed_carried" and not again else ()
    params = {"node": op, "root": root}
    return ErrorCause(kind, tuple(facts), name or root, made, did, params, tuple(edit for edit in edits if edit))


def is_freed(node: Any) -> bool:
    """Return True for a node whose saved tensors are gone."""
    if function_of(node) is not None:
        return raw_slots(node, "tensors") is None
    return all_gone(node)


def _shared(program: Program, gone: set[Any]) -> str:
    """Return the variable nearest to what was freed, of those that hold a part of the graph with a freed node."""
    live = set(program.nodes())
    found: dict[str, int] = {}
    for name, tensor in program.tensors.items():
        if tensor.grad_fn is not None and tensor.grad_fn in live:
            inside = _behind(tensor)
            if inside & gone:
                found[name] = len(inside)
    return min(found, key=lambda name: (found[name], name.count("."), len(name))) if found else ""


def _behind(tensor: torch.Tensor) -> set[Any]:
    return set(Program(roots=(tensor,)).nodes())


def _made(program: Program, name: str, gone: list[Any], earlier: Any) -> Place | None:
    tensor = program.tensors.get(name)
    if tensor is not None and (place := made_at(tensor.grad_fn)) is not None:
        return place
    return next((place for source in program.code if name and (place := source.assigned(name)) is not None), None)


def _earlier_line(program: Program) -> Place | None:
    """Return the line of the only other backward in the code, or this line itself where a loop repeats it alone."""
    for source in program.code:
        calls = [s for s in source.statements if s.lineno <= source.line and _differentiates(s)]
        others = [s for s in calls if not s.lineno <= source.line <= (s.end_lineno or s.lineno)]
        if len(others) == 1 and source.line not in source.in_loops and others[0].lineno not in source.in_loops:
            return source.place(others[0].lineno)
        if not others and source.line in source.in_loops and calls:
            return source.place(source.line)
        if others:
            return None
    return _earlier_cell(program)


def _earlier_cell(program: Program) -> Place | None:
    """Return the only line of earlier cells that ran a backward."""
    cells = program.variables.get("In")
    here = program.caller
    found: list[Place] = []
    for number, cell in enumerate(cells) if isinstance(cells, list) else ():
        if here is None or number == here.cell or not isinstance(cell, str):
            continue
        try:
            tree = ast.parse(cell)
        except (SyntaxError, ValueError):
            continue
        lines = cell.splitlines()
        found += [
            Place(s.lineno, lines[s.lineno - 1].strip(), "", "", number)
            for s in ast.walk(tree)
            if isinstance(s, ast.stmt) and not hasattr(s, "body") and _differentiates(s)
        ]
    return found[0] if len(found) == 1 else None


def _differentiates(statement: ast.stmt) -> bool:
    if hasattr(statement, "body"):
        return False
    calls = [part.func for part in ast.walk(statement) if isinstance(part, ast.Call)]
    names = [f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls]
    kept = any(
        k.arg in ("retain_graph", "create_graph") and isinstance(k.value, ast.Constant) and k.value.value
        for part in ast.walk(statement)
        if isinstance(part, ast.Call)
        for k in part.keywords
    )
    return any(name in DIFFERENTIATES for name in names) and not kept


def _carried(program: Program, name: str) -> bool:
    """Return True for a variable that a loop reads before it assigns it."""
    for source in program.code:
        loops = [s for s in source.statements if isinstance(s, (ast.For, ast.While))]
        for loop in loops:
            if loop.lineno <= source.line <= (loop.end_lineno or loop.lineno) and _read_first(loop, name):
                return True
    return False


def _read_first(loop: ast.For | ast.While, name: str) -> bool:
    root = name.partition(".")[0].partition("[")[0]
    stored = [n for n in ast.walk(loop) if _is(n, name, ast.Store)]
    read = [n for n in ast.walk(loop) if _is(n, name, ast.Load)]
    if not stored:
        return "." in name and root != name
    return bool(read) and min(n.lineno for n in read) <= min(n.lineno for n in stored)  # type: ignore[attr-defined]


def _is(node: ast.AST, name: str, ctx: type) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ctx) and ast.unparse(node) == name


def _made_in_loop(program: Program, name: str) -> bool:
    places = [(source, source.assigned(name)) for source in program.code]
    return any(place is not None and place.line in source.in_loops for source, place in places)


def _retain(did: Place) -> Edit | None:
    """Return the first backward with ``retain_graph=True``."""
    try:
        statement = ast.parse(did.text).body[0]
    except (SyntaxError, IndexError):
        return None
    for call in [part for part in ast.walk(statement) if isinstance(part, ast.Call)]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in DIFFERENTIATES:
            call.keywords = [k for k in call.keywords if k.arg != "retain_graph"]
            call.keywords.append(ast.keyword("retain_graph", ast.Constant(True)))
            return Edit(did.file, did.line, did.text, ast.unparse(statement))
    return None
