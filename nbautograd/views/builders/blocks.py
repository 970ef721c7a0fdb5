"""Blocks, Jacobians and gradcheck reports as documents."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.checking.block import Block, GradcheckReport, JacobianBlock, JacobianReport
from nbautograd.views import theme
from nbautograd.views.answer import answer, second_answer
from nbautograd.views.builders import build
from nbautograd.views.builders.summary import answer_document, evidence_document, findings_document
from nbautograd.views.document import (
    BlockName,
    Cell,
    Chip,
    Code,
    Document,
    Faint,
    Fold,
    Heatmaps,
    Item,
    PageOnly,
    Sentence,
    Series,
    Strong,
    Table,
    Tone,
    paragraph,
    sentences,
)
from nbautograd.views.jacobian import PANELS, by_interest, labels, pick, wrong_cells
from nbautograd.views.phrases import MARKS, block_name, block_shape, block_verdict, counted, heading, say

MAX_LISTED = 12  # blocks; of more than that those that agree are folded
MAX_ROWS = 100
MAX_COMPARED = 4  # blocks whose independent methods are listed
MAX_OPENED = 4  # blocks that are shown at once, not folded
MAX_WRITTEN = 8  # rows and columns of a block whose numbers are written out

COLUMNS = ("block", "verdict", "wrong", "error", "structure")
CHOOSING = ("block", "verdict", "wrong", "error", "worst")
FLUSH_RIGHT = ("wrong", "error")
STATEMENT = ("witness", "says", "difference")  # columns of what a method says

Blocks = Mapping[tuple[int, int], Block]
Row = Callable[[Block], tuple[Cell, ...]]

Array = np.ndarray[Any, Any]
WRONG_FIRST = ("mismatch", "undecided", "flat", "subgradient", "match")
TONE: dict[str, Tone] = {
    "match": "right",
    "mismatch": "wrong",
    "subgradient": "unchecked",
    "flat": "cannot tell",
    "undecided": "cannot tell",
}


@build.register
def gradcheck_document(report: GradcheckReport) -> Document:
    """Return the answer, the blocks, their pictures, the findings left, the second derivatives."""
    told, blocks = answer(report), list(report.blocks.values())
    pictures: Document = ()
    if blocks:
        title, wrong = Strong(messages.text("views.part.jacobian")), any(b.verdict == "mismatch" for b in blocks)
        inside, many = matrices_document(blocks), counted("blocks", len(blocks))
        pictures = (Fold(title, inside, many, opened=wrong, in_text="nothing"),)
    tables = (*blocks_document(blocks), *(evidence_document(told) if blocks else ()), *pictures)
    return (*answer_document(told, bool(blocks)), *tables, *findings_document(told.others), *second_document(report))


def second_document(report: GradcheckReport) -> Document:
    """Return what the check says of second derivatives, folded unless it is wrong and counts."""
    second = report.order2
    if second is None:
        return ()
    told = second_answer(report)
    tables = blocks_document(list(second.blocks.values()), methods=False)
    body = (*answer_document(told), *tables, *findings_document(told.others))
    opened, words = report.order == 2 and second.wrong, say("verdict", second.verdict)
    title = messages.text("views.part.order2")
    return (Fold(title, body, words, opened=opened, strong=False, in_text="nothing"),)


def blocks_document(blocks: Sequence[Block], methods: bool = True) -> Document:
    """Return a row per block, the wrong ones first; of many blocks those that agree are folded.

    Args:
        blocks: the blocks.
        methods: whether the independent methods of the first blocks follow.
    """
    rows = _rows(blocks, COLUMNS, _row, MAX_ROWS)
    return (*rows, *_methods(pick(blocks, MAX_LISTED)[0][:MAX_COMPARED], "nothing")) if methods else rows


def listed_blocks(blocks: Blocks, tab: str) -> Document:
    """Return the same rows for a live view: all of them, each name a way to its block.

    Args:
        blocks: the blocks by output and input.
        tab: the part of the view that shows a block.
    """

    def row(block: Block) -> tuple[Cell, ...]:
        return (_name(block, tab), *_row(block)[1:])

    return _rows(_placed(blocks), COLUMNS, row)


def chosen_blocks(blocks: Blocks) -> Document:
    """Return the rows of a live view, with each block's worst entry; each name selects its block."""

    def row(block: Block) -> tuple[Cell, ...]:
        return (_name(block), *_row(block)[1:-1], _worst_entry(block))

    return _rows(_placed(blocks), CHOOSING, row)


def _placed(blocks: Blocks) -> list[Block]:
    return [replace(block, output=output, input=column) for (output, column), block in blocks.items()]


