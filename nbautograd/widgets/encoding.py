"""Encoding of states and answers: arrays as buffers or as numbers, large ones deflated."""

from __future__ import annotations

import base64
import json
import os
import zlib
from typing import Any

import numpy as np

from nbautograd.widgets.keeping import FREEZING

LARGE = 100_000  # bytes from which on a state or an answer is deflated
LEVEL = 6  # of zlib: three times as quick as the highest, a twentieth heavier


def encoded_size(state: Any) -> int:
    """Count the bytes of a part of the state as it is: JSON, and its arrays beside it.

    Example:
        >>> from nbautograd.widgets.encoding import encoded_size
        >>> encoded_size({"a": [1, 2], "b": b"1234"})
        28
    """
    buffers: list[int] = []

    def beside(part: Any) -> None:
        buffers.append(len(part))

    return len(json.dumps(state, default=beside)) + sum(buffers)


def deflate(state: Any) -> bytes:
    """A state deflated, its arrays in base64: ``JSON.parse`` of the inflated text gives it back.

    Example:
        >>> import json, zlib
        >>> from nbautograd.widgets.encoding import deflate
        >>> json.loads(zlib.decompress(deflate({"a": b"1"})))
        {'a': {'$b64': 'MQ=='}}
    """
    text = json.dumps(state, default=lambda part: {"$b64": base64.b64encode(part).decode()})
    return zlib.compress(text.encode(), LEVEL)


def encode(state: dict[str, Any], _widget: Any = None) -> dict[str, Any]:
    """The state as it is sent and stored: a large one deflated, for a page that is connected to a kernel."""
    if os.environ.get(FREEZING) or encoded_size(state) < LARGE:
        return state
    return {"packed": deflate(state)}


def inline(state: Any) -> Any:
    """Return a state with its arrays as lists of numbers, for an answer, whose parts cannot be buffers.

    Example:
        >>> from nbautograd.views.to_json import array
        >>> from nbautograd.widgets.encoding import inline
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
