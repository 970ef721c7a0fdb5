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
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

# Unit roundoffs that a coherent error of a whole quantity, of a line, and of one entry may have beyond its spread: a
# constant or a factor per row that was rounded once or twice.
COHERENT, COHERENT_LINE, ENTRY = 1.25, 2.0, 2.0

# How many times the noise of the yardstick another order, fusion or splitting of the same operations may have.
NOISE = 3.0

# How many times the noise of the yardstick that of all entries together may be, where rounding each of the reference's
# results explains no more: twenty sums in bfloat16, one after the other, leave 3 to 4 times, torch's attention twice.
OVERALL = 2.5

# Times the error of the yardstick beyond which samples of random rounding are scaled down: where a reference computes
# in float32 inside, rounding each of its results to less would let anything pass. What attention saves rounded, and
# takes a difference of, comes to 8 times at two keys.
ROUGHER = 10.0

# Unit roundoffs of a typical entry that are taken for the noise of entries where no correct implementation had any:
# terms that cancel exactly in the reference leave a last digit in another order.
UNKNOWN = 0.1

# Spreads that a sum may be off by, beside the largest of so many normal numbers, and the groups' common spread counted
# as so many samples.
SPREADS, PRIOR = 5.0, 4.0

MEDIAN_ENTRIES = 2048  # entries by whose median the noise of a Function is estimated


@dataclass(frozen=True)
class System:
    """A family of groups of entries, and the direction in which their error is summed up.

    Attributes:
        direction: ``"golden"``, ``"ones"``, or the name of a tensor.
        group_dims: dimensions by whose index the groups are distinguished; those left out are summed over.
        level: ``"entries"``, ``"noise"`` (the size of all entries' errors), ``"lines"`` or ``"blocks"`` (runs along
            one dimension), ``"whole"`` or ``"energy"`` (the size of all lines' sums).
        draws: True where the sums of all draws are added up.
    """

    direction: str
    group_dims: tuple[int, ...]
    level: str
    draws: bool = False


@dataclass(frozen=True)
class Excess:
    """An error beside what rounding explains.

    Attributes:
        system: where it was seen.
        ratio: of the error to what it may be; significant from 1 on.
        group: which group is worst.
    """

    system: System
    ratio: float
    group: int


