"""Contents: the words in each box, and how large the box must be to hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Ghost, Node, Stale
from nbautograd.core.graphs.quick import make
from nbautograd.core.values import TensorSummary, Value
from nbautograd.views.layout import BoxKind, Line
from nbautograd.views.layout.text import fit, printable, shape_text, text_width

PAD = 9  # between a box's border and its text
ROW = 17  # height of a line of a Function's box
OP, CHIP, FAN = 26, 22, 15  # heights of an op, of a chip, and of the line that tells a fan-in
WIDEST = {"op": 190, "group": 300, "leaf": 150, "name": 110, "type": 130, "preview": 170}
ROWS = 12  # ctx fields shown of each kind


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


def op_content(node: Node, fan_in: int, dtype: str | None, lens: str = "") -> Content:
    """An op of torch, or a group of nodes: one line, and more where gradients are summed or a lens tells something."""
    kind: BoxKind = "group" if len(node.members) > 1 else "op"
    label = "" if node.outputs or not node.label else fit(node.label, 80, "name")
    name = fit(node.name, WIDEST[kind])
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
    for text, style in lens_texts(node, lens):
        width = max(width, text_width(text, style) + 2 * PAD)
        lines.append(Line(text, PAD, height + 7, style))
        height += FAN
    elided = name != node.name
    title = (
        f"{node.scope} · {node.name}".removeprefix(" · ") if elided or (node.scope and len(node.members) > 1) else ""
    )
    return Content(kind, width, height, tuple(lines), printable(title))


def lens_texts(node: Node, lens: str) -> list[tuple[str, str]]:
    """What was changed in place since it was saved, and under the memory lens how much the node keeps."""
    texts = [(stale_text(stale), "bad") for stale in node.stale[:2]]
    if lens == "memory" and node.storages:
        texts.insert(0, (messages.text("graphs.kept", size=size_text(node.bytes)), "muted"))
    return texts


def stale_text(stale: Stale) -> str:
    """``y: v0 → v1, line 3``."""
    line = "" if stale.line is None else f" · {messages.text('graphs.line', line=stale.line)}"
    return f"{fit(stale.name or stale.slot, 80, 'bad')}: v{stale.saved} → v{stale.now}{line}"


def size_text(count: int) -> str:
    """``12 B``, ``4.1 kB``, ``33 MB``."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}"


def sum_text(node: Node, fan_in: int) -> str:
    """How many gradients meet here, and after backward the norm of their sum."""
    total = f" → {norm_text(node.gradient)}" if node.gradient is not None else ""
    return f"Σ {fan_in}{total}"


def leaf_content(node: Node, uses: int, fan_in: int, dtype: str | None) -> Content:
    """A leaf's chip: the user's name of it and its shape."""
    name = fit(node.label or messages.text("graphs.leaf"), WIDEST["leaf"], "name")
    shape = shape_text(node.shape) + (f" {node.dtype}" if node.dtype != dtype and node.dtype else "")
    many = f" ×{uses}" if uses > 1 else ""
    start = PAD + text_width(name, "name") + 6
    text = (shape + many).strip()
    width = start + (text_width(text, "muted") + PAD if text else PAD - 6)
    lines = [make(Line, text=name, x=PAD, y=15, style="name" if node.label else "muted")]
    if text:
        lines.append(make(Line, text=text, x=start, y=15, style="muted"))
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
    """A tensor that no gradient gets to."""
    name = fit(ghost.name, WIDEST["leaf"], "name")
    shape = shape_text(ghost.shape)
    start = PAD + text_width(name, "name") + 6
    lines = (Line(name, PAD, 15, "name"), Line(shape, start, 15, "muted"))
    title = messages.text("graphs.ghost_title", name=ghost.name) + (f" {ghost.text}" if ghost.text else "")
    return Content("ghost", start + text_width(shape, "muted") + PAD, CHIP, lines, printable(title))


