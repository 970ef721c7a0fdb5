"""Hypotheses on what backward left out: a factor (the ratio N/A), a term (the rest N - A), additions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.evidence import Evidence, Named
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.checking.diagnosis.patterns import factor, number, sizes
from nbautograd.core.numerics.constants import LARGEST_NUMERATOR, OF_FORMS, RECOGNISED, SMALL, STEADY, UNEQUAL

# what a student may have left out, or put in too much, as a function of a tensor that is at hand
FORMS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("{x}", lambda x: x),
    ("{x}**2", lambda x: x * x),
    ("{x}.abs()", np.abs),
    ("{x}.sign()", np.sign),
    ("(1 - {x})", lambda x: 1 - x),
    ("(1 + {x})", lambda x: 1 + x),
    ("(1 - {x}**2)", lambda x: 1 - x * x),
    ("(1 + {x}**2)", lambda x: 1 + x * x),
    ("{x}**3", lambda x: x**3),
    ("{x}.sqrt()", lambda x: np.sqrt(np.where(x > 0, x, np.nan))),
    ("{x}.exp()", np.exp),
    ("{x}.sin()", np.sin),
    ("{x}.cos()", np.cos),
    ("{x}.tanh()", np.tanh),
    ("{x}.log()", lambda x: np.log(np.where(x > 0, x, np.nan))),
)


def missing_factor(e: Evidence) -> Cause | None:
    """Return the cause where N/A, or A/N, is a constant times something that is at hand."""
    alive = ~e.equal(e.N, np.zeros_like(e.N))
    if not bool((alive == ~e.equal(e.A, np.zeros_like(e.A))).all()) or alive.sum() < 3:
        return None
    with np.errstate(all="ignore"):
        ratio = np.where(alive, e.N / np.where(alive, e.A, 1), np.nan)
        for label, values in candidates(e):
            spread = np.broadcast_to(values, e.N.shape)
            for message, share in (("missing_factor", ratio), ("extra_factor", 1 / ratio)):
                c = _proportional(share, spread, alive, e)
                if c is not None and round_number(c, e):  # another constant may well depend on the values
                    received = message == "missing_factor" and values.shape[0] > 1 and not e.elementwise
                    message = "missing_factor_received" if received else message
                    return Cause("missing_factor", message, {"factor": _times(c, label)})
    return None


def round_number(c: float, e: Evidence) -> bool:
    """Return True if a person may have written this constant: a simple fraction, or something at hand."""
    simple = (c * q * f for q in range(1, 13) for f in (1.0, math.pi, 1 / math.pi, math.sqrt(2), math.sqrt(math.pi)))
    if any(abs(x - round(x)) <= RECOGNISED * abs(x) and abs(x) < LARGEST_NUMERATOR for x in simple):
        return True
    known = [v for v in e.scalars.values() if v] + [size.value for size in sizes(e)]
    near = (f(v) for v in known for f in (float, lambda v: 1 / v, lambda v: v * v, lambda v: 1 / (v * v)))
    return any(abs(abs(c) - abs(value)) <= RECOGNISED * abs(c) for value in near)


def row_factor(e: Evidence) -> Cause | None:
    """Return the cause where each row of N is its row of A times a number of its own: a count, a length."""
    alive = (~e.equal(e.A, np.zeros_like(e.A))).sum(axis=1)
    if not alive.max(initial=0) > 1 or not e.wrong.any():
        return None
    power = (e.A * e.A).sum(axis=1)
    c = np.where(power > 0, (e.A * e.N).sum(axis=1) / np.where(power > 0, power, 1), np.nan)
    known = np.isfinite(c)
    if not e.same(e.N[known], c[known, None] * e.A[known]) or bool((e.N[~known] != 0).any()):
        return None
    least, most = float(c[known].min()), float(c[known].max())
    if most - least <= UNEQUAL * max(abs(least), abs(most)):
        return None
    said = {"least": number(round(least, 6)), "most": number(round(most, 6))}
    names = list(dict.fromkeys(_row_names(e, c, known)))
    named = [Cause("missing_factor", "row_factor_named", {**said, "factor": name}) for name in names]
    # of sizes that are equal here other inputs tell which it is
    first, *others = [*named, Cause("missing_factor", "row_factor", {**said, "factor": ""})]
    return replace(first, alternatives=tuple(others))


def _row_names(e: Evidence, c: Array, known: Array) -> Iterator[str]:
    for tensor in e.tensors:
        values = _spread(tensor.values, e.out_shape) if tensor.values.dtype.kind in "fi" else None
        if values is None or np.ptp(tensor.values) == 0:
            continue
        flat = values.reshape(-1).astype(float)
        with np.errstate(all="ignore"):
            over = [(f"{size.label} / {tensor.name}", size.value / flat) for size in sizes(e) if size.value > 1]
            for label, right in ((tensor.name, flat), (f"1 / {tensor.name}", 1 / flat), *over):
                if np.isfinite(right[known]).all() and np.allclose(c[known], right[known], rtol=RECOGNISED, atol=0):
                    yield label


def _proportional(ratio: Array, f: Array, alive: Array, e: Evidence) -> float | None:
    """Return the c with ratio == c * f where alive; None when f varies too little to tell, or does not fit."""
    r, f = ratio[alive], f[alive]
    if not (np.isfinite(r).all() and np.isfinite(f).all()) or len(np.unique(np.round(f, 9))) < 3:
        return None
    c = float((r * f).sum() / (f * f).sum())
    fits = np.abs(r - c * f) <= OF_FORMS * e.rel * np.maximum(np.abs(r), SMALL * np.abs(r).max())
    return c if c != 0 and bool(fits.all()) else None


def _times(c: float, label: str) -> str:
    rounded = round(c, 5)
    if rounded == 1:
        return label
    return f"-{label}" if rounded == -1 else f"{number(rounded)} * {label}"


def candidates(e: Evidence) -> Iterator[tuple[str, Array]]:
    """Yield factors by name, each shaped to go over the rows (output) or the columns (input) of the block."""
    for tensor in _at_hand(e):
        for label, values in _forms(tensor):
            shaped = _over_columns(values, e)
            if shaped is not None:
                yield label, shaped
            shaped = _over_rows(values, e)
            if shaped is not None:
                yield label, shaped


def _at_hand(e: Evidence) -> list[Named]:
    own = [t for t in e.tensors if t.role == "input" and t.position == e.block.input]
    return own + [t for t in e.tensors if t not in own and t.values.dtype.kind == "f" and t.role != "count"]


def _forms(tensor: Named) -> Iterator[tuple[str, Array]]:
    for form, function in FORMS:
        yield form.format(x=tensor.name), function(tensor.values.astype(float))


def _over_columns(values: Array, e: Evidence) -> Array | None:
    spread = _spread(values, e.in_shape)
    return None if spread is None else spread.reshape(1, -1)


def _over_rows(values: Array, e: Evidence) -> Array | None:
    spread = _spread(values, e.out_shape)
    return None if spread is None else spread.reshape(-1, 1)


def _spread(values: Array, shape: tuple[int, ...]) -> Array | None:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        return None


def lost_term(e: Evidence) -> Cause | None:
    """Find a term missing of each row that runs along some dimensions, all alike or in step with a tensor at hand.

    What is a multiple of the right one is off by no term.
    """
    if factor(e.A, e.N, e) is not None:
        return None
    missing = e.N - e.A
    rows = np.flatnonzero((~e.equal(e.A, e.N)).any(axis=1))
    dims = _dims(e, missing, rows)
    if not dims or (e.block.input_complex and len(e.in_shape) - 1 in dims):
        return None  # of real and imaginary part there is no mean
    said = {"dims": ", ".join(map(str, dims))}
    if _follows(e, missing, rows, np.ones(missing.shape[1])):
        return Cause("wrong_derivative", "lost_mean", said)
    for tensor in e.tensors:
        values = tensor.values.reshape(-1)
        varies = values.size == missing.shape[1] and values.dtype.kind == "f" and np.ptp(values) > 0
        if varies and _follows(e, missing, rows, values):
            return Cause("wrong_derivative", "lost_sum", {**said, "name": tensor.name})
    return None


def _dims(e: Evidence, missing: Array, rows: Array) -> tuple[int, ...]:
    """Return the dimensions of the input along which several elements lack something in every wrong row.

    None where in all rows together some element along them lacks nothing: a branch or an edge is no sum.
    """
    spans, reached = set(), np.zeros(e.in_shape, dtype=bool)
    axes = range(len(e.in_shape))
    for row in rows:
        there = (np.abs(missing[row]) > STEADY * np.abs(missing[row]).max()).reshape(e.in_shape)
        spans.add(tuple(d for d in axes if _along(there, d).sum() > 1))
        reached |= there
    dims = spans.pop() if len(spans) == 1 else ()
    return dims if all(_along(reached, d).all() for d in dims) else ()


def _along(there: Array, dim: int) -> Array:
    return np.asarray(there.any(axis=tuple(a for a in range(there.ndim) if a != dim)))


def _follows(e: Evidence, missing: Array, rows: Array, values: Array) -> bool:
    for row in rows:
        want, size = missing[row], float(np.abs(missing[row]).max())
        here = _slab((np.abs(want) > STEADY * size).reshape(e.in_shape)).reshape(-1)
        c = float((want[here] * values[here]).sum() / max(float((values[here] ** 2).sum()), 1e-300))
        if here.sum() < 2 or not (np.abs(want[here] - c * values[here]) <= STEADY * size).all():
            return False
    return len(rows) > 0


def _slab(there: Array) -> Array:
    """Return the smallest part of an array, a run of indices along each dimension, that has all these elements."""
    slab = np.zeros_like(there)
    ends = (np.flatnonzero(_along(there, d))[[0, -1]] for d in range(there.ndim))
    slab[tuple(slice(first, last + 1) for first, last in ends)] = True
    return slab


def overwritten(e: Evidence) -> Cause | None:
    """Return the cause where one element of the input goes to several of the output, and backward counts one."""
    alive = ~e.equal(e.N, np.zeros_like(e.N))
    mine = ~e.equal(e.A, np.zeros_like(e.A))
    wrong = e.wrong.any(axis=0)
    if not wrong.any() or (alive.sum(axis=1) > 1).any() or bool((mine & e.wrong).any()):
        return None
    shared = alive.sum(axis=0) > 1
    if not bool((shared == wrong).all()) or not bool((mine.sum(axis=0)[wrong] == 1).all()):
        return None
    return Cause("missing_entries", "overwritten", {"wrong": int(e.wrong.sum()), "entries": int(alive.sum())})
