"""Is backward right at other inputs too, after the Function was called at the ones given?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.other_points import nearby_inputs
from nbautograd.core.checking.problem import Subject
from nbautograd.core.findings import Finding

TWICE = (61, 67)  # one disagreement may be a kink that was met


def wrong_at_other_inputs(subject: Subject, blocks: Mapping[tuple[int, int], Block]) -> Iterator[Finding]:
    """A gradient that is right at the inputs given and wrong at others: something of an earlier call is left over."""
    if not subject.has_functions or not blocks or not all(map(_plainly_right, blocks.values())):
        return
    wrong = set(range(len(subject.differentiable)))
    for seed in TWICE:
        wrong &= _wrong(subject, subject.seed + seed)
        if not wrong:
            return
    position = subject.differentiable[min(wrong)]
    found = phrases.about(subject, "shared_state", "bug", input=subject.input_names[position])
    yield dataclasses.replace(found, message_id="causes.wrong_later")


def _plainly_right(block: Block) -> bool:
    """Whether a block agrees by more than the caller's tolerance."""
    worst = block.worst
    size = 0.0 if worst is None else max(abs(worst.analytical), abs(worst.numerical))
    return block.verdict == "match" and block.largest_error <= 1e-5 * size + 1e-12


def _wrong(subject: Subject, seed: int) -> set[int]:
    """Numbers of the inputs whose gradient is wrong at other values of the same signs."""
    inputs = nearby_inputs(subject, seed)
    outputs = subject.call(inputs)
    v = cotangents(subject, outputs, seed)
    gradients = subject.vjp(outputs, v)
    truths = [directional_derivative(subject, inputs, k, v, seed) for k in range(len(gradients))]
    pairs = zip(truths, gradients, strict=True)
    return {k for k, (truth, g) in enumerate(pairs) if truth is not None and not truth.agrees(g)}
