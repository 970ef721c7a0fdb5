"""The plainest recorder of ordinary calls: how little recording can cost.

Written from the rules alone, beside ``nbautograd/core/recording``: a descriptor before forward and backward, a record
with slots for a call and for each tensor, the sample of all tensors of a method in one ``process_vm_readv``, bounded by
the size of their storages, a second look afterwards, a ring. ``recording.py`` measures it beside the package. It leaves
out what makes recording right for every Function: see README.md.
"""

from __future__ import annotations

import array
import ctypes
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

WHOLE, BLOCKS, BLOCK = 4096, 8, 512  # bytes that are copied whole; else so many blocks of so many bytes
BUDGET, RECORD, TENSOR = 16 << 20, 400, 300  # bytes: of the ring, of a record, of a snapshot

_readv = ctypes.PyDLL(None).process_vm_readv
_readv.argtypes = [ctypes.c_int, *[ctypes.c_void_p, ctypes.c_ulong] * 2, ctypes.c_ulong]
_readv.restype = ctypes.c_ssize_t
_kernels = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU) | torch._C.DispatchKeySet(
    torch._C.DispatchKey.BackendSelect
)
_guard = torch._C._ExcludeDispatchKeyGuard(torch._C._dispatch_keyset_full() - _kernels)
_tracing, _profiling = torch._C._get_tracing_state, torch._C._autograd._profiler_enabled
_function_modes, _dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack


