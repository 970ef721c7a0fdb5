"""The checks, one routine each: an Attempt goes in, a Failure comes out for everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import context, custom, derivatives, gradients, own_function, returned_gradients, values
from nbautograd.course.exercise import Failure

ROUTINES: dict[str, Callable[[Attempt], Iterator[Failure]]] = {
    "value": values.value,
    "gradient": gradients.gradient,
    "linear": gradients.linear,
    "arity": returned_gradients.arity,
    "shapes": returned_gradients.shapes,
    "unchanged": returned_gradients.unchanged,
    "dtypes": returned_gradients.dtypes,
    "repeatable": returned_gradients.repeatable,
    "subsets": gradients.subsets,
    "edges": values.edges,
    "optional": values.optional,
    "double_backward": derivatives.double,
    "forward_mode": derivatives.forward_mode,
    "vmap": derivatives.batched,
    "kinks": gradients.kinks,
    "context": context.context,
    "own_function": own_function.own_function,
    "cost": context.cost,
    "custom": custom.custom,
}