@dataclass
class Sums:
    """Sums over the groups of one system.

    Attributes:
        error: of the error times the direction.
        norm: of the squared direction.
        variance: of what correct implementations give for ``error``.
        floor: what may be there with one sign.
        known: from how many correct errors of single entries the variance was estimated.
        noisier: how many times the noise of correct implementations the Function has, 1 to ``NOISE``.
    """

    error: Tensor
    norm: Tensor
    variance: Tensor
    floor: Tensor
    known: int
    noisier: float

    def add(self, other: Sums) -> Sums:
        """Return the sums over the draws of both."""
        names = ("error", "norm", "variance", "floor", "known")
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
        return Excess(system, float(ratio.reshape(-1)[group]), group)


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
        self.size, self.own = rms(self.golden), rms(self.error)
        self.noise = max(self.own, 0.3 * unit * self.size)
        self.correct = [self.error, *(self._limited(s.reshape(self.golden.shape)) for s in samples)]
        self.known = len(self.correct) * self.golden.numel()
        self.squares = self.error.square()  # of all correct errors together
        for sample in self.correct[1:]:
            self.squares.addcmul_(sample, sample)
        self.level = max(OVERALL * self.noise, *map(rms, self.correct[1:]), 0.0)
        self.directions: dict[str, Tensor | None] = {"golden": self.golden, "ones": None, **(directions or {})}
        self._known: dict[tuple[tuple[int, ...], str], tuple[Tensor, Tensor, Tensor]] = {}
        self._systems = list(_systems(tuple(self.golden.shape)))
        self._entries: tuple[Tensor, Tensor, float] | None = None
        self._some: tuple[Tensor, float, Tensor, Tensor] | None = None

    def _limited(self, sample: Tensor) -> Tensor:
        noise = rms(sample)
        return sample * min(1.0, ROUGHER * self.noise / noise) if noise > 0 else sample

    def _entry_bounds(self) -> tuple[Tensor, Tensor, float]:
        """Return what each entry may be off by with one sign, the spread of its noise, and the unit of that."""
        if self._entries is None:
            dim = -1 if self.golden.shape[-1] >= 8 else tuple(range(self.golden.dim()))
            count = len(self.correct)
            lines = self.squares.mean(dim, keepdim=True) / count
            # what the entries of a line are sums of may have been rounded once for all of them, so that a line, too, is
            # one sample: beside its neighbours, whose terms are as large where its own cancel
            least = max(float(lines.mean()), (UNKNOWN * self.unit * self.size) ** 2)
            lines = (count * lines + PRIOR * least) / (count + PRIOR)
            # roots in float32 take a fifth of the time; none is too small or too large for it, beside the mean square
            spread = torch.add(self.squares, lines, alpha=PRIOR).mul_(1 / (least or 1.0)).float().sqrt_()
            floor = self.golden.abs().mul_(ENTRY * self.unit).add_(self.tiny)
            self._entries = floor, spread, math.sqrt((least or 1.0) / (count + PRIOR))
        return self._entries

    def allowed(self, error: Tensor, noisier: float | None = None) -> Tensor:
        """Return the largest error that each entry may have, of a Function as noisy as the middle of its errors is."""
        floor, spread, unit = self._entry_bounds()
        z = (self.noisier(error)[0] if noisier is None else noisier) * spreads(self.golden.numel(), self.known)
        return spread.to(torch.float64).mul_(unit * z).add_(floor)

    def noisier(self, error: Tensor) -> list[float]:
        """Return how many times the noise of correct implementations an error has, by the median of both.

        What may be ``NOISE`` times as noisy has its largest errors so many times further out: without this one entry
        in hundreds would be beyond. An error of one place does not move the median, and one along a direction is
        taken away before: the first is of the error as it is, the others are along each direction.
        """
        spread, middle, along, norm = self._middle()
        if not middle > 0:
            return [1.0] * (1 + len(along))
        some = _some(error)
        left = torch.cat((some[None], some - along * _quotient((along * some).sum(1, keepdim=True), norm)))
        medians = _quotient(left.abs_(), spread).median(1)[0].tolist()
        return [min(max(one / middle, 1.0), NOISE) for one in medians]

    def _middle(self) -> tuple[Tensor, float, Tensor, Tensor]:
        """Return some entries' spread, the median of correct errors in its units, directions there, their squares."""
        if self._some is None:
            _, spread, unit = self._entry_bounds()
            spread = _some(spread).to(torch.float64) * unit
            correct = torch.stack([_some(one) for one in self.correct])
            along = torch.stack([torch.ones_like(spread) if v is None else _some(v) for v in self.directions.values()])
            middle = float(_quotient(correct.abs(), spread).median())
            self._some = spread, middle, along, along.square().sum(1, keepdim=True)
        return self._some

    def sums(self, error: Tensor, noisier: Sequence[float] | None = None) -> dict[System, Sums]:
        """Return the sums of an error over all groups."""
        noisier = self.noisier(error)[1:] if noisier is None else noisier
        error, first = error.reshape(self.golden.shape), not self._known
        rows = [row for v in self.directions.values() for row in self._rows(v, error, first)]
        found: dict[System, Sums] = {}
        for kept, level in self._systems:
            stack = torch.stack([row[kept] for row in rows])
            stack = _runs(stack) if level == "blocks" else stack
            each = stack.reshape(len(self.directions), -1, stack.shape[1])
            if first:
                self._known[kept, level] = self._measured(each[:, 1:-3], each[:, -3:], level)
            for k, direction in enumerate(self.directions):
                norm, variance, floor = (one[k] for one in self._known[kept, level])
                sums = Sums(each[k, 0], norm, variance, floor, self.known, noisier[k])
                found[System(direction, kept, level)] = sums
        return found

    def _rows(self, v: Tensor | None, error: Tensor, first: bool) -> Iterator[dict[tuple[int, ...], Tensor]]:
        """Yield the sums along a direction of an error; the first time those of correct ones, its norm, and squares."""
        for t in (error, *self.correct, self.golden) if first else (error,):
            norm = t if v is None else t * v  # at last golden values times themselves, along them
            sums = _reduced(norm, self._systems)
            yield sums
        if v is None and first:
            yield {kept: torch.full_like(t, self.golden.numel() / len(t)) for kept, t in sums.items()}
        elif v is not None and first:
            norm = norm if v is self.golden else v.square()
            yield sums if v is self.golden else _reduced(norm, self._systems)
        if first:
            yield _reduced(self.squares if v is None else self.squares * norm, self._systems)

    def _measured(self, correct: Tensor, others: Tensor, level: str) -> tuple[Tensor, Tensor, Tensor]:
        """Return norm, variance and floor of groups, each along all directions."""
        golden, norm, apart = others.unbind(1)
        squares, count = correct.square().mean(1), correct.shape[1]
        pooled = _quotient(squares, norm).mean(1, keepdim=True) * norm
        # what cancels in the reference, as the errors of a line from which its mean was taken last, need not elsewhere
        variance = torch.maximum((count * squares + PRIOR * pooled) / (count + PRIOR), apart / count)
        # a constant per row that was rounded leaves as much in a sum of golden values that is zero by chance
        typical = (_quotient(golden.square(), norm).mean(1, keepdim=True) * norm).sqrt()
        size = torch.maximum(golden.abs(), typical)
        size[0] = golden[0]  # along themselves they are never zero by chance
        coherent = COHERENT if level == "whole" else COHERENT_LINE
        return norm, variance, coherent * self.unit * size + self.tiny * norm.sqrt()

    def excesses(self, sums: Mapping[System, Sums]) -> Iterator[Excess]:
        """Yield what the sums of a single draw show: those of groups, and the size of all of a system."""
        for system, one in sums.items():
            yield one.excess(system)
            if system.level != "whole" and system.direction != "golden":
                yield self._line_energy(system, one)

    def _line_energy(self, system: System, one: Sums) -> Excess:
        got, correct, floor = (
            math.sqrt(float(_quotient(x, one.norm).mean()))
            for x in (one.error.square(), one.variance, one.floor.square())
        )
        energy = System(system.direction, system.group_dims, "energy")
        return self._energy(energy, got, correct, floor, one.error.numel())

    def _energy(self, system: System, got: float, correct: float, floor: float, count: int) -> Excess:
        bound = NOISE * correct * (1 + 3 / math.sqrt(count)) + floor + self.tiny
        return Excess(system, got / bound if bound else 0.0, 0)


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
        lines: in how many lines; of a vector, entries.
        tiny: what one near zero may be off by.
        draws: how many.
        along: by direction, how much of it lies along that direction in each line of the last dimension.
    """

    excesses: dict[System, Excess] = field(default_factory=dict)
    wrong: Tensor | None = None
    total: dict[System, Sums] = field(default_factory=dict)
    squares: float = 0.0
    correct: float = 0.0
    entries: int = 0
    lines: int = 0
    tiny: float = 0.0
    draws: int = 0
    along: dict[str, float] = field(default_factory=dict)

    def add(self, yardstick: Yardstick, error: Tensor) -> None:
        """Take in the error at one draw."""
        error = error.reshape(yardstick.golden.shape)
        noisier = yardstick.noisier(error)
        sums = yardstick.sums(error, noisier[1:])
        ratio, size = error.abs().div_(yardstick.allowed(error, noisier[0])), rms(error)
        most = float(ratio.max())
        for excess in (Excess(System("ones", (), "entries"), most, 0), *yardstick.excesses(sums)):
            self._note(excess)
        if most > 1:
            beyond = ratio > 1
            self.wrong = beyond if self.wrong is None else self.wrong | beyond
        self.squares += size**2 * error.numel()
        self.correct += yardstick.level**2 * error.numel()
        self.lines += error.numel() // (error.shape[-1] if error.dim() > 1 else 1)
        self.entries, self.tiny = self.entries + error.numel(), max(self.tiny, yardstick.tiny)
        self.draws += 1
        lines = tuple(range(yardstick.golden.dim() - 1))
        for system, one in sums.items():
            if system.group_dims == lines:
                count = yardstick.golden.shape[0] if system.level == "blocks" else one.error.numel()
                explained = float(_quotient(one.error[:count].square(), one.norm[:count]).sum())
                self.along[system.direction] = self.along.get(system.direction, 0.0) + explained
            self.total[system] = self.total[system].add(one) if system in self.total else one

    def _note(self, excess: Excess) -> None:
        known = self.excesses.get(excess.system)
        if known is None or excess.ratio > known.ratio:
            self.excesses[excess.system] = excess

    def close(self) -> None:
        """Compare the sums over all draws, and the size of all entries' errors.

        A reference that accumulates in float32 gives no leave to do so in less.
        """
        if self.entries:
            bound = math.sqrt(self.correct / self.entries) * (1 + 3 / math.sqrt(self.lines)) + self.tiny
            ratio = math.sqrt(self.squares / self.entries) / bound if bound else 0.0
            self._note(Excess(System("ones", (), "noise", draws=True), ratio, 0))
        for system, one in self.total.items():
            known = self.excesses[system] if self.draws == 1 else one.excess(system)  # of one draw they are its own
            self._note(replace(known, system=replace(system, draws=True)))

    @property
    def noisier(self) -> float:
        """The most times the noise of correct implementations that the Function was taken to have."""
        return max((one.noisier for one in self.total.values()), default=1.0)

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


def _some(tensor: Tensor) -> Tensor:
    """Return up to some thousand entries, from all over a tensor."""
    flat = tensor.reshape(-1)
    return flat[:: len(flat) // MEDIAN_ENTRIES | 1]


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


def _systems(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the dimensions kept and the level of the families of groups."""
    dims = range(len(shape))
    yield (), "whole"
    for k in dims:
        if shape[k] > 1:
            yield (k,), "blocks"
    for k in dims if len(shape) > 2 else ():
        if shape[k] > 1:
            yield tuple(d for d in dims if d != k), "lines"


