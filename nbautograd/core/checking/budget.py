"""Budget: how long a check may take, how much memory it may hold, how often it may run the user's code."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from nbautograd.core import forks
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.stumbles import is_users
from nbautograd.core.this_thread import start_thread
from nbautograd.core.user_source import METHODS, defining_classes, unwrap
from nbautograd.errors import CallError

SECONDS = 60.0  # what an explanation is worth waiting for, and far more than one call of a Function takes
BYTES = 4 << 30  # what the limits of elements below are made for: 10**7 elements into 10**7 take 2.5e9
COPIES = 16 * 8  # bytes per element of inputs and outputs that a check holds at its peak: measured 120 to 170
CALLS = 5  # whose graphs a check holds at once, counted in a right Function: probes compare some with each other
CALLS_FOR_CAUSES = 14  # the same while causes of a wrong gradient are searched for
POLL = 0.1  # seconds between two looks at the clocks; nothing is measured with it
IMPORTING = "<frozen importlib._bootstrap>"
_BOUND: Any = (torch.autograd.Function.apply, BackwardCFunction.apply, BackwardCFunction.apply_jvp)
# what they call is a method of a Function, whatever its own name; in torch 2.15 one of them is written in C
APPLIES = frozenset(f.__code__ for f in _BOUND if hasattr(f, "__code__"))


@dataclass(frozen=True)
class Budget:
    """Seconds and bytes that a check may use.

    Seconds first end the search for causes and fixes and the check of second derivatives. If they end the verdict
    itself, it is "cannot tell". A finding of code ``"stopped"`` says what was left out. A call of the user's code that
    does not return is interrupted between two steps of Python, and named. The default budget interrupts nothing. One
    call into C (a matrix product, ``time.sleep``) cannot be interrupted: the check ends when it returns.

    Attributes:
        seconds: wall time of the whole check; None for no limit.
        bytes: memory of the tensors that it may hold beside what the caller holds; None for no limit. Larger Jacobians
            are sampled, and a check that needs more to begin with "cannot tell".
        verdict_by_counts: True if the verdict depends on counts alone, so every machine finds the same one. Seconds
            then count only after the verdict, between two calls of the user's code. ``gradcheck`` has such a budget by
            default.

    Example:
        >>> import torch, nbautograd
        >>> x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        >>> nbautograd.gradcheck(torch.exp, x, budget=nbautograd.Budget(seconds=30)).verdict
        'right'
    """

    seconds: float | None = SECONDS
    bytes: int | None = BYTES
    verdict_by_counts: bool = False

    @property
    def interrupts(self) -> bool:
        """True where the caller gave seconds: an exception from another thread may strike any ``finally`` of theirs."""
        return self.seconds is not None and not self.verdict_by_counts


DEFAULT = Budget(verdict_by_counts=True)
COUNTS = Budget(seconds=None)  # for grading: nothing depends on the machine


def validated_budget(budget: Budget | float | None) -> Budget:
    """Return the budget; a number counts as seconds, None as no limit.

    Raises:
        CallError: when it is anything else, or a limit is not positive.
    """
    if budget is None:
        return Budget(None, None)
    if isinstance(budget, (int, float)) and not isinstance(budget, bool):
        budget = Budget(seconds=budget)
    limits = (budget.seconds, budget.bytes) if isinstance(budget, Budget) else (0,)
    if not all(limit is None or limit > 0 for limit in limits):
        raise CallError("checking.budget_unknown", given=repr(budget))
    assert isinstance(budget, Budget)
    return budget


class OutOfBudgetError(KeyboardInterrupt):
    """The budget is used up; like an interrupt it passes through what catches exceptions of the user's code."""


@dataclass(frozen=True)
class InterruptedAt:
    """Place in the user's code at which it was interrupted.

    Attributes:
        function: name of the method or function that did not return.
        line: of the cell or file, counted from 1.
    """

    function: str
    line: int


