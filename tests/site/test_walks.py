"""The two walks through the code name files, classes and functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `([\w/.]+)` \| `([\w.]+)` \|", re.MULTILINE)
WALKS = {"from-cell-to-call": "nbautograd", "from-linear-to-fix": "nbautograd/core"}


def names(file: Path) -> set[str]:
    """The classes, functions, methods and constants of a file."""
    found = set[str]()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("walk", WALKS)
def test_each_step_of_a_walk_is_in_the_code(walk: str) -> None:
    steps = ROW.findall((ROOT / "docs" / "explanation" / f"{walk}.md").read_text(encoding="utf-8"))
    assert len(steps) > 15
    assert [step for step in steps if step[1] not in names(ROOT / WALKS[walk] / step[0])] == []
