"""Records: what recording keeps of a Function, a call and a thread, and the ring that bounds them.

None of them holds a tensor, a ctx or a class.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any

from nbautograd.core import forks
from nbautograd.core.forks import cached
from nbautograd.core.recording.call import Call
from nbautograd.core.recording.snapshot import SUMMARY, CallSnapshots, Snapshot
from nbautograd.core.torch_private import ctx as private
from nbautograd.core.torch_private import library
from nbautograd.core.user_source import (
    FunctionSource,
    Methods,
    codes_in,
    defining_classes,
    methods_of,
    read_methods,
    unwrap,
)

_numbers = itertools.count()
_WRITES_PAST_THE_VERSION = frozenset({"data", "numpy", "asarray", "from_dlpack", "data_ptr", "__array_interface__"})


class InstrumentedFunction:
    """A Function class that is recorded, known by its name and the code of its methods.

    Args:
        cls: the class; held weakly.
        level: how much is kept of its calls, one of ``snapshot.LEVELS``' numbers.

    Attributes:
        number: tells it apart from others of the same name.
        name: the class's name.
        methods: where the methods were written.
        sets_up: True when ctx is filled by setup_context and forward gets none.
        backward_class: gives the hidden class of ctx.
        next_number: gives the number of the next call of any of its methods.
        operation: True when it stands for an operation of ``torch.library``, which may take and return lists.
        compiled: True once torch.compile was seen to read a method: then it runs without us.
    """

    def __init__(self, cls: type, level: int = SUMMARY) -> None:
        self.number = next(_numbers)
        self.name = cls.__name__
        self.level = level
        self.methods: Methods = methods_of(cls)
        self.sets_up = "setup_context" in self.methods.codes
        self.operation = library.stands_for_operation(cls)
        self.compiled = False
        self.next_number = itertools.count(1).__next__
        self._cls = weakref.ref(cls)
        self.backward_class: Callable[[], type | None] = weakref.ref(private.backward_class(cls) or cls)

    @property
    def cls(self) -> type | None:
        """The class, None once it is gone."""
        return self._cls()

    @cached
    def source(self) -> FunctionSource | None:
        """The text of the class, read when somebody first looks at a call."""
        return read_methods(self.methods)

    @cached
    def _names(self) -> dict[str, frozenset[str]]:
        return {
            "backward" if method == "vjp" else method: frozenset(
                [name for one in codes_in(code) for name in (*one.co_names, *one.co_freevars)]
            )
            for method, code in self.methods.codes.items()
        }

    def names(self, method: str) -> frozenset[str]:
        """Return every name in a method's code, attributes and those of inner functions included."""
        return self._names.get(method, frozenset())

    @cached
    def writes_unseen(self) -> frozenset[str]:
        """The methods that name a way to write into a tensor that its version does not tell."""
        return frozenset([method for method, names in self._names.items() if names & _WRITES_PAST_THE_VERSION])

    def may_write_in_place(self, method: str) -> bool:
        """Return True when a method names an operation that writes into its tensor, such as ``mul_``."""
        return any(name.endswith("_") and not name.endswith("__") for name in self.names(method))

    @cached
    def keeps_state(self) -> bool:
        """True when a method names the class, so that it may keep something on it."""
        return any(self.name in names or "__class__" in names for names in self._names.values())

    def function(self, method: str) -> FunctionType | None:
        """Return the user's plain function behind a method, None when it is none."""
        owner = None if self.cls is None else defining_classes(self.cls).get(method)
        function = None if owner is None else unwrap(vars(owner)[method])
        return function if isinstance(function, FunctionType) else None


def value_around(function: FunctionType, name: str) -> Any:
    """Return what a name stands for around a function, a closure's cell or a global; None when nothing does."""
    if function.__closure__ is not None and name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not filled yet
            return None
    return function.__globals__.get(name)


OWN_CALL = -1  # index of a call that a check made for itself, which is in no log


