"""A comparison as a document: one sentence, a row per output, gradient and fact, the two graphs beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.values import Value
from nbautograd.inspection.comparison import Comparison
from nbautograd.views.builders import build
from nbautograd.views.document import Beside, Chip, Code, Document, Drawing, Strong, Table, Thumbnail, paragraph
from nbautograd.views.phrases import MARKS, say
from nbautograd.views.tensors import contents

Kind = TypeVar("Kind")
DRAWING = 12_000  # characters of each graph's stored picture


@build.register
def comparison_document(comparison: Comparison) -> Document:
    """Return the sentence, the table with small heat maps in it, and the graphs below."""
    first, second = comparison.names
    verdict = "match" if comparison.agree else "mismatch"
    mark = Chip(f"{MARKS[verdict]} {say('block', verdict)}", "right" if comparison.agree else "wrong", plain="")
    head = paragraph(mark, Strong(headline(comparison)))
    header = ("", Code(first), Code(second), messages.text("views.compare.column"))
    caption = messages.text("views.caption.comparison", first=first, second=second)
    table = Table(header, tuple(map(_cells, rows(comparison))), caption)
    if comparison.graphs is None:
        return (head, table)
    named = zip(comparison.names, comparison.graphs, strict=True)
    pictures = tuple((Drawing(graph, name, DRAWING),) for name, graph in named if graph.nodes)
    return (head, table, Beside(pictures))


def _cells(row: Row) -> tuple[tuple[Thumbnail | Strong | str, ...], ...]:
    """Return a row's cells, the words under a small heat map where there is something to see."""
    apart = row.difference if row.agrees else Strong(row.difference)
    values = (*row.values, None, None, None)
    seen = [
        () if v is None or v.tensor is None or v.tensor.zeros == v.tensor.numel else (Thumbnail(v),) for v in values
    ]
    return (row.title,), *((*picture, words) for picture, words in zip(seen, (*row.cells, apart), strict=False))


@dataclass(frozen=True)
class Row:
    """One quantity of both.

    Attributes:
        title: ``"gradient of a"``.
        cells: the Function's and the reference's, in words.
        difference: how far apart they are at most, in words; empty for a fact such as the time.
        agrees: False where they differ.
        values: what the words are about, the difference last; empty for a fact.
    """

    title: str
    cells: tuple[str, str]
    difference: str = ""
    agrees: bool = True
    values: tuple[Value | None, ...] = ()


def headline(comparison: Comparison) -> str:
    """Return ``f and mul agree.``, or what differs and by how much."""
    first, second = comparison.names
    if comparison.agree:
        return messages.text("views.compare.agree", first=first, second=second)
    wrong = [f"{row.title} ({row.difference})" for row in rows(comparison) if not row.agrees]
    if not wrong:
        return messages.text("views.compare.differ", first=first, second=second)
    what = messages.text("views.comma").join(wrong)
    return messages.text("views.compare.differ_in", first=first, second=second, what=what)


def rows(comparison: Comparison) -> list[Row]:
    """Return outputs, gradients, then the facts."""
    return [*_tensors(comparison), *_facts(comparison)]


def _tensors(comparison: Comparison) -> Iterator[Row]:
    for k, pair in enumerate(comparison.outputs):
        agree = _at(comparison.outputs_agree, k)
        yield _row(str(pair[0].name), pair, comparison.output_differences[k], _at(comparison.output_errors, k), agree)
    for k, pair in enumerate(comparison.gradients):
        name = comparison.input_names[k] if k < len(comparison.input_names) else str(pair[0].name)
        title = messages.text("views.compare.gradient", name=name)
        agree = _at(comparison.gradients_agree, k)
        yield _row(title, pair, comparison.gradient_differences[k], _at(comparison.gradient_errors, k), agree)


def _row(title: str, pair: tuple[Value, Value], difference: float, error: Value | None, agree: bool | None) -> Row:
    agrees = not difference if agree is None else agree  # a comparison that was stored earlier does not say
    return Row(title, _both(pair, agrees), _apart(pair, difference), agrees, (*pair, error))


def _apart(pair: tuple[Value, Value], difference: float) -> str:
    """Write a distance as a number, or why there is none."""
    if pair[0].tensor is None or pair[1].tensor is None:
        return "" if pair[0].tensor is pair[1].tensor else messages.text("views.compare.one_is_none")
    if pair[0].tensor.shape != pair[1].tensor.shape:
        return messages.text("views.compare.shapes")
    if not difference:
        return messages.text("views.compare.equal")
    return f"{messages.text('views.compare.difference')} {formats.error(difference)}"


def _facts(comparison: Comparison) -> Iterator[Row]:
    saved, seconds = comparison.saved_bytes, comparison.seconds
    yield Row(messages.text("views.compare.saved"), (formats.size(saved[0]), formats.size(saved[1])))
    times = (formats.time(seconds[0]), formats.time(seconds[1]))
    yield Row(messages.text("views.compare.time"), times)
    if comparison.graphs is not None:
        sizes = [str(len(graph.nodes)) for graph in comparison.graphs]
        yield Row(messages.text("views.compare.nodes"), (sizes[0], sizes[1]))


def _both(pair: tuple[Value, Value], agree: bool) -> tuple[str, str]:
    """Return both in words, those that differ with as many digits as it takes to look different."""
    for digits in range(4, 4 if agree else formats.MOST_DIGITS):
        words = _value_text(pair[0], digits), _value_text(pair[1], digits)
        if words[0] != words[1]:
            return words
    return _value_text(pair[0], 4), _value_text(pair[1], 4)


def _value_text(value: Value, digits: int) -> str:
    return contents(value.tensor, digits) if value.tensor is not None else value.repr


def _at(several: Sequence[Kind], k: int) -> Kind | None:
    return several[k] if k < len(several) else None
