"""An audit as a document: one sentence, the causes of what is wrong, a row per situation, and what was not seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.explaining.cause import SourceLine
from nbautograd.inspection.audit_report import OTHER_GRADS, AuditedFunction, AuditedSituation, AuditReport, AuditVerdict
from nbautograd.inspection.audited_calls import ROWS
from nbautograd.views.builders import build
from nbautograd.views.builders.explanation import place_text
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.document import (
    Block,
    Card,
    Cell,
    Chip,
    Code,
    Document,
    Fold,
    Item,
    Lines,
    Paragraph,
    Span,
    Strong,
    Table,
    Term,
    paragraph,
    sentences,
)
from nbautograd.views.phrases import VERDICT_MARKS, code, few, say

CAUSES = 8  # wrong Functions whose causes are told above the table
ROWS_SHOWN = 40
ALIKE = 4  # situations of one Function with one verdict
DETAILS = 3  # wrong situations whose whole report stands in the page
LONG = 60  # letters of a path


@build.register
def audit_document(report: AuditReport, in_python: bool = True) -> Document:
    """Return the answer with its causes, the table of situations, and the notes.

    Args:
        report: what is told.
        in_python: False leaves out what can be done with the value, for readers who do not have it.
    """
    tone = report.verdict
    mark = Chip(f"{VERDICT_MARKS[tone]} {say('verdict', tone)}", tone, plain="")
    head = paragraph(mark, Strong(headline(report)), look="head")
    causes = tuple(_causes(report, in_python))
    hint = (
        sentences([messages.text("views.audit.repro", report=report.name)], "small")
        if report.wrong and in_python
        else ()
    )
    small = [*_reasons(report), *_second(report)]
    notes = [*_counts(report), *((str(note),) for note in report.notes)]
    return (
        Card(tone, (head, *causes, *hint)),
        *_table(report),
        *sentences(small, "small"),
        *(Paragraph(spans, "small") for spans in notes),
    )


@build.register
def situation_document(situation: AuditedSituation) -> Document:
    """Return the inputs with the verdict, and the ordinary report."""
    words = messages.text("views.comma").join(map(str, situation.inputs))
    about = paragraph(_verdict_chip(situation.verdict), words)
    return (about, *(() if situation.report is None else build(situation.report)))


@build.register
def function_document(function: AuditedFunction) -> Document:
    """Return a table of one Function's situations."""
    return _table(AuditReport((function,)))


def headline(report: AuditReport) -> str:
    """Return the answer in one sentence."""
    checked = [f for f in report.functions if f.situations]
    if not checked:
        return messages.text("views.audit.none")
    if report.wrong:
        wrong = len(report.wrong)
        names = _names(report.wrong)
        return messages.text("views.audit.wrong", wrong=wrong, count=formats.count(len(checked)), names=names)
    unchecked = tuple(f for f in checked if any(s.verdict == "unchecked" for s in f.situations))
    if unchecked:
        some = any(s.verdict != "unchecked" for f in checked for s in f.situations)
        counts = {"count": formats.count(len(checked)), "checked": formats.count(len(checked) - len(unchecked))}
        which = "unchecked_some" if some else "unchecked"
        return messages.text(f"views.audit.{which}", names=_names(unchecked), **counts)
    unsure = tuple(f for f in checked if f.verdict not in ("right", "meant"))
    if unsure:
        return messages.text("views.audit.unsure", names=_names(unsure))
    meant = tuple(f for f in checked if f.verdict == "meant")
    if meant:
        return messages.text("views.audit.meant", names=_names(meant), count=formats.count(len(checked)))
    return messages.text("views.audit.right", count=formats.count(len(checked)))


def _names(functions: tuple[AuditedFunction, ...]) -> str:
    return few([code(f.name) for f in functions])


def _causes(report: AuditReport, in_python: bool) -> Iterator[Block]:
    """Yield for each wrong Function its place, cause and fix, and the whole report of the first few."""
    for i, function in enumerate(report.wrong[:CAUSES]):
        situation = function.situations[0]
        cause = situation.cause
        about = paragraph(Strong(code(function.name)), place(function))
        tests = sentences([_tests(function.tests)] if function.tests else [])
        body = sentences([situation.message]) if cause is None else finding_document(cause, kind=False)
        body = (*body, *sentences([*_wrong_for(situation), *_cut_down(situation)]))
        details: Document = ()
        if situation.report is not None and i < DETAILS:
            evidence = tuple(part for part in build(situation.report) if not isinstance(part, Card))  # told above
            words = messages.text("views.audit.report")
            title = Term(words, f"{report.name}.functions[{i}].situations[0].report") if in_python else words
            details = (Fold(title, evidence, strong=False, in_text="nothing"),)
        yield Item((about, *body, *tests, *details))


def _tests(tests: tuple[str, ...]) -> str:
    return messages.text("views.audit.tests", tests=few([code(test) for test in tests]))


def _wrong_for(situation: AuditedSituation) -> list[str]:
    """Return which gradients are wrong, where there are several: the cause above is that of the first."""
    blocks = () if situation.report is None else situation.report.blocks.values()
    names = dict.fromkeys(code(block.input_name) for block in blocks if block.verdict == "mismatch")
    return [messages.text("views.audit.wrong_for", inputs=few(list(names)))] if len(names) > 1 else []


def _cut_down(situation: AuditedSituation) -> list[str]:
    """Return whose counts and factors a cause tells, where they are not those of the program's own inputs."""
    if situation.report is None or situation.how not in ("smaller", "slice"):
        return []
    sizes = {b.input_name: formats.shape(b.input_shape) for b in situation.report.blocks.values()}
    words = messages.text("views.comma").join(f"{code(name)} {size}" for name, size in sizes.items())
    return [messages.text("views.audit.smaller", sizes=words)] if sizes else []


