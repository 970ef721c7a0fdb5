"""Segments: pieces of the engine's order, each of which may be drawn as one box without ever making a cycle.

The engine's order is a topological order of the graph. Contracting nodes that follow one another in it directly leaves
an acyclic graph, so that every segment is such a piece. A module that is called twice gives two segments: folding is
by call, never by name.

Repeats are equal parts that follow one another in the engine's order, such as twelve blocks or thirty steps of a loop.
A part lies between two calls of modules of one type that lie beside one another, or else between two ops of one name.
Parts are equal when their nodes have the same names, shapes and dtypes in the same order, and the same ones are frozen.
What forward ran first often differs, as its input needs no gradient, and is no part then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise, takewhile
from typing import NamedTuple, TypeVar

from nbautograd.core.display import Phrase
from nbautograd.core.graphs.graph import AutogradGraph, Node


class Segment(NamedTuple):
    """Nodes that follow one another in the engine's order.

    Attributes:
        path: of the module that they belong to; may be empty.
        nodes: ids of inner nodes, in the engine's order; leaves go with the nodes that use them.
        times: how many equal parts they are, one after the other.
        name: what they are called, where that is not said by ``path``.
    """

    path: str
    nodes: list[int]
    times: int = 1
    name: str | Phrase = ""


def inner_order(graph: AutogradGraph) -> list[int]:
    """Return the engine's order without leaves."""
    return [i for i in graph.order if graph.nodes[i].kind != "leaf"]


def common_path(scopes: Sequence[str]) -> str:
    """Return the module that all scopes lie in."""
    shared = takewhile(lambda names: len({*names}) == 1, zip(*(scope.split(".") for scope in scopes), strict=False))
    return ".".join(names[0] for names in shared)


def module_segments(
    graph: AutogradGraph,
    depth: int,
    runs: Sequence[Segment] = (),
    whole: Collection[str] = (),
    functions: bool = False,
    nodes: Sequence[int] | None = None,
) -> list[Segment]:
    """Return the engine's order cut into calls of the modules at ``depth``; what is outside of them stays single.

    Args:
        depth: 1 for the outermost modules; lists of modules count as none.
        runs: repeats, kept whole unless one module's call holds all of their parts.
        whole: modules that are kept whole though they lie less deep.
        functions: True to fold custom Functions too; else each stays single.
        nodes: which nodes, that follow one another; all by default.
    """
    homes = {path: _cut_path(graph, path, depth, whole) for path in ("", *graph.scopes)}
    inner = inner_order(graph) if nodes is None else nodes
    called = {i: _called(graph.nodes[i], homes, functions) for i in inner}
    run_of = {i: run for run in runs if _spans(run, called) for i in run.nodes}

    def home(i: int) -> tuple[str, int]:
        return ("", run_of[i].nodes[0] + 1) if i in run_of else called[i]

    segments: list[Segment] = []
    for (path, _), group in groupby(called, key=home):
        found = list(group)
        if found[0] in run_of:
            segments.append(run_of[found[0]])
        else:
            segments += [Segment(path, found)] if path else [Segment("", [i]) for i in found]
    return segments


def _spans(run: Segment, called: Mapping[int, tuple[str, int]]) -> bool:
    """Return True where a whole repeat lies among the nodes, and its parts in several modules' calls or in none."""
    if not all(i in called for i in run.nodes):
        return False
    calls = {called[i] for i in run.nodes}
    return len(calls) > 1 or not next(iter(calls))[0]


def _cut_path(graph: AutogradGraph, path: str, depth: int, whole: Collection[str] = ()) -> str:
    for outer in modules_around(graph, path):
        depth -= 1
        if not depth or outer in whole:
            return outer
    return ""


def modules_around(graph: AutogradGraph, path: str) -> list[str]:
    """Return the modules that a path lies in and itself, outermost first, without lists, which nothing calls."""
    names = path.split(".") if path else []
    paths = [".".join(names[:k]) for k in range(1, len(names) + 1)]
    return [outer for outer in paths if graph.scopes[outer] not in LISTS]


