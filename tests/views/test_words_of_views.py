"""Numbers, tables, markup and the fixed terms that views turn into words."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.checking.block import BlockVerdict
from nbautograd.core.explaining.not_finite import SENTENCE_OF, TRAPS
from nbautograd.core.findings import Kind, Phrase
from nbautograd.core.kernel.layouts import GRADS, INPUTS
from nbautograd.course.exercise import CHECKS
from nbautograd.inspection.audit_report import AuditVerdict
from nbautograd.views.builders.blocks import TONE
from nbautograd.views.bundle import mimebundle
from nbautograd.views.card import Notice, RecordingCard
from nbautograd.views.jacobian import labels
from nbautograd.views.markup import escape, prose, tag
from nbautograd.views.phrases import MARKS, VERDICT_MARKS, dedented
from nbautograd.views.theme import TONES
from nbautograd.views.to_text import table, width

REASONS = (
    *("kink", "jump", "staircase", "scale of stairs", "handed on", "float32", "noise", "domain edge", "interrupted"),
    *("rounds inside", "raised", "approximate", "backward noise", "low precision", "no entries"),
)
TERMS = {
    "block": get_args(BlockVerdict),
    "verdict": get_args(AuditVerdict),
    "kind": get_args(Kind),
    "reason": REASONS,
    "witness": ("backward", "finite differences", "autograd of forward", "jvp"),
    "part": ("gradcheck", "jacobian", "calls", "graph", "comparison"),
    "panel": ("analytical", "numerical", "difference"),
    "compare_change": (*INPUTS, *GRADS, "stacked", "mixed", "autocast", "odd", "large"),
}
FAMILIES = {
    **{f"views.{group}": terms for group, terms in TERMS.items()},
    "course.check": CHECKS,
    "explain.trap": [SENTENCE_OF.get(trap.rule, trap.rule) for trap in TRAPS],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_fixed_term_has_a_word(family):
    ids = {f"{family}.{term.replace(' ', '_')}" for term in FAMILIES[family]}
    assert all(messages.text(one, op="exp") for one in ids)
    known = {key for key in messages.catalogue("en") if key.startswith(f"{family}.")}
    assert known == ids or family in ("views.part", "views.verdict", "views.kind", "views.witness", "views.panel")


def test_every_verdict_has_a_mark_and_a_tone():
    assert set(MARKS) == set(TONE) == set(get_args(BlockVerdict))
    assert set(VERDICT_MARKS) == set(TERMS["verdict"])
    assert {*TERMS["verdict"], *get_args(Kind), *TONE.values()} <= set(TONES)
    assert len(set(MARKS.values())) == len(MARKS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "1.0"), (-0.5, "-0.5"), (-0.0, "0.0"), (3.0000001, "3.0"), (1 / 3, "0.3333"), (3e-10, "3e-10"),
        (1e6, "1e6"), (123456789.0, "1.235e8"), (float("nan"), "NaN"), (float("-inf"), "-∞"), (0, "0"), (7, "7"),
        (10**7, "1e7"), (1234.5, "1235"), (123.4567, "123.5"), (0.000123456, "0.0001235"), (9999.9, "1e4"),
        (-5e-324, "-4.941e-324"),
        (None, "–"), (np.float32(2.0), "2.0"), (1 - 2j, "1.0-2.0j"), (True, "True"),
        (complex(0, float("nan")), "0.0+NaNj"), (complex(-0.0, -0.0), "0.0+0.0j"),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(value, expected):
    assert formats.number(value) == expected


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool), st.integers(1, 17))
def test_what_is_not_zero_never_reads_as_zero(value, digits):
    assert float(formats.number(value, digits)) != 0
    assert float(formats.short(value).replace("∞", "inf")) != 0
    if 0 < value < 1e9:
        assert float(formats.milliseconds(value)) != 0


@given(st.floats(), st.floats())
def test_numbers_that_are_compared_look_different_if_and_only_if_they_are(first, second):
    one, other = formats.compared(first, second)
    same = first == second or (np.isnan(first) and np.isnan(second))
    assert (one == other) == same


@given(st.floats(1e-3, 1e3), st.integers(1, 12))
def test_a_number_has_no_digit_that_the_rounding_did_not_leave(value, digits):
    said = formats.number(value, digits)
    figures = said.partition("e")[0].replace(".", "").lstrip("0")
    assert value == int(value) or len(figures) <= max(digits, 1)


@pytest.mark.parametrize(
    ("bytes_", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1200, "1.2 kB"),
        (3_400_000, "3.4 MB"),
        (33_550_000, "33.6 MB"),
        (336_000_000, "336 MB"),
        (999_950, "1.0 MB"),
        (10**16, "10000 TB"),
    ],
)
def test_sizes(bytes_, expected):
    assert formats.size(bytes_) == expected


def test_times_and_indices():
    assert [formats.milliseconds(s) for s in (4.2e-5, 0.0013, 0.25)] == ["0.042", "1.3", "250"]
    assert [formats.time(s) for s in (0.0, 1e-7, 0.00996, 0.9994, 9.96, 59.4, 59.6, 3600)] == [
        "0.0 ms", "0.0001 ms", "10 ms", "999 ms", "10 s", "59 s", "1 min 0 s", "60 min 0 s",
    ]  # fmt: skip
    assert formats.shape((2, 3)) == "2×3"
    assert formats.shape(()) == ""
    assert formats.index((0, 2)) == "[0,2]"
    assert formats.index(()) == ""
    assert [formats.count(n) for n in (0, 1234567, 10**12)] == ["0", "1,234,567", "1e12"]


def test_wide_characters_count_double():
    assert width("梯度 ok") == 7
    lines = table(["名", "b"], [["a", "1"], ["梯度", "22"]], right=(1,))
    assert lines == ["名     b", "a      1", "梯度  22"]


def test_changes_lose_the_indentation_they_share():
    assert dedented("    x = 1\n    y = 2", "    x = 2") == (["x = 1", "y = 2"], ["x = 2"])
    assert dedented("", "        z") == ([], ["z"])
    assert dedented("  if a:\n    b", "  if not a:\n    b") == (["if a:", "  b"], ["if not a:", "  b"])


def test_markup_escapes_once():
    assert (
        tag("b", {"title": "<&>"}, "<i>", tag("i", None, "&")) == '<b title="&lt;&amp;&gt;">&lt;i&gt;<i>&amp;</i></b>'
    )
    assert escape(escape("<")) == "&lt;"


@given(st.text())
def test_nothing_gets_through_escape(text):
    made = escape(text)
    assert not {"<", ">", '"', "'"} & set(made)
    made.encode("utf-8")


def test_backticks_become_code():
    assert prose("`a<b` and ` alone") == "<code>a&lt;b</code> and ` alone"


def test_parts_of_complex_numbers_are_named():
    assert [formats.index(p, pair=True) for p in ((0, 2, 1), (0,))] == ["[0,2].imag", ".real"]
    assert labels((2, 2), 1, 4, pairs=True) == ["0 re", "0 im", "1 re", "1 im"]
    assert labels((2,), 1, 2, pairs=True) == ["re", "im"]


def test_a_card_and_its_notices_speak_the_language_of_the_moment():
    """They stay under their cell; what they say is put into words when they are drawn."""
    offer = Notice((Phrase("magics.migrated", function="Scale"),), "class Scale: ...")
    card = RecordingCard(("Scale",), hint=Phrase("magics.hint_legacy", after="Scale.apply(x)"), offers=(offer,))
    english = mimebundle(card)["text/plain"]
    messages.set_language("zh")
    chinese = mimebundle(card)["text/plain"]
    assert "Run the class below in its place" in english
    assert "ready to copy" in english
    assert "ready to copy" not in chinese
    assert "Scale.apply(x)" in chinese