def _reduced(tensor: Tensor, systems: Sequence[tuple[tuple[int, ...], str]]) -> dict[tuple[int, ...], Tensor]:
    """Return the sums of a tensor over the dimensions that are not kept, each from the smallest that holds them."""
    found = {tuple(range(tensor.dim())): tensor}
    for kept, _ in sorted(systems, key=lambda system: -len(system[0])):
        have = min((one for one in found if set(kept) <= set(one)), key=lambda one: found[one].numel())
        others = tuple(k for k, d in enumerate(have) if d not in kept)
        found[kept] = found[have].sum(others) if others else found[have]
    return {kept: found[kept].reshape(-1) for kept, _ in systems}


def _runs(vectors: Tensor) -> Tensor:
    """Return vectors with the sums of their runs behind them."""
    size, runs, width, last = vectors.shape[1], [vectors], 2, vectors
    while width < size:
        even, odd = last[:, ::2], last[:, 1::2]
        if even.shape[1] == odd.shape[1]:
            last = even + odd
        else:
            last = even.clone()
            last[:, :-1] += odd
        runs.append(last)
        width *= 2
    return torch.cat(runs, 1)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, where 0 / 0 is 0; b is not negative, and where it is 0 neither is a."""
    return (a / b).nan_to_num_(0.0, math.inf, -math.inf)
