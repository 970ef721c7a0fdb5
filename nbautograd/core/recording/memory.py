"""Copy the elements of tensors while a Function runs: no operation that anybody notices, no load that can fail.

A load from an address that is not there ends the process; a system call that copies from it answers EFAULT. So the
kernel copies: ``process_vm_readv`` on our own process (Linux), else ``write`` into a pipe of our own (macOS, sandboxes
that forbid the former), else nothing is read and the report says so. Both go through ``ctypes.PyDLL``, which keeps the
GIL: letting go of it would let other threads run between two reads. All tensors of a method are read in one call.

Elements on other devices are gathered there, copied without stopping the stream, and waited for when somebody reads
them; this is off unless ``NBAUTOGRAD_DEVICE_VALUES=1`` (see docs/evidence/compatibility.md).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from nbautograd.core.display import Phrase
from nbautograd.core.torch_private import tensors as private

WHOLE = 4096  # bytes of a tensor that are kept whole at level "summary"
_MOST_NUMBERS = 2 * 1024  # that describe the spans of one system call: twice IOV_MAX of Linux and macOS
_BUFFER = 64 * 1024  # bytes; what is larger gets a buffer of its own
_PIPE_PIECE = 4096  # bytes written at once: an empty pipe takes them on every system

Spans = list[int]  # address and number of bytes of each piece by turns, as in an array of struct iovec


class VirtualMemory:
    """``process_vm_readv`` (Linux); see its manual page.

    Attributes:
        name: for reports.
    """

    name = "process_vm_readv"

    def __init__(self) -> None:
        self._call = ctypes.PyDLL(None).process_vm_readv
        self._call.restype = ctypes.c_ssize_t
        self._spare: list[_Buffers] = []  # list.pop and list.append are atomic: no lock
        self._own_process()
        os.register_at_fork(after_in_child=self._own_process)

    def _own_process(self) -> None:
        self._process = ctypes.c_int(os.getpid())

    def copy(self, spans: Spans, total: int) -> bytes | None:
        """Return the spans one after the other; None when any of them is not there."""
        if len(spans) > _MOST_NUMBERS:
            first = sum(spans[1:_MOST_NUMBERS:2])
            halves = self.copy(spans[:_MOST_NUMBERS], first), self.copy(spans[_MOST_NUMBERS:], total - first)
            return None if None in halves else b"".join(halves)  # type: ignore[arg-type]
        # Taken out while in use: a signal handler or a finalizer may record a call in the middle of this one.
        try:
            buffers = self._spare.pop() if total <= _BUFFER else _Buffers(total)
        except IndexError:
            buffers = _Buffers(_BUFFER)
        buffers.spans[: len(spans)] = spans
        count = _number(len(spans) // 2)
        done = self._call(self._process, buffers.target, _ONE, buffers.spans, count, _NO_FLAGS)
        copied = buffers.data[:total] if done == total else None
        if total <= _BUFFER:
            self._spare.append(buffers)
        return copied


class _Buffers:
    """Memory that a call hands to the system: room for the copy, and lists of where it goes and comes from."""

    def __init__(self, size: int) -> None:
        self.data: Any = (ctypes.c_char * size)()
        self.target = (ctypes.c_size_t * 2)(ctypes.addressof(self.data), size)
        self.spans: Any = (ctypes.c_size_t * _MOST_NUMBERS)()


_number = cache(ctypes.c_ulong)  # objects of ctypes already: to have numbers converted takes as long as half the call
_ONE, _NO_FLAGS = _number(1), _number(0)


class Pipe:
    """``write`` into a pipe, and ``read`` from it: POSIX, where there is no ``process_vm_readv``."""

    name = "pipe"

    def __init__(self) -> None:
        library = ctypes.PyDLL(None, use_errno=True)
        self._write, self._read = library.write, library.read
        for call in (self._write, self._read):
            call.restype = ctypes.c_ssize_t
            call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
        self._spare = [_Ends()]  # taken out while in use, by another thread or around a signal handler: no lock
        os.register_at_fork(after_in_child=self._own_pipe)  # the parent's pipe carries the parent's bytes

    def _own_pipe(self) -> None:
        for ends in self._spare:
            ends.close()
        self._spare = [_Ends()]

    def copy(self, spans: Spans, total: int) -> bytes | None:
        """Return the spans one after the other; None when any of them is not there."""
        spare = self._spare
        try:
            ends = spare.pop()
        except IndexError:
            return None
        try:
            target: Any = (ctypes.c_char * total)()
            address, done = ctypes.addressof(target), 0
            for start, count in zip(spans[::2], spans[1::2], strict=True):
                for at in range(0, count, _PIPE_PIECE):
                    size = min(_PIPE_PIECE, count - at)
                    if not ends.are_ours():  # looked at before each piece: bytes of tensors were in files of the user's
                        ends = _Ends()
                    sent = self._write(ends.into, start + at, size)
                    if sent > 0 and self._read(ends.out, address + done, sent) != sent:
                        return None
                    if sent != size:
                        return None
                    done += size
            return bytes(target[:])
        finally:
            spare.append(ends)


class _Ends:
    """A pipe of our own, as long as its numbers are: what closes every descriptor, as a daemon does, frees them."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        os.set_blocking(self.into, False)
        os.set_blocking(self.out, False)
        self._inode = os.fstat(self.into).st_ino, os.fstat(self.out).st_ino

    def are_ours(self) -> bool:
        try:
            now = os.fstat(self.into), os.fstat(self.out)
        except OSError:
            return False
        return tuple(one.st_ino for one in now) == self._inode and all(stat.S_ISFIFO(one.st_mode) for one in now)

    def close(self) -> None:
        if self.are_ours():
            os.close(self.into)
            os.close(self.out)


