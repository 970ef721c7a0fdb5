"""Exceptions of a kernel: in one line, and as Python shows them without frames of nbautograd and torch."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch

from nbautograd.core import stumbles

_THEIRS = tuple(str(folder) + os.sep for folder in (Path(__file__).parents[2], Path(torch.__file__).parent))


class RaisedError(Exception):
    """What a Function raises where its reference ran.

    Attributes:
        error: the exception.
        in_forward: True where forward raised it, which refuses the inputs of a draw, and no gradient was asked for.
    """

    def __init__(self, error: BaseException, in_forward: bool) -> None:
        super().__init__(str(error))
        self.error, self.in_forward = error, in_forward


def one_line(error: BaseException) -> str:
    """Return the type of an exception and the first line that it says."""
    error = error.error if isinstance(error, RaisedError) else error
    lines = stumbles.said(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0].rstrip()}"[:300]


def users_trace(error: BaseException) -> str:
    """Return the traceback of an exception and of what caused it, without frames of nbautograd and torch."""
    shown = traceback.TracebackException.from_exception(error)
    for one in _chain(shown):
        frames = [frame for frame in one.stack if not frame.filename.startswith(_THEIRS)]
        one.stack = traceback.StackSummary.from_list(frames)
    return "".join(shown.format()).rstrip()


def _chain(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    yield shown
    for behind in (shown.__cause__, shown.__context__):
        if behind is not None:
            yield from _chain(behind)
