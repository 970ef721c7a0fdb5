"""docs/explanation/from-cell-to-report.md is what the code does: a cell goes through its table in that order."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "nbautograd"
PAGE = (ROOT / "docs" / "explanation" / "from-cell-to-report.md").read_text(encoding="utf-8")
CELL = """%%autograd_function --inputs x
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.saved_tensors[0] * grad_output
"""


def steps() -> list[tuple[str, str]]:
    """Return the file and the function of each row of the table."""
    return re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", PAGE, re.MULTILINE)


def defined(file: str) -> set[str]:
    """Return the functions and classes of a file, those of classes with the class's name before them."""
    names = set()
    for node in ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return names


def missing(wanted: list[tuple[str, str]], calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the steps that do not come after the ones before them."""
    lost, place = [], 0
    for step in wanted:
        if step in calls[place:]:
            place = calls.index(step, place) + 1
        else:
            lost.append(step)
    return lost


def test_a_cell_goes_the_way_that_the_page_tells(notebook: Any) -> None:
    notebook("x = torch.ones(3, dtype=torch.float64, requires_grad=True)")
    wanted = [(file, function.rpartition(".")[2]) for file, function in steps()]
    paths = {str(PACKAGE / file): file for file, _ in wanted}
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        step = (paths.get(frame.f_code.co_filename, ""), frame.f_code.co_name)
        if event == "call" and step in wanted:
            calls.append(step)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        ran = notebook(CELL)
    finally:
        sys.setprofile(before)
    assert "backward is right" in ran.text.replace("`", "")
    assert len(wanted) > 20
    assert missing(wanted, calls) == []
    assert missing(wanted[::-1], calls) != []  # the order is told apart


def test_every_name_is_where_the_page_says() -> None:
    assert [(file, name) for file, name in steps() if name not in defined(file)] == []
    others = re.findall(r"`([\w.]+)` \(`([\w/]+\.py)`\)", PAGE)
    assert len(others) >= 3
    assert [(name, file) for name, file in others if name not in defined(file)] == []
    in_words = set(re.findall(r"`(show_\w+)`", PAGE))
    assert in_words <= defined("magics/output.py")
    files = re.findall(r"`([\w/]+/\w+\.py)`", PAGE)
    assert [file for file in files if not (PACKAGE / file).exists() and not (ROOT / file).exists()] == []
