"""A document: the small tree that a value is made into once, and that writers turn into text, HTML and JSON.

A builder (``views.builders``) says what there is to read of a value, in which order; ``to_text``, ``to_html`` and
``to_json`` say how it looks in a terminal, on a page that is stored, and in a live view (frontend/document.js).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nbautograd.core.checking.block import JacobianBlock
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.values import Value

Tone = Literal["right", "wrong", "cannot tell", "meant", "unchecked", "bug", "lint", "note"]


@dataclass(frozen=True)
class Chip:
    """A word on a coloured ground; its colour never says more than the word.

    Attributes:
        words: what it says.
        tone: which colour.
        plain: what text says instead; empty where the words beside it say it all.
    """

    words: str
    tone: Tone
    plain: str | None = None


@dataclass(frozen=True)
class Strong:
    """Words that stand out; their backticks become code, as those of every sentence do."""

    words: str


@dataclass(frozen=True)
class Code:
    """A name or a piece of source, as it is written."""

    words: str


@dataclass(frozen=True)
class Faint:
    """Words that step back behind those beside them."""

    words: str


@dataclass(frozen=True)
class Term:
    """Words that a page underlines with dots, and explains where the pointer rests on them; text shows the words.

    Attributes:
        words: the words.
        meaning: a sentence.
    """

    words: str
    meaning: str


@dataclass(frozen=True)
class Sentence:
    """Words in a cell whose backticks become code, as those of a paragraph do."""

    words: str


@dataclass(frozen=True)
class Lines:
    """Plain words, each on a line of its own; text writes them in one line."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Branch:
    """The line in a cell that leads to what stands inside the row of a call above; nothing at depth 0."""

    depth: int


@dataclass(frozen=True)
class Thumbnail:
    """A small heat map of a recorded value; only a page shows it, and a value of one number has none.

    Attributes:
        value: what it shows.
        most: what full colour stands for; None for a scale of its own.
        floor: the size up to which a number is drawn as nothing, such as the rounding of a difference.
    """

    value: Value
    most: float | None = None
    floor: float = 0.0

    @property
    def blank(self) -> bool:
        """True where there is nothing to see."""
        tensor = self.value.tensor
        return tensor is None or tensor.thumbnail is None or tensor.thumbnail.size < 2


@dataclass(frozen=True)
class Link:
    """A way to another part of the same live view or notebook, or to a page; a stored report shows the last two.

    Attributes:
        words: what it says.
        tab: the part, ``"jacobian"`` or ``"source"``; only in a live view is such a way seen.
        block: the block to select there: output and input.
        line: the line to select.
        place: name of the card in another output that it leads to.
        url: the page of a finding's code; the words are the code.
    """

    words: str
    tab: str = ""
    block: tuple[int, int] | None = None
    line: int | None = None
    place: str = ""
    url: str = ""


@dataclass(frozen=True)
class BlockName:
    """The name of a block of a Jacobian; in a live view a way to the block.

    Attributes:
        words: the name.
        block: output and input.
        tab: the part that shows the block; empty selects it where the name stands.
    """

    words: str
    block: tuple[int, int]
    tab: str = ""


Span = str | Chip | Strong | Code | Faint | Term | Sentence | Lines | Branch | Thumbnail | Link | BlockName
Cell = Span | tuple[Span, ...]  # in a cell plain words are taken as they are: what came from the user is no prose


@dataclass(frozen=True)
class Paragraph:
    """A sentence or two; backticks in plain words become code.

    Attributes:
        spans: what stands in it, one after the other with nothing between.
        look: ``"small"`` and ``"faint"`` step back, ``"head"`` begins a part.
    """

    spans: tuple[Span, ...]
    look: Literal["", "small", "faint", "head"] = ""