def _called(node: Node, homes: Mapping[str, str], functions: bool = False) -> tuple[str, int]:
    path = "" if node.kind == "function" and not functions else homes[node.scope]
    depth = path.count(".") + 1
    return path, node.calls[depth - 1] if path and depth <= len(node.calls) else 0


LISTS = ("ModuleList", "ModuleDict")  # without a forward: their parts lie beside the modules that they lie beside
CONTAINERS = (*LISTS, "Sequential")  # they run nothing by themselves
LEAST_TIMES = 4  # fewer equal parts are drawn one by one
LEAST_SAVED = 24  # nodes that must be folded away for it to be worth a click
MOST_OPS = 3  # of a part that are named

T = TypeVar("T")


class Repeat(NamedTuple):
    """Equal parts in the order.

    Attributes:
        ops: True where they lie between ops, not between modules.
        start: the position of the first node.
        size, times: nodes of one part, number of parts.
        path: of the module around the modules.
    """

    ops: bool
    start: int
    size: int
    times: int
    path: str

    @property
    def nodes(self) -> slice:
        """Positions of the nodes of all parts."""
        return slice(self.start, self.start + self.size * self.times)

    @property
    def saved(self) -> int:
        """Nodes that are drawn no more."""
        return self.size * (self.times - 1)


def find_repeats(graph: AutogradGraph, nodes: Sequence[int] | None = None) -> list[Segment]:
    """Find the repeats of a graph that are worth folding, none of which shares a node with another.

    Args:
        nodes: only among these inner nodes, which follow one another in the engine's order; None for all of them.

    Returns:
        One segment per repeat, in the engine's order.
    """
    inner = inner_order(graph) if nodes is None else list(nodes)
    if len(inner) <= LEAST_SAVED:
        return []
    worth = [run for run in _runs(graph, inner) if run.times >= LEAST_TIMES and run.saved >= LEAST_SAVED]
    free = [True] * len(inner)
    found: list[Repeat] = []
    for run in sorted(worth, key=lambda run: (run.ops, -run.saved, run.size)):
        if all(free[run.nodes]):
            found.append(run)
            free[run.nodes] = [False] * run.size * run.times
    found.sort(key=lambda run: run.start)
    placed = list[Segment]()
    for run in found:
        at = inner[run.nodes]
        scopes = [scope for i in at if (scope := graph.nodes[i].scope)] if run.ops else [run.path]
        placed.append(named_repeat(graph, Segment(common_path(scopes), at, run.times)))
    return placed


