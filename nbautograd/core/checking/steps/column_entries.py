"""Which entries of a block belong to which direction of its differences."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.numerics.arrays import Array


def counts(raw: FirstPass, chosen: Array) -> Array:
    """Count the chosen entries, a boolean array like the stored matrices, of each direction."""
    return np.array([int(_own(raw, chosen, group).sum()) for group in raw.directions.groups], dtype=int)


def entries_of(raw: FirstPass, chosen: Array, number: int) -> Array:
    """The chosen entries of one direction as (block, row, column)."""
    group = raw.directions.groups[number]
    entries = np.argwhere(_own(raw, chosen, group))
    entries[:, 2] = group[entries[:, 2]]
    return entries


def _own(raw: FirstPass, chosen: Array, group: Array) -> Array:
    """The chosen entries that belong to the columns of one direction."""
    mine = chosen[:, :, group]
    return mine if raw.pattern is None or len(group) == 1 else mine & raw.pattern[None][:, :, group]
