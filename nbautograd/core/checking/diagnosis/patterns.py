"""Hypotheses on whole blocks: a factor, or an output that has no effect."""

from __future__ import annotations

import math

import numpy as np

from nbautograd.core.checking.block import Block
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.factors import factor
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.numerics.constants import RECOGNISED


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
    if others and not any(_alive(b) for b in same_output) and any(_alive(b) for b in others):
        return Cause("output_grad_ignored", "output_grad_ignored", {"output": e.block.output_name})
    return None


def _alive(block: Block) -> bool:
    return bool(block.pooled().analytical.any())
