"""Dataflow: follow a tensor statement by statement, through the user's functions and modules, to its cut.

Nothing is run: the source is read in order, and of each variable it is kept whether a gradient could get through it to
the tensor, or else which line cut it off. Branches are read as if they were all taken; a cut in one of them, or in
another function, is therefore only likely.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch import nn

from nbautograd.core.graphs.names import calling_frame, variables_of
from nbautograd.core.graphs.source_cuts import CELLS, CUTTING, Cut, find_change, silence
from nbautograd.core.user_source import closure, in_place, method_at, tree_of

OTHERS = ("torch", "numpy", __name__.partition(".")[0])  # packages whose source is not looked into
LIBRARIES = tuple({os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")})


@dataclass(frozen=True)
class Each:
    """Modules that are called one after the other, such as those of a Sequential.

    Attributes:
        path: what the source calls the container.
        modules: those in it.
    """

    path: str
    modules: tuple[nn.Module, ...]


@dataclass(frozen=True)
class Callee:
    """A function of the user's.

    Attributes:
        function: as written, decorators taken off.
        owner: the instance whose method it is, or None.
    """

    function: FunctionType
    owner: Any = None

    @property
    def name(self) -> str:
        """``"Net.forward"``."""
        return self.function.__qualname__.rpartition("<locals>.")[2]


def resolve(expression: ast.expr, values: Mapping[str, Any]) -> Any:
    """Return the value that an expression names, or None; no property is run."""
    if isinstance(expression, ast.Name):
        return values.get(expression.id)
    if isinstance(expression, ast.Attribute):
        return _attribute(resolve(expression.value, values), expression.attr)
    if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
        return _item(resolve(expression.value, values), expression.slice.value)
    return None


def _attribute(base: Any, name: str) -> Any:
    if isinstance(base, nn.Module) and name in base._modules:
        return base._modules[name]
    found = None if base is None else inspect.getattr_static(base, name, None)
    if isinstance(found, staticmethod):
        return found.__func__
    own = isinstance(found, FunctionType) and not inspect.isclass(base) and not inspect.ismodule(base)
    return Callee(found, base) if own and isinstance(found, FunctionType) else found


def _item(base: Any, key: Any) -> Any:
    if isinstance(base, (nn.ModuleList, nn.Sequential, nn.ModuleDict)):
        return base._modules.get(str(key))
    try:
        return base[key] if type(base) in (list, tuple, dict) else None
    except (LookupError, TypeError):
        return None


def callee(expression: ast.expr, values: Mapping[str, Any]) -> Callee | Each | None:
    """Return what a call of this expression would run, if that is the user's own or a row of modules."""
    found = resolve(expression, values)
    if isinstance(found, Each):
        return found
    if isinstance(found, nn.Sequential):
        return Each(ast.unparse(expression), tuple(found))
    return own(found)


def own(found: Any) -> Callee | None:
    """Return a function, a method or a module as a callee, if it is the user's own."""
    if isinstance(found, nn.Module):
        forward = inspect.getattr_static(type(found), "forward", None)
        found = Callee(forward, found) if isinstance(forward, FunctionType) else None
    elif isinstance(found, FunctionType):
        found = Callee(found)
    if not isinstance(found, Callee):
        return None
    function = inspect.unwrap(found.function)
    if not isinstance(function, FunctionType) or not _users(function):
        return None
    return Callee(function, found.owner)


def _users(function: FunctionType) -> bool:
    if function.__module__.partition(".")[0] in OTHERS:
        return False
    path = os.path.realpath(function.__code__.co_filename)
    return not path.startswith(LIBRARIES)


@lru_cache(maxsize=256)
def definition(code: CodeType) -> ast.FunctionDef | None:
    """Return the source of a function, with the line numbers of its file or cell."""
    node = method_at(code)
    return node if isinstance(node, ast.FunctionDef) else None


