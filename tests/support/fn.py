"""The base of the Functions that a test checks: its methods are static without saying so."""

from __future__ import annotations

from typing import Any

from torch.autograd import Function


class Fn(Function):
    def __init_subclass__(cls, **options: Any) -> None:
        """Make static methods of what a subclass defines, as torch wants them."""
        super().__init_subclass__(**options)
        for name in ("forward", "setup_context", "backward", "jvp", "vmap"):
            if callable(method := vars(cls).get(name)) and not isinstance(method, staticmethod):
                setattr(cls, name, staticmethod(method))
