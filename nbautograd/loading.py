"""Words while torch and this package are imported: a kernel that has done neither takes seconds."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Iterator

from nbautograd.core.this_thread import start_thread
from nbautograd.messages import text

PAUSE = 0.5  # seconds; an import may hold Python's lock for half a second more


@contextlib.contextmanager
def seconds_shown() -> Iterator[None]:
    """Say below the cell that it loads, and for how many seconds; nothing is left of that afterwards."""
    from IPython.display import display

    begun, end = time.monotonic(), threading.Event()

    def said() -> dict[str, str]:
        return {"text/plain": text("magics.loading", seconds=f"{time.monotonic() - begun:.1f}")}

    def count() -> None:
        while not end.wait(PAUSE):
            shown.update(said(), raw=True)

    shown = display(said(), raw=True, display_id=True)
    # ipykernel 7.0 knows by the context which cell an output belongs to; a thread has an empty one
    thread = start_thread("loading", contextvars.copy_context().run, count)
    try:
        yield
    finally:
        end.set()
        if thread is not None:
            thread.join()
        shown.update({"text/plain": ""}, raw=True)
