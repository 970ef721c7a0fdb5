"""Errors beside what rounding explains: of single entries, of groups and of all, by chance or with one sign.

An error e of a quantity with golden values y is looked at through sums <e, v> over groups of entries, for directions v
that an error in a formula would have: the golden values (a factor), ones (an offset), tensors of the same shape (a lost
term). A sum is significant when it exceeds

    floor + z * spread,

where the spread is that of the same sum over correct implementations (the yardstick and the samples of random rounding,
shrunk towards that of the neighbouring groups: Smyth, G. K. (2004), moderated t-statistics, Statistical Applications in
Genetics and Molecular Biology 3(1)), z grows with the number of groups as the largest of so many normal numbers does,
and the floor is what a few roundings with one sign leave, such as those of a constant that a kernel holds in low
precision. Summed over several draws the spread shrinks beside a factor of 0.99, although each entry is within rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

# Unit roundoffs that a coherent error of a whole quantity, of a line, and of one entry may have beyond its spread: a
# constant or a factor per row that was rounded once or twice.
COHERENT, COHERENT_LINE, ENTRY = 1.25, 2.0, 2.0

# How many times the noise of the yardstick another order, fusion or splitting of the same operations may have.
NOISE = 3.0

# Times the error of the yardstick beyond which samples of random rounding are scaled down: where a reference computes
# in float32 inside, rounding each of its results to less would let anything pass.
ROUGHER = 3.0

# Unit roundoffs of a typical entry that are taken for the noise of a line where no correct implementation had any:
# terms that cancel exactly in the reference, as in the first row of a causal attention, leave a last digit in another
# order.
UNKNOWN = 0.1

# Spreads that a sum may be off by, beside the largest of so many normal numbers, and the groups' common spread counted
# as so many samples.
SPREADS, PRIOR = 5.0, 4.0

SOME = 2048  # entries by whose median the noise of a Function is estimated


@dataclass(frozen=True)
class System:
    """A family of groups of entries, and the direction in which their error is summed up.

    Attributes:
        direction: ``"golden"``, ``"ones"``, or the name of a tensor.
        kept: dimensions by whose index the groups are told apart; those left out are summed over.
        level: ``"entries"``, ``"noise"`` (the size of all entries' errors), ``"lines"`` or ``"blocks"`` (runs along
            one dimension), ``"whole"`` or ``"energy"`` (the size of all lines' sums).
        draws: True where the sums of all draws are added up.
    """

    direction: str
    kept: tuple[int, ...]
    level: str
    draws: bool = False


@dataclass(frozen=True)
class Excess:
    """An error beside what rounding explains.

    Attributes:
        system: where it was seen.
        ratio: of the error to what it may be; significant from 1 on.
        group: which group is worst.
        relative: the error relative to the golden values of that group, or to their size.
    """

    system: System
    ratio: float
    group: int
    relative: float


@dataclass
class Sums:
    """Sums over the groups of one system.

    Attributes:
        error: of the error times the direction.
        norm: of the squared direction.
        variance: of what correct implementations give for ``error``.
        floor: what may be there with one sign.
        golden: of the golden values times the direction.
        known: from how many correct errors of single entries the variance was estimated.
        noisier: how many times the noise of correct implementations the Function has, 1 to ``NOISE``.
    """

    error: Tensor
    norm: Tensor
    variance: Tensor
    floor: Tensor
    golden: Tensor
    known: int
    noisier: float

    def add(self, other: Sums) -> Sums:
        """Return the sums over the draws of both."""
        names = ("error", "norm", "variance", "floor", "golden", "known")
        added = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Sums(**added, noisier=max(self.noisier, other.noisier))

    @property
    def bound(self) -> Tensor:
        """The largest error that rounding explains."""
        return self.floor + self.noisier * spreads(self.error.numel(), self.known) * self.variance.sqrt()

    def excess(self, system: System) -> Excess:
        """Return the worst group."""
        ratio = _quotient(self.error.abs(), self.bound)
        group = int(ratio.argmax())
        size = float(self.norm.reshape(-1)[group] if system.direction == "golden" else self.golden.reshape(-1)[group])
        relative = float(self.error.reshape(-1)[group]) / size if size else math.inf
        return Excess(system, float(ratio.reshape(-1)[group]), group, relative)


def spreads(groups: int, known: int) -> float:
    """Return how many spreads the largest of so many sums may be off by: E max |N(0, 1)| is about sqrt(2 log n).

    A spread that is estimated from few numbers may be too small itself: Student's t in place of the normal, by the
    expansion of Cornish and Fisher.

    Args:
        groups: how many sums there are.
        known: from how many numbers the spread was estimated.
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
        self.size = rms(self.golden)
        self.noise = max(rms(self.error), 0.3 * unit * self.size)
        self.correct = [self.error, *(self._limited(s.reshape(self.golden.shape)) for s in samples)]
        self.known = len(self.correct) * self.golden.numel()
        self.level = max(map(rms, self.correct))
        ones = torch.ones((), dtype=torch.float64, device=golden.device).expand(self.golden.shape)
        self.directions = {"golden": self.golden, "ones": ones, **(directions or {})}
        self._known: dict[System, tuple[Tensor, Tensor, Tensor, Tensor]] = {}
        self._entries: tuple[Tensor, Tensor] | None = None
        self._some: tuple[Tensor, float] | None = None

    def _limited(self, sample: Tensor) -> Tensor:
        noise = rms(sample)
        return sample * min(1.0, ROUGHER * self.noise / noise) if noise > 0 else sample

    def _entry_bounds(self) -> tuple[Tensor, Tensor]:
        """Return what each entry may be off by with one sign, and the spread of its noise."""
        if self._entries is None:
            squares = sum((r.square() for r in self.correct), torch.zeros_like(self.golden))
            dim = -1 if self.golden.shape[-1] >= 8 else tuple(range(self.golden.dim()))
            pooled = squares.mean(dim, keepdim=True) / len(self.correct)
            pooled = torch.where(pooled > 0, pooled, (UNKNOWN * self.unit * self.size) ** 2)
            variance = (squares + PRIOR * pooled) / (len(self.correct) + PRIOR)
            self._entries = ENTRY * self.unit * self.golden.abs() + self.tiny, variance.sqrt()
        return self._entries

    def allowed(self, error: Tensor) -> Tensor:
        """Return the largest error that each entry may have, of a Function as noisy as the middle of its errors is."""
        floor, spread = self._entry_bounds()
        return floor + self._noisier(error) * spreads(self.golden.numel(), self.known) * spread

    def _noisier(self, error: Tensor, direction: str = "") -> float:
        """Return how many times the noise of correct implementations an error has, by the median of both.

        What may be ``NOISE`` times as noisy has its largest errors so many times further out: without this one entry
        in hundreds would be beyond. An error of one place does not move the median, and one along the direction is
        taken away before.
        """
        spread, middle = self._middle()
        some = _some(error)
        if direction:
            v = _some(self.directions[direction])
            some = some - v * _quotient((some * v).sum(), (v * v).sum())
        ratio = float(_quotient(some.abs(), spread).median()) / middle if middle > 0 else 1.0
        return min(max(ratio, 1.0), NOISE)

    def _middle(self) -> tuple[Tensor, float]:
        """Return the spread of some entries, and the median of correct errors in units of it."""
        if self._some is None:
            spread = _some(self._entry_bounds()[1])
            correct = torch.stack([_some(one) for one in self.correct])
            self._some = spread, float(_quotient(correct.abs(), spread).median())
        return self._some

    def systems(self) -> Iterator[System]:
        """Yield the families of groups."""
        dims = self.golden.dim()
        for direction in self.directions:
            yield System(direction, (), "whole")
            for k in range(dims):
                if self.golden.shape[k] > 1:
                    yield System(direction, (k,), "blocks")
            for k in range(dims) if dims > 2 else ():
                if self.golden.shape[k] > 1:
                    yield System(direction, tuple(d for d in range(dims) if d != k), "lines")

    def sums(self, error: Tensor) -> dict[System, Sums]:
        """Return the sums of an error over all groups."""
        error = error.reshape(self.golden.shape)
        found = {}
        for direction, v in self.directions.items():
            product = error if direction == "ones" else error * v
            self._measure(direction)
            noisier = self._noisier(error, direction)
            for system in self.systems():
                if system.direction == direction:
                    found[system] = Sums(_summed(product, system), *self._known[system], self.known, noisier)
        return found

    def _measure(self, direction: str) -> None:
        """Compute norm, variance, floor and golden sums of the systems of a direction, once."""
        if System(direction, (), "whole") in self._known:
            return
        v = self.directions[direction]
        square = v if direction == "ones" else v * v
        correct = self.correct if direction == "ones" else [r * v for r in self.correct]
        along = self.golden if direction == "ones" else square if direction == "golden" else self.golden * v
        count = len(correct)
        for system in self.systems():
            if system.direction != direction:
                continue
            norm = _summed(square, system)
            squares = torch.stack([_summed(one, system).square() for one in correct]).mean(0)
            pooled = _quotient(squares, norm).mean() * norm
            variance = (count * squares + PRIOR * pooled) / (count + PRIOR)
            golden = norm if direction == "golden" else _summed(along, system)
            coherent = COHERENT if system.level == "whole" else COHERENT_LINE
            # a constant per row that was rounded leaves as much in a sum of golden values that is zero by chance
            typical = (_quotient(golden.square(), norm).mean() * norm).sqrt()
            size = golden if direction == "golden" else torch.maximum(golden.abs(), typical)
            self._known[system] = norm, variance, coherent * self.unit * size + self.tiny * norm.sqrt(), golden

    def excesses(self, error: Tensor, ratio: Tensor, sums: Mapping[System, Sums]) -> Iterator[Excess]:
        """Yield what a single draw shows: entries, their noise, groups, and the size of their sums.

        Args:
            error: of the shape of the golden values.
            ratio: of its size to what is allowed.
            sums: of it.
        """
        worst = int(ratio.argmax())
        value, wrong = float(self.golden.reshape(-1)[worst]), float(error.reshape(-1)[worst])
        relative = wrong / value if value else math.inf
        yield Excess(System("ones", (), "entries"), float(ratio.reshape(-1)[worst]), worst, relative)
        yield self._energy(System("ones", (), "noise"), rms(error), self.level, self.unit * self.size, error.numel())
        for system, one in sums.items():
            yield one.excess(system)
            if system.level != "whole" and system.direction != "golden":
                yield self._line_energy(system, one)

    def _line_energy(self, system: System, one: Sums) -> Excess:
        got, correct, floor = (
            math.sqrt(float(_quotient(x, one.norm).mean()))
            for x in (one.error.square(), one.variance, one.floor.square())
        )
        energy = System(system.direction, system.kept, "energy")
        return self._energy(energy, got, correct, floor, one.error.numel())

    def _energy(self, system: System, got: float, correct: float, floor: float, count: int) -> Excess:
        bound = NOISE * correct * (1 + 3 / math.sqrt(count)) + floor + self.tiny
        return Excess(system, got / bound if bound else 0.0, 0, got / self.size if self.size else math.inf)


@dataclass
class Deviation:
    """The error of one quantity over several draws.

    Attributes:
        excesses: the largest of each system, by system.
        wrong: entries that are beyond what rounding explains at some draw; None where there are none.
        total: the sums over all draws.
        squares: sum of the squared error over all draws.
        along: by direction, how much of it lies along that direction in each line of the last dimension.
    """

    excesses: dict[System, Excess] = field(default_factory=dict)
    wrong: Tensor | None = None
    total: dict[System, Sums] = field(default_factory=dict)
    squares: float = 0.0
    along: dict[str, float] = field(default_factory=dict)

    def add(self, yardstick: Yardstick, error: Tensor) -> None:
        """Take in the error at one draw."""
        error = error.reshape(yardstick.golden.shape)
        sums = yardstick.sums(error)
        ratio = error.abs() / yardstick.allowed(error)
        for excess in yardstick.excesses(error, ratio, sums):
            self._note(excess)
        beyond = ratio > 1
        self.wrong = beyond if self.wrong is None else self.wrong | beyond
        self.squares += float(error.square().sum())
        lines = tuple(range(yardstick.golden.dim() - 1))
        for system, one in sums.items():
            if system.kept == lines:
                count = yardstick.golden.shape[0] if system.level == "blocks" else one.error.numel()
                explained = float(_quotient(one.error[:count].square(), one.norm[:count]).sum())
                self.along[system.direction] = self.along.get(system.direction, 0.0) + explained
            self.total[system] = self.total[system].add(one) if system in self.total else one

    def _note(self, excess: Excess) -> None:
        known = self.excesses.get(excess.system)
        if known is None or excess.ratio > known.ratio:
            self.excesses[excess.system] = excess

    def close(self) -> None:
        """Compare the sums over all draws."""
        for system, one in self.total.items():
            self._note(one.excess(System(system.direction, system.kept, system.level, draws=True)))

    def share(self, direction: str) -> float:
        """Return how much of the squared error lies along a direction in each line of the last dimension."""
        return self.along.get(direction, 0.0) / self.squares if self.squares else 0.0

    @property
    def worst(self) -> Excess | None:
        """The most significant excess."""
        return max(self.excesses.values(), key=lambda excess: excess.ratio, default=None)


def rms(tensor: Tensor) -> float:
    """Return the root of the mean square."""
    return math.sqrt(float(tensor.square().mean())) if tensor.numel() else 0.0


def _some(tensor: Tensor) -> Tensor:
    """Return up to some thousand entries, from all over a tensor."""
    flat = tensor.reshape(-1)
    return flat[:: len(flat) // SOME | 1]


def blocks(size: int) -> list[tuple[int, int]]:
    """Return the runs along a dimension that are summed up: single indices, then aligned ones of powers of two.

    Example:
        >>> from nbautograd.core.kernel.yardstick import blocks
        >>> blocks(3)
        [(0, 1), (1, 2), (2, 3), (0, 2), (2, 3)]
    """
    runs = [(k, k + 1) for k in range(size)]
    width = 2
    while width < size:
        runs += [(start, min(start + width, size)) for start in range(0, size, width)]
        width *= 2
    return runs


def _summed(product: Tensor, system: System) -> Tensor:
    """Sum over the dimensions that are not kept; along a single one that is, over runs as well."""
    others = tuple(d for d in range(product.dim()) if d not in system.kept)
    kept = product.sum(others) if others else product
    return _runs(kept) if system.level == "blocks" else kept.reshape(-1) if system.kept else kept.reshape(1)


def _runs(vector: Tensor) -> Tensor:
    size, runs, width, last = len(vector), [vector], 2, vector
    while width < size:
        if len(last) % 2:
            last = torch.cat((last, last.new_zeros(1)))
        last = last.reshape(-1, 2).sum(1)
        runs.append(last)
        width *= 2
    return torch.cat(runs)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    return torch.where(b > 0, a / torch.where(b > 0, b, torch.ones_like(b)), torch.where(a > 0, math.inf, 0.0))
