"""Finding and Fix: a cause, its evidence and its place, and how much of them the hint level of a report shows.

Recording's contract checks and the gradient checker both speak in findings; a report ranks them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from nbautograd import messages
from nbautograd.core.display import Displayable
from nbautograd.core.display import Phrase as Phrase  # part of what a finding is made of
from nbautograd.core.stumbles import Stumble
from nbautograd.errors import CallError

Kind = Literal["bug", "lint", "note"]
Hints = Literal["none", "what", "where", "fix"]
Part = Literal["what", "place", "advice", "example"]

# what a message of a finding consists of, by how much it may give away
PARTS: Mapping[Hints, tuple[Part, ...]] = {
    "none": ("what",),
    "what": ("what",),
    "where": ("what", "place"),
    "fix": ("what", "advice", "example"),
}


@dataclass(frozen=True)
class Fix(Displayable):
    """A change of the user's source that mends a finding.

    Attributes:
        source: the changed line or lines, as they would stand in the user's cell.
        verified: True when the change was run and every entry of all gradients agreed at fresh random points.
        line: the first line of the cell or file that changes, counted from 1.
        before: the line or lines as they stand now.
        file: the cell or file of an explained error's change; empty for that of the Function.
    """

    source: str
    verified: bool
    line: int | None = None
    before: str = ""
    file: str = field(default="", repr=False)


@dataclass(frozen=True, repr=False)
class Finding(Displayable):
    """One thing that a check found: what, how serious, where, and the fix if one is known.

    The sentences of ``checking.jvp_batched`` in ``nbautograd.messages`` are ``checking.jvp_batched.what``, and where
    they exist ``checking.jvp_batched.advice`` and ``checking.jvp_batched.example``.

    Attributes:
        code: the diagnosis, such as ``"transposed_grad"``; stable, made for programs.
        kind: ``"bug"`` (something is wrong), ``"lint"`` (legal but risky) or ``"note"``.
        message_id: what the ids of its sentences begin with.
        params: what the sentences speak of; plain data.
        where: (output, input) positions of the Jacobian block concerned, if one is.
        line: the line of the cell or file, counted from 1, if known.
        fix: a change that mends it, if one is known.
        hints: how much its message gives away.

    Example:
        >>> from nbautograd import set_language
        >>> from nbautograd.core.findings import Finding
        >>> set_language("en")
        >>> lint = Finding("tensor_on_ctx", "lint", "causes.tensor_on_ctx", {"name": "x"})
        >>> lint.advice
        'Use `ctx.save_for_backward`, which does notice.'
        >>> lint.message == f"{lint.what} {lint.advice}"
        True
    """

    code: str
    kind: Kind
    message_id: str
    params: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[int, int] | None = None
    line: int | None = None
    fix: Fix | None = None
    hints: Hints = field(default="fix", repr=False)

    def phrase(self, part: Part) -> Phrase | None:
        """Return one part of the message; None where there is none, or where the hints do not allow it.

        The place is a sentence of its own only for hints that leave the advice out, which names it.
        """
        if part not in (*PARTS[self.hints], *(("place",) if self.hints == "fix" else ())):
            return None
        if part == "place":
            advice = f"{self.message_id}.advice"
            value = self.params.get("value")
            named = advice in messages.catalogue("en") and "value" in messages.fields(advice)
            if isinstance(value, Phrase) and (named or self.hints == "where"):
                return Phrase("findings.look_at_value", value=value)
            return None if self.line is None else Phrase("findings.look_at_line", line=self.line)
        shared = self.params.get(part)  # words that several findings share
        if isinstance(shared, Phrase):
            return self._shown(shared.message_id, shared.params)
        message_id = f"{self.message_id}.{part}"
        variant = self.message_id.startswith(f"causes.{self.code}_")  # of a code, with words of its own
        if message_id not in messages.catalogue("en") and variant:
            message_id = f"causes.{self.code}.{part}"
        if part == "what" and message_id not in messages.catalogue("en"):
            message_id = self.message_id  # one sentence is all there is
        if part == "what" or message_id in messages.catalogue("en"):
            return self._shown(message_id, self.params)
        return None

    @staticmethod
    def _shown(message_id: str, params: Mapping[str, Any]) -> Phrase:
        return Phrase(message_id, **{name: params[name] for name in messages.fields(message_id) if name in params})

    @property
    def what(self) -> str:
        """Say what is wrong, in the language that is chosen when it is read."""
        return self.paragraph("what")

    @property
    def advice(self) -> str:
        """Say what to do about it; empty where nothing is advised, or where the hints leave it out."""
        return self.paragraph("advice")

    @property
    def example(self) -> str:
        """Numbers that show it; empty where there are none, or where the hints leave them out."""
        return self.paragraph("example")

    @property
    def message(self) -> str:
        """All that the hints allow, as one paragraph, in the language that is chosen when it is read."""
        return self.paragraph(*PARTS[self.hints])

    def paragraph(self, *parts: Part) -> str:
        """Return these parts of the message, joined."""
        phrases = (self.phrase(part) for part in parts)
        return messages.paragraph(str(phrase) for phrase in phrases if phrase is not None)

    @property
    def names_its_line(self) -> bool:
        """True where the message itself says the line, so that it need not stand beside it."""
        phrases = (self.phrase(part) for part in PARTS[self.hints])
        return any(phrase.shows("line") for phrase in phrases if phrase is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with the sentences beside their id."""
        parts = {"message": self.message, "what": self.what, "advice": self.advice, "example": self.example}
        return {**super().to_dict(), **parts}

    def __repr__(self) -> str:
        place = "" if self.line is None else f", line {self.line}"
        return f"<Finding {self.kind} {self.code}{place}>"


