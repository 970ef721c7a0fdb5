"""The doctor sees what is wrong, each thing by itself."""

import json
import os
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from said import says

import nbautograd
from nbautograd import messages
from nbautograd.command import doctor as doctor_module
from nbautograd.command import main
from nbautograd.command.doctor import BrowserSide, Check, browser_side, doctor, installed, kernel_python, same_python


def test_all_is_well_here(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for name in ("python", "torch", "anywidget", "anywidget.js", "ipywidgets.js", "kernel", "recording", "dot"):
        assert re.search(rf"^[✓·] {re.escape(name)} ", said, re.MULTILINE), said
    assert said.endswith(messages.text("command.doctor.well") + "\n")


def test_one_ill_line_makes_the_answer_ill(monkeypatch, capsys):
    monkeypatch.setattr(doctor_module, "checks", lambda: iter([Check("a", "✓", "yes"), Check("b", "✗", "no")]))
    assert doctor() == 1
    assert capsys.readouterr().out.splitlines()[-1] == messages.text("command.doctor.ill")


def test_a_package_that_is_absent():
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    check = installed("anywidget", version_of=absent)
    assert check.mark == "✗"
    assert says(check.sentence, "command.doctor.missing", package="anywidget")


@pytest.mark.parametrize(("version", "mark"), [("0.9.1", "✗"), ("0.9.18", "✓"), ("0.11.0", "✓"), ("0.12.0", "✗")])
def test_versions_are_those_of_pyproject(version, mark):
    assert installed("anywidget", version_of=lambda name: version).mark == mark


@pytest.mark.parametrize(
    ("where", "found", "check", "mark", "said"),
    [
        ("torch.version.cuda", "13.0", doctor_module._torch, "✓", "cuda"),
        ("torch.__version__", "99.0", doctor_module._torch, "✓", "torch_untested"),
        ("nbautograd.command.doctor.kernel_python", lambda: None, doctor_module._kernel, "✗", "kernel_missing"),
        ("nbautograd.command.doctor.kernel_python", lambda: "/a/python", doctor_module._kernel, "✗", "kernel_other"),
    ],
)
def test_what_is_odd_here_is_named(where, found, check, mark, said, monkeypatch):
    monkeypatch.setattr(where, found)
    assert check().mark == mark
    assert says(check().sentence, f"command.doctor.{said}")


def extension(folder: Path, name: str, version: str) -> str:
    (folder / name).mkdir(parents=True)
    (folder / name / "package.json").write_text(json.dumps({"version": version}))
    return str(folder)


def test_the_browser_half(tmp_path):
    empty, first, second = (tmp_path / name for name in "abc")
    folders = [
        str(empty),
        extension(first, "anywidget", "0.9.3"),
        extension(second, "anywidget", "0.11.0"),
        extension(second, "@jupyter-widgets/jupyterlab-manager", "5.0.15"),
    ]
    old = browser_side("anywidget", folders)
    assert old == BrowserSide("0.9.3", first / "anywidget")
    assert not old.fits("0.11.0")
    assert old.fits("0.9.21")
    assert browser_side("ipywidgets", folders).fits("8.1.9")
    assert not browser_side("ipywidgets", folders).fits("7.8.1")
    assert browser_side("anywidget", [str(empty)]) is None


def test_a_browser_half_of_another_version_is_said(monkeypatch):
    stale = BrowserSide("0.1.0", Path("somewhere"))
    monkeypatch.setattr(doctor_module, "browser_side", lambda package: stale)
    check = doctor_module._browser_side("anywidget")
    assert check.mark == "✗"
    assert says(check.sentence, "command.doctor.browser_side_differs", found="0.1.0", folder="somewhere")
    monkeypatch.setattr(doctor_module, "browser_side", lambda package: None)
    assert says(doctor_module._browser_side("anywidget").sentence, "command.doctor.browser_side_missing")


@pytest.mark.parametrize(
    ("found", "editable", "mark", "code"),
    [
        (nbautograd.__version__, False, "✓", "lab_extension"),
        (None, True, "✓", "lab_extension_laid_down"),
        (None, False, "·", "lab_extension_missing"),
        ("0.0.1", True, "✗", "browser_side_differs"),
    ],
)
def test_our_extension_of_jupyterlab(found, editable, mark, code, tmp_path, monkeypatch):
    """An editable install lays no data files down: the doctor does, and looks as JupyterLab does."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(doctor_module, "is_editable", lambda: editable)
    there = None if found is None else BrowserSide(found, Path("somewhere"))
    monkeypatch.setattr(doctor_module, "browser_side", lambda package: there)
    check = doctor_module._lab_extension()
    assert check.mark == mark
    assert says(check.sentence, f"command.doctor.{code}")
    laid = browser_side("nbautograd", [str(tmp_path / "share" / "jupyter" / "labextensions")])
    assert (laid is not None) == (code == "lab_extension_laid_down")
    assert laid is None or laid.version == nbautograd.__version__


def test_the_kernel_here_is_this_python():
    assert same_python(kernel_python())
    beside = Path(sys.executable).parent / "python3"
    assert not beside.exists() or same_python(str(beside))
    assert not same_python(os.path.realpath(sys.executable)) or sys.prefix == sys.base_prefix


def test_a_torch_that_calls_functions_in_another_way_is_said_to_record_nothing(monkeypatch):
    monkeypatch.setattr("nbautograd.core.recording.spy.install", lambda *_: [])
    check = next(one for one in doctor_module.checks() if one.name == "recording")
    assert check.mark == "✗"
