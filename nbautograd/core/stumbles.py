"""Stumbles: errors that nbautograd's own code raised, told from those of the user's code, kept and never swallowed.

An error belongs to whoever's frame is the innermost one in its traceback. Frames of torch, numpy and the like, and of
the standard library, do not count: these raise on behalf of whoever called them. So what torch raises in a function of
ours is ours: a limitation of torch that we expect is caught where it is met, by its own narrow ``except``. A function
of ours that does nothing but run the user's code is marked by ``hands_over``; what torch or Python raise right in it is
the user's, such as the engine's complaint about what backward returned, or a call with one argument too many.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

import torch

from nbautograd.core.display import Displayable

RAISED = (Exception, SystemExit)  # what code that is checked may raise; an interrupt is the reader's
MOST_STUMBLES = 100  # stumbles that are kept, one for each place and type; the first ones tell the most
LONGEST_TEXT = 200  # letters of an error's text
PACKAGE = __name__.partition(".")[0]

Function = TypeVar("Function", bound=Callable[..., Any])
Answer = TypeVar("Answer")
Other = TypeVar("Other")

_HOME = os.path.dirname(os.path.abspath(sys.modules[PACKAGE].__file__ or "")) + os.sep
_CHECKED = os.path.join(_HOME, "course", "exercises") + os.sep  # Functions to be checked that come with the package
_TORCH = os.path.dirname(torch.__file__) + os.sep
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/](\w+)")  # within the standard library's folder
# packages that nbautograd calls and that hold no Functions of anybody's; any other is the user's code
_CALLED = ("torch", "functorch", "numpy", "IPython", "traitlets", "comm", "anywidget", "ipywidgets", "matplotlib")
_hand_over: dict[int, CodeType] = {}  # by id: codes of the same text at the same line are equal in any file


@dataclass(frozen=True)
class Stumble(Displayable):
    """One error of nbautograd's own.

    Attributes:
        part: which part of nbautograd failed by it, such as ``"layout"``.
        what: the error's type and text.
        where: file, line and function of the package.
        decides: True where that part could have said that a gradient is wrong.
    """

    part: str
    what: str
    where: str
    decides: bool = False


_kept: dict[tuple[str, str], Stumble] = {}  # written to by ``setdefault`` alone, which needs no lock, nor after a fork
_open: ContextVar[tuple[list[Stumble], ...]] = ContextVar("who is told of stumbles", default=())


def recent() -> tuple[Stumble, ...]:
    """Return the stumbles of this process, the first of each place and type."""
    return tuple(_kept.values())


def keep(found: Iterable[Stumble]) -> None:
    """Keep the stumbles of a copy of this process as its own."""
    for one in found:
        _kept.setdefault((one.where, one.what.partition(":")[0]), one)


def forget() -> None:
    """Empty the list of stumbles."""
    _kept.clear()


@contextmanager
def collected() -> Iterator[list[Stumble]]:
    """Collect the stumbles of a block, in this thread and in what it calls."""
    found: list[Stumble] = []
    token = _open.set((*_open.get(), found))
    try:
        yield found
    finally:
        _open.reset(token)


def hands_over(function: Function) -> Function:
    """Mark a function that runs the user's code and does nothing else: what is raised right in it is the user's."""
    _hand_over.update({id(code): code for code in _codes(function.__code__)})
    return function


def is_ours(error: BaseException) -> bool:
    """Return True for an error that nbautograd's own code raised by mistake, not the user's code.

    Returns:
        False as well for an error whose class the package defines: it is raised on purpose. True for what a signal's
        handler raised, which is nobody's here and goes on.
    """
    if of_a_signal(error):
        return True
    last = None if type(error).__module__.startswith(f"{PACKAGE}.") else _innermost(error)
    return last is not None and _is_home(last[0]) and id(last[0].f_code) not in _hand_over


def of_a_signal(error: BaseException) -> bool:
    """Return True for what the handler of a signal raised, wherever in the program that came: an exit, a timeout."""
    codes = {getattr(signal.getsignal(one), "__code__", None) for one in signal.valid_signals()} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def is_users(frame: FrameType) -> bool:
    """Return True for a frame of the user's code: not ours, nor torch's or the like, nor the standard library's."""
    return not (_is_home(frame) or _is_on_behalf(frame.f_code.co_filename))


