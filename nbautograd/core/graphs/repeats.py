"""Repeats: equal parts that follow one another in the engine's order, such as twelve blocks or thirty steps of a loop.

Two parts are equal when their nodes have the same names and shapes in the same order, and when the same edges lead from
each to the next part, to the same node further on, or to a leaf of the same shape. Only the last part, which forward
ran first, may send its gradients elsewhere or keep them: what came before it is no part of the repeat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from nbautograd.core.display import Phrase
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.core.graphs.segments import Segment, common_path, inner_order

LEAST_TIMES = 4  # fewer equal parts are drawn one by one
LEAST_SAVED = 24  # nodes that must be folded away for it to be worth a click
MOST_PERIODS = 24  # lengths of a part that are tried
MULTIPLES = (2, 3, 4, 6)  # of the shortest part that may make up a module
NEAR = 3  # a name's occurrences that are looked at for the length of a part
MOST_OPS = 3  # of a part that are named

T = TypeVar("T")
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
        """Number of whole parts."""
        return self.length // self.size

    @property
    def saved(self) -> int:
        """Nodes that are drawn no more."""
        return self.size * (self.times - 1)


def find_repeats(graph: AutogradGraph, nodes: Sequence[int] | None = None) -> list[Segment]:
    """Find the repeats of a graph that are worth folding, none of which shares a node with another.

    Args:
        graph: any graph.
        nodes: only among these inner nodes, which follow one another in the engine's order; None for all of them.

    Returns:
        One segment per repeat, in the engine's order.

    Example:
        >>> import torch, nbautograd
        >>> from nbautograd.core.graphs.repeats import find_repeats
        >>> y = torch.ones((), requires_grad=True)
        >>> for _ in range(30):
        ...     y = y.sin().exp()
        >>> [(str(run.name), run.times) for run in find_repeats(nbautograd.graph(y))]
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
        agreed = run._replace(length=_count_equal_repetitions(ends, run) * run.size)
        if _worth(agreed):
            found.append(agreed)
            free[agreed.start : agreed.end] = False
        if agreed.length < run.length:
            waiting.append(Run(agreed.end, run.size, run.length - agreed.length))
    return [named_repeat(graph, inner[run.start : run.end], run.times) for run in sorted(found)]


def _worth(run: Run) -> bool:
    return run.times >= LEAST_TIMES and run.saved >= LEAST_SAVED


def _candidates(graph: AutogradGraph, inner: Sequence[int]) -> Iterator[Run]:
    """Yield segments in which every name comes again after the same number of nodes; edges are not yet compared."""
    codes = _codes(graph, inner)
    for period in _periods(codes):
        differs = np.flatnonzero(codes[period:] != codes[:-period])
        borders = np.concatenate(([-1], differs, [len(codes) - period]))
        for at in np.flatnonzero(np.diff(borders) > (LEAST_TIMES - 1) * period):
            start, length = int(borders[at]) + 1, int(borders[at + 1] - borders[at] - 1) + period
            if length - period >= LEAST_SAVED:
                yield Run(start, period, length)


def _codes(graph: AutogradGraph, inner: Sequence[int]) -> np.ndarray:
    """Return a number per node, the same for the same name and shape."""
    known: dict[object, int] = {}
    nodes = graph.nodes
    looks = [(nodes[i].name, nodes[i].function, nodes[i].shape, nodes[i].dtype) for i in inner]
    return np.array([known.setdefault(look, len(known)) for look in looks])


def _periods(codes: np.ndarray) -> list[int]:
    """Return the commonest distances from a node to the next ones with the same code."""
    order = np.argsort(codes, kind="stable")
    counts: Counter[int] = Counter()
    for ahead in range(1, NEAR + 1):
        same = codes[order[ahead:]] == codes[order[:-ahead]]
        distances, times = np.unique((order[ahead:] - order[:-ahead])[same], return_counts=True)
        counts.update(dict(zip(distances.tolist(), times.tolist(), strict=True)))
    longest = len(codes) // LEAST_TIMES
    return [p for p, _ in counts.most_common(4 * MOST_PERIODS) if p <= longest][:MOST_PERIODS]


