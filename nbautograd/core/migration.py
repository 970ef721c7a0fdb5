"""Instance-style Functions of old torch: recognised, explained, and rewritten as static ones that run today."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import NamedTuple

from nbautograd.core import user_source
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.user_source import as_written, methods_of, read_source


@dataclass(frozen=True)
class Legacy:
    """Facts of an instance-style Function.

    Attributes:
        name: the class's name.
        migrated: source of the same Function with static methods, ready to run; empty when it could not be made.
        before: the call as it was written for old torch, such as ``"AddConstant(constant)(tensor)"``.
        after: the call to use instead, such as ``"AddConstant.apply(tensor, constant)"``.
        findings: what to tell the reader.
    """

    name: str
    migrated: str
    before: str
    after: str
    findings: tuple[Finding, ...]


def recognise(cls: type) -> Legacy | None:
    """Recognise a Function of old torch, with instance methods that use ``self``.

    Returns:
        What it is and how to write it today; None for a Function with static methods, and for one that merely lacks
        ``@staticmethod`` on methods that take ctx.
    """
    forward = as_written(vars(cls).get("forward"))
    if not isinstance(forward, FunctionType):
        return None
    code = methods_of(cls).code("forward")
    first = code.co_varnames[0] if code is not None and code.co_argcount else ""
    if first != "self" and not isinstance(vars(cls).get("__init__"), FunctionType):
        return None
    source = read_source(cls)
    name, line = cls.__name__, source.lines.get("forward") if source is not None else None
    migration = migrate(source.text, name) if source is not None else None
    text, before, after = migration or ("", f"{name}()(...)", f"{name}.apply(...)")
    params = {"function": name, "before": before, "after": after, "line": line}
    fix = Fix(text, verified=False, line=None) if text else None
    found = Finding("legacy", "bug", "recording.legacy", params, None, line, fix)
    return Legacy(name, text, before, after, (found,))


Edit = tuple[tuple[int, int], tuple[int, int], str]  # (line, byte column) of start and end, new text


class Migration(NamedTuple):
    """The rewritten class and how it is called, then and now."""

    source: str
    before: str
    after: str


def migrate(text: str, name: str) -> Migration | None:
    """Rewrite the class in this text; None when it is not one class with forward, or the result would not parse.

    The arguments of ``__init__`` become further arguments of forward, whose gradient is None.
    """
    tree = user_source.tree_of(text)
    body = [] if tree is None else tree.body
    cls = body[0] if len(body) == 1 and isinstance(body[0], ast.ClassDef) else None
    methods = {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)} if cls is not None else {}
    if "forward" not in methods or not user_source.parameters(methods["forward"]):
        return None
    extra = [name for name, _ in _extra(methods)]
    migrated = _apply(text, list(_edits(text, name, dict(methods))))
    try:
        ast.parse(migrated)
    except SyntaxError:
        return None
    inputs = user_source.parameters(methods["forward"])[1:]
    before = f"{name}({', '.join(extra)})({', '.join(inputs)})"
    given = [*extra, *inputs] if _in_front(methods) else [*inputs, *extra]
    return Migration(migrated, before, f"{name}.apply({', '.join(given)})")


def _extra(methods: dict[str, ast.FunctionDef]) -> list[tuple[str, str | None]]:
    init = methods.get("__init__")
    if init is None:
        return []
    arguments = [*init.args.posonlyargs, *init.args.args][1:]
    without = max(len(arguments) - len(init.args.defaults), 0)
    defaults: list[str | None] = [None] * without + [ast.unparse(d) for d in init.args.defaults]
    named = list(zip((a.arg for a in arguments), defaults, strict=False))
    only = zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True)
    return named + [(a.arg, None if d is None else ast.unparse(d)) for a, d in only]


def _in_front(methods: dict[str, ast.FunctionDef]) -> bool:
    return methods["forward"].args.vararg is not None


def _edits(text: str, name: str, methods: dict[str, ast.FunctionDef]) -> Iterator[Edit]:
    extra = _extra(methods)
    others = [m for m in methods if m not in ("__init__", "forward", "backward")]
    init = methods.pop("__init__", None)
    if init is not None:
        lines, end = text.splitlines(), init.end_lineno or init.lineno
        while end < len(lines) and not lines[end].strip():
            end += 1
        yield (user_source.first_line(init), 0), (end + 1, 0), ""
    for method in methods.values():
        if method.decorator_list or not user_source.parameters(method) or method.name.startswith("__"):
            continue
        yield (method.lineno, 0), (method.lineno, 0), " " * method.col_offset + "@staticmethod\n"
        yield from _self_to_ctx(method, name, others)
    forward = methods["forward"]
    if extra:
        yield _more_parameters(forward, extra, _in_front(methods))
    if init is not None:
        yield from _initialised_in_forward(init, forward)
    if extra and "backward" in methods:
        for statement in user_source.returns(methods["backward"]):
            yield from _more_nones(statement, len(extra), forward, _in_front(methods))


def _self_to_ctx(method: ast.FunctionDef, name: str, others: list[str]) -> Iterator[Edit]:
    first = [*method.args.posonlyargs, *method.args.args][0]
    yield _at(first, first.col_offset + len(first.arg.encode()), "ctx")
    calls = {id(n.func): n for n in ast.walk(method) if isinstance(n, ast.Call)}
    own = {id(f.value): calls[id(f)] for f in _attributes(method) if id(f) in calls and f.attr in others}
    for node in ast.walk(method):
        if isinstance(node, ast.Name) and node.id == first.arg:
            call = own.get(id(node))
            yield _at(node, node.end_col_offset or 0, name if call is not None else "ctx")
            if call is not None:
                opened = (call.func.end_lineno or 0, (call.func.end_col_offset or 0) + 1)
                yield opened, opened, "ctx, " if call.args or call.keywords else "ctx"
    for attribute in _attributes(method):
        if attribute.attr == "saved_variables":
            end = (attribute.end_lineno or 0, attribute.end_col_offset or 0)
            yield (end[0], end[1] - len("saved_variables")), end, "saved_tensors"


def _attributes(method: ast.FunctionDef) -> Iterator[ast.Attribute]:
    first = [*method.args.posonlyargs, *method.args.args][0].arg
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == first:
            yield node


def _at(node: ast.arg | ast.Name, end: int, text: str) -> Edit:
    return (node.lineno, node.col_offset), (node.lineno, end), text


def _more_parameters(forward: ast.FunctionDef, extra: list[tuple[str, str | None]], in_front: bool) -> Edit:
    arguments = [*forward.args.posonlyargs, *forward.args.args]
    needs_default = bool(forward.args.defaults) and not in_front
    added = []
    for name, default in extra:
        needs_default = needs_default or default is not None
        added.append(f", {name}={default or 'None'}" if needs_default and not in_front else f", {name}")
    last: ast.expr | ast.arg = arguments[0] if in_front else arguments[-1]
    if forward.args.defaults and not in_front:
        last = forward.args.defaults[-1]
    place = (last.end_lineno or 0, last.end_col_offset or 0)
    return place, place, "".join(added)


def _initialised_in_forward(init: ast.FunctionDef, forward: ast.FunctionDef) -> Iterator[Edit]:
    """Set on ctx at the start of forward what ``__init__`` set on self."""
    first = init.args.args[0].arg if init.args.args else "self"
    kept = [s for s in init.body if not _docstring(s) and not isinstance(s, ast.Pass)]
    statements = [s for s in kept if not (isinstance(s, ast.Expr) and ".__init__(" in ast.unparse(s))]
    body = forward.body[1:] if _docstring(forward.body[0]) and len(forward.body) > 1 else forward.body
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == first:
                node.id = "ctx"
        place = (body[0].lineno, 0)
        indent = " " * body[0].col_offset
        yield place, place, "".join(f"{indent}{line}\n" for line in ast.unparse(statement).splitlines())


def _docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _more_nones(statement: ast.Return, count: int, forward: ast.FunctionDef, in_front: bool) -> Iterator[Edit]:
    """Yield a None for each argument that came from ``__init__``, at its position."""
    value = statement.value
    assert value is not None
    nones = ", ".join(["None"] * count)
    start, end = (value.lineno, value.col_offset), (value.end_lineno or 0, value.end_col_offset or 0)
    one_input = len(user_source.parameters(forward)) == 2 and forward.args.vararg is None
    if isinstance(value, ast.Tuple) and value.elts:
        first, last = value.elts[0], value.elts[-1]
        end = (last.end_lineno or 0, last.end_col_offset or 0)
        start = (first.lineno, first.col_offset)
        yield (start, start, f"{nones}, ") if in_front else (end, end, f", {nones}")
    elif one_input:
        yield end, end, f", {nones}"
    else:
        yield start, start, f"({nones}, *" if in_front else "(*"
        yield end, end, ")" if in_front else f", {nones})"


def _apply(text: str, edits: list[Edit]) -> str:
    raw = text.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    starts.append(starts[-1])

    def offset(place: tuple[int, int]) -> int:
        return min(starts[min(place[0] - 1, len(starts) - 1)] + place[1], len(raw))

    spans = [(offset(start), offset(end), new.encode()) for start, end, new in edits]
    for _, (start, end, new) in sorted(enumerate(spans), key=lambda e: (e[1][0], e[0]), reverse=True):
        raw = raw[:start] + new + raw[end:]
    return raw.decode()
