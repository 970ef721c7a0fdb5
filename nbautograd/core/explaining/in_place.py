"""In place: the node whose saved tensor is no longer what it was, and the line that wrote into it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from nbautograd.core.explaining.cause import ErrorCause, SourceLine, TrialEdit, at, finding, tensor_named
from nbautograd.core.explaining.edits import after_each_other, detached, statement_of
from nbautograd.core.explaining.program import Program, node_of, nodes_behind, window
from nbautograd.core.explaining.watch import Write, creation_line, node_line, writes_into
from nbautograd.core.graphs.saved import changed_slots
from nbautograd.core.torch_private.nodes import leaf_tensor, node_name, sequence_number
from nbautograd.core.values import sizes_text

_REFUSAL = re.compile(r"\[[\w.]+ \[([\d, ]*)\]\].* is at version (\d+); expected version (\d+)")


def in_place(program: Program) -> ErrorCause | None:
    """Explain the error on a tensor that was changed after it was saved; None where no node is broken."""
    broken = _broken(program)
    if broken is None:
        return None
    node, slot, tensor, saved, now = broken
    since = sequence_number(node) or 0  # earlier writes there were into other tensors
    writes = (w for w in writes_into(program, tensor) if w.number >= since)
    write = next((w for w in writes if w.before <= saved < w.after), None)
    did = write.spot.place() if write is not None and write.spot is not None else None
    name = program.name_of(tensor)
    if write is not None and not (name and write.window == window(tensor)):
        name = write.name or name  # a part of it has none
    saved_at = node_line(node)
    named = program.tensors.get(name)
    made = creation_line(program, named)
    if named is None and write is not None:
        made = None if write.created is None else write.created.place()
    root = tensor if tensor._base is None else tensor._base
    step = did is not None and ".step(" in did.text and root.is_leaf and root.requires_grad
    op = node_name(node).removesuffix("Backward0").removesuffix("Backward1").removesuffix("Backward")
    shown: dict[str, Any] = {"name": name, "tensor": tensor_named(name), "op": op, "shape": sizes_text(tensor.shape)}
    if did is None:
        first = finding("in_place.changed_somewhere", None, **shown)
    elif write is not None and write.module is not None:
        module = {"module": write.module[0], "kind": write.module[1]}
        first = finding("in_place.module", did, line=did.line, text=did.text, **module)
    else:
        first = finding("in_place.changed", did, **shown, line=did.line, text=did.text)
    facts = [first, finding("in_place.saved", saved_at, **shown, at=at(saved_at))]
    params = {"node": node_name(node), "slot": slot, "saved": saved, "now": now, "shape": tuple(tensor.shape)}
    edits: tuple[TrialEdit, ...] = ()
    if did is not None and write is not None:
        edits = tuple(_beside_step(program, did, write) if step else out_of_place(did, name))
    kind = "in_place_step" if step else "in_place"
    facts.append(finding("in_place.rule_step" if step else "in_place.rule"))
    made = None if made == did else made
    return ErrorCause(kind, tuple(facts), name, made, did, params, edits, saved_at)


def _beside_step(program: Program, did: SourceLine, write: Write) -> Iterator[TrialEdit]:
    """Yield changes by which no step lies between a forward and its backward: another order, or no older graph."""
    if program.caller is None:
        return
    yield from after_each_other(did, program.caller)
    nodes, roots = set(program.nodes()), {id(root) for root in program.roots}
    carried: dict[str, Any] = {}  # computed from what this backward goes through and is older than the step
    for name, tensor in program.tensors.items():
        node, variable = node_of(tensor), name.partition("[")[0]
        own = node is not None and id(tensor) not in roots and "." not in name
        behind = nodes.intersection(nodes_behind(node)) if own else ()
        if any(0 <= (sequence_number(one) or 0) < write.number for one in behind if leaf_tensor(one) is None):
            carried[variable] = program.variables.get(variable)
    for name, value in carried.items():
        yield from (replace(edit, exact=False) for edit in detached(program.caller, name, value))


_Broken = tuple[Any, str, torch.Tensor, int, int]  # a node, its slot and tensor, its version when saved and now


def _broken(program: Program) -> _Broken | None:
    """Return what was changed since it was saved: what torch refused, the newest that its error describes."""
    told = _REFUSAL.search(str(program.error))
    shape = None if told is None else tuple(int(size) for size in told[1].split(",") if size.strip())
    newest: _Broken | None = None
    for node in sorted(program.nodes(), key=lambda node: sequence_number(node) or 0, reverse=True):
        for slot, tensor, saved, now in changed_slots(node):
            if told is not None and (tuple(tensor.shape), saved, now) == (shape, int(told[3]), int(told[2])):
                return node, slot, tensor, saved, now
            newest = newest or (node, slot, tensor, saved, now)
    return newest


def _base(expression: ast.expr) -> str:
    while True:
        text = ast.unparse(expression)
        transposed = isinstance(expression, ast.Attribute) and expression.attr in ("T", "mT")
        if isinstance(expression, ast.Subscript) or transposed:
            expression = expression.value  # type: ignore[attr-defined]
        elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            if expression.func.attr not in ("view", "reshape", "detach", "squeeze", "unsqueeze", "t", "flatten"):
                return text
            expression = expression.func.value
        else:
            return text


def out_of_place(did: SourceLine, name: str) -> Iterator[TrialEdit]:
    """Yield changes of a line that writes, so that it makes a new tensor instead."""
    statement, after = statement_of(did.text), None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        value = ast.BinOp(ast.Name(statement.target.id, ast.Load()), statement.op, statement.value)
        after = f"{statement.target.id} = {ast.unparse(value)}"
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if method == "zero_" and re.fullmatch(r"(self\.)?\w+", owner):  # a clone would go on with the graph
            after = f"{owner} = torch.zeros_like({owner})"
        elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and method.endswith("_"):
            call.func.attr = method[:-1]
            after = f"{owner} = {ast.unparse(call)}" if hasattr(torch.Tensor, method[:-1]) else None
    if after is not None:
        yield TrialEdit(did.file, did.line, did.text, after)
    target = written_name(statement) or name
    if target.isidentifier() or target.startswith("self."):
        yield TrialEdit(did.file, did.line, did.text, f"{target} = {target}.clone()\n{did.text}")


def written_name(statement: ast.stmt | None) -> str:
    """Return the variable that a statement writes into, as it reads; empty for one that writes into none."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if isinstance(statement, ast.AugAssign):
        return _base(statement.target)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return _base(statement.targets[0])
    function = value.func if isinstance(value, ast.Call) else None
    return _base(function.value) if isinstance(function, ast.Attribute) and function.attr.endswith("_") else ""
