"""Phrases of a finding's sentence, put into words when the sentence is read, in the language of that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nbautograd.core import stumbles
from nbautograd.core.checking import backward_lines
from nbautograd.core.checking.problem import Problem
from nbautograd.core.contract import rules
from nbautograd.core.contract.rules import Seen
from nbautograd.core.contract.rules import short as short
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.user_source import Returned

SAID = 120  # letters of an error that are quoted


def returned(problem: Problem, position: int) -> Returned | None:
    """Return the expression of this input's gradient that ran, where the input is an argument of forward."""
    argument, known = problem.arguments.get(position), backward_lines.returned(problem)
    return None if argument is None or argument >= len(known) else known[argument]


def value(problem: Problem, position: int, written: Returned | None = None) -> Phrase:
    """Name the gradient of an input, by the source where the input is an argument of forward.

    Args:
        problem: what is checked.
        position: of the input.
        written: the statement that computed it, or for an input that is no argument the one that all come from.
    """
    argument, name = problem.arguments.get(position), problem.input_names[position]
    if argument is not None:
        return rules.value_returned(problem.source, argument, written or returned(problem, position))
    if written is None:
        return Phrase("causes.value_of_input", input=name)
    expression = rules.short(written.expression or "")
    return Phrase("causes.value_from_line", input=name, line=written.line, expression=expression)


def shapes(known: Mapping[str, Sequence[int]]) -> str:
    """Return names with their shapes: "`x` [4, 3], `w` [3, 5]"."""
    return ", ".join(f"`{name}` {list(shape)}" for name, shape in known.items())


def method_line(problem: Problem, method: str = "backward") -> int | None:
    """Return the line of a method's ``def``."""
    return None if problem.source is None else problem.source.line(method)


def seen(problem: Problem, line: int | None = None) -> Seen:
    """Return the place of a break of the contract: the line of backward if none is given."""
    return Seen(line or method_line(problem))


def said(error: BaseException) -> str:
    """Return what an error says, on one line: its type as well where that is a number, or nothing."""
    words = stumbles.said(error).strip().removesuffix(".")
    return short(words if words and isinstance(error, Exception) else stumbles.named(error), SAID)


def about(problem: Problem, code: str, line: int | None = None, sentence: str = "", **params: Any) -> Finding:
    """Return a finding on the whole Function: the sentence of its code, the line of backward if none is given."""
    return rules.broken(code, seen(problem, line), sentence, **params)
