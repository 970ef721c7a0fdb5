"""In place: the node whose saved tensor is no longer what it was, and the line that wrote into it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch

from nbautograd.core import user_source
from nbautograd.core.explaining.cause import Edit, ErrorCause, Place, finding
from nbautograd.core.explaining.program import Program, Source, shares, targets, window
from nbautograd.core.explaining.watch import Write, creation_line, node_line
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.saved import changed_slots
from nbautograd.core.torch_private.nodes import (
    function_of,
    node_name,
    raw_slot_names,
    raw_slots,
    saved_peek,
    sequence_number,
)
from nbautograd.core.torch_private.tensors import storage_address
from nbautograd.core.values import sizes_text

MOST_OTHERS = 3  # lines that are named beside the first
_REFUSAL = re.compile(r"\[[\w.]+ \[([\d, ]*)\]\].* is at version (\d+); expected version (\d+)")


def in_place(program: Program) -> ErrorCause | None:
    """Explain the error on a tensor that was changed after it was saved; None where no node is broken."""
    broken = _broken(program)
    if not broken:
        return None
    node, slot, tensor, saved, now = broken[0]
    write = _first_write(program, node, tensor, saved)
    statement = None if program.watch is not None else _only_statement(program, tensor, saved, now)
    did = write.spot.place() if write is not None and write.spot is not None else None
    if did is None and statement is not None:
        did = statement[0].place(statement[1].lineno)
    name = program.name_of(tensor)
    written = write.window if write is not None else _written_window(program, statement)
    if write is not None:
        name = name if name and written == window(tensor) else write.name
    elif statement is not None and (not name or written not in (None, window(tensor))):
        name = _written_name(statement)
    saved_at = node_line(node) or program.line_of_node(node)
    own = slot.startswith("result") and function_of(node) is None  # the node made what it saved
    named = program.tensors.get(name)
    made = creation_line(program, name, named)
    if named is None and write is not None:
        made = None if write.created is None else write.created.place()
    root = tensor if tensor._base is None else tensor._base
    step = did is not None and ".step(" in did.text and root.is_leaf and root.requires_grad
    facts = _facts(node, own, tensor, name, saved_at, did, write, now - saved)
    facts += _view_of(program, name, write) + ([] if did is None else _others(program, broken, did))
    params = {"node": node_name(node), "slot": slot, "saved": saved, "now": now, "shape": tuple(tensor.shape)}
    edits = () if did is None or step else tuple(out_of_place(did, name))
    kind = "in_place_step" if step else "in_place"
    facts.append(finding("in_place.rule_step" if step else "in_place.rule"))
    return ErrorCause(kind, tuple(facts), name, made, did, params, edits, None if made == saved_at else saved_at)


def view_written(program: Program) -> ErrorCause:
    """Explain a saved view that torch refuses in backward, since the tensor that it is a view of was written into."""
    for node in sorted(program.nodes(), key=lambda node: sequence_number(node) or 0, reverse=True):
        for tensor in _refused(node, str(program.error)):
            write = _write_behind(program, node, tensor)
            if write is None or write.spot is None:
                break
            did, saved_at = write.spot.place(), node_line(node)
            facts = _facts(node, False, tensor, write.name, saved_at, did, write, 0)
            facts += [*_view_of(program, write.name, write), finding("in_place.rule")]
            edits = tuple(out_of_place(did, write.name))
            return ErrorCause("in_place", tuple(facts), write.name, None, did, {}, edits, saved_at)
    return ErrorCause("in_place", (finding("in_place.view_known"), finding("in_place.rule")))


def _refused(node: Any, words: str) -> Iterator[torch.Tensor]:
    """Yield what a node saved and torch refuses to give out, in some words."""
    for name in raw_slot_names(type(node)):
        for _, slot in raw_slots(node, name) or ():
            tensor = saved_peek(slot)[0]
            try:
                if tensor is not None:
                    slot.unpack()
            except RuntimeError as error:
                if str(error) == words and tensor is not None:
                    yield tensor


def _write_behind(program: Program, node: Any, tensor: torch.Tensor) -> Write | None:
    """Return the first write into a tensor's memory after a node was made, as a watched run saw it."""
    writes = () if program.watch is None else program.watch.writes
    made = sequence_number(node)
    behind = (w for w in writes if w.storage == storage_address(tensor) and made is not None and w.number > made)
    return next(behind, None)


_Broken = tuple[Any, str, torch.Tensor, int, int]  # a node, its slot and tensor, its version when saved and now


