"""See what a ``torch.autograd.Function`` does, and why its backward is wrong.

In a notebook ``%load_ext nbautograd`` and put ``%%autograd_function --inputs a,b`` above the class. Without one,
``nbautograd.gradcheck(fn, inputs)``, ``nbautograd.inspect(fn, *inputs)`` and the others below do the same.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from nbautograd.version import __version__ as __version__

if TYPE_CHECKING:
    from nbautograd.core.checking.block import Block, Entry, GradcheckReport, JacobianReport
    from nbautograd.core.checking.budget import Budget
    from nbautograd.core.checking.gradcheck import gradcheck, jacobian
    from nbautograd.core.findings import Finding, Fix
    from nbautograd.core.graphs.backward import backward
    from nbautograd.core.graphs.build import graph
    from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
    from nbautograd.core.graphs.modules import watch_modules
    from nbautograd.core.graphs.why_none import why_none
    from nbautograd.core.recording.api import calls, instrument, recording, uninstrument
    from nbautograd.core.recording.call import Call, CallLog
    from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
    from nbautograd.core.tracing.log import dispatches, trace, tracing, untrace
    from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
    from nbautograd.errors import CallError, GradcheckError, InputError, NbautogradError
    from nbautograd.inspection.audit import Audit, audit
    from nbautograd.inspection.audit_report import AuditedFunction, AuditedSituation, AuditReport
    from nbautograd.inspection.compare import compare
    from nbautograd.inspection.comparison import Comparison
    from nbautograd.inspection.explanation import Explanation, explain
    from nbautograd.inspection.redacted import RedactedReport
    from nbautograd.inspection.report import FunctionReport, inspect
    from nbautograd.messages import set_language

# name -> module that defines it; imported when first used, so that `import nbautograd` stays cheap
_HOME = {
    **dict.fromkeys(("instrument", "uninstrument", "recording", "calls"), "core.recording.api"),
    **dict.fromkeys(("Call", "CallLog"), "core.recording.call"),
    **dict.fromkeys(("CtxSnapshot", "TensorSummary", "Value"), "core.values"),
    **dict.fromkeys(("Finding", "Fix"), "core.findings"),
    "gradcheck": "inspection.compare",
    **dict.fromkeys(("gradcheck", "jacobian"), "core.checking.gradcheck"),
    **dict.fromkeys(("Block", "Entry", "GradcheckReport", "JacobianReport"), "core.checking.block"),
    "compare": "inspection.compare",
    "Comparison": "inspection.comparison",
    **dict.fromkeys(("audit", "Audit"), "inspection.audit"),
    **dict.fromkeys(("AuditReport", "AuditedFunction", "AuditedSituation"), "inspection.audit_report"),
    **dict.fromkeys(("explain", "Explanation"), "inspection.explanation"),
    **dict.fromkeys(("trace", "untrace", "tracing", "dispatches"), "core.tracing.log"),
    **dict.fromkeys(("Dispatch", "DispatchLog"), "core.tracing.dispatches"),
    "Budget": "core.checking.budget",
    "graph": "core.graphs.build",
    "backward": "core.graphs.backward",
    "why_none": "core.graphs.why_none",
    "watch_modules": "core.graphs.modules",
    **dict.fromkeys(("AutogradGraph", "Node", "Edge"), "core.graphs.graph"),
    **dict.fromkeys(("inspect", "FunctionReport"), "inspection.report"),
    "RedactedReport": "inspection.redacted",
    **dict.fromkeys(("NbautogradError", "CallError", "InputError", "GradcheckError"), "errors"),
    "set_language": "messages",
}

__all__ = [  # noqa: RUF022 - in the order of the documentation
    "instrument", "uninstrument", "recording", "calls", "CallLog", "Call", "CtxSnapshot", "Value", "TensorSummary",
    "inspect", "FunctionReport", "RedactedReport",
    "gradcheck", "GradcheckReport", "Budget", "Block", "Entry", "Finding", "Fix", "jacobian", "JacobianReport",
    "compare", "Comparison",
    "audit", "Audit", "AuditReport", "AuditedFunction", "AuditedSituation",
    "explain", "Explanation",
    "graph", "backward", "why_none", "watch_modules", "AutogradGraph", "Node", "Edge",
    "trace", "untrace", "tracing", "dispatches", "DispatchLog", "Dispatch",
    "set_language", "NbautogradError", "CallError", "InputError", "GradcheckError",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would take any name for an attribute

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """Register the magics: what ``%load_ext nbautograd`` calls."""
    from nbautograd.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Leave the shell and the recorded classes as they were: what ``%unload_ext nbautograd`` calls."""
    from nbautograd.magics import unload

    unload(shell)
