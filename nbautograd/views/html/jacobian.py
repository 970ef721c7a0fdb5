"""Jacobian blocks on a page: analytical, numerical and difference beside each other on one scale, and as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nbautograd import messages
from nbautograd.core.checking.block import Block, JacobianBlock, JacobianReport, Pooled
from nbautograd.views import formats, palette
from nbautograd.views.heatmap import heatmap, legend
from nbautograd.views.heatmap.place import Axis
from nbautograd.views.jacobian import (
    PANELS,
    Array,
    breaks,
    by_interest,
    drawable,
    labels,
    shown_difference,
    worst_cell,
    wrong_cells,
)
from nbautograd.views.markup import Markup, join, picture, tag
from nbautograd.views.pieces import block as box
from nbautograd.views.pieces import faint, fold, matrix, name, paragraph, table
from nbautograd.views.words import block_name, block_shape, block_verdict, counted, entry_name, say

MOST_PICTURED = 4  # blocks whose pictures are shown at once
IMAGE = "display:block;max-width:100%;height:auto;margin:2px 0 0 0"
FIGURE = "display:inline-block;vertical-align:top;margin:0 16px 6px 0"
LONG_LABEL = 3  # letters
BUDGET = 34_000  # characters of pictures in one report
MOST_NUMBERS = 10  # rows and columns of a matrix that is written out


def jacobian_markup(report: JacobianReport) -> Markup:
    """A Jacobian by itself."""
    blocks = list(report.blocks.values())
    head = messages.text("views.headline.jacobian", function=report.function, blocks=counted("blocks", len(blocks)))
    parts = [box(tag("strong", None, head))]
    if not report.complete:
        parts.append(paragraph(messages.text("views.evidence.incomplete")))
    return join((*parts, blocks_pictures(blocks)))


def blocks_pictures(blocks: Sequence[JacobianBlock], budget: int = BUDGET) -> Markup:
    """The pictures of as many blocks as the budget allows; beside wrong ones those that agree are folded."""
    wrong = any(_verdict(b) == "mismatch" for b in blocks)
    made: list[Markup] = []
    for k, block in enumerate(by_interest(blocks)):
        folded = k >= MOST_PICTURED or (wrong and _verdict(block) == "match")
        drawn = _folded(block) if folded else block_markup(block)
        if made and sum(map(len, made)) + len(drawn) > budget:
            break
        made.append(drawn)
    left = len(blocks) - len(made)
    return join((*made, faint(counted("more_blocks", left)) if left else None))


def block_markup(block: JacobianBlock) -> Markup:
    """One block: its name, three pictures, the scale, the numbers."""
    head = box(tag("code", None, block_name(block)), " ", faint(_about(block)))
    return tag("div", {"style": "margin:0 0 12px 0"}, head, _inside(block))


def _folded(block: JacobianBlock) -> Markup:
    verdict = (block_verdict(block),) if isinstance(block, Block) else ()
    words = messages.text("views.comma").join((*verdict, _about(block)))
    return fold(name(block_name(block)), _inside(block), words, strong=False)


def _about(block: JacobianBlock) -> str:
    return messages.text("views.comma").join((block_shape(block), say("structure", block.structure)))


def _verdict(block: JacobianBlock) -> str:
    return block.verdict if isinstance(block, Block) else ""


def _inside(block: JacobianBlock) -> Markup:
    if not block.entries:
        return paragraph(messages.text("views.panel.empty"), "opacity:0.75")
    try:
        pooled = block.pooled(32, 32)
    except (LookupError, TypeError, ValueError, IndexError):
        return paragraph(messages.text("views.panel.unread"), "opacity:0.75")
    return join((*_panels(block, pooled), _numbers(block)))


def _panels(block: JacobianBlock, pooled: Pooled) -> tuple[Markup, Markup]:
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
    return tag("div", {"style": "margin:0"}, *figures), _scale(pooled, list(arrays.values()), top, worst)


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
    return tag("div", {"style": "font-size:0.9em;margin:0 0 4px 0"}, low, bar, high, " ", faint(" · ".join(words)))


def _alt(block: JacobianBlock, panel: str, values: Array, worst: tuple[int, int] | None) -> str:
    rows, cols = block.shape
    finite = values[np.isfinite(values)]
    low, high = (formats.number(finite.min()), formats.number(finite.max())) if finite.size else ("nan", "nan")
    words = messages.text(
        "views.panel.alt", panel=messages.text(f"views.panel.{panel}"), entry=block_name(block), rows=rows, cols=cols,
        output=block.output_name, input=block.input_name, low=low, high=high,
    )  # fmt: skip
    if worst is None:
        return words
    return f"{words} {messages.text('views.panel.alt_worst', row=worst[0], col=worst[1])}"


def _numbers(block: JacobianBlock) -> Markup | None:
    if max(block.shape) > MOST_NUMBERS:
        return _worst_numbers(block)
    try:
        analytical, numerical = block.analytical(), block.numerical()
    except (LookupError, TypeError, ValueError, IndexError):
        return _worst_numbers(block)
    header = ["", *labels(block.input_shape, 1, block.shape[1], block.input_complex)]
    names = labels(block.output_shape, 1, block.shape[0], block.output_complex) or [block.output_name]
    unequal = _unequal(block, analytical, numerical)
    rows: list[list[object]] = [
        [name, *(_cell(a, n, u) for a, n, u in zip(*triple, strict=True))]
        for name, *triple in zip(names, analytical, numerical, unequal, strict=True)
    ]
    caption = messages.text("views.caption.numbers", output=block.output_name, input=block.input_name)
    head = header if len(header) == block.shape[1] + 1 else ["", block.input_name]
    return fold(messages.text("views.numbers"), matrix(caption, head, rows), strong=False)


def _unequal(block: JacobianBlock, analytical: Array, numerical: Array) -> Array:
    """Return where the checker calls entries wrong, or unchecked ones differ by more than finite differences may."""
    if isinstance(block, Block):
        wrong = wrong_cells(block, (0, 0), (1, 1), block.shape)
        return np.zeros(block.shape, bool) if wrong is None else wrong
    with np.errstate(invalid="ignore"):
        scale = max(palette.limit(np.abs(analytical), np.abs(numerical)), 1e-300)
        close = np.abs(analytical - numerical) <= 1e-3 * np.abs(numerical) + 1e-5 * scale
    return np.asarray(~(close | (analytical == numerical)))


def _cell(analytical: complex, numerical: complex, unequal: bool) -> object:
    if not unequal:
        return formats.number(analytical)
    return tag("strong", {"style": "white-space:nowrap"}, " ≠ ".join(formats.compared(analytical, numerical)))


def _worst_numbers(block: JacobianBlock) -> Markup | None:
    if not isinstance(block, Block) or block.worst is None:
        return None
    header = [messages.text("views.column.entry"), *(messages.text(f"views.panel.{p}") for p in PANELS)]
    e = block.worst
    both = formats.compared(e.analytical, e.numerical)
    row = [entry_name(block, e), *both, formats.number(e.analytical - e.numerical)]
    return fold(messages.text("views.numbers"), table("", header, [row], right=(1, 2, 3)), strong=False)
