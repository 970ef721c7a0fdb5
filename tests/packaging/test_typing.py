"""mypy and pyright read the installed package alike: its public names have types, and a wrong use is an error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging
CLIENT = '''\
"""What somebody who uses nbautograd writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from typing_extensions import assert_type

import nbautograd

x = torch.ones(3, dtype=torch.float64, requires_grad=True)

report = nbautograd.gradcheck(torch.sin, (x,), order=2, hints="what")
assert_type(report, nbautograd.types.GradcheckReport)
assert_type(report.verdict, Literal["right", "wrong", "cannot tell"])
assert_type(report.findings, tuple[nbautograd.types.Finding, ...])
assert_type(report.findings[0].fix, nbautograd.types.Fix | None)
assert_type(report.blocks, Mapping[tuple[int, int], nbautograd.types.Block])
assert_type(report.blocks[0, 0].worst, nbautograd.types.Entry | None)
assert_type(report.order2, nbautograd.types.GradcheckReport | None)
assert_type(report.raise_if_wrong(), nbautograd.types.GradcheckReport)

whole = nbautograd.inspect(torch.sin, x)
assert_type(whole, nbautograd.types.FunctionReport)
assert_type(whole.calls[0], nbautograd.types.Call)
assert_type(whole.calls[0].ctx.saved_tensors[0].tensor, nbautograd.types.TensorSummary | None)

assert_type(nbautograd.graph(x.sin()).nodes, tuple[nbautograd.types.Node, ...])
assert_type(nbautograd.compare(torch.square, torch.square, (x,)).verdict, Literal["right", "wrong", "cannot tell"])
assert_type(nbautograd.jacobian(torch.sin, x), nbautograd.types.JacobianReport)

with nbautograd.audit(budget=10) as watched:
    x.sin()
assert_type(watched, nbautograd.types.Audit)
audited = watched.report()
assert_type(audited, nbautograd.types.AuditReport)
assert_type(audited.functions, tuple[nbautograd.types.AuditedFunction, ...])
assert_type(audited.functions[0].situations[0], nbautograd.types.AuditedSituation)
assert_type(audited.functions[0].situations[0].report, nbautograd.types.GradcheckReport | None)
assert_type(audited.verdict, Literal["right", "wrong", "cannot tell", "unchecked", "meant"])
assert_type(audited.redact(), nbautograd.types.AuditReport)
assert_type(nbautograd.audit(torch.sin, x), nbautograd.types.AuditReport)

explained = nbautograd.explain(x.grad_fn)
assert_type(explained, nbautograd.types.Explanation)
assert_type(explained.fix, nbautograd.types.Fix | None)
assert_type(explained.findings, tuple[nbautograd.types.Finding, ...])

with nbautograd.recording(level="shapes") as log:
    x.sin()
assert_type(log, nbautograd.types.CallLog)


@nbautograd.instrument
class Double(torch.autograd.Function):
    """Stays a class of its own for the checker."""


kept: type[torch.autograd.Function] = Double
'''
PYRIGHT = "pyright@1.1.414"
MISTAKES = [
    "nbautograd.gradchek(torch.sin, (x,))",
    "nbautograd.gradcheck(torch.sin, (x,), order='2')",
    "report.verdict == 1 + report",
    "report.findings[0].codes",
    "wrong: int = report.verdict",
    "nbautograd.compare(torch.sin, torch.sin, (x,), shapes=())",
    "watched.functions",
    "nbautograd.audit(budget='long')",
    "explained.lines",
]


@pytest.fixture(scope="session")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program, from the PATH or else from npm."""
    found = shutil.which("pyright")
    if found is not None:
        return found
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("pyright")
    if npm is None:
        pytest.skip("no pyright here, and no npm to get it with")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), PYRIGHT]
    run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode:
        pytest.skip(f"npm cannot get {PYRIGHT}: {run.stderr.strip().splitlines()[-1:]}")
    return str(folder / "node_modules" / ".bin" / "pyright")


def outside() -> dict[str, str]:
    """The environment without anything that leads to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}


def mypy_lines(python: Path, file: Path) -> list[int]:
    """The lines of a file in which mypy sees an error."""
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(python),
        "--no-incremental",
        file.name,
    ]
    run = subprocess.run(words, cwd=file.parent, env=outside(), capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    errors = [line.split(":") for line in run.stdout.splitlines() if ": error:" in line]
    assert all(parts[0] == file.name for parts in errors), run.stdout
    return sorted({int(parts[1]) for parts in errors})


def pyright_lines(pyright: str, python: Path, file: Path) -> list[int]:
    """The lines of a file in which pyright, strict, sees an error."""
    settings = {"include": [file.name], "typeCheckingMode": "strict", "reportUnknownMemberType": False}
    (file.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    words = [pyright, "--pythonpath", str(python), "--outputjson"]
    run = subprocess.run(words, cwd=file.parent, env=outside(), capture_output=True, text=True)
    report = json.loads(run.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    errors = [one for one in report["generalDiagnostics"] if one["severity"] == "error"]
    return sorted({one["range"]["start"]["line"] + 1 for one in errors})


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_client_has_the_types_it_expects_and_every_wrong_use_is_an_error(checker, fresh, tmp_path, request):
    file, python = tmp_path / "client.py", fresh / "bin" / "python"
    file.write_text(CLIENT + "\n".join(MISTAKES) + "\n", encoding="utf-8")
    if checker == "mypy":
        lines = mypy_lines(python, file)
    else:
        lines = pyright_lines(request.getfixturevalue("pyright"), python, file)
    first = CLIENT.count("\n") + 1
    assert lines == list(range(first, first + len(MISTAKES)))
