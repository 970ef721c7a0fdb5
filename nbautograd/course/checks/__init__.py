"""The checks, one routine each: an Attempt goes in, a Failure comes out for everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import context, derivatives, gradients, own, returned, through, values
from nbautograd.course.exercise import Failure

ROUTINES: dict[str, Callable[[Attempt], Iterator[Failure]]] = {
    "V": values.value,
    "G": gradients.gradient,
    "L": gradients.linear,
    "A": returned.arity,
    "S": returned.shapes,
    "M": returned.unchanged,
    "T": returned.dtypes,
    "R": returned.repeatable,
    "N": gradients.subsets,
    "E": values.edges,
    "O": values.optional,
    "D": derivatives.double,
    "F": derivatives.forward_mode,
    "B": derivatives.batched,
    "K": gradients.kinks,
    "C": context.context,
    "W": through.through,
    "P": context.cost,
    "Q": own.own,
}
