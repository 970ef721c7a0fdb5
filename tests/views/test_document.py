"""One tree and its writers: what a builder says once is in the text, on the page and in the live view's data."""

from __future__ import annotations

import json

import pytest
import sample_values as samples
import torch
from fn import Fn

import nbautograd
from nbautograd import messages
from nbautograd.core.values import describe
from nbautograd.views.builders import build, comparison
from nbautograd.views.builders.blocks import chosen_blocks
from nbautograd.views.bundle import html, text
from nbautograd.views.document import (
    Beside,
    Card,
    Change,
    Chip,
    Code,
    Drawing,
    Faint,
    Fold,
    Item,
    Link,
    Paragraph,
    Strong,
    Table,
    Thumbnail,
    Verbatim,
    paragraph,
    sentences,
)
from nbautograd.views.to_html import to_html
from nbautograd.views.to_json import to_json

EVERYTHING = (
    Card("wrong", (paragraph(Chip("✗ wrong", "wrong", plain=""), Strong("`f` is wrong."), ""), *sentences(["One."]))),
    Item((Paragraph((Chip("bug", "bug", plain="bug:"), " ", "Look at `x`. ", Link("show", "source", line=3))),)),
    Change("    a = 1\n", "    a = 2\n", "tried", tried=True),
    Table(
        ("", Code("n")), (("row", ("1", Faint("kg"), Thumbnail(samples.value("w", [[1.0, 2.0]])))), ("wide",)), "Two"
    ),
    Fold("Part", sentences(["Inside."]), "beside"),
    Fold("Detail", sentences(["Only on the page."]), in_text="nothing"),
    Verbatim("as it\n  was"),
    Beside(((Drawing(samples.graph(), "graph"),), sentences(["beside"]))),
)


def test_what_the_user_wrote_is_escaped_wherever_it_stands():
    evil = "<script>&"
    blocks = (
        paragraph(Chip(evil, "bug"), Strong(evil), Code(evil), Faint(evil), evil),
        Table((evil,), ((evil, Code(evil)),), evil),
        Fold(evil, sentences([evil]), evil),
        Change(evil, evil, evil),
        Verbatim(evil),
        Beside(((Drawing(samples.graph(), evil),),)),
    )
    assert "<script" not in to_html(blocks)
    assert to_html(blocks).count("&lt;script&gt;") >= 12


def test_plain_data_keeps_kinds_and_leaves_out_defaults_and_what_only_stored_reports_read():
    data = to_json(EVERYTHING)
    assert [block["kind"] for block in data] == [
        "card", "item", "change", "table", "fold", "fold", "verbatim", "beside",
    ]  # fmt: skip
    assert data[0]["body"][0]["spans"][0] == {"kind": "chip", "words": "✗ wrong", "tone": "wrong"}
    assert data[4] == {"kind": "fold", "title": "Part", "body": to_json(sentences(["Inside."])), "beside": "beside"}
    thumbnail = data[3]["rows"][0][1][2]
    assert (thumbnail["array"]["shape"], thumbnail["exact"]) == ([1, 2], True)
    json.dumps(data, default=lambda part: len(part))


def test_a_pooled_picture_says_how_many_elements_a_cell_stands_for_stored_as_live() -> None:
    block = messages.text("views.panel.pooled", rows=2, cols=3)
    whole, part = describe("x", torch.ones(3, 4)), describe("x", torch.ones(64, 70))
    stored = [html(one) for one in (whole, part)]
    assert [block in page for page in stored] == [False, True]
    live = [to_json(Thumbnail(one))["pooling"] for one in (whole, part)]
    assert live[0] is None
    assert (live[1]["rows"], live[1]["cols"], live[1]["words"]) == (2, 3, block)
    assert block not in text(part)  # where no picture is


@pytest.mark.parametrize(
    ("dtype", "off", "seen"),
    [(torch.float64, 1e-15, False), (torch.float64, 1e-3, True), (torch.bfloat16, 8e-3, False)],
)
def test_both_values_share_a_scale_and_so_does_a_difference_beyond_rounding(dtype, off, seen) -> None:
    x = torch.tensor([1.0, 2.0, 4.0], dtype=dtype, requires_grad=True)
    comparison = nbautograd.compare(torch.square, lambda x: x * x * (1 + off), (x,), sizes=())
    blocks = (part for block in build(comparison) for part in getattr(block, "body", (block,)))
    table = next(block for block in blocks if isinstance(block, Table))
    ours, theirs, *error = (s for cell in table.rows[0][1:] for s in cell if isinstance(s, Thumbnail))
    assert ours.most == theirs.most == pytest.approx(16.0, rel=1e-2)
    assert bool(error) is seen
    for one in error:
        assert one.most == ours.most
        assert 0 < one.floor < 16 * off
    drawn = to_json(ours)
    assert (drawn["most"], drawn["floor"]) == (ours.most, 0.0)


def test_what_is_infinite_at_the_edge_of_a_domain_is_no_error() -> None:
    root = Fn.of("Root", "x: save(x); return x.sqrt()", "g: (x,) = saved; return g / x.sqrt() / 2")
    report = nbautograd.gradcheck(root, torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True))
    (table,) = chosen_blocks(report.blocks)
    assert (report.verdict, table.rows[0][2:]) == ("cannot tell", ("–", "–", "–"))


def test_a_difference_found_wrong_is_drawn_though_no_entry_stands_out_from_rounding() -> None:
    torch.manual_seed(0)
    report = nbautograd.compare(lambda x: x + 0.03, torch.clone, (torch.randn(8, 8).bfloat16(),), sizes=())
    [wrong] = [one for one in report.quantities if one.verdict == "wrong"]
    *_, (drawn, _) = comparison._values(wrong)
    assert isinstance(drawn, Thumbnail)
    assert drawn.floor < wrong.largest
