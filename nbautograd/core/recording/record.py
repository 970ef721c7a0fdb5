"""CallRecord: one recorded call, and what a thread is in the middle of; neither holds a tensor, a ctx or a class."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from nbautograd.core.recording.call import Call
from nbautograd.core.recording.function import InstrumentedFunction
from nbautograd.core.recording.snapshot import Known, Snapshot

OWN_CALL = -1  # index of a call that a check made for itself, which is in no log


@dataclass(slots=True, eq=False)
class CtxRecord:
    """What was on ctx when forward or setup_context returned.

    Attributes:
        saved: what ``save_for_backward`` was given.
        attributes: what else was put on ctx, by name.
        needs_input_grad: one bool per argument of forward.
        dirty, non_differentiable: ids of the tensors that were marked.
        materialize_grads: what ``set_materialize_grads`` left.
    """

    saved: tuple[Snapshot, ...] = ()
    attributes: dict[str, Snapshot] = field(default_factory=dict)
    needs_input_grad: tuple[bool, ...] = ()
    dirty: tuple[int, ...] = ()
    non_differentiable: tuple[int, ...] = ()
    materialize_grads: bool = True


@dataclass(slots=True, eq=False)
class CallRecord:
    """One call of one method, while it runs and after; ``decode.py`` makes a ``Call`` of it.

    Attributes:
        index: number of the call since recording began.
        function: whose call it is.
        method: ``"forward"``, ``"setup_context"``, ``"backward"`` (also for ``vjp``), ``"jvp"`` or ``"vmap"``.
        parent: index of the call during which this one was made, or None.
        thread, cell: name of the thread; execution count of the notebook cell, or None.
        forward: index of the forward call whose ctx this call got, or None.
        caller: the code that called apply and where in it, or None.
        create_graph, freed: for backward: it ran with grad enabled; its saved tensors were gone already.
        run, first: for backward: how often this node ran, and index of the first such call.
        setup_inputs: for setup_context: how many of its inputs are forward's inputs; the rest are its outputs.
        inputs, outputs: what the method was given besides ctx, and what it returned.
        ctx: what the method left on ctx; None for a method that leaves nothing there.
        changed: positions of the inputs whose elements changed during the call.
        hidden: names around forward that stand for tensors that require grad and were not among the inputs.
        reused: for backward: (position, index of the earlier call) of gradients that were returned before.
        saved_after: for backward: the saved tensors as they were at its end.
        class_state: the attributes of the class that are no methods: name -> what tells a value apart.
        strided: for a backward that raised: positions of the gradients that were not contiguous.
        began: when the user's method began, by ``perf_counter``.
        seconds: wall time inside the user's method.
        printed: what the method printed.
        exception: ``"TypeError: ..."`` when the method raised.
        missing: what could not be recorded, as text of our own errors.
        known: while the call runs: snapshots by id of the tensor.
        weight: bytes that the record takes, estimated.
        call: the ``Call``, once somebody looked, and while the ring keeps it.
    """

    index: int
    function: InstrumentedFunction
    method: str
    parent: int | None
    thread: str
    cell: int | None
    forward: int | None = None
    caller: tuple[CodeType, int] | None = None
    create_graph: bool = False
    freed: bool = False
    run: int = 0
    first: int | None = None
    setup_inputs: int = 0
    inputs: tuple[Snapshot, ...] = ()
    outputs: tuple[Snapshot, ...] = ()
    ctx: CtxRecord | None = None
    changed: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()
    reused: tuple[tuple[int, int], ...] = ()
    saved_after: tuple[Snapshot, ...] | None = None
    class_state: dict[str, tuple[int, Any]] | None = None
    strided: tuple[int, ...] = ()
    began: float = 0.0
    seconds: float = 0.0
    printed: list[str] | None = None
    exception: str | None = None
    missing: str | None = None
    known: Known | None = None
    weight: int = 0
    call: Call | None = None


class ThreadState:
    """What one thread is in the middle of.

    Attributes:
        armed: the Function whose ctx was just made; its next ``forward`` lookup is PyTorch's.
        armed_ctx: id of that ctx.
        pending: the Function whose forward just returned; its next ``setup_context`` lookup is PyTorch's.
        stack: calls that are running, outermost first.
        paused: how many ``paused()`` blocks are open.
        without_modes: True while a call is recorded with the user's function modes off.
        last_forward: by number of a Function, the index of its forward call that was recorded last, and its snapshots
            (None once setup_context took them over).
        writing: True while the tee writes, so that a tee on a tee counts once.
    """

    def __init__(self) -> None:
        self.armed: InstrumentedFunction | None = None
        self.armed_ctx = 0
        self.pending: InstrumentedFunction | None = None
        self.stack: list[CallRecord] = []
        self.paused = 0
        self.without_modes = False
        self.last_forward: dict[int, tuple[int, Known | None]] = {}
        self.writing = False
        self.name = threading.current_thread().name


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()


local: Any = _Local()
