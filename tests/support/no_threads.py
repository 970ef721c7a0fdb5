"""A pytest plug-in that has no thread and no copy of the process begin, as in a browser: ``-p no_threads``.

torch's own threads are none of Python's, and are not stopped; a browser's torch has none.
"""

import os
import threading


def refuse(*_: object, **__: object) -> None:
    """Say what CPython says where the system has no threads."""
    raise RuntimeError("can't start new thread")


def pytest_configure() -> None:
    """Take them away, where this is a plug-in; whoever only reads this file keeps them."""
    threading.Thread.start = refuse  # type: ignore[method-assign]
    for name in ("fork", "forkpty"):
        if hasattr(os, name):
            delattr(os, name)
