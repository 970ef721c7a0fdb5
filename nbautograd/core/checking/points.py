"""The stream of points of a problem: its kinds in order, each point made once and for whoever asks.

What is drawn elsewhere with a seed of its own is no point: directions, cotangents and noise at the inputs given, of
the rooms below (``jacobian``, ``steps``, ``directional``, ``backward_lines``), which may not import this one.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor

from nbautograd.core.checking import prepared_inputs
from nbautograd.core.checking.other_arguments import of_one_value, other_arguments, other_data
from nbautograd.core.checking.other_points import (
    Slot,
    alike,
    in_domain,
    in_order,
    nearby_inputs,
    reads_one_triangle,
    resized,
    scattered,
    signed,
    slots,
    stacked,
    thinned,
    with_tied,
)
from nbautograd.core.checking.point import GIVEN, Once, Point, PointKind, PointSource
from nbautograd.core.checking.problem import Problem
from nbautograd.core.forks import cached
from nbautograd.core.numerics import draws

NEARBY = 3  # points of other values in the sizes given
SINGLES = 3  # sets of dimensions that are set to one
DIMENSIONS = 12  # of all inputs, beyond which no larger sets of dimensions are tried


class Points:
    """The points of a problem by kind, each kind made as it is asked for. See ``points``."""

    def __init__(self, problem: Problem, turn: int = 0) -> None:
        self.problem, self._turn = problem, turn
        self._known: dict[str, Once[Point]] = {}

    def of(self, *kinds: str) -> Iterator[Point]:
        """Yield the points of these kinds, one kind after the other."""
        return itertools.chain.from_iterable(map(self._once, kinds))

    def first(self, kind: str, number: int = 0) -> Point | None:
        """Return one point of a kind; None where there is none."""
        return next(itertools.islice(self._once(kind), number, None), None)

    @cached
    def again(self) -> Points:
        """The same kinds with other values."""
        return Points(self.problem, self._turn + 1)

    @cached
    def symmetric(self) -> frozenset[int]:
        """Numbers of the differentiable inputs that forward reads as symmetric matrices."""
        positions = enumerate(self.problem.differentiable)
        return frozenset(k for k, position in positions if reads_one_triangle(self.problem, position))

    def _once(self, kind: str) -> Once[Point]:
        if kind not in self._known:
            self._known[kind] = Once(KINDS[kind][1](self, self._source(kind)))
        return self._known[kind]

    def _source(self, kind: str) -> PointSource:
        seed = draws.child(self.problem.seed, kind, self._turn)
        return PointSource(self.problem, KINDS[kind][0], seed, self.symmetric, self._fair)

    def _fair(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inputs, symmetric (complex ones Hermitian) where forward reads them so, bounds in their order."""
        made, differentiable = list(inputs), self.problem.differentiable
        for position in (differentiable[k] for k in self.symmetric):
            x = made[position].detach()
            square = x.dim() > 1 and x.shape[-1] == x.shape[-2]
            made[position] = (x + x.mH).div(2).requires_grad_() if square else made[position]
        return in_order(self.problem, tuple(made))

    @cached
    def groups(self) -> Once[tuple[tuple[Slot, ...], Point]]:
        """The smallest sets of dimensions that can change together, with the first point at which they do."""
        return Once(groups(self._source("single")))


def points(problem: Problem) -> Points:
    """Return the stream of a problem's points: the same objects for whoever asks, until its session ends."""
    if not isinstance(problem.stream, Points):
        problem.stream = Points(problem)
    return problem.stream


def _drawn(source: PointSource, inputs: Callable[[Problem, int], tuple[Any, ...]]) -> Iterator[Point]:
    return (source.point(inputs(source.problem, draws.child(source.seed, k))) for k in range(NEARBY))


def _working(made: Iterable[Point | None]) -> Iterator[Point]:
    return (point for point in made if point is not None and point.works)


def _steps(sizes: set[int]) -> tuple[int, ...]:
    """Return the changes of sizes to try: a rotation by halves, or by pairs, means nothing at an odd size."""
    return (1, -1) if any(size % 2 for size in sizes) else (2, 1, -1)


