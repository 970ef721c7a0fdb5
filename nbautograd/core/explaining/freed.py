"""Second backward: what was freed, by which earlier backward, and what ties the two together."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from nbautograd.core.explaining.cause import Edit, ErrorCause, Place, said
from nbautograd.core.explaining.edits import detached, kept_detached, let_through
from nbautograd.core.explaining.no_grad import differentiated
from nbautograd.core.explaining.program import Program, Source, behind, node_of, targets
from nbautograd.core.explaining.watch import cuts_into, freed_by, line_that_made, made_at
from nbautograd.core.torch_private.nodes import (
    all_gone,
    function_of,
    leaf_tensor,
    node_name,
    raw_slots,
    sequence_number,
)

DIFFERENTIATES = ("backward", "grad")
READS = {"items", "values", "keys", "get", "index", "count", "copy"}  # methods that change no container


def freed(program: Program) -> ErrorCause | None:
    """Explain the error of a graph that an earlier backward freed; None where nothing in it is freed."""
    gone = _freed_before(program)
    if not gone:
        return None
    earlier = next((ran for node in gone if (ran := freed_by(node)) is not None), None)
    did = (
        earlier.spot.place() if earlier is not None and earlier.spot is not None else _earlier_line(program, set(gone))
    )
    here = program.caller
    name = _shared(program, set(gone))
    root = next((program.name_of(root) for root in program.roots), "")
    written = root or differentiated(program) or (here.text if here is not None else "?")
    if (ungraphed := _without_its_graph(program, earlier, written)) is not None:
        return ungraphed
    looped = any(source.line in source.in_loops for source in program.code)
    case = _Case(program, name, root, set(gone), _is_same_line(did, here), looped, _twice(program, did, root))
    tie = next(tie for tie in _TIES if tie.holds(case))
    made = line_that_made(program, name, program.tensors.get(name))
    op = node_name(gone[0])
    kept = program.tensors.get(name)
    if tie.kind == "freed_carried" and kept is not None and (node := node_of(kept)) is not None and freed_by(node):
        tie = tie._replace(what="kept", advice="kept")  # the earlier backward went through it, not only behind it
    what, shown = tie.what, {"name": name or written, "root": written, "op": op, "line": did.line if did else 0}
    about = made
    older = [*_entered(program, set(gone)).values()]
    if what == "carried_unnamed" and len(older) == 1:
        about, what = older[0], "carried_unnamed_at"
        shown |= {"made": older[0].line, "text": older[0].text}
    if did is None:
        facts = [said("freed.somewhere", None, **shown)]
    elif case.again and looped:
        facts = [said("freed.same_line", did, **shown)]
    else:
        facts = [said("freed.by_line", did, **shown)]
    facts += [said(f"freed.{what}", about, **shown)] if what else []
    stored = program.stored(name or root, made) if tie.kind == "freed_carried" and "." in (name or root) else None
    if stored is not None:
        facts.append(said("freed.stored", stored, line=stored.line, text=stored.text))
    kind, asked = tie.kind, earlier is not None and earlier.call == "grad"
    if tie.advice == "shared" and asked:  # its gradients are used, so that the losses cannot be added
        kind, tie = "freed_shared_grad", tie._replace(advice="shared_grad")
    facts.append(said(f"freed.advice_{tie.advice}", None, **shown))
    if tie.kind == "freed_carried":
        edits = tuple(_end_of_graph(program, name or root, stored)) if here is not None else ()
    else:
        edits = () if did is None or case.again or (edit := _retain(did)) is None else (edit,)
    params = {"node": op, "root": root}
    return ErrorCause(kind, tuple(facts), name or root, made, did, params, edits)


def _without_its_graph(program: Program, earlier: Any, root: str) -> ErrorCause | None:
    """Explain a graph that was freed by computing gradients which then went into the loss as plain values."""
    if earlier is None or earlier.call != "grad":
        return None
    cuts = [cut for node in program.nodes() for cut in cuts_into(node) if cut.reason == "create_graph"]
    cut = next((cut for cut in cuts if cut.spot is not None and cut.op == "grad"), None)  # not detached on purpose
    if cut is None or cut.spot is None or earlier.spot is None:
        return None
    did, by = cut.spot.place(), earlier.spot.place()
    facts = (
        said("freed.by_line", by, line=by.line),
        said("freed.create_graph", did, root=root, line=did.line, text=did.text),
        said("no_grad.advice_create_graph"),
    )
    return ErrorCause(
        "freed_create_graph", facts, root, None, did, {"root": root}, tuple(let_through("create_graph", did, None))
    )


def _end_of_graph(program: Program, name: str, stored: Place | None) -> Iterator[Edit]:
    """Yield the line that stores what is carried with it detached, then the backward with it detached behind it.

    Where the same iteration reads it once more from where it is stored, only the second keeps all gradients of that.
    """
    path = name.partition("[")[0]
    first, *attributes = path.split(".")
    value = program.variables.get(first)
    for attribute in attributes:
        value = getattr(value, attribute, None)
    if program.caller is None or value is None:
        return
    if stored is not None and "[" not in name.partition("]")[2] and isinstance(value, (torch.Tensor, tuple, list)):
        yield from kept_detached(stored, value)
    yield from detached(program.caller, path, value)


def _is_same_line(did: Place | None, here: Place | None) -> bool:
    return did is not None and here is not None and (did.line, did.file) == (here.line, here.file)


@dataclass
class _Case:
    """A second backward beside the first, and the variable that ties them.

    Attributes:
        name: the variable nearest to what was freed; empty where none is known.
        root: what the second backward differentiates.
        gone: nodes that an earlier backward freed.
        again: the same line ran both.
        looped: that line stands in a loop.
        twice: both differentiate the same tensor.
    """

    program: Program
    name: str
    root: str
    gone: set[Any]
    again: bool
    looped: bool
    twice: bool

    @property
    def shared(self) -> bool:
        """Another variable than the root holds what was freed."""
        return bool(self.name) and self.name != self.root

    @property
    def carried(self) -> bool:
        """A loop reads the variable before it assigns it, and this backward goes on into what it held before."""
        name = self.name if self.shared else self.root
        return _carried(self.program, name) and _goes_on(self.program, name, self.gone)

    @property
    def outside(self) -> bool:
        """The variable is assigned outside the loop."""
        return _made_in_loop(self.program, self.name if self.shared else self.root) is False


class _Tie(NamedTuple):
    """A kind of tie with its sentences: when it holds, the cause's code, the ids of what and of the advice."""

    holds: Callable[[_Case], bool]
    kind: str
    what: str
    advice: str


