"""Hypotheses on whole blocks: a factor, a sign, dimensions, orders, sums and means, or blocks exchanged."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from nbautograd.core.checking.block import Array, Block
from nbautograd.core.checking.diagnosis.evidence import Evidence, is_mask
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.numerics.constants import RECOGNISED, REORDERED, SLIGHT, SMALL


def factor(A: Array, N: Array, e: Evidence) -> float | None:
    """Return the constant c with A == c * N, or None; so small or large a one is round-off beside a gradient."""
    power = float((N * N).sum())
    if power == 0.0 or not np.isfinite(A).all() or not np.isfinite(N).all():
        return None
    c = float((A * N).sum()) / power
    close = np.abs(A - c * N) <= e.rel * np.maximum(np.abs(c * N), SMALL * abs(c) * np.abs(N).max()) + e.tiny
    return c if SLIGHT < abs(c) < 1 / SLIGHT and bool(close.all()) else None


def sign(e: Evidence) -> Cause | None:
    """Return the cause where A is minus N."""
    c = factor(e.A, e.N, e)
    return Cause("sign", "sign") if c is not None and abs(c + 1) <= RECOGNISED else None


def constant(e: Evidence) -> Cause | None:
    """Return the cause where A is N times a constant other than minus one."""
    c = factor(e.A, e.N, e)
    if c is None or abs(c + 1) <= RECOGNISED:
        return None
    return Cause("constant_factor", "constant_factor", {"ratio": number(c), "inverse": number(1 / c)})


def number(c: float) -> str:
    """Write a number as a person would: ``2``, ``0.5``, ``0.99949``, ``1.000003``."""
    beyond = abs(abs(c) - 1)  # one that differs from 1 is not written as 1
    digits = 6 if not 0 < beyond < 1e-3 else min(3 - math.floor(math.log10(beyond)), 12)
    return f"{c + 0.0:.{digits}g}"  # no "-0"


@dataclass(frozen=True)
class Measure:
    """A number that a constant may be, and the way to take it at other inputs.

    Attributes:
        label: as it stands in code: ``"x.numel()"``, ``"1/sqrt(q.shape[1])"``, ``"mask.sum()"``, ``"scale"``.
        value: here.
        name: of the tensor or number that it is taken from; empty for a number that stays what it is.
        take: the number that it is for another tensor or number of that name.
        sized: True when it is taken from a size or a count.
    """

    label: str
    value: float
    name: str = ""
    take: Callable[[Any], float] = lambda item: math.nan
    sized: bool = False

    def derived(self, form: str, function: Callable[[float], float]) -> Measure:
        """Return a function of this number, written around its label."""
        take = self.take
        return Measure(
            form.format(self.label), function(self.value), self.name, lambda t: function(float(take(t))), self.sized
        )


def constant_names(c: float, e: Evidence) -> Iterator[Measure]:
    """Name what this constant may be, the likeliest first."""
    known = [size for size in sizes(e) if size.value not in (0.0, 1.0)]
    own = [Measure(name, value, name, float) for name, value in sorted(e.scalars.items(), key=_on_ctx_first)]
    yield from (m for m in _forms(known, own) if m.value not in (0.0, 1.0) and _near(c, m.value))
    for size in (s for s in known if s.value > 2):
        less = size.derived(f"({{}} - 1)/{size.label}", lambda n: (n - 1) / n)
        one_less = size.derived("({} - 1)", lambda n: n - 1)
        forms = (
            less,
            less.derived(f"{size.label}/({size.label} - 1)", _inverse),
            one_less,
            one_less.derived("1/{}", _inverse),
        )
        yield from (m for m in forms if _near(c, m.value))


def _forms(known: Sequence[Measure], own: Sequence[Measure]) -> Iterator[Measure]:
    for size in (*known, *(s.derived("sqrt({})", math.sqrt) for s in known)):
        yield size
        yield size.derived("1/{}", _inverse)
    for number_given in own:
        yield number_given
        yield number_given.derived("1/{}", _inverse)
        yield number_given.derived("1 - {}", lambda value: 1 - value)


def _on_ctx_first(item: tuple[str, float]) -> bool:
    return not item[0].startswith("ctx.")  # which backward can read


def _near(c: float, value: float) -> bool:
    return abs(c - value) <= RECOGNISED * abs(c)


def _inverse(value: float) -> float:
    return 1 / value if value else 0.0


def sizes(e: Evidence) -> Iterator[Measure]:
    """Yield the sizes and counts that a forgotten division may be: batch, elements, ones in a mask."""
    block = e.block
    pairs = block.input_complex, block.output_complex  # the last dimension is then of real and imaginary part
    shapes = [s[:-1] if p else s for s, p in zip((block.input_shape, block.output_shape), pairs, strict=True)]
    for name, shape in zip((block.input_name, block.output_name), shapes, strict=True):
        yield from _sizes(name, shape)
    for tensor in e.tensors:
        if tensor.role == "input" and tensor.position != block.input:
            yield from _sizes(tensor.name, tensor.values.shape)
        if tensor.role in ("input", "saved") and tensor.position != block.input and is_mask(tensor.values):
            count, size = float(tensor.values.sum()), tensor.values.size
            yield Measure(f"{tensor.name}.sum()", count, tensor.name, lambda t: float(t.sum()), True)
            share = Measure("", count / size, tensor.name, lambda t: float(t.sum()) / t.numel(), True)
            yield share.derived(f"{tensor.name}.sum() / {tensor.name}.numel()", float)
            yield share.derived(f"{tensor.name}.numel() / {tensor.name}.sum()", _inverse)


def _sizes(name: str, shape: Sequence[int]) -> Iterator[Measure]:
    for k, size in enumerate(shape):
        yield Measure(f"{name}.shape[{k}]", float(size), name, functools.partial(_extent, k), True)
    yield Measure(f"{name}.numel()", float(np.prod(shape, dtype=float)), name, lambda t: float(t.numel()), True)


def _extent(dim: int, tensor: Tensor) -> float:
    return float(tensor.shape[dim]) if dim < tensor.dim() else math.nan


def conjugate(e: Evidence) -> Cause | None:
    """Return the cause where real and imaginary part of A have the signs of the conjugate."""
    block = e.block
    flip = np.array([1.0, -1.0])
    N = e.N.reshape(e.tensor_shape)
    signs_in = flip.reshape((1,) * (N.ndim - 1) + (2,)) if block.input_complex else None
    shape_out = (1,) * (len(e.out_shape) - 1) + (2,) + (1,) * len(e.in_shape)
    signs_out = flip.reshape(shape_out) if block.output_complex else None
    tries = [signs_in, signs_out, signs_in * signs_out if signs_in is not None and signs_out is not None else None]
    for signs in tries:
        if signs is not None and e.same(e.A, (N * signs).reshape(e.N.shape)):
            return Cause("missing_conj", "missing_conj")
    return None


def transposed_grad(e: Evidence) -> Cause | None:
    """Return the cause where the gradient is the transpose of the right one (two dimensions exchanged)."""
    m = len(e.out_shape)
    for a, b in itertools.combinations(range(_dims_in(e)), 2):
        if e.in_shape[a] == e.in_shape[b] and e.same(e.A, exchanged(e, m + a, m + b)):
            return Cause("transposed_grad", "transposed_grad", {"dims": f"{a}, {b}"})
    return None


def transposed_jacobian(e: Evidence) -> Cause | None:
    """Return the cause where A is N with one or all dimensions of output and input exchanged.

    With one exchanged it is the transpose of N as a whole only where N is symmetric along the others.
    """
    m, along = len(e.out_shape), list[Cause]()
    for a, b in itertools.product(range(_dims_out(e)), range(_dims_in(e))) if m * len(e.in_shape) > 1 else ():
        if e.out_shape[a] == e.in_shape[b] and e.same(e.A, exchanged(e, a, m + b)):
            message = "transposed_jacobian_dims" if _is_a_matrix(e, a, b) else "transposed_jacobian_along"
            along = [Cause("transposed_jacobian", message, {"a": a, "b": b})]
            break
    named = along and along[0].message == "transposed_jacobian_dims"
    if e.out_shape == e.in_shape and e.same(e.A, e.N.T) and not named:
        return Cause("transposed_jacobian", "transposed_jacobian", {"a": -1, "b": -1}, tuple(along))
    return along[0] if along else None


def _is_a_matrix(e: Evidence, a: int, b: int) -> bool:
    """Return True where N along these dimensions is a square matrix at hand times a constant: it may lack a ``.t()``.

    A running sum, a permutation, a shift or a convolution has an order in place of a matrix, and no transpose to lack.
    """
    N = np.moveaxis(e.N.reshape(e.tensor_shape), (a, len(e.out_shape) + b), (-2, -1))
    slices = N.reshape(-1, *N.shape[-2:])
    weights = slices[np.abs(slices).max(axis=(1, 2)).argmax()]
    for tensor in e.tensors:
        W = tensor.values
        if W.shape == weights.shape and W.dtype.kind == "f" and W.any():
            for matrix in (W, W.T):
                c = float((weights * matrix).sum() / (matrix * matrix).sum())
                if c and np.abs(weights - c * matrix).max() <= 30 * e.rel * np.abs(weights).max():
                    return True
    return False


def exchanged(e: Evidence, a: int, b: int) -> Array:
    """Return N with two dimensions of (output dimensions, input dimensions) exchanged."""
    return np.swapaxes(e.N.reshape(e.tensor_shape), a, b).reshape(e.N.shape)


def reduced_over_wrong_dim(e: Evidence) -> Cause | None:
    """Return the cause where A is N with two output dimensions exchanged, one of them summed over."""
    for a, b in itertools.combinations(range(_dims_out(e)), 2):
        if e.out_shape[a] == e.out_shape[b] and e.same(e.A, exchanged(e, a, b)):
            N = e.N.reshape(e.tensor_shape)
            if len(e.out_shape) == len(e.in_shape) or not (_constant(N, a, e) or _constant(N, b, e)):
                return Cause("transposed_grad", "transposed_grad_output", {"dims": f"{a}, {b}"})
            return Cause("wrong_reduction_dim", "wrong_reduction_dim", {"dims": f"{a}, {b}"})
    return None


def coupled_dims(X: Array, e: Evidence) -> set[int]:
    """Return the dimensions along which an output element depends on input elements at other positions."""
    hot = ~e.equal(X, np.zeros_like(X))
    rows, cols = np.nonzero(hot)
    out, inn = np.unravel_index(rows, e.out_shape), np.unravel_index(cols, e.in_shape)
    dims = min(_dims_out(e), _dims_in(e))
    return {k for k in range(dims) if bool((out[k] != inn[k]).any())}


def _dims_out(e: Evidence) -> int:
    """Count the output's dimensions, without that of real and imaginary part."""
    return len(e.out_shape) - e.block.output_complex


