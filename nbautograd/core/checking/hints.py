"""How much a report gives away: that something is wrong, what, where, or also how to mend it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from nbautograd.core.checking.phrases import Phrase
from nbautograd.core.findings import Finding
from nbautograd.errors import CallError

Hints = Literal["none", "what", "where", "fix"]

# the end of a sentence: a full stop (Chinese or not) that no backtick, bracket or quotation is open around
END = re.compile(r"(?:[.?!](?=\s)|[。？！])")


class Opening(Phrase):
    """The first sentence of a message: what is wrong, without what to do about it."""

    def __str__(self) -> str:
        text = super().__str__()
        for found in END.finditer(text):
            before = text[: found.end()]
            pairs = (("(", ")"), ("（", "）"))
            if before.count("`") % 2 == 0 and all(before.count(a) == before.count(b) for a, b in pairs):
                return before
        return text


def validated_hints(hints: str) -> Hints:
    """The same, if it is one of the four.

    Raises:
        CallError: when it is not.
    """
    if hints not in get_args(Hints):
        raise CallError("checking.hints_unknown", given=repr(hints))
    return hints  # type: ignore[return-value]


def limit_findings(findings: Iterable[Finding], hints: Hints) -> tuple[Finding, ...]:
    """The findings with no more in them than these hints allow.

    Args:
        findings: in full.
        hints: ``"fix"`` for all there is; ``"where"`` without a fix or advice, ``"what"`` without the place as well;
            ``"none"`` for no more than which gradient is wrong.

    Returns:
        The findings in the same order; with ``"none"`` only bugs, told once per place.

    Example:
        >>> from nbautograd.core.checking.hints import cut
        >>> from nbautograd.core.findings import Finding
        >>> [found] = cut([Finding("sign", "bug", "causes.sign", {"input": "b"}, (0, 1), 7)], "none")
        >>> found.code, found.line
        ('wrong_unclassified', None)
    """
    if hints == "fix":
        return tuple(findings)
    if hints == "none":
        bare = [_bare(f) for f in findings if f.kind == "bug"]
        return tuple({(f.where, f.message_id): f for f in bare}.values())
    return tuple(_what(f) if hints == "what" else _where(f) for f in findings)


def _bare(finding: Finding) -> Finding:
    if finding.where is None or "input" not in finding.params:
        return Finding("wrong_unclassified", "bug", "causes.hint_none_function")
    params = {"input": finding.params["input"]}
    return Finding("wrong_unclassified", "bug", "causes.hint_none", params, finding.where)


# sentences whose first one is most of the answer, and what is said instead
VEILED = {
    "causes.constant_factor": "causes.hint_constant_factor",
    "causes.constant_factor_named": "causes.hint_constant_factor",
    "causes.constant_factor_varies": "causes.hint_constant_factor",
}


def _opening(finding: Finding) -> Opening:
    return Opening(
        VEILED.get(finding.message_id, finding.message_id),
        **{**finding.params, **_placeless(finding.params), "example": ""},
    )


def _placeless(params: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for a place in a sentence, exchanged for words without one."""
    value: Any = Phrase("causes.value_of_input", input=params["input"]) if "input" in params else ""
    return {**({"value": value} if "value" in params else {}), **({"place": ""} if "place" in params else {})}


def _what(finding: Finding) -> Finding:
    said = {"said": _opening(finding)}
    return dataclasses.replace(finding, message_id="causes.hint_what", params=said, line=None, fix=None)


def _where(finding: Finding) -> Finding:
    params: dict[str, Any] = {"said": _opening(finding)}
    message = "causes.hint_what"
    if isinstance(finding.params.get("value"), Phrase):
        message, params["value"] = "causes.hint_where", finding.params["value"]
    elif finding.line is not None:
        message, params["line"] = "causes.hint_line", finding.line
    return dataclasses.replace(finding, message_id=message, params=params, fix=None)
