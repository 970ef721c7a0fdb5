"""Other points and other shapes to try a Function at."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking import prepared_inputs
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.compare import symmetric
from nbautograd.core.stumbles import hands_over, users_errors
from nbautograd.core.torch_private.ctx import apply_replaced

Slot = tuple[int, int]  # (input, dimension)
Item = TypeVar("Item")


class Once(Generic[Item]):
    """Items made as they are asked for, each once, to be gone through more than once.

    Args:
        source: where they come from.
    """

    def __init__(self, source: Iterator[Item]) -> None:
        self._source, self._known = source, list[Item]()

    def __iter__(self) -> Iterator[Item]:
        for k in itertools.count():
            if k == len(self._known):
                item = next(self._source, None)
                if item is None:
                    return
                self._known.append(item)
            yield self._known[k]

    def at_least(self, count: int) -> bool:
        """Return True if there are so many."""
        self._known += itertools.islice(self._source, max(0, count - len(self._known)))
        return len(self._known) >= count


def nearby_inputs(problem: Problem, seed: int) -> tuple[Any, ...]:
    """Return the inputs with other values of the same signs and about the same size where they require grad.

    What needs no gradient stays: a mask, a label or a rotation is a fair argument only as it is.
    """
    generator = torch.Generator().manual_seed(seed)
    return problem.changed_inputs(functools.partial(_near, generator=generator))


def _near(item: Tensor, generator: torch.Generator) -> Tensor:
    real = item.real if item.is_complex() else item
    factor = torch.rand(item.shape, generator=generator, dtype=torch.float64) * 0.4 + 0.8
    return item.detach() * factor.to(real.device, real.dtype)


def in_double(inputs: Iterable[Any]) -> tuple[Any, ...]:
    """Return the inputs with real numbers in double precision."""

    def wide(item: Any) -> Any:
        if not isinstance(item, Tensor) or not item.is_floating_point():
            return item
        return item.detach().double().requires_grad_(item.requires_grad)

    return tuple(map(wide, inputs))


def in_domain(problem: Problem, seed: int, scale: float = 1.0) -> tuple[Any, ...]:
    """Return inputs of both signs where the inputs given have both, and near them where all are of one sign.

    Args:
        problem: whose inputs they are.
        seed: of the values.
        scale: how much larger those of both signs are than the inputs given.
    """
    both = [i for i in problem.differentiable if _both_signs(problem.inputs[i])]
    signed = functools.partial(_signed, generator=torch.Generator().manual_seed(seed), scale=scale)
    made = enumerate(zip(problem.changed_inputs(signed, both), nearby_inputs(problem, seed), strict=True))
    return in_order(problem, tuple(one if i in both else near for i, (one, near) in made))


def in_order(problem: Problem, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return other inputs with the bounds among them in the order that they are given in, element by element.

    Two inputs are bounds where all of one lies below all of the other, and a third has elements between them and
    elements beyond: what is right for a lower bound says nothing of one that lies above the upper.
    """
    given = {i: problem.inputs[i].detach() for i in problem.differentiable if problem.inputs[i].numel()}
    real = {i: x for i, x in given.items() if not x.is_complex()}
    ends = {i: (float(x.min()), float(x.max())) for i, x in real.items()}
    made = list(inputs)
    for low, high in itertools.permutations(real, 2):
        below, above = ends[low][1], ends[high][0]
        between = (((below < x) & (x < above)) for i, x in real.items() if i not in (low, high))
        if below < above and real[low].shape == real[high].shape and any(b.any() and not b.all() for b in between):
            a, b = (made[i].detach() for i in (low, high))
            if a.shape != b.shape:
                continue
            made[low], made[high] = torch.minimum(a, b).requires_grad_(), torch.maximum(a, b).requires_grad_()
    return tuple(made)


def spread(problem: Problem, thresholds: Iterable[float], seed: int) -> Iterator[tuple[Any, ...]]:
    """Yield inputs that tell conditions apart: near the given ones without zeros; then on both sides of thresholds.

    What holds exactly where a value is zero, or above a number of the code, has to hold there too. Each element is
    drawn at the size of one of the thresholds or of the input; of one sign where all elements given have that sign.
    """
    generator = torch.Generator().manual_seed(seed)

    def filled(item: Tensor) -> Tensor:
        if item.is_complex():
            return item
        noise = (torch.rand(item.shape, generator=generator, dtype=torch.float64) - 0.5) * (
            0.2 * float(item.abs().mean())
        )
        return torch.where(item == 0, noise.to(item), item)

    yield problem.changed_inputs(filled, inputs=nearby_inputs(problem, seed))
    yield problem.changed_inputs(lambda x: _scattered(x, thresholds, generator))


