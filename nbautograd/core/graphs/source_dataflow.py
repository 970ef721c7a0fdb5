"""Dataflow: follow a tensor statement by statement through the calling code, to the line that cuts it off.

Nothing is run: the source is read in order, and of each variable it is kept whether a gradient could get through it to
the tensor, or else which line cut it off. Only a line that must have run is named: none of a branch, and none of a
function that is called, through which a gradient is taken to get.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import FrameType, FunctionType
from typing import Any

import torch
from torch import nn

from nbautograd.core.graphs.names import calling_frame, variables_of
from nbautograd.core.user_source import in_place, tree_of

CELLS = 20  # how many of the notebook's latest cells are looked at
CUTTING = {
    **dict.fromkeys(("detach", "detach_", "data"), "detach"),
    **dict.fromkeys(("item", "tolist", "numpy"), "python"),
    **dict.fromkeys(("long", "int", "bool", "short", "byte", "argmax", "argmin", "argsort"), "integer"),
}
KINDS = (ast.AugAssign, ast.Assign, ast.Call)
SILENT = {"no_grad", "inference_mode"}
OTHERS = ("torch", "numpy")  # packages whose functions are told by their names
NEW = {"tensor", "from_numpy", "array", "asarray", "float", "int", "bool"}  # give something without a graph
WHOLE = {"argmax", "argmin", "argsort"}  # give integers
GROWING = {"append", "extend", "insert", "add", "update", "setdefault"}
INTEGERS = ("long", "int", "bool", "uint8", "short")


@dataclass(frozen=True)
class Cut:
    """A line that takes a tensor out of the graph.

    Attributes:
        reason: ``"detach"``, ``"python"`` (a Python number, list or array was made), ``"integer"`` or ``"no_grad"``.
        line: in the cell or file, from 1.
        text: what is written there, such as ``"a.detach()"``.
    """

    reason: str
    line: int
    text: str


@dataclass(frozen=True)
class Flow:
    """The tensor's presence in a value: alive, or cut off.

    Attributes:
        alive: whether a gradient could get through it to the tensor.
        cut: what cut a part of it off, if anything did.
    """

    alive: bool = False
    cut: Cut | None = None

    def __or__(self, other: Flow) -> Flow:
        return Flow(self.alive or other.alive, self.cut or other.cut)


@dataclass
class Frame:
    """Variables of the calling code, while it is read.

    Attributes:
        values: what names stand for now, to tell the user's functions from torch's and numpy's.
        alive: variables, and paths of parameters, through which a gradient could get to the tensor.
        dead: variables that were made of the tensor, with what cut them off.
        silent: what is written where gradients are off; else empty.
        branches: how many branches enclose the statement.
        held: variables that hold the tensor itself now, whatever the source assigned to them before.
    """

    values: dict[str, Any]
    alive: set[str] = field(default_factory=set)
    dead: dict[str, Cut] = field(default_factory=dict)
    silent: str = ""
    branches: int = 0
    held: frozenset[str] = frozenset()


class DataflowReader:
    """Reads statements."""

    def read(self, statements: Iterable[ast.stmt], frame: Frame) -> None:
        """Read statements in order."""
        for statement in statements:
            self._statement(statement, frame)

    def _statement(self, node: ast.stmt, frame: Frame) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assign(node, frame)
        elif isinstance(node, ast.Expr):
            self._grow(node.value, frame)
        elif isinstance(node, ast.With):
            outside = frame.silent
            frame.silent = silence(node) or outside
            self.read(node.body, frame)
            frame.silent = outside
        elif isinstance(node, (ast.If, ast.For, ast.While, ast.Try)):
            frame.branches += isinstance(node, ast.If)
            if isinstance(node, ast.For):
                assign(node.target, self.flow(node.iter, frame), frame)
            for body in (node.body, node.orelse, getattr(node, "finalbody", [])):
                self.read(body, frame)
            frame.branches -= isinstance(node, ast.If)
        for branch in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            frame.branches += 1
            self.read(branch.body, frame)
            frame.branches -= 1

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, frame: Frame) -> None:
        flow = self._silenced(self.flow(node.value, frame), node, frame)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(node, ast.AugAssign):
                flow |= self.flow(target, frame)
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            for part in parts:
                assign(part, flow, frame, keep=isinstance(part, ast.Subscript))

    def _silenced(self, flow: Flow, node: ast.stmt | ast.expr, frame: Frame) -> Flow:
        if not (frame.silent and flow.alive) or frame.branches:
            return flow
        return Flow(False, flow.cut or Cut("no_grad", node.lineno, f"with {frame.silent}"))

    def _grow(self, node: ast.expr, frame: Frame) -> None:
        """Follow a call for its effect: something may be put into a list, an object or the memory of a tensor."""
        flow = self.flow(node, frame)
        if isinstance(node, ast.Call):
            into = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
            if isinstance(node.func, ast.Attribute):
                into += [node.func.value] if node.func.attr in GROWING or in_place(node.func.attr) else []
            elif getattr(node.func, "id", "") == "setattr":
                into += node.args[:1]
            for target in into:
                assign(target, self._silenced(flow, node, frame), frame, keep=True)

    def flow(self, node: ast.expr | None, frame: Frame) -> Flow:
        """Read an expression: does its value hold the tensor, alive or cut off."""
        if node is None or isinstance(node, (ast.Lambda, ast.Constant)):
            return Flow()
        if isinstance(node, (ast.Name, ast.Attribute)) and (known := _known(ast.unparse(node), frame)) is not None:
            return known
        if isinstance(node, ast.Attribute):
            return self._leaving(node.attr == "data", "detach", self.flow(node.value, frame), node, frame)
        if isinstance(node, ast.Compare):
            return self._leaving(True, "integer", self._all(ast.iter_child_nodes(node), frame), node, frame)
        if isinstance(node, ast.Call):
            return self._call(node, frame)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            for generator in node.generators:
                assign(generator.target, self.flow(generator.iter, frame), frame)
            return self.flow(node.elt, frame)
        return self._all(ast.iter_child_nodes(node), frame)

    def _all(self, nodes: Iterable[ast.AST], frame: Frame) -> Flow:
        flow = Flow()
        for node in nodes:
            if isinstance(node, ast.expr):
                flow |= self.flow(node, frame)
            elif isinstance(node, (ast.keyword, ast.comprehension)):
                flow |= self._all([node.value if isinstance(node, ast.keyword) else node.iter], frame)
        return flow

    def _leaving(self, cuts: bool, reason: str, flow: Flow, node: ast.expr, frame: Frame) -> Flow:
        if not (cuts and flow.alive) or frame.branches:
            return flow
        return Flow(False, Cut(reason, node.lineno, ast.unparse(node)))

    def _call(self, node: ast.Call, frame: Frame) -> Flow:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        everything = self._all([*node.args, *node.keywords], frame)
        if isinstance(node.func, ast.Attribute) and (receiver := self.flow(node.func.value, frame)) != Flow():
            reason = CUTTING.get(name) or ("integer" if name in ("to", "type") and _to_integers(node) else "")
            if reason == "python" and _detached_for(receiver, node):
                receiver = Flow(True)
            return self._leaving(bool(reason), reason, receiver, node, frame) | everything
        if name in NEW | WHOLE and _of_library(node.func, frame.values):
            return self._leaving(True, "integer" if name in WHOLE else "python", everything, node, frame)
        path = f"{ast.unparse(node.func)}."
        return everything | Flow(any(variable.startswith(path) for variable in frame.alive))  # a module's parameter


def _of_library(function: ast.expr, values: Mapping[str, Any]) -> bool:
    """Return True for a function of torch, numpy or Python, rather than one of the user's with the same name."""
    if isinstance(function, ast.Name):
        return not isinstance(values.get(function.id), FunctionType)
    base = values.get(ast.unparse(function).partition(".")[0])
    return base is None or getattr(base, "__name__", "").partition(".")[0] in OTHERS


