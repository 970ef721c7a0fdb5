"""Optimizers: parameters that a backward gives a gradient and that no optimizer's step changes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from nbautograd.core.explaining.cause import ErrorCause, Place, said
from nbautograd.core.explaining.program import Program, place_of, users_frame
from nbautograd.core.graphs.names import variables_of

MOST_NAMED = 4  # parameters in one sentence


class StepWatch:
    """Sees the steps of all optimizers while it is entered.

    Args:
        leaves: identity -> leaf that some backward reached so far; read at each step.
    """

    def __init__(self, leaves: dict[int, torch.Tensor]) -> None:
        self._leaves = leaves
        self._held: set[int] = set()
        self._left_out: dict[int, tuple[str, Place]] = {}
        self._handle: Any = None

    def __enter__(self) -> StepWatch:
        self._handle = register_optimizer_step_pre_hook(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()

    def _note(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._held |= {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        others = [t for key, t in self._leaves.items() if key not in self._held and isinstance(t, nn.Parameter)]
        frame = users_frame()
        if frame is None or not any(t.grad is not None for t in others):
            return
        program = Program(scope=variables_of(frame))
        place = place_of(frame.f_code, frame.f_lineno, frame.f_globals)
        for parameter in others:
            if parameter.grad is not None and (name := program.name_of(parameter)):
                self._left_out.setdefault(id(parameter), (name, place))

    def cause(self) -> ErrorCause | None:
        """Return which parameters had a gradient at a step and were held by no optimizer that stepped."""
        left = [where for key, where in self._left_out.items() if key not in self._held]
        if not left:
            return None
        names, did = ", ".join([*dict.fromkeys(name for name, _ in left)][:MOST_NAMED]), left[0][1]
        what = said("optimizer_left_out.what", did, name=names, line=did.line, text=did.text)
        return ErrorCause("optimizer_holds_others", (what, said("optimizer_left_out.advice")), left[0][0], None, did)
