"""The classes of what nbautograd returns, for annotations: nobody constructs them."""

from __future__ import annotations

from nbautograd.core.checking.block import Block, Entry, GradcheckReport, JacobianReport
from nbautograd.core.checking.slow_motion import SlowMotion
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.inspection.audit import Audit
from nbautograd.inspection.audit_report import AuditedFunction, AuditedSituation, AuditReport
from nbautograd.inspection.comparison import Comparison
from nbautograd.inspection.explanation import Explanation
from nbautograd.inspection.report import FunctionReport

__all__ = [
    "Audit",
    "AuditReport",
    "AuditedFunction",
    "AuditedSituation",
    "AutogradGraph",
    "Block",
    "Call",
    "CallLog",
    "Comparison",
    "CtxSnapshot",
    "Dispatch",
    "DispatchLog",
    "Edge",
    "Entry",
    "Explanation",
    "Finding",
    "Fix",
    "FunctionReport",
    "GradcheckReport",
    "JacobianReport",
    "Node",
    "SlowMotion",
    "TensorSummary",
    "Value",
]
