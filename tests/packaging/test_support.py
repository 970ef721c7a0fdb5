"""Helpers of the tests are imported by their names, from one folder; the guard that says so can trip."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
AROUND = re.compile(r"spec_from_file_location|sys\.path(\.insert|\[|\s*=)")


def paths_around(*folders: Path) -> list[str]:
    """Return the files that look for modules by a way of their own."""
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return [
        file.name
        for file in files
        if AROUND.search(file.read_text(encoding="utf-8")) and file.name != Path(__file__).name
    ]


def test_tests_and_scripts_import_helpers_by_name():
    assert paths_around(ROOT / "tests", ROOT / "docs") == []


def test_every_helper_is_in_the_folder_for_them():
    files = [f for f in ROOT.glob("tests/**/*.py") if f.parent.name != "real_faults"]  # programs that are judged
    others = [f.name for f in files if not f.name.startswith(("test_", "conftest"))]
    assert sorted(others) == sorted(f.name for f in ROOT.glob("tests/support/*.py"))


def test_the_guard_trips(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nsys.path.insert(0, 'elsewhere')\n")
    assert paths_around(tmp_path) == ["script.py"]
