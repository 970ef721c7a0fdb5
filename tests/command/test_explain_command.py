"""nbautograd explain: a program run once as Python runs it, and what is said of the error that it ends in."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from nbautograd.command import main

pytestmark = pytest.mark.usefixtures("saved_tensors_shown")

BROKEN = """
import sys
import torch

def step(x):
    out = x.sigmoid()
    out += 1
    return out.sum()

if __name__ == "__main__":
    print("begun", sys.argv[1:])
    loss = step(torch.ones(2, requires_grad=True))
    loss.backward()
"""


def script(tmp_path: Path, text: str, name: str = "train.py") -> str:
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_status_1_where_the_line_is_named_with_a_change_that_was_tried(tmp_path, capsys) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    assert main(["explain", "--json", str(out), "--html", str(page), script(tmp_path, BROKEN), "--lr", "3"]) == 1
    seen = capsys.readouterr()
    assert seen.out.startswith("begun ['--lr', '3']\n")
    assert seen.out.count("begun") == 1  # the copies in which the change was tried are silent
    data = json.loads(out.read_text())
    assert (data["code"], data["tensor"], data["did"]["line"], data["run"]) == ("in_place", "out", 7, "program")
    assert (data["fix"]["line"], data["fix"]["source"], data["fix"]["verified"]) == (7, "out = out + 1", True)
    assert "train.py, line 7" in seen.out
    assert "train.py" in page.read_text()


PROGRAMS = {
    "nothing": ("import torch\ntorch.ones(2, requires_grad=True).sum().backward()", 0, "nothing"),
    "another error": ("import torch\n{}['accuracy']", 2, "not_torch"),
    "None": ("import torch\nw = torch.ones(2, requires_grad=True)\nw.grad.zero_()", 1, "grad_none_no_backward"),
    "NaN": ("import torch\nloss = torch.tensor([-1.0]).log().sum()\nassert loss < 9", 1, "not_finite_log_negative"),
    "NaN and no error": ("import torch\nloss = torch.tensor([-1.0]).log().sum()", 1, "not_finite_log_negative"),
    "raised as another error": (
        "import torch\ny = torch.ones(2, requires_grad=True).exp()\ny += 1\ntry:\n    y.sum().backward()\n"
        "except RuntimeError as error:\n    raise SystemExit('failed') from error",
        1,
        "in_place",
    ),
    "an exit": ("import torch, sys\nsys.exit(0)", 0, "nothing"),
    "an exit with a status": ("import torch, sys\nsys.exit(3)", 2, "not_torch"),
    "an interrupt": ("import torch\nraise KeyboardInterrupt", 2, "not_torch"),
}


@pytest.mark.parametrize(("text", "status", "code"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_status_says_what_was_found(tmp_path, capsys, text: str, status: int, code: str) -> None:
    out = tmp_path / "out.json"
    assert main(["explain", "--json", str(out), script(tmp_path, text)]) == status
    assert json.loads(out.read_text())["code"] == code


def test_a_module_is_run_as_python_m_does_and_a_change_is_tried_in_it(tmp_path, capsys, monkeypatch) -> None:
    package = tmp_path / "explained_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def add(t):\n    t += 1\n    return t\n")
    script(
        package,
        """
        import torch
        from .parts import add
        print(__package__)
        add(torch.ones(2, requires_grad=True).exp()).sum().backward()
        """,
        "__main__.py",
    )
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out.json"
    assert main(["explain", "--json", str(out), "-m", "explained_package"]) == 1
    assert capsys.readouterr().out.startswith("explained_package\n")
    data = json.loads(out.read_text())
    assert (Path(data["did"]["file"]).name, data["did"]["line"], data["fix"]["source"]) == ("parts.py", 2, "t = t + 1")


def test_a_program_that_writes_runs_once_and_its_files_are_as_it_wrote_them(tmp_path, capsys) -> None:
    log = tmp_path / "log.txt"
    text = BROKEN.replace("import sys\n", f"import sys\nopen({str(log)!r}, 'a').write('run\\n')\n")
    assert main(["explain", script(tmp_path, text)]) == 1
    assert log.read_text() == "run\n"
    assert "out = out + 1" not in capsys.readouterr().out  # it could not be tried


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        BROKEN,
        """
        import torch, warnings
        y = torch.ones(3, requires_grad=True) * 2
        for k in range(2):
            y.grad
            torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2, 1))
        y.grad, torch.ones(2).T
        y.grad = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.nn.functional.softmax(y), torch.tensor(y), torch.nn.Softmax()(y)
        print([(each.filename, each.lineno) for each in caught])
        warnings.filterwarnings("ignore", module="__main__")
        torch.tensor(y)
        {}["accuracy"]
        """,
        pytest.param(
            "import torch\ntorch.optim.SGD([torch.ones(1) * 2], 0.1)\ntorch.nn.Linear(2, 1)(3)",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_the_program_prints_and_its_traceback_are_those_of_python(tmp_path, text: str) -> None:
    path = script(tmp_path, text)
    bare = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    ran = subprocess.run(
        [sys.executable, "-m", "nbautograd", "explain", path], capture_output=True, text=True, check=False
    )
    assert ran.stdout.startswith(bare.stdout)
    assert bare.stderr
    assert ran.stderr.startswith(bare.stderr)
    assert ran.stderr.removeprefix(bare.stderr).count("\n") == 1
