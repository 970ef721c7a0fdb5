"""A quiet room to run a user's Function many times in: nothing printed, nothing recorded, random state untouched."""

from __future__ import annotations

import contextlib
import functools
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from nbautograd.core.recording.api import paused


@contextlib.contextmanager
def quiet(*, recorded: bool = False) -> Iterator[None]:
    """Run without prints, warnings and recording, on one torch thread, with grad mode on; all is put back after.

    The states of the random generators of torch, numpy and Python are put back as well. With ``recorded`` the calls
    of Functions are recorded all the same.
    """
    threads = torch.get_num_threads()
    recorder = contextlib.nullcontext() if recorded else paused()
    with _restored_random_state(), _muted("stdout"), _muted("stderr"), warnings.catch_warnings(), recorder:
        warnings.simplefilter("ignore")
        with torch.inference_mode(False), torch.enable_grad():
            if threads == 1:
                yield
                return
            torch.set_num_threads(1)
            try:
                yield
            finally:
                torch.set_num_threads(threads)


@contextlib.contextmanager
def memory_filled() -> Iterator[None]:
    """Fill what ``torch.empty`` and the like return, with NaN or the largest integer, so that it is the same each time.

    It is torch's own means: https://docs.pytorch.org/docs/stable/deterministic.html
    """
    memory: Any = torch.utils.deterministic  # a module with a property
    mode, fills = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
    try:
        torch.set_deterministic_debug_mode("warn")  # the same as use_deterministic_algorithms, which imports a compiler
        memory.fill_uninitialized_memory = True
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        memory.fill_uninitialized_memory = fills


class _MutedStream:
    """Stands in for ``sys.stdout`` or ``sys.stderr``: drops what some threads write, and passes on all else.

    Attributes:
        stream: the stream that it stands in for.
        threads: identifiers of the muted threads, as often as they asked.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.threads: list[int] = []

    def write(self, text: str) -> int:
        """Write a text, unless this thread is muted."""
        if threading.get_ident() in self.threads:
            return len(text)
        written: int = self.stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_lock = threading.Lock()


@contextlib.contextmanager
def _muted(name: str) -> Iterator[None]:
    """Drop what this thread writes to ``sys.stdout`` or ``sys.stderr``; other threads go on writing."""
    thread = threading.get_ident()
    with _lock:
        stream = getattr(sys, name)
        muted = stream if isinstance(stream, _MutedStream) else _MutedStream(stream)
        muted.threads.append(thread)
        setattr(sys, name, muted)
    try:
        yield
    finally:
        with _lock:
            muted.threads.remove(thread)
            if not muted.threads and getattr(sys, name) is muted:
                setattr(sys, name, muted.stream)


def seed_all(seed: int) -> None:
    """Seed the generators of torch (CPU, and CUDA where it is in use), numpy and Python; put back the user's own."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if _cuda_in_use():
        torch.cuda.manual_seed_all(seed)
    for put_back in getattr(_own, "put_back", ()):
        put_back()


GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
_own = threading.local()  # of what is checked in this thread: one function for each generator that puts its state back


@contextlib.contextmanager
def own_generators(found: Iterable[Any]) -> Iterator[None]:
    """Let ``seed_all`` put a function's own random generators back to their states of now; put them back at the end.

    They are not seeded: what they draw then differs from what torch's default generator draws.

    Args:
        found: the generators, of torch, numpy or Python; anything else, the default ones, and one without a state, as
            that of the system is, are passed over.
    """
    default = {id(torch.default_generator), *map(id, torch.cuda.default_generators)}
    own = {id(one): one for one in found if isinstance(one, GENERATORS) and id(one) not in default}
    outer = getattr(_own, "put_back", ())
    put_back = list(outer)
    for generator in own.values():
        with contextlib.suppress(NotImplementedError):
            put_back.append(_putting_back(generator))
    _own.put_back = tuple(put_back)
    try:
        yield
    finally:
        for restore in _own.put_back:
            restore()
        _own.put_back = outer


def _putting_back(generator: Any) -> Callable[[], None]:
    if isinstance(generator, np.random.Generator):
        bits, state = generator.bit_generator, generator.bit_generator.state
        return lambda: setattr(bits, "state", state)
    if isinstance(generator, random.Random):
        return functools.partial(generator.setstate, generator.getstate())
    return functools.partial(generator.set_state, generator.get_state())


def random_states() -> list[torch.Tensor]:
    """Return the states of torch's generators: of the CPU, and of CUDA where it is in use."""
    return [torch.default_generator.get_state(), *(torch.cuda.get_rng_state_all() if _cuda_in_use() else ())]


def _cuda_in_use() -> bool:
    return "torch.cuda" in sys.modules and torch.cuda.is_initialized()


@contextlib.contextmanager
def _restored_random_state() -> Iterator[None]:
    (state, *cuda), python = random_states(), random.getstate()
    numbers: Any = np.random.get_state()
    try:
        yield
    finally:
        torch.default_generator.set_state(state)
        random.setstate(python)
        if isinstance(numbers, tuple):  # NumPy takes its 624 numbers out of a list in a tenth of the time
            numbers = (numbers[0], numbers[1].tolist(), *numbers[2:])
        np.random.set_state(numbers)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
