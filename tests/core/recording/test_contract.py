"""The ctx contract, read and watched."""

from __future__ import annotations

import contextlib

import odd_but_right
import own_mistakes
import pytest
import recorded_functions as functions
import torch
from fn import Fn
from right_functions import RIGHT

from nbautograd import messages
from nbautograd.core.contract.source_rules import read_contract
from nbautograd.core.recording import api as log


def codes(cls):
    return {finding.code for finding in read_contract(cls)}


@pytest.mark.parametrize("cls", [functions.Linear, functions.Cube, functions.Greedy, functions.NumpyOnce])
def test_nothing_to_say_of_what_is_right(cls):
    assert read_contract(cls) == ()


def test_others():
    assert codes(functions.Silent) == {"empty_body"}
    assert codes(functions.Listed) == {"output_not_tensor_tuple"}
    assert codes(functions.Numpy) == {"numpy_in_backward"}
    assert codes(Fn.of("Twice", "x: save(x); save(2 * x); return 2 * x", "g: return 2 * g")) == {"saved_twice"}


def watched(forward, backward, *inputs):
    made = type(
        "Made", (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )
    with log.recording(made) as calls:
        with contextlib.suppress(RuntimeError):
            made.apply(*inputs).pow(2).sum().backward()
    return {w.code for c in calls for w in c.warnings}, [w.message for c in calls for w in c.warnings]


def x():
    return torch.ones(3, dtype=torch.float64, requires_grad=True)


def double(ctx, x, *_):
    return x * 2


def kept(ctx, x):
    ctx.x = x
    return x * 2


def output_kept(ctx, x):
    ctx.y = x * 2
    return ctx.y


def output_memory_kept(ctx, x):  # as those that differentiate within forward do
    ctx.y = x * 2
    return ctx.y.detach()


WATCHED = {
    "mutates_grad_output": (double, lambda ctx, g: g.mul_(2), x),
    "mutates_input": (lambda ctx, x: x.mul_(1).clone(), lambda ctx, g: g, lambda: x() * 1),
    "output_aliases_input": (lambda ctx, x: x.detach(), lambda ctx, g: g, x),
    "tensor_on_ctx": (kept, lambda ctx, g: g * 2, x),
    "output_on_ctx": (output_kept, lambda ctx, g: g * 2, x),
    "wrong_number_of_gradients": (double, lambda ctx, g: (g, g), x),
    "returns_none": (double, lambda ctx, g: None, x),
    "gradient_not_a_tensor": (double, lambda ctx, g: 2.0, x),
    "grad_dtype_cast": (double, lambda ctx, g: g.float(), x),
    "grad_shape_reduced": (double, lambda ctx, g: g.expand(4, 3), x),
    "wrong_gradient_shape": (double, lambda ctx, g: g[:2], x),
    "returns_nonfinite": (double, lambda ctx, g: g / 0, x),
}


@pytest.mark.parametrize("code", WATCHED)
def test_watched(code):
    forward, backward, make = WATCHED[code]
    found, sentences = watched(forward, backward, make())
    assert found == {code}
    assert all(sentences)


def test_watched_arguments():
    assert watched(double, lambda ctx, g: (g, g), x(), 3.0)[0] == {"gradient_for_non_tensor"}
    assert watched(double, lambda ctx, g: (g, g), x(), x().detach())[0] == {"ignores_needs_input_grad"}
    assert watched(double, lambda ctx, g: (g * 2, None), x(), 3.0)[0] == set()
    assert watched(lambda ctx, x: x, lambda ctx, g: g, x())[0] == set()
    assert watched(output_memory_kept, lambda ctx, g: g * 2, x())[0] == {"tensor_on_ctx"}
    assert watched(lambda ctx, x: x.mul_(2), lambda ctx, g: g * 2, x() * 1)[0] == {"mutates_input"}


def test_dirty_inputs_are_all_right():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    assert watched(forward, lambda ctx, g: g * 2, x() * 1)[0] == set()


@pytest.mark.parametrize("one", [*own_mistakes.CORRECT, *odd_but_right.CORRECT, *RIGHT], ids=lambda one: one.name)
def test_nothing_that_only_looks_odd_is_a_bug(one):
    cls = getattr(one.fn, "__self__", None)
    assert cls is None or [f.code for f in read_contract(cls) if f.kind == "bug"] == []


def test_every_sentence_can_be_said_in_both_languages():
    findings = [f for cls in vars(functions).values() if isinstance(cls, type) for f in read_contract(cls)
                if issubclass(cls, torch.autograd.Function)]  # fmt: skip
    for language in messages.LANGUAGES:
        messages.set_language(language)
        assert all("{" not in f.message for f in findings)