def _rows(blocks: Sequence[Block], columns: Sequence[str], row: Row, most: int | None = None) -> Document:
    """Return a table of the telling blocks, at most so many of them, and folded one of those that agree."""
    shown, folded = pick(blocks, MAX_LISTED)
    telling = (_grid(shown[:most], columns, row),) if shown else ()
    left = len(shown) - len(shown[:most])
    more = (paragraph(counted("more_blocks", left), look="faint"),) if left else ()
    if not folded:
        return (*telling, *more)
    grid = _grid(folded[:most], columns, row)
    return (*telling, *more, Fold(counted("agreeing", len(folded)), (grid,), strong=False, in_text="title"))


def blocks_in_short(blocks: Sequence[Block]) -> str:
    """Return ``differs: 1, agrees: 3``: the verdicts counted, wrong first."""
    colon, counts = messages.text("views.colon"), Counter[str](block.verdict for block in blocks)
    words = [f"{say('block', v)}{colon}{formats.count(counts[v])}" for v in WRONG_FIRST if v in counts]
    return messages.text("views.comma").join(words)


def _grid(blocks: Sequence[Block], columns: Sequence[str], row: Row) -> Table:
    header = tuple(heading(f"views.column.{c}") for c in columns)
    right = tuple(k for k, c in enumerate(columns) if c in FLUSH_RIGHT)
    return Table(header, tuple(map(row, blocks)), messages.text("views.caption.gradcheck"), right)


def _row(block: Block) -> tuple[Cell, ...]:
    chip = Chip(f"{MARKS[block.verdict]} {say('block', block.verdict)}", TONE[block.verdict])
    verdict = (chip, " ", Faint(f"({say('reason', block.reason)})")) if block.reason else chip
    wrong, error = f"{formats.count(block.wrong)}/{formats.count(block.entries)}", formats.error(block.largest_error)
    if block.verdict == "flat" or block.reason == "interrupted" or not _known(block):  # no entry was judged
        wrong = error = formats.NOTHING
    return (_name(block), verdict, wrong, error, heading(f"views.structure.{block.structure.replace(' ', '_')}"))


def _known(block: Block) -> bool:
    """Return False where a value beyond the domain, which decides nothing, is all that differs."""
    return block.verdict != "undecided" or math.isfinite(block.largest_error)


def _name(block: Block, tab: str = "") -> BlockName:
    return BlockName(block_name(block), (block.output, block.input), tab)


def _worst_entry(block: Block) -> Cell:
    """Return the entry that differs most: by backward, by finite differences."""
    entry = block.worst
    if entry is None or not _known(block):
        return formats.NOTHING
    values, differs = (entry.analytical, entry.numerical), block.verdict == "mismatch"
    analytical, numerical = formats.compared(*values) if differs else map(formats.number, values)
    sign = "≠" if differs else "?" if block.verdict in ("undecided", "flat") else "≈"
    return (Code(block.entry_name(entry)), f" {analytical} ", Faint(sign), f" {numerical}")


def _methods(blocks: Sequence[Block], in_text: Any) -> Document:
    """Return what each independent method says of each block, under its name."""
    told = [block for block in blocks if block.witnesses]
    rows = [row for block in told for row in ((Code(block_name(block)),), *_statements(block))]
    if not rows:
        return ()
    header = tuple(heading(f"views.column.{c}") for c in STATEMENT)
    title = messages.text("views.caption.witnesses")
    return (Fold(title, (Table(header, tuple(rows), right=(2,), cut=False),), strong=False, in_text=in_text),)


def methods_document(block: Block) -> Document:
    """Return what each independent method says of one block."""
    header = tuple(heading(f"views.column.{c}") for c in STATEMENT)
    rows = tuple(_statements(block))
    return (Table(header, rows, messages.text("views.caption.witnesses"), right=(2,)),) if rows else ()


def _statements(block: Block) -> Iterator[tuple[Cell, ...]]:
    for said in block.witnesses:
        name = say("witness", said.witness)
        size = formats.number(said.largest_difference, 2)
        yield name if said.took_part else Faint(name), Sentence(str(said.says)), size


@build.register
def jacobian_document(report: JacobianReport) -> Document:
    """Return how many blocks a Jacobian has, and each with its pictures and, of a small one, its numbers."""
    blocks = list(report.blocks.values())
    head = messages.text("views.headline.jacobian", function=report.function, blocks=counted("blocks", len(blocks)))
    stopped = () if report.complete else (paragraph(messages.text("views.evidence.incomplete")),)
    return (paragraph(Strong(head)), *stopped, *matrices_document(blocks))


@build.register
def block_document(block: JacobianBlock) -> Document:
    """Return one block: its row and what each method says where it was checked, its pictures, its numbers."""
    if isinstance(block, Block):
        return (_grid([block], COLUMNS, _row), *_methods([block], "body"), *_matrices(block))
    return _opened(block)