def _of_other_size(source: PointSource, group: tuple[Slot, ...], changes: tuple[int, ...] = ()) -> Point | None:
    """Return a point with some sizes changed by the first number that the forward takes; None where it takes none.

    Arguments that are the size of one of these dimensions, or have so many items, are changed with them where the
    forward does not take them as they are.
    """
    problem = source.problem
    sizes = {problem.inputs[i].shape[d] for i, d in group}
    for change in changes or _steps(sizes):
        for moved in dict.fromkeys((group, with_tied(problem.inputs, group))):
            made = (
                source.working(resized(problem.inputs, moved, change, source.seed)) if min(sizes) + change > 0 else None
            )
            if made is not None:
                return made
    return None


def groups(source: PointSource) -> Iterator[tuple[tuple[Slot, ...], Point]]:
    """Yield the smallest sets of dimensions that can change together, with a point: by one, double, or less one."""
    problem = source.problem
    left, free = slots(problem), list[Slot]()
    for count in (1, 2, 3):
        for group in itertools.combinations([s for s in left if s not in free], count):
            sizes = {problem.inputs[i].shape[d] for i, d in group}
            if len(sizes) > 1 or _torn(problem, group, left):
                continue
            *steps, smaller = _steps(sizes)
            for change in (*steps, *sizes - {0, *steps}, *({smaller} if min(sizes) > 1 else ())):
                made = source.working(resized(problem.inputs, group, change, source.seed))
                if made is not None:
                    free.extend(group)
                    yield group, made
                    break
        if len(left) > DIMENSIONS:
            return


def _torn(problem: Problem, group: tuple[Slot, ...], left: list[Slot]) -> bool:
    """Return True where indices or masks would get another size than what they belong to."""
    size = problem.inputs[group[0][0]].shape[group[0][1]]
    same = {s for s in left if problem.inputs[s[0]].shape[s[1]] == size}
    fixed = {s for s in same if not problem.inputs[s[0]].is_floating_point() and not problem.inputs[s[0]].is_complex()}
    return bool(fixed) and fixed != same and (not fixed <= set(group) or set(group) <= fixed)


def _ones(stream: Points, source: PointSource) -> Iterator[Point]:
    some = itertools.islice(stream.groups, SINGLES)
    return _working(source.point(resized(source.problem.inputs, group, 0, source.seed)) for group, _ in some)


def _doubled(stream: Points, source: PointSource) -> Iterator[Point]:
    """Yield points with one size doubled at a time, as few dimensions as the forward allows: none of size one."""
    for group, _ in itertools.islice(stream.groups, 2 * SINGLES):
        size = source.problem.inputs[group[0][0]].shape[group[0][1]]
        if size > 1:
            yield from _working((source.point(resized(source.problem.inputs, group, size, source.seed)),))


def _unseen(stream: Points, source: PointSource) -> Iterator[Point]:
    """Yield the points at which a fix is verified at last: at these and larger sizes that no edit was tried at.

    Their values are small, usual and large, of both signs, and zero.
    """
    problem, seed = source.problem, source.seed
    grown = [g for g in (_of_other_size(source, group, (4,)) for group in alike(problem)) if g is not None]
    yield from (source.point(nearby_inputs(problem, draws.child(seed, k))) for k in (0, 1))
    yield from grown
    yield source.point(problem.changed_inputs(thinned, inputs=nearby_inputs(problem, draws.child(seed, 2))))
    generator = draws.generator(seed, "unseen")
    for inputs, scale in itertools.product([problem.inputs, *(g.inputs for g in grown)], (0.4, 1.0, 2.5)):
        yield source.point(problem.changed_inputs(lambda x, s=scale: signed(x, generator, s), inputs=inputs))  # type: ignore[misc]


