"""The card that stands under a cell whose Functions are recorded, and fills in as they are called."""

from __future__ import annotations

from dataclasses import dataclass, field

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.recording.call import CallLog
from nbautograd.views import bundle
from nbautograd.views.builders import build
from nbautograd.views.builders.calls import calls_document, calls_table, how_many
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.document import Block, Card, Document, Item, Verbatim, sentences


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
class RecordingCard:
    """Calls of a cell's Functions since the cell ran.

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


def glance(card: RecordingCard) -> dict[str, str]:
    """Return the card while its cell still runs: its line and a row for each of its calls, quick to make."""
    return bundle.written(_boxed((*sentences([recording_line(card)]), *calls_table(card.calls))))


@build.register
def card_document(card: RecordingCard) -> Document:
    """Return the card's one line, what reading the source showed, what is offered, and the calls."""
    findings = [Item(finding_document(finding)) for finding in card.findings]
    offers = [block for offer in card.offers for block in _notice_blocks(offer)]
    counted = () if card.earlier or not card.calls else (how_many(card.calls),)
    return _boxed(calls_document(card.calls, *sentences([recording_line(card)]), *findings, *offers, *counted))


@build.register
def notice_document(notice: Notice) -> Document:
    """Return the sentences and the code."""
    return _boxed(_notice_blocks(notice))


def _notice_blocks(notice: Notice) -> Document:
    return (*sentences(notice.sentences), *((Verbatim(notice.code),) if notice.code else ()))


def _boxed(body: tuple[Block, ...]) -> Document:
    return (Card("unchecked", body),)


def recording_line(card: RecordingCard) -> str:
    """Return which Functions are recorded, and how many of their calls are kept."""
    names = ", ".join(f"`{name}`" for name in card.functions)
    if not card.calls:
        return messages.text("magics.card_waiting", names=names, hint=card.hint)
    if card.earlier:
        last, total = len(card.calls), len(card.calls) + card.earlier
        return messages.text(
            "magics.card_last", names=names, last=last, total=formats.count(total), function=card.functions[-1]
        )
    return messages.text("magics.card_called", names=names)
