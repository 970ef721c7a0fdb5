"""A Function's own vmap is compared with its items one by one; lists on ctx must stay as forward left them."""

from __future__ import annotations

import torch
from own_mistakes import draw
from torch.autograd import Function

import nbautograd


def with_rule(rule) -> type:
    def forward(x, w):
        return x * w

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x

    parts = {"forward": forward, "setup_context": setup_context, "backward": backward, "vmap": rule}
    return type("Ruled", (Function,), {name: staticmethod(part) for name, part in parts.items()})


def right(info, in_dims, x, w):
    moved = [t if dim is None else t.movedim(dim, 0) for t, dim in zip((x, w), in_dims, strict=True)]
    return moved[0] * moved[1], 0


def first_only(info, in_dims, x, w):
    return x * w, 0


def shifted(info, in_dims, x, w):
    return right(info, in_dims, x, w)[0] + 1, 0


def codes(rule) -> list[str]:
    report = nbautograd.gradcheck(with_rule(rule), (draw(4, 3), draw(4, 3, seed=1)), order=1)
    return [f.code for f in report.findings]


def test_a_right_rule_is_left_alone() -> None:
    assert codes(right) == []


def test_a_rule_that_knows_the_first_dimension_alone_is_seen() -> None:
    assert codes(first_only)[0] in ("vmap_wrong", "vmap_raises")


def test_a_rule_with_other_values_is_wrong() -> None:
    assert codes(shifted) == ["vmap_wrong"]


def test_a_list_on_ctx_that_backward_changes_is_named() -> None:
    class Stacks(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.parts = [x.cos(), torch.ones_like(x)]
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            ctx.parts.append(g)
            return g * ctx.parts[0]

    found = nbautograd.gradcheck(Stacks, draw(4), order=1).findings
    assert ("mutates_saved", "ctx.parts") in [(f.code, f.params.get("name")) for f in found]
