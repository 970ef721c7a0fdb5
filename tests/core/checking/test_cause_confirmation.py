"""A cause is named only if it holds at fresh inputs and sizes; else the plain sentence says where it is wrong."""

from __future__ import annotations

import pytest
import torch
from own_mistakes import draw
from torch.autograd import Function

import nbautograd
from nbautograd.core.findings import Finding

MASK = torch.tensor([[1.0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1]], dtype=torch.float64)


@pytest.fixture(autouse=True)
def english():
    nbautograd.set_language("en")
    yield
    nbautograd.set_language(None)


def first(fn, *inputs) -> Finding:
    report = nbautograd.gradcheck(fn, inputs, order=1)
    assert report.verdict == "wrong"
    return report.findings[0]


class SegmentMean(Function):
    """Each element of the output has a count of its own, which no mean or sum explains."""

    @staticmethod
    def forward(ctx, x, index):
        counts = torch.bincount(index)
        ctx.save_for_backward(index)
        return torch.zeros(len(counts), dtype=x.dtype).index_add(0, index, x) / counts

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g[index], None


class RowMean(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return (x * mask).sum(1) / mask.sum(1)

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g[:, None] * mask, None


class RowScale(Function):
    """The factor of each row stands nowhere at hand."""

    @staticmethod
    def forward(ctx, x, index):
        return (x * torch.tensor([2.0, 3.0], dtype=x.dtype)[index][:, None]).sum(1)

    @staticmethod
    def backward(ctx, g):
        return g[:, None].expand(-1, 4), None


@pytest.mark.parametrize(
    ("fn", "inputs", "message", "factor"),
    [
        (SegmentMean, (draw(5), torch.tensor([0, 0, 1, 1, 1])), "causes.row_factor_named", "1 / torch.bincount(index)"),
        (RowMean, (draw(4, 3), MASK), "causes.row_factor_named", "1 / mask.sum(1)"),
        (RowScale, (draw(6, 4), torch.tensor([0, 0, 0, 1, 1, 1])), "causes.row_factor", ""),
    ],
)
def test_a_factor_of_each_output_is_no_lost_mean(fn, inputs, message: str, factor: str) -> None:
    found = first(fn, *inputs)
    assert (found.code, found.message_id, found.params["factor"]) == ("missing_factor", message, factor)


class MaskedMean(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return (x * mask).sum() / mask.sum()

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask / mask.numel(), None


@pytest.mark.parametrize("last", [0.0, 1.0])
def test_a_ratio_is_a_count_only_if_other_masks_bear_it_out(last: float) -> None:
    mask = torch.ones(6, dtype=torch.float64)
    mask[:2] = torch.tensor([0.0, last])  # with 5 of 6 the ratio is (n - 1)/n as well
    assert first(MaskedMean, draw(6), mask).params["name"] == "mask.sum() / mask.numel()"


class Steep(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return torch.where(z.exp() > 1.2, z**2, z)

    @staticmethod
    def backward(ctx, g):
        return g * 1.0


class Bounded(Function):
    @staticmethod
    def forward(ctx, z, limit):
        ctx.limit = limit
        return torch.where(z > 0.25, z * limit, z)

    @staticmethod
    def backward(ctx, g):
        return g, None


def test_a_threshold_stands_in_the_code() -> None:
    found = first(Steep, draw(40))
    assert found.code != "conditional"  # z > 0.18 or so would fit, and is written nowhere
    z = draw(40)
    assert first(Bounded, z, 3.0).params["where"] == "z > 0.25"


class LaterHalf(Function):
    """Wrong in the later half, which happens to be negative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = 3 * g * x**2
        return torch.cat([grad[:3], grad[3:] * x[3:].cos()])


class LaterHalfMinus(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = 3 * g * x**2
        return torch.cat([grad[:3], -grad[3:]])


class LaterHalfTwice(LaterHalfMinus):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = 3 * g * x**2
        return torch.cat([grad[:3], 2 * grad[3:]])


@pytest.mark.parametrize(
    ("fn", "code", "message"),
    [
        (LaterHalf, "wrong_derivative", "causes.wrong_derivative_part"),
        (LaterHalfMinus, "sign", "causes.sign_part"),
        (LaterHalfTwice, "constant_factor", "causes.constant_factor_part"),
    ],
)
def test_what_holds_by_luck_gives_way_to_the_place(fn, code: str, message: str) -> None:
    x = torch.tensor([0.5, 1.1, 0.8, -0.4, -1.2, -0.9], dtype=torch.float64, requires_grad=True)
    found = first(fn, x)
    assert (found.code, found.message_id) == (code, message)
    assert found.params["part"] == "output[3:] / x[3:]"


class WideSum(Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(1)

    @staticmethod
    def backward(ctx, g):
        return g.sum(1, keepdim=True).expand_as(g)


def test_a_sum_that_is_too_wide_is_no_missing_mask() -> None:
    found = first(WideSum, draw(3, 4))
    assert found.message_id == "causes.extra_entries_wide"
    assert "mask" not in found.message


class RowShare(Function):
    """Of each output the share of the first column is lost; other outputs use that column rightly."""

    @staticmethod
    def forward(ctx, x):
        return torch.cat([x, x[:, :1] + x[:, 1:2]], 1)

    @staticmethod
    def backward(ctx, g):
        grad = g[:, :-1].clone()
        grad[:, 1] += g[:, -1]
        return grad


def test_a_lost_share_is_not_called_zero_altogether() -> None:
    found = first(RowShare, draw(3, 4))
    assert found.message_id == "causes.missing_entries"
    assert "all of" not in found.message
