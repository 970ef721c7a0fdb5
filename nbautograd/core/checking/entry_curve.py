"""Asking once more at what was checked: the Function and its inputs, known for as long as the report lives."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking import prepared_inputs
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.arrays import from_array, to_array, to_real
from nbautograd.errors import InputError

Array = np.ndarray[Any, Any]
MOST_REPORTS = 16  # the newest, whose inputs are kept
LARGEST = 100_000  # elements of all inputs together
STEPS = 10.0 ** -np.arange(0, 12.5, 0.5)  # from 1 to 1e-12
PRECISIONS = (torch.float64, torch.float32)

_problems: OrderedDict[int, tuple[weakref.ref[Any], Problem]] = OrderedDict()


def remember_problem(report: Any, problem: Problem) -> None:
    """Remember what a report is about until the report is gone, for the last reports and inputs that are not large."""
    if sum(item.numel() for item in problem.inputs if isinstance(item, Tensor)) > LARGEST:
        return
    key = id(report)
    # as a default, for modules are emptied when Python ends, and reports may be gone later
    forget = lambda _gone, problems=_problems: problems.pop(key, None)  # noqa: E731
    _problems[key] = weakref.ref(report, forget), problem
    while len(_problems) > MOST_REPORTS:
        _problems.popitem(last=False)


def problem_of(report: Any) -> Problem:
    """Return the problem of a report.

    Raises:
        InputError: when it is not known any more, as in a kernel that did not make the report.
    """
    reference, problem = _problems.get(id(report), (None, None))
    if reference is None or problem is None or reference() is not report:
        raise InputError("checking.not_kept")
    return problem


@dataclass(frozen=True)
class EntryCurve:
    """One element of an output along one element of an input, in one precision.

    Attributes:
        center: the output at the input itself.
        plus, minus: the output with the input moved up and down by each of ``STEPS``.
    """

    center: float
    plus: Array
    minus: Array


def entry_curves(problem: Problem, block: tuple[int, int], entry: tuple[int, int]) -> dict[str, EntryCurve]:
    """Return the forward along one input element, by precision; a precision that forward refuses is left out.

    Args:
        block: positions of the output and the input.
        entry: numbers of the output's element (row) and the input's (column); complex ones count as pairs.
    """
    with problem.session(), torch.no_grad():
        curves = {str(d).removeprefix("torch."): _curve(problem, block, entry, d) for d in PRECISIONS}
    return {name: curve for name, curve in curves.items() if curve is not None}


def _curve(problem: Problem, block: tuple[int, int], entry: tuple[int, int], dtype: torch.dtype) -> EntryCurve | None:
    try:
        center, plus, minus = (
            np.array([_value(problem, block, entry, dtype, float(t)) for t in moves])
            for moves in ((0.0,), STEPS, -STEPS)
        )
        return EntryCurve(float(center[0]), plus, minus)
    except (RuntimeError, TypeError, ValueError):
        return None


def _value(problem: Problem, block: tuple[int, int], entry: tuple[int, int], dtype: torch.dtype, move: float) -> float:
    given = [prepared_inputs.copy(item) for item in problem.inputs]
    for k, item in enumerate(given):
        if isinstance(item, Tensor) and (item.is_complex() or item.is_floating_point()):
            given[k] = item.detach().to(dtype.to_complex() if item.is_complex() else dtype)
    moved = to_array(given[block[1]])
    moved.reshape(-1)[entry[1]] += move
    given[block[1]] = from_array(moved, given[block[1]])
    output = problem.evaluate(tuple(given))[block[0]]
    return float(to_real(output).reshape(-1)[entry[0]])


def random_inputs(problem: Problem, seed: int, draw: Callable[..., Any] = torch.randn) -> tuple[Any, ...]:
    """Return other inputs of the same shapes and kinds: random where the check differentiates, else the same."""
    generator = draws.generator(seed, "inputs")
    return problem.changed_inputs(lambda x: draw(x.shape, generator=generator, dtype=x.dtype).to(x.device))
