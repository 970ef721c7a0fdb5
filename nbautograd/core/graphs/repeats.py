"""Repeats: equal parts that follow one another in the engine's order, such as twelve blocks or thirty steps of a loop.

Two parts are equal when their nodes have the same names and shapes in the same order, and when the same edges lead from
each to the next part, to the same node further on, or to a leaf of the same shape. Only the last part, which forward
ran first, may send its gradients elsewhere or keep them: what came before it is no part of the repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.graphs.repeat_names import named, sibling_depth
from nbautograd.core.graphs.segments import Stretch, inner_order

LEAST_TIMES = 4  # fewer equal parts are drawn one by one
LEAST_SAVED = 24  # nodes that must be folded away for it to be worth a click
MOST_PERIODS = 24  # lengths of a part that are tried
MULTIPLES = (2, 3, 4, 6)  # of the shortest part that may make up a module
NEAR = 3  # a name's occurrences that are looked at for the length of a part

Ends = dict[tuple[int, int], tuple[int, object]]  # (input, output) -> (position of the target, or -1; a leaf's shape)


class Run(NamedTuple):
    """Equal parts, as positions in the order.

    Attributes:
        start: of the first part.
        size: nodes of one part.
        length: nodes of all parts; what is left over by ``size`` lies at one of the ends.
    """

    start: int
    size: int
    length: int

    @property
    def end(self) -> int:
        """One past the last."""
        return self.start + self.length

    @property
    def times(self) -> int:
        """How many whole parts it has."""
        return self.length // self.size

    @property
    def saved(self) -> int:
        """Nodes that are drawn no more."""
        return self.size * (self.times - 1)


def find_repeats(graph: AutogradGraph, nodes: Sequence[int] | None = None) -> list[Stretch]:
    """Find the repeats of a graph that are worth folding, none of which shares a node with another.

    Args:
        graph: any graph.
        nodes: only among these inner nodes, which follow one another in the engine's order; None for all of them.

    Returns:
        One stretch per repeat, in the engine's order.

    Example:
        >>> import torch, nbautograd
        >>> from nbautograd.core.graphs.repeats import find_repeats
        >>> y = torch.ones((), requires_grad=True)
        >>> for _ in range(30):
        ...     y = y.sin().exp()
        >>> [(run.name, run.times) for run in find_repeats(nbautograd.graph(y))]
        [('Exp, Sin ×30', 30)]
    """
    inner = inner_order(graph) if nodes is None else list(nodes)
    if len(inner) <= LEAST_SAVED:
        return []
    waiting = sorted(_candidates(graph, inner), key=lambda run: (run.saved, -run.size))
    free = np.ones(len(inner), bool)
    ends: list[Ends] = []
    found: list[Run] = []
    while waiting:
        run = _trimmed(waiting.pop(), free)
        if not _worth(run):
            continue
        run = in_phase(graph, inner, run)
        ends = ends or _ends(graph, inner)
        agreed = run._replace(length=_agreeing(ends, run) * run.size)
        if _worth(agreed):
            found.append(agreed)
            free[agreed.start : agreed.end] = False
        if agreed.length < run.length:
            waiting.append(Run(agreed.end, run.size, run.length - agreed.length))
    return [named(graph, inner[run.start : run.end], run.times) for run in sorted(found)]


def _worth(run: Run) -> bool:
    return run.times >= LEAST_TIMES and run.saved >= LEAST_SAVED


def _candidates(graph: AutogradGraph, inner: Sequence[int]) -> Iterator[Run]:
    """Stretches in which every name comes again after the same number of nodes; edges are not yet compared."""
    codes = _codes(graph, inner)
    for period in _periods(codes):
        differs = np.flatnonzero(codes[period:] != codes[:-period])
        borders = np.concatenate(([-1], differs, [len(codes) - period]))
        for at in np.flatnonzero(np.diff(borders) > (LEAST_TIMES - 1) * period):
            start, length = int(borders[at]) + 1, int(borders[at + 1] - borders[at] - 1) + period
            if length - period >= LEAST_SAVED:
                yield Run(start, period, length)


def _codes(graph: AutogradGraph, inner: Sequence[int]) -> np.ndarray:
    """A number per node, the same for the same name and shape."""
    known: dict[object, int] = {}
    nodes = graph.nodes
    looks = [(nodes[i].name, nodes[i].function, nodes[i].shape, nodes[i].dtype) for i in inner]
    return np.array([known.setdefault(look, len(known)) for look in looks])


def _periods(codes: np.ndarray) -> list[int]:
    """The commonest distances from a node to the next ones with the same code."""
    order = np.argsort(codes, kind="stable")
    counts: Counter[int] = Counter()
    for ahead in range(1, NEAR + 1):
        same = codes[order[ahead:]] == codes[order[:-ahead]]
        distances, times = np.unique((order[ahead:] - order[:-ahead])[same], return_counts=True)
        counts.update(dict(zip(distances.tolist(), times.tolist(), strict=True)))
    longest = len(codes) // LEAST_TIMES
    return [p for p, _ in counts.most_common(4 * MOST_PERIODS) if p <= longest][:MOST_PERIODS]


def _trimmed(run: Run, free: np.ndarray) -> Run:
    """The longest piece of a run of which no other repeat has taken a node."""
    taken = np.flatnonzero(~free[run.start : run.end])
    borders = np.concatenate(([-1], taken, [run.length]))
    at = int(np.argmax(np.diff(borders)))
    return Run(run.start + int(borders[at]) + 1, run.size, int(borders[at + 1] - borders[at]) - 1)


def in_phase(graph: AutogradGraph, inner: Sequence[int], run: Run) -> Run:
    """Make the parts whole modules' calls, or else let each end with a parameter; what is over at the ends is left out.

    Where modules are known, a part may be several of the shortest ones: those that make up one of equal modules.
    """
    scopes = [graph.nodes[i].scope.split(".") for i in inner[run.start : run.end]]
    longer = (_begun(graph, inner, Run(run.start, run.size * k, run.length), scopes) for k in MULTIPLES)
    best = _begun(graph, inner, run, scopes)
    if any(scope != [""] for scope in scopes) and not _equal_modules(scopes, run, best):
        best = next((it for it in longer if it.times >= LEAST_TIMES and _equal_modules(scopes, run, it)), best)
    return best


def _equal_modules(scopes: Sequence[Sequence[str]], run: Run, found: Run) -> bool:
    """Whether the first two parts lie in modules that are built alike."""
    at, depth = found.start - run.start, sibling_depth(scopes[found.start - run.start :], found.size)
    alike = [
        [*scope[: depth - 1], *scope[depth:]] if len(scope) >= depth > 0 else scope
        for scope in scopes[at : at + 2 * found.size]
    ]
    return alike[: found.size] == alike[found.size :]


def _begun(graph: AutogradGraph, inner: Sequence[int], run: Run, scopes: Sequence[Sequence[str]]) -> Run:
    """The run with its parts begun where a module's call ends, or else where a parameter was used."""
    if run.times < 2:
        return run
    depth = sibling_depth(scopes, run.size)
    feeding = {edge.source for edge in graph.edges if graph.nodes[edge.target].kind == "leaf"} if not depth else set()

    def score(begin: int) -> tuple[bool, int, bool]:
        at = begin + run.size
        border = bool(depth) and scopes[at - 1][:depth] != scopes[at][:depth]
        ends = len(scopes[at - 1]) >= depth if depth else inner[run.start + at - 1] in feeding
        return border, (run.length - begin) // run.size, ends

    best = max(range(min(run.size, run.length - 2 * run.size + 1)), key=lambda begin: (*score(begin), -begin))
    return Run(run.start + best, run.size, (run.length - best) // run.size * run.size)


def _ends(graph: AutogradGraph, inner: Sequence[int]) -> list[Ends]:
    """Where the edges of each node lead."""
    position = {i: at for at, i in enumerate(inner)}
    ends: list[Ends] = [{} for _ in inner]
    for edge in graph.edges:
        if edge.source in position:
            target = graph.nodes[edge.target]
            leaf = (target.shape, target.dtype) if target.kind == "leaf" else target.id not in position
            ends[position[edge.source]][edge.input_nr, edge.output_nr] = (position.get(edge.target, -1), leaf)
    return ends


def _agreeing(ends: Sequence[Ends], run: Run) -> int:
    """How many parts, from the first, are equal in their edges too."""
    for part in range(1, run.times):
        border = run.start + part * run.size
        last = False
        for at in range(border - run.size, border):
            verdict = _compare(ends[at], ends[at + run.size], run.size, border)
            if verdict == "other":
                return part
            last = last or verdict == "leaves"
        if last:
            return part + 1
    return run.times


def _compare(one: Ends, two: Ends, size: int, border: int) -> str:
    """Whether two nodes send the same; ``"leaves"`` when only what goes beyond ``border`` goes elsewhere."""
    verdict = "same"
    if not two.keys() <= one.keys():
        return "other"
    for way, (target, leaf) in one.items():
        other, other_leaf = two.get(way, (-2, None))
        if leaf == other_leaf and (target < 0 or other in (target + size, target)):
            continue
        if target < border:
            return "other"
        verdict = "leaves"
    return verdict
