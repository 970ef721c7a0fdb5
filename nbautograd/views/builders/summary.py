"""First lines of a report, and its findings, as documents."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core.checking.block import Verdict
from nbautograd.core.findings import Finding, Fix
from nbautograd.version import page_of
from nbautograd.views.answer import Answer
from nbautograd.views.builders import build
from nbautograd.views.document import (
    Block,
    Card,
    Change,
    Chip,
    Document,
    Faint,
    Fold,
    Item,
    Link,
    PageOnly,
    Paragraph,
    Span,
    Strong,
    Term,
    paragraph,
    sentences,
)
from nbautograd.views.phrases import VERDICT_MARKS, line_of, place, say, tried, without_example

MOST_OPEN = 3  # findings beside the answer; more of them are folded


def verdict_chip(verdict: Verdict) -> Chip:
    """Return the sign and the word, which text leaves out: the headline says it."""
    return Chip(f"{VERDICT_MARKS[verdict]} {say('verdict', verdict)}", verdict, plain="")


def answer_document(told: Answer, table: bool = False) -> Document:
    """Return the headline, the causes with the change that mends them, and the evidence, in the verdict's colour.

    Args:
        told: the answer.
        table: whether a table of blocks follows, under which the numbers of what is wrong stand.
    """
    head = paragraph(verdict_chip(told.tone), Strong(told.headline), told.aside, look="head")
    kinds = len(told.findings) > 1 or any(finding.kind != "bug" for finding in told.findings)
    causes = [Item(finding_document(finding, without_example(finding), kinds)) for finding in told.findings]
    checked = (PageOnly(sentences([told.checked], "faint")),) if told.checked else ()
    notes = sentences(told.notes, "faint")
    evidence = () if table and told.tone == "wrong" else sentences(told.evidence)
    first = (paragraph(Term(messages.text("views.first_only"), told.first_only), look="faint"),)
    return (Card(told.tone, (head, *causes, *evidence, *(first if told.first_only else ()), *notes, *checked)),)


def evidence_document(told: Answer) -> Document:
    """Return what stands under the table of blocks: the numbers of what is wrong."""
    return sentences(told.evidence, "faint") if told.tone == "wrong" else ()


@build.register
def finding_document(finding: Finding, words: str = "", kind: bool = True) -> Document:
    """Return a finding's kind, its sentence (or these words instead), its line, its change, and ways to both."""
    name, line = say("kind", finding.kind), place(finding)
    chip = Chip(name, finding.kind, plain=f"{name}{messages.text('views.colon')}".rstrip()) if kind else ""
    page = Link(finding.code, url=page_of(finding.code)) if finding.hints == "fix" else ""
    sentence = paragraph(chip, words or finding.message, Faint(f"({line})") if line else "", page)
    change = None if finding.fix is None else Item(change_document(finding.fix))
    return tuple(filter(None, (sentence, change, _links(finding))))


@build.register
def change_document(fix: Fix) -> Document:
    """Return the lines that go and come, where they are, and whether that was tried."""
    where = messages.text("views.fix.change" if fix.line is None else "views.fix.at", line=fix.line)
    note = messages.text("views.semicolon").join((where, tried(fix)))
    return (Change(fix.before, fix.source, note, fix.verified, fix.line),)


def _links(finding: Finding) -> Block | None:
    """Return the ways from a finding to its evidence."""
    links: list[Span] = []
    line = line_of(finding)
    if finding.where is not None:
        links.append(Link(messages.text("widgets.show_jacobian"), "jacobian", finding.where, line))
    if line is not None:
        links.append(Link(messages.text("widgets.show_line", line=line), "source", line=line))
    return Paragraph(tuple(links)) if links else None


def findings_document(findings: Sequence[Finding]) -> Document:
    """Return the findings that the answer does not tell; folded on a page when they are many."""
    if not findings:
        return ()
    body = tuple(block for finding in findings for block in finding_document(finding))
    title = Strong(messages.text("views.part.findings"))
    return (Fold(title, body, str(len(findings)), opened=len(findings) <= MOST_OPEN),)
