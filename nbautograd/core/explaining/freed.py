"""Second backward: what was freed, by which earlier backward, and which lines tie the two together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from nbautograd.core.explaining.cause import ErrorCause, SourceLine, TrialEdit, at, finding
from nbautograd.core.explaining.edits import detached, statement_of
from nbautograd.core.explaining.no_grad import differentiated
from nbautograd.core.explaining.program import Program, node_of, nodes_behind
from nbautograd.core.explaining.watch import creation_line, cuts_into, freed_by, node_line
from nbautograd.core.torch_private.nodes import (
    all_gone,
    function_of,
    leaf_tensor,
    node_name,
    raw_slots,
    sequence_number,
)
from nbautograd.core.user_source import tree_of

DIFFERENTIATES = ("backward", "grad")
MOST_TIES = 3  # lines that are named


class _Tie(NamedTuple):
    """A line that used, after a backward, what another line had computed before it."""

    user: SourceLine
    maker: SourceLine
    node: Any


def freed(program: Program) -> ErrorCause | None:
    """Explain the error of a graph that an earlier backward freed; None where nothing in it is freed."""
    # the backward that raised has freed nodes as well, all that it came by: it goes from the newest to the oldest, so
    # that the oldest of the freed ones was freed before
    every = [n for n in program.nodes() if (all_gone(n) if function_of(n) is None else raw_slots(n, "tensors") is None)]
    gone = [node for node in every if freed_by(node) is not None]
    gone = gone or sorted(every, key=lambda node: sequence_number(node) or 0)[:1]
    if not gone:
        return None
    earlier = next((ran for node in gone if (ran := freed_by(node)) is not None), None)
    did = earlier.spot.place() if earlier is not None and earlier.spot is not None else None
    here, op = program.caller, node_name(gone[0])
    root = next((program.name_of(root) for root in program.roots), "")
    written = root or differentiated(program) or (here.text if here is not None else "?")
    edits: tuple[TrialEdit, ...] = ()
    facts = [finding("freed.earlier", did, root=written, op=op, at=at(did))]
    same_line = did is not None and here is not None and (did.line, did.file) == (here.line, here.file)
    if program.watch is None:
        return ErrorCause("freed", (*facts, finding("freed.rule")), _holding(program, gone) or root, None, did)
    if earlier is not None and (ungraphed := _without_its_graph(program, earlier, written)):
        return ErrorCause("freed_create_graph", (*facts, *ungraphed), written, None, did)
    old = {node for node in program.nodes() if leaf_tensor(node) is None and freed_by(node) is not None}
    if any(node_of(tensor) in old for tensor in program.roots):
        facts += [finding("freed.again", None, root=written), finding("freed.rule")]
        edits = () if did is None or same_line else tuple(_retain(did))
        made = node_line(node_of(program.roots[0]))
        return ErrorCause("freed_again", tuple(facts), written, made, did, {"node": op}, edits)
    ties = _ties(program, old)
    tied = _tied(program, ties, old)
    name = tied or root
    made = creation_line(program, program.tensors.get(tied))
    for tie in ties[:MOST_TIES]:
        lines = {"line": tie.user.line, "text": tie.user.text, "made": tie.maker.line, "by": tie.maker.text}
        facts.append(finding("freed.tie", tie.user, **lines))
    # the line that made it ran again since, as in a loop that hands something on
    again = {node_line(node) for node in program.nodes() if node not in old}
    carried = same_line and any(tie.maker in again for tie in ties)
    if carried:
        kind, edits = "freed_carried", tuple(_end_of_graph(program, _newer(program, name, old)))
    else:
        kind = "freed_shared_grad" if earlier is not None and earlier.call == "grad" else "freed_shared"
        edits = () if did is None or same_line else tuple(_retain(did))
    return ErrorCause(kind, (*facts, finding("freed.rule")), name, made, did, {"node": op, "root": root}, edits)


def _ties(program: Program, old: set[Any]) -> list[_Tie]:
    """Return where this backward goes on into what an earlier one went through, the newest first."""
    found: dict[tuple[SourceLine, SourceLine], _Tie] = {}
    for node in sorted(program.nodes(), key=lambda node: sequence_number(node) or 0, reverse=True):
        for following, _ in node.next_functions if node not in old else ():
            user, maker = node_line(node), node_line(following) if following in old else None
            if user is not None and maker is not None:
                found.setdefault((user, maker), _Tie(user, maker, following))
    return [*found.values()]


def _tied(program: Program, ties: list[_Tie], old: set[Any]) -> str:
    makers, users, nodes = {tie.maker for tie in ties}, {tie.user for tie in ties}, {tie.node for tie in ties}
    read = {word for tie in ties for word in _read(tie.user.text)}
    found: list[tuple[bool, bool, int, int, str]] = []
    for name, tensor in program.tensors.items():
        node = node_of(tensor)
        if node is None or any(tensor is root for root in program.roots):
            continue
        last = re.sub(r".*\.", ".", name.partition("[")[0])
        made = node_line(node)
        if node in nodes or made in makers or (last in read and (node in old or made in users)):
            found.append((last not in read, node not in nodes, name.count("."), len(name), name))
    return min(found)[-1] if found else ""


def _read(text: str) -> set[str]:
    tree = tree_of(text)
    if tree is None:
        return {*re.findall(r"\.?\b[A-Za-z_]\w*", text)}
    added = [node.target for node in ast.walk(tree) if isinstance(node, ast.AugAssign)]
    parts = [n for n in (*ast.walk(tree), *added) if isinstance(n, (ast.Name, ast.Attribute))]
    read = [n for n in parts if isinstance(n.ctx, ast.Load) or n in added]
    return {n.id if isinstance(n, ast.Name) else f".{n.attr}" for n in read}


def _holding(program: Program, gone: list[Any]) -> str:
    """Return the variable with the smallest graph that a freed node is in, other than what is differentiated."""
    inner = {n: t for n, t in program.tensors.items() if not any(t is root for root in program.roots)}
    live, found = set(program.nodes()), dict[str, int]()
    for name, tensor in inner.items():
        inside = nodes_behind(node_of(tensor)) if node_of(tensor) in live else []
        if not {*gone}.isdisjoint(inside):
            found[name] = len(inside)
    return min(found, key=lambda name: (found[name], name.count("."), len(name)), default="")


def _without_its_graph(program: Program, earlier: Any, root: str) -> list[Any]:
    cuts = [cut for node in program.nodes() for cut in cuts_into(node) if cut.reason == "create_graph"]
    cut = next((cut for cut in cuts if cut.spot is not None and cut.op == "grad"), None)  # not detached on purpose
    if earlier.call != "grad" or cut is None or cut.spot is None:
        return []
    did = cut.spot.place()
    return [finding("freed.create_graph", did, root=root, line=did.line, text=did.text), finding("rule_create_graph")]


def _newer(program: Program, name: str, old: set[Any]) -> str:
    """Return the variable that is carried into the next iteration, where the named one still holds the last one's."""
    carried = program.tensors.get(name)
    if carried is None or node_of(carried) not in old or not (name.isidentifier() and program.frames):
        return name
    made, live = node_line(node_of(carried)), set(program.nodes()) - old
    values = program.frames[-1][0].f_locals.items()
    tensors = [(other, node_of(value)) for other, value in values if isinstance(value, torch.Tensor)]
    return next((other for other, node in tensors if node in live and node_line(node) == made), name)


def _end_of_graph(program: Program, name: str) -> Iterator[TrialEdit]:
    path = name.partition("[")[0]
    first, *attributes = path.split(".")
    value = program.variables.get(first)
    for attribute in attributes:
        value = getattr(value, attribute, None)
    if program.caller is not None and value is not None:
        yield from detached(program.caller, path, value)


def _retain(did: SourceLine) -> Iterator[TrialEdit]:
    statement = statement_of(did.text) or ast.Pass()
    for call in [part for part in ast.walk(statement) if isinstance(part, ast.Call)]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in DIFFERENTIATES:
            call.keywords = [k for k in call.keywords if k.arg != "retain_graph"]
            call.keywords.append(ast.keyword("retain_graph", ast.Constant(True)))
            yield TrialEdit(did.file, did.line, did.text, ast.unparse(statement))
            return
