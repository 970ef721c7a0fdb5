"""%%autograd_function over a cell that defines operations of torch.library."""

from __future__ import annotations

import pytest
from said import says
from torch._library.custom_ops import CustomOpDef

import nbautograd

CELL = """\
%%autograd_function {options}
@torch.library.custom_op("nbautograd_cell::{name}", mutates_args=())
def swish(x: torch.Tensor, beta: float) -> torch.Tensor:
    return x * torch.sigmoid(beta * x)

def setup_context(ctx, inputs, output):
    x, ctx.beta = inputs
    ctx.save_for_backward(x)

def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    s = torch.sigmoid(ctx.beta * x)
    return grad * (s + x * s * (1 - s)), None

swish.register_autograd(backward, setup_context=setup_context)
"""


@pytest.fixture
def filled(notebook):
    notebook("a = torch.tensor([0.2, -1.3, 0.7], dtype=torch.double, requires_grad=True)")
    return notebook


@pytest.mark.parametrize("followed", [True, False])  # another torch keeps the functions of an operation elsewhere
def test_without_inputs_it_is_told_how_to_check_it(filled, monkeypatch, followed) -> None:
    if not followed:
        monkeypatch.setattr("nbautograd.core.torch_private.library.looked_before", lambda _: False)
        monkeypatch.setattr("nbautograd.core.recording.api._follow", lambda _: False)
    ran = filled(CELL.format(options="", name=f"told_{followed}"))
    assert "--inputs x, beta" in " ".join(ran.bundles[-1]["text/plain"].split())


def test_calls_in_the_cell_and_after_it_are_on_its_card(filled) -> None:
    ran = filled(CELL.format(options="", name="called") + "swish(a, 2.0).sum().backward()\n")
    text = ran.bundles[-1]["text/plain"]
    assert says(text, "magics.card_called", names="`nbautograd_cell::called`")
    filled("swish(a, 3.0).sum().backward()")
    calls = nbautograd.calls(filled["swish"])
    assert [call.method for call in calls] == ["forward", "setup_context", "backward"] * 2
    assert [call.line for call in calls][:3] == [3, 6, 10]
    assert calls[-1].ctx.attributes["beta"].repr == "3.0"


def test_running_the_cell_again_records_the_new_operation_alone(filled) -> None:
    filled(CELL.format(options="", name="again"))
    old = filled["swish"]
    filled(CELL.format(options="", name="again"))
    new = filled["swish"]
    assert [type(old) is CustomOpDef, type(new) is CustomOpDef] == [True, False]
    filled("swish(a, 2.0).sum().backward()")
    assert len(nbautograd.calls(new)) == 3
    filled("%unload_ext nbautograd")
    assert type(new) is CustomOpDef


def test_a_gradient_that_is_registered_in_a_later_cell_is_recorded_there(filled) -> None:
    cell = CELL.format(options="", name="later")
    definition, _, gradient = cell.partition("def setup_context")
    assert says(filled(definition).text, "magics.no_function")
    ran = filled(f"%%autograd_function\ndef setup_context{gradient}swish(a, 2.0).sum().backward()\n")
    assert says(ran.bundles[-1]["text/plain"], "magics.card_called", names="`nbautograd_cell::later`")
    assert [call.method for call in nbautograd.calls(filled["swish"])] == ["forward", "setup_context", "backward"]


LISTS = """\
%%autograd_function {options}
schema = "(Tensor[] xs, *, float by) -> Tensor"

@torch.library.custom_op("nbautograd_cell::{name}", mutates_args=(), schema=schema)
def joined(xs: list[torch.Tensor], *, by: float) -> torch.Tensor:
    return torch.stack(xs).sum(0) * by

def setup_context(ctx, inputs, keyword_only_inputs, output):
    ctx.count, ctx.by = len(inputs[0]), keyword_only_inputs["by"]

joined.register_autograd(lambda ctx, grad: [grad * ctx.by] * ctx.count, setup_context=setup_context)
joined([a, a], by=2.0).sum().backward()
"""


def test_one_of_lists_and_keywords_is_recorded_and_nothing_is_said_against_it(filled) -> None:
    text = filled(LISTS.format(options="", name="joined")).bundles[-1]["text/plain"]
    assert says(text, "magics.card_called", names="`nbautograd_cell::joined`")
    assert "bug" not in text
    calls = nbautograd.calls(filled["joined"])
    assert [call.method for call in calls] == ["forward", "setup_context", "backward"]
    assert not [warning for call in calls for warning in call.warnings]
