"""Contents: the words in each box, and how large the box must be to hold them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Ghost, Node, Stale
from nbautograd.core.values import TensorSummary
from nbautograd.views.layout import BoxKind, Line
from nbautograd.views.layout.text import fit, printable, shape_text, text_width

PAD = 9  # between a box's border and its text
OP, CHIP, FAN = 26, 22, 15  # heights of an op, of a chip, and of the line that tells a fan-in
STEEP = 1000  # by how much gradients shrink or grow along a box before a word says so
WIDEST = {"op": 190, "group": 340, "leaf": 150, "name": 110, "type": 130, "preview": 170}


@dataclass(frozen=True)
class Content:
    """The inside of a box: its size, its lines, and everything in full.

    Attributes:
        kind: the box's kind.
        width, height: in px.
        lines: the text.
        title: the tooltip, empty where the box says it all.
    """

    kind: BoxKind
    width: int
    height: int
    lines: tuple[Line, ...]
    title: str = ""


def op_content(node: Node, fan_in: int, dtype: str | None) -> Content:
    """Describe an op of torch, or a group of nodes: one line, more for summed gradients or what is wrong."""
    kind: BoxKind = "group" if len(node.members) > 1 else "op"
    label = "" if node.outputs or not node.label else fit(node.label, 80, "name")
    whole = messages.text("graphs.frozen", name=node.name) if node.frozen and kind == "group" else str(node.name)
    name = fit(whole, WIDEST[kind])
    start = PAD + (text_width(label, "name") + 5 if label else 0)
    width = start + text_width(name) + PAD
    lines = [Line(label, PAD, 17, "name")] if label else []
    lines.append(Line(name, start, 17, "text"))
    height = OP
    if fan_in > 1:
        total = sum_text(node, fan_in)
        width = max(width, text_width(total, "muted") + 2 * PAD)
        lines.append(Line(total, PAD, OP + 7, "muted"))
        height += FAN
    for text, style in further_texts(node):
        width = max(width, text_width(text, style) + 2 * PAD)
        lines.append(Line(text, PAD, height + 7, style))
        height += FAN
    return Content(kind, width, height, tuple(lines), printable(_op_title(node, whole, name != whole)))


def _op_title(node: Node, name: str, elided: bool) -> str:
    """Return everything in full, where the box does not say it all: for a repeat the norm at each part."""
    if not elided and len(node.members) < 2:
        return ""
    title = name if name.startswith(node.scope) else f"{node.scope} · {name}"
    title += f"; {node.wrong}" if node.wrong else ""
    if node.repeats and node.norms:
        title += f"; {messages.text('graphs.norms', norms=', '.join(formats.number(norm, 3) for norm in node.norms))}"
    return title


def further_texts(node: Node) -> list[tuple[str, str]]:
    """List what was changed in place, the node of a first graph it comes from."""
    texts = [(text, "bad") for text in list(dict.fromkeys(map(stale_text, node.stale)))[:2]]
    if node.wrong:
        texts.append((messages.text("graphs.wrong_inside"), "bad"))
    if node.first_bad:
        texts.append((messages.text("graphs.first_bad_here", what=node.first_bad), "bad"))
    if len(node.norms) > 1:
        texts += norm_texts(node.norms)
    if node.origin is not None:
        word = "graphs.the_same" if node.origin.same else "graphs.derivative_of"
        texts.append((messages.text(word, name=fit(node.origin.name, 150, "muted")), "muted"))
    return texts


def norm_texts(norms: Sequence[float]) -> list[tuple[str, str]]:
    """Return gradient norms along a folded box, and a word where they vanish, explode or are no numbers."""
    texts = [(f"|g| {formats.number(norms[0], 3)} {sparkline(norms)} {formats.number(norms[-1], 3)}", "muted")]
    bad = sum(not math.isfinite(norm) for norm in norms)
    if bad:
        texts.append((messages.text("graphs.not_finite", count=bad, times=len(norms)), "bad"))
    elif len(norms) > 3 and norms[0] > 0 and not 1 / STEEP < norms[-1] / norms[0] < STEEP:
        texts.append((messages.text(f"graphs.{'vanishing' if norms[-1] < norms[0] else 'exploding'}"), "bad"))
    return texts


def sparkline(norms: Sequence[float]) -> str:
    """Draw gradient norms from first node to last as bars on a logarithmic scale: vanishing, exploding ones.

    At most 16 bars; a norm of zero has the lowest one.

    Example:
        >>> from nbautograd.views.layout.contents import sparkline
        >>> sparkline([1.0, 10.0, 100.0, 0.0])
        '▃▅█▁'
    """
    count = min(len(norms), 16)
    picked = [norms[i * (len(norms) - 1) // max(count - 1, 1)] for i in range(count)]
    logs = [math.log10(norm) for norm in picked if 0 < norm < math.inf]
    low, high = min(logs, default=0.0), max(logs, default=0.0)
    span = max(high - low, 1.0)  # less than a factor of ten is flat
    bars = [round((math.log10(n) - low) / span * 5) + 2 if 0 < n < math.inf else 7 if n else 0 for n in picked]
    return "".join("▁▂▃▄▅▆▇█"[bar] for bar in bars)


def stale_text(stale: Stale) -> str:
    """Return ``y: v0 → v1, line 3``."""
    line = "" if stale.line is None else f" · {messages.text('views.line', line=stale.line)}"
    return f"{fit(stale.name or stale.slot, 80, 'bad')}: v{stale.saved} → v{stale.now}{line}"


def sum_text(node: Node, fan_in: int) -> str:
    """Count the gradients that meet here; after backward give the norm of their sum."""
    total = f" → {norm_text(node.gradient)}" if node.gradient is not None else ""
    return f"Σ {fan_in}{total}"


def leaf_content(node: Node, uses: int, fan_in: int, dtype: str | None) -> Content:
    """Describe a leaf's chip: the user's name of it and its shape."""
    name = fit(node.label or messages.text("graphs.leaf"), WIDEST["leaf"], "name")
    shape = shape_text(node.shape) + (f" {node.dtype}" if node.dtype != dtype and node.dtype else "")
    many = f" ×{uses}" if uses > 1 else ""
    start = PAD + text_width(name, "name") + 6
    text = (shape + many).strip()
    width = start + (text_width(text, "muted") + PAD if text else PAD - 6)
    lines = [Line(text=name, x=PAD, y=15, style="name" if node.label else "muted")]
    if text:
        lines.append(Line(text=text, x=start, y=15, style="muted"))
    height = CHIP
    if fan_in > 1:
        total = sum_text(node, fan_in)
        width = max(width, text_width(total, "muted") + 2 * PAD)
        lines.append(Line(total, PAD, 30, "muted"))
        height += FAN
    title = ""
    if name != (node.label or name) or uses > 1:
        title = messages.text("graphs.leaf_title", name=node.label or name, uses=uses)
    return Content("leaf", width, height, tuple(lines), printable(title))


def ghost_content(ghost: Ghost) -> Content:
    """Describe a tensor that no gradient gets to."""
    name = fit(ghost.name, WIDEST["leaf"], "name")
    shape = shape_text(ghost.shape)
    start = PAD + text_width(name, "name") + 6
    lines = (Line(name, PAD, 15, "name"), Line(shape, start, 15, "muted"))
    title = messages.text("graphs.ghost", name=ghost.name)
    return Content("ghost", start + text_width(shape, "muted") + PAD, CHIP, lines, printable(title))


def ghost_word(ghost: Ghost) -> str:
    """Name what cut a tensor off, in a word or two, with the line where it is known."""
    return messages.text(f"graphs.cut.{ghost.reason}")


def short_content(kind: BoxKind, text: str, title: str = "") -> Content:
    """Describe a chip with one line: an output's name, or the far end of a portal."""
    shown = fit(text, WIDEST["leaf"], "name")
    full = title or (text if shown != text else "")
    return Content(kind, text_width(shown, "name") + 2 * PAD, CHIP, (Line(shown, PAD, 15, "name"),), printable(full))


