"""The pages on kernel checks: the commands print what is shown, the JSON has the fields that are listed."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from said import says

from nbautograd.command import main
from nbautograd.command.finding import table

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "kernels.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "nbautograd" / "command" / "skill.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def module(tmp_path: Path) -> str:
    """The file that the page tells to write."""
    file = tmp_path / "documented_kernels.py"
    file.write_text(next(block for language, block in BLOCKS if language == "python"), encoding="utf-8")
    return str(file)


def without_numbers(text: str) -> str:
    """Return the text with each measured number as one mark and each run of spaces as one space."""
    return re.sub(r"\s+", " ", re.sub(r"-?\d\S*", "#", text))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "status"), [("RMSNorm", 0), ("Blocked", 1)])
def test_the_command_prints_what_is_shown(module, tmp_path, capsys, function, status):
    data = tmp_path / "report.json"
    names = ["--reference", f"{module}:eager", "--inputs", f"{module}:inputs"]
    assert main(["check", f"{module}:{function}", *names, "--json", str(data)]) == status
    printed = without_numbers(capsys.readouterr().out)
    (shown,) = (block for _, block in BLOCKS if block.startswith(f"$ nbautograd check kernels:{function} "))
    for part in shown.partition("\n")[2].split("\n...\n"):
        assert without_numbers(part).strip() in printed
    assert unlisted(json.loads(data.read_text(encoding="utf-8"))) == set()


def unlisted(value: Any) -> set[str]:
    """Return the fields of the JSON that the page for agents does not name."""
    if isinstance(value, list):
        return {name for item in value for name in unlisted(item)}
    if not isinstance(value, dict):
        return set()
    return {name for name in value if f"`{name}`" not in AGENTS} | {
        n for item in value.values() for n in unlisted(item)
    }


def test_an_unlisted_field_is_seen() -> None:
    assert unlisted({"functions": [{"name": "f", "colour": {"hue": 1}}]}) == {"colour", "hue"}


def test_every_code_on_the_page_for_agents_is_one_that_the_check_gives() -> None:
    assert set(re.findall(r"`(compare_\w+)`", AGENTS)) - set(table()) == set()  # the site's build gives each of those


GATE = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.parametrize(("summed", "failed"), [("piece", 0), ("piece[:16]", 2)], ids=["right", "wrong"])
def test_the_gate_of_the_page(summed: str, failed: int, pytester: pytest.Pytester, monkeypatch: Any) -> None:
    """A stranger's repository: the page's files, and a kernel of which the second sums sixteen rows at most."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kernel, cases, test = (
        block for language, block in re.findall(r"```(\w*)\n(.*?)```", GATE, re.DOTALL) if language == "python"
    )
    pytester.makepyfile(gate=cases, my_kernels=kernel.replace("piece.sum", f"{summed}.sum"), test_kernels=test)
    run = pytester.runpytest_subprocess("-p", "nbautograd.pytest_plugin", "--junitxml=report.xml")
    named = set(re.findall(r'name="test_ragged_softmax\[([^]]+)\]"', (pytester.path / "report.xml").read_text()))
    assert named == {"one piece", "ragged 5/7/19", "a tail of one"}
    run.assert_outcomes(passed=3 - failed, failed=failed)


@pytest.mark.slow
def test_the_program_of_two_processes_runs_as_it_stands(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "how-to" / "two-processes.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "layers.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "layers.py"), run_name="__main__")
    assert says(capfd.readouterr().out, "views.comparison.right", function="`column_linear`", reference="`linear`")
