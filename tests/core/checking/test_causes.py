"""Every mistake is found and named, nothing correct is accused, and the sentences are what a student reads."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest
from fn import Fn
from own_mistakes import MISTAKES, Mistake, draw
from said import pattern

import nbautograd
from nbautograd.core.findings import Finding

DECIMAL = re.compile(r"\d+\.\d{2,}(?:e[-+]?\d+)?")


@pytest.fixture(scope="module", params=MISTAKES, ids=lambda m: m.name)
def mistake(request: pytest.FixtureRequest) -> Mistake:
    found: Mistake = request.param
    return found


@pytest.fixture(scope="module")
def report(mistake: Mistake) -> nbautograd.types.GradcheckReport:
    """One check of each mistake, which several tests read."""
    return nbautograd.gradcheck(mistake.fn, mistake.inputs())


def test_no_number_of_a_report_is_left_in_its_copy(report: nbautograd.types.GradcheckReport) -> None:
    redacted = report.redact()
    code = "\n".join(f"{f.fix.before}\n{f.fix.source}" for f in report.findings if f.fix is not None)
    if report.source is not None:  # expressions of forward are quoted as Python writes them: 1e-4 as 0.0001
        code += ast.unparse(ast.parse(textwrap.dedent(report.source.text)))
    assert set(DECIMAL.findall(str(redacted))) <= set(DECIMAL.findall(code))
    assert [f.code for f in redacted.findings] == [f.code for f in report.findings]
    assert redacted.verdict == report.verdict


def first(fn, inputs) -> Finding:
    return nbautograd.gradcheck(fn, inputs).findings[0]


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda ctx: ctx.saved_tensor[0], pattern("magics.did_you_mean", near="ctx.saved_tensors")),
        (lambda ctx: ctx.scal, pattern("magics.did_you_mean", near="ctx.scale")),
        (lambda ctx: ctx.mask, pattern("causes.exception_nothing_on_ctx.advice")),
    ],
)
def test_a_misspelt_attribute_of_ctx_is_named(read, words) -> None:
    class Misspelt(Fn):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.scale = 2.0
            return ctx.scale * x

        def backward(ctx, g):
            return read(ctx) * g

    assert re.search(words, first(Misspelt, (draw(2),)).message)