class Clock:
    """The time of one check.

    Args:
        budget: what it may use.
        now: returns seconds; tests give another.
        base: the frame that the check runs in; what called it is none of its calls.

    Attributes:
        ended: True once time was up.
        place: the call of the user's code that had to be interrupted, or None.
        users: names of the methods of the Functions that are checked, by their code.
        known: True once the verdict is known.
    """

    def __init__(self, budget: Budget, now: Callable[[], float] | None = None, base: FrameType | None = None) -> None:
        self.budget, self._now, self._base = budget, now or time.perf_counter, base
        self.thread = threading.get_ident()
        self.ended = self.known = False
        self.place: InterruptedAt | None = None
        self.users: dict[CodeType, str] = {}
        self._sent_to: int | None = None
        self._frame: FrameType | None = None
        self._called = self._now()
        self._end = self._called + (budget.seconds or float("inf"))
        self._counted = budget.verdict_by_counts
        if self._counted:
            self._end = float("inf")

    def verdict_known(self) -> None:
        """Count what is left as an explanation; where the verdict was counted its seconds begin now."""
        if not self.known and self._counted:
            self._end = self._now() + (self.budget.seconds or float("inf"))
        self.known = True

    def tick(self) -> None:
        """Take note that a call of the user's code begins.

        Raises:
            OutOfBudgetError: time is up.
        """
        self._called = self._now()
        if self.ended or self._called > self._end:
            self.ended = True
            raise OutOfBudgetError

    def interrupt_overdue(self) -> None:
        """Interrupt the user's code where it is, if a call of it goes on after time is up; asked by another thread.

        The exception is sent again only while the very call that got it goes on: code that catches everything.
        """
        seconds = self.budget.seconds
        if seconds is None or self._now() <= min(self._end, self._called + seconds):
            return
        thread, frames = self._users_frames()
        if not frames or (self.ended and frames[-1] is not self._frame):
            return  # ours, which asks by itself before the next call, or is on its way out
        frame = next(filter(self._is_method, frames), frames[-1])
        name: str = frame.f_code.co_qualname.rpartition("<locals>.")[2]
        self.place = InterruptedAt(self.users.get(frame.f_code) or name, frame.f_lineno)
        self._frame, self._sent_to, self.ended = frames[-1], thread, True
        _send(thread, OutOfBudgetError)

    def _users_frames(self) -> tuple[int, list[FrameType]]:
        """Return the frames of the user's code in this check, innermost first, and their thread.

        Backward on another device runs on a thread of the engine, which enters Python through ``apply`` of a node.
        """
        every = sys._current_frames()
        mine = self._in_check(every.pop(self.thread, None))
        for thread, frame in () if mine else every.items():
            found = self._in_check(frame) if _outermost(frame).f_code is BackwardCFunction.apply.__code__ else []
            if found:
                return thread, found
        return self.thread, mine

    def _in_check(self, frame: FrameType | None) -> list[FrameType]:
        found = list[FrameType]()
        while frame is not None and frame is not self._base:
            if frame.f_code.co_filename == IMPORTING:
                return []  # a module that is imported by half would stay so; wait for the next look
            if is_users(frame):
                found.append(frame)
            frame = frame.f_back
        return found

    def _is_method(self, frame: FrameType) -> bool:
        code, caller = frame.f_code, frame.f_back
        return code in self.users or code.co_name in METHODS or (caller is not None and caller.f_code in APPLIES)

    def _end_watch(self) -> None:
        """Leave the list of watched clocks; what was sent and has not come yet comes here and nowhere later.

        An exception that is taken back leaves Python 3.11 and 3.12 a request that no thread ever answers: each step is
        slower from then on, and in 3.11 the next call under a debugger or profiler does not return
        (``eval_frame_handle_pending`` resets it only where it finds an exception). So one is raised in any case.
        """
        try:
            with _lock:
                _watched.discard(self)
                self._frame = self._base = None
            if self._sent_to is None:
                return
            if self._sent_to != self.thread:
                _send(self._sent_to, None)
            _send(self.thread, OutOfBudgetError)  # in place of one that has not come
            for _ in range(100):  # it is raised between two steps, here at the latest
                pass
        except OutOfBudgetError:
            if self in _watched:  # it came before the list was left
                self._end_watch()


def _outermost(frame: FrameType) -> FrameType:
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def _send(thread: int, error: type[BaseException] | None) -> None:
    """Let a thread raise an exception before its next step of Python; None takes back one that has not been raised.

    A signal would reach the main thread only, and its handler may be the user's.
    """
    what = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)


_lock = forks.lock()
_watched: set[Clock] = set()
_watcher: threading.Thread | None = None
_current: ContextVar[Clock | None] = ContextVar("clock of the check", default=None)


def _watch() -> None:
    """Look at the clocks until there is none left; one thread does for all checks that follow each other quickly."""
    global _watcher
    while True:
        time.sleep(POLL)
        with _lock:
            if not _watched:
                _watcher = None
                return
            for clock in tuple(_watched):
                clock.interrupt_overdue()


@contextlib.contextmanager
def budgeted(budget: Budget, now: Callable[[], float] | None = None) -> Iterator[Clock]:
    """Run the block within a budget, or within that of the block around it."""
    global _watcher
    around = _current.get()
    if around is not None:
        yield around
        return
    clock = Clock(budget, now, sys._getframe(2))  # of the ``with`` statement; between them is ``contextlib``
    token = _current.set(clock)
    try:
        if budget.interrupts:
            with _lock:
                _watched.add(clock)
                if _watcher is None or not _watcher.is_alive():  # dead in the child of a fork
                    _watcher = start_thread("budget", _watch)  # without one: asked between two calls alone
        yield clock
    finally:
        clock._end_watch()
        _current.reset(token)


