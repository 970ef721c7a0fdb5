"""Describing all values of a call: each object once, and which value is which other."""

from __future__ import annotations

from typing import Any

import torch

from nbautograd.core.recording.snapshot import PLAIN_TYPES, Raw, raw

Seen = dict[int, tuple[str, Raw]]  # id of a tensor met in this call -> where, and its description

_PLACES = {kind: tuple(f"{kind} {i}" for i in range(32)) for kind in ("input", "output")}
_TENSOR, _DATA, _VERSION = 10, 7, 5  # length of a raw tensor, and places in it


def describe(
    values: tuple[Any, ...], kind: str, level: int, seen: Seen, moved: tuple[int, ...] = ()
) -> tuple[tuple[Raw, ...], tuple[str, ...], int]:
    """Describe values in order; one that was met before in this call keeps its description and says which it is.

    Args:
        values: what to describe.
        kind: ``"input"`` or ``"output"``: what later values are said to be identical with.
        level: how much to keep.
        seen: what this call has met; grows.
        moved: positions of inputs that were changed in place, whose old description no longer holds.

    Returns:
        The descriptions, per value the place of the one it is identical with (or empty), and their bytes.
    """
    places, size = _PLACES[kind], 0
    described, same = [], []
    for position, value in enumerate(values):
        size += 250
        if type(value) not in PLAIN_TYPES and not isinstance(value, torch.Tensor):
            described.append(raw(value, level))
            same.append("")
            continue
        key, place = id(value), places[position] if position < 32 else f"{kind} {position}"
        before = seen.get(key)
        if before is None or (moved and before[0] in [f"input {i}" for i in moved]):
            one = raw(value, level)
            same.append("" if before is None else before[0])
            if before is None:
                seen[key] = (place, one)
            if one[_DATA]:
                size += len(one[_DATA])
        else:
            one = before[1]
            same.append(before[0] if before[0] != place else "")
        described.append(one)
    return tuple(described), tuple(same), size


def changed(args: tuple[Any, ...], inputs: tuple[Raw, ...]) -> tuple[int, ...]:
    """Positions of the inputs whose version counter moved while the method ran."""
    skipped = len(args) - len(inputs)
    if skipped not in (0, 1) or (len(args) == 2 and type(args[1]) is list):
        return ()
    found: tuple[int, ...] = ()
    for i, before in enumerate(inputs):
        if len(before) == _TENSOR and before[_VERSION] is not None and args[i + skipped]._version != before[_VERSION]:
            found += (i,)
    return found
