"""The gate: exit status, JSON and its schema, annotations, hidden inputs, and the action's script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from fn import BASE, written
from said import says

from nbautograd.command import main
from nbautograd.inspection.comparison import ComparedCompiled

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "nbautograd" / "command" / "schema.json").read_text(encoding="utf-8"))
ACTION = ROOT / ".github" / "actions" / "gate"
PICKY = (
    'x: assert x.is_contiguous(), f"strides {x.stride()}, first {float(x.flatten()[0])}"; return Tanh.forward(ctx, x)'
)
MODULE = f"""\
import torch

def eager(x):
    return torch.tanh(x)

{written("Tanh", "x: y = torch.tanh(x); save(y); return y", "g: (y,) = saved; return g * (1 - y * y)", base=BASE)}
{written("Off", backward="g: return 0.98 * Tanh.backward(ctx, g)", base="Tanh")}
{written("Picky", PICKY, base="Tanh")}
{written("Over", backward="g: (y,) = saved; return g.mul_(1 - y * y)", base="Tanh")}
def off(x):
    return Off.apply(x)

def make():
    return (torch.randn(8, 5),)

def cases():
    yield "wide", (torch.randn(2, 9),)
    yield "long", (torch.randn(9, 2),)
"""
LINE_OF_OFF = 1 + MODULE.splitlines().index("        return 0.98 * Tanh.backward(ctx, g)") - 1


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = tmp_path / "gated.py"
    file.write_text(MODULE)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return str(file)


def check(module: str, name: str, *options: str, at: str = "--cases cases") -> int:
    option, given = at.split()
    inputs = given if given.endswith(".pt") else f"{module}:{given}"
    return main(["check", f"{module}:{name}", "--reference", f"{module}:eager", option, inputs, *options])


def written(tmp_path: Path) -> Any:
    data = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(data, SCHEMA)
    return data


@pytest.mark.parametrize(
    ("name", "at", "options", "status"),
    [
        ("Tanh", "--cases cases", [], 0),
        ("off", "--cases cases", [], 1),
        ("Over", "--cases cases", [], 1),
        ("Over", "--cases cases", ["--overwrites", "x, g"], 0),
        ("Picky", "--cases cases", ["--layouts", "transposed"], 2),
        ("Picky", "--cases cases", ["--layouts", "transposed", "--allow-unjudged"], 0),
        ("Nothing", "--cases cases", [], 2),
        ("Tanh", "--cases nothing", [], 2),
        ("Tanh", "--inputs none.pt", [], 2),
    ],
)
def test_the_exit_status(module: str, tmp_path: Path, name: str, at: str, options: list[str], status: int) -> None:
    assert check(module, name, *options, "--json", str(tmp_path / "report.json"), at=at) == status
    if (tmp_path / "report.json").exists():
        allowed = "--allow-unjudged" in options
        assert written(tmp_path)["verdict"] == ("cannot tell" if allowed else ["right", "wrong", "cannot tell"][status])


def test_no_inputs_are_none(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{module}:Tanh"]) == 2
    assert says(capsys.readouterr().err, "command.check.no_inputs")


def test_an_error_of_ours_is_no_wrong_gradient(module, monkeypatch, capsys):
    def fails(_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("nbautograd.command.check.to_text", fails)
    assert check(module, "Off") == 2
    assert "ZeroDivisionError: ours" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Tanh", "Off", "off"])
def test_annotations_stand_at_backward_and_the_summary_has_a_table(module, tmp_path, name, capsys):
    status = check(module, name, "--github", "--json", str(tmp_path / "report.json"))
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    (function,) = written(tmp_path)["functions"]
    summary = (tmp_path / "summary.md").read_text()
    assert f"nbautograd: `{name}`" in summary
    if name == "Tanh":
        assert (status, shown) == (0, [])
        return
    assert function["backward_line"] == LINE_OF_OFF
    assert [line.split("::")[1] for line in shown] == [
        f"error file=gated.py,line={line},title=nbautograd%3A {name}" for line in (LINE_OF_OFF, LINE_OF_OFF + 1)
    ]
    assert "`compare_factor`" in summary
    assert "| wide | 2×9 float32 |" in summary


def test_a_line_of_an_installed_package_is_no_line_of_the_repository(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
    assert check(module, "Off", "--github") == 1
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert {line.split("::")[1] for line in shown} == {"error title=nbautograd%3A Off"}


def test_what_could_not_be_run_is_annotated(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(module, "Nothing", "--github") == 2
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [shown.err.replace("nbautograd: ", "::error title=nbautograd::", 1).strip()]


def test_a_file_of_a_package_imports_from_its_neighbours(tmp_path: Path) -> None:
    package = tmp_path / "gated_kernels" / "deep"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "own.py").write_text(MODULE)
    (package / "kernel.py").write_text("from .own import *\n")
    report = tmp_path / "new" / "report.json"
    assert check(str(package / "kernel.py"), "Tanh", "--json", str(report), at="--cases cases") == 0
    assert json.loads(report.read_text())["functions"][0]["module"] == "gated_kernels.deep.own"


def test_the_json_without_a_reference_has_the_schema_too(module: str, tmp_path: Path) -> None:
    for name, status in (("Tanh", 0), ("Off", 1)):
        data = ["--json", str(tmp_path / "report.json")]
        assert main(["check", f"{module}:{name}", "--inputs", f"{module}:make", *data]) == status
        assert written(tmp_path)["verdict"] == ("wrong" if status else "right")


@pytest.mark.parametrize(
    ("way", "told", "overall"),
    [
        ("backward", "right", "right"),
        ("backward", "wrong", "wrong"),
        ("dynamic", "cannot tell", "cannot tell"),
        ("func_grad", "wrong", "right"),
    ],
)
def test_the_json_says_what_the_exit_status_says_of_compiling(module, tmp_path, monkeypatch, way, told, overall):
    row = ComparedCompiled("aot_eager", way, told)
    monkeypatch.setattr("nbautograd.inspection.compare.witnessed", lambda report, *_: replace(report, compiled=(row,)))
    status = check(module, "Tanh", "--compile", "--github", "--json", str(tmp_path / "report.json"))
    assert (written(tmp_path)["verdict"], status) == (overall, ["right", "wrong", "cannot tell"].index(overall))
    assert f"| {status} |" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("schema"),
        lambda data: data.update(schema=2),
        lambda data: data.update(verdict="fine"),
        lambda data: data["functions"][0].pop("situations"),
        lambda data: data["functions"][0]["situations"][0].update(verdict="fine"),
        lambda data: data["functions"][0]["situations"][0]["quantities"][0].update(kind="loss"),
    ],
)
def test_the_schema_refuses_what_is_none(module: str, tmp_path: Path, change: Any) -> None:
    check(module, "Tanh", "--json", str(tmp_path / "report.json"))
    data = written(tmp_path)
    change(data)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)


@pytest.mark.parametrize("name", ["Off", "Picky"])
def test_values_of_a_file_are_shown_nowhere(module, tmp_path, name, capsys):
    x = torch.full((3, 4), 0.8125) + torch.arange(12.0).reshape(3, 4) / 1024
    torch.save({"secret": (x.t() if name == "Picky" else x,)}, tmp_path / "hidden.pt")
    options = ["--github", "--json", str(tmp_path / "report.json"), "--html", str(tmp_path / "page.html")]
    status = check(module, name, *options, at=f"--inputs {tmp_path / 'hidden.pt'}")
    assert status == (1 if name == "Off" else 2)
    written_files = [tmp_path / one for one in ("report.json", "page.html", "summary.md")]
    shown = "".join(capsys.readouterr()) + "".join(f.read_text() for f in written_files if f.exists())
    y = torch.tanh(x)
    for value in (*x.flatten().tolist(), *y.flatten().tolist(), float(x.mean()), float(x.norm()), float(y.mean())):
        assert f"{value:.4g}" not in shown
    assert "strides" not in shown


def test_a_seed_makes_other_inputs(module: str, tmp_path: Path) -> None:
    errors = []
    for seed in ("1", "1", "2"):
        check(module, "Tanh", "--seed", seed, "--json", str(tmp_path / "report.json"))
        errors.append(written(tmp_path)["functions"][0]["situations"][0]["quantities"][1]["error"])
    assert errors[0] == errors[1] != errors[2]


def test_the_skill_fits_in_a_page_of_150_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("---\nname: nbautograd\n")
    assert len(page.splitlines()) <= 150


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "status"),
    [(["Tanh"], 0), (["Off", "Nothing"], 1), ([], 2)],
    ids=["right", "wrong", "none"],
)
def test_the_script_of_the_action(module: str, names: list[str], status: int) -> None:
    lines = [f"  {module}:{one} --reference {module}:eager --cases {module}:cases" for one in names]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CHECKS": "\n".join(["# kernels", "", *lines])}
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    run = subprocess.run([ACTION / "gate"], env=environment, capture_output=True, text=True)
    assert run.returncode == status, run.stderr
    assert run.stdout.count("::group::") == len(names)
    assert ("::error file=gated.py" in run.stdout) is ("Off" in names)


def test_the_action_runs_the_script() -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    (step,) = action["runs"]["steps"]
    assert step["run"] == "$GITHUB_ACTION_PATH/gate"
    assert os.access(ACTION / "gate", os.X_OK)
    assert set(step["env"]) == {"CHECKS"}
