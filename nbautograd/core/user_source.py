"""The user's own source: the functions behind a Function's methods, the names, lines and arity that their text tells.

A class is looked at, never called. The text of a file or cell is parsed once; everybody who asks reads that tree.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, Literal, NamedTuple

import torch

from nbautograd.core import forks
from nbautograd.core.display import Displayable

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Returned:
    """One value of a ``return`` statement.

    Attributes:
        name: the variable's name (``"grad_weight"``), or None when an expression is returned.
        line: line of the cell or file where its value is computed (the last assignment), counted from 1.
        expression: the source of that value (``"input.mm(grad_output)"``), or None.
    """

    name: str | None
    line: int | None
    expression: str | None


@dataclass(frozen=True, repr=False)
class FunctionSource(Displayable):
    """Facts read from the source of a Function class without running it.

    Attributes:
        name: the class's name.
        file: file name as Python knows it (for a cell, IPython's name of it).
        first_line: line of ``class`` (or of its first decorator) in the cell or file, counted from 1.
        text: the source of the class, dedented.
        style: ``"combined"`` (``forward(ctx, ...)``), ``"setup_context"`` or ``"legacy"`` (instance methods).
        inputs: names of forward's arguments without ctx; a ``*args`` is ``"*args"``.
        outputs: what forward returns.
        saved: names given to ``save_for_backward``, or None when they cannot be known.
        grad_outputs: names of backward's arguments without ctx.
        gradients: what backward returns, one per input.
        lines: line of each method's ``def``.
        materialize_grads: False when forward or setup_context calls ``ctx.set_materialize_grads(False)``; None when
            it calls it with something that only a run can tell.
    """

    name: str
    file: str
    first_line: int
    text: str
    style: Literal["combined", "setup_context", "legacy"]
    inputs: tuple[str, ...] = ()
    outputs: tuple[Returned, ...] = ()
    saved: tuple[str, ...] | None = None
    grad_outputs: tuple[str, ...] = ()
    gradients: tuple[Returned, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)
    materialize_grads: bool | None = True

    def __repr__(self) -> str:
        return f"<FunctionSource {self.name} line {self.first_line}>"

    def line(self, method: str) -> int | None:
        """Return the line of a method's ``def``; ``vjp`` is another name of ``backward``."""
        return self.lines.get(method) or (self.lines.get("vjp") if method == "backward" else None)


METHODS = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap")
_DECORATORS = 32  # looked through at most: a chain may be a circle


def constants(code: CodeType) -> Iterator[Any]:
    """Yield the constants of a code object; Python 3.14 keeps small whole numbers in its instructions instead."""
    yield from code.co_consts
    yield from (one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_SMALL_INT")


def function_class(fn: Any) -> type | None:
    """Return the Function class behind a callable: the class itself, its ``apply``, or a ``functools.partial`` of it.

    Returns:
        The class, or None when ``fn`` is not one of these.
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    owner = fn if isinstance(fn, type) else getattr(fn, "__self__", None)
    if not isinstance(owner, type) or not issubclass(owner, torch.autograd.Function):
        return None
    return owner if owner is fn or getattr(fn, "__name__", "") == "apply" else None


def defining_classes(cls: type) -> dict[str, type]:
    """Return the class along the MRO that defines it for each method that PyTorch may call and the user wrote."""
    found: dict[str, type] = {}
    for base in cls.__mro__:
        if base.__module__ == "torch.autograd.function":
            break
        entries = vars(base)
        for method in METHODS:
            if method in entries and method not in found:
                found[method] = base
    return {method: found[method] for method in METHODS if method in found}


def as_written(entry: Any) -> Any:
    """Return what the user's class has in a place: an engine that records stands before it and keeps it."""
    return getattr(entry, "original", entry)


def unwrap(entry: Any) -> Any:
    """Return the user's own function behind a method: past an engine, ``staticmethod``, decorators and partials."""
    function = as_written(entry)
    for _ in range(_DECORATORS):
        inner = function.func if isinstance(function, functools.partial) else getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return getattr(function, "__func__", function)


def closure(function: Any) -> dict[str, Any]:
    """Return the variables of the functions around a function, by name; those that are not yet set are left out."""
    found = {}
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, and those of the functions and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def named_functions(function: FunctionType) -> dict[str, FunctionType]:
    """Return the functions of its module that a function names, by these names."""
    known = {n: function.__globals__.get(n) for code in codes_in(function.__code__) for n in code.co_names}
    return {name: value for name, value in known.items() if isinstance(value, FunctionType)}


@dataclass(frozen=True)
class Methods:
    """Code objects of a Function's methods, which say where they were written; they keep no class alive.

    Attributes:
        name: the class's name.
        static: False when forward is an ordinary instance method.
        codes: code of each method that the class defines or inherits from another Function of the user's.
    """

    name: str
    static: bool
    codes: Mapping[str, CodeType]

    def code(self, method: str) -> CodeType | None:
        """Return the code of a method; ``vjp`` is another name of ``backward``."""
        return self.codes.get(method) or (self.codes.get("vjp") if method == "backward" else None)

    def tree(self, method: str) -> FunctionNode | None:
        """Return the ``def`` of a method, None when its text is not to be had."""
        code = self.code(method)
        return None if code is None else method_at(code)


def methods_of(cls: type) -> Methods:
    """Collect the code of a Function class's methods."""
    entries = {method: as_written(vars(owner)[method]) for method, owner in defining_classes(cls).items()}
    codes = {method: getattr(unwrap(entry), "__code__", None) for method, entry in entries.items()}
    static = not isinstance(entries.get("forward"), FunctionType)
    return Methods(cls.__name__, static, {method: code for method, code in codes.items() if code is not None})


def read_source(cls: type) -> FunctionSource | None:
    """Read a Function class's source; None when there is none to read (``exec``, a compiled file).

    Returns:
        What its text tells. Lines count from 1 in the cell or file.
    """
    if (known := read_methods(methods_of(cls))) is not None:
        return known
    try:
        lines, first = inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return None
    text = textwrap.dedent("".join(lines))
    return FunctionSource(cls.__name__, inspect.getsourcefile(cls) or "", max(first, 1), text, "combined")


def read_methods(methods: Methods) -> FunctionSource | None:
    """Read the source that these methods were compiled from; None when it is gone."""
    trees = {name: tree for name, code in methods.codes.items() if (tree := method_at(code)) is not None}
    if not trees:
        return None
    name, first = next(iter(trees.items()))
    code = methods.codes[name]
    node = class_around(code, methods.name) or first
    forward, backward = trees.get("forward"), trees.get("backward") or trees.get("vjp")
    saver = trees.get("setup_context") or forward
    takes = [] if forward is None else parameters(forward)
    style: Literal["combined", "setup_context", "legacy"] = "combined"
    if "setup_context" in methods.codes:
        style = "setup_context"
    elif not methods.static and takes[:1] == ["self"]:
        style = "legacy"
    return FunctionSource(
        name=methods.name,
        file=code.co_filename,
        first_line=first_line(node),
        text=text_of(code.co_filename, node),
        style=style,
        inputs=tuple(takes[style != "setup_context" :]),
        outputs=() if forward is None else returned(forward),
        saved=None if saver is None else saved(saver),
        grad_outputs=() if backward is None else tuple(parameters(backward)[1:]),
        gradients=() if backward is None else returned(backward),
        lines={name: tree.lineno for name, tree in trees.items()},
        materialize_grads=True if saver is None else materialize_grads(saver),
    )


_parser = forks.lock()


def parse(text: str) -> ast.Module:
    """Parse a text, in one thread at a time: Python 3.11 counts the depth of all threads' trees as one, and raises."""
    with _parser:
        return ast.parse(text)


@functools.lru_cache(maxsize=64)
def tree_of(text: str) -> ast.Module | None:
    """Return a text parsed, to be read only; None when it is no Python, such as a cell with magics."""
    try:
        return parse(text)
    except (SyntaxError, ValueError, RecursionError):  # ValueError in Python 3.11: null bytes
        return None


class _Definitions(NamedTuple):
    """Definitions of a file or cell, at any depth: each ``def`` by its name and first line, and each ``class``."""

    functions: dict[tuple[str, int], FunctionNode]
    classes: tuple[ast.ClassDef, ...]


@functools.lru_cache(maxsize=64)
def _definitions(tree: ast.Module) -> _Definitions:
    functions: dict[tuple[str, int], FunctionNode] = {}
    classes = []
    waiting: list[ast.AST] = [tree]
    while waiting:  # no expression has a definition in it: most of a file need not be looked at
        node = waiting.pop()
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, part, ())
            waiting += [item for item in inside if isinstance(item, ast.AST)] if isinstance(inside, list) else ()
        if isinstance(node, FunctionNode):
            functions.setdefault((node.name, first_line(node)), node)
        elif isinstance(node, ast.ClassDef):
            classes.append(node)
    return _Definitions(functions, tuple(classes))


def module_tree(filename: str) -> ast.Module | None:
    """Return the syntax tree of a file or notebook cell, None when its text is gone or does not parse."""
    linecache.checkcache(filename)  # a file that was edited since; cells stay
    lines = linecache.getlines(filename)
    return tree_of("".join(lines)) if lines else None


def method_at(code: CodeType) -> FunctionNode | None:
    """Return the ``def`` that this code was compiled from."""
    tree = module_tree(code.co_filename)
    if tree is None:
        return None
    return _definitions(tree).functions.get((code.co_name, code.co_firstlineno))


def class_around(code: CodeType, name: str) -> ast.ClassDef | None:
    """Return the innermost ``class`` around the ``def`` of this code; the one called ``name`` is preferred."""
    tree = module_tree(code.co_filename)
    if tree is None:
        return None
    line = code.co_firstlineno
    around = [node for node in _definitions(tree).classes if node.lineno <= line <= (node.end_lineno or 0)]
    around.sort(key=lambda node: (node.name == name, node.lineno))
    return around[-1] if around else None


def text_of(filename: str, node: FunctionNode | ast.ClassDef) -> str:
    """Return the source of a definition with its decorators, dedented."""
    lines = linecache.getlines(filename)
    return textwrap.dedent("".join(lines[first_line(node) - 1 : node.end_lineno]))


def first_line(node: FunctionNode | ast.ClassDef) -> int:
    """Return the line where a definition begins, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def parameters(function: FunctionNode) -> list[str]:
    """Return the names of the arguments in order, ``*args`` with its star, without the class of a classmethod."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if any(isinstance(d, ast.Name) and d.id == "classmethod" for d in function.decorator_list):
        names = names[1:]
    return names + ([f"*{function.args.vararg.arg}"] if function.args.vararg else [])


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield every node of a function's body in source order, inner functions and classes left out."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def returns(function: FunctionNode) -> list[ast.Return]:
    """Return the ``return`` statements that give a value, in source order."""
    return [node for node in own_nodes(function) if isinstance(node, ast.Return) and node.value is not None]


def returned(function: FunctionNode, ran: Collection[int] | None = None) -> tuple[Returned, ...]:
    """Return name, line and expression of each value that is returned, traced to its last assignment.

    Of a starred value, and of those after it, only the line is known.

    Args:
        function: the method.
        ran: lines that called torch, and the one that ended the run; None where that is not known: what differs from
            branch to branch has no line then.
    """
    ends = [end for end in returns(function) if ran is None or _ran(end, ran)]
    values = [_values_of(function, end, ran) for end in (ends if ran is None else ends[-1:])]
    return tuple(map(_in_all_branches, itertools.zip_longest(*values)))


def _values_of(function: FunctionNode, end: ast.Return, ran: Collection[int] | None) -> tuple[Returned, ...]:
    value = end.value
    items = [item for item in (value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]) if item is not None]
    known = list(itertools.takewhile(lambda item: not isinstance(item, ast.Starred), items))
    unknown = [Returned(None, end.lineno, None)] * (len(items) - len(known))  # which a starred one shifts
    return (*(_trace(function, item, end, ran) for item in known), *unknown)


