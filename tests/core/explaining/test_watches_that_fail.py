"""An error of ours in any note that a watch or a recorder takes: the program's numbers and its end stay the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from injected import broken
from torch import nn

import nbautograd
from nbautograd.core import stumbles
from nbautograd.core.explaining.optimizer_steps import StepWatch
from nbautograd.core.explaining.trial import GradientWatch
from nbautograd.core.explaining.watch import Watch
from nbautograd.core.recording import api, recorder

# each method by which a watch takes a note, whatever it will be called
NOTES = [(owner, name) for owner in (Watch, StepWatch) for name in vars(owner) if name.startswith("_note")]
SELDOM = {"_note_bad", "_note_leaving", "_note_left"}  # of NaN, of numbers that leave torch


def program() -> list[torch.Tensor]:
    """Train two steps with all that a watch notes: parameters, modules, switches, writes, an optimizer."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
    scale = nn.Parameter(torch.ones(1, requires_grad=True) * 2)
    optimizer = torch.optim.SGD([*model.parameters()], lr=0.1)
    with torch.no_grad():
        model[0].weight.mul_(0.5)
    model[2].bias.requires_grad_(False)
    model[2].bias.data = torch.zeros(1)
    for _ in range(2):
        optimizer.zero_grad()
        (model(torch.ones(2, 3)) * scale).sum().backward()
        optimizer.step()
    return [*model.parameters(), scale]


@pytest.fixture(scope="module")
def expected() -> list[torch.Tensor]:
    return program()


@pytest.mark.parametrize(("owner", "name"), NOTES, ids=[f"{owner.__name__}.{name}" for owner, name in NOTES])
def test_a_watched_program_goes_on(owner: Any, name: str, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, broken("core/explaining/injected.py"))
    with GradientWatch().on() if owner is Watch else StepWatch({}):
        found = program()
    assert all(map(torch.equal, found, expected))
    assert {one.where for one in stumbles.recent()} <= {"core/explaining/injected.py:2 broken"}
    assert stumbles.recent() or name in SELDOM
    stumbles.forget()


Square = Fn.of("Square", "x: save(x); return x * x", "g: (x,) = saved; return 2 * x * g")


HOOKS = [
    (cls, name)
    for cls in (recorder.MethodRecorder, recorder.ForwardRecorder, recorder.BackwardRecorder)
    for name in ("arguments", "argument_snapshots", "link", "observe", "leave")
    if name in vars(cls)
]


@pytest.mark.parametrize(("owner", "name"), HOOKS, ids=[f"{owner.__name__}.{name}" for owner, name in HOOKS])
def test_a_recorded_call_goes_on(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, broken("core/recording/injected.py"))
    monkeypatch.setattr(api._recorder, "errors", {})  # of this test alone
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    with nbautograd.recording(Square):
        y = Square.apply(x)
        y.sum().backward()
    assert y.tolist() == [9.0, 16.0]
    assert x.grad.tolist() == [6.0, 8.0]
    used = owner is not recorder.MethodRecorder or name in ("arguments", "argument_snapshots")
    assert bool(stumbles.recent()) or not used
    stumbles.forget()
