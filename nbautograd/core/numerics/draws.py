"""One stream of random numbers for all that a check draws: each draw is named, and its name makes its seed.

Two draws of one name are the same numbers, two of different names share none: nobody has to know what others add to a
seed. Names that are hashed are also independent of the order in which the draws are made.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch


def child(seed: int, *names: str | int) -> int:
    """Return the seed of what is drawn under these names: 32 bits, as many as torch's and NumPy's generators take.

    Example:
        >>> from nbautograd.core.numerics.draws import child
        >>> child(0, "near", 1) == child(0, "near", 1), child(0, "near", 1) == child(0, "near", 2)
        (True, False)
    """
    return int.from_bytes(hashlib.blake2b(repr((seed, *names)).encode(), digest_size=4).digest(), "little")


def generator(seed: int, *names: str | int) -> torch.Generator:
    """Return a generator of torch for what is drawn under these names."""
    return torch.Generator().manual_seed(child(seed, *names))


def array_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return a generator of NumPy for what is drawn under these names."""
    return np.random.default_rng(child(seed, *names))
