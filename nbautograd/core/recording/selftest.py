"""Does an engine record what it should, on this Python and this torch? Asked once, with a Function of our own."""

from __future__ import annotations

from typing import Any

import torch

from nbautograd.core.recording.engine import Engine
from nbautograd.core.recording.recorder import Recorder
from nbautograd.core.recording.ring import Ring
from nbautograd.core.recording.state import Subject
from nbautograd.core.recording.unpacking import unpacked

EXPECTED = ["forward", "setup_context", "backward"]


def works(engine: Engine) -> bool:
    """True when the engine records one forward, setup_context and backward, linked, and leaves no trace."""
    try:
        return _trial(engine)
    except Exception:
        return False


def _trial(engine: Engine) -> bool:
    cls = _probe()
    before = {name: vars(cls)[name] for name in EXPECTED}
    ring = Ring()
    recorder = Recorder(ring)
    engine.install(cls, Subject(cls), recorder)
    try:
        with torch.enable_grad():
            x = torch.ones((), dtype=torch.float64, requires_grad=True)
            torch.autograd.grad(cls.apply(x), x)  # type: ignore[attr-defined]
    finally:
        engine.remove(cls)
    records = [unpacked(call) for call in ring.finished()]
    linked = [record.forward for record in records] == [None, records[0].index, records[0].index]
    restored = all(vars(cls)[name] is entry for name, entry in before.items())
    return [r.method for r in records] == EXPECTED and linked and restored and not recorder.errors


def _probe() -> type:
    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x * 3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 3

    return Triple
