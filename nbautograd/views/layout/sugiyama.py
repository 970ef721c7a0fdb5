"""Ranks, order and places of the vertices of a layered drawing, after K. Sugiyama and others (1981), the loss on top.

Ranks: longest path from the top, then every vertex is pulled down towards what it feeds where that makes its edges no
longer. Order: barycentre sweeps, then swaps of neighbours; all is counted against a budget of work, so that no graph
takes for ever, and the best order met is kept. Places, after U. Brandes and B. Koepf, "Fast and Simple Horizontal
Coordinate Assignment" (2001): vertices are chained with their median neighbours into vertical blocks, in four ways
(towards the top or the bottom, leaning left or right), and of the four x the mean of the middle two is taken. Two more
ways first chain the outermost vertices of the layers, which keeps long ladders such as an unrolled RNN upright. Blocks
are packed by longest path, here without recursion.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

SWEEPS = 12
LARGE = 1500  # with more vertices the two ways towards the bottom are left out
SPRAWL = 1.3  # how much wider than the narrowest a way may be and still count

Links = Sequence[Sequence[int]]
Medians = list[tuple[int, ...]]


def ranks(below: Links) -> list[int]:
    """Rank every vertex of a DAG: an edge always leads to a higher rank.

    Args:
        below: for each vertex the vertices that its edges lead to.

    Returns:
        The rank of each vertex, 0 on top.
    """
    above = [0] * len(below)
    for targets in below:
        for target in targets:
            above[target] += 1
    order = _topological(below, above)
    rank = [0] * len(below)
    for v in order:
        under = rank[v] + 1
        for target in below[v]:
            if rank[target] < under:
                rank[target] = under
    _tighten(below, above, order, rank)
    places = {r: i for i, r in enumerate(sorted(set(rank)))}
    return [places[r] for r in rank]  # without gaps, from 0


def _topological(below: Links, above: Sequence[int]) -> list[int]:
    waiting = list(above)
    order = [v for v, count in enumerate(waiting) if count == 0]
    for v in order:  # grows while it is read
        for target in below[v]:
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    return order


def _tighten(below: Links, above: Sequence[int], order: Sequence[int], rank: list[int]) -> None:
    for v in reversed(order):
        targets = below[v]
        if targets and len(targets) >= above[v]:
            lowest = min([rank[target] for target in targets]) - 1
            if lowest > rank[v]:
                rank[v] = lowest


class Layers:
    """Vertices in layers, with their neighbours in the layers above and below.

    Attributes:
        layers: vertices of each layer, from left to right.
        up, down: for each vertex its neighbours in the layer above and in the layer below.
        position: each vertex's place in its layer.
    """

    def __init__(self, layers: list[list[int]], up: list[list[int]], down: list[list[int]]) -> None:
        self.layers = layers
        self.up = up
        self.down = down
        self.position = [0] * len(up)
        for layer in layers:
            self.number(layer)

    def number(self, layer: list[int]) -> None:
        """Write down the places of a layer's vertices."""
        for place, v in enumerate(layer):
            self.position[v] = place

    def crossings(self, i: int) -> int:
        """Return the crossings between layer ``i`` and the one below it."""
        position = self.position
        seen: list[int] = []
        count = 0
        for v in self.layers[i]:
            ends = sorted([position[w] for w in self.down[v]])
            for end in ends:
                count += len(seen) - bisect_right(seen, end)
            for end in ends:
                insort(seen, end)
        return count


def order(layers: Layers, budget: int) -> int:
    """Reorder the layers in place.

    Args:
        layers: their order at the start matters: vertices found later by a depth-first walk should stand further right.
        budget: about how many neighbours may be looked at.

    Returns:
        The number of crossings left.
    """
    busy = [i for i in range(len(layers.layers) - 1) if len(layers.layers[i]) > 1 or len(layers.layers[i + 1]) > 1]
    counts = {i: layers.crossings(i) for i in busy}
    best, kept = sum(counts.values()), [list(layer) for layer in layers.layers]
    work = sum(len(layers.down[v]) + 1 for layer in layers.layers for v in layer) or 1
    for sweep in range(SWEEPS):
        if best == 0 or budget < work:
            break
        budget -= 3 * work
        _sweep(layers, downwards=sweep % 2 == 0)
        budget -= _transpose(layers, budget)
        now = sum(layers.crossings(i) for i in busy)
        if now < best:
            best, kept = now, [list(layer) for layer in layers.layers]
    for layer, best_layer in zip(layers.layers, kept, strict=True):
        layer[:] = best_layer
        layers.number(layer)
    return best


