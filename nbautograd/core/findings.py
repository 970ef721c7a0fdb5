"""Finding and Fix: a cause, its evidence and its place.

Recording's contract checks and the gradient checker both speak in findings; a report ranks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nbautograd import messages
from nbautograd.core.display import Displayable

Kind = Literal["bug", "lint", "note"]


@dataclass(frozen=True)
class Fix:
    """A change of the user's source that mends a finding.

    Attributes:
        source: the changed line or lines, as they would stand in the user's cell.
        verified: True when the change was run and every entry agreed at fresh random points.
        line: the first line of the cell or file that changes, counted from 1.
        before: the line or lines as they stand now.
    """

    source: str
    verified: bool
    line: int | None = None
    before: str = ""


@dataclass(frozen=True, repr=False)
class Finding(Displayable):
    """One thing that a check found: what, how serious, where, and the fix if one is known.

    Attributes:
        code: the diagnosis, such as ``"transposed_grad"``; stable, made for programs.
        kind: ``"bug"`` (something is wrong), ``"lint"`` (legal but risky) or ``"note"``.
        message_id: which sentence of ``nbautograd.messages`` says it.
        params: what the sentence speaks of; plain data.
        where: (output, input) positions of the Jacobian block concerned, if one is.
        line: the line of the cell or file, counted from 1, if known.
        fix: a change that mends it, if one is known.

    Example:
        >>> from nbautograd.core.findings import Finding
        >>> Finding("sign", "bug", "checking.sign", {"input": "b", "value": "2nd value returned"}).kind
        'bug'
    """

    code: str
    kind: Kind
    message_id: str
    params: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[int, int] | None = None
    line: int | None = None
    fix: Fix | None = None

    @property
    def message(self) -> str:
        """The sentence, in the language that is chosen when it is read."""
        return messages.text(self.message_id, **self.params)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the sentence beside its id."""
        return {**super().to_dict(), "message": self.message}

    def __repr__(self) -> str:
        place = "" if self.line is None else f", line {self.line}"
        return f"<Finding {self.kind} {self.code}{place}>"