def _broken(program: Program) -> list[_Broken]:
    """Return what was changed since it was saved, first what torch refused: the newest that its error describes.

    Without a watched run nothing could be said of the others, so that only that one is looked for.
    """
    told = _REFUSAL.search(str(program.error))
    shape = None if told is None else tuple(int(size) for size in told[1].split(",") if size.strip())
    found: list[_Broken] = []
    first: _Broken | None = None
    for node in sorted(program.nodes(), key=lambda node: sequence_number(node) or 0, reverse=True):
        for slot, tensor, saved, now in changed_slots(node):
            found.append((node, slot, tensor, saved, now))
            fits = told is not None and (tuple(tensor.shape), saved, now) == (shape, int(told[3]), int(told[2]))
            first = first or (found[-1] if fits else None)
        if first is not None and program.watch is None:
            return [first]
    return found if first is None else [first, *(one for one in found if one is not first)]


def _view_of(program: Program, name: str, write: Write | None) -> list[Finding]:
    """Return which line made what the written tensor is a view of, where it has a name of its own."""
    if write is not None:
        # what the same line made has no name by which anybody would read it
        name, place = write.name, None if write.of is None or write.of == write.created else write.of.place()
    else:
        tensor = program.tensors.get(name)
        base = None if tensor is None else tensor._base
        place = None if base is None else program.line_of_tensor(program.name_of(base))
    if not name or place is None:
        return []
    return [finding("in_place.view_of", place, name=name, line=place.line, text=place.text)]


def _others(program: Program, broken: list[_Broken], did: Place) -> list[Finding]:
    """Return the other lines that changed what the graph had saved; torch's error speaks of one tensor alone."""
    writes = [_first_write(program, node, tensor, saved) for node, _, tensor, saved, _ in broken]
    places = [write.spot.place() for write in writes if write is not None and write.spot is not None]
    found = {(place.file, place.line): place for place in places if (place.file, place.line) != (did.file, did.line)}
    return [
        finding("in_place.others", place, line=place.line, text=place.text) for place in [*found.values()][:MOST_OTHERS]
    ]


def _written_name(statement: tuple[Source, ast.stmt] | None) -> str:
    written = _written(statement[1]) if statement is not None else None
    return "" if written is None else _base(written)


def _written_window(program: Program, statement: tuple[Source, ast.stmt] | None) -> Any:
    tensor = program.tensors.get(_written_name(statement))
    return None if tensor is None else window(tensor)


def _facts(
    node: Any,
    own: bool,
    tensor: torch.Tensor,
    name: str,
    saved_at: Place | None,
    did: Place | None,
    write: Write | None,
    versions: int,
) -> list[Finding]:
    """Return what changed the tensor, and what had saved it before."""
    op = node_name(node).removesuffix("Backward0").removesuffix("Backward1").removesuffix("Backward")
    shown: dict[str, Any] = {"name": name, "op": op, "versions": versions, "shape": sizes_text(tensor.shape)}
    unnamed = "" if name else "_unnamed"
    if did is None:
        first = finding(f"in_place.changed_somewhere{unnamed}", None, **shown)
    elif write is not None and write.module is not None:
        module = {"module": write.module[0], "kind": write.module[1]}
        first = finding("in_place.module", did, line=did.line, text=did.text, **module)
    else:
        first = finding(f"in_place.changed{unnamed}", did, **shown, line=did.line, text=did.text)
    which = ("in_place.saved_result" if own else "in_place.saved") + ("" if saved_at is None else "_at")
    return [first, finding(which, saved_at, **shown, line=saved_at.line if saved_at else 0)]


def _first_write(program: Program, node: Any, tensor: torch.Tensor, saved: int) -> Write | None:
    """Return the first write after the version that a node saved, as a watched run saw it."""
    made = sequence_number(node) or 0  # earlier writes there were into other tensors
    writes = () if program.watch is None else program.watch.writes
    behind = [w for w in writes if w.storage == storage_address(tensor) and w.number >= made]
    return next((w for w in reversed(behind) if w.before <= saved < w.after), None)


def _candidates(program: Program, tensor: torch.Tensor) -> list[tuple[Source, ast.stmt, str]]:
    """Return the statements that write into a tensor, as the source reads, since its variables have their value."""
    names = set(program.names_sharing(tensor))
    return [
        (source, s, kind)
        for source in program.code
        for s in source.ran
        if (kind := writes(s, names, program, tensor)) and not _anew(source, s, names)
    ]


