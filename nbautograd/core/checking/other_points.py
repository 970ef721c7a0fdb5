"""Other values and sizes for the inputs of a problem, as fair arguments as those given."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import symmetric
from nbautograd.core.stumbles import users_errors
from nbautograd.core.torch_private.precision import TABLE, repeated_up_to

Slot = tuple[int, int]  # (input, dimension)
LISTS = (list, tuple, torch.Size)

# Random numbers after which those of a large tensor repeat, primes: no dimension is a multiple of one, and where its
# values come again they have other factors. One for each entry would take a tenth of a comparison.
PERIODS = (TABLE, 65_539)


def nearby_inputs(problem: Problem, seed: int) -> tuple[Any, ...]:
    """Return the inputs with other values of the same signs and about the same size where they require grad.

    What needs no gradient stays: a mask, a label or a rotation is a fair argument only as it is.
    """
    return problem.changed_inputs(functools.partial(near, generator=draws.generator(seed, "near")))


def near(item: Tensor, generator: torch.Generator) -> Tensor:
    """Return other values of the same signs and about the same size."""
    real = item.real if item.is_complex() else item
    factor = torch.rand(item.shape, generator=generator, dtype=torch.float64) * 0.4 + 0.8
    return item.detach() * factor.to(real.device, real.dtype)


def in_domain(problem: Problem, seed: int, scale: float = 1.0) -> tuple[Any, ...]:
    """Return inputs of both signs where the inputs given have both, and near them where all are of one sign.

    Args:
        problem: whose inputs they are.
        scale: how much larger those of both signs are than the inputs given.
    """
    both = [i for i in problem.differentiable if _both_signs(problem.inputs[i])]
    drawn = functools.partial(signed, generator=draws.generator(seed, "signed"), scale=scale)
    made = enumerate(zip(problem.changed_inputs(drawn, both), nearby_inputs(problem, seed), strict=True))
    return in_order(problem, tuple(one if i in both else beside for i, (one, beside) in made))


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


def scattered(item: Tensor, thresholds: Iterable[float], generator: torch.Generator) -> Tensor:
    """Return values on both sides of each threshold, of one sign where all elements given have that sign."""
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


def signed(item: Tensor, generator: torch.Generator, scale: float = 1.0) -> Tensor:
    """Return values of both signs, so many times as large."""
    if item.is_complex():
        return item
    size = float(item.abs().mean() + 0.1) * scale
    return (torch.randn(item.shape, generator=generator, dtype=torch.float64) * size).to(item.dtype)


def thinned(item: Tensor) -> Tensor:
    """Return a tensor with a zero in each third place, at which a division by it would show."""
    return item * (torch.arange(item.numel(), device=item.device).reshape(item.shape) % 3 > 0)


def reads_one_triangle(problem: Problem, position: int) -> bool:
    """Return True where an input is a symmetric matrix of which forward reads one triangle, as ``cholesky`` does."""
    x = problem.inputs[position].detach()
    if not symmetric(x):
        return False
    generator = draws.generator(problem.seed, "triangles")
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


def alike(problem: Problem) -> Iterator[tuple[Slot, ...]]:
    """Yield the dimensions of the inputs, those of the same size together."""
    all_slots = slots(problem)
    for size in dict.fromkeys(problem.inputs[i].shape[d] for i, d in all_slots):
        yield tuple(s for s in all_slots if problem.inputs[s[0]].shape[s[1]] == size)


def slots(problem: Problem) -> list[Slot]:
    """Return the dimensions of the inputs; one of size 0 has no values that a larger one could be filled with."""
    tensors = ((i, x) for i, x in enumerate(problem.inputs) if isinstance(x, Tensor))
    return [(i, d) for i, x in tensors for d, size in enumerate(x.shape) if size]


def shrunk(problem: Problem, largest: int, size: int, seed: int) -> Problem:
    """Return the problem with its long dimensions cut down, where it has many elements and the forward allows it.

    Args:
        largest: number of elements of all inputs together up to which it stays as it is.
        size: of the longest dimension then; dimensions of different sizes stay different.
    """
    small = problem
    for k, group in enumerate(alike(problem)):
        if sum(x.numel() for x in small.inputs if isinstance(x, Tensor)) <= largest:
            break
        before = small.inputs[group[0][0]].shape[group[0][1]]
        inputs = resized(small.inputs, group, size - k - before, seed) if before > size > k else small.inputs
        with users_errors():
            made = Problem(problem.fn, inputs, problem.seed)
            small = made if any(y.requires_grad for y in made.call()) else small
    return small


def with_tied(inputs: Sequence[Any], group: Sequence[Slot]) -> tuple[Slot, ...]:
    """Return a group with the arguments that tell its size, as the length of an rfft or a normalised shape does.

    They are whole numbers, lists with as many items, and lists or tuples that it is in. Some equal it by chance, as
    the order of a norm: whoever moves them looks without as well.
    """
    sizes = {inputs[i].shape[d] for i, d in group} - {1}

    def told(item: Any) -> set[int]:
        several = type(item) in LISTS and all(type(n) in (int, float) for n in item)
        return {n for n in ((*item, len(item)) if several else (item,)) if type(n) is int}

    return (*group, *((i, 0) for i, item in enumerate(inputs) if told(item) & sizes))


def resized(inputs: Sequence[Any], group: Sequence[Slot], change: int, seed: int) -> tuple[Any, ...]:
    """Return the inputs with some sizes changed by this much (0: set to one), filled with values like the user's."""
    generator = draws.generator(seed, "resized")
    before = inputs[group[0][0]].shape[group[0][1]]
    given: list[Any] = []
    for i, item in enumerate(inputs):
        dims = [d for k, d in group if k == i]
        if isinstance(item, Tensor) and dims:
            shape = [(n + change if change else 1) if d in dims else n for d, n in enumerate(item.shape)]
            given.append(refilled(item, shape, generator))
        elif isinstance(item, Tensor):
            given.append(item.detach().clone().requires_grad_(item.requires_grad))
        elif dims and type(item) is int:
            given.append(item + change)
        elif dims and len(item) != before:
            given.append(type(item)([n + change if n == before else n for n in item]))
        else:
            given.append(type(item)([item[k % len(item)] for k in range(len(item) + change)]) if dims else item)
    return tuple(given)


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
    if whole(item) and item.dim() == len(shape) > 1:
        return _slices(item, shape, generator)
    places = torch.randint(len(pool), (min(count, PERIODS[0]),), generator=generator).to(pool.device)
    picked = repeated_up_to(count, pool.index_select(0, places)).reshape(shape)
    if item.is_floating_point() and item.requires_grad:
        factor = torch.empty(min(count, PERIODS[1])).uniform_(0.8, 1.2, generator=generator).to(pool)
        picked = picked * repeated_up_to(count, factor).reshape(shape)
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
    whole = values.dtype in (torch.int64, torch.int32) and len(values) > 1
    return whole and torch.equal(values.sort()[0], torch.arange(len(values)).to(values))


def whole(item: Any) -> bool:
    """Return True for a tensor of whole numbers."""
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
        if whole(a) and a.dim() > 1 and a.shape != b.shape
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
