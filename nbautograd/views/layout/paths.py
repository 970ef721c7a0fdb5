"""Paths: y of the ranks, the curves of the edges, the chips beside the boxes, and where labels go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nbautograd.views.layout import Box, Path
from nbautograd.views.layout.clusters import (
    CHIP_GAP,
    Cluster,
    ClusterChip,
    ClusterLink,
    Clusters,
    arrow_length,
    stack_height,
)
from nbautograd.views.layout.layers import GUTTER, LANES, Stack, columns
from nbautograd.views.layout.text import text_width

RANK_GAP, WIDEST_GAP = 34, 76  # free height between ranks; more where edges run far to the side
LABEL = 11  # height of a label
BEND = 15  # within how many px an edge to a chip finds its height
BULGE, FARTHEST = 14, 24  # how far edges between the same two boxes bend apart, and the outermost of many at most

TURN = 12  # between the lanes of edges that lead to the next column

Point = tuple[int, int]


class Frame:
    """Positions of the ranks and the vertices.

    Attributes:
        stack: the layers.
        keys: of the clusters.
        x: of every vertex's port.
        top, bottom: y of the upper and lower border of each piece's box.
        tops, bottoms: y of the upper and lower border of each rank.
        right, height: where the last box ends.
        column: of each rank.
        columns: as placed; see ``columns``.
        lanes: by rank, the vertices whose edges have turned over to the next column.
    """

    def __init__(self, clusters: Clusters, stack: Stack, x: list[int], margin: int, wide: int = 0) -> None:
        self.stack = stack
        self.keys = [cluster.key for cluster in clusters.clusters]
        shift = margin - min(map(int.__sub__, x, stack.left), default=0)
        self.x = [v + shift for v in x]
        self.right = max(map(int.__add__, self.x, stack.right), default=0)
        heights = [cluster.height for cluster in clusters.clusters]
        tallest = [0] * len(stack.layers.layers)
        for rank, height in zip(stack.rank, heights, strict=False):
            if height > tallest[rank]:
                tallest[rank] = height
        self.tops: list[int] = []
        self.bottoms: list[int] = []
        y = margin
        for height, gap in zip(tallest, self._gaps(), strict=True):
            self.tops.append(y)
            self.bottoms.append(y + height)
            y += height + gap
        self.height = self.bottoms[-1] if self.bottoms else margin
        self.lanes: dict[int, list[int]] = {}
        self.column = [0] * len(self.tops)
        self.columns = columns(stack, self.x, self.tops, self.bottoms, wide) if wide else []
        if len(self.columns) > 1:
            self._set_side_by_side(margin)
        own = [cluster.content.height for cluster in clusters.clusters]
        self.top = [self.tops[r] + (h - o) // 2 for r, h, o in zip(stack.rank, heights, own, strict=False)]
        self.bottom = [y + o for y, o in zip(self.top, own, strict=True)]

    def _set_side_by_side(self, margin: int) -> None:
        down = self.stack.layers.down
        turning = [self.stack.layers.layers[column.last] for column in self.columns[:-1]]
        lanes = min(LANES, max(sum(len(down[v]) for v in layer) for layer in turning))
        top, right = margin + TURN * lanes, margin
        for number, column in enumerate(self.columns):
            lower, aside = top - self.tops[column.first], right - column.left
            for rank in range(column.first, column.last + 1):
                self.column[rank] = number
                self.tops[rank] += lower
                self.bottoms[rank] += lower
                for v in self.stack.layers.layers[rank]:
                    self.x[v] += aside
            right += column.right - column.left + GUTTER
            self.columns[number] = column._replace(left=column.left + aside, right=column.right + aside)
        self.right = right - GUTTER
        self.height = max(self.bottoms) + TURN * lanes + TURN // 2

    def _gaps(self) -> list[int]:
        gaps = []
        x, down = self.x, self.stack.layers.down
        for layer in self.stack.layers.layers:
            far = max([abs(x[v] - x[w]) for v in layer for w in down[v]], default=0)
            gaps.append(min(WIDEST_GAP, RANK_GAP + far // 12))
        return gaps


def link_paths(links: Sequence[ClusterLink], chains: Sequence[Sequence[int]], frame: Frame) -> list[Path]:
    """Return the edges between the layers, each label where no other one is; without room a label is left out."""
    taken: dict[int, list[tuple[int, int, int]]] = {}
    twins = Counter([(link.source, link.target) for link, chain in zip(links, chains, strict=True) if not chain])
    drawn: Counter[tuple[int, int]] = Counter()
    paths, keys = [], frame.keys
    for link, chain in zip(links, chains, strict=True):
        points = _course(link, chain, frame)
        ends = link.source, link.target
        if not chain and twins[ends] > 1:
            step = min(BULGE, FARTHEST / (twins[ends] - 1))
            _bulge(points, int(step * (2 * drawn[ends] - twins[ends] + 1)))
            drawn[ends] += 1
        spot = None
        if link.label:
            width = text_width(link.label, "label")
            spots = _spots(points, width, _height(link, frame))
            spot = _free_spot(spots, width, taken.setdefault(points[0][1], []))
        paths.append(_path((keys[link.source], keys[link.target]), link, tuple(points), spot))
    return paths


def _bulge(points: list[Point], side: int) -> None:
    """Bend one of several edges between the same two boxes away from the others, by so many px."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    third = (y1 - y0) // 3
    points[1:] = [(x0 + side, y0 + third), (x1 + side, y1 - third), (x1, y1)]


