"""Cases: inputs that the caller names or makes. Nothing in them is resized or made up by the sweep."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.checking.problem import Problem
from nbautograd.core.display import Phrase
from nbautograd.core.kernel.check import DRAWS
from nbautograd.core.kernel.raised import one_line, users_trace
from nbautograd.core.kernel.sweep import SMALLER, Case, Result, compared, sizes
from nbautograd.core.stumbles import is_ours
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


def compared_case(candidate: Problem, reference: Problem, case: NamedCase, seed: int) -> Result:
    """Compare at a named case, which may have other arguments that require grad than the first one."""
    ours, eager = (Problem(one.cls or one.fn, case, seed, assume_grad=True) for one in (candidate, reference))
    row = Case(ours.inputs, name=case.name, required=True)
    with ours.session(), eager.session():
        try:
            eager.call()
        except Exception as error:
            if is_ours(error):
                raise
            reason = Phrase("compare.reference_raises", error=one_line(error))
            return Result(row, excused=reason, trace=users_trace(error))
        return compared(ours, eager, row, seed, DRAWS, power=True)


@dataclass(frozen=True)
class Maker:
    """A callable that makes inputs, of a size where it takes one.

    Attributes:
        make: the callable.
        size: its argument at the given inputs; None where it takes none.
        seed: of torch's generators while it runs, which are as they were afterwards.
    """

    make: Callable[..., Any]
    size: int | None
    seed: int

    def __call__(self, size: int | None = None) -> Any:
        """Return inputs of a size, or the given ones."""
        size = self.size if size is None else size
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            return self.make() if size is None else self.make(size)

    def cases(self, assumed: bool) -> Iterator[Case]:
        """Yield its inputs at the sizes around its own; all floating ones are to differentiate where none was."""
        for size in sizes(self.size) if self.size else ():
            yield self._case(size, assumed)

    def smallest(self, candidate: Problem, reference: Problem, assumed: bool, seed: int) -> Case | None:
        """Return its inputs at the smallest size at which the two do not agree; None for no size."""
        for size in (n for n in SMALLER if self.size and n <= self.size + 1):
            case = self._case(size, assumed)
            if compared(candidate, reference, case, seed).wrong:
                return case
        return None

    def _case(self, size: int, assumed: bool) -> Case:
        made = Problem(lambda *_: None, self(size), assume_grad=assumed).inputs
        return Case(made, name=f"{getattr(self.make, '__name__', 'make')}({size})")


def maker_of(make: Callable[..., Any], seed: int) -> Maker:
    """Return a callable that makes inputs with the size that it takes: a first argument that is a whole number."""
    first = next(iter(inspect.signature(make).parameters.values()), None)
    if first is None or first.kind in (first.VAR_POSITIONAL, first.VAR_KEYWORD, first.KEYWORD_ONLY):
        return Maker(make, None, seed)
    if first.default is first.empty:
        return Maker(make, SIZE, seed)
    return Maker(make, first.default if type(first.default) is int else None, seed)