def _detached_for(flow: Flow, node: ast.expr) -> bool:
    """Return True for ``x.detach().numpy()``: without it torch refuses the array, which has no graph anyhow."""
    return not flow.alive and flow.cut is not None and flow.cut.reason == "detach" and flow.cut.line == node.lineno


def assign(target: ast.expr, flow: Flow, frame: Frame, keep: bool = False) -> None:
    """Let a variable, an attribute or the container of an item hold something."""
    while isinstance(target, (ast.Subscript, ast.Starred)):
        target = target.value
    name = ast.unparse(target)
    if name in frame.held:
        return
    if not keep:
        frame.alive.discard(name)
        frame.dead.pop(name, None)
    if flow.alive:
        frame.alive.add(name)
    if flow.cut is not None:
        frame.dead.setdefault(name, flow.cut)


def _known(name: str, frame: Frame) -> Flow | None:
    if name in frame.alive or name in frame.dead:
        return Flow(name in frame.alive, frame.dead.get(name))
    return None


def _to_integers(node: ast.Call) -> bool:
    kinds = [ast.unparse(argument) for argument in [*node.args, *[keyword.value for keyword in node.keywords]]]
    return any(kind.startswith("torch.") and kind.removeprefix("torch.").startswith(INTEGERS) for kind in kinds)


