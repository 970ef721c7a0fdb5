"""Marks for the editor: what a value says of lines of cells, as plain data in the notebook's output.

The JupyterLab extension reads it from the outputs of the notebook, so that a notebook that is opened again has its
marks without a kernel. Every other front end ignores it. frontend/lab/marks.d.ts is generated from these classes.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.explaining.cause import SourceLine
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.recording.call import CallLog
from nbautograd.core.tracing.dispatches import DispatchLog
from nbautograd.core.user_source import FunctionSource
from nbautograd.inspection.audit_report import AuditReport
from nbautograd.inspection.comparison import Comparison
from nbautograd.inspection.explanation import Explanation
from nbautograd.inspection.report import FunctionReport
from nbautograd.views.answer import answer, second_answer
from nbautograd.views.builders.explanation import lines_of, place_text, role_text
from nbautograd.views.phrases import line_of, say, tried, without_example
from nbautograd.widgets.notebook_cells import cell_of_file, running_cell

MIME = "application/vnd.nbautograd.marks+json"
CARD = "application/vnd.nbautograd.explanation+json"
WATCH = "%%autograd_function"
TONES: dict[str, EditorTone] = {"bug": "bug", "lint": "risk"}
TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)

EditorTone = Literal["bug", "risk", "explained"]


@dataclass(frozen=True, kw_only=True)
class CheckedText:
    """Lines of a cell as they were when they were checked; a mark is true of them and of nothing else.

    Attributes:
        cell: the page's id of the cell; empty where it is not known.
        first_line: where they begin in it, from 1.
        text: without a newline at the end.
    """

    cell: str
    first_line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class EditorChange:
    """Change that mends a line.

    Attributes:
        line: the first line that goes, in the cell, from 1.
        before, after: the lines, as they stand in the cell.
        lit: of the lines that come, which columns are new: the line's position, begin and end.
        note: what a trial showed.
    """

    line: int
    before: str
    after: str
    lit: Sequence[tuple[int, int, int]]
    note: str


@dataclass(frozen=True, kw_only=True)
class EditorMark:
    """What is said of one line.

    Attributes:
        checked: position of its text among those that were checked.
        line: in the cell, from 1.
        columns: begin and end of what is underlined.
        kind: the word for its tone.
        message: the sentences of the report.
        change: what mends it, where that was tried.
    """

    tone: EditorTone
    checked: int
    line: int
    columns: tuple[int, int]
    kind: str
    message: str
    change: EditorChange | None = None


@dataclass(frozen=True, kw_only=True)
class MarksState:
    """All that one output says of lines.

    Attributes:
        language: of its sentences.
    """

    language: str
    checked: Sequence[CheckedText]
    marks: Sequence[EditorMark]


@dataclass(frozen=True, kw_only=True)
class CardRow:
    """One of the user's lines that an explanation names.

    Attributes:
        role: its part in what happened.
        place: cell and line.
        main: whether it is the one that did it.
    """

    role: str
    place: str
    text: str
    main: bool


@dataclass(frozen=True, kw_only=True)
class ExplanationCard:
    """What stands in the place of a traceback: the answer, and the user's own lines in the order they ran.

    Attributes:
        language: of its sentences.
        change: what mends it, where that was tried.
        find: the line of a notebook that finds more by a run of the cells in a copy; empty where that was done.
    """

    language: str
    answer: str
    rows: Sequence[CardRow]
    change: EditorChange | None
    find: str


def marks_bundle(value: Any, find: str = "") -> dict[str, Any]:
    """Return what the extension reads of a value, by MIME type; empty for a value that says nothing of a cell's lines.

    Args:
        value: a report, a check, a comparison, an audit or an explanation.
        find: of an explanation, the line of a notebook that finds more.
    """
    if isinstance(value, CallLog | DispatchLog):
        return _watching(value)
    state = marks_of(value)
    bundle = {} if state is None else {MIME: dataclasses.asdict(state)}
    if isinstance(value, Explanation) and value:
        find = find or next((one.params["find"] for one in value.findings if "find" in one.params), "")
        bundle[CARD] = dataclasses.asdict(_card(value, state, find))
    return bundle


def _watching(log: CallLog | DispatchLog) -> dict[str, Any]:
    """Return a card that puts the magic above the cell of a class that is not recorded, a call above an empty log."""
    told = next(iter(log.problems), None)
    cell, row, above = None, "", WATCH
    if told is not None and told.message_id == "recording.not_watched":
        cell = cell_of_file(told.params["file"])
        row = "" if cell is None or cell.text.startswith("%%") else cell.text.split("\n")[0]
    elif told is not None and told.message_id == "recording.not_called" and told.params["offered"]:
        cell, above = running_cell(), told.params["call"]
        row = next((row for row in cell.text.split("\n") if row.startswith("%autograd_calls")), "") if cell else ""
    if cell is None or not row:
        return {}
    line = cell.text.split("\n").index(row) + 1
    checked = CheckedText(cell=cell.id, first_line=1, text=cell.text.rstrip("\n"))
    change = EditorChange(line=line, before=row, after=f"{above}\n{row}", lit=((0, 0, len(above)),), note="")
    about: dict[str, Any] = {"kind": say("kind", "note"), "message": str(told), "change": change}
    mark = EditorMark(tone="explained", checked=0, line=line, columns=(0, len(row)), **about)
    card = ExplanationCard(language=messages.language(), answer=str(told), rows=(), change=change, find="")
    state = MarksState(language=card.language, checked=(checked,), marks=(mark,))
    return {MIME: dataclasses.asdict(state), CARD: dataclasses.asdict(card)}


def _card(explanation: Explanation, state: MarksState | None, find: str) -> ExplanationCard:
    marks = () if state is None else state.marks
    rows = [
        CardRow(role=role_text(explanation, name), place=place_text(place), text=place.text, main=name == "did")
        for name, place in lines_of(explanation)
    ]
    change = next((mark.change for mark in marks if mark.change is not None), None)
    answer = explanation.findings[0].message
    return ExplanationCard(language=messages.language(), answer=answer, rows=rows, change=change, find=find)


def marks_of(value: Any) -> MarksState | None:
    """Return the marks of a report, a check, a comparison, an audit or an explanation; None without a cell of it."""
    gathered = _Gathered()
    match value:
        case FunctionReport() | GradcheckReport() | Comparison():
            gathered.of_report(value)
        case AuditReport():
            for function_report in value.functions:
                for situation in function_report.situations:
                    if situation.report is not None:
                        gathered.of_report(situation.report)
        case Explanation():
            gathered.of_explanation(value)
        case _ if hasattr(value, "marked_lines"):  # what the checks of an exercise said of the cell that runs
            gathered.of_lines(value.marked_lines(), messages.text(f"course.chip.{value.state}"))
        case _:
            return None
    if not gathered.texts:
        return None
    marks = tuple(dict.fromkeys(gathered.marks))
    return MarksState(language=messages.language(), checked=gathered.texts, marks=marks)


class _Gathered:
    """Marks, and the texts that they stand in."""

    def __init__(self) -> None:
        self.texts: list[CheckedText] = []
        self.marks: list[EditorMark] = []

    def of_report(self, report: FunctionReport | GradcheckReport | Comparison) -> None:
        text = None if report.source is None else _of_class(report.source)
        if text is None:
            return
        at = self._position(text)
        for finding in _findings(report):
            if finding.kind in TONES:
                words = without_example(finding)
                self._add(at, TONES[finding.kind], line_of(finding), say("kind", finding.kind), words, finding.fix)

    def of_explanation(self, explanation: Explanation) -> None:
        """Mark the line that did it with the answer, and those that it has to do with by their part in it."""
        fix = explanation.fix
        shown = dict(lines_of(explanation))
        first = "did" if "did" in shown else next(iter(shown), "")
        note = "" if fix is None else messages.text(f"explain.tried_{explanation.params['tried']}")
        for name, place in shown.items():
            text = _of_cell(place)
            if text is None:
                continue
            role = role_text(explanation, name)
            main = name == first
            mends = fix if fix is not None and (fix.file, fix.line) == (place.file, place.line) else None
            words = explanation.findings[0].message if main else role
            self._add(self._position(text), "explained", place.line, role, words, mends, note)

    def of_lines(self, lines: Sequence[tuple[int, str]], kind: str) -> None:
        cell = running_cell()
        if cell is None or not lines:
            return
        at = self._position(CheckedText(cell=cell.id, first_line=1, text=cell.text.rstrip("\n")))
        for line, words in lines:
            self._add(at, "risk", line, kind, words, None)

    def _position(self, text: CheckedText) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def _add(
        self, at: int, tone: EditorTone, line: int | None, kind: str, words: str, fix: Fix | None, note: str = ""
    ) -> None:
        text = self.texts[at]
        rows = text.text.split("\n")
        if line is None or not 0 <= line - text.first_line < len(rows):
            return  # it is of another file than the class
        row = rows[line - text.first_line]
        change = None if fix is None else _change(fix, text, note or tried(fix))
        columns = len(row) - len(row.lstrip()), len(row.rstrip())
        mark = EditorMark(tone=tone, checked=at, line=line, columns=columns, kind=kind, message=words, change=change)
        self.marks.append(mark)


def _findings(report: FunctionReport | GradcheckReport | Comparison) -> Iterator[Finding]:
    """Yield the findings that the report tells; those of second derivatives are risks unless these were asked for."""
    if isinstance(report, Comparison):
        yield from report.findings
        return
    check = report.gradcheck if isinstance(report, FunctionReport) else report
    second = second_answer(check) if check.order == 2 and check.order2 is not None else None
    told = answer(report)
    for finding in (*told.findings, *told.others):
        if second is None or finding.code != "not_twice_differentiable":
            yield finding
    if second is not None:
        yield from (*second.findings, *second.others)


def _of_class(source: FunctionSource) -> CheckedText | None:
    """Return a class as it stands in its cell; None where it stands in a file."""
    cell = cell_of_file(source.file)
    if cell is None:
        return None
    first, count = source.first_line, source.text.rstrip("\n").count("\n") + 1
    rows = cell.text.split("\n")[first - 1 : first - 1 + count]
    same = [row.strip() for row in rows] == [row.strip() for row in source.text.rstrip("\n").split("\n")]
    return CheckedText(cell=cell.id, first_line=first, text="\n".join(rows)) if same else None


def _of_cell(place: SourceLine) -> CheckedText | None:
    """Return the whole cell of a line: what other lines of it do belongs to what was seen."""
    cell = cell_of_file(place.file)
    return None if cell is None else CheckedText(cell=cell.id, first_line=1, text=cell.text.rstrip("\n"))


def _change(fix: Fix, text: CheckedText, note: str) -> EditorChange | None:
    """Return a change that was tried, if its lines stand in the text where it says."""
    if not fix.verified or fix.line is None or not fix.before:
        return None
    gone = fix.before.rstrip("\n").split("\n")
    begin = fix.line - text.first_line
    rows = text.text.split("\n")[begin : begin + len(gone)] if begin >= 0 else []
    if [row.strip() for row in rows] != [row.strip() for row in gone]:
        return None
    # a fix is written as the class was read: in a cell that indents the class its lines stand further in
    margin = rows[0][: len(rows[0]) - len(gone[0])] if rows[0].endswith(gone[0]) else ""
    before, after = "\n".join(rows), "\n".join(margin + row for row in fix.source.rstrip("\n").split("\n"))
    return EditorChange(line=fix.line, before=before, after=after, lit=tuple(_new(before, after)), note=note)


def _new(before: str, after: str) -> Iterator[tuple[int, int, int]]:
    """Yield what is new in the lines that come, by whole words: position of the line, begin and end."""
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    edits = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    spans = [(len("".join(new[:c])), len("".join(new[:d]))) for kind, _, _, c, d in edits if kind != "equal"]
    offset = 0
    for k, row in enumerate(after.split("\n")):
        for start, end in spans:
            begin, stop = max(start - offset, 0), min(end - offset, len(row))
            if begin < stop:
                yield k, begin, stop
        offset += len(row) + 1
