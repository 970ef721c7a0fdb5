"""State outside ctx: class attributes, closures and globals of a Function, and the tensors that it reaches there.

Running means, counters and the ``.grad`` of parameters belong to the user. Forward may write into the former and
backward into the latter; a check runs both many times, each time from the same values, and leaves all as it was.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import itertools
from collections import ChainMap, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.budget import interrupts
from nbautograd.core.checking.prepared_inputs import unreadable_kind
from nbautograd.core.checking.quiet import GENERATORS
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.process_copy import Refused, in_copy
from nbautograd.core.stumbles import keep, recent
from nbautograd.core.user_source import METHODS, closure, codes_in, named_functions, unwrap
from nbautograd.core.values import attributes

LARGEST = 100_000  # elements of tensors, and items of containers, that are copied; larger ones are data, not state
DEPTH = 3  # containers within containers
Answer = TypeVar("Answer")
NUMBERS = (bool, int, float, complex, str, type(None))


@dataclass(frozen=True)
class StateName:
    """A name that holds state.

    Attributes:
        value: a copy of what it held.
        read: returns what it holds.
        write: makes it hold something else.
        bound: True where the Function's own code gives the name another value; else another thread did that.
    """

    value: Any
    read: Callable[[], Any]
    write: Callable[[Any], None]
    bound: bool = True


class ClassState:
    """Copies of what a class kept outside ctx when this was made."""

    def __init__(self, cls: type | None) -> None:
        found = () if cls is None else tuple(p for p in _places(cls) if p.value is not _NO_STATE)
        self.places = tuple(p for p in found if p.bound or not isinstance(p.value, NUMBERS))

    def apart(self, job: Callable[[], Answer], *, empty: bool = False, moves: bool = False) -> Answer:
        """Return what a job returns that begins with the first values of these names, see ``put_back``.

        Names that the Function's own code binds would hold copies meanwhile, and what another thread writes to them
        would be undone with the rest. So such a job runs in a copy of this process, out of reach of files, where one
        can be made, and returns plain data; what it changes besides is gone. Any other job runs here, and each where a
        clock may have to interrupt the user's code: its thread is not there in a copy.

        Args:
            job: what is run.
            empty: as for ``put_back``.
            moves: True for a job that changes what other threads can see besides these names.

        Raises:
            KeyboardInterrupt: that ended the job, as at the end of a budget.
        """

        def run() -> Answer:
            with self.put_back(empty=empty):
                return job()

        def told() -> tuple[Answer | None, KeyboardInterrupt | None, Any]:
            try:
                return run(), None, recent()
            except KeyboardInterrupt as error:
                return None, error, recent()

        if (moves or any(place.bound for place in self.places)) and not interrupts():
            answer = in_copy(told)
            if not isinstance(answer, Refused):
                result, interrupt, stumbled = answer
                keep(stumbled)
                if interrupt is not None:
                    raise interrupt
                return cast(Answer, result)
            if answer.reason not in ("fork", "outside"):
                raise RuntimeError(f"a job in a copy of the process: {answer.reason} {answer.detail}")
        return run()

    @contextlib.contextmanager
    def put_back(self, *, empty: bool = False) -> Iterator[None]:
        """Put names back that were written since to their first values, containers emptied if so wanted; undo it after.

        A name that holds what it held at first is left alone, as other threads may use it. What is written to it inside
        is undone in the very object.
        """
        put: list[tuple[StateName, Any]] = []
        left: list[tuple[StateName, Any, Any]] = []
        try:
            for place in self.places:
                now = place.read()
                emptied = empty and isinstance(now, CONTAINERS) and len(now) > 0
                if emptied or not _alike(now, place.value):
                    put.append((place, now))
                    place.write(type(now)() if emptied else _copied(place.value))
                else:
                    left.append((place, now, _items(now)))
            yield
        finally:
            for place, now in put:
                place.write(now)
            for place, now, items in left:
                if not _alike(now, place.value):
                    _refill(now, items)
                if place.bound and place.read() is not now:
                    place.write(now)


_NO_STATE = object()
CONTAINERS = (list, dict, set, deque)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one is other or (one.shape == other.shape and one.dtype == other.dtype and agree_bitwise(one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, (dict, list, deque)):
        pair = [[*x.keys(), *x.values()] if isinstance(x, dict) else x for x in (one, other)]
        return len(one) == len(other) and all(map(_alike, *pair))
    if not isinstance(one, (*NUMBERS, set)):
        return one is other
    return bool(one == other) or (one != one and other != other)  # NaN among them


def _items(value: Any) -> Any:
    """Return what ``_refill`` needs to undo writes into an object, the items themselves."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    return value.copy() if isinstance(value, (*CONTAINERS, np.ndarray)) else value


