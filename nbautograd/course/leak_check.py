"""Find lines of a solution that are left anywhere in what goes to students."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nbautograd.course.source import Source, solution_lines

LEAST = 12  # characters of a line that tells anything
# what every Function says, right or wrong
COMMON = re.compile(
    r"(@|def |class |#|pass$|return$|else:|try:|import |from )|return \w+$"
    r"|([\w, ]+= )?ctx\.saved_tensors$|\(?\w+,?\)? = (ctx\.saved_tensors|inputs?|output)$"
    r"|ctx\.(save_for_backward|save_for_forward|set_materialize_grads|mark_dirty|mark_non_differentiable)\("
)


def secret_lines(source: Source) -> dict[str, str]:
    """Return the lines of solutions that tell something: normalised line -> exercise.

    A line that the skeleton of the same exercise shows as well tells nothing.
    """
    found: dict[str, str] = {}
    for cell in source.answers:
        hidden = list(solution_lines(cell))
        shown = set(map(normalise_whitespace, _outside(cell.text, hidden)))
        for line in map(normalise_whitespace, hidden):
            if len(line) >= LEAST and not COMMON.match(line) and line not in shown:
                found.setdefault(line, cell.exercise)
    return found


def leaks(lines: Mapping[str, str], texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield where secret lines are left.

    Args:
        lines: what ``secret_lines`` gave.
        texts: (where, text) of everything that goes out.

    Yields:
        Line, exercise, and where it was found.
    """
    for where, text in texts:
        whole = normalise_whitespace(text)
        for line, exercise in lines.items():
            if line in whole:
                yield line, exercise, where


def strings(content: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """All texts inside a notebook or any other JSON data, with their places; base64 is opened."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield f"{where}/{key}", str(key)
            yield from strings(value, f"{where}/{key}")
    elif isinstance(content, (list, tuple)):
        if content and all(isinstance(item, str) for item in content):
            yield where, "".join(content)
        else:
            for k, item in enumerate(content):
                yield from strings(item, f"{where}/{k}")
    elif isinstance(content, str):
        yield where, content
        yield from ((where, opened) for opened in _decoded_base64(content))


def normalise_whitespace(text: str) -> str:
    """A text with every run of white space as one space."""
    return re.sub(r"\s+", " ", text).strip()


def _outside(text: str, hidden: list[str]) -> list[str]:
    left = list(hidden)
    lines = []
    for line in text.splitlines():
        if line in left:
            left.remove(line)
        else:
            lines.append(line)
    return lines


def _decoded_base64(text: str) -> Iterator[str]:
    bare = "".join(text.split())
    if len(bare) >= LEAST and len(bare) % 4 == 0:
        try:
            yield base64.b64decode(bare, validate=True).decode("utf-8", "ignore")
        except (binascii.Error, ValueError):
            return
