"""What the source of a Function tells."""

from __future__ import annotations

import ast
import inspect
import linecache

import pytest
import recorded_functions as functions
import torch
from fn import Fn

from nbautograd.core import user_source
from nbautograd.core.recording.record import value_around
from nbautograd.core.user_source import closure, methods_of, read_source, returned


def line_of(text):
    lines = inspect.getsource(functions).splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


def test_names_of_a_combined_function():
    source = read_source(functions.Linear)
    assert source.style == "combined"
    assert source.inputs == ("input", "weight", "bias")
    assert source.saved == ("input", "weight", "bias")
    assert source.grad_outputs == ("grad_output",)
    assert [o.name for o in source.outputs] == ["output"]
    assert source.first_line == line_of("class Linear")
    assert source.lines["backward"] == line_of("def backward(ctx, grad_output)")


def test_gradients_with_their_last_assignment():
    weight = read_source(functions.Linear).gradients[1]
    assert (weight.name, weight.expression) == ("grad_weight", "input.t().mm(grad_output)")
    assert weight.line == line_of("grad_weight = input.t()")


def test_of_a_starred_value_and_those_after_it_only_the_line_is_known():
    class Recomputed(Fn):
        def backward(ctx, g):
            return 2 * g, *torch.autograd.grad(ctx.y, ctx.args, g), None

    gradients = read_source(Recomputed).gradients
    assert [g.expression for g in gradients] == ["2 * g", None, None]
    assert len({g.line for g in gradients}) == 1


class Branches(torch.autograd.Function):
    @staticmethod
    def backward(ctx, g):
        first = g * 2
        if ctx.wide:
            second = g * 3
            third = g * 4
            first = first.sum(0)
            return first, second, third, g * 5
        else:  # noqa: RET505 - a second arm is what this is about
            second = g * 6
        third = g * 7
        return first, second, third, None


def test_what_differs_from_branch_to_branch_has_no_line_before_it_ran():
    first, second, third, fourth = read_source(Branches).gradients
    begin = Branches.backward.__code__.co_firstlineno + 1
    assert {g.line for g in (first, second, third)} == {None}
    assert (second.name, fourth.expression) == ("second", "g * 5")
    function = methods_of(Branches).tree("backward")
    for ran, expressions in (
        (range(begin, begin + 7), ["first.sum(0)", "g * 3", "g * 4", "g * 5"]),
        ([begin, begin + 1, begin + 2, *range(begin + 8, begin + 11)], ["g * 2", "g * 6", "g * 7", "None"]),
    ):
        assert [g.expression for g in returned(function, ran)] == expressions


def test_a_subclass_without_methods_is_read_from_its_base():
    class Child(functions.Linear):
        pass

    source = read_source(Child)
    assert (source.name, source.inputs) == ("Child", ("input", "weight", "bias"))


def test_a_cell_is_read_from_linecache():
    name, text = (
        "<cell 7>",
        "class Made(Base):\n    @staticmethod\n    def forward(ctx, here):\n        return here * 2\n",
    )
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    made = {"Base": torch.autograd.Function}
    exec(compile(text, name, "exec"), made)
    source = read_source(made["Made"])
    assert (source.file, source.first_line, source.inputs) == (name, 1, ("here",))


def test_variables_around_a_function_leave_out_those_not_yet_set():
    factor = 2

    def scaled(x):
        return later * factor * x

    before = closure(scaled), value_around(scaled, "later"), value_around(scaled, "torch")
    later = 3
    assert before == ({"factor": 2}, None, torch)
    assert closure(scaled) == {"factor": 2, "later": 3}
    assert closure(torch.sin) == {}


def test_one_thread_parses_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "parse", lambda text: user_source._parser._is_owned())
    assert user_source.parse("x")
