"""See what a ``torch.autograd.Function`` does, and why its backward is wrong.

In a notebook ``%load_ext nbautograd`` and put ``%%autograd_function --inputs a,b`` above the class. Without one,
``nbautograd.gradcheck(fn, inputs)``, ``nbautograd.inspect(fn, *inputs)`` and the others below do the same.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from nbautograd.version import __version__ as __version__

if TYPE_CHECKING:
    from nbautograd import types as types
    from nbautograd.core.checking.budget import Budget
    from nbautograd.core.checking.gradcheck import gradcheck, jacobian
    from nbautograd.core.graphs.backward import backward
    from nbautograd.core.graphs.build import graph
    from nbautograd.core.graphs.modules import watch_modules
    from nbautograd.core.recording.api import calls, instrument, recording, uninstrument
    from nbautograd.core.tracing.log import dispatches, trace, untrace
    from nbautograd.errors import CallError, GradcheckError, InputError, NbautogradError
    from nbautograd.inspection.audit import audit
    from nbautograd.inspection.compare import compare
    from nbautograd.inspection.explanation import explain
    from nbautograd.inspection.report import inspect
    from nbautograd.messages import set_language

# name -> module that defines it; imported when first used, so that `import nbautograd` stays cheap
_HOME = {
    **dict.fromkeys(("instrument", "uninstrument", "recording", "calls"), "core.recording.api"),
    "gradcheck": "inspection.compare",
    **dict.fromkeys(("gradcheck", "jacobian"), "core.checking.gradcheck"),
    "compare": "inspection.compare",
    "audit": "inspection.audit",
    "explain": "inspection.explanation",
    **dict.fromkeys(("trace", "untrace", "dispatches"), "core.tracing.log"),
    "Budget": "core.checking.budget",
    "graph": "core.graphs.build",
    "backward": "core.graphs.backward",
    "watch_modules": "core.graphs.modules",
    "inspect": "inspection.report",
    **dict.fromkeys(("NbautogradError", "CallError", "InputError", "GradcheckError"), "errors"),
    "set_language": "messages",
}


__all__ = [  # noqa: RUF022 - in the order of the documentation
    "instrument", "uninstrument", "recording", "calls", "inspect", "gradcheck", "Budget", "jacobian", "compare",
    "audit", "explain", "graph", "backward", "watch_modules",
    "trace", "untrace", "dispatches",
    "set_language", "NbautogradError", "CallError", "InputError", "GradcheckError",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would take any name for an attribute

    def __getattr__(name: str) -> Any:
        if name == "types":
            return importlib.import_module(f"{__name__}.types")
        if name in _HOME:
            value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """Register the magics: what ``%load_ext nbautograd`` calls."""
    shown: AbstractContextManager[None] = nullcontext()
    if "torch" not in sys.modules and getattr(shell, "kernel", None) is not None:
        from nbautograd.loading import seconds_shown

        shown = seconds_shown()
    with shown:
        from nbautograd.magics import load

        load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Leave the shell and the recorded classes as they were: what ``%unload_ext nbautograd`` calls."""
    from nbautograd.magics import unload

    unload(shell)
