"""Folding: several nodes drawn as one, without ever making a cycle; see ``segments``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from nbautograd.core.display import Phrase
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.core.graphs.segments import (
    Segment,
    common_path,
    few_names,
    find_repeats,
    inner_order,
    module_segments,
    modules_around,
    named_repeat,
    op_name,
    ops_beside,
    repetitions,
    sliced,
)

OPENING = 12  # boxes of a graph that opens on its modules
CLOSED = 0.75  # of the nodes: a module that holds more is opened by one level, into twice as many boxes
DRAWN_WHOLE = 30  # nodes of a graph that is drawn whole
BOX_NODES = 40  # nodes of one box, when what is opened has no modules inside
OPENED_PARTS = 120  # parts that a repeat is opened into; of more, at most BOX_NODES boxes are made, each a repeat
Plain = tuple[str, list[int]]  # a segment of one part


def collapse(graph: AutogradGraph, depth: int) -> AutogradGraph:
    """Fold the nodes of modules deeper than ``depth``; see ``AutogradGraph.collapse``."""
    return contract(graph, module_segments(graph, depth))


def fold_to(graph: AutogradGraph, most: int) -> AutogradGraph:
    """Fold a graph as it is drawn to begin with: on its modules, in the most detail that takes at most 12 boxes.

    Without modules, or where they do not make so few boxes: repeats first, then modules until about ``most`` nodes are
    left.

    Args:
        graph: any graph; one of at most 30 nodes is left as it is, but for repeats.
        most: how many nodes may be left, leaves inside folded nodes not counted.

    Returns:
        The graph itself where there is nothing to fold, else a smaller one.
    """
    segments = initial_segments(graph, most)
    return graph if len(segments) == len(inner_order(graph)) else contract(graph, segments)


def fold_repeats(graph: AutogradGraph) -> AutogradGraph:
    """Return the graph with its repeats folded, and nothing else; itself where it has none."""
    runs = find_repeats(graph)
    return contract(graph, _with_repeats(graph, runs)) if runs else graph


def initial_segments(graph: AutogradGraph, most: int) -> list[Segment]:
    """Return the segments that are drawn to begin with: one per box."""
    runs = find_repeats(graph)
    single = _with_repeats(graph, runs)
    if len(graph.nodes) > DRAWN_WHOLE and graph.scopes:
        opening = _on_modules(graph, runs, min(most, OPENING))
        most_nodes = max((len(segment.nodes) for segment in opening if segment.times == 1), default=len(graph.nodes))
        if most_nodes > CLOSED * sum(len(segment.nodes) for segment in opening):
            opening = _on_modules(graph, runs, min(most, 2 * OPENING)) or opening
        if opening:
            return opening
    if len(graph.nodes) <= most or _size(graph, single) <= most:
        return single
    deepest = max((path.count(".") + 1 for path in graph.scopes), default=0)
    for depth in range(deepest, 0, -1):
        segments = module_segments(graph, depth, runs)
        if len(segments) < len(single) and _size(graph, segments) <= most:
            return segments
    return _fold_the_rest(graph, module_segments(graph, 1, runs), most)


def _on_modules(graph: AutogradGraph, runs: Sequence[Segment], most: int) -> list[Segment]:
    """Return the modules of one depth, cut as small as ``most`` boxes allow; empty where those are too few.

    Leaves are not counted. Custom Functions keep boxes of their own where that is possible; whole repeats are drawn
    only where their parts are too many, and what lies beside those is as whole as they are.
    """
    simple = graph.scopes.keys() - {path.rpartition(".")[0] for path in graph.scopes}
    closed = _mostly_ops(graph, simple)
    deepest = max(path.count(".") + 1 for path in graph.scopes)
    beside = {run.path for run in runs}
    repeated = {path for path in graph.scopes if path.rpartition(".")[0] in beside}
    for functions in (False, True):
        best: list[Segment] = []
        least = (0, False, 0)  # the largest part, whole repeats, all that is undivided
        for repeats in ([], runs):
            kept = repeated if repeats else set[str]()
            for depth in range(1, deepest + 1):
                found = module_segments(graph, depth, repeats, simple | kept, functions)
                if len(found) + len(graph.roots) > min(most, OPENING):
                    found = _join_singles(graph, module_segments(graph, depth, repeats, closed | kept, functions))
                if len(found) + len(graph.roots) > most:
                    break
                parts = [(len(segment.nodes) // segment.times, len(segment.nodes)) for segment in found]
                coarse = (max(parts)[0], bool(repeats), sum(part * nodes for part, nodes in parts))
                if not best or coarse < least:
                    best, least = found, coarse
        if best:
            return best
    return []


def _mostly_ops(graph: AutogradGraph, simple: Collection[str]) -> set[str]:
    """Return the modules that are not worth opening: of whose nodes less than half lie in modules made of others."""
    all_nodes, inside = Counter[str](), Counter[str]()
    for i in inner_order(graph):
        around = [path for path in modules_around(graph, graph.nodes[i].scope) if path not in simple]
        all_nodes.update(around)
        inside.update(around[:-1])
    return {*simple, *[path for path, count in all_nodes.items() if 2 * inside[path] < count]}


def _join_singles(graph: AutogradGraph, segments: Sequence[Segment]) -> list[Segment]:
    """Join boxes of one node that follow one another in one module; those of two modules would split both."""
    found: list[Segment] = []

    def module(segment: Segment) -> str | None:
        node = graph.nodes[segment.nodes[0]]
        alone = len(segment.nodes) == 1 and node.kind != "function"
        return (segment.path.rpartition(".")[0] if segment.path else node.scope) if alone else None

    for path, group in groupby(segments, key=module):
        some = list(group)
        if path is not None and len(some) > 1:
            nodes = [i for segment in some for i in segment.nodes]
            names = [segment.path or op_name(graph.nodes[segment.nodes[0]]) for segment in some]
            found.append(Segment("", nodes, 1, few_names(names)))
        else:
            found += some
    return found


def _with_repeats(graph: AutogradGraph, runs: Sequence[Segment]) -> list[Segment]:
    first = {run.nodes[0]: run for run in runs}
    inside = {i for run in runs for i in run.nodes}
    return [first.get(i) or Segment("", [i]) for i in inner_order(graph) if i in first or i not in inside]


def _size(graph: AutogradGraph, segments: Sequence[Segment]) -> int:
    return len(segments) + len(_own_leaves(graph, segments))


def _fold_the_rest(graph: AutogradGraph, segments: list[Segment], most: int) -> list[Segment]:
    leaves: dict[int, int] = {}
    for edge in graph.edges:
        leaves[edge.source] = leaves.get(edge.source, 0) + (graph.nodes[edge.target].kind == "leaf")
    kept, count = 0, 1
    while kept < len(segments) and count < most:
        inside = segments[kept].nodes
        count += 1 + (leaves.get(inside[0], 0) if len(inside) == 1 else 0)
        kept += 1
    rest = [i for segment in segments[kept:] for i in segment.nodes]
    return [*segments[:kept], Segment("", rest)] if rest else segments


def _own_leaves(graph: AutogradGraph, segments: Sequence[Segment]) -> dict[int, bool]:
    """Return leaves with a box of their own: those that several segments use, or a single node.

    Of a repeat those that several parts use, and those of which not every part has one, such as the first one's input.
    """
    homes: dict[int, tuple[int, int, int]] = {}
    for place, segment in enumerate(segments):
        size = len(segment.nodes) // segment.times
        homes.update((i, (place, at // size, at % size)) for at, i in enumerate(segment.nodes))
    users: dict[int, set[tuple[int, int]]] = {}
    slots: dict[tuple[int, int, int], list[int]] = {}
    for edge in graph.edges:
        if graph.nodes[edge.target].kind == "leaf":
            place, part, at = homes[edge.source]
            users.setdefault(edge.target, set()).add((place, part))
            slots.setdefault((place, at, edge.input_nr), []).append(edge.target)
    own = {root for root, _ in graph.roots if root is not None and graph.nodes[root].kind == "leaf"}
    for (place, _, _), leaves in slots.items():
        if len(leaves) < segments[place].times or len(segments[place].nodes) == 1:
            own |= set(leaves)
    own |= {leaf for leaf, places in users.items() if len(places) > 1}
    return dict.fromkeys(sorted(own), True)


def contract(graph: AutogradGraph, parts: Sequence[Segment | Plain]) -> AutogradGraph:
    """Make one node of every segment, together with the leaves that only it uses.

    Args:
        parts: every inner node once; the nodes of each follow one another in ``graph.order``.
    """
    segments = [Segment(*part) for part in parts]
    homes = {i: place for place, segment in enumerate(segments) for i in segment.nodes}
    own = _own_leaves(graph, segments)
    members = [list(segment.nodes) for segment in segments]
    for edge in graph.edges:
        leaf = graph.nodes[edge.target]
        if leaf.kind == "leaf" and leaf.id not in own and leaf.id not in homes:
            homes[leaf.id] = homes[edge.source]
            members[homes[edge.source]].append(leaf.id)
    for leaf_id in own:
        homes[leaf_id] = len(members)
        members.append([leaf_id])
    segments += [Segment("", [leaf_id]) for leaf_id in own]
    inside = {edge.source for edge in graph.edges if graph.nodes[edge.target].kind != "leaf"}
    nodes = [_folded(graph, i, segments[i], tuple(ids), inside) for i, ids in enumerate(members)]
    for edge in graph.edges:
        if edge.wrong and homes[edge.source] == homes[edge.target]:
            nodes[homes[edge.source]] = replace(nodes[homes[edge.source]], wrong=edge.wrong)
    return replace(
        graph,
        nodes=tuple(nodes),
        edges=_merged(graph, homes),
        roots=tuple((None if root is None else homes[root], name) for root, name in graph.roots),
        order=tuple(dict.fromkeys(homes[i] for i in graph.order)),
        ran=tuple(dict.fromkeys(homes[i] for i in graph.ran)),
        ghosts=tuple([replace(g, node=None if g.node is None else homes[g.node]) for g in graph.ghosts]),
        made={},  # by ids of the graph that was folded
    )


def _folded(graph: AutogradGraph, i: int, segment: Segment, members: tuple[int, ...], inside: set[int]) -> Node:
    first = graph.nodes[members[0]]
    if len(members) == 1:
        return replace(first, id=i, members=members)
    path = segment.path
    repeated = segment.times > 1
    name = segment.name or _module_name(graph, segment) or Phrase("graphs.rest")
    size = len(members) // segment.times
    frozen = any(graph.nodes[m].frozen for m in members) and all(graph.nodes[m].kind != "leaf" for m in members)
    word = "graphs.group" if not repeated else "graphs.repeat_group" if size > 1 else ""
    return Node(
        i,
        Phrase(word, name=name, count=size) if word else name,
        "op",
        scope=path or common_path([scope for m in segment.nodes if (scope := graph.nodes[m].scope)]),
        sequence=first.sequence,
        freed=any(graph.nodes[m].freed for m in members),
        shape=first.shape,
        dtype=first.dtype,
        outputs=tuple(o for m in members for o in graph.nodes[m].outputs),
        gradients=first.gradients,
        members=members,
        storages=tuple({s.number: s for m in members for s in graph.nodes[m].storages}.values()),
        norms=_part_norms(graph, segment) if repeated else _norms([graph.nodes[m] for m in members if m in inside]),
        stale=tuple([s for m in members for s in graph.nodes[m].stale]),
        repeats=segment.times if repeated else 0,
        frozen=frozen,
        first_bad=next((graph.nodes[m].first_bad for m in members if graph.nodes[m].first_bad), ""),
    )


def _module_name(graph: AutogradGraph, segment: Segment) -> str:
    """Return ``"layer1 Sequential"``, with the custom Functions inside: ``"layer1 Sequential · Cube ×3"``."""
    if not segment.path:
        return ""
    functions = Counter([graph.nodes[i].function for i in segment.nodes if graph.nodes[i].function])
    inside = [f"{name} ×{count}" if count > 1 else name for name, count in functions.items()]
    kind = f"{segment.path} {graph.scopes.get(segment.path, '')}".strip()
    return " · ".join([kind + ops_beside(graph, segment.nodes, [segment.path]), *inside])


def _part_norms(graph: AutogradGraph, repeat: Segment) -> tuple[float, ...]:
    """Return the norms of the gradient that arrives at each part: at the largest node that gets it from before."""
    part = {i: number for number, nodes in enumerate(sliced(repeat.nodes, repeat.times)) for i in nodes}
    place = {i: at % (len(repeat.nodes) // repeat.times) for at, i in enumerate(repeat.nodes)}
    entries = {
        place[edge.target]: math.prod(graph.nodes[edge.target].shape or ())
        for edge in graph.edges
        if edge.source in part and part.get(edge.target, 0) > part[edge.source]
    }
    entry = max(entries, key=lambda at: (entries[at], -at), default=0)
    return _norms([graph.nodes[i] for i in repeat.nodes if place[i] == entry])


def _norms(nodes: Sequence[Node]) -> tuple[float, ...]:
    """Return the norms at nodes that pass a gradient on; what only feeds a parameter is not on the way.

    It is NaN or infinity where the gradient holds such, whose own norm is that of the other entries.
    """
    gradients = [node.gradient for node in nodes if node.gradient is not None]
    found = [math.nan if g.nan else math.inf if g.inf else g.norm for g in gradients]
    return tuple([norm for norm in found if norm is not None])


def _merged(graph: AutogradGraph, homes: dict[int, int]) -> tuple[Edge, ...]:
    """Return the edges between different nodes; those that lead from one to the same other are drawn as one."""
    between: dict[tuple[int, int], list[int]] = {}
    for position, edge in enumerate(graph.edges):
        ends = homes[edge.source], homes[edge.target]
        if ends[0] != ends[1]:
            between.setdefault(ends, []).append(position)
    edges = []
    for (source, target), positions in sorted(between.items()):
        inside, members = [graph.edges[p] for p in positions], tuple(positions)
        if len(members) == 1:
            edges.append(replace(inside[0], source=source, target=target, members=members))
        else:
            most, number = largest(inside), inside[0].input_nr
            stale = next((edge.stale for edge in inside if edge.stale), "")
            wrong = next((edge.wrong for edge in inside if edge.wrong), "")
            flow = most.gradient, "", most.state, members, stale, wrong
            edges.append(Edge(source, target, number, 0, None, None, *flow))
    return tuple(edges)


def largest(edges: Sequence[Edge]) -> Edge:
    """Return the edge with the largest gradient, the first that holds NaN or Inf; their sum may be anything."""

    def size(edge: Edge) -> float:
        gradient = edge.gradient
        if gradient is not None and (gradient.nan or gradient.inf):
            return math.inf
        return -1.0 if gradient is None or gradient.norm is None else gradient.norm

    return max(edges, key=size)


def open_boxes(graph: AutogradGraph, opened: Collection[str], most: int) -> AutogradGraph:
    """Fold a graph as it is drawn to begin with, and open some of its boxes.

    Args:
        graph: the whole graph.
        opened: keys of the boxes that are opened: ``"g12"`` is the box whose first node, in the engine's order, is 12.
            A box may begin with the same node as one of its parts and so have the same key; a key opens as often as it
            is given. Keys that nothing has are ignored.
        most: as for ``fold_to``.
    """
    found = [
        inner for segment in initial_segments(graph, most) for inner in _open_segment(graph, segment, list(opened))
    ]
    return contract(graph, found)


def _open_segment(graph: AutogradGraph, segment: Segment, opened: list[str]) -> list[Segment]:
    key = f"g{segment.nodes[0]}"
    if len(segment.nodes) < 2 or key not in opened:
        return [segment]
    rest = list(opened)
    rest.remove(key)
    return [inner for part in _segments_inside(graph, segment) for inner in _open_segment(graph, part, rest)]


def _segments_inside(graph: AutogradGraph, segment: Segment) -> list[Segment]:
    if segment.times > OPENED_PARTS:
        size = len(segment.nodes) // segment.times
        each = size * -(-segment.times // BOX_NODES)
        pieces = [segment.nodes[at : at + each] for at in range(0, len(segment.nodes), each)]
        return [named_repeat(graph, Segment(segment.path, piece, len(piece) // size)) for piece in pieces]
    if segment.times > 1:
        return repetitions(graph, segment)
    found = _modules_inside(graph, segment)
    if len(found) == len(segment.nodes) > BOX_NODES:
        size, nodes = max(BOX_NODES, -(-len(segment.nodes) // BOX_NODES)), segment.nodes
        return [Segment(segment.path, nodes[at : at + size]) for at in range(0, len(nodes), size)]
    return found if len(found) > 1 else [Segment("", [i]) for i in segment.nodes]


def _modules_inside(graph: AutogradGraph, segment: Segment) -> list[Segment]:
    first = len(modules_around(graph, segment.path)) + 1
    deepest = max((graph.nodes[i].scope.count(".") + 1 for i in segment.nodes), default=0)
    runs: list[Segment] | None = None
    found = [segment]
    for depth in range(first, max(first, deepest) + 1):
        found = module_segments(graph, depth, nodes=segment.nodes)
        if len(found) > OPENING:
            runs = find_repeats(graph, segment.nodes) if runs is None else runs
            found = module_segments(graph, depth, runs, nodes=segment.nodes)
        if len(found) > 1:
            break
    return found
