"""Gradient buffers that a backward keeps and writes into again: told from the records of several calls."""

from __future__ import annotations

from collections.abc import Iterable

from nbautograd.core.recording.snapshot import VERSION
from nbautograd.core.recording.state import INDEX, METHOD, NOTICED, OUTPUTS, SUBJECT, Packed

Reuse = tuple[int, int]  # position of the gradient, and the index of the call that returned the same tensor before


def again(among: Iterable[Packed]) -> dict[int, tuple[Reuse, ...]]:
    """By the index of a backward: which of its gradients are tensors that an earlier one returned, written since.

    A tensor that somebody held all the time keeps its ``id``, and a write moves its version.
    """
    before: dict[tuple[int, int], tuple[int, int]] = {}  # subject and id of a tensor -> version, and who returned it
    found: dict[int, tuple[Reuse, ...]] = {}
    for call in among:
        held = {one[1] for one in call[NOTICED] if one[0] == "held"} if call[METHOD] == "backward" else ()
        for i in held:
            one = call[OUTPUTS][i]
            version, earlier = before.get((call[SUBJECT], one[-1]), (None, None))
            if version is not None and earlier is not None and (one[VERSION] or 0) > version:
                found[call[INDEX]] = (*found.get(call[INDEX], ()), (i, earlier))
            before[call[SUBJECT], one[-1]] = one[VERSION] or 0, call[INDEX]
    return found
