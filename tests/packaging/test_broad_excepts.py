"""Nothing swallows errors of our own: a broad ``except`` hands them on, keeps them, or says why it stays silent."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "nbautograd"
BROAD = {"Exception", "BaseException"}
KEEPING = {"record", "is_ours", "note", "kept", "failed", "show_stumble", "_stumbled", "_reason_of"}  # call ``record``
SILENT = "# silent: "  # before the reason


def names(node: ast.AST | None) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if node is not None else BROAD


def called(node: ast.AST) -> set[str]:
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}


def swallowing(source: str) -> Iterator[int]:
    """Yield the lines of broad handlers that neither raise, nor keep what is ours, nor give a reason."""
    rows = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler) and names(node.type) & BROAD:
            raises = any(isinstance(n, ast.Raise) for n in ast.walk(node))
            fine = raises or called(node) & KEEPING
        elif isinstance(node, ast.Call) and called(ast.Expr(node)) & {"suppress"}:
            fine = (
                not isinstance(node.func, ast.Attribute | ast.Name) or not set().union(*map(names, node.args)) & BROAD
            )
        else:
            continue
        if not fine and SILENT not in rows[node.lineno - 1]:
            yield node.lineno


@pytest.mark.parametrize(
    ("handler", "lines"),
    [
        ("except Exception:\n    pass", [3]),
        ("except:\n    pass", [3]),
        ("except (ValueError, BaseException):\n    x = 1", [3]),
        ("except ValueError:\n    pass", []),
        ("except Exception as error:\n    record(error)", []),
        ("except Exception as error:\n    stumbles.record(error, 'part')", []),
        ("except Exception:\n    if odd:\n        raise", []),
        ("except Exception:  # silent: the user's repr\n    pass", []),
    ],
)
def test_the_guard_tells_them_apart(handler: str, lines: list[int]) -> None:
    assert list(swallowing(f"try:\n    f()\n{handler}\n")) == lines


def test_the_guard_sees_suppress() -> None:
    assert list(swallowing("with suppress(Exception):\n    f()\n")) == [1]
    assert list(swallowing("with contextlib.suppress(ValueError):\n    f()\n")) == []


def test_no_broad_except_swallows_what_is_ours() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if "course" not in file.relative_to(PACKAGE).parts]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    broad = {file: text for file, text in texts.items() if re.search(r"Exception\b|except:", text)}
    found = [f"{file.relative_to(PACKAGE)}:{line}" for file, text in broad.items() for line in swallowing(text)]
    assert found == []