def _refill(value: Any, items: Any) -> None:
    if isinstance(value, Tensor):
        value.detach().copy_(items)
    elif isinstance(value, np.ndarray):
        value[...] = items
    elif isinstance(value, CONTAINERS):
        value.clear()
        value.update(items) if isinstance(value, (dict, set)) else value.extend(items)


def _places(cls: type) -> Iterator[StateName]:
    bases = [base for base in cls.__mro__ if not base.__module__.startswith("torch.") and base is not object]
    entries = (unwrap(vars(base).get(method)) for base in bases for method in METHODS)
    functions = [entry for entry in entries if isinstance(entry, FunctionType)]
    bound = frozenset().union(*(names_bound(function.__code__) for function in calling(functions)))
    for base in bases:
        for name, value in list(vars(base).items()):
            if not name.startswith("__") and not callable(value):
                yield _attribute(value, base, name, name in bound or ANY in bound)
    for function in functions:
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell
                yield _attribute(cell.cell_contents, cell, "cell_contents", variable in bound)
        known, partial = function.__globals__, functools.partial
        for name in names_of(function.__code__):
            if name in known and not callable(known[name]):
                read, write = partial(known.__getitem__, name), partial(known.__setitem__, name)
                yield StateName(_copied(known[name]), read, write, name in bound or ANY in bound)


def calling(functions: Iterable[FunctionType]) -> list[FunctionType]:
    """Return functions, and those that they name or hold, however far away."""
    found: dict[FunctionType, None] = dict.fromkeys(functions)
    queue = deque(found)
    while queue:
        function = queue.popleft()
        for named in (*named_functions(function).values(), *closure(function).values()):
            inner = unwrap(named)
            if isinstance(inner, FunctionType) and inner not in found:
                found[inner] = None
                queue.append(inner)
    return list(found)


def _attribute(value: Any, holder: Any, name: str, bound: bool) -> StateName:
    read, write = functools.partial(getattr, holder, name), functools.partial(setattr, holder, name)
    return StateName(_copied(value), read, write, bound)


ANY = "*"  # in the place of a name: code that can bind any
_BINDERS = frozenset(("setattr", "globals", "vars", "exec", "eval", "__dict__", "__setattr__"))


@functools.lru_cache(1024)
def names_bound(code: CodeType) -> frozenset[str]:
    """Return the names outside its arguments that a code gives values."""
    codes = list(codes_in(code))
    steps = [step for one in codes for step in dis.get_instructions(one)]
    bound = {str(step.argval) for step in steps if step.opname in ("STORE_GLOBAL", "STORE_DEREF")}
    pairs = itertools.pairwise(steps)
    bound |= {
        str(step.argval)
        for before, step in pairs
        if step.opname == "STORE_ATTR"
        and not (before.opname.startswith("LOAD_FAST") and str(before.argval).strip("()'").endswith("ctx"))
    }
    return frozenset(bound | ({ANY} if any(_BINDERS & {*one.co_names} for one in codes) else set()))


_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")


@functools.lru_cache(1024)
def names_of(code: CodeType) -> tuple[str, ...]:
    """Return the global names that a code reads or writes."""
    steps = itertools.chain(
        *map(dis.get_instructions, codes_in(code))
    )  # not ``co_names``: the ``t`` of ``x.t()`` is none
    return tuple(sorted({str(step.argval) for step in steps if step.opname in _GLOBALS}))