def ghost_word(ghost: Ghost) -> str:
    """What cut a tensor off, in a word or two, with the line where it is known."""
    line = "" if ghost.line is None else f" · {messages.text('graphs.line', line=ghost.line)}"
    return messages.text(f"graphs.cut.{ghost.reason}") + line


def short_content(kind: BoxKind, text: str, title: str = "") -> Content:
    """A chip with one line: an output's name, or the far end of a portal."""
    shown = fit(text, WIDEST["leaf"], "name")
    full = title or (text if shown != text else "")
    return Content(kind, text_width(shown, "name") + 2 * PAD, CHIP, (Line(shown, PAD, 15, "name"),), printable(full))


def function_content(node: Node, fan_in: int, lens: str = "") -> Content:
    """A custom Function: its name, its line, what it saved, its ctx fields, which inputs need a gradient."""
    table = _Table()
    line = "" if node.line is None else messages.text("graphs.line", line=node.line)
    name = fit(node.function or node.name, 300, "title")
    if node.label and not node.outputs:
        name = f"{fit(node.label, 80, 'title')} = {name}"
    table.head(name, line)
    ctx = node.ctx
    if ctx is not None:
        table.section("saved_tensors", ctx.saved_tensors, node.freed)
        table.section("ctx", tuple(replace(v, name=k) for k, v in ctx.attributes.items()), False)
        table.flags(node.inputs, ctx.needs_input_grad)
    if fan_in > 1:
        table.wide(sum_text(node, fan_in), "muted")
    elif node.gradient is not None:
        table.wide(f"grad_output {norm_text(node.gradient)}", "muted")
    for text, style in lens_texts(node, lens):
        table.wide(text, style)
    return table.content(_function_title(node))


def _function_title(node: Node) -> str:
    parts = [node.name]
    if node.ctx is not None:
        parts += [f"{v.name}: {v.repr}" for v in (*node.ctx.saved_tensors, *node.ctx.attributes.values())]
    return printable("; ".join(parts))


