"""The faults of this folder: what finds them is what the page's table says, and nobody accuses their mended twins."""

from __future__ import annotations

import pytest
from fault_judges import COLUMNS, NAMES, PAGE, load, ours, row, told

TABLE = {
    cells[0]: cells
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and (cells := tuple(line.strip("| ").split(" | ")))[0] in NAMES
}


def test_the_page_has_a_row_for_each_file() -> None:
    assert sorted(TABLE) == NAMES
    assert len(NAMES) == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*NAMES[::5], *(pytest.param(n, marks=pytest.mark.nightly) for n in NAMES if n not in NAMES[::5])]
)
def test_what_is_found_is_what_the_page_says(name: str) -> None:
    fault = load(name)
    said = dict(zip(COLUMNS, TABLE[name], strict=True))
    assert told(ours(fault, True, False)) == said["sweep"].strip()
    assert (told(ours(fault, True, True)) if hasattr(fault, "cases") else "") == said["cases"].strip()
    assert told(ours(fault, False, hasattr(fault, "cases"))) == "no"


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_the_whole_row(name: str) -> None:
    assert row(name) == tuple(cell.strip() for cell in TABLE[name])
