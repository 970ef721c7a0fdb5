"""Copy the elements of tensors while a Function runs: no operation that anybody notices, no load that can fail.

A load from an address that is not there ends the process; a system call that copies from it answers EFAULT. So the
kernel copies: ``process_vm_readv`` on our own process (Linux), else ``write`` into a pipe of our own (macOS, sandboxes
that forbid the former), else nothing is read and the report says so. Both go through ``ctypes.PyDLL``, which keeps the
GIL: letting go of it would let other threads run between two reads. All tensors of a method are read in one call.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import threading
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Protocol

import numpy as np

_MOST_PIECES = 1024  # of one system call: IOV_MAX of Linux and macOS
_BUFFER = 64 * 1024  # bytes; what is larger gets a buffer of its own
_PIPE_PIECE = 4096  # bytes written at once: an empty pipe takes them on every system

Piece = tuple[int, int]  # address and number of bytes


class Copier(Protocol):
    """A way to copy memory of this process that fails where a load would end the process.

    Attributes:
        name: for reports.
    """

    name: str

    def copy(self, pieces: Sequence[Piece], total: int) -> bytes | None:
        """Return the pieces one after the other; None when any of them is not there."""
        ...


class VirtualMemory:
    """``process_vm_readv`` (Linux); see its manual page."""

    name = "process_vm_readv"

    def __init__(self) -> None:
        self._call = ctypes.PyDLL(None, use_errno=True).process_vm_readv
        self._call.restype = ctypes.c_ssize_t
        self._call.argtypes = [
            ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong,
        ]  # fmt: skip
        self._spare: list[_Buffers] = []  # list.pop and list.append are atomic: no lock

    def copy(self, pieces: Sequence[Piece], total: int) -> bytes | None:
        """See ``Copier``."""
        if len(pieces) > _MOST_PIECES:
            first = sum([count for _, count in pieces[:_MOST_PIECES]])
            parts = self.copy(pieces[:_MOST_PIECES], first), self.copy(pieces[_MOST_PIECES:], total - first)
            return None if None in parts else b"".join(parts)  # type: ignore[arg-type]
        # Taken out while in use: a signal handler or a finalizer may record a call in the middle of this one.
        try:
            buffers = self._spare.pop()
        except IndexError:
            buffers = _Buffers(_BUFFER)
        target = buffers if total <= _BUFFER else _Buffers(total)
        _lists_of(len(pieces)).pack_into(buffers.remote, 0, *chain.from_iterable(pieces))
        _ONE_PIECE.pack_into(buffers.local, 0, target.address, total)
        done = self._call(os.getpid(), buffers.local_address, 1, buffers.remote_address, len(pieces), 0)
        copied = bytes(target.view[:total]) if done == total else None
        self._spare.append(buffers)
        return copied


class _Buffers:
    """What a call hands to the system: room for the copy, and for the two lists of pieces."""

    def __init__(self, size: int) -> None:
        self.data, self.remote, self.local = bytearray(size), bytearray(16 * _MOST_PIECES), bytearray(16)
        self.address, self.remote_address, self.local_address = map(_address_of, (self.data, self.remote, self.local))
        self.view = memoryview(self.data)


@cache
def _lists_of(count: int) -> struct.Struct:
    """Return the layout of so many pieces: pairs of address and size, as struct iovec."""
    return struct.Struct(f"{2 * count}N")


_ONE_PIECE = _lists_of(1)


def _address_of(buffer: bytearray) -> int:
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))


class Pipe:
    """``write`` into a pipe, and ``read`` from it: POSIX, where there is no ``process_vm_readv``."""

    name = "pipe"

    def __init__(self) -> None:
        library = ctypes.PyDLL(None, use_errno=True)
        self._write, self._read = library.write, library.read
        for call in (self._write, self._read):
            call.restype = ctypes.c_ssize_t
            call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
        self._lock = threading.Lock()
        self._open()
        os.register_at_fork(after_in_child=self._open)  # the parent's pipe carries the parent's bytes

    def _open(self) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        self._lock = threading.Lock()

    def copy(self, pieces: Sequence[Piece], total: int) -> bytes | None:
        """See ``Copier``."""
        if not self._lock.acquire(blocking=False):  # another thread, or this one inside a signal handler
            return None
        try:
            target = bytearray(total)
            address, done = _address_of(target) if total else 0, 0
            for start, count in pieces:
                for at in range(0, count, _PIPE_PIECE):
                    size = min(_PIPE_PIECE, count - at)
                    sent = self._write(self._in, start + at, size)
                    if sent > 0 and self._read(self._out, address + done, sent) != sent:
                        return None
                    if sent != size:
                        return None
                    done += size
            return bytes(target)
        finally:
            self._lock.release()


def works(copier: Copier) -> bool:
    """Return True when a copier copies what is there and refuses what is not."""
    numbers = np.arange(64, dtype=np.int64)
    half = numbers.nbytes // 2
    pieces = [(numbers.ctypes.data, half), (numbers.ctypes.data + half, half)]
    page_zero = (16, 8)  # mapped in no process
    return copier.copy(pieces, numbers.nbytes) == numbers.tobytes() and copier.copy([page_zero], 8) is None


@cache
def copier() -> Copier | None:
    """Return the first way to copy memory that works here, None when none does."""
    for kind in (VirtualMemory, Pipe):
        with contextlib.suppress(AttributeError, OSError, TypeError, ValueError):  # no such call in this system
            candidate: Copier = kind()
            if works(candidate):
                return candidate
    return None
