"""The place that a sentence names: a part of a tensor, a line, what a factor belongs to."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

import nbautograd
from nbautograd.core.findings import Finding

pytestmark = pytest.mark.usefixtures("without_fixes")


def first(fn, *inputs) -> Finding:
    report = nbautograd.gradcheck(fn, inputs, order=1)
    assert report.verdict == "wrong"
    return report.findings[0]


def complex_draw(*shape: int) -> torch.Tensor:
    return torch.complex(draw(*shape).detach(), draw(*shape, seed=1).detach()).requires_grad_()


class RealPartWrong(Fn):
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.abs() ** 2 + z.real

    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z + g * z.real.sin()


class ImaginaryPartScaled(Fn):
    """The output is complex, and what comes back through its imaginary part is scaled wrongly."""

    def forward(ctx, x):
        return torch.complex(x * 2, x * 3)

    def backward(ctx, g):
        return 2 * g.real + 5 * g.imag


@pytest.mark.usefixtures("without_fixes")
@pytest.mark.parametrize("shape", [(4,), (3, 2), (2, 2, 2)])
def test_a_part_of_a_complex_tensor_is_its_real_or_imaginary_one(shape) -> None:
    assert first(RealPartWrong, complex_draw(*shape)).params["part"] == "z.real"
    assert first(ImaginaryPartScaled, draw(*shape)).params["expression"] == "x * 3"


class Centred(Fn):
    def forward(ctx, z):
        return z - z.mean((0, 1), keepdim=True)

    def backward(ctx, g):
        return g


class InstanceNorm(Fn):
    def forward(ctx, x):
        inv = (x.var((1, 2), keepdim=True, unbiased=False) + 1e-5).rsqrt()
        xh = (x - x.mean((1, 2), keepdim=True)) * inv
        ctx.save_for_backward(xh, inv)
        return xh

    def backward(ctx, g):
        xh, inv = ctx.saved_tensors
        return inv * (g - xh * (g * xh).mean((1, 2), keepdim=True))


@pytest.mark.usefixtures("fixes")
@pytest.mark.parametrize(
    ("fn", "inputs", "change"),
    [
        (Centred, (complex_draw(3, 2),), "g.mean((0, 1), keepdim=True)"),
        (Centred, (draw(3, 2),), "g.mean((0, 1), keepdim=True)"),
        (InstanceNorm, (draw(2, 3, 4),), "g.mean((1, 2), keepdim=True)"),
    ],
)
def test_a_mean_over_several_dimensions_is_mended(fn, inputs, change: str) -> None:
    found = first(fn, *inputs)
    assert found.fix is not None
    assert change in found.fix.source
    assert found.line == found.fix.line


LAST: dict[str, torch.Tensor] = {}


class ReadsAGlobal(Fn):
    def forward(ctx, x):
        LAST["x"] = x
        return x * x

    def backward(ctx, g):
        two = 2
        return g * two * LAST["x"]


class ReadsItsClass(Fn):
    scale = None

    def forward(ctx, x):
        ReadsItsClass.scale = x
        return x * x

    def backward(ctx, g):
        two = 2
        return g * two * ReadsItsClass.scale


def twice(fn):
    return lambda x, y: fn.apply(x) + fn.apply(y)


@pytest.mark.parametrize("fn", [ReadsAGlobal, ReadsItsClass])
def test_state_is_placed_where_backward_reads_it(fn) -> None:
    line = fn.backward.__code__.co_firstlineno + 2
    for found in (first(fn, draw(4)), first(twice(fn), draw(4), draw(4, seed=1))):
        assert (found.code, found.line) == ("shared_state", line)


class TwoOutputs(Fn):
    """Torch puts zeros in the place of None here, so that backward never meets one; it draws random numbers."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp(), x * 1.0

    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        small = (g != 0).to(g) * (h != 0).to(g)
        return g * x.exp() + h + small * g


def test_a_none_that_never_arrives_is_no_cause() -> None:
    report = nbautograd.gradcheck(TwoOutputs, (draw(4),), order=1)
    assert "undefined_grad" not in {found.code for found in report.findings}
