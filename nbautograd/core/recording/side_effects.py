"""What a method's code can do besides computing: what it cannot do need not be looked for after each call.

Told from the bytecode, and carefully: whatever is not known to be harmless counts as able to do everything.
"""

from __future__ import annotations

import builtins
import dis
import math
import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import torch

from nbautograd.core.recording.ctx_use import used_of_ctx

_HARMLESS_BUILTINS = frozenset({
    "len", "range", "tuple", "list", "float", "int", "bool", "abs", "min", "max", "sum", "zip", "enumerate", "print",
    "isinstance", "any", "all", "round", "None",
})  # fmt: skip
# methods by which a list, dict or set that was given changes; tensors have none of these names
_MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "setdefault", "discard", "appendleft",
})  # fmt: skip
_MARKS = frozenset({"save_for_backward", "save_for_forward", "mark_non_differentiable", "mark_dirty"})
_CTX = _MARKS | {"saved_tensors", "needs_input_grad", "set_materialize_grads"}
_STORES = (
    "STORE_SUBSCR",
    "STORE_SLICE",
    "DELETE_SUBSCR",
    "STORE_GLOBAL",
    "STORE_DEREF",
    "MAKE_FUNCTION",
    "IMPORT_NAME",
)
_WORDS = frozenset({"out", "inplace"})  # keyword arguments that let a function write into what it is given
_WRITERS = ("norm", "embedding", "dropout", "rnn", "gru", "lstm", "rrelu")  # functions that may, by their arguments
_SHARING = frozenset({"data", "numpy", "apply", "from_numpy", "frombuffer"})
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")


def harmless(function: Any, name_of_ctx: bool) -> bool:
    """True when a function changes nothing in place, shares no memory and keeps no state, whatever it is given.

    Args:
        function: the user's method.
        name_of_ctx: True when its first argument is ctx.

    Example:
        >>> def forward(ctx, x):
        ...     ctx.save_for_backward(x)
        ...     return x * 2
        >>> harmless(forward, True)
        True
        >>> harmless(lambda ctx, g: g.mul_(2), True)
        False
    """
    if type(function) is not FunctionType or sys.version_info < (3, 11):
        return False
    code = function.__code__
    if name_of_ctx and used_of_ctx(code) is None:
        return False
    if any(isinstance(const, tuple) and _WORDS & {c for c in const if type(c) is str} for const in code.co_consts):
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG", "PRECALL")]
    known = function.__globals__
    following, second = [*steps[1:], steps[-1]], [*steps[2:], steps[-1], steps[-1]]
    ctx = code.co_varnames[0] if name_of_ctx and code.co_argcount else None
    if any(_calls_given(*three, ctx) for three in zip(steps, following, second, strict=True)):
        return False
    given = frozenset(code.co_varnames[: code.co_argcount])
    if any(_changes_given(*two, given) for two in zip(steps, following, strict=True)):
        return False
    return all(_harmless(step, after, known, ctx) for step, after in zip(steps, following, strict=True))


def _calls_given(step: dis.Instruction, after: dis.Instruction, second: dis.Instruction, ctx: str | None) -> bool:
    """Does a call begin here whose function is an argument, or hangs on one? ``ctx.save_for_backward(*inputs)`` may."""
    if step.opname != "PUSH_NULL" or not after.opname.startswith("LOAD_FAST"):
        return False
    return after.argval != ctx or second.opname != "LOAD_ATTR" or second.argval not in _MARKS


def _changes_given(step: dis.Instruction, after: dis.Instruction, given: frozenset[str]) -> bool:
    """Is an argument asked for a method by which it changes itself?"""
    named = step.opname.startswith("LOAD_FAST") and step.argval in given
    return named and after.opname in ("LOAD_ATTR", "LOAD_METHOD") and after.argval in _MUTATORS


def _harmless(step: dis.Instruction, after: dis.Instruction, known: Mapping[str, Any], ctx: str | None) -> bool:
    name = step.opname
    if name in _STORES or name.startswith("INPLACE_") or (name == "BINARY_OP" and step.argrepr.endswith("=")):
        return False
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        attribute = str(step.argval)
        return not attribute.endswith("_") and attribute not in _SHARING
    if name in _GLOBALS:
        return _harmless_global(str(step.argval), after, known)
    if ctx is not None and name.startswith("LOAD_FAST") and step.argval == ctx:
        called = after.opname == "LOAD_METHOD" or "NULL" in after.argrepr
        return after.argval in _CTX or not called
    return True


def _harmless_global(name: str, after: dis.Instruction, known: Mapping[str, Any]) -> bool:
    value = known.get(name, None)
    if name not in known:
        return name in _HARMLESS_BUILTINS
    if value is torch:
        found = getattr(torch, str(after.argval), None) if after.opname in ("LOAD_ATTR", "LOAD_METHOD") else None
        plain = isinstance(found, BuiltinFunctionType) and not any(word in str(after.argval) for word in _WRITERS)
        return plain or isinstance(found, torch.dtype)
    return value is math or isinstance(value, (bool, int, float, str, torch.dtype))


def loose_names(function: Any) -> tuple[str, ...]:
    """Names that a function takes from around it: not its arguments, and not known to be code."""
    if type(function) is not FunctionType:
        return ()
    return tuple(dict.fromkeys(_loose(function.__code__, function.__globals__)))


def _loose(code: CodeType, known: Mapping[str, Any]) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in _GLOBALS:
            name = str(step.argval)
            value = known.get(name, getattr(builtins, name, None))
            if not isinstance(value, (ModuleType, FunctionType, BuiltinFunctionType, type)):
                yield name


def found(function: FunctionType, name: str) -> Any:
    """What a name of ``loose_names`` stands for now; None when nothing does."""
    if name in function.__code__.co_freevars and function.__closure__ is not None:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return None
    return function.__globals__.get(name)
