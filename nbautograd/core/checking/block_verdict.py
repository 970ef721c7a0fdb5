"""Verdict of a block: which entries of two Jacobians agree, which differ, which cannot be told, by which tolerance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbautograd.core.checking.block import BlockVerdict, Entry, Statement
from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.central_differences import first_step
from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.checking.jacobian.witnesses import Testimony
from nbautograd.core.checking.steps import ladder
from nbautograd.core.checking.steps.refine import ALIKE, Refined, agreeing_entries, concatenate, refine, sample_of
from nbautograd.core.display import Phrase
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.compare import agree_within
from nbautograd.core.numerics.constants import (
    AGREED,
    BITS,
    ERROR_BARS,
    FAR_OFF,
    HALF,
    NEAR,
    NEARING,
    SIGNIFICANT,
    SLIGHT,
    SMALL_IN_BLOCK,
    SMALL_IN_ROW,
    SUM_ROUNDINGS,
    UNSEEN,
    UNSURE,
)

ROW_ROUNDINGS = 64  # of the largest entry of its row that backward may be off by; ``BITS`` where precision is lowest
SPREAD = 1e-3  # of the largest difference: what most entries are off by where all are off for one reason
SAME = 1e-6  # relative; closer than this two witnesses say the same


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """Tolerances given to ``gradcheck``, and the precision of the backward.

    Attributes:
        atol, rtol: an entry that differs by at most atol + rtol |numerical| is right; None for the error bars alone.
        precision: spacing at 1 of the numbers that backward computes with.
    """

    atol: float | None
    rtol: float | None
    precision: float

    @property
    def rounding(self) -> float:
        """Return the rounding of an entry of backward relative to its row; sums are short where precision is lowest."""
        return (ROW_ROUNDINGS if self.precision < HALF else BITS) * self.precision

    def within(self, analytical: Array, numerical: Array) -> Array | None:
        """Mark the entries that meet the caller's tolerance; None when the caller gave none."""
        if self.atol is None and self.rtol is None:
            return None
        near: Array = agree_within(analytical, numerical, (self.atol or 0.0) + (self.rtol or 0.0) * np.abs(numerical))
        return near


@dataclasses.dataclass(frozen=True)
class Scale:
    """Sizes that a difference is measured against.

    Attributes:
        size: the entry itself, but at least 1e-3 of the largest of its row and 1e-6 of the largest of the block.
        row: the largest of its row, which rounding in backward goes by.
    """

    size: Array
    row: Array

    def slack(self, relative: float, tolerance: Tolerance) -> Array:
        """Return a difference that means nothing: relative to the size, or from rounding in backward."""
        result: Array = np.maximum(relative * self.size, tolerance.rounding * self.row)
        return result

    def __getitem__(self, at: tuple[Any, Any, Any]) -> Scale:
        return Scale(self.size[at], self.row[at[0], at[1], 0])


def scales(matrices: Matrices) -> Scale:
    """Return the scale of all stored entries."""
    size = np.maximum(_size(matrices.analytical), _size(matrices.numerical))
    row = size.max(axis=2, keepdims=True, initial=0.0)
    return Scale(np.maximum(np.maximum(size, SMALL_IN_ROW * row), SMALL_IN_BLOCK * row.max(initial=0.0)), row)


def agree_by_scale(
    analytical: Array, numerical: Array, scale: Scale, tolerance: Tolerance, relative: float = AGREED
) -> Array:
    """Mark the numbers that agree relative to their scale, or within the caller's tolerance."""
    tolerated = tolerance.within(analytical, numerical)
    if tolerated is not None:
        return tolerated
    agreed: Array = agree_within(
        analytical, numerical, np.maximum(scale.slack(relative, tolerance), SLIGHT * scale.row)
    )
    return agreed


def _size(array: Array) -> Array:
    size: Array = np.abs(array)
    known = np.isfinite(size)
    return size if known.all() else np.where(known, size, 0.0)