def _trimmed(run: Run, free: np.ndarray) -> Run:
    """Return the longest piece of a run of which no other repeat has taken a node."""
    taken = np.flatnonzero(~free[run.start : run.end])
    borders = np.concatenate(([-1], taken, [run.length]))
    at = int(np.argmax(np.diff(borders)))
    return Run(run.start + int(borders[at]) + 1, run.size, int(borders[at + 1] - borders[at]) - 1)


def in_phase(graph: AutogradGraph, inner: Sequence[int], run: Run) -> Run:
    """Make the parts whole modules' calls, or else let each end with a parameter; what is over at the ends is left out.

    Where modules are known, a part may be several of the shortest ones: those that make up one of equal modules.
    """
    scopes = [graph.nodes[i].scope.split(".") for i in inner[run.start : run.end]]
    longer = (_aligned(graph, inner, Run(run.start, run.size * k, run.length), scopes) for k in MULTIPLES)
    best = _aligned(graph, inner, run, scopes)
    if any(scope != [""] for scope in scopes) and not _equal_modules(scopes, run, best):
        best = next((it for it in longer if it.times >= LEAST_TIMES and _equal_modules(scopes, run, it)), best)
    return best


def _equal_modules(scopes: Sequence[Sequence[str]], run: Run, found: Run) -> bool:
    """Return True where the first two parts lie in modules that are built alike."""
    at, depth = found.start - run.start, sibling_depth(scopes[found.start - run.start :], found.size)
    alike = [
        [*scope[: depth - 1], *scope[depth:]] if len(scope) >= depth > 0 else scope
        for scope in scopes[at : at + 2 * found.size]
    ]
    return alike[: found.size] == alike[found.size :]


def _aligned(graph: AutogradGraph, inner: Sequence[int], run: Run, scopes: Sequence[Sequence[str]]) -> Run:
    """Return the run with its parts begun where a module's call ends, or else where a parameter was used."""
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
    """Return the targets of each node's edges."""
    position = {i: at for at, i in enumerate(inner)}
    ends: list[Ends] = [{} for _ in inner]
    for edge in graph.edges:
        if edge.source in position:
            target = graph.nodes[edge.target]
            leaf = (target.shape, target.dtype) if target.kind == "leaf" else target.id not in position
            ends[position[edge.source]][edge.input_nr, edge.output_nr] = (position.get(edge.target, -1), leaf)
    return ends


def _count_equal_repetitions(ends: Sequence[Ends], run: Run) -> int:
    """Count the parts, from the first, that are equal in their edges too."""
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
    """Compare the edges of two nodes; ``"leaves"`` when only those beyond ``border`` lead elsewhere."""
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


