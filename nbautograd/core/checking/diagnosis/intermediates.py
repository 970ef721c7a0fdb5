"""The variable of backward that goes wrong: with the right value in its place, the gradient is right.

Autograd of the class's own forward knows the value of each expression of forward, and the gradient that arrives at it.
A variable of backward that depends on grad_output stands for such a gradient, any other for such a value, or for a
derivative of the output up to a constant. The mistake is in the statement that made the first variable which, replaced
by one of them, mends the gradient, or before it: a later one would mend it too, an earlier one does not. What is
replaced is sought at the inputs given and borne out at others, of other sizes among them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.diagnosis.instrumented_backward import InstrumentedBackward, Key
from nbautograd.core.checking.diagnosis.replacement_point import ReplacementPoint, equal
from nbautograd.core.checking.diagnosis.wrong_variable import Site, WrongVariable
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.prepared_inputs import copy
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import any_errors, users_errors

MOST = 200  # backwards with another value that are tried
ARGUMENTS = 2  # places at which an argument that is no tensor is another
PLACES = 3  # at which a value has to mend the gradient: where it was found, and elsewhere
ELEMENTS = 20_000  # of the inputs up to which values are tried
ROUNDINGS = 1000  # of a variable, relative to its largest element, beyond which it is another number


def wrong_variable(problem: Problem, position: int, entering: bool = True) -> WrongVariable | None:
    """Find the first variable of backward that goes wrong on the way to an input's gradient; None where none is known.

    Args:
        problem: what was checked; a session of it must be open.
        position: of the input whose gradient is wrong.
        entering: True to look for one that alone enters all that is wrong, where nothing that forward has mends it.
    """
    size = sum(x.numel() for x in problem.inputs if isinstance(x, Tensor))
    if problem.cls is None or not problem.direct or size > ELEMENTS:
        return None
    with any_errors("wrong variable"):
        bench = _Bench(problem, position)
        return bench.search(entering) if bench.sites else None
    return None  # where backward or forward cannot be run so, nothing is claimed


def rounded_variable(problem: Problem, double: Problem, position: int) -> Site | None:
    """Find the first variable of backward without grad_output in it that is another number in double precision.

    Args:
        problem: what was checked; a session of it must be open.
        double: the same with inputs in double precision.
        position: of the input whose gradient is wrong.
    """
    if problem.cls is None or not problem.direct:
        return None
    with any_errors("rounded variable"), double.session():
        double.call()
        places = [ReplacementPoint(_Bench(p, position), p.fresh()) for p in (problem, double)]
        known = {number: value for number, value, kind in places[1].values if kind == "value"}
        for number, value, kind in places[0].values:
            if kind == "value" and value.is_floating_point() and number in known:
                rel = ROUNDINGS * torch.finfo(value.dtype).eps
                if not agree_relative(value.detach().double(), known[number].detach(), rel):
                    return places[0].bench.sites[number]
    return None


class _Bench(InstrumentedBackward):
    """A backward and a forward of one problem, and the search for the variable that goes wrong in it."""

    def search(self, entering: bool) -> WrongVariable | None:
        """Find the variable, and what belongs in its place, at the first place; bear it out at the others."""
        if self.forward is None or self.backward is None:
            return None
        places = self._places(self._inputs(), PLACES)
        if len(places) < PLACES:
            return None
        places += self._places(_inputs_of(points(self.problem).of("argument")), ARGUMENTS)
        self.agreed = set[int]()
        first, self.left, right, own = places[0], MOST, set(self.arguments), self.own or 0
        earlier: WrongVariable | None = None
        last = len(self.sites)
        for number, value, kind in first.values:
            site = self.sites[number]
            if site.allocated:
                continue  # what only allocates is never wrong by itself
            pool = first.pool(kind, value) if isinstance(value, Tensor) else []
            same = [key for key, tensor in pool if tensor.shape == value.shape and equal(value, tensor, first.rel)]
            named = any(self.expression(key)[0] in (site.name, _without_prefix(site.name)) for key in same)
            found = None
            if not (same and named):
                found = self._known(places, number, [item for item in pool if item[0] not in same])
                found = None if found is not None and self._masked(places, number, found) else found
            before = set(right)  # what the statement reads by the name that it writes is what it was before
            if number >= own:
                right.discard(site.name)
                agrees = found is None and (named or not site.from_ctx or kind == "number")
                agrees = agrees and self._agrees(places, number, same)
                right |= {site.name} if agrees else set()
                self.agreed |= {number} if agrees else set()
            if found is not None and number >= own:
                piecewise = any(s.name == site.name and not s.assigned for s in self.sites)
                found = (
                    replace(found, piecewise=piecewise)
                    if site.from_ctx
                    else self._traced(places, replace(found, piecewise=piecewise), before)
                )
            called_so = found is not None and found.expression == _without_prefix(site.name)
            if found is not None and (not same or site.from_ctx or not site.assigned or called_so):
                earlier, last = found, number
                break
            if earlier is None and found is not None:
                # right as something: what makes another thing of it later may be wrong as well
                earlier, last = found, number
        known = earlier is not None and (earlier.alone or earlier.site.from_ctx or not earlier.whole)
        return earlier if known or not entering else self._entering(places, last) or earlier

    def _traced(self, places: Sequence[ReplacementPoint], found: WrongVariable, right: set[str]) -> WrongVariable:
        """Say of which names of its statement it is not known that they are as forward has them.

        What a loop writes was looked at before it and after it: of its values in between nothing is known, nor
        whether the numbers in its head are those that it should run by.
        """
        used, loop = found.site.reads - self.modules(), found.site.loop
        right = right - {site.name for site in self.sites if loop and site.loop == loop}
        on_ctx = (
            {} if loop else {name.removeprefix("ctx."): name for name in re.findall(r"\bctx\.\w+", found.site.text)}
        )
        kept = {a for a in on_ctx if all(p.named_so(a, getattr(p.node, a, None)) for p in places)}
        used -= {"ctx"} if not loop and kept == set(on_ctx) else set()
        return replace(found, unknown=tuple(sorted(used - right)))

    def _agrees(self, places: Sequence[ReplacementPoint], number: int, same: Sequence[Key]) -> bool:
        """Return True for a variable that is the same value or gradient of forward at each place.

        What comes out as grad_output went in says nothing of what else it is computed from. A number is right where
        forward calls the same one so.
        """
        if not isinstance(places[0].seen(number), Tensor):
            return all(p.named_so(self.sites[number].name, p.seen(number)) for p in places)
        copied = any(places[0].equals(number, v) for v in places[0].v)
        if copied and not self.sites[number].reads <= {*self.arguments, *self.modules()}:
            return False
        return any(all(p.equals(number, p.candidates.get(key)) for p in places) for key in same)

    def _masked(self, places: Sequence[ReplacementPoint], number: int, found: WrongVariable) -> bool:
        """Return True where a mask used beside a variable is not known to be right.

        A derivative that is zero where the mask should be mends the gradient in the variable's place as well.
        """
        if found.kind not in ("derivative", "gradient") or found.site.from_ctx:
            return False
        meets = [site for site in self.sites[number + 1 :] if found.site.name in site.reads]
        for k, value, _ in places[0].values:
            site = self.sites[k]
            used = any(site.text in m.text if site.condition else site.name in m.reads for m in meets)
            if k == number or not used or site.allocated or found.site.name in site.reads or not _is_mask(value):
                continue
            same = [key for key, tensor in places[0].candidates.items() if places[0].equals(k, tensor)]
            if not any(all(p.equals(k, p.candidates.get(key)) for p in places) for key in same):
                return True
        return False

    def _known(
        self, places: Sequence[ReplacementPoint], number: int, pool: Sequence[tuple[Key, Tensor]]
    ) -> WrongVariable | None:
        """Try what forward has in the place of a variable."""
        first, *others = places
        for key, tensor in pool:
            self.left -= 1
            if self.left < 0:
                return None
            whole = key == ("gradient", -1 - self.position)
            if (whole or first.is_whole(tensor)) and not first.returned(number, tensor):
                continue  # what follows would mend more than it can: it projects, or masks
            # what is the same near the inputs may be another further off, as a mask is
            elsewhere = itertools.chain(others, self._further) if first.mended(number, tensor) else None
            if elsewhere is not None and all(p.borne_out(number, key) for p in elsewhere):
                expression, line = self.expression(key)
                site = self.sites[number]
                if site.from_ctx and first.is_saved(tensor):  # what is taken is another of those that are saved
                    site = replace(site, from_ctx="", assigned=False)
                    return WrongVariable(site, "taken", expression, line, False)
                return WrongVariable(site, key[0], expression, line, whole)
        return None

    def _may_be_wrong(self, number: int) -> bool:
        site = self.sites[number]
        return not (site.allocated or site.from_ctx or site.condition or number in self.agreed)

    def _entering(self, places: Sequence[ReplacementPoint], last: int) -> WrongVariable | None:
        """Return the only variable that enters several gradients, all that is wrong and nothing that is right."""
        asked = [k for k in range(self.own or 0, last) if self._may_be_wrong(k)] if places[0].several else []
        found = {self.sites[k].name: k for k in asked if all(p.alone_wrong(k) for p in places)}
        return None if len(found) != 1 else WrongVariable(self.sites[found.popitem()[1]], "entering", "", None, False)

    def _inputs(self) -> Iterator[tuple[Any, ...]]:
        """Yield the inputs given, those of another size, others near them and of both signs."""
        stream = points(self.problem)
        for kind, some in (("given", 1), ("together", 1), ("near", 1), ("signed", 1)):
            yield from itertools.islice(_inputs_of(stream.of(kind)), some)
        yield from itertools.islice(_inputs_of(stream.of("near")), 1, 2)

    @cached_property
    def _further(self) -> list[ReplacementPoint]:
        """Places at inputs that are larger."""
        return self._places(itertools.islice(_inputs_of(points(self.problem).of("larger")), 2), PLACES)

    def _places(self, inputs: Iterable[tuple[Any, ...]], most: int) -> list[ReplacementPoint]:
        """Return the first of these inputs at which the gradient is wrong, and its right value known."""
        return list(itertools.islice((p for p in map(self._place, inputs) if p is not None), most))

    def _place(self, inputs: tuple[Any, ...]) -> ReplacementPoint | None:
        with users_errors():
            place = ReplacementPoint(self, inputs)
            return place if place.wrong else None
        return None


def _inputs_of(stream: Iterable[Point]) -> Iterator[tuple[Any, ...]]:
    return (tuple(map(copy, at.inputs)) for at in stream)


def _without_prefix(name: str) -> str:
    """Return what a gradient is called after: ``scores`` of ``d_scores``, ``grad_scores`` and ``gscores``."""
    return re.sub(r"^(grad|d|g)_?", "", name)


def _is_mask(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() > 1 and bool(((value == 0) | (value == 1)).all())
