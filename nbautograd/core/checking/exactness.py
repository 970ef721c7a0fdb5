"""Exactness: a gradient that is off by no more than an iteration or an approximation leaves, which proves no mistake.

A fixed point stops at its tolerance, a series after some terms: backward and differences then belong to two functions
that are that close. A forgotten epsilon differs by as little at some inputs. What tells them apart is a change that
removes the difference: a verified edit of backward, or a small number in forward, to which the difference is in
proportion. A tolerance is no such number: outputs move with it by steps. Nor is what the caller hands to backward
alone, as against a division by zero (deel-torchlip 1.0.5). Without such a change nothing is wrong.
Where forward has no derivative at all, as a sort has none at equal values, backward proves no mistake either.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.block import Block, BlockVerdict
from nbautograd.core.checking.last_step import MOST, climbs_in_stairs, left_by_iterations, torch_calls
from nbautograd.core.checking.other_points import nearby_inputs
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.findings import Finding
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_within
from nbautograd.core.numerics.constants import INEXACT
from nbautograd.core.numerics.directional import random_direction
from nbautograd.core.stumbles import users_errors

SMALL_NUMBER = 1e-4  # larger ones differ by more than ``INEXACT``, but beside large values
NUDGE = 1e-5  # relative: so little more of a tolerance changes nothing, or all at once
TIMES, PROPORTIONAL = 4.0, 0.3  # by which a number grows, and how closely a difference has to follow
COARSER, RUNGS = 0.02, 5  # of a difference and of the entry, and steps in a row, each a quarter of the one before
MORE_STEPS = (1, 2, 4, 16)  # times a number of steps; what closes in moves by half as much each time, or less
BESIDE, BENT = 1e-4, 1e-3  # a step along a random direction; of a slope, what three of a derivative may add up to

PAIRS = 3  # of random directions: along one of them what bends may happen to be straight
NEARBY = 2  # points at which a slight difference has to be slight as well
Where = tuple[int, int]
Mend = Callable[[Problem, tuple[Finding, ...]], tuple[Finding, ...]]


def settle(run: GradcheckRun, mend: Mend) -> bool:
    """Decide the blocks that differ by little: wrong where a change mends them, else right to that, or undecided.

    Args:
        run: with its blocks; of those that are wrong the verdict stays. What the caller's tolerance excludes is wrong.
        mend: adds fixes to findings.

    Returns:
        True where there were such blocks, and none is wrong.
    """
    kinks, slight = _at_kinks(run), slight_blocks(run)
    if not slight:
        return bool(kinks) and all(block.verdict != "mismatch" for block in run.blocks.values())
    differing = {where for where, block in run.blocks.items() if block.verdict == "mismatch"}
    before = {where: run.blocks[where] for where in slight}
    for where, block in before.items():
        run.blocks[where] = _decided(block, "undecided", "approximate" if run.complete else "interrupted")
    if differing != slight or not run.complete:
        return differing == slight
    try:
        with run.problem.session():
            wrong = any(_in_proportion(before, made) for made in _small_numbers(run.problem)) or (
                not any(_in_proportion(before, made, moves=False) for made in _small_arguments(run.problem))
                and any(f.fix is not None for f in mend(run.problem, tuple(map(_plain, before.values()))))
            )
            inexact = {where for where, block in before.items() if block.deviation <= INEXACT}
            steady = not wrong and all(_slight_there(run.problem, inexact, number) for number in range(NEARBY))
    except KeyboardInterrupt:
        run.interrupted()
        return True
    for where, block in before.items():
        if wrong:
            run.blocks[where] = block
        elif steady and where in inexact:
            run.blocks[where] = _decided(block, "match", "approximate")
    return not wrong


def slight_blocks(run: GradcheckRun) -> set[Where]:
    """Return the blocks that differ by little, or by no more than iterations leave; none by a caller's tolerance."""
    if run.atol is not None or run.rtol is not None:
        return set()
    differing = {where: block for where, block in run.blocks.items() if block.verdict == "mismatch"}
    slight = {where for where, block in differing.items() if block.deviation <= INEXACT}
    if slight != differing.keys() and run.outputs is not None and run.complete:
        with run.interruptible(), run.problem.session():
            left = dict.fromkeys(run.problem.differentiable, 0.0)
            if any(_off(block) <= MOST for block in differing.values()):  # no more is left by iterations
                left = left_by_iterations(run.problem, run.outputs)
            for where, block in differing.items():
                close = _off(block) <= left[where[1]] or _coarser_steps_agree(block)
                if close or climbs_in_stairs(run.problem, run.outputs, where):
                    slight.add(where)
        if slight != differing.keys() and run.complete:
            with run.interruptible():
                run.more_steps = _gone_with_more_steps(run.problem, run.outputs, differing)
            slight |= differing.keys() if run.more_steps else set()
    if not run.complete:  # there was no time to ask what iterations leave
        slight |= {where for where, block in differing.items() if _off(block) <= MOST}
    return slight