@dataclass(slots=True, eq=False)
class Snapshot:
    """A tensor at one moment."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    strides: tuple[int, ...]
    version: int
    requires_grad: bool
    grad_fn: str | None
    address: int
    key: int
    elements: bytes | None = None  # of all tensors of the copy; of this one ``size`` of them from ``start``
    start: int = 0
    size: int = 0


@dataclass(slots=True, eq=False)
class Record:
    """One call."""

    function: Any
    method: str
    index: int
    parent: int | None
    thread: int
    caller: tuple[Any, int]
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    seconds: float = 0.0
    exception: str | None = None
    forward: int | None = None
    saved: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    needs_input_grad: tuple[bool, ...] = ()
    marked: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    weight: int = 0


class Thread(threading.local):
    """State of one thread: who is running, and memory for its copies."""

    def __init__(self) -> None:
        self.armed: type | None = None
        self.stack: list[Record] = []
        self.ident = threading.get_ident()
        self.buffer = ctypes.create_string_buffer(1 << 17)
        self.view = memoryview(self.buffer)
        self.target = array.array("Q", [ctypes.addressof(self.buffer), 0])
        self.pieces = array.array("Q", [0] * 1024)
        self.places = self.target.buffer_info()[0], self.pieces.buffer_info()[0]


thread = Thread()
ring: deque[Record] = deque()
used = count = 0
forwards: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # by ctx
_process = os.getpid()
Wanted = list[tuple[torch.Tensor, Snapshot]]


def describe(values: Sequence[Any], known: dict[int, Snapshot], wanted: Wanted | None) -> tuple[Any, ...]:
    """Take a snapshot of each tensor, once; a short text of anything else."""
    described: list[Any] = []
    for value in values:
        if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
            described.append(value if type(value) in (int, float, bool, type(None)) else repr(value)[:200])
            continue
        version, one = value._version, known.get(id(value))
        if one is None or one.version != version:
            node = value.grad_fn
            one = known[id(value)] = Snapshot(
                value.shape, value.dtype, value.device, value.stride(), version, value.requires_grad,
                None if node is None else type(node).__name__, value.data_ptr(), id(value),
            )  # fmt: skip
            if wanted is not None:
                wanted.append((value, one))
        described.append(one)
    return tuple(described)


def copy_elements(wanted: Wanted, state: Thread) -> None:
    """Copy the elements of some tensors, or a sample, in one call of the system."""
    pieces, at, total = state.pieces, 0, 0
    with _guard:
        for tensor, one in wanted:
            size = tensor.nbytes
            if not tensor.is_contiguous():
                continue
            try:
                tensor.as_strided(one.shape, one.strides)  # raises where the storage is smaller
            except RuntimeError:
                continue
            blocks, length = (1, size) if size <= WHOLE else (BLOCKS, BLOCK)
            step = (size - length) // max(blocks - 1, 1) & -16
            for i in range(blocks):
                pieces[at], pieces[at + 1] = one.address + i * step, length
                at += 2
            one.start, one.size = total, blocks * length
            total += one.size
    state.target[1] = total
    target, source = state.places
    if _readv(_process, target, 1, source, at // 2, 0) == total:
        copied = state.view[:total].tobytes()
        for tensor, one in wanted:
            if tensor._version == one.version and tensor.data_ptr() == one.address:
                one.elements = copied


def recording(cls: type, method: str, function: Callable[..., Any], elements: bool) -> Callable[..., Any]:
    """Return the wrapper that PyTorch gets."""
    owner, is_forward = weakref.ref(cls), method == "forward"

    def run(ctx: Any, *args: Any) -> Any:
        global count, used
        if _tracing() or _function_modes() or _dispatch_modes() or _profiling():
            return function(ctx, *args)
        state, frame, known = thread, sys._getframe(1), {}
        stack = state.stack
        count += 1
        parent = stack[-1].index if stack else None
        record = Record(owner, method, count, parent, state.ident, (frame.f_code, frame.f_lasti))
        wanted: Wanted | None = [] if elements else None
        record.inputs = describe(args, known, wanted)
        if wanted:
            copy_elements(wanted, state)
        stack.append(record)
        start = time.perf_counter()
        try:
            result = function(ctx, *args)
        except BaseException as error:
            record.exception = repr(error)
            ring.append(record)
            raise
        finally:
            stack.pop()
        record.seconds = time.perf_counter() - start
        wanted = [] if elements else None
        record.outputs = describe(result if type(result) is tuple else (result,), known, wanted)
        if is_forward:
            forwards[ctx] = record.index
            record.needs_input_grad = ctx.needs_input_grad
            record.saved = describe(ctx.to_save or (), known, wanted)
            record.marked = tuple(map(id, (*(ctx.dirty_tensors or ()), *(ctx.non_differentiable or ()))))
            if vars(ctx):
                record.attributes = dict(zip(vars(ctx), describe([*vars(ctx).values()], known, wanted), strict=True))
        else:
            record.forward = forwards.get(ctx)
        if wanted:
            copy_elements(wanted, state)
        pairs = zip(args, record.inputs, strict=True)
        changed = [i for i, (x, one) in enumerate(pairs) if type(one) is Snapshot and x._version != one.version]
        record.changed = tuple(changed)
        record.weight = RECORD + sum([TENSOR + one.size for one in known.values()])
        ring.append(record)
        used += record.weight
        while used > BUDGET:
            used -= ring.popleft().weight
        return result

    return run


class Spy(staticmethod):  # type: ignore[type-arg]
    """Hands the wrapper to PyTorch and the user's own function to everybody else."""

    function: Callable[..., Any]
    wrapper: Callable[..., Any]
    of_forward: bool

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if not self.of_forward:
            by_torch = sys._getframe(1).f_globals is _torchs
            return self.wrapper if by_torch else self.function
        state = thread
        if state.armed is not owner:
            return self.function
        state.armed = None
        return self.wrapper


_torchs = vars(torch.autograd.function)


def instrument(cls: type, elements: bool = True) -> type:
    """Record the calls of a Function's forward, which fills ctx itself, and backward."""
    for method in ("forward", "backward"):
        function = vars(cls)[method].__func__
        spy = Spy(function)
        spy.function, spy.wrapper = function, recording(cls, method, function, elements)
        spy.of_forward = method == "forward"
        setattr(cls, method, spy)

    def ctx_made(ctx: Any) -> None:
        thread.armed = cls

    cls._backward_cls.__init__ = ctx_made  # type: ignore[attr-defined]
    return cls
