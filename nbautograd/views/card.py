"""The card that stands under a cell whose Functions are recorded, and fills in as they are called."""

from __future__ import annotations

from dataclasses import dataclass, field

from nbautograd import messages
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.recording.call import CallLog
from nbautograd.views import formats, theme
from nbautograd.views.html import html
from nbautograd.views.markup import Markup, escape, join, prose, tag
from nbautograd.views.pieces import table
from nbautograd.views.text import text
from nbautograd.views.text.calls import call_row

_BOX = f"border-left: 3px solid {theme.FUNCTION_LINE.light}; padding: 0.3em 0.8em; margin: 0.3em 0"


@dataclass(frozen=True)
class Notice:
    """One thing to say.

    Attributes:
        sentences: each on its own line, a phrase in the language of the moment; code stands between backticks.
        code: source text to copy, or empty.
    """

    sentences: tuple[str | Phrase, ...]
    code: str = ""


@dataclass(frozen=True)
class Card:
    """What a cell's Functions have done since the cell ran.

    Attributes:
        functions: names of the Functions that are recorded.
        calls: their last calls.
        earlier: how many calls there were before these.
        findings: what reading their source showed.
        hint: what to type next.
        offers: migrated classes, offered to be copied.
    """

    functions: tuple[str, ...]
    calls: CallLog = field(default_factory=CallLog)
    earlier: int = 0
    findings: tuple[Finding, ...] = ()
    hint: Phrase | str = ""
    offers: tuple[Notice, ...] = ()


def mimebundle(value: Card | Notice) -> dict[str, str]:
    """``text/plain`` and ``text/html`` of a card or a notice.

    Example:
        >>> from nbautograd.views.card import Notice, mimebundle
        >>> mimebundle(Notice(("Nothing to do in `cell`.",)))["text/plain"]
        'Nothing to do in `cell`.'
    """
    if isinstance(value, Notice):
        return {"text/plain": _notice_text(value), "text/html": str(_box(_notice_html(value)))}
    return {"text/plain": _card_text(value), "text/html": str(_card_html(value))}


def glance(card: Card) -> dict[str, str]:
    """The card while its cell still runs: the headline and a line for each of its calls, quick to make."""
    return {"text/plain": f"{headline(card)}\n{text(card.calls)}", "text/html": str(_glance_html(card))}


def _glance_html(card: Card) -> Markup:
    return _box(
        tag("div", None, prose(headline(card))), table("", (), [call_row(call) for call in card.calls], right=(5,))
    )


def headline(card: Card) -> str:
    """The card's one line."""
    names = ", ".join(f"`{name}`" for name in card.functions)
    if not card.calls:
        return messages.text("magics.card_waiting", names=names, hint=card.hint)
    if card.earlier:
        last, total = len(card.calls), len(card.calls) + card.earlier
        return messages.text(
            "magics.card_last", names=names, last=last, total=formats.count(total), function=card.functions[-1]
        )
    return messages.text("magics.card_called", names=names)


def _card_text(card: Card) -> str:
    parts = [headline(card)]
    parts += [_finding_text(finding) for finding in card.findings]
    parts += [_notice_text(offer) for offer in card.offers]
    if card.calls:
        parts.append(text(card.calls))
    return "\n".join(parts)


def _card_html(card: Card) -> Markup:
    findings = [tag("li", None, prose(_finding_text(finding))) for finding in card.findings]
    parts: list[object] = [tag("div", None, prose(headline(card)))]
    if findings:
        parts.append(tag("ul", {"style": "margin: 0.2em 0"}, *findings))
    parts += [_notice_html(offer) for offer in card.offers]
    if card.calls:
        parts.append(Markup(html(card.calls)))
    return _box(*parts)


def _finding_text(finding: Finding) -> str:
    if finding.line is None or finding.names_its_line:
        return finding.message
    return messages.text("magics.at_line", message=finding.message, line=finding.line)


def _notice_text(notice: Notice) -> str:
    return "\n".join((*map(str, notice.sentences), *([f"\n{notice.code}"] if notice.code else [])))


def _notice_html(notice: Notice) -> Markup:
    sentences = [tag("div", None, prose(str(sentence))) for sentence in notice.sentences]
    code = [tag("pre", {"style": "margin: 0.3em 0"}, escape(notice.code))] if notice.code else []
    return join([*sentences, *code])


def _box(*parts: object) -> Markup:
    return tag("div", {"class": "nbautograd nbautograd-card", "style": _BOX}, *parts)
