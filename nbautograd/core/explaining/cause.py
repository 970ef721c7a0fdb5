"""A cause: what is behind one of torch's gradient errors, as plain data, and the lines that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbautograd.core.display import Displayable, Phrase
from nbautograd.core.findings import Finding


@dataclass(frozen=True)
class SourceLine(Displayable):
    """A line of the user's code.

    Attributes:
        line: in the cell or file, from 1.
        text: what is written there.
        function: name of the function around it; empty outside functions.
        file: as Python knows it; for a cell IPython's name of it.
        cell: number of the cell, None for a file.
    """

    line: int
    text: str = ""
    function: str = ""
    file: str = ""
    cell: int | None = None


@dataclass(frozen=True)
class TrialEdit:
    """A change of the user's source that may mend an error; only a trial says whether it does.

    Attributes:
        file: which cell or file.
        line: the first line that changes.
        before, after: the lines as they are and as they would be, joined by newlines.
        exact: True where the gradients have to stay those of the program as it is, with a clone of what it saved.
    """

    file: str
    line: int
    before: str
    after: str
    exact: bool = True


@dataclass(frozen=True)
class ErrorCause:
    """The cause of an error.

    Attributes:
        code: stable, made for programs, such as ``"in_place"``.
        findings: what was shown, the most important first.
        tensor: what the user calls the tensor, empty where it has no name.
        made: the line that made the tensor, where it was shown.
        saved: the line that saved it for backward, where that was shown.
        did: the line that did what torch complains of, where it was shown.
        params: more plain data, such as versions and names of operations.
        edits: changes worth a trial, the best first.
    """

    code: str
    findings: tuple[Finding, ...]
    tensor: str = ""
    made: SourceLine | None = None
    did: SourceLine | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    edits: tuple[TrialEdit, ...] = ()
    saved: SourceLine | None = None


def finding(sentence: str, place: SourceLine | None = None, **params: Any) -> Finding:
    """Return a finding of the explanation: ``finding("in_place.changed", place, name="y")``."""
    line = None if place is None else place.line
    return Finding(f"explain_{sentence.replace('.', '_')}", "note", f"explain.{sentence}", params, line=line)


def tensor_named(name: str) -> str | Phrase:
    """Return how a sentence names a tensor that may have no name."""
    return f"`{name}`" if name else Phrase("explain.a_tensor")


def at(place: SourceLine | None) -> str | Phrase:
    """Return a line in brackets, empty where it is not known."""
    return "" if place is None else Phrase("explain.at", line=place.line, text=place.text)