def _runs(graph: AutogradGraph, inner: Sequence[int]) -> Iterator[Repeat]:
    nodes = graph.nodes
    looks = [(nodes[i].name, nodes[i].function, nodes[i].shape, nodes[i].dtype, nodes[i].frozen) for i in inner]
    for ops, path, cuts in _cuts(graph, inner):
        parts = [slice(*ends) for ends in pairwise([0, *cuts, len(inner)])]
        for look, group in groupby(parts, key=lambda part: looks[part]):
            equal, size = list(group), len(look)
            if size:
                start, end = equal[0].start, equal[-1].stop
                # what touches these reaches to another call, op or end, and may go on as they do
                before = _agreeing((looks[start - k], looks[start - k + size]) for k in range(1, min(size, start) + 1))
                after = _agreeing(zip(looks[end : end + size], look, strict=False))
                times = len(equal) + before // size + after // size
                moved = ops and times == LEAST_TIMES - 1 and before + after >= size > max(before, after)
                if moved:  # the fourth part is there where all begin elsewhere; else they begin with their op or call
                    yield Repeat(ops, start - before, size, LEAST_TIMES, path)
                else:
                    yield Repeat(ops, start - size * (before // size), size, times, path)


def _agreeing(pairs: Iterable[tuple[T, T]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _cuts(graph: AutogradGraph, inner: Sequence[int]) -> Iterator[tuple[bool, str, list[int]]]:
    cuts: dict[tuple[bool, str, str, str], list[int]] = defaultdict(list)
    for at, i in enumerate(inner):
        cuts[True, "", str(graph.nodes[i].name), "begins"].append(at)
        cuts[True, "", str(graph.nodes[i].name), "ends"].append(at + 1)
    for depth in range(1, max((path.count(".") + 2 for path in graph.scopes), default=1)):
        at = 0
        for segment in module_segments(graph, depth, functions=True, nodes=inner):
            if segment.path:
                around, kind = segment.path.rpartition(".")[0], graph.scopes.get(segment.path, "")
                cuts[False, around, kind, "begins"].append(at)
                cuts[False, around, kind, "ends"].append(at + len(segment.nodes))
            at += len(segment.nodes)
    yield from ((ops, path, places) for (ops, path, *_), places in cuts.items())


def named_repeat(graph: AutogradGraph, repeat: Segment) -> Segment:
    """Return a repeat with its name: ``"Block ×12"``, ``"Linear + Relu ×50"``, ``"Cube, Add ×20"``.

    Where its parts are only some of a module's, the name says which: ``"layers.4–11 Block ×8"``.
    """
    path, nodes, times, _ = repeat
    if times < 2:
        return repeat
    modules = _modules(graph, repeat)
    kinds = {tuple([graph.scopes.get(module, "") for module in own]) for own in modules}
    first = nodes[: len(nodes) // times]
    known = len(kinds) == 1 and 0 < len(modules[0]) <= MOST_OPS
    what = _with_ops(graph, first, modules[0]) if known else op_names(graph, first)
    of = [module for module in graph.scopes if module.rpartition(".")[0] == path]
    if known and len(modules[0]) == 1 and len({*modules}) == times < len(of):
        what = f"{modules[-1][0]}–{modules[0][0].rpartition('.')[2]} {what}"
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


def sliced(nodes: list[T], times: int) -> list[list[T]]:
    """Return the nodes of each part."""
    size = len(nodes) // times
    return [nodes[at : at + size] for at in range(0, len(nodes), size)]


def op_names(graph: AutogradGraph, part: Sequence[int]) -> str:
    """Name the ops of a part, custom Functions first."""
    nodes = [graph.nodes[i] for i in part]
    return few_names([op_name(n) for n in nodes if n.function] + [op_name(n) for n in nodes])


def few_names(names: Sequence[str]) -> str:
    """Return the first names, each once."""
    once = [*dict.fromkeys(names)]
    return ", ".join(once[:MOST_OPS]) + (", …" if len(once) > MOST_OPS else "")


def op_name(node: Node) -> str:
    """Return ``"Tanh"`` for ``"TanhBackward0"``."""
    return node.function or re.sub(r"Backward\d*$", "", str(node.name)) or str(node.name)


def _modules(graph: AutogradGraph, repeat: Segment) -> list[tuple[str, ...]]:
    """Return for each repetition the modules of its own that have made it, without what is made outside."""
    around = f"{repeat.path}." if repeat.path else ""
    depth = len(modules_around(graph, repeat.path)) + 1
    scopes = [graph.nodes[i].scope for i in repeat.nodes]
    inside = [_cut_path(graph, scope, depth) if scope.startswith(around) else "" for scope in scopes]
    return [tuple(dict.fromkeys(filter(None, part))) for part in sliced(inside, repeat.times)]


def _with_ops(graph: AutogradGraph, part: Sequence[int], modules: Sequence[str]) -> str:
    kinds = ", ".join(dict.fromkeys([graph.scopes.get(module, module) for module in modules]))
    return kinds + ops_beside(graph, part, modules)


def ops_beside(graph: AutogradGraph, part: Sequence[int], modules: Sequence[str]) -> str:
    """Return ``" + Add, Mul"`` for what is drawn with modules and was not made by them, where it is worth words."""
    inside = tuple([f"{module}." for module in modules])
    others = [i for i in part if not f"{graph.nodes[i].scope}.".startswith(inside)]
    watched = any(graph.nodes[i].calls for i in part)  # else a few ops at the border may well be the module's own
    return f" + {op_names(graph, others)}" if len(others) * 4 >= len(part) or (others and watched) else ""
