"""A block of a Jacobian on a stored page: backward, finite differences and difference beside each other, one scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.checking.block import JacobianBlock, Pooled
from nbautograd.views import palette
from nbautograd.views.heatmap import heatmap, legend
from nbautograd.views.heatmap.place import Axis
from nbautograd.views.jacobian import (
    PANELS,
    Array,
    breaks,
    drawable,
    labels,
    shown_difference,
    worst_cell,
    wrong_cells,
)
from nbautograd.views.markup import Markup, join, picture, tag
from nbautograd.views.phrases import block_name

IMAGE = "display:block;max-width:100%;height:auto;margin:2px 0 0 0"
FIGURE = "display:inline-block;vertical-align:top;margin:0 16px 6px 0"
LONG_LABEL = 3  # letters


def panels(block: JacobianBlock) -> Markup:
    """Draw a block by backward, by finite differences and their difference, the scale below.

    Raises:
        LookupError, TypeError, ValueError: when its numbers were not kept.
    """
    pooled = block.pooled(32, 32)
    arrays = {panel: drawable(getattr(pooled, panel)) for panel in PANELS}
    top = palette.robust_limit(arrays["analytical"], arrays["numerical"])
    h, w = arrays["analytical"].shape
    wrong = wrong_cells(block, (0, 0), (pooled.rows, pooled.cols), (h, w))
    arrays["difference"] = shown_difference(block, arrays["difference"], wrong)
    outputs, inputs = (block.output_shape, pooled.rows, h), (block.input_shape, pooled.cols, w)
    rows = Axis(block.output_name, labels(*outputs, block.output_complex), breaks(*outputs))
    cols = Axis(block.input_name, labels(*inputs, block.input_complex), breaks(*inputs))
    short = max(map(len, rows.labels), default=0) <= LONG_LABEL  # long ones are written once, so that all three fit
    worst = worst_cell(block, pooled)
    figures = []
    for panel, values in arrays.items():
        beside = rows if short or panel == "analytical" else Axis(breaks=rows.breaks)
        marked = worst if panel == "difference" else None
        image = picture(
            heatmap(values, top, beside, cols, marked), _alt(block, panel, values, marked), {"style": IMAGE}
        )
        caption = tag("div", {"style": "font-size:0.9em;opacity:0.75"}, _caption(panel, values, top))
        figures.append(tag("div", {"style": FIGURE}, caption, image))
    scale = _scale(pooled, list(arrays.values()), top, worst)
    return join((tag("div", {"style": "margin:0"}, *figures), scale))


def _caption(panel: str, values: Array, top: float) -> str:
    words = messages.text(f"views.panel.{panel}")
    if panel == "difference" and bool((palette.indices(values, top) == palette.PAPER_INDEX).all()):
        return messages.text("views.panel.none", panel=words)
    return words


def _scale(pooled: Pooled, arrays: Sequence[Array], top: float, worst: tuple[int, int] | None) -> Markup:
    low, high = f"-{formats.number(top, 3)}", formats.number(top, 3)
    alt = messages.text("views.panel.legend_alt", low=low, high=high)
    bar = picture(legend(), alt, {"style": "display:inline-block;vertical-align:middle;margin:0 6px"})
    words = [messages.text("views.panel.scale")]
    if outside := sum(int(palette.beyond(values, top).sum()) for values in arrays):
        words.append(messages.text("views.panel.beyond", count=formats.count(outside)))
    if worst is not None:
        words.append(messages.text("views.panel.worst"))
    if (pooled.rows, pooled.cols) != (1, 1):
        words.append(messages.text("views.panel.pooled", rows=pooled.rows, cols=pooled.cols))
    if np.iscomplexobj(pooled.analytical):
        words.append(messages.text("views.panel.complex"))
    faint = tag("span", {"style": "opacity:0.75"}, " · ".join(words))
    return tag("div", {"style": "font-size:0.9em;margin:0 0 4px 0"}, low, bar, high, " ", faint)


def _alt(block: JacobianBlock, panel: str, values: Array, worst: tuple[int, int] | None) -> str:
    rows, cols = block.shape
    finite = values[np.isfinite(values)]
    low, high = (formats.number(finite.min()), formats.number(finite.max())) if finite.size else ("NaN", "NaN")
    words = messages.text(
        "views.panel.alt", panel=messages.text(f"views.panel.{panel}"), entry=block_name(block), rows=rows, cols=cols,
        output=block.output_name, input=block.input_name, low=low, high=high,
    )  # fmt: skip
    if worst is None:
        return words
    return f"{words} {messages.text('views.panel.alt_worst', row=worst[0], col=worst[1])}"
