"""A ``.grad`` that is None: of a tensor that is asked about, that an error read, or that an optimizer holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from nbautograd.core.explaining.at_the_line import returned_line
from nbautograd.core.explaining.cause import ErrorCause, SourceLine, TrialEdit, at, finding
from nbautograd.core.explaining.edits import statement_of
from nbautograd.core.explaining.no_grad import differentiated_by, no_grad, unused
from nbautograd.core.explaining.program import Program, node_of, nodes_behind, shares
from nbautograd.core.explaining.watch import Removed, creation_line
from nbautograd.core.findings import Finding
from nbautograd.core.torch_private.nodes import function_of, leaf_tensor
from nbautograd.core.user_source import read_source


def grad_none(program: Program, tensor: torch.Tensor, name: str) -> ErrorCause:
    """Explain a ``.grad`` that is None."""
    name = name or "?"
    if not tensor.requires_grad:
        return without_requires_grad(program, tensor, name)
    if not tensor.is_leaf:
        made = creation_line(program, tensor)
        what = _finding("not_a_leaf", made, name=name, at=at(made))
        edits = () if made is None else tuple(_leaf_again(made, name))
        return ErrorCause("grad_none_not_a_leaf", (what,), name, made, None, {}, edits)
    watch = program.watch
    if watch is None:
        return ErrorCause("grad_none", (_finding("not_run", name=name),), name)
    here = program.caller
    # the evidence of a run on a leaf that its last backward is to have reached
    scope = {name: tensor, **differentiated_by(watch), **program.variables} if watch.passes else program.variables
    program = Program(roots=watch.roots, watch=watch, scope=scope)
    program.inputs = (tensor,)
    removed, after = _removed(watch, tensor, name)
    if not watch.passes:
        what = finding("grad_none.no_backward", here, name=name)
        return removed or ErrorCause("grad_none_no_backward", (what,), name)
    cause = unused(program) if removed is None or after < watch.passes else None
    if removed is not None and (cause is None or cause.did is None):
        return removed
    cause = cause or _returned_none(program, tensor, name)
    return cause or ErrorCause("grad_none", (_finding("not_run", name=name),), name)


def _returned_none(program: Program, tensor: torch.Tensor, name: str) -> ErrorCause | None:
    """Explain a leaf by the custom Function on its way whose backward was seen to return None."""
    for node, k in program.watch.backward.silent.values():
        cls = function_of(node)
        if cls is None or not any(leaf_tensor(one) is tensor for one in nodes_behind(node.next_functions[k][0])):
            continue
        source, argument, did = read_source(cls), name, None
        if source is not None:
            edges = [place for place, (following, _) in enumerate(node.next_functions) if following is not None]
            given = [one for one, needed in zip(source.inputs, node.needs_input_grad, strict=False) if needed]
            argument = given[edges.index(k)] if len(given) == len(edges) else name
            did = returned_line(program, cls, source, k, "returned_number")
        what = _finding("returned_none", did, name=name, source=cls.__name__, argument=argument)
        return ErrorCause("grad_none_returned_none", (what,), name, None, did)
    return None


def of_returned(tensor: Any, watch: Any, name: str) -> ErrorCause | None:
    """Explain what a run returned where its backwards left it without ``.grad``; None where that is as it must be."""
    if not (isinstance(tensor, torch.Tensor) and tensor.requires_grad and watch.passes):
        return None
    program = Program(watch=watch, scope={name or "?": tensor})
    if tensor.is_leaf:
        cause = grad_none(program, tensor, name) if tensor.grad is None else None
        return None if cause is None or cause.code == "grad_none" else cause
    nodes = Program(roots=watch.roots).nodes()
    inside = node_of(tensor) in nodes and not any(node_of(r) is node_of(tensor) for r in watch.roots)
    # a part of a leaf, taken again behind the backward
    inside = inside or (tensor._base is not None and any(leaf_tensor(node) is tensor._base for node in nodes))
    return grad_none(program, tensor, name) if inside and not tensor.retains_grad else None


def without_requires_grad(program: Program, tensor: torch.Tensor, name: str) -> ErrorCause:
    """Explain a tensor that does not require grad: frozen, detached, integers, or without a graph at all."""
    watch = program.watch
    off = None if watch is None else watch.switched_off(tensor)
    if isinstance(tensor, nn.Parameter) or off is not None:
        did = None if off is None else off.place()
        what = finding("grad_none.frozen", did, name=name, at=at(did))
        return ErrorCause("grad_none_frozen", (what,), name, None, did)
    if watch is not None:
        asked = Program(roots=(tensor,), watch=watch, scope={**program.variables, name: tensor})
        if (cause := no_grad(asked)) is not None:
            return replace(cause, tensor=cause.tensor or name)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        dtype = str(tensor.dtype).removeprefix("torch.")
        return ErrorCause("no_grad_integer", (finding("no_grad.integer_root", None, root=name, dtype=dtype),), name)
    of = next((n for n, t in program.tensors.items() if t is not tensor and t.requires_grad and shares(t, tensor)), "")
    if of:
        return ErrorCause("no_grad_detach", (finding("grad_none.detached", None, name=name, of=of),), name)
    return ErrorCause("no_grad", (_finding("not_required", name=name),), name)


def _finding(reason: str, place: SourceLine | None = None, **params: Any) -> Finding:
    """Return what is said of a reason under a graph, without the advice: an explanation has changes that were tried."""
    line = None if place is None else place.line
    return Finding(f"explain_grad_none_{reason}", "note", f"graphs.none.{reason}.what", params, line=line)


def _leaf_again(made: SourceLine, name: str) -> Iterator[TrialEdit]:
    """Yield the line that made a result with a leaf instead, or with its gradient kept.

    ``w = w - lr * w.grad`` is a step, which has no graph; of ``torch.randn(3, requires_grad=True).to(device)`` the
    result is meant to be the leaf (both are threads without number).
    """
    statement = statement_of(made.text)
    if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) != name:
        return
    value, kept = statement.value, f"{ast.unparse(statement)}\n{name}.retain_grad()"
    if isinstance(value, ast.BinOp) and ast.unparse(value.left) == name:
        sign = ast.unparse(ast.AugAssign(ast.Name("_"), value.op, value.right)).removeprefix("_ ")
        yield TrialEdit(made.file, made.line, made.text, f"with torch.no_grad(): {name} {sign}")
    calls = [
        n for n in ast.walk(value) if isinstance(n, ast.Call) and any(k.arg == "requires_grad" for k in n.keywords)
    ]
    if len(calls) == 1 and calls[0] is not value:
        calls[0].keywords = [k for k in calls[0].keywords if k.arg != "requires_grad"]
        yield TrialEdit(made.file, made.line, made.text, f"{name} = {ast.unparse(value)}.requires_grad_()")
    yield TrialEdit(made.file, made.line, made.text, kept)


def _removed(watch: Any, tensor: torch.Tensor, name: str) -> tuple[ErrorCause | None, int]:
    last = watch.events.last(Removed, tensor)
    if last is None or last.spot is None:
        return None, 0
    did = last.spot.place()
    what = finding("grad_none.removed", did, line=did.line, text=did.text, name=name)
    since = did if last.after == watch.passes else None
    return ErrorCause("grad_none_removed", (what,), name, None, since), last.after
