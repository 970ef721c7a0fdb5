"""Backward in slow motion as a document: a table of its lines, and one of the values of each line for the live view."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.checking.slow_motion import Known, LineStop, LineValue, ReturnedGradient, SlowMotion
from nbautograd.views.builders import build
from nbautograd.views.builders.comparison import both_texts, difference_scale, value_text
from nbautograd.views.document import (
    Cell,
    Chip,
    Code,
    Document,
    Faint,
    Fold,
    Strong,
    Table,
    Thumbnail,
    Tone,
    paragraph,
    sentences,
)
from nbautograd.views.phrases import code, contents, listed, say

MARKS = {"right": "✓", "wrong": "✗", "wrong by here": "✗", "follows": "↳", "": ""}
TONES: dict[Known, Tone] = {"right": "right", "wrong": "wrong", "wrong by here": "wrong", "follows": "lint"}
COLUMNS = ("yours", "right", "difference")


@build.register
def motion_document(motion: SlowMotion) -> Document:
    """Return a row for each line that computed something, with its values below, then what was returned."""
    title = messages.text("views.motion.title", function=code(motion.function))
    rows: list[tuple[Cell, ...]] = [(Faint(messages.text("views.motion.arrives", output=motion.output)),)]
    rows += map(_row, arrived(motion))
    for stop in motion.stops:
        # of the parts of an expression those that go wrong: the live view has room for all
        shown = (*stop.values, *(v for v in stop.parts if v.known.startswith("wrong")))
        rows += [(Code(f"{stop.line}  {stop_text(motion, stop)}".rstrip()),), *map(_row, shown)]
    if motion.gradients:
        rows += [(Faint(returned(motion)),), *map(_row, motion.gradients)]
    return (paragraph(Strong(title)), *sentences(motion.notes), _table(rows))


def values_document(values: Sequence[LineValue], parts: Sequence[LineValue] = ()) -> Document:
    """Return a table of values for the live view, and below it one of the parts of their expressions."""
    opened = any(one.known.startswith("wrong") for one in parts)
    tables = [(_table(list(map(_row, some))),) if some else () for some in (values, parts)]
    title = messages.text("views.motion.parts")
    return (*tables[0], *((Fold(title, tables[1], str(len(parts)), opened, strong=False),) if parts else ()))


def arrived(motion: SlowMotion) -> list[LineValue]:
    """Return the values that are there before the first line: grad_outputs and saved tensors."""
    return [LineValue(value) for value in (*motion.arrived, *motion.saved)]


def returned(motion: SlowMotion) -> str:
    """Return that gradients are returned, and which of them are wrong."""
    wrong = [code(str(one.value.name)) for one in motion.gradients if one.known == "wrong"]
    return messages.text("views.motion.returns_wrong" if wrong else "views.motion.returns", names=listed(wrong))


def stop_text(motion: SlowMotion, stop: LineStop) -> str:
    """Return the statement of a stop in one line; nothing where there is no source."""
    return " ".join(text.strip() for line, text in motion.lines if stop.line <= line <= stop.end)


def _table(rows: Sequence[tuple[Cell, ...]]) -> Table:
    header = ("", *(messages.text(f"views.motion.column.{name}") for name in COLUMNS))
    return Table(header, tuple(rows), messages.text("views.motion.caption"))


def _row(one: LineValue) -> tuple[Cell, ...]:
    name, known = Code(str(one.value.name)), one.known
    # the check's own verdict on what was returned
    words = say("verdict" if isinstance(one, ReturnedGradient) else "motion_known", known) if known else ""
    words = f"{MARKS[known]} {words}".strip()
    mark = (" ", Chip(words, TONES[known], plain=words)) if words else ()
    if one.right is None:
        return ((name, *mark), (Thumbnail(one.value), Faint(value_text(one.value))), "", "")
    pair = (one.value, one.right)
    scale, both = difference_scale(pair), both_texts(pair, agree=False)
    cells = ((Thumbnail(value, *scale[:1]), Faint(text)) for value, text in zip(pair, both, strict=True))
    return ((name, *mark), *cells, _apart(one, *scale))


def _apart(one: LineValue, *scale: float) -> Cell:
    """Return the difference: its picture, and its largest size."""
    if one.difference is None or one.difference.tensor is None:
        return messages.text("views.compare.one_is_none")
    tensor = one.difference.tensor
    largest = formats.error(max(abs(tensor.min or 0), abs(tensor.max or 0)))
    return (Thumbnail(one.difference, *scale), Faint(contents(tensor) if tensor.nan or tensor.inf else largest))
