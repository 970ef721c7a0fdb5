"""The page of each code, and the way from a report to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import nbautograd
from nbautograd.command import main
from nbautograd.command.finding import kind, program, sentences, table, why
from nbautograd.core.contract.rules import SEVERITY
from nbautograd.version import page_of

PACKAGE = Path(nbautograd.__file__).parent


def codes_of_the_sources() -> dict[str, str]:
    found: dict[str, str] = dict(SEVERITY)
    for file in PACKAGE.rglob("*.py"):
        found |= dict(re.findall(r'Finding\(\s*"(\w+)",\s*"(bug|lint|note)"', file.read_text(encoding="utf-8")))
    return found


def test_the_table_has_every_code_of_the_sources_and_its_kind() -> None:
    written_there = codes_of_the_sources()
    assert len(written_there) > 60
    assert {code: given for code, given in written_there.items() if code not in table() or kind(code) != given} == {}


def test_every_entry_says_why_and_shows_a_program_or_a_sentence() -> None:
    ends = {(en[-1], zh[-1], en.isascii()) for en, zh in (about["why"] for about in table().values())}
    assert ends == {(".", "。", True)}
    bare = [code for code, about in table().items() if "example" not in about and not program(about)]
    assert [code for code in bare if not sentences(code)] == []
    for about in table().values():
        compile(program(about), "program", "exec")


@pytest.mark.parametrize(
    ("words", "means"),
    [(["chain", "rule"], "composition"), (["梯度"], "导数"), (["freed"], "retain_graph"), (["in_place_step"], "clone")],
)
def test_explain_prints_what_a_word_means(words: list[str], means: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words]) == 0
    assert means in capsys.readouterr().out


@pytest.mark.parametrize("code", ["missing_coupling", "compare_factor", "stumbled", "tensor_on_ctx"])
def test_explain_prints_the_page_of_a_code(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", code]) == 0
    said = capsys.readouterr().out
    assert why(code) in said
    assert "{" not in said.partition("```")[0]
    assert page_of(code) in said


def test_a_report_leads_to_the_page_with_and_without_a_network() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    namespace: dict[str, object] = {"x": x}
    exec(program(table()["zero_gradient"]), namespace)
    report = namespace["report"]
    assert "[nbautograd explain zero_gradient]" in str(report)
    assert f'href="{page_of("zero_gradient")}"' in report._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]
