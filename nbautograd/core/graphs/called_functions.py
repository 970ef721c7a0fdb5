"""Callees: which function of the user's a call in some source would run, found by looking, without running anything."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sysconfig
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from torch import nn

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
    """A function, a method or a module as a callee, if it is the user's own."""
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


def definition(function: FunctionType) -> ast.FunctionDef | None:
    """The function's source, with the line numbers of its file or cell."""
    return _definition(function.__code__)


@lru_cache(maxsize=256)
def _definition(code: CodeType) -> ast.FunctionDef | None:
    lines = linecache.getlines(code.co_filename)
    try:
        block = inspect.getblock(lines[code.co_firstlineno - 1 :])
        tree = ast.parse(textwrap.dedent("".join(block)))
    except (SyntaxError, ValueError, RecursionError, IndexError):
        return None
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef):
        return None
    ast.increment_lineno(node, code.co_firstlineno - 1)
    return node
