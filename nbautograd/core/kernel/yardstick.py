"""Errors beside what rounding explains: of single entries, of lines and of all, by chance or with one sign.

An error e of a quantity with golden values y is looked at through sums <e, v> over lines of the last dimension and over
all entries, for directions v that an error in a formula would have: the golden values (a factor), ones (an offset),
tensors of the same shape (a lost term). A sum is significant when it exceeds

    floor + z * spread,

where the spread is that of the same sum over correct implementations (the yardstick and the samples of random rounding,
shrunk towards that of the other lines: Smyth, G. K. (2004), moderated t-statistics, Statistical Applications in
Genetics and Molecular Biology 3(1)), z grows with the number of lines as the largest of so many normal numbers does,
and the floor is what a few roundings with one sign leave, such as those of a constant that a kernel holds in low
precision. Summed over several draws the spread shrinks beside a factor of 0.99, although each entry is within rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.forks import cached
from nbautograd.core.numerics.arrays import Array

# Unit roundoffs that a coherent error of a whole quantity, of a line, and of one entry may have beyond its spread: a
# constant or a factor per row that was rounded once or twice.
COHERENT, COHERENT_LINE, ENTRY = 1.25, 2.0, 2.0

# How many times the noise of the yardstick another order, fusion or splitting of the same operations may have.
NOISE = 3.0

# How many times the noise of the yardstick that of all entries together may be, where rounding each of the reference's
# results explains no more: twenty sums in bfloat16, one after the other, leave 3 to 4 times, torch's attention twice.
OVERALL = 2.5

UNIT_OF_FLOAT32 = torch.finfo(torch.float32).eps / 2  # what rounding to float32 changes at most, relative

# Unit roundoffs of a typical entry that are taken for the noise of entries where no correct implementation had any:
# terms that cancel exactly in the reference leave a last digit in another order.
UNKNOWN = 0.1

# Spreads that a sum may be off by, beside the largest of so many normal numbers, and the groups' common spread counted
# as so many samples.
SPREADS, PRIOR = 5.0, 4.0

MEDIAN_ENTRIES = 2048  # entries by whose median the noise of a Function is estimated

Level = Literal["entries", "noise", "lines", "whole"]


class System(NamedTuple):
    """What errors are summed up over, and the direction in which they are.

    Attributes:
        direction: ``"golden"``, ``"ones"``, or the name of a tensor.
        level: ``"entries"``, ``"noise"`` (the size of all entries' errors), ``"lines"`` of the last dimension, or
            ``"whole"``.
        draws: True where the sums of all draws are added up.
    """

    direction: str
    level: Level
    draws: bool = False


class Excess(NamedTuple):
    """An error beside what rounding explains.

    Attributes:
        system: where it was seen.
        ratio: of the largest to what it may be; significant from 1 on.
    """

    system: System
    ratio: float


@dataclass(frozen=True)
class Sums:
    """Sums over lines or over all entries, by direction, golden values first.

    Attributes:
        directions: their names.
        sums: of the error times the direction; of the squared direction; the variance that correct implementations
            give for the first; and what may be there with one sign. A row for each direction.
        known: on how many correct errors the variance rests, by direction.
        noisier: how many times the noise of correct implementations the Function has, 1 to ``NOISE``.
    """

    directions: tuple[str, ...]
    sums: tuple[Array, ...]
    known: tuple[float, ...]
    noisier: tuple[float, ...]

    @property
    def error(self) -> Array:
        """Sums of the error times the direction."""
        return self.sums[0]

    @property
    def norm(self) -> Array:
        """Sums of the squared direction."""
        return self.sums[1]

    @property
    def variance(self) -> Array:
        """What correct implementations give for the variance of ``error``."""
        return self.sums[2]

    def of(self, names: Sequence[str]) -> Sums:
        """Return the rows of some directions."""
        rows = [self.directions.index(name) for name in names]
        known, noisier = tuple(self.known[k] for k in rows), tuple(self.noisier[k] for k in rows)
        return Sums(tuple(names), tuple(one[rows] for one in self.sums), known, noisier)

    def beside(self, other: Sums) -> Sums:
        """Return the rows of both."""
        known, noisier = self.known + other.known, self.noisier + other.noisier
        sums = tuple(map(np.concatenate, zip(self.sums, other.sums, strict=True)))
        return Sums(self.directions + other.directions, sums, known, noisier)

    def add(self, other: Sums) -> Sums:
        """Return the sums over the draws of both; a direction that one of them lacks has those of the other."""
        if self.directions != other.directions:
            both = [name for name in self.directions if name in other.directions]
            mine, theirs = ([name for name in one.directions if name not in both] for one in (self, other))
            return self.of(both).add(other.of(both)).beside(self.of(mine)).beside(other.of(theirs))
        known = tuple(a + b for a, b in zip(self.known, other.known, strict=True))
        sums = tuple(a + b for a, b in zip(self.sums, other.sums, strict=True))
        return Sums(self.directions, sums, known, tuple(map(max, self.noisier, other.noisier)))

    @cached
    def bound(self) -> Array:
        """The largest error that rounding explains."""
        groups = self.error.shape[1]
        times = [[n * spreads(groups, known)] for n, known in zip(self.noisier, self.known, strict=True)]
        bound: Array = self.sums[3] + np.sqrt(self.variance) * times
        return bound

    def excesses(self, level: Level, draws: bool = False) -> Iterator[Excess]:
        """Yield the worst sum along each direction."""
        most = _quotient(np.abs(self.error), self.bound).max(1).tolist()
        for direction, ratio in zip(self.directions, most, strict=True):
            yield Excess(System(direction, level, draws), ratio)


def spreads(groups: int, known: float) -> float:
    """Return how many spreads the largest of so many sums may be off by: E max |N(0, 1)| is about sqrt(2 log n).

    A spread that is estimated from few numbers may be too small itself: Student's t in place of the normal, by the
    expansion of Cornish and Fisher.
    """
    z = SPREADS
    student = z + (z**3 + z) / (4 * known) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * known**2)
    return student + math.sqrt(2 * math.log(1 + groups))


class Yardstick:
    """A measure of rounding: the errors that correct implementations of one quantity have at one draw.

    Args:
        golden: float64.
        yardstick: the reference's error in the dtype itself.
        samples: errors of the reference with random rounding.
        unit: unit roundoff of the coarsest dtype (half its spacing at 1).
        tiny: what a number near zero may be off by: the smallest number of the dtype.
        directions: tensors of the same shape by name, beside golden values and ones.
    """

    def __init__(
        self,
        golden: Tensor,
        yardstick: Tensor,
        samples: Sequence[Tensor],
        unit: float,
        tiny: float,
        directions: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.golden = golden if golden.dim() else golden.reshape(1)
        self.unit, self.tiny = unit, tiny
        self.error = yardstick.reshape(self.golden.shape)
        self.squares = self.error.square()  # of all correct errors together
        self.norm, entries = self.golden.square().sum(-1), self.golden.numel()
        self.size, self.own = math.sqrt(float(self.norm.sum()) / entries), rms(self.error)
        self.noise = max(self.own, 0.3 * unit * self.size)
        self.correct = [self.error, *(s.reshape(self.golden.shape) for s in samples)]
        self.known = len(self.correct) * entries
        for sample in self.correct[1:]:
            self.squares.addcmul_(sample, sample)
        self.lines = self.squares.sum(-1)
        most = OVERALL if unit <= UNIT_OF_FLOAT32 else 1.0
        self.level = max(OVERALL * self.noise, *(most * rms(sample) for sample in self.correct[1:]), 0.0)
        self.directions: dict[str, Tensor | None] = {"golden": self.golden, "ones": None, **(directions or {})}
        # by level: what sums are measured by, and how many samples each variance rests on
        self._measures: dict[Level, tuple[tuple[Array, ...], tuple[float, ...]]] = {}

    @cached
    def _entry_bounds(self) -> tuple[Tensor, Tensor, float, float]:
        """Return what each entry may be off by with one sign, the spread of its noise, its unit, and from how many."""
        count, size = len(self.correct), self.golden.shape[-1]
        lines = (self.lines if size >= 8 else self.lines.mean())[..., None] / (count * size)
        # what the entries of a line are sums of may have been rounded once for all of them, so that a line, too, is
        # one sample: beside its neighbours, whose terms are as large where its own cancel
        each = lines if lines.dim() > 1 else self.squares
        known = float(
            _known(each.cpu().numpy().reshape(1, -1), count, count * (self.golden.numel() // each.numel()), self.known)[
                0
            ]
        )
        least = max(float(lines.mean()), (UNKNOWN * self.unit * self.size) ** 2)
        lines.mul_(count).add_(PRIOR * least).mul_(PRIOR / (least or 1.0) / (count + PRIOR))
        # roots in float32 take a fifth of the time; none is too small or too large for it, beside the mean square
        spread = torch.add(lines, self.squares, alpha=1 / (least or 1.0)).float().sqrt_()
        floor = self.golden.abs().mul_(ENTRY * self.unit).add_(self.tiny)
        return floor, spread, math.sqrt((least or 1.0) / (count + PRIOR)), known

    def allowed(self, error: Tensor, noisier: float | None = None) -> Tensor:
        """Return the largest error that each entry may have, of a Function as noisy as the middle of its errors is."""
        floor, spread, unit, known = self._entry_bounds
        z = (self.noisier(error)[0] if noisier is None else noisier) * spreads(self.golden.numel(), known)
        allowed = spread.to(torch.float64)
        return torch.add(floor, allowed, alpha=unit * z, out=allowed)

    def noisier(self, error: Tensor) -> list[float]:
        """Return how many times the noise of correct implementations an error has, by the median of both.

        What may be ``NOISE`` times as noisy has its largest errors so many times further out: without this one entry
        in hundreds would be beyond. An error of one place does not move the median, and one along a direction is
        taken away before: the first is of the error as it is, the others are along each direction. Where rounding was
        not sampled, one is taken for as noisy as the reference: it is sampled wherever that shows anything.
        """
        if len(self.correct) == 1:
            return [1.0] * (1 + len(self.directions))
        spread, middle, along, norm = self._middle
        if not middle > 0:
            return [1.0] * (1 + len(along))
        some = _some(error)
        left = np.concatenate((some[None], some - along * _quotient((along * some).sum(1, keepdims=True), norm)))
        medians = _median(_quotient(np.abs(left), spread)).tolist()
        return [min(max(one / middle, 1.0), NOISE) for one in medians]

    @cached
    def _middle(self) -> tuple[Array, float, Array, Array]:
        """Return some entries' spread, the median of correct errors in its units, directions there, their squares."""
        _, wide, unit, _ = self._entry_bounds
        spread = _some(wide) * unit
        correct = np.stack([_some(one) for one in self.correct])
        along = np.stack([np.ones_like(spread) if v is None else _some(v) for v in self.directions.values()])
        middle = float(_median(_quotient(np.abs(correct), spread).reshape(-1)))
        return spread, middle, along, np.square(along).sum(1, keepdims=True)

    def sums(self, error: Tensor, noisier: Sequence[float] | None = None) -> dict[Level, Sums]:
        """Return the sums of an error over lines, where there are several, and over all entries."""
        noisier = self.noisier(error)[1:] if noisier is None else noisier
        error = error.reshape(self.golden.shape)
        names = tuple(self.directions)
        rows = [self._along(v, error) for v in self.directions.values()]
        # small from here on: NumPy takes a third of the time of so many small operations
        lines = torch.stack([*itertools.chain(*rows)]).cpu().numpy().reshape(len(rows), len(rows[0]), -1)
        tables: dict[Level, Array] = {"whole": lines.sum(-1, keepdims=True)}
        if lines.shape[-1] > 1:
            tables["lines"] = lines
        if not self._measures:
            self._measures = {level: self._measured(t[:, 1:-3], t[:, -3:], level) for level, t in tables.items()}
        return {
            level: Sums(names, (table[:, 0], *self._measures[level][0]), self._measures[level][1], tuple(noisier))
            for level, table in tables.items()
        }

    def _along(self, v: Tensor | None, error: Tensor) -> list[Tensor]:
        """Return sums over lines: of the error along a direction; the first time also of what it is measured by.

        These are correct errors, golden values, the direction itself and squares of correct errors along it.
        """
        sums = [(error if v is None else error * v).sum(-1)]
        if self._measures:
            return sums
        if v is None:
            golden, norm = self.golden.sum(-1), torch.full_like(self.norm, error.shape[-1])
            return [*sums, *(t.sum(-1) for t in self.correct), golden, norm, self.lines]
        golden, norm = (self.norm if v is self.golden else (t * v).sum(-1) for t in (self.golden, v))
        sums += [*((t * v).sum(-1) for t in self.correct), golden, norm]
        return [*sums, v.square().mul_(self.squares).sum(-1)]

    def _measured(self, correct: Array, others: Array, level: Level) -> tuple[tuple[Array, ...], tuple[float, ...]]:
        golden, norm, apart = others.transpose(1, 0, 2)
        squares, count = np.square(correct).mean(1), correct.shape[1]
        shares = _quotient(np.stack((squares, apart, golden**2)), norm)
        known = tuple(_known(shares[0], count, count, self.known).tolist())
        shares = shares.mean(-1, keepdims=True)
        pooled, usual = shares[:2] * norm * PRIOR
        # what cancels in the reference, as the errors of a line from which its mean was taken last, need not elsewhere
        variance = np.maximum((count * squares + pooled) / (count + PRIOR), (apart + usual / (count + PRIOR)) / count)
        # a constant per row that was rounded leaves as much in a sum of golden values that is zero by chance; along
        # themselves they are never zero by chance
        typical, root = np.sqrt(shares[2]), np.sqrt(norm)
        typical[0] = 0.0
        coherent = COHERENT if level == "whole" else COHERENT_LINE
        size = np.maximum(np.abs(golden), typical * root) * (coherent * self.unit)
        return (norm, variance, size + self.tiny * root), known


@dataclass
class Deviation:
    """The error of one quantity over several draws.

    Attributes:
        excesses: the largest of each system, by system.
        wrong: entries that are beyond what rounding explains at some draw; None where there are none.
        total: the sums over all draws.
        squares: sum of the squared error over all draws.
        correct: that of the yardstick's.
        entries: how many they are, over all draws.
        lines: sums of the variance of a line, or of an entry of a vector, and of its square, each without what they
            vary by because few numbers estimate them.
        tiny: what one near zero may be off by.
        draws: how many.
        along: by direction, how much of it lies along that direction in each line of the last dimension.
    """

    excesses: dict[System, Excess] = field(default_factory=dict)
    wrong: Tensor | None = None
    total: dict[Level, Sums] = field(default_factory=dict)
    squares: float = 0.0
    correct: float = 0.0
    entries: int = 0
    lines: tuple[float, float] = (0.0, 0.0)
    tiny: float = 0.0
    draws: int = 0
    along: dict[str, float] = field(default_factory=dict)

    def add(self, yardstick: Yardstick, error: Tensor) -> None:
        """Take in the error at one draw."""
        error = error.reshape(yardstick.golden.shape)
        noisier = yardstick.noisier(error)
        sums = yardstick.sums(error, noisier[1:])
        allowed, size = yardstick.allowed(error, noisier[0]), rms(error)
        ratio = torch.div(error, allowed, out=allowed).abs_()
        most = float(ratio.amax())
        self._note(Excess(System("ones", "entries"), most))
        if most > 1:
            beyond = ratio > 1
            self.wrong = beyond if self.wrong is None else self.wrong | beyond
        self.squares += size**2 * error.numel()
        self.correct += yardstick.level**2 * error.numel()
        lines = yardstick.lines if error.dim() > 1 else yardstick.squares
        varied = 1 + 2 / (len(yardstick.correct) * (error.numel() // lines.numel()))  # estimated from so few numbers
        self.lines = (self.lines[0] + float(lines.sum()), self.lines[1] + float(lines.square().sum()) / varied)
        self.entries, self.tiny = self.entries + error.numel(), max(self.tiny, yardstick.tiny)
        self.draws += 1
        for level, one in sums.items():
            for excess in one.excesses(level):
                self._note(excess)
            self.total[level] = self.total[level].add(one) if level in self.total else one
        along = sums.get("lines", sums["whole"])
        explained = _quotient(along.error**2, along.norm).sum(1).tolist()
        for direction, share in zip(along.directions, explained, strict=True):
            self.along[direction] = self.along.get(direction, 0.0) + share

    def _note(self, excess: Excess) -> None:
        known = self.excesses.get(excess.system)
        if known is None or excess.ratio > known.ratio:
            self.excesses[excess.system] = excess

    def close(self) -> None:
        """Compare the sums over all draws, and the size of all entries' errors.

        A reference that accumulates in float32 gives no leave to do so in less.
        """
        if self.entries:
            # of lines of which one has nearly all of the noise there is but one
            few = math.sqrt(self.lines[1]) / (self.lines[0] or 1.0)
            bound = math.sqrt(self.correct / self.entries) * (1 + 3 * few) + self.tiny
            ratio = math.sqrt(self.squares / self.entries) / bound if bound else 0.0
            self._note(Excess(System("ones", "noise", draws=True), ratio))
        for level, one in self.total.items():
            for excess in one.excesses(level, draws=True):
                self._note(excess)

    def share(self, direction: str) -> float:
        """Return how much of the squared error lies along a direction in each line of the last dimension."""
        return self.along.get(direction, 0.0) / self.squares if self.squares else 0.0

    @property
    def worst(self) -> Excess | None:
        """The most significant excess."""
        return max(self.excesses.values(), key=lambda excess: excess.ratio, default=None)


def rms(tensor: Tensor) -> float:
    """Return the root of the mean square."""
    return float(torch.linalg.vector_norm(tensor)) / math.sqrt(tensor.numel()) if tensor.numel() else 0.0


def _known(variances: Array, count: int, each: int, most: int) -> Array:
    """Return how many samples a variance rests on: its own, and others of its row as far as all are alike.

    Variances that vary as 1 / chi^2 of d0 degrees have a relative variance of 2 / (d0 - 4). What was estimated from
    few numbers varies beyond that.

    Args:
        variances: of all groups, estimated.
        count: samples of each.
        each: numbers that each was estimated from.
        most: numbers in all.
    """
    seen = 1 + _quotient(variances.var(-1), variances.mean(-1) ** 2)
    known: Array = count + PRIOR + 2 / np.maximum(seen / (1 + 2 / each) - 1, 2 / most)
    return known


def _some(tensor: Tensor) -> Array:
    flat = tensor.reshape(-1)
    return flat[:: len(flat) // MEDIAN_ENTRIES | 1].to("cpu", torch.float64).numpy()


def _median(values: Array) -> Array:
    middle = (values.shape[-1] - 1) // 2
    return np.partition(values, middle)[..., middle]


def _quotient(a: Array, b: Array) -> Array:
    """Return a / b, where 0 / 0 is 0; b is not negative, and where it is 0 neither is a."""
    with np.errstate(all="ignore"):
        quotient = a / b
    quotient[np.isnan(quotient)] = 0.0
    return quotient
