"""Is backward right at other inputs too, and if not, is something left over from an earlier call?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.other_points import nearby_inputs
from nbautograd.core.checking.problem import Problem
from nbautograd.core.contract import rules
from nbautograd.core.findings import Finding

TWICE = (61, 67)  # seeds of other inputs; one disagreement may be a kink that was met


def wrong_at_other_inputs(subject: Problem, blocks: Mapping[tuple[int, int], Block]) -> Iterator[Finding]:
    """A gradient that is right at the inputs given and wrong at others.

    That alone says no more than that. State is proved where the gradient there becomes right once what the class,
    its methods' closures and globals hold is as it was before the first call, or empty.
    """
    if not subject.has_functions or not blocks or not all(map(_plainly_right, blocks.values())):
        return
    wrong = set(range(len(subject.differentiable)))
    for seed in TWICE:
        wrong &= _wrong(subject, subject.seed + seed)
        if not wrong:
            return
    wrong -= _wrong(subject, subject.seed + TWICE[0], subject.fresh())  # the same question must have its answer here
    if not wrong:
        return
    name = subject.input_names[subject.differentiable[min(wrong)]]
    if _left_over(subject, min(wrong)):
        yield rules.state_outside_ctx(phrases.seen(subject), "causes.wrong_later", input=name)
    else:
        yield phrases.about(subject, "wrong_elsewhere", input=name)


def _left_over(subject: Problem, which: int) -> bool:
    """Whether the gradient of this input is right at each of the other inputs where they come first."""
    for empty in (False, True):
        rights = []
        for seed in TWICE:
            with subject.state.put_back(empty=empty):
                rights.append(_right(subject, subject.seed + seed, which))
        if all(rights):
            return True
    return False


def _right(subject: Problem, seed: int, which: int) -> bool:
    try:
        return which not in _wrong(subject, seed, must=True)
    except Exception:  # emptied state that forward cannot do without
        return False


def _plainly_right(block: Block) -> bool:
    """Whether a block agrees by more than the caller's tolerance."""
    worst = block.worst
    size = 0.0 if worst is None else max(abs(worst.analytical), abs(worst.numerical))
    return block.verdict == "match" and block.largest_error <= 1e-5 * size + 1e-12


def _wrong(subject: Problem, seed: int, inputs: tuple[Any, ...] | None = None, must: bool = False) -> set[int]:
    """Return the numbers of the inputs whose gradient is wrong, at other values of the same signs if none are named.

    With ``must`` also those of which differences tell nothing. A forward that raises there is no evidence.
    """
    inputs = nearby_inputs(subject, seed) if inputs is None else inputs
    try:
        outputs = subject.call(inputs)
    except Exception:
        return set() if not must else set(range(len(subject.differentiable)))
    v = cotangents(subject, outputs, seed)
    gradients = subject.vjp(outputs, v)
    truths = [directional_derivative(subject, inputs, k, v, seed) for k in range(len(gradients))]
    pairs = enumerate(zip(truths, gradients, strict=True))
    return {k for k, (truth, g) in pairs if (must if truth is None else not truth.agrees(g))}
