"""What recording keeps: per class, per thread and per call. None of it holds a tensor, a ctx, a graph or a class."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from nbautograd.core.recording.snapshot import SUMMARY, Raw
from nbautograd.core.source import FunctionSource, Methods, methods_of, read_methods

Noticed = tuple[tuple[Any, ...], ...]  # each: what was noticed, and the positions or names it is about

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
        backward_class: gives the hidden class of ctx.
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
        self.backward_class: Callable[[], type | None] = weakref.ref(vars(cls).get("_backward_cls") or cls)
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
    """What was on ctx when forward or setup_context returned, and which of it was an input or output."""

    saved: tuple[Any, ...] = ()
    saved_same: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    attributes: tuple[Any, ...] = ()
    attributes_same: tuple[str, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    dirty: tuple[str, ...] = ()
    non_differentiable: tuple[str, ...] = ()
    bytes: int = 0


class Recorded(NamedTuple):
    """One call; see ``Call`` for most of the fields.

    In the ring it is an exact tuple of plain things, which the garbage collector lets go at its first look, while it
    would follow a NamedTuple for ever.
    """

    index: int  # type: ignore[assignment]  # a field, not tuple.index
    subject_number: int
    method: str
    forward: int | None
    weight: int  # bytes that it takes, estimated: what was copied is counted exactly
    thread: str
    parent: int | None
    seconds: float
    cell: int | None
    caller: tuple[CodeType, int] | None  # the code that called apply, and where in it
    create_graph: bool
    freed: bool
    run: int  # for backward: how often this node ran, this time included; for setup_context: number of its inputs
    first: int | None  # for backward: the first call of this node
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    noticed: Noticed  # what a Watch saw
    kept: Any  # the fields that reading_ctx gives; a RawCtx once unpacked
    stdout: str
    exception: str | None
    missing: tuple[str, ...]
    inputs_same: tuple[str, ...] = ()
    outputs_same: tuple[str, ...] = ()
    noticed_in_setup: Noticed = ()  # for forward: what was noticed in its setup_context

    @property
    def changed(self) -> tuple[int, ...]:
        """Positions of the inputs that were changed during the call."""
        return tuple(one[1] for one in self.noticed if one[0] == "changed")

    @property
    def subject(self) -> Subject:
        """Whose call it was."""
        return SUBJECTS[self.subject_number]

    @property
    def caller_line(self) -> int | None:
        """The line from which ``apply`` was called."""
        if self.caller is None:
            return None
        code, at = self.caller
        return next((line for start, end, line in code.co_lines() if start <= at < end), None)


INDEX, SUBJECT, METHOD, FORWARD, WEIGHT = range(5)  # also of a short record (``short.py``)
NOTICED, KEPT = map(Recorded._fields.index, ("noticed", "kept"))

Packed = tuple[Any, ...]  # the fields of a Recorded up to missing, or a short record

# A call that runs, as a list: its index, what it printed, when it began, its writer, its inputs, all that was
# described, and from the call around it on the fields that its record will have.
Open = list[Any]
(NUMBER, PRINTED, BEGAN, WRITER, GIVEN, KNOWN) = range(6)
# Where ``quick.py`` began the call: up to its writer, then the head of a short record, ctx, the forward, what is known.
(HEAD, ITS_CTX, ITS_FORWARD, MET) = range(4, 8)
QUICK = 8  # its length
# Index of the call around it, then of forward the code that called apply and where in it, of setup_context how many
# inputs there are, of backward create_graph, freed, run and first.
Head = tuple[Any, ...]


def begun(head: Head) -> tuple[Any, ...]:
    """The fields of a Recorded that a head tells: parent, caller, create_graph, freed, run, first."""
    parent, *rest = head
    if len(rest) == 1:
        return parent, None, False, False, rest[0], None
    if len(rest) == 2:
        return parent, None if rest[0] is None else tuple(rest), False, False, 0, None
    return parent, None, *rest


class ThreadState:
    """What one thread is in the middle of.

    Attributes:
        armed: the subject whose ctx was just made; its next ``forward`` lookup is PyTorch's.
        armed_ctx: id of that ctx.
        pending: the subject whose forward just returned; its next ``setup_context`` lookup is PyTorch's.
        stack: calls that are running, outermost first.
        paused: how many ``paused()`` blocks are open.
        aside: True while a call is described with the user's function modes off.
        last_forward: by the subject's number, the index of the forward call that was recorded last, and what it met
            (None once setup_context took it over).
        handed: of a forward that ``quick.py`` wrote down and that setup_context follows: the subject's number, the
            index, id of what forward returned, and the record.
        monitored: what the engine "monitoring" knows of the methods that run, outermost first.
        writing: True while the tee writes, so that a tee on a tee counts once.
    """

    def __init__(self) -> None:
        self.armed: Subject | None = None
        self.armed_ctx = 0
        self.pending: Subject | None = None
        self.stack: list[Open] = []
        self.paused = 0
        self.aside = False
        self.last_forward: dict[int, tuple[int, dict[int, Raw] | None]] = {}
        self.handed: tuple[int, int, int, Packed] | None = None
        self.writing = False
        self.monitored: list[Any] = []
        self.name = threading.current_thread().name


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()


local: Any = _Local()
