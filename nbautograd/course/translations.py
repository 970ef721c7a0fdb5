"""The two languages of a source notebook: pairs of markdown cells, and translations of a text that changed since."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nbautograd.course.source import Cell, Source, SourceError, read, stamp
from nbautograd.messages import LANGUAGES

_MARKER = re.compile(r'^# %% \[markdown\].*\blang="zh".*$', re.MULTILINE)
_PAIR = re.compile(r'\bpair="([^"]*)"')


def languages(source: Source) -> tuple[str, ...]:
    """Return the languages that a source is written in: both, unless all its marked cells are in one."""
    marked = {cell.lang for cell in source.cells if cell.kind == "markdown" and cell.lang}
    return (marked.pop(),) if len(marked) == 1 else LANGUAGES


def pairs(source: Source) -> dict[str, dict[str, Cell]]:
    """Pair id -> language -> cell.

    Raises:
        SourceError: for a cell without a partner where the source has both languages, or two in the same language.
    """
    found: dict[str, dict[str, Cell]] = {}
    for cell in source.cells:
        if cell.kind == "markdown" and cell.lang:
            both = found.setdefault(str(cell.metadata.get("pair", "")), {})
            if cell.lang in both:
                raise SourceError("course.pair_twice", pair=cell.metadata.get("pair", ""), lang=cell.lang)
            both[cell.lang] = cell
    for pair, both in found.items():
        if set(both) != set(languages(source)):
            raise SourceError("course.pair_alone", pair=pair, lang=next(iter(both)))
    return found


def stale(source: Source) -> Iterator[Cell]:
    """Yield the Chinese cells that were made from another English text than the one there is now."""
    for both in pairs(source).values():
        if len(both) == len(LANGUAGES) and both["zh"].metadata.get("of") != stamp(both["en"].text):
            yield both["zh"]


def stamp_file(path: Path) -> int:
    """Write into each Chinese cell's marker which English text it was made from; returns how many changed."""
    found = {pair: stamp(both["en"].text) for pair, both in pairs(read(path)).items() if len(both) == len(LANGUAGES)}

    def stamped(marker: re.Match[str]) -> str:
        pair = _PAIR.search(marker[0])
        bare = re.sub(r'\s+of="[^"]*"', "", marker[0]).rstrip()
        return f'{bare} of="{found[pair[1]]}"' if pair is not None and pair[1] in found else marker[0]

    before = path.read_text(encoding="utf-8")
    after = _MARKER.sub(stamped, before)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return sum(a != b for a, b in zip(before.splitlines(), after.splitlines(), strict=True))
