"""Forward mode beyond one tangent at a time: several under vmap, and forward over reverse, as torch.func.hessian asks.

Only a Function with a ``jvp`` of its own is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import gradient_tolerance
from nbautograd.core.checking.problem import Outputs, Problem, own_method, separate_context
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import hands_over, is_ours
from nbautograd.core.torch_private import tensors as internals
from nbautograd.core.torch_private.tensors import vmap

TANGENTS = 2


def batched(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Yield findings on a jvp that raises, or answers otherwise, when torch.func asks for several tangents."""
    if problem.cls is None or not own_method(problem.cls, "jvp") or not separate_context(problem.cls):
        return  # without setup_context torch.func refuses by itself
    tangents = _directions(problem, TANGENTS)
    single = [_pushed(problem, [u[k] for u in tangents]) for k in range(TANGENTS)]
    try:
        given = tuple(x.detach() if isinstance(x, Tensor) else x for x in problem.fresh())
        together = vmap(lambda *us: _functional(problem, given, us), 0, *tangents)
    except Exception as error:
        if is_ours(error):
            raise
        yield _finding(problem, "jvp_batched", "lint", said=phrases.short(str(error), 120))
        return
    rel = gradient_tolerance(outputs, problem.inputs)
    for k, one in enumerate(single):
        if not all(agree_relative(a, b[k], rel) for a, b in zip(_dense(one, outputs), together, strict=True)):
            yield _finding(problem, "jvp_batched_wrong", "bug")
            return


@hands_over
def _functional(problem: Problem, given: tuple[Any, ...], tangents: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the tangents of the floating outputs, by torch.func."""

    def fn(*moved: Tensor) -> tuple[Tensor, ...]:
        by_position = dict(zip(problem.differentiable, moved, strict=True))
        found = problem.evaluate(tuple(by_position.get(i, item) for i, item in enumerate(given)))
        return tuple(y for y in found if y.is_floating_point() or y.is_complex())

    points = tuple(given[i] for i in problem.differentiable)
    return tuple(torch.func.jvp(fn, points, tuple(tangents))[1])


def over_reverse(problem: Problem, derived: Problem) -> Iterator[Finding]:
    """Yield findings on derivatives of backward by forward mode that differ from those by reverse mode.

    Args:
        problem: what was checked, right in both orders.
        derived: its backward as a function of inputs and grad_outputs.
    """
    if not own_method(problem.cls, "jvp"):
        return
    outputs = derived.call()
    directions = [u[0] for u in _directions(derived, 1)]
    try:
        tangents = _dense(_pushed(derived, directions), outputs)
    except Exception as error:
        if is_ours(error):
            raise
        yield _finding(problem, "forward_over_reverse", "lint", said=phrases.short(str(error), 120))
        return
    generator = torch.Generator().manual_seed(derived.seed + 55)
    weights = [torch.randn(y.shape, generator=generator, dtype=y.dtype) for y in outputs]
    leaves = [outputs.inputs[i] for i in derived.differentiable]
    gradients = internals.gradients(outputs, leaves, weights)
    forward = [_dot(w, t) for w, t in zip(weights, tangents, strict=True)]
    reverse = [_dot(g, u) for g, u in zip(gradients, directions, strict=True) if g is not None]
    size = sum(map(abs, forward)) + sum(map(abs, reverse))
    if abs(sum(forward) - sum(reverse)) > 1e2 * gradient_tolerance(outputs, derived.inputs) * size:
        yield _finding(problem, "forward_over_reverse_wrong", "bug")


def _dot(a: Tensor, b: Tensor) -> float:
    """Return the real inner product."""
    return float((a.detach().conj() * b.detach()).real.double().sum())


def _directions(problem: Problem, count: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(problem.seed + 53)
    leaves = (problem.inputs[i] for i in problem.differentiable)
    return [torch.randn((count, *x.shape), generator=generator, dtype=x.dtype).to(x.device) for x in leaves]


@hands_over
def _pushed(problem: Problem, tangents: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """Return the tangents of all outputs; None where none came."""
    given: list[Any] = list(problem.fresh())
    with forward_ad.dual_level():
        for i, u in zip(problem.differentiable, tangents, strict=True):
            given[i] = forward_ad.make_dual(given[i], u)
        found = problem.evaluate(tuple(given))
        return tuple(forward_ad.unpack_dual(y).tangent for y in found)


def _dense(tangents: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the tangents of the floating outputs, zeros where none came."""
    pairs = [(t, y) for t, y in zip(tangents, outputs, strict=True) if y.is_floating_point() or y.is_complex()]
    return [torch.zeros_like(y.detach()) if t is None else t for t, y in pairs]


def _finding(problem: Problem, code: str, kind: Any, **params: Any) -> Finding:
    return Finding(code, kind, f"checking.{code}", params, None, phrases.method_line(problem, "jvp"))
