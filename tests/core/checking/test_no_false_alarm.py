"""Right Functions stay unaccused: for each code of a finding a set that tripped it once."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from fn import Fn
from own_mistakes import Mistake, draw
from right_functions import RIGHT
from torch import Tensor
from torch.autograd import Function

import nbautograd


@pytest.mark.slow
@pytest.mark.parametrize("one", RIGHT, ids=[f"{r.codes[0]}-{r.name}" for r in RIGHT])
def test_a_right_function_is_called_right(one: Mistake) -> None:
    report = nbautograd.gradcheck(one.fn, one.inputs())
    assert [f for f in report.findings if f.kind == "bug"] == []
    assert report.verdict == "right", report.reason


HoldsAtOne = Fn.of("HoldsAtOne", "x: save(x); return x**3", "g: (x,) = saved; return 3 * g * x")
Window = Fn.of("Window", "x: save(x); return (x > 0).to(x.dtype)", "g: (x,) = saved; return g * (1 - x.abs()).relu()")


class KeepsTheFirst(Fn):
    first: ClassVar[dict[tuple[int, ...], Tensor]] = {}

    def forward(ctx, x):
        ctx.shape = tuple(x.shape)
        KeepsTheFirst.first.setdefault(ctx.shape, x.detach().exp())
        return x.exp()

    def backward(ctx, g):
        return g * KeepsTheFirst.first[ctx.shape]


def codes(fn, *inputs) -> list[str]:
    return [f.code for f in nbautograd.gradcheck(fn, inputs, order=1).findings]


def test_what_is_wrong_at_other_inputs_is_no_proof_of_state_and_a_surrogate_is_not_wrong_there() -> None:
    assert codes(HoldsAtOne, torch.ones(4, dtype=torch.float64, requires_grad=True)) == ["wrong_elsewhere"]
    assert codes(Window, torch.ones(4, dtype=torch.float64, requires_grad=True)) == []


def test_state_is_proved_by_a_fresh_start_also_where_the_user_called_first() -> None:
    x = draw(4)
    KeepsTheFirst.apply(x)
    assert codes(KeepsTheFirst, x) == ["shared_state"]
    assert list(KeepsTheFirst.first) == [(4,)]  # put back as it was


def test_a_gradient_that_reads_memory_in_another_order_is_still_seen() -> None:
    by_memory = Fn.of("ByMemory", "x: save(x); return x * x", "g: (x,) = saved; "
        "return 2 * g * torch.as_strided(x, x.shape, (x.shape[1], 1), x.storage_offset())")  # fmt: skip
    assert "wrong_noncontiguous_input" in codes(by_memory, draw(4, 3))


def test_random_numbers_that_are_drawn_in_the_order_of_memory_are_no_mistake() -> None:
    """A hard sample (Gumbel's) is flat, so that no value shows which numbers were drawn."""
    hard = Fn.of("Hard",
        "x: y = torch.softmax(x - torch.log(-torch.log(torch.rand_like(x))), -1); save(y); "
        "return torch.zeros_like(y).scatter(-1, y.argmax(-1, keepdim=True), 1.0)",
        "g: (y,) = saved; return y * (g - (g * y).sum(-1, keepdim=True))")  # fmt: skip
    assert {*codes(hard, draw(3, 3))} <= {"surrogate"}


def test_a_surrogate_that_is_clipped_is_a_risk_and_gets_no_change() -> None:
    """As in binarised networks: what None mends is no mistake."""
    clipped = Fn.of("Clipped", "x: return (x > 0).to(x.dtype)", "g: return torch.nn.functional.hardtanh(g)")
    report = nbautograd.gradcheck(clipped, draw(3, 4))
    assert report.verdict == "cannot tell"
    assert {f.code for f in report.findings} == {"surrogate", "nonlinear_in_grad_output"}
    assert {(f.kind, f.fix) for f in report.findings} == {("lint", None)}


def test_a_surrogate_that_is_clipped_beside_a_gradient_is_a_risk() -> None:
    both = Fn.of("Both", "x: save(x); return x.sign(), x.abs().mean()",
        "g, h: x, = saved; return g.clamp(-1, 1) + h * x.sign() / x.numel()")  # fmt: skip
    report = nbautograd.gradcheck(both, draw(4))
    assert (report.verdict, {(f.kind, f.fix) for f in report.findings}) == ("cannot tell", {("lint", None)})
    clipped = Fn.of("ClippedToo", "x: save(x); return x.sign(), x.abs().mean()",
        "g, h: x, = saved; return g + h.clamp(-1, 1) * x.sign() / x.numel()")  # fmt: skip
    assert nbautograd.gradcheck(clipped, draw(4)).verdict == "wrong"


def test_a_gradient_put_in_for_another_input_is_not_taken_away() -> None:
    """As of a quantum Monte Carlo trial, whose tangent was computed elsewhere: None would end its training."""
    put_in = Fn.of("PutIn", "coupling, trial, tangent: save(tangent); return trial",
        "g: (tangent,) = saved; return (tangent * g), None, None")  # fmt: skip
    report = nbautograd.gradcheck(put_in, (draw(4), draw(4, seed=1).detach(), draw(4, seed=2).detach()))
    assert [(f.code, f.fix) for f in report.findings] == [("wrong_unclassified", None), ("surrogate", None)]


def test_beside_gradients_in_wrong_slots_no_advice_is_given_to_skip_their_work() -> None:
    shifted = Fn.of("Shifted", "x, mean, w: save(x, w); return (x - mean.detach()) * w",
        "g: x, w = saved; return g * w, g * x, None")  # fmt: skip
    assert codes(shifted, draw(4), torch.zeros(4, dtype=torch.float64), draw(4)) == ["none_gradient"]


def test_a_surrogate_may_draw_random_numbers() -> None:
    """As snntorch's StochasticSpikeOperator; a gradient may not."""
    noise = "g: x, = saved; noise = torch.rand_like(x); return g * torch.where(x > 0, 1 + 0 * x, noise)"
    spike = Fn.of("Spike", "x: save(x); return (x > 0).to(x.dtype)", noise)
    report = nbautograd.gradcheck(spike, draw(3, 4))
    assert (report.verdict, [f.code for f in report.findings]) == ("cannot tell", ["surrogate"])
    ramp = Fn.of("Ramp", "x: save(x); return x.clamp(0)", noise)
    assert "nondeterministic_backward" in codes(ramp, draw(3, 4))


def test_a_surrogate_that_forgets_grad_output_is_wrong() -> None:
    forgets = Fn.of("Forgets", "x: save(x); return x.sign()", "g: x, = saved; return (x.abs() < 1).to(x.dtype)")
    report = nbautograd.gradcheck(forgets, draw(3, 4))
    assert (report.verdict, report.findings[0].code) == ("wrong", "ignores_grad_output")


@pytest.mark.parametrize("threshold", [0, 0.001, 30])
def test_a_surrogate_that_raises_is_not_mended_by_none(threshold: float) -> None:
    raising = Fn.of("Raising", f"x: return (x > {threshold}).to(x.dtype)", "g: return misspelt(g)")
    (finding,) = nbautograd.gradcheck(raising, draw(3, 4)).findings
    assert (finding.code, finding.fix) == ("exception", None)


def test_a_border_that_backward_fills_around_the_output_is_no_mistake() -> None:
    """As in soft-DTW's public code: the output is an entry of the table that backward writes the border of."""
    bordered = Fn.of("Bordered",
        "x: table = torch.zeros(len(x) + 1, dtype=x.dtype); table[:-1] = x * x; save(x, table); return table[:-1]",
        "g: x, table = saved; table.detach().numpy()[-1] = -1; return 2 * g * x")  # fmt: skip
    assert "mutates_saved" not in codes(bordered, draw(4))


def low(name: str, forward, backward) -> type:
    def saving(ctx, x):
        ctx.save_for_backward(x)
        return forward(x)

    parts = {"forward": staticmethod(saving), "backward": staticmethod(lambda ctx, g: backward(*ctx.saved_tensors, g))}
    return type(name, (Function,), parts)


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (lambda x: x.half().relu().double(), lambda x, g: g),
        (lambda x: x.float().clamp(-0.5, 0.5).double(), lambda x, g: g),
        (lambda x: x.bfloat16().tanh().double(), lambda x, g: -g * (1 - x.tanh() ** 2)),
        (lambda x: x.float().exp().double(), lambda x, g: 1.01 * g * x.exp()),
        (lambda x: x.float().double().exp(), lambda x, g: g),
    ],
    ids=["relu", "clamp", "tanh", "exp", "exp after a cast"],
)
def test_what_is_wrong_in_low_precision_is_still_wrong(forward, backward) -> None:
    assert nbautograd.gradcheck(low("Wrong", forward, backward), draw(6), order=1).verdict == "wrong"


