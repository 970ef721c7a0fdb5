"""The static page: it survives, it escapes, it stays small, it says what the text says."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
import sample_values as samples
from said import says
from survivors import Page, lost_rules

from nbautograd import messages
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.core.recording.call import CallLog
from nbautograd.core.values import CtxSnapshot, Value
from nbautograd.version import SITE
from nbautograd.views import to_html
from nbautograd.views.bundle import html, mimebundle
from nbautograd.views.document import Fold, paragraph
from nbautograd.views.markup import escape

EVIL = "<img src=x onerror=alert(1)>\"'&{0}"
VALUES = {
    "wrong": samples.report(wrong=True, comparison=samples.comparison()),
    "right": samples.report(),
    "cannot tell": samples.cannot_tell(),
    "gradcheck": samples.gradcheck(wrong=True, order2=samples.gradcheck(wrong=True)),
    "jacobian": samples.report().jacobian,
    "block": samples.gradcheck().blocks[0, 0],
    "log": samples.calls(),
    "empty log": CallLog(problems=("recording was off",)),
    "call": samples.calls()[1],
    "graph": samples.graph(),
    "empty graph": AutogradGraph(),
    "comparison": samples.comparison(agree=False),
    "finding": samples.TRANSPOSED,
    "summary": samples.tensor(samples.W),
    "ctx": samples.calls()[0].ctx,
    "empty ctx": CtxSnapshot(),
    "value": samples.value("w", samples.W),
    "something else": 3,
}


@pytest.fixture(params=VALUES, name="made")
def _made(request):
    return html(VALUES[request.param])


def test_all_of_it_survives_the_sanitizer(made):
    assert Page(made).lost == []


def test_pictures_are_svg_documents_with_words_for_those_who_do_not_see_them(made):
    for picture in Page(made).pictures:
        document = base64.b64decode(picture["src"].partition(",")[2]).decode()
        assert ElementTree.fromstring(document).tag == "{http://www.w3.org/2000/svg}svg"
        assert "script" not in document
        assert len(picture["alt"]) > 5


def test_nothing_is_fetched(made):
    linked = re.sub(rf'href="{SITE}[^"]+"|http://www.w3.org', "", made)  # a link fetches nothing by itself
    assert "http" not in linked


def test_the_sanitizer_list_can_fail():
    page = Page('<svg></svg><td id="a" style="color:var(--x);opacity:.5"><script>1</script><b>')
    assert page.lost[:4] == ["<svg>", "td[id]", "td style color:var(--x)", "td style opacity:.5"]
    assert "<script>" in page.lost
    assert page.lost[-1] == "<b> is not closed"
    assert lost_rules("position:fixed") == ["position:fixed"]
    assert lost_rules("color:light-dark(#ffffff,#000000)") == ["color:light-dark(#ffffff,#000000)"]


def test_the_anchor_is_a_class_of_the_outermost_element():
    assert html(samples.report(), "nba-7").startswith('<div class="nbautograd nba-7" ')
    assert html(samples.report()).startswith('<div class="nbautograd" ')


def test_names_that_are_html_change_nothing():
    block = samples.block(np.eye(2) * 2, np.eye(2), names=(EVIL, EVIL), reason=EVIL)
    value = Value(EVIL, EVIL, EVIL, replace(samples.tensor(samples.W), dtype=EVIL), same_as=EVIL)
    finding = Finding(EVIL, "bug", "report.as_text", {"text": EVIL}, line=1, fix=Fix(EVIL, True, 1, EVIL))
    call = replace(
        samples.calls()[0], function=EVIL, inputs=(value,), stdout=EVIL, exception=EVIL, missing=(EVIL,), thread=EVIL,
        ctx=CtxSnapshot((value,), {EVIL: value}, dirty=(EVIL,)), warnings=(finding,),
    )  # fmt: skip
    report = samples.report(
        function=EVIL,
        gradcheck=samples.gradcheck(function=EVIL, verdict="wrong", blocks={(0, 0): block}, findings=(finding,)),
        calls=CallLog((call,), problems=(EVIL,)),
        graph=AutogradGraph((Node(0, EVIL, "function", label=EVIL, scope=EVIL),), order=(0,), notes=(EVIL,)),
        comparison=replace(samples.comparison(), function=EVIL, reference=EVIL),
        notes=(EVIL,),
    )
    page = Page(html(report, EVIL))
    assert page.lost == []
    assert page.tags.count("img") == len(page.pictures)
    assert not [p for p in page.pictures if p["src"] == "x"]
    assert EVIL in page.text


def test_names_in_any_script_and_control_characters():
    made = html(replace(samples.calls()[0], function="线性\x00\x1b[31m", stdout="\ud800 ∂L/∂w\n"))
    assert "线性" in made
    assert "∂L/∂w" in made
    made.encode("utf-8")
    assert not {"\x00", "\x1b"} & set(made)


BAD = {
    "nan": samples.block([[np.nan, 1.0], [0.0, np.inf]], np.eye(2)),
    "empty": samples.block(np.zeros((0, 3)), shapes=((0,), (3,))),
    "scalar": samples.block([[2.0]], [[1.0]], ((), ())),
    "complex": samples.block([[1 + 2j, 0]], [[1 - 2j, 0]]),
    "wide": samples.block(np.random.default_rng(0).normal(size=(2, 4000))),
    "large": samples.block(np.random.default_rng(0).normal(size=(300, 300))),
    "zero": samples.block(np.zeros((4, 4))),
    "tiny": samples.block(np.eye(3) * 1e-300),
    "huge": samples.block(np.eye(3) * 1e300),
}


@pytest.mark.parametrize("name", BAD)
def test_unusual_blocks(name):
    report = samples.gradcheck(blocks={(0, 0): BAD[name]}, verdict="cannot tell")
    page = Page(html(report))
    assert page.lost == []
    assert len(html(report)) < 30_000
    assert (messages.text("views.panel.empty") in page.text) is (name == "empty")


def test_a_block_without_numbers_says_so():
    lost = replace(samples.gradcheck().blocks[0, 0], matrices=None)
    assert messages.text("views.panel.unread") in html(samples.gradcheck(blocks={(0, 0): lost}))


def test_fifty_blocks_stay_within_the_budget():
    rng = np.random.default_rng(0)
    block = samples.block(rng.normal(size=(12, 12)))
    report = samples.report(gradcheck=samples.gradcheck(blocks={(0, k): block for k in range(50)}))
    made = html(report)
    assert len(made) < 64_000
    assert says(made, "views.agreeing", n=50)
    assert Page(made).lost == []


def test_a_report_with_too_much_of_everything_is_still_small():
    many = tuple(samples.value(f"a_rather_long_name_{k}", samples.W) for k in range(12))
    call = replace(samples.calls()[0], inputs=many, outputs=many, ctx=CtxSnapshot(many), stdout="x" * 4000)
    nodes = tuple(replace(samples.graph().nodes[3], id=k, label=f"parameter {k}") for k in range(200))
    graph = AutogradGraph(nodes, (), ((0, "loss"),), tuple(range(200)))
    made = html(samples.report(wrong=True, calls=CallLog((call,) * 9), graph=graph, comparison=samples.comparison()))
    page = Page(made)
    assert len(made) < 64_000
    assert page.lost == []
    left_out = messages.text("views.too_long", part=messages.text("views.part.calls"), attribute="calls")
    assert left_out.replace("`", "") in page.text


@pytest.mark.parametrize(("opened", "left_out"), [("calls", "gradcheck"), ("gradcheck", "calls"), ("", "calls")])
def test_a_part_that_is_open_is_left_out_last(opened, left_out):
    """What is open is shown."""
    long = (paragraph("word " * 8000),)
    folds = [Fold(part, long, opened=part == opened, attribute=part) for part in ("calls", "gradcheck")]
    shown = Page(to_html.page(tuple(folds))).text
    told = {part: messages.text(f"views.part.{part}") for part in ("calls", "gradcheck")}
    said = [messages.text("views.too_long", part=told[part], attribute=part).replace("`", "") for part in told]
    assert [one in shown for one in said] == [part == left_out for part in told]


def test_beside_wrong_blocks_those_that_agree_are_folded():
    made = html(samples.gradcheck(wrong=True))
    title = '<code>d\xa0output / d\xa0input</code> <span style="opacity:0.75">✓ agrees, 6 × 4'
    assert title in made
    assert title not in html(samples.gradcheck())


def test_a_flood_of_prints_is_cut():
    made = html(replace(samples.calls()[0], stdout="x" * 100_000))
    assert len(made) < 12_000
    assert says(made, "views.more", n="96,000")


def test_a_picture_that_fails_leaves_the_table(monkeypatch):
    def broken(value, **_):
        raise ValueError("no room")

    monkeypatch.setattr("nbautograd.views.svg.svg", broken)
    words = Page(html(samples.graph())).text
    assert messages.text("views.failed", error="ValueError: no room") in words
    assert "LinearFunctionBackward" in words


def test_a_part_that_fails_leaves_the_answer_and_the_other_parts(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("<oops>")

    monkeypatch.setattr("nbautograd.views.builders.report.matrices_document", broken)
    words = Page(html(samples.report(wrong=True))).text
    assert messages.text("views.failed", error="RuntimeError: <oops>") in words
    assert words.index("LinearFunction: ") < words.index("Calls")


def test_the_bundle_never_raises(monkeypatch):
    def broken(*_):
        raise RuntimeError("no")

    monkeypatch.setattr("nbautograd.views.bundle.build", broken)
    bundle = mimebundle(samples.report(), "nba-1")
    assert bundle["text/plain"].startswith("<FunctionReport LinearFunction: right")
    assert "(RuntimeError: no)" in bundle["text/plain"]
    assert bundle["text/html"].startswith('<div class="nbautograd nba-1" style=')
    assert Page(bundle["text/html"]).lost == []


def test_a_name_cannot_turn_the_text_behind_it() -> None:
    assert escape("a\u202eb\u2066c") == "a\ufffdb\ufffdc"