def _scattered(item: Tensor, thresholds: Iterable[float], generator: torch.Generator) -> Tensor:
    if item.is_complex() or not item.numel():
        return item
    both = _both_signs(item)
    known = {abs(float(c)) for c in thresholds if c} | {float(item.abs().median())}
    # in turn, so that few elements, too, lie on both sides of each threshold
    sides = [c * side for c in sorted(known) for side in (0.4, 1.0)]
    turns = [s * sign for s in sides for sign in ((1, -1) if both else (1,))]
    order = torch.randperm(max(item.numel(), len(turns)), generator=generator)[: item.numel()] % len(turns)
    start = torch.tensor(turns, dtype=torch.float64)[order].reshape(item.shape)
    values = start * (1.05 + 0.4 * torch.rand(item.shape, generator=generator, dtype=torch.float64))
    return (values * (1 if both else item.sign())).to(item)


def _both_signs(item: Tensor) -> bool:
    return not item.is_complex() and bool((item < 0).any()) and bool((item > 0).any())


def _signed(item: Tensor, generator: torch.Generator, scale: float = 1.0) -> Tensor:
    if item.is_complex():
        return item
    size = float(item.abs().mean() + 0.1) * scale
    return (torch.randn(item.shape, generator=generator, dtype=torch.float64) * size).to(item.dtype)


def thinned(item: Tensor) -> Tensor:
    """Return a tensor with a zero in each third place, at which a division by it would show."""
    return item * (torch.arange(item.numel(), device=item.device).reshape(item.shape) % 3 > 0)


def unseen(problem: Problem, seed: int) -> Iterator[tuple[Any, ...]]:
    """Yield the points at which a fix is verified at last: inputs of these and larger sizes that no edit was tried at.

    Their values are small, usual and large, of both signs, and zero.
    """
    grown = [g for g in (_of_other_size(problem, group, (4,), seed) for group in alike(problem)) if g is not None]
    places = [problem.inputs, *(nearby_inputs(problem, seed + k) for k in (5, 6)), *grown]
    yield from places[1:]
    yield problem.changed_inputs(thinned, inputs=nearby_inputs(problem, seed + 7))
    for k, (given, scale) in enumerate(itertools.product([problem.inputs, *grown], (0.4, 1.0, 2.5))):
        signed = functools.partial(_signed, generator=torch.Generator().manual_seed(seed + 30 + k), scale=scale)
        yield in_order(problem, problem.changed_inputs(signed, inputs=given))