def _copied(value: Any, depth: int = DEPTH) -> Any:
    """Copy numbers, tensors and containers of these; return a mark for anything else, which counts as no state."""
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, Tensor):
        small = value.layout is torch.strided and value.numel() <= LARGEST
        with contextlib.suppress(RuntimeError):  # one that outlived its vmap cannot be read
            return value.detach().clone().requires_grad_(value.requires_grad) if small and value.is_leaf else _NO_STATE
        return _NO_STATE
    if isinstance(value, np.ndarray):
        return value.copy() if value.size <= LARGEST else _NO_STATE
    if type(value) in (list, dict, set, deque) and len(value) <= LARGEST:
        if isinstance(value, dict):
            return {key: _item(item, depth) for key, item in value.items()}
        return type(value)(_item(item, depth) for item in value)
    return _NO_STATE


def _item(item: Any, depth: int) -> Any:
    copied = _copied(item, depth - 1) if depth > 1 else _NO_STATE
    return item if copied is _NO_STATE else copied


def names_outside(fn: Any, cls: type | None) -> Iterator[tuple[str, Any]]:
    """Yield the names, with their values, that a callable and a class's methods read outside their arguments."""
    torchs_own = torch.autograd.Function.__module__  # its methods only raise, or warn
    bases = [base for base in (cls.__mro__ if cls is not None else ()) if base.__module__ != torchs_own]
    entries = [fn, *(vars(base)[method] for base in bases for method in METHODS if method in vars(base))]
    for function in filter(lambda one: isinstance(one, FunctionType), map(unwrap, entries)):
        yield from closure(function).items()
        for name in names_of(function.__code__):
            if name in function.__globals__:
                yield name, function.__globals__[name]


LARGEST_SHARED = 2**22  # elements of a tensor that is copied in case it is written into: 32 MiB of float64
MOST_ITEMS = 1000  # items of a container, or attributes of an object, that are looked through


class _Watched:
    """A tensor that the function reaches, with its name, its values and its in-place counter; its ``.grad`` likewise.

    There is no copy of the values of one that requires grad, nor of a large one. A check in another thread, which may
    have written by now, hands on what it found.
    """

    value: Tensor | None
    grad: Tensor | None
    grad_value: Tensor | None
    grad_version: int

    def __init__(self, name: str, tensor: Tensor, found: _Watched | None) -> None:
        self.name, self.tensor, self.version = name, tensor, tensor._version
        if found is not None:
            self.version, self.value = found.version, found.value
            self.grad, self.grad_value, self.grad_version = found.grad, found.grad_value, found.grad_version
            return
        copied = not tensor.requires_grad and tensor.numel() <= LARGEST_SHARED
        self.value = tensor.detach().clone() if copied else None
        self.grad = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
        self.grad_value = None if self.grad is None else self.grad.detach().clone()
        self.grad_version = 0 if self.grad is None else self.grad._version

    def put_back(self) -> None:
        """Give the tensor its values."""
        if self.tensor.requires_grad and not self.tensor._is_view():  # forward wrote a function of its inputs into it
            self.tensor.detach_()
        assert self.value is not None
        with torch.no_grad():
            self.tensor.copy_(self.value)
        self.version = self.tensor._version

    def gradient_changed(self) -> bool:
        """Return True where ``.grad`` is another one, or was written into."""
        grad = self.tensor.grad
        return grad is not self.grad or (grad is not None and grad._version != self.grad_version)


