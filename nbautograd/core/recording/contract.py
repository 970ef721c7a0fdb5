"""The ctx contract, read from the source before any run."""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from nbautograd.core import syntax
from nbautograd.core.findings import Finding
from nbautograd.core.recording.legacy import recognise
from nbautograd.core.recording.rules import RULES, Reading
from nbautograd.core.source import METHODS, as_written, methods_of, read_source

_RANK = {"bug": 0, "lint": 1, "note": 2}


def read_contract(cls: type) -> tuple[Finding, ...]:
    """What a Function's source breaks of the contract, without running it.

    Args:
        cls: a subclass of ``torch.autograd.Function``.

    Returns:
        Findings, bugs first; () when all is well or the source is not to be had.

    Example:
        >>> import torch
        >>> from nbautograd.core.recording.contract import read_contract
        >>> read_contract(torch.autograd.function.InplaceFunction)
        ()
    """
    legacy = recognise(cls)
    if legacy is not None:
        return legacy.findings
    source = read_source(cls)
    if source is None:
        return ()
    codes = methods_of(cls).codes
    trees = {name: tree for name, code in codes.items() if (tree := syntax.method_at(code)) is not None}
    reading = Reading(cls.__name__, source, trees, _unknown_names(cls, codes), _not_static(cls))
    found = [finding for rule in RULES for finding in rule(reading)]
    return tuple(sorted(found, key=lambda finding: _RANK[finding.kind]))


def _not_static(cls: type) -> tuple[str, ...]:
    """Methods that the class itself defines without ``@staticmethod``."""
    return tuple(name for name in METHODS if isinstance(as_written(vars(cls).get(name)), FunctionType))


def _unknown_names(cls: type, codes: Any) -> dict[str, tuple[str, ...]]:
    """Per method, the global names that it uses and that nothing defines."""
    unknown = {}
    for method, code in codes.items():
        function = _function(getattr(cls, method, None))
        if function is not None:
            known = function.__globals__.keys() | vars(builtins).keys()
            unknown[method] = tuple(dict.fromkeys(name for name in _globals_used(code) if name not in known))
    return unknown


def _function(found: Any) -> FunctionType | None:
    for _ in range(32):
        inner = getattr(found, "__wrapped__", None)
        if inner is None and isinstance(found, functools.partial):
            inner = found.func
        if inner is None:
            break
        found = inner
    found = getattr(found, "__func__", found)
    return found if isinstance(found, FunctionType) else None


def _globals_used(code: CodeType) -> Iterator[str]:
    """Names that a function and the functions inside it load from the module, in order."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_used(constant)
