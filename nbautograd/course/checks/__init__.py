"""The checks, one routine each: an Attempt goes in, a Failure comes out for everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import context, custom, derivatives, gradients, returned_gradients, uses_function, values
from nbautograd.course.exercise import Failure

ROUTINES: dict[str, Callable[[Attempt], Iterator[Failure]]] = {
    "V": values.value,
    "G": gradients.gradient,
    "L": gradients.linear,
    "A": returned_gradients.arity,
    "S": returned_gradients.shapes,
    "M": returned_gradients.unchanged,
    "T": returned_gradients.dtypes,
    "R": returned_gradients.repeatable,
    "N": gradients.subsets,
    "E": values.edges,
    "O": values.optional,
    "D": derivatives.double,
    "F": derivatives.forward_mode,
    "B": derivatives.batched,
    "K": gradients.kinks,
    "C": context.context,
    "W": uses_function.uses_own_function,
    "P": context.cost,
    "Q": custom.custom,
}
