"""The cards of a session: shown under their cell, brought up to date after any cell that made new calls."""

from __future__ import annotations

import uuid
from dataclasses import replace

from IPython.display import display, update_display

from nbautograd.core.recording.log import following
from nbautograd.views.card import Card, mimebundle

CALLS_SHOWN = 12


class LiveCard:
    """A card in the page.

    Args:
        card: what it says so far.
        since: the moment from which on calls appear in it, as ``log.mark`` gave it.
    """

    def __init__(self, card: Card, since: int) -> None:
        self.card = card
        self.since = since
        self._id = uuid.uuid4().hex

    def show(self) -> None:
        """Put the card under the cell that runs now."""
        self._read()
        display(mimebundle(self.card), raw=True, display_id=self._id)

    def refresh(self) -> None:
        """Bring the card up to date; nothing is sent when there were no new calls."""
        if self._read():
            update_display(mimebundle(self.card), raw=True, display_id=self._id)

    def _read(self) -> bool:
        before = self.card.calls[-1].index if self.card.calls else None
        calls, earlier = following(self.card.functions, self.since, CALLS_SHOWN)
        self.card = replace(self.card, calls=calls, earlier=earlier)
        return bool(calls) and calls[-1].index != before


class Cards:
    """All cards of a session.

    Args:
        updates: whether the front end can change what it has shown; a terminal would print it again.
    """

    def __init__(self, updates: bool) -> None:
        self.updates = updates
        self._cards: list[LiveCard] = []

    def add(self, card: Card, since: int) -> None:
        """Show a card; from now on it follows the calls of its Functions."""
        self.retire(card.functions)
        live = LiveCard(card, since)
        self._cards.append(live)
        live.show()

    def retire(self, functions: tuple[str, ...]) -> None:
        """Let older cards stop following Functions that were defined anew."""
        for live in self._cards:
            left = tuple(name for name in live.card.functions if name not in functions)
            if left != live.card.functions:
                live.card = replace(live.card, functions=left)
        self._cards = [live for live in self._cards if live.card.functions]

    def refresh(self) -> None:
        """Bring every card up to date, once per cell."""
        if self.updates:
            for live in self._cards:
                live.refresh()