def _sweep(layers: Layers, downwards: bool) -> None:
    """Make one pass of barycentres, each layer sorted by the mean place of its neighbours in the one before."""
    neighbours = layers.up if downwards else layers.down
    position = layers.position
    for layer in layers.layers if downwards else reversed(layers.layers):
        if len(layer) < 2:
            continue
        means = {}
        for v in layer:
            near = neighbours[v]
            means[v] = sum([position[w] for w in near]) / len(near) if near else position[v]
        layer.sort(key=means.__getitem__)
        layers.number(layer)


def _transpose(layers: Layers, budget: int) -> int:
    """Swap neighbours wherever that saves a crossing, until it saves no more or the budget is spent."""
    spent = 0
    improved = True
    while improved and spent < budget:
        improved = False
        for layer in layers.layers:
            for place in range(len(layer) - 1):
                v, w = layer[place], layer[place + 1]
                spent += len(layers.up[v]) + len(layers.up[w]) + len(layers.down[v]) + len(layers.down[w])
                if _gain(layers, v, w) > 0:
                    layer[place], layer[place + 1] = w, v
                    layers.position[v], layers.position[w] = place + 1, place
                    improved = True
    return spent


def _gain(layers: Layers, v: int, w: int) -> int:
    """Count how many crossings fewer there are when ``v`` and its right neighbour ``w`` change places."""
    gain = 0
    for neighbours in (layers.up, layers.down):
        left = [layers.position[x] for x in neighbours[v]]
        right = [layers.position[x] for x in neighbours[w]]
        for a in left:
            for b in right:
                gain += (a > b) - (a < b)
    return gain


def place(layers: Layers, left: Sequence[int], right: Sequence[int], dummy: Sequence[bool], gap: int) -> list[int]:
    """Compute x of every vertex's port.

    Args:
        layers: vertices in order.
        left, right: how far each vertex reaches to the left and to the right of its port.
        dummy: True for the vertices that are only a point of a long edge; those chains are kept straight.
        gap: free space between neighbours.

    Returns:
        x of each vertex; in a layer, neighbours are at least ``right + gap + left`` apart.
    """
    conflicts = _conflicts(layers, dummy)
    pairs = [(a, b, right[a] + left[b] + gap) for layer in layers.layers for a, b in pairwise(layer)]
    found = []
    ways = [(True, True), (True, False), (False, False)][: 3 if len(left) <= LARGE else 1]
    medians = {downwards: _medians(layers, downwards) for downwards, _ in ways}
    for downwards, outer in ways:
        for mirrored in (False, True):
            root = _align(layers, medians[downwards], conflicts, downwards, mirrored, outer)
            found.append(_pack(pairs, root, mirrored))
    return _balance(found)


def _conflicts(layers: Layers, dummy: Sequence[bool]) -> set[tuple[int, int]]:
    """Return edges that cross a straight piece of a long edge; they give way."""
    marked: set[tuple[int, int]] = set()
    position = layers.position
    for upper, lower in pairwise(layers.layers):
        inner = [(position[layers.up[v][0]], position[v]) for v in lower if dummy[v] and dummy[layers.up[v][0]]]
        if not inner:
            continue
        last, scan, low = len(lower) - 1, 0, -1
        for place, v in enumerate(lower):
            is_inner = dummy[v] and dummy[layers.up[v][0]]
            if not is_inner and place != last:
                continue
            high = position[layers.up[v][0]] if is_inner else len(upper)
            while scan <= place:
                w = lower[scan]
                for u in layers.up[w]:
                    if not (low <= position[u] <= high) and not (dummy[u] and dummy[w]):
                        marked.add((u, w))
                scan += 1
            low = high
    return marked


