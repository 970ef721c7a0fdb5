"""The Recorder that every engine writes to: where calls go, and what becomes of our own errors.

A call is written by a Writer (``writers.py``), one per method: it begins, and ends or fails. Nothing of a tensor is
kept, no torch operation is run, and an error of our own is counted and listed and never reaches the user's run.
"""

from __future__ import annotations

import inspect
import os
import sys
from types import FrameType
from typing import Any

import torch

from nbautograd.core.recording.ring import Ring

_BETWEEN = (os.path.dirname(torch.__file__), os.path.dirname(__file__))  # frames between a call and its caller
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_SKIP, USERS, _CHECKS = range(3)


class Recorder:
    """Writes calls into a ring.

    Attributes:
        ring: where the calls are kept.
        cell: execution count of the notebook cell that is running, or None.
        errors: what went wrong inside the recorder: text -> how often.
    """

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.cell: int | None = None
        self.errors: dict[str, int] = {}

    def note(self, error: Exception) -> None:
        """Count an error of our own."""
        text = f"{type(error).__name__}: {error}"
        self.errors[text] = self.errors.get(text, 0) + 1


class _Whose(dict[str, int]):
    """By file name: whose code is it?"""

    def __missing__(self, name: str) -> int:
        if len(self) > 4096:
            self.clear()
        ours = _CHECKS if name.startswith(_OURS) else USERS
        found = self[name] = _SKIP if name.startswith(_BETWEEN) else ours
        return found


whose = _Whose()
# frames from a wrapper of ours to who called apply: over apply itself where that is Python
CALLERS = 2 if isinstance(inspect.getattr_static(torch.autograd.Function, "apply", None), classmethod) else 1


def who_called(get_frame: Any = sys._getframe) -> tuple[Any, int] | None:
    """As ``caller``, for the ``begin`` of a wrapper that apply has called."""
    try:
        frame = get_frame(CALLERS + 2)
    except ValueError:  # called from no Python
        return None
    code = frame.f_code
    return (code, frame.f_lasti) if whose[code.co_filename] == USERS else caller(get_frame(3))


def caller(frame: FrameType | None) -> tuple[Any, int] | None:
    """The user's code that called and where in it (its line is found when read); None when a check of ours did."""
    while frame is not None:
        code = frame.f_code
        found = whose[code.co_filename]
        if found:
            return (code, frame.f_lasti) if found == USERS else None
        frame = frame.f_back
    return None
