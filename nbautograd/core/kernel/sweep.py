"""The sweep: the same comparison at other sizes, memory layouts and dtypes, and the smallest shape that fails."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.other_points import (
    Slot,
    alike,
    as_distinct,
    refilled,
    resized,
    with_tied,
)
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Problem
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.kernel.check import Outcome, check
from nbautograd.core.kernel.golden import Draw, run
from nbautograd.core.kernel.raised import RaisedError, one_line, users_trace
from nbautograd.core.kernel.trial import Track
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.numerics.draws import child, generator
from nbautograd.core.stumbles import RAISED, is_ours
from nbautograd.errors import CallError

Shapes = tuple[tuple[int, ...], ...]

TILES = (16, 32, 64, 128)  # at whose multiples kernels cut, and in whose last pieces they err
LARGEST_GROWN = 65  # sizes up to which a dimension grows beyond the given one, besides by one
SIZED = 40  # cases of sizes
REPEATS = 3  # runs whose results should be the same bit for bit
# about powers of two, where tiles end
SMALLER = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
SHRINKS = 30  # comparisons that the search for the smallest shape may take
LARGE = 2.0**6  # times the given inputs, where float16 overflows first


@dataclass(frozen=True)
class Case:
    """Inputs to compare at.

    Attributes:
        inputs: the arguments.
        change: what is unusual about them, else empty.
        name: what the caller calls it.
        layouts: how inputs and grad_outputs lie in memory, where that is what is unusual.
        arrange: lays out the grad_outputs of a draw.
        mode: what both run in.
        fatal: False where a fault is a risk rather than a bug of the Function.
        dtype: what both compute in, where inputs and outputs do not say.
        required: True for shapes that the caller named, at which backward may not raise either.
        asked: True for what the caller named in any way.
        fresh: makes other inputs of these shapes, of a seed; None moves these.
        group: the dimensions whose size is another one.
        odd: True for an odd size in place of an even one; None for size 1.
        otherwise: the same with a number tied to that size.
    """

    inputs: tuple[Any, ...]
    change: str = ""
    name: str = ""
    layouts: tuple[str, ...] = ()
    arrange: Callable[[Tensor], Tensor] | None = None
    mode: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    fatal: bool = True
    dtype: torch.dtype | None = None
    required: bool = False
    asked: bool = False
    fresh: Callable[[int], tuple[Any, ...]] | None = None
    group: tuple[Slot, ...] = ()
    odd: bool | None = False
    otherwise: Case | None = None


@dataclass(frozen=True)
class Result:
    """The result of one case.

    Attributes:
        case: which one.
        outcome: of the comparison; None where there was none.
        ratio: the largest error in units of what rounding explains.
        quantity: where that was.
        wrong: True where something is, confirmed at fresh draws.
        findings: what.
        excused: why it cannot be told there, where something is wrong that is no mistake for certain.
        refused: what forward raised, where the reference does not; or backward, at a case that nobody asked for.
        trace: the user's part of the traceback of what was raised.
    """

    case: Case
    outcome: Outcome | None = None
    ratio: float = 0.0
    quantity: str = ""
    wrong: bool = False
    findings: tuple[Finding, ...] = field(default=())
    excused: Phrase | str = ""
    refused: str = ""
    trace: str = ""


def shapes_of(inputs: Sequence[Any]) -> Shapes:
    """Return the shapes of the tensors among these."""
    return tuple(tuple(x.shape) for x in inputs if isinstance(x, Tensor))


def sizes(size: int) -> list[int]:
    """Return the other sizes that a dimension is tried at: 1, its neighbours, and around powers of two and tiles.

    Beside an even one also the next: one of the two is no multiple of 4, as the last piece of a tile is none.

    Example:
        >>> from nbautograd.core.kernel.sweep import sizes
        >>> sizes(20)
        [1, 15, 16, 17, 19, 21, 22, 31, 32, 33, 63, 64, 65]
    """
    power = 2 ** int(math.log2(size)) if size else 1
    tried = {1, size - 1, size + 1, size + 2 - size % 2, *(p + d for p in (power, *TILES) for d in (-1, 0, 1))}
    return sorted(n for n in tried if 0 < n <= max(size + 2, LARGEST_GROWN) and n != size)


def size_cases(reference: Problem, seed: int) -> Iterator[Case]:
    """Yield inputs with one size changed at a time, in all dimensions that have it; 1 and n +- 1 first.

    Keys and values of another length than each other may be taken by a reference, and are meant by nobody.
    """
    found = list(sizable(reference))
    pieces = partitions(reference.inputs)
    tries: list[tuple[int, tuple[Slot, ...], int]] = []
    for group in found:
        position, dim = group[0]
        size = reference.inputs[position].shape[dim]
        near = {1: 0, size + 1: 1, size - 1: 2, size + 2: 2}
        # a longest length that is an argument as well holds for no longer pieces
        most = size if size in pieces.values() else math.inf
        tries += [(near.get(n, 3), group, n) for n in sizes(size) if n <= most]
    for _, group, n in sorted(tries, key=lambda one: one[0])[:SIZED]:
        position, dim = group[0]
        odd = n % 2 > reference.inputs[position].shape[dim] % 2
        case = Case(reference.inputs, group=group, odd=None if n == 1 else odd)
        yield from filter(None, [_of_size(reference, case, group, n, seed)])


def _of_size(reference: Problem, case: Case, group: Sequence[Slot], size: int, seed: int) -> Case | None:
    """Return a case with another size in a group of dimensions; None where the reference does not take it.

    Where an argument may be tied to the size, the case has another with it moved.
    """
    found = None
    for moved in dict.fromkeys((with_tied(case.inputs, group), tuple(group))):
        fresh = functools.partial(with_size, case.inputs, moved, size)
        inputs = fresh(seed)
        if as_distinct(case.inputs, inputs) and _gives(reference, inputs):
            found = replace(case, inputs=inputs, fresh=fresh, otherwise=found)
    return found


def _gives(reference: Problem, inputs: tuple[Any, ...]) -> bool:
    """Return True where a reference takes inputs and gives something: of one query head beside two of keys, nothing."""
    at, given = Point(reference, inputs), points(reference).first("given")
    usual = (given.outputs if given is not None else None) or ()
    return at.works and all(y.numel() or not z.numel() for y, z in zip(at.outputs or (), usual, strict=False))


def settled_by_size(results: Sequence[Result]) -> list[Result]:
    """Return the results, told apart by what other sizes of the same dimension say.

    A rotation by halves or by pairs is none at an odd size, though the reference may run there: what is wrong at each
    of them and nowhere else is a risk. A last element that is left out has a place of its own, and a wrong length a
    factor: they stay faults. What raises at all sizes but 1 does not take another: at 1 torch sums what it returned.
    """

    def settled(one: Result) -> Result:
        rows = [other for other in results if other.case.group == one.case.group and other.case.odd is not None]
        if rows and all(other.refused for other in rows):
            return Result(one.case, excused=Phrase("compare.other_sizes_raise"))
        codes = {finding.code for other in rows for finding in other.findings}
        told_apart = {other.case.odd for other in rows} == {True, False}
        apart = told_apart and all(other.wrong is other.case.odd for other in rows)
        unmeant = apart and codes <= {"compare_values", "compare_entries"}
        return replace(one, case=replace(one.case, change="odd", fatal=False)) if unmeant else one

    return [settled(one) if one.wrong and one.case.group else one for one in results]


def sizable(reference: Problem) -> Iterator[tuple[Slot, ...]]:
    """Yield the dimensions of the inputs, those of the same size together, but for as many as there are pieces."""
    fixed = partitions(reference.inputs)
    for group in alike(reference):
        if not any(position in fixed for position, _ in group):
            yield group


def partitions(inputs: Sequence[Any]) -> dict[int, int]:
    """Return whole numbers that cut a dimension of another tensor into pieces, by position, and the size of that.

    They are where pieces start or end, as ``cu_seqlens`` of ragged sequences: in order, the last of them a size, which
    no index reaches; or they are lengths that add up to a size. Of another number they would cover something else.
    """
    floating = [x for x in inputs if isinstance(x, Tensor) and x.is_floating_point()]
    known = {n for x in floating for n in x.shape if n > 1}
    found = {}
    for k, item in enumerate(inputs):
        whole = isinstance(item, Tensor) and item.dtype in (torch.int32, torch.int64)
        if not whole or item.dim() != 1 or len(item) < 2 or int(item.min()) < 0:
            continue
        ordered, last, total = bool((item.diff() >= 0).all()), int(item[-1]), int(item.sum())
        if ordered and last in known and not bool((item.diff() == 1).all()):
            found[k] = last
        elif total > 1 and any(
            total in x.shape and len(item) not in x.shape for x in floating
        ):  # else one for each row of it
            found[k] = total
    return found


def with_size(inputs: Sequence[Any], group: Sequence[Slot], size: int, seed: int) -> tuple[Any, ...]:
    """Return inputs whose dimensions of a group have this size, filled with values like the given ones.

    What cuts such a dimension into pieces cuts the new one into as many, each as much smaller.
    """
    before = inputs[group[0][0]].shape[group[0][1]]
    made = resized(inputs, group, size - before, seed)
    cut = [k for k, whole in partitions(inputs).items() if whole == before]
    return tuple(_cut(inputs[k], before, size) if k in cut else item for k, item in enumerate(made))


def _cut(pieces: Tensor, before: int, size: int) -> Tensor:
    lengths = int(pieces[-1]) != before
    ends = pieces.cumsum(0) if lengths else pieces
    ends = (ends.double() * size / before).round().to(pieces.dtype)
    return ends.diff(prepend=ends.new_zeros(1)) if lengths else ends


def cases_of_shapes(reference: Problem, shapes: Sequence[Any], seed: int) -> Iterator[Case]:
    """Yield inputs of the given shapes.

    Args:
        reference: whose inputs they are like.
        shapes: each one shape per tensor among the inputs, or the shape of the first, which others of the same
            sizes follow.

    Raises:
        CallError: for shapes that do not fit the inputs, or that the reference does not take.
    """
    tensors = [k for k, x in enumerate(reference.inputs) if isinstance(x, Tensor)]
    for one in shapes:
        wanted = _per_tensor(reference, tensors, one)
        fresh = functools.partial(with_shapes, reference.inputs, dict(zip(tensors, wanted, strict=True)))
        inputs = fresh(seed)
        if not Point(reference, inputs).works:  # before hours of comparing the others
            raise CallError("compare.shape_refused", shapes=", ".join(map(str, wanted)), reference=reference.name)
        yield Case(inputs, required=True, fresh=fresh)


def with_shapes(given: Sequence[Any], shapes: Mapping[int, tuple[int, ...]], seed: int) -> tuple[Any, ...]:
    """Return inputs of these shapes by position, filled with values like the given ones where they have another."""
    numbers = generator(seed, "shapes")
    return tuple(
        refilled(x, shapes[k], numbers) if k in shapes and tuple(x.shape) != shapes[k] else x
        for k, x in enumerate(given)
    )


def _per_tensor(reference: Problem, tensors: Sequence[int], one: Any) -> list[tuple[int, ...]]:
    given: list[Any] = [one] if isinstance(one, int) else list(one)
    if given and not isinstance(given[0], int) and len(given) == len(tensors):
        return [tuple(shape) for shape in given]
    first = tuple(reference.inputs[tensors[0]].shape)
    if not all(isinstance(n, int) for n in given) or len(given) != len(first):
        raise CallError("compare.shape_unfit", given=str(one), count=len(tensors), dims=len(first))
    sizes_now = dict(zip(first, given, strict=True))
    rest = ([sizes_now.get(n, n) for n in reference.inputs[k].shape] for k in tensors[1:])
    return [tuple(given), *map(tuple, rest)]


def dtype_cases(reference: Problem, dtypes: Sequence[torch.dtype]) -> Iterator[Case]:
    """Yield the inputs in other dtypes."""
    for dtype in dtypes:
        yield Case(reference.changed_inputs(functools.partial(Tensor.to, dtype=dtype)))


def risk_cases(reference: Problem, dtype: torch.dtype) -> Iterator[Case]:
    """Yield the inputs of mixed dtypes, under autocast, and large: where a fault is a risk alone."""
    if dtype not in (torch.bfloat16, torch.float16):
        return
    differentiable = reference.differentiable
    if len(differentiable) > 1:
        mixed = reference.changed_inputs(Tensor.float, differentiable[1:])
        if Point(reference, mixed).works:
            yield Case(mixed, "mixed", fatal=False)
    device = next(x.device.type for x in reference.inputs if isinstance(x, Tensor))
    single = reference.changed_inputs(Tensor.float)
    yield Case(single, "autocast", mode=lambda: torch.autocast(device, dtype), fatal=False, dtype=dtype)
    if dtype is torch.float16:
        yield Case(reference.changed_inputs(lambda x: x * LARGE), "large", fatal=False)


def compared(
    candidate: Problem, reference: Problem, case: Case, seed: int, draws: int = 1, *, power: bool = False
) -> Result:
    """Compare at a case; what is wrong is confirmed at fresh draws, and with ``power`` zeros have to be seen."""
    result = _compared(candidate, reference, case, seed, draws, power=power)
    # a number that told the size beside another: backward raises, or has the shape that the number says, which torch
    # sums without a word at size 1; but of a block or a window values that are wrong are wrong
    codes = {finding.code for finding in result.findings}
    unfit = codes and (case.odd is None or codes <= {"compare_raises", "compare_shape"})
    if case.otherwise is None or not unfit:
        return result
    return compared(candidate, reference, case.otherwise, seed, draws, power=power)


def _compared(candidate: Problem, reference: Problem, case: Case, seed: int, draws: int, *, power: bool) -> Result:
    with case.mode():
        try:
            options: dict[str, Any] = {"arrange": case.arrange, "dtype": case.dtype, "draws": draws, "again": 2}
            options["fresh"] = case.fresh
            options["power"] = power
            options["terms"] = False  # that the formula lacks a term shows at the given inputs
            outcome = check(candidate, reference, case.inputs, seed=seed, samples=1, **options)
        except RaisedError as raised:
            error, trace, finding = raised.error, users_trace(raised.error), raising(raised.error)
            if raised.in_forward or (case.change == "stacked" and not case.asked):  # more dimensions are no promise
                return Result(case, refused=one_line(error), trace=trace)
            # who is refused loudly gets no wrong gradient; the layout of grad_output is not the caller's choice
            if not case.required and not any(one.startswith("grad_") for one in case.layouts):
                return Result(case, findings=(finding,), refused=one_line(error), trace=trace)
            return Result(case, ratio=math.inf, wrong=True, findings=(finding,), trace=trace)
        except RAISED as error:
            if is_ours(error):
                raise
            return refused_by_reference(case, error)
    return judged(candidate, reference, case, outcome, seed, draws, power=power)


def judged(
    candidate: Problem,
    reference: Problem,
    case: Case,
    outcome: Outcome,
    seed: int,
    draws: int = 1,
    *,
    power: bool = False,
) -> Result:
    """Return what the outcome of a comparison says at a case; a fault of a layout is looked for without it as well."""
    tracks = outcome.trial.tracks
    worst = [outcome.ratio(k) for k in range(len(tracks))]
    most = max(range(len(worst)), key=worst.__getitem__, default=-1)
    name = tracks[most].quantity.name if tracks else ""
    # one of so many cases may exceed what rounding explains by chance: then it is no further off than the reference is
    findings = tuple(f for k, f in zip(outcome.wrong, outcome.findings, strict=True) if _further_off(tracks[k]))
    certain, excused = _certain(findings, tracks, case)
    if len(certain) == len(findings):
        excused = Phrase("compare.beyond") if max(worst, default=0.0) > 1.0 else ""
    findings = certain
    blind = [t.quantity.name for t in tracks if t.quantity.kind == "gradient" and "zero" in t.unseen()]
    if blind and not findings:
        excused = excused or Phrase("compare.zero_passes", names=", ".join(blind))
    elif endless := [t.quantity.name for t in tracks if t.unknown]:
        excused = excused or Phrase("compare.golden_not_finite", names=", ".join(endless))
    elif lost := [t for t in tracks if t.overflown and t.overflown >= t.deviation.entries]:  # nothing was compared
        excused = excused or Phrase("compare.overflow", name=lost[0].quantity.name, wrong=lost[0].overflown)
    elif power and not findings and not any(t.mutants for t in tracks if t.quantity.kind == "gradient"):
        excused = excused or Phrase("compare.no_gradient_to_see")
    if findings and case.layouts and compared(candidate, reference, laid_in_order(case), seed, draws).wrong:
        findings, excused = (), Phrase("compare.not_the_layout")
    if case.change == "stacked" and not case.asked and any(tracks[k].quantity.kind == "output" for k in outcome.wrong):
        case = replace(case, fatal=False)  # another function there, which nobody asked for
    return Result(case, outcome, max(worst, default=0.0), name, bool(findings), findings, "" if findings else excused)


def refused_by_reference(case: Case, error: BaseException) -> Result:
    """Return that nothing can be told where the reference raises."""
    reason = Phrase("compare.reference_raises", error=one_line(error))
    return Result(case, excused=reason, trace=users_trace(error))


def raising(error: BaseException) -> Finding:
    """Return that backward raises where the reference does not."""
    return Finding("compare_raises", "bug", "compare.raises", {"error": one_line(error)})


def _certain(
    findings: tuple[Finding, ...], tracks: Sequence[Track], case: Case
) -> tuple[tuple[Finding, ...], Phrase | str]:
    undefined = [t.quantity.name for t in tracks if t.undefined and t.quantity.kind == "output"]
    if undefined:  # nobody knows the gradient of what is NaN
        certain = tuple(finding for finding in findings if finding.code != "compare_nonfinite")
        return certain, Phrase("compare.golden_not_finite", names=", ".join(undefined))
    if case.change == "large":  # so far out many a formula is all cancellation: an overflow counts, which 1 / inf hides
        certain = tuple(finding for finding in findings if finding.code in ("compare_nonfinite", "compare_zero"))
        return certain, Phrase("compare.far_out")
    return findings, ""


def _further_off(track: Track) -> bool:
    """Return True for a quantity that is broken, or further from the golden one than the reference in the dtype is."""
    return track.broken or track.deviation.squares > track.yardstick


def laid_in_order(case: Case) -> Case:
    """Return the same values, each tensor in a memory of its own without gaps."""
    inputs = tuple(
        x.detach().clone(memory_format=torch.contiguous_format).requires_grad_(x.requires_grad)
        if isinstance(x, Tensor)
        else x
        for x in case.inputs
    )
    arrange = case.arrange
    ordered = None if arrange is None else lambda v: arrange(v).contiguous().clone()
    return replace(case, inputs=inputs, arrange=ordered, change="", layouts=())


def repeated(candidate: Problem, draw: Draw) -> tuple[str, float] | None:
    """Run a Function several times at one draw.

    Returns:
        The name of the first quantity that is another each time, and by how much relative to its size; None where
        all are the same bit for bit.
    """
    first = run(candidate, draw)
    names = [*candidate.output_names[: first.outputs], *(candidate.input_names[i] for i in candidate.differentiable)]
    for _ in range(REPEATS - 1):
        other = run(candidate, draw)
        for name, a, b in zip(names, first.tensors, other.tensors, strict=False):
            if a is not None and b is not None and not agree_bitwise(a, b):
                gap = (a.to(torch.float64) - b.to(torch.float64)).abs().max()
                return name, float(gap / a.to(torch.float64).abs().max().clamp_min(1e-300))
    return None


def smallest(candidate: Problem, reference: Problem, case: Case, seed: int) -> Case:
    """Shrink a case that fails, one group of sizes after the other, to the smallest sizes that still fail."""
    best, left = case, SHRINKS
    around = Problem(reference.fn, case.inputs, seed)
    around.call()
    for group in sizable(around):
        position, dim = group[0]
        for size in [n for n in SMALLER if n < best.inputs[position].shape[dim]]:
            smaller = _of_size(reference, replace(best, otherwise=None), group, size, seed)
            if smaller is None:
                continue
            left -= 1
            if left < 0:
                return best
            if compared(candidate, reference, smaller, child(seed, "smaller")).wrong:
                best = smaller
                break
    return best


def refusal(result: Result) -> Phrase | str:
    """Return why a case could not be compared, or not be judged."""
    if result.findings:
        return result.findings[0].phrase("what") or ""
    return Phrase("compare.refused", error=result.refused) if result.refused else result.excused
