"""Other sizes, layouts and runs: what is right at the given inputs alone is wrong, and where that shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from fn import Fn
from kernels import ATTENTION, RMS, function
from said import pattern, says
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from nbautograd import compare, messages
from nbautograd.core.checking.other_points import as_distinct
from nbautograd.core.checking.problem import Problem
from nbautograd.core.findings import Finding
from nbautograd.core.kernel import sweep
from nbautograd.core.kernel.check import Outcome
from nbautograd.core.kernel.layouts import one_more_dimension, transposed
from nbautograd.core.kernel.sweep import Case, compared, laid_in_order
from nbautograd.errors import CallError
from nbautograd.types import Comparison


def tanh_backward(change: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """A Function for tanh whose gradient is changed, given the grad_output too."""

    def backward(saved: Any, g: Tensor) -> Tensor:
        y = saved[0].float()
        return change(g.float() * (1 - y * y), g)

    return function(lambda x: (torch.tanh(x.float()), (torch.tanh(x.float()),)), backward, "tanh")


def inputs(*shape: int) -> tuple[Tensor]:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(1)).bfloat16().requires_grad_(),)


def check(change: Callable[[Tensor, Tensor], Tensor], *shape: int, **options: Any) -> Comparison:
    return compare(tanh_backward(change), torch.tanh, inputs(*shape), **options)


def without_tail(d: Tensor, _: Tensor) -> Tensor:
    whole = d.shape[-1] // 16 * 16
    return torch.cat((d[..., :whole], 0 * d[..., whole:]), -1)


@pytest.mark.slow
def test_a_tail_that_aligned_shapes_hide_is_found_and_shrunk() -> None:
    report = check(without_tail, 4, 64)
    assert report.verdict == "wrong"
    assert [q.verdict for q in report.quantities] == ["right", "right"]
    assert report.findings[0].code == "compare_sizes"
    assert report.smallest is not None
    assert report.smallest[0][-1] == 1
    assert report.cases[0].verdict == "wrong"
    assert any(case.verdict == "right" and case.shapes[0][-1] % 16 == 0 for case in report.cases)


@pytest.mark.slow
def rotated(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def not_at_odd(factor: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda d, _: d if d.shape[-1] % 2 == 0 else d * factor


def without_last_of_odd(d: Tensor, _: Tensor) -> Tensor:
    d[..., d.shape[-1] // 2 * 2 :] = 0
    return d


def test_a_rotation_by_halves_is_right_though_at_odd_sizes_it_is_none() -> None:
    def turned(q: Tensor, sin: Tensor) -> Tensor:
        return q + rotated(q) * sin

    rope = function(lambda q, sin: (turned(q, sin), (sin,)), lambda saved, g: (g - rotated(g * saved[0]), None))
    report = compare(rope, turned, (*inputs(3, 16), torch.randn(16)))
    assert (report.verdict, [(f.code, f.kind) for f in report.findings]) == ("right", [("compare_sizes", "lint")])
    assert "odd" in {case.change for case in report.cases if case.verdict == "wrong"}


def noise_at_one(d: Tensor, g: Tensor) -> Tensor:
    return d if d.shape[-1] > 1 else d + g.flip(0)


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        (without_last_of_odd, 15),
        (not_at_odd(1.1), 16),
        *(pytest.param(c, 16, marks=pytest.mark.nightly) for c in (without_last_of_odd, noise_at_one)),
    ],
)
def test_a_fault_of_odd_sizes_that_has_a_place_or_is_a_factor_stays_a_fault(change: Any, columns: int) -> None:
    assert check(change, 3, columns).verdict == "wrong"


Rfft = Fn.of("Rfft", "x, n: ctx.n = n; return torch.fft.rfft(x, n)",
    "g: padded = torch.nn.functional.pad(g, (0, ctx.n - g.shape[-1])); "
    "return torch.fft.ifft(padded, norm='forward').real, None")  # fmt: skip
Irfft = Fn.of("Irfft", "x, n: ctx.n = n; return torch.fft.irfft(x, n)",
    "g: d = torch.fft.rfft(g, ctx.n, norm='forward'); d[..., 1:-1] *= 2; return d, None")  # fmt: skip
Scaled = Fn.of("Scaled", "x, shape: ctx.shape = shape; return x / x.view(-1, *shape).shape[1]",
    "g: d = g / ctx.shape[0]; d[..., d.shape[-1] // 16 * 16 :] = 0; return d, None")  # fmt: skip
Blocks = Fn.of("Blocks", "x, block: ctx.block = block; return x.cumsum(-1)",
    "g: return torch.cat([p.flip(-1).cumsum(-1).flip(-1) for p in g.split(ctx.block, -1)], -1), None")  # fmt: skip
Powers = Fn.of("Powers", "x, p: save(x); return x.square()", "g: (x,) = saved; return 2 * g * x, None")


@pytest.mark.parametrize(
    ("function", "reference", "shape", "argument", "verdict"),
    [
        (Rfft, torch.fft.rfft, (2, 6), 6, "right"),
        (Irfft, torch.fft.irfft, (2, 4), 6, "cannot tell"),  # two of it in a size of 4: no other is the author's
        (Scaled, lambda x, shape: x / x.view(-1, *shape).shape[1], (2, 16), (16,), "wrong"),
        (Powers, torch.pow, (2, 6), 2, "right"),  # equal by chance
        (Blocks, lambda x, block: x.cumsum(-1), (2, 8), 8, "wrong"),  # the carry between blocks is lost
    ],
)
def test_a_number_that_equals_a_size_may_be_tied_to_it(function, reference, shape, argument, verdict):
    dtype = torch.complex128 if function is Irfft else torch.float64
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert compare(function.apply, reference, (x, argument)).verdict == verdict


def grouped(q: Tensor, k: Tensor) -> Tensor:
    return q * k.repeat_interleave(q.shape[0] // k.shape[0], 0)


def test_sizes_at_which_the_reference_gives_nothing_are_no_cases() -> None:
    heads = function(
        lambda q, k: (q * k.repeat_interleave(max(q.shape[0] // k.shape[0], 1), 0), (q, k)),
        lambda saved, g: (
            g * saved[1].repeat_interleave(max(len(saved[0]) // len(saved[1]), 1), 0),
            (g * saved[0]).unflatten(0, (len(saved[1]), -1)).sum(1),
        ),
    )
    assert compare(heads, grouped, (*inputs(4, 8), *inputs(2, 8))).verdict == "right"


def test_one_more_dimension_is_a_batch_of_what_the_reference_gives() -> None:
    def composite(weight: Tensor, colour: Tensor) -> Tensor:
        return (weight[..., None] * colour).sum(1)

    rays = (*inputs(3, 5), *inputs(3, 5, 3))
    assert one_more_dimension(Problem(composite, rays)) is None
    last = one_more_dimension(Problem(lambda weight, colour: (weight[..., None] * colour).sum(-2), rays))
    assert last is not None
    assert [x.dim() for x in last] == [3, 4]
    best = one_more_dimension(Problem(lambda x: torch.topk(x, 2, -1), inputs(3, 5)))
    assert best is not None
    refused = Problem(lambda x: x if x.dim() > 2 or x.sum() == inputs(3, 5)[0].sum() else 1 / 0, inputs(3, 5))
    assert one_more_dimension(refused) is None


def by_rows(fault: str) -> Callable[..., Tensor]:
    """Scale each row; with more dimensions another function, a wrong gradient, or a shape that torch refuses."""

    def forward(x: Tensor, s: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        y = (x.reshape(len(s), -1) * s[:, None]).reshape(x.shape) if fault == "forward" else x * s[:, None]
        return y, (x, s)

    def backward(saved: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, s = saved
        whole = (g * x).sum(-1).reshape(-1, len(s)).sum(0)
        dx = g * s[:, None]
        return dx.flatten(0, -2) if fault == "raises" else dx * 2.0 ** (x.dim() - 2), whole

    return function(forward, backward)


@pytest.mark.parametrize(
    ("fault", "verdict", "code", "kind"),
    [
        ("forward", "right", "compare_layout", "lint"),  # nobody asked for that function
        ("gradient", "wrong", "compare_layout", "bug"),
    ],
)
def test_one_more_dimension_is_a_fault_where_forward_takes_it_for_the_same(fault, verdict, code, kind):
    report = compare(by_rows(fault), lambda x, s: x * s[:, None], (*inputs(3, 40), *inputs(3)))
    assert [report.verdict, *((one.code, one.kind) for one in report.findings)] == [verdict, (code, kind)]
    (row,) = (case for case in report.cases if case.change == "stacked")
    assert row.verdict == "wrong"


def test_a_backward_that_raises_for_one_more_dimension_is_no_finding() -> None:
    report = compare(by_rows("raises"), lambda x, s: x * s[:, None], (*inputs(3, 40), *inputs(3)))
    assert (report.verdict, report.findings) == ("right", ())  # nobody promised to take it


def test_strides_of_one_input_that_are_taken_for_those_of_another() -> None:
    def backward(saved: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        q, k = saved
        as_q = k if k.is_contiguous() or not q.is_contiguous() else k.mT.reshape(k.shape)
        return g[..., None] * as_q, g[..., None] * q

    dot = function(lambda q, k: ((q * k).sum(-1), (q, k)), backward)
    report = compare(dot, lambda q, k: (q * k).sum(-1), (*inputs(2, 6, 8), *inputs(2, 6, 8)), sizes=None)
    assert [f.code for f in report.findings] == ["compare_layout"]


def test_only_the_given_shapes_are_tried() -> None:
    report = check(without_tail, 4, 64, sizes=[(4, 32), (3, 33)])
    assert {case.shapes: case.verdict for case in report.cases} == {((4, 32),): "right", ((3, 33),): "wrong"}
    assert check(without_tail, 4, 64, sizes=()).verdict == "right"


def test_sizes_of_other_inputs_follow_the_first() -> None:
    report = compare(RMS.function(), RMS.eager, RMS.inputs(torch.bfloat16), sizes=[(3, 65), ((5, 7), (7,))])
    assert sorted(case.shapes for case in report.cases) == [((3, 65), (65,)), ((5, 7), (7,))]
    assert report.verdict == "right"


@pytest.mark.parametrize(("shapes", "key"), [([(4,)], "shape_unfit"), ([((4, 5), (6,))], "shape_refused")])
def test_shapes_that_do_not_fit_are_refused(shapes: Any, key: str) -> None:
    with pytest.raises(CallError, match=pattern(f"compare.{key}")):
        compare(RMS.function(), RMS.eager, RMS.inputs(torch.bfloat16), sizes=shapes)


@pytest.mark.slow
def test_strides_of_grad_output_that_are_misread() -> None:
    def misread(d: Tensor, g: Tensor) -> Tensor:
        contiguous = torch.as_strided(g, g.shape, (g.shape[1], 1)) if min(g.stride()) else g
        return d * (contiguous == g)

    report = check(misread, 6, 6)
    assert report.verdict == "wrong"
    assert {finding.code for finding in report.findings} == {"compare_layout"}
    assert {case.change for case in report.cases if case.verdict == "wrong"} == {"grad_transposed", "grad_strided"}


@pytest.mark.slow
def test_a_backward_that_raises_for_an_expanded_grad_output() -> None:
    def views(d: Tensor, g: Tensor) -> Tensor:
        g.view(-1)
        return d

    report = check(views, 5, 6)
    wrong = {case.change: case for case in report.cases if case.verdict == "wrong"}
    assert "grad_transposed" in wrong
    assert "view" in str(wrong["grad_transposed"].reason)


def test_a_forward_that_refuses_is_no_bug() -> None:
    def picky(x: Tensor) -> Tensor:
        if not x.is_contiguous():
            raise ValueError("only contiguous inputs")
        return torch.tanh(x)

    report = compare(picky, torch.tanh, inputs(5, 6))
    assert report.verdict == "right"
    refused = [case for case in report.cases if case.verdict == "cannot tell"]
    assert {case.change for case in refused} >= {"strided", "transposed"}
    assert "only contiguous inputs" in str(refused[0].reason)


def test_runs_that_differ_are_told_as_a_risk() -> None:
    calls = iter(range(10**6))
    report = check(lambda d, g: d * (1 + 2**-9 * (next(calls) % 2)), 8, 9, sizes=())
    assert [(finding.code, finding.kind) for finding in report.findings] == [("compare_nondeterministic", "lint")]
    assert report.verdict == "right"


def test_an_overflow_that_the_reference_does_not_have_is_a_risk() -> None:
    x = torch.linspace(-4, 4, 100).half().requires_grad_()
    soft = function(lambda x: (softplus(x), (x,)), lambda s, g: g * s[0].exp() / (1 + s[0].exp()))
    report = compare(soft, softplus, (x,))
    assert report.verdict == "right"
    assert ("compare_large", "lint") in [(finding.code, finding.kind) for finding in report.findings]


@pytest.mark.slow
def test_a_gradient_that_vanishes_may_be_a_difference_of_rounded_terms() -> None:
    report = compare(
        ATTENTION.function(), ATTENTION.eager, ATTENTION.inputs(torch.float16), sizes=[((2, 3, 1, 16),) * 3]
    )
    assert [case.verdict for case in report.cases] == ["right"]


def test_other_dtypes_are_tried() -> None:
    report = check(lambda d, g: d if g.dtype is torch.bfloat16 else 0.5 * d, 4, 40, sizes=(), dtypes=[torch.float16])
    assert [(case.dtype, case.verdict) for case in report.cases] == [("float16", "wrong")]


def refuses_odd(d: Tensor, g: Tensor) -> Tensor:
    if g.shape[-1] % 2:
        raise ValueError("odd")
    return d


@pytest.mark.slow
def test_a_backward_that_refuses_a_layout_loudly_is_a_risk_and_gives_nobody_a_wrong_gradient() -> None:
    def backward(saved: Any, g: Tensor) -> Tensor:
        (x,) = saved
        return (g.float().reshape(-1) * (1 - torch.tanh(x.float().view(-1)) ** 2)).reshape(x.shape).to(x.dtype)

    gaps = function(lambda x: (torch.tanh(x.float()).to(x.dtype), (x,)), backward, "tanh")
    report = compare(gaps, torch.tanh, inputs(6, 40))
    assert report.verdict == "right"
    refused = [finding for finding in report.findings if finding.code == "compare_refuses"]
    assert {finding.kind for finding in refused} == {"lint"}
    assert any(says(finding.message, "views.compare_change.transposed") for finding in refused)
    assert any(case.verdict == "cannot tell" and "view" in str(case.reason) for case in report.cases)
    odd = check(refuses_odd, 4, 64)
    assert (odd.verdict, odd.findings[0].code) == ("right", "compare_refuses")


def test_a_backward_that_raises_at_shapes_that_were_asked_for_is_wrong_there() -> None:
    report = check(refuses_odd, 4, 64, sizes=[(4, 33)])
    assert (report.verdict, report.findings[0].code) == ("wrong", "compare_sizes")


def tanh_but_of_float64(x: Tensor) -> Tensor:
    if x.dtype is torch.float64:
        raise TypeError("no float64")
    return torch.tanh(x)


@pytest.mark.parametrize(
    ("eager", "verdicts"),
    [
        (lambda x: torch.tanh(x.view(-1)).view(x.shape), ["right", ["cannot tell"]]),
        (tanh_but_of_float64, ["cannot tell", ["cannot tell"]]),
    ],
    ids=["a layout", "float64"],
)
def test_what_the_reference_raises_is_never_the_backward_of_the_function(eager: Any, verdicts: list[Any]) -> None:
    report = compare(torch.tanh, eager, inputs(4, 40), sizes=(), layouts=["transposed"])
    assert [report.verdict, [case.verdict for case in report.cases]] == verdicts
    assert not report.findings
    raised = messages.text("compare.reference_raises", error="")
    assert all(str(case.reason).startswith(raised) for case in report.cases)


def test_a_forward_that_refuses_numbers_near_by_is_no_backward_that_raises() -> None:
    def refuses(x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        assert float(x.max()) <= 1, "above one"
        return x * x, (x,)

    square = function(refuses, lambda saved, g: 2 * saved[0] * g, "square")
    report = compare(square, torch.square, (torch.ones(4).requires_grad_(),))
    assert (report.verdict, report.findings) == ("cannot tell", ())
    assert messages.text("compare.refuses_near", error="AssertionError: above one") in str(report.reason)
    assert "wrong" not in {case.verdict for case in report.cases}


def misread(d: Tensor, g: Tensor) -> Tensor:
    """Read grad_output by the order of its memory, as a kernel does that takes a pointer and a size."""
    flat = g.as_strided((g.numel(),), (1,), g.storage_offset()) if g.numel() else g
    return (flat.reshape(g.shape).float() / g.float() * d).nan_to_num()


def test_a_breach_of_the_contract_hides_no_wrong_gradient_of_a_layout() -> None:
    report = check(lambda d, g: g.copy_(misread(d, g)), 5, 8, layouts=["grad_transposed"])
    assert [finding.code for finding in report.findings][:2] == ["mutates_grad_output", "compare_layout"]


def test_a_layout_is_blamed_only_where_the_same_values_in_order_are_right() -> None:
    x = inputs(40, 48)
    rows = Case(x, "grad_transposed", layouts=("grad_transposed",), arrange=transposed)
    candidate, eager = Problem(tanh_backward(misread), x, 0), Problem(torch.tanh, x, 0)
    with candidate.session(), eager.session():
        assert compared(candidate, eager, rows, 0).wrong
        assert not compared(candidate, eager, laid_in_order(rows), 0).wrong
    always = Problem(tanh_backward(lambda d, _: 0.9 * d), x, 0)
    with always.session(), eager.session():
        assert compared(always, eager, laid_in_order(rows), 0).wrong
        assert not compared(always, eager, rows, 0).wrong


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (1.02, True)])
def test_what_is_closer_than_the_reference_itself_is_not_called_wrong_for_one_case(monkeypatch, factor, wrong):
    def eager(x: Tensor) -> Tensor:
        for c in (1.1, 0.9, 1.3, 0.7, 1.7, 0.6):
            x = x * c
        return x

    def by_chance(*args: Any, **options: Any) -> Outcome:
        """Stand for one case of many that exceeds what rounding explains."""
        chance = Finding("compare_values", "bug", "compare.values", {})
        return replace(check_case(*args, **options), wrong=(0,), findings=(chance,))

    check_case = sweep.check
    monkeypatch.setattr(sweep, "check", by_chance)
    whole = 1.1 * 0.9 * 1.3 * 0.7 * 1.7 * 0.6 * factor
    fused = function(lambda x: (x.float() * whole, ()), lambda _, g: g.float() * whole, "fused")
    x = inputs(40, 48)
    candidate, reference = Problem(fused, x, 0), Problem(eager, x, 0)
    with candidate.session(), reference.session():
        assert compared(candidate, reference, Case(x), 0).wrong is wrong


def routed(x: Tensor, idx: Tensor) -> Tensor:
    return torch.tanh(x)[idx.flatten()].reshape(*idx.shape, -1).sum(1)


class Routed(Fn):
    """Rows picked by indices, which differ in each line: each is written once, so that none adds up."""

    def forward(ctx: Any, x: Tensor, idx: Tensor) -> Tensor:
        ctx.save_for_backward(x, idx)
        return routed(x, idx)

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x, idx = ctx.saved_tensors
        flowing = torch.zeros(x.shape)
        for line, row in zip(idx, g.float(), strict=True):
            flowing[line] = flowing[line] + row  # as a launch for each line does: what is there twice is lost
        return (flowing * (1 - torch.tanh(x.float()) ** 2)).to(x.dtype), None


def picks(lines: int, first: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(first)
    return torch.stack([torch.randperm(6, generator=generator)[:2] for _ in range(lines)])


@pytest.mark.slow
def test_indices_that_differ_in_each_line_do_so_at_other_sizes() -> None:
    report = compare(Routed, routed, (*inputs(6, 16), picks(40)))
    assert report.verdict == "right", report
    assert {case.shapes[1][1] for case in report.cases} == {1, 2}
    assert {33, 63, 64} <= {case.shapes[1][0] for case in report.cases}
    twice = picks(40)
    twice[:, 1] = twice[:, 0]  # the fault is there as soon as they do not
    assert compare(Routed, routed, (*inputs(6, 16), twice), sizes=()).verdict == "wrong"


def test_numbers_that_differ_by_chance_may_be_alike() -> None:
    few, spread = torch.tensor([[0, 1], [2, 3], [1, 0]]), torch.arange(60).reshape(30, 2)
    for given in (few, spread):
        assert as_distinct((given,), (torch.zeros(2, 2, dtype=torch.int64),))
    assert not as_distinct((picks(40),), (torch.zeros(2, 2, dtype=torch.int64),))
    assert as_distinct((picks(40),), (picks(7, 1),))


# Cross-entropy over the targets that are not ignored, divided by their count in backward.
MeanOfSome = Fn.of("MeanOfSome", "x, target: save(x, target); return cross_entropy(x, target)",
    "g: x, target = saved; wanted = (target >= 0)[:, None]; "
    "picked = torch.nn.functional.one_hot(target.clamp_min(0), x.shape[1]); "
    "gradient = g.float() / wanted.sum() * (torch.softmax(x.float(), -1) - picked); "
    "return (gradient * wanted).to(x.dtype), None")  # fmt: skip


def test_the_gradient_of_what_is_nan_cannot_be_told() -> None:
    given = (*inputs(4, 40), torch.tensor([-100, 3, -100, -100]))
    report = compare(MeanOfSome, cross_entropy, given, sizes=[((1, 40), (1,)), ((64, 40), (64,))])
    told = {case.shapes[0][0]: case for case in report.cases}
    assert (report.verdict, told[64].verdict, told[1].verdict) == ("right", "right", "cannot tell")
    assert told[1].reason.message_id == "compare.golden_not_finite"