def _bounds(stream: Points, source: PointSource) -> Iterator[Point]:
    """Yield points on both sides of what elements may be compared with: broken numbers among the arguments.

    Of two of these also the product and the quotients: ``beta * x > threshold``.
    """
    generator = draws.generator(source.seed, "bounds")
    for at in itertools.chain(stream.of("given", "argument"), stream.again.of("argument")):
        given = [*at.inputs, getattr(at.problem.fn, "value", None)]
        known = {abs(n) for n in given if type(n) is float and n and math.isfinite(n)}
        bounds = known | {n for a, b in itertools.permutations(known, 2) for n in (a * b, a / b)}
        for _ in range(2 if known else 0):
            inputs = at.problem.changed_inputs(lambda x, b=bounds: scattered(x, b, generator), inputs=at.inputs)  # type: ignore[misc]
            yield source.point(inputs, at.problem)


def other_dimensions(source: PointSource, problem: Problem, given: tuple[Any, ...]) -> Iterator[Point]:
    """Yield points of which some inputs have one dimension more or less in front: those that require grad, all, or one.

    The dimension is of two elements; of an input alone also of as many as another one has in front. An input alone a
    Function may not have been written for.
    """
    tensors = tuple(i for i, x in enumerate(problem.inputs) if isinstance(x, Tensor))
    for which in dict.fromkeys((problem.differentiable, tensors, *((i,) for i in tensors))):
        beside = (x.shape[0] for i, x in enumerate(problem.inputs) if i in tensors and i not in which and x.dim())
        for count in dict.fromkeys((2, 0, *(beside if len(which) == 1 else ()))):
            if all(count or (given[i].dim() > 1 and len(given[i])) for i in which):
                inputs = (
                    prepared_inputs.copy(x) if i not in which else stacked(x, count) if count else _first(x)
                    for i, x in enumerate(given)
                )
                alone = which not in (problem.differentiable, tensors)
                made = source.working(inputs, problem, kind=RANKED_ALONE if alone else source.kind)
                if made is not None:
                    yield made


def _first(item: Tensor) -> Tensor:
    return item[0].detach().clone().requires_grad_(item.requires_grad)


def _ranked_far(stream: Points, source: PointSource) -> Iterator[Point]:
    """Yield a point with a dimension more or less for each with another argument: there forward may never end."""
    for at in stream.of("far", "argument"):
        yield from itertools.islice(other_dimensions(source, at.problem, at.inputs), 1)


RANKED_ALONE = PointKind("ranked", ranked=True, far=True, foreign=True)
# in the order of how sure a wrong gradient there is a mistake
KINDS: dict[str, tuple[PointKind, Callable[[Points, PointSource], Iterator[Point]]]] = {
    kind.name: (kind, generator)
    for kind, generator in (
        (GIVEN, lambda stream, s: iter((s.point(s.problem.fresh()),))),
        (PointKind("near"), lambda stream, s: _drawn(s, nearby_inputs)),
        # of both signs, where the inputs have both
        (PointKind("signed"), lambda stream, s: _drawn(s, in_domain)),
        (PointKind("argument"), lambda stream, s: other_arguments(s)),
        (PointKind("data"), lambda stream, s: other_data(s)),
        (PointKind("together"), lambda stream, s: _working(_of_other_size(s, group) for group in alike(s.problem))),
        (PointKind("single", far=True), lambda stream, s: (point for _, point in stream.groups)),
        (PointKind("one", far=True), _ones),
        (PointKind("doubled", sized=True), _doubled),
        # three times as large, where a mask is another
        (PointKind("larger"), lambda stream, s: _drawn(s, functools.partial(in_domain, scale=3.0))),
        (PointKind("unseen", far=True), _unseen),
        (PointKind("bounds", far=True), _bounds),
        (PointKind("one value", far=True, foreign=True), lambda stream, s: of_one_value(s)),
        (
            PointKind("ranked", ranked=True, far=True),
            lambda stream, s: other_dimensions(s, s.problem, nearby_inputs(s.problem, s.seed)),
        ),
        # what forward may not have been written for: there it may never end
        (PointKind("far", far=True, foreign=True), lambda stream, s: other_arguments(s, far=True)),
        (PointKind("ranked far", ranked=True, far=True, foreign=True), _ranked_far),
    )
}
