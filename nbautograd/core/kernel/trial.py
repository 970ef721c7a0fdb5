"""A trial: a Function and its reference at several draws, and what is known then of each output and gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.prepared_inputs import is_floating
from nbautograd.core.kernel.golden import Draw, Measured, Pair, Quantity, Values, readable
from nbautograd.core.kernel.yardstick import Deviation, Excess, Sums, System, Yardstick, rms
from nbautograd.core.numerics.arrays import Array

TILES = (128, 64, 32, 16)  # what kernels cut dimensions into
ALMOST = 0.99  # times the right gradient: a check that passes this cannot see a hundredth


def mutations(
    gradient: Tensor, like: Mapping[str, Tensor], grad_outputs: Sequence[Tensor], dims: int | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Yield a code and the gradient with that fault.

    Args:
        gradient: float64, of any shape.
        like: the other tensors of its shape by name: inputs, grad_outputs, outputs.
        grad_outputs: those of the draw.
        dims: how many of its last dimensions are the gradient's own, where several draws are stacked.

    Yields:
        ``"zero"``, ``"almost"`` (0.99 of it), ``"tail_row"``, ``"tail_column"``, ``"tail_tile"`` (set to zero), and
        ``"term"`` (a projection of grad_output on an input too much or too little, as where the backward of a norm
        forgets its mean); those that make sense for its shape.
    """
    yield "zero", torch.zeros_like(gradient)
    yield "almost", ALMOST * gradient
    dims = gradient.dim() if dims is None else dims
    if dims > 1 and gradient.shape[-2] > 1:
        yield "tail_row", _without(gradient, -2, gradient.shape[-2] - 1)
    if dims and gradient.shape[-1] > 1:
        yield "tail_column", _without(gradient, -1, gradient.shape[-1] - 1)
        size = gradient.shape[-1]
        tile = next((tile for tile in TILES if tile < size), 0)
        if tile:
            yield "tail_tile", _without(gradient, -1, (size - 1) // tile * tile)
    flowing = next((g for g in grad_outputs if g.shape == gradient.shape), None)
    beside = next((t for name, t in like.items() if t is not flowing and name != "golden"), None)
    if flowing is not None and beside is not None and dims and gradient.shape[-1] > 1:
        yield "term", gradient + _term(gradient, flowing.to(torch.float64), beside)


def _without(gradient: Tensor, dim: int, start: int) -> Tensor:
    cut = gradient.clone()
    cut.narrow(dim, start, gradient.shape[dim] - start).zero_()
    return cut


def _term(gradient: Tensor, flowing: Tensor, operand: Tensor) -> Tensor:
    """Project grad_output on an input along the last dimension, as large as it is beside the gradient in a norm."""
    size = operand.square().sum(-1, keepdim=True)
    share = (flowing * operand).sum(-1, keepdim=True) / torch.where(size > 0, size, torch.ones_like(size))
    scale = gradient.square().mean().sqrt() / flowing.square().mean().sqrt().clamp_min(1e-300)
    return scale * share * operand


# Samples of random rounding for each draw, beside the yardstick: with three draws nine correct errors of each sum.
SAMPLES = 2

# Entries of a quantity below which its draws are judged as one tensor: of fewer, no draw by itself tells noise from a
# factor.
JUDGED_TOGETHER = 32

# What an injected error that is rounded to the dtype may lose of its size (E 1/m over mantissas m is 0.69, its rounded
# steps are 0.75 of a spacing), so that what lies above a resolution is found in fact.
ROUNDED_AWAY = 1.15


# Relative to grad_output, and for an output to the inputs. What is below this is zero up to float64's rounding, as the
# gradient of a softmax over one key: what a kernel returns in its place is a difference of rounded terms.
VANISHING = 64 * torch.finfo(torch.float64).eps
# Likewise: what a few roundings in float32 leave where terms as large as grad_output cancel, or as inputs in an output,
# and the reference has them cancel exactly, as a softmax over one key that takes the largest off first.
CANCELLED = 4 * torch.finfo(torch.float32).eps


@dataclass(frozen=True)
class Region:
    """A slice of a quantity.

    Attributes:
        name: such as ``"grad x[:, -1]"``.
        mask: its entries.
    """

    name: str
    mask: Tensor


@dataclass
class Track:
    """Knowledge of one output or gradient after some draws.

    Attributes:
        quantity: which it is.
        shape: its shape.
        dtype: that of the Function's.
        unit: unit roundoff by which it is measured.
        deviation: of the Function.
        mutants: deviations of wrong gradients made of the Function's, by code.
        elsewhere: deviations of the error outside each region that is asked about.
        golden, yardstick: sums of squares of the golden values and of the yardstick's error, over all draws.
        allowed: median of what one entry may be off by, relative to the typical entry.
        entries: how many there are.
        nonfinite: entries that are no numbers where golden values and yardstick are, most of them in one draw.
        overflown: entries that are no numbers in the yardstick either.
        unknown: True where golden values are no numbers.
        undefined: True where some are NaN, as 0 / 0 is.
        unsampled: True where most numbers are none in the yardstick or with random rounding.
        missing: True where no gradient came and one should.
        other_shape: the shape of the Function's where it is another.
    """

    quantity: Quantity
    shape: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32
    unit: float = 0.0
    deviation: Deviation = field(default_factory=Deviation)
    mutants: dict[str, Deviation] = field(default_factory=dict)
    elsewhere: list[Deviation] = field(default_factory=list)
    golden: float = 0.0
    yardstick: float = 0.0
    allowed: float = math.inf
    entries: int = 0
    nonfinite: int = 0
    overflown: int = 0
    unknown: bool = False
    undefined: bool = False
    unsampled: bool = False
    missing: bool = False
    other_shape: tuple[int, ...] | None = None

    @property
    def error(self) -> float:
        """Root mean square error of the Function, relative to that of the golden values."""
        return _relative(self.deviation.squares, self.golden)

    @property
    def yardstick_error(self) -> float:
        """The same of the reference in the dtype itself."""
        return _relative(self.yardstick, self.golden)

    @property
    def ratio(self) -> float:
        """The error in units of the yardstick's."""
        return _relative(self.deviation.squares, self.yardstick)

    @property
    def whole(self) -> Sums | None:
        """The sums over all entries and draws, those along the golden values first."""
        return self.deviation.total.get("whole")

    @property
    def bias(self) -> float:
        """The systematic part of the error: the factor by which the golden values are off, less one."""
        return 0.0 if self.whole is None else _share(self.whole.error, self.whole)

    @property
    def spread(self) -> float:
        """The spread of that factor among correct implementations."""
        return 0.0 if self.whole is None else _share(np.sqrt(self.whole.variance), self.whole)

    @property
    def resolution(self) -> float:
        """The smallest relative error of the whole quantity that would have been seen; infinite where none would."""
        if self.whole is None or self.golden == 0.0:
            return math.inf
        bound = _share(self.whole.bound, self.whole)
        return ROUNDED_AWAY * (bound + abs(self.bias))

    @property
    def broken(self) -> bool:
        """True where the values need not be compared to be wrong."""
        return bool(self.nonfinite or self.missing or self.other_shape is not None)

    def exceeded(self, least: float = 1.0) -> dict[System, Excess]:
        """Return what goes beyond rounding, by system."""
        return {system: excess for system, excess in self.deviation.excesses.items() if excess.ratio >= least}

    def unseen(self) -> tuple[str, ...]:
        """Return the codes of the wrong gradients that the comparison would let pass."""
        return tuple(code for code, one in self.mutants.items() if one.worst is None or one.worst.ratio < 1.0)


class Trial:
    """Draws of one Function and its reference, taken in one after the other.

    Args:
        pair: the two.
        power: True tries wrong gradients as well.
        terms: True looks for errors along the other tensors as well, beside a factor and an offset.
        regions: by position of the track, those outside which the error is looked at by itself.

    Attributes:
        tracks: one for each floating output, then one for each gradient.
    """

    def __init__(
        self,
        pair: Pair,
        power: bool = False,
        regions: Mapping[int, Sequence[Region]] | None = None,
        terms: bool = True,
    ) -> None:
        self.pair, self.power, self.regions, self.terms = pair, power, regions or {}, terms
        self.tracks: list[Track] = []
        self.entering: dict[str, float] = {}  # size of what the quantities of a kind are made of, in the draw in hand
        self._few: dict[int, list[Taken]] = {}

    def run(self, draws: Iterable[Draw], samples: int = SAMPLES, done: Callable[[], None] | None = None) -> Trial:
        """Measure at draws and close the sums."""
        return self.of((self.pair.measure(draw, samples) for draw in draws), done)

    def of(self, measured: Iterable[Measured], done: Callable[[], None] | None = None) -> Trial:
        """Take in draws and close the sums."""
        for one in measured:
            self.add(one)
            if done is not None:
                done()
        return self.close()

    def close(self) -> Trial:
        """Judge what all draws together show."""
        for k, taken in self._few.items():
            deviation = self.tracks[k].deviation
            _judge(self.tracks[k], _stacked(taken), self, self.regions.get(k, ()))
            deviation.wrong = None if deviation.wrong is None else deviation.wrong.any(0)
        self._few.clear()
        for track in self.tracks:
            track.deviation.close()
            for one in (*track.mutants.values(), *track.elsewhere):
                one.close()
        return self

    def add(self, measured: Measured) -> None:
        """Take in one draw."""
        if not self.tracks:
            self.tracks = [Track(quantity) for quantity in self._quantities(measured.golden)]
        inputs = [x for x in measured.draw.inputs if is_floating(x) and readable(x)]
        self.entering = {"gradient": _largest(measured.draw.grad_outputs), "output": _largest(inputs)}
        golden, yardstick = measured.golden.tensors, measured.yardstick.tensors
        candidate = measured.candidate.tensors
        for k, track in enumerate(self.tracks):
            if track.other_shape is not None:
                continue
            samples = [sample.tensors[k] for sample in measured.samples]
            coarse = [t.dtype for t in (yardstick[k],) if t is not None]
            track.unit = max(float(torch.finfo(dtype).eps) / 2 for dtype in (*coarse, self.pair.rounding))
            got = candidate[k] if k < len(candidate) else None
            taken = _taken(track, golden[k], yardstick[k], samples, got, self._directions(measured, k), self)
            if taken is None:
                continue
            if track.entries < JUDGED_TOGETHER:
                self._few.setdefault(k, []).append(taken)
            else:
                _judge(track, taken, self, self.regions.get(k, ()))

    def _quantities(self, golden: Values) -> list[Quantity]:
        names, candidate = self.pair.reference.output_names, self.pair.candidate
        outputs = [Quantity("output", names[k] if k < len(names) else f"output {k}", k) for k in range(golden.outputs)]
        of_inputs = [Quantity("gradient", candidate.input_names[i], i) for i in candidate.differentiable]
        return [*outputs, *of_inputs]

    def _directions(self, measured: Measured, k: int) -> Mapping[str, Tensor]:
        """Return the other tensors of a quantity's shape, by name."""
        golden = measured.golden.tensors[k]
        if golden is None or golden.dim() == 0 or not self.terms:
            return {}
        names = self.pair.candidate.input_names
        named: list[tuple[str, Tensor]] = [
            (name, x) for name, x in zip(names, measured.draw.inputs, strict=False) if readable(x)
        ]
        named += [(f"grad_output {i}" if i else "grad_output", g) for i, g in enumerate(measured.draw.grad_outputs)]
        outputs = zip(self.tracks, measured.golden.tensors[: measured.golden.outputs], strict=False)
        named += [(track.quantity.name, y) for j, (track, y) in enumerate(outputs) if y is not None and j != k]
        return {
            name: t.detach().to(torch.float64)
            for name, t in named
            if t.is_floating_point() and t.shape == golden.shape and _finite(t.detach())
        }


@dataclass(frozen=True)
class Taken:
    """Values of one quantity at one draw, in float64; zero where they are not finite.

    Attributes:
        golden: values.
        candidate: the Function's, in its own dtype.
        yardstick, error: what the reference and the Function are off by.
        samples: what the reference is off by with random rounding.
        directions: the other tensors of its shape, by name.
        tiny: what a number near zero may be off by.
    """

    golden: Tensor
    candidate: Tensor
    yardstick: Tensor
    error: Tensor
    samples: list[Tensor]
    directions: Mapping[str, Tensor]
    tiny: float


def _taken(
    track: Track,
    golden: Tensor | None,
    yardstick: Tensor | None,
    samples: Sequence[Tensor | None],
    candidate: Tensor | None,
    directions: Mapping[str, Tensor],
    trial: Trial,
) -> Taken | None:
    """Return the values of one quantity at one draw; None where there is nothing to compare."""
    if golden is None:
        if candidate is None:
            return None
        golden = torch.zeros_like(candidate, dtype=torch.float64)
    golden = golden.to(torch.float64)
    track.shape, track.entries = tuple(golden.shape), golden.numel()
    if candidate is None:
        track.missing |= bool(golden.abs().nan_to_num().max() > 0) if golden.numel() else False
        candidate = torch.zeros_like(golden, dtype=trial.pair.dtype)
    if candidate.shape != golden.shape:
        track.other_shape = tuple(candidate.shape)
        return None
    track.dtype = candidate.dtype
    if golden.numel() == 0:
        return None
    values = [torch.zeros_like(golden) if t is None else t for t in (yardstick, candidate, *samples)]
    errors = [t.to(torch.float64, copy=True).sub_(golden) for t in values]
    if not all(map(_finite, errors)):
        golden, candidate, errors = _masked(track, golden, *(t.to(torch.float64) for t in values))
    smallest = torch.finfo(trial.pair.rounding)
    tiny = float(smallest.smallest_normal) * float(smallest.eps)
    return Taken(golden, candidate, errors[0], errors[1], errors[2:], directions, tiny)


def _finite(tensor: Tensor) -> bool:
    return math.isfinite(float(tensor.sum(dtype=torch.float64)))


def _masked(
    track: Track, golden: Tensor, yardstick: Tensor, got: Tensor, *rounded: Tensor
) -> tuple[Tensor, Tensor, list[Tensor]]:
    known, expected = torch.isfinite(golden), torch.isfinite(yardstick)
    same = (got == golden) | (got.isnan() & golden.isnan())
    track.undefined |= bool(golden.isnan().any())
    track.unknown |= not bool((known | same).all())
    track.overflown += int((known & ~expected).sum())
    track.nonfinite = max(track.nonfinite, int((known & expected & ~torch.isfinite(got)).sum()))
    valid = known & expected & torch.isfinite(got)
    for sample in rounded:
        valid &= torch.isfinite(sample)
    track.unsampled |= 2 * int(valid.sum()) < int(known.sum())
    golden, yardstick, got, *others = (torch.where(valid, t, 0.0) for t in (golden, yardstick, got, *rounded))
    return golden, got, [t - golden for t in (yardstick, got, *others)]


def _stacked(draws: Sequence[Taken]) -> Taken:
    fields = ("golden", "candidate", "yardstick", "error")
    golden, got, yardstick, error = (torch.stack([getattr(one, name) for one in draws]) for name in fields)
    samples = [torch.stack(alike) for alike in zip(*(one.samples for one in draws), strict=True)]
    names = [name for name in draws[0].directions if all(name in one.directions for one in draws)]
    directions = {name: torch.stack([one.directions[name] for one in draws]) for name in names}
    return Taken(golden, got, yardstick, error, samples, directions, max(one.tiny for one in draws))


def _judge(track: Track, taken: Taken, trial: Trial, regions: Sequence[Region]) -> None:
    """Look for what rounding does not explain."""
    golden, error, directions = taken.golden, taken.error, taken.directions
    yard = Yardstick(golden, taken.yardstick, taken.samples, track.unit, taken.tiny, directions)
    entering = trial.entering[track.quantity.kind]
    if yard.size <= VANISHING * entering:
        left = VANISHING if trial.pair.dtype is torch.float64 else CANCELLED
        yard.tiny = max(taken.tiny, left * entering)
    track.deviation.add(yard, error)
    track.elsewhere = track.elsewhere or [Deviation() for _ in regions]
    for region, one in zip(regions, track.elsewhere, strict=True):
        one.add(yard, torch.where(region.mask.to(error.device), 0.0, error))
    track.golden += yard.size**2 * golden.numel()
    track.yardstick += yard.own**2 * golden.numel()
    if yard.size > 0 and trial.power:
        track.allowed = min(track.allowed, float(yard.allowed(error.reshape(yard.golden.shape)).median()) / yard.size)
    if trial.power and track.quantity.kind == "gradient" and yard.size > 0:
        flowing = [t for name, t in directions.items() if name.startswith("grad_output")]
        for code, wrong in mutations(taken.candidate.to(torch.float64), directions, flowing, len(track.shape)):
            mutant = track.mutants.setdefault(code, Deviation())
            mutant.add(yard, wrong.to(track.dtype).to(torch.float64) - golden)


def _largest(tensors: Sequence[Tensor]) -> float:
    return max((rms(t.detach().to(torch.float64)) for t in tensors), default=0.0)


def _relative(squares: float, golden: float) -> float:
    return math.sqrt(squares / golden) if golden > 0 else (math.inf if squares > 0 else 0.0)


def _share(value: Array, sums: Sums) -> float:
    norm = float(sums.norm.reshape(-1)[0])
    return float(value.reshape(-1)[0]) / norm if norm else 0.0
