"""Every public value as static HTML that stays readable in any front end, trusted or not, with a kernel or without."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport, JacobianBlock, JacobianReport
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.tracing.dispatches import DispatchLog
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.inspection.report import FunctionReport
from nbautograd.views.answer import answer as what_to_say
from nbautograd.views.builders import build, has_document
from nbautograd.views.builders.comparison import comparison_document
from nbautograd.views.builders.comparison import headline as comparison_headline
from nbautograd.views.builders.summary import answer_document, findings_document
from nbautograd.views.html.calls import call_markup, call_title, calls_markup, log_markup
from nbautograd.views.html.dispatches import dispatches_markup
from nbautograd.views.html.gradcheck import blocks_markup, gradcheck_markup, gradcheck_summary, order2
from nbautograd.views.html.graph import graph_markup
from nbautograd.views.html.jacobian import BUDGET, block_markup, blocks_pictures, jacobian_markup
from nbautograd.views.html.values import ctx_markup, tensor_markup, values_table
from nbautograd.views.markup import Markup, join, tag
from nbautograd.views.pieces import block, fold, paragraph, pre
from nbautograd.views.text import PARTS, jacobian_blocks, parts, text
from nbautograd.views.text.graph import graph_headline
from nbautograd.views.to_html import to_html
from nbautograd.views.words import counted

FULL = "all"
ROOM = 62_500  # characters that a whole report should stay under
LEAST_ROOM = 9_000
MOST = 63_500  # characters of the parts, the answer and the notes together


def html(value: Any, anchor: str = "") -> str:
    """A public value as one ``<div>`` of static HTML: tables, pictures as ``<img>``, inline styles, no scripts.

    Args:
        value: a report, log, call, graph, comparison, finding, summary, snapshot or recorded value.
        anchor: an extra class on the outermost element, by which a live widget finds the page that it replaces.

    Returns:
        Markup in which every name that came from the user is escaped.

    Example:
        >>> from nbautograd.core.values import Value
        >>> from nbautograd.views.html import html
        >>> "&lt;b&gt;" in html(Value("<b>", "int", "3"))
        True
    """
    style = "line-height:1.45;margin:2px 0;max-width:100%"
    return str(tag("div", {"class": f"nbautograd {anchor}".strip(), "style": style}, body(value)))


@singledispatch
def body(value: Any) -> Markup:
    """What stands inside the outermost element."""
    return to_html(build(value)) if has_document(value) else pre(text(value))


body.register(GradcheckReport)(gradcheck_markup)
body.register(JacobianReport)(jacobian_markup)
body.register(JacobianBlock)(block_markup)
body.register(CallLog)(log_markup)
body.register(AutogradGraph)(graph_markup)
body.register(DispatchLog)(dispatches_markup)
body.register(TensorSummary)(tensor_markup)


@body.register
def _call(value: Call) -> Markup:
    return join((block(tag("strong", None, tag("code", None, call_title(value)))), call_markup(value)))


@body.register
def _ctx(value: CtxSnapshot) -> Markup:
    return ctx_markup(value) or paragraph(messages.text("views.nothing"))


@body.register
def _value(value: Value) -> Markup:
    return values_table([("", [value])], pictures=True) or Markup("")


@body.register
def _report(value: FunctionReport) -> Markup:
    told = what_to_say(value)
    shown = sorted(parts(value, everything=True), key=lambda p: (p != value.view, PARTS.index(p)))
    notes = [paragraph(str(n), "opacity:0.75") for n in value.notes]
    around = [to_html(answer_document(told)), to_html(findings_document(told.others)), *notes]
    made = {p: _part(value, p) for p in shown if p != "jacobian"}
    if "jacobian" in shown:  # its pictures get the room that the others leave
        room = max(LEAST_ROOM, ROOM - sum(map(len, (*around, *made.values()))))
        made["jacobian"] = _part(value, "jacobian", min(room, BUDGET))
    _shorten(value, made, MOST - sum(map(len, around)))
    return join((around[0], *(made[p] for p in shown), *around[1:]))


def _shorten(report: FunctionReport, made: dict[str, Markup], room: int) -> None:
    """Leave out what is longest and least missed until the parts fit; each says that it was shortened."""
    if report.comparison is not None and "comparison" in made:  # its numbers stay, pictures where there is room
        title, words = messages.text("views.part.comparison"), _beside(report, "comparison")
        for thumbnails in (True, False):
            if sum(map(len, made.values())) > room:
                inside = to_html(comparison_document(report.comparison, drawings=False, thumbnails=thumbnails))
                made["comparison"] = fold(title, inside, words, opened=_opened(report, "comparison"))
    for part in ("calls", "graph", "jacobian", "gradcheck", "comparison"):
        if sum(map(len, made.values())) <= room:
            return
        if len(made.get(part, "")) > LEAST_ROOM:
            title = messages.text(f"views.part.{part}")
            words = paragraph(messages.text("views.too_long", part=title, attribute=part))
            made[part] = fold(title, words, _beside(report, part), opened=_opened(report, part))


def _part(report: FunctionReport, part: str, room: int = BUDGET) -> Markup:
    title = messages.text(f"views.part.{part}")
    try:
        inside = _inside(report, part, room)
    except Exception as error:  # one part that fails must not take the others, and the answer, with it
        inside = paragraph(messages.text("views.failed", error=f"{type(error).__name__}: {error}"))
    return fold(title, inside, _beside(report, part), opened=_opened(report, part))


def _opened(report: FunctionReport, part: str) -> bool:
    """The part asked for; of a whole report the evidence, or the calls and the graph when nothing was checked."""
    if report.view != FULL:
        return part in (report.view, "comparison")
    checked = report.gradcheck is not None
    return part in (("gradcheck", "jacobian", "comparison") if checked else ("calls", "graph", "comparison"))


def _inside(report: FunctionReport, part: str, room: int) -> Markup:
    check = report.gradcheck
    if part == "gradcheck" and check is not None:
        return join((blocks_markup(list(check.blocks.values())), order2(check)))
    if part == "jacobian":
        return blocks_pictures(jacobian_blocks(report), room)
    if part == "calls":
        return calls_markup(report.calls)
    return body(report.graph if part == "graph" else report.comparison)


def _beside(report: FunctionReport, part: str) -> str:
    if part == "gradcheck" and report.gradcheck is not None:
        return gradcheck_summary(list(report.gradcheck.blocks.values()))
    if part == "jacobian":
        return counted("blocks", len(jacobian_blocks(report)))
    if part == "calls":
        return counted("calls", len(report.calls))
    if part == "graph" and report.graph is not None:
        return graph_headline(report.graph)
    if report.comparison is not None:
        return comparison_headline(report.comparison)
    return ""
