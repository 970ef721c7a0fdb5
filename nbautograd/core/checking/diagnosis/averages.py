"""Hypotheses on sums and means where each element needs its own number: of the gradient, or of grad_output."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.hypothesis import Cause


def averaged(e: Evidence) -> Cause | None:
    """A is the mean, or the sum, of N over some dimensions, the same number everywhere along them."""
    if e.rows is not None:
        return None  # of a thinned-out block the sums are not known
    m = len(e.out_shape)
    A, N = e.A.reshape(e.tensor_shape), e.N.reshape(e.tensor_shape)
    for message, dims in (("", range(m, A.ndim)), ("_grad_output", range(m))):
        along = tuple(d for d in dims if A.shape[d] > 1 and _constant(A, d, e))
        if along:
            named = {"dims": ", ".join(str(d if d < m else d - m) for d in along)}
            for word, right in (("averaged", N.mean(along, keepdims=True)), ("summed", N.sum(along, keepdims=True))):
                if right.any() and e.same(A, np.broadcast_to(right, A.shape)):
                    return Cause("wrong_reduction_dim", word + message, named)
    return None


def _constant(A: Array, dim: int, e: Evidence) -> bool:
    first = A[(slice(None),) * dim + (slice(0, 1),)]
    return e.same(A, np.broadcast_to(first, A.shape))
