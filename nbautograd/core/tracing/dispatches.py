"""Dispatch and DispatchLog: what a class that overrides torch's functions was asked, and what it answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, overload

from nbautograd.core.display import Displayable, Phrase
from nbautograd.core.values import Value

DispatchOutcome = Literal["returned", "NotImplemented", "raised", "running"]


@dataclass(frozen=True, repr=False)
class Dispatch(Displayable):
    """One call of a ``__torch_function__`` or ``__torch_dispatch__``.

    Attributes:
        index: position among all dispatches of the process, oldest 0.
        parent: index of the dispatch during which this one was made, or None.
        protocol: ``"__torch_function__"`` or ``"__torch_dispatch__"``.
        owner: name of the class that was asked.
        func: name of the torch function, such as ``"torch.add"``, ``"aten.add.Tensor"``.
        types: names of the types that override, in the order in which torch asks them.
        args: the positional arguments, named ``"args[0]"`` and so on.
        kwargs: the keyword arguments, by their names.
        outcome: ``"returned"`` a value, ``"NotImplemented"``, ``"raised"``, or ``"running"`` while it has not ended.
        handler: name of the function that a table of the user's gives for ``func`` (``HANDLED_FUNCTIONS[func]``); empty
            when the method answered by itself.
        handler_line: line of that function in its cell or file, or None.
        result: what was returned, or None.
        exception: ``"TypeError: ..."`` when it raised; else empty.
        seconds: how long it took, what it called included.
        thread: name of its thread.
    """

    index: int
    parent: int | None
    protocol: str
    owner: str
    func: str
    types: tuple[str, ...] = ()
    args: tuple[Value, ...] = ()
    kwargs: tuple[Value, ...] = ()
    outcome: DispatchOutcome = "running"
    handler: str = ""
    handler_line: int | None = None
    result: Value | None = None
    exception: str = ""
    seconds: float = 0.0
    thread: str = "MainThread"

    def __repr__(self) -> str:
        return f"<Dispatch #{self.index} {self.func} to {self.owner}: {self.outcome}>"


@dataclass(frozen=True, repr=False)
class DispatchLog(Displayable, Sequence[Dispatch]):
    """Dispatches in the order in which they began.

    Attributes:
        dispatches: oldest first.
        dropped: how many older ones the bound let go.
        problems: what could not be traced; ``str`` gives the sentence.

    Example:
        >>> from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
        >>> log = DispatchLog((Dispatch(0, None, "__torch_function__", "Scalar", "torch.mean"),))
        >>> log[0].func, len(log)
        ('torch.mean', 1)
    """

    dispatches: tuple[Dispatch, ...] = ()
    dropped: int = 0
    problems: tuple[Phrase, ...] = field(default=())

    @overload
    def __getitem__(self, index: int) -> Dispatch: ...
    @overload
    def __getitem__(self, index: slice) -> DispatchLog: ...
    def __getitem__(self, index: int | slice) -> Dispatch | DispatchLog:
        return replace(self, dispatches=self.dispatches[index]) if isinstance(index, slice) else self.dispatches[index]

    def __len__(self) -> int:
        return len(self.dispatches)

    def __iter__(self) -> Iterator[Dispatch]:
        return iter(self.dispatches)

    def __repr__(self) -> str:
        return f"<DispatchLog of {len(self)} dispatches>"
