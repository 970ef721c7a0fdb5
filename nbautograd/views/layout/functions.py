"""A custom Function's box: its name, its line, what it saved, its ctx fields, which inputs need a gradient."""

from __future__ import annotations

from dataclasses import replace

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.graphs.graph import Node
from nbautograd.core.values import TensorSummary, Value
from nbautograd.views.layout import Line
from nbautograd.views.layout.contents import PAD, WIDEST, Content, further_texts, norm_text, sum_text
from nbautograd.views.layout.text import fit, printable, shape_text, text_width

ROW = 17  # height of a line of a Function's box
ROWS = 12  # ctx fields shown of each kind


def function_content(node: Node, fan_in: int) -> Content:
    """Describe a custom Function: its name, its line, what it saved, its ctx fields, which inputs need a gradient."""
    table = _Table()
    line = "" if node.line is None else messages.text("views.line", line=node.line)
    name = fit(node.function or str(node.name), 300, "title")
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
    for text, style in further_texts(node):
        table.wide(text, style)
    return table.content(_function_title(node))


def _function_title(node: Node) -> str:
    parts = [str(node.name)]
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
        """Add a heading and a row per value; nothing when there is neither."""
        if not values and not freed:
            return
        heading = f"{name} · {messages.text('graphs.freed_word')}" if freed else name
        self.wide(heading, "bad" if freed else "muted")
        for value in values[:ROWS]:
            kind, preview = value_texts(value)
            self._rows.append(
                (
                    fit(str(value.name), WIDEST["name"], "name"),
                    fit(kind, WIDEST["type"], "muted"),
                    fit(preview, WIDEST["preview"], "muted"),
                )
            )
            self._styles.append(("name", "muted", "muted"))
        if len(values) > ROWS:
            self.wide(messages.text("graphs.more", count=len(values) - ROWS), "muted")

    def flags(self, inputs: tuple[str, ...], needs: tuple[bool, ...]) -> None:
        """Add ``needs_input_grad``, input by input."""
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
    """Return the type with shape, and preview, of a ctx field."""
    tensor = value.tensor
    if tensor is None:
        return value.type, value.repr if value.repr != value.type else ""
    return f"{tensor.dtype} {shape_text(tensor.shape)}", tensor_preview(tensor)


def tensor_preview(tensor: TensorSummary) -> str:
    """Return a few elements of a small tensor, the range of a larger one."""
    if tensor.nan:
        return f"{tensor.nan} NaN"
    if tensor.values is not None and 0 < len(tensor.values) <= 4:
        return f"[{', '.join(formats.number(v, 3) for v in tensor.values)}]"
    if tensor.min is None or tensor.max is None:
        return str(tensor.reason or "")
    return f"{formats.number(tensor.min, 3)} … {formats.number(tensor.max, 3)}"
