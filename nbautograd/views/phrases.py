"""Sentences that text and HTML share: names joined, entries named, counts of things."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core import formats, stumbles
from nbautograd.core.checking.block import Block, JacobianBlock
from nbautograd.core.findings import PARTS, Finding, Fix
from nbautograd.core.recording.call import CallLog
from nbautograd.core.stumbles import record
from nbautograd.views.document import Term

MARKS = {"match": "✓", "mismatch": "✗", "subgradient": "∠", "flat": "–", "undecided": "?"}
VERDICT_MARKS = {"right": "✓", "wrong": "✗", "cannot tell": "?", "meant": "~", "unchecked": "•"}


def failed(error: Exception, part: str) -> str:
    """Keep an error of ours, and return the sentence that stands in the place of what could not be drawn."""
    record(error, part)
    return messages.text("views.failed", error=f"{type(error).__name__}: {stumbles.said(error)}")


def say(group: str, word: str) -> str:
    """Return the reader's word for a fixed term: ``say("block", "match")``; without a translation the term."""
    message_id = f"views.{group}.{word.replace(' ', '_')}"
    known = messages.catalogue("en")
    return messages.text(message_id) if message_id in known else word


def counted(noun: str, n: int) -> str:
    """Return ``"calls: 2"``."""
    return messages.text(f"views.{noun}", n=formats.count(n))


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``, as the language joins them."""
    if len(names) < 2:
        return "".join(names)
    return messages.text("views.and", first=messages.text("views.comma").join(names[:-1]), last=names[-1])


def few(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    if len(names) <= most:
        return listed(names)
    first = messages.text("views.comma").join(names[:most])
    return messages.text("views.audit.more_names", names=first, count=formats.count(len(names) - most))


def code(name: str) -> str:
    """Return a name set as code in prose; backticks inside would end it too early."""
    return f"`{name.replace('`', chr(39))}`"


def block_name(block: JacobianBlock) -> str:
    """Return ``d output / d weight``."""
    return f"d {block.output_name} / d {block.input_name}"


def block_shape(block: JacobianBlock) -> str:
    """Return ``6 × 36``: rows and columns of a block."""
    rows, cols = block.shape
    return f"{formats.count(rows)} × {formats.count(cols)}"


def block_verdict(block: Block) -> str:
    """Mark, word and, where the verdict needs one, the reason."""
    words = f"{MARKS[block.verdict]} {say('block', block.verdict)}"
    return f"{words} ({say('reason', block.reason)})" if block.reason else words


def line_of(finding: Finding) -> int | None:
    """Return the line that a finding leads to: the one of its tried change, as in the headline, else its own."""
    fix = finding.fix
    return fix.line if fix is not None and fix.verified and fix.line is not None else finding.line


def place(finding: Finding) -> str:
    """Return ``line 23``, unless the sentence says it already."""
    line = line_of(finding)
    return "" if line is None or finding.names_its_line else messages.text("views.line", line=line)


def without_example(finding: Finding) -> str:
    """Return a finding's message without what its report gives anyway: numbers, and advice that was tried."""
    said = {"example"} | ({"advice"} if finding.fix is not None and finding.fix.verified else set())
    return finding.paragraph(*(part for part in PARTS[finding.hints] if part not in said))


def heading(message_id: str) -> str | Term:
    """Return the words of a heading, with what they mean where that is known."""
    words, meaning = messages.text(message_id), messages.meaning(message_id)
    return Term(words, meaning) if meaning else words


def tried(fix: Fix) -> str:
    """Return whether a change was tried."""
    return messages.text("views.fix.tried" if fix.verified else "views.fix.untried")


def dedented(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return both texts' lines without the indentation that all of them share."""
    lines = textwrap.dedent("\n".join((before, after))).split("\n") if before else textwrap.dedent(after).split("\n")
    cut = before.count("\n") + 1 if before else 0
    return [line for line in lines[:cut] if line.strip()], [line for line in lines[cut:] if line.strip()]


def functions(log: CallLog) -> str:
    """Return names of the Functions whose calls a log holds."""
    return listed(list(log.functions))
