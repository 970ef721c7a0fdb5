"""Call and CallLog: what one method of a Function saw, and all such calls in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, overload

from nbautograd.core.display import Displayable, Phrase, plural
from nbautograd.core.findings import Finding
from nbautograd.core.values import CtxSnapshot, Value

Method = Literal["forward", "setup_context", "backward", "jvp", "vmap"]


@dataclass(frozen=True, repr=False)
class Call(Displayable):
    """One call of one method of a Function, as PyTorch made it.

    Attributes:
        index: number of the call since recording began, from 0.
        function: name of the class, such as ``"LinearFunction"``.
        method: ``"forward"``, ``"setup_context"``, ``"backward"`` (also for ``vjp``), ``"jvp"`` or ``"vmap"``.
        parent: index of the call during which this one was made, or None.
        forward: for backward, setup_context and jvp: index of the forward call whose ctx this call got, or None.
        inputs: the arguments without ctx; for backward the grad_outputs.
        outputs: what was returned; for backward the gradients, raw, before the engine sums shapes or casts dtypes.
        ctx: for forward and setup_context what they left on ctx; for backward what was there on entry.
        seconds: wall time inside the user's method.
        thread: name of the thread.
        stdout: what the method printed, in order, as text.
        exception: ``"TypeError: ..."`` when the method raised, else None.
        line: line of the method's ``def`` in the cell or file, counted from 1, or None.
        caller_line: line from which ``apply`` was called in the user's code, or None.
        cell: execution count of the cell that made the call, or None outside a notebook.
        create_graph: for backward: True when it ran with grad enabled (a double backward is possible).
        run: for backward: how often this node has run, this time included; 0 elsewhere or when that is not known.
        first: for backward: index of the first call of this node; a second one comes of ``retain_graph`` or is a double
            backward.
        warnings: what the contract checks noticed in this call.
        missing: what could not be recorded; ``str`` gives the sentence.
        number: of the call among those of this class, from 1, whatever its method; 0 when that is not known.
    """

    index: int
    function: str
    method: Method
    parent: int | None = None
    forward: int | None = None
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    ctx: CtxSnapshot = field(default_factory=CtxSnapshot)
    seconds: float = 0.0
    thread: str = "MainThread"
    stdout: str = ""
    exception: str | None = None
    line: int | None = None
    caller_line: int | None = None
    cell: int | None = None
    create_graph: bool = False
    run: int = 0
    first: int | None = None
    warnings: tuple[Finding, ...] = ()
    missing: tuple[Phrase, ...] = ()
    number: int = 0

    @property
    def name(self) -> str:
        """Name the call beside others of its class, such as ``"#3"``."""
        return f"#{self.number or self.index}"

    def __repr__(self) -> str:
        end = f" raised {self.exception}" if self.exception else ""
        return f"<Call {self.index} {self.function}.{self.method}{end}>"


@dataclass(frozen=True, repr=False)
class CallLog(Displayable, Sequence[Call]):
    """The recorded calls, oldest first.

    Attributes:
        calls: the calls that are left; a log of the recorder decodes each when it is looked at.
        dropped: how many older calls of this log the byte budget let go.
        problems: what could not be recorded and why; ``str`` gives the sentence.
    """

    calls: Sequence[Call] = ()
    dropped: int = 0
    problems: tuple[Phrase, ...] = ()

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the Functions whose calls these are, in the order of their first call."""
        return tuple(dict.fromkeys(call.function for call in self.calls))

    @property
    def names(self) -> dict[int, str]:
        """Return how each call is named, by index: ``#3`` for the third one of its class."""
        return {call.index: call.name for call in self.calls}

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> CallLog: ...
    def __getitem__(self, index: int | slice) -> Call | CallLog:
        if isinstance(index, slice):
            return CallLog(self.calls[index], self.dropped, self.problems)
        return self.calls[index]

    def __repr__(self) -> str:
        return f"<CallLog {plural(len(self.calls), 'call')}, {self.dropped} dropped>"