def record(error: BaseException, part: str = "", decides: bool = False) -> Stumble | None:
    """Keep an error if it is ours, and return what is kept.

    Args:
        error: caught, with its traceback.
        part: which part of nbautograd failed by it.
        decides: True where that part could have said that a gradient is wrong.
    """
    if not is_ours(error) or of_a_signal(error):
        return None
    frame, line = _innermost(error) or (sys._getframe(), 0)
    code = frame.f_code
    place = f"{code.co_filename.removeprefix(_HOME).replace(os.sep, '/')}:{line} {code.co_name}"
    stumble = Stumble(part, named(error), place, decides)
    if len(_kept) < MOST_STUMBLES:
        _kept.setdefault((place, type(error).__name__), stumble)
    for found in _open.get():
        if len(found) < MOST_STUMBLES:
            found.append(stumble)
    return stumble


class _Guard:
    """A block whose errors are caught: the user's, our own, or both; ours are kept.

    Args:
        users, own: whose errors end the block and no more.
        exits: whether these are also what ``sys.exit`` raises.
        part, decides: as for ``record``.

    Attributes:
        failed: True where the block was ended by an error.
    """

    def __init__(self, users: bool, own: bool, part: str = "", decides: bool = False, exits: bool = True) -> None:
        self.users, self.own, self.part, self.decides = users, own, part, decides
        self.caught = RAISED if exits else Exception
        self.failed = False

    def __enter__(self) -> _Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, self.caught) or of_a_signal(error):
            return False  # none, or an interrupt
        ours = is_ours(error)
        self.failed = self.own if ours else self.users
        if ours and self.own:
            record(error, self.part, self.decides)
        return self.failed


def users_errors() -> _Guard:
    """Suppress what the user's code raises in the block; ours goes on to the part that the block belongs to."""
    return _Guard(users=True, own=False)


def own_errors(part: str, decides: bool = False) -> _Guard:
    """Suppress and keep our own errors in the block, which is a part of nbautograd; the user's are raised.

    Args:
        part: its name.
        decides: True where it could say that a gradient is wrong, so that without it none can be called right.
    """
    return _Guard(users=False, own=True, part=part, decides=decides)


def any_errors(part: str, decides: bool = False) -> _Guard:
    """Suppress all errors in the block, and keep our own; see ``own_errors``."""
    return _Guard(users=True, own=True, part=part, decides=decides)


def beside_program(part: str) -> _Guard:
    """Suppress all errors in a block beside a running program, which an exit is to end, as of a signal's handler."""
    return _Guard(users=True, own=True, part=part, exits=False)


def ask(question: Callable[[], Answer], otherwise: Other) -> Answer | Other:
    """Return what a tensor, a node or torch itself answers, or something else where it refuses or has no such name.

    What is raised right in the question is no stumble: sparse, nested, fake and wrapped tensors refuse much, the names
    are private ones that a torch may not have, and a subclass of the user's may raise anything.

    Args:
        question: a lambda, or a partial of a function of torch, that asks one thing.
        otherwise: the answer in place of a refusal.
    """
    try:
        return question()
    except Exception as error:
        if _code(error) not in (None, ask.__code__, getattr(question, "__code__", None)):
            record(error)
        return otherwise


def _innermost(error: BaseException) -> tuple[FrameType, int] | None:
    """Return the innermost frame that is ours or the user's, with its line; None where all are torch's and the like."""
    last = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not _is_on_behalf(frame.f_code.co_filename):
            last = frame, line
    return last


def _code(error: BaseException) -> CodeType | None:
    """Return whose code raised; the frame in a variable of its caller would keep all tensors of both for long."""
    last = _innermost(error)
    return None if last is None else last[0].f_code


def _is_home(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if file == "<string>":  # methods that dataclasses write; in a cell or script ``exec`` runs code of that name too
        return str(frame.f_globals.get("__name__", "")).startswith(PACKAGE + ".")
    return file.startswith(_HOME) and not file.startswith(_CHECKED)


@functools.lru_cache(maxsize=1024)
def _is_on_behalf(file: str) -> bool:
    """Return True for a file whose code raises on behalf of whoever called it."""
    installed = _INSTALLED.search(file)
    if installed is not None:
        return installed[1] in _CALLED
    return file.startswith((_TORCH, _STANDARD, "<frozen", "<__array_function__"))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def said(error: BaseException) -> str:
    """Return what an error says; empty where saying it fails, as it may run code of the user's."""
    try:
        return str(error)
    except RAISED:  # silent: it is no error of the run that raised it
        return ""


def named(error: BaseException) -> str:
    """Return an error's type and what it says, on one line."""
    kind = type(error).__name__
    text = " ".join(said(error).split())[:LONGEST_TEXT]
    return f"{kind}: {text}" if text else kind
