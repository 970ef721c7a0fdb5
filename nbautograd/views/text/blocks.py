"""Blocks, Jacobians and gradcheck reports as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbautograd import messages
from nbautograd.core.checking.block import Block, GradcheckReport, JacobianBlock, JacobianReport
from nbautograd.views import formats
from nbautograd.views.answer import answer
from nbautograd.views.builders.summary import answer_document, findings_document
from nbautograd.views.jacobian import by_interest, pick
from nbautograd.views.tables import beside, indent, table
from nbautograd.views.to_text import to_lines
from nbautograd.views.words import (
    block_name,
    block_shape,
    block_verdict,
    counted,
    say,
)

MOST_BLOCKS = 12  # from here on those that agree are folded
MOST_ROWS = 100
MOST_WRITTEN = 4  # matrices
MOST_CELLS = 8  # rows and columns of a matrix that is written out


def gradcheck_text(report: GradcheckReport) -> str:
    """A gradcheck report: the answer, then one line per block."""
    told = answer(report)
    lines = [*to_lines(answer_document(told)), "", *block_lines(list(report.blocks.values()))]
    return "\n".join([*lines, *to_lines(findings_document(told.others))]).rstrip()


def block_lines(blocks: Sequence[Block]) -> list[str]:
    """A table with one line per block, the wrong ones first; of many blocks those that agree are one line."""
    if not blocks:
        return []
    shown, folded = pick(blocks, MOST_BLOCKS)
    header = [messages.text(f"views.column.{c}") for c in ("block", "verdict", "wrong", "error", "structure")]
    rows = [
        [block_name(b), block_verdict(b), wrong_of(b), formats.error(b.largest_error), say("structure", b.structure)]
        for b in shown[:MOST_ROWS]
    ]
    more = [counted("more_blocks", len(shown) - MOST_ROWS)] if len(shown) > MOST_ROWS else []
    agreeing = [counted("agreeing", len(folded))] if folded else []
    return [*(table(header, rows, right=(2, 3)) if rows else []), *more, *agreeing]


def wrong_of(block: Block) -> str:
    """``12/36``: wrong entries of all."""
    return f"{formats.count(block.wrong)}/{formats.count(block.entries)}"


def jacobian_text(report: JacobianReport) -> str:
    """A Jacobian: its blocks with their shapes, and the numbers of the small ones."""
    blocks = by_interest(list(report.blocks.values()))
    lines = [messages.text("views.headline.jacobian", function=report.function, blocks=counted("blocks", len(blocks)))]
    if not report.complete:
        lines.append(messages.text("views.evidence.incomplete"))
    return "\n".join([*lines, "", *jacobian_lines(blocks)]).rstrip()


def jacobian_lines(blocks: Sequence[JacobianBlock]) -> list[str]:
    """A line per block and, for the first few small ones, the matrices side by side."""
    header = [messages.text(f"views.column.{c}") for c in ("block", "shape", "structure")]
    rows = [[block_name(b), block_shape(b), say("structure", b.structure)] for b in blocks[:MOST_BLOCKS]]
    lines = table(header, rows, right=(1,))
    if len(blocks) > MOST_BLOCKS:
        lines.append(counted("more_blocks", len(blocks) - MOST_BLOCKS))
    for block in blocks[:MOST_WRITTEN]:
        lines += ["", *_written(block)] if _small(block) else []
    return lines


def wrong_lines(blocks: Sequence[JacobianBlock]) -> list[str]:
    """The numbers of the first few small blocks that are wrong; nothing when all agree."""
    wrong = [b for b in blocks if isinstance(b, Block) and b.verdict == "mismatch" and _small(b)]
    lines = [line for b in wrong[:MOST_WRITTEN] for line in ("", *_written(b))]
    return lines[1:]


def _small(block: JacobianBlock) -> bool:
    return 0 < max(block.shape) <= MOST_CELLS and min(block.shape) > 0


def _written(block: JacobianBlock) -> list[str]:
    return [block_name(block), *indent(matrices(block))]


def block_text(block: JacobianBlock) -> str:
    """One block: its line, what each witness said, its numbers when they are few."""
    if isinstance(block, Block):
        lines = [*block_lines([block]), *([""] if block.witnesses else []), *witness_lines(block)]
    else:
        lines = jacobian_lines([block])
        return "\n".join(lines)
    if _small(block):
        lines += ["", *matrices(block)]
    return "\n".join(lines)


def witness_lines(block: Block) -> list[str]:
    """What each witness said of a block."""
    header = [messages.text(f"views.column.{c}") for c in ("witness", "says", "difference")]
    rows = [[say("witness", s.witness), str(s.says), formats.number(s.largest_difference, 2)] for s in block.witnesses]
    return table(header, rows, right=(2,)) if rows else []


def matrices(block: JacobianBlock) -> list[str]:
    """Analytical, numerical and difference as three small matrices side by side."""
    try:
        analytical, numerical = block.analytical(), block.numerical()
    except (LookupError, TypeError, ValueError):
        return [messages.text("views.panel.unread")]
    with np.errstate(invalid="ignore"):
        difference = analytical - numerical
    difference = np.atleast_2d(_rounded(difference, analytical))
    pairs = [
        [formats.compared(a, n) if d else (formats.number(a), formats.number(n)) for a, n, d in zip(*row, strict=True)]
        for row in zip(np.atleast_2d(analytical), np.atleast_2d(numerical), difference, strict=True)
    ]
    panels = {
        "analytical": [[a for a, _ in row] for row in pairs],
        "numerical": [[n for _, n in row] for row in pairs],
        "difference": [[formats.number(d) for d in row] for row in difference],
    }
    return beside([[messages.text(f"views.panel.{name}"), *_matrix(rows)] for name, rows in panels.items()])


def _rounded(difference: np.ndarray[Any, Any], scale: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    finite = np.abs(scale[np.isfinite(scale)])
    noise = 1e-6 * max(1e-300, float(finite.max()) if finite.size else 0.0)
    return np.where(np.abs(difference) < noise, 0.0, difference)


def _matrix(rows: list[list[str]]) -> list[str]:
    return table([""] * len(rows[0]), rows, right=range(len(rows[0]))) if rows else []
