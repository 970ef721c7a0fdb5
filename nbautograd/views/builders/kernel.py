"""A kernel check as a document: the answer, what is wrong, the numbers of each quantity, what would have passed."""

from __future__ import annotations

from collections.abc import Iterator

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.inspection.kernel_report import KernelCase, KernelQuantity, KernelReport
from nbautograd.views.builders import build
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.document import Card, Cell, Chip, Document, Item, Strong, Table, Verbatim, paragraph, sentences
from nbautograd.views.phrases import VERDICT_MARKS, code, listed, say

CASE_COLUMNS = ("shapes", "dtype", "change", "beyond", "worst", "verdict")
ROWS = 8  # of the sweep that are shown
COLUMNS = ("quantity", "verdict", "error", "yardstick", "ratio", "bias", "resolution", "entry")


@build.register
def kernel_document(report: KernelReport) -> Document:
    """Return the answer with its causes, the table of quantities, and what limits the answer."""
    tone = report.verdict
    mark = Chip(f"{VERDICT_MARKS[tone]} {say('verdict', tone)}", tone, plain="")
    head = paragraph(mark, Strong(headline(report)), look="head")
    causes = tuple(Item(finding_document(finding, kind=False)) for finding in report.findings)
    reason = sentences([report.reason] if report.reason else [])
    small = [*_seen(report), *_power(report), *_conditions(report), *map(str, report.notes)]
    if report.draws:
        told = "views.kernel.draws_swept" if report.cases else "views.kernel.draws"
        small.append(messages.text(told, draws=report.draws))
    trace = (Verbatim(report.trace),) if report.trace else ()
    return (Card(tone, (head, *causes, *reason, *trace)), *_table(report), *_cases(report), *sentences(small, "small"))


def headline(report: KernelReport) -> str:
    """Return the answer in one sentence."""
    params = {"function": code(report.function), "reference": code(report.reference), "dtype": report.dtype}
    if report.verdict == "wrong":
        names = [_name(one) for one in report.quantities if one.verdict == "wrong"]
        which = "views.kernel.wrong" if names else "views.kernel.wrong_case"
        return messages.text(which, names=listed(names), **params)
    return messages.text(f"views.kernel.{report.verdict.replace(' ', '_')}", **params)


def _name(one: KernelQuantity) -> str:
    return messages.text(f"views.kernel.the_{one.kind}", name=code(one.name))


def _table(report: KernelReport) -> Document:
    if not report.quantities:
        return ()
    header: tuple[Cell, ...] = tuple(messages.text(f"views.kernel.{column}") for column in COLUMNS)
    rows = tuple(map(_row, report.quantities))
    return (Table(header, rows, messages.text("views.kernel.caption"), right=(2, 3, 4, 5, 6, 7), cut=False),)


def _row(one: KernelQuantity) -> tuple[Cell, ...]:
    named = one.kind == "output" and one.name.startswith("output")
    name = one.name if named else messages.text(f"views.kernel.{one.kind}", name=one.name)
    verdict = Chip(f"{VERDICT_MARKS[one.verdict]} {say('verdict', one.verdict)}", one.verdict)
    numbers = (one.error, one.yardstick, one.ratio, one.bias, one.resolution, one.entry_resolution)
    return (name, (verdict,), *map(formats.error, numbers))


def _cases(report: KernelReport) -> Document:
    """Return how many other inputs agree, and a row for each of the worst."""
    if not report.cases:
        return ()
    right = sum(case.verdict == "right" for case in report.cases)
    counts = {"right": formats.count(right), "count": formats.count(len(report.cases))}
    told = [messages.text("views.kernel.sweep", **counts)]
    if report.smallest is not None:
        sizes = [formats.shape(shape) or messages.text("views.tensor.scalar") for shape in report.smallest]
        shapes = messages.text("views.comma").join(sizes)
        told.append(messages.text("views.kernel.smallest", shapes=shapes))
    header: tuple[Cell, ...] = tuple(messages.text(f"views.kernel.{column}") for column in CASE_COLUMNS)
    table = Table(header, tuple(map(_case, report.cases[:ROWS])), messages.text("views.kernel.cases"), right=(3,))
    more = len(report.cases) - ROWS
    left = [messages.text("views.kernel.more_cases", count=formats.count(more))] if more > 0 else []
    return (*sentences(told), table, *sentences(left, "small"))


def _case(case: KernelCase) -> tuple[Cell, ...]:
    change = say("kernel_change", case.change) if case.change else ""
    verdict = Chip(f"{VERDICT_MARKS[case.verdict]} {say('verdict', case.verdict)}", case.verdict)
    shapes = messages.text("views.comma").join(formats.shape(shape) for shape in case.shapes)
    return (shapes, case.dtype, change, formats.error(case.ratio), case.quantity, (verdict,))


def _seen(report: KernelReport) -> list[str]:
    if report.wrong or not report.resolution < 1:
        return []
    return [messages.text("views.kernel.seen", resolution=percent(report.resolution))]


def percent(share: float) -> str:
    """Return a share as ``0.86 %``."""
    return f"{formats.error(100 * share)} %"


def _power(report: KernelReport) -> Iterator[str]:
    """Yield what would have passed, or that nothing of what was tried would."""
    unseen = [one for one in report.quantities if one.unseen]
    for one in unseen:
        faults = listed([say("kernel_fault", fault) for fault in one.unseen])
        yield messages.text("views.kernel.unseen", name=code(one.name), faults=faults)
    tried = list(dict.fromkeys(fault for one in report.quantities for fault in one.tried))
    if tried and not unseen:
        yield messages.text("views.kernel.all_seen", faults=listed([say("kernel_fault", fault) for fault in tried]))


def _conditions(report: KernelReport) -> Iterator[str]:
    for one in report.quantities:
        if one.condition and one.kind == "gradient":
            condition = formats.number(one.condition, 2)
            yield messages.text("views.kernel.condition", name=code(one.name), condition=condition, dtype=report.dtype)