def _in_all_branches(values: Iterable[Returned | None]) -> Returned:
    """Return what is true of one value whichever ``return`` ran; None in so many words is no gradient."""
    given = {value for value in values if value is not None}
    found = {value for value in given if value.expression != "None"} or given
    names = {value.name for value in found}
    return found.pop() if len(found) == 1 else Returned(names.pop() if len(names) == 1 else None, None, None)


def _trace(function: FunctionNode, item: ast.expr, end: ast.Return, ran: Collection[int] | None) -> Returned:
    if not isinstance(item, ast.Name):
        return Returned(None, item.lineno, ast.unparse(item))
    expressions = [e for e in assignments(function, item.id) if e.lineno <= end.lineno]
    values = [e for e in expressions if not (isinstance(e, ast.Constant) and e.value is None)] or expressions
    # in an arm of an ``if``, or of its like, in which this ``return`` is not
    spans = [(arm[0].lineno, arm[-1].end_lineno or 0) for arm in arms(function)]
    for value in reversed(values):
        sure = len(values) == 1 or not any(a <= value.lineno <= b and not a <= end.lineno <= b for a, b in spans)
        if sure or (ran is not None and _ran(value, ran)):
            return Returned(item.id, value.lineno, ast.unparse(value))
        if ran is None or not isinstance(value, (ast.BinOp, ast.Call, ast.UnaryOp)):
            break  # that it calls no torch when it runs is no reason why it did not
    return Returned(item.id, None, None)


