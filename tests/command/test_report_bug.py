"""What to send when nbautograd itself failed: versions, the place, a script that runs, none of the user's values."""

from __future__ import annotations

import json
import re

import pytest
import torch
from fn import Fn
from injected import broken

import nbautograd
from nbautograd.command import main
from nbautograd.core import stumbles
from nbautograd.core.checking.probes.run_probes import PROBES

SECRET = 271.828182


Square = Fn.of("Square", "x: save(x); return x * x", "g: (x,) = saved; return 2 * x * g")


@pytest.fixture
def report(monkeypatch):
    monkeypatch.setitem(PROBES, "layout", broken(error=f"ValueError('{SECRET}')"))
    x = torch.full((2, 3), SECRET, dtype=torch.float64, requires_grad=True)
    yield nbautograd.gradcheck(Square, (x,))
    stumbles.forget()


def test_what_failed_in_this_process_is_named_with_versions_and_without_values(report, capsys):
    assert report.verdict == "cannot tell"
    assert main(["report-bug"]) == 0
    said = capsys.readouterr().out
    assert f"nbautograd {nbautograd.__version__}" in said
    assert f"torch {torch.__version__.partition('+')[0]}" in said
    assert "`layout`: ValueError (core/injected.py:2, `broken`)" in said
    assert str(SECRET) not in said


def test_the_json_of_a_report_gives_a_script_that_runs(report, capsys, tmp_path):
    stumbles.forget()
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report.to_dict()))
    assert main(["report-bug", str(file)]) == 0
    said = capsys.readouterr().out
    assert "`layout`: ValueError (core/injected.py:2, `broken`)" in said
    assert str(SECRET) not in said
    script = re.search(r"```python\n(.*?)\n```", said, re.DOTALL)[1]
    assert "torch.randn((2, 3)" in script
    printed = []
    exec(script, {"Square": Square, "print": printed.append})
    assert printed[0].function == "Square"
    stumbles.forget()


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, b"\xff\x00"])
def test_a_file_that_is_no_json_is_one_sentence(content, capsys, tmp_path):
    file = tmp_path / "report.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["report-bug", str(file)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_json_of_something_else_names_no_failure(capsys, tmp_path):
    file = tmp_path / "other.json"
    file.write_text('{"code": "stumbled", "params": 3, "blocks": [{"type": "GradcheckReport", "blocks": {}}]}')
    assert main(["report-bug", str(file)]) == 0
    assert "`layout`" not in capsys.readouterr().out