@dataclass(slots=True, eq=False)
class CtxRecord:
    """Contents of ctx when forward or setup_context returned.

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
    """One call of one method, while it runs and after; ``live_log.py`` makes a ``Call`` of it.

    Attributes:
        index: number of the call since recording began.
        function: whose call it is.
        method: ``"forward"``, ``"setup_context"``, ``"backward"`` (also for ``vjp``), ``"jvp"`` or ``"vmap"``.
        parent: index of the call during which this one was made, or None.
        thread, cell: name of the thread; execution count of the notebook cell, or None.
        number: of the call among those of its Function, from 1.
        known: while the call runs: snapshots by id of the tensor.
        forward: index of the forward call whose ctx this call got, or None.
        caller: the code that called apply and where in it, or None.
        create_graph, freed: for backward: it ran with grad enabled; its saved tensors were gone already.
        run, first: for backward: how often this node ran, and index of the first such call.
        setup_inputs: for setup_context: how many of its inputs are forward's inputs; the rest are its outputs.
        boxed: for backward: True when its inputs came in one list.
        keywords: names of those of forward's inputs that came by keyword, which are the last ones.
        inputs, outputs: what the method was given besides ctx, and what it returned.
        ctx: what the method left on ctx; None for a method that leaves nothing there.
        changed: positions of the inputs whose elements changed during the call.
        hidden: names around forward that stand for tensors that require grad and were not among the inputs.
        reused: for backward: positions of gradients that an earlier call returned, and something wrote to since.
        saved_after: for backward: the saved tensors as they were at its end.
        class_state: the attributes of the class that are no methods: name -> what tells a value apart.
        strided: for a backward that raised: positions of the gradients that were not contiguous.
        began: when the user's method began, by ``perf_counter``.
        seconds: wall time inside the user's method.
        printed: what the method printed.
        tee: the ``prints.Tee`` that hears what it prints while it runs, where no call around it does.
        exception: ``"TypeError: ..."`` when the method raised.
        missing: what could not be recorded, as text of our own errors.
        weight: bytes that the record takes, estimated; what was copied is counted exactly. Of a call that has ended.
        call: the ``Call``, once somebody looked, and while the ring keeps it.
    """

    index: int
    function: InstrumentedFunction
    method: str
    parent: int | None
    thread: str
    cell: int | None
    number: int = 0
    known: CallSnapshots | None = None
    forward: int | None = None
    caller: tuple[CodeType, int] | None = None
    create_graph: bool = False
    freed: bool = False
    run: int = 0
    first: int | None = None
    setup_inputs: int = 0
    boxed: bool = False
    keywords: tuple[str, ...] = ()
    inputs: tuple[Snapshot, ...] = ()
    outputs: tuple[Snapshot, ...] = ()
    ctx: CtxRecord | None = None
    changed: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()
    reused: tuple[int, ...] = ()
    saved_after: tuple[Snapshot, ...] | None = None
    class_state: dict[str, tuple[int, Any]] | None = None
    strided: tuple[int, ...] = ()
    began: float = 0.0
    seconds: float = 0.0
    printed: list[str] | None = None
    tee: Any = None
    exception: str | None = None
    missing: str | None = None
    weight: int = 0
    call: Call | None = None

    def finish(self) -> None:
        """Let go of what is wanted only while the call runs, and weigh what stays."""
        copied, self.known = 0 if self.known is None else self.known.copied, None
        self.weight = _CALL + _VALUE * (len(self.inputs) + len(self.outputs)) + copied


class ThreadState:
    """State of one thread that records.

    Attributes:
        armed: the Function whose ctx was just made; its next ``forward`` lookup is PyTorch's.
        armed_ctx: id of that ctx.
        pending: the Function whose forward just returned; its next ``setup_context`` lookup is PyTorch's.
        transformed: True when ``torch.func`` made the last call of a forward.
        handed_out: takes back the wrapper that ``setup_context`` gives meanwhile, None when it gives the user's own.
        stack: calls that are running, outermost first.
        paused: how many ``paused()`` blocks are open.
        last_forward: by number of a Function, the index of its forward call that was recorded last, and its snapshots
            (None once setup_context took them over).
        writing: True while the tee writes, so that a tee on a tee counts once.
    """

    def __init__(self) -> None:
        self.armed: InstrumentedFunction | None = None
        self.armed_ctx = 0
        self.pending: InstrumentedFunction | None = None
        self.transformed = False
        self.handed_out: Callable[[], None] | None = None
        self.stack: list[CallRecord] = []
        self.paused = 0
        self.last_forward: dict[int, tuple[int, CallSnapshots | None]] = {}
        self.writing = False
        self.name = threading.current_thread().name


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()


local: Any = _Local()


BUDGET = 16 * 2**20  # bytes of all that is recorded
EVERY = 32  # calls between two looks at the budget
_CALL, _VALUE = 900, 350  # bytes that a record takes, and each of its snapshots besides what was copied
_FOR_DECODED = 8  # one part in so many of the budget is for Calls that were decoded


@dataclass(slots=True)
class CtxLink:
    """Facts about a ctx.

    Attributes:
        function: whose ctx it is.
        forward: index of the forward call that filled it.
        freed: True once a backward freed its saved tensors.
        runs: how often its node ran.
        first_run: index of the first such call.
    """

    function: InstrumentedFunction
    forward: int
    freed: bool = False
    runs: int = 0
    first_run: int | None = None


class CallRing:
    """Calls that have ended, newest last.

    Args:
        budget: bytes that the calls may take, estimated; an eighth of it is for those that somebody looked at.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.used = 0
        self.dropped = 0
        self.gone: Counter[InstrumentedFunction] = Counter()  # how many calls of each were let go
        self.links: dict[int, CtxLink] = {}  # by id(ctx)
        self._fresh: deque[CallRecord] = deque()  # ended, and not counted yet
        self._calls: deque[CallRecord] = deque()
        self._decoded: deque[tuple[CallRecord, int]] = deque()  # and how many bytes each Call takes
        self.used_by_decoded = 0
        self._lock = forks.lock()
        self.add = self._fresh.append  # takes in a call that ended, from any thread; settle counts it
        self.next_index = itertools.count().__next__  # gives the number of the next call

    def settle(self) -> None:
        """Count the calls that came since the last time, and let the oldest go while there are too many bytes."""
        with self._lock:
            calls, fresh = self._calls, self._fresh
            while fresh:
                record = fresh.popleft()
                calls.append(record)
                self.used += record.weight
            while self.used > self.budget - self.budget // _FOR_DECODED and len(calls) > 1:
                record = calls.popleft()
                self.used -= record.weight
                self.dropped += 1
                self.gone[record.function] += 1
            if len(self.links) > 2 * len(calls) + 1024:
                first = self._calls[0].index if self._calls else 0
                for key, link in list(self.links.items()):
                    if link.forward < first:
                        self.links.pop(key, None)

    def keep_decoded(self, record: CallRecord, call: Call, weight: int) -> None:
        """Keep a Call with its record; those that were decoded first are let go, and decoded anew when looked at."""
        with self._lock:
            record.call = call
            self._decoded.append((record, weight))
            self.used_by_decoded += weight
            while self.used_by_decoded > self.budget // _FOR_DECODED and len(self._decoded) > 1:
                oldest, freed = self._decoded.popleft()
                oldest.call = None
                self.used_by_decoded -= freed

    def finished(self) -> list[CallRecord]:
        """Return the calls that have ended, in the order in which they began."""
        with self._lock:
            self.settle()
            calls = list(self._calls)
        return sorted(calls, key=attrgetter("index"))

    def recorded(self, cls: type) -> list[InstrumentedFunction]:
        """Return what stands for a class here: more than one where its recording ended and began again."""
        with self._lock:
            self.settle()
            functions = dict.fromkeys([*self.gone, *[record.function for record in self._calls]])
        return [function for function in functions if function.cls is cls]

    def clear(self) -> None:
        """Forget every call; numbers go on."""
        with self._lock:
            self._fresh.clear()
            self._calls.clear()
            self._decoded.clear()
            self.links.clear()
            self.gone.clear()
            self.used = self.dropped = self.used_by_decoded = 0

    def __len__(self) -> int:
        return len(self._calls) + len(self._fresh)
