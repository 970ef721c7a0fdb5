"""Every sentence that a user reads, by id, in English and Chinese.

``text("views.headline.right", function="Exp")`` gives the sentence in the chosen language. The tables are ``en.py`` and
``zh.py`` next to this file: an id, such as ``views.headline.right``, and a template for ``str.format``, one line each.
What headings mean is in ``glossary.toml``, which the documentation and the course use too.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from nbautograd.messages import en, zh

LANGUAGES = ("en", "zh")
GLOSSARY = Path(__file__).with_name("glossary.toml")
_TABLES: Mapping[str, Mapping[str, str]] = {"en": en.SENTENCES, "zh": zh.SENTENCES}

# C0 and C1 without tab and newline: in a terminal they move the cursor, ring, set its title or begin another command
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BETWEEN = re.compile(r"\s*[、,`（()）]+\s*")  # the terms of a glossary row
_CODE = re.compile(r"`[^`\n]+`")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_APART = re.compile("(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])")
_chosen: str | None = None


def language() -> str:
    """Return the language in use, ``"en"`` or ``"zh"``: the one that was set, else the environment's, else English."""
    if _chosen is not None:
        return _chosen
    for variable in ("NBAUTOGRAD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def set_language(name: str | None) -> None:
    """Choose the language of every report, ``"en"`` or ``"zh"``; None goes back to the environment's.

    Args:
        name: ``"en"``, ``"zh"`` or None. Reports that exist speak it too when they are shown again.

    Raises:
        ValueError: for a language that has no sentences.

    Example:
        >>> import nbautograd
        >>> nbautograd.set_language("en")
    """
    global _chosen
    if name is not None and name not in LANGUAGES:
        raise ValueError(f"nbautograd speaks {' and '.join(LANGUAGES)}, not {name!r}")
    _chosen = name


def prefer_language(name: str) -> None:
    """Speak a language where neither ``set_language`` nor NBAUTOGRAD_LANG says which."""
    global _chosen
    if _chosen is None and name in LANGUAGES and not os.environ.get("NBAUTOGRAD_LANG"):
        _chosen = name


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Speak this language for a while, then the one before."""
    global _chosen
    before = _chosen
    set_language(name)
    try:
        yield
    finally:
        _chosen = before


def catalogue(lang: str) -> Mapping[str, str]:
    """Return all sentences of one language, by id."""
    return _TABLES[lang]


@cache
def _meanings() -> Mapping[str, tuple[str, str]]:
    """Return what terms and headings mean, in both languages, by the term in either or the heading's id."""
    glossary = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))
    known: dict[str, tuple[str, str]] = dict(glossary["meanings"])
    for *words, _, english, chinese in glossary["terms"]:
        known |= dict.fromkeys(filter(None, _BETWEEN.split("、".join(words))), (english, chinese))
    return known


def meaning(name: str) -> str:
    """Return what a term, or the heading with this id, means, in the chosen language or in Chinese for a Chinese term.

    It is empty for what the glossary lacks.

    Example:
        >>> from nbautograd.messages import meaning
        >>> meaning("verdict") == meaning("views.column.verdict") != meaning("结论")
        True
    """
    known = _meanings()
    return known.get(name, known.get(catalogue("en").get(name, ""), ("", "")))[language() == "zh" or not name.isascii()]


@cache
def fields(message_id: str) -> frozenset[str]:
    """Return the names of the parameters that the sentence with this id shows."""
    return frozenset(name for _, name, _, _ in Formatter().parse(catalogue("en")[message_id]) if name)


def paragraph(sentences: Iterable[str]) -> str:
    """Join sentences as the chosen language does: with a space in English, without one in Chinese."""
    return ("" if language() == "zh" else " ").join(sentence for sentence in sentences if sentence)


def with_guess(sentence: str, word: str, known: Iterable[str]) -> str:
    """Append the question whether the nearest of the known words is meant, where one is near.

    Example:
        >>> from nbautograd.messages import with_guess
        >>> with_guess("There is no `prodct`.", "prodct", ["product", "quotient"])
        'There is no `prodct`. Did you mean `product`?'
    """
    near = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return paragraph((sentence, text("magics.did_you_mean", near=near[0]) if near else ""))


def printable(words: str) -> str:
    r"""Return a text as it may go to a terminal: control characters of the user's names are written out.

    Example:
        >>> from nbautograd.messages import printable
        >>> printable("a\x1b]0;b\x07")
        'a\\x1b]0;b\\x07'
    """
    return _CONTROL.sub(lambda control: f"\\x{ord(control[0]):02x}", words)


def text(message_id: str, /, **params: Any) -> str:
    """Return the sentence with this id in the chosen language, its parameters filled in; a shape reads as ``2×3``.

    A sentence that is missing in Chinese is shown in English; an id that no language has is a ``KeyError``.
    """
    template = catalogue(language()).get(message_id)
    if template is None:
        template = catalogue("en")[message_id]
    words = template.format(**{name: _shape(value) if _is_shape(value) else value for name, value in params.items()})
    words = printable(words)
    return _spaced(words) if language() == "zh" else words


def _spaced(words: str) -> str:
    """Put a space between Chinese and code, and none between Chinese and Chinese: no template knows what fills it."""

    def apart(code: re.Match[str]) -> str:
        before, after = words[: code.start()][-1:], words[code.end() :][:1]
        return f"{' ' if _CHINESE.match(before) else ''}{code[0]}{' ' if _CHINESE.match(after) else ''}"

    return _CODE.sub(apart, _APART.sub("", words))


def _is_shape(value: Any) -> bool:
    """Return whether a parameter is the sizes of a tensor: nothing else is a sequence of whole numbers."""
    return isinstance(value, (tuple, list)) and all(type(size) is int for size in value)


def _shape(sizes: Iterable[int]) -> str:
    return "×".join(map(str, sizes)) or text("views.tensor.scalar")
