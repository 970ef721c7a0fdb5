"""Errors about a Function's own methods and the line in them: number, shape, dtype, device, marks, saved tensors."""

from __future__ import annotations

import ast
import re
from typing import Any

from nbautograd.core.explaining.cause import ErrorCause, SourceLine, finding
from nbautograd.core.explaining.program import Program, cell_number
from nbautograd.core.torch_private.nodes import function_of
from nbautograd.core.user_source import FunctionSource, assignments, read_source, returns, tree_of
from nbautograd.core.values import sizes_text

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
    method = "forward" if kind in ("mark_dirty", "save_for_backward") else "backward"
    did = _line(program, source, index, method, kind)
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
    which = "what" if did is not None else "unplaced" if named and argument else "known"
    facts = (finding(f"{kind}.{which}", did, **shown), finding(f"{kind}.rule", None, **shown))
    return ErrorCause(kind, facts, argument if named else "", None, did, shown)


def _is_sure(source: FunctionSource, name: str | None) -> bool:
    """Return True where backward returns at one place what one line, or the last of several outside blocks, gave."""
    tree = tree_of(source.text)
    methods = (
        [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in ("backward", "vjp")] if tree else []
    )
    if len(methods) != 1 or len(returns(methods[0])) != 1:
        return False
    given = [e.lineno for e in assignments(methods[0], name or "") if getattr(e, "value", "") is not None]
    blocks = [n for n in ast.walk(methods[0]) if isinstance(n, (ast.If, ast.For, ast.While, ast.Try))]
    return len(given) < 2 or not any(b.lineno <= line <= (b.end_lineno or 0) for b in blocks for line in given)


def _function(program: Program) -> type | None:
    """Return the Function that torch complains of: by its name, else the only one of the user's in the graph."""
    functions = {cls for node in program.nodes() if (cls := function_of(node)) is not None}
    named = NAME.search(str(program.error))
    if named is not None:
        return next((cls for cls in functions if cls.__name__ == named[1]), None)
    for frame, _ in reversed(program.frames):
        values = {**frame.f_globals, **frame.f_locals}
        classes = [v for v in values.values() if isinstance(v, type) and hasattr(v, "backward") and hasattr(v, "apply")]
        inside = [cls for cls in classes if _runs(cls, frame.f_code)]
        if inside:
            return inside[0]
    if len(functions) == 1:
        return functions.pop()
    called = [name for name in _calls(program) if name in program.variables]
    found = [program.variables[name] for name in called if isinstance(program.variables[name], type)]
    return found[0] if found else None


def _calls(program: Program) -> list[str]:
    here = program.caller
    return re.findall(r"(\w+)\.apply\(", here.text) if here is not None else []


def _runs(cls: type, code: Any) -> bool:
    methods = (getattr(cls, name, None) for name in ("forward", "backward", "setup_context"))
    return any(getattr(method, "__code__", None) is code for method in methods)


def _line(program: Program, source: FunctionSource, index: int, method: str, kind: str) -> SourceLine | None:
    """Return the line of the value that was returned, or of the call in forward."""
    line: int | None = None
    if method == "forward":
        name = "mark_dirty(" if kind == "mark_dirty" else "save_for_backward("
        rows = source.text.splitlines()
        hits = [source.first_line + k for k, row in enumerate(rows) if name in row]
        line = hits[0] if len(hits) == 1 else None
    elif kind in ("returned_number", "returned_type"):
        rows = source.text.splitlines()
        begin = source.lines.get("backward", source.first_line) - source.first_line
        hits = [source.first_line + k for k, row in enumerate(rows) if k >= begin and row.strip().startswith("return")]
        line = hits[0] if len(hits) == 1 else None
    elif 0 <= index < len(source.gradients) and _is_sure(source, source.gradients[index].name):
        line = source.gradients[index].line
    if line is None:
        return None
    rows = source.text.splitlines()
    at = line - source.first_line
    text = rows[at].strip() if 0 <= at < len(rows) else ""
    return SourceLine(line, text, f"{source.name}.{method}", source.file, cell_number(source.file, program.variables))
