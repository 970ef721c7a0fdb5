"""Second derivatives: right ones pass, lost ones are found with their guilty tensor, unclaimed ones are respected."""

from __future__ import annotations

import pytest
import torch
from own_mistakes import draw
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import nbautograd


class MyCube(Function):
    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        _, dx = output
        ctx.save_for_backward(x, dx)

    @staticmethod
    def backward(ctx, grad_output, grad_dx):
        x, dx = ctx.saved_tensors
        return grad_output * dx + grad_dx * 6 * x


class MyCubeWithoutGradDx(MyCube):
    @staticmethod
    def backward(ctx, grad_output, grad_dx):
        _, dx = ctx.saved_tensors
        return grad_output * dx


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


class ThroughNumpy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(g.numpy() * x.detach().cos().numpy())


@pytest.fixture(autouse=True)
def english():
    nbautograd.set_language("en")
    yield
    nbautograd.set_language(None)


def test_the_cube_with_both_shares_is_right_in_both_orders() -> None:
    report = nbautograd.gradcheck(lambda x: MyCube.apply(x)[0], (draw(4),))
    assert report.verdict == "right"
    assert report.order2 is not None
    assert report.order2.verdict == "right"
    assert {b.verdict for b in report.order2.blocks.values()} == {"match"}


def test_the_cube_without_its_second_share_names_the_tensor() -> None:
    fn, x = (lambda x: MyCubeWithoutGradDx.apply(x)[0]), draw(4)
    assert torch.autograd.gradcheck(fn, (x,))
    report = nbautograd.gradcheck(fn, (x,))
    assert report.verdict == "wrong"
    assert {b.verdict for b in report.blocks.values()} == {"match"}
    assert report.order2 is not None
    assert report.order2.blocks[0, 0].verdict == "mismatch"
    assert report.findings[0].code == "double_backward_wrong"
    assert report.findings[0].params["name"] == "dx"
    assert report.findings[0].message == (
        "The gradient is right, but its derivative is not: backward uses `dx`, an output of forward, and ignores the"
        " gradient `grad_dx` that comes back for it. Add its share, `grad_dx` times the derivative of `dx`, to the"
        " gradient of `x`."
    )


def test_once_differentiable_is_respected() -> None:
    report = nbautograd.gradcheck(Sine, (draw(4),))
    assert report.verdict == "right"
    assert report.order2 is None


def test_a_clear_error_in_the_second_order_is_a_lint() -> None:
    report = nbautograd.gradcheck(ThroughNumpy, (draw(4),))
    assert report.verdict == "right"
    assert [(f.code, f.kind) for f in report.findings] == [("double_backward_unsupported", "lint")]


def test_order_one_asks_for_nothing_more() -> None:
    report = nbautograd.gradcheck(lambda x: MyCubeWithoutGradDx.apply(x)[0], (draw(4),), order=1)
    assert report.verdict == "right"
    assert report.order2 is None


class CubeOfData(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x.data**2 * g


class Product(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.relu(x @ w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g * (x @ w > 0)
        return g @ w.t(), x.t() @ g


def test_a_large_function_is_sampled() -> None:
    report = nbautograd.gradcheck(Product, (draw(40, 20), draw(20, 30, seed=1)))
    assert report.verdict == "right"
    assert report.order2 is not None
    assert report.order2.verdict == "right"
    assert {b.verdict for b in report.order2.blocks.values()} == {"match"}
    assert all(b.input_name.endswith("(sampled)") and b.shape == (1, 1) for b in report.order2.blocks.values())


def test_a_large_function_that_lost_its_graph_is_found() -> None:
    report = nbautograd.gradcheck(CubeOfData, draw(40, 30))
    assert report.verdict == "wrong"
    assert report.findings[0].code == "double_backward_wrong"
    assert "`.data`" in report.findings[0].message


def test_a_large_function_of_complex_numbers_is_left_out() -> None:
    z = torch.complex(draw(200), draw(200, seed=1)).detach().requires_grad_()

    class Square(Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return 2 * g * z.conj()

    report = nbautograd.gradcheck(Square, z)
    assert report.verdict == "right"
    assert report.order2 is None
