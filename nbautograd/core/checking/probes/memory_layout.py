"""Does backward work for gradients and inputs that lie in memory in other ways, or have one more dimension?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull, rounding_level
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.jacobian.backward_rounding import ULPS, nudged
from nbautograd.core.checking.other_points import expanded, nearby_inputs, strided
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.contract import rules
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_bitwise, agree_relative
from nbautograd.core.stumbles import is_ours, users_errors

Gradients = tuple[Tensor | None, ...]
ROUNDINGS = 20  # times what a few last bits of the inputs change: more is no rounding
TWICE = (26, 27)  # seeds of directions; one disagreement may be a kink that was met


def layout(problem: Problem) -> Iterator[Finding]:
    """Yield findings on expanded and transposed grad_outputs, non-contiguous inputs and a batch dimension."""
    yield from _grad_outputs(problem)
    yield from _inputs(problem)
    yield from _batched(problem)


def _grad_outputs(problem: Problem) -> Iterator[Finding]:
    outputs = problem.call()
    for change, after in ((expanded, "y.sum()"), (strided, "y.t()")):
        odd = [None if v is None else change(v) for v in cotangents(problem, outputs, problem.seed + 21)]
        plain = [None if v is None else v.contiguous() for v in odd]
        right = pull(problem, outputs, plain)
        try:
            found = pull(problem, outputs, odd)
        except Exception as error:
            if is_ours(error):
                raise
            yield rules.fails_for_strided_gradient(phrases.seen(problem), phrases.short(str(error), 120), after)
            return
        for k in _apart(problem, outputs, plain, found, right):
            truth = directional_derivative(problem, outputs.inputs, k, plain, problem.seed + 24)
            # the same cotangent, so where differences tell nothing the contiguous one is the measure
            if truth is None or (truth.agrees(right[k]) and not truth.agrees(found[k])):
                yield phrases.about(problem, "wrong_noncontiguous_grad", after=after)
                return


def _apart(
    problem: Problem, outputs: Outputs, v: Sequence[Tensor | None], found: Gradients, right: Gradients
) -> list[int]:
    """Return the numbers of the inputs whose two gradients differ by more than rounding does."""
    rel = gradient_tolerance(outputs, problem.inputs)
    if all(agree_relative(a, b, rel) for a, b in zip(found, right, strict=True)):
        return []
    # inputs that are one number make outputs such as a variance vanish: round-off is that of ordinary ones
    low = rounding_level(problem.call(), problem.inputs)
    beyond = _beyond_rounding(problem, outputs, lambda call: pull(problem, call, v), (found, right))
    return [k for k in beyond if not agree_relative(found[k], right[k], rel, low)]


def _beyond_rounding(
    problem: Problem, outputs: Outputs, look: Callable[[Outputs], Gradients], two: tuple[Gradients, Gradients]
) -> list[int]:
    """Return where two answers differ by more than one does where inputs are a few last bits away.

    Another order of sums changes as much; an ill-conditioned solve much.
    """
    here, moved = look(outputs), [look(problem.call(nudged(problem, ulps, outputs.inputs))) for ulps in ULPS]
    roundings = [max(_largest_gap(near[k], one) for near in moved) for k, one in enumerate(here)]
    return [k for k, r in enumerate(roundings) if _largest_gap(two[0][k], two[1][k]) > ROUNDINGS * r]


def _largest_gap(a: Tensor | None, b: Tensor | None) -> float:
    there = [g for g in (a, b) if g is not None]
    if not there or there[0].numel() == 0:
        return 0.0
    if len(there) == 2 and there[0].shape != there[1].shape:
        return float("inf")
    gap = (there[0] - there[1]) if len(there) == 2 else there[0]
    return float(gap.abs().nan_to_num().max())


def _inputs(problem: Problem) -> Iterator[Finding]:
    """Yield findings on inputs with gaps or dimensions exchanged, and of one number seen everywhere."""
    if not problem.has_functions:
        return
    for change in (strided,) if problem.mutates_inputs else (strided, expanded):
        odd = problem.changed_inputs(change)
        outputs = problem.call(tuple(_packed(x) for x in odd))
        v = cotangents(problem, outputs, problem.seed + 22)
        right = pull(problem, outputs, v)
        try:
            moved = problem.call(odd)
            found = pull(problem, moved, v)
        except Exception as error:
            if is_ours(error):
                raise
            yield phrases.about(problem, "fails_noncontiguous_input", said=phrases.short(str(error), 120))
            return
        wrong = _other_values(problem, outputs, moved) and not _draws(problem)
        if wrong or (_apart(problem, outputs, v, found, right) and _contradicts(problem, moved, found, v, change)):
            yield phrases.about(problem, "wrong_noncontiguous_input", said="")
            return


def _other_values(problem: Problem, outputs: Outputs, moved: Outputs) -> bool:
    """Return True if forward gives other values for the same numbers in another layout, by more than rounding."""
    rel = gradient_tolerance(outputs, problem.inputs)
    pairs = [(a, b) for a, b in zip(outputs, moved, strict=True) if a.is_floating_point() or a.is_complex()]
    if all(agree_relative(a.detach(), b.detach(), rel) for a, b in pairs):
        return False

    def values(call: Outputs) -> Gradients:
        return tuple(y.detach() for y in call)

    return bool(_beyond_rounding(problem, outputs, values, (values(outputs), values(moved))))


def _draws(problem: Problem) -> bool:
    """Return True if forward draws random numbers, which may be drawn in the order of memory."""
    one, other = problem.call(), problem.call(seed=problem.seed + 25)
    return not all(agree_bitwise(a, b) for a, b in zip(one, other, strict=True))


def _contradicts(
    problem: Problem, moved: Outputs, found: Gradients, v: Sequence[Tensor | None], change: Callable[[Tensor], Tensor]
) -> bool:
    """Return True if the gradient is not that of the forward in this very layout."""
    for k, gradient in enumerate(found):
        truths = [directional_derivative(problem, moved.inputs, k, v, problem.seed + s, change) for s in TWICE]
        if all(truth is not None and not truth.agrees(gradient) for truth in truths):
            return True
    return False


def _packed(item: Any) -> Any:
    if not isinstance(item, Tensor) or item.layout is not torch.strided:
        return item
    return item.detach().clone(memory_format=torch.contiguous_format).requires_grad_(item.requires_grad)


def _batched(problem: Problem) -> Iterator[Finding]:
    """Stack two values of the first input, where forward takes each half by itself, and compare both gradients."""
    if not problem.has_functions or not problem.differentiable:
        return
    position = problem.differentiable[0]
    two = [list(problem.fresh()), list(problem.fresh())]
    two[1][position] = nearby_inputs(problem, problem.seed + 28)[position]
    if two[0][position].dim() < 2:
        return
    given = list(problem.fresh())
    given[position] = torch.stack([item[position].detach() for item in two]).requires_grad_()
    with users_errors() as guard:
        halves = [problem.call(tuple(item)) for item in two]
        batched = problem.call(tuple(given))
    if guard.failed or not _side_by_side(problem, halves, batched):
        return
    params = {"input": problem.input_names[position], "dims": given[position].dim()}
    v = cotangents(problem, halves[0], problem.seed + 23)
    try:
        both = pull(problem, batched, [None if c is None else torch.stack([c, -2 * c]) for c in v])[0]
    except Exception as error:
        if is_ours(error):
            raise
        sentence = "causes.fails_batched" if "t()" in str(error) else "causes.fails_batched_raises"
        yield _wrong_batch(problem, sentence, said=phrases.short(str(error), 120), **params)
        return
    cotangent = v, [None if c is None else -2 * c for c in v]
    each = [pull(problem, half, c)[0] for half, c in zip(halves, cotangent, strict=True)]
    rel, low = gradient_tolerance(batched, problem.inputs), rounding_level(batched, problem.inputs)
    if both is None or any(g is None for g in each) or agree_relative(both, torch.stack(each), rel, low):  # type: ignore[arg-type]
        return
    yield _wrong_batch(problem, "causes.fails_batched_wrong", said="", **params)


def _wrong_batch(problem: Problem, sentence: str, **params: Any) -> Finding:
    return phrases.about(problem, "fails_batched", sentence=sentence, **params)


def _side_by_side(problem: Problem, halves: Sequence[Outputs], batched: Outputs) -> bool:
    """Return True if a batch of two gave the outputs of both."""
    first, second = halves
    if [tuple(y.shape) for y in batched] != [(2, *y.shape) for y in first]:
        return False
    rel = gradient_tolerance(first, problem.inputs)
    return all(
        agree_relative(b.detach(), torch.stack([y.detach(), z.detach()]), rel)
        for b, y, z in zip(batched, first, second, strict=True)
        if y.is_floating_point()
    )
