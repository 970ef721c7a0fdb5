"""Sentences that text and HTML share: names joined, entries named, counts of things, a recorded value in words.

What is made of a value once for each language is kept with it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch.utils.weak import WeakIdKeyDictionary

from nbautograd import messages
from nbautograd.core import formats, stumbles
from nbautograd.core.checking.block import Block, JacobianBlock
from nbautograd.core.findings import PARTS, Finding, Fix
from nbautograd.core.recording.call import CallLog
from nbautograd.core.stumbles import record
from nbautograd.core.values import TensorSummary, Value
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


FEW = 6  # elements that are written out
SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex128": "c128", "complex64": "c64",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
}  # fmt: skip


def what(value: Value) -> str:
    """Return ``float64 2×3``, ``int 5``, ``None``: what the value is, without its elements."""
    return kind(value.tensor) if value.tensor is not None else value.repr


def kind(tensor: TensorSummary) -> str:
    """Return ``float64 2×3``; the device too when it is not the CPU."""
    shape = formats.shape(tensor.shape) or messages.text("views.tensor.scalar")
    device = "" if tensor.device == "cpu" else f" {tensor.device}"
    return f"{tensor.dtype} {shape}{device}"


def abbreviated(value: Value) -> str:
    """Return ``weight f64 2×3``: name, short dtype and shape, for a table of calls."""
    if value.tensor is None:
        return f"{value.name} {value.repr}"
    return (
        f"{value.name} {SHORT.get(value.tensor.dtype, value.tensor.dtype)} {formats.shape(value.tensor.shape)}".rstrip()
    )


def contents(tensor: TensorSummary, digits: int = 4) -> str:
    """Return the elements when they are few, else range, mean, norm, and what is odd; nothing when unknown."""
    if tensor.reason:
        return messages.text("views.tensor.unknown", reason=tensor.reason)
    if not tensor.numel:
        return messages.text("views.tensor.empty")
    if tensor.values is not None and len(tensor.values) <= FEW:
        return ", ".join(formats.number(v, digits) for v in tensor.values)
    range_ = () if tensor.min is None else (_range(tensor, digits),)
    return messages.text("views.comma").join((*range_, *oddities(tensor)))


def picture_caption(tensor: TensorSummary) -> str:
    """Return the same beside a live picture of the elements: nothing where it shows each, and none is odd."""
    shown = tensor.thumbnail is not None and 1 < tensor.thumbnail.size == tensor.numel <= FEW
    return "" if shown and not oddities(tensor) else contents(tensor)


def oddities(tensor: TensorSummary) -> tuple[str, ...]:
    """Return NaN, infinities, all zeros, sampled statistics: each in a few words."""
    found = []
    if tensor.nan:
        found.append(messages.text("views.tensor.nan", n=formats.count(tensor.nan)))
    if tensor.inf:
        found.append(messages.text("views.tensor.inf", n=formats.count(tensor.inf)))
    if tensor.zeros and tensor.zeros == tensor.numel > FEW:
        found.append(messages.text("views.tensor.zeros"))
    if tensor.sampled:
        n, total = formats.count(tensor.sampled), formats.count(tensor.numel)
        found.append(messages.text("views.tensor.sampled", n=n, total=total))
    return tuple(found)


def pooling(tensor: TensorSummary) -> str:
    """Say how many elements a cell of the thumbnail stands for; nothing where it shows each."""
    if tensor.ranges is None:
        return ""
    return messages.text("views.panel.pooled", rows=tensor.ranges.rows, cols=tensor.ranges.cols)


def remarks(value: Value) -> str:
    """List other facts of a tensor: ``requires grad``, ``same object as input 0``."""
    words = []
    if value.tensor is not None and value.tensor.requires_grad:
        words.append(messages.text("views.tensor.requires_grad"))
    if value.same_as:
        words.append(messages.text("views.tensor.same", other=_place(value.same_as)))
    return messages.text("views.comma").join(words)


def _place(name: str) -> str:
    """Return ``"input 0"`` in the language of the moment; other names as they are."""
    kind, _, number = name.partition(" ")
    known = kind in ("input", "output") and number.isdigit()
    return messages.text(f"views.tensor.{kind}", number=number) if known else name


def _range(tensor: TensorSummary, digits: int) -> str:
    statistics = (tensor.min, tensor.max, tensor.mean, tensor.norm)
    low, high, mean, norm = (formats.number(x, min(digits, 6)) for x in statistics)  # more push a column out of sight
    return messages.text("views.tensor.range", min=low, max=high, mean=mean, norm=norm)


T = TypeVar("T")


def once(make: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a function that is run once for each value and language, and holds on to no value.

    Example:
        >>> from nbautograd.core.values import Value
        >>> from nbautograd.views.phrases import once
        >>> made = once(lambda value: [value.name])
        >>> x = Value("x", "int", "3")
        >>> made(x) is made(x)
        True
    """
    kept: Any = WeakIdKeyDictionary()

    def kept_or_made(value: Any) -> T:
        known = kept.setdefault(value, {})
        language = messages.language()
        if language not in known:
            known[language] = make(value)
        made: T = known[language]
        return made

    return kept_or_made
