"""The Jacobian view: heat maps per block, pooled when large; the page asks for the cells that it zooms into."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from nbautograd.core.checking import entry_curve
from nbautograd.core.checking.block import Block, GradcheckReport, JacobianBlock, JacobianReport
from nbautograd.core.display import plain
from nbautograd.errors import InputError
from nbautograd.views.answer import answer
from nbautograd.views.builders.blocks import methods_document
from nbautograd.views.builders.summary import answer_document
from nbautograd.views.jacobian import by_interest
from nbautograd.views.packing import BlockState, ErrorCurve, Maps, Pair, array, drawn_state, listed_state, packed_maps
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.encoding import FREEZING
from nbautograd.widgets.slow_motion import motion_state
from nbautograd.widgets.states import (
    AgainAnswer,
    Answer,
    BlockAnswer,
    ElsewhereAnswer,
    EntryCurveState,
    JacobianState,
    MicroscopeAnswer,
)

Blocks = Mapping[tuple[int, int], JacobianBlock]
SIDE = 64  # most cells of a heat map along one side
BUDGET = 400_000  # bytes of heat maps that a widget sends at first
FEWEST = 8
MOST_WHOLE = 150  # blocks that are sent with heat maps and witnesses, wrong ones first; the page asks for the others


def blocks_state(blocks: Blocks) -> list[BlockState]:
    """Return all blocks, of many only the interesting ones whole, heat maps within the budget together."""
    whole = whole_blocks(blocks)
    share = BUDGET / (24 * max(len(whole), 1))
    side = max(FEWEST, min(SIDE, int(share**0.5)))
    states = {at: block_state(b, side) if at in whole else listed_state(b) for at, b in blocks.items()}
    return [replace(state, output=o, input=i) for (o, i), state in states.items()]


def whole_blocks(blocks: Blocks) -> set[Pair]:
    """Return the places of the blocks that are sent with heat maps and evidence."""
    many = len(blocks) > MOST_WHOLE and not os.environ.get(FREEZING)
    chosen = {id(block) for block in by_interest(list(blocks.values()))[: MOST_WHOLE if many else None]}
    return {place for place, block in blocks.items() if id(block) in chosen}


def block_state(block: JacobianBlock, side: int = SIDE) -> BlockState:
    """Return one block: names, shapes, verdict, and its three heat maps."""
    state = drawn_state(block, side)
    if not isinstance(block, Block):
        return state
    steps, errors = block.curve()
    return replace(
        state,
        methods=methods_document(block),
        curve=ErrorCurve(steps=array(steps), errors=array(errors)),
    )


def one_block(blocks: Blocks, question: Mapping[str, Any]) -> BlockAnswer:
    """Answer the page's question for all of a block that came in brief.

    Args:
        blocks: the report's blocks.
        question: ``block`` (output, input).

    Raises:
        InputError: when there is no such block.
    """
    place = _pair(question.get("block"), None)
    if place not in blocks:
        raise InputError("widgets.no_block")
    return BlockAnswer(block=replace(block_state(blocks[place]), output=place[0], input=place[1]))


def zoom(blocks: Blocks, question: Mapping[str, Any]) -> Maps:
    """Answer the page's question for some rows and columns of a block: exact when few, else pooled.

    Args:
        blocks: the report's blocks.
        question: ``block`` (output, input), ``rows`` and ``cols`` as (first, past the last).

    Raises:
        InputError: when no such block, rows or columns exist.
    """
    block = blocks.get(_pair(question.get("block"), None))
    if block is None:
        raise InputError("widgets.no_block")
    rows, cols = (_pair(question.get(name), most) for name, most in zip(("rows", "cols"), block.shape, strict=True))
    *maps, step = window(block, rows, cols, SIDE)
    return packed_maps(block, (rows[0], cols[0]), step, maps)


def _pair(numbers: Any, most: int | None) -> tuple[int, int]:
    """Return two whole numbers from the page; with ``most`` a range within it."""
    sound = isinstance(numbers, list) and len(numbers) == 2 and all(type(n) is int for n in numbers)
    if not sound or (most is not None and not 0 <= numbers[0] < numbers[1] <= most):
        raise InputError("widgets.no_block")
    return numbers[0], numbers[1]


def block_questions(blocks: Blocks) -> dict[str, Question]:
    """Answer what the page may ask about blocks: some rows and columns of one, or all of one."""
    return {"zoom": lambda question: zoom(blocks, question), "block": lambda question: one_block(blocks, question)}


class JacobianWidget(ViewWidget):
    """Analytical and numerical Jacobian and their difference, block by block."""

    KIND = "jacobian"

    def make_state(self, value: JacobianReport) -> JacobianState:
        """Return the blocks of the report."""
        return JacobianState(function=value.function, complete=value.complete, blocks=blocks_state(value.blocks))

    def questions(self) -> dict[str, Question]:
        """Return the questions by which the page zooms, and looks at an entry through the microscope."""
        return {**block_questions(self.value.blocks), **questions(self.value)}


Array = np.ndarray[Any, Any]
Range = tuple[int, int]
MOST_ENTRIES = 4 * 10**8  # entries that are looked at for one window


def window(block: JacobianBlock, rows: Range, cols: Range, side: int) -> tuple[Array, Array, Array, tuple[int, int]]:
    """Return analytical, numerical and difference in a window, pooled to at most ``side`` x ``side`` cells.

    Args:
        block: the block.
        rows, cols: (first, past the last) row and column.
        side: most cells along one side.

    Returns:
        The three arrays, of one shape, and how many (rows, columns) one cell stands for.

    Raises:
        InputError: when the window holds more entries than can be looked at while somebody waits.
    """
    if (rows[1] - rows[0]) * (cols[1] - cols[0]) > MOST_ENTRIES:
        raise InputError("widgets.too_large")
    height, width = (-(-(end - start) // side) for start, end in (rows, cols))
    strips = [_strip(block, slice(r, min(r + height, rows[1])), slice(*cols), width) for r in range(*rows, height)]
    analytical, numerical, difference = (np.stack(parts) for parts in zip(*strips, strict=True))
    return analytical, numerical, difference, (height, width)


def _strip(block: JacobianBlock, rows: slice, cols: slice, width: int) -> tuple[Array, Array, Array]:
    """Return one row of cells of the three heat maps."""
    analytical, numerical = np.asarray(block.analytical(rows, cols)), np.asarray(block.numerical(rows, cols))
    return tuple(largest(a, width) for a in (analytical, numerical, analytical - numerical))  # type: ignore[return-value]


def largest(values: Array, width: int) -> Array:
    """Return the entry of largest size, with its sign, of every ``width`` columns; NaN is larger than all.

    Example:
        >>> import numpy as np
        >>> from nbautograd.widgets.jacobian import largest
        >>> largest(np.array([[1.0, -3.0, 2.0], [0.0, 2.0, -5.0]]), 2).tolist()
        [-3.0, -5.0]
    """
    starts = range(0, values.shape[1], width)
    return np.array([_extreme(values[:, start : start + width].reshape(-1)) for start in starts])


def _extreme(values: Array) -> Any:
    return values[np.argmax(np.where(np.isnan(values), np.inf, np.abs(values)))]


def questions(report: GradcheckReport | JacobianReport | None) -> dict[str, Question]:
    """Return the questions about a check, by name; they run the user's Function because a button was pressed."""
    if report is None:
        return {}
    asked: dict[str, Callable[[Any, Mapping[str, Any]], Answer]] = {"microscope": microscope}
    if isinstance(report, GradcheckReport):
        asked["elsewhere"] = elsewhere
        asked["again"] = lambda checked, _question: again(checked)
        asked["motion"] = lambda checked, _question: motion_state(checked.slow_motion())
    return {name: lambda question, reply=reply: reply(report, question) for name, reply in asked.items()}  # type: ignore[misc]


