"""A comparison as a document: the answer, values side by side, numbers, what would have passed, graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.numerics.constants import BACKWARD_ROUNDINGS, BACKWARD_ROUNDINGS_OF_HALF, HALF
from nbautograd.core.values import Value
from nbautograd.inspection.comparison import ComparedCase, ComparedQuantity, Comparison
from nbautograd.views import theme
from nbautograd.views.builders import build
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.document import (
    Beside,
    Card,
    Cell,
    Chip,
    Document,
    Drawing,
    Fold,
    Item,
    PageOnly,
    Strong,
    Table,
    Term,
    Thumbnail,
    Verbatim,
    paragraph,
    sentences,
)
from nbautograd.views.phrases import VERDICT_MARKS, code, contents, heading, listed, say, without_example

CASE_COLUMNS = ("shapes", "dtype", "change", "beyond", "worst", "verdict")
FLOATING = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex128, torch.complex64,
)  # fmt: skip
DRAWING = 12_000  # characters of each graph's stored picture
ROWS = 8  # of the sweep that are shown
COLUMNS = ("quantity", "verdict", "error", "yardstick", "ratio", "bias", "resolution", "entry")


@build.register
def comparison_document(report: Comparison) -> Document:
    """Return the answer with its causes and what is not right; the rest of the evidence is folded."""
    tone = report.verdict
    mark = Chip(f"{VERDICT_MARKS[tone]} {say('verdict', tone)}", tone, plain="")
    head = paragraph(mark, Strong(headline(report)), look="head")
    more = [one for one in report.findings if one.code != "compare_values"]  # of which the headline says it all
    found = more if any(one.kind == "bug" for one in more) else report.findings
    causes = tuple(Item(finding_document(finding, without_example(finding), kind=False)) for finding in found)
    reason = sentences([report.reason] if report.reason else [])
    trace = (Verbatim(report.trace),) if report.trace else ()
    card = Card(tone, (head, *causes, *reason, *(trace if report.wrong else ()), *_extent(report)))
    unsure = [one for one in report.quantities if one.verdict != "right"]
    # what is wrong at the inputs themselves is wrong at most others: how many agree says it
    here = any(one.verdict == "wrong" for one in unsure)
    failing = [case for case in report.cases if case.verdict != "right"]
    evidence = (
        *(() if report.wrong else trace),
        *_side_by_side(report, [one for one in report.quantities if one.verdict == "right"], facts=True),
        *_table(report),
        *(_cases(failing) if here else ()),
        *_cases([case for case in report.cases if case.verdict == "right"]),
        *sentences([*_seen(report), *_tried(report), *_conditions(report)], "small"),
        *_graphs(report),
    )
    title = Strong(messages.text("views.part.evidence"))
    return (
        card,
        *sentences([*_passed(report), *report.notes], "small"),
        *_side_by_side(report, unsure),
        *(() if here else _cases(failing)),
        *((Fold(title, evidence, in_text="body"),) if evidence else ()),
    )


def _extent(report: Comparison) -> Document:
    """Return at how many inputs it was compared, in one line."""
    told = []
    if report.cases:
        right = sum(case.verdict == "right" for case in report.cases)
        counts = {"right": formats.count(right), "count": formats.count(len(report.cases))}
        told.append(messages.text("views.comparison.sweep", **counts))
    if report.smallest is not None:
        sizes = [formats.shape(shape) or messages.text("views.tensor.scalar") for shape in report.smallest]
        told.append(messages.text("views.comparison.smallest", shapes=messages.text("views.comma").join(sizes)))
    if report.draws:
        told.append(messages.text("views.comparison.draws", draws=report.draws))
    return (paragraph(*told, look="small"),) if told else ()


ELSEWHERE = ("compare_sizes", "compare_case", "compare_layout")  # codes of what the given inputs do not show


def headline(report: Comparison) -> str:
    """Return the answer in one sentence."""
    params = {"function": code(report.function), "reference": code(report.reference), "dtype": report.dtype}
    if report.verdict == "wrong":
        names = [_name(one) for one in report.quantities if one.verdict == "wrong"]
        elsewhere = any(one.code in ELSEWHERE for one in report.findings if one.kind == "bug")
        which = "comparison.wrong" if names else "comparison.wrong_case" if elsewhere else "headline.wrong"
        return messages.text(f"views.{which}", names=listed(names), **params)
    return messages.text(f"views.comparison.{report.verdict.replace(' ', '_')}", **params)


def _name(one: ComparedQuantity) -> str:
    return messages.text(f"views.comparison.{one.kind}", name=code(one.name))


def _side_by_side(report: Comparison, quantities: Sequence[ComparedQuantity], facts: bool = False) -> Document:
    """Return a row for each of these with both values, small heat maps in it; then the facts."""
    rows = [_values(one) for one in quantities if one.values is not None]
    rows += _facts(report) if facts else ()
    if not rows:
        return ()
    # whole calls are too long for a head
    named = (("motion.column.yours", report.function), ("compare.reference", report.reference))
    sides: tuple[Cell, ...] = tuple(Term(messages.text(f"views.{head}"), name) for head, name in named)
    header: tuple[Cell, ...] = ("", *sides, messages.text("views.motion.column.difference"))
    caption = messages.text("views.caption.comparison", first=report.function, second=report.reference)
    key = PageOnly(sentences([messages.text("views.compare.key")], "faint"))
    return (Table(header, tuple(rows), caption), *((key,) if quantities else ()))


def _values(one: ComparedQuantity) -> tuple[Cell, ...]:
    """Return a row's cells, the words under a small heat map where there is something to see."""
    assert one.values is not None
    apart = Strong(_apart(one)) if one.verdict == "wrong" else _apart(one)
    scale = difference_scale(one.values)
    apart_by = one.difference if one.verdict != "right" else None
    # found wrong by all entries together, while none of them stands out from rounding
    apart_scale = scale[:1] if one.verdict == "wrong" and scale and one.largest <= scale[1] else scale
    seen = [
        () if v is None or v.tensor is None or v.tensor.zeros == v.tensor.numel else (Thumbnail(v, *limits),)
        for v, limits in ((one.values[0], scale[:1]), (one.values[1], scale[:1]), (apart_by, apart_scale))
    ]
    words = (*both_texts(one.values, one.verdict != "wrong"), apart)
    return (_title(one), *((*picture, text) for picture, text in zip(seen, words, strict=True)))