_TIES = (  # the first that holds
    _Tie(
        lambda c: c.shared and c.again and c.carried and not c.name.isidentifier(),
        "freed_carried", "carried", "carried_inside",
    ),
    _Tie(lambda c: c.again and c.carried, "freed_carried", "carried", "carried"),
    _Tie(
        lambda c: c.shared and c.again and c.looped and c.outside,
        "freed_shared", "shared_outside_loop", "outside_loop",
    ),
    _Tie(
        lambda c: c.shared and c.looped and c.carried and not c.name.isidentifier(),
        "freed_carried", "carried_on", "carried_inside",
    ),
    _Tie(lambda c: c.shared and c.looped and c.carried, "freed_carried", "carried_on", "carried"),
    _Tie(lambda c: c.shared, "freed_shared", "shared", "shared"),
    _Tie(lambda c: c.twice and c.again and c.looped and c.outside, "freed_again", "graph_outside_loop", "again"),
    _Tie(lambda c: c.twice, "freed_again", "again", "again"),
    # an iteration before is a part of it, by a way that has no name here
    _Tie(lambda c: c.again, "freed_carried", "carried_unnamed", "carried_unnamed"),
    _Tie(lambda c: True, "freed_again", "carried_unnamed", "carried_unnamed"),
)  # fmt: skip


def _freed_before(program: Program) -> list[Any]:
    """Return nodes that an earlier backward freed.

    The backward that raised has freed nodes as well, all that it came by. It goes from the newest to the oldest, so
    that the oldest of the freed ones was freed before.
    """
    gone = [node for node in program.nodes() if is_freed(node)]
    seen = [node for node in gone if freed_by(node) is not None]
    return seen or sorted(gone, key=lambda node: sequence_number(node) or 0)[:1]


