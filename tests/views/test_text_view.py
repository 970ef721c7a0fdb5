"""Every public value as plain text: the words themselves, in both languages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sample_values as samples
import torch
from fn import Fn
from said import says

import nbautograd
from nbautograd import messages
from nbautograd.core.findings import Finding
from nbautograd.core.recording.call import CallLog
from nbautograd.core.values import CtxSnapshot
from nbautograd.views.bundle import text


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"complete": False}, "evidence.incomplete"),
        ({"complete": False, "verdict": "cannot tell"}, "headline.stopped_agrees"),
        (
            {"complete": False, "verdict": "cannot tell", "blocks": samples.cannot_tell().blocks},
            "headline.stopped_open",
        ),
        ({"order2": samples.gradcheck(wrong=True), "order": 2}, "headline.second_wrong"),
        ({"order2": samples.gradcheck()}, "evidence.order2.right"),
        ({"order2": samples.cannot_tell()}, "evidence.order2.cannot_tell"),
    ],
)
def test_what_else_is_said(change, key):
    assert says(text(samples.gradcheck(**change)), f"views.{key}")


@pytest.mark.parametrize(
    ("verdict", "reason", "expected"),
    [("undecided", "interrupted", "? cannot tell (interrupted)"), ("flat", "staircase", "– flat (staircase)")],
)
def test_nothing_is_counted_in_a_block_that_was_not_judged(verdict, reason, expected):
    block = samples.block(np.eye(2), verdict=verdict, reason=reason)
    shown = text(replace(samples.cannot_tell(), blocks={(0, 0): block}))
    assert f"{expected}              –              –" in shown
    assert "0/4" not in shown


def test_no_wrong_block_is_hidden_among_many():
    good = samples.block(np.eye(2))
    blocks = {(0, k): samples.block(np.eye(2) * 2, np.eye(2), names=("y", f"bad{k}")) for k in range(40)}
    shown = text(samples.gradcheck(verdict="wrong", blocks={**blocks, (1, 0): good, (2, 0): good}))
    assert shown.count("✗ differs") == 40
    assert says(shown, "views.agreeing", n=2)


def test_hundreds_of_calls_are_folded_with_a_count():
    one = samples.calls()[0]
    shown = text(CallLog(tuple(replace(one, index=k, stdout="") for k in range(300)), dropped=1200))
    assert messages.text("views.calls.folded", n=288) in shown
    assert says(shown, "views.calls.dropped", n="1,200")
    assert len(shown.split("\n")) < 25


@pytest.mark.parametrize(
    ("values", "exception", "first", "told"),
    [
        (("grad_output", np.array([1.0, np.nan])), None, "given", {"names": "`grad_output`"}),
        (("grad_input", np.array([1.0, np.inf])), None, "returned", {"names": "`grad_input`"}),
        (None, "ValueError: no", "raised", {"exception": "ValueError: no"}),
    ],
)
def test_the_first_call_that_something_is_wrong_with_is_named_and_listed_among_hundreds(values, exception, first, told):
    forward, backward = samples.calls()
    made = [replace(backward if k % 2 else forward, index=k, stdout="") for k in range(300)]
    named = {} if values is None else {"inputs" if values[0] == "grad_output" else "outputs": (samples.value(*values),)}
    made[151] = replace(made[151], exception=exception, **named)
    made[153] = replace(made[153], exception="another")  # a later one is not the first
    shown = text(CallLog(tuple(made)))
    assert says(shown, f"views.calls.first_{first}", call="#151", method="LinearFunction.backward", **told)
    listed = [line.split()[0] for line in shown.split("\n") if " forward " in line or " backward " in line]
    assert [n for n in listed if n.isdigit()] == [*"0123", "151", *map(str, range(292, 300))]
    assert messages.text("views.calls.folded", n=147) in shown
    assert messages.text("views.calls.folded", n=140) in shown


def in_range(low, high, mean, norm):
    return messages.text("views.tensor.range", min=low, max=high, mean=mean, norm=norm)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.zeros((0, 3)), f"float64 0×3  {messages.text('views.tensor.empty')}"),
        (np.array(2.5), "float64 scalar  2.5"),
        (np.array([1.0, np.nan, np.inf]), "float64 3  1.0, NaN, ∞"),
        (np.full(9, np.nan), "float64 9  9 NaN"),
        (np.zeros(9), f"float64 9  {in_range(0.0, 0.0, 0.0, 0.0)}, {messages.text('views.tensor.zeros')}"),
        (np.arange(100.0), f"float64 100  {in_range(0.0, 99.0, 49.5, 573.0)}"),
        (np.array([1 + 2j]), "float64 1  1.0+2.0j"),
    ],
)
def test_tensors_in_words(values, expected):
    assert text(samples.tensor(values)) == expected


def test_a_tensor_of_a_million_elements_is_a_summary():
    summary = replace(samples.tensor(np.ones(4)), numel=10**6, values=None, sampled=512)
    assert says(text(summary), "views.tensor.range", norm=2.0)
    assert says(text(summary), "views.tensor.sampled", n=512, total="1,000,000")


def test_ctx_facts():
    shown = text(CtxSnapshot(dirty=("x",), non_differentiable=("idx",), materialize_grads=False, freed=True))
    said = [messages.text(f"views.call.{key}") for key in ("dirty", "non_differentiable", "materialize_off", "freed")]
    assert shown.split("\n") == [f"{said[0]}: x", f"{said[1]}: idx", *said[2:]]
    assert text(CtxSnapshot()) == "nothing"


def test_a_reason_that_is_a_finding_is_told_once_with_its_advice():
    finding = Finding("reentrant_checkpoint", "note", "checking.reentrant_checkpoint")
    report = samples.gradcheck(verdict="cannot tell", reason=finding.phrase("what"), findings=(finding,), blocks={})
    shown = " ".join(text(report).split())
    assert shown.count(finding.what) == 1
    assert finding.advice in shown
    assert not says(shown, "views.part.findings")


def test_a_kink_is_right_and_named():
    block = samples.block(np.eye(2), np.diag([1.0, 0.0]), names=("y", "x"), verdict="subgradient", wrong=0)
    shown = text(samples.gradcheck(blocks={(0, 0): block}))
    assert not says(shown, "views.evidence.right")  # one side of the kink alone may
    assert says(shown, "views.evidence.subgradient", inputs="`x`")


Doubled = Fn.of("Doubled", "x: return x * 1", "grad_output: return 2 * grad_output")


def test_of_very_many_entries_those_that_are_zero_by_structure_are_counted_apart():
    x = torch.linspace(1, 2, 1100, dtype=torch.float64, requires_grad=True)
    told = {"wrong": "1,100", "stored": "1,100", "entries": "1,210,000"}
    assert says(nbautograd.gradcheck(Doubled, (x,), order=1), "views.evidence.wrong_stored", **told)


def test_a_tried_change_is_told_once_and_without_advice():
    wrong = samples.gradcheck(wrong=True)
    advised = Finding("tensor_on_ctx", "bug", "causes.tensor_on_ctx", {"name": "x"})
    untried, tried = (replace(advised, fix=replace(wrong.findings[0].fix, verified=v)) for v in (False, True))
    said = [" ".join(text(replace(wrong, findings=(one,))).split()) for one in (untried, tried)]
    assert [advised.advice in words for words in said] == [True, False]
    assert said[1].count(tried.fix.source.strip()) == 1
