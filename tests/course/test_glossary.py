"""The glossary holds: no text in Chinese uses a term that it turns down, and its own terms are used."""

from __future__ import annotations

import tomllib
from pathlib import Path

from nbautograd.messages import GLOSSARY, catalogue

FINDINGS = GLOSSARY.with_name("findings.toml")
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def terms() -> dict[str, str]:
    """Each term that is turned down, with the one that is used in its place."""
    rows = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))["terms"]
    return {no: used for _, used, turned_down, *_ in rows for no in turned_down.split("、") if no}


def texts() -> dict[str, str]:
    """All Chinese of the course and of the package."""
    files = [*(NOTEBOOKS / "source").glob("*.py"), *NOTEBOOKS.glob("*.zh.ipynb")]
    course = {file.name: file.read_text(encoding="utf-8") for file in files}
    return {**course, **catalogue("zh"), "findings": FINDINGS.read_text(encoding="utf-8")}


def misused(text: str, turned_down: dict[str, str]) -> list[str]:
    """The terms in a text that the glossary turns down."""
    return [term for term in turned_down if term in text]


def test_terms_are_the_glossarys() -> None:
    turned_down = terms()
    found = {name: misused(text, turned_down) for name, text in texts().items()}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_guard_trips() -> None:
    assert len(terms()) > 20
    assert misused("反向传播又叫后向传播。", terms()) == ["后向传播"]
