"""Instance-style Functions: recognised and rewritten so that they run and pass gradcheck."""

from __future__ import annotations

import recorded_functions as functions
import torch
from hypothesis import given
from hypothesis import strategies as st

from nbautograd import gradcheck
from nbautograd.core.contract.source_rules import read_contract
from nbautograd.core.migration import migrate, recognise


def rewritten(cls):
    legacy = recognise(cls)
    made = dict(vars(functions))
    exec(legacy.migrated, made)
    return made[cls.__name__], legacy


def leaf(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_linear_keeps_its_comments():
    cls, legacy = rewritten(functions.OldLinear)
    assert legacy.after == "OldLinear.apply(input, weight, bias)"
    assert "# bias is an optional argument" in legacy.migrated
    assert torch.autograd.gradcheck(cls.apply, (leaf(2, 3), leaf(4, 3), leaf(4)))
    assert torch.autograd.gradcheck(cls.apply, (leaf(2, 3), leaf(4, 3)))


def test_the_finding():
    (finding,) = read_contract(functions.Scale)
    assert (finding.code, finding.kind) == ("legacy", "bug")
    assert "Scale.apply(x, factor, offset)" in finding.message
    assert finding.fix.source == recognise(functions.Scale).migrated


def test_a_check_of_what_torch_no_longer_runs_is_wrong_and_raises_nothing():
    report = gradcheck(lambda x: functions.Scale(2.0, 0.5)(x), leaf(3))
    assert (report.verdict, [f.code for f in report.findings]) == ("wrong", ["legacy"])
    assert report.findings[0].fix.source == recognise(functions.Scale).migrated


@given(st.text(max_size=200))
def test_any_text_is_survived(text):
    migrate(text, "X")


@given(extra=st.integers(0, 3), inputs=st.integers(1, 3), defaults=st.booleans(), literal=st.booleans())
def test_made_up_old_functions_run(extra, inputs, defaults, literal):
    constants = [f"c{i}" for i in range(extra)]
    names = [f"x{i}" for i in range(inputs)]
    text = "class Old(torch.autograd.Function):\n"
    if extra:
        text += f"    def __init__(self, {', '.join(constants)}):\n"
        text += "".join(f"        self.{c} = {c}\n" for c in constants)
    signature = ", ".join([*names[:-1], names[-1] + ("=None" if defaults and inputs > 1 else "")])
    factor = " * ".join([*(f"self.{c}" for c in constants), "2"])
    gradients = ", ".join([f"g * {factor}"] * inputs)
    text += f"    def forward(self, {signature}):\n        return ({' + '.join(names)}) * {factor}\n"
    text += "    def backward(self, g):\n"
    text += (
        f"        return {gradients}\n"
        if literal or inputs == 1
        else f"        r = [{gradients}]\n        return tuple(r)\n"
    )
    migration = migrate(text, "Old")
    made = {"torch": torch}
    exec(migration.source, made)
    xs = tuple(leaf(2) for _ in names)
    assert torch.autograd.gradcheck(made["Old"].apply, (*xs, *(1.5 for _ in constants)))
