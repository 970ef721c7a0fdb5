"""Which sentences the tests put into words: whatever the package makes of one is put into words at once."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Callable
from string import Formatter
from typing import Any

SAID: set[str] = set()

MOST = 3  # that a run may leave unsaid: a few are said only where a draw or the clock has it so


class Table(dict[str, str]):
    """The sentences of one language; it keeps the ids that it was asked for."""

    def get(self, key: str, default: Any = None) -> Any:
        """Look a sentence up to fill it in."""
        SAID.add(key)
        return super().get(key, default)


def listen() -> None:
    """Put the first of each id into words as it is made: what lacks a parameter fails there, not where it is read."""
    import nbautograd
    from nbautograd import messages
    from nbautograd.core.display import Phrase
    from nbautograd.core.findings import Finding
    from nbautograd.course.exercise import Failure
    from nbautograd.course.sentences import steps

    messages._TABLES = {lang: Table(table) for lang, table in messages._TABLES.items()}
    makers = (dataclasses.__file__, os.path.dirname(nbautograd.__file__))  # what a test makes by hand may lack some

    def spoken(cls: Any, words: Callable[[Any], Any]) -> None:
        plain, known = cls.__init__, set()

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            plain(self, *args, **kwargs)
            key = str(getattr(self, "message_id", self))
            if key not in known and sys._getframe(1).f_code.co_filename.startswith(makers):
                known.add(key)
                words(self)

        def from_copy(self: Any, state: dict[str, Any]) -> None:  # what a copy of the process made
            self.__dict__.update(state)
            words(self)

        cls.__init__, cls.__setstate__ = init, from_copy

    spoken(Phrase, str)
    spoken(Finding, lambda one: one.message)
    spoken(Failure, lambda one: steps(one, "fix"))


def pattern(key: str, /, **known: Any) -> str:
    """Return a regular expression for a sentence, wherever its lines break; parameters not given may be anything.

    ``pytest.raises(CallError, match=pattern("magics.not_callable", text="a"))``
    """
    from nbautograd.messages import catalogue, fields, language

    assert known.keys() <= fields(key), (key, known)
    hole = "\ue000"
    pieces = Formatter().parse(catalogue(language())[key])
    filled = "".join(
        words + (format(known[name], spec) if name in known else "" if name is None else hole)
        for words, name, spec, _ in pieces
    )
    between, parts = (r"\s*", [*"".join(filled.split())]) if language() == "zh" else (r"\s+", re.split(r"\s+", filled))
    return between.join(map(re.escape, parts)).replace(hole, r"[\s\S]*?")


def either(key: str, /, **known: Any) -> str:
    """Return a regular expression for a sentence in English or in Chinese."""
    from nbautograd.messages import LANGUAGES, speaking

    found = []
    for lang in LANGUAGES:
        with speaking(lang):
            found.append(pattern(key, **known))
    return f"({'|'.join(found)})"


def says(output: object, key: str, /, **known: Any) -> bool:
    """Whether a text, or what has one, holds the sentence with this id and these parameters."""
    return bool(re.search(pattern(key, **known), str(output)))


def heard(output: str, *keys: str) -> None:
    """Take sentences for said that another process put into words, and printed: as their table has them."""
    for key in keys:
        assert says(output, key), (key, output)
    SAID.update(keys)


def unsaid() -> list[str]:
    """Name the sentences that no test said; pages say theirs in JavaScript, exercises to the nightly wrong answers."""
    from nbautograd.messages import catalogue
    from nbautograd.widgets.base import SHARED

    page = ("widgets.", "lab.", *SHARED)
    exercises = re.compile(r"course\.(n\d\d|layers)\.")
    said = (key for key in catalogue("en") if key not in SAID and not key.startswith(page))
    return sorted(key for key in said if not exercises.match(key))
