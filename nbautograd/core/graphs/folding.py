"""Folding: several nodes drawn as one, without ever making a cycle.

The engine's order is a topological order of the graph. Nodes that are folded together always follow one another in it
directly, and contracting such stretches leaves an acyclic graph. A module that is called twice gives two stretches, so
that folding is by call, never by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node

Stretch = tuple[str, list[int]]  # module path, nodes in the engine's order


def collapse(graph: AutogradGraph, depth: int) -> AutogradGraph:
    """Fold the nodes of modules deeper than ``depth``; see ``AutogradGraph.collapse``."""
    return contract(graph, by_module(graph, depth))


def fold_to(graph: AutogradGraph, most: int) -> AutogradGraph:
    """Fold a graph until about ``most`` nodes are left: by module as far as modules are known, then the far end.

    Args:
        graph: any graph.
        most: how many nodes may be left, leaves inside folded nodes not counted.
    """
    if len(graph.nodes) <= most:
        return graph
    deepest = max((path.count(".") + 1 for path in graph.scopes), default=0)
    for depth in range(deepest, 0, -1):
        stretches = by_module(graph, depth)
        if len(stretches) < len(graph.nodes) and _size(graph, stretches) <= most:
            return contract(graph, stretches)
    return contract(graph, _cut(graph, by_module(graph, 1), most))


def by_module(graph: AutogradGraph, depth: int) -> list[Stretch]:
    """The engine's order cut into calls of the modules at ``depth``; what is outside of them stays single."""
    inner = [i for i in graph.order if graph.nodes[i].kind != "leaf"]
    stretches: list[Stretch] = []
    for (path, _), run in groupby(inner, key=lambda i: _called(graph.nodes[i], depth)):
        nodes = list(run)
        stretches += [(path, nodes)] if path else [("", [i]) for i in nodes]
    return stretches


def _called(node: Node, depth: int) -> tuple[str, int]:
    """The module at a depth, and which call of it, where modules were watched."""
    path = _at_depth(node, depth)
    return path, node.calls[depth - 1] if path and depth <= len(node.calls) else 0


def _at_depth(node: Node, depth: int) -> str:
    if node.kind == "function" or node.scope.count(".") + 1 < depth or not node.scope:
        return ""
    return ".".join(node.scope.split(".")[:depth])


def _size(graph: AutogradGraph, stretches: Sequence[Stretch]) -> int:
    return len(stretches) + len(_own_leaves(graph, _homes(stretches)))


def _cut(graph: AutogradGraph, stretches: list[Stretch], most: int) -> list[Stretch]:
    """Keep what runs first, and fold everything after it into one."""
    leaves: dict[int, int] = {}
    for edge in graph.edges:
        leaves[edge.source] = leaves.get(edge.source, 0) + (graph.nodes[edge.target].kind == "leaf")
    kept, count = 0, 1
    while kept < len(stretches) and count < most:
        inside = stretches[kept][1]
        count += 1 + (leaves.get(inside[0], 0) if len(inside) == 1 else 0)
        kept += 1
    rest = [i for _, nodes in stretches[kept:] for i in nodes]
    return [*stretches[:kept], ("", rest)] if rest else stretches


def _homes(stretches: Sequence[Stretch]) -> dict[int, int]:
    return {i: place for place, (_, nodes) in enumerate(stretches) for i in nodes}


def _own_leaves(graph: AutogradGraph, homes: dict[int, int]) -> dict[int, bool]:
    """Leaves that are used from more than one stretch, or from one that is a single node; the others are folded in."""
    users: dict[int, set[int]] = {}
    for edge in graph.edges:
        if graph.nodes[edge.target].kind == "leaf":
            users.setdefault(edge.target, set()).add(homes[edge.source])
    sizes: dict[int, int] = {}
    for home in homes.values():
        sizes[home] = sizes.get(home, 0) + 1
    roots = {root for root, _ in graph.roots}
    return {
        n.id: True
        for n in graph.nodes
        if n.kind == "leaf" and (n.id in roots or len(users.get(n.id, ())) != 1 or sizes[next(iter(users[n.id]))] == 1)
    }


