"""Hypotheses on sums that the forward runs through: a term lost on the way back, additions that became overwriting."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.hypothesis import Cause

FITS = 1e-4  # how well what is missing has to follow a pattern, relative to the largest of its row


def lost_term(e: Evidence) -> Cause | None:
    """What is missing of each row runs along some dimensions, all alike or in step with a tensor at hand."""
    missing = e.N - e.A
    rows = np.flatnonzero((~e.equal(e.A, e.N)).any(axis=1))
    dims = _dims(e, missing, rows)
    if not dims:
        return None
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
        there = (np.abs(missing[row]) > FITS * np.abs(missing[row]).max()).reshape(e.in_shape)
        spans.add(tuple(d for d in axes if _along(there, d).sum() > 1))
        reached |= there
    dims = spans.pop() if len(spans) == 1 else ()
    return dims if all(_along(reached, d).all() for d in dims) else ()


def _along(there: Array, dim: int) -> Array:
    return np.asarray(there.any(axis=tuple(a for a in range(there.ndim) if a != dim)))


def _follows(e: Evidence, missing: Array, rows: Array, values: Array) -> bool:
    for row in rows:
        want, size = missing[row], float(np.abs(missing[row]).max())
        here = _slab((np.abs(want) > FITS * size).reshape(e.in_shape)).reshape(-1)
        c = float((want[here] * values[here]).sum() / max(float((values[here] ** 2).sum()), 1e-300))
        if here.sum() < 2 or not (np.abs(want[here] - c * values[here]) <= FITS * size).all():
            return False
    return len(rows) > 0


def _slab(there: Array) -> Array:
    """Return the smallest part of an array, a run of indices along each dimension, that has all these elements."""
    slab = np.zeros_like(there)
    ends = (np.flatnonzero(_along(there, d))[[0, -1]] for d in range(there.ndim))
    slab[tuple(slice(first, last + 1) for first, last in ends)] = True
    return slab


def overwritten(e: Evidence) -> Cause | None:
    """Several elements of the output come from one element of the input, and backward counts only one of them."""
    alive = ~e.equal(e.N, np.zeros_like(e.N))
    mine = ~e.equal(e.A, np.zeros_like(e.A))
    wrong = e.wrong.any(axis=0)
    if not wrong.any() or (alive.sum(axis=1) > 1).any() or bool((mine & e.wrong).any()):
        return None
    shared = alive.sum(axis=0) > 1
    if not bool((shared == wrong).all()) or not bool((mine.sum(axis=0)[wrong] == 1).all()):
        return None
    return Cause("missing_entries", "overwritten", {"wrong": int(e.wrong.sum()), "entries": int(alive.sum())})