def of_stumble(stumble: Stumble) -> Finding:
    """Return a note on a part of nbautograd that failed by itself."""
    file, _, place = stumble.where.partition(":")
    at, _, function = place.partition(" ")
    params = {"part": stumble.part, "error": stumble.what, "file": file, "at": int(at), "function": function}
    return Finding("stumbled", "note", "checking.stumbled", params)


def validated_hints(hints: str) -> Hints:
    """Return the hints, if they are one of the four.

    Raises:
        CallError: when it is not.
    """
    if hints not in get_args(Hints):
        raise CallError("checking.hints_unknown", given=repr(hints))
    return hints  # type: ignore[return-value]


def limit_findings(findings: Iterable[Finding], hints: Hints) -> tuple[Finding, ...]:
    """Limit findings to what these hints allow.

    Args:
        findings: in full.
        hints: ``"fix"`` for all there is; ``"where"`` without a fix or advice, ``"what"`` without the place as well;
            ``"none"`` for no more than which gradient is wrong.

    Returns:
        The findings in the same order; with ``"none"`` only bugs, told once per place.
    """
    if hints == "fix":
        return tuple(findings)
    if hints == "none":
        bare = [_bare(f) for f in findings if f.kind == "bug"]
        return tuple({(f.where, f.message_id): f for f in bare}.values())
    return tuple(_only(f, hints) for f in findings)


def _bare(finding: Finding) -> Finding:
    if finding.where is None or "input" not in finding.params:
        return Finding("wrong_unclassified", "bug", "causes.hint_none_function", hints="none")
    params = {"input": finding.params["input"]}
    return Finding("wrong_unclassified", "bug", "causes.hint_none", params, finding.where, hints="none")


def _only(finding: Finding, hints: Hints) -> Finding:
    shorter = dataclasses.replace(finding, hints=hints, fix=None)
    phrases = {part: phrase for part in PARTS[hints] if (phrase := shorter.phrase(part)) is not None}
    params = {name: value for phrase in phrases.values() for name, value in phrase.params.items()}
    params |= {part: phrase for part, phrase in phrases.items() if part in finding.params}
    return dataclasses.replace(shorter, params=params, line=finding.line if hints == "where" else None)
