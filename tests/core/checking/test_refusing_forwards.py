"""A forward that raises beside its inputs is quoted, and checked along directions that it takes."""

from __future__ import annotations

import pytest
import torch
from said import says
from torch.utils.checkpoint import checkpoint

from nbautograd import gradcheck


def make(forward, backward):
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Constrained", (torch.autograd.Function,), methods)


def entropy(slope):
    """Make the entropy of probabilities, with a factor that its backward gives the logarithm."""

    def forward(ctx, p):
        if abs(float(p.detach().sum()) - 1) > 1e-9:
            raise ValueError("probabilities must sum to 1")
        ctx.save_for_backward(p)
        return -(p * p.log()).sum()

    return make(forward, lambda ctx, grad: -grad * (slope * ctx.saved_tensors[0].log() + 1))


def symmetric_cholesky(half):
    def forward(ctx, a):
        if not torch.equal(a, a.mT):
            raise ValueError("a must be symmetric")
        lower = torch.linalg.cholesky(a)
        ctx.save_for_backward(lower)
        return lower

    def backward(ctx, grad):
        (lower,) = ctx.saved_tensors
        inverse, inner = torch.linalg.inv(lower), (lower.mT @ grad).tril()
        inner.diagonal().mul_(half)
        full = inverse.mT @ inner @ inverse
        return (full + full.mT) / 2

    return make(forward, backward)


def simplex(rows=()):
    torch.manual_seed(1)
    return torch.softmax(torch.randn(*rows, 5, dtype=torch.float64), -1).requires_grad_()


def positive_definite():
    torch.manual_seed(1)
    a = torch.randn(3, 3, dtype=torch.float64)
    return (a @ a.mT + 3 * torch.eye(3, dtype=torch.float64)).requires_grad_()


CASES = [
    (entropy(1), entropy(2), simplex(), "sum to 1", "inside_zero_sum"),
    (symmetric_cholesky(0.5), symmetric_cholesky(1.0), positive_definite(), "must be symmetric", "inside_symmetric"),
]


@pytest.mark.parametrize(("right", "wrong", "x", "raised", "kind"), CASES, ids=["entropy", "cholesky"])
def test_directions_inside_tell_right_from_wrong_and_say_so(right, wrong, x, raised, kind):
    report = gradcheck(right, x)
    assert report.verdict == "right"
    assert raised in str(report.reason)
    assert says(report.reason, f"checking.{kind}")
    other = gradcheck(wrong, x)
    assert other.verdict == "wrong"
    # entries on the diagonal of a symmetric matrix can be moved one by one
    assert other.findings[0].code in ("wrong_inside_domain", "wrong_unclassified")


def test_each_row_may_have_a_constraint_of_its_own():
    def forward(ctx, p):
        if not torch.allclose(p.detach().sum(-1), torch.ones(2, dtype=p.dtype), rtol=0, atol=1e-9):
            raise ValueError("rows must sum to 1")
        ctx.save_for_backward(p)
        return -(p * p.log()).sum(-1)

    right = make(forward, lambda ctx, grad: -grad[:, None] * (ctx.saved_tensors[0].log() + 1))
    assert gradcheck(right, simplex((2,))).verdict == "right"


def test_small_steps_serve_a_forward_that_allows_no_large_ones():
    middle = torch.linspace(1, 2, 4, dtype=torch.float64)

    def forward(ctx, x):
        if (x.detach() - middle).abs().max() > 1e-5:
            raise ValueError("too far away")
        ctx.save_for_backward(x)
        return x.exp()

    right = make(forward, lambda ctx, grad: grad * ctx.saved_tensors[0].exp())
    assert gradcheck(right, middle.clone().requires_grad_()).verdict == "right"
    wrong = make(forward, lambda ctx, grad: grad * ctx.saved_tensors[0].cos())
    assert gradcheck(wrong, middle.clone().requires_grad_()).verdict == "wrong"


def test_without_a_direction_the_reason_quotes_what_forward_raised():
    here = torch.linspace(1, 2, 4, dtype=torch.float64)

    def forward(ctx, x):
        if not torch.equal(x.detach(), here):
            raise ValueError("these numbers and no others")
        return x.exp()

    report = gradcheck(make(forward, lambda ctx, grad: grad), here.clone().requires_grad_())
    assert report.verdict == "cannot tell"
    assert "ValueError: these numbers and no others" in str(report.reason)


def test_a_reentrant_checkpoint_is_no_mistake_of_the_user():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    report = gradcheck(lambda x: checkpoint(torch.sin, x, use_reentrant=True), x)
    assert report.verdict == "cannot tell"
    assert [finding.code for finding in report.findings] == ["reentrant_checkpoint"]
    assert "use_reentrant" in str(report.reason)
    assert gradcheck(lambda x: checkpoint(torch.sin, x, use_reentrant=False), x).verdict == "right"
