"""From what the ring holds to a Recorded with names, when somebody looks."""

from __future__ import annotations

import math
from typing import Any

from nbautograd.core.recording.short import lengthened
from nbautograd.core.recording.snapshot import Raw, named
from nbautograd.core.recording.state import KEPT, NOTICED, Packed, RawCtx, Recorded


def unpacked(packed: Packed, set_up: Packed | None = None) -> Recorded:
    """A packed record with its fields named; set_up is the setup_context call of this forward, if there was one."""
    recorded = Recorded(*lengthened(packed))
    set_up = None if set_up is None else lengthened(set_up)
    places: dict[int, str] = {}
    if recorded.method == "setup_context":
        places = _setup_places(recorded)
    inputs, inputs_same = _met(recorded.inputs, places, "input")
    outputs, outputs_same = _met(recorded.outputs, places, "output")
    kept = None
    if recorded.kept is not None:
        kept = _ctx(recorded.kept, places, inputs)
    elif set_up is not None and set_up[KEPT] is not None:
        kept = unpacked(set_up).kept
    return recorded._replace(
        inputs=inputs,
        outputs=outputs,
        kept=kept,
        inputs_same=inputs_same,
        outputs_same=outputs_same,
        noticed_in_setup=set_up[NOTICED] if set_up is not None else (),
    )


def _setup_places(recorded: Recorded) -> dict[int, str]:
    """setup_context gets forward's inputs, then its outputs: say so of what it keeps."""
    split = recorded.run
    places: dict[int, str] = {}
    for i, one in enumerate(recorded.inputs):
        if key := _key(one):
            places.setdefault(key, f"input {i}" if i < split else f"output {i - split}")
    return places


def _key(one: Raw) -> int:
    return int(one[-1]) if len(one) > 2 else 0


def _met(raws: tuple[Raw, ...], places: dict[int, str], kind: str) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Raw values with their fields named, and for each the place where the same tensor was met before; places grows."""
    same = []
    for i, one in enumerate(raws):
        here = f"{kind} {i}"
        place = places.setdefault(key, here) if (key := _key(one)) else here
        same.append("" if place == here else place)
    return tuple(map(named, raws)), tuple(same)


_NO_MORE: tuple[Any, ...] = ((), (), None, (), (), ())


def _ctx(kept: tuple[Any, ...], places: dict[int, str], inputs: tuple[Any, ...]) -> RawCtx:
    saved, names, attributes, needs, dirty, marked, held = kept if len(kept) > 1 else (*kept, *_NO_MORE)
    sizes: dict[int, int] = {}
    for storage, size in zip(held[::2], held[1::2], strict=True):
        sizes[storage] = max(sizes.get(storage, 0), size)
    if not held:  # at level "shapes": each saved tensor counts once
        sizes = {_key(one): math.prod(one[1]) * one[2].itemsize for one in saved if _key(one) and -1 not in one[1]}
    if needs is None:
        needs = tuple(getattr(one, "requires_grad", False) for one in inputs)
    return RawCtx(
        tuple(map(named, saved)),
        tuple(places.get(_key(one), "") for one in saved),
        names,
        tuple(map(named, attributes)),
        tuple(places.get(_key(one), "") for one in attributes),
        needs,
        tuple(places.get(key, "?") for key in dirty),
        tuple(places.get(key, "?") for key in marked),
        sum(sizes.values()),
    )