DEEPEST = 8  # calls inside of calls
MOST_CALLS = 300  # that are followed in all
NEW = {"tensor", "from_numpy", "array", "asarray", "float", "int", "bool"}  # give something without a graph
WHOLE = {"argmax", "argmin", "argsort"}  # give integers
GROWING = {"append", "extend", "insert", "add", "update", "setdefault"}
INTEGERS = ("long", "int", "bool", "uint8", "short")


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
    """Variables of one function, or of the calling code, while it is read.

    Attributes:
        values: what names stand for now, to look up functions and modules.
        alive: variables, and paths of parameters, through which a gradient could get to the tensor.
        dead: variables that were made of the tensor, with what cut them off.
        where: name of the function; empty in the calling code.
        silent: what is written where gradients are off; else empty.
        branches: how many branches enclose the statement.
        returned: what the function gives back.
        held: variables that hold the tensor itself now, whatever the source assigned to them before.
    """

    values: dict[str, Any]
    alive: set[str] = field(default_factory=set)
    dead: dict[str, Cut] = field(default_factory=dict)
    where: str = ""
    silent: str = ""
    branches: int = 0
    returned: Flow = Flow()
    held: frozenset[str] = frozenset()


class DataflowReader:
    """Reads statements and the functions that they call."""

    def __init__(self) -> None:
        self._calls = 0
        self._depth = 0

    def read(self, statements: Iterable[ast.stmt], frame: Frame) -> None:
        """Read statements in order."""
        for statement in statements:
            self._statement(statement, frame)

    def _statement(self, node: ast.stmt, frame: Frame) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assign(node, frame)
        elif isinstance(node, ast.Return):
            frame.returned |= self._silenced(self.flow(node.value, frame), node, frame)
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
                self._loop(node, frame)
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
        if not (frame.silent and flow.alive):
            return flow
        return Flow(False, flow.cut or self._cut("no_grad", node, f"with {frame.silent}", frame))

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

    def _loop(self, node: ast.For, frame: Frame) -> None:
        found = resolve(node.iter, frame.values)
        if isinstance(found, (list, tuple)) or (
            found is not None and type(found).__name__ in ("ModuleList", "Sequential")
        ):
            modules = tuple(found)
            if isinstance(node.target, ast.Name) and modules and all(own(m) or hasattr(m, "_modules") for m in modules):
                frame.values[node.target.id] = Each(ast.unparse(node.iter), modules)
                return
        assign(node.target, self.flow(node.iter, frame), frame)

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
        if not (cuts and flow.alive):
            return flow
        return Flow(False, self._cut(reason, node, ast.unparse(node), frame))

    def _cut(self, reason: str, node: ast.stmt | ast.expr, text: str, frame: Frame) -> Cut:
        return Cut(reason, node.lineno, text, frame.where, not (frame.where or frame.branches))

    def _call(self, node: ast.Call, frame: Frame) -> Flow:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [self.flow(argument, frame) for argument in node.args]
        named = {keyword.arg: self.flow(keyword.value, frame) for keyword in node.keywords}
        everything = _joined([*given, *named.values()])
        if isinstance(node.func, ast.Attribute) and (receiver := self.flow(node.func.value, frame)) != Flow():
            reason = CUTTING.get(name) or ("integer" if name in ("to", "type") and _to_integers(node) else "")
            if reason == "python" and _detached_for(receiver, node):
                receiver = Flow(True)
            return self._leaving(bool(reason), reason, receiver, node, frame) | everything
        if name in NEW | WHOLE and own(resolve(node.func, frame.values)) is None:
            return self._leaving(True, "integer" if name in WHOLE else "python", everything, node, frame)
        found = callee(node.func, frame.values)
        path = ast.unparse(node.func)
        if isinstance(found, Each):
            return self._chain(found, everything, frame)
        inner = _inside(path, frame)
        if found is None or not (everything != Flow() or inner or _read_outside(found, frame)):
            return everything | Flow(bool(inner))
        return self._enter(found, given, named, inner, everything | Flow(bool(inner)), frame)

    def _chain(self, each: Each, flow: Flow, frame: Frame) -> Flow:
        for k, module in enumerate(each.modules):
            inner, found = _inside(f"{each.path}.{k}", frame) | _inside(f"{each.path}[{k}]", frame), own(module)
            if found is None or not (inner or flow != Flow()):
                flow |= Flow(bool(inner))
            else:
                flow = self._enter(found, [flow], {}, inner, flow | Flow(bool(inner)), frame)
        return flow

    def _enter(
        self,
        found: Callee,
        given: Sequence[Flow],
        named: Mapping[str | None, Flow],
        inner: set[str],
        otherwise: Flow,
        caller: Frame,
    ) -> Flow:
        """Read a function of the user's with what it is given; ``otherwise`` when it cannot be read."""
        source = definition(found.function.__code__)
        self._calls += 1
        if source is None or self._depth >= DEEPEST or self._calls > MOST_CALLS:
            return otherwise
        names = [argument.arg for argument in (*source.args.posonlyargs, *source.args.args)]
        around = {name: value for name, value in closure(found.function).items() if value is not None}
        frame = Frame({**found.function.__globals__, **around}, where=found.name)
        if found.owner is not None and names:
            frame.values[names[0]] = found.owner
            frame.alive |= {f"{names[0]}.{rest}" for rest in inner}
            names = names[1:]
        outside = [(name, _known(name, caller) or Flow()) for name in _read_outside(found, caller)]
        for name, flow in [*outside, *zip(names, given, strict=False), *named.items()]:
            if name is not None:
                assign(ast.Name(name), flow, frame)
        frame.silent = next((text for decorator in source.decorator_list if (text := silence(decorator))), "")
        self._depth += 1
        self.read(source.body, frame)
        self._depth -= 1
        for name in (name for node in ast.walk(source) if isinstance(node, ast.Global) for name in node.names):
            assign(ast.Name(name), _known(name, frame) or Flow(), caller)
        return frame.returned


