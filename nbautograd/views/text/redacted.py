"""Redacted reports as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.inspection.redacted import RedactedBlock, RedactedReport, RedactedValue
from nbautograd.views import formats
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.tables import table
from nbautograd.views.to_text import to_lines
from nbautograd.views.words import code, listed, say

CALLS = 12  # that are told


def redacted_text(report: RedactedReport) -> str:
    """The verdict, the findings, a line per block, a line per call, the versions."""
    lines = [_headline(report)]
    if report.order2 is not None:
        lines.append(messages.text(f"views.evidence.order2.{report.order2.replace(' ', '_')}"))
    for finding in report.findings:
        lines += [f"[{finding.code}]", *to_lines(finding_document(finding))]
    if report.blocks:
        header = [messages.text(f"views.column.{c}") for c in ("block", "shapes", "verdict", "wrong", "structure")]
        lines += ["", *table(header, list(map(_block, report.blocks)))]
    if report.calls:
        header = [messages.text(f"views.column.{c}") for c in ("method", "in", "out", "ctx")]
        rows = [[c.method, *map(_values, (c.inputs, c.outputs, c.saved))] for c in report.calls[:CALLS]]
        lines += ["", *table(header, rows, cut=False)]
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return "\n".join([*lines, "", versions, messages.text("views.redacted")])


def _headline(report: RedactedReport) -> str:
    if report.verdict is None:
        return report.function
    wrong = dict.fromkeys(b.input_name for b in report.blocks if b.verdict == "mismatch")
    named = report.verdict == "wrong" and wrong
    message_id = "views.headline.wrong_for" if named else f"views.headline.{report.verdict.replace(' ', '_')}"
    return messages.text(message_id, function=report.function, inputs=listed([code(name) for name in wrong]))


def _block(block: RedactedBlock) -> list[str]:
    shapes = f"{_shape(block.output_shape)} / {_shape(block.input_shape)}"
    verdict = say("block", block.verdict) + (f" ({say('reason', block.reason)})" if block.reason else "")
    name = f"d {block.output_name} / d {block.input_name}"
    return [name, shapes, verdict, f"{block.wrong}/{block.entries}", say("structure", block.structure)]


def _values(values: Sequence[RedactedValue]) -> str:
    return ", ".join(
        f"{v.name} {v.type}" if v.shape is None else f"{v.name} {v.dtype} {_shape(v.shape)}" for v in values
    )


def _shape(shape: tuple[int, ...]) -> str:
    return formats.shape(shape) or messages.text("views.tensor.scalar")
