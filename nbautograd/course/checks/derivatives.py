"""Double backward, forward mode and vmap, each beside the same transform of the formula."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.pytrees import tensors
from nbautograd.course.attempt import Attempt, Gradients, Run, copies, cotangents, positions, ready, vjp
from nbautograd.course.checks import exceptions
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Failure
from nbautograd.course.sentences import from_finding


def double(attempt: Attempt) -> Iterator[Failure]:
    """Check the derivatives of the gradient with respect to inputs and grad_outputs."""
    inputs = attempt.point()
    right = _second(attempt, attempt.reference_run(inputs))
    try:
        found = _second(attempt, attempt.run(inputs))
    except Exception as error:
        yield exceptions.plainly("double_backward_raised", error)
        return
    if found is None or right is None:
        yield Failure("once_differentiable", "course.once_differentiable")
    elif not all(map(attempt.allclose, found, right)):
        second = attempt.gradcheck(inputs).order2
        told = [] if second is None else [from_finding(f) for f in second.findings if f.kind == "bug"]
        told = [replace(f, more=tuple(s for s in f.more if "once_differentiable" not in str(s))) for f in told]
        yield from told or [Failure("double_backward_wrong", "course.double_backward_wrong")]


def _second(attempt: Attempt, run: Run) -> Gradients | None:
    """Second derivatives along random directions; None under ``once_differentiable``."""
    weights = [None if c is None else c.requires_grad_() for c in cotangents(run.outputs, attempt.seed)]
    first = vjp(run, weights, create_graph=True)
    if any("Error" in type(g.grad_fn).__name__ for g in first if g is not None):
        return None  # the node that raises when it is reached, which asking for these inputs never does
    draw = InputGenerator(attempt.seed + 1)
    terms = [(g * draw.normal(*x.shape)).sum() if g is not None else draw.normal(*x.shape).sum() * 0
             for g, x in zip(first, _leaves(run), strict=True)]  # fmt: skip
    total = torch.stack(terms).sum() if terms else torch.zeros(())
    wanted = [*_leaves(run), *(c for c in weights if c is not None)]
    if not total.requires_grad:
        return (None,) * len(wanted)
    return torch.autograd.grad(total, wanted, allow_unused=True)


def _leaves(run: Run) -> list[Tensor]:
    return [run.inputs[k] for k in positions(run.inputs)]


def forward_mode(attempt: Attempt) -> Iterator[Failure]:
    """Jvp along random tangents, of all inputs together and of each alone."""
    inputs = attempt.point()
    where = positions(inputs)
    names = attempt.names(inputs)
    for chosen in [where] if len(where) == 1 else [where, *((k,) for k in where)]:
        assert attempt.exercise.formula is not None
        right = _jvp(attempt.exercise.formula, inputs, chosen, attempt.seed)
        alone = ", ".join(f"`{names[k]}`" for k in chosen)
        try:
            found = _jvp(attempt.call, inputs, chosen, attempt.seed)
        except Exception as error:
            missing = isinstance(error, NotImplementedError) or "implement the jvp" in str(error)
            yield exceptions.plainly("jvp_missing" if missing else "jvp_raised", error, inputs=alone)
            return
        if len(found) != len(right) or not all(map(attempt.allclose, found, right)):
            yield Failure("jvp_wrong", "course.jvp_wrong", {"inputs": alone})
            return


def _jvp(call: Any, inputs: tuple[Any, ...], chosen: Sequence[int], seed: int) -> Gradients:
    draw = InputGenerator(seed + 2)
    with forward_ad.dual_level():
        given = list(copies(inputs, ()))
        for k in chosen:
            given[k] = forward_ad.make_dual(given[k], draw.normal(*given[k].shape).to(given[k].dtype))
        return tuple(forward_ad.unpack_dual(y).tangent for y in tensors(call(*given)))


def batched(attempt: Attempt) -> Iterator[Failure]:
    """Torch.func.vmap over all inputs, over each alone, along several dimensions; values, and their gradients."""
    assert attempt.exercise.formula is not None
    assert attempt.exercise.inputs is not None
    size = attempt.draw().choice(range(2, 6))
    draw = attempt.draw()  # one for all: other numbers, of the same sizes
    stacks = [attempt.exercise.inputs(draw) for _ in range(size)]
    for dims in _patterns(stacks[0]):
        given = tuple(
            torch.stack([s[k] for s in stacks], dim) if dim is not None else stacks[0][k] for k, dim in enumerate(dims)
        )
        right = _vmapped(attempt.exercise.formula, given, dims)
        try:
            found = _vmapped(attempt.call, given, dims)
        except Exception as error:
            yield exceptions.plainly(_vmap_code(error), error, dims=str(dims))
            return
        if len(found.outputs) != len(right.outputs) or not all(map(attempt.allclose, found.outputs, right.outputs)):
            yield Failure("vmap_wrong", "course.vmap_wrong", {"dims": str(dims)})
            return
        yield from (told := list(_vmapped_gradient(attempt, found, right, dims)))
        if told:
            return


def _vmapped_gradient(attempt: Attempt, found: Run, right: Run, dims: Sequence[int | None]) -> Iterator[Failure]:
    """Check that a vmapped call is differentiated as well, and by the answer's own backward."""
    weights = cotangents(right.outputs, attempt.seed)
    try:
        gradients = vjp(found, weights)
    except Exception as error:
        yield exceptions.plainly("vmap_raised", error, dims=str(dims))
        return
    if not all(map(attempt.allclose, gradients, vjp(right, weights))):
        yield Failure("vmap_gradient", "course.vmap_gradient", {"dims": str(dims)})
    elif attempt.cls is not None and not functions_of(found.outputs):
        yield Failure("vmap_without_function", "course.vmap_without_function", {"name": attempt.exercise.answer})


def _patterns(inputs: Sequence[Any]) -> list[tuple[int | None, ...]]:
    """Return which dimension of each input is the batch: the first, the second, the last, and not the same in all."""
    there = [k for k, x in enumerate(inputs) if isinstance(x, Tensor)]
    subsets = [there] if len(there) == 1 else [there, *([k] for k in there)]
    rows: list[tuple[int | None, ...]] = []
    for chosen, dims in itertools.product(subsets, ((0, 0), (-1, -1), (1, 0), (0, -1))):
        places = {k: dims[n % 2] if inputs[k].dim() else 0 for n, k in enumerate(chosen)}
        row = tuple(places.get(k) for k in range(len(inputs)))
        rows += [row] if row not in rows else []
    return rows


def _vmapped(call: Any, given: tuple[Any, ...], dims: tuple[int | None, ...]) -> Run:
    leaves = ready(x.detach() if isinstance(x, Tensor) else x for x in given)
    raw = torch.func.vmap(call, in_dims=dims)(*leaves)
    return Run(leaves, raw, tuple(tensors(raw)))


def _vmap_code(error: Exception) -> str:
    said = str(error)
    if "setup_context" in said:
        return "vmap_old_style"
    return "vmap_missing" if "vmap support" in said or "generate_vmap_rule" in said else "vmap_raised"
