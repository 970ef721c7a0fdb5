"""Other arguments: what is no tensor, or needs no gradient, as something else that is as fair."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking.other_points import nearby_inputs, whole
from nbautograd.core.checking.point import Point, PointSource
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics import draws
from nbautograd.core.stumbles import hands_over, users_errors
from nbautograd.core.torch_private.ctx import apply_replaced


def other_arguments(source: PointSource, far: bool = False) -> Iterator[Point]:
    """Yield points at which an argument that is no tensor is another.

    True becomes False, a whole number, or all of a tuple together, the next and the one before of its sign (not 0: what
    is multiplied by it tells nothing, and below it an index or a size is something else), a whole number also the next
    that is odd or even as it is, any other number half as much again (3 where it is infinite), a string each other one
    that forward or backward compares something with, and each what the code compares its name with, a number or None:
    what is right for ``p=3``, ``correction=1`` or ``dim=1`` alone is not right. Where nothing finite comes out, the
    absolute values of the tensors are tried. Of a callable around one Function the arguments of that Function are
    changed.

    Args:
        source: makes the points.
        far: True for those alone that it may not have been written for: whole numbers of the other sign and 0, tuples
            of these, and tuples reversed or cut.
    """
    others, problem = _far if far else _others, source.problem
    for i, item in enumerate(problem.inputs):
        for value in others(item, problem, problem.input_names[i]):
            inputs = list(nearby_inputs(problem, draws.child(source.seed, i)))
            inputs[i] = value
            made = source.working(inputs)
            if made is not None:
                yield _in_its_domain(source, made)
    if problem.cls is not None and not problem.direct:
        yield from _arguments_inside(source, others)


def _arguments_inside(source: PointSource, others: Callable[[Any, Problem, str], tuple[Any, ...]]) -> Iterator[Point]:
    given: list[tuple[Any, ...]] = []
    problem = source.problem

    @hands_over
    def seen(*args: Any) -> Any:
        given.append(args)
        return apply(*args)

    assert problem.cls is not None
    with apply_replaced(problem.cls, seen) as apply:
        problem.call()
    own = [item for item in problem.inputs if not isinstance(item, Tensor)]  # handed on, and changed from outside
    names = problem.source.inputs if problem.source is not None else ()
    for k, item in enumerate(given[0]) if len(given) == 1 else ():
        name = names[k] if k < len(names) else str(k)
        for value in others(item, problem, name) if not any(item is known for known in own) else ():
            other = Problem(_Changed(problem, k, value), problem.inputs, problem.seed)
            with users_errors():
                other.call()
                inputs = nearby_inputs(problem, draws.child(source.seed, k))
                made = source.working(inputs, other) if other.cls is problem.cls else None
                if made is not None:
                    yield _in_its_domain(source, made)


class _Changed:
    """The callable of a problem, which gives its Function another value for one argument."""

    def __init__(self, problem: Problem, position: int, value: Any) -> None:
        assert problem.cls is not None
        self._fn, self._cls, self._position, self.value = problem.fn, problem.cls, position, value
        with contextlib.suppress(TypeError, ValueError):  # so that the inputs keep their names
            self.__signature__ = inspect.signature(getattr(problem.fn, "forward", problem.fn))

    def __call__(self, *inputs: Any) -> Any:
        """Call it."""

        def changed(*args: Any) -> Any:
            return apply(*args[: self._position], self.value, *args[self._position + 1 :])

        with apply_replaced(self._cls, changed) as apply:
            return self._fn(*inputs)


def _others(item: Any, problem: Problem, name: str) -> tuple[Any, ...]:
    if isinstance(item, Tensor) or item is None:
        return ()
    strings, constants = _compared(problem.cls)
    nothing = (None,) if (name, None) in constants else ()
    if isinstance(item, str):
        return (*(text for text in strings if text != item), *nothing)
    if isinstance(item, bool):
        return (not item, *nothing)
    if isinstance(item, (int, float)):
        half_more = float(f"{1.5 * item:.12g}") if math.isfinite(item) else 3.0
        beside = (item + 1, item - 1, item + 2) if isinstance(item, int) else (half_more,)
        named = (type(item)(n) for one, n in constants if one == name and n is not None and type(item)(n) == n)
        others = (n for n in (*beside, *named) if n != item and _of_its_sign(n, item))
        return (*dict.fromkeys(others), *nothing)
    if _whole_numbers(item):
        moved = ([n + by for n in item] for by in (1, -1))
        return (*(type(item)(new) for new in moved if all(map(_of_its_sign, new, item))), *nothing)
    return nothing


def _far(item: Any, problem: Problem, name: str) -> tuple[Any, ...]:
    fair = _others(item, problem, name)
    if type(item) is int:
        return tuple(n for n in (0, -1, 1, -2) if n != item and n not in fair)
    if not _whole_numbers(item):
        return ()
    numbers = list(item)
    changed = ([n + 1 for n in numbers], [n - 1 for n in numbers], numbers[::-1], numbers[:1])
    others = (type(item)(other) for k, other in enumerate(changed) if other not in (numbers, *changed[:k]))
    return tuple(other for other in others if other not in fair)


def _whole_numbers(item: Any) -> bool:
    """Return True for a tuple or list of whole numbers, such as shifts or the sizes of a kernel."""
    return type(item) in (tuple, list) and bool(item) and all(type(n) is int for n in item)


def _of_its_sign(new: float, given: float) -> bool:
    """Return True for a number other than 0 of the same sign."""
    return new != 0 and (new < 0) == (given < 0)


def _compared(cls: type | None) -> tuple[tuple[str, ...], tuple[tuple[str, float | None], ...]]:
    methods = (getattr(cls, name, None) for name in ("forward", "setup_context", "backward"))
    trees = [user_source.method_at(inspect.unwrap(m).__code__) for m in methods if inspect.isfunction(m)]
    nodes = [
        n for tree in trees if tree is not None for n in ast.walk(tree) if isinstance(n, (ast.Compare, ast.match_case))
    ]
    inside = [n for node in nodes for n in ast.walk(node.pattern if isinstance(node, ast.match_case) else node)]
    strings = dict.fromkeys(n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str))
    tests = [(n.left, n.comparators[0]) for n in nodes if isinstance(n, ast.Compare)]
    named: list[tuple[str, Any]] = [
        (a.id, b.value) for a, b in tests if isinstance(a, ast.Name) and isinstance(b, ast.Constant)
    ]
    return tuple(strings), tuple(dict.fromkeys((a, b) for a, b in named if b is None or type(b) in (int, float)))


def _in_its_domain(source: PointSource, point: Point) -> Point:
    """Return this point; that at the absolute values of its inputs where only those give something finite."""
    own = point.problem.differentiable
    pairs = enumerate(point.inputs)
    positive = [x.detach().abs().requires_grad_() if i in own and not x.is_complex() else x for i, x in pairs]
    other = None if point.finite else source.working(positive, point.problem)
    return other if other is not None and other.finite else point


def other_data(source: PointSource) -> Iterator[Point]:
    """Yield points at which a tensor that needs no gradient is another that is as fair.

    Labels, indices and masks are drawn anew from their own values, each once where each was there once. The rows of
    any other tensor change places, and the columns of a square one alike, which leaves a rotation, a symmetric matrix,
    a distribution or a one-hot code what it is; a single number becomes half as much again. A claim that does not hold
    there is one about these values.
    """
    problem = source.problem
    generator = draws.generator(source.seed, "data")
    for i, item in enumerate(problem.inputs):
        if isinstance(item, Tensor) and i not in problem.differentiable and item.numel():
            inputs = list(nearby_inputs(problem, draws.child(source.seed, i)))
            inputs[i] = _other_data(item, generator)
            made = None if torch.equal(inputs[i], item) else source.working(inputs)
            if made is not None:
                yield made


def _other_data(item: Tensor, generator: torch.Generator) -> Tensor:
    if item.is_floating_point() or item.is_complex():
        if item.numel() == 1:
            return 1.5 * item
        order = torch.arange(len(item)).roll(1)
        return item[order][:, order] if item.dim() == 2 and len(item) == item.shape[1] else item[order]
    pool = item.reshape(-1)
    if item.dtype is torch.bool and len(pool.unique()) == 1:  # a mask that masks nothing here, or all
        return torch.rand(item.shape, generator=generator) < 0.5
    once = len(pool.unique()) == len(pool)
    draw = torch.randperm if once else functools.partial(torch.randint, size=(len(pool),))
    return pool[draw(len(pool), generator=generator)].reshape(item.shape)


def of_one_value(source: PointSource) -> Iterator[Point]:
    """Yield points at which a mask, or whole numbers, are all alike: all out, all in, all to be ignored."""
    problem = source.problem
    numbers = [item for item in problem.inputs if type(item) is int]
    for i, item in enumerate(problem.inputs):
        plain = isinstance(item, Tensor) and not item.requires_grad and not item.is_complex()
        pool = item.unique().tolist() if plain else []
        if len(pool) > 1 and (item.dtype == torch.bool or whole(item) or pool == [0.0, 1.0]):
            for value in dict.fromkeys((pool[0], pool[-1], *(numbers if whole(item) else ()))):
                inputs = list(nearby_inputs(problem, source.seed))
                inputs[i] = torch.full_like(item, value)
                made = source.working(inputs)
                if made is not None:
                    yield made


def constants_in(function: Any) -> list[float]:
    """Return finite numbers in a function's code, such as a threshold that its mask needs."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    found = user_source.constants(code) if code else ()
    numbers = [c for c in found if isinstance(c, (int, float)) and not isinstance(c, bool)]
    return [c for c in dict.fromkeys(numbers) if math.isfinite(c)]