def _dims_in(e: Evidence) -> int:
    """Count the input's dimensions, without that of real and imaginary part."""
    return len(e.in_shape) - e.block.input_complex


def shifted(e: Evidence) -> Cause | None:
    """Return the cause where A is N moved by a few places along a dimension, around the end or not."""
    if e.elementwise:
        return None
    N, m = e.N.reshape(e.tensor_shape), len(e.out_shape)
    for axis, size in enumerate(e.tensor_shape):
        if axis in (_dims_out(e) if e.block.output_complex else -1, m + _dims_in(e)):
            continue  # real and imaginary part have no places
        for k in [s for d in range(1, min(4, size)) for s in (d, -d)]:
            for moved in (np.roll(N, k, axis), _moved(N, k, axis)):
                if 2 * np.count_nonzero(moved) > np.count_nonzero(N) and e.same(e.A, moved.reshape(e.A.shape)):
                    dim = axis if axis < m else axis - m
                    return Cause("shifted", "shifted", {"by": abs(k), "dim": dim})
    return None


def _moved(X: Array, k: int, axis: int) -> Array:
    moved = np.roll(X, k, axis)
    edge = [slice(None)] * X.ndim
    edge[axis] = slice(0, k) if k > 0 else slice(k, None)
    moved[tuple(edge)] = 0
    return moved


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


def _constant(A: Array, dim: int, e: Evidence) -> bool:
    first = A[(slice(None),) * dim + (slice(0, 1),)]
    return e.same(A, np.broadcast_to(first, A.shape))


def _numbers(block: Block, e: Evidence, which: str) -> Array | None:
    if (block.output_shape, block.input_shape) != (e.block.output_shape, e.block.input_shape):
        return None
    read = block.analytical if which == "A" else block.numerical
    return np.asarray(read(e.rows, e.cols))


def swapped(e: Evidence) -> Cause | None:
    """Return the cause where the gradients of two inputs, or through two outputs, stand in each other's place."""
    for (o, i), other in e.blocks.items():
        inputs = o == e.block.output
        if inputs == (i == e.block.input):
            continue  # the block itself, or one that has nothing in common with it
        N, A = _numbers(other, e, "N"), _numbers(other, e, "A")
        if N is not None and A is not None and e.same(e.A, N) and e.same(A, e.N):
            code, name = ("swapped_inputs", other.input_name) if inputs else ("swapped_outputs", other.output_name)
            return Cause(code, code, {"other": name})
    return None


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
