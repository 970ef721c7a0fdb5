"""One check of a Function against a reference: draws, fresh draws that confirm, and what they found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.problem import Problem
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.kernel.golden import Draw, Pair, in_float64, like, run
from nbautograd.core.kernel.trial import JUDGED_TOGETHER, Region, Track, Trial
from nbautograd.core.kernel.yardstick import NOISE, Deviation, rms
from nbautograd.core.numerics.draws import child, generator
from nbautograd.core.torch_private.precision import InFloat64

DRAWS = 3  # of grad_outputs for each case: what cancels in one shows in another
FRESH = "fresh"  # name of the draws at which nothing was looked for yet
# Of what is significant beside the yardstick alone, from which on rounding is sampled as well. With a sample the spread
# of a sum is at least 0.65 of that without, whatever the sample is: (s + 2 p) / 6 beside (s + 4 p) / 5, with s the
# square of the yardstick's own sum and p that of all groups; so what would be significant then is not lost.
LESS = 0.5
AGAIN = 0.7  # of what is significant, that the same sum must reach at fresh draws
CONDITIONED = 100.0  # amplification of relative errors from which on it is named
SURER = 4  # samples of rounding where an error is to be confirmed: of two, those of a single line say little
STEADY = 0.1  # relative: factors at fresh draws that differ less are one factor
EXPLAINED = 0.9  # share of the squared error along a tensor from which on a term with it is named
SHORT_LINE = 8  # entries of a line, with fewer of which an error lies along anything
MANY_DRAWS_UP_TO = 2**14  # elements of inputs and draws together: up to them a tensor with few is drawn more often
NAMED_INDICES = 2  # single indices that are named where they are no run
NUDGE = 1e-7  # relative change of the inputs by which it is measured: half the digits of float64


@dataclass
class Outcome:
    """The result of a check of one Function at inputs of some shapes and dtypes.

    Attributes:
        trial: the draws in which faults were looked for; what did not come again was chance, and has the fresh ones.
        wrong: positions among the trial's tracks of what is wrong, confirmed at fresh draws.
        findings: what stands against them.
        conditions: amplification of a relative error of the inputs, by position of the track; where it is large.
        draws: in how many faults were looked for.
    """

    trial: Trial
    wrong: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()
    conditions: dict[int, float] = field(default_factory=dict)
    draws: int = 0

    def ratio(self, k: int) -> float:
        """Return the error of a quantity in units of what rounding explains."""
        track = self.trial.tracks[k]
        return math.inf if track.broken else track.deviation.worst.ratio if track.deviation.worst else 0.0


def check(
    candidate: Problem,
    reference: Problem,
    inputs: tuple[Any, ...] | None = None,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    samples: int = 2,
    power: bool = False,
    arrange: Callable[[Tensor], Tensor] | None = None,
    dtype: torch.dtype | None = None,
    again: int | None = None,
    terms: bool = True,
    fresh: Callable[[int], tuple[Any, ...]] | None = None,
    done: Callable[[], None] | None = None,
) -> Outcome:
    """Compare a Function with its reference at several draws; confirm at fresh ones what is wrong.

    Args:
        candidate, reference: both in a session.
        inputs: where; None takes the candidate's own.
        draws: how many; more where a tensor has few elements.
        samples: of random rounding for each.
        power: True tries wrong gradients as well, and samples rounding where nothing seems wrong, too: for what the
            comparison could have seen.
        arrange: lays out the grad_outputs in memory.
        dtype: what both compute in; None takes the coarsest among inputs and outputs.
        again: how many fresh draws confirm what is wrong; None takes as many.
        terms: True looks for errors along other tensors as well.
        fresh: makes the inputs of another draw, of a seed; None moves the given ones.
        done: called after each draw.
    """
    given = candidate.inputs if inputs is None else inputs
    draws, again = (_enough(count, given, candidate.differentiable) for count in (draws, again or draws))
    pair = Pair(candidate, reference, dtype, arrange)
    at = pair.draws(draws, seed, given, fresh)
    if power:
        trial = Trial(pair, power, terms=terms).run(at, samples, done)
    else:
        measured = [pair.measure(draw, 0) for draw in at]
        trial = Trial(pair, terms=terms).of(measured, done)
        if any(track.broken or track.exceeded(LESS) for track in trial.tracks):
            trial = Trial(pair, terms=terms).of(pair.sampled(one, samples) for one in measured)
    suspects = [k for k, track in enumerate(trial.tracks) if track.broken or track.exceeded()]
    conditions = _conditions(pair, trial, given, seed) if power else {}
    if not suspects:
        return Outcome(trial, conditions=conditions, draws=draws)
    regions = {k: candidate_regions(trial.tracks[k]) for k in suspects}
    later = Trial(pair, power, regions).run(pair.draws(again, child(seed, FRESH), given, fresh), SURER).tracks
    wrong, findings = confirm(trial, suspects, later, regions)
    return Outcome(trial, wrong, findings, conditions, draws)


def confirm(
    trial: Trial, suspects: Sequence[int], later: Sequence[Track], regions: Mapping[int, Sequence[Region]]
) -> tuple[tuple[int, ...], tuple[Finding, ...]]:
    """Return what is wrong at fresh draws too, and what stands against it; the others take those draws."""
    wrong = tuple(k for k in suspects if confirmed(trial.tracks[k], later[k]))
    findings = tuple(finding(trial.tracks[k], regions.get(k, ()), later[k]) for k in wrong)
    for k in set(suspects) - set(wrong):
        trial.tracks[k] = later[k]
    return wrong, findings


def _enough(draws: int, inputs: Sequence[Any], differentiable: Sequence[int]) -> int:
    """Return at how many draws to compare, so that each gradient has enough entries to tell noise from a factor."""
    sizes = [x.numel() for x in inputs if isinstance(x, Tensor)]
    least = min((inputs[k].numel() for k in differentiable), default=0)
    return max(draws, min(-(-JUDGED_TOGETHER // least), MANY_DRAWS_UP_TO // sum(sizes))) if least else draws


def _conditions(pair: Pair, trial: Trial, inputs: tuple[Any, ...], seed: int) -> dict[int, float]:
    wide = in_float64(pair.draw(inputs, seed))
    numbers = generator(seed, "near")
    near = tuple(
        like(x, x.detach() * (1 + NUDGE * torch.randn(x.shape, generator=numbers, dtype=x.dtype).to(x.device)))
        if isinstance(x, Tensor) and x.requires_grad
        else x
        for x in wide.inputs
    )
    here, there = (run(pair.reference, Draw(x, wide.grad_outputs, seed), InFloat64()) for x in (wide.inputs, near))
    found = {}
    for k, (a, b) in enumerate(zip(here.tensors, there.tensors, strict=True)):
        if a is not None and b is not None and rms(a) > 0 and k < len(trial.tracks):
            found[k] = rms(b - a) / rms(a) / NUDGE
    return found


def confirmed(track: Track, fresh: Track) -> bool:
    """Return True where what is wrong with a quantity shows at fresh draws as well."""
    if track.broken:
        return fresh.broken
    again = {system for system, e in fresh.exceeded(AGAIN).items() if e.ratio >= 1.0 or system.level != "entries"}
    return bool(track.exceeded().keys() & again)  # a sum is the same one again, an entry any of them


def finding(track: Track, regions: Sequence[Region], fresh: Track) -> Finding:
    """Return what stands against a quantity, as far as its errors say it.

    Args:
        track: of the quantity, wrong at these draws.
        regions: where all of the error may be.
        fresh: the same quantity at fresh draws, which say whether there is an error elsewhere too.
    """
    quantity = track.quantity
    of = "compare.gradient_of" if quantity.kind == "gradient" else "compare.output_of"
    params: dict[str, Any] = {"quantity": Phrase(of, name=quantity.name), "name": quantity.name}
    place = (0, quantity.position) if quantity.kind == "gradient" else None
    if track.missing:
        return Finding("compare_no_gradient", "bug", "compare.no_gradient", params, place)
    if track.other_shape is not None:
        params |= {"got": list(track.other_shape), "expected": list(track.shape)}
        return Finding("compare_shape", "bug", "compare.shape", params, place)
    params |= {"entries": track.entries}
    if track.nonfinite:
        return Finding("compare_nonfinite", "bug", "compare.nonfinite", {**params, "wrong": track.nonfinite}, place)
    params |= {"error": track.error, "yardstick": track.yardstick_error, "ratio": track.ratio}
    if math.isinf(track.error):  # relative to golden values that are all zero
        return Finding("compare_not_zero", "bug", "compare.not_zero", params, place)
    if abs(track.error - 1) < 1e-9 and abs(track.bias + 1) < 1e-9:  # the error is the golden values themselves
        return Finding("compare_zero", "bug", "compare.zero", params, place)
    # a factor before a region: where the gradient is zero a wrong factor leaves it right
    nearly_one = f"{1 + track.bias:.3g}" == "1"
    if (
        not nearly_one
        and _scaled(track)
        and _scaled(fresh)
        and abs(track.bias - fresh.bias) <= max(STEADY * abs(track.bias), track.unit)
    ):
        return Finding("compare_factor", "bug", "compare.factor", {**params, "factor": 1 + track.bias}, place)
    confirmed = (r for r, elsewhere in zip(regions, fresh.elsewhere, strict=True) if not _significant(elsewhere))
    region = next(confirmed, None)
    if region is not None:
        return Finding("compare_region", "bug", "compare.region", {**params, "where": region.name}, place)
    return _unplaced(track, params, place, fresh)


def _unplaced(track: Track, params: dict[str, Any], place: tuple[int, int] | None, fresh: Track) -> Finding:
    """Return what stands against a quantity whose error is no factor and not in one region."""
    exceeded = track.exceeded()
    wrong, again = (0 if one.deviation.wrong is None else int(one.deviation.wrong.sum()) for one in (track, fresh))
    if all(e.system.level in ("entries", "noise") for e in exceeded.values()):
        if wrong and again:  # of noise an entry or two may be among the tails
            return Finding("compare_entries", "bug", "compare.entries", {**params, "wrong": wrong}, place)
        return Finding("compare_noise", "bug", "compare.noise", params, place)
    shares = {name: min(one.deviation.share(name) for one in (track, fresh)) for name in track.deviation.along}
    along = max(shares, key=lambda name: shares[name], default="golden")
    if len(track.shape) > 0 and along != "golden" and track.shape[-1] > SHORT_LINE and shares[along] >= EXPLAINED:
        if along == "ones":
            return Finding("compare_offset", "bug", "compare.offset", params, place)
        return Finding("compare_term", "bug", "compare.term", {**params, "along": along}, place)
    return Finding("compare_values", "bug", "compare.values", params, place)


def _scaled(track: Track) -> bool:
    residual = max(track.error**2 - track.bias**2, 0.0) ** 0.5
    size = abs(1 + track.bias)  # rounding is relative to what came out
    return abs(track.bias) > track.unit and residual <= size * max(2 * NOISE * track.yardstick_error, 4 * track.unit)


def _significant(deviation: Deviation) -> bool:
    return deviation.worst is not None and deviation.worst.ratio >= 1.0


def candidate_regions(track: Track) -> list[Region]:
    """Return slices that may hold all of a quantity's error: on each axis the indices that have wrong entries."""
    if track.deviation.wrong is None:
        return []
    wrong = track.deviation.wrong.cpu().numpy()
    name = f"grad {track.quantity.name}" if track.quantity.kind == "gradient" else track.quantity.name
    found = []
    for axis, size in enumerate(wrong.shape):
        hit = np.flatnonzero(wrong.any(axis=tuple(d for d in range(wrong.ndim) if d != axis)))
        run = len(hit) > 0 and hit[-1] - hit[0] == len(hit) - 1
        # what more than half is wrong of has an exception where it is right, and no place of its own
        if 0 < 2 * len(hit) <= size and (run or len(hit) <= NAMED_INDICES):
            listed = [int(k) if k < size - 1 else -1 for k in hit]
            where = _run_of(int(hit[0]), int(hit[-1]) + 1, size) if run else str(listed)
            mask = torch.zeros(wrong.shape, dtype=torch.bool)
            mask.index_fill_(axis, torch.from_numpy(hit), True)
            found.append((len(hit) / size, Region(f"{name}[{':, ' * axis}{where}]", mask)))
    return [region for _, region in sorted(found, key=lambda one: one[0])]


def _run_of(start: int, stop: int, size: int) -> str:
    if stop - start == 1:
        return str(start) if stop < size else "-1"
    return f"{start or ''}:{stop if stop < size else ''}"
