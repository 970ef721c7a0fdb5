"""Imports run one way, and the contract that says so can fail."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "import sys; sys.argv = ['lint-imports', '--no-cache']; import importlinter.cli as c; c.lint_imports_command()"
LAYERS = "command -> magics -> widgets -> views -> inspection -> core"
CORE = "inside core: checking -> contract -> recording, graphs beside it"
CHECKING = "inside checking: problem -> jacobian -> steps -> verdict -> diagnosis -> repair"
CIRCLE = "no circle between the rooms of core, nor between their files"

# (contract, file, what it must not import, how the contract names that step)
WRONG = [
    (LAYERS, "core/values.py", "views", "core.values -> nbautograd.views "),
    (LAYERS, "core/values.py", "inspection", "core.values -> nbautograd.inspection "),
    (CORE, "core/recording/call.py", "core.checking", ".recording.call -> nbautograd.core.checking "),
    *(
        (CHECKING, f"core/checking/{file}.py", module, f"{file.replace('/', '.')} -> nbautograd.{module} ")
        for file, module in [
            ("problem", "core.checking.jacobian.layout"),
            ("jacobian/layout", "core.checking.steps.ladder"),
            ("steps/ladder", "core.checking.block_verdict"),
            ("block_verdict", "core.checking.diagnosis.predicates"),
            ("diagnosis/predicates", "core.checking.probes.usage"),
            ("probes/usage", "core.checking.repair.script"),
            ("report_verdict", "core.checking.repair.script"),
        ]
    ),
    (CIRCLE, "core/graphs/graph.py", "core.graphs.folding", ".graph -> .folding "),
    (CIRCLE, "core/values.py", "core.tracing.log", ".values -> .tracing "),
    ("core knows no IPython, no drawing, no widgets", "core/findings.py", "matplotlib", "core.findings -> matplotlib "),
    ("views know no IPython and no widgets", "views/__init__.py", "ipywidgets", "nbautograd.views -> ipywidgets "),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of pyproject.toml on the package in this folder."""
    return subprocess.run([sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True)


def test_the_contracts_hold() -> None:
    run = lint(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each contract says of a copy of the package with every wrong step in it."""
    copy = tmp_path_factory.mktemp("spoilt")
    shutil.copytree(ROOT / "nbautograd", copy / "nbautograd", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for _, file, module, _ in WRONG:
        with (copy / "nbautograd" / file).open("a") as source:
            ours = (ROOT / "nbautograd" / module.split(".")[0]).is_dir()
            source.write(f"\nimport {'nbautograd.' * ours}{module}\n")
    run = lint(copy)
    assert run.returncode != 0
    _, *parts = re.split(r"^(.+)\n-+\n\n", run.stdout.partition("\nBroken contracts\n")[2], flags=re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize(("contract", "file", "module", "step"), WRONG, ids=[f"{w[1]}-{w[2]}" for w in WRONG])
def test_a_step_the_wrong_way_is_seen(broken: dict[str, str], contract: str, file: str, module: str, step: str) -> None:
    assert step in broken[contract]