def works(copier: VirtualMemory | Pipe) -> bool:
    """Return True if a copier copies readable memory and refuses the rest."""
    numbers = np.arange(64, dtype=np.int64)
    half = numbers.nbytes // 2
    spans = [numbers.ctypes.data, half, numbers.ctypes.data + half, half]
    page_zero = [16, 8]  # mapped in no process
    return copier.copy(spans, numbers.nbytes) == numbers.tobytes() and copier.copy(page_zero, 8) is None


off = os.environ.get("NBAUTOGRAD_VALUES") == "0"  # for sandboxes that end a process at a system call of ours


@cache
def copier() -> VirtualMemory | Pipe | None:
    """Return the first way to copy memory that works here, None when none does."""
    if off:
        return None
    for kind in (VirtualMemory, Pipe):
        with contextlib.suppress(AttributeError, OSError, TypeError, ValueError):  # no such call in this system
            candidate: VirtualMemory | Pipe = kind()
            if works(candidate):
                return candidate
    return None


device_values = os.environ.get("NBAUTOGRAD_DEVICE_VALUES") == "1"  # off: no machine with such a device has tried it
_SAMPLE = 512  # elements of a large tensor on a device

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


def copied_from_device(tensor: torch.Tensor, sample: bool) -> Copied:
    """Start to copy the elements of a tensor from its device.

    Returns:
        The copy, its strides (None for a sample), and why there is none.
    """
    kind = tensor.device.type
    if not device_values or private.only_kernels is None:
        return None, None, Phrase("recording.missing.device", device=kind)
    if kind == "cuda" and torch.cuda.is_current_stream_capturing():
        return None, None, Phrase("recording.missing.capture")
    try:
        with private.only_kernels():
            try:
                whole = tensor.as_strided(tensor.shape, tensor.stride())
            except NotImplementedError:
                raise
            except RuntimeError:  # "... are out of bounds for storage of size ..."
                return None, None, Phrase("recording.missing.storage")
            small = tensor.nbytes <= WHOLE or not sample
            part = whole.contiguous() if small else _sampled(whole)
            host = torch.empty(part.shape, dtype=part.dtype, device="cpu", pin_memory=kind == "cuda")
            host.copy_(part, non_blocking=kind != "cpu")
            event = _event(kind)
        return PendingCopy(host, event), () if small else None, None
    except (RuntimeError, NotImplementedError):
        return None, None, Phrase("recording.missing.device", device=kind)


def _sampled(tensor: torch.Tensor) -> torch.Tensor:
    at = torch.arange(_SAMPLE, device=tensor.device) * ((tensor.numel() - 1) // (_SAMPLE - 1))
    offset = torch.zeros_like(at)
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        offset += at % size * stride
        at = at // size
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((span,), (1,)).index_select(0, offset)


def _event(kind: str) -> Any:
    """Return an event on the current stream, None where the device has no such thing and the copy was waited for."""
    module = getattr(torch, kind, None)
    if kind == "cpu" or not hasattr(module, "Event"):
        return None
    event = module.Event()  # type: ignore[union-attr]
    event.record()
    return event
