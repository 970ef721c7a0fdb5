"""Operations that talk to other processes of the same program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
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


@contextlib.contextmanager
def others_asked() -> Iterator[list[str]]:
    """Note what runs inside and depends on how many processes there are: collectives, and asking for their number.

    Among one process a sum, a gather or a scatter returns what it is given.
    """
    asked = list[str]()
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        yield asked
        return
    group: Any = torch.distributed.ProcessGroup
    found: Any = vars(group)["size"]
    own = getattr(found, "own", found)  # another thread may be asking as well

    def size(self: Any) -> Any:
        asked.append("size")
        return own.__get__(self)()

    group.size, vars(size)["own"] = size, own
    try:
        with _Seeing(asked.append):
            yield asked
    finally:
        group.size = own


def without_collectives() -> contextlib.AbstractContextManager[Any]:
    """Refuse, where there are several processes, what the others would have to take part in.

    They are elsewhere in their program: a check that calls a collective on its own waits for ever.

    Raises:
        CallError: inside, in place of the operation.
    """
    several = torch.distributed.is_available() and torch.distributed.is_initialized()
    several = several and torch.distributed.get_world_size() > 1
    return _Seeing(_refuse) if several else contextlib.nullcontext()
