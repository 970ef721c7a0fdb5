"""Parts of the page's state that several views share: arrays, tensors, values, findings, source lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbautograd.core.user_source import FunctionSource

_UNSENT = ("thumbnail", "type", "values", "requires_grad", "sampled")
_NOTHING = (None, "")
SOURCE_LIMIT = 40_000  # characters of source that are sent


def inline(state: Any) -> Any:
    """The same state with its arrays as lists of numbers, for an answer, whose parts cannot be buffers.

    Example:
        >>> from nbautograd.views.to_json import array
        >>> from nbautograd.widgets.parts import inline
        >>> inline(array([1.0, float("inf")]))["values"]
        [1.0, 'Infinity']
    """
    if isinstance(state, list):
        return [inline(part) for part in state]
    if not isinstance(state, dict):
        return state
    if "buffer" in state:
        numbers = np.frombuffer(state["buffer"], np.dtype(state["dtype"]).newbyteorder("<")).tolist()
        words = [x if np.isfinite(x) else f"{x}".replace("inf", "Infinity") for x in numbers]
        return {"dtype": state["dtype"], "shape": state["shape"], "values": words}
    return {name: inline(part) for name, part in state.items()}


def weight(state: Any) -> int:
    """About how many bytes a part of the state takes on its way."""
    if isinstance(state, dict):
        return sum(len(name) + 4 + weight(part) for name, part in state.items())
    if isinstance(state, (list, tuple)):
        return sum(map(weight, state))
    return len(state) if isinstance(state, (str, bytes)) else 8


def source(text: FunctionSource | None) -> dict[str, Any] | None:
    """The source of the class, or None."""
    if text is None or not text.text:
        return None
    return {"text": text.text[:SOURCE_LIMIT], "first_line": text.first_line, "lines": dict(text.lines)}
