"""A comparison as a document: the answer, values side by side, numbers, what would have passed, graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.numerics.constants import BACKWARD_ROUNDINGS, BACKWARD_ROUNDINGS_OF_HALF, HALF
from nbautograd.core.values import Value
from nbautograd.inspection.comparison import ComparedCase, ComparedQuantity, Comparison
from nbautograd.views import palette
from nbautograd.views.builders import build
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.document import (
    Beside,
    Card,
    Cell,
    Chip,
    Code,
    Document,
    Drawing,
    Item,
    Strong,
    Table,
    Thumbnail,
    Verbatim,
    paragraph,
    sentences,
)
from nbautograd.views.phrases import VERDICT_MARKS, code, heading, listed, say, without_example
from nbautograd.views.tensors import contents

CASE_COLUMNS = ("shapes", "dtype", "change", "beyond", "worst", "verdict")
FLOATING = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex128, torch.complex64,
)  # fmt: skip
DRAWING = 12_000  # characters of each graph's stored picture
ROWS = 8  # of the sweep that are shown
COLUMNS = ("quantity", "verdict", "error", "yardstick", "ratio", "bias", "resolution", "entry")


@build.register
def comparison_document(report: Comparison) -> Document:
    """Return the answer with its causes, values and numbers, what limits the answer, and the graphs."""
    tone = report.verdict
    mark = Chip(f"{VERDICT_MARKS[tone]} {say('verdict', tone)}", tone, plain="")
    head = paragraph(mark, Strong(headline(report)), look="head")
    causes = tuple(Item(finding_document(finding, without_example(finding), kind=False)) for finding in report.findings)
    reason = sentences([report.reason] if report.reason else [])
    small = [*_seen(report), *_power(report), *_conditions(report), *map(str, report.notes)]
    if report.draws:
        small.append(messages.text("views.comparison.draws", draws=report.draws))
    trace = (Verbatim(report.trace),) if report.trace else ()
    card = Card(tone, (head, *causes, *reason, *trace))
    return (
        card,
        *_side_by_side(report),
        *_table(report),
        *_cases(report),
        *sentences(small, "small"),
        *_graphs(report),
    )


def headline(report: Comparison) -> str:
    """Return the answer in one sentence."""
    params = {"function": code(report.function), "reference": code(report.reference), "dtype": report.dtype}
    if report.verdict == "wrong":
        names = [_name(one) for one in report.quantities if one.verdict == "wrong"]
        which = "views.comparison.wrong" if names else "views.comparison.wrong_case"
        return messages.text(which, names=listed(names), **params)
    if report.verdict == "right" and report.dtype == "float64":
        return messages.text("views.comparison.right", **{**params, "dtype": "float32"})
    return messages.text(f"views.comparison.{report.verdict.replace(' ', '_')}", **params)


def _name(one: ComparedQuantity) -> str:
    return messages.text(f"views.comparison.{one.kind}", name=code(one.name))


def _side_by_side(report: Comparison) -> Document:
    """Return a row per output and gradient with both values, small heat maps in it; then the facts."""
    rows = [_values(one) for one in report.quantities if one.values is not None]
    if not rows:
        return ()
    header = ("", Code(report.function), Code(report.reference), messages.text("views.panel.difference"))
    caption = messages.text("views.caption.comparison", first=report.function, second=report.reference)
    return (Table(header, (*rows, *_facts(report)), caption),)


def _values(one: ComparedQuantity) -> tuple[Cell, ...]:
    """Return a row's cells, the words under a small heat map where there is something to see."""
    assert one.values is not None
    apart = Strong(_apart(one)) if one.verdict == "wrong" else _apart(one)
    seen = [
        () if v is None or v.tensor is None or v.tensor.zeros == v.tensor.numel else (Thumbnail(v, *scale),)
        for v, scale in ((one.values[0], ()), (one.values[1], ()), (one.difference, difference_scale(one.values)))
    ]
    words = (*both_texts(one.values, one.verdict != "wrong"), apart)
    return (_title(one), *((*picture, text) for picture, text in zip(seen, words, strict=True)))


def difference_scale(pair: tuple[Value, Value]) -> tuple[float, float] | tuple[()]:
    """Return what full colour stands for in the difference of these, and up to where it is only rounding."""
    tensors = [v.tensor for v in pair if v.tensor is not None]
    known = [np.abs(np.asarray(t.thumbnail)) for t in tensors if t.thumbnail is not None]
    spacings = [torch.finfo(dtype).eps for t in tensors if (dtype := getattr(torch, t.dtype, None)) in FLOATING]
    if not known or not spacings:
        return ()
    most, spacing = palette.robust_limit(*known, negligible=0), max(spacings)
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
    numbers = (one.error, one.yardstick, one.ratio, one.bias, one.resolution, one.entry_resolution)
    return (_title(one), (verdict,), *map(formats.error, numbers))


def _cases(report: Comparison) -> Document:
    """Return how many other inputs agree, and a row for each of the worst."""
    if not report.cases:
        return ()
    right = sum(case.verdict == "right" for case in report.cases)
    counts = {"right": formats.count(right), "count": formats.count(len(report.cases))}
    told = [messages.text("views.comparison.sweep", **counts)]
    if report.smallest is not None:
        sizes = [formats.shape(shape) or messages.text("views.tensor.scalar") for shape in report.smallest]
        shapes = messages.text("views.comma").join(sizes)
        told.append(messages.text("views.comparison.smallest", shapes=shapes))
    header: tuple[Cell, ...] = tuple(heading(f"views.comparison.{column}") for column in CASE_COLUMNS)
    table = Table(header, tuple(map(_case, report.cases[:ROWS])), messages.text("views.comparison.cases"), right=(3,))
    more = len(report.cases) - ROWS
    left = [messages.text("views.comparison.more_cases", count=formats.count(more))] if more > 0 else []
    return (*sentences(told), table, *sentences(left, "small"))


def _case(case: ComparedCase) -> tuple[Cell, ...]:
    change = case.name or " + ".join(say("compare_change", one) for one in case.change.split())
    verdict = Chip(f"{VERDICT_MARKS[case.verdict]} {say('verdict', case.verdict)}", case.verdict)
    shapes = messages.text("views.comma").join(formats.shape(shape) for shape in case.shapes)
    return (shapes, case.dtype, change, formats.error(case.ratio), case.quantity, (verdict,))


def _seen(report: Comparison) -> list[str]:
    if report.wrong or not report.resolution < 1:
        return []
    return [messages.text("views.comparison.seen", resolution=percent(report.resolution))]


def percent(share: float) -> str:
    """Return a share as ``0.86 %``."""
    return f"{formats.error(100 * share)} %"


def _power(report: Comparison) -> Iterator[str]:
    """Yield what would have passed, or that nothing of what was tried would."""
    unseen = [one for one in report.quantities if one.unseen]
    for one in unseen:
        faults = listed([say("compare_fault", fault) for fault in one.unseen])
        yield messages.text("views.comparison.unseen", name=code(one.name), faults=faults)
    tried = list(dict.fromkeys(fault for one in report.quantities for fault in one.tried))
    if tried and not unseen:
        yield messages.text(
            "views.comparison.all_seen", faults=listed([say("compare_fault", fault) for fault in tried])
        )


def _conditions(report: Comparison) -> Iterator[str]:
    for one in report.quantities:
        if one.condition and one.kind == "gradient":
            condition = formats.number(one.condition, 2)
            yield messages.text(
                "views.comparison.condition", name=code(one.name), condition=condition, dtype=report.dtype
            )
