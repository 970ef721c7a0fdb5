"""Every sentence exists in both languages, with the same places to fill; what the code asks for exists."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

from nbautograd.messages import LANGUAGES, catalogue, language, set_language, text

ROOT = Path(__file__).parents[2]


def places(template: str) -> set[str]:
    """The names that a template wants filled."""
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(template) if name}


def asked_for() -> dict[str, str]:
    """Every id that the package's code asks for in so many words, with the file that does."""
    found = {}
    for file in (ROOT / "nbautograd").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("text", "messages.text", "say"):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and re.fullmatch(r"\w+\.[\w.]+", str(first.value)):
                    found[str(first.value)] = file.name
    return found


def test_both_languages_say_the_same_things():
    english, chinese = (catalogue(lang) for lang in LANGUAGES)
    assert english.keys() == chinese.keys()
    assert {key for key in english if places(english[key]) != places(chinese[key])} == set()


def test_chinese_is_chinese():
    """A sentence of words has Chinese in it; templates of names and numbers only need not."""
    english, chinese = (catalogue(lang) for lang in LANGUAGES)
    words = {
        key for key, said in english.items() if len(re.findall(r"\b[a-z]{3,}\b", re.sub(r"{.*?}|`.*?`", "", said))) > 3
    }
    assert {key for key in words if not re.search(r"[\u4e00-\u9fff]", chinese[key])} == set()


def test_every_sentence_that_is_asked_for_exists():
    missing = {key: file for key, file in asked_for().items() if key not in catalogue("en")}
    assert missing == {}
    assert len(asked_for()) > 40


@pytest.mark.parametrize(
    ("variable", "expected"), [("zh_CN.UTF-8", "zh"), ("en_US.UTF-8", "en"), ("C", "en"), ("de_DE", "en")]
)
def test_the_environment_chooses(monkeypatch, variable, expected):
    monkeypatch.delenv("NBAUTOGRAD_LANG", raising=False)
    monkeypatch.setenv("LC_ALL", variable)
    set_language(None)
    assert language() == expected


def test_a_language_that_nobody_wrote():
    with pytest.raises(ValueError, match="en and zh, not 'fr'"):
        set_language("fr")
    with pytest.raises(KeyError):
        text("no.such.sentence")
