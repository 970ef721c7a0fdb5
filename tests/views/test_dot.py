"""The Digraph: the same information, every name escaped, no program needed."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
import torch

import nbautograd

EVIL = '<b>"\\N {x|y}" -> </b>'


class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        ctx.note = EVIL
        return input.mm(weight.t())

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output.mm(weight), grad_output.t().mm(input)


def sample():
    weight = torch.ones(3, 4, requires_grad=True)
    loss = LinearFunction.apply(torch.ones(5, 4), weight).sum()
    return nbautograd.graph(loss, names={"weight": weight, "loss": loss})


def test_nodes_edges_and_ctx_are_all_there():
    source = sample().to_dot().source
    for word in ("loss", "SumBackward0", "LinearFunction", "saved_tensors", "input float32 5×4", "weight 3×4"):
        assert word in source
    assert source.count("->") == 3 + source.count(" -> </b>")
    assert 'label="5×3"' in source


def test_names_are_escaped():
    x = torch.ones(2, requires_grad=True)
    source = nbautograd.graph({EVIL: (x * 2).sum()}, names={EVIL: x}).to_dot().source
    assert "label=<" not in source
    assert '\\"' in source
    assert "\\\\N" in source


def test_a_label_that_looks_like_html_stays_text():
    x = torch.ones(2, requires_grad=True)
    source = nbautograd.graph((x * 2).sum(), names={"<i>x</i>": x}).to_dot().source
    assert '"<i>x</i>' in source


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs the dot program")
def test_dot_takes_it():
    assert b"<svg" in sample().to_dot().pipe("svg")


@pytest.mark.slow
def test_graphviz_is_imported_only_when_asked():
    code = "import sys, nbautograd.views.dot, nbautograd.views.svg; assert 'graphviz' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
