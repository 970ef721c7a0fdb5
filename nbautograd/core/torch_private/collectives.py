"""Operations that talk to other processes of the same program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from nbautograd.core.stumbles import hands_over
from nbautograd.core.torch_private.dispatch import ThreadDispatchMode
from nbautograd.errors import CallError


class _Seeing(ThreadDispatchMode):
    def __init__(self, told: Callable[[str], None]) -> None:
        super().__init__()
        self._told = told

    @hands_over
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            self._told(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def _refuse(operation: str) -> None:
    raise CallError("audit.other_processes", operation=operation)


def processes() -> int:
    """Return how many processes the default group has; 0 where there is none."""
    started = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if started else 0


def collectives_noted(noted: list[str]) -> contextlib.AbstractContextManager[Any]:
    """Append the names of the collectives that run inside: among one process they return what they are given."""
    return _Seeing(noted.append) if processes() else contextlib.nullcontext()


def without_collectives() -> contextlib.AbstractContextManager[Any]:
    """Refuse, where there are several processes, what the others would have to take part in.

    They are elsewhere in their program: a check that calls a collective on its own waits for ever.

    Raises:
        CallError: inside, in place of the operation.
    """
    return _Seeing(_refuse) if processes() > 1 else contextlib.nullcontext()
