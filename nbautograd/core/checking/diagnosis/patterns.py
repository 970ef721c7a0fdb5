"""Hypotheses on whole blocks: a factor, an order, or an output that has no effect."""

from __future__ import annotations

import math

import numpy as np

from nbautograd.core.checking.block import Array, Block
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.factors import factor
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.numerics.constants import RECOGNISED, REORDERED


def constant(e: Evidence) -> Cause | None:
    """Return the cause where A is N times a constant; of a single entry any two numbers have a ratio."""
    c = factor(e.A, e.N, e)
    if c is None or np.count_nonzero(e.N) < 2:
        return None
    if abs(c + 1) <= RECOGNISED:
        return Cause("sign", "sign")
    return Cause("constant_factor", "constant_factor", {"ratio": number(c)})


def number(c: float) -> str:
    """Write a number as a person would: ``2``, ``0.5``, ``0.99949``, ``1.000003``."""
    beyond = abs(abs(c) - 1)  # one that differs from 1 is not written as 1
    digits = 6 if not 0 < beyond < 1e-3 else min(3 - math.floor(math.log10(beyond)), 12)
    return f"{c + 0.0:.{digits}g}"  # no "-0"


def permuted(e: Evidence) -> Cause | None:
    """Return the cause where the entries of A are those of N in another order along the input, or along the output."""
    if e.elementwise or not (_reordered(e.A.T, e.N.T, e) or _reordered(e.A, e.N, e)):
        return None
    return Cause("permuted_entries", "permuted_entries")


def other_elements(e: Evidence) -> Cause | None:
    """Return the cause where elements come with the right weights, but from other places of the input."""
    alive = ~e.equal(e.N, np.zeros_like(e.N))
    few = not e.elementwise and alive.sum(axis=1).max(initial=0) <= max(1, e.N.shape[1] // 4)
    same = few and e.same(np.sort(e.A, axis=1), np.sort(e.N, axis=1))
    return Cause("permuted_entries", "other_elements") if same else None


def _reordered(X: Array, Y: Array, e: Evidence) -> bool:
    """Return True if the rows of X are those of Y, each used once, in another order; rows of zeros say nothing."""
    if len(X) < 2 or len(X) * X.size > REORDERED or len(np.unique(np.round(Y / (e.scale or 1), 6), axis=0)) < 2:
        return False
    free = list(range(len(Y)))
    for row in X:
        found = next((i for i in free if e.same(row, Y[i])), None)
        if found is None:
            return False
        free.remove(found)
    return True


def output_ignored(e: Evidence) -> Cause | None:
    """Return the cause where nothing comes from one output although something comes from others."""
    if e.A.any() or e.none:
        return None
    same_output = [b for (o, _), b in e.blocks.items() if o == e.block.output]
    others = [b for (o, _), b in e.blocks.items() if o != e.block.output]
    if others and not any(_alive(b) for b in same_output) and any(_alive(b) for b in others):
        return Cause("output_grad_ignored", "output_grad_ignored", {"output": e.block.output_name})
    return None


def _alive(block: Block) -> bool:
    return bool(block.pooled().analytical.any())
