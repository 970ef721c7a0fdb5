"""ThreadDispatchMode: see every operation of torch in one thread, and leave nothing to other threads."""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

import torch

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # then nothing is seen: each mode says what is lost by it
    TorchDispatchMode = contextlib.nullcontext  # type: ignore[assignment,misc]

Mode = TypeVar("Mode", bound="ThreadDispatchMode")
_push: Any = getattr(torch._C, "_push_on_torch_dispatch_stack", None)
_pop: Any = getattr(torch._C, "_pop_torch_dispatch_stack", None)


class ThreadDispatchMode(TorchDispatchMode):
    """A dispatch mode that no other thread notices.

    The stack of modes belongs to a thread, but torch's own ``__enter__`` sets flags of its module as well and its
    ``__exit__`` restores them: two threads that leave in the order in which they came leave them set for good, and
    torch.compile compiles nothing from then on (torch 2.13, ``torch/utils/_python_dispatch.py``).
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch would import its compiler, and sympy with it, to keep it off: two seconds

    def __enter__(self: Mode) -> Mode:
        """See the operations of this thread."""
        if _push is None or _pop is None:
            super().__enter__()  # type: ignore[no-untyped-call]
        else:
            _push(self)
        return self

    def __exit__(self, *error: object) -> None:
        """See no more of them."""
        if _push is None or _pop is None:
            super().__exit__(*error)  # type: ignore[no-untyped-call]
        else:
            _pop(None)
