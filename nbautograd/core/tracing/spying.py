"""The wrapper around a user's ``__torch_function__`` or ``__torch_dispatch__``, and the ring it writes to."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.overrides import resolve_name

from nbautograd.core import stumbles
from nbautograd.core.recording.live_log import value_of
from nbautograd.core.recording.snapshot import PLAIN_TYPES, SUMMARY, ObjectSnapshot, Snapshot, safe_repr, snapshots
from nbautograd.core.torch_private import tensors as internals
from nbautograd.core.tracing.dispatches import Dispatch, DispatchOutcome
from nbautograd.core.values import attributes

PROTOCOLS = ("__torch_function__", "__torch_dispatch__")
KEPT_DISPATCHES = 2000  # dispatches that are kept
ORIGINAL = "_nbautograd_original"  # kept on the wrapper, so that a traced class can be forgotten like any other


class Record:
    """A dispatch while it runs, and after: descriptions that become a Dispatch when somebody looks."""

    def __init__(self, index: int, parent: int | None, cls: type, protocol: str) -> None:
        self.index, self.parent, self.protocol = index, parent, protocol
        self.cls = weakref.ref(cls)  # a traced class may be forgotten by its user
        self.owner, self.func, self.types = cls.__name__, "", ()  # type: str, str, tuple[str, ...]
        self.args: tuple[Snapshot, ...] = ()
        self.kwargs: tuple[tuple[str, Snapshot], ...] = ()
        self.outcome: DispatchOutcome = "running"
        self.handler: tuple[str, int | None] = ("", None)
        self.result: Snapshot | None = None
        self.exception = ""
        self.seconds = 0.0
        self.thread = threading.current_thread().name

    def read(self) -> Dispatch:
        """Return the plain value."""
        return Dispatch(
            self.index,
            self.parent,
            self.protocol,
            self.owner,
            self.func,
            self.types,
            tuple(value_of(f"args[{i}]", one) for i, one in enumerate(self.args)),
            tuple(value_of(name, one) for name, one in self.kwargs),
            self.outcome,
            *self.handler,
            None if self.result is None else value_of("result", self.result),
            self.exception,
            self.seconds,
            self.thread,
        )


class _Thread(threading.local):
    """State of each thread.

    Attributes:
        parent: index of the dispatch that runs, or None.
        looking: True while we describe something: a dispatch that this should cause is passed on unseen.
    """

    parent: int | None = None
    looking = False


class DispatchRing:
    """The newest dispatches of the process."""

    def __init__(self) -> None:
        self.records: deque[Record] = deque(maxlen=KEPT_DISPATCHES)
        self.begun = 0  # index of the next one
        self.local = _Thread()

    def begin(
        self, cls: type, protocol: str, method: FunctionType, arguments: tuple[Any, ...], by_name: dict[str, Any]
    ) -> Record | None:
        """Write down that a method was asked; None when describing fails, as near the recursion limit."""
        local = self.local
        local.looking = True
        try:
            func, types, args, kwargs = _arguments(*arguments, **by_name)
            record = Record(self.begun, local.parent, cls, protocol)
            record.func = function_name(func)
            record.types = tuple(t.__name__ for t in types)
            record.args = tuple(map(describe, args))
            record.kwargs = tuple((str(name), describe(value)) for name, value in kwargs.items())
            record.handler = implementation(method, cls, func)
            self.begun += 1
        except RecursionError:  # the program's own depth
            return None
        except Exception as error:  # ours, never the user's
            stumbles.record(error, "tracing")
            return None
        finally:
            local.looking = False
        self.records.append(record)
        return record

    def end(self, record: Record, result: Any) -> None:
        """Write down what the method answered."""
        self.local.looking = True
        try:
            if result is NotImplemented:
                record.outcome, record.handler = "NotImplemented", ("", None)
            else:
                record.outcome, record.result = "returned", describe(result)
        except Exception as error:
            stumbles.record(error, "tracing")
            record.result = None
        finally:
            self.local.looking = False


def wrapped(cls: type, protocol: str, ring: DispatchRing) -> Any:
    """Wrap a method as what stands in its place in the class's dict: of the same kind, with the same name and source.

    Returns:
        None when the method is of a kind that cannot be traced (a builtin, a static method).
    """
    entry = vars(cls)[protocol]
    method = entry.__func__ if isinstance(entry, classmethod) else entry
    if type(method) is not FunctionType:
        return None
    run = functools.wraps(method)(_running(protocol, method, ring))
    vars(run)[ORIGINAL] = entry
    return classmethod(run) if isinstance(entry, classmethod) else run


def original(entry: Any) -> Any:
    """Return what stood in the class's dict where a wrapper of ours stands; None for anything else."""
    return getattr(getattr(entry, "__func__", entry), ORIGINAL, None)


