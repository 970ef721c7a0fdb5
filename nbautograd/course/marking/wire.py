"""What the judge and a child say to each other: JSON, with the bytes of tensors behind it. Never pickle.

A frame is two lengths, a header in JSON, and the bytes that the header points into. The judge reads frames that hostile
code may have written: every length is bounded, and what does not fit is a ``WireError``.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_HEADER = 4 << 20  # bytes; a call with a thousand numbers as arguments takes 20 kB
MOST_BYTES = 64 << 20  # of tensors in one frame; the course's largest exercise sends 2 MB
_LENGTHS = struct.Struct("<IQ")
_DTYPES = {
    str(dtype)[6:]: dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}


class WireError(Exception):
    """A frame that cannot be read."""


class CannotCrossError(BaseException):
    """A value that JSON and bytes cannot carry, such as a function; no check catches it as a failure of the answer."""


class Foreign:
    """Stands for a value that stayed in the child; its type has the same name."""


def encode(value: Any, blob: bytearray, other: Callable[[Any], Any] | None = None) -> Any:
    """Return a value as JSON, and append the bytes of its tensors.

    Args:
        value: None, a number, a text, a tensor, an array, a dtype, or a tuple, list or dictionary of these.
        blob: gets the bytes.
        other: makes JSON of anything else.

    Raises:
        CannotCrossError: for anything else, without ``other``.
    """
    if value is None or isinstance(value, str) or type(value) in (bool, int, float):
        return value
    if isinstance(value, Tensor) and value.layout is torch.strided and str(value.dtype)[6:] in _DTYPES:
        return {"tensor": _bytes_of(value.detach(), blob)}
    if isinstance(value, np.ndarray) and str(value.dtype) in _DTYPES:
        return {"array": _bytes_of(torch.from_numpy(np.ascontiguousarray(value)), blob)}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__ if type(value) is list else "tuple": [encode(v, blob, other) for v in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(v, blob, other) for key, v in value.items()}}
    if isinstance(value, (torch.dtype, complex)):
        return {type(value).__name__: str(value)}
    if value is ...:
        return {"ellipsis": None}
    if isinstance(value, np.generic):
        return encode(value.item(), blob, other)
    if other is None:
        raise CannotCrossError(type(value).__name__)
    return other(value)


def decode(coded: Any, blob: bytes) -> Any:
    """Return what ``encode`` was given; a value that did not cross is a ``Foreign`` of the same type's name.

    Raises:
        WireError: for anything that ``encode`` does not write.
    """
    if not isinstance(coded, dict):
        if coded is None or isinstance(coded, (str, bool, int, float)):
            return coded
        raise WireError("list without a kind")
    held: Any
    kind, held = next(iter(coded.items())) if len(coded) == 1 else ("", None)
    try:
        if kind in ("tensor", "array"):
            tensor = _tensor_of(held, blob)
            return tensor if kind == "tensor" else tensor.numpy()
        if kind in ("tuple", "list"):
            return (tuple if kind == "tuple" else list)(decode(v, blob) for v in held)
        if kind == "dict":
            return {str(key): decode(v, blob) for key, v in held.items()}
        if kind in ("dtype", "complex"):
            return getattr(torch, held[6:]) if kind == "dtype" and held[6:] in _DTYPES else complex(held)
        if kind == "ellipsis":
            return ...
        if kind == "foreign":
            return type(str(held)[:80], (Foreign,), {})()
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        raise WireError(f"{kind}: {error}") from None
    raise WireError(f"no kind of value: {kind}")


def _bytes_of(tensor: Tensor, blob: bytearray) -> list[Any]:
    """Append the bytes; an expanded or transposed tensor arrives laid out as it was."""
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.untyped_storage().nbytes() > 4 * tensor.nbytes + 64:  # a view of much more
        tensor = tensor.contiguous().clone()
    with torch.no_grad():
        storage, start = tensor.untyped_storage(), len(blob)
        blob += bytes(torch.empty(0, dtype=torch.uint8).set_(storage).numpy()) if storage.nbytes() else b""
    layout = [list(tensor.shape), list(tensor.stride()), tensor.storage_offset()]
    return [str(tensor.dtype)[6:], *layout, start, storage.nbytes()]


def _tensor_of(coded: Any, blob: bytes) -> Tensor:
    name, shape, stride, offset, start, size = coded
    if not 0 <= start <= start + size <= len(blob):
        raise WireError("bytes that are not there")
    storage = torch.frombuffer(bytearray(blob[start : start + size]), dtype=torch.uint8) if size else torch.empty(0)
    # set_ would grow a storage that is too small; as_strided of all its elements refuses
    whole = torch.empty(0, dtype=_DTYPES[name])
    whole = whole.set_(storage.untyped_storage(), 0, (size // whole.itemsize,), (1,)) if size else whole
    return whole.as_strided(shape, stride, offset)


def send(channel: socket.socket, header: Any, blob: bytes | bytearray = b"") -> None:
    """Send a frame."""
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    channel.sendall(_LENGTHS.pack(len(text), len(blob)) + text + blob)


def receive(channel: socket.socket, seconds: float | None = None) -> tuple[Any, bytes]:
    """Receive a frame.

    Args:
        channel: to read from.
        seconds: the most that it may take until all of it is there; None waits.

    Raises:
        TimeoutError: when it takes longer.
        EOFError: when the other side has gone.
        WireError: for a frame that is too long, or no JSON.
    """
    end = None if seconds is None else time.monotonic() + seconds
    header, size = _LENGTHS.unpack(_exactly(channel, _LENGTHS.size, end))
    if header > MOST_HEADER or size > MOST_BYTES:
        raise WireError("too long")
    text, blob = _exactly(channel, header, end), _exactly(channel, size, end)
    try:
        return json.loads(text), blob
    except (ValueError, RecursionError) as error:
        raise WireError(str(error)) from None


def _exactly(channel: socket.socket, count: int, end: float | None) -> bytes:
    held = bytearray()
    while len(held) < count:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        channel.settimeout(left)
        try:
            part = channel.recv(min(count - len(held), 1 << 20))
        except ConnectionError:
            raise EOFError from None
        if not part:
            raise EOFError
        held += part
    return bytes(held)
