"""Elements of tensors on other devices: gathered there, copied without stopping the stream, waited for when read.

Off unless ``NBAUTOGRAD_DEVICE_VALUES=1``: no machine with such a device has tried it (see docs/compatibility.md).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.display import Phrase
from nbautograd.core.torch_private import tensors as private

_WHOLE = 4096  # bytes of a tensor that are copied whole at level "summary"
_SAMPLE = 512  # elements of a larger one

enabled = os.environ.get("NBAUTOGRAD_DEVICE_VALUES") == "1"

Copied = tuple["PendingCopy | None", "tuple[int, ...] | None", "Phrase | None"]  # data, strides, reason


@dataclass(slots=True, eq=False)
class PendingCopy:
    """A copy from a device to memory of the host, which may still be under way.

    Attributes:
        host: where the elements arrive, in row-major order.
        event: reached by the device once they have arrived; None where the copy was waited for.
    """

    host: torch.Tensor
    event: Any

    def __len__(self) -> int:
        return self.host.nbytes

    def wait(self) -> bytes:
        """Return the elements as bytes once they have arrived."""
        if self.event is not None:
            self.event.synchronize()
        with torch.no_grad():
            flat = self.host.flatten()
            data: bytes = (flat if flat.dtype == torch.uint8 else flat.view(torch.uint8)).numpy().tobytes()
        return data


def copied(tensor: torch.Tensor, sample: bool) -> Copied:
    """Start to copy the elements of a tensor from its device.

    Args:
        tensor: a strided tensor on any device.
        sample: True when 512 elements of a large one will do.

    Returns:
        The copy, its strides (None for a sample), and why there is none.
    """
    kind = tensor.device.type
    if not enabled or private.only_kernels is None:
        return None, None, Phrase("recording.missing.device", device=kind)
    if _capturing(kind):
        return None, None, Phrase("recording.missing.capture")
    try:
        with private.only_kernels():
            try:
                whole = tensor.as_strided(tensor.shape, tensor.stride())
            except NotImplementedError:
                raise
            except RuntimeError:  # "... are out of bounds for storage of size ..."
                return None, None, Phrase("recording.missing.storage")
            small = tensor.nbytes <= _WHOLE or not sample
            part = whole.contiguous() if small else _sampled(whole)
            host = torch.empty(part.shape, dtype=part.dtype, device="cpu", pin_memory=kind == "cuda")
            host.copy_(part, non_blocking=kind != "cpu")
            event = _event(kind)
        return PendingCopy(host, event), () if small else None, None
    except (RuntimeError, NotImplementedError):
        return None, None, Phrase("recording.missing.device", device=kind)


def _sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Gather elements evenly spread over a large tensor, in row-major order."""
    at = torch.arange(_SAMPLE, device=tensor.device) * ((tensor.numel() - 1) // (_SAMPLE - 1))
    offset = torch.zeros_like(at)
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        offset += at % size * stride
        at = at // size
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((span,), (1,)).index_select(0, offset)


def _capturing(kind: str) -> bool:
    """Return True while a CUDA graph is captured: a copy would become part of it."""
    return kind == "cuda" and torch.cuda.is_current_stream_capturing()


def _event(kind: str) -> Any:
    """Return an event on the current stream, None where the device has no such thing and the copy was waited for."""
    module = getattr(torch, kind, None)
    if kind == "cpu" or not hasattr(module, "Event"):
        return None
    event = module.Event()  # type: ignore[union-attr]
    event.record()
    return event
