"""Why is this grad None, asked of plain data by name: every kind of cut, and tensors that have a gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function

from nbautograd.core.graphs.backward import backward
from nbautograd.core.graphs.build import graph
from nbautograd.core.graphs.why_none import ask, askable


class Silent(Function):
    """Returns None for its second input."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * w

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        return grad_output, None


def leaf() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


CELL = "h = a.detach() * 2\nloss = (h * b).sum()"


@pytest.fixture
def cut() -> tuple[Any, dict[str, Any]]:
    a, b, n, x = leaf(), leaf(), torch.arange(3), torch.ones(3)
    h = a.detach() * 2
    y = h * b
    loss = (y * n * x).sum()
    given = {"a": a, "b": b, "n": n, "x": x, "y": y, "loss": loss}
    return backward(loss, names=given), given


@pytest.mark.parametrize(
    ("name", "code", "ghost"),
    [
        ("a", "cut", "detach"), ("b", "has", None), ("n", "integer", "integer"), ("x", "not_required", "not_required"),
        ("y", "not_a_leaf", None), ("nowhere", "not_a_part", "unused"),
    ],
)  # fmt: skip
def test_every_tensor_has_its_reason(cut: Any, name: str, code: str, ghost: str | None) -> None:
    value, variables = cut
    value = type(value)(**{**vars(value), "ghosts": ()})  # nothing is known of the cut but the cell
    asked = ask(value, name, variables, [CELL])
    assert asked.finding.code == f"grad_none_{code}"
    assert f"`{name}`" in asked.finding.message
    assert (asked.ghost and asked.ghost.reason) == ghost
    assert (asked.node is None) == (ghost is not None)


def test_the_line_is_named(cut: Any) -> None:
    value, variables = cut
    value = type(value)(**{**vars(value), "ghosts": ()})
    asked = ask(value, "a", variables, ["no python here", CELL])
    assert (asked.finding.line, asked.ghost and asked.ghost.text) == (1, "a.detach()")


def test_a_ghost_that_is_drawn_already_is_the_one_that_is_named(cut: Any) -> None:
    value, _ = cut
    drawn = next(ghost for ghost in value.ghosts if ghost.name == "a")
    asked = ask(value, "a")
    assert asked.ghost is drawn
    assert asked.finding.line == drawn.line is not None


@pytest.mark.usefixtures("saved_tensors_shown")
def test_what_no_node_uses_hangs_on_the_op_that_saved_it(cut: Any) -> None:
    value, variables = cut
    ghost = ask(value, "x", variables).ghost
    assert ghost is not None
    assert value.nodes[ghost.node].name == "MulBackward0"


def test_none_returned_and_not_reached() -> None:
    x, w, other = leaf(), leaf(), leaf()
    loss = (Silent.apply(x, w) * other).sum()
    ran = backward(loss, names={"x": x, "w": w, "other": other, "loss": loss}, inputs=[x, w])
    assert ask(ran, "w").finding.code == "grad_none_returned_none"
    assert ask(ran, "w").finding.line is not None
    assert ask(ran, "other").finding.code == "grad_none_not_reached"


def test_before_backward_it_says_so() -> None:
    a = leaf()
    assert ask(graph((a * 2).sum(), names={"a": a}), "a").finding.code == "grad_none_not_run"


def test_parameters_and_containers_can_be_asked_for() -> None:
    net = nn.Linear(2, 2)
    net.bias.requires_grad_(False)
    kept = [torch.ones(2)]
    variables = {"net": net, "kept": kept}
    value = graph(net(torch.ones(2)).sum(), names=variables)
    assert {"weight", "bias", "kept[0]"} <= set(askable(value, variables))
    assert ask(value, "bias", variables).finding.code == "grad_none_not_required"
    assert ask(value, "kept[0]", variables).finding.code == "grad_none_not_required"
