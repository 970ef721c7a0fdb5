"""Cases: inputs that the caller names or makes. Nothing in them is resized or made up by the sweep."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.checking.problem import Problem
from nbautograd.core.kernel.check import DRAWS
from nbautograd.core.kernel.sweep import Case, Result, compared, refused_by_reference, sizes
from nbautograd.core.stumbles import RAISED, is_ours, users_errors
from nbautograd.errors import CallError

SIZE = 64  # of a maker whose argument has no default: a multiple of a tile, beside whose neighbours it is checked


class NamedCase(tuple[Any, ...]):
    """Arguments that have a name, such as ``"ragged 5/7/19"``."""

    name: str

    def __new__(cls, name: str, arguments: Iterable[Any]) -> NamedCase:
        """Remember the name beside the arguments."""
        self = super().__new__(cls, arguments)
        self.name = name
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedCase, (self.name, tuple(self))


def named_cases(cases: Any) -> list[NamedCase]:
    """Return what a generator of names and arguments yields.

    Args:
        cases: pairs, or a callable that returns or generates them; the arguments are a tuple, or one tensor.

    Raises:
        CallError: there is no case, one is no pair, or two have one name.

    Example:
        >>> import torch
        >>> from nbautograd.core.kernel.cases import named_cases
        >>> [case.name for case in named_cases([("one row", torch.ones(1, 8)), ("none", torch.ones(0, 8))])]
        ['one row', 'none']
    """
    found: list[NamedCase] = []
    for one in cases() if callable(cases) else cases:
        pair = isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str)
        arguments = (one[1],) if pair and isinstance(one[1], torch.Tensor) else one[1] if pair else None
        if not isinstance(arguments, tuple):
            raise CallError("compare.case_unfit", given=type(one).__name__)
        found.append(NamedCase(one[0], arguments))
    if len({case.name for case in found}) < max(1, len(found)):
        names = [case.name for case in found]
        raise CallError("compare.cases_alike", names=", ".join(sorted({n for n in names if names.count(n) > 1})) or "-")
    return found


def fullest(cases: Sequence[NamedCase]) -> NamedCase:
    """Return the case that has the most to lay out in memory otherwise: the most dimensions of several entries."""
    return max(cases, key=lambda case: sum(n > 1 for x in case if isinstance(x, torch.Tensor) for n in x.shape))


def compared_case(candidate: Problem, reference: Problem, case: NamedCase, seed: int) -> Result:
    """Compare at a named case, which may have other arguments that require grad than the first one."""
    ours, eager = (Problem(one.fn, case, seed, assume_grad=True) for one in (candidate, reference))
    row = Case(ours.inputs, name=case.name, required=True)
    with ours.session(), eager.session():
        try:
            eager.call()
        except RAISED as error:
            if is_ours(error):
                raise
            return refused_by_reference(row, error)
        return compared(ours, eager, row, seed, DRAWS, power=True)


@dataclass(frozen=True)
class Maker:
    """A callable that makes inputs, of the sizes that it takes.

    Attributes:
        make: the callable.
        sizes: its first arguments at the given inputs, as many as are whole numbers.
        seed: of torch's generators while it runs, which are as they were afterwards.
    """

    make: Callable[..., Any]
    sizes: tuple[int, ...]
    seed: int

    def __call__(self, given: Sequence[int] | None = None) -> Any:
        """Return inputs of these sizes, or the given ones."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            return self.make(*(self.sizes if given is None else given))

    def cases(self, assumed: bool) -> Iterator[Case]:
        """Yield its inputs with one size changed; all floating ones are to differentiate where none was."""
        for k, size in enumerate(self.sizes):
            yield from filter(None, (self._case(k, n, assumed) for n in sizes(size)))

    def _case(self, k: int, size: int, assumed: bool) -> Case | None:
        """Return its inputs with another size; None for one that it refuses, as a head of an odd size."""
        given = (*self.sizes[:k], size, *self.sizes[k + 1 :])
        with users_errors():
            made = Problem(lambda *_: None, self(given), assume_grad=assumed).inputs
            return Case(made, name=f"{getattr(self.make, '__name__', 'make')}({', '.join(map(str, given))})")
        return None


def maker_of(make: Callable[..., Any], seed: int) -> Maker:
    """Return a callable that makes inputs with the sizes that it takes: first arguments that are whole numbers."""
    found: list[int] = []
    for one in inspect.signature(make).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.KEYWORD_ONLY):
            break
        if type(one.default) is not int and (found or one.default is not one.empty):
            break
        found.append(one.default if type(one.default) is int else SIZE)
    return Maker(make, tuple(found), seed)
