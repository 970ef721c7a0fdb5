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
from nbautograd.core.findings import Kind
from nbautograd.core.kernel.layouts import GRADS, INPUTS
from nbautograd.course.exercise import CHECKS
from nbautograd.inspection.audit_report import AuditVerdict
from nbautograd.views.builders.blocks import TONE
from nbautograd.views.markup import escape
from nbautograd.views.phrases import MARKS, VERDICT_MARKS
from nbautograd.views.theme import TONES

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


@given(st.text())
def test_nothing_gets_through_escape(text):
    made = escape(text)
    assert not {"<", ">", '"', "'"} & set(made)
    made.encode("utf-8")
