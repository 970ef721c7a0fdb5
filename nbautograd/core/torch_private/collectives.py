"""Operations that talk to other processes of the same program."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from nbautograd.core.stumbles import hands_over
from nbautograd.core.torch_private.dispatch import ThreadDispatchMode
from nbautograd.errors import CallError


class _Refusing(ThreadDispatchMode):
    def __init__(self) -> None:
        super().__init__()

    @hands_over
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            raise CallError("audit.other_processes", operation=func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def without_collectives() -> contextlib.AbstractContextManager[Any]:
    """Refuse, where there are several processes, what the others would have to take part in.

    They are elsewhere in their program: a check that calls a collective on its own waits for ever.

    Raises:
        CallError: inside, in place of the operation.
    """
    several = torch.distributed.is_available() and torch.distributed.is_initialized()
    several = several and torch.distributed.get_world_size() > 1
    return _Refusing() if several else contextlib.nullcontext()