def difference_scale(pair: tuple[Value, Value]) -> tuple[float, float] | tuple[()]:
    """Return what full colour stands for in both of these, and up to where their difference is only rounding."""
    tensors = [v.tensor for v in pair if v.tensor is not None]
    known = [np.abs(np.asarray(t.thumbnail)) for t in tensors if t.thumbnail is not None]
    spacings = [torch.finfo(dtype).eps for t in tensors if (dtype := getattr(torch, t.dtype, None)) in FLOATING]
    if not known or not spacings:
        return ()
    most, spacing = theme.robust_limit(*known, negligible=0), max(spacings)
    return most, (BACKWARD_ROUNDINGS if spacing < HALF else BACKWARD_ROUNDINGS_OF_HALF) * spacing * most


def _apart(one: ComparedQuantity) -> str:
    """Write a distance as a number, or why there is none."""
    assert one.values is not None
    first, second = (value.tensor for value in one.values)
    if first is None or second is None:
        return "" if first is second else messages.text("views.compare.one_is_none")
    if first.shape != second.shape:
        return messages.text("views.compare.one_is_none")
    if not one.largest:
        return messages.text("views.compare.equal")
    return f"{messages.text('views.compare.difference')} {formats.error(one.largest)}"


def _facts(report: Comparison) -> Iterator[tuple[Cell, ...]]:
    if report.saved_bytes is not None:
        yield (messages.text("views.call.saved"), *map(formats.size, report.saved_bytes), "")
    if report.seconds_of_each is not None:
        yield (messages.text("views.compare.time"), *map(formats.time, report.seconds_of_each), "")
    if report.graphs is not None:
        yield (messages.text("views.compare.nodes"), *(str(len(graph.nodes)) for graph in report.graphs), "")


def both_texts(pair: tuple[Value, Value], agree: bool) -> tuple[str, str]:
    """Return both in words, those that differ with as many digits as it takes to look different."""
    for digits in range(4, 4 if agree else formats.MOST_DIGITS):
        words = value_text(pair[0], digits), value_text(pair[1], digits)
        if words[0] != words[1]:
            return words
    return value_text(pair[0], 4), value_text(pair[1], 4)


