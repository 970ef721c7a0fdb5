"""An error of ours in any part of the magics: the cell runs, its value is shown, and a sentence says what failed."""

from __future__ import annotations

from typing import Any

import pytest
from injected import broken
from notebook_shell import DOUBLE

from nbautograd.core import stumbles
from nbautograd.magics import lines, output, presenter, session

INPUTS = "-i (torch.ones(2, dtype=torch.float64, requires_grad=True),)"
CELL = f'%%autograd_function {INPUTS}\n{DOUBLE}\nprint("its own output")\n"its value"\n'

PARTS: list[tuple[Any, str]] = [
    (session.Session, "begin"),
    (session.Session, "_watch"),
    (session.Session, "_show"),
    (presenter, "run_inspection"),
    (presenter.CellPresenter, "_report"),
    (presenter, "read_inputs"),
    (output.Cards, "refresh"),
]
PRESENT = [(owner, name) for owner, name in PARTS if hasattr(owner, name)]


@pytest.mark.parametrize(("owner", "name"), PRESENT, ids=[name for _, name in PRESENT])
def test_a_cell_keeps_its_output(owner: Any, name: str, notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, broken("magics/injected.py"))
    ran = notebook(CELL)
    assert ran.error is None
    assert "its own output" in ran.stdout
    assert "its value" in ran.text
    assert "Traceback" not in ran.stdout + ran.stderr + ran.text
    assert "report-bug" in ran.text
    assert "renamed" in ran.text
    assert {one.where for one in stumbles.recent()} == {"magics/injected.py:2 broken"}
    stumbles.forget()


@pytest.mark.parametrize("ask", ["_gradcheck", "_jacobian", "_graph", "_calls", "_compare", "_audit", "_dispatches"])
def test_a_line_magic_that_fails_is_one_sentence(ask: str, notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    magic = {"_gradcheck": "%gradcheck", "_jacobian": "%jacobian"}.get(ask, f"%autograd{ask}")
    monkeypatch.setattr(lines, ask, broken("magics/injected.py"))
    ran = notebook(f"{magic} torch.sin(torch.ones(2))")
    assert "report-bug" in ran.stderr
    assert "renamed" in ran.stderr
    assert "Traceback" not in ran.stdout
    assert [one.part for one in stumbles.recent()] == [magic]
    stumbles.forget()
