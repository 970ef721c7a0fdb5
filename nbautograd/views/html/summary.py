"""The answer on a page: a headline, its causes with the change that mends them, the evidence."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core.findings import Finding
from nbautograd.views.answer import Answer
from nbautograd.views.markup import Markup, join, prose, tag
from nbautograd.views.pieces import SOFT, block, change, chip, faint, fold, paragraph
from nbautograd.views.theme import TONES
from nbautograd.views.words import VERDICT_MARKS, place, say, tried, without_example


def card(told: Answer) -> Markup:
    """The answer, with a bar in the verdict's colour."""
    look = (
        f"border-left:4px solid {TONES[told.tone]};background-color:{SOFT};padding:9px 14px 4px 14px;margin:0 0 8px 0"
    )
    return tag("div", {"style": f"{look};border-radius:3px"}, *_lines(told))


def _lines(told: Answer) -> list[Markup]:
    mark = chip(f"{VERDICT_MARKS[told.tone]} {say('verdict', told.tone)}", told.tone)
    head = join((mark, " ", tag("strong", None, prose(told.headline)), " ", prose(told.aside)))
    parts = [block(head, style="line-height:1.6")]
    parts += [finding_markup(f, len(told.findings) > 1 or f.kind != "bug", without_example(f)) for f in told.findings]
    return [*parts, *(paragraph(sentence) for sentence in told.evidence)]


def finding_markup(finding: Finding, with_kind: bool = True, words: str = "") -> Markup:
    """One finding: its kind, its sentence (or these words instead), then its change."""
    kind = chip(say("kind", finding.kind), finding.kind) if with_kind else None
    line = place(finding)
    sentence = join((kind, " " if kind else None, prose(words or finding.message), " " if line else None, _aside(line)))
    return block(sentence, _fix(finding))


def findings_part(findings: Sequence[Finding]) -> Markup | None:
    """The findings that the answer did not tell; folded when they are many."""
    if not findings:
        return None
    body = join(finding_markup(f) for f in findings)
    return fold(messages.text("views.part.findings"), body, str(len(findings)), opened=len(findings) <= 3)


def _aside(words: str) -> Markup | None:
    return faint(f"({words})") if words else None


def _fix(finding: Finding) -> Markup | None:
    if finding.fix is None:
        return None
    fix = finding.fix
    title = messages.text("views.fix.change")
    if fix.line is not None:
        title = messages.text("views.fix.at", line=fix.line)
    return join(
        (change(fix.before, fix.source), tag("div", {"style": "font-size:0.9em"}, faint(f"{title}; {tried(fix)}")))
    )
