"""Which line of a method computed what: one trace of its run, seen call of torch by call of torch.

A ``TorchFunctionMode`` of this thread sees the calls of torch while the user's own code runs as it is. A debugger, a
profiler and coverage keep the hooks of the interpreter, which are theirs, and no source is needed or compiled anew.
Calls in a helper function, a comprehension or a loop belong to the line of the method that runs then.

A mode cannot see what is no call of torch: Python's own numbers, conditions and containers, attributes that are set on
ctx, numpy and ``random``. What they did is seen at the next call, between two lines. So is what ``torch.compile`` made:
Dynamo traces into a mode, and finds one that only calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from nbautograd.core.stumbles import hands_over


class TracedCall(NamedTuple):
    """A call of torch that a method made, by itself or by what it calls.

    Attributes:
        frame: of the method.
        func: that was called.
        args: its arguments, those by keyword last.
        result: of the call.
    """

    frame: FrameType
    func: Callable[..., Any]
    args: Sequence[Any]
    result: Any


class Trace(TorchFunctionMode):
    """Looks at a method before and after each call of torch that it makes.

    Args:
        code: of the method; None for whatever is run.
        before: called with the method's frame before each call of torch.
        after: called after it; what it returns takes the place of the result. A call that raises has none.

    Attributes:
        frame: of the method, once it has called torch; after its end ``frame.f_lineno`` is the line that it ended with.
    """

    def __init__(
        self,
        code: CodeType | None,
        before: Callable[[FrameType], None] = lambda frame: None,
        after: Callable[[TracedCall], Any] = lambda call: call.result,
    ) -> None:
        super().__init__()
        self.code, self.before, self.after = code, before, after
        self.frame: FrameType | None = None

    @hands_over
    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run a call of torch between two looks; calls that the looks make are not seen."""
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and self.code is not None and frame.f_code is not self.code:
            frame = frame.f_back
        if frame is None:  # it begins or ends in what is around the method, such as a decorator
            return func(*args, **(kwargs or {}))
        self.frame = frame
        self.before(frame)
        args = self.given(frame, args)
        named = kwargs or {}
        return self.after(TracedCall(frame, func, (*args, *named.values()), func(*args, **named)))

    def given(self, frame: FrameType, args: Sequence[Any]) -> Sequence[Any]:
        """Return what stands in the place of a call's positional arguments."""
        return args