def microscope(report: GradcheckReport | JacobianReport, question: Mapping[str, Any]) -> MicroscopeAnswer:
    """Return the output along one input element, in both precisions, and what backward claims of it.

    Args:
        report: the check, or a Jacobian by itself.
        question: ``block`` (output, input) and ``entry`` (row, column).
    """
    place, (row, col) = (_pair(question.get(name), None) for name in ("block", "entry"))
    block = report.blocks.get(place)
    if block is None or not (0 <= row < block.shape[0] and 0 <= col < block.shape[1]):
        raise InputError("widgets.no_block")
    curves = entry_curve.entry_curves(entry_curve.problem_of(report), place, (row, col))
    claimed, found = (float(part([row], [col])[0, 0].real) for part in (block.analytical, block.numerical))
    drawn = {
        name: EntryCurveState(center=plain(curve.center), plus=array(curve.plus), minus=array(curve.minus))
        for name, curve in curves.items()
    }
    return MicroscopeAnswer(steps=plain(entry_curve.STEPS), curves=drawn, claimed=plain(claimed), found=plain(found))


def elsewhere(report: GradcheckReport, question: Mapping[str, Any]) -> ElsewhereAnswer:
    """Return the check again at random inputs; its verdict and headline."""
    from nbautograd.core.checking.gradcheck import gradcheck

    seed = question.get("seed")
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise InputError("widgets.no_block")
    problem = entry_curve.problem_of(report)
    other = gradcheck(problem.fn, entry_curve.random_inputs(problem, seed), order=1, seed=seed)
    return ElsewhereAnswer(verdict=other.verdict, headline=answer(other).headline)


# reasons that hold at these inputs alone
HERE = ("jump", "kink", "domain_edge", "nan", "not_finite", "input_not_finite", "raised")


def decider(report: GradcheckReport) -> Literal["limit", "point"] | None:
    """Return which check would decide what cannot be told: one without a limit, or one at a random point."""
    if report.verdict != "cannot tell":
        return None
    if any(finding.code == "stopped" for finding in report.findings):
        return "limit"
    reason = getattr(report.reason, "message_id", "").removeprefix("checking.because_")
    return "point" if reason in HERE else None


def again(report: GradcheckReport) -> AgainAnswer:
    """Return the answer of the check that would decide what this one cannot tell."""
    from nbautograd.core.checking.gradcheck import gradcheck

    problem, which = entry_curve.problem_of(report), decider(report)
    if which is None:
        raise InputError("widgets.no_block")
    options: dict[str, Any] = {"order": report.order, "seed": report.seed, "hints": report.hints}
    if which == "limit":
        other = gradcheck(problem.fn, problem.inputs, budget=None, **options)
    for draw in () if which == "limit" else (torch.randn, torch.rand):  # a root takes numbers from 0 to 1 alone
        other = gradcheck(problem.fn, entry_curve.random_inputs(problem, 1, draw), **options)
        if other.verdict != "cannot tell":
            break
    return AgainAnswer(document=answer_document(answer(other)))
