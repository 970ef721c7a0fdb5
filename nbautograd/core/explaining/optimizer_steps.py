"""The steps of optimizers in a watched run: what each holds, and which parameters with a gradient none of them does."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from nbautograd.core.explaining.cause import ErrorCause, Place, finding
from nbautograd.core.explaining.program import Program, place_of, users_frame
from nbautograd.core.explaining.watch import CLOCK, Spot, Watch, line_here, noted
from nbautograd.core.graphs.names import variables_of
from nbautograd.core.stumbles import hands_over

MOST_NAMED = 4  # parameters in one sentence


class StepWatch:
    """Sees the steps of all optimizers while it is entered.

    Args:
        leaves: identity -> leaf that some backward reached so far; read at each step.
    """

    def __init__(self, leaves: dict[int, torch.Tensor]) -> None:
        self._leaves = leaves
        self._held: dict[int, Spot | None] = {}  # by identity, the line that steps with it
        self._left_out: dict[int, tuple[str, Place, torch.Tensor, torch.optim.Optimizer]] = {}
        self._served: set[int] = set()  # by identity, what had a gradient at some step
        self._idle: dict[int, tuple[str, Place, torch.Tensor, torch.optim.Optimizer]] = {}  # what had none at one
        self._created: weakref.WeakKeyDictionary[torch.optim.Optimizer, tuple[int, Spot | None]] = (
            weakref.WeakKeyDictionary()
        )
        self._handle: Any = None
        self._init: Any = None

    def __enter__(self) -> StepWatch:
        self._handle = register_optimizer_step_pre_hook(partial(noted, self._note))
        self._init = init = torch.optim.Optimizer.__init__

        @hands_over
        def created(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            self._created.setdefault(optimizer, (next(CLOCK), line_here()))
            init(optimizer, *args, **kwargs)

        torch.optim.Optimizer.__init__ = created  # type: ignore[method-assign,assignment]  # torch has no hook for it
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()
        torch.optim.Optimizer.__init__ = self._init  # type: ignore[method-assign]

    def _note(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        spot = line_here()
        held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._held |= {id(parameter): spot for parameter in held}
        self._served |= {id(parameter) for parameter in held if parameter.grad is not None}
        new = [p for p in held if p.requires_grad and id(p) not in self._served and id(p) not in self._idle]
        others = [t for key, t in self._leaves.items() if key not in self._held and isinstance(t, nn.Parameter)]
        others = [parameter for parameter in others if parameter.grad is not None]
        frame = users_frame()
        if frame is None or not (others or new):
            return
        program = Program(scope=variables_of(frame))
        place = place_of(frame.f_code, frame.f_lineno, frame.f_globals)
        for notes, parameters in ((self._left_out, others), (self._idle, new)):
            for parameter in parameters:
                if (name := program.name_of(parameter)) or notes is self._idle:
                    notes.setdefault(id(parameter), (name, place, parameter, optimizer))

    def holds(self, tensor: Any) -> bool:
        """Return True for a tensor that an optimizer which stepped is to change."""
        return id(tensor) in self._held

    def stepped_at(self, tensor: torch.Tensor) -> Place | None:
        """Return the line at which an optimizer stepped that holds a tensor."""
        spot = self._held.get(id(tensor))
        return None if spot is None else spot.place()

    def cause(self, watch: Watch) -> ErrorCause | None:
        """Return which parameters had a gradient at a step and were held by no optimizer that stepped."""
        left = [where for key, where in self._left_out.items() if key not in self._held]
        if not left:
            return None
        newer = [where for where in left if self._is_newer(where, watch)]
        name, did, parameter, optimizer = (newer or left)[0]
        names = "`, `".join([*dict.fromkeys(name for name, *_ in newer or left)][:MOST_NAMED])
        shown: dict[str, Any] = {"name": names, "line": did.line, "text": did.text}
        made, placed, spot = watch.created_by(parameter), watch.placed_by(parameter), self._creation(optimizer)[1]
        what = finding("optimizer_left_out.what", did, **shown)
        if spot is not None:
            did = spot.place()
            what = finding("optimizer_left_out.created", did, **shown, created=did.line)
        if spot is not None and newer and placed is not None:
            placing = {"placed": placed.line, "by": placed.text}
            what = finding("optimizer_left_out.before", placed, **shown, created=did.line, **placing)
            did = placed
        return ErrorCause("optimizer_holds_others", (what, finding("optimizer_left_out.rule")), name, made, did)

    def idle(self) -> Iterator[tuple[str, Place, torch.Tensor]]:
        """Yield what an optimizer held at a step and never had a gradient at one: its name, the line, the tensor."""
        yield from (where[:3] for key, where in self._idle.items() if key not in self._served)

    def _creation(self, optimizer: torch.optim.Optimizer) -> tuple[int, Spot | None]:
        return self._created.get(optimizer, (-1, None))

    def _is_newer(self, where: tuple[str, Place, torch.Tensor, torch.optim.Optimizer], watch: Watch) -> bool:
        """Return True for a parameter that no module had when the optimizer was created."""
        tick = self._creation(where[3])[0]
        return bool(0 <= tick < watch.ages.get(where[2], -1))