def _entered(program: Program, gone: set[Any]) -> dict[tuple[str, int], Place]:
    """Return the lines that computed what this backward goes on into, where a watched run saw them."""
    nodes = program.nodes()
    # all that an earlier backward went through, also what had nothing saved; leaves belong to every backward
    old = gone | {node for node in nodes if freed_by(node) is not None and leaf_tensor(node) is None}
    entered = [f for node in nodes if node not in old for f, _ in node.next_functions if f in old]
    return {(place.file, place.line): place for node in entered if (place := made_at(node)) is not None}


def _goes_on(program: Program, name: str, gone: set[Any]) -> bool:
    """Return True where this backward goes on into what a variable held before, as far as that was seen.

    What it holds now an earlier backward went through as well, or the line that made it made what that one freed.
    """
    tensor = program.tensors.get(name)
    node = None if tensor is None else node_of(tensor)
    if program.watch is None or node is None:
        return program.watch is None
    made = made_at(node)
    return freed_by(node) is not None or (made is not None and (made.file, made.line) in _entered(program, gone))


def _twice(program: Program, did: Place | None, root: str) -> bool:
    """Return True where the earlier backward began at the same tensor."""
    if program.watch is not None:
        return any(freed_by(node) is not None for tensor in program.roots if (node := node_of(tensor)) is not None)
    for source in program.code:
        for statement in source.statements if did is not None and root else ():
            if statement.lineno < source.line and source.place(statement.lineno) == did:
                calls = [call for call in ast.walk(statement) if isinstance(call, ast.Call)]
                same = any(ast.unparse(part) == root for call in calls for part in _root(call))
                return same and (source.assigned_line(root) or source.line) < statement.lineno
    return False


def is_freed(node: Any) -> bool:
    """Return True for a node whose saved tensors are gone."""
    if function_of(node) is not None:
        return raw_slots(node, "tensors") is None
    return all_gone(node)


def _shared(program: Program, gone: set[Any]) -> str:
    """Return the variable nearest to what was freed, of those that hold a part of the graph with a freed node."""
    live = set(program.nodes())
    inner = {n: t for n, t in program.tensors.items() if not any(t is root for root in program.roots)}
    graphs = {name: behind(tensor) for name, tensor in inner.items()}
    found = {name: len(inside) for name, inside in graphs.items() if inside & gone}
    used = [name for name in found if node_of(inner[name]) in live]
    # in a loop what is carried ties the iterations, not what this one computed of it; what an earlier backward began at
    # and this one does not come by is an old result
    carried = [n for n in found if _carried(program, n) and (n in used or node_of(inner[n]) not in gone)]
    carried = [n for n in carried if _goes_on(program, n, gone)]
    went = [name for name in used if _went_before(program, name, gone)]
    tied = carried or [name for name in went if node_of(inner[name]) in gone] or went
    return min(tied, key=lambda name: (found[name], name.count("."), len(name)), default="")


def _went_before(program: Program, name: str, gone: set[Any]) -> bool:
    """Return True for a variable that the earlier backward went through as well, rather than what it was made of."""
    if program.watch is not None:
        node = node_of(program.tensors[name])  # what saves nothing is not gone itself
        return node in gone or (node is not None and freed_by(node) is not None)
    # of what a loop makes anew the graph may be gone by this backward alone
    looped = any(source.line in source.in_loops for source in program.code)
    return not looped or _made_in_loop(program, name) is False


def _earlier_line(program: Program, gone: set[Any]) -> Place | None:
    """Return the line that freed the graph, where it must have: its own loss goes through what is freed.

    A backward after that would have raised itself, so that it does not matter what else ran. A loop may be in its first
    iteration; then the line that raised is no earlier one.
    """
    for source in program.code:
        calls = [s for s in source.statements if s.lineno <= source.line and _differentiates(s)]
        others = [s for s in calls if not s.lineno <= source.line <= (s.end_lineno or s.lineno)]
        for statement in others:
            if statement.lineno not in source.uncertain and _goes_through(statement, source, gone):
                return source.place(statement.lineno)
        here = [s for s in others if s.lineno > source.offset]  # in the same cell
        if not here and calls and _later_iteration(source):
            return source.place(source.line)
        if here:
            return None
    return None