def _height(link: ClusterLink, frame: Frame) -> int:
    """Find the height along a straight edge at which its label is clear of others: 1 low, -1 high, 0 in the middle."""
    layers = frame.stack.layers
    return (len(layers.down[link.source]) > 1) - (len(layers.up[link.target]) > 1)


def _course(link: ClusterLink, chain: Sequence[int], frame: Frame) -> list[Point]:
    """Return the curve of one link, through the points that it passes."""
    ranks, x, y = frame.stack.rank, frame.x[link.source], frame.bottom[link.source]
    wraps = frame.column and frame.column[ranks[link.source]] != frame.column[ranks[link.target]]
    if not chain and not wraps and x == frame.x[link.target]:  # straight, as most are
        end = (x, frame.top[link.target])
        return [(x, y), (x, y), end, end]
    points: list[Point] = [(x, y)]
    _down(points, frame.bottoms[ranks[link.source]])
    above = link.source
    for v in (*chain, link.target):
        end = frame.x[v], frame.tops[ranks[v]]
        if frame.column[ranks[above]] == frame.column[ranks[v]]:
            _curve(points, end)
        else:
            _turn_over(points, end, frame, ranks[above], above)
        _down(points, frame.bottoms[ranks[v]] if v != link.target else frame.top[v])
        above = v
    return points


def _turn_over(points: list[Point], end: Point, frame: Frame, rank: int, above: int) -> None:
    """Go from the bottom of a column to the top of the next one, each edge in its own lane."""
    ahead = frame.lanes.setdefault(rank, [])
    ahead.append(above)
    lane = min(len(ahead), LANES) * TURN - TURN // 2
    low = frame.bottoms[rank] + lane + TURN // 2
    high = end[1] - lane - TURN // 2 + 1
    aside = frame.columns[frame.column[rank]].right + GUTTER // 2 + lane
    for corner in ((points[-1][0], low), (aside, low), (aside, high), (end[0], high), end):
        points += [points[-1], corner, corner]


def _down(points: list[Point], y: int) -> None:
    """Go straight down."""
    x, above = points[-1]
    if y == above:
        return
    if len(points) > 3 and points[-4][0] == points[-3][0] == x:  # lengthen a straight piece
        points[-2:] = [(x, y), (x, y)]
        points[-3] = (x, points[-4][1])
    else:
        points += [(x, above), (x, y), (x, y)]


