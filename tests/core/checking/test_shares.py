"""The share of a gradient that comes through one expression of forward: missing, of the wrong sign, or scaled."""

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


# The weight of a sample depends on the input too.
Focal = Fn.of("Focal", "z, gamma: p = torch.sigmoid(z); save(p); ctx.gamma = gamma; "
    "return -((1 - p) ** gamma * p.log()).mean()",
    "g: (p,) = saved; return -g * (1 - p) ** ctx.gamma * (1 - p) / p.numel(), None")  # fmt: skip
Gram = Fn.of("Gram", "x: save(x); return (x @ x.t()).exp().sum(1)",
    "g: (x,) = saved; return (g[:, None] * (x @ x.t()).exp()) @ x")  # fmt: skip
Clipped = Fn.of("Clipped", "x: scale = torch.clamp(0.5 / x.norm(dim=-1, keepdim=True), max=1.0); save(scale); "
    "return x * scale",
    "g: (scale,) = saved; return g * scale")  # fmt: skip
# The share through the square has the wrong sign for x, and half its size for y.
Mixed = Fn.of("Mixed", "x, y: save(x, y); square = (x * y) ** 2; return (x * y).exp() + square.cos() * x.sin()",
    "g: x, y = saved; square, e = (x * y) ** 2, (x * y).exp(); "
    "common = -square.sin() * x.sin() * 2 * x * y; "
    "return g * (y * e - common * y + square.cos() * x.cos()), g * (x * e + 0.5 * common * x)")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "inputs", "message", "expression"),
    [
        (Focal, (draw(5), 2.0), "causes.share_missing", "(1 - p) ** gamma"),
        (Gram, (draw(4, 3),), "causes.share_missing", "x.t()"),
        (Clipped, (3 * draw(2, 5).detach().requires_grad_(),), "causes.share_missing", "torch.clamp(0.5 / x.norm("),
        (Mixed, (draw(4), draw(4, seed=1)), "causes.share_sign", "(x * y) ** 2"),
    ],
)
def test_the_expression_is_named(fn, inputs, message: str, expression: str) -> None:
    found = first(fn, *inputs)
    assert found.message_id == message
    assert expression in found.params["expression"]
    assert f"`{found.params['expression']}` in line {found.params['at']}" in found.message


def test_the_share_may_be_scaled() -> None:
    report = nbautograd.gradcheck(Mixed, (draw(4), draw(4, seed=1)), order=1)
    found = next(f for f in report.findings if f.where == (0, 1))
    assert (found.message_id, found.params["ratio"]) == ("causes.share_scaled", "0.5")


# Forgets that the mean of the squares is divided by their number.
Normed = Fn.of("Normed", "x: r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6); save(x, r); return x * r",
    "g: x, r = saved; return g * r - x * r**3 * (g * x).sum(-1, keepdim=True)")  # fmt: skip


def test_a_factor_that_depends_on_a_size_is_said_to() -> None:
    found = first(Normed, draw(2, 4))
    assert (found.message_id, found.params["ratio"]) == ("causes.share_scaled", "4")
    assert "another multiple at other sizes" in found.message


# No expression of forward that is constant has this gradient.
Unrelated = Fn.of("Unrelated", "x: save(x); return x.sin() * x.exp()",
    "g: (x,) = saved; return g * (x.cos() * x.exp() + x.atan())")  # fmt: skip
# Autograd sees nothing of this forward, and is no witness.
LeavesTorch = Fn.of("LeavesTorch", "x: save(x); plain = torch.from_numpy(x.detach().numpy().copy()); "
    "return plain.sin() * plain.exp()",
    "g: (x,) = saved; return g * x.cos() * x.exp()")  # fmt: skip


@pytest.mark.parametrize("fn", [Unrelated, LeavesTorch])
def test_where_no_expression_explains_it_none_is_named(fn) -> None:
    assert not first(fn, draw(6)).message_id.startswith("causes.share")


# The number that is wrong may belong to one share or to the other.
Either = Fn.of("Either", "x: save(x); return x.exp() + 2 * x + 5 * x", "g: (x,) = saved; return g * (x.exp() + 6.3)")
# One of two shares is nine tenths of what it should be.
Sole = Fn.of("Sole", "x: save(x); return x.exp() + (x.sin() * x)",
    "g: (x,) = saved; return g * (x.exp() + 0.9 * (x.cos() * x + x.sin()))")  # fmt: skip


def test_no_share_is_said_to_be_scaled_where_two_may_be_or_too_few_entries_tell() -> None:
    assert first(Sole, draw(4)).message_id == "causes.share_scaled"
    assert not first(Either, draw(4)).message_id.startswith("causes.share")
    alone = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert not first(Sole, alone).message_id.startswith("causes.share")