def interrupts() -> bool:
    """Return True where the check that runs has a clock that may interrupt the user's code."""
    clock = _current.get()
    return clock is not None and clock.budget.interrupts


def tick() -> None:
    """Take note of a call of the user's code in the check that runs.

    Raises:
        OutOfBudgetError: the time of this check is up.
    """
    clock = _current.get()
    if clock is not None:
        clock.tick()


def note_users(cls: type | None) -> None:
    """Note in the check that runs what the methods of a Function are called."""
    clock = _current.get()
    if clock is None or cls is None:
        return
    for name, base in defining_classes(cls).items():
        code = getattr(unwrap(vars(base)[name]), "__code__", None)
        if code is not None:
            clock.users.setdefault(code, f"{cls.__qualname__}.{name}".rpartition("<locals>.")[2])


def verdict_was_known() -> bool:
    """Return True where time was up after the verdict was known."""
    clock = _current.get()
    return clock is not None and clock.ended and clock.known


def ended() -> bool:
    """Return True where the check that runs has used up its time."""
    clock = _current.get()
    return clock is not None and clock.ended


def allowed_elements(most: int) -> int:
    """Return how many elements may be held at once where ``most`` may with 4 GiB."""
    clock = _current.get()
    given = None if clock is None else clock.budget.bytes
    return most if given is None or given >= BYTES else max(1, most * given // BYTES)


def bytes_lacking(elements: int, kept: int, for_causes: bool = False) -> Finding | None:
    """Return what a check lacks in memory; None where there is enough.

    Args:
        elements: of inputs and outputs.
        kept: bytes that one call keeps for its backward.
        for_causes: True asks for the search for causes and fixes, False for the verdict.
    """
    clock = _current.get()
    given = None if clock is None else clock.budget.bytes
    needed = elements * COPIES + kept * (CALLS_FOR_CAUSES if for_causes else CALLS)
    if given is None or needed <= given:
        return None
    sentence = "checking.stopped_memory_causes" if for_causes else "checking.stopped_memory"
    less = Phrase("checking.stopped_memory.advice")
    return Finding("stopped", "note", sentence, {"needed": _size(needed), "allowed": _size(given), "advice": less})


# codes of findings that end a check early without an interrupt by the user
NOT_INTERRUPTED = ("stopped", "reentrant_checkpoint")


def stopped(clock: Clock, what: str) -> Finding:
    """Say that time was up.

    Args:
        what: was left out: ``"verdict"``, ``"causes"`` or ``"second_order"``.
    """
    seconds = f"{clock.budget.seconds:g}"
    place = clock.place
    more = {} if what == "second_order" else {"advice": Phrase("checking.stopped_verdict.advice")}
    if place is None:
        return Finding("stopped", "note", f"checking.stopped_{what}", {"seconds": seconds, **more})
    params = {"seconds": seconds, "function": place.function, "line": place.line, **more}
    return Finding("stopped", "note", "checking.stopped_call", params, None, place.line)


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def _forget_clocks() -> None:
    global _watcher
    _watcher = None
    _watched.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_clocks)


class OutOfRunsError(KeyboardInterrupt):
    """There may be no more runs; like an interrupt it passes through what catches exceptions of the user's code."""


class Meter:
    """Counts runs of forward and backward, many points at once as one; the same on every machine.

    Attributes:
        runs: how many there were.
        limit: number of runs beyond which ``OutOfRunsError`` is raised, or None.

    Example:
        >>> from nbautograd.core.checking.budget import Meter
        >>> meter = Meter()
        >>> meter.count()
        >>> meter.runs
        1
    """

    def __init__(self) -> None:
        self.runs = 0
        self.limit: int | None = None

    @property
    def exceeded(self) -> bool:
        """Return True if there were more runs than allowed."""
        return self.limit is not None and self.runs > self.limit

    def count(self) -> None:
        """Take note of one run.

        Raises:
            OutOfRunsError: there may be no more of them.
            OutOfBudgetError: the time of the check is up.
        """
        tick()
        self.runs += 1
        if self.exceeded:
            raise OutOfRunsError

    @contextlib.contextmanager
    def limited(self, runs: int) -> Iterator[None]:
        """Allow so many more runs within the block."""
        before, self.limit = self.limit, self.runs + runs
        try:
            yield
        finally:
            self.limit = before