def _medians(layers: Layers, downwards: bool) -> Medians:
    """Return for each vertex its one or two middle neighbours in the layer before, from left to right."""
    position = layers.position
    found: Medians = []
    for near in layers.up if downwards else layers.down:
        count = len(near)
        if count < 2:
            found.append(tuple(near))
        else:
            found.append(tuple(sorted(near, key=position.__getitem__)[(count - 1) // 2 : count // 2 + 1]))
    return found


def _align(
    layers: Layers,
    medians: Medians,
    conflicts: set[tuple[int, int]],
    downwards: bool,
    mirrored: bool,
    outer: bool,
) -> list[int]:
    """Chain each vertex with a median neighbour; returns the first vertex of each one's block."""
    position = layers.position
    sign = -1 if mirrored else 1
    root = list(range(len(position)))
    taken = bytearray(len(position))
    for before, layer in pairwise(layers.layers if downwards else layers.layers[::-1]):
        if len(layer) == 1 and medians[layer[0]] == (before[0],):  # a chain, as most of a deep graph is
            if not (taken[before[0]] or (conflicts and _pair(before[0], layer[0], downwards) in conflicts)):
                root[layer[0]] = root[before[0]]
                taken[before[0]] = 1
            continue
        limit = -(10**9)
        ends = _outermost(before, layer, medians) if outer else {}
        for u in ends.values():
            taken[u] = 1
        for v in reversed(layer) if mirrored else layer:
            if v in ends:
                root[v] = root[ends[v]]
                limit = sign * position[ends[v]]
                continue
            for u in reversed(medians[v]) if mirrored else medians[v]:
                if taken[u] or sign * position[u] <= limit:
                    continue
                if conflicts and _pair(u, v, downwards) in conflicts:
                    continue
                root[v] = root[u]
                taken[u] = 1
                limit = sign * position[u]
                break
    return root


def _pair(before: int, after: int, downwards: bool) -> tuple[int, int]:
    return (before, after) if downwards else (after, before)


def _outermost(before: Sequence[int], layer: Sequence[int], medians: Medians) -> dict[int, int]:
    """Return the first and last vertex of a layer with those of the layer before, where a middle neighbour is one."""
    ends: dict[int, int] = {}
    for v, u in ((layer[0], before[0]), (layer[-1], before[-1])):
        if v not in ends and u not in ends.values() and u in medians[v]:
            ends[v] = u
    return ends


def _pack(pairs: Sequence[tuple[int, int, int]], root: Sequence[int], mirrored: bool) -> list[int]:
    """Push every block as far left as its neighbours allow (right when mirrored), then close gaps.

    Args:
        pairs: neighbours in a layer, and how far apart their ports must be.
        root: each vertex's block.
        mirrored: pack to the right.
    """
    before: dict[int, list[tuple[int, int]]] = {}
    after: dict[int, list[tuple[int, int]]] = {}
    for a, b, apart in pairs:  # blocks that have no neighbour anywhere stay at 0
        one, two = (root[b], root[a]) if mirrored else (root[a], root[b])
        after.setdefault(one, []).append((two, apart))
        before.setdefault(two, []).append((one, apart))
    waiting = {block: len(others) for block, others in before.items()}
    order = [block for block in sorted(after) if block not in waiting]
    x = [0] * len(root)
    for block in order:  # grows while it is read
        here = x[block]
        for other, apart in after.get(block, ()):
            if x[other] < here + apart:
                x[other] = here + apart
            waiting[other] -= 1
            if waiting[other] == 0:
                order.append(other)
    for block in reversed(order):
        if block in before and block in after:
            x[block] = min([x[other] - apart for other, apart in after[block]])
    sign = -1 if mirrored else 1
    return [sign * x[r] for r in root]


def _balance(found: list[list[int]]) -> list[int]:
    """Line the ways up with the narrowest and take the mean of the middle ones; ways that sprawl are left out."""
    widths = [max(xs, default=0) - min(xs, default=0) for xs in found]
    narrow = found[widths.index(min(widths))]
    low, high = min(narrow, default=0), max(narrow, default=0)
    shifted = []
    for i, xs in enumerate(found):
        if widths[i] <= SPRAWL * min(widths) + 100:
            shift = (high - max(xs, default=0)) if i % 2 == 1 else (low - min(xs, default=0))
            shifted.append([x + shift for x in xs])
    count = len(shifted)
    first, last = (count - 1) // 2, count // 2
    if count == 1:
        return shifted[0]
    if count == 2:
        return [(a + b) // 2 for a, b in zip(*shifted, strict=True)]
    return [(xs[first] + xs[last]) // 2 for xs in map(sorted, zip(*shifted, strict=True))]
