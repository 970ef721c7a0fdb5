"""Every sentence that a user reads, by id, in English and Chinese.

``text("checking.right", entries=24)`` gives the sentence in the chosen language. The catalogues are the modules of
``messages/en`` and ``messages/zh``, one per subject, each with one table ``TEXTS`` from id to a template for
``str.format``.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

LANGUAGES = ("en", "zh")
SUBJECTS = (
    "report",
    "recording",
    "tracing",
    "checking",
    "causes",
    "inspection",
    "graphs",
    "views",
    "widgets",
    "magics",
    "command",
    "course",
)

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
def catalogue(lang: str) -> dict[str, str]:
    """All sentences of one language, by id."""
    texts: dict[str, str] = {}
    for subject in SUBJECTS:
        texts.update(importlib.import_module(f"{__name__}.{lang}.{subject}").TEXTS)
    return texts


def text(message_id: str, /, **params: Any) -> str:
    """The sentence with this id in the chosen language, its parameters filled in.

    A sentence that is missing in Chinese is shown in English; an id that no catalogue knows is a ``KeyError``.
    """
    template = catalogue(language()).get(message_id)
    if template is None:
        template = catalogue("en")[message_id]
    return template.format(**params)