def norm_text(gradient: TensorSummary) -> str:
    """Write the norm of what flowed in a few characters, or that it holds NaN, Inf or only zeros."""
    if gradient.nan:
        return f"{gradient.nan} NaN"
    if gradient.inf:
        return f"{gradient.inf} Inf"
    if gradient.norm is None:
        return shape_text(gradient.shape)
    return f"|g| {formats.number(gradient.norm, 3)}"


def edge_text(edge: Edge, dtype: str | None) -> tuple[str, str]:
    """Return an edge's label and style: the gradient's shape before backward, its norm after, of several the largest.

    One that the latest check found wrong has a cross before it.
    """
    if edge.wrong:
        return f"✗ {edge_text(replace(edge, wrong=''), dtype)[0]}", "wrong"
    if edge.stale:
        return edge.stale, "bad"
    if edge.state == "none":
        return "None", "none"
    if edge.state == "not reached":
        return "–", "none"
    if edge.gradient is not None:
        style = "bad" if edge.gradient.nan or edge.gradient.inf else ""
        if not style and edge.gradient.numel and edge.gradient.zeros == edge.gradient.numel:
            style = "zero"
        text = norm_text(edge.gradient)
        return text.replace("|g| ", "|g| ≤ ") if len(edge.members) > 1 else text, style
    if len(edge.members) > 1:
        return messages.text("graphs.edges", count=len(edge.members)), ""
    other = f" {edge.dtype}" if edge.dtype is not None and edge.dtype != dtype else ""
    return shape_text(edge.shape) + other, ""


def commonest_dtype(graph: AutogradGraph) -> str | None:
    """Return the dtype that most gradients have; labels leave it out."""
    dtypes = Counter([edge.dtype for edge in graph.edges if edge.dtype])
    return dtypes.most_common(1)[0][0] if dtypes else None


def fan_in(graph: AutogradGraph) -> Mapping[int, int]:
    """Count the gradients summed at a node: the most that arrive for one of its outputs."""
    arrivals: Counter[tuple[int, int]] = Counter([(edge.target, edge.output_nr) for edge in graph.edges])
    for position, (root, _) in enumerate(graph.roots):
        if root is not None:
            arrivals[root, graph.slots[position] if position < len(graph.slots) else 0] += 1
    fans: dict[int, int] = {}
    for (node, _), count in arrivals.items():
        if count > fans.get(node, 1):
            fans[node] = count
    return fans
