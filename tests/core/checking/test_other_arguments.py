"""A fix or a cause that holds for the arguments given alone is not offered, or says that it depends on them."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from nbautograd import gradcheck

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = pytest.mark.slow


def doubles(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


class ExclusiveSum(Function):
    """A running sum, without the element itself where it is exclusive; backward forgets that."""

    @staticmethod
    def forward(ctx, x, exclusive):
        ctx.exclusive = exclusive
        y = x.cumsum(-1)
        return y - x if exclusive else y

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output.flip(-1).cumsum(-1).flip(-1)
        return grad, None


class Deviation(Function):
    """A standard deviation whose backward divides by n whatever the correction is."""

    @staticmethod
    def forward(ctx, x, correction):
        n = x.shape[-1]
        mean = x.mean(-1, keepdim=True)
        std = (((x - mean) ** 2).sum(-1) / (n - correction)).sqrt()
        ctx.save_for_backward(x, mean, std)
        ctx.correction = correction
        return std

    @staticmethod
    def backward(ctx, grad_output):
        x, mean, std = ctx.saved_tensors
        n = x.shape[-1]
        return (grad_output / (std * n)).unsqueeze(-1) * (x - mean), None


class Spaced(Function):
    """A second difference on a grid; the gradient lacks the square of the spacing."""

    @staticmethod
    def forward(ctx, u, spacing):
        ctx.spacing = spacing
        return (u[2:] - 2 * u[1:-1] + u[:-2]) / spacing**2

    @staticmethod
    def backward(ctx, grad_output):
        g = torch.zeros(grad_output.shape[0] + 2, dtype=grad_output.dtype)
        g[2:] += grad_output
        g[1:-1] -= 2 * grad_output
        g[:-2] += grad_output
        return g, None


class LastOfTwo(Function):
    """A log of the softmax over the last dimension; backward forgets the sum."""

    @staticmethod
    def forward(ctx, x):
        y = x.log_softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output - y.exp() * grad_output


def fixes(report):
    return [finding.fix.source for finding in report.findings if finding.fix is not None]


def test_no_fix_for_one_value_of_a_flag():
    report = gradcheck(ExclusiveSum.apply, (doubles(3, 4), True))
    assert report.verdict == "wrong"
    assert all("exclusive" in fix for fix in fixes(report))


def test_a_fix_uses_the_argument_and_not_its_value():
    [fix] = fixes(gradcheck(Deviation.apply, (doubles(3, 5), 1)))
    assert "ctx.correction" in fix


def test_a_factor_that_changes_with_an_argument_names_it():
    report = gradcheck(Spaced.apply, (doubles(6), 0.2))
    assert "depends on `spacing`" in report.findings[0].what


def test_a_fix_takes_the_dimension_that_forward_takes_for_any_number_of_them():
    [fix] = fixes(gradcheck(LastOfTwo.apply, (doubles(3, 4),)))
    assert "sum(-1" in fix


def test_a_flag_that_a_callable_gives_to_its_function_is_tried_the_other_way_too():
    inside = gradcheck(lambda x: ExclusiveSum.apply(x, True), doubles(3, 4))
    assert inside.verdict == "wrong"
    assert all(finding.fix is None for finding in inside.findings)
    assert "apply" not in vars(ExclusiveSum)


def test_inputs_keep_their_names_where_an_argument_inside_is_another():
    def steep(angle):
        return Powered.apply(angle, 3.0)

    found = gradcheck(steep, doubles(6)).findings[0]
    assert found.code == "missing_factor"
    assert "angle" in found.params["about"]


class Powered(Function):
    """The inner derivative of the cosine is forgotten."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * (x**2).sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.scale * (x**2).cos(), None
