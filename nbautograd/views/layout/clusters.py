"""Clusters: the boxes of the picture, each with the chips at its sides.

A leaf used once stands as a chip beside the node that uses it; a leaf used a few times nearby gets a place of its own,
so that its gradients are seen to meet; a leaf used far apart is a chip at each use. Edges longer than a limit become
portals: a stub at either end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nbautograd import messages
from nbautograd.core.graphs.folding import largest
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.views.layout.contents import (
    Content,
    commonest_dtype,
    edge_text,
    fan_in,
    ghost_content,
    ghost_word,
    leaf_content,
    op_content,
    short_content,
)
from nbautograd.views.layout.functions import function_content
from nbautograd.views.layout.sugiyama import ranks
from nbautograd.views.layout.text import shape_text, text_width

SHARED_USES, SHARED_SPAN = 6, 3  # a leaf with at most so many uses, so many ranks apart, stands once
LONGEST = 64  # ranks that an edge may span before it becomes a portal
MOST_CHIPS = 8  # beside one box
CHIP_GAP, ARROW = 7, 26


class ClusterChip(NamedTuple):
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
class Cluster:
    """A box with the chips at its sides; what the layers are made of.

    Attributes:
        key, content, nodes, fan_in, freed, frozen: as of a box.
        rights: chips that gradients go to, at the right.
        lefts: stubs that gradients come from, at the left.
    """

    key: str
    content: Content
    nodes: tuple[int, ...]
    fan_in: int = 0
    freed: bool = False
    frozen: bool = False
    rights: list[ClusterChip] = field(default_factory=list)
    lefts: list[ClusterChip] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Return the distance from the middle of the box to the left end of the cluster."""
        return (self.content.width + 1) // 2 + side_width(self.lefts)

    @property
    def right(self) -> int:
        """Return the distance from the middle of the box to the right end of the cluster."""
        return (self.content.width + 1) // 2 + side_width(self.rights)

    @property
    def height(self) -> int:
        """Height of the box or of the higher of the stacks beside it."""
        return max(self.content.height, stack_height(self.rights), stack_height(self.lefts))


def arrow_length(chips: Sequence[ClusterChip]) -> int:
    """Return the length of the short edges of a stack: room for the longest label, beside the outer bends."""
    bends = 10 if len(chips) > 2 else 0
    return max(ARROW, max((text_width(c.label, "label") for c in chips), default=0) + 16) + bends


def side_width(chips: Sequence[ClusterChip]) -> int:
    """Return the width of a stack of chips with its short edges."""
    return arrow_length(chips) + max(c.content.width for c in chips) if chips else 0


def stack_height(chips: Sequence[ClusterChip]) -> int:
    """Return the height of a stack of chips."""
    return sum(c.content.height + CHIP_GAP for c in chips) - CHIP_GAP if chips else 0


class ClusterLink(NamedTuple):
    """An edge between two clusters, by their positions.

    Attributes:
        source, target: positions of the clusters.
        edges: positions in ``graph.edges``; empty for the arrow into a root.
        label, style: as of a path.
    """

    source: int
    target: int
    edges: tuple[int, ...]
    label: str
    style: str


