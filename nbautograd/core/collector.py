"""Pausing Python's garbage collector while many small objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector inside the block; afterwards it is as it was.

    Making tens of thousands of objects that all live on sets the collector off again and again, and each time it
    looks through everything that torch has loaded: more than half of the time of drawing a large graph.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