def _coarser_steps_agree(block: Block) -> bool:
    """Return True where differences agree with backward at many steps, and only at the finest ones do not.

    The residue of a solver, which conjugate gradients leave at 1e-12, has slopes of its own over as little.
    """
    at = block.worst
    if at is None or not np.isfinite(at.analytical):
        return False
    off = abs(at.analytical - at.numerical)
    agree = np.abs(block.errors - off) <= COARSER * min(off, abs(at.analytical))
    return any(agree[k : k + RUNGS].all() for k in range(len(agree) - RUNGS + 1))


def _at_kinks(run: GradcheckRun) -> set[Where]:
    """Decide the blocks that differ where forward has no derivative: of ties, a sort's gradient is one of several.

    Its slopes along three directions that add up to nothing do not, however close, and at other values about the inputs
    backward is right.
    """
    kinks = set[Where]()
    differing = [(where, block) for where, block in run.blocks.items() if block.verdict == "mismatch"]
    if run.complete and run.outputs is not None:
        with run.interruptible(), run.problem.session():
            for where, block in differing:
                if _bends_at_a_point(run.problem, where, block) and all(
                    _slight_there(run.problem, {where}, number) for number in range(NEARBY)
                ):
                    run.blocks[where] = _decided(block, "undecided", "kink")
                    kinks.add(where)
    return kinks


def _bends_at_a_point(problem: Problem, where: Where, block: Block) -> bool:
    at, x = block.worst, problem.inputs[where[1]].detach()
    if at is None or block.output_complex or block.input_complex:
        return False
    if x.unique().numel() == x.numel() and x.all():  # numbers at random meet no tie
        return False
    pairs = [[random_direction(x, draws.child(problem.seed, turn, k)) for k in (0, 1)] for turn in range(PAIRS)]

    def value(way: Tensor) -> float:
        y = problem.call(problem.changed_inputs(lambda x: x + way, [where[1]]))[where[0]]
        return float(y.detach()[at.output_index])

    def bends(u: Tensor, w: Tensor) -> bool:
        slopes = [[(value(t * way) - here) / t for way in (u, w, -u - w)] for t in (BESIDE, BESIDE / 16)]
        wide, close = (abs(sum(three)) for three in slopes)  # of a derivative they add up to nothing
        return close > max(wide / 2, BENT * max(map(abs, slopes[1])))

    with users_errors():
        here = value(torch.zeros_like(x))
        return any(bends(u, w) for u, w in pairs)
    return False


def _off(block: Block) -> float:
    """Return how far the worst entry is off, relative to the largest."""
    largest = float(np.abs(block.matrices.analytical).max(initial=0.0))
    at = block.worst
    return abs(at.analytical - at.numerical) / largest if at is not None and 0 < largest < math.inf else math.inf


def accept_slight(run: GradcheckRun) -> None:
    """Take the blocks that differ by little for right to that, where nothing can be changed to see whether they are."""
    for where in slight_blocks(run):
        block = run.blocks[where]
        run.blocks[where] = _decided(block, "match" if block.deviation <= INEXACT else "undecided", "approximate")


def exact_to(blocks: Iterable[Block]) -> float:
    """Return how far off the blocks are that are right only to a certain size; 0 where all agree."""
    return max((b.deviation for b in blocks if (b.verdict, b.reason) == ("match", "approximate")), default=0.0)


def _slight_there(problem: Problem, slight: set[Where], number: int) -> bool:
    """Return True where these blocks agree, or differ by little, at other values about the inputs."""
    with users_errors():
        inputs = nearby_inputs(problem, draws.child(problem.seed, "slight", number))
        other = _checked(Problem(problem.fn, inputs, problem.seed))
        left = {where for where, block in other.blocks.items() if block.verdict == "mismatch"} - slight_blocks(other)
        return slight.isdisjoint(left)
    return False


def _checked(problem: Problem) -> GradcheckRun:
    run = GradcheckRun(problem, None, None, None, by_forward=True)
    with problem.session():
        run.find_all_blocks()
    return run


def _in_proportion(before: Mapping[Where, Block], made: Callable[[float], Problem], moves: bool = True) -> bool:
    """Return True for a number that the differences follow in proportion, and outputs as well, or not at all."""
    with users_errors():
        here, nudged, twice = (_values(made(times)) for times in (1.0, 1.0 + NUDGE, 2.0))
        moved = float((twice - here).abs().max())
        if not agree_within(float((nudged - here).abs().max()) / NUDGE, moved, moved / 2) or bool(moved) is not moves:
            return False
        blocks = _checked(made(TIMES)).blocks
        grown = [blocks[where].deviation / block.deviation for where, block in before.items()]
        return all(agree_within(by, TIMES, PROPORTIONAL * TIMES) for by in grown)
    return False


