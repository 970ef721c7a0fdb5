"""``nbautograd check MODULE:FN --reference MODULE:EAGER --inputs MODULE:MAKE``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from fn import BASE, written
from said import says

from nbautograd.command import main

MODULE = f"""
import torch

def eager(x):
    return torch.tanh(x)

{
    written(
        "Tanh",
        "x: y = torch.tanh(x.float() if x.itemsize < 4 else x); save(y); return y.to(x.dtype)",
        "g: (y,) = saved; return (g * (1 - y * y)).to(g.dtype)",
        base=BASE,
    )
}
{written("Off", backward="g: return 0.98 * Tanh.backward(ctx, g)", base="Tanh")}
{written("Raises", backward="g: return helper(g)", base="Tanh")}
def make():
    torch.manual_seed(0)
    return (torch.randn(8, 33).bfloat16().requires_grad_(),)

def make_double():
    return (torch.linspace(-2, 2, 6).double(),)

def fails(x):
    raise ZeroDivisionError("no")

def helper(g):
    raise RuntimeError("launch failed") from ZeroDivisionError("grid of 0")
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    file = tmp_path / "tanh_kernels.py"
    file.write_text(MODULE)
    return str(file)


def run(module: str, function: str, *more: str, inputs: str = "make") -> int:
    return main(
        ["check", f"{module}:{function}", "--reference", f"{module}:eager", "--inputs", f"{module}:{inputs}", *more]
    )


@pytest.mark.slow
def test_exit_status_and_files(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, data = tmp_path / "page.html", tmp_path / "report.json"
    assert run(module, "Tanh", "--json", str(data), "--html", str(page)) == 0
    assert says(capsys.readouterr().out, "views.comparison.right", reference="`eager`")
    (function,) = json.loads(data.read_text())["functions"]
    assert (function["name"], function["reference"], function["situations"][0]["verdict"]) == ("Tanh", "eager", "right")
    assert function["file"] == module
    assert "Tanh" in page.read_text()
    assert run(module, "Off") == 1
    assert "0.98 times" in capsys.readouterr().out


def test_without_a_reference_it_is_compared_with_itself_compiled(module, capsys):
    for function, status in (("Tanh", 0), ("Off", 1)):
        made = ["--inputs", f"{module}:make_double", "--compile"]
        assert main(["check", f"{module}:{function}", *made]) == status
        assert "torch.compile" in capsys.readouterr().out or status


@pytest.mark.parametrize(
    ("function", "frames", "says"),
    [
        ("fails", ["fails"], "ZeroDivisionError: no"),
        pytest.param("Raises", ["backward", "helper"], "RuntimeError: launch failed", marks=pytest.mark.slow),
    ],
)
def test_what_a_kernel_raises_comes_with_the_users_part_of_its_traceback(module, function, frames, says, capsys):
    assert run(module, function) == (2 if function == "fails" else 1)
    shown = "".join(capsys.readouterr())
    places = re.findall(r'File "(.*)", line \d+, in (\w+)', shown)
    assert places == [(module, frame) for frame in frames]
    assert says in shown
    assert ("ZeroDivisionError: grid of 0" in shown) == (function == "Raises")


def test_a_file_finds_what_lies_beside_it(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = Path(module).rename(tmp_path / "beside_it.py")
    (tmp_path / "kernels_beside.py").write_text(f"from {file.stem} import *\n")
    assert run(str(tmp_path / "kernels_beside.py"), "Nothing") == 2  # and no file that cannot be imported
    assert says(capsys.readouterr().err, "command.check.no_name", name="Nothing")


def test_a_name_without_a_module_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "kernel", "--reference", "a:b", "--inputs", "a:c"]) == 2
    assert says(capsys.readouterr().err, "command.check.no_colon", given="kernel")


@pytest.mark.slow
def test_it_is_compiled_where_that_is_asked_for(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("nbautograd.inspection.compare.BACKENDS", ("aot_eager",))
    data = tmp_path / "report.json"
    assert run(module, "Tanh", "--compile", "--json", str(data)) == 0
    assert says(capsys.readouterr().out, "compare.compile_agrees", backends="aot_eager")
    (function,) = json.loads(data.read_text())["functions"]
    assert [(row["way"], row["verdict"]) for row in function["compiled"]] == [
        ("backward", "right"),
        ("func_grad", "cannot tell"),
        ("dynamic", "right"),
    ]
