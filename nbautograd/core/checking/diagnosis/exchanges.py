"""Hypotheses on several blocks: the gradients of two inputs, or of two outputs, were exchanged or one was left out."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.block import Array, Block
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.hypothesis import Cause


def _numbers(block: Block, e: Evidence, which: str) -> Array | None:
    if (block.output_shape, block.input_shape) != (e.block.output_shape, e.block.input_shape):
        return None
    read = block.analytical if which == "A" else block.numerical
    return np.asarray(read(e.rows, e.cols))


def swapped_inputs(e: Evidence) -> Cause | None:
    """The gradients of two inputs stand in each other's place."""
    for (o, i), other in e.blocks.items():
        if o != e.block.output or i == e.block.input:
            continue
        N, A = _numbers(other, e, "N"), _numbers(other, e, "A")
        if N is not None and A is not None and e.same(e.A, N) and e.same(A, e.N):
            return Cause("swapped_inputs", "swapped_inputs", {"other": other.input_name})
    return None


def swapped_outputs(e: Evidence) -> Cause | None:
    """The grad_output of another output was used."""
    for (o, i), other in e.blocks.items():
        N = _numbers(other, e, "N") if o != e.block.output and i == e.block.input else None
        A = _numbers(other, e, "A") if N is not None else None
        if N is not None and A is not None and e.same(e.A, N) and e.same(A, e.N):
            return Cause("swapped_outputs", "swapped_outputs", {"other": other.output_name})
    return None


def output_ignored(e: Evidence) -> Cause | None:
    """Nothing comes from one output although the Function has others from which something comes."""
    if e.A.any() or e.none:
        return None
    same_output = [b for (o, _), b in e.blocks.items() if o == e.block.output]
    others = [b for (o, _), b in e.blocks.items() if o != e.block.output]
    if others and not any(_alive(b) for b in same_output) and any(_alive(b) for b in others):
        return Cause("output_grad_ignored", "output_grad_ignored", {"output": e.block.output_name})
    return None


def _alive(block: Block) -> bool:
    return bool(block.pooled().analytical.any())