def test_where_rounding_inside_hides_every_step_nobody_can_tell() -> None:
    offset = low("Offset", lambda x: ((x.float() + 1e7) - 1e7).double(), lambda x, g: g)
    report = nbautograd.gradcheck(offset, draw(6), order=1)
    assert report.verdict == "cannot tell"
    assert "float32" in report.reason


# Reads the lower triangle of symmetric matrices, and has the gradient that torch.linalg.cholesky would give.
LogDeterminant = Fn.of("LogDeterminant", "x: lower = torch.linalg.cholesky(x); save(lower); "
    "return 2 * lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)",
    "grad: (lower,) = saved; return grad[..., None, None] * torch.cholesky_inverse(lower)")  # fmt: skip


class OneSided(LogDeterminant):
    """Counts what is beside the diagonal twice."""

    @staticmethod
    def backward(ctx, grad):
        right = LogDeterminant.backward(ctx, grad)
        return right + right.tril(-1) + right.triu(1)


# Reads both triangles; its gradient is right for symmetric changes alone.
Transposed = Fn.of("Transposed", "x, weight: save(weight); return (x * weight).sum()",
    "grad: (weight,) = saved; return grad * weight.t(), None")  # fmt: skip


def symmetric(*batch: int) -> Tensor:
    half = draw(*batch, 3, 3).detach()
    return (half @ half.mT + torch.eye(3, dtype=torch.float64)).requires_grad_()