class CallerCode:
    """Code that made tensors.

    Args:
        sources: files, functions or cells, the latest first.
        values: its variables.
        line: of the latest source, up to which it was run; None where all of it was.
    """

    def __init__(self, sources: Sequence[str], values: Mapping[str, Any], line: int | None = None) -> None:
        self._sources, self._values, self._line = sources, dict(values), line

    @classmethod
    def here(cls) -> CallerCode:
        """Return the code that called this package."""
        frame = calling_frame()
        sources = [] if frame is None else [piece for piece in _sources(frame) if piece]
        return cls(sources, variables_of(frame), 0 if frame is None else frame.f_lineno)

    def follow(self, tensor: torch.Tensor | None, name: str, goals: Sequence[str]) -> Cut | None:
        """Return the line where what is made of a tensor loses its way back to one of the variables ``goals``.

        Args:
            tensor: the tensor, where it is at hand.
            name: what it is called.
            goals: variables, such as the loss; else what the calling line hands over.
        """
        modules = [(k, value) for k, value in self._values.items() if isinstance(value, nn.Module)]
        held = {name, *(k for k, value in self._values.items() if value is tensor is not None)}
        held |= {f"{k}.{path}" for k, module in modules for path, p in module.named_parameters() if p is tensor}
        frame = Frame(self._values, set(held), held=frozenset(held))
        follower, flow = DataflowReader(), Flow()
        try:
            for piece in reversed(self._sources):
                latest = piece is self._sources[0]
                before = [s for s in _statements(piece) if not latest or self._line is None or s.lineno <= self._line]
                follower.read(before, frame)
            for call in self._calling():
                flow |= follower.flow(call, frame)
        except Exception:  # the line is an extra; whatever the source holds, a graph is drawn without it
            return None
        return next((frame.dead[goal] for goal in goals if goal in frame.dead), flow.cut)

    def _calling(self) -> list[ast.expr]:
        """Return the arguments in the statement that called."""
        tree = tree_of(self._sources[0]) if self._sources and self._line is not None else None
        here = [s for s in ast.walk(tree) if isinstance(s, ast.stmt) and not hasattr(s, "body")] if tree else []
        at = [s for s in here if s.lineno <= (self._line or 0) <= (s.end_lineno or 0)]
        return [argument for s in at for part in ast.walk(s) if isinstance(part, ast.Call) for argument in part.args]

    def change(self, name: str) -> Cut | None:
        """Return the line that changes ``name`` in place."""
        return next((found for code in self._sources if (found := find_change(name, code))), None)


def _sources(frame: FrameType) -> Iterator[str]:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    if code.co_name == "<module>":
        yield "".join(lines)
        cells = frame.f_globals.get("In")
        if isinstance(cells, list):
            yield from [cell for cell in reversed(cells[-CELLS:]) if isinstance(cell, str)]
        return
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    body = lines[code.co_firstlineno - 1 : last]
    indent = len(body[0]) - len(body[0].lstrip()) if body else 0
    # as many lines before it as in the file, so that line numbers are the file's
    yield "\n" * (code.co_firstlineno - 1) + "".join(line[indent:] or "\n" for line in body)


def find_change(name: str, code: str) -> Cut | None:
    """Find the last line of some code that changes the variable ``name`` in place.

    Example:
        >>> from nbautograd.core.graphs.source_dataflow import find_change
        >>> find_change("y", "y[0] = 3").text
        'y[0] = 3'
    """
    found = [node for node in _nodes(code) if _changes(node, name)] if name in code else []
    cuts = [Cut("changed", node.lineno, ast.unparse(node)) for node in found]  # type: ignore[attr-defined]
    return max(cuts, key=lambda cut: cut.line, default=None)


def _changes(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        target: ast.expr = node.target
        return _is(target, name) or (isinstance(target, ast.Subscript) and _is(target.value, name))
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) and _is(target.value, name) for target in node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
        return in_place(node.func.attr)
    return False


@lru_cache(maxsize=CELLS)
def _nodes(code: str) -> tuple[ast.AST, ...]:
    """Return the syntax nodes that can change a tensor; none for what is no Python, such as a magic."""
    tree = tree_of(code)
    return () if tree is None else tuple([node for node in ast.walk(tree) if isinstance(node, KINDS)])


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name


def silence(node: ast.With | ast.expr) -> str:
    """Return the text of a ``with`` item or decorator that turns gradients off; empty otherwise."""
    for call in [item.context_expr for item in node.items] if isinstance(node, ast.With) else [node]:
        function = call.func if isinstance(call, ast.Call) else call
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        off = name == "set_grad_enabled" and isinstance(call, ast.Call) and ast.unparse(call).endswith("(False)")
        if name in SILENT or off:
            return ast.unparse(call)
    return ""


def _statements(piece: str) -> list[ast.stmt]:
    """Return the statements of a file or a cell, or those of the function that is all of it."""
    tree = tree_of(piece)
    body = [] if tree is None else tree.body
    if len(body) == 1 and isinstance(body[0], ast.FunctionDef):
        return body[0].body
    return body
