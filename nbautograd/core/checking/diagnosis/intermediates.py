"""The variable of backward that goes wrong: with the right value in its place, the gradient is right.

Autograd of the class's own forward knows the value of each expression of forward, and the gradient that arrives at it.
A variable of backward that depends on grad_output stands for such a gradient, any other for such a value, or for a
derivative of the output up to a constant. The mistake is in the statement that made the first variable which, replaced
by one of them, mends the gradient, or before it: a later one would mend it too, an earlier one does not. What is
replaced is sought at the inputs given and borne out at others, of other sizes among them.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking import backward_lines, other_points
from nbautograd.core.checking.backward_call import (
    backward_replaced,
    cotangents,
    gradient_tolerance,
    own_node,
    pull,
    tensors_on_ctx,
    user_backward,
)
from nbautograd.core.checking.diagnosis.rewritten import Method, Wrapped, expressions, method, recompiled
from nbautograd.core.checking.diagnosis.wrong_variable import Site, WrongVariable
from nbautograd.core.checking.directional import trusted
from nbautograd.core.checking.jacobian.forward_values import by_autograd
from nbautograd.core.checking.problem import Problem, pullback
from nbautograd.core.contract import rules
from nbautograd.core.findings import Phrase
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import SIGNIFICANT
from nbautograd.core.user_source import assigned, in_place, named_functions, names_read, names_written

MOST = 200  # backwards with another value that are tried
ARGUMENTS = 2  # places at which an argument that is no tensor is another
LARGER = 3.0  # times as large: inputs at which a mask that belongs in a variable's place is tried as well
PLACES = 3  # at which a value has to mend the gradient: where it was found, and elsewhere
SOLVED = 64  # elements of a condition up to which it is solved where to turn it over
ELEMENTS = 20_000  # of the inputs up to which values are tried
SPARE = 2  # elements of gradients at each place beyond those of a variable that is solved for
ARRIVING = 3  # cotangents for which the same numbers have to mend the gradients
RUNS = 2000  # of backward with numbers solved for
NEWTON, NEAR = 4, 1e-4  # steps of Newton's method, and the differences they are found by
ROUNDINGS = 1000  # of a variable, relative to its largest element, beyond which it is another number
REPEATED = (ast.For, ast.While, ast.Try)
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
HELD, SEEN = "_held", "_seen"  # what the calls around variables and expressions are named

Arrival = tuple[Sequence[Tensor | None], Sequence[Tensor | None]]  # for the outputs, and the gradients that are right
Key = tuple[str, int]  # "gradient", "value" or "derivative" (of the output), and the number of an expression of forward


def wrong_variable(problem: Problem, position: int, solved: bool = True) -> WrongVariable | None:
    """Find the first variable of backward that goes wrong on the way to an input's gradient; None where none is known.

    Args:
        problem: what was checked; a session of it must be open.
        position: of the input whose gradient is wrong.
        solved: True to look for one of which other numbers mend the gradient, where nothing that forward has does.
    """
    size = sum(x.numel() for x in problem.inputs if isinstance(x, Tensor))
    if problem.cls is None or not problem.direct or size > ELEMENTS:
        return None
    try:
        bench = _Bench(problem, position)
        return bench.search(solved) if bench.sites else None
    except Exception:
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
    with contextlib.suppress(Exception), double.session():
        double.call()
        places = [_Place(_Bench(p, position), p.fresh()) for p in (problem, double)]
        known = {number: value for number, value, kind in places[1].values if kind == "value"}
        for number, value, kind in places[0].values:
            if kind == "value" and value.is_floating_point() and number in known:
                rel = ROUNDINGS * torch.finfo(value.dtype).eps
                if not agree_relative(value.detach().double(), known[number].detach(), rel):
                    return places[0].bench.sites[number]
    return None


class _Bench:
    """A backward and a forward of which each intermediate value can be seen, and those of backward be replaced.

    Args:
        problem: what was checked.
        position: of the input whose gradient is wrong.
    """

    def __init__(self, problem: Problem, position: int) -> None:
        self.problem, self.position = problem, position
        self.which = problem.differentiable.index(position)
        self.sites: list[Site] = []
        cls: Any = problem.cls
        forward, backward = method(cls.forward), method(user_backward(cls))
        if forward is None or backward is None:
            return
        self.nodes = expressions(forward[1])
        self.labels = _labels(forward[1], self.nodes)
        seeing = Wrapped(self.nodes, SEEN).visit(copy.deepcopy(forward[1]))
        self.forward = recompiled(forward[0], seeing, {SEEN: self._seen})
        self.arguments, self.outside = user_source.parameters(backward[1])[1:], backward[0].__globals__
        self.own: int | None = None  # number of the first in backward itself, once the functions beside it are done
        own = {name: one for name, one in _helpers(backward).items() if name not in _helpers(forward)}
        helpers = {name: self._holding(one, {}) for name, one in own.items()}
        self.own = len(self.sites)
        self.backward = self._holding(backward, {name: made for name, made in helpers.items() if made is not None})
        self.replaced: tuple[int, Any] | None = None
        self.seen: dict[int, Any] = {}
        self.held: dict[int, Any] = {}

    def _holding(self, one: Method, helpers: Mapping[str, FunctionType]) -> FunctionType | None:
        """Return a function that hands its variables and conditions, and what it returns, through a call."""
        tree = copy.deepcopy(one[1])
        tree.body = list(self._held_after(tree.body, set(user_source.parameters(tree))))
        return recompiled(one[0], tree, {HELD: self._held, **helpers})

    def _held_after(self, statements: Sequence[ast.stmt], known: set[str]) -> Iterator[ast.stmt]:
        """Yield the statements, each variable handed through a call after its writer; a loop counts as one."""
        for statement in statements:
            sites = list(self._written(statement, known))
            if not isinstance(statement, (*REPEATED, ast.With, ast.FunctionDef, ast.ClassDef)):
                self._hold_conditions(statement)
            if isinstance(statement, ast.Return) and statement.value is not None:
                statement.value = self._hold_returned(statement.value)
            own = isinstance(statement, (ast.If, ast.With))
            for name in ("body", "orelse") if own or isinstance(statement, REPEATED) else ():
                inner = getattr(statement, name, None)
                if inner:
                    setattr(statement, name, list(self._held_after(inner, known if own else set(known))))
            yield statement
            for site in sites:
                call = f"{site.name} = {HELD}({len(self.sites)}, {site.name})"
                self.sites.append(site)
                known.add(site.name)
                yield ast.copy_location(ast.parse(call).body[0], statement)

    def _written(self, statement: ast.stmt, known: set[str]) -> Iterator[Site]:
        """Yield the variables that a statement writes; of what may not run those that were there before."""
        if isinstance(statement, (ast.If, ast.With, ast.FunctionDef, ast.ClassDef, ast.Return, ast.Raise)):
            return
        pairs, inside = list(assigned(ast.walk(statement))), isinstance(statement, REPEATED)
        plain = isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets)
        for name in dict.fromkeys(n for target, _ in pairs for n in names_written(target) if n != "ctx"):
            mine = [(target, value) for target, value in pairs if name in names_written(target)]
            if inside and name not in known:
                continue
            value, reads = mine[0][1], (names_read(v) for _, v in (pairs if inside else mine))
            methods = (v.func.attr for _, v in mine if isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute))
            written_into = all(not isinstance(t, (ast.Name, ast.Tuple, ast.List)) for t, _ in mine)
            changed = inside or isinstance(statement, ast.AugAssign) or written_into or any(map(in_place, methods))
            alone = plain and len(mine) == 1 and not changed
            writers = (
                [n for n in ast.walk(statement) if isinstance(n, SIMPLE) and name in _names_in(n)] if inside else []
            )
            own = writers[0] if len(writers) == 1 else None
            yield Site(
                name,
                own.lineno if own else statement.lineno if inside else max(v.lineno for _, v in mine),
                ast.unparse(own or statement).split("\n")[0] if inside else ast.unparse(value if alone else statement),
                _from_ctx(value),
                frozenset().union(*reads) | ({name} if changed else set()),
                not changed and all(map(backward_lines.is_maker, getattr(value, "elts", [value]))),
                alone,
                loop=statement.lineno if inside else 0,
            )

    def _hold_conditions(self, statement: ast.stmt) -> None:
        """Hand each comparison, and what an ``if`` tests, through a call; of an ``if`` statement the test alone."""
        root = statement.test if isinstance(statement, ast.If) else statement
        tests = [n.test for n in ast.walk(statement) if isinstance(n, ast.IfExp)]
        tests += [statement.test] if isinstance(statement, ast.If) else []
        local = {id(n) for f in ast.walk(root) if isinstance(f, (ast.Lambda, ast.comprehension)) for n in ast.walk(f)}
        whole = {id(getattr(statement, "value", None))}  # what is assigned is seen as the variable
        nodes = [n for n in (*tests, *ast.walk(root)) if isinstance(n, ast.Compare) or any(n is t for t in tests)]
        kept = {id(n): n for n in nodes if id(n) not in local | whole and isinstance(n, ast.expr)}
        wrapped = Wrapped(list(kept.values()), HELD, len(self.sites))
        for node in kept.values():
            text = ast.unparse(node)
            self.sites.append(Site(text, node.lineno, text, "", names_read(node), False, False, True))
        for name, child in ast.iter_fields(statement):
            if isinstance(statement, ast.If) and name != "test":
                continue
            if isinstance(child, ast.AST):
                setattr(statement, name, wrapped.visit(child))

    def _hold_returned(self, value: ast.expr) -> ast.expr:
        """Hand each expression that is returned through a call."""
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        made = [n for n in items if not isinstance(n, (ast.Name, ast.Constant, ast.Starred))]
        wrapped: ast.expr = Wrapped(made, HELD, len(self.sites)).visit(value)
        for node in made:
            text = ast.unparse(node)
            self.sites.append(Site(text, node.lineno, text, "", names_read(node), False, False))
        return wrapped

    def _seen(self, number: int, value: Any) -> Any:
        self.seen[number] = None if number in self.seen else value  # of what runs more than once nothing is known
        return value

    def _held(self, number: int, value: Any) -> Any:
        self.held[number] = None if number in self.held else value  # likewise
        if self.replaced is None or self.replaced[0] != number:
            return value
        other = self.replaced[1]
        return other.clone() if isinstance(other, Tensor) else other(value) if callable(other) else other

    def search(self, solved: bool) -> WrongVariable | None:
        """Find the variable, and what belongs in its place, at the first place; bear it out at the others."""
        if self.forward is None or self.backward is None:
            return None
        places = self._places(self._inputs(), PLACES)
        if len(places) < PLACES:
            return None
        others = other_points.other_arguments(self.problem, self.problem.seed + 90)
        places += self._places((inputs for _, _, inputs in others), ARGUMENTS)
        self.runs, self.agreed = RUNS, set[int]()
        first, self.left, right, own = places[0], MOST, set(self.arguments), self.own or 0
        earlier: WrongVariable | None = None
        last = len(self.sites)
        for number, value, kind in first.values:
            site = self.sites[number]
            if site.allocated:
                continue  # what only allocates is never wrong by itself
            pool = first.pool(kind, value) if isinstance(value, Tensor) else []
            same = [key for key, tensor in pool if tensor.shape == value.shape and _equal(value, tensor, first.rel)]
            named = any(self._expression(key)[0] in (site.name, _without_prefix(site.name)) for key in same)
            found = None
            if not (same and named):
                found = self._known(places, number, [item for item in pool if item[0] not in same])
                found = None if found is not None and self._masked(places, number, found) else found
                found = found or (None if site.from_ctx else self._condition(places, number, value))
                found = found or (self._number(places, number) if kind == "number" else None)
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
        known = not solved or (earlier is not None and (earlier.condition or earlier.alone or earlier.site.from_ctx))
        return earlier if known else self._mending(places, last, earlier) or earlier

    def _traced(self, places: Sequence[_Place], found: WrongVariable, right: set[str]) -> WrongVariable:
        """Say which names of its statement are as forward has them, and of which that is not known.

        What a loop writes was looked at before it and after it: of its values in between nothing is known, nor
        whether the numbers in its head are those that it should run by.
        """
        used = found.site.reads - self._modules() - {HELD}
        loop = found.site.loop
        right = right - {site.name for site in self.sites if loop and site.loop == loop}
        seen = used & right - set(self.arguments)
        on_ctx = (
            {} if loop else {name.removeprefix("ctx."): name for name in re.findall(r"\bctx\.\w+", found.site.text)}
        )
        kept = {a for a in on_ctx if all(p.named_so(a, getattr(p.node, a, None)) for p in places)}
        seen |= {on_ctx[a] for a in kept}
        used -= {"ctx"} if not loop and kept == set(on_ctx) else set()
        return replace(found, unknown=tuple(sorted(used - right)), right=tuple(sorted(seen)))

    def _agrees(self, places: Sequence[_Place], number: int, same: Sequence[Key]) -> bool:
        """Return True for a variable that is the same value or gradient of forward at each place.

        What comes out as grad_output went in says nothing of what else it is computed from. A number is right where
        forward calls the same one so.
        """
        if not isinstance(places[0].seen(number), Tensor):
            return all(p.named_so(self.sites[number].name, p.seen(number)) for p in places)
        copied = any(places[0].equals(number, v) for v in places[0].v)
        if copied and not self.sites[number].reads <= {*self.arguments, *self._modules(), HELD}:
            return False
        return any(all(p.equals(number, p.candidates.get(key)) for p in places) for key in same)

    def _masked(self, places: Sequence[_Place], number: int, found: WrongVariable) -> bool:
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

    def _known(self, places: Sequence[_Place], number: int, pool: Sequence[tuple[Key, Tensor]]) -> WrongVariable | None:
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
                expression, line = self._expression(key)
                site = self.sites[number]
                if site.from_ctx and first.is_saved(tensor):  # what is taken is another of those that are saved
                    site = replace(site, from_ctx="", assigned=False)
                    return WrongVariable(site, "taken", expression, line, False)
                return WrongVariable(site, key[0], expression, line, whole)
        for key, tensor in pool:
            derivative = key[0] == "derivative" and not self.sites[number].from_ctx
            times = first.multiple(number, tensor) if derivative else None
            # the same multiple at each place of a size: a gradient of one number is a multiple of any other
            if times is not None and all(p.is_multiple(number, key, times, first.shapes) for p in others):
                return WrongVariable(self.sites[number], key[0], *self._expression(key), False, scaled=True)
        return None

    def _mending(self, places: Sequence[_Place], last: int, found: WrongVariable | None) -> WrongVariable | None:
        """Find the variable of which the fewest other numbers mend all gradients, whatever arrives for the outputs.

        What is wrong there needs as many numbers as it has elements; what is computed from it by a sum or a product of
        matrices cannot be mended so, or needs more. Of several that need as many it is the last, and so one that is
        returned is none.

        Args:
            places: where they have to.
            last: number of the variable behind those that are looked at.
            found: what that is, where it is known.
        """
        first, *others = places
        there = next((p for p in others if p.shapes == first.shapes), None)
        whole = found is None or found.whole
        sizes = {k: v.numel() for k, v, _ in first.values if isinstance(v, Tensor) and v.dtype is not torch.bool}
        asked = [
            k for k in sizes if (self.own or 0) <= k < last + whole and sizes[k] <= SOLVED and self._may_be_wrong(k)
        ]
        best, cost = -1, math.inf if whole else 2 * sizes.get(last, SOLVED)
        shared, free = (
            [(f, k) for k in sorted(asked, key=lambda k: (sizes[k], k if f else -k))] for f in (False, True)
        )
        for freely, number in (*shared, *free):
            if there is None or (freely and (best >= 0 or not whole)):
                break
            needed = self._needed(first, there, number, freely) if sizes[number] < cost else math.inf
            best, cost = (number, needed) if needed < cost else (best, cost)
        if best >= 0 and first.is_returned(best) and not _is_product(self.sites[best].text):
            return None
        if (best < 0 or first.is_returned(best)) and there is not None and found is not None and whole:
            # all that may be wrong of what is returned
            named = [k for k in asked if k < last and found.unknown == (self.sites[k].name,)][-1:]
            best = next((k for k in named if all(p.fits(k) for p in (first, there))), -1)
        if best < 0:
            return self._entering(first, last) if whole else None
        site = self.sites[best]
        return WrongVariable(
            site, "solved", "", None, False, flipped=_needed_value(site, first.held(best), first.only.get(best))
        )

    def _may_be_wrong(self, number: int) -> bool:
        site = self.sites[number]
        return not (site.allocated or site.from_ctx or site.condition or number in self.agreed)

    def _needed(self, here: _Place, there: _Place, number: int, freely: bool) -> float:
        """Return how many other numbers mend a variable at two places, infinitely many where none do.

        A variable that is the same at both has to be mended by the same; one that is mended freely by others for
        whatever arrives.
        """
        value, other = here.held(number), there.held(number)
        same = here.fixed(number) and value is not None and other is not None and torch.equal(value, other)
        if freely:
            mended = not same and all(p.fits(number, SPARE) for p in (here, there))
            return math.inf if not mended or value is None else value.numel()
        one = here.mending(number, here.arriving, 0 if same else SPARE)
        if one is None:
            return math.inf
        if same:
            return len(one) if there.mends(number, one, there.arriving) else math.inf
        two = there.mending(number, there.arriving)
        return math.inf if two is None else len(one) + len(two)

    def _entering(self, first: _Place, last: int) -> WrongVariable | None:
        """Return the only variable that enters several gradients, all that is wrong and nothing that is right."""
        asked = [k for k in range(self.own or 0, last) if self._may_be_wrong(k)] if first.several else []
        found = {self.sites[k].name: k for k in asked if first.alone_wrong(k)}
        return None if len(found) != 1 else WrongVariable(self.sites[found.popitem()[1]], "entering", "", None, False)

    def _number(self, places: Sequence[_Place], number: int) -> WrongVariable | None:
        """Try sizes of what forward has in the place of a plain number."""
        first, *others = places
        tried: dict[int, bool] = {}
        for (key, dim), size in first.sizes.items():
            if size not in tried:
                self.left -= 1
                tried[size] = self.left >= 0 and first.mended(number, size)
            alike = [
                d for (k, d) in first.sizes if k == key and all(p.sizes[k, d] == p.sizes[key, dim] for p in places)
            ]
            mended = tried[size] and len(alike) == 1 and all(p.mended(number, p.sizes[key, dim]) for p in others)
            # what only has to be large enough, as the end of a loop may, is no size of anything
            if mended and not any(all(p.mended(number, p.sizes[key, dim] + by) for p in places) for by in (1, -1)):
                text, line = self._expression(key)
                size_of = "numel()" if dim is None else f"shape[{dim}]"
                return WrongVariable(self.sites[number], "value", f"{text}.{size_of}", line, False)
        return None

    def _condition(self, places: Sequence[_Place], number: int, value: Any) -> WrongVariable | None:
        """Turn a condition over where that mends the gradient, at each place."""
        if not isinstance(value, bool) and getattr(value, "dtype", None) is not torch.bool:
            return None
        turned: list[tuple[int, int, set[bool]]] = []
        for place in places:
            one = place.turned_over(number)
            if one is None:
                return None
            turned.append(one)
        if {way for *_, values in turned for way in values} != {True, False}:
            return None  # what is never right on one way is computed wrongly there, under a right condition
        count, entries, _ = turned[0]
        flipped = Phrase("causes.turned_over", count=count, entries=entries) if entries > 1 else Phrase("causes.turned")
        return WrongVariable(self.sites[number], "condition", "", None, False, flipped=flipped)

    def _modules(self) -> set[str]:
        """Return the names that stand for modules, or for what Python has built in: nothing that may be wrong."""
        names = {name for site in self.sites for name in site.reads}
        return {n for n in names if isinstance(self.outside.get(n), ModuleType) or hasattr(builtins, n)}

    def _expression(self, key: Key) -> tuple[str, int | None]:
        """Return the text of an expression of forward, or an argument's name, and the expression's line."""
        return self.labels[key[1]] if key[1] >= 0 else (self.problem.input_names[-1 - key[1]], None)

    def _inputs(self) -> Iterator[tuple[Any, ...]]:
        """Yield the inputs given, those of another size, others near them and of both signs."""
        problem = self.problem
        yield problem.fresh()
        yield from itertools.islice(other_points.together(problem, problem.seed + 93), 1)
        yield other_points.nearby_inputs(problem, problem.seed + 91)
        yield other_points.in_domain(problem, problem.seed + 92)
        yield other_points.nearby_inputs(problem, problem.seed + 94)

    @cached_property
    def _further(self) -> list[_Place]:
        """Places at inputs that are larger."""
        problem = self.problem
        return self._places((other_points.in_domain(problem, problem.seed + k, LARGER) for k in (95, 96)), PLACES)

    def _places(self, inputs: Iterable[tuple[Any, ...]], most: int) -> list[_Place]:
        """Return the first of these inputs at which the gradient is wrong, and its right value known."""
        return list(itertools.islice((p for p in map(self._place, inputs) if p is not None), most))

    def _place(self, inputs: tuple[Any, ...]) -> _Place | None:
        try:
            place = _Place(self, inputs)
        except Exception:
            return None
        return place if place.wrong else None


class _Place:
    """One call, its right gradients, and what each expression of forward and its gradient are.

    Args:
        bench: of the Function.
        inputs: of the call.

    Attributes:
        wrong: True where autograd of the forward is right, and backward gives something else.
        rel: relative difference up to which two gradients are the same.
        only: the changes of variables beside which no others mend the gradients.
        shapes: of the inputs that are tensors.
    """

    def __init__(self, bench: _Bench, inputs: tuple[Any, ...]) -> None:
        self.bench, problem = bench, bench.problem
        self.outputs, self.wrong, self.only = problem.call(inputs), False, dict[int, Tensor]()
        self.shapes = [x.shape for x in self.outputs.inputs if isinstance(x, Tensor)]
        self.node = own_node(problem, self.outputs)
        self.v = cotangents(problem, self.outputs, problem.seed + 95)
        bench.seen = {}
        found = by_autograd(problem, self.outputs, bench.forward)
        self.rel = max(SIGNIFICANT, gradient_tolerance(self.outputs, problem.inputs))
        if found is None or self.node is None:
            return
        leaves, outputs = self.forward = found
        self.known = bench.seen
        known = {k: t for k, t in bench.seen.items() if isinstance(t, Tensor)}
        values = {-1 - i: x for i, x in enumerate(leaves) if isinstance(x, Tensor)} | known
        asked = {k: t for k, t in values.items() if t.requires_grad}
        got = dict(zip(asked, pullback(outputs, list(asked.values()), self.v), strict=True))
        self.right = [got.get(-1 - i) for i in problem.differentiable]
        self.candidates: dict[Key, Tensor] = {("value", k): t.detach() for k, t in values.items()}
        self.candidates |= {("gradient", k): g for k, g in got.items() if g is not None}
        if len(outputs) == 1:
            slopes = pullback(outputs, list(asked.values()), [torch.ones_like(outputs[0])])
            self.candidates |= {("derivative", k): d for k, d in zip(asked, slopes, strict=True) if d is not None}
        self.gradients = self.run(None)
        borne_out = trusted(problem, self.outputs, self.v, self.right, bench.which, problem.seed + 96)
        self.wrong = borne_out and not self._right(self.gradients, bench.which)

    def run(self, replaced: tuple[int, Any] | None, v: Sequence[Tensor | None] | None = None) -> Sequence[Any]:
        """Return the gradients that backward gives with one variable replaced."""
        bench = self.bench
        bench.held, bench.replaced = {}, replaced
        assert bench.backward is not None
        try:
            with backward_replaced(self.node, bench.backward):
                return pull(bench.problem, self.outputs, self.v if v is None else v)
        finally:
            bench.replaced = None

    @cached_property
    def values(self) -> list[tuple[int, Any, str]]:
        """The variables of backward that are tensors, and its conditions, as they came: number, value, kind."""
        self.run(None)
        here = dict(self.bench.held)
        self.run(None, cotangents(self.bench.problem, self.outputs, self.bench.problem.seed + 97))
        there = self.bench.held
        found: list[tuple[int, Any, str]] = []
        for number, value in here.items():
            if self.bench.sites[number].condition and not isinstance(value, Tensor):
                found.append((number, bool(value), "value"))
            elif isinstance(value, (int, float)):
                found.append((number, value, "number"))
            elif isinstance(value, Tensor) and value.numel():
                moves = not isinstance(there.get(number), Tensor) or not torch.equal(value, there[number])
                found.append((number, value, "gradient" if moves else "value"))
        return found

    def equals(self, number: int, other: Tensor | None) -> bool:
        """Return True if a variable has the elements of a tensor."""
        value = self.seen(number)
        if not isinstance(value, Tensor) or other is None:
            return False
        laid = _laid_out(other, value)
        return laid is not None and _equal(value, laid, self.rel)

    def seen(self, number: int) -> Any:
        """Return a variable, or a condition, as it came."""
        return next((value for k, value, _ in self.values if k == number), None)

    def named_so(self, name: str, value: Any) -> bool:
        """Return True for a number that forward calls so, or is given under this name."""
        own = (x for k, x in self.known.items() if self.bench.labels[k][0] == name)
        given = (
            x for label, x in zip(self.bench.problem.input_names, self.outputs.inputs, strict=False) if label == name
        )
        return isinstance(value, (int, float)) and any(type(x) is type(value) and x == value for x in (*own, *given))

    @cached_property
    def sizes(self) -> dict[tuple[Key, int | None], int]:
        """The sizes of the inputs and variables of forward along each dimension, and their numbers of elements."""
        held = {key: t for key, t in self.candidates.items() if key[0] == "value"}
        named = {key: t for key, t in held.items() if self.bench._expression(key)[0].isidentifier()}
        found: dict[tuple[Key, int | None], int] = {
            (key, d): n for key, t in named.items() for d, n in enumerate(t.shape)
        }
        return found | {(key, None): t.numel() for key, t in named.items()}

    def pool(self, kind: str, value: Tensor) -> list[tuple[Key, Tensor]]:
        """Return what may belong in the place of a variable: of its kind and number of elements, each tensor once."""
        found: list[tuple[Key, Tensor]] = []
        for key, tensor in self.candidates.items():
            laid = _laid_out(tensor, value) if key[0] == kind or (key[0], kind) == ("derivative", "value") else None
            if laid is not None and not any(torch.equal(laid, other) for _, other in found):
                found.append((key, laid))
        return sorted(found, key=lambda item: (item[1].shape != value.shape, self.bench._expression(item[0])[0] == ""))

    def turned_over(self, number: int) -> tuple[int, int, set[bool]] | None:
        """Turn a condition over where it mends the gradient; return at how many elements, of how many, and its values.

        The values are those that it has then where they matter: what is computed on these ways is right. A gradient is
        linear in each element of a mask: the change of each is tried, and which of them add up to the right gradients
        is solved for. There must be no other way to make them up, and whatever arrives must be served.
        """
        self.run(None)
        value = self.bench.held.get(number)
        if not isinstance(value, Tensor):
            mends = value is not None and self.mended(number, not value) and self.holds(number, not value)
            nothing = self.gradients[self.bench.which] is None  # comes on the way that is taken
            return (1, 1, {not value} | ({bool(value)} if nothing else set())) if mends else None
        if value.numel() > SOLVED:
            return None
        wrong = [k for k in range(len(self.gradients)) if not self._right(self.gradients, k)]
        base = self._flat(self.gradients, wrong)
        rest = (self._flat(self.right, wrong) - base)[:, None]
        columns = []
        for k in range(value.numel()):
            changed = value.clone().reshape(-1)
            changed[k] = ~changed[k]
            columns.append(self._flat(self.run((number, changed.reshape(value.shape))), wrong) - base)
        matrix = torch.stack(columns, 1)
        moves = (matrix != 0).any(0)
        if not bool(matrix.isfinite().all()) or int(torch.linalg.matrix_rank(matrix)) < int(moves.sum()):
            return None
        steps = torch.linalg.lstsq(matrix, rest, driver="gelsd").solution[:, 0]
        other = value ^ (steps > 0.5).reshape(value.shape)
        mends = self.mended(number, other) and self.holds(number, other)
        taken = {bool(way) for way in other.reshape(-1)[moves].unique()}
        return (int((other != value).sum()), value.numel(), taken) if mends else None

    def held(self, number: int) -> Tensor | None:
        """Return the value of a variable, where it is a tensor of few numbers."""
        value = self.seen(number)
        if not isinstance(value, Tensor) or not value.dtype.is_floating_point | value.dtype.is_complex:
            return None
        return value.detach() if 0 < value.numel() <= SOLVED else None

    def fixed(self, number: int) -> bool:
        """Return True for a variable that does not vary with what arrives."""
        return any(k == number and kind == "value" for k, _, kind in self.values)

    @cached_property
    def arriving(self) -> list[Arrival]:
        """Cotangents for the outputs, each with the right gradients: as many as tell more, and one beyond."""
        problem, (leaves, outputs) = self.bench.problem, self.forward
        most = min(ARRIVING, sum(y.numel() for y in outputs))
        vs = [self.v, *(cotangents(problem, self.outputs, problem.seed + k) for k in range(98, 98 + most))]
        own = [leaves[i] for i in problem.differentiable]
        return [(v, pullback(outputs, own, v)) for v in vs]

    def mends(self, number: int, change: Tensor, arriving: Sequence[Arrival]) -> bool:
        """Return True if with a variable changed so all gradients are right for all of this."""
        replaced = number, functools.partial(self._changed, number, change)
        got = ((self.run(replaced, v), right) for v, right in arriving)
        return all(
            agree_relative(a, b, self.rel) for gradients, right in got for a, b in zip(gradients, right, strict=True)
        )

    def _changed(self, number: int, change: Tensor, value: Tensor) -> Tensor:
        """Return a variable with a number added to each element, or, where it varies with what arrives, times one."""
        by = change.reshape(value.shape).to(value.real.dtype)
        return value + by if self.fixed(number) else value * (1 + by)

    def mending(self, number: int, arriving: Sequence[Arrival], spare: int = SPARE) -> Tensor | None:
        """Return the change of a variable that mends all gradients of more elements than it has; None without any.

        Args:
            number: of the variable.
            arriving: for which the same change has to.
            spare: how many more elements there have to be.
        """
        value, every = self.held(number), range(len(self.gradients))
        if value is None or (value.is_complex() and self.fixed(number)):
            return None
        size = (float(value.abs().max()) or 1.0) if self.fixed(number) else 1.0
        solved = arriving[: max(1, len(arriving) - 1)]
        rights = torch.cat([self._flat(right, every) for _, right in solved])

        def got(change: Tensor) -> Tensor:
            self.bench.runs -= len(solved)
            replaced = number, functools.partial(self._changed, number, change)
            return torch.cat([self._flat(self.run(replaced, v), every) for v, _ in solved])

        change: Tensor = torch.zeros(value.numel(), dtype=torch.float64)
        try:
            base = got(change)
            wrong = (base - rights).abs() > self.rel * rights.abs().max()
            if bool((got(change + 0.3 * size) == base)[wrong].any()):
                return None  # something that is wrong does not depend on it
            for _ in range(NEWTON):
                if self.bench.runs < len(change) * len(solved):
                    return None
                unit = NEAR * size * torch.eye(len(change), dtype=torch.float64)
                matrix = torch.stack([(got(change + e) - base) / (NEAR * size) for e in unit], 1)
                alive = (matrix != 0).any(0)
                if int((matrix != 0).any(1).sum()) - int(alive.sum()) < spare or not bool(matrix.isfinite().all()):
                    return None  # some numbers always fit
                before, rest = base, (rights - base)[:, None]
                change = change + torch.linalg.lstsq(matrix, rest, driver="gelsd").solution[:, 0]
                base = got(change)
                if not float((rights - base).norm()) < float((rights - before).norm()) / 2:
                    return None
                if self.mends(number, change, arriving):
                    if self.fixed(number) and int(torch.linalg.matrix_rank(matrix)) == int(alive.sum()):
                        self.only[number] = change
                    return change
        except Exception:
            return None
        return None

    def holds(self, number: int, value: Any) -> bool:
        """Return True if the gradient is right with this value whatever arrives for the outputs."""
        problem, (leaves, outputs) = self.bench.problem, self.forward
        for seed in (98, 99):
            v = cotangents(problem, self.outputs, problem.seed + seed)
            right = pullback(outputs, [leaves[self.bench.position]], v)[0]
            if not agree_relative(self.run((number, value), v)[self.bench.which], right, self.rel):
                return False
        return True

    def _flat(self, gradients: Sequence[Any], which: Sequence[int]) -> Tensor:
        """Return the gradients of these inputs as one row of real numbers; None as zeros."""
        leaves = self.bench.problem.differentiable
        likes = [self.outputs.inputs[leaves[k]] for k in which]
        parts = [
            torch.zeros_like(x) if gradients[k] is None else gradients[k] for k, x in zip(which, likes, strict=True)
        ]
        return torch.cat([(torch.view_as_real(t) if t.is_complex() else t).reshape(-1).double() for t in parts])

    def is_saved(self, tensor: Tensor) -> bool:
        """Return True for a value that ctx holds."""
        held = [t for _, t in tensors_on_ctx(self.bench.problem, self.node)]
        return any(t.shape == tensor.shape and t.dtype == tensor.dtype and torch.equal(t, tensor) for t in held)

    def is_whole(self, tensor: Tensor) -> bool:
        """Return True for what is the right gradient of the input itself."""
        right = self.right[self.bench.which]
        if right is None or right.numel() != tensor.numel() or right.dtype != tensor.dtype:
            return False
        return _equal(tensor.reshape(right.shape), right, self.rel)

    def mended(self, number: int, tensor: Any) -> bool:
        """Return True if the gradient is right with this value, and no other is worse than before."""
        try:
            got = self.run((number, tensor))
        except Exception:
            return False
        which = self.bench.which
        return self._right(got, which) and all(
            self._right(got, k) or agree_relative(got[k], self.gradients[k], self.rel)
            for k in range(len(got))
            if k != which
        )

    def fits(self, number: int, spare: int = 0) -> bool:
        """Return True for a variable of which some values mend the gradients, perhaps others for whatever arrives."""
        return all(self.mending(number, [arrival], spare) is not None for arrival in self.arriving[:2])

    @property
    def several(self) -> bool:
        """Return True where the gradients of several inputs are wrong."""
        return sum(not self._right(self.gradients, k) for k in range(len(self.gradients))) > 1

    def alone_wrong(self, number: int) -> bool:
        """Return True for a variable with whose values all that is wrong changes, and nothing that is right."""

        def other(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.dtype.is_floating_point | value.dtype.is_complex:
                return value
            noise = torch.rand(value.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
            return 0.7 * value + (noise * (float(value.abs().mean()) + 1)).to(value.dtype)

        try:
            got = self.run((number, other))
        except Exception:
            return False
        for k, (now, was) in enumerate(zip(got, self.gradients, strict=True)):
            if self._right(self.gradients, k) != agree_relative(now, was, 0.0):
                return False
        return True

    def is_returned(self, number: int) -> bool:
        """Return True if whatever value a variable has is the gradient that comes out."""
        value = self.seen(number)
        return isinstance(value, Tensor) and self.returned(number, value)

    def returned(self, number: int, tensor: Tensor) -> bool:
        """Return True if whatever value a variable has is the gradient that comes out."""
        noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        other = tensor + noise.to(tensor)
        try:
            got = self.run((number, other))[self.bench.which]
        except Exception:
            return False
        return got is not None and got.numel() == other.numel() and _equal(got.reshape(other.shape), other, self.rel)

    def multiple(self, number: int, tensor: Tensor) -> float | None:
        """Return how many times this value mends the gradients; None where the variable is a multiple itself."""
        self.run(None)
        c = _ratio(self.bench.held.get(number), tensor)
        if c and _equal(self.bench.held[number], c * tensor, self.rel):
            return None
        try:
            c = _ratio(self.right[self.bench.which], self.run((number, tensor))[self.bench.which])
        except Exception:
            return None
        # what belongs there serves whatever arrives
        return c if c and self.mended(number, c * tensor) and self.holds(number, c * tensor) else None

    def is_multiple(self, number: int, key: Key, times: float, shapes: list[torch.Size]) -> bool:
        """Return True if what mends the gradient at a place of some shapes does so here, and as often in its shapes."""
        laid = self._laid(number, key)
        here = None if laid is None else self.multiple(number, laid)
        return here is not None and (self.shapes != shapes or math.isclose(here, times, rel_tol=self.rel))

    def borne_out(self, number: int, key: Key) -> bool:
        """Return True if what mends the gradient elsewhere does so here."""
        laid = self._laid(number, key)
        return laid is not None and self.mended(number, laid)

    def _laid(self, number: int, key: Key) -> Tensor | None:
        tensor = self.candidates.get(key)
        self.run(None)
        value = self.bench.held.get(number)
        return _laid_out(tensor, value) if tensor is not None and isinstance(value, Tensor) else None

    def _right(self, gradients: Sequence[Any], which: int) -> bool:
        return agree_relative(gradients[which], self.right[which], self.rel)


def _is_product(text: str) -> bool:
    """Return True for names that are multiplied, perhaps along new dimensions, and nothing else."""
    around = (ast.Module, ast.Expr, ast.BinOp, ast.Mult, ast.Name, ast.Load)
    kinds = (*around, ast.Subscript, ast.Tuple, ast.Slice, ast.Constant)
    return all(isinstance(node, kinds) for node in ast.walk(ast.parse(text)))


def _needed_value(site: Site, value: Tensor | None, change: Tensor | None) -> Phrase | str:
    """Say which element of a variable is furthest from what it has to be."""
    if value is None or change is None:
        return ""
    at = int(change.abs().argmax())
    index = ", ".join(map(str, np.unravel_index(at, tuple(value.shape))))
    was = float(value.reshape(-1)[at])
    element = f"{site.name}[{index}]" if index else site.name
    return Phrase("causes.needed_value", element=element, value=f"{was:.6g}", right=f"{was + float(change[at]):.6g}")


def _without_prefix(name: str) -> str:
    """Return what a gradient is called after: ``scores`` of ``d_scores``, ``grad_scores`` and ``gscores``."""
    return re.sub(r"^(grad|d|g)_?", "", name)


def _helpers(one: Method) -> dict[str, Method]:
    """Return the functions beside the class, in its cell or file, that a method calls by name."""
    found = named_functions(one[0], beside=True)
    return {name: read for name, f in sorted(found.items()) if (read := method(f)) is not None}


def _laid_out(tensor: Tensor, like: Tensor) -> Tensor | None:
    """Return a tensor in the shape of another, where it has as many elements in the same order, or transposed."""
    if tensor.dtype != like.dtype or tensor.numel() != like.numel():
        return None
    if tensor.dim() == like.dim() > 1 and tensor.shape != like.shape:
        return tensor.mT if tensor.mT.shape == like.shape else None
    return tensor.reshape(like.shape)


def _ratio(a: Tensor | None, b: Tensor | None) -> float:
    """Return the multiple of one tensor that is nearest to another; 0 where there is none."""
    if a is None or b is None or a.shape != b.shape or a.is_complex() or b.is_complex():
        return 0.0
    power = float((b * b).sum())
    return float((a.detach() * b).sum()) / power if power else 0.0


def _is_mask(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() > 1 and bool(((value == 0) | (value == 1)).all())


def _equal(a: Tensor, b: Tensor, rel: float) -> bool:
    return agree_relative(a.detach(), b, rel) if a.is_floating_point() or a.is_complex() else torch.equal(a, b)


def _labels(tree: ast.FunctionDef, nodes: Sequence[ast.expr]) -> dict[int, tuple[str, int]]:
    """Return the text and line of each expression: the variable it is assigned to; of a name where that is assigned."""
    own = list(user_source.own_nodes(tree))
    named = {
        id(n.value): n.targets[0].id
        for n in own
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)
    }
    written = [(name, target.lineno) for target, _ in assigned(own) for name in names_written(target)]

    def line(node: ast.expr) -> int:
        if not isinstance(node, ast.Name):
            return node.lineno
        return max((at for name, at in written if name == node.id and at < node.lineno), default=node.lineno)

    return {k: (named.get(id(n)) or rules.short(ast.unparse(n)), line(n)) for k, n in enumerate(nodes)}


def _names_in(statement: ast.stmt) -> set[str]:
    """Return the variables that a statement writes."""
    return {name for target, _ in assigned(ast.walk(statement)) for name in names_written(target)}


def _from_ctx(value: ast.expr) -> str:
    """Return the attribute of what only takes one from ctx, such as ``ctx.saved_tensors[0]``; else an empty string."""
    attribute = value.value if isinstance(value, ast.Subscript) else value
    named = isinstance(attribute, ast.Attribute) and isinstance(attribute.value, ast.Name)
    return attribute.attr if named and attribute.value.id == "ctx" else ""  # type: ignore[attr-defined]
