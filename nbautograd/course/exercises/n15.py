"""Exercises of notebook 15, an operation of one's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.pytrees import tensors
from nbautograd.core.user_source import function_class
from nbautograd.course.attempt import close, forward, is_float, plain, ready, vjp
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.tried import backward_set
from nbautograd.course.mutants import COUNT, Mutant, copy, kills, mutants, objection, same_gradients
from nbautograd.course.run import check

POINTS = 4
NEEDED = 18  # of 20: the last two may need a point that nobody would think of


class Pool(Function):
    """A mean of values, weighted by the softmax of scores: the notebook shows the same."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, values: Tensor) -> Tensor:
        """Weigh and add up each row."""
        p = scores.softmax(1)
        ctx.save_for_backward(p, values)
        return (p * values).sum(1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of scores and values."""
        (g,) = grads
        p, values = ctx.saved_tensors
        mean = (p * values).sum(1, keepdim=True)
        grad_scores = g[:, None] * p * (values - mean)
        return grad_scores, g[:, None] * p


# telling_inputs

ENOUGH = 20  # numbers, of at most three digits


@cache
def _of_pool() -> tuple[Mutant, ...]:
    torch_0 = torch.Generator().manual_seed(0)  # the points and the seed of the notebook: the same twenty
    numbers = torch.randn(POINTS, 2, 12, dtype=torch.float64, generator=torch_0).unflatten(2, (3, 4))
    return mutants(Pool, [(scores, values) for scores, values in numbers], seed=34)


def _telling(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not _three(answer):
        yield Failure("not_three", "course.n15.not_three")
        return
    scores, values, grad_output = map(plain, answer)
    hidden = _hides(scores, values, grad_output)
    if hidden is not None:
        yield hidden
        return
    surviving = [m for m in _of_pool() if not _differs(m.function, scores, values, grad_output)]
    if not surviving:
        count = sum(x.numel() for x in (scores, values, grad_output))
        if count > ENOUGH:
            yield Failure("too_many_numbers", "course.n15.many", {"count": count, "most": ENOUGH})
        return
    told = {"count": len(surviving), "whole": len(_of_pool())}
    yield Failure("survivors", "course.n15.survivors", {**told, "mutant": surviving[0]})


def _hides(scores: Tensor, values: Tensor, grad_output: Tensor) -> Failure | None:
    """Return the failure for numbers at which some mistake is never seen, whatever mutants there are."""
    if not all(bool(torch.isfinite(x).all()) for x in (scores, values, grad_output)):
        return Failure("not_finite", "course.n15.not_finite")
    if len(scores) == 1:
        return Failure("one_row", "course.n15.one_row")
    if bool((grad_output == grad_output[0]).all()):
        return Failure("upstream_ones", "course.n15.ones")
    for name, rows in (("scores", scores), ("values", values)):
        if bool((rows == rows[:, :1]).all(1).any()):
            return Failure("constant", "course.n15.constant", {"name": name})
    return None


def _three(answer: Any) -> bool:
    if not (isinstance(answer, (tuple, list)) and len(answer) == 3):
        return False
    if not all(isinstance(x, Tensor) and x.dtype == torch.float64 and x.numel() for x in answer):
        return False
    scores, values, grad_output = answer
    return bool(scores.dim() == 2 and scores.shape == values.shape and grad_output.shape == scores.shape[:1])


def _differs(function: Any, scores: Tensor, values: Tensor, grad_output: Tensor) -> bool:
    right, found = (vjp(forward(f.apply, ready((scores, values))), [grad_output]) for f in (Pool, function))
    return not all(close(a, b, 1e-6) for a, b in zip(found, right, strict=True))


# own_operation


def _operation(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    failure = _undeclared(answer, draw)
    if failure is not None:
        yield failure
        return
    result = check(_declared(answer), answer, seed=draw.seed)
    failures = [failure for outcome in result.outcomes for failure in outcome.failures]
    made = _of_own(answer, draw.seed) if not failures else ()
    if failures:
        yield failures[0]
    elif len(made) < COUNT:
        yield Failure("too_short", "course.n15.too_short", {"count": len(made), "whole": COUNT})


def _declared(answer: Any) -> Exercise:
    return Exercise(
        "own_operation", "Own", "value own_function gradient",
        formula=answer.plain, inputs=lambda draw: tuple(answer.example(draw.seed)),
    )  # fmt: skip


def _undeclared(answer: Any, draw: InputGenerator) -> Failure | None:
    """Return the failure for the first thing missing without which nothing can be judged."""
    if function_class(answer) is None:
        return Failure("not_a_function", "course.not_a_function", {"name": "Own"})
    for name in ("plain", "example"):
        if not callable(getattr(answer, name, None)):
            return Failure(f"no_{name}", "course.n15.missing", {"name": name})
    first = answer.example(0)
    floating = [x for x in first if isinstance(x, Tensor) and x.is_floating_point()] if _is_tuple(first) else []
    if not floating or any(x.dtype != torch.float64 for x in floating):
        got = f"({', '.join(_short(x) for x in first)})" if _is_tuple(first) else _short(first)
        return Failure("example_unusable", "course.n15.example", {"got": got})
    alike = _two_alike(answer, [*range(POINTS), *draw.integers(POINTS, 10**6, POINTS).tolist()])
    if alike is not None:
        return Failure("same_example", "course.n15.same", {"one": alike[0], "other": alike[1]})
    outputs = tuple(tensors(answer.plain(*ready(first))))
    if not outputs:
        return Failure("plain_gives_nothing", "course.n15.plain_gives")
    if functions_of(outputs):
        return Failure("plain_is_own", "course.n15.plain_is_own")
    return None


def _two_alike(answer: Any, seeds: Sequence[int]) -> tuple[int, int] | None:
    found = {seed: [x for x in answer.example(seed) if is_float(x)] for seed in seeds}
    for (one, a), (other, b) in itertools.combinations(found.items(), 2):
        if len(a) == len(b) and all(close(x, y, 1e-3) for x, y in zip(a, b, strict=True)):
            return one, other
    return None


def _is_tuple(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _short(value: Any) -> str:
    return f"{value.dtype} tensor" if isinstance(value, Tensor) else type(value).__name__


def _of_own(answer: Any, seed: int) -> tuple[Mutant, ...]:
    return mutants(answer, _examples(answer), seed=seed)


def _examples(answer: Any) -> list[tuple[Any, ...]]:
    return [tuple(answer.example(seed)) for seed in range(POINTS)]


# own_test


def _test(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not (_is_tuple(answer) and len(answer) == 2 and callable(answer[1]) and not isinstance(answer[1], type)):
        yield Failure("not_a_pair", "course.n15.not_a_pair")
        return
    own, test = answer
    if next(_operation(own, draw), None) is not None:
        yield Failure("operation_not_ready", "course.n15.not_ready")
        return
    for seed in (0, 1):  # a test that is right by luck is not
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw.seed + seed)
            error = objection(test, copy(own))
        if error is not None:
            yield Failure("right_refused", "course.n15.refused", {"error": error})
            return
    with torch.random.fork_rng(devices=[]):  # the same points for the same submission
        torch.manual_seed(draw.seed)
        yield from _survivors(own, test, draw.seed)


def _survivors(own: Any, test: Any, seed: int) -> Iterator[Failure]:
    """Yield what gets through: of spoilt gradients, which are the same for all operations, then of drawn mutants."""
    made, right = _of_own(own, seed), own.backward
    told = {"whole": len(made), "needed": NEEDED}
    spoilt = list(_spoilt(own, right))
    through = [failure for failure, backward in spoilt if not kills(test, _with(own, backward))]
    if through:
        yield through[0] if len(through) < len(spoilt) else Failure("none_killed", "course.n15.none_killed")
        return
    surviving = [mutant for mutant in made if not kills(test, mutant.function)]
    if len(made) - len(surviving) < NEEDED:
        yield Failure(
            "survivors", "course.n15.few", {**told, "killed": len(made) - len(surviving), "mutant": surviving[0]}
        )
        return
    for mutant in made:  # whoever changes the operation changes it where it stands
        if mutant not in surviving:
            with backward_set(own, staticmethod(mutant.function.backward)):
                if not kills(test, own):
                    yield Failure("judged_by_itself", "course.n15.by_itself", {"mutant": mutant})
                    return


def _with(own: Any, backward: Any) -> Any:
    return type(own.__name__, (own,), {"backward": staticmethod(backward)})


def _spoilt(own: Any, backward: Any) -> Iterator[tuple[Failure, Any]]:
    """Yield backwards whose gradient of one input is spoilt, or of all, with the failure of a test that accepts it."""
    count = sum(map(is_float, own.example(0)))

    def spoil(change: Callable[[Tensor], Tensor | None], chosen: Collection[int]) -> Any:
        def spoilt(ctx: Any, *grads: Any) -> Any:
            found = backward(ctx, *grads)
            given = found if isinstance(found, tuple) else (found,)
            tensor = itertools.count()
            return tuple(change(x) if isinstance(x, Tensor) and next(tensor) in chosen else x for x in given)

        return spoilt

    yield Failure("survivors", "course.n15.left_out"), spoil(lambda _: None, range(count))
    yield Failure("survivors", "course.n15.zero"), spoil(torch.zeros_like, range(count))
    for k in range(count):
        yield Failure("survivors", "course.n15.doubled", {"number": k + 1}), spoil(lambda x: 2 * x, [k])

    def averaged(ctx: Any, *grads: Any) -> Any:
        return backward(ctx, *(g.mean().expand_as(g) for g in grads))

    if not same_gradients(_with(own, averaged), own, _examples(own)):  # else there is nothing to be seen
        yield Failure("survivors", "course.n15.averaged"), averaged


EXERCISES = (
    Exercise("telling_inputs", "telling", "custom", own=_telling),
    Exercise("own_operation", "Own", "custom", own=_operation, inside=True, points=2),
    Exercise("own_test", "shipped", "custom", own=_test, points=2),
)
