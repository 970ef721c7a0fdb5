"""``compare`` in low precision: pairs agree where nothing but rounding lies between them, as in a kernel check."""

from __future__ import annotations

import pytest
import torch
from fused_kernels import RMS_NORM

from nbautograd import compare


@pytest.mark.parametrize(
    ("fault", "kind", "agree"),
    [
        ("", "float32", (True, True)),
        ("", "steps", (True, True)),  # not within 1e-2
        ("sums in bfloat16", "float32", (True, False)),
    ],
)
def test_bfloat16_is_judged_as_by_the_kernel_check(fault: str, kind: str, agree: tuple[bool, bool]) -> None:
    fn = RMS_NORM.faults[fault] if fault else RMS_NORM.kernel
    comparison = compare(fn, RMS_NORM.eager[kind], RMS_NORM.make(torch.bfloat16, 0))
    assert comparison.gradients_agree == agree
    assert comparison.outputs_agree == (True,)
    assert comparison.agree is all(agree)


def test_float32_keeps_torchs_tolerance() -> None:
    x = torch.linspace(-2, 2, 40, requires_grad=True)
    assert compare(torch.tanh, lambda x: torch.tanh(x) * (1 + 1e-6), (x,)).agree
    assert not compare(torch.tanh, lambda x: torch.tanh(x) * (1 + 1e-4), (x,)).agree
