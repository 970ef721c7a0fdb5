"""The share of a gradient that comes through one expression of forward, which backward lacks."""

from __future__ import annotations

import pytest
from fn import Fn
from own_mistakes import draw, first

pytestmark = pytest.mark.usefixtures("without_fixes")


# The weight of a sample depends on the input too.
Focal = Fn.of("Focal", "z, gamma: p = torch.sigmoid(z); save(p); ctx.gamma = gamma; "
    "return -((1 - p) ** gamma * p.log()).mean()",
    "g: (p,) = saved; return -g * (1 - p) ** ctx.gamma * (1 - p) / p.numel(), None")  # fmt: skip
Gram = Fn.of("Gram", "x: save(x); return (x @ x.t()).exp().sum(1)",
    "g: (x,) = saved; return (g[:, None] * (x @ x.t()).exp()) @ x")  # fmt: skip
Clipped = Fn.of("Clipped", "x: scale = torch.clamp(0.5 / x.norm(dim=-1, keepdim=True), max=1.0); save(scale); "
    "return x * scale",
    "g: (scale,) = saved; return g * scale")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "inputs", "expression"),
    [
        (Focal, (draw(5), 2.0), "(1 - p) ** gamma"),
        (Gram, (draw(4, 3),), "x.t()"),
        (Clipped, (3 * draw(2, 5).detach().requires_grad_(),), "torch.clamp(0.5 / x.norm("),
    ],
)
def test_the_expression_is_named(fn, inputs, expression: str) -> None:
    found = first(fn, *inputs)
    assert found.message_id == "causes.share_missing"
    assert expression in found.params["expression"]
    assert all(str(found.params[part]) in found.message for part in ("expression", "at"))