def matrices_document(blocks: Sequence[JacobianBlock], wrong_in_text: bool = False) -> Document:
    """Return the blocks with their pictures and numbers, wrong ones first and beside them those that agree folded.

    Args:
        blocks: the blocks.
        wrong_in_text: whether text shows only the small ones that are wrong.
    """
    ordered = by_interest(blocks)
    wrong = any(_verdict(b) == "mismatch" for b in blocks)
    parts: list[Document] = []
    for k, block in enumerate(ordered[:MAX_LISTED]):
        folded = k >= MAX_OPENED or (wrong and _verdict(block) == "match")
        part = _folded(block) if folded else _opened(block)
        told = not wrong_in_text or (_verdict(block) == "mismatch" and _small(block))
        parts.append(part if told else (PageOnly(part),))
    return (Series(tuple(parts), "more_blocks", len(blocks) - len(parts)),)


def _opened(block: JacobianBlock) -> Document:
    return (paragraph(Code(block_name(block)), Faint(f"· {_about(block)}")), Item(_matrices(block)))


def _folded(block: JacobianBlock) -> Document:
    verdict = (block_verdict(block),) if isinstance(block, Block) else ()
    words = messages.text("views.comma").join((*verdict, _about(block)))
    return (Fold(Code(block_name(block)), _matrices(block), words, strong=False, in_text="all"),)


def _about(block: JacobianBlock) -> str:
    return messages.text("views.comma").join((block_shape(block), say("structure", block.structure)))


def _verdict(block: JacobianBlock) -> str:
    return block.verdict if isinstance(block, Block) else ""


def _small(block: JacobianBlock) -> bool:
    return 0 < max(block.shape) <= MAX_WRITTEN and min(block.shape) > 0


def _matrices(block: JacobianBlock) -> Document:
    """Return the pictures of a block, and the numbers of a small one, else those of its worst entry."""
    if not block.entries:
        return (paragraph(messages.text("views.panel.empty"), look="faint"),)
    try:
        numbers = _numbers(block) if _small(block) else None
    except (LookupError, TypeError, ValueError):
        return (paragraph(messages.text("views.panel.unread"), look="faint"),)
    title = messages.text("views.numbers")
    if numbers is not None:
        return (Heatmaps(block), Fold(title, numbers, strong=False, in_text="body"))
    return (Heatmaps(block), *(Fold(title, (table,), strong=False, in_text="body") for table in _worst(block)))


def _numbers(block: JacobianBlock) -> Document:
    """Return every entry of a block, by backward and by finite differences where the two are not the same."""
    analytical, numerical = block.analytical(), block.numerical()
    unequal = _unequal(block, analytical, numerical)
    columns = labels(block.input_shape, 1, block.shape[1], block.input_complex) or [block.input_name]
    names = labels(block.output_shape, 1, block.shape[0], block.output_complex) or [block.output_name]
    rows = tuple(
        (name, *(_entry(a, n, u) for a, n, u in zip(*triple, strict=True)))
        for name, *triple in zip(names, analytical, numerical, unequal, strict=True)
    )
    caption = messages.text("views.caption.numbers", output=block.output_name, input=block.input_name)
    table = Table(("", *columns), rows, caption, right=tuple(range(len(columns) + 1)), wrap=False)
    legend = sentences([messages.text("views.numbers.two")], "faint") if unequal.any() else ()
    return (table, *legend)


def _unequal(block: JacobianBlock, analytical: Array, numerical: Array) -> Array:
    """Return where the checker calls entries wrong, or unchecked ones differ by more than finite differences may."""
    if isinstance(block, Block):
        wrong = wrong_cells(block, (0, 0), (1, 1), block.shape)
        return np.zeros(block.shape, bool) if wrong is None else wrong
    with np.errstate(invalid="ignore"):
        scale = max(theme.limit(np.abs(analytical), np.abs(numerical)), 1e-300)
        close = np.abs(analytical - numerical) <= 1e-3 * np.abs(numerical) + 1e-5 * scale
    return np.asarray(~(close | (analytical == numerical)))


def _entry(analytical: complex, numerical: complex, unequal: bool) -> Cell:
    if not unequal:
        return formats.number(analytical)
    return Strong(" ≠ ".join(formats.compared(analytical, numerical)))


def _worst(block: JacobianBlock) -> tuple[Table, ...]:
    if not isinstance(block, Block) or block.worst is None:
        return ()
    entry, header = block.worst, tuple(messages.text(f"views.panel.{p}") for p in PANELS)
    both = formats.compared(entry.analytical, entry.numerical)
    row = (Code(block.entry_name(entry)), *both, formats.number(entry.analytical - entry.numerical))
    return (Table((messages.text("views.column.worst"), *header), (row,), right=(1, 2, 3)),)
