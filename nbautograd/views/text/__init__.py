"""Every public value as plain text: aligned, without colours, for a terminal, an e-mail, a log."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport, JacobianBlock, JacobianReport
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.source import FunctionSource
from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.inspection.redacted import RedactedReport
from nbautograd.inspection.report import FunctionReport
from nbautograd.views.answer import answer
from nbautograd.views.builders import build, has_document
from nbautograd.views.builders import comparison as _registers  # noqa: F401
from nbautograd.views.builders.summary import answer_document, findings_document
from nbautograd.views.tables import indent
from nbautograd.views.text.blocks import (
    block_lines,
    block_text,
    gradcheck_text,
    jacobian_lines,
    jacobian_text,
    wrong_lines,
)
from nbautograd.views.text.calls import call_text, ctx_text, log_lines, log_text, tensor_text, value_text
from nbautograd.views.text.dispatches import dispatch_text, dispatches_text
from nbautograd.views.text.graph import graph_text, node_name
from nbautograd.views.text.redacted import redacted_text
from nbautograd.views.to_text import to_lines, to_text

PARTS = ("gradcheck", "jacobian", "calls", "graph", "comparison")


@singledispatch
def text(value: Any) -> str:
    """A public value as plain text.

    Args:
        value: a report, log, call, graph, comparison, finding, summary, snapshot or recorded value.

    Returns:
        Lines joined by newlines, without a newline at the end; the value's ``repr`` for anything else.

    Example:
        >>> from nbautograd.core.values import TensorSummary
        >>> from nbautograd.views.text import text
        >>> text(TensorSummary((2,), "float64", numel=2, values=(1.0, 0.5)))
        'float64 2  1.0, 0.5'
    """
    return to_text(build(value)) if has_document(value) else repr(value)


text.register(GradcheckReport)(gradcheck_text)
text.register(JacobianReport)(jacobian_text)
text.register(JacobianBlock)(block_text)
text.register(CallLog)(log_text)
text.register(Call)(call_text)
text.register(CtxSnapshot)(ctx_text)
text.register(Value)(value_text)
text.register(TensorSummary)(tensor_text)
text.register(AutogradGraph)(graph_text)
text.register(Node)(node_name)
text.register(RedactedReport)(redacted_text)
text.register(Dispatch)(dispatch_text)
text.register(DispatchLog)(dispatches_text)


@text.register
def _source(value: FunctionSource) -> str:
    return value.text


@text.register
def _report(value: FunctionReport) -> str:
    told = answer(value)
    lines = to_lines(answer_document(told))
    for part in parts(value):
        inside = _part(value, part)
        lines += ["", messages.text(f"views.part.{part}"), *indent(inside)] if inside else []
    lines += to_lines(findings_document(told.others))
    return "\n".join([*lines, *map(str, value.notes)])


def parts(report: FunctionReport, everything: bool = False) -> tuple[str, ...]:
    """Which parts of a report there is something to show of; only those of its view unless ``everything``."""
    there = {
        "gradcheck": report.gradcheck is not None and bool(report.gradcheck.blocks),
        "jacobian": bool(jacobian_blocks(report)),
        "calls": bool(report.calls.calls or report.calls.problems),
        "graph": report.graph is not None,
        "comparison": report.comparison is not None,
    }
    shown = tuple(p for p in PARTS if there[p])
    if everything or report.view == "all":
        return shown
    return tuple(p for p in shown if p in (report.view, "comparison"))


def jacobian_blocks(report: FunctionReport) -> list[JacobianBlock]:
    """The blocks to draw: with verdicts when there was a check."""
    if report.gradcheck is not None and report.gradcheck.blocks:
        return list(report.gradcheck.blocks.values())
    return [] if report.jacobian is None else list(report.jacobian.blocks.values())


def _part(report: FunctionReport, part: str) -> list[str]:
    if part == "gradcheck" and report.gradcheck is not None:
        return block_lines(list(report.gradcheck.blocks.values()))
    if part == "jacobian":
        blocks = jacobian_blocks(report)
        return wrong_lines(blocks) if report.view == "all" and report.gradcheck is not None else jacobian_lines(blocks)
    if part == "calls":
        return log_lines(report.calls)
    value = report.graph if part == "graph" else report.comparison
    return text(value).split("\n")
