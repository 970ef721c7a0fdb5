"""Verdicts on few entries, on noise, and on the largest errors of a noisy Function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from kernels import ATTENTION, function
from torch import Tensor

from nbautograd import compare
from nbautograd.core.kernel.yardstick import SPREADS, Yardstick, spreads

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = pytest.mark.slow

SEEDS = [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 4))]


def other_tanh(x: Tensor) -> Tensor:
    """The same function, with a cancellation that tanh does not have."""
    return 2 * torch.sigmoid(2 * x) - 1


def inputs(seed: int, dtype: torch.dtype = torch.bfloat16) -> tuple[Tensor]:
    return (torch.randn(4, 40, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_(),)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_another_formula_is_right_at_sizes_of_one(seed: int, dtype: torch.dtype) -> None:
    sizes = [(1, 1), (1, 2), (1, 3)]
    report = compare(other_tanh, torch.tanh, inputs(seed, dtype), sizes=sizes, seed=seed)
    assert [case.verdict for case in report.cases] == ["right"] * 3


@pytest.mark.parametrize("factor", [0.0, 0.9])
def test_what_is_wrong_at_a_size_of_one_is_found(factor: float) -> None:
    def backward(saved: Any, g: Tensor) -> Tensor:
        return g.float() * (1 - torch.tanh(saved[0].float()) ** 2) * (factor if g.numel() == 1 else 1.0)

    fn = function(lambda x: (torch.tanh(x.float()), (x,)), backward)
    report = compare(fn, torch.tanh, inputs(0), sizes=[(1, 1), (1, 2)])
    assert {case.shapes: case.verdict for case in report.cases} == {((1, 1),): "wrong", ((1, 2),): "right"}


def layer_norm(x: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def composed(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)


class Garbage(torch.autograd.Function):
    """At one column, where the gradient is zero, it returns what lies in memory there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return layer_norm(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            y = layer_norm(leaf := x.detach().requires_grad_())
        return torch.autograd.grad(y, leaf, g)[0] if x.shape[-1] > 1 else torch.full_like(x, 300.0)


@pytest.mark.parametrize(("size", "verdict"), [(2000.0, "cannot tell"), (2.0, "wrong")])
def test_an_output_that_overflows_in_the_reference_was_not_compared(size: float, verdict: str) -> None:
    """As a divergence of a released package does in float16 without a softmax's shift."""

    def off(x: Tensor) -> Tensor:
        y = (x.float().square() / 1000).half()
        return y + (0.5 * y).detach()

    x = torch.full((3, 4), size, dtype=torch.float16, requires_grad=True)
    assert compare(off, lambda x: x * x / 1000, x, sizes=()).verdict == verdict


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_norm_of_two_columns_is_not_accused(dtype: torch.dtype, seed: int) -> None:
    """All of the gradient cancels there; torch's own takes x and its mean, not their difference."""
    x = torch.randn(16, 2, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()
    assert not compare(layer_norm, composed, x, sizes=(), seed=seed).findings


def by_logsumexp(x: Tensor) -> Tensor:
    return (x - x.exp().sum(-1, keepdim=True).log()).exp()


def shifted_softmax(x: Tensor) -> Tensor:
    shifted = (x - x.amax(-1, keepdim=True)).exp()
    return shifted / shifted.sum(-1, keepdim=True)


def spread(x: Tensor) -> Tensor:
    return x / x.std(-1, keepdim=True)


@pytest.mark.parametrize(
    ("fn", "reference", "dtype", "expected"),
    [
        # torch's own leaves 1e-5 of an output that is zero in the reference
        (layer_norm, composed, torch.bfloat16, "right"),
        (layer_norm, composed, torch.float32, "right"),
        (Garbage, composed, torch.bfloat16, "wrong"),
        (Garbage, composed, torch.float32, "wrong"),
        (Garbage, composed, torch.float16, "cannot tell"),  # the reference's own gradient overflows: nothing compared
        # every operation of the reference is exact there, and no sample shows what float32 rounds
        (by_logsumexp, shifted_softmax, torch.float32, "right"),
        (function(lambda x: (shifted_softmax(x), ()), lambda _, g: 0.01 * g), shifted_softmax, torch.float32, "wrong"),
        (
            function(lambda x: (torch.zeros_like(x), ()), lambda _, g: 5 * g),
            spread,
            torch.float32,
            "cannot tell",
        ),  # 0 / 0
    ],
)
def test_one_column_leaves_what_float32_rounds_and_no_more(fn, reference, dtype, expected):
    report = compare(fn, reference, torch.randn(16, 8).to(dtype).requires_grad_(), sizes=[(16, 1)])
    assert [case.verdict for case in report.cases] == [expected]


def test_a_scalar_is_compared_at_more_draws() -> None:
    x = torch.tensor(0.7, dtype=torch.bfloat16, requires_grad=True)
    assert compare(torch.exp, torch.exp, x, sizes=()).draws == 32
    wrong = compare(lambda x: 1.05 * x.exp(), torch.exp, x, sizes=())
    assert {one.code for one in wrong.findings} == {"compare_factor"}


def squares_in_half(x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    root = (x * x).mean(-1, keepdim=True).add(1e-6).rsqrt()
    return x * root, (x, root)


def normed(saved: Any, g: Tensor) -> Tensor:
    x, root = saved
    n = x * root
    return root * (g - n * (g * n).mean(-1, keepdim=True))


@pytest.mark.parametrize("seed", range(3))
def test_what_lacks_precision_where_a_gradient_cancels_is_no_factor(seed: int) -> None:
    """In lines of one element the gradient is what epsilon leaves of it, and the largest entry decides the rest."""
    x = torch.randn(32, 1, generator=torch.Generator().manual_seed(seed)).half().requires_grad_()
    reference = lambda x: (x.float() * x.float().pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt()).half()  # noqa: E731
    report = compare(function(squares_in_half, normed), reference, x, sizes=(), seed=seed)
    assert "compare_factor" not in {one.code for one in report.findings}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_an_attention_that_saves_its_sums_in_low_precision_is_right(seed: int, dtype: torch.dtype) -> None:
    def forward(q: Tensor, k: Tensor, v: Tensor) -> Any:
        s = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
        top = s.amax(-1, keepdim=True)
        p = torch.exp(s - top)
        total = p.sum(-1, keepdim=True)
        out = p @ v.float() / total
        return out, (q, k, v, out.to(q.dtype), top + total.to(q.dtype).float().log())

    generator = torch.Generator().manual_seed(seed)
    given = tuple(torch.randn((2, 3, 60, 30), generator=generator).to(dtype).requires_grad_() for _ in range(3))
    fn = function(forward, ATTENTION.backward)
    report = compare(fn, ATTENTION.eager, given, sizes=(), seed=seed)
    assert (report.verdict, report.findings) == ("right", ())


def test_spreads_of_few_numbers_are_wider() -> None:
    assert spreads(1, 10**9) == pytest.approx(SPREADS + 1.1774, abs=1e-3)
    assert spreads(1, 9) > 1.8 * spreads(1, 10**9)
    assert spreads(1, 2) > 10 * spreads(1, 10**9)


@pytest.mark.parametrize(("noise", "expected"), [(0.5, 1.0), (2.0, 2.0), (50.0, 3.0)])
def test_noise_is_measured_by_the_middle_of_the_errors(noise: float, expected: float) -> None:
    times = []
    for golden, yardstick, sample, error in drawn():
        yard = Yardstick(golden, 1e-3 * yardstick, [1e-3 * sample], 2**-9, 0.0)
        ratio = float(yard.allowed(1e-3 * noise * error).sum() / yard.allowed(0 * error).sum())
        error[:, -1] = 1e6  # what is wrong in one place does not make all else noisier
        placed = float(yard.allowed(1e-3 * noise * error).sum() / yard.allowed(0 * error).sum())
        assert ratio == pytest.approx(placed, rel=0.03)
        floor = float((2 * 2**-9 * golden.abs()).sum())
        none = float(yard.allowed(0 * error).sum())
        times.append((ratio * none - floor) / (none - floor))
    assert sum(times) / len(times) == pytest.approx(expected, rel=0.05)


def drawn(count: int = 12) -> Iterator[Tensor]:
    """Golden values and three errors, several times: the middle of so few varies by some percent itself."""
    for seed in range(count):
        yield torch.randn(4, 60, 70, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_a_factor_is_no_noise() -> None:
    times = []
    for golden, yardstick, sample, error in drawn():
        yard = Yardstick(golden, 1e-3 * yardstick, [1e-3 * sample], 2**-9, 0.0)
        sums = yard.sums(1e-3 * error + 0.02 * golden)
        noisier = {name: n for one in sums.values() for name, n in zip(one.directions, one.noisier, strict=True)}
        assert noisier["ones"] == 3.0
        times.append(noisier["golden"])
    assert sum(times) / len(times) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("shape", [(37,), (1, 33), (5, 18), (3, 6, 7), (2, 3, 4, 5)])
def test_sums_over_lines_are_those_of_their_entries(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    golden, yardstick, error, other = torch.randn(4, *shape, dtype=torch.float64, generator=generator)
    yard = Yardstick(golden, 1e-3 * yardstick, [], 2**-9, 0.0, {"other": other})
    directions = {"golden": golden, "ones": torch.ones_like(golden), "other": other}
    rows = ((level, one.of((name,)), v) for level, one in yard.sums(error).items() for name, v in directions.items())
    for level, one, v in rows:
        for got, product in ((one.error[0], error * v), (one.norm[0], v * v)):
            lines = product.sum(-1).reshape(-1)
            assert torch.allclose(torch.from_numpy(got), lines if level == "lines" else lines.sum(0, keepdim=True))
