"""The share of a gradient that comes through one expression of forward: missing, of the wrong sign, or scaled.

The witness is autograd of the class's own forward, in which one expression after another is detached. With r the right
gradient and d the one without the share, backward's is r + k (r - d): k is -1 where the expression was taken for a
constant, -2 where its share has the wrong sign.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Collection, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking import other_points
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.hypothesis import Case, Cause, Confirmation, Hypothesis
from nbautograd.core.checking.diagnosis.rewritten import Wrapped, expressions, method, recompiled
from nbautograd.core.checking.directional import trusted
from nbautograd.core.checking.jacobian.forward_values import by_autograd
from nbautograd.core.checking.problem import Problem, pullback
from nbautograd.core.contract import rules
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import SIGNIFICANT, STEADY
from nbautograd.core.stumbles import users_errors

MOST = 80  # expressions of forward that are tried: a forward and a backward each
CUT = "_cut"  # what the call around an expression is named
SIZES = 3  # at which the share is looked at besides those of the inputs
SENTENCES = ("share_missing", "share_sign", "share_sized", "share_scaled")  # the likeliest first
FREE = ("share_sized", "share_scaled")  # of these k is whatever number fits
SPARE = 4  # entries, beyond one for each number that is found, that bear it out


def plausible(e: Evidence) -> Cause | None:
    """Return the cause where something of the gradient is there, and something is wrong."""
    there = e.A.any() and e.wrong.any() and np.isfinite(e.A).all()
    return Cause("wrong_derivative", "share_missing") if there else None


def share(case: Case) -> tuple[str, dict[str, Any]] | None:
    """Find the expression of forward whose share of the gradient is wrong, all else being right.

    Args:
        case: of the wrong block.

    Returns:
        The sentence, one of ``SENTENCES``, and what it speaks of, borne out at the inputs given, at fresh ones and at
        other sizes; None where there is no such expression.
    """
    problem, block = case.problem, case.evidence.block
    cls: Any = problem.cls
    own = None if cls is None else method(cls.forward)
    if own is None:
        return None
    function, tree = own
    where = block.output, problem.differentiable.index(block.input)
    made = (_Place(problem, inputs, where, problem.seed + 84 + k) for k, inputs in enumerate(_inputs(problem)))
    places = [p for p in made if p.wrong]
    found: dict[str, dict[str, Any]] = {}
    fitting: list[float] = []
    inside = _inside(tree) if len(places) > 2 else []
    cut = _Cut(function, tree, inside[:MOST])
    for number in cut.reached(places[0]) if inside else ():
        node, factors = inside[number], list(_factors(places, cut, number))
        same = {k for k, place in zip(factors, places, strict=False) if place.shapes == places[0].shapes}
        if len(factors) == len(places) and _alike(same):
            k = factors[0]
            message = "share_missing" if _is(k, -1) else "share_sign" if _is(k, -2) else "share_scaled"
            if not _alike(factors):
                message = "share_sized"
            if message in FREE:
                numbers = len({tuple(p.shapes) for p in places}) if message == "share_sized" else 1
                if not _overdetermined(places, numbers):
                    continue  # some number fits anything
                fitting.append(k)
            text = ast.unparse(node)
            again = sum(ast.unparse(other) == text and other.lineno == node.lineno for other in inside) > 1
            at = f"{node.lineno}:{node.col_offset + 1}" if again else str(node.lineno)
            named = {"expression": rules.short(text), "at": at, "ratio": f"{1 + k:.6g}"}
            found.setdefault(message, named)
            if message == "share_missing":
                break
    told = [m for m in SENTENCES if m in found and (m not in FREE or _alike(fitting))]  # of two shares neither is named
    return (told[0], found[told[0]]) if told else None


def _overdetermined(places: Sequence[_Place], numbers: int) -> bool:
    """Return True if these numbers hold at other values and at another size, in more entries than they are."""
    alike = [place.shapes == places[0].shapes for place in places]
    entries = sum(int((place.right != 0).sum()) for place in places if place.right is not None)
    return alike.count(True) > 1 and not all(alike) and entries - numbers >= SPARE


def _is(k: float, whole: int) -> bool:
    return abs(k - whole) <= STEADY


class _Cut:
    """A forward in which each of some expressions can be detached, compiled once for all of them.

    Args:
        function: the forward.
        tree: its syntax tree.
        nodes: the expressions.
    """

    def __init__(self, function: FunctionType, tree: ast.FunctionDef, nodes: Sequence[ast.expr]) -> None:
        self._number, self._seen = -1, set[int]()
        self.forward = recompiled(function, Wrapped(nodes, CUT).visit(copy.deepcopy(tree)), {CUT: self._at})

    def _at(self, number: int, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        self._seen |= {number} if value.requires_grad else set()
        return value.detach() if number == self._number else value

    def reached(self, place: _Place) -> list[int]:
        """Return the numbers of the expressions through which a gradient comes at a place."""
        self.detached(place, -1)
        return sorted(self._seen)

    def detached(self, place: _Place, number: int) -> Tensor | None:
        """Return the gradient at a place with this expression detached; None where forward cannot be run so."""
        self._number = number
        found = None
        with users_errors():
            found = None if self.forward is None else place.by_autograd(self.forward)
        return None if found is None else found[place.which]


def _factors(places: Sequence[_Place], cut: _Cut, number: int) -> Iterator[float]:
    """Yield the k of the formula above for each place, until there is none."""
    for place in places:
        k = place.excess(cut.detached(place, number))
        if k is None:
            return
        yield k


def _alike(factors: Collection[float]) -> bool:
    return max(factors) - min(factors) <= STEADY * max(abs(k) for k in factors)


def _confirmed(hypothesis: Hypothesis, found: Cause, case: Case) -> Cause | None:
    """Return the cause with the outermost expression that explains the gradient at the inputs and at fresh ones."""
    known = share(case)
    return None if known is None else Cause(found.code, *known)


def _inputs(problem: Problem) -> Iterator[tuple[Any, ...]]:
    """Yield the inputs given, others near them and of both signs, and those of another size."""
    yield problem.fresh()
    yield other_points.nearby_inputs(problem, problem.seed + 81)
    yield other_points.in_domain(problem, problem.seed + 82)
    yield from itertools.islice(other_points.together(problem, problem.seed + 83), SIZES)


class _Place:
    """One call, and the gradient of one output for one input that the user's backward gives there.

    Args:
        problem: what was checked.
        inputs: of the call.
        where: numbers of the output, and of the input among the differentiable ones.
        seed: of the cotangents.

    Attributes:
        shapes: of the inputs that are tensors.
        given: what backward gives.
        right: what autograd of the forward gives.
        wrong: True where autograd of the forward is right, and backward gives something else.
    """

    def __init__(self, problem: Problem, inputs: tuple[Any, ...], where: tuple[int, int], seed: int) -> None:
        self.problem, (self.output, self.which), self.wrong = problem, where, False
        with users_errors() as guard:
            outputs = problem.call(inputs)
            self.outputs = outputs
            self.shapes = [x.shape for x in outputs.inputs if isinstance(x, Tensor)]
            self.v = cotangents(problem, outputs, seed, self.output)
            self.returned = pull(problem, outputs, self.v)[self.which]
            found = self.by_autograd(None)
            known = found is not None and trusted(problem, outputs, self.v, found, self.which, seed + 20)
        if guard.failed:
            return
        self.right = None if found is None else found[self.which]
        self.rel = max(SIGNIFICANT, gradient_tolerance(outputs, problem.inputs))
        self.wrong = known and self.right is not None and not agree_relative(self.returned, self.right, self.rel)

    def excess(self, without: Tensor | None) -> float | None:
        """Return the k of the formula above where this is the gradient without the share; None where there is none."""
        if without is None or self.returned is None or self.right is None:
            return None
        part, rest = (_real(self.right - without), _real(self.returned - self.right))
        power = float((part * part).sum())
        k = float((rest * part).sum()) / power if power else 0.0
        built = self.right + k * (self.right - without)
        return k if k and agree_relative(self.returned, built, self.rel) else None

    def by_autograd(self, forward: FunctionType | None) -> tuple[Tensor | None, ...] | None:
        """Return the gradients of all inputs by autograd of a forward, by default the class's own."""
        found = by_autograd(self.problem, self.outputs, forward)
        if found is None:
            return None
        leaves, outputs = found
        return pullback(outputs, [leaves[i] for i in self.problem.differentiable], self.v)


def _real(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _inside(tree: ast.FunctionDef) -> list[ast.expr]:
    """Return the expressions of forward from which an output may be computed, outermost first."""
    returned = {id(n.value) for n in user_source.returns(tree)}
    return sorted((n for n in expressions(tree) if id(n) not in returned), key=lambda n: -len(ast.unparse(n)))


AUTOGRAD_OF_FORWARD = Confirmation("autograd of the forward, one expression constant, at fresh inputs", _confirmed)
