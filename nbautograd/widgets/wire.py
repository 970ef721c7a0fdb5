"""Wire format: the weight of a state there, and large ones deflated."""

from __future__ import annotations

import base64
import json
import os
import zlib
from typing import Any

from nbautograd.widgets.keeping import FREEZING

LARGE = 100_000  # bytes from which on a state or an answer is deflated
LEVEL = 6  # of zlib: three times as quick as the highest, a twentieth heavier


def weight(state: Any) -> int:
    """Count the bytes of a part of the state as it is: JSON, and its arrays beside it.

    Example:
        >>> from nbautograd.widgets.wire import weight
        >>> weight({"a": [1, 2], "b": b"1234"})
        28
    """
    buffers: list[int] = []

    def beside(part: Any) -> None:
        buffers.append(len(part))

    return len(json.dumps(state, default=beside)) + sum(buffers)


def packed(state: Any) -> bytes:
    """A state deflated, its arrays in base64: ``JSON.parse`` of the inflated text gives it back.

    Example:
        >>> import json, zlib
        >>> from nbautograd.widgets.wire import packed
        >>> json.loads(zlib.decompress(packed({"a": b"1"})))
        {'a': {'$b64': 'MQ=='}}
    """
    text = json.dumps(state, default=lambda part: {"$b64": base64.b64encode(part).decode()})
    return zlib.compress(text.encode(), LEVEL)


def sent(state: dict[str, Any], _widget: Any = None) -> dict[str, Any]:
    """The state as it is sent and stored: a large one deflated, for a page that is connected to a kernel."""
    if os.environ.get(FREEZING) or weight(state) < LARGE:
        return state
    return {"packed": packed(state)}
