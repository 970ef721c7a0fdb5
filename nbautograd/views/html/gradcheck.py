"""A gradcheck report on a page: one row per output and input, then what the witnesses said."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core.checking.block import Block, GradcheckReport
from nbautograd.views import formats
from nbautograd.views.answer import answer, second_answer
from nbautograd.views.builders.summary import answer_document, findings_document
from nbautograd.views.html.jacobian import blocks_pictures
from nbautograd.views.jacobian import pick
from nbautograd.views.markup import Markup, join, tag
from nbautograd.views.pieces import chip, faint, fold, name, table
from nbautograd.views.text.blocks import MOST_BLOCKS, MOST_ROWS, wrong_of
from nbautograd.views.to_html import to_html
from nbautograd.views.words import MARKS, block_name, counted, say

MOST_ASKED = 4  # blocks whose witnesses are listed
TONE = {
    "match": "right",
    "mismatch": "wrong",
    "subgradient": "unchecked",
    "flat": "cannot tell",
    "undecided": "cannot tell",
}


def gradcheck_markup(report: GradcheckReport) -> Markup:
    """A report by itself: the answer, the blocks, their pictures, the findings left, the second derivatives."""
    told, blocks = answer(report), list(report.blocks.values())
    parts = (
        to_html(answer_document(told)),
        blocks_markup(blocks),
        _pictures(blocks),
        to_html(findings_document(told.others)),
        order2(report),
    )
    return join(p for p in parts if p)


def blocks_markup(blocks: Sequence[Block], asked: bool = True) -> Markup:
    """The table of blocks and, when ``asked``, a fold with the witnesses."""
    shown, folded = pick(blocks, MOST_BLOCKS)
    more = faint(counted("more_blocks", len(shown) - MOST_ROWS)) if len(shown) > MOST_ROWS else None
    agreeing = fold(counted("agreeing", len(folded)), _grid(folded), strong=False) if folded else None
    return join((_grid(shown), more, agreeing, _witnesses(shown[:MOST_ASKED]) if asked else None))


def _grid(blocks: Sequence[Block]) -> Markup | None:
    """Write a row per block."""
    if not blocks:
        return None
    header = [messages.text(f"views.column.{c}") for c in ("block", "verdict", "wrong", "error", "structure")]
    return table(messages.text("views.caption.gradcheck"), header, [_row(b) for b in blocks[:MOST_ROWS]], right=(2, 3))


def _pictures(blocks: Sequence[Block]) -> Markup | None:
    if not blocks:
        return None
    wrong = any(b.verdict == "mismatch" for b in blocks)
    title = messages.text("views.part.jacobian")
    return fold(title, blocks_pictures(blocks), counted("blocks", len(blocks)), opened=wrong)


def order2(report: GradcheckReport) -> Markup | None:
    """The report on second derivatives, folded unless it is wrong and counts."""
    second = report.order2
    if second is None:
        return None
    told, words = second_answer(report), say("verdict", second.verdict)
    parts = (
        to_html(answer_document(told)),
        blocks_markup(list(second.blocks.values()), asked=False),
        to_html(findings_document(told.others)),
    )
    body = join(p for p in parts if p)
    opened = report.order == 2 and second.wrong
    return fold(messages.text("views.part.order2"), body, words, opened=opened, strong=False)


def gradcheck_summary(blocks: Sequence[Block]) -> str:
    """``1 agrees, 1 differs``: the verdicts counted."""
    verdicts = [b.verdict for b in blocks]
    words = [f"{verdicts.count(v)} {say('block', v)}" for v in dict.fromkeys(verdicts)]
    return messages.text("views.comma").join(words)


def _row(block: Block) -> list[object]:
    words = chip(f"{MARKS[block.verdict]} {say('block', block.verdict)}", TONE[block.verdict])
    reason = faint(say("reason", block.reason)) if block.reason else None
    return [
        name(block_name(block)),
        join((words, " " if reason else None, reason)),
        wrong_of(block),
        formats.error(block.largest_error),
        say("structure", block.structure),
    ]


def _witnesses(blocks: Sequence[Block]) -> Markup | None:
    rows: list[list[object]] = [
        [
            name(block_name(b)) if k == 0 else "",
            say("witness", s.witness) if s.took_part else faint(say("witness", s.witness)),
            tag("div", {"style": "min-width:200px"}, str(s.says)),
            formats.number(s.largest_difference, 2),
        ]
        for b in blocks
        for k, s in enumerate(b.witnesses)
    ]
    if not rows:
        return None
    header = [messages.text(f"views.column.{c}") for c in ("block", "witness", "says", "difference")]
    return fold(messages.text("views.caption.witnesses"), table("", header, rows, right=(3,)), strong=False)