def place(function: AuditedFunction) -> str:
    """Return where a Function is defined, as ``explain`` says it: file of its package or cell, and line."""
    if function.package:
        return messages.text("views.audit.packaged", place=_place(function), package=function.package)
    return _place(function)


def _place(function: AuditedFunction) -> str:
    if function.line is None or function.file is None:
        return function.module
    if function.cell is not None or not Path(function.file).is_file():
        return place_text(SourceLine(function.line, file=function.file, cell=function.cell))
    path = Path(function.file)
    deep = 1 + (path.stem == "__init__") + (0 if function.module == "__main__" else function.module.count("."))
    return messages.text("explain.place_file", file="/".join(path.parts[-deep:]), line=function.line)


def _table(report: AuditReport) -> Document:
    if not any(f.situations for f in report.functions):
        return ()
    titles = ("function", "where", "situation", "verdict", "calls")
    header: tuple[Cell, ...] = tuple(messages.text(f"views.audit.{title}") for title in titles)
    rows = [row for function in report.functions for row in _rows(function)]
    table = Table(header, tuple(rows[:ROWS_SHOWN]), messages.text("views.audit.caption"), right=(4,), cut=False)
    more = len(rows) - ROWS_SHOWN
    return (
        table,
        *sentences(
            [messages.text("views.audit.rows", count=formats.count(more), report=report.name)] if more > 0 else []
        ),
    )


def _rows(function: AuditedFunction) -> Iterator[tuple[Cell, ...]]:
    """Yield a row per situation; of many with one verdict the first few, and how many more there are."""
    named: tuple[Cell, Cell] = (Code(function.name), place(function))
    for verdict in dict.fromkeys(situation.verdict for situation in function.situations):
        alike = [situation for situation in function.situations if situation.verdict == verdict]
        for situation in alike[:ALIKE]:
            yield *named, _inputs(situation), _verdict(situation), formats.count(situation.calls)
            named = ("", "")
        rest = alike[ALIKE:]
        if rest:
            words = messages.text("views.audit.alike", count=formats.count(len(rest)))
            calls = formats.count(sum(situation.calls for situation in rest))
            yield "", "", words, (_verdict_chip(verdict),), calls


def _inputs(situation: AuditedSituation) -> Lines:
    return Lines(tuple(str(one).replace(":", "*:", 1) if one.requires_grad else str(one) for one in situation.inputs))


def _verdict(situation: AuditedSituation) -> Cell:
    words = []
    if situation.verdict == "meant":
        words.append(messages.text("views.audit.no_derivative"))
    elif situation.how == "slice":
        words.append(messages.text("views.audit.by_slice", rows=ROWS))
    elif situation.how == "smaller" and situation.verdict == "wrong":
        words.append(messages.text("views.audit.by_smaller"))
    elif situation.how == "directions":
        words.append(messages.text("views.audit.by_directions", count=situation.directions))
    if situation.dtype and situation.dtype not in ("float64", "complex128"):
        words.append(messages.text("views.audit.in_dtype", dtype=situation.dtype))
    if situation.verdict == "right" and situation.order2 == "wrong":
        words.append(messages.text("views.audit.second"))
    if situation.verdict == "right" and any(finding.code == OTHER_GRADS for finding in situation.findings):
        words.append(messages.text("views.audit.other_grads"))
    aside = messages.text("views.comma").join(words)
    return (_verdict_chip(situation.verdict), f" ({aside})" if aside else "")


def _verdict_chip(verdict: AuditVerdict) -> Chip:
    return Chip(f"{VERDICT_MARKS[verdict]} {say('verdict', verdict)}", verdict)


def _second(report: AuditReport) -> list[str]:
    """Return what wrong second derivatives mean, and for which Functions."""
    risky = [f for f in report.functions if any(s.verdict == "right" and s.order2 == "wrong" for s in f.situations)]
    return [messages.text("views.audit.second_means", names=_names(tuple(risky)))] if risky else []


def _counts(report: AuditReport) -> list[tuple[Span, ...]]:
    calls, left_out, without = (
        sum(getattr(f, name) for f in report.functions) for name in ("calls", "left_out", "without_gradient")
    )
    checked = sum(situation.checked for f in report.functions for situation in f.situations)
    said: list[tuple[Span, ...]] = []
    if left_out:
        words = messages.text("views.audit.left_out", calls=formats.count(calls), checked=formats.count(checked))
        said.append((Term(words, messages.meaning("views.audit.left_out")),))
    if without:
        said.append((messages.text("views.audit.without_gradient", count=formats.count(without)),))
    return said


def _reasons(report: AuditReport) -> list[str]:
    """Return why something cannot be told, is meant so, or was not checked, and what is risky, once for a Function."""
    told = ("cannot tell", "meant", "unchecked")
    unsure = [(f, s) for f in report.functions for s in f.situations if s.verdict in told]
    reasons = [(f.name, str(s.reason)) for f, s in unsure if s.reason]
    reasons += [(f.name, finding.message) for f in report.functions for finding in f.findings]
    by_reason: dict[str, dict[str, None]] = {}
    for name, reason in reasons:
        by_reason.setdefault(reason, {})[code(name)] = None
    said = [
        messages.text("views.audit.reason", function=few(list(names)), reason=reason)
        for reason, names in by_reason.items()
    ]
    called = [f for f in report.functions if f.tests and f.verdict in ("cannot tell", "unchecked")]
    said += [messages.text("views.audit.reason", function=code(f.name), reason=_tests(f.tests)) for f in called]
    return said[:ROWS_SHOWN]