def _goes_through(statement: ast.stmt, source: Source, gone: set[Any]) -> bool:
    """Return True where what a statement differentiates is computed from a tensor whose graph holds freed nodes."""
    roots = [root for call in ast.walk(statement) if isinstance(call, ast.Call) for root in _root(call)]
    return any(_leads(root, statement.lineno, source, gone) for root in roots)


def _leads(expression: ast.expr, line: int, source: Source, gone: set[Any]) -> bool:
    """Return True where a value that a line used was computed from a tensor whose graph holds freed nodes.

    A variable that has another value by now counts by what it was assigned, where torch alone computed that.
    """
    if any(isinstance(n, ast.Attribute) and n.attr in ("detach", "data") for n in ast.walk(expression)):
        return False
    for name in {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}:
        setting = [s for s in source.ran if name in targets(s)]
        if all(s.lineno <= line for s in setting):
            value = source.variables.get(name)
            if isinstance(value, torch.Tensor) and behind(value) & gone:
                return True
            continue
        last = max((s for s in setting if s.lineno < line), key=lambda s: s.lineno, default=None)
        plain = isinstance(last, ast.Assign) and last.lineno not in source.uncertain and not source.runs_more(last)
        if plain and isinstance(last, ast.Assign) and _leads(last.value, last.lineno - 1, source, gone):
            return True
    return False


def _root(call: ast.Call) -> list[ast.expr]:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and not _is_torch(call.func.value):
        return [call.func.value]
    named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return call.args[:1] if named in DIFFERENTIATES else []


def _is_torch(expression: ast.expr) -> bool:
    return ast.unparse(expression) in ("torch.autograd", "autograd")


def _later_iteration(source: Source) -> bool:
    """Return True where the line that raised stands in a loop whose counter is past its first value."""
    loops = [s for s in source.statements if isinstance(s, ast.For) and s.lineno <= source.line <= (s.end_lineno or 0)]
    branches = [s for s in source.statements if isinstance(s, (ast.If, ast.Try))]
    if any(s.lineno <= source.line <= (s.end_lineno or 0) for s in branches):
        return False
    for loop in loops:
        counted = loop.iter.args[0] if _calls(loop.iter, "range") and len(loop.iter.args) == 1 else None  # type: ignore[attr-defined]
        target = loop.target if counted is not None else None
        if _calls(loop.iter, "enumerate") and isinstance(loop.target, ast.Tuple):
            target = loop.target.elts[0]
        value = source.variables.get(target.id) if isinstance(target, ast.Name) else None
        if isinstance(value, int) and value > 0:
            return True
    return False


def _calls(expression: ast.expr, name: str) -> bool:
    return isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name) and expression.func.id == name


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
    root = re.split(r"[.\[]", name, maxsplit=1)[0]
    owner = name.partition("[")[0]  # of an element the container
    stored = [n for n in ast.walk(loop) if _is(n, owner, ast.Store)]
    read = [n for n in ast.walk(loop) if _is(n, owner, ast.Load)]
    if not stored:
        return ("." in name and root != name) or (
            _grows(loop, owner) if owner != name else _has_places_written(loop, name)
        )
    return bool(read) and min(n.lineno for n in read) <= min(n.lineno for n in stored)  # type: ignore[attr-defined]


def _grows(loop: ast.For | ast.While, container: str) -> bool:
    """Return True where a loop calls a method of a container that may change it, or assigns a place in it."""
    calls = [n.func for n in ast.walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    methods = [function.value for function in calls if function.attr not in READS]
    return any(ast.unparse(part) == container for part in methods) or _has_places_written(loop, container)


def _has_places_written(loop: ast.For | ast.While, name: str) -> bool:
    """Return True where a loop assigns a place in a container or tensor."""
    places = [n.value for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return any(ast.unparse(part) == name for part in places)


def _is(node: ast.AST, name: str, ctx: type) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ctx) and ast.unparse(node) == name


def _made_in_loop(program: Program, name: str) -> bool | None:
    """Return True for a variable that a loop assigns, False for one assigned outside; None where that is not shown."""
    lines = [(source, source.assigned_line(name)) for source in program.code]
    inside = [line in source.in_loops for source, line in lines if line is not None]
    return inside[0] if inside else None


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
