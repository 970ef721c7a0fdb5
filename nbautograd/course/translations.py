"""The two languages of a source notebook: pairs of markdown cells, and translations of a text that changed since."""

from __future__ import annotations

from collections.abc import Iterator

from nbautograd.course.source import Source, SourceCell, SourceError, stamp
from nbautograd.messages import LANGUAGES


def languages(source: Source) -> tuple[str, ...]:
    """Return the languages that a source is written in: both, unless all its marked cells are in one."""
    marked = {cell.lang for cell in source.cells if cell.kind == "markdown" and cell.lang}
    return (marked.pop(),) if len(marked) == 1 else LANGUAGES


def pairs(source: Source) -> dict[str, dict[str, SourceCell]]:
    """Pair id -> language -> cell.

    Raises:
        SourceError: for a cell without a partner where the source has both languages, or two in the same language.
    """
    found: dict[str, dict[str, SourceCell]] = {}
    for cell in source.cells:
        if cell.kind == "markdown" and cell.lang:
            both = found.setdefault(str(cell.metadata.get("pair", "")), {})
            if cell.lang in both:
                raise SourceError("course.pair_alone", pair=cell.metadata.get("pair", ""), lang=cell.lang)
            both[cell.lang] = cell
    for pair, both in found.items():
        if set(both) != set(languages(source)):
            raise SourceError("course.pair_alone", pair=pair, lang=next(iter(both)))
    return found


def code_words(source: Source) -> dict[str, str]:
    """English words of the code cells (comments, what they print) -> the Chinese ones, the longest first.

    Raises:
        SourceError: for words that no code cell has, or a line without a translation.
    """
    code = "\n".join(cell.text for cell in source.cells if cell.kind == "code" and not cell.is_answer)
    lines = [line for cell in source.cells if cell.is_words for line in cell.text.splitlines()]
    words = dict(sorted((line.partition(" → ")[::2] for line in lines), key=lambda pair: -len(pair[0])))
    for english, chinese in words.items():
        if not chinese or english not in code:
            raise SourceError("course.words_unused", text=english)
    return words


def stale(source: Source) -> Iterator[tuple[SourceCell, str]]:
    """Yield the Chinese cells made from another English text than the one there is now, and the stamp of that."""
    for both in pairs(source).values():
        if len(both) == len(LANGUAGES) and both["zh"].metadata.get("of") != (now := stamp(both["en"].text)):
            yield both["zh"], now
