"""Checks in a hurry: each accuses right Functions of one thing, since it looks at one sign of it alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from own_mistakes import Mistake
from torch import Tensor

from nbautograd.core.checking.jacobian.forward_values import forward_without_autograd
from nbautograd.core.checking.other_points import expanded, strided
from nbautograd.core.checking.probes.usage import graph_leaves
from nbautograd.core.checking.problem import Problem

SEEDS = range(20)  # of grad_outputs: round-off is seen in some and not in others
Lay = Callable[[Tensor], Tensor]


def hastily_accused(one: Mistake) -> bool:
    """Tell if the hasty check of a Function's code accuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CHECKS[one.codes[0]](one)


def _state(one: Mistake) -> bool:
    """Any state at all, or a gradient that is wrong where also the inputs without grad have other values."""
    cls: Any = one.fn.__self__  # type: ignore[attr-defined]
    before = _kept(cls)
    generator = torch.Generator().manual_seed(1)

    def moved(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        return (x.detach() + 0.3 * torch.rand(x.shape, generator=generator, dtype=x.dtype)).requires_grad_(
            x.requires_grad
        )

    try:
        right = torch.autograd.gradcheck(one.fn, tuple(map(moved, one.inputs())), raise_exception=False)
    except Exception:
        right = False
    return not right or _kept(cls) != before


def _kept(cls: type) -> dict[str, str]:
    return {name: repr(value) for name, value in vars(cls).items() if not isinstance(value, staticmethod)}


def _layout_of_inputs(one: Mistake) -> bool:
    """Other values or gradients where the same numbers lie in memory in another way."""

    def laid(x: Any, lay: Lay) -> Any:
        return lay(x.detach()).requires_grad_() if isinstance(x, Tensor) and x.requires_grad else x

    def pack(x: Tensor) -> Tensor:
        return x.clone(memory_format=torch.contiguous_format)

    for lay in (strided, expanded):
        odd = tuple(laid(x, lay) for x in one.inputs())
        if _differ(_run(one.fn, odd), _run(one.fn, tuple(laid(x, pack) for x in odd))):
            return True
    return False


def _layout_of_gradients(one: Mistake) -> bool:
    """Another gradient for a grad_output that lies in memory in another way."""
    for lay in (strided, expanded):
        for seed in SEEDS:
            odd = _run(one.fn, one.inputs(), lay, seed)
            if _differ(odd, _run(one.fn, one.inputs(), lambda v, lay=lay: lay(v).contiguous(), seed)):
                return True
    return False


def _hidden(one: Mistake) -> bool:
    """A global that requires grad in the text of forward, or a leaf of its graph that is no argument."""
    forward = one.fn.__self__.forward  # type: ignore[attr-defined]
    around = (forward.__globals__.get(name) for name in forward.__code__.co_names)
    if any(isinstance(value, Tensor) and value.requires_grad for value in around):
        return True
    problem = Problem(one.fn, one.inputs())
    given, run = problem.fresh(), forward_without_autograd(problem)
    assert run is not None
    return any(id(leaf) not in {id(x) for x in given} for leaf in graph_leaves(run(*given)))


def _run(fn: Any, inputs: tuple[Any, ...], lay: Lay = lambda v: v, seed: int = 1) -> list[Tensor]:
    """Return the outputs and the gradients, random numbers being those of one seed."""
    torch.manual_seed(0)
    found = fn(*inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    generator = torch.Generator().manual_seed(seed)
    weights = [lay(torch.randn(y.shape, generator=generator, dtype=y.dtype)) for y in outputs]
    leaves = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    return [y.detach() for y in outputs] + list(torch.autograd.grad(outputs, leaves, weights))


def _differ(one: list[Tensor], other: list[Tensor]) -> bool:
    return not all(torch.allclose(a, b, rtol=1e-6, atol=0) for a, b in zip(one, other, strict=True))


CHECKS: dict[str, Callable[[Mistake], bool]] = {
    "shared_state": _state,
    "wrong_noncontiguous_input": _layout_of_inputs,
    "wrong_noncontiguous_grad": _layout_of_gradients,
    "hidden_input": _hidden,
    "small_systematic": lambda one: not torch.autograd.gradcheck(one.fn, one.inputs(), raise_exception=False),
    "double_backward_wrong": lambda one: not torch.autograd.gradgradcheck(one.fn, one.inputs(), raise_exception=False),
}
