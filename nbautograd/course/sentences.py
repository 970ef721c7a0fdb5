"""Sentences of a failure: by message id, or written by an exercise's author; read in the language of the moment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.hints import Opening, limit_findings
from nbautograd.core.checking.phrases import Phrase
from nbautograd.core.findings import Finding
from nbautograd.course.exercise import Failure, Sentence

# findings whose own first sentence gives the answer away have a milder one, under this and their message's name
MILD = "course.mild."


class Advice(Phrase):
    """What stands behind the first sentence of a message: what to do about it."""

    def __str__(self) -> str:
        whole = super().__str__()
        opening = str(Opening(self.message_id, **self.params))
        return re.sub(r"\s+", " ", whole.removeprefix(opening)).strip()


def said(sentence: Sentence, params: Mapping[str, Any]) -> str:
    """A sentence in the language that is chosen now."""
    if isinstance(sentence, Phrase):
        return str(sentence)
    if isinstance(sentence, str):
        return messages.text(sentence, **params) if sentence else ""
    written = sentence.get(messages.language()) or sentence["en"]
    try:
        return written.format(**params) if params else written
    except (LookupError, ValueError):  # braces that are no places to fill
        return written


def steps(failure: Failure, hints: int = 1) -> tuple[str, ...]:
    """The sentences that this hint level shows, the first one first."""
    chosen = [failure.sentence, *failure.more][: max(0, hints - failure.level + 1)]
    shown = [said(sentence, failure.params) for sentence in chosen]
    return tuple(s for k, s in enumerate(shown) if s and not _named_again(chosen[k], shown[k + 1 :]))


def _named_again(sentence: Sentence, later: list[str]) -> bool:
    """Whether this only says where to look, and a later sentence names the place as well."""
    place = sentence.params.get("value") if isinstance(sentence, Phrase) else None
    return (
        place is not None
        and isinstance(sentence, Phrase)
        and sentence.message_id == "course.look_at_value"
        and any(str(place) in said for said in later)
    )


def from_finding(finding: Finding) -> Failure:
    """A finding of the checker as a failure: what is wrong first, then where, then what to do.

    Args:
        finding: in full, with its place; its fix is left out.

    Example:
        >>> from nbautograd.core.findings import Finding
        >>> from nbautograd.course.sentences import from_finding, steps
        >>> failure = from_finding(Finding("zero_gradient", "bug", "causes.zero_gradient",
        ...     {"input": "b", "output": "y", "value": "`gb`", "example": "", "right": ""}, None, 7))
        >>> failure.code, len(steps(failure, 1)), len(steps(failure, 3))
        ('zero_gradient', 1, 3)
    """
    params = dict(finding.params)
    name = finding.message_id.rpartition(".")[2]
    [short] = limit_findings([finding], "what")
    mild = Phrase(MILD + name, **params)
    opening = mild if mild.message_id in messages.catalogue("en") else Phrase(short.message_id, **short.params)
    code = name if finding.code == "exception" else finding.code
    advice = Advice(finding.message_id, **{**params, "example": ""})
    return Failure(code, opening, params, (*_place(finding), advice))


def _place(finding: Finding) -> tuple[Phrase, ...]:
    value = finding.params.get("value")
    meant = "{value}" in messages.catalogue("en")[finding.message_id]
    if meant and isinstance(value, Phrase) and not value.message_id.startswith("causes.nth"):
        return (Phrase("course.look_at_value", value=value),)
    return () if finding.line is None else (Phrase("course.look_at_line", line=finding.line),)
