"""What is copied for an issue: the lines in it run, and check the same again."""

from __future__ import annotations

import re

import pytest
import torch
from fn import Fn

import nbautograd
from nbautograd.views.issue import for_issue

Scaled = Fn.of("Scaled", "x, scales, power: save(x); ctx.by = scales[0] * scales[1]; return x * ctx.by ** power",
    "g: return g * ctx.by * 2, None, None")  # fmt: skip


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("kind", [list, tuple])
def test_the_lines_run_and_say_the_same(kind: type, redact: bool) -> None:
    x = torch.linspace(-1, 1, 4, dtype=torch.float64).requires_grad_()
    scales = kind(torch.tensor(one, dtype=torch.float64) for one in (2.0, 3.0))
    report = nbautograd.gradcheck(Scaled, (x, scales, 1), order=1)
    *_, lines = re.findall(r"`{4}python\n(.*?)\n`{4}", for_issue(report, redact), re.DOTALL)
    told: list[nbautograd.types.GradcheckReport] = []
    assert (", ..., )" in lines or ", ...,)" in lines) == redact
    exec(lines.replace("...", "1"), {"Scaled": Scaled, "print": told.append})
    assert told[0].verdict == report.verdict == "wrong"
    if not redact:
        assert [f.message for f in told[0].findings] == [f.message for f in report.findings]
