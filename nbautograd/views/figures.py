"""Jacobians as matplotlib figures for print: analytical, numerical and difference, one symmetric scale per block."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.checking.block import Block, GradcheckReport, JacobianBlock, JacobianReport
from nbautograd.errors import CallError, InputError
from nbautograd.inspection.report import FunctionReport
from nbautograd.views import theme
from nbautograd.views.jacobian import PANELS, by_interest, drawable, labels, worst_cell
from nbautograd.views.phrases import block_name, block_verdict, counted

MOST = 6  # blocks of one figure
CELLS = 64  # a larger block is pooled to this many rows and columns
WRITTEN = 8  # rows and columns of a matrix whose numbers are written into its cells
SMALL = 7
MARKED = 500  # cells of one map that get a mark of their own
LONG = 3  # letters of an index that has no room beside the next one
RESOLUTION = 160  # dots per inch in a notebook; vector formats do not need it


class Plot(Figure):
    """A figure that a notebook shows even before pyplot was imported."""

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        self.savefig(target, format="png", dpi=RESOLUTION)
        return target.getvalue()


def plot(value: Any, ax: Any = None) -> Figure:
    """Draw the blocks of a report, a row each: what backward says, what finite differences say, the difference.

    Args:
        value: a ``FunctionReport``, ``GradcheckReport`` or ``JacobianReport``, or one block.
        ax: an Axes to draw the most interesting block into; a new figure with up to six blocks when None.

    Returns:
        The Figure; the worst entry of a wrong block has a frame, exact zeros are white, NaN is hatched.

    Raises:
        CallError: for a value that has no Jacobian.
        InputError: when the report holds no block with entries.
    """
    blocks = [b for b in by_interest(_blocks(value)) if b.entries]
    if not blocks:
        raise InputError("views.plot.nothing")
    if ax is not None:
        _inset(ax, blocks[0])
        figure: Figure = ax.figure
        return figure
    return _new(blocks)


@singledispatch
def _blocks(value: Any) -> Sequence[JacobianBlock]:
    raise CallError("views.plot.what", type=type(value).__name__)


@_blocks.register
def _(value: FunctionReport) -> Sequence[JacobianBlock]:
    return list(value.gradcheck.blocks.values())


@_blocks.register(GradcheckReport)
@_blocks.register(JacobianReport)
def _(value: GradcheckReport | JacobianReport) -> Sequence[JacobianBlock]:
    return list(value.blocks.values())


@_blocks.register
def _(value: JacobianBlock) -> Sequence[JacobianBlock]:
    return [value]


def _new(blocks: Sequence[JacobianBlock]) -> Figure:
    shown = blocks[:MOST]
    figure = Plot(figsize=(7.2, sum(_height(b) for b in shown)), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=[_height(b) for b in shown])[:, 0]
    for row, block in zip(rows, shown, strict=True):
        row.suptitle(_title(block), fontsize=8, x=0.01, ha="left")
        _draw(block, row.subplots(1, len(PANELS)), None)
    if len(blocks) > MOST:
        figure.supxlabel(counted("more_blocks", len(blocks) - MOST), fontsize=7)
    return figure


def _height(block: JacobianBlock) -> float:
    """Return the inches that a row needs: as the matrix is shaped, within reason."""
    rows, cols = block.shape
    return 0.85 + 1.75 * float(np.clip(rows / max(cols, 1), 0.25, 1.4))


def _inset(ax: Axes, block: JacobianBlock) -> None:
    ax.set_axis_off()
    ax.set_title(_title(block), fontsize=8, loc="left")
    panels = [ax.inset_axes((0.31 * k + 0.03, 0.0, 0.25, 0.9)) for k in range(len(PANELS))]
    _draw(block, panels, ax.inset_axes((0.94, 0.1, 0.015, 0.7)))


def _title(block: JacobianBlock) -> str:
    name = block_name(block).replace("$", r"\$")
    return f"{name}   {block_verdict(block)}" if isinstance(block, Block) else name


def _draw(block: JacobianBlock, axes: Sequence[Axes], bar_in: Axes | None) -> None:
    pooled = block.pooled(CELLS, CELLS)
    arrays = [drawable(getattr(pooled, name)) for name in PANELS]
    top = theme.robust_limit(*arrays[:2])
    scale = ScalarMappable(Normalize(-top, top), LinearSegmentedColormap.from_list("dawn", list(theme.DAWN)))
    for ax, name, values in zip(axes, PANELS, arrays, strict=True):
        ax.imshow(theme.rgb(values, top), aspect="equal", interpolation="nearest")
        ax.set_title(messages.text(f"views.panel.{name}"), fontsize=SMALL)
        _write(ax, values, top)
        _hatch(ax, values)
        _corners(ax, values, top)
        _ticks(ax, block, (pooled.rows, pooled.cols), values.shape)
    axes[0].set_ylabel(block.output_name, fontsize=SMALL)
    if (cell := worst_cell(block, pooled)) is not None:
        axes[2].add_patch(Rectangle((cell[1] - 0.5, cell[0] - 0.5), 1, 1, fill=False, lw=1.6, ec=theme.BLACK))
    outside = any(theme.beyond(values, top).any() for values in arrays)
    beside: dict[str, Any] = {"cax": bar_in} if bar_in is not None else {"ax": list(axes), "shrink": 0.8, "pad": 0.02}
    bar = axes[0].figure.colorbar(scale, ticks=[-top, 0, top], extend="both" if outside else "neither", **beside)
    bar.outline.set_linewidth(0.5)
    bar.ax.set_yticklabels([formats.number(t, 3) for t in (-top, 0.0, top)], fontsize=6)
    bar.ax.tick_params(length=2, width=0.5)


def _write(ax: Axes, values: np.ndarray[Any, Any], top: float) -> None:
    """Write the numbers themselves, in a matrix small enough for them."""
    if max(values.shape) > WRITTEN:
        return
    table, index = theme.colours("light"), theme.indices(values, top)
    for r, c in np.argwhere((index != theme.PAPER_INDEX) & (index != theme.NAN_INDEX)):
        ink = theme.ink_on(table[index[r, c]])
        ax.text(c, r, formats.short(float(values[r, c])), ha="center", va="center", fontsize=6, color=ink)


def _hatch(ax: Axes, values: np.ndarray[Any, Any]) -> None:
    for side in ax.spines.values():
        side.set_linewidth(0.5)
    for r, c in np.argwhere(np.isnan(values))[:MARKED]:
        ax.add_patch(Rectangle((c - 0.5, r - 0.5), 1, 1, fill=False, hatch="xxxx", lw=0, ec=theme.BLACK))


def _corners(ax: Axes, values: np.ndarray[Any, Any], top: float) -> None:
    """Mark cells beyond the scale in a corner, as heat maps do."""
    for r, c in np.argwhere(theme.beyond(values, top))[:MARKED]:
        corner = [(c + 0.1, r - 0.5), (c + 0.5, r - 0.5), (c + 0.5, r - 0.1)]
        ax.add_patch(Polygon(corner, color=theme.BLACK, lw=0))


def _ticks(ax: Axes, block: JacobianBlock, per_cell: tuple[int, int], shape: tuple[int, ...]) -> None:
    """Index names on both sides, as many as have room."""
    sides = (
        (ax.yaxis, block.output_shape, block.output_complex, 0, 12),
        (ax.xaxis, block.input_shape, block.input_complex, 1, 8),
    )
    longest = 0
    for axis, sizes, pairs, k, most in sides:
        names = labels(sizes, per_cell[k], shape[k], pairs)
        longest = max(map(len, names), default=0)
        step = max(1, -(-len(names) // most))
        axis.set_ticks(range(0, len(names), step), names[::step], fontsize=6)
    ax.tick_params(length=2, width=0.5)
    ax.set_xlabel(block.input_name, fontsize=SMALL)
    if longest > LONG:
        ax.tick_params(axis="x", labelrotation=90)
