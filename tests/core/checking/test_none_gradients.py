"""A backward that returns None is right where the derivative is zero, and wrong where it is not."""

from __future__ import annotations

import pytest
import torch
from own_mistakes import draw
from torch.autograd import Function

import nbautograd


def made(forward, gradients, saves=True) -> type:
    def run(ctx, *inputs):
        if saves:
            ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))
        return forward(*inputs)

    def backward(ctx, *g):
        return gradients(*g, *(ctx.saved_tensors if saves else ()))

    return type("Made", (Function,), {"forward": staticmethod(run), "backward": staticmethod(backward)})


RIGHT = {
    "sign": (made(lambda x: x.sign(), lambda g, x: None), (draw(5),)),
    "steps of the second input": (
        made(lambda x, s: x * (s > 0), lambda g, x, s: (g * (s > 0), None)),
        (draw(5), draw(5, seed=1)),
    ),
    "only the sizes": (
        made(lambda x, of: x * of.shape[0], lambda g, x, of: (g * of.shape[0], None)),
        (draw(4), draw(3, seed=1)),
    ),
    "a cancelled input": (made(lambda x, y: x + (y - y), lambda g, x, y: (g, None)), (draw(4), draw(4, seed=1))),
    "an index": (
        made(lambda x, i: x[i], lambda g, x, i: (torch.zeros_like(x).index_add(0, i, g), None)),
        (draw(4), torch.tensor([0, 2, 2])),
    ),
    "an order": (
        made(lambda x, key: x[key.argsort()], lambda g, x, key: (g[key.argsort().argsort()], None)),
        (draw(4), draw(4, seed=1)),
    ),
    "two outputs, one of them flat": (
        made(lambda x, y: (x * 2, y.floor()), lambda g, h, x, y: (2 * g, None)),
        (draw(4), draw(4, seed=1, low=0.1, high=0.9)),
    ),
}

WRONG = {
    "both matter": (made(lambda x, y: x * y, lambda g, x, y: (g * y, None)), (draw(4), draw(4, seed=1))),
    "a small share": (made(lambda x, y: x + 1e-3 * y, lambda g, x, y: (g, None)), (draw(4), draw(4, seed=1))),
    "one entry of many": (made(lambda x, y: x + y[0], lambda g, x, y: (g, None)), (draw(4), draw(4, seed=1))),
    "all": (made(lambda x: x.exp(), lambda g, x: None), (draw(4),)),
}


@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_none_is_right_for_a_derivative_that_is_zero_alone(name) -> None:
    fn, inputs = {**RIGHT, **WRONG}[name]
    report = nbautograd.gradcheck(fn, inputs, order=1)
    bugs = [f.code for f in report.findings if f.kind == "bug"]
    assert (report.verdict, bugs) == (("right", []) if name in RIGHT else ("wrong", ["none_gradient"]))
    assert name in WRONG or "returns_none" not in [f.code for f in nbautograd.inspect(fn, *inputs).findings]
