"""The steps of optimizers in a watched run: what each holds, and which parameters with a gradient none of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from nbautograd.core.explaining.cause import ErrorCause, SourceLine, finding
from nbautograd.core.explaining.program import Program, place_of, users_frame
from nbautograd.core.explaining.watch import noted
from nbautograd.core.graphs.names import variables_of

MOST_NAMED = 4  # parameters in one sentence


class StepWatch:
    """Sees the steps of all optimizers while it is entered.

    Args:
        leaves: identity -> reference to a leaf that some backward reached so far; read at each step.
    """

    def __init__(self, leaves: Mapping[int, Callable[[], Any]]) -> None:
        self._leaves = leaves
        self._held: set[int] = set()  # by identity, what an optimizer that stepped is to change
        self._left_out: dict[int, tuple[str, SourceLine, torch.Tensor]] = {}
        self._served: set[int] = set()  # by identity, what had a gradient at some step
        self._idle: dict[int, tuple[str, SourceLine, torch.Tensor]] = {}  # what had none at one
        self._handle: Any = None

    def __enter__(self) -> StepWatch:
        self._handle = register_optimizer_step_pre_hook(partial(noted, self._note))
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()

    def _note(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._held |= {*map(id, held)}
        self._served |= {id(parameter) for parameter in held if parameter.grad is not None}
        new = [p for p in held if p.requires_grad and id(p) not in self._served and id(p) not in self._idle]
        others = [ref() for key, ref in self._leaves.items() if key not in self._held]
        others = [leaf for leaf in others if isinstance(leaf, nn.Parameter)]
        others = [parameter for parameter in others if parameter.grad is not None]
        frame = users_frame()
        if frame is None or not (others or new):
            return
        program = Program(scope=variables_of(frame))
        place = place_of(frame.f_code, frame.f_lineno, frame.f_globals)
        for notes, parameters in ((self._left_out, others), (self._idle, new)):
            for parameter in parameters:
                if (name := program.name_of(parameter)) or notes is self._idle:
                    notes.setdefault(id(parameter), (name, place, parameter))

    def holds(self, tensor: Any) -> bool:
        """Return True for a tensor that an optimizer which stepped is to change."""
        return id(tensor) in self._held

    def cause(self) -> ErrorCause | None:
        """Return which parameters had a gradient at a step and were held by no optimizer that stepped."""
        left = [where for key, where in self._left_out.items() if key not in self._held]
        if not left:
            return None
        did = left[0][1]
        names = "`, `".join([*dict.fromkeys(name for name, *_ in left)][:MOST_NAMED])
        what = finding("optimizer_left_out.what", did, name=names, line=did.line, text=did.text)
        return ErrorCause("optimizer_holds_others", (what, finding("optimizer_left_out.rule")), left[0][0], None, did)

    def idle(self) -> Iterator[tuple[str, SourceLine, torch.Tensor]]:
        """Yield what an optimizer held at a step and never had a gradient at one: its name, the line, the tensor."""
        yield from (where for key, where in self._idle.items() if key not in self._served)