@dataclasses.dataclass(frozen=True)
class Judged:
    """A block with its verdict; see ``Block`` for the fields.

    Attributes:
        unsure: the entries that could not be decided.
        not_refined: how many of the wrong ones are known by the first difference alone.
        resolution: the relative error of an entry that would have gone unseen.
        deviation: see ``Block``.
    """

    matrices: Matrices
    verdict: BlockVerdict
    reason: str
    wrong: int
    worst: Entry | None
    largest_error: float
    steps: Array
    errors: Array
    unsure: Array
    not_refined: int = 0
    resolution: float = 0.0
    deviation: float = 0.0


def judge(raw: FirstPass, tolerance: Tolerance, seed: int = 0) -> Judged:
    """Compare the two Jacobians of a block."""
    matrices = raw.matrices
    scale = scales(matrices)
    if raw.agreed and tolerance.atol is None and tolerance.rtol is None:
        none = np.zeros(matrices.analytical.shape, dtype=bool)
        return _State(matrices, scale, none, tolerance).judged(sure=True)
    doubtful = ~agree_by_scale(matrices.analytical, matrices.numerical, scale, tolerance)
    if raw.exact:
        apart = np.abs(matrices.stored("difference"))
        return _State(matrices, scale, doubtful & ~(apart <= _rounding(raw)), tolerance).judged()
    if doubtful.any():
        matrices = dataclasses.replace(matrices, numerical=matrices.numerical.copy())
        doubtful &= ~_agree_by_fourth_order(raw, matrices, scale, doubtful, tolerance)
    state = _State(matrices, scale, doubtful, tolerance)
    state.tiny = UNSEEN * _spread(raw.output)
    if doubtful.any():
        state.take(_refined(raw, state, seed))
    still = state.wrong & (state.matrices.numerical == 0)
    lost = ladder.lost_in_rounding(raw, still) if still.any() else still
    if lost.any():
        state.wrong &= ~lost
        state.reasons["rounds inside"] = int(lost.sum())
    return state.judged()


def unjudged(raw: FirstPass, tolerance: Tolerance, reason: str) -> Judged:
    """Return a block whose gradient is no derivative and meant to be none, with the reason."""
    none = np.zeros(raw.matrices.analytical.shape, dtype=bool)
    judged = _State(raw.matrices, scales(raw.matrices), none, tolerance).judged(sure=True)
    return dataclasses.replace(judged, verdict="flat", reason=reason)


def _refined(raw: FirstPass, state: _State, seed: int) -> Refined:
    """Return a second look at the doubtful entries, or at a sample of them where it shows that all are wrong alike.

    An error bar is wanted for the verdict, not for each of a million entries that are off alike: once the worst and
    others by chance are all confirmed, those that differ as much are the same error. Entries that differ less than
    any confirmed one, and all of them where the sample is not of one mind, are looked at as well.
    """
    matrices, doubtful = state.matrices, state.wrong
    apart = np.abs(matrices.stored("difference"))
    sample = sample_of(doubtful, apart, seed)
    refined = refine(raw, sample)
    rest = doubtful & ~sample
    if rest.any():
        at = tuple(refined.entries.T)
        wrong, _, _ = classify_entries(refined, matrices.analytical[at], state.scale[at], state.tolerance, state.tiny)
        if wrong.all():
            with np.errstate(invalid="ignore"):
                relative = apart / np.maximum(np.abs(matrices.analytical), np.abs(matrices.numerical))
                rest &= ~(relative >= ALIKE * np.nanmin(relative[at]))
        if rest.any():
            refined = concatenate([refined, refine(raw, rest)])
    return refined


def _agree_by_fourth_order(
    raw: FirstPass, matrices: Matrices, scale: Scale, doubtful: Array, tolerance: Tolerance
) -> Array:
    analytical, done = matrices.analytical, _hidden_by_rounding(raw, matrices, doubtful)
    near = agree_within(analytical, matrices.numerical, NEAR * scale.size)
    chosen = doubtful & ~done & near, doubtful & ~done & ~near

    def agrees(entries: Array, found: Array) -> Array:
        at = tuple(entries.T)
        return agree_by_scale(analytical[at], found, scale[at], tolerance, SIGNIFICANT / 2)

    entries, values = agreeing_entries(raw, chosen, agrees)
    matrices.numerical[tuple(entries.T)] = values
    done[tuple(entries.T)] = True
    return done