@dataclass(frozen=True)
class Table:
    """Rows and columns; a column with nothing in it under its heading is left out.

    Attributes:
        header: a cell per column; empty for a table without a head.
        rows: the cells; a row of one cell stands over all columns.
        caption: what the table shows; screen readers announce it, text leaves it out.
        right: the columns set flush right.
        wrap: False for cells that a page never breaks over lines; the table scrolls instead.
        cut: False for cells that text writes in full, however long.
    """

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    right: tuple[int, ...] = ()
    wrap: bool = True
    cut: bool = True

    def __post_init__(self) -> None:
        rows = [row for row in self.rows if len(row) > 1]
        width = max(map(len, rows), default=0)
        kept = [k for k in range(width) if any(k < len(row) and not _is_blank(row[k]) for row in rows)]
        if len(kept) == width:
            return

        def left(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
            return tuple(row[k] for k in kept if k < len(row)) if len(row) > 1 else row

        object.__setattr__(self, "right", tuple(kept.index(k) for k in self.right if k in kept))
        object.__setattr__(self, "header", left(self.header))
        object.__setattr__(self, "rows", tuple(map(left, self.rows)))


def _is_blank(cell: Cell) -> bool:
    """Return True for a cell with nothing to read or to see."""
    match cell:
        case tuple():
            return all(map(_is_blank, cell))
        case str():
            return not cell.strip()
        case Thumbnail():
            return cell.blank
        case Lines():
            return not any(cell.lines)
        case Branch():
            return not cell.depth
        case _:
            return not cell.words.strip()


@dataclass(frozen=True)
class Fold:
    """A part that can be folded; text has no folds and shows what ``in_text`` says.

    Attributes:
        title: its name.
        body: what is inside.
        beside: a few words beside the title.
        opened: whether it begins open.
        strong: True for a part of its own, False for a detail of the part around it.
        in_text: ``"all"`` unless nothing is inside, only the ``"title"``, only the ``"body"``, or ``"nothing"``.
        attribute: of a report, what shows this part whole; with one, a page that is too long may leave its body out.
    """

    title: Span
    body: Document
    beside: str = ""
    opened: bool = False
    strong: bool = True
    in_text: Literal["all", "title", "body", "nothing"] = "all"
    attribute: str = ""


@dataclass(frozen=True)
class Change:
    """Lines that go and lines that come instead.

    Attributes:
        before, after: source text.
        note: where, and whether it was tried.
        tried: True where it was, so that the lines may be copied.
        line: the first of them in its cell or file, from 1.
    """

    before: str
    after: str
    note: str = ""
    tried: bool = False
    line: int | None = None


@dataclass(frozen=True)
class Verbatim:
    """Text as it was printed, or written."""

    words: str


@dataclass(frozen=True)
class Item:
    """Blocks that belong together under what stands before them, such as one finding; text indents them."""

    body: Document


@dataclass(frozen=True)
class Card:
    """The answer: blocks beside a bar in the verdict's colour; links lead to it by the name of its place."""

    tone: Tone
    body: Document
    place: str = ""


@dataclass(frozen=True)
class Drawing:
    """The picture of a graph, under its name; text has none.

    Attributes:
        graph: what is drawn.
        title: its name, or empty.
        budget: characters that the stored picture may take.
    """

    graph: AutogradGraph
    title: str = ""
    budget: int = 24_000


@dataclass(frozen=True)
class Beside:
    """Documents beside each other where there is room, else below each other."""

    parts: tuple[Document, ...]


@dataclass(frozen=True)
class Heatmaps:
    """A block of a Jacobian by backward, by finite differences, and their difference; text leaves it out."""

    block: JacobianBlock


@dataclass(frozen=True)
class Series:
    """Documents one below the other, of which a stored page shows as many as it has room for.

    Attributes:
        parts: the documents, the most telling first.
        noun: how those that are left out are counted, as in ``counted``.
        left: how many more there are that are not among the parts.
    """

    parts: tuple[Document, ...]
    noun: str
    left: int = 0


@dataclass(frozen=True)
class PageOnly:
    """Blocks that text leaves out."""

    body: Document


Block = Paragraph | Table | Fold | Change | Verbatim | Item | Card | Drawing | Beside | Heatmaps | Series | PageOnly
Document = tuple[Block, ...]


def paragraph(*spans: Span, look: Literal["", "small", "faint", "head"] = "") -> Paragraph:
    """Return a paragraph of these spans with a space between them; empty words are left out."""
    there = [span for span in spans if span != ""]
    spaced: list[Span] = [part for span in there for part in (" ", span)]
    return Paragraph(tuple(spaced[1:]), look)


def sentences(several: Sequence[Any], look: Literal["", "small", "faint", "head"] = "") -> Document:
    """Return a paragraph for each sentence."""
    return tuple(Paragraph((str(sentence),), look) for sentence in several)
