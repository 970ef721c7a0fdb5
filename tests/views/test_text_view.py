"""Every public value as plain text: the words themselves, in both languages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sample_values as samples
import torch
from fn import Fn

import nbautograd
from nbautograd import messages
from nbautograd.core.findings import Finding
from nbautograd.core.recording.call import CallLog
from nbautograd.core.values import CtxSnapshot
from nbautograd.views.bundle import text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"complete": False}, "Interrupted: these are the results so far."),
        ({"order2": samples.gradcheck(wrong=True), "order": 2}, "but second derivatives are wrong."),
        ({"order2": samples.gradcheck()}, "Second derivatives are right."),
        ({"order2": samples.cannot_tell()}, "Cannot tell whether second derivatives are right."),
    ],
)
def test_what_else_is_said(change, expected):
    assert expected in text(samples.gradcheck(**change))


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
    assert "blocks that agree: 2" in shown


def test_hundreds_of_calls_are_folded_with_a_count():
    one = samples.calls()[0]
    shown = text(CallLog(tuple(replace(one, index=k, stdout="") for k in range(300)), dropped=1200))
    assert messages.text("views.calls.folded", n=288) in shown
    assert "1,200 older calls" in shown
    assert len(shown.split("\n")) < 25


@pytest.mark.parametrize(
    ("values", "exception", "said"),
    [
        (("grad_output", np.array([1.0, np.nan])), None, "was given NaN or Inf: in `grad_output`."),
        (("grad_input", np.array([1.0, np.inf])), None, "got finite numbers and returned NaN or Inf: in `grad_input`."),
        (None, "ValueError: no", "raised: ValueError: no"),
    ],
)
def test_the_first_call_that_something_is_wrong_with_is_named_and_listed_among_hundreds(values, exception, said):
    forward, backward = samples.calls()
    made = [replace(backward if k % 2 else forward, index=k, stdout="") for k in range(300)]
    named = {} if values is None else {"inputs" if values[0] == "grad_output" else "outputs": (samples.value(*values),)}
    made[151] = replace(made[151], exception=exception, **named)
    made[153] = replace(made[153], exception="another")  # a later one is not the first
    shown = text(CallLog(tuple(made)))
    assert f"Call #151 (`LinearFunction.backward`) is the first of these that {said}" in " ".join(shown.split())
    listed = [line.split()[0] for line in shown.split("\n") if " forward " in line or " backward " in line]
    assert [n for n in listed if n.isdigit()] == [*"0123", "151", *map(str, range(292, 300))]
    assert messages.text("views.calls.folded", n=147) in shown
    assert messages.text("views.calls.folded", n=140) in shown


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.zeros((0, 3)), "float64 0×3  no elements"),
        (np.array(2.5), "float64 scalar  2.5"),
        (np.array([1.0, np.nan, np.inf]), "float64 3  1.0, NaN, ∞"),
        (np.full(9, np.nan), "float64 9  9 NaN"),
        (np.zeros(9), "float64 9  0.0 to 0.0, mean 0.0, norm 0.0, all zeros"),
        (np.arange(100.0), "float64 100  0.0 to 99.0, mean 49.5, norm 573.0"),
        (np.array([1 + 2j]), "float64 1  1.0+2.0j"),
    ],
)
def test_tensors_in_words(values, expected):
    assert text(samples.tensor(values)) == expected


def test_a_tensor_of_a_million_elements_is_a_summary():
    summary = replace(samples.tensor(np.ones(4)), numel=10**6, values=None, sampled=512)
    assert " ".join(text(summary).split()).endswith(
        "norm 2.0, of a sample: 512 of 1,000,000 elements, spread from first to last"
    )


def test_ctx_facts():
    shown = text(CtxSnapshot(dirty=("x",), non_differentiable=("idx",), materialize_grads=False, freed=True))
    assert shown.split("\n") == [
        "marked dirty: x",
        "marked non differentiable: idx",
        "set_materialize_grads(False): missing gradients arrive as None",
        "the saved tensors have already been freed",
    ]
    assert text(CtxSnapshot()) == "nothing"


def test_a_reason_that_is_a_finding_is_told_once_with_its_advice():
    finding = Finding("reentrant_checkpoint", "note", "checking.reentrant_checkpoint")
    report = samples.gradcheck(verdict="cannot tell", reason=finding.phrase("what"), findings=(finding,), blocks={})
    shown = " ".join(text(report).split())
    assert shown.count(finding.what) == 1
    assert finding.advice in shown
    assert "Also noticed" not in shown


def test_a_kink_is_right_and_named():
    block = samples.block(np.eye(2), np.diag([1.0, 0.0]), names=("y", "x"), verdict="subgradient", wrong=0)
    shown = text(samples.gradcheck(blocks={(0, 0): block}))
    assert "It agrees in" not in shown  # one side of the kink alone may
    assert messages.text("views.evidence.subgradient", inputs="`x`").partition(",")[0] in shown
    assert "largest error 1.0" not in shown.split("block ")[0]


Doubled = Fn.of("Doubled", "x: return x * 1", "grad_output: return 2 * grad_output")


def test_of_very_many_entries_those_that_are_zero_by_structure_are_counted_apart():
    x = torch.linspace(1, 2, 1100, dtype=torch.float64, requires_grad=True)
    shown = " ".join(str(nbautograd.gradcheck(Doubled, (x,), order=1)).split())
    assert messages.text("views.evidence.wrong_stored", wrong="1,100", stored="1,100", entries="1,210,000") in shown


def test_a_tried_change_is_told_once_and_without_advice():
    wrong = samples.gradcheck(wrong=True)
    advised = Finding("tensor_on_ctx", "bug", "causes.tensor_on_ctx", {"name": "x"})
    untried, tried = (replace(advised, fix=replace(wrong.findings[0].fix, verified=v)) for v in (False, True))
    said = [" ".join(text(replace(wrong, findings=(one,))).split()) for one in (untried, tried)]
    assert [advised.advice in words for words in said] == [True, False]
    assert said[1].count(tried.fix.source.strip()) == 1