def _rounding(raw: FirstPass) -> float:
    """Return what an entry may be off by where large terms cancel: some last digits of the output over the input."""
    values = (raw.output, raw.forward.points[raw.directions.ij[1]])
    output, point = (np.abs(v[np.isfinite(v)]) for v in values)
    typical = float(point.mean()) if point.size else 0.0
    return SUM_ROUNDINGS * raw.forward.eps * float(output.max(initial=0.0)) / (typical or 1.0)


def _hidden_by_rounding(raw: FirstPass, matrices: Matrices, doubtful: Array) -> Array:
    """Mark the doubtful entries that round-off hides from any difference, and that are nothing beside the output."""
    layout, found, tiny = matrices.layout, np.zeros_like(doubtful), UNSEEN * _spread(raw.output)
    at = np.nonzero(doubtful & (np.abs(matrices.analytical) <= tiny))
    if at[0].size:
        value = np.abs(layout.rows(raw.output[None])[0][at[0], at[1]])
        step = layout.cols(first_step(raw.forward, raw.directions.ij[1])[None])[0][at[0], at[2]]
        blur = BITS * raw.forward.eps * value / step
        found[at] = (blur <= tiny) & agree_within(matrices.analytical[at], matrices.numerical[at], blur)
    return found


def _spread(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.max() - known.min()) if known.size else 0.0


class _State:
    """The judgement while it is being made."""

    def __init__(self, matrices: Matrices, scale: Scale, doubtful: Array, tolerance: Tolerance) -> None:
        self.matrices = matrices
        self.scale, self.tolerance = scale, tolerance
        self.wrong = doubtful.copy()
        self.refined: Refined | None = None
        self.reasons: dict[str, int] = {}

    def take(self, refined: Refined) -> None:
        """Believe the ladder where it looked."""
        at = tuple(refined.entries.T)
        analytical = self.matrices.analytical[at]
        self.matrices.numerical[at] = np.where(np.isfinite(refined.value), refined.value, self.matrices.numerical[at])
        self.scale = scales(self.matrices)
        wrong, unsure, reason = classify_entries(refined, analytical, self.scale[at], self.tolerance, self.tiny)
        self.wrong[at] = wrong
        self.unsure, self.doubts = refined.entries[unsure], reason[unsure]
        for name in np.unique(self.doubts):
            self.reasons[str(name)] = int((self.doubts == name).sum())
        self.refined = refined
        self.kinks = np.zeros(self.wrong.shape, dtype=bool)
        self.kinks[at] = refined.nature == ladder.KINK
        self.between = [str(name) for name in reason[~wrong & ~unsure & np.isin(reason, ("kink", "jump"))]]

    between: Sequence[str] = ()
    kinks: Array | None = None
    unsure = np.empty((0, 3), dtype=int)
    doubts = np.empty(0, dtype=str)  # the reason of each unsure entry
    tiny = 0.0

    def judged(self, sure: bool = False) -> Judged:
        matrices = dataclasses.replace(self.matrices, wrong=self.wrong, kinks=self.kinks)
        difference = np.abs(matrices.stored("difference"))
        difference[np.isnan(difference)] = np.inf
        count = int(self.wrong.sum())
        verdict, reason = self._verdict(count)
        where, largest = self._worst(difference, reason), float(difference.max(initial=0.0))
        return Judged(
            matrices, verdict, reason, count, self._entry(where), largest, *_curve(self.refined, where), self.unsure,
            count - self._confirmed, 0.0 if sure else self._resolution(), self._deviation(difference),
        )  # fmt: skip

    @property
    def _confirmed(self) -> int:
        return 0 if self.refined is None else int(self.wrong[tuple(self.refined.entries.T)].sum())

    def _deviation(self, difference: Array) -> float:
        """Return how far the wrong entries are off, relative to the largest entry; infinite where most are not off.

        What an iteration or an approximation leaves is seen in most entries, a mistake in few of them is none.
        """
        if not self.wrong.any():
            return 0.0
        sizes = _size(self.matrices.analytical)
        if not sizes.any():
            return math.inf
        largest, spread = float(difference[self.wrong].max()), float(np.median(difference[sizes > 0]))
        return largest / float(sizes.max()) if spread >= SPREAD * largest else math.inf

    def _resolution(self) -> float:
        """Return the largest relative error that an entry can have and still pass."""
        seen = max(AGREED, self.tolerance.rounding)
        if self.refined is None or not self.refined.error.size:
            return seen
        size = self.scale.size[tuple(self.refined.entries.T)]
        with np.errstate(all="ignore"):
            bars = np.where(size > 0, ERROR_BARS * self.refined.error / size, 0.0)
        return max(seen, float(np.nan_to_num(bars, nan=0.0, posinf=0.0).max()))

    def _verdict(self, count: int) -> tuple[BlockVerdict, str]:
        if count:
            return "mismatch", ""
        if self.reasons:
            return "undecided", max(self.reasons, key=lambda name: self.reasons[name])
        return ("subgradient", max(self.between)) if self.between else ("match", "")

    def _worst(self, difference: Array, reason: str) -> tuple[int, int, int] | None:
        if not difference.size:
            return None
        about = self.wrong
        if len(self.unsure) and not about.any():
            about = np.zeros_like(self.wrong)
            about[tuple(self.unsure[self.doubts == reason].T)] = True
        if about.any():
            difference = np.where(about, difference, -1.0)
        return tuple(map(int, np.unravel_index(int(difference.argmax()), difference.shape)))  # type: ignore[return-value]

    def _entry(self, entry: tuple[int, int, int] | None) -> Entry | None:
        if entry is None:
            return None
        out, inp = self.matrices.place(entry)
        hit = _index_of(self.refined, entry)
        bar = float(self.scale[entry].slack(AGREED, self.tolerance))
        if self.refined is not None and hit is not None:
            bar = float(self.refined.error[hit])
        values = (float(self.matrices.analytical[entry]), float(self.matrices.numerical[entry]))
        return Entry(out, inp, *values, bar)


