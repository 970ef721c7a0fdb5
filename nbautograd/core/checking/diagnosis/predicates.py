"""Predicates of the table of hypotheses: what the entries of a wrong block show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.factors import factor
from nbautograd.core.checking.diagnosis.hypothesis import Cause, Evidence
from nbautograd.core.numerics.constants import RECOGNISED

NAMED_INDICES = 2  # single indices that are named where they are no run
UNCLASSIFIED = Cause("wrong_unclassified", "wrong_unclassified")


def sampled(e: Evidence) -> Cause | None:
    """Return the cause where entries outside the sample of a large block are not known."""
    unknown = e.block.matrices.rows is not None and np.isnan(e.A).any()
    return UNCLASSIFIED if unknown and np.isfinite(e.block.matrices.analytical).all() else None


def nonfinite(e: Evidence) -> Cause | None:
    """Return the cause where A has entries that are no numbers."""
    bad = int((~np.isfinite(e.A)).sum())
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
    return wrong_in(e, "wrong_derivative") if bool((a == n).all()) else None


def unclassified(e: Evidence) -> Cause:
    """Return the plain sentence, which is true of any wrong block."""
    return wrong_in(e, "wrong_unclassified")


def wrong_in(e: Evidence, code: str) -> Cause:
    """Return the plain sentence, with the part that is wrong where there is one."""
    where = part(e, e.wrong)
    return Cause(code, f"{code}_part", {"part": where}) if where else Cause(code, code)


def _alive(X: Array, e: Evidence) -> Array:
    return ~e.equal(X, np.zeros_like(X))


def part(e: Evidence, wrong: Array) -> str:
    """Return the parts of output and input with all these entries: ``"output[4:] / x[:, 0]"``; empty for all."""
    shapes = (e.out_shape, e.in_shape)
    if shapes != (e.block.output_shape, e.block.input_shape) or not wrong.any():
        return ""
    rows = slice_of(e.block.output_name, wrong.any(axis=1).reshape(shapes[0]), e.block.output_complex)
    cols = slice_of(e.block.input_name, wrong.any(axis=0).reshape(shapes[1]), e.block.input_complex)
    return " / ".join(filter(None, (rows, cols)))


def slice_of(name: str, mask: Array, pairs: bool = False) -> str:
    """Write the slice of a tensor whose entries are marked: ``"x[:, -1]"``; empty where they are no slice.

    Args:
        mask: of its entries.
        pairs: True where the last dimension is that of real and imaginary part.
    """
    if pairs:
        real, imaginary = mask.reshape(-1, 2).T
        if bool(real.all()) != bool(imaginary.all()) and real.any() != imaginary.any():
            return f"{name}.real" if real.all() else f"{name}.imag"
    for axis, size in enumerate(mask.shape[: mask.ndim - pairs]):
        others = tuple(d for d in range(mask.ndim) if d != axis)
        hit = np.flatnonzero(mask.all(axis=others))
        run = len(hit) > 0 and hit[-1] - hit[0] == len(hit) - 1
        if (
            0 < len(hit) < size
            and (run or len(hit) <= NAMED_INDICES)
            and int(mask.sum()) * size == len(hit) * mask.size
        ):
            index = [":"] * mask.ndim
            listed = [int(k) if k < size - 1 else -1 for k in hit]
            index[axis] = _run(int(hit[0]), int(hit[-1]) + 1, size) if run else str(listed)
            while index[-1] == ":":
                index.pop()
            return f"{name}[{', '.join(index)}]"
    return ""


def _run(start: int, stop: int, size: int) -> str:
    if stop - start == 1:
        return str(start) if stop < size else "-1"
    return f"{start or ''}:{stop if stop < size else ''}"
