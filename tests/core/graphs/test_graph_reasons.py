"""Why a gradient is None: each reason in a sentence that names it."""

from __future__ import annotations

import string

import graph_models as models
import pytest
import torch

import nbautograd
from nbautograd import messages


def leaf():
    return torch.ones(2, requires_grad=True)


def test_integers_have_no_gradient():
    n = torch.arange(3)
    found = nbautograd.why_none(n, n.sum(), names={"n": n})
    assert found.code == "grad_none_integer"
    assert "`n.double().requires_grad_()`" in found.message


def test_a_tensor_that_does_not_require_grad():
    x = torch.ones(2)
    assert nbautograd.why_none(x, (x * leaf()).sum(), names={"x": x}).code == "grad_none_not_required"


def test_a_tensor_that_was_computed():
    y = leaf() * 2
    assert nbautograd.why_none(y, y.sum(), names={"y": y}).code == "grad_none_not_a_leaf"


def test_a_loss_without_a_graph():
    a = leaf()
    assert nbautograd.why_none(a, a.detach().sum(), names={"a": a}).code == "grad_none_no_graph"


def test_a_detached_copy_was_used():
    a, b = leaf(), leaf()
    copy = torch.ones_like(a)
    loss = (copy * b).sum()
    assert nbautograd.why_none(a, loss, names={"a": a, "loss": loss}).what == (
        "`a` is not in the graph of loss: it was not used, or only a detached copy of it was."
    )


def test_backward_has_not_run():
    a = leaf()
    assert nbautograd.why_none(a, (a * 2).sum(), names={"a": a}).code == "grad_none_not_run"


def test_a_function_returned_none():
    a, b = leaf(), leaf()
    loss = models.Nothing.apply(a, b).sum()
    ran = nbautograd.backward(loss, retain_graph=True, names={"a": a, "b": b})
    found = nbautograd.why_none(b, loss, ran=ran, names={"a": a, "b": b})
    assert found.code == "grad_none_returned_none"
    assert found.params == {"name": "b", "source": "Nothing", "argument": "b"}
    assert found.line is not None
    assert nbautograd.why_none(a, loss, ran=ran, names={"a": a, "b": b}) is None


def test_inputs_left_it_out():
    a, b = leaf(), leaf()
    loss = (a * b).sum()
    ran = nbautograd.backward(loss, inputs=[a], retain_graph=True)
    assert nbautograd.why_none(b, loss, ran=ran, names={"b": b}).code == "grad_none_not_reached"


@pytest.mark.parametrize("key", [k for k in messages.catalogue("en") if k.startswith("graphs.")])
def test_both_languages_say_it_with_the_same_words_to_fill_in(key):
    def fields(language):
        return {name for _, name, _, _ in string.Formatter().parse(messages.catalogue(language)[key]) if name}

    assert fields("en") == fields("zh")
