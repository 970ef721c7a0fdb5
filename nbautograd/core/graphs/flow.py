"""Flow: what one backward carried, by node and by edge."""

from __future__ import annotations

from dataclasses import dataclass, field

from nbautograd.core.values import TensorSummary


@dataclass
class Flow:
    """What one backward carried.

    Attributes:
        nodes: node id -> the sums that arrived at it, one per output.
        edges: (node id, position among its gradients) -> what it sent there; None when it sent None.
        ran: node ids in the order in which the engine ran them.
        first_bad: the first node that made a NaN or an Inf out of finite gradients, and which of the two it made.
        made: with ``create_graph``: node id -> sequence numbers of the first node that it made and one past the last.
    """

    nodes: dict[int, tuple[TensorSummary | None, ...]] = field(default_factory=dict)
    edges: dict[tuple[int, int], TensorSummary | None] = field(default_factory=dict)
    ran: list[int] = field(default_factory=list)
    made: dict[int, tuple[int, int]] = field(default_factory=dict)
    first_bad: tuple[int, str] | None = None

    def carried(self, node: int, position: int, target: int) -> tuple[TensorSummary | None, str]:
        """What an edge carried, and its state."""
        if not self.ran:
            return None, ""
        summary = self.edges.get((node, position))
        if summary is not None:
            return summary, "flowed"
        return None, "none" if target in self.nodes and (node, position) in self.edges else "not reached"

    def arrived(self, node: int, sums: list[TensorSummary | None]) -> None:
        """Keep what arrived at a node."""
        self.nodes[node] = tuple(sums)

    def into(self, node: int) -> TensorSummary | None:
        """The first gradient that arrived at a node, of one or several outputs."""
        return next((summary for summary in self.nodes.get(node, ()) if summary is not None), None)
