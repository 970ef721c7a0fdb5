"""No grad: where the path from a loss to its leaves is cut, or why there is none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from nbautograd.core.explaining.cause import ErrorCause, SourceLine, at, finding, tensor_named
from nbautograd.core.explaining.edits import let_through, switched_inside
from nbautograd.core.explaining.program import Program, node_of
from nbautograd.core.explaining.watch import Cut, Left, Pass, creation_line, cuts_into, left_side
from nbautograd.core.findings import Finding
from nbautograd.core.torch_private.nodes import leaf_tensor
from nbautograd.core.user_source import tree_of

MOST_NAMED = 4  # tensors in one sentence
MOST_LEFT = 3  # lines at which values left torch
INDEX = re.compile(r"at index (\d+)|element (\d+) of")


def no_grad(program: Program) -> ErrorCause | None:
    """Explain a loss without a graph: what cut it off, or that nothing in it asked for a gradient."""
    found = INDEX.search(str(program.error))
    position = int(found[1] or found[2] or 0) if found else 0
    roots = [root for root in program.roots if not root.requires_grad] or list(program.roots)
    root = roots[position] if position < len(roots) else roots[0] if roots else None
    if root is None:
        return None
    name = program.name_of(root) or differentiated(program)
    watched = program.watch.cut(root) if program.watch is not None else None
    if watched is not None:
        return _watched(watched, name)
    if program.watch is None and any(tensor.requires_grad for tensor in program.tensors.values()):
        return ErrorCause("no_grad", (finding("no_grad.somewhere", None, root=name), finding("no_grad.rule")), name)
    return _no_leaf_requires_grad(program, root, name)


def unused(program: Program) -> ErrorCause | None:
    """Explain an input of ``torch.autograd.grad`` that the graph does not lead to."""
    found = INDEX.search(str(program.error))
    live = {id(getattr(node, "variable", None)) for node in program.nodes()}
    inner = set(program.nodes())
    missing = [t for t in program.inputs if id(t) not in live and node_of(t) not in inner]
    if found and found[1] is not None and int(found[1]) < len(program.inputs):
        missing = [program.inputs[int(found[1])]]
    if not missing:
        return None
    tensor = missing[0]
    name = program.name_of(tensor) or f"inputs[{[t is tensor for t in program.inputs].index(True)}]"
    root = next((program.name_of(root) for root in program.roots), "") or differentiated(program) or "?"
    if not tensor.requires_grad:
        what = finding("no_grad.not_required", None, name=name, root=root)
        return ErrorCause("no_grad_not_required", (what, finding("no_grad.rule_begins")), name)
    cuts = [cut for cut in _cuts(program) if cut.was(tensor)]
    watched = min(cuts, key=lambda cut: cut.reason == "detach", default=None)  # which is on purpose for the most part
    if watched is not None:
        cause = _watched(watched, root)
        return replace(cause, tensor=name, params={"cut_off": True})
    made = creation_line(program, tensor)
    what = finding("unused.what", None, name=name, root=root)
    before = 0 if program.watch is None else program.watch.passes - (program.error is None)
    left = [] if program.watch is None else [*program.watch.events.all(Left)]
    lines = _left(cut for _, cut in left if cut.after == before and cut.was(tensor))
    return ErrorCause("unused", (what, *lines, finding("no_grad.rule")), name, made, params={"root": root})


def _left(cuts: Iterable[Cut]) -> list[Finding]:
    places = [cut.spot.place() for cut in cuts if cut.spot is not None]
    last = [*{(place.file, place.line): place for place in places}.values()][:MOST_LEFT]
    return [finding("no_grad.left", place, line=place.line, text=place.text) for place in reversed(last)]


def _cuts(program: Program) -> Iterator[Cut]:
    nodes = program.nodes()
    for node in nodes:
        yield from cuts_into(node)
    leaves = (*program.roots, *(leaf for node in nodes if (leaf := leaf_tensor(node)) is not None))
    for leaf in leaves if program.watch is not None else ():
        if (cut := program.watch.cut(leaf)) is not None:
            yield cut


def differentiated_by(watch: Any) -> dict[str, torch.Tensor]:
    """Return what the last backward of a run differentiated, by the name that its line has for it."""
    spot = next(watch.events.all(Pass)).spot
    line = "" if spot is None else spot.place().text
    wanted = _roots(tree_of(line))
    return {ast.unparse(wanted[0]) if len(wanted) == 1 else line: watch.roots[0]} if len(watch.roots) == 1 else {}


def differentiated(program: Program) -> str:
    """Return what the line that raised differentiates, as it is written."""
    return next(map(ast.unparse, _roots(program.statement)), "")


def _roots(source: ast.AST | None) -> list[ast.expr]:
    calls = [part for part in ast.walk(source) if isinstance(part, ast.Call)] if source is not None else []
    methods = [c.func.value for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "backward"]
    functions = ("grad", "autograd.backward")
    return methods + [c.args[0] for c in calls if c.args and ast.unparse(c.func).endswith(functions)]


def unused_parameters(program: Program) -> ErrorCause | None:
    """Explain what DistributedDataParallel waits for: the parameters whose positions its error lists."""
    listed = re.search(r"did not receive grad for rank \d+: ([\d ]+)", str(program.error))
    wrapper = program.torch_object(torch.nn.parallel.DistributedDataParallel)
    if listed is None or wrapper is None:
        return None
    learning = [(name, p) for name, p in wrapper.module.named_parameters() if p.requires_grad]
    if any(position >= len(learning) for position in map(int, listed[1].split())):
        return None
    waiting = [learning[int(position)] for position in listed[1].split()]
    names = [program.name_of(parameter) or name for name, parameter in waiting]
    facts = (finding("unused_parameters.what", None, name=", ".join(names)), finding("unused_parameters.rule"))
    return ErrorCause("unused_parameters", facts, names[0])


def _watched(cut: Cut, root: str) -> ErrorCause:
    did = cut.spot.place() if cut.spot is not None else None
    source = cut.source
    if cut.reason == "data" and not source:
        source = left_side(did).removesuffix(".data")
    reason, off = cut.reason, cut.off
    if reason == "no_grad" and did is not None and off is not None and switched_inside(did, off.place()):
        reason, off = "inside", None
    shown = {"name": source, "root": root, "text": cut.op if did is None else did.text, "line": did.line if did else 0}
    facts = [finding(f"no_grad.{reason}", did, tensor=tensor_named(source), **shown)]
    if off is not None:
        switch = off.place()
        facts.append(finding("no_grad.switched_off", switch, line=switch.line, text=switch.text))
    if cut.anew is not None and (place := cut.anew.place()) != did:
        facts.append(finding("no_grad.anew", place, line=place.line, text=place.text))
    facts.append(finding("rule_create_graph" if reason == "create_graph" else "no_grad.rule"))
    edits = () if did is None else tuple(let_through(reason, did, None if off is None else off.place()))
    code = "unused_new_leaf" if reason == "new_leaf" else f"no_grad_{reason}"
    return ErrorCause(code, tuple(facts), source or root, None, did, {"cut_off": bool(source)}, edits)


def _no_leaf_requires_grad(program: Program, root: torch.Tensor, name: str) -> ErrorCause:
    if not (root.is_floating_point() or root.is_complex()):
        facts = (finding("no_grad.integer_root", None, root=name, dtype=str(root.dtype).removeprefix("torch.")),)
        return ErrorCause("no_grad_integer", (*facts, finding("no_grad.rule")), name)
    left = () if program.watch is None else program.watch.events.all(Left)
    if lines := _left(cut for _, cut in left):
        # something with a graph was read out, so that nothing shows that no leaf of it asked for a gradient
        what = finding("no_grad.nothing_requires", None, root=name)
        return ErrorCause("no_grad", (what, *lines, finding("no_grad.rule")), name, params={"root": name})
    if program.watch is not None and (frozen := program.watch.frozen_in(root)):
        return _frozen(program, frozen, name)
    what = finding("no_grad.nothing_requires", None, root=name)
    return ErrorCause("no_grad_not_required", (what, finding("no_grad.rule_begins")), name)


def _frozen(program: Program, frozen: list[tuple[torch.Tensor, SourceLine | None]], root: str) -> ErrorCause:
    # first those whose line is known, so that the line is that of the first name
    named = [(program.name_of(tensor), place) for tensor, place in sorted(frozen, key=lambda one: one[1] is None)]
    names = [name for name, _ in named if name]
    did = next((place for name, place in named if name), None)
    what = finding("no_grad.frozen", did, name=", ".join(names[:MOST_NAMED]) or "?", root=root, at=at(did))
    return ErrorCause("no_grad_frozen", (what, finding("no_grad.rule_begins")), (names or [root])[0], None, did)
