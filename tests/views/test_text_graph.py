"""A graph in words: memory by node and module, each memory once; versions; repeats as one row."""

from __future__ import annotations

import pytest
import torch
from said import says
from torch import nn

import nbautograd
from nbautograd import messages
from nbautograd.views.builders.graph import graph_table
from nbautograd.views.bundle import text


def column(graph, head):
    header, rows = graph_table(graph)
    return {row[0]: row[header.index(head)] for row in rows}


@pytest.mark.usefixtures("saved_tensors_shown")
def test_memory_is_told_by_node_each_once():
    x = torch.ones(10, requires_grad=True)
    y = x.exp()
    graph = nbautograd.graph((y * y).sum(), names={"x": x, "y": y})
    assert column(graph, "keeps")["MulBackward0"] == "40 B"
    assert column(graph, "keeps")["ExpBackward0 (y)"] == "shares y"
    assert says(text(graph), "graphs.kept_in_all", size="40 B")


@pytest.mark.usefixtures("saved_tensors_shown")
def test_memory_is_told_by_module():
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    graph = nbautograd.graph(model(torch.randn(5, 3)).sum(), names=model)
    lines = text(graph).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("module"))
    assert [line.split() for line in lines[at : at + 4]] == [
        ["module", "keeps"], ["2", "Linear", "224", "B"], ["1", "Tanh", "160", "B"], ["0", "Linear", "60", "B"],
    ]  # fmt: skip


@pytest.mark.usefixtures("saved_tensors_shown")
def test_versions_and_what_changed_them_are_told():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    loss = (y * y).sum()
    with torch.no_grad():
        y.add_(1)
    told = column(nbautograd.graph(loss), messages.text("graphs.column.changed"))["MulBackward0"]
    assert told.startswith("y: v0 → v1 · line ")
    assert told.endswith(" · y.add_(1)")


def test_a_repeat_is_one_row_with_the_norms_along_it():
    y = torch.ones(3, requires_grad=True)
    for _ in range(30):
        y = y * 0.5
    graph = nbautograd.backward(y.sum(), names={})
    shown = column(graph, "gradient")
    assert list(shown) == ["SumBackward0", "Mul ×30", "AccumulateGrad"]
    assert shown["Mul ×30"].startswith("|g| 1.73 █")
    assert says(shown["Mul ×30"], "graphs.vanishing")
