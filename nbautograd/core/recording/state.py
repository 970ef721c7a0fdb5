"""What recording keeps: per class, per thread and per call. None of it holds a tensor, a ctx, a graph or a class."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from nbautograd.core.recording.snapshot import SUMMARY, Raw
from nbautograd.core.source import FunctionSource, Methods, methods_of, read_methods


class Subject:
    """A Function class that is recorded, known by its name and the code of its methods.

    Attributes:
        name: the class's name.
        level: how much is kept of its calls, one of ``snapshot.LEVELS``' numbers.
        methods: where the methods were written.
        traced: True once torch.compile was seen to read a method: then it runs without us.
    """

    def __init__(self, cls: type, level: int = SUMMARY) -> None:
        self.name = cls.__name__
        self.level = level
        self.methods: Methods = methods_of(cls)
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


class RawCtx:
    """What was on ctx when forward or setup_context returned, raw."""

    saved: tuple[Raw, ...] = ()
    saved_same: tuple[str, ...] = ()
    attributes: dict[str, Raw] = {}
    attributes_same: dict[str, str] = {}
    needs_input_grad: tuple[bool, ...] = ()
    dirty: tuple[str, ...] = ()
    non_differentiable: tuple[str, ...] = ()
    bytes: int = 0


class Record:
    """One call, raw. The class attributes are the defaults; a call sets what it has."""

    parent: int | None = None
    forward: int | None = None
    inputs: tuple[Raw, ...] = ()
    outputs: tuple[Raw, ...] = ()
    single = True  # one output that was not in a tuple
    inputs_same: tuple[str, ...] = ()
    outputs_same: tuple[str, ...] = ()
    changed: tuple[int, ...] = ()  # positions of the inputs whose version moved during the call
    kept: RawCtx | None = None
    seconds = 0.0
    stdout: list[str] | None = None
    exception: str | None = None
    caller_line: int | None = None
    cell: int | None = None
    create_graph = False
    freed = False
    missing: tuple[str, ...] = ()
    done = False
    size = 0
    ctx_id = 0
    seen: dict[int, tuple[str, Raw]] | None = None

    def __init__(self, subject: Subject, method: str, index: int, level: int, thread: str) -> None:
        self.subject = subject
        self.method = method
        self.index = index
        self.level = level
        self.thread = thread


class ThreadState:
    """What one thread is in the middle of.

    Attributes:
        armed: the subject whose ctx was just made; its next ``forward`` lookup is PyTorch's.
        armed_ctx: id of that ctx.
        pending: the subject whose forward just returned; its next ``setup_context`` lookup is PyTorch's.
        stack: calls that are running, outermost first.
        paused: how many ``paused()`` blocks are open.
        last_forward: per subject, the forward call that was recorded last.
        writing: True while the tee writes, so that a tee on a tee counts once.
    """

    def __init__(self) -> None:
        self.armed: Subject | None = None
        self.armed_ctx = 0
        self.pending: Subject | None = None
        self.stack: list[Record] = []
        self.paused = 0
        self.last_forward: weakref.WeakKeyDictionary[Subject, Record] = weakref.WeakKeyDictionary()
        self.writing = False
        self.name = threading.current_thread().name


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()


local: Any = _Local()
