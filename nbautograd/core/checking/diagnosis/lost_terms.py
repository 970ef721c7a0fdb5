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
    """The dimensions of the input along which something is missing of every wrong row; none where one element is."""
    spans = set()
    for row in rows:
        there = (np.abs(missing[row]) > FITS * np.abs(missing[row]).max()).reshape(e.in_shape)
        axes = range(there.ndim)
        spans.add(tuple(d for d in axes if there.any(axis=tuple(a for a in axes if a != d)).sum() > 1))
    return spans.pop() if len(spans) == 1 else ()


def _follows(e: Evidence, missing: Array, rows: Array, values: Array) -> bool:
    for row in rows:
        want, size = missing[row], float(np.abs(missing[row]).max())
        there = (np.abs(want) > FITS * size).reshape(e.in_shape)
        axes = range(there.ndim)
        slab = np.ones(e.in_shape, dtype=bool)
        for d in axes:
            used = there.any(axis=tuple(a for a in axes if a != d))
            slab &= used.reshape([-1 if a == d else 1 for a in axes])
        here = slab.reshape(-1)
        c = float((want[here] * values[here]).sum() / max(float((values[here] ** 2).sum()), 1e-300))
        if here.sum() < 2 or not (np.abs(want[here] - c * values[here]) <= FITS * size).all():
            return False
    return len(rows) > 0


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
