"""A quiet room to run a user's Function many times in: nothing printed, nothing recorded, random state untouched."""

from __future__ import annotations

import builtins
import contextlib
import io
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
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
    with contextlib.ExitStack() as stack:
        stack.enter_context(_random_state_kept())
        if not recorded:
            stack.enter_context(_prints_dropped())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if not recorded:
            stack.enter_context(paused())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        if threads != 1:
            torch.set_num_threads(1)
            stack.callback(torch.set_num_threads, threads)
        yield


_silent: list[int] = []  # threads whose print does nothing, as often as they entered
_lock = threading.Lock()


@contextlib.contextmanager
def _prints_dropped() -> Iterator[None]:
    """Let this thread's ``print`` do nothing, unless to a file: nobody reads it, and writing a tensor out is slow."""
    thread = threading.get_ident()
    with _lock:
        if not _silent:
            _dropping.original = builtins.print
            builtins.print = _dropping
        _silent.append(thread)
    try:
        yield
    finally:
        with _lock:
            _silent.remove(thread)
            ours = builtins.print is _dropping
            if not _silent and ours:
                builtins.print = _dropping.original


class _Dropping:
    """Stands in for ``print`` while any thread is silent."""

    original: Callable[..., None] = print

    def __call__(self, *values: Any, **options: Any) -> None:
        """Print, unless this thread is silent and it is not to a file."""
        if threading.get_ident() not in _silent or options.get("file") is not None:
            self.original(*values, **options)


_dropping = _Dropping()


def seed_all(seed: int) -> None:
    """Seed the generators of torch (CPU, and CUDA where it is in use), numpy and Python."""
    torch.default_generator.manual_seed(seed)
    _seed_python(seed)
    _python.gauss_next = None
    np.random.seed(seed % 2**32)
    if _cuda_in_use():
        torch.cuda.manual_seed_all(seed)


_python: Any = random.seed.__self__  # type: ignore[attr-defined]
# what random.seed comes to for a whole number, without the questions that it asks first: this is called very often
_seed_python = super(random.Random, _python).seed


def _cuda_in_use() -> bool:
    return "torch.cuda" in sys.modules and torch.cuda.is_initialized()


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    state = torch.default_generator.get_state()
    python, numpy_state = random.getstate(), np.random.get_state()
    cuda: list[Any] = torch.cuda.get_rng_state_all() if _cuda_in_use() else []
    try:
        yield
    finally:
        torch.default_generator.set_state(state)
        random.setstate(python)
        np.random.set_state(numpy_state)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