def _read_outside(found: Callee, caller: Frame) -> list[str]:
    """Return the variables of the caller that a function reads without being given them."""
    code = found.function.__code__
    known = {**found.function.__globals__, **closure(found.function)}
    names = [name for name in (*code.co_names, *code.co_freevars) if name in known and name in caller.values]
    return [name for name in names if known[name] is caller.values[name] and _known(name, caller) is not None]


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
        if frame.where:  # elsewhere the values are those of now
            frame.values.pop(name, None)
    if flow.alive:
        frame.alive.add(name)
    if flow.cut is not None:
        frame.dead.setdefault(name, flow.cut)


def _known(name: str, frame: Frame) -> Flow | None:
    if name in frame.alive or name in frame.dead:
        return Flow(name in frame.alive, frame.dead.get(name))
    return None


def _inside(path: str, frame: Frame) -> set[str]:
    """Return the parameters inside a module that are the tensor, by their paths in it."""
    return {name.removeprefix(f"{path}.") for name in frame.alive if name.startswith(f"{path}.")}


def _joined(flows: Iterable[Flow]) -> Flow:
    whole = Flow()
    for flow in flows:
        whole |= flow
    return whole


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
        held = {name, *(() if tensor is None else held_as(tensor, self._values))}
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


def held_as(tensor: torch.Tensor, values: dict[str, Any]) -> set[str]:
    """Return the names by which code can reach a tensor: its variables, and its paths in modules."""
    names = {name for name, value in values.items() if value is tensor}
    for name, module in list(values.items()):
        if isinstance(module, nn.Module):
            names |= {f"{name}.{path}" for path, parameter in module.named_parameters() if parameter is tensor}
    return names


def _statements(piece: str) -> list[ast.stmt]:
    """Return the statements of a file or a cell, or those of the function that is all of it."""
    tree = tree_of(piece)
    body = [] if tree is None else tree.body
    if len(body) == 1 and isinstance(body[0], ast.FunctionDef):
        return body[0].body
    return body
