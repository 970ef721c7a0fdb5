"""Each code of the contract is made at one place in the package and has one kind; the guard can trip."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import nbautograd
from nbautograd.core.contract.rules import RANK, SEVERITY

PACKAGE = Path(nbautograd.__file__).parent
SOURCES = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}

# functions that make a finding of the code they are given, whatever it is: its callers name the code
MAKERS = {"Finding", "broken", "about", "Cause"}
CALLED = re.compile(rf"\b({'|'.join(MAKERS)})\(")


@cache
def calls(source: str) -> tuple[ast.Call, ...]:
    """Return the calls in a source of functions that make findings."""
    if not CALLED.search(source):
        return ()  # most files: not worth a second to parse
    found = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return tuple(call for call in found if getattr(call.func, "attr", getattr(call.func, "id", "")) in MAKERS)


def made(source: str) -> Iterator[str]:
    """Yield the codes of the contract with which a source makes findings."""
    for node in calls(source):
        yield from (a.value for a in node.args[:2] if isinstance(a, ast.Constant) and a.value in SEVERITY)


def places(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return for each code of the contract the files that make it, once for each place in them."""
    found: dict[str, list[str]] = {code: [] for code in SEVERITY}
    for file, text in sources.items():
        for code in made(text):
            found[code].append(file)
    return found


@pytest.mark.slow
def test_each_code_is_made_at_one_place() -> None:
    found = places(SOURCES)
    assert {code: files for code, files in found.items() if len(files) != 1} == {}


def test_a_second_place_is_seen() -> None:
    found = places({**SOURCES, "core/checking/elsewhere.py": 'rules.broken("tensor_on_ctx", seen)'})
    assert [code for code, files in found.items() if len(files) != 1] == ["tensor_on_ctx"]


def test_every_kind_has_a_rank() -> None:
    assert set(SEVERITY.values()) <= set(RANK)
