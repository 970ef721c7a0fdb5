"""Errors that nbautograd's own code seems to raise, for tests of what then becomes of an answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbautograd

HOME = Path(nbautograd.__file__).parent


def broken(place: str = "core/injected.py", error: str = "AttributeError('renamed')") -> Callable[..., Any]:
    """Return a function that raises as a line of the package's own would."""
    names: dict[str, Any] = {}
    exec(compile(f"def broken(*args, **kwargs):\n    raise {error}", str(HOME / place), "exec"), names)
    function: Callable[..., Any] = names["broken"]
    return function
