"""The checks, one routine each: an Attempt goes in, a Failure comes out for everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import context, custom, derivatives, gradient, own_function, values
from nbautograd.course.exercise import Failure

ROUTINES: dict[str, Callable[[Attempt], Iterator[Failure]]] = {
    "value": values.value,
    "gradient": gradient.gradient,
    "edges": values.edges,
    "own_function": own_function.own_function,
    "double_backward": derivatives.double,
    "forward_mode": derivatives.forward_mode,
    "vmap": derivatives.batched,
    "kinks": gradient.kinks,
    "context": context.context,
    "cost": context.cost,
    "custom": custom.custom,
}