def _gone_with_more_steps(problem: Problem, outputs: Outputs, differing: Collection[Where]) -> tuple[str, int] | None:
    """Return a number of steps, of which backward is not told, with whose more the difference goes; None without one.

    With more of them outputs have to close in: backward gives the gradient of their limit, as that of the bi-tempered
    loss does, of which five steps are taken (pytorch-optimizer 4.1.0). It has to agree at other inputs too.
    """
    told = [value for y in outputs for value in getattr(y.grad_fn, "__dict__", {}).values()]
    for k, count in enumerate(problem.inputs if problem.direct else ()):
        if type(count) is not int or count < 2 or any(type(value) is int and value == count for value in told):
            continue
        with users_errors():
            at = _closing_in(problem, k)
            if at is None:
                continue
            beside = Problem(at.fn, nearby_inputs(at, draws.child(at.seed, "steps")), at.seed)
            found = [_checked(one).blocks for one in (at, beside)]
            if all(blocks[where].verdict == "match" for blocks in found for where in differing):
                return problem.input_names[k], at.inputs[k]
    return None


def _closing_in(problem: Problem, position: int) -> Problem | None:
    """Return the problem with many more steps, for each of which torch is called; None once outputs do not close in.

    A size, a bound or an index is no number of steps: as many calls are made for a larger one.
    """
    last: Tensor | None = None
    calls, moved = Counter[str](), math.inf
    for times in MORE_STEPS:
        inputs = [times * x if k == position else x for k, x in enumerate(problem.fresh())]
        at = Problem(problem.fn, tuple(inputs), problem.seed)
        values, made = torch_calls(_values, at)
        if last is not None:
            more = made.keys() == calls.keys() and made.total() > calls.total() and values.shape == last.shape
            by = float((values - last).abs().max()) if more else math.nan
            if not by <= moved / 2:
                return None
            moved = by
        last, calls = values, made
    return at


def _values(problem: Problem) -> Tensor:
    with problem.session():
        return torch.cat([y.detach().reshape(-1).abs() for y in problem.call() if y.is_floating_point()])


def _small_arguments(problem: Problem) -> Iterator[Callable[[float], Problem]]:
    def with_argument(position: int, times: float) -> Problem:
        given = (times * x if k == position else x for k, x in enumerate(problem.fresh()))
        return Problem(problem.fn, tuple(given), problem.seed)

    yield from (functools.partial(with_argument, k) for k, item in enumerate(problem.inputs) if _is_small(item))


def _small_numbers(problem: Problem) -> Iterator[Callable[[float], Problem]]:
    """Yield, for each small number of forward, what makes the problem with so many times it."""
    yield from _small_arguments(problem)
    forward = inspect.unwrap(problem.cls.forward) if problem.direct and problem.cls is not None else None  # type: ignore[attr-defined]
    if not isinstance(forward, FunctionType):
        return
    code, known = forward.__code__, forward.__globals__

    def with_literal(number: float, times: float) -> Problem:
        changed = code.replace(co_consts=tuple(times * c if c is number else c for c in code.co_consts))
        return _with_forward(problem, forward, changed, known)

    def with_global(name: str, times: float) -> Problem:
        return _with_forward(problem, forward, code, {**known, name: times * known[name]})

    yield from (functools.partial(with_literal, n) for n in dict.fromkeys(filter(_is_small, code.co_consts)))
    yield from (functools.partial(with_global, name) for name in code.co_names if _is_small(known.get(name)))


def _is_small(item: Any) -> bool:
    return type(item) is float and 0 < abs(item) <= SMALL_NUMBER


def _with_forward(problem: Problem, forward: FunctionType, code: CodeType, known: dict[str, Any]) -> Problem:
    """Return the problem of a class whose forward runs this code; the user's class stays as it is."""
    assert problem.cls is not None
    made = FunctionType(code, known, forward.__name__, forward.__defaults__, forward.__closure__)
    made.__kwdefaults__ = forward.__kwdefaults__
    cls = type(problem.cls.__name__, (problem.cls,), {"forward": staticmethod(made)})
    return Problem(cls, problem.fresh(), problem.seed)


def _plain(block: Block) -> Finding:
    params = {"input": block.input_name}
    return Finding("wrong_unclassified", "bug", "causes.hint_none", params, (block.output, block.input))


def _decided(block: Block, verdict: BlockVerdict, reason: str) -> Block:
    none = dataclasses.replace(block.matrices, wrong=np.zeros_like(block.matrices.wrong))
    return dataclasses.replace(
        block, matrices=none, verdict=verdict, reason=reason, wrong=0, not_refined=0, deviation=_off(block)
    )
