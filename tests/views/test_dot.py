"""The Digraph: the same information, every name escaped, no program needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
import torch
from said import says

import nbautograd

EVIL = '<b>"\\N {x|y}" -> </b>'


def test_names_are_escaped():
    x = torch.ones(2, requires_grad=True)
    source = nbautograd.graph({EVIL: (x * 2).sum()}, names={EVIL: x}).to_dot().source
    assert "label=<" not in source
    assert '\\"' in source
    assert "\\\\N" in source


@pytest.mark.usefixtures("saved_tensors_shown")
def test_ghosts_versions_norms_and_the_first_nan_are_there():
    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    source = nbautograd.graph((a.detach() * b).sum()).to_dot().source
    assert re.search(r'x0 \[label="a 3" style="dashed,rounded" tooltip=a\]', source)
    assert re.search(r"n1 -> x0 \[label=detach style=dashed\]", source)
    assert says(source, "graphs.ghost", name="a")
    y = a.exp()
    z = (y * b).sum()
    with torch.no_grad():
        y.add_(1)
    source = nbautograd.graph(z).to_dot().source
    assert "y: v0 → v1 · line" in source
    assert 'label="v0 → v1" color="#b9262f"' in source
    x = torch.zeros(2, requires_grad=True)
    assert says(nbautograd.backward((x / x).exp().sum()).to_dot().source, "graphs.first_bad_here", what="NaN")
    assert "|g| 1.73" in nbautograd.backward((a * b).sum()).to_dot().source


def test_the_first_graph_is_a_cluster_with_ties_to_it():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    first = nbautograd.backward((x.sin() * x.exp()).sum(), create_graph=True, inputs=[x], names={"x": x})
    second = nbautograd.graph(x.grad.sum(), first=first, names={"x": x})
    x.grad = None
    source = second.to_dot().source
    assert source.count("subgraph cluster_") == 2
    assert source.count("style=dotted") == sum(node.origin is not None for node in second.nodes)
    assert says(source, "graphs.legend.same")
    assert says(source, "graphs.derivative_of", name="SinBackward0")


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs the dot program")
def test_dot_takes_clusters_ghosts_and_notes():
    a, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for _ in range(30):
        y = y.sin()
    assert b"<svg" in nbautograd.graph((a.detach() * y).sum()).to_dot().pipe("svg")


@pytest.mark.slow
def test_graphviz_is_imported_only_when_asked():
    code = "import sys, nbautograd.views.dot, nbautograd.views.svg; assert 'graphviz' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