def value_text(value: Value, digits: int = 4) -> str:
    """Return the elements of a tensor in words, of anything else its ``repr``."""
    return contents(value.tensor, digits) if value.tensor is not None else value.repr


def _graphs(report: Comparison) -> Document:
    if report.graphs is None:
        return ()
    named = zip((report.function, report.reference), report.graphs, strict=True)
    return (Beside(tuple((Drawing(graph, name, DRAWING),) for name, graph in named if graph.nodes)),)


def _title(one: ComparedQuantity) -> str:
    named = one.kind == "output" and one.name.startswith("output")
    return one.name if named else messages.text(f"views.comparison.{one.kind}", name=one.name)


def _table(report: Comparison) -> Document:
    if not report.quantities:
        return ()
    header: tuple[Cell, ...] = tuple(heading(f"views.comparison.{column}") for column in COLUMNS)
    rows = tuple(map(_row, report.quantities))
    return (Table(header, rows, messages.text("views.comparison.caption"), right=(2, 3, 4, 5, 6, 7), cut=False),)


def _row(one: ComparedQuantity) -> tuple[Cell, ...]:
    verdict = Chip(f"{VERDICT_MARKS[one.verdict]} {say('verdict', one.verdict)}", one.verdict)
    error, yardstick, *others = map(
        formats.error, (one.error, one.yardstick, one.bias, one.resolution, one.entry_resolution)
    )
    ratio = formats.error(one.ratio) if one.yardstick or not one.error else "–"
    others[1] = "–" if one.verdict == "wrong" else others[1]  # what was seen says more than what would have been
    return (_title(one), (verdict,), error, yardstick, ratio, *others)


def _cases(cases: Sequence[ComparedCase]) -> Document:
    """Return a row for each of the worst of these."""
    if not cases:
        return ()
    header: tuple[Cell, ...] = tuple(heading(f"views.comparison.{column}") for column in CASE_COLUMNS)
    table = Table(header, tuple(map(_case, cases[:ROWS])), messages.text("views.comparison.cases"), right=(3,))
    more = len(cases) - ROWS
    left = [messages.text("views.comparison.more_cases", count=formats.count(more))] if more > 0 else []
    return (table, *sentences(left, "small"))


def _case(case: ComparedCase) -> tuple[Cell, ...]:
    change = case.name or " + ".join(say("compare_change", one) for one in case.change.split())
    verdict = Chip(f"{VERDICT_MARKS[case.verdict]} {say('verdict', case.verdict)}", case.verdict)
    shapes = messages.text("views.comma").join(formats.shape(shape) for shape in case.shapes)
    beyond = formats.error(case.ratio) if case.ratio or case.verdict == "right" else "–"
    return (shapes, case.dtype, change, beyond, case.quantity, (verdict,))


def _seen(report: Comparison) -> list[str]:
    if report.wrong or not report.resolution < 1:
        return []
    return [messages.text("views.comparison.seen", resolution=percent(report.resolution))]


def percent(share: float) -> str:
    """Return a share as ``0.86 %``."""
    return f"{formats.error(100 * share)} %"


def _passed(report: Comparison) -> Iterator[str]:
    """Yield what would have passed."""
    for one in report.quantities:
        if one.unseen:
            faults = listed([say("compare_fault", fault) for fault in one.unseen])
            yield messages.text("views.comparison.unseen", name=code(one.name), faults=faults)


def _tried(report: Comparison) -> Iterator[str]:
    """Yield what was tried, where nothing of it would have passed."""
    tried = list(dict.fromkeys(fault for one in report.quantities for fault in one.tried))
    if tried and not any(one.unseen for one in report.quantities):
        faults = listed([say("compare_fault", fault) for fault in tried])
        yield messages.text("views.comparison.all_seen", faults=faults)


def _conditions(report: Comparison) -> Iterator[str]:
    for one in report.quantities:
        if one.condition and one.kind == "gradient":
            condition = formats.number(one.condition, 2)
            yield messages.text(
                "views.comparison.condition", name=code(one.name), condition=condition, dtype=report.dtype
            )
