"""Why is this grad None, asked of plain data by name: every kind of cut, and tensors that have a gradient."""

from __future__ import annotations

import copy
import pickle
import weakref
from typing import Any

import pytest
import torch
from fn import Fn
from torch import nn

from nbautograd.core.graphs.backward import backward
from nbautograd.core.graphs.build import graph
from nbautograd.core.graphs.why_none import ask, askable

Silent = Fn.of("Silent", "x, w: return x * w", "grad_output: return grad_output, None")


def leaf() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


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
        ("a", "not_a_part", "unused"), ("b", "has", None), ("n", "integer", "integer"),
        ("x", "not_required", "not_required"), ("y", "not_a_leaf", None), ("nowhere", "unknown", None),
    ],
)  # fmt: skip
def test_every_tensor_has_its_reason(cut: Any, name: str, code: str, ghost: str | None) -> None:
    value, _ = cut
    answer = ask(value, name)
    assert answer.finding.code == f"grad_none_{code}"
    assert answer.finding.params["name"] == name
    assert (answer.ghost and answer.ghost.reason) == ghost
    assert (answer.node is None) == (ghost is not None or name == "nowhere")


def test_a_name_that_was_given_to_another_tensor_since_keeps_its_first_meaning() -> None:
    variables = {"a": leaf(), "b": leaf()}
    a = variables["a"]
    value = graph((a * 2).sum(), names=variables)
    variables["a"] = torch.arange(3)
    assert ask(value, "a").finding.code == "grad_none_not_run"
    a.grad = torch.ones(3)
    assert ask(value, "a").finding.code == "grad_none_has"


def test_a_tensor_that_is_gone_is_no_longer_known() -> None:
    def made() -> Any:
        a, n, unused = leaf(), torch.arange(3), leaf()
        return graph((a * n).sum(), names={"a": a, "n": n, "unused": unused})

    value = made()
    assert {name: ask(value, name).finding.code for name in ("a", "n", "unused")} == {
        "a": "grad_none_unknown",
        "n": "grad_none_unknown",
        "unused": "grad_none_not_a_part",  # which the graph itself shows
    }


def test_the_tensors_are_neither_kept_alive_nor_stored() -> None:
    a = leaf()
    value = graph((a * 2).sum(), names={"a": a})
    for copied in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert copied == value
        assert ask(copied, "a").finding.code == "grad_none_unknown"
    assert "tensors" not in value.to_dict()
    reference = weakref.ref(a)
    del a
    assert reference() is None


def test_a_gradient_that_was_removed_since() -> None:
    a = leaf()
    ran = backward((a * 2).sum(), names={"a": a})
    assert ask(ran, "a").finding.code == "grad_none_has"
    a.grad = None
    assert ask(ran, "a").finding.code == "grad_none_removed"


def test_a_tensor_that_retains_its_gradient_is_a_part() -> None:
    a = leaf()
    y = a * 2
    y.retain_grad()
    loss = y.sum()
    assert ask(graph(loss, names={"y": y, "a": a}), "y").finding.code == "grad_none_not_run"
    loss.backward()
    assert ask(graph(loss, names={"y": y, "a": a}), "y").finding.code == "grad_none_has"


@pytest.mark.usefixtures("saved_tensors_shown")
def test_what_no_node_uses_hangs_on_the_op_that_saved_it(cut: Any) -> None:
    value, _ = cut
    ghost = ask(value, "x").ghost
    assert ghost.node is not None
    assert value.nodes[ghost.node].name == "MulBackward0"


def test_none_returned_and_not_reached() -> None:
    x, w, other = leaf(), leaf(), leaf()
    loss = (Silent.apply(x, w) * other).sum()
    ran = backward(loss, names={"x": x, "w": w, "other": other, "loss": loss}, inputs=[x, w])
    assert ask(ran, "w").finding.code == "grad_none_returned_none"
    assert ask(ran, "w").finding.line is not None
    assert ask(ran, "other").finding.code == "grad_none_not_reached"


def test_parameters_and_containers_can_be_asked_for() -> None:
    net = nn.Linear(2, 2)
    net.bias.requires_grad_(False)
    kept = [torch.ones(2)]
    variables = {"net": net, "kept": kept}
    value = graph(net(torch.ones(2)).sum(), names=variables)
    assert {"weight", "bias", "kept[0]"} <= set(askable(value))
    assert ask(value, "bias").finding.code == "grad_none_not_required"
    assert ask(value, "kept[0]").finding.code == "grad_none_not_required"
