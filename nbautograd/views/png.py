"""A PNG with a palette, from an array of colour indices: what large heat maps are made of."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np


def png(indices: np.ndarray[Any, Any], colours: Sequence[str]) -> bytes:
    """Encode an (h, w) array of indices into at most 256 hex colours."""
    h, w = indices.shape
    rows = np.zeros((h, w + 1), np.uint8)  # a leading 0 per row: no filter
    rows[:, 1:] = indices
    table = b"".join(bytes.fromhex(c[1:]) for c in colours)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", table),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        )
    )


def png_uri(indices: np.ndarray[Any, Any], colours: Sequence[str]) -> str:
    """Return the same as a ``data:`` address."""
    return "data:image/png;base64," + base64.b64encode(png(indices, colours)).decode("ascii")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
