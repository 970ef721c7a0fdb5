"""Every sentence exists in both languages, with the same places to fill; what the code asks for exists."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from nbautograd import messages
from nbautograd.messages import LANGUAGES, catalogue, language, set_language, text

ROOT = Path(__file__).parents[2]
MESSAGES = Path(messages.__file__).parent


def places(template: str) -> set[str]:
    """The names that a template wants filled."""
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(template) if name}


SPEAKING = {"text", "say", "Phrase", "speaking", "Finding", "Failure", "broken"}
CALLED = re.compile(rf"\b({'|'.join(SPEAKING)})\(")


@cache
def calls() -> list[tuple[Path, str, ast.Call]]:
    """The calls in each file that asks for a sentence anywhere: the file, what is called, and the call."""
    files = [file for file in (ROOT / "nbautograd").rglob("*.py") if file.parent != MESSAGES]
    sources = ((file, file.read_text(encoding="utf-8")) for file in files)
    nodes = ((file, node) for file, source in sources if CALLED.search(source) for node in ast.walk(ast.parse(source)))
    return [(file, dotted(node.func), node) for file, node in nodes if isinstance(node, ast.Call)]


def dotted(node: ast.expr) -> str:
    """The name of what is called, ``messages.text``; empty for what is computed."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def asked_for() -> dict[str, str]:
    """Every id that the package's code asks for in so many words, with the file that does."""
    found = {}
    for file, function, call in calls():
        at = (
            0
            if function in ("text", "messages.text", "say", "Phrase")
            else 1
            if function == "Failure"
            else len(call.args)
        )
        first = call.args[at] if at < len(call.args) else None
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


def test_the_first_sentence_of_a_finding_names_no_place_in_backward():
    """Hints may want what is wrong without where: that is the advice's to say."""
    whats = [key for key in catalogue("en") if re.fullmatch(r"(causes|checking)\..*\.what", key)]
    assert len(whats) > 80
    assert {key for key in whats if places(catalogue("en")[key]) & {"value", "example", "place"}} == set()


def constructed():
    """The code and sentence of each finding whose sentence the code names; a variant of a code may share its words."""
    for _, function, call in calls():
        words = [arg.value if isinstance(arg, ast.Constant) else None for arg in call.args]
        name = function.rpartition(".")[2]
        if name in ("Finding", "broken") and len(words) > 2 and words[2]:
            yield words[0], words[2]
        elif name == "broken" and len(words) in (1, 2) and words[0]:
            yield words[0], ""


@pytest.mark.slow
def test_every_finding_has_its_sentence_in_parts():
    """What the code names in so many words as a finding's message; a sentence alone could not be shortened."""
    stems, known = set(constructed()), catalogue("en").keys()
    assert len(stems) > 30
    assert [(code, stem) for code, stem in stems if not {f"{stem}.what", f"causes.{code}.what"} & known] == []


def test_every_sentence_that_is_asked_for_exists():
    missing = {key: file for key, file in asked_for().items() if key not in catalogue("en")}
    assert missing == {}
    assert len(asked_for()) > 40


@pytest.mark.slow
def test_sentences_that_no_test_said_fail_the_run():
    """The guard of ``.ci/test`` trips where workers hand over what their tests said."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", f"{__file__}::test_chinese_is_chinese"]
    ran = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"NBAUTOGRAD_UNSAID": "1"}, check=False
    )
    assert ran.returncode == 1
    assert "1 passed" in ran.stdout
    assert " views.headline.wrong " in ran.stdout.rpartition("said by no test: ")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("own", "variable", "expected"),
    [("", "zh_CN.UTF-8", "zh"), ("", "en_US.UTF-8", "en"), ("", "C", "en"), ("", "de_DE", "en"), ("zh", "en_US", "zh")],
)
def test_the_environment_chooses(monkeypatch, own, variable, expected):
    monkeypatch.setenv("NBAUTOGRAD_LANG", own)
    monkeypatch.setenv("LC_ALL", variable)
    set_language(None)
    assert language() == expected


def test_a_language_that_nobody_wrote():
    with pytest.raises(ValueError, match="en and zh, not 'fr'"):
        set_language("fr")
    with pytest.raises(KeyError):
        text("no.such.sentence")