def _anew(source: Source, statement: ast.stmt, names: set[str]) -> bool:
    """Return True where a later statement gives a variable that this one mentions another value."""
    mentioned = {ast.unparse(n) for n in ast.walk(statement) if isinstance(n, (ast.Name, ast.Attribute))} & names
    later = (s for s in source.ran if s.lineno > statement.lineno and s.lineno not in source.uncertain)
    return any(targets(s) & mentioned and not isinstance(s, ast.AugAssign) for s in later)


def _only_statement(program: Program, tensor: torch.Tensor, saved: int, now: int) -> tuple[Source, ast.stmt] | None:
    """Return the statement that moved a tensor from the version that was saved to the next, where that is certain.

    A tensor's version counts the writes into its memory. Outside loops, when as many statements write as the version
    says, they are all there is, and they ran in the order in which they stand. An optimizer's step counts once where
    what is differentiated was computed before it, and no other statement writes.
    """
    found = _candidates(program, tensor)
    if len({source.text for source, _, _ in found}) != 1:
        return None
    source, (statement, kind) = found[0][0], found[0][1:]
    looped = any(s.lineno in source.uncertain or s.lineno > source.line for _, s, _ in found)
    if kind == "write" and not looped and len(found) == now:
        found = sorted(found, key=lambda one: one[1].lineno)
        return found[saved][0], found[saved][1]
    roots = [name for name, t in program.tensors.items() if any(t is root for root in program.roots)]
    lines = [line for name in roots if (line := source.assigned_line(name)) is not None]
    before = [line for line in lines if line < statement.lineno]
    if (
        kind == "step"
        and len(found) == 1
        and before
        and before[0] not in source.uncertain
        and statement.lineno not in source.uncertain
    ):
        return source, statement
    return None


def writes(statement: ast.stmt, names: set[str], program: Program, tensor: torch.Tensor) -> str:
    """Return ``"write"`` for a statement that writes into one of some variables, ``"step"`` for an optimizer's step."""
    if isinstance(statement, ast.AugAssign):
        return "write" if _base(statement.target) in names else ""
    if isinstance(statement, ast.Assign):
        subscripts = [
            part for target in statement.targets for part in ast.walk(target) if isinstance(part, ast.Subscript)
        ]
        if any(_base(part) in names for part in subscripts if isinstance(part.ctx, ast.Store)):
            return "write"
    if isinstance(statement, (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef)):
        return ""
    for call in [part for part in ast.walk(statement) if isinstance(part, ast.Call)]:
        if _in_place_call(call, names, program.variables):
            return "write"
        if _steps(call, program, tensor):
            return "step"
    return ""


def _in_place_call(call: ast.Call, names: set[str], variables: Mapping[str, Any]) -> bool:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    own = user_source.in_place(method)
    if own and isinstance(call.func, ast.Attribute) and _base(call.func.value) in names:
        return True
    owner = next((n.id for n in ast.walk(call.func) if isinstance(n, ast.Name)), "")  # torch.relu_(y), init.zeros_(y)
    of_torch = isinstance(variables.get(owner), ModuleType) or isinstance(call.func, ast.Name)
    of_torch = of_torch and own and any(_base(argument) in names for argument in call.args[:1])
    keywords = {k.arg: k.value for k in call.keywords}
    inplace = isinstance(keywords.get("inplace"), ast.Constant) and bool(keywords["inplace"].value)  # type: ignore[attr-defined]
    out = keywords.get("out")
    return (
        of_torch or (inplace and any(_base(a) in names for a in call.args)) or (out is not None and _base(out) in names)
    )


def _steps(call: ast.Call, program: Program, tensor: torch.Tensor) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "step"):
        return False
    owner = program.variables.get(ast.unparse(call.func.value))
    groups = owner.param_groups if isinstance(owner, torch.optim.Optimizer) else []
    return any(shares(parameter, tensor) for group in groups for parameter in group["params"])


def _base(expression: ast.expr) -> str:
    """Return the variable that an expression such as ``y[0]`` is a part of; ``y.data`` has versions of its own."""
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


def out_of_place(did: Place, name: str) -> Iterator[Edit]:
    """Yield changes of a line that writes, so that it makes a new tensor instead."""
    try:
        statement = ast.parse(did.text).body[0]
    except (SyntaxError, IndexError):
        return
    after = None
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
        yield Edit(did.file, did.line, did.text, after)
    target = _base(_written(statement)) if _written(statement) is not None else name  # type: ignore[arg-type]
    if target.isidentifier() or target.startswith("self."):
        yield Edit(did.file, did.line, did.text, f"{target} = {target}.clone()\n{did.text}")


def _written(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.AugAssign):
        return statement.target
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return statement.targets[0]
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.value if value.func.attr.endswith("_") else None
    return None