def _ran(node: ast.expr | ast.stmt, ran: Collection[int]) -> bool:
    return any(line in ran for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def arms(function: FunctionNode) -> Iterator[list[ast.stmt]]:
    """Yield the bodies of a function of which only some run: of ``if``, ``match`` and ``except``."""
    for node in own_nodes(function):
        bodies = [node.body, node.orelse] if isinstance(node, ast.If) else []
        bodies += [node.body] if isinstance(node, (ast.match_case, ast.ExceptHandler)) else []
        yield from filter(None, bodies)


def assignments(function: FunctionNode, name: str) -> list[ast.expr]:
    """Return every expression that is assigned to a name, in source order."""
    found: list[ast.expr] = []
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.extend(_assigned(target, node.value, name))
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            found.extend(_assigned(node.target, node.value, name))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            joined = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
            found.append(ast.copy_location(joined, node))
    return found


def _assigned(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        same = len(parts) == len(target.elts)
        for index, inner in enumerate(target.elts):
            yield from _assigned(inner, parts[index] if same else value, name)


def calls_of(function: FunctionNode, method: str) -> list[ast.Call]:
    """Return the calls of ``<something>.method(...)`` in the body, in source order."""
    nodes = (node for node in own_nodes(function) if isinstance(node, ast.Call))
    return [node for node in nodes if isinstance(node.func, ast.Attribute) and node.func.attr == method]


def saved(function: FunctionNode) -> tuple[str, ...] | None:
    """Return the names given to ``save_for_backward``: () when it is never called, None when they cannot be known."""
    calls = calls_of(function, "save_for_backward")
    if not calls:
        return ()
    names = {tuple(ast.unparse(argument) for argument in call.args) for call in calls}
    starred = any(isinstance(argument, ast.Starred) for call in calls for argument in call.args)
    return None if starred or len(names) != 1 else names.pop()


def materialize_grads(function: FunctionNode) -> bool | None:
    """Return what ``set_materialize_grads`` is told: True when never called, None when only a run can tell."""
    given: bool | None = True
    for call in calls_of(function, "set_materialize_grads"):
        value = call.args[0] if len(call.args) == 1 else None
        given = value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None
    return given


def changed_in_place(function: FunctionNode) -> dict[str, int]:
    """Return the arguments that a function changes as in ``g *= 2``, ``g[i] = 0`` or ``g.mul_(2)``: name -> line."""
    changed: dict[str, int] = {}
    rebound: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            rebound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        name = _changed_by(node)
        if name is not None and name not in rebound and name in parameters(function):
            changed.setdefault(name, node.lineno)  # type: ignore[attr-defined]
    return changed


def _changed_by(node: ast.AST) -> str | None:
    target: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value if in_place(node.func.attr) else None
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the target and the value of each assignment among these nodes, changes in place among them."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.For):
            yield node.target, node.iter
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and in_place(node.func.attr):
            yield node.func.value, node


def in_place(method: str) -> bool:
    """Return True for the name of a method that changes its tensor."""
    return method.endswith("_") and not method.startswith(("_", "requires_grad", "detach"))


def names_read(value: ast.AST) -> frozenset[str]:
    """Return the names in a piece of source."""
    return frozenset(n.id for n in ast.walk(value) if isinstance(n, ast.Name))


def names_written(target: ast.expr) -> Iterator[str]:
    """Yield the variables that an assignment writes to, whole or in part."""
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from names_written(item)


def reached(names: Iterable[str], sources: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the names, and what they are computed from in turn."""
    found, left = set[str](), set(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.update(sources.get(name, ()))
    return frozenset(found)
