"""Sentences of a failure: by message id, or written by an exercise's author; read in the language of the moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from nbautograd import messages
from nbautograd.core.findings import Finding, Phrase
from nbautograd.course.exercise import Failure, Sentence

Level = Literal["what", "where", "fix"]  # as the hints of gradcheck
LEVELS: tuple[Level, ...] = get_args(Level)


def in_language(sentence: Sentence, params: Mapping[str, Any]) -> str:
    """Return a sentence in the language that is chosen now."""
    if isinstance(sentence, Phrase):
        return str(sentence)
    if isinstance(sentence, str):  # a list is a value, and not the sizes of a tensor
        shown = {name: str(value) if isinstance(value, list) else value for name, value in params.items()}
        return messages.text(sentence, **shown) if sentence else ""
    written = sentence.get(messages.language()) or sentence["en"]
    try:
        return written.format(**params) if params else written
    except (LookupError, ValueError):  # braces that are no places to fill
        return written


def steps(failure: Failure, hints: Level = "what") -> tuple[str, ...]:
    """Return the sentences that these hints show, the first one first."""
    chosen = [failure.sentence, *failure.more][: LEVELS.index(hints) + 1]
    shown = [in_language(sentence, failure.params) for sentence in chosen]
    return tuple(s for k, s in enumerate(shown) if s and not _is_repeated(chosen[k], chosen[k + 1 :]))


def told_line(failure: Failure, hints: Level) -> int | None:
    """Return the line that the sentences of these hints name; None where they name none."""
    for sentence in [failure.sentence, *failure.more][: LEVELS.index(hints) + 1]:
        if isinstance(sentence, str) and sentence and "line" in messages.fields(sentence):
            return failure.params.get("line")
        if isinstance(sentence, Phrase) and "line" in messages.fields(sentence.message_id):
            return sentence.params.get("line")
    return None


def _is_repeated(sentence: Sentence, later: Sequence[Sentence]) -> bool:
    """Return True if this only says where to look, and a later sentence names the place as well."""
    if not isinstance(sentence, Phrase) or sentence.message_id != "findings.look_at_value":
        return False
    value = sentence.params["value"]
    return any(isinstance(s, Phrase) and s.shows("value") and s.params["value"] == value for s in later)


def from_finding(finding: Finding) -> Failure:
    """Return a finding of the checker as a failure: what is wrong first, then where, then what to do.

    Args:
        finding: in full, with its place; its fix is left out.
    """
    what, place, advice = (finding.phrase(part) for part in ("what", "place", "advice"))
    assert what is not None
    code = finding.message_id.rpartition(".")[2] if finding.code == "exception" else finding.code
    return Failure(code, what, dict(finding.params), tuple(s for s in (place, advice) if s is not None))
