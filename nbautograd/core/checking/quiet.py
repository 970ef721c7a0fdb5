"""A quiet room to run a user's Function many times in: nothing printed, nothing recorded, random numbers untouched.

No switch of the process is thrown here, as other threads would feel it: all holds for the thread that enters. The one
exception are the random generators that all threads share. They are seeded only for a function that draws from them,
in one check at a time, and put back; what other threads draw meanwhile is not what they would have drawn.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from nbautograd.core import forks
from nbautograd.core.recording.api import paused
from nbautograd.core.stumbles import hands_over, users_errors
from nbautograd.core.this_thread import muted, undone, warnings_ignored
from nbautograd.core.torch_private.dispatch import ThreadDispatchMode
from nbautograd.core.torch_private.tensors import modes_restored

T = TypeVar("T")


@contextlib.contextmanager
def quiet(*, recorded: bool = False) -> Iterator[None]:
    """Run without prints, warnings and recording, and with grad mode on, in this thread alone.

    Generators that are seeded meanwhile are put back, and modes that an interrupt left are left. With ``recorded`` the
    calls of Functions are recorded.
    """
    recorder = contextlib.nullcontext() if recorded else paused()
    with (
        modes_restored(),
        _generators_put_back(),
        muted(),
        warnings_ignored(),
        recorder,
        torch.inference_mode(False),
        torch.enable_grad(),
    ):
        yield


EMPTY = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
_UNWRITTEN = frozenset(
    getattr(packet, overload)
    for packet in (getattr(torch.ops.aten, name) for name in EMPTY)
    for overload in packet.overloads()
    if overload != "out"
)
_RESIZE = torch.ops.aten.resize_.default


class FilledMemory(ThreadDispatchMode):
    """Fills what ``torch.empty`` and the like return in this thread, so that it is the same each time."""

    def __init__(self, *, zeros: bool = False) -> None:
        super().__init__()
        self.zeros = zeros

    @hands_over
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and fill the memory that it leaves unwritten."""
        before = args[0].untyped_storage().nbytes() if func is _RESIZE else 0
        result = func(*args, **(kwargs or {}))
        if func in _UNWRITTEN:
            fill(result, self.zeros)
        elif func is _RESIZE and (more := result.untyped_storage().nbytes() - before) > 0:
            size = result.element_size()
            fill(result.as_strided((more // size,), (1,), before // size), self.zeros)
        return result


def fill(tensor: Tensor, zeros: bool = False) -> None:
    """Fill memory that nothing wrote: with zeros, or with NaN, the largest number of a dtype that has no NaN."""
    dtype = tensor.dtype
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return
    if zeros:
        tensor.detach().zero_()
    elif dtype.is_floating_point or dtype.is_complex:
        tensor.detach().fill_(float("nan"))
    else:
        tensor.detach().fill_(1 if dtype is torch.bool else torch.iinfo(dtype).max)


class _DrawWatch(ThreadDispatchMode):
    """Sees whether an operation of this thread draws from a generator that the process shares."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    @hands_over
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = (*args, *(kwargs or {}).values())
        if torch.Tag.nondeterministic_seeded in func.tags and not any(isinstance(x, torch.Generator) for x in given):
            self.seen = True
        return func(*args, **(kwargs or {}))


class Numbers:
    """The random numbers of a function that is run many times: each run draws the same ones, where it draws any.

    Whether it does is learned from its first forward and its first backward, and of torch's numbers from each later
    one: a dropout may draw with another argument alone. A generator that stayed as it was gave no numbers. One that
    moved may have been moved by another thread: then the function runs once more, watched.

    Attributes:
        drawn: True where the function draws from generators that the process shares.
    """

    def __init__(self) -> None:
        self.drawn = False
        self._known: set[str] = set()

    def seed(self, seed: int) -> None:
        """Seed the shared generators where the function draws from them; put back those of the user's own."""
        if self.drawn:
            seed_all(seed)
        else:
            _put_back_own()

    def run(self, seed: int, kind: str, call: Callable[[], T]) -> T:
        """Run the function with the numbers of a seed.

        Args:
            kind: of the run, ``"forward"`` or ``"backward"``.
            call: runs it; called again where it takes another run to learn that it draws.
        """
        self.seed(seed)
        if self.drawn:
            return call()
        if kind in self._known:
            state = _torch_state()
            result = call()
            if state == _torch_state():
                return result
        _wait()  # what it draws before that is known must not reach a check that has seeded
        before = (_here.room or _Room()).states
        try:
            result = call()
            self._known.add(kind)
            if _stayed(before):
                return result
            self.drawn = _draws(call)
            if self.drawn:
                _take_over()
        except BaseException:  # what it drew is put back
            if not _stayed(before):
                _take_over()
            raise
        finally:
            _shared.release()
        self.seed(seed)
        return call()


RUNS = 3  # in which Python's or NumPy's generator has to move: another thread draws from them once in a while


def _draws(call: Callable[[], Any]) -> bool:
    """Run something watched, and tell whether it draws from the shared generators."""
    for _ in range(RUNS):
        *_, python, numpy = _states()
        random.random(), np.random.random()  # who seeds them ends in one state each time, but never in this one
        before, watch = _states(), _DrawWatch()
        _put_back_own()
        with users_errors() as guard, watch:
            call()
        if guard.failed:  # what cannot run under a mode is seeded as if it drew
            return True
        if watch.seen:
            return True
        if _unseen_stayed(before):
            random.setstate(python)
            np.random.set_state(numpy)
            return False
    return True


def seed_all(seed: int) -> None:
    """Seed the shared generators of torch (CUDA's where it is in use), numpy and Python; put back the user's own.

    From the first time in a quiet room on, the generators belong to it: other checks that draw wait for its end.
    """
    _take_over()
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if _cuda_in_use():
        torch.cuda.manual_seed_all(seed)
    _put_back_own()


def _put_back_own() -> None:
    for put_back in _here.own:
        put_back()


GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)


class _Room:
    """A quiet room of one thread."""

    put_back = False  # True where the shared generators were seeded, or may have moved

    @forks.cached
    def states(self) -> tuple[Any, ...]:
        """The states of the shared generators when they were first read here, which takes as long as a backward."""
        return _states()


class _Here(threading.local):
    """The room that this thread is in, and one function for each generator of the user's own that puts it back."""

    room: _Room | None = None
    own: tuple[Callable[[], None], ...] = ()


_here = _Here()
_shared = forks.lock()  # who holds it may seed the generators that all threads share
WAIT = 0.1  # seconds until a thread that waits for it lets a budget end it


@contextlib.contextmanager
def _generators_put_back() -> Iterator[None]:
    outer, room = _here.room, _Room()

    def undo() -> None:
        _here.room = outer
        if room.put_back:
            cpu, cuda, python, numpy = room.states
            torch.default_generator.set_state(cpu)
            if cuda:
                torch.cuda.set_rng_state_all(cuda)
            random.setstate(python)
            if isinstance(numpy, tuple):  # NumPy takes its 624 numbers out of a list in a tenth of the time
                numpy = (numpy[0], numpy[1].tolist(), *numpy[2:])
            np.random.set_state(numpy)
            room.put_back = False
        while outer is None and _shared._is_owned():  # whatever asked for it, and whether or not that was interrupted
            _shared.release()

    with undone(undo):
        _here.room = room
        yield


def _wait() -> None:
    while not _shared.acquire(timeout=WAIT):
        pass


def _take_over() -> None:
    """Let the room of this thread put the shared generators back."""
    room = _here.room
    if room is not None and not room.put_back:
        _wait()
        room.put_back = bool(room.states)


@contextlib.contextmanager
def own_generators(found: Iterable[Any]) -> Iterator[None]:
    """Let each run begin from the states that a function's own random generators have now; put them back at the end.

    They are not seeded: what they draw then differs from what torch's default generator draws.

    Args:
        found: the generators, of torch, numpy or Python; anything else, the default ones, and one without a state, as
            that of the system is, are passed over.
    """
    default = {id(torch.default_generator), *map(id, torch.cuda.default_generators)}
    own = {id(one): one for one in found if isinstance(one, GENERATORS) and id(one) not in default}
    outer = _here.own
    put_back = list(outer)
    for generator in own.values():
        with contextlib.suppress(NotImplementedError):
            put_back.append(_putting_back(generator))

    def undo() -> None:
        _put_back_own()
        _here.own = outer

    with undone(undo):
        _here.own = tuple(put_back)
        yield


def _putting_back(generator: Any) -> Callable[[], None]:
    if isinstance(generator, np.random.Generator):
        bits, state = generator.bit_generator, generator.bit_generator.state
        return lambda: setattr(bits, "state", state)
    if isinstance(generator, random.Random):
        return functools.partial(generator.setstate, generator.getstate())
    return functools.partial(generator.set_state, generator.get_state())


def _states() -> tuple[Any, ...]:
    return torch.default_generator.get_state(), _cuda_states(), random.getstate(), np.random.get_state()


def _cuda_states() -> list[Tensor]:
    return torch.cuda.get_rng_state_all() if _cuda_in_use() else []


def _torch_state() -> bytes:
    """Return the state of torch's generator, which is read in a twentieth of the time of all."""
    return torch.default_generator.get_state().numpy().tobytes()


def _stayed(before: tuple[Any, ...]) -> bool:
    """Return True where all shared generators are in these states still."""
    cpu, cuda, *_ = before
    devices = [[state.numpy().tobytes() for state in states] for states in (cuda, _cuda_states())]
    return _torch_state() == cpu.numpy().tobytes() and devices[0] == devices[1] and _unseen_stayed(before)


def _unseen_stayed(before: tuple[Any, ...]) -> bool:
    """Return True where Python's and NumPy's generators, which no mode sees, are in these states still."""
    *_, python, numpy = before
    return python == random.getstate() and pickle.dumps(numpy) == pickle.dumps(np.random.get_state())


def _cuda_in_use() -> bool:
    return "torch.cuda" in sys.modules and torch.cuda.is_initialized()
