"""What recording keeps: per class, per thread and per call. None of it holds a tensor, a ctx, a graph or a class."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any, NamedTuple

from nbautograd.core.recording.snapshot import SUMMARY, Raw, named
from nbautograd.core.source import FunctionSource, Methods, methods_of, read_methods

_numbers = itertools.count()
SUBJECTS: dict[int, Subject] = {}


class Subject:
    """A Function class that is recorded, known by its name and the code of its methods.

    Attributes:
        number: what records know it by.
        name: the class's name.
        level: how much is kept of its calls, one of ``snapshot.LEVELS``' numbers.
        methods: where the methods were written.
        sets_up: True when ctx is filled by setup_context and forward gets none.
        traced: True once torch.compile was seen to read a method: then it runs without us.
    """

    def __init__(self, cls: type, level: int = SUMMARY) -> None:
        self.number = next(_numbers)
        self.name = cls.__name__
        self.level = level
        SUBJECTS[self.number] = self
        self.methods: Methods = methods_of(cls)
        self.sets_up = "setup_context" in self.methods.codes
        self.traced = False
        self._cls = weakref.ref(cls)
        self._source: FunctionSource | None = None

    @property
    def cls(self) -> type | None:
        """The class, None once it is gone."""
        return self._cls()

    @property
    def source(self) -> FunctionSource | None:
        """What its text tells, read when first asked."""
        if self._source is None:
            self._source = read_methods(self.methods)
        return self._source


class RawCtx(NamedTuple):
    """What was on ctx when forward or setup_context returned, raw."""

    saved: tuple[Raw, ...] = ()
    saved_same: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    attributes: tuple[Raw, ...] = ()
    attributes_same: tuple[str, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    dirty: tuple[str, ...] = ()
    non_differentiable: tuple[str, ...] = ()
    bytes: int = 0


class Record:
    """One call while it runs. The class attributes are the defaults; a call sets what it has."""

    parent: int | None = None
    forward: int | None = None
    inputs: tuple[Raw, ...] = ()
    outputs: tuple[Raw, ...] = ()
    inputs_same: tuple[str, ...] = ()
    outputs_same: tuple[str, ...] = ()
    changed: tuple[int, ...] = ()  # positions of the inputs whose version moved during the call
    kept: tuple[Any, ...] | None = None  # the fields of a RawCtx
    seconds = 0.0
    stdout: list[str] | None = None
    exception: str | None = None
    caller_line: int | None = None
    cell: int | None = None
    create_graph = False
    freed = False
    missing: tuple[str, ...] = ()
    size = 0
    ctx_id = 0
    closed = False
    seen: dict[int, tuple[str, Raw]] | None = None

    def __init__(self, subject: Subject, method: str, index: int, thread: str) -> None:
        self.subject = subject
        self.method = method
        self.index = index
        self.thread = thread

    def packed(self) -> tuple[Any, ...]:
        """The fields of a Recorded, as an exact tuple of plain things: nothing for the garbage collector to follow."""
        return (
            self.index, self.subject.number, self.method, self.thread, self.parent, self.forward, self.inputs,
            self.outputs, self.inputs_same, self.outputs_same, self.changed, self.kept, self.seconds,
            "".join(self.stdout) if self.stdout else "", self.exception, self.caller_line, self.cell,
            self.create_graph, self.freed, self.missing, self.ctx_id, self.size,
        )  # fmt: skip


class Recorded(NamedTuple):
    """One call that has ended; see ``Call`` for most of the fields."""

    index: int  # type: ignore[assignment]  # a field, not tuple.index
    subject_number: int
    method: str
    thread: str
    parent: int | None
    forward: int | None
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    inputs_same: tuple[str, ...]
    outputs_same: tuple[str, ...]
    changed: tuple[int, ...]
    kept: Any
    seconds: float
    stdout: str
    exception: str | None
    caller_line: int | None
    cell: int | None
    create_graph: bool
    freed: bool
    missing: tuple[str, ...]
    ctx_id: int
    size: int

    @property
    def subject(self) -> Subject:
        """Whose call it was."""
        return SUBJECTS[self.subject_number]


def unpacked(packed: tuple[Any, ...], kept: tuple[Any, ...] | None = None) -> Recorded:
    """A packed record with its fields named; kept is what setup_context left on ctx, for its forward."""
    recorded = Recorded(*packed)
    left = recorded.kept if recorded.kept is not None else kept
    ctx = None if left is None else RawCtx(*left)
    if ctx is not None:
        ctx = ctx._replace(saved=tuple(map(named, ctx.saved)), attributes=tuple(map(named, ctx.attributes)))
    inputs, outputs = tuple(map(named, recorded.inputs)), tuple(map(named, recorded.outputs))
    return recorded._replace(inputs=inputs, outputs=outputs, kept=ctx)


class ThreadState:
    """What one thread is in the middle of.

    Attributes:
        armed: the subject whose ctx was just made; its next ``forward`` lookup is PyTorch's.
        armed_ctx: id of that ctx.
        pending: the subject whose forward just returned; its next ``setup_context`` lookup is PyTorch's.
        stack: calls that are running, outermost first.
        paused: how many ``paused()`` blocks are open.
        last_forward: by the subject's number, the forward call that was recorded last.
        writing: True while the tee writes, so that a tee on a tee counts once.
    """

    def __init__(self) -> None:
        self.armed: Subject | None = None
        self.armed_ctx = 0
        self.pending: Subject | None = None
        self.stack: list[Record] = []
        self.paused = 0
        self.last_forward: dict[int, Record] = {}
        self.writing = False
        self.name = threading.current_thread().name


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()


local: Any = _Local()
