"""A class name is used once in the package: a reader who searches for one finds one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "nbautograd"


def classes_of_one_name(root: Path) -> dict[str, list[str]]:
    """The names of classes that two modules of a package define, each with its files."""
    named = defaultdict[str, list[str]](list)
    for file in sorted(root.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                named[node.name].append(file.relative_to(root).as_posix())
    return {name: files for name, files in named.items() if len(files) > 1}


def test_a_class_name_is_used_once_in_the_package() -> None:
    assert classes_of_one_name(PACKAGE) == {}


def test_a_second_class_of_one_name_is_seen(tmp_path) -> None:
    for file in ("a.py", "b.py"):
        (tmp_path / file).write_text("class Place:\n    pass\n", encoding="utf-8")
    assert classes_of_one_name(tmp_path) == {"Place": ["a.py", "b.py"]}
