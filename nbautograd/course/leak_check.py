"""A solution's own lines, searched for in all that goes to students: cells, comments, docstrings and other files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nbautograd.course.source import Source, solution_lines, stripped

LEAST = 12  # characters of a line that tell anything: `return x` is in every notebook
LONG = 30  # characters of a line that tells by itself: `grad_bias = grad_output.sum(0)` is in notebook 02 four times
_PROSE = re.compile(r'(?s)""".*?"""|#[^\n]*')  # docstrings and comments
# what every Function says, right or wrong
_COMMON = re.compile(
    r"def.*|super\(\).__init__\(\)|(\(?[\w,]+\)?=)?ctx\.(saved_tensors|(save|set|mark)_\w+\(.*\)|\w+=\w+)"
)


def leaks(source: Source, texts: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield where a long line of a solution is left, or half of its lines are in one place; of each the longest line.

    A line counts unless it is code of a skeleton or of a cell tagged ``shown``; comments and docstrings are no code.

    Args:
        source: the source notebook.
        texts: where -> text, of everything that goes out.

    Yields:
        The exercise, the line, and where it was found.
    """
    given = [stripped(cell.text, "en") for cell in source.cells if cell.is_answer or "shown" in cell.tags]
    shown = "\n".join(_plain(_PROSE.sub("", text)) for text in given)
    for cell in source.answers:
        lines = {_plain(line): line.strip() for line in solution_lines(cell)}
        telling = [code for code in lines if len(code) >= LEAST and code not in shown and not _COMMON.fullmatch(code)]
        for where, text in texts.items():
            left = [code for code in telling if code in _plain(text)]
            if 2 * len(left) >= len(telling) or any(len(code) >= LONG for code in left):
                yield from ((cell.exercise, lines[code], where) for code in sorted(left, key=len)[-1:])


def strings(content: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts inside a notebook or any other JSON data, with their places."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from strings(value, f"{where}/{key}")
    elif isinstance(content, (list, tuple)):
        for k, item in enumerate(content):
            yield from strings(item, f"{where}/{k}")
    elif isinstance(content, str):
        yield where, content


def _plain(text: str) -> str:
    """Return a text without white space and comment signs, so that no line break or indent hides a line."""
    return re.sub(r"[\s#]+", "", text).removeprefix("return")
