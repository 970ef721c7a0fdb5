"""Short records: a call that looked like an earlier one is written down as what differs, and lengthened when read.

Nothing in a short record is more than a plain thing. It begins as a Recorded does, up to its weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nbautograd.core.recording.snapshot import DATA, NODE, VERSION, Raw, RawTensor
from nbautograd.core.recording.state import METHOD, WEIGHT, Packed, begun

# thread, seconds, cell; a Head; a Taken (of setup_context: where among the values of its forward each saved one is, and
# the record of that); and what ``beside_saved`` gives of ctx, None where ctx was not looked at
THREAD, SECONDS, CELL, HEAD, TAKEN, ON_CTX = range(WEIGHT + 1, WEIGHT + 7)
LENGTH = ON_CTX + 1
ABSENT, OTHER = -1, -2  # None, and another plain value
_NONE: Raw = ("NoneType", "None")
_FIELDS = len(RawTensor._fields)

# how many values the call was given and gave; for each of them, and then for each that it saved, which tensor it is
# (or ABSENT, OTHER); for each tensor its description without version, bytes and id, and how many bytes were copied; and
# whether all that it saved was given or returned
Told = tuple[int, int, tuple[int, ...], tuple[Raw, ...], tuple[int, ...], bool]


def is_short(packed: Packed) -> bool:
    """Is a record a short one?"""
    return len(packed) == LENGTH


def lengthened(packed: Packed) -> Packed:
    """The whole record of a short one; others as they are."""
    if not is_short(packed):
        return packed
    parent, *more = begun(packed[HEAD])
    common = *packed[: THREAD + 1], parent, packed[SECONDS], packed[CELL], *more
    if packed[METHOD] == "setup_context":
        places, forward = packed[TAKEN]
        values = tuple(_values(forward[TAKEN]))
        saved = tuple(_NONE if at < 0 else values[at] for at in places)
        return *common, values, (), (), _kept(saved, packed[ON_CTX]), "", None, ()
    values, (given, gave, *_) = tuple(_values(packed[TAKEN])), packed[TAKEN][0]
    outputs, saved = values[given : given + gave], values[given + gave :]
    return *common, values[:given], outputs, (), _kept(saved, packed[ON_CTX]), "", None, ()


def _values(taken: Any) -> Iterator[Raw]:
    (_, _, slots, templates, *_), _, _, *facts = taken
    tensors, plain = tuple(_tensors(taken)), iter(facts[len(templates) :])
    for slot in slots:
        if slot >= 0:
            yield tensors[slot]
        elif slot == ABSENT:
            yield _NONE
        else:
            value = next(plain)
            yield type(value).__name__, value


def _tensors(taken: Any) -> Iterator[Raw]:
    """Their keys tell them apart in this record, as their ids did."""
    (_, _, _, templates, sizes, _), _, data, *facts = taken
    at = 0
    for key, (one, version, size) in enumerate(zip(templates, facts, sizes, strict=False), 1):
        if len(one) < _FIELDS:
            yield (*one[:VERSION], version, key)
        else:
            yield (*one[:VERSION], version, one[NODE], data[at : at + size], *one[DATA + 1 : -1], key)
        at += size


def _kept(saved: tuple[Raw, ...], on_ctx: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    if not on_ctx:
        return None if on_ctx is None else (saved,)
    names, attributes, needs, held = on_ctx
    return saved, names, attributes, needs, (), (), held
