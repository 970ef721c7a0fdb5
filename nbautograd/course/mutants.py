"""Mutants: a Function whose backward has one small edit, wrong in its values alone; what a test of it has to notice."""

from __future__ import annotations

import ast
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.checking.other_arguments import constants_in
from nbautograd.core.checking.quiet import quiet
from nbautograd.core.checking.repair.grammar import edits
from nbautograd.core.checking.repair.script import Edit, Hints, Script, dims, names, read
from nbautograd.course.attempt import Gradients, close, cotangents, forward, ready, vjp

COUNT = 20
CLEARLY = 1e-3  # by how much of the largest element a mutant's gradient must be off
Test = Callable[[Any], object]


@dataclass(frozen=True)
class Mutant:
    """A Function with one edit in its backward.

    Attributes:
        function: the Function, named as the right one is.
        kind: of the edit, such as ``"transpose"``.
        before: the line of the right backward.
        after: the same line, edited.
    """

    function: Any
    kind: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"- {self.before.strip()}\n+ {self.after.strip()}"


def copy(function: Any) -> Any:
    """Return the same Function as another class, as a mutant is one, without an edit; None when it cannot be read."""
    script = read(function)
    return None if script is None else _subclass(function, script, script.text)


def mutants(function: Any, points: Iterable[tuple[Any, ...]], count: int = COUNT, seed: int = 0) -> tuple[Mutant, ...]:
    """Make mutants of a Function: edits of its backward that run, give finite values, and are wrong.

    Args:
        function: the Function, with a right backward.
        points: inputs, each a tuple; a mutant is off at one of them at least, and not as another one is at all.
        count: how many are wanted at most.
        seed: of the choice among the edits; all kinds of edits are chosen from in turn.

    Returns:
        The mutants; fewer than ``count`` when the backward has too little to edit, none when it cannot be read.

    Example:
        >>> import torch
        >>> from nbautograd.course.mutants import mutants
        >>> class Cube(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x ** 3
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        >>> made = mutants(Cube, [(torch.randn(3, dtype=torch.float64),) for _ in range(3)], count=2)
        >>> [mutant.before.strip() for mutant in made]
        ['return g * 3 * x ** 2', 'return g * 3 * x ** 2']
    """
    script, given = read(function), [ready(inputs) for inputs in points]
    with quiet():
        right = [_gradients(function, inputs, k) for k, inputs in enumerate(given)]
    if script is None or any(gradients is None for gradients in right):
        return ()
    made: list[Mutant] = []
    seen = [right]
    for edit in _in_turn(_edits(script, function), seed):
        text = script.changed(edit.changes)
        mutated = _subclass(function, script, text)
        if mutated is None or text == script.text:
            continue
        with quiet():
            found = [_gradients(mutated, inputs, k) for k, inputs in enumerate(given)]
        if any(gradients is None for gradients in found) or any(_same(found, other) for other in seen):
            continue
        seen.append(found)
        after, before, _ = script.difference(text)
        made.append(Mutant(mutated, edit.kind, before, after))
        if len(made) == count:
            break
    return tuple(made)


def objection(test: Test, function: Any) -> str | None:
    """Return in what way a test objects to a Function: it raises, as an assert does, or returns what is not true."""
    with quiet():
        try:
            said = test(function)
            return None if said is None or said else f"returned {said!r}"[:160]
        except Exception as error:
            return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def kills(test: Test, function: Any) -> bool:
    """Return True if a test objects to a Function."""
    return objection(test, function) is not None


def same_gradients(function: Any, other: Any, points: Iterable[tuple[Any, ...]]) -> bool:
    """Return True if two Functions have the same gradients at these inputs, as closely as mutants are told apart."""
    with quiet():
        found = [[_gradients(f, ready(inputs), k) for f in (function, other)] for k, inputs in enumerate(points)]
    return all(_agree(one, two, CLEARLY) for one, two in found)


def _edits(script: Script, function: Any) -> list[Edit]:
    arguments = script.tree.args.args
    hints = Hints(
        grad_output=arguments[1].arg if len(arguments) > 1 else "grad_output",
        constants=tuple(constants_in(function.forward)), dims=tuple(dims(function.forward)),
    )  # fmt: skip
    return edits(script, names(script), hints, {})


def _in_turn(found: Sequence[Edit], seed: int) -> Iterator[Edit]:
    """Yield one edit of each kind, then another one of each; an edit more or less in the grammar moves no other."""

    def drawn(*words: object) -> float:
        return random.Random(" ".join(map(str, (seed, *words)))).random()

    kinds: dict[str, list[Edit]] = {}
    for edit in sorted(found, key=lambda e: drawn(e.kind, ast.unparse(e.node), e.replacement)):
        kinds.setdefault(edit.kind, []).append(edit)
    order = sorted(kinds, key=drawn)
    for row in itertools.zip_longest(*(kinds[name] for name in order)):
        yield from (edit for edit in row if edit is not None)


def _subclass(function: Any, script: Script, text: str) -> Any:
    backward = script.compiled(text)
    return None if backward is None else type(function.__name__, (function,), {"backward": staticmethod(backward)})


def _gradients(function: Any, inputs: tuple[Any, ...], number: int) -> Gradients | None:
    """Return the gradients at one point, zeros for None; None when it raises or gives a number that is not finite."""
    try:
        run = forward(function.apply, inputs)
        found = vjp(run, cotangents(run.outputs, number))
    except Exception:
        return None
    finite = all(x is None or bool(torch.isfinite(x).all()) for x in found)
    return found if finite else None


def _same(found: Sequence[Gradients | None], other: Sequence[Gradients | None]) -> bool:
    return all(_agree(one, two, CLEARLY) for one, two in zip(found, other, strict=True))


def _agree(one: Gradients | None, two: Gradients | None, tolerance: float) -> bool:
    if one is None or two is None or len(one) != len(two):
        return one is two
    return all(close(a, b, tolerance) for a, b in zip(one, two, strict=True))