def _running(protocol: str, method: FunctionType, ring: DispatchRing) -> Callable[..., Any]:
    local = ring.local
    inner = getattr(method, "__wrapped__", method)
    plain = inner if type(inner) is FunctionType else method  # the user's, under torch's own decorators of it

    def run(owner: Any, /, *arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        record = None
        if not local.looking:
            record = ring.begin(owner if isinstance(owner, type) else type(owner), protocol, plain, arguments, named)
        if record is None:
            return method(owner, *arguments, **named)
        before, local.parent = local.parent, record.index
        started = time.perf_counter()
        try:
            result = method(owner, *arguments, **named)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            said = BaseException.__str__(error)  # without running a ``__str__`` of the user's
            first = said.splitlines()[0][:200] if said else ""
            record.outcome, record.exception = "raised", f"{type(error).__name__}: {first}".rstrip(": ")
            raise
        finally:
            record.seconds, local.parent = time.perf_counter() - started, before
        ring.end(record, result)
        return result

    return run


def _arguments(
    func: Any, types: Any = (), args: Any = (), kwargs: Any = None
) -> tuple[Any, tuple[type, ...], tuple[Any, ...], dict[str, Any]]:
    return func, tuple(types), tuple(args), dict(kwargs or {})


WHOLE_NUMBER_LETTERS = 6  # characters of a number that is written in full
LISTED = 4  # attributes or items that are shown of an object


def function_name(func: Any) -> str:
    """Return ``"torch.mean"``, ``"torch.Tensor.add"``, ``"aten.add.Tensor"``."""
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(func)
    found = stumbles.ask(lambda: resolve_name(func), None)
    if isinstance(found, str):
        return found.removesuffix(".__get__")
    return str(getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or type(func).__name__)


def describe(value: Any) -> Snapshot:
    """Return one argument or result as plain data; nothing of it stays alive."""
    if type(value) in PLAIN_TYPES:
        return snapshots([value], SUMMARY)[0]
    plain = getattr(type(value), "__torch_dispatch__", None) is torch.Tensor.__torch_dispatch__
    if isinstance(value, torch.Tensor) and plain:
        with internals.disable_torch_function():
            return snapshots([value], SUMMARY)[0]
    return ObjectSnapshot(type(value).__name__, _text(value))


def implementation(method: Callable[..., Any], cls: type, func: Any) -> tuple[str, int | None]:
    """Name and line of what a table that the method reads has for ``func``; ``("", None)`` without one.

    The table is any dict among the names that the method's code reads: ``HANDLED_FUNCTIONS[func]`` as the PyTorch
    documentation writes it, a global or an attribute of the class.
    """
    scope = method.__globals__
    for name in method.__code__.co_names:
        table = scope.get(name, vars(cls).get(name))
        if type(table) is dict and func in table:
            function = getattr(table[func], "__func__", table[func])
            code = getattr(function, "__code__", None)
            return getattr(function, "__name__", type(function).__name__), getattr(code, "co_firstlineno", None)
    return "", None


def _text(value: Any, depth: int = 2) -> str:
    """Return ``<ScalarTensor _N=2 _value=3>``: a text made of what the object holds."""
    kind = type(value)
    if kind in PLAIN_TYPES:
        shape = "×".join(map(str, value.shape))
        return f"{str(value.dtype).removeprefix('torch.')} {shape}".strip()
    if kind is float:
        return repr(value) if len(repr(value)) <= WHOLE_NUMBER_LETTERS else f"{value:.4g}"
    if kind in (list, tuple) and depth:
        inside = ", ".join(_text(item, depth - 1) for item in value[:LISTED]) + (", …" if len(value) > LISTED else "")
        return f"[{inside}]" if kind is list else f"({inside})"
    held = _attributes(value)
    if not held or not depth:
        return safe_repr(value)
    inside = " ".join(f"{name}={_text(item, depth - 1)}" for name, item in list(held.items())[:LISTED])
    return f"<{kind.__name__} {inside}{' …' if len(held) > LISTED else ''}>"


def _attributes(value: Any) -> dict[str, Any]:
    """Return what a plain object holds by name."""
    odd = isinstance(value, (type, torch.nn.Module)) or callable(value) or type(value).__module__ == "builtins"
    return {} if odd else attributes(value)