@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_forward_that_reads_one_triangle_is_one_of_symmetric_matrices(batch: tuple[int, ...]) -> None:
    report = nbautograd.gradcheck(LogDeterminant, (symmetric(*batch),))
    assert report.verdict == "right"
    assert [f.code for f in report.findings if f.where == (0, 0)] == ["right_for_symmetric"]
    assert nbautograd.gradcheck(OneSided, (symmetric(*batch),), order=1).verdict == "wrong"


Cholesky = Fn.of("Cholesky", "x: lower = torch.linalg.cholesky(x); save(lower); return lower",
    "grad: (lower,) = saved; p = (lower.mT @ grad).tril(); p = p - p.diagonal().diag() / 2; "
    "inverse = lower.inverse(); y = inverse.mT @ p @ inverse; return (y + y.mT) / 2")  # fmt: skip


@pytest.mark.parametrize("size", [3, 4])  # of the larger one second derivatives are sampled
def test_second_derivatives_too_are_those_for_symmetric_changes(size: int) -> None:
    half = draw(size, size).detach()
    report = nbautograd.gradcheck(Cholesky, (half @ half.mT + size * torch.eye(size, dtype=torch.float64),))
    assert report.order2.verdict == "right"
    assert [f.code for f in report.findings] == ["right_for_symmetric"]


@pytest.mark.parametrize(("asymmetry", "verdict"), [(4e-16, "right"), (1e-6, "wrong")])
def test_a_product_that_is_symmetric_but_for_round_off_is_symmetric(asymmetry: float, verdict: str) -> None:
    x = symmetric().detach()
    x[0, 2] += asymmetry * x.abs().max()
    assert not torch.equal(x, x.mT)
    assert nbautograd.gradcheck(LogDeterminant, (x.requires_grad_(),), order=1).verdict == verdict