def named_repeat(graph: AutogradGraph, nodes: list[int], times: int) -> Segment:
    """Return a repeat with its name: ``"Block ×12"``, ``"Linear + Relu ×50"``, ``"Tanh, Add, Mm, … ×20"``.

    Args:
        graph: the graph.
        nodes: of all parts, in the engine's order.
        times: how many parts they are.
    """
    path = common_path([scope for i in nodes if (scope := graph.nodes[i].scope)])
    if times < 2:
        return Segment(path, nodes)
    modules = _modules(graph, Segment(path, nodes, times))
    kinds = {tuple([graph.scopes.get(module, "") for module in own]) for own in modules}
    first = nodes[: len(nodes) // times]
    known = len(set(modules)) == times and len(kinds) == 1 and 0 < len(modules[0]) <= MOST_OPS
    what = _with_ops(graph, first, modules[0]) if known else op_names(graph, first)
    return Segment(path, nodes, times, Phrase("graphs.repeat", name=what, times=times))


def repetitions(graph: AutogradGraph, repeat: Segment) -> list[Segment]:
    """Return the parts of a repeat, each with its module, or with its number."""
    found = []
    slices = zip(sliced(repeat.nodes, repeat.times), _modules(graph, repeat), strict=True)
    for number, (nodes, modules) in enumerate(slices, start=1):
        if len(modules) == 1:
            found.append(Segment(modules[0], nodes, 1, f"{modules[0]} {_with_ops(graph, nodes, modules)}"))
        else:
            what = _with_ops(graph, nodes, modules) if 0 < len(modules) <= MOST_OPS else op_names(graph, nodes)
            name = Phrase("graphs.part", name=what, number=number, times=repeat.times)
            found.append(Segment(repeat.path, nodes, 1, name))
    return found


def sibling_modules(graph: AutogradGraph, runs: Sequence[Segment]) -> set[str]:
    """Return the modules that are of the type of the parts of repeats, and lie as deep."""
    others: set[str] = set()
    for run in runs:
        own = {modules[0] for modules in _modules(graph, run) if len(modules) == 1}
        kinds = {(graph.scopes.get(path, ""), path.count(".")) for path in own}
        others |= {path for path, kind in graph.scopes.items() if kind and (kind, path.count(".")) in kinds}
    return others


def sibling_of(scope: str, siblings: Collection[str]) -> str:
    """Return the one of some modules that a scope lies in."""
    while scope and scope not in siblings:
        scope = scope.rpartition(".")[0]
    return scope


def sliced(nodes: list[T], times: int) -> list[list[T]]:
    """Return the nodes of each part."""
    size = len(nodes) // times
    return [nodes[at : at + size] for at in range(0, len(nodes), size)]


def op_names(graph: AutogradGraph, part: Sequence[int]) -> str:
    """Name the ops of a part, custom Functions first."""
    nodes = [graph.nodes[i] for i in part]
    names = list(dict.fromkeys([op_name(n) for n in nodes if n.function] + [op_name(n) for n in nodes]))
    return ", ".join(names[:MOST_OPS]) + (", …" if len(names) > MOST_OPS else "")


def op_name(node: Node) -> str:
    """Return ``"Tanh"`` for ``"TanhBackward0"``."""
    return node.function or re.sub(r"Backward\d*$", "", str(node.name)) or str(node.name)


def sibling_depth(scopes: Sequence[Sequence[str]], size: int) -> int:
    """Return the depth of the modules of which each part has its own, by the first two parts; 0 for none."""
    found: Counter[int] = Counter()
    for one, two in zip(scopes[:size], scopes[size : 2 * size], strict=True):
        differing = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
        if differing is not None and one != [""] and two != [""]:
            found[differing + 1] += 1
    return max(found, key=lambda depth: (found[depth], -depth), default=0)


def _modules(graph: AutogradGraph, repeat: Segment) -> list[tuple[str, ...]]:
    """Return for each repetition the modules of its own that have made it, without what is made outside."""
    size = len(repeat.nodes) // repeat.times
    scopes = [graph.nodes[i].scope.split(".") for i in repeat.nodes]
    depth = sibling_depth(scopes, size)
    if not depth:
        return [()] * repeat.times
    inside = [".".join(scope[:depth]) if len(scope) >= depth else "" for scope in scopes]
    return [tuple(dict.fromkeys(filter(None, part))) for part in sliced(inside, repeat.times)]


def _with_ops(graph: AutogradGraph, part: Sequence[int], modules: Sequence[str]) -> str:
    """Return the types of some modules, and the ops beside them in the same part."""
    kinds = ", ".join(dict.fromkeys([graph.scopes.get(module, module) for module in modules]))
    inside = tuple([f"{module}." for module in modules])
    others = [i for i in part if not f"{graph.nodes[i].scope}.".startswith(inside)]
    watched = any(graph.nodes[i].calls for i in part)  # else a few ops at the border may well be the module's own
    return f"{kinds} + {op_names(graph, others)}" if len(others) * 4 >= len(part) or (others and watched) else kinds
