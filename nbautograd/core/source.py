"""Source text of a Function: names of arguments, saved and returned values, lines."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, Literal

import torch

from nbautograd.core import syntax
from nbautograd.core.display import Displayable


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


METHODS = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap")


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


def methods_of(cls: type) -> Methods:
    """Collect the code of a Function class's methods; looks, calls nothing."""
    codes: dict[str, CodeType] = {}
    static = True
    for method in METHODS:
        entry = _entry(cls, method)
        code = _code(entry)
        if code is not None:
            codes[method] = code
            static = static and not (method == "forward" and isinstance(entry, FunctionType))
    return Methods(cls.__name__, static, codes)


def read_source(cls: type) -> FunctionSource | None:
    """Read a Function class's source; None when there is none to read (``exec``, a compiled file).

    Args:
        cls: a subclass of ``torch.autograd.Function``, instrumented or not.

    Returns:
        What its text tells. Lines count from 1 in the cell or file.

    Example:
        >>> import torch
        >>> from nbautograd.core.source import read_source
        >>> read_source(torch.autograd.function.InplaceFunction).name
        'InplaceFunction'
    """
    return read_methods(methods_of(cls)) or _without_methods(cls)


def read_methods(methods: Methods) -> FunctionSource | None:
    """Read the source that these methods were compiled from; None when it is gone."""
    found = {name: tree for name, code in methods.codes.items() if (tree := syntax.method_at(code)) is not None}
    first = next(iter(found.values()), None)
    if first is None:
        return None
    code = next(methods.codes[name] for name in found)
    owner = syntax.class_around(code, methods.name)
    node: syntax.FunctionNode | ast.ClassDef = owner or first
    lines = {name: function.lineno for name, function in found.items()}
    style = _style(methods, found)
    return FunctionSource(
        name=methods.name,
        file=code.co_filename,
        first_line=min([node.lineno, *(d.lineno for d in node.decorator_list)]),
        text=syntax.text_of(code.co_filename, node),
        style=style,
        lines=lines,
        **_contents(found, style),
    )


def function_class(fn: Any) -> type | None:
    """The Function class behind a callable: the class itself, its ``apply``, or a ``functools.partial`` of it.

    Args:
        fn: anything.

    Returns:
        The class, or None when ``fn`` is not one of these.

    Example:
        >>> import functools, torch
        >>> from nbautograd.core.source import function_class
        >>> F = torch.autograd.function.InplaceFunction
        >>> function_class(functools.partial(F.apply, 1)) is F
        True
        >>> function_class(torch.mul) is None
        True
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    owner = fn if isinstance(fn, type) else getattr(fn, "__self__", None)
    if not isinstance(owner, type) or not issubclass(owner, torch.autograd.Function):
        return None
    return owner if owner is fn or getattr(fn, "__name__", "") == "apply" else None


def _entry(cls: type, method: str) -> Any:
    for base in cls.__mro__:
        if base.__module__ == "torch.autograd.function":
            return None
        if method in vars(base):
            return as_written(vars(base)[method])
    return None


def as_written(entry: Any) -> Any:
    """Return what the user's class has in this place: an engine that records stands before it and keeps it."""
    return getattr(entry, "original", entry)


def _code(entry: Any) -> CodeType | None:
    function = entry.__func__ if isinstance(entry, (staticmethod, classmethod)) else entry
    for _ in range(32):  # decorators that say what they wrap, partials
        inner = getattr(function, "__wrapped__", None) or (
            function.func if isinstance(function, functools.partial) else None
        )
        if inner is None:
            break
        function = inner
    return getattr(function, "__code__", None)


def _without_methods(cls: type) -> FunctionSource | None:
    try:
        lines, first = inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return None
    text = textwrap.dedent("".join(lines))
    return FunctionSource(cls.__name__, inspect.getsourcefile(cls) or "", max(first, 1), text, "combined")


def _style(
    methods: Methods, found: Mapping[str, syntax.FunctionNode]
) -> Literal["combined", "setup_context", "legacy"]:
    if "setup_context" in methods.codes:
        return "setup_context"
    forward = found.get("forward")
    first = syntax.parameters(forward)[:1] if forward is not None else []
    return "legacy" if not methods.static and first == ["self"] else "combined"


def _contents(found: Mapping[str, syntax.FunctionNode], style: str) -> dict[str, Any]:
    forward, setup = found.get("forward"), found.get("setup_context")
    backward = found.get("backward") or found.get("vjp")
    contents: dict[str, Any] = {}
    if forward is not None:
        contents["inputs"] = tuple(syntax.parameters(forward)[0 if style == "setup_context" else 1 :])
        contents["outputs"] = tuple(Returned(*value) for value in syntax.returned(forward))
    if backward is not None:
        contents["grad_outputs"] = tuple(syntax.parameters(backward)[1:])
        contents["gradients"] = tuple(Returned(*value) for value in syntax.returned(backward))
    saver = setup if setup is not None else forward
    if saver is not None:
        contents["saved"] = syntax.saved(saver)
        contents["materialize_grads"] = syntax.materialize_grads(saver)
    return contents
