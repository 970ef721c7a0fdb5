"""Which sentences the tests put into words: whatever is made of one is put into words at once."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any

SAID: set[str] = set()


class Table(dict[str, str]):
    """The sentences of one language; it keeps the ids that it was asked for."""

    def get(self, key: str, default: Any = None) -> Any:
        """Look a sentence up to fill it in."""
        SAID.add(key)
        return super().get(key, default)


def listen() -> None:
    """Put what the package makes of each sentence into words at once: what lacks a parameter fails where it is made.

    The first of an id does for all; what a test makes by hand may lack some.
    """
    import nbautograd
    from nbautograd import messages
    from nbautograd.core.display import Phrase
    from nbautograd.core.findings import Finding
    from nbautograd.course.exercise import Failure
    from nbautograd.course.sentences import steps

    messages._TABLES = {lang: Table(table) for lang, table in messages._TABLES.items()}
    known: set[tuple[str, str]] = set()
    makers = (dataclasses.__file__, os.path.dirname(nbautograd.__file__))

    def spoken(cls: type, words: Callable[[Any], Any], name: Callable[[Any], str]) -> None:
        plain = cls.__init__

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            plain(self, *args, **kwargs)
            key = cls.__name__, name(self)
            if key not in known and sys._getframe(1).f_code.co_filename.startswith(makers):
                known.add(key)
                words(self)

        def from_copy(self: Any, state: dict[str, Any]) -> None:  # what a copy of the process made
            self.__dict__.update(state)
            words(self)

        cls.__init__ = init  # type: ignore[misc]
        cls.__setstate__ = from_copy  # type: ignore[attr-defined]

    spoken(Phrase, str, lambda one: one.message_id)
    spoken(Finding, lambda one: one.message, lambda one: one.message_id)
    spoken(Failure, lambda one: steps(one, "fix"), lambda one: f"{one.sentence}{one.more}")


def unsaid() -> list[str]:
    """Name the sentences that no test said; those of the pages are said by JavaScript."""
    from nbautograd.messages import catalogue

    return sorted(key for key in catalogue("en") if key not in SAID and not key.startswith(("widgets.", "lab.")))
