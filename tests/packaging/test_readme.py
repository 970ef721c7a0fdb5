"""The README's snippets run when pasted in order, and its pictures are of that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from notebook_shell import Notebook, Ran, without_the_extension
from said import pattern, says

import nbautograd
from nbautograd.pytest_plugin import assert_gradients

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@dataclass
class Pasted:
    """The snippets, pasted one after the other into an empty notebook, torch not imported.

    Attributes:
        ran: what each gave.
        names: what is defined after the last.
    """

    ran: list[Ran]
    names: dict[str, Any]


@pytest.fixture(scope="module")
def pasted(ipython: InteractiveShell) -> Pasted:
    with without_the_extension(ipython) as empty:
        for name in ("torch", "Function", "inspect", "gradcheck"):
            empty.shell.user_ns.pop(name, None)
        return Pasted([empty(snippet) for snippet in PYTHON], dict(empty.shell.user_ns))


@pytest.mark.slow
def test_every_snippet_runs_when_pasted_in_order(pasted: Pasted) -> None:
    assert len(pasted.ran) >= 5
    assert [ran.error for ran in pasted.ran] == [None] * len(pasted.ran)


@pytest.mark.slow
def test_the_first_cell_shows_what_is_said(pasted: Pasted) -> None:
    assert PYTHON[0] == "%load_ext nbautograd\n"
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert " ".join(shown.split()) in " ".join(pasted.ran[1].text.split())


@pytest.mark.slow
def test_the_offered_line_mends_the_cell(pasted: Pasted, bare: Notebook) -> None:
    names = pasted.names
    report = nbautograd.gradcheck(names["RMSNorm"], (names["x"], names["weight"]))
    fix = report.findings[0].fix
    assert PYTHON[1].count(fix.before) == 1
    page = (ROOT / "docs" / "start" / "read-a-report.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^block .*?(?=```)", page, re.DOTALL | re.MULTILINE)
    assert table in str(report)  # the page that explains each column has the README's numbers
    bare(PYTHON[0])
    assert says(bare(PYTHON[1].replace(fix.before, fix.source)).text, "views.headline.right")


@pytest.mark.slow
def test_the_script_says_what_its_comments_say(pasted: Pasted) -> None:
    printed = "\n".join(ran.stdout for ran in pasted.ran)
    assert "RMSNorm: backward is wrong for `x`" in printed  # as a comment of the README has it
    assert pasted.names["report"].function == "RMSNorm"  # of the callable around it


@pytest.mark.slow
def test_the_test_of_the_readme_fails_with_the_report(bare: Notebook) -> None:
    for snippet in (*PYTHON[:2], *(snippet for snippet in PYTHON if "def test_" in snippet)):
        bare(snippet)
    with pytest.raises(nbautograd.GradcheckError, match=pattern("views.headline.wrong_for", function="RMSNorm")):
        bare["test_rms_norm"](assert_gradients)


def test_every_line_magic_of_the_table_is_there(bare: Notebook) -> None:
    bare(PYTHON[0])
    named = set(re.findall(r"^\| `%(\w+)", README, re.MULTILINE))
    assert named == {name for name in bare.shell.magics_manager.magics["line"] if name in named}
    assert len(named) >= 4
