"""Order: from left to right in each layer, with few crossings; barycentre sweeps, then swaps of neighbours.

Everything is counted against a budget of work, so that no graph takes for ever; the best order met is kept.
"""

from __future__ import annotations

from bisect import bisect_right, insort

SWEEPS = 12


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