def contract(graph: AutogradGraph, stretches: Sequence[Stretch]) -> AutogradGraph:
    """Make one node of every stretch, together with the leaves that only it uses.

    Args:
        graph: the graph.
        stretches: every inner node once; the nodes of each follow one another in ``graph.order``.
    """
    homes = _homes(stretches)
    own = _own_leaves(graph, homes)
    members = [list(nodes) for _, nodes in stretches]
    for edge in graph.edges:
        leaf = graph.nodes[edge.target]
        if leaf.kind == "leaf" and leaf.id not in own and leaf.id not in homes:
            homes[leaf.id] = homes[edge.source]
            members[homes[edge.source]].append(leaf.id)
    for leaf_id in own:
        homes[leaf_id] = len(members)
        members.append([leaf_id])
    names = [path for path, _ in stretches] + [""] * len(own)
    inside = {edge.source for edge in graph.edges if graph.nodes[edge.target].kind != "leaf"}
    nodes = tuple([_folded(graph, i, names[i], tuple(ids), inside) for i, ids in enumerate(members)])
    return AutogradGraph(
        nodes=nodes,
        edges=_merged(graph, homes),
        roots=tuple((None if root is None else homes[root], name) for root, name in graph.roots),
        order=tuple(dict.fromkeys(homes[i] for i in graph.order)),
        scopes=graph.scopes,
        slots=graph.slots,
        ran=tuple(dict.fromkeys(homes[i] for i in graph.ran)),
        complete=graph.complete,
        notes=graph.notes,
        ghosts=tuple([replace(g, node=None if g.node is None else homes[g.node]) for g in graph.ghosts]),
    )


def _folded(graph: AutogradGraph, i: int, path: str, members: tuple[int, ...], inside: set[int]) -> Node:
    first = graph.nodes[members[0]]
    if len(members) == 1:
        fields = {name: getattr(first, name) for name in first.__dataclass_fields__}
        return Node(**{**fields, "id": i, "members": members})
    kind = graph.scopes.get(path, "")
    name = f"{path} {kind}".strip() if path else messages.text("graphs.rest")
    outputs = tuple(o for m in members for o in graph.nodes[m].outputs)
    return Node(
        i,
        messages.text("graphs.group", name=name, count=len(members)),
        "op",
        scope=path,
        sequence=first.sequence,
        freed=any(graph.nodes[m].freed for m in members),
        shape=first.shape,
        dtype=first.dtype,
        outputs=outputs,
        gradients=first.gradients,
        members=members,
        storages=tuple({s.number: s for m in members for s in graph.nodes[m].storages}.values()),
        norms=_norms([graph.nodes[m] for m in members if m in inside]),
        stale=tuple([s for m in members for s in graph.nodes[m].stale]),
    )


def _norms(nodes: Sequence[Node]) -> tuple[float, ...]:
    """Of the nodes that pass a gradient on to others; what only feeds a parameter is not on the way."""
    found = [node.gradient.norm for node in nodes if node.gradient is not None]
    return tuple([norm for norm in found if norm is not None])


def _merged(graph: AutogradGraph, homes: dict[int, int]) -> tuple[Edge, ...]:
    """The edges between different nodes; those that lead from one to the same other are drawn as one."""
    between: dict[tuple[int, int], list[int]] = {}
    for position, edge in enumerate(graph.edges):
        ends = homes[edge.source], homes[edge.target]
        if ends[0] != ends[1]:
            between.setdefault(ends, []).append(position)
    edges = []
    for (source, target), positions in sorted(between.items()):
        first = graph.edges[positions[0]]
        alone = len(positions) == 1
        edges.append(
            Edge(
                source,
                target,
                first.input_nr,
                first.output_nr if alone else 0,
                first.shape if alone else None,
                first.dtype if alone else None,
                first.gradient if alone else None,
                first.name if alone else "",
                first.state if alone else "",
                tuple(positions),
                next((graph.edges[p].stale for p in positions if graph.edges[p].stale), ""),
            )
        )
    return tuple(edges)
