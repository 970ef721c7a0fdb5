"""What the entries of a wrong block show: predicates of the table of hypotheses, and factors for edits to try.

Of a factor that a wrong gradient may lack, or have too many, it is not known here what is meant: a candidate only has
to agree at the entries at hand. An edit that is right at other values and sizes shows which one it is, and whether any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.hypothesis import Cause, Evidence
from nbautograd.core.numerics.constants import RECOGNISED, SLIGHT, SMALL


@dataclass(frozen=True)
class Clues:
    """What the entries of wrong blocks suggest to whoever looks for a fix.

    Attributes:
        scaled: True where all of a gradient is wrong by one factor.
        coupled: True where elements of an output depend on several of an input, so that a sum may be missing.
    """

    scaled: bool = False
    coupled: bool = False


def clues(wrong: Sequence[Evidence]) -> Clues:
    """Return what these wrong blocks suggest."""
    known = [e for e in wrong if np.isfinite(e.A).all() and np.isfinite(e.N).all() and e.A.any()]
    scaled = any((c := factor(e.A, e.N, e)) is not None and abs(abs(c) - 1) > RECOGNISED for e in known)
    coupled = any(bool(((~e.equal(e.N, np.zeros_like(e.N))).sum(axis=1) > 1).any()) for e in known)
    return Clues(scaled, coupled)


def factor(A: Array, N: Array, e: Evidence) -> float | None:
    """Return the constant c with A == c * N, or None; so small or large a one is round-off beside a gradient."""
    power = float((N * N).sum())
    if power == 0.0 or not np.isfinite(A).all() or not np.isfinite(N).all():
        return None
    c = float((A * N).sum()) / power
    close = np.abs(A - c * N) <= e.rel * np.maximum(np.abs(c * N), SMALL * abs(c) * np.abs(N).max()) + e.tiny
    return c if SLIGHT < abs(c) < 1 / SLIGHT and bool(close.all()) else None


UNCLASSIFIED = Cause("wrong_unclassified", "wrong_unclassified")


def nonfinite(e: Evidence) -> Cause | None:
    """Return the cause where A has entries that are no numbers, and N numbers there: a NaN of forward is no cause."""
    bad = int((~np.isfinite(e.A) & np.isfinite(e.N)).sum())
    return Cause("nonfinite", "nonfinite", {"wrong": bad}) if bad else None


def none_returned(e: Evidence) -> Cause | None:
    """Return the cause where backward returned None where something should come."""
    return Cause("none_gradient", "none_gradient") if e.none and not e.A.any() else None


def zero(e: Evidence) -> Cause | None:
    """Return the cause where nothing came where something should."""
    return Cause("zero_gradient", "zero_gradient") if not e.A.any() else None


def no_right_one(e: Evidence) -> Cause | None:
    """Return the cause where differences of forward give no numbers that A could be compared with."""
    return None if np.isfinite(e.N).all() else UNCLASSIFIED


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


def output_ignored(e: Evidence) -> Cause | None:
    """Return the cause where nothing comes from one output although something comes from others."""
    if e.A.any() or e.none:
        return None
    same_output = [b for (o, _), b in e.blocks.items() if o == e.block.output]
    others = [b for (o, _), b in e.blocks.items() if o != e.block.output]
    if (
        others
        and not any(b.pooled().analytical.any() for b in same_output)
        and any(b.pooled().analytical.any() for b in others)
    ):
        return Cause("output_grad_ignored", "output_grad_ignored", {"output": e.block.output_name})
    return None


def kink(e: Evidence) -> Cause | None:
    """Return the cause where all that is wrong is at kinks of forward: a subgradient outside both slopes."""
    held = e.block.matrices
    if not e.elementwise or held.kinks is None or not bool(held.kinks[held.wrong].all()):
        return None  # smooth somewhere, as one-sided differences say
    return Cause("kink", "kink_wrong", _count(e))


def missing(e: Evidence) -> Cause | None:
    """Return the cause where A is zero where N is not, and right elsewhere."""
    dead = e.equal(e.A, np.zeros_like(e.A))
    if not e.A.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    return Cause("missing_entries", "missing_entries", _count(e))


def extra(e: Evidence) -> Cause | None:
    """Return the cause where A is alive where N is zero, and right elsewhere."""
    dead = e.equal(e.N, np.zeros_like(e.N))
    if not e.N.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    return Cause("extra_entries", "extra_entries" if e.elementwise else "extra_entries_wide", _count(e))


def _count(e: Evidence) -> dict[str, Any]:
    return {"wrong": int(e.wrong.sum()), "entries": int(((e.A != 0) | (e.N != 0)).sum())}


def derivative(e: Evidence) -> Cause | None:
    """Return the cause where the right pattern has unrelated values."""
    a, n = _alive(e.A, e), _alive(e.N, e)
    return Cause("wrong_derivative", "wrong_derivative") if bool((a == n).all()) else None


def _alive(X: Array, e: Evidence) -> Array:
    return ~e.equal(X, np.zeros_like(X))