def test_a_gradient_that_is_right_for_symmetric_changes_alone_is_wrong_where_both_triangles_are_read() -> None:
    assert nbautograd.gradcheck(Transposed, (symmetric(), draw(3, 3).detach()), order=1).verdict == "wrong"


# A sine far from zero: in single precision its argument is known to 1e-4.
FarSine = Fn.of("FarSine", "x: save(x); return torch.sin(1.5 * x)",
    "grad_output: (x,) = saved; return grad_output * 1.5 * torch.cos(1.5 * x)")  # fmt: skip
# The same for single precision alone, as a kernel is.
OnlySingle = FarSine.of("OnlySingle", "x: assert x.dtype is torch.float32; return FarSine.forward(ctx, x)")
# Numbers less their mean over their deviation, as a norm computes them, where the mean is large.
FarFromZero = Fn.of("FarFromZero",
    "x: save(x); return (x - x.mean(-1, keepdim=True)) / x.std(-1, unbiased=False, keepdim=True)",
    "grad_output: (x,) = saved; "
    "z = (x - x.mean(-1, keepdim=True)) / x.std(-1, unbiased=False, keepdim=True); "
    "means = grad_output.mean(-1, keepdim=True) + z * (grad_output * z).mean(-1, keepdim=True); "
    "return (grad_output - means) / x.std(-1, unbiased=False, keepdim=True)")  # fmt: skip
# The same with a factor too many.
FarFromZeroDoubled = FarFromZero.of("FarFromZeroDoubled",
    backward="grad_output: return 2 * FarFromZero.backward(ctx, grad_output)")  # fmt: skip


@pytest.mark.parametrize("cls", [FarSine, OnlySingle])
def test_what_single_precision_cannot_resolve_is_not_called_wrong(cls):
    generator = torch.Generator().manual_seed(124)
    times = (1000 + 400 * torch.rand(12, 12, generator=generator)).requires_grad_()
    assert nbautograd.gradcheck(cls, (times,)).verdict != "wrong"
    halved = type("Halved", (cls,), {"backward": staticmethod(lambda ctx, g: cls.backward(ctx, g) / 2)})
    assert nbautograd.gradcheck(halved, (times,)).verdict == "wrong"


class Bounded(FarSine):
    """The same, of no number larger than those given."""

    largest: ClassVar[float] = 0.0

    @staticmethod
    def forward(ctx, x):
        if float(x.detach().max()) > Bounded.largest + 1e-9 and x.dtype is torch.float64:
            raise ValueError("too large")
        return FarSine.forward(ctx, x)


def test_a_forward_that_takes_no_inputs_a_last_bit_away_is_checked_in_its_own_precision(monkeypatch):
    times = (1000 + 400 * torch.rand(12, 12, generator=torch.Generator().manual_seed(124))).requires_grad_()
    monkeypatch.setattr(Bounded, "largest", float(times.detach().max()))
    report = nbautograd.gradcheck(Bounded, (times,))
    assert report.verdict != "wrong"


def test_values_far_from_zero_lose_digits_and_are_not_called_wrong():
    generator = torch.Generator().manual_seed(125)
    x = (3000 + torch.randn(3, 16, generator=generator)).requires_grad_()
    assert nbautograd.gradcheck(FarFromZero, (x,)).verdict != "wrong"
    assert nbautograd.gradcheck(FarFromZeroDoubled, (x,)).verdict == "wrong"


# What is left of numbers less their mean; a shift of all of them changes nothing.
MeanFree = Fn.of("MeanFree", "x, shift: moved = x + shift; return moved - moved.mean()",
    "grad_output: grad = grad_output - grad_output.mean(); return grad, grad.sum()")  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_round_off_of_a_gradient_that_is_zero_is_not_called_nonlinear(seed):
    x = torch.randn(6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64, requires_grad=True)
    shift = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    assert nbautograd.gradcheck(MeanFree, (x, shift)).verdict == "right"
