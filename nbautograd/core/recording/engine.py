"""What the engines share: which methods there are to record, the wrapper around one, and what an engine must do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from nbautograd.core.recording import quick
from nbautograd.core.recording.recorder import Recorder
from nbautograd.core.recording.state import Subject, ThreadState, local
from nbautograd.core.recording.writer import Writer
from nbautograd.core.source import METHODS
from nbautograd.core.torch_private import tensors as internals


class Engine(Protocol):
    """A way to see the calls that PyTorch makes of a Function's methods.

    Attributes:
        name: as reports give it: ``"spy"``, ``"in place"``, ``"monitoring"``.
    """

    name: str

    def install(self, cls: type, subject: Subject, recorder: Recorder) -> list[str]:
        """Start recording a class; returns a sentence for each method that cannot be recorded."""
        ...

    def withdraw(self, cls: type) -> None:
        """Record nothing of a class for a while, at no cost; ``install`` goes on."""
        ...

    def remove(self, cls: type) -> None:
        """Leave the class exactly as it was written."""
        ...


def defining_class(cls: type, method: str) -> type | None:
    """The class along the MRO that defines a method, None when only torch's own base does."""
    for base in cls.__mro__:
        if base.__module__ == "torch.autograd.function":
            return None
        if method in vars(base):
            return base
    return None


def recordable_methods(cls: type) -> list[tuple[str, type]]:
    """(method, class that defines it) for each method that PyTorch may call and the user wrote."""
    found = ((method, defining_class(cls, method)) for method in METHODS)
    return [(method, owner) for method, owner in found if owner is not None]


def wrapper(function: Callable[..., Any], writer: Writer) -> Callable[..., Any]:
    """A function that runs the user's and has the call written down; it takes itself out of tracebacks."""
    (begin, end), fail = quick.pair(writer), writer.fail

    def run(*args: Any) -> Any:  # PyTorch passes everything by position
        __tracebackhide__ = True
        state: ThreadState = local.state
        call = begin(args, state)
        try:
            result = function(*args)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            if call is not None:
                fail(call, error, state, args)
            raise
        if call is not None:
            end(call, args, result, state)
        return result

    internals.skip_in_dynamo(run.__code__, with_calls=False)
    return run
