"""Kernels in low precision, written as people write them: right ones are called right, each wrong twin wrong."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from kernels import KERNELS, RMS, Kernel
from said import says

from nbautograd import compare
from nbautograd.inspection.comparison import Comparison

HALVES = (torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.nightly))
DAILY = ("rms_norm", "softmax")  # the others take two thirds of the time of all twins
CAUSES = [
    ("factor", "compare_factor", "factor", pytest.approx(0.98, abs=1e-3)),
]
MORE_CAUSES = [
    ("none", "compare_no_gradient", "name", "args[1]"),
    ("tail", "compare_region", "where", "grad args[0][:, 192:]"),
    ("lost", "compare_term", "along", "args[0]"),
    ("row", "compare_region", "where", "grad args[0][-1]"),
    ("zero", "compare_zero", "name", "args[0]"),
]


def daily(kernel: Kernel, twin: str) -> bool:
    """True for the first twin of a few kernels."""
    return kernel.name in DAILY and twin == next(iter(kernel.wrong))


TWINS = [
    pytest.param(kernel, twin, id=f"{kernel.name}-{twin}", marks=() if daily(kernel, twin) else pytest.mark.nightly)
    for kernel in KERNELS
    for twin in kernel.wrong
    if kernel is not RMS
    or twin not in [cause[0] for cause in CAUSES + MORE_CAUSES]  # which are checked once, for their causes
]


def checked(kernel: Kernel, twin: str = "", dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> Comparison:
    return compare(kernel.function(twin), kernel.eager, kernel.inputs(dtype, seed), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALVES, ids=["bfloat16", "float16"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_right_kernels_are_right(kernel: Kernel, dtype: torch.dtype) -> None:
    report = checked(kernel, dtype=dtype)
    assert (report.verdict, report.findings) == ("right", ())
    assert report.resolution < 4 * torch.finfo(dtype).eps


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "twin"), TWINS)
def test_wrong_twins_are_wrong(kernel: Kernel, twin: str) -> None:
    report = checked(kernel, twin)
    assert report.verdict == "wrong"
    assert report.findings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("twin", "code", "param", "value"), CAUSES + [pytest.param(*one, marks=pytest.mark.nightly) for one in MORE_CAUSES]
)
def test_a_twin_of_rms_norm_has_its_cause(twin: str, code: str, param: str, value: object) -> None:
    report = checked(RMS, twin)
    finding, *_ = report.findings
    assert report.verdict == "wrong"
    assert (finding.code, finding.params[param]) == (code, value)


Gain = Fn.of("Gain", "x, gain: save(x); return 2 * x", "g: return 2 * g, g * ctx.saved_tensors[0]")


@pytest.mark.parametrize("depends", [lambda gain: 0.0, lambda gain: gain.round() * 0])
def test_a_gradient_that_the_reference_has_not_is_not_measured_by_it(depends) -> None:
    inputs = tuple(torch.randn(8, 16, requires_grad=True) for _ in range(2))
    finding, *_ = compare(Gain, lambda x, gain: 2 * x + depends(gain), inputs).findings
    assert (finding.code, finding.params["name"]) == ("compare_not_zero", "gain")


def test_a_right_kernel_says_what_it_could_have_seen() -> None:
    report = checked(RMS)
    assert report
    gradient = next(one for one in report.quantities if one.name == "args[0]" and one.kind == "gradient")
    assert 0.004 < gradient.resolution < 0.01
    assert {"zero", "almost", "tail_row", "tail_column", "tail_tile", "term"} == set(gradient.tried)
    assert gradient.unseen == ()
    assert says(report, "views.comparison.seen")


def test_nothing_is_right_where_zeros_would_pass() -> None:
    x = torch.full((64,), 1.0, dtype=torch.bfloat16, requires_grad=True)
    flat = compare(lambda x: x + 0, lambda x: torch.round(x) + 0 * x, (x,))
    assert flat.verdict == "wrong"  # a gradient where the reference has none
    zero = compare(lambda x: torch.round(x) + 0 * x, lambda x: torch.round(x) + 0 * x, (x,))
    assert zero.verdict == "cannot tell"
    assert zero.reason.message_id == "compare.no_gradient_to_see"
