"""Parts: a box with the chips at its sides, and the link between two boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nbautograd.views.layout.contents import Content
from nbautograd.views.layout.text import text_width

CHIP_GAP, ARROW = 7, 26


class Chip(NamedTuple):
    """A small box at the side of another, with its own short edge.

    Attributes:
        key, content, nodes: as of a box.
        edges: the edges that the short edge stands for.
        label, style: of the short edge.
    """

    key: str
    content: Content
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    label: str
    style: str


@dataclass(slots=True)
class Piece:
    """A box with the chips at its sides; what the layers are made of.

    Attributes:
        key, content, nodes, fan_in, freed: as of a box.
        rights: chips that gradients go to, at the right.
        lefts: stubs that gradients come from, at the left.
    """

    key: str
    content: Content
    nodes: tuple[int, ...]
    fan_in: int = 0
    freed: bool = False
    rights: list[Chip] = field(default_factory=list)
    lefts: list[Chip] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Return the distance from the middle of the box to the left end of the piece."""
        return (self.content.width + 1) // 2 + side_width(self.lefts)

    @property
    def right(self) -> int:
        """Return the distance from the middle of the box to the right end of the piece."""
        return (self.content.width + 1) // 2 + side_width(self.rights)

    @property
    def height(self) -> int:
        """Height of the box or of the higher of the stacks beside it."""
        return max(self.content.height, stack_height(self.rights), stack_height(self.lefts))


def arrow_length(chips: Sequence[Chip]) -> int:
    """Return the length of the short edges of a stack: room for the longest label, beside the outer bends."""
    bends = 10 if len(chips) > 2 else 0
    return max(ARROW, max((text_width(c.label, "label") for c in chips), default=0) + 16) + bends


def side_width(chips: Sequence[Chip]) -> int:
    """Return the width of a stack of chips with its short edges."""
    return arrow_length(chips) + max(c.content.width for c in chips) if chips else 0


def stack_height(chips: Sequence[Chip]) -> int:
    """Return the height of a stack of chips."""
    return sum(c.content.height + CHIP_GAP for c in chips) - CHIP_GAP if chips else 0


class Link(NamedTuple):
    """An edge between two pieces, by their positions.

    Attributes:
        source, target: positions of the pieces.
        edges: positions in ``graph.edges``; empty for the arrow into a root.
        label, style: as of a path.
    """

    source: int
    target: int
    edges: tuple[int, ...]
    label: str
    style: str
