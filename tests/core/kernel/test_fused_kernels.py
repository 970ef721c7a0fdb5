"""Fused kernels as models run them, against both kinds of reference: the right ones are right, each fault is found."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from fn import Fn
from fused_kernels import FLASH, FLASH_CAUSAL, FUSED, RAGGED, RMS_NORM, SWIGLU, Fused, attention, both, normal
from kernels import function
from torch import Tensor

from nbautograd import compare
from nbautograd.core.checking.problem import Problem
from nbautograd.core.kernel.golden import copied, moved
from nbautograd.core.kernel.layouts import laid_out
from nbautograd.core.kernel.sweep import Case, compared, laid_in_order, partitions, sizable, with_size
from nbautograd.types import Comparison

pytestmark = pytest.mark.slow

HALVES = (torch.float16, torch.bfloat16)
FAULTS = {
    ("rms_norm", "sums in bfloat16"): "compare_noise",
    ("rms_norm", "layout"): "compare_layout",
    ("rms_norm", "fused slices"): "compare_layout",
    ("rms_norm", "last block of rows"): "compare_sizes",
    ("rms_norm", "one more dimension"): "compare_layout",
    ("swiglu", "sign"): "compare_values",
    ("swiglu", "layout"): "compare_layout",
    ("swiglu", "fused slices"): "compare_layout",
    ("swiglu", "packed"): "compare_layout",
    ("flash", "scale"): "compare_factor",
    ("flash", "delta"): "compare_values",
    ("flash", "last tile"): "compare_sizes",
    ("flash", "layout"): "compare_layout",
    ("flash_causal", "scale"): "compare_factor",
    ("flash_causal", "delta"): "compare_values",
    ("flash_causal", "last tile"): "compare_sizes",
    ("flash_causal", "layout"): "compare_layout",
    ("ragged_attention", "tail"): "compare_sizes",
}


DAILY = ("rms_norm", "swiglu")  # the others take a quarter of all slow tests


def named(kernel: Fused) -> str:
    return kernel.name


def by_day(name: str, *values: Any) -> Any:
    """Return the values of a test, for the night where its kernel is not one of those for each day."""
    return pytest.param(*values, marks=() if name in DAILY else pytest.mark.nightly, id=" ".join(map(str, [*values])))


RIGHT = [
    pytest.param(*one, id=f"{one[0].name}-{one[1]}-{one[2]}", marks=() if daily else pytest.mark.nightly)
    for kernel in FUSED
    for number, one in enumerate(itertools.product([kernel], kernel.dtypes, kernel.eager))
    for daily in [kernel.name in DAILY or number == 0]
]


def of_name(name: str) -> Fused:
    return next(kernel for kernel in FUSED if kernel.name == name)


def nothing_beyond(report: Comparison) -> bool:
    """True where no row of a right report is further off than rounding explains."""
    told = [case for case in report.cases if case.change not in ("mixed", "autocast", "large")]
    return report.verdict != "right" or all(case.ratio <= 1 for case in told)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])  # both held on 24 November 2026
@pytest.mark.parametrize(("kernel", "dtype", "kind"), RIGHT)
def test_right_ones_are_right(kernel: Fused, dtype: torch.dtype, kind: str, seed: int) -> None:
    report = compare(kernel.kernel, kernel.eager[kind], kernel.make(dtype, seed), seed=seed, sizes=())
    assert (report.verdict, report.findings) == ("right", ()), report


@pytest.mark.parametrize("name", [by_day(kernel.name, kernel.name) for kernel in FUSED])
def test_right_ones_are_right_at_other_inputs(name: str) -> None:
    kernel = of_name(name)
    report = compare(kernel.kernel, kernel.eager["float32"], kernel.make(torch.bfloat16, 0), budget=40)
    assert (report.verdict, report.findings) == ("right", ()), report
    assert nothing_beyond(report)


def test_every_fault_is_asked_for() -> None:
    assert set(FAULTS) == {(kernel.name, fault) for kernel in FUSED for fault in kernel.faults}


@pytest.mark.parametrize(("name", "fault"), [by_day(name * (name != "swiglu"), name, fault) for name, fault in FAULTS])
def test_faults_are_found(name: str, fault: str) -> None:
    kernel = of_name(name)
    given, eager = kernel.make(torch.bfloat16, 0), kernel.eager["float32"]
    report = compare(kernel.faults[fault], eager, given, budget=40)
    assert report.verdict == "wrong", report
    assert FAULTS[name, fault] in {finding.code for finding in report.findings}, report


def sdpa(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 2))])
@pytest.mark.parametrize("kind", ["float32", pytest.param("steps", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_torchs_attention_is_right(causal: bool, dtype: torch.dtype, kind: str, seed: int) -> None:
    eager = both(functools.partial(attention, causal=causal))[kind]
    inputs = normal(*((2, 3, 40, 32),) * 3)(dtype, seed)
    # one key, two keys and one column are where what is saved rounded cancels
    shapes = [((1, 3, n, 16),) * 3 for n in (1, 2, 17)] + [((1, 3, 48, 1),) * 3]
    report = compare(functools.partial(sdpa, causal=causal), eager, inputs, sizes=shapes, seed=seed)
    assert (report.verdict, report.findings) == ("right", ()), report
    assert nothing_beyond(report)


# each dtype once; the eager one rounds inside in one of two ways
NORMED = [
    (torch.bfloat16, "steps"),
    pytest.param(torch.float16, "float32", marks=pytest.mark.nightly),
    pytest.param(torch.float32, "float32", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("dtype", "kind"), NORMED, ids=str)
def test_a_norm_of_few_columns_is_not_accused(dtype: torch.dtype, kind: str) -> None:
    given = RMS_NORM.make(dtype, 0)
    shapes = [tuple((*x.shape[:-1], width) for x in given) for width in (1, 2)]
    report = compare(RMS_NORM.kernel, RMS_NORM.eager[kind], given, sizes=shapes)
    assert (report.verdict, [case.verdict for case in report.cases]) == ("right", ["right"] * 2), report


def layer_norm(x: Tensor, w: Tensor) -> Tensor:
    d = x - x.mean(-1, keepdim=True)
    return d * (d.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w


def kept_norm(fault: float) -> Any:
    """A layer norm that saves what it normalised in the dtype of its inputs."""

    def forward(x: Tensor, w: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        d = x.float() - x.float().mean(-1, keepdim=True)
        r = (d.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        return d * r * w, ((d * r).to(x.dtype), w, r)

    def backward(saved: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        n, w, r = (x.float() for x in saved)
        gw = g.float() * w
        left = gw - gw.mean(-1, keepdim=True) - fault * n * (gw * n).mean(-1, keepdim=True)
        return left * r, (g.float() * n).sum(0)

    return function(forward, backward)


@pytest.mark.parametrize("fault", [1.0, 0.0])
@pytest.mark.parametrize(("dtype", "kind"), NORMED, ids=str)
def test_terms_that_cancel_in_a_norm_of_two_columns_leave_their_rounding(dtype, kind, fault):
    given = normal((24, 2), (2,))(dtype, 0)
    report = compare(kept_norm(fault), both(layer_norm)[kind], given, sizes=())
    assert (report.verdict == "wrong") is (fault != 1.0), report


@pytest.mark.parametrize("inside", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("width", [1, 3])
def test_torchs_norms_of_one_and_three_columns_are_not_accused(width: int, inside: torch.dtype) -> None:
    def written(x: Tensor, w: Tensor) -> Tensor:
        return layer_norm(x.to(inside), w.to(inside)).to(x.dtype)

    for norm in (lambda x, w: F.layer_norm(x, [width], w), lambda x, w: F.group_norm(x, 1, w)):
        report = compare(norm, written, normal((24, width), (width,))(torch.float32, 0), sizes=())
        assert report.verdict != "wrong", report


@pytest.mark.parametrize("width", [1, 2])
def test_log_softmax_of_few_columns_is_not_accused(width: int) -> None:
    given = normal((24, width))(torch.float32, 0)
    report = compare(lambda x: x.log_softmax(-1), lambda x: x - x.exp().sum(-1, keepdim=True).log(), given, sizes=())
    assert report.verdict == ("right" if width > 1 else "cannot tell"), report  # of one column nothing is to be seen


@pytest.mark.parametrize("kernel", [FLASH, FLASH_CAUSAL], ids=named)
def test_a_scale_is_named_before_the_rows_that_it_leaves_right(kernel: Fused) -> None:
    report = compare(kernel.faults["scale"], kernel.eager["float32"], kernel.make(torch.bfloat16, 0), sizes=())
    finding, *_ = report.findings
    assert finding.code == "compare_factor"
    assert finding.params["factor"] == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("layout", ["strided", "transposed", "fused", "offset"])
def test_a_layout_that_is_ignored_is_wrong_and_the_same_values_in_order_are_right(layout: str) -> None:
    fn, eager = SWIGLU.faults["layout"], SWIGLU.eager["float32"]
    given = SWIGLU.make(torch.bfloat16, 0)
    candidate, reference = Problem(fn, given, 0), Problem(eager, given, 0)
    with candidate.session(), reference.session():
        reference.call()
        case = Case(laid_out(reference, layout), layout, layouts=(layout,))
        assert compared(candidate, reference, case, 0).wrong is (
            layout != "offset"
        )  # its pointer is that of the tensor
        assert not compared(candidate, reference, laid_in_order(case), 0).wrong
        assert all(x.is_contiguous() for x in laid_in_order(case).inputs)


def test_slices_of_one_tensor_stay_slices_of_one() -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    given = tuple(x.detach().requires_grad_() for x in whole.split([2, 4], -1))
    for a, b in (copied(given), moved(given, 0)):
        assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr()
        assert (a.stride(), b.stride(), b.storage_offset()) == ((6, 1), (6, 1), 2)
        assert a.is_leaf
        assert b.is_leaf
    assert all(torch.equal(a, b) for a, b in zip(copied(given), given, strict=True))
    twice = (given[0], given[0])
    a, b = copied(twice)
    assert a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr()


def test_where_sequences_start_is_cut_with_what_it_cuts_and_never_alone() -> None:
    given = RAGGED.make(torch.bfloat16, 0)
    assert partitions(given) == {3: 64}
    smaller = with_size(given, ((0, 0), (1, 0), (2, 0)), 33, 0)
    assert smaller[3].tolist() == [0, 8, 25, 33]
    report = compare(RAGGED.kernel, RAGGED.eager["float32"], given, budget=40)
    assert report.verdict == "right"
    assert {case.shapes[3] for case in report.cases} == {(4,)}
    assert not [case for case in report.cases if case.verdict == "cannot tell"]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 3, 8], {1: 8}),
        ([3, 8], {1: 8}),
        ([3, 0, 5], {1: 8}),
        ([0, 1, 2, 3, 4, 5], {}),
        ([0, 3, 7], {}),
        ([5, 0, 2, 7], {}),
    ],
)
def test_what_cuts_a_dimension_into_pieces_is_told_from_indices(numbers: list[int], expected: dict[int, int]) -> None:
    assert partitions((torch.zeros(8, 5), torch.tensor(numbers))) == expected


def test_groups_of_rows_are_as_many_as_there_are_weights_and_cover_the_rows() -> None:
    given = (torch.zeros(48, 5, requires_grad=True), torch.zeros(3, 5, 7), torch.tensor([16, 24, 8]))
    assert partitions(given) == {2: 48}
    groups = list(sizable(Problem(lambda x, w, _: x @ w.sum(0), given)))
    assert [[given[i].shape[d] for i, d in group] for group in groups] == [[48], [5, 5], [7]]


def only(limit: Callable[[Tensor], bool]) -> Callable[..., Tensor]:
    """An RMSNorm that refuses some inputs."""

    def kernel(x: Tensor, w: Tensor) -> Tensor:
        if not limit(x):
            raise ValueError("not written for these")
        return RMS_NORM.kernel(x, w)

    return kernel


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [(lambda x: x.is_contiguous(), "right"), (lambda x: x.shape[-1] == 128 and x.shape[0] > 80, "cannot tell")],
    ids=["layouts", "sizes"],
)
def test_more_than_a_few_rows_that_cannot_be_told_make_the_whole_so(limit: Any, verdict: str) -> None:
    given = RMS_NORM.make(torch.bfloat16, 0)
    report = compare(only(limit), RMS_NORM.eager["float32"], given)
    untold = [case for case in report.cases if case.verdict == "cannot tell"]
    assert report.verdict == verdict
    assert untold
    if verdict == "cannot tell":
        assert "not written for these" in str(report.reason)
        assert "not written for these" in report.trace


def test_nothing_is_right_with_a_row_beyond_the_bound_that_was_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbautograd.core.kernel.sweep._further_off", lambda track: False)
    given = RMS_NORM.make(torch.bfloat16, 0)
    fn, eager = RMS_NORM.faults["last block of rows"], RMS_NORM.eager["float32"]
    report = compare(fn, eager, given, sizes=[((87, 128), (128,))])
    (case,) = report.cases
    assert case.ratio > 1
    assert (report.verdict, case.verdict) == ("cannot tell", "cannot tell")


@pytest.mark.parametrize(("left", "verdict"), [(1e-16, "right"), (1e-10, "wrong")])
def test_what_float64_leaves_of_a_gradient_that_vanishes_is_rounding(left: float, verdict: str) -> None:
    """As in a public Sinkhorn layer at one row: the reference gives exactly zero there, however it is rounded."""
    beside_first = Fn.of("BesideFirst", "x: return x - x[:, :1]",
        f"g: gx = g.clone(); gx[:, 0] -= g.sum(-1) + {left} * (g.shape[1] == 1); return gx")  # fmt: skip
    given = normal((5, 4))(torch.float64, 0)
    report = compare(beside_first, lambda x: x - x[:, :1] if x.shape[1] > 1 else x * 0, given, sizes=[(5, 1)])
    assert report.verdict == verdict
