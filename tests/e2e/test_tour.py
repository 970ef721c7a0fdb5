"""The picture tour can be made again: every step of it works, and its page is what the script says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
DOCS = Path(__file__).parents[2] / "docs"


def test_every_picture_can_be_taken(page, lab, tmp_path):
    tour = runpy.run_path(str(DOCS / "make_tour.py"))
    tour["take_all"](lab, page, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in (DOCS / "tour").iterdir()}
    assert all(file.stat().st_size > 3000 for file in tmp_path.iterdir())
    assert (DOCS / "tour.md").read_text(encoding="utf-8") == tour["words"]()
    assert page.errors == []
