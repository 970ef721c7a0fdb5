"""Hypotheses on which entries are wrong: a mask forgotten, inverted, a coupling left out, a branch, a few places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.findings import Phrase

NAMED_INDICES = 2  # single indices that are named where they are no run
UNCLASSIFIED = Cause("wrong_unclassified", "wrong_unclassified")


@dataclass(frozen=True)
class Where:
    """A condition that holds at some elements of a tensor and at no others.

    Attributes:
        condition: a comparison of values, ``"x < 0"``, or of indices, ``"i < j"``.
        element: what the indices of a comparison of indices belong to, ``"x[i, j]"``.
    """

    condition: str
    element: str = ""

    def params(self) -> dict[str, Any]:
        """Return what a sentence needs to say it."""
        return {"where": self.condition, "of": Phrase("causes.where_of", element=self.element) if self.element else ""}


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


def kink(e: Evidence) -> Cause | None:
    """Return the cause where wrong is exactly where the input is zero, as a subgradient outside both slopes is."""
    where = Where(f"{e.block.input_name} == 0")
    if not e.elementwise or where not in conditions(e, np.asarray(e.wrong.any(axis=0))):
        return None
    held = e.block.matrices
    if held.kinks is None or not bool(held.kinks[held.wrong].all()):
        return None  # smooth there, as one-sided differences say
    return Cause("kink", "kink_wrong", where.params())


def missing(e: Evidence) -> Cause | None:
    """Return the cause where A is zero where N is not, and right elsewhere."""
    dead = e.equal(e.A, np.zeros_like(e.A))
    if not e.A.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    plain = Cause("missing_entries", "missing_entries", _count(e))
    where = _exactly_where(e)
    if where:
        return _cause_where("missing_entries", "missing_entries_where", e, where, plain)
    whole = e.in_shape == e.block.input_shape and bool(dead[:, e.wrong.any(axis=0)].all())
    part = slice_of(e.block.input_name, e.wrong.any(axis=0).reshape(e.in_shape), e.block.input_complex) if whole else ""
    return Cause("missing_entries", "missing_entries_part", {**_count(e), "part": part}, (plain,)) if part else plain


def extra(e: Evidence) -> Cause | None:
    """Return the cause where A is alive where N is zero, and right elsewhere."""
    dead = e.equal(e.N, np.zeros_like(e.N))
    if not e.N.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    plain = Cause("extra_entries", "extra_entries" if e.elementwise else "extra_entries_wide", _count(e))
    where = _exactly_where(e)
    return _cause_where("extra_entries", "extra_entries_where", e, where, plain) if where else plain


def conditional(e: Evidence) -> Cause | None:
    """Return the cause where wrong is exactly where something simple holds for an input, and the rest is right."""
    where = _exactly_where(e, least=e.fewest)
    return _cause_where("conditional", "conditional", e, where) if where else None


def _exactly_where(e: Evidence, least: int = 1) -> list[Where]:
    """Return conditions on elements of the input, else of the output, all of whose entries are wrong, and no others.

    Args:
        e: of the block.
        least: how many elements there have to be on either side of a condition.
    """
    alive = _alive(e.A, e) | _alive(e.N, e)
    for axis, of_output in ((0, False), (1, True)):
        elements = np.asarray(e.wrong.any(axis=axis))
        region = np.expand_dims(elements, axis)
        whole = not bool((alive & region & ~e.wrong).any())
        right = bool((alive & ~region).any())  # else it is wrong wherever there is a gradient at all
        where = conditions(e, elements, of_output) if whole and right else []
        if where and least <= int(elements.sum()) <= elements.size - least:
            return where
    return []


def _cause_where(code: str, message: str, e: Evidence, where: Sequence[Where], *plain: Cause) -> Cause:
    """Return the cause with the first condition, beside it the others at the same elements, at last one without any."""
    first, *others = (Cause(code, message, {**_count(e), **one.params()}) for one in where)
    return replace(first, alternatives=(*others, *plain))


def _count(e: Evidence) -> dict[str, Any]:
    return {"wrong": int(e.wrong.sum()), "entries": int(((e.A != 0) | (e.N != 0)).sum())}


def derivative(e: Evidence) -> Cause | None:
    """Return the cause where the right pattern has unrelated values."""
    a, n = _alive(e.A, e), _alive(e.N, e)
    return wrong_in(e, "wrong_derivative") if bool((a == n).all()) else None


def unclassified(e: Evidence) -> Cause:
    """Say what is left to say of any wrong block."""
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
        name: of the tensor.
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


def conditions(e: Evidence, elements: Array, of_output: bool = False) -> list[Where]:
    """Return the conditions that hold exactly at these elements of the input, or of the output."""
    if not 1 <= int(elements.sum()) < elements.size:
        return []
    return list(_matching(e, elements, e.out_shape if of_output else e.in_shape, of_output))


def _matching(e: Evidence, elements: Array, shape: tuple[int, ...], of_output: bool) -> Iterator[Where]:
    few = min(int(elements.sum()), int((~elements).sum())) < e.fewest
    # what follows places at fresh inputs too is no matter of values, which may lie so there
    yield from _triangles(e.block.output_name if of_output else e.block.input_name, elements, shape)
    for tensor in sorted(e.tensors, key=lambda t: (t.position != e.block.input or t.role != "input", t.role)):
        if tensor.values.shape != shape or tensor.values.dtype.kind not in "fib":
            continue
        name, x = tensor.name, tensor.values.reshape(-1).astype(float)
        mask = tensor.values.dtype.kind == "b"
        for label, holds in (
            (f"{name} < 0", x < 0),
            (f"{name} > 0", x > 0),
            (f"~{name}" if mask else f"{name} == 0", x == 0),
            (name if mask else f"{name} != 0", x != 0),
        ):
            # an output that is zero because of an index or a mask is no condition of anything
            of_index = tensor.role == "output" and not e.elementwise and "=" in label
            if bool((holds == elements).all()) and not of_index and not (mask and ("<" in label or ">" in label)):
                yield Where(label)
        if not few:
            yield from map(Where, _thresholds(e, name, x, elements))


def _triangles(name: str, elements: Array, shape: tuple[int, ...]) -> Iterator[Where]:
    """Yield the parts of a matrix above or below its diagonal, the diagonal, and all but that."""
    if len(shape) < 2 or min(shape[-2:]) < 2:
        return
    i, j = np.indices(shape)[-2:].reshape(2, -1)
    dims = ", ".join([*[":"] * (len(shape) - 2), "i", "j"])
    for sign, holds in (("<", i < j), (">", i > j), ("==", i == j), ("!=", i != j)):
        if bool((holds == elements).all()):
            yield Where(f"i {sign} j", f"{name}[{dims}]")


def _thresholds(e: Evidence, name: str, x: Array, columns: Array) -> Iterator[str]:
    """Yield comparisons with a constant of the code, or with a number that the Function was given, simpler ones first.

    Where no point tells it apart from one of the value itself, nothing is said of an absolute value.
    """
    numbers = dict.fromkeys(signed for c in e.constants for signed in (c, -c))
    given = ((text, c) for label, value in e.scalars.items() for text, c in ((label, value), (f"-{label}", -value)))
    known = [*((f"{c:g}", c) for c in numbers), *given]
    for label, c in known:
        for text, holds in (
            (f"{name} > {label}", x > c),
            (f"{name} < {label}", x < c),
            (f"|{name}| > {label}", np.abs(x) > c),
            (f"|{name}| < {label}", np.abs(x) < c),
        ):
            if c and bool((holds == columns).all()):
                yield text