def together(problem: Problem, seed: int, most: int | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield inputs of other sizes, all dimensions of one size moved alike, where the forward takes them.

    Args:
        problem: whose inputs they are.
        seed: of the values.
        most: number of sizes moved one at a time; those left over are moved at once. All one at a time when None.
    """
    left, tried = list(alike(problem)), 0
    while left:
        last = most is not None and tried >= most
        group = tuple(itertools.chain.from_iterable(left)) if last else left.pop(0)
        left = [] if last else left
        inputs = _of_other_size(problem, group, (1, -1), seed)
        if inputs is not None:
            tried += 1
            yield inputs


def _of_other_size(
    problem: Problem, group: tuple[Slot, ...], changes: tuple[int, ...], seed: int
) -> tuple[Any, ...] | None:
    """Return the inputs with some sizes changed by the first number that the forward takes; None where it takes none.

    Arguments that are the size of one of these dimensions, or have so many items, are changed with them where the
    forward does not take them as they are.
    """
    sizes = {problem.inputs[i].shape[d] for i, d in group}
    beside = tuple((i, 0) for i, item in enumerate(problem.inputs) if _implied_size(item) in sizes - {None})
    for change in changes:
        for slots in (group, (*group, *beside)) if beside else (group,):
            if min(sizes) + change > 0 and works(problem, inputs := resized(problem, slots, change, seed)):
                return inputs
    return None


def _implied_size(item: Any) -> int | None:
    """Return the size that an argument tells: a whole number itself, a list or tuple of numbers how many it has."""
    if type(item) is int and item > 1:
        return item
    several = type(item) in (list, tuple) and len(item) > 1 and all(type(n) in (int, float) for n in item)
    return len(item) if several else None


def other_arguments(problem: Problem, seed: int, far: bool = False) -> Iterator[tuple[str, Problem, tuple[Any, ...]]]:
    """Yield the name of an argument that is no tensor, and a problem with inputs where it is another.

    True becomes False, a whole number, or all of a tuple together, the next and the one before of its sign (not 0: what
    is multiplied by it tells nothing, and below it an index or a size is something else), a whole number also the next
    that is odd or even as it is, any other number half as much again (3 where it is infinite), a string each other one
    that forward or backward compares something with, and each what the code compares its name with, a number or None:
    what is right for ``p=3``, ``correction=1`` or ``dim=1`` alone is not right. Where nothing finite comes out, the
    absolute values of the tensors are tried. Of a callable around one Function the arguments of that Function are
    changed.

    Args:
        problem: whose arguments they are.
        seed: of the values of tensors.
        far: True for those alone that it may not have been written for: whole numbers of the other sign and 0, tuples
            of these, and tuples reversed or cut.
    """
    others = _far if far else _others
    for i, item in enumerate(problem.inputs):
        for value in others(item, problem, problem.input_names[i]):
            inputs = list(nearby_inputs(problem, seed + i))
            inputs[i] = value
            if works(problem, tuple(inputs)):
                yield problem.input_names[i], problem, _in_its_domain(problem, tuple(inputs))
    if problem.cls is not None and not problem.direct:
        yield from _arguments_inside(problem, seed, others)


def _arguments_inside(
    problem: Problem, seed: int, others: Callable[[Any, Problem, str], tuple[Any, ...]]
) -> Iterator[tuple[str, Problem, tuple[Any, ...]]]:
    given: list[tuple[Any, ...]] = []

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
            inputs = nearby_inputs(problem, seed + k)
            with users_errors():
                other.call()
                if other.cls is problem.cls and works(other, inputs):
                    yield name, other, _in_its_domain(other, inputs)


class _Changed:
    """The callable of a problem, which gives its Function another value for one argument.

    Args:
        problem: whose callable it is.
        position: of the argument.
        value: in its place.
    """

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
    """Return the strings that a class compares something with, and the names that it compares with a number or None."""
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


def _in_its_domain(problem: Problem, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return these inputs; their absolute values where only those give something finite."""
    own = problem.differentiable
    positive = (
        x.detach().abs().requires_grad_() if i in own and not x.is_complex() else x for i, x in enumerate(inputs)
    )
    other = tuple(positive)
    return other if not _finite(problem, inputs) and _finite(problem, other) else inputs


def _finite(problem: Problem, inputs: tuple[Any, ...]) -> bool:
    with users_errors():
        return all(bool(torch.isfinite(y).all()) for y in problem.call(inputs))
    return False


def other_data(problem: Problem, seed: int, near: bool = False) -> Iterator[tuple[str, Problem, tuple[Any, ...]]]:
    """Yield the name of a tensor that needs no gradient, the problem, and inputs where it is another that is as fair.

    Labels, indices and masks are drawn anew from their own values, each once where each was there once. The rows of
    any other tensor change places, and the columns of a square one alike, which leaves a rotation, a symmetric matrix,
    a distribution or a one-hot code what it is; a single number becomes half as much again. A claim that does not hold
    there is one about these values.

    Args:
        problem: whose inputs they are.
        seed: of the values.
        near: True for numbers near those given alone. They may be no fair argument any more: what holds there too is
            about any values, and what does not says nothing of right or wrong.
    """
    generator = torch.Generator().manual_seed(seed + (24 if near else 23))
    for i, item in enumerate(problem.inputs):
        numbers = isinstance(item, Tensor) and (item.is_floating_point() or item.is_complex() or not near)
        if numbers and i not in problem.differentiable and item.numel():
            inputs = list(nearby_inputs(problem, seed + i))
            inputs[i] = (_near if near else _other_data)(item, generator)
            if not torch.equal(inputs[i], item) and works(problem, tuple(inputs)):
                yield problem.input_names[i], problem, tuple(inputs)


def _other_data(item: Tensor, generator: torch.Generator) -> Tensor:
    if item.is_floating_point() or item.is_complex():
        if item.numel() == 1:
            return 1.5 * item
        order = torch.arange(len(item)).roll(1)
        return item[order][:, order] if item.dim() == 2 and len(item) == item.shape[1] else item[order]
    pool = item.reshape(-1)
    once = len(pool.unique()) == len(pool)
    draw = torch.randperm if once else functools.partial(torch.randint, size=(len(pool),))
    return pool[draw(len(pool), generator=generator)].reshape(item.shape)


def of_one_value(problem: Problem, seed: int) -> Iterator[tuple[Any, ...]]:
    """Yield inputs in which a mask, or whole numbers, are all alike: all out, all in, all to be ignored."""
    numbers = [item for item in problem.inputs if type(item) is int]
    for i, item in enumerate(problem.inputs):
        plain = isinstance(item, Tensor) and not item.requires_grad and not item.is_complex()
        pool = item.unique().tolist() if plain else []
        if len(pool) > 1 and (item.dtype == torch.bool or _whole(item) or pool == [0.0, 1.0]):
            for value in dict.fromkeys((pool[0], pool[-1], *(numbers if _whole(item) else ()))):
                inputs = list(nearby_inputs(problem, seed))
                inputs[i] = torch.full_like(item, value)
                if works(problem, tuple(inputs)):
                    yield tuple(inputs)


def among_bounds(problem: Problem, inputs: tuple[Any, ...], seed: int) -> Iterator[tuple[Any, ...]]:
    """Yield inputs on both sides of what elements may be compared with: broken numbers among the arguments.

    Of two of these also the product and the quotients: ``beta * x > threshold``.
    """
    given = [*inputs, getattr(problem.fn, "value", None)]
    known = {abs(n) for n in given if type(n) is float and n and math.isfinite(n)}
    bounds = known | {n for a, b in itertools.permutations(known, 2) for n in (a * b, a / b)}
    generator = torch.Generator().manual_seed(seed)
    for _ in range(2 if known else 0):
        yield problem.changed_inputs(lambda x: _scattered(x, bounds, generator), inputs=inputs)


def other_dimensions(
    problem: Problem, seed: int, inputs: tuple[Any, ...] | None = None
) -> Iterator[tuple[tuple[Any, ...], bool]]:
    """Yield inputs of which some have one dimension more or one less in front: those that require grad, all, or one.

    The dimension is of two elements; of an input alone also of as many as another one has in front. True comes with one
    input alone, which a Function may not have been written for.

    Args:
        problem: whose inputs they are.
        seed: of the values.
        inputs: the ones to change; near the problem's when None.
    """
    tensors = tuple(i for i, x in enumerate(problem.inputs) if isinstance(x, Tensor))
    for which in dict.fromkeys((problem.differentiable, tensors, *((i,) for i in tensors))):
        beside = (x.shape[0] for i, x in enumerate(problem.inputs) if i in tensors and i not in which and x.dim())
        for count in dict.fromkeys((2, 0, *(beside if len(which) == 1 else ()))):
            given = nearby_inputs(problem, seed) if inputs is None else tuple(map(prepared_inputs.copy, inputs))
            if all(count or given[i].dim() > 1 for i in which):
                changed = tuple(
                    x if i not in which else stacked(x, count) if count else _first(x) for i, x in enumerate(given)
                )
                if works(problem, changed):
                    yield changed, which not in (problem.differentiable, tensors)


def reads_one_triangle(problem: Problem, position: int) -> bool:
    """Return True where an input is a symmetric matrix of which forward reads one triangle, as ``cholesky`` does."""
    x = problem.inputs[position].detach()
    if not symmetric(x):
        return False
    generator = torch.Generator().manual_seed(problem.seed + 3)
    noise = 1e-3 * x.abs().mean() * torch.rand(x.shape, generator=generator, dtype=torch.float64).to(x)

    def after(change: Tensor) -> list[Tensor]:
        return [y.detach() for y in problem.call(problem.changed_inputs(lambda x: x + change, (position,)))]

    with users_errors():
        here, lower, upper = map(after, (torch.zeros_like(noise), noise.tril(-1), noise.triu(1)))
        same = [all(map(torch.equal, here, other)) for other in (lower, upper)]
        return same[0] != same[1]
    return False


def stacked(item: Tensor, count: int) -> Tensor:
    """Return a tensor so many times, along a dimension in front; what requires grad is smaller each time."""
    # half a mask, or half a rotation, is none
    others = (item * (1 - 0.5 * k / (count - 1)) if k and item.requires_grad else item for k in range(count))
    return torch.stack(tuple(others)).detach().requires_grad_(item.requires_grad)


def _first(item: Tensor) -> Tensor:
    return item[0].detach().clone().requires_grad_(item.requires_grad)


def alike(problem: Problem) -> Iterator[tuple[Slot, ...]]:
    """Yield the dimensions of the inputs, those of the same size together."""
    slots = _slots(problem)
    for size in dict.fromkeys(problem.inputs[i].shape[d] for i, d in slots):
        yield tuple(s for s in slots if problem.inputs[s[0]].shape[s[1]] == size)


def _slots(problem: Problem) -> list[Slot]:
    """Return the dimensions of the inputs; one of size 0 has no values that a larger one could be filled with."""
    tensors = ((i, x) for i, x in enumerate(problem.inputs) if isinstance(x, Tensor))
    return [(i, d) for i, x in tensors for d, size in enumerate(x.shape) if size]


def apart(problem: Problem, seed: int, most: int = 3) -> Iterator[tuple[Any, ...]]:
    """Yield inputs of other sizes, as few dimensions moved as the forward allows: grown, and of size one."""
    for group, change in itertools.islice(groups(problem, seed), most):
        yield resized(problem, group, change, seed)
        single = resized(problem, group, 0, seed)
        if works(problem, single):
            yield single


def doubled(problem: Problem, seed: int, most: int = 6) -> Iterator[tuple[Any, ...]]:
    """Yield inputs with one size doubled at a time, as few dimensions as the forward allows: none of size one."""
    for group, _ in itertools.islice(groups(problem, seed), most):
        size = problem.inputs[group[0][0]].shape[group[0][1]]
        if size > 1:
            inputs = resized(problem, group, size, seed)
            if works(problem, inputs):
                yield inputs


def groups(problem: Problem, seed: int) -> Iterator[tuple[tuple[Slot, ...], int]]:
    """Yield the smallest sets of dimensions that can change together, and by how much: by one, double, or less one."""
    slots = _slots(problem)
    free: list[Slot] = []
    for count in (1, 2, 3):
        for group in itertools.combinations([s for s in slots if s not in free], count):
            sizes = {problem.inputs[i].shape[d] for i, d in group}
            if len(sizes) > 1 or _torn(problem, group, slots):
                continue
            for change in (1, *sizes - {0, 1}, *({-1} if min(sizes) > 1 else ())):
                if works(problem, resized(problem, group, change, seed)):
                    free.extend(group)
                    yield group, change
                    break
        if len(slots) > 12:
            return


def _torn(problem: Problem, group: tuple[Slot, ...], slots: list[Slot]) -> bool:
    """Return True where indices or masks would get another size than what they belong to."""
    size = problem.inputs[group[0][0]].shape[group[0][1]]
    alike = {s for s in slots if problem.inputs[s[0]].shape[s[1]] == size}
    fixed = {s for s in alike if not problem.inputs[s[0]].is_floating_point() and not problem.inputs[s[0]].is_complex()}
    return bool(fixed) and fixed != alike and (not fixed <= set(group) or set(group) <= fixed)


def shrunk(problem: Problem, largest: int, size: int, seed: int) -> Problem:
    """Return the problem with its long dimensions cut down, where it has many elements and the forward allows it.

    Args:
        problem: what was checked.
        largest: number of elements of all inputs together up to which it stays as it is.
        size: of the longest dimension then; dimensions of different sizes stay different.
        seed: of the values.
    """
    small = problem
    for k, group in enumerate(alike(problem)):
        if sum(x.numel() for x in small.inputs if isinstance(x, Tensor)) <= largest:
            break
        before = small.inputs[group[0][0]].shape[group[0][1]]
        inputs = resized(small, group, size - k - before, seed) if before > size > k else small.inputs
        if works(small, inputs):
            small = Problem(problem.fn, inputs, problem.seed)
            small.call()
    return small


def works(problem: Problem, inputs: tuple[Any, ...]) -> bool:
    """Return True where the forward takes these inputs."""
    with users_errors():
        return any(y.requires_grad for y in problem.call(inputs))
    return False


def resized(problem: Problem, group: tuple[Slot, ...], change: int, seed: int) -> tuple[Any, ...]:
    """Return the inputs with some sizes changed by this much (0: set to one), filled with values like the user's."""
    generator = torch.Generator().manual_seed(seed + 17)
    given: list[Any] = []
    for i, item in enumerate(problem.inputs):
        dims = [d for k, d in group if k == i]
        if isinstance(item, Tensor):
            given.append(_resized(item, dims, change, generator))
        elif dims and type(item) is int:
            given.append(item + change)
        else:
            given.append(type(item)(item[k % len(item)] for k in range(len(item) + change)) if dims else item)
    return tuple(given)


def _resized(item: Tensor, dims: list[int], change: int, generator: torch.Generator) -> Tensor:
    if not dims:
        return item.detach().clone().requires_grad_(item.requires_grad)
    shape = [(n + change if change else 1) if d in dims else n for d, n in enumerate(item.shape)]
    return refilled(item, shape, generator)


def refilled(item: Tensor, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Return a tensor of another shape with values like those of a given one."""
    pool = item.detach().reshape(-1)
    count = 1
    for n in shape:
        count *= n
    if not count:
        return item.detach().new_empty(shape).requires_grad_(item.requires_grad)
    if _permutation(pool):
        return torch.randperm(count, generator=generator).to(pool).reshape(shape)  # as the user's, each number once
    if _whole(item) and item.dim() == len(shape) > 1:
        return _slices(item, shape, generator)
    picked = pool[torch.randint(len(pool), (count,), generator=generator)].reshape(shape)
    if item.is_floating_point() and item.requires_grad:
        factor = torch.rand(shape, generator=generator, dtype=torch.float64).mul_(0.4).add_(0.8)
        picked = picked * factor.to(item.dtype)
    return _of_its_kind(picked, item).requires_grad_(item.requires_grad)


def _of_its_kind(values: Tensor, given: Tensor) -> Tensor:
    """Return a square matrix without grad as symmetric, or as orthonormal, as the one given is."""
    square = given.dim() > 1 and given.shape[-1] == given.shape[-2] and values.shape[-1] == values.shape[-2]
    if given.requires_grad or not square or not (given.is_floating_point() or given.is_complex()):
        return values
    if torch.equal(given, given.mH):
        return (values + values.mH) / 2
    near = float(torch.finfo(given.dtype).eps) ** 0.5
    unit = torch.eye(given.shape[-1], dtype=given.dtype, device=given.device).expand_as(given)
    return torch.linalg.qr(values)[0] if torch.allclose(given @ given.mH, unit, atol=near) else values


def _permutation(values: Tensor) -> bool:
    """Return True for whole numbers from 0, each once."""
    whole = values.dtype in (torch.int64, torch.int32) and len(values) > 1
    return whole and torch.equal(values.sort()[0], torch.arange(len(values)).to(values))


def _whole(item: Any) -> bool:
    return isinstance(item, Tensor) and item.dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _slices(item: Tensor, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Return slices of whole numbers, each as it is given: what stands in one row may belong together."""
    for dim, size in enumerate(shape):
        there = item.shape[dim]
        if size < there:
            item = item.index_select(dim, torch.randperm(there, generator=generator)[:size].to(item.device))
        elif size > there:
            item = item.index_select(dim, torch.randint(there, (size,), generator=generator).to(item.device))
    return item.clone()


def as_distinct(inputs: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return True where whole numbers that differ along a dimension, as the indices that one row picks, still do."""
    return all(
        _distinct(b, dim)
        for a, b in zip(inputs, others, strict=True)
        if _whole(a) and a.dim() > 1 and a.shape != b.shape
        for dim in range(a.dim())
        if _distinct(a, dim) and not _by_chance(a, dim)
    )


def _distinct(item: Tensor, dim: int) -> bool:
    ordered = item.sort(dim)[0]
    return not bool((ordered.diff(dim=dim) == 0).any())


def _by_chance(item: Tensor, dim: int) -> bool:
    """Return True where numbers drawn from the same ones would be distinct, too, once in a thousand times or more."""
    n, pool = item.shape[dim], len(item.unique())
    if pool == item.numel():
        return True  # each is there once: of how many they were drawn is not known
    return item.numel() / n * sum(-math.log1p(-k / pool) for k in range(n)) < math.log(1000)


def expanded(v: Tensor) -> Tensor:
    """Return one number seen everywhere, as ``y.sum().backward()`` sends."""
    return v.reshape(-1)[:1].reshape(()).expand(v.shape) if v.numel() else v


def strided(v: Tensor) -> Tensor:
    """Return the same values with gaps in memory, and the last dimension outermost."""
    if v.dim() == 0:
        return v
    wide = torch.empty((*v.shape[::-1], 2), dtype=v.dtype, device=v.device)[..., 0]
    return wide.permute(*reversed(range(v.dim()))).copy_(v)