class Clusters:
    """The clusters of a graph, the links between them, and the rank of each.

    Attributes:
        clusters, links, rank: see the classes.
        dtype: the commonest dtype of the gradients, which labels leave out.
    """

    def __init__(self, graph: AutogradGraph) -> None:
        self.clusters: list[Cluster] = []
        self.links: list[ClusterLink] = []
        self.rank: list[int] = []
        self._graph = graph
        self._at: dict[int, int] = {}
        self.dtype = commonest_dtype(graph)
        self._plain: dict[tuple[str, int], Content] = {}
        self._chips: dict[int, Content] = {}
        self._texts: dict[tuple[object, object], tuple[str, str]] = {}
        self._fan = fan_in(graph)
        self._add_inner()
        self._add_leaves()
        self._add_ghosts()
        self._limit_chips()

    def _add_inner(self) -> None:
        nodes, edges = self._graph.nodes, self._graph.edges
        for position, (root, name) in enumerate(self._graph.roots):
            title = messages.text("graphs.no_graph", name=name) if root is None else ""
            kept = () if root is None else (root,)
            self.clusters.append(Cluster(f"o{position}", short_content("output", str(name), title), kept))
        roots = len(self.clusters)
        for node in nodes:
            if node.kind != "leaf":
                self._at[node.id] = len(self.clusters)
                self.clusters.append(self._cluster(node))
        below: list[list[int]] = [[] for _ in self.clusters]
        for position in range(roots):
            root = self._graph.roots[position][0]
            if root is not None and root in self._at:
                below[position].append(self._at[root])
        inner = []
        for i, edge in enumerate(edges):
            if edge.target in self._at:
                below[self._at[edge.source]].append(self._at[edge.target])
                inner.append(i)
        self.rank = ranks(below)
        self._link_roots()
        self._link_inner(inner)

    def _cluster(self, node: Node) -> Cluster:
        fan = self._fan.get(node.id, 0)
        if node.kind == "function":
            content = function_content(node, fan)
        elif self._is_plain(node, fan):
            content = self._plain.get((str(node.name), fan)) or op_content(node, fan, self.dtype)
            self._plain[str(node.name), fan] = content
        else:
            content = op_content(node, fan, self.dtype)
        return Cluster(box_key(node), content, node.members or (node.id,), fan, node.freed, node.frozen)

    @staticmethod
    def _is_plain(node: Node, fan: int) -> bool:
        """Return True if the box says nothing but the node's name, so that others of that name look the same."""
        own = node.label or node.storages or node.origin or node.first_bad or len(node.members) > 1
        return not own and (fan < 2 or node.gradient is None)

    def _link_roots(self) -> None:
        for position, (root, _) in enumerate(self._graph.roots):
            if root is not None and root in self._at:
                node = self._graph.nodes[root]
                slot = self._graph.slots[position] if position < len(self._graph.slots) else 0
                shape = node.gradients[slot].shape if slot < len(node.gradients) else None
                self.links.append(ClusterLink(position, self._at[root], (), shape_text(shape), ""))

    def _link_inner(self, inner: list[int]) -> None:
        edges, links, at, rank = self._graph.edges, self.links, self._at, self.rank
        spans = [rank[at[edges[i].target]] - rank[at[edges[i].source]] for i in inner]
        longest = self._longest(spans)
        portals: dict[int, list[int]] = {}
        for i, span in zip(inner, spans, strict=True):
            edge = edges[i]
            if span > longest:
                portals.setdefault(edge.target, []).append(i)
                continue
            label, style = self._text(edge)
            links.append(ClusterLink(at[edge.source], at[edge.target], edge.members or (i,), label, style))
        for target, far in portals.items():
            self._add_portals(target, far)

    def _text(self, edge: Edge) -> tuple[str, str]:
        """Return an edge's label and style; before backward the same for all of one shape and dtype."""
        if edge.gradient is not None or edge.state or edge.stale or edge.members or edge.wrong:
            return edge_text(edge, self.dtype)
        look = edge.shape, edge.dtype
        text = self._texts.get(look)
        if text is None:
            text = self._texts[look] = edge_text(edge, self.dtype)
        return text

    def _longest(self, spans: list[int]) -> int:
        """Count the ranks that an edge may span, so that all long edges together stay payable."""
        room = 2000 + 2 * len(self.clusters)
        longest = LONGEST
        while longest > 2 and sum(s for s in spans if s <= longest) - len(spans) > room:
            longest //= 2
        return longest

    def _add_portals(self, target: int, far: list[int]) -> None:
        nodes, edges = self._graph.nodes, self._graph.edges
        cluster = self.clusters[self._at[target]]
        for i in far:
            label, style = edge_text(edges[i], self.dtype)
            content = short_content("portal", f"↓ {_name(nodes[target])}")
            self.clusters[self._at[edges[i].source]].rights.append(
                ClusterChip(f"p{i}.s", content, self._members(target), edges[i].members or (i,), label, style)
            )
        names = {_name(nodes[edges[i].source]) for i in far}
        text = f"↑ {names.pop() if len(names) == 1 else ''}{f' ×{len(far)}' if len(far) > 1 else ''}"
        sources = tuple(m for i in far for m in self._members(edges[i].source))
        label, style = edge_text(largest([edges[i] for i in far]), self.dtype)
        label = label if len(far) == 1 else ""
        stands_for = tuple(e for i in far for e in edges[i].members or (i,))
        cluster.lefts.append(
            ClusterChip(f"p{far[0]}.t", short_content("portal", text), sources, stands_for, label, style)
        )

    def _members(self, node: int) -> tuple[int, ...]:
        return self._graph.nodes[node].members or (node,)

    def _add_leaves(self) -> None:
        uses: dict[int, list[int]] = {}
        nodes, edges = self._graph.nodes, self._graph.edges
        for i, edge in enumerate(edges):
            if nodes[edge.target].kind == "leaf":
                uses.setdefault(edge.target, []).append(i)
        for position, (root, _) in enumerate(self._graph.roots):
            if root is not None and nodes[root].kind == "leaf":
                self._stand(root, uses.pop(root, []), position)
        for leaf, at in uses.items():
            places = [self.rank[self._at[edges[i].source]] for i in at]
            if 2 <= len(at) <= SHARED_USES and max(places) - min(places) < SHARED_SPAN:
                self._stand(leaf, at, None)
            else:
                for i in at:
                    self._chip(leaf, i, len(at))

    def _stand(self, leaf: int, at: list[int], root: int | None) -> None:
        """Give a leaf a place of its own below its uses."""
        edges = self._graph.edges
        here = len(self.clusters)
        fan = self._fan.get(leaf, 0)
        content = leaf_content(self._graph.nodes[leaf], 1, fan, self.dtype)
        node = self._graph.nodes[leaf]
        self.clusters.append(Cluster(box_key(node), content, node.members or (leaf,), fan))
        above = [self.rank[self._at[edges[i].source]] for i in at] + ([self.rank[root]] if root is not None else [])
        self.rank.append(max(above, default=-1) + 1)
        if root is not None:
            self.links.append(ClusterLink(root, here, (), shape_text(self._graph.nodes[leaf].shape), ""))
        for i in at:
            label, style = self._text(edges[i])
            self.links.append(ClusterLink(self._at[edges[i].source], here, edges[i].members or (i,), label, style))

    def _chip(self, leaf: int, i: int, uses: int) -> None:
        edge = self._graph.edges[i]
        label, style = self._text(edge)
        node = self._graph.nodes[leaf]
        content = self._chips.get(leaf)
        if content is None:
            content = self._chips[leaf] = leaf_content(node, uses, 0, self.dtype)
        key = box_key(node) if uses == 1 else f"{box_key(node)}.e{i}"
        chip = ClusterChip(key, content, node.members or (leaf,), edge.members or (i,), label, style)
        self.clusters[self._at[edge.source]].rights.append(chip)

    def _add_ghosts(self) -> None:
        """Add what no gradient gets to: beside the node that used its values, else beside the first root."""
        for i, ghost in enumerate(self._graph.ghosts):
            place = self._at.get(ghost.node, 0) if ghost.node is not None else 0
            if place < len(self.clusters):
                self.clusters[place].rights.append(
                    ClusterChip(f"x{i}", ghost_content(ghost), (), (), ghost_word(ghost), "none")
                )

    def _limit_chips(self) -> None:
        for cluster in self.clusters:
            if len(cluster.rights) > MOST_CHIPS:
                rest = cluster.rights[MOST_CHIPS - 1 :]
                text = messages.text("graphs.more", count=len(rest))
                nodes = tuple(n for chip in rest for n in chip.nodes)
                edges = tuple(e for chip in rest for e in chip.edges)
                style = "bad" if any(chip.style == "bad" for chip in rest) else ""
                more = ClusterChip(f"{cluster.key}.more", short_content("leaf", text), nodes, edges, "", style)
                cluster.rights[MOST_CHIPS - 1 :] = [more]


def box_key(node: Node) -> str:
    """Return the key of a node's box; in a folded graph by the old id, so that it stays the same."""
    members = node.members
    if not members:
        return f"n{node.id}"
    return f"g{members[0]}" if len(members) > 1 else f"n{members[0]}"


def _name(node: Node) -> str:
    return node.label or node.function or str(node.name)
