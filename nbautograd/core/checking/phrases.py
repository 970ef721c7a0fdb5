"""Phrases of a finding's sentence, put into words when the sentence is read, in the language of that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nbautograd.core.checking.problem import Subject
from nbautograd.core.contract.severity import SEVERITY
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.source import Returned


def ordinal(position: int) -> Phrase:
    """The position counted from 1: ``"2nd"``."""
    number = position + 1
    return Phrase(f"causes.nth_{number}" if number <= 3 else "causes.nth", n=number)


def returned(subject: Subject, position: int) -> Returned | None:
    """Return the source's expression of this input's gradient, where the input is an argument of forward."""
    argument = subject.arguments.get(position)
    if subject.source is None or argument is None:
        return None
    gradients = subject.source.gradients
    return gradients[argument] if argument < len(gradients) else None


def value(subject: Subject, position: int) -> Phrase:
    """Name the gradient of an input.

    Returns:
        Such as "`grad_weight`, the 2nd value returned, line 23: `input.mm(grad_output)`".
    """
    argument = subject.arguments.get(position)
    if argument is None:
        return Phrase("causes.value_of_input", input=subject.input_names[position])
    several = subject.source is not None and len(subject.source.gradients) > 1
    which = Phrase("causes.value_nth", nth=ordinal(argument)) if several else Phrase("causes.value_only")
    found = returned(subject, position)
    if found is None or found.line is None or not found.expression:
        return which
    place = {"which": which, "line": found.line, "expression": short(found.expression)}
    if found.name is None or found.name == found.expression:
        return Phrase("causes.value_expression", **place)
    return Phrase("causes.value_named", name=found.name, **place)


def shapes(known: Mapping[str, Sequence[int]]) -> str:
    """Names with their shapes: "`x` [4, 3], `w` [3, 5]"."""
    return ", ".join(f"`{name}` {list(shape)}" for name, shape in known.items())


def short(expression: str, most: int = 60) -> str:
    """An expression on one line, cut when it is long."""
    text = " ".join(expression.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def backward_line(subject: Subject) -> int | None:
    """The line of ``def backward``."""
    if subject.source is None:
        return None
    return subject.source.lines.get("backward") or subject.source.lines.get("vjp")


def forward_line(subject: Subject) -> int | None:
    """The line of ``def forward``."""
    return None if subject.source is None else subject.source.lines.get("forward")


def jvp_line(subject: Subject) -> int | None:
    """The line of ``def jvp``."""
    return None if subject.source is None else subject.source.lines.get("jvp")


def about(subject: Subject, code: str, line: int | None = None, **params: Any) -> Finding:
    """Return a finding on the whole Function: the sentence of its code, the line of backward if none is given."""
    return Finding(code, SEVERITY[code], f"causes.{code}", params, None, line or backward_line(subject))
