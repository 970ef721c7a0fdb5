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


def computed(source: str) -> Iterator[str]:
    """Yield each call that makes a finding with a code that the source does not name."""
    for node in calls(source):
        codes = node.args[:2] if ast.unparse(node.func).endswith("about") else node.args[:1]
        if codes and not any(isinstance(code, ast.Constant) for code in codes):
            yield ast.unparse(node.func)


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


@pytest.mark.parametrize(
    "second",
    [
        'Finding("tensor_on_ctx", "lint", "causes.tensor_on_ctx")',
        'phrases.about(problem, "tensor_on_ctx", line)',
        'rules.broken("tensor_on_ctx", seen)',
        'Cause("tensor_on_ctx", "tensor_on_ctx")',
    ],
)
def test_a_second_place_is_seen(second: str) -> None:
    found = places({**SOURCES, "core/checking/elsewhere.py": second})
    assert [code for code, files in found.items() if len(files) != 1] == ["tensor_on_ctx"]


# what passes a code on, by file or folder: the code itself is named by who calls it
PASS_ON = {
    ("core/contract/rules.py", "Finding"),  # broken
    ("core/checking/phrases.py", "rules.broken"),  # about
    ("core/checking/diagnosis", "Cause"),  # of another Cause
    ("core/checking/diagnosis/table.py", "Finding"),  # of a Cause
    ("core/checking/probes/linearity.py", "Finding"),
    ("core/checking/probes/forward_mode.py", "Finding"),
    ("core/graphs/why_none.py", "Finding"),
    ("core/explaining/cause.py", "Finding"),  # a sentence about an error of torch's
    ("inspection/explanation.py", "Finding"),
    ("inspection/audit.py", "Finding"),  # of torch's own opcheck
    ("inspection/audited_calls.py", "Finding"),  # ALONG, which other files ask for by name
}


def test_codes_are_named_where_a_finding_is_made() -> None:
    """What passes a code on is known by name, so that no other can make a code of the contract unseen."""
    found = {(file, function) for file, text in SOURCES.items() for function in computed(text)}
    known = {(file, function) for file, function in found for f, g in PASS_ON if file.startswith(f) and function == g}
    assert found - known == set()


def test_a_computed_code_is_seen() -> None:
    assert list(computed('broken(f"{name}_in_backward", seen)')) == ["broken"]
    assert list(computed("about(problem, code)")) == ["about"]
    assert list(computed('broken("empty_body", seen)')) == []


def test_no_maker_states_another_kind_than_the_table() -> None:
    stated = [
        (node.args[0].value, node.args[1].value)
        for text in SOURCES.values()
        for node in calls(text)
        if ast.unparse(node.func) == "Finding"
        and len(node.args) > 1
        and all(isinstance(one, ast.Constant) for one in node.args[:2])
    ]
    assert stated
    assert [(code, kind) for code, kind in stated if SEVERITY.get(code, kind) != kind] == []


def test_every_kind_has_a_rank() -> None:
    assert set(SEVERITY.values()) <= set(RANK)


ROOMS = {
    "core/contract/source_rules.py": "source",
    "core/contract/call_rules.py": "watching",
    "core/checking/": "asking",
}
PAGE = PACKAGE.parent / "docs" / "how-it-works.md"


def detectors(sources: dict[str, str]) -> dict[str, dict[str, set[str]]]:
    """Return for each code the kinds of evidence it is detected by, each with the functions that detect it."""
    functions = [
        node for node in ast.parse(sources["core/contract/rules.py"]).body if isinstance(node, ast.FunctionDef)
    ]
    codes = {function.name: list(made(ast.unparse(function))) for function in functions}
    found: dict[str, dict[str, set[str]]] = {code: {} for code in SEVERITY}
    for file, text in sources.items():
        kind = next((kind for room, kind in ROOMS.items() if file.startswith(room)), None)
        if kind is None or not (CALLED.search(text) or "rules." in text):
            continue
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef):
                continue
            inside = ast.unparse(function)
            named = [code for maker in re.findall(r"\brules\.(\w+)\(", inside) for code in codes.get(maker, ())]
            for code in (*named, *made(inside)):
                found[code].setdefault(kind, set()).add(function.name)
    return found


@pytest.mark.slow
def test_rules_with_two_kinds_of_evidence_are_those_that_the_documentation_gives_a_reason_for() -> None:
    told: dict[str, set[str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        code, *cells = (cell.strip(" `") for cell in line.strip("|").split("|"))
        if code in SEVERITY:
            *cells, reason = cells
            assert reason
            told[code] = {kind for kind, cell in zip(ROOMS.values(), cells, strict=True) if cell}
    assert told
    assert {code: set(kinds) for code, kinds in detectors(SOURCES).items() if len(kinds) > 1} == told


def test_source_and_calls_are_each_read_for_a_rule_by_one_function() -> None:
    for code, kinds in detectors(SOURCES).items():
        assert all(len(kinds.get(kind, ())) <= 1 for kind in ("source", "watching")), (code, kinds)


def test_a_second_detector_is_seen() -> None:
    second = {"core/checking/elsewhere.py": "def probe():\n    yield rules.input_on_ctx(seen, 'x')"}
    assert set(detectors({**SOURCES, **second})["tensor_on_ctx"]) == {"watching", "asking"}
