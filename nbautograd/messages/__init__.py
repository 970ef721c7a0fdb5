"""Every sentence that a user reads, by id, in English and Chinese.

``text("checking.right", entries=24)`` gives the sentence in the chosen language. The catalogues are gettext's: the
sentences stand in ``messages/en/*.po`` and ``messages/zh/*.po``, one file per subject, the id as ``msgid`` and a
template for ``str.format`` as ``msgstr``; ``.ci/compile_messages.py`` compiles them into the ``.mo`` file that is read.
"""

from __future__ import annotations

import gettext
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "zh")
DOMAIN = "nbautograd"

_chosen: str | None = None


def language() -> str:
    """The language in use, ``"en"`` or ``"zh"``: what was set, else what the environment says, else English."""
    if _chosen is not None:
        return _chosen
    for variable in ("NBAUTOGRAD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def set_language(name: str | None) -> None:
    """Choose the language of every report, ``"en"`` or ``"zh"``; None goes back to the environment's.

    Raises:
        ValueError: for a language that has no catalogue.

    Example:
        >>> import nbautograd
        >>> nbautograd.set_language("en")
    """
    global _chosen
    if name is not None and name not in LANGUAGES:
        raise ValueError(f"nbautograd speaks {' and '.join(LANGUAGES)}, not {name!r}")
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


@cache
def translations(lang: str) -> gettext.GNUTranslations:
    """gettext's catalogue of one language.

    Raises:
        FileNotFoundError: when it was not compiled.
    """
    found = gettext.translation(DOMAIN, Path(__file__).parent, languages=[lang])
    assert isinstance(found, gettext.GNUTranslations)
    return found


@cache
def catalogue(lang: str) -> dict[str, str]:
    """All sentences of one language, by id."""
    said: dict[str, str] = translations(lang)._catalog  # type: ignore[attr-defined] # gettext has no public way to list
    return {message_id: sentence for message_id, sentence in said.items() if message_id}


def text(message_id: str, /, **params: Any) -> str:
    """The sentence with this id in the chosen language, its parameters filled in.

    A sentence that is missing in Chinese is shown in English; an id that no catalogue knows is a ``KeyError``.
    """
    template = catalogue(language()).get(message_id)
    if template is None:
        template = catalogue("en")[message_id]
    return template.format(**params)
