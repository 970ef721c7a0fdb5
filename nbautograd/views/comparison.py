"""A comparison as rows: one per output, gradient and fact, for the text and the page alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nbautograd import messages
from nbautograd.core.values import Value
from nbautograd.inspection.comparison import Comparison
from nbautograd.views import formats
from nbautograd.views.tensors import contents


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
    """``f and mul agree.``, or what differs and by how much."""
    first, second = comparison.names
    if comparison.agree:
        return messages.text("views.compare.agree", first=first, second=second)
    wrong = [f"{row.title} ({row.difference})" for row in rows(comparison) if not row.agrees]
    if not wrong:
        return messages.text("views.compare.differ", first=first, second=second)
    what = messages.text("views.comma").join(wrong)
    return messages.text("views.compare.differ_in", first=first, second=second, what=what)


def rows(comparison: Comparison) -> list[Row]:
    """Outputs, gradients, then the facts."""
    return [*_tensors(comparison), *_facts(comparison)]


def _tensors(comparison: Comparison) -> Iterator[Row]:
    outputs = zip(comparison.outputs, comparison.output_differences, strict=False)
    for k, (pair, difference) in enumerate(outputs):
        yield _row(pair[0].name, pair, difference, _at(comparison.output_errors, k))
    gradients = zip(comparison.gradients, comparison.gradient_differences, strict=False)
    for k, (pair, difference) in enumerate(gradients):
        name = comparison.input_names[k] if k < len(comparison.input_names) else pair[0].name
        title = messages.text("views.compare.gradient", name=name)
        yield _row(title, pair, difference, _at(comparison.gradient_errors, k))


def _row(title: str, pair: tuple[Value, Value], difference: float, error: Value | None) -> Row:
    largest = max((abs(v) for v in _limits(pair[1])), default=0.0)
    agrees = difference <= 1e-5 * max(largest, 1e-12)
    return Row(title, _both(pair, agrees), _apart(pair, difference), agrees, (*pair, error))


def _apart(pair: tuple[Value, Value], difference: float) -> str:
    """How far apart: a number, or why there is none."""
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
        words = _words(pair[0], digits), _words(pair[1], digits)
        if words[0] != words[1]:
            return words
    return _words(pair[0], 4), _words(pair[1], 4)


def _words(value: Value, digits: int) -> str:
    return contents(value.tensor, digits) if value.tensor is not None else value.repr


def _limits(value: Value) -> list[float]:
    tensor = value.tensor
    return [] if tensor is None else [v for v in (tensor.min, tensor.max) if v is not None]


def _at(errors: tuple[Value | None, ...], k: int) -> Value | None:
    return errors[k] if k < len(errors) else None
