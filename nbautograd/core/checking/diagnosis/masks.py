"""Hypotheses on which entries are wrong: a mask forgotten, inverted, a coupling left out, a branch, a few places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.evidence import Evidence, Named, off_diagonal
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.checking.diagnosis.patterns import coupled_dims


def localized(e: Evidence) -> Cause | None:
    """Wrong in very few of many entries."""
    wrong, alive = int(e.wrong.sum()), int(((e.A != 0) | (e.N != 0)).sum())
    if alive < 50 or wrong > 0.02 * alive:
        return None
    return Cause("localized", "localized", {"wrong": wrong, "entries": alive, "where": _first(e)})


def _first(e: Evidence) -> str:
    entry = e.block.worst
    return "" if entry is None else str(list(entry.input_index)).replace(" ", "")


def kink(e: Evidence) -> Cause | None:
    """Wrong exactly where the input is zero, as a subgradient outside the slopes to both sides is."""
    name = e.block.input_name
    if not e.elementwise or condition(e, _by_column(e.wrong, e)) != f"{name} == 0":
        return None
    held = e.block.matrices
    if held.kinks is None or not bool(held.kinks[held.wrong].all()):
        return None  # smooth there, as one-sided differences say
    return Cause("kink", "kink_wrong", {"where": f"{name} == 0"})


def inverted(e: Evidence) -> Cause | None:
    """A lives exactly where N does not."""
    if not e.elementwise or e.A.shape[0] < 3:
        return None
    a, n = _alive(e.A.diagonal(), e), _alive(e.N.diagonal(), e)
    if a.any() and n.any() and not (a & n).any() and (a | n).sum() >= 3:
        return Cause("inverted_mask", "inverted_mask", {"where": condition(e, a)})
    return None


def coupling(e: Evidence) -> Cause | None:
    """N couples elements of the output with many of the input, A only those at the same place."""
    if e.out_shape != e.in_shape or e.A.shape[0] < 2 or off_diagonal(e.N, e) == 0 or not e.A.any():
        return None
    if not off_diagonal(e.A, e):
        return Cause("missing_coupling", "missing_coupling")
    lost = coupled_dims(e.N, e) - coupled_dims(e.A, e)
    if not lost or bool((_alive(e.A, e) & ~_alive(e.N, e)).any()):
        return None
    return Cause("missing_coupling", "missing_coupling_dims", {"dims": ", ".join(map(str, sorted(lost)))})


def missing(e: Evidence) -> Cause | None:
    """A is zero where N is not, and right elsewhere."""
    dead = e.equal(e.A, np.zeros_like(e.A))
    if not e.A.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    where = condition(e, _by_column(e.wrong, e))
    part = "" if where else slab(e, _by_column(e.wrong, e))
    message = "missing_entries_where" if where else "missing_entries_part" if part else "missing_entries"
    return Cause("missing_entries", message, {**_count(e, where), "part": part})


def extra(e: Evidence) -> Cause | None:
    """A is alive where N is zero, and right elsewhere."""
    dead = e.equal(e.N, np.zeros_like(e.N))
    if not e.N.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    where = condition(e, _by_column(e.wrong, e))
    return Cause("extra_entries", "extra_entries_where" if where else "extra_entries", _count(e, where))


def conditional(e: Evidence) -> Cause | None:
    """Wrong exactly where something simple holds for an input, right elsewhere."""
    columns = _by_column(e.wrong, e)
    if not 2 <= int(columns.sum()) <= columns.size - 2:
        return None
    where = condition(e, columns)
    return Cause("conditional", "conditional", _count(e, where)) if where else None


def _count(e: Evidence, where: str) -> dict[str, object]:
    return {"wrong": int(e.wrong.sum()), "entries": int(((e.A != 0) | (e.N != 0)).sum()), "where": where}


def small(e: Evidence) -> Cause | None:
    """A tiny disagreement nearly everywhere."""
    finite = np.isfinite(e.A).all() and np.isfinite(e.N).all()
    size = float(np.abs(e.N).max(initial=0.0))
    if not finite or size == 0.0:
        return None
    largest = float(np.abs(e.A - e.N).max()) / size
    if largest > 1e-2:
        return None
    return Cause("small_systematic", "small_systematic", {"relative": f"{largest:.1e}"})


def derivative(e: Evidence) -> Cause | None:
    """The right pattern with unrelated values."""
    a, n = _alive(e.A, e), _alive(e.N, e)
    return Cause("wrong_derivative", "wrong_derivative") if bool((a == n).all()) else None


def _alive(X: Array, e: Evidence) -> Array:
    return ~e.equal(X, np.zeros_like(X))


def _by_column(wrong: Array, e: Evidence) -> Array:
    """Which elements of the input have a wrong entry."""
    return np.asarray(wrong.any(axis=0))


def slab(e: Evidence, columns: Array) -> str:
    """The part of the input with these elements, where it is a run of indices along one dimension: ``"x[:, :3]"``."""
    if e.in_shape != e.block.input_shape:
        return ""
    mask = columns.reshape(e.in_shape)
    for axis, size in enumerate(e.in_shape):
        others = tuple(d for d in range(mask.ndim) if d != axis)
        hit = np.flatnonzero(mask.all(axis=others))
        run = len(hit) > 0 and len(hit) < size and hit[-1] - hit[0] == len(hit) - 1
        if run and int(mask.sum()) * size == len(hit) * mask.size:
            index = [":"] * mask.ndim
            index[axis] = _run(int(hit[0]), int(hit[-1]) + 1, size)
            return f"{e.block.input_name}[{', '.join(index)}]"
    return ""


def _run(start: int, stop: int, size: int) -> str:
    if stop - start == 1:
        return str(start) if stop < size else "-1"
    return f"{start or ''}:{stop if stop < size else ''}"


def condition(e: Evidence, columns: Array) -> str:
    """A comparison that holds exactly at these elements of the input: ``"x < 0"``; empty when none does."""
    count = int(columns.sum())
    if not 1 <= count < columns.size:
        return ""
    return next(_matching(e, columns), "")


def _matching(e: Evidence, columns: Array) -> Iterator[str]:
    few = min(int(columns.sum()), int((~columns).sum())) < 2
    for tensor in _ordered(e):
        if tensor.values.shape != e.in_shape or tensor.values.dtype.kind not in "fib":
            continue
        name, x = tensor.name, tensor.values.reshape(-1).astype(float)
        for label, holds in ((f"{name} < 0", x < 0), (f"{name} > 0", x > 0), (f"{name} == 0", x == 0),
                             (f"{name} != 0", x != 0)):  # fmt: skip
            if bool((holds == columns).all()):
                yield label
        if not few:
            yield from _thresholds(name, x, columns)
    yield from _pairs(e, columns)


def _ordered(e: Evidence) -> list[Named]:
    return sorted(e.tensors, key=lambda t: (t.position != e.block.input or t.role != "input", t.role))


def _thresholds(name: str, x: Array, columns: Array) -> Iterator[str]:
    for label, values in ((f"|{name}|", np.abs(x)), (name, x)):
        low, high = values[columns], values[~columns]
        if low.min() > high.max():
            yield f"{label} > {_between(high.max(), low.min())}"
        elif low.max() < high.min():
            yield f"{label} < {_between(low.max(), high.min())}"


def _between(low: float, high: float) -> str:
    """The roundest number between two."""
    for digits in range(8):
        rounded = round((low + high) / 2, digits)
        if low < rounded < high:
            return f"{rounded:g}"
    return f"{(low + high) / 2:.6g}"


def _pairs(e: Evidence, columns: Array) -> Iterator[str]:
    inputs = [t for t in e.tensors if t.role == "input" and t.values.shape == e.in_shape]
    for a in inputs:
        for b in inputs:
            if a is not b and bool(((a.values < b.values).reshape(-1) == columns).all()):
                yield f"{a.name} < {b.name}"