def _curve(points: list[Point], end: Point) -> None:
    """Go to a point of the next rank, leaving and arriving upright."""
    x, y = points[-1]
    if x == end[0]:
        _down(points, end[1])
        return
    middle = (y + end[1]) // 2
    points += [(x, middle), (end[0], middle), end]


def _path(
    keys: tuple[str, str], carried: ClusterLink | ClusterChip, points: tuple[Point, ...], spot: Point | None
) -> Path:
    """Return a path, its label at a spot; without a spot it has none."""
    label, label_x, label_y = (carried.label, *spot) if spot else ("", 0, 0)
    return Path(*keys, carried.edges, points, label, label_x, label_y, carried.style)


def chip_boxes(cluster: Cluster, box: Box) -> tuple[list[Box], list[Path]]:
    """Return the chips beside a box, with their short edges."""
    boxes: list[Box] = []
    paths: list[Path] = []
    for chips, rightwards in ((cluster.rights, True), (cluster.lefts, False)):
        y = box.y + (box.height - stack_height(chips)) // 2
        arrow = arrow_length(chips)
        for chip in chips:
            content = chip.content
            x = box.x + box.width + arrow if rightwards else box.x - arrow - content.width
            size = content.width, content.height
            boxes.append(Box(chip.key, content.kind, chip.nodes, x, y, *size, content.lines, content.title))
            paths.append(_short(chip, boxes[-1], box, rightwards))
            y += content.height + CHIP_GAP
    return boxes, paths


def _short(chip: ClusterChip, small: Box, box: Box, rightwards: bool) -> Path:
    """Return the short edge between a box and a chip, its label at the chip's end, on the side without the bend."""
    y = small.y + small.height // 2
    border = min(max(y, box.y + 6), box.y + box.height - 6)
    if rightwards:
        start, end, keys = (box.x + box.width, border), (small.x, y), (box.key, small.key)
        label_x = small.x - text_width(chip.label, "label") - 9
    else:
        start, end, keys = (small.x + small.width, y), (box.x, border), (small.key, box.key)
        label_x = small.x + small.width + 4
    bend = BEND if rightwards else (end[0] - start[0]) // 2
    points = (start, (start[0] + bend, start[1]), (start[0] + bend // 3, end[1]), end)
    return _path(keys, chip, points, (label_x, y - 5 if y <= border else y + LABEL + 1))


def _free_spot(spots: list[Point], width: int, taken: list[tuple[int, int, int]]) -> Point | None:
    for x, y in spots:
        if not taken or all(x + width < a or b < x or abs(y - c) >= LABEL for a, b, c in taken):
            taken.append((x, x + width, y))
            return x, y
    return None


def _spots(points: list[Point], width: int, height: int) -> list[Point]:
    """Return places beside the first bent piece, or beside the straight line: right of it first, then left."""
    start, end = points[0], points[-1]
    for k in range(0, len(points) - 1, 3) if len(points) > 4 else ():
        if points[k][0] != points[k + 3][0]:
            start, end = points[k], points[k + 3]
            break
    (x0, y0), (x1, y1) = start, end
    if x0 == x1:
        away = (points[1][0] - x0) * 3 // 4  # of a bulge
        y = (
            y1 - 9 if height > 0 else y0 + 12 if height < 0 else y0 + 15
        )  # above the frame of a module that begins there
        right, left = (x0 + away + 5, y), (x0 + away - 5 - width, y)
        return [left, right] if away < 0 else [right, left]
    middle = (x0 + x1) // 2
    near = x1 - (x1 - x0) // 8
    lean = -5 if y0 == y1 else -2 if x1 > x0 else LABEL
    return [
        (middle + 6, (y0 + y1) // 2 + lean),
        (near + 6 if x1 > x0 else near - width - 6, y1 - 8),
        (middle - width - 6, (y0 + y1) // 2 + LABEL - 2 - lean),
    ]