def classify_entries(
    refined: Refined, analytical: Array, scale: Scale, tolerance: Tolerance, tiny: float
) -> tuple[Array, Array, Array]:
    """Classify each entry of the second look: is it wrong, is it unsure, and the reason if it is neither plain."""
    value, error = refined.value, refined.error
    kind = np.where((refined.nature == ladder.STAIRCASE) & (error <= tiny), ladder.SMOOTH, refined.nature)
    smooth = np.isin(kind, (ladder.SMOOTH, ladder.EDGE_LEFT, ladder.EDGE_RIGHT))
    with np.errstate(invalid="ignore"):
        slack = scale.slack(SIGNIFICANT, tolerance)
        differs = ~agree_within(analytical, value, np.maximum(ERROR_BARS * error, slack))
        outside = ~((analytical >= refined.low - slack) & (analytical <= refined.high + slack))
        nearing = differs & _nearing(refined, analytical)
        blurred = ~(error <= np.maximum(UNSURE * scale.size, tiny)) | nearing
        differs &= ~nearing
    # a root at the edge of its domain: the true slope is infinite, and so is what backward says
    steep = (
        np.isin(kind, (ladder.EDGE_LEFT, ladder.EDGE_RIGHT)) & np.isinf(analytical) & ~(error <= UNSURE * np.abs(value))
    )
    unknown = ~np.isfinite(value) | (kind == ladder.NOWHERE) | steep
    reason = np.select(
        [unknown, kind == ladder.KINK, kind == ladder.JUMP, kind == ladder.STAIRCASE, ~smooth, blurred],
        ["domain edge", "kink", "jump", "staircase", "domain edge", "noise"], "",
    )  # fmt: skip
    stairs = (kind == ladder.STAIRCASE) & (np.abs(analytical) > slack)
    unsure = unknown | (smooth & blurred & ~differs) | ((kind == ladder.JUMP) & outside) | (stairs & ~outside)
    # slopes that still grow at the finest steps may grow to what backward says
    size = np.abs(analytical)
    hidden = smooth & differs & (size > np.abs(value)) & (size <= ERROR_BARS * refined.reach)
    reason, unsure, differs = np.where(hidden, "noise", reason), unsure | hidden, differs & ~hidden
    wrong = ~unknown & np.where(smooth, differs, np.isin(kind, (ladder.KINK, ladder.STAIRCASE)) & outside)
    tolerated = tolerance.within(analytical, value)
    if tolerated is not None:
        wrong, unsure = wrong & ~tolerated, unsure & ~tolerated
    return wrong, unsure, reason


