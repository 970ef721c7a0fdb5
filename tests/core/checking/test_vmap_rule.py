"""A Function's own vmap is compared with its items one by one."""

from __future__ import annotations

import pytest
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


def by_loop(info, in_dims, x, w):
    items = [[t if dim is None else t.select(dim, k) for k in range(info.batch_size)]
             if dim is not None else [t] * info.batch_size for t, dim in zip((x, w), in_dims, strict=True)]  # fmt: skip
    return torch.stack([a * b for a, b in zip(*items, strict=True)]), 0


def batch_last(info, in_dims, x, w):
    return right(info, in_dims, x, w)[0].movedim(0, -1), -1


def by_vmap(info, in_dims, x, w):
    return torch.vmap(torch.mul, in_dims=in_dims, out_dims=0)(x, w), 0


@pytest.mark.parametrize("rule", [by_loop, batch_last, by_vmap])
def test_right_rules_of_other_styles_are_left_alone(rule) -> None:
    assert codes(rule) == []


def one_input_at_a_time(info, in_dims, x, w):
    if None not in in_dims:
        return right(info, in_dims, x, w)
    return x * w, 0  # takes the dimension that is batched for the first one


def transposed_when_last(info, in_dims, x, w):
    moved = [t if dim is None else t.transpose(dim, 0) for t, dim in zip((x, w), in_dims, strict=True)]
    return moved[0] * moved[1], 0


@pytest.mark.parametrize("rule", [one_input_at_a_time, transposed_when_last])
def test_rules_that_only_other_in_dims_show_wrong_are_seen(rule) -> None:
    assert codes(rule)[0] in ("vmap_wrong", "vmap_raises")
