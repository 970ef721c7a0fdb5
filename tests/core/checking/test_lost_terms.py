"""Terms lost on the way back through sums, shares overwritten, things changed unseen: named and mended."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import normal

from nbautograd import gradcheck

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = pytest.mark.slow

INDEX = torch.tensor([0, 2, 2, 5])


# Without the term of the mean.
LayerNorm = Fn.of("LayerNorm", "x, gamma: s = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt(); "
    "h = (x - x.mean(-1, keepdim=True)) / s; save(h, s, gamma); return h * gamma",
    "grad_output: h, s, gamma = saved; g = grad_output * gamma; "
    "grad_x = (g - h * (g * h).mean(-1, keepdim=True)) / s; return grad_x, (grad_output * h).sum(0)")  # fmt: skip
Rows = Fn.of("Rows", "table, index: save(index); ctx.count = table.shape[0]; return table[index]",
    "grad_output: (index,) = saved; grad = grad_output.new_zeros(ctx.count, grad_output.shape[1]); "
    "grad[index] = grad_output; return grad, None")  # fmt: skip
Counting = Fn.of("Counting", "x: ctx.count = 0; save(x); return x * x",
    "grad_output: (x,) = saved; ctx.count += 1; return 2 * grad_output * x / ctx.count")  # fmt: skip
Lower = Fn.of("Lower", "x: return x.tril()", "grad_output: return grad_output.triu()")


@pytest.mark.parametrize(
    ("fn", "inputs", "code", "fixed"),
    [
        (LayerNorm, (normal(4, 6), normal(6, seed=1)), "missing_coupling", True),
        (Rows, (normal(6, 3), INDEX), "missing_entries", True),
        (Counting, (normal(4),), "nondeterministic_backward", True),
        (Lower, (normal(3, 3),), "wrong_derivative", True),
    ],
)
def test_it_is_named_and_mended(fn, inputs, code, fixed):
    found = gradcheck(fn, inputs, order=1).findings[0]
    assert found.code == code
    assert (found.fix is not None) is fixed
    assert found.fix is None or found.fix.verified


class FirstOfAll(Fn):
    """Computes with the input of the first call that there ever was."""

    kept: list[torch.Tensor] = []

    def forward(ctx, x):
        FirstOfAll.kept.append(x.detach())
        return x * x

    def backward(ctx, grad_output):
        return 2 * grad_output * FirstOfAll.kept[0]


def test_what_an_earlier_call_left_is_noticed():
    FirstOfAll.kept.clear()
    found = gradcheck(FirstOfAll, (normal(4),), order=1).findings[0]
    assert (found.code, found.message_id) == ("shared_state", "causes.wrong_later")
    assert gradcheck(FirstOfAll, (normal(4),), order=1).verdict == "wrong"  # beside what outlived a vmap


class Pops(Fn):
    """Takes what a call left last: after another call that is not its own."""

    kept: list[torch.Tensor] = []

    def forward(ctx, x):
        Pops.kept.append(x.detach().clone())
        return x.sin()

    def backward(ctx, grad_output):
        return grad_output * Pops.kept.pop().cos()


def test_what_differs_when_nothing_changed_is_no_matter_of_a_layout():
    bugs = [found.code for found in gradcheck(Pops, (normal(4, 3),), order=1).findings if found.kind == "bug"]
    assert bugs == ["shared_state"]


Power = Fn.of("Power", "x, n: save(x); ctx.n = n; return x**n",
    "grad_output: (x,) = saved; return grad_output * x ** (ctx.n - 1), None")  # fmt: skip
Modulus = Fn.of("Modulus", "z: save(z); return z.abs() ** 2", "grad_output: (z,) = saved; return grad_output * z")


def test_a_number_on_ctx_is_used_rather_than_written_out():
    fix = gradcheck(Power, (normal(5), 3), order=1).findings[0].fix
    assert "ctx.n * " in fix.source or "* ctx.n" in fix.source


def test_the_pair_of_a_complex_number_is_no_size():
    torch.manual_seed(0)
    z = torch.randn(5, dtype=torch.complex128, requires_grad=True)
    found = gradcheck(Modulus, (z,), order=1).findings[0]
    assert found.code == "constant_factor"
    assert "shape" not in found.message