def _nearing(refined: Refined, analytical: Array) -> Array:
    """Return where differences are on their way to what backward says, however sure another value seems.

    Beyond a pole (an inverse of a nearly singular matrix) coarse steps agree with each other on a value that is not
    the derivative at x. Where the finest steps lead to backward's value instead, each by less than a quarter as far
    off as the one before (truncation shrinks by 16), the ladder is too coarse for this entry and shows no mistake.
    """
    with np.errstate(invalid="ignore"):
        far = np.abs(refined.errors[-3:] - np.abs(analytical - refined.value))
        result: Array = (far[2] <= NEARING * np.abs(analytical)) & (far[2] < far[1] / 4) & (far[1] < far[0] / 4)
    return result


TINY = 1e-5  # relative to the largest entry


def far_off(matrices: Matrices) -> tuple[int, Entry | None]:
    """Return how many entries differ plainly before any was judged, and the one that differs most.

    Entries that are not known yet are NaN. At a kink backward may still be right: this is no verdict.
    """
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.abs(matrices.stored("difference")), nan=0.0, posinf=0.0)
        size = np.fmax(np.abs(matrices.analytical), np.abs(matrices.numerical))
        wrong = apart > np.nan_to_num(FAR_OFF * size + TINY * np.nanmax(size, initial=0.0), nan=np.inf)
    if not wrong.any():
        return 0, None
    at = np.unravel_index(int(np.where(wrong, apart, -1.0).argmax()), apart.shape)
    entry = (int(at[0]), int(at[1]), int(at[2]))
    place = matrices.place(entry)
    return int(wrong.sum()), Entry(*place, float(matrices.analytical[entry]), float(matrices.numerical[entry]), 0.0)


def _index_of(refined: Refined | None, entry: tuple[int, int, int]) -> int | None:
    if refined is None:
        return None
    hits = np.flatnonzero((refined.entries == np.array(entry)).all(axis=1))
    return int(hits[0]) if hits.size else None


def _curve(refined: Refined | None, entry: tuple[int, int, int] | None) -> tuple[Array, Array]:
    hit = None if entry is None else _index_of(refined, entry)
    if refined is None or hit is None or np.isnan(refined.steps[:, hit]).all():
        return np.empty(0), np.empty(0)
    return refined.steps[:, hit], refined.errors[:, hit]


def statements(raw: FirstPass, judged: Judged, forward: Testimony, jvp: Testimony) -> tuple[Statement, ...]:
    """Return the statements of all four witnesses."""
    shape = Phrase(f"views.structure.{raw.matrices.layout.structure.replace(' ', '_')}")
    by_backward = Phrase("checking.backward_said" if raw.linear else "checking.backward_not_linear", structure=shape)
    precision = " (float64)" if raw.forward.promoted else ""
    off = _two_digits(judged.largest_error)
    by_differences = Phrase("checking.differences_said", largest=off, precision=precision)
    return (
        Statement("backward", True, by_backward),
        Statement("finite differences", True, by_differences, judged.largest_error),
        _other("autograd of forward", forward),
        _other("jvp", jvp),
    )


def _other(witness: str, testimony: Testimony) -> Statement:
    if testimony.apart is None:
        return Statement(witness, False, Phrase(f"checking.absent_{testimony.absent}"))
    if testimony.apart < SAME:
        says = Phrase("checking.witness_agrees", digits=min(15, int(-math.log10(max(testimony.apart, 1e-15)))))
    else:
        says = Phrase("checking.witness_differs", percent=_two_digits(100 * testimony.apart))
    return Statement(witness, True, says, testimony.largest, testimony.apart)


def _two_digits(value: float) -> str:
    if value == float("inf"):
        return "∞"
    return f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e")