class SharedTensors:
    """The tensors that a function reaches, as they are when this is made; in use until all is put back."""

    _in_use: ClassVar[list[SharedTensors]] = []

    def __init__(self, named: Iterable[tuple[str, Any]]) -> None:
        found = {id(one): (name, one) for name, one in named if isinstance(one, Tensor) and _ordinary(one)}
        others = ChainMap(*(one._by_id for one in self._in_use))
        self._by_id: dict[int, _Watched] = {
            key: _Watched(name, tensor, others.get(key)) for key, (name, tensor) in found.items()
        }
        self._watched = [*self._by_id.values()]
        self._copied = [one for one in self._watched if one.value is not None]
        if self._watched:
            self._in_use.append(self)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors themselves."""
        return tuple(one.tensor for one in self._watched)

    def put_back_values(self) -> None:
        """Undo what was written into tensors without grad, as far as their in-place counters tell."""
        for one in self._copied:
            if one.tensor._version != one.version:
                one.put_back()

    def put_back(self) -> None:
        """Undo all that was written, also past the in-place counters, and put each ``.grad`` back."""
        for one in self._copied:
            if one.tensor._version != one.version or not agree_bitwise(one.tensor, one.value):
                one.put_back()
        self.put_back_gradients()
        if self in self._in_use:
            self._in_use.remove(self)

    def put_back_gradients(self) -> None:
        """Put each ``.grad`` back: the same tensor with the same elements."""
        for one in self._watched:
            if one.gradient_changed():
                one.tensor.grad = one.grad
                if one.grad is not None and one.grad_value is not None:
                    one.grad.detach().copy_(one.grad_value)
                    one.grad_version = one.grad._version

    def changed_gradients(self) -> dict[str, Tensor]:
        """Return the tensors whose ``.grad`` is not what it was, by name."""
        return {one.name: one.tensor for one in self._watched if one.gradient_changed()}


def _ordinary(tensor: Tensor) -> bool:
    try:
        return unreadable_kind(tensor) is None and not tensor.is_inference() and tensor.detach().numel() >= 0
    except (RuntimeError, ValueError):  # of a lazy module, without a shape so far; one that outlived its vmap
        return False


def reachable(fn: Any, cls: type | None, inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors and random generators that a function can use besides the tensors it is given, with names.

    These are the parameters and buffers of modules, and tensors and generators in closures, globals and attributes that
    are named by its code, by that of the functions, modules and Functions it names, and by the methods of its own
    Function; containers of them too, and those among what it is given.
    """
    given = [(name, value) for name, value in inputs.items() if not isinstance(value, Tensor)]
    values = [("", fn), ("", getattr(fn, "__self__", None)), *given, *names_outside(fn, cls)]
    values += [pair for _, value in values[1:] if callable(value) for pair in names_outside(value, None)]
    submodules = {
        type(submodule) for _, value in values if isinstance(value, torch.nn.Module) for submodule in value.modules()
    }
    values += (pair for submodule in submodules for pair in names_outside(submodule.forward, None))
    classes = {value for _, value in values if isinstance(value, type) and issubclass(value, torch.autograd.Function)}
    for one in classes:
        values += (*vars(one).items(), *(names_outside(None, one) if one is not cls else ()))
    if cls is not None and cls not in classes:
        values += vars(cls).items()
    for name, value in values:
        yield from reached_inside(name, value)


def reached_inside(name: str, value: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Yield a tensor or generator, or those in a module, in a container or among the attributes of a plain object."""
    if isinstance(value, torch.nn.Module):
        for inner, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield f"{name}.{inner}" if name else inner, tensor
    elif callable(value) or isinstance(value, ModuleType):
        return
    elif isinstance(value, (Tensor, *GENERATORS)):
        yield name, value
    elif not depth or type(value).__module__.startswith("nbautograd."):
        return
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value[:MOST_ITEMS]):
            yield from reached_inside(f"{name}[{i}]", item, depth - 1)
    elif isinstance(value, dict):
        for key, item in list(value.items())[:MOST_ITEMS]:
            yield from reached_inside(f"{name}[{key!r}]", item, depth - 1)
    elif type(value).__module__ != "builtins":
        for key, item in list(attributes(value).items())[:MOST_ITEMS]:
            yield from reached_inside(f"{name}.{key}", item, depth - 1)
