"""Trends: how large the gradients of each call were, what was not finite, how long it took; for very many calls.

No call is decoded for it: the copied elements of all tensors of one dtype and size are measured in one go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.recording.live_log import LiveLog, summary_of
from nbautograd.core.recording.record import CallRecord
from nbautograd.core.recording.snapshot import REPEATED, TensorSnapshot, elements, flat_elements
from nbautograd.core.values import TensorSummary

Array = np.ndarray[Any, Any]
IN, OUT = 0, 1  # sides of a call: its inputs, its outputs


@dataclass(frozen=True)
class Trends:
    """One number per call, oldest call first.

    Attributes:
        seconds: wall time inside the user's method.
        incoming, outgoing: of a backward the Euclidean norm of all gradients that it was given, and of all that it
            returned, over their finite elements; NaN for other calls and where the elements are not known. Of a large
            tensor it is estimated from a sample of the elements.
        bad: how many of the elements that were looked at, given or returned, are NaN or infinite.
        failed: 1 for a call that raised, else 0.
    """

    seconds: Array
    incoming: Array
    outgoing: Array
    bad: Array
    failed: Array

    @property
    def first_bad(self) -> int | None:
        """Position of the first call that raised or saw NaN or infinity."""
        found = np.flatnonzero((self.bad > 0) | (self.failed > 0))
        return int(found[0]) if len(found) else None


def trends(log: CallLog) -> Trends:
    """Measure every call of a log."""
    rows: Sequence[CallRecord | Call] = log.records if isinstance(log, LiveLog) else log.calls
    squares, bad = np.full((2, len(rows)), np.nan), np.zeros(len(rows))
    groups, others = _by_form(rows)
    for (dtype, shape, strides, _), (calls, sides, copies) in groups.items():
        flat = flat_elements(b"".join(copies), dtype)
        if flat is None:
            continue
        table = flat.reshape(len(copies), -1)
        once = [size if step else 1 for size, step in zip(shape, strides or (), strict=False)]  # without repeats
        if strides and math.prod(once) <= REPEATED + table.shape[1]:  # windows that overlap are not written out
            steps = [table.strides[0], *[step * flat.itemsize for step in strides]]
            spread = np.lib.stride_tricks.as_strided(table, (len(copies), *once), steps, writeable=False)
            table = spread.reshape(len(copies), -1)
        sizes, count = _measured(table)
        times = math.prod(shape or ()) / table.shape[1]
        _add(squares, bad, calls, sides, sizes * times, count if strides is None else count * times)
    for at, side, one in others:
        if isinstance(one, TensorSnapshot) and one.measured:
            one = summary_of(one)
        if isinstance(one, TensorSummary):
            size = np.nan if one.norm is None else one.norm**2
            _add(squares, bad, [at], [side], np.array([size]), np.array([(one.nan or 0) + (one.inf or 0)]))
        elif (array := elements(one)) is not None:
            _add(squares, bad, [at], [side], *_measured(array.reshape(1, -1)))
    backward = np.array([row.method == "backward" for row in rows], bool)
    norms = np.sqrt(np.where(backward, squares, np.nan))
    failed = np.array([float(row.exception is not None) for row in rows])
    return Trends(np.array([row.seconds for row in rows]), norms[IN], norms[OUT], bad, failed)


Form = tuple[Any, Any, Any, int]  # dtype, shape, strides and bytes of a tensor that was copied
Alike = tuple[list[int], list[int], list[bytes]]  # positions of the calls, sides, copies
Other = tuple[int, int, TensorSnapshot | TensorSummary]


def _by_form(rows: Sequence[CallRecord | Call]) -> tuple[dict[Form, Alike], list[Other]]:
    """Return the copied tensors of all calls by their form, and the others one by one.

    This is what takes the time with very many calls.
    """
    groups: dict[Form, Alike] = {}
    others: list[Other] = []
    for at, row in enumerate(rows):
        for side, values in ((IN, row.inputs), (OUT, row.outputs)):
            for one in values:
                if isinstance(one, TensorSnapshot):
                    data = one.data
                    if type(data) is bytes and data:
                        form = (one.dtype, one.shape, one.strides, len(data))
                        group = groups.get(form)
                        if group is None:
                            group = groups[form] = ([], [], [])
                        group[0].append(at)
                        group[1].append(side)
                        group[2].append(data)
                    else:
                        others.append((at, side, one))
                elif (summary := getattr(one, "tensor", None)) is not None:
                    others.append((at, side, summary))
    return groups, others


def _measured(rows: Array) -> tuple[Array, Array]:
    sizes = np.abs(rows).astype(np.float64)
    finite = np.isfinite(sizes)
    squares = np.square(np.where(finite, sizes, 0.0)).sum(1)
    return np.where(finite.any(1), squares, np.nan), (~finite).sum(1)


def _add(squares: Array, bad: Array, calls: Sequence[int], sides: Sequence[int], sizes: Array, count: Array) -> None:
    np.add.at(bad, np.array(calls), count)
    known = ~np.isnan(sizes)
    at = np.array(sides)[known], np.array(calls)[known]
    squares[at] = np.nan_to_num(squares[at])
    np.add.at(squares, at, sizes[known])