class _Table:
    """Rows of up to three columns, laid out once all of them are known."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, ...]] = []
        self._styles: list[tuple[str, ...]] = []

    def head(self, name: str, line: str) -> None:
        self._rows.append((name, line))
        self._styles.append(("title", "muted"))

    def wide(self, text: str, style: str) -> None:
        self._rows.append((text,))
        self._styles.append((style,))

    def section(self, name: str, values: tuple[Value, ...], freed: bool) -> None:
        """A heading and a row per value; nothing when there is neither."""
        if not values and not freed:
            return
        heading = f"{name} · {messages.text('graphs.freed_word')}" if freed else name
        self.wide(heading, "bad" if freed else "muted")
        for value in values[:ROWS]:
            kind, preview = value_texts(value)
            self._rows.append(
                (
                    fit(value.name, WIDEST["name"], "name"),
                    fit(kind, WIDEST["type"], "muted"),
                    fit(preview, WIDEST["preview"], "muted"),
                )
            )
            self._styles.append(("name", "muted", "muted"))
        if len(values) > ROWS:
            self.wide(messages.text("graphs.more", count=len(values) - ROWS), "muted")

    def flags(self, inputs: tuple[str, ...], needs: tuple[bool, ...]) -> None:
        """``needs_input_grad``, input by input."""
        if not needs:
            return
        self.wide("needs_input_grad", "muted")
        row = ""
        for i, need in enumerate(needs[:ROWS]):
            name = inputs[i] if i < len(inputs) and not inputs[i].startswith("*") else str(i)
            item = f"{fit(name, 70, 'text')} {'✓' if need else '✗'}"
            if row and text_width(f"{row} · {item}", "good") > 300:
                self.wide(row, "good")
                row = item
            else:
                row = f"{row} · {item}" if row else item
        self.wide(row + (" …" if len(needs) > ROWS else ""), "good")

    def content(self, title: str) -> Content:
        """Place the rows in columns."""
        columns = [0, 0, 0]
        for row, styles in zip(self._rows, self._styles, strict=True):
            if len(row) == 3:
                for i in range(3):
                    columns[i] = max(columns[i], text_width(row[i], styles[i]))
        offsets = (PAD + 8, PAD + 8 + columns[0] + 12, PAD + 8 + columns[0] + 12 + columns[1] + 12)
        width = offsets[2] + columns[2] if any(columns) else 0
        lines: list[Line] = []
        y = 20
        for row, styles in zip(self._rows, self._styles, strict=True):
            if len(row) == 3:
                lines += [Line(t, x, y, s) for t, x, s in zip(row, offsets, styles, strict=True) if t]
            elif len(row) == 2:
                start = PAD + text_width(row[0], "title") + 14
                lines.append(Line(row[0], PAD, y, "title"))
                if row[1]:
                    lines.append(Line(row[1], start, y, "muted"))
                width = max(width, start + text_width(row[1], "muted"))
            else:
                indent = 8 if styles[0] == "good" else 0
                lines.append(Line(row[0], PAD + indent, y, styles[0]))
                width = max(width, PAD + indent + text_width(row[0], styles[0]))
            y += ROW + 1 if len(row) == 2 else ROW
        return Content("function", width + PAD, y - ROW + 9, tuple(lines), title)


def value_texts(value: Value) -> tuple[str, str]:
    """Type with shape, and preview, of a ctx field."""
    tensor = value.tensor
    if tensor is None:
        return value.type, value.repr if value.repr != value.type else ""
    return f"{tensor.dtype} {shape_text(tensor.shape)}", tensor_preview(tensor)


def tensor_preview(tensor: TensorSummary) -> str:
    """A few elements of a small tensor, the range of a larger one."""
    if tensor.nan:
        return f"{tensor.nan} NaN"
    if tensor.values is not None and 0 < len(tensor.values) <= 4:
        return f"[{', '.join(number(v) for v in tensor.values)}]"
    if tensor.min is None or tensor.max is None:
        return tensor.reason
    return f"{number(tensor.min)} … {number(tensor.max)}"


def number(value: object) -> str:
    """A number in at most seven characters or so."""
    if isinstance(value, (bool, int)):
        return str(value)
    return f"{value:.3g}" if isinstance(value, (float, complex)) else str(value)


def norm_text(gradient: TensorSummary) -> str:
    """What flowed, in a few characters: its norm, or that it holds NaN, Inf or only zeros."""
    if gradient.nan:
        return f"{gradient.nan} NaN"
    if gradient.inf:
        return f"{gradient.inf} Inf"
    if gradient.norm is None:
        return shape_text(gradient.shape)
    return f"|g| {number(gradient.norm)}"


def edge_text(edge: Edge, dtype: str | None) -> tuple[str, str]:
    """An edge's label and style: the gradient's shape before backward, its norm after."""
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
        return norm_text(edge.gradient), style
    other = f" {edge.dtype}" if edge.dtype is not None and edge.dtype != dtype else ""
    return shape_text(edge.shape) + other, ""


def commonest_dtype(graph: AutogradGraph) -> str | None:
    """The dtype that most gradients have; labels leave it out."""
    dtypes = Counter(edge.dtype for edge in graph.edges if edge.dtype)
    return dtypes.most_common(1)[0][0] if dtypes else None


def fan_in(graph: AutogradGraph) -> Mapping[int, int]:
    """How many gradients are summed at a node: the most that arrive for one of its outputs."""
    arrivals: Counter[tuple[int, int]] = Counter((edge.target, edge.output_nr) for edge in graph.edges)
    for position, (root, _) in enumerate(graph.roots):
        if root is not None:
            arrivals[root, graph.slots[position] if position < len(graph.slots) else 0] += 1
    fans: dict[int, int] = {}
    for (node, _), count in arrivals.items():
        if count > fans.get(node, 1):
            fans[node] = count
    return fans
