"""Bounds: what one call of an edited backward may use, counted in backwards, calls, elements and steps of loops.

An edit can turn a backward into one that calls itself without end (``x.detach()`` without its ``detach`` hangs the
inner graph of an implicit differentiation on the outer one: each level starts a thread of torch's engine, until the
process dies), or into one whose result has the square of its inputs' size. Nothing here is a matter of time: what the
user's own backward needed at the same inputs says how much an edited one may take, on every machine alike. Only what
can be counted is tried: backwards that reach nothing but torch, plain data and functions of which the same is true.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nbautograd.core import user_source
from nbautograd.core.checking.quiet import EMPTY, fill
from nbautograd.core.pytrees import leaves, tensors
from nbautograd.core.recording.record import value_around
from nbautograd.core.stumbles import hands_over, users_errors

ELEMENTS = 1 << 23  # of all results together; 64 MiB of doubles
CALLS = 500  # of torch: far more than what one edit adds to a backward of a few lines
TIMES_THE_ORIGINAL = 8  # an edited backward may need so many times the calls and elements of the original
STEPS = 100_000  # of all loops over a range in all calls of one edited backward: about 10 ms
SQUARED = frozenset(
    ("eye", "diag", "diag_embed", "diagflat", "cov", "corrcoef", "pdist", "tril_indices", "triu_indices", "vander")
)
VALUED = frozenset(
    ("arange", "range", "linspace", "logspace", "bincount", "one_hot", "repeat_interleave", "combinations", "histc")
)
UNWRITTEN = frozenset((*EMPTY, "new"))
NESTED = frozenset((torch.autograd.grad, torch.autograd.backward, Tensor.backward))


class BoundsError(RuntimeError):
    """An edited backward that takes more than it may."""


@dataclass(frozen=True)
class Usage:
    """Resources that one call of a backward takes.

    Attributes:
        depth: how many backwards are at work inside one another, at most.
        calls: of functions of torch.
        elements: of their results, together.
    """

    depth: float = math.inf
    calls: float = math.inf
    elements: float = math.inf

    def allowance(self) -> Usage:
        """Return what an edited backward may take where the original takes this much."""
        calls, elements = TIMES_THE_ORIGINAL * self.calls, TIMES_THE_ORIGINAL * self.elements
        return Usage(max(1, self.depth), CALLS + calls, max(ELEMENTS, elements))


class UsageMeter(TorchFunctionMode):
    """Counts what runs of a backward take, and ends one that takes more than it may; fills what it leaves unwritten."""

    def __init__(self, limit: Usage | None = None) -> None:
        super().__init__()
        self.limit = limit or Usage()
        self._depth = self._deepest = self._calls = self._elements = 0

    @property
    def usage(self) -> Usage:
        """Return what was taken so far."""
        return Usage(self._deepest, self._calls, self._elements)

    def around(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same backward, each call of it counted, on whichever thread the engine makes it."""

        @hands_over
        def metered(ctx: Any, *grads: Any) -> Any:
            with self._deeper(), self:
                return backward(ctx, *grads)

        return metered

    @hands_over
    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Count a call; refuse it where its result could not be kept."""
        if torch.compiler.is_compiling():  # Dynamo traces into a mode
            return func(*args, **(kwargs or {}))
        named, name = kwargs or {}, getattr(func, "__name__", "")
        if name == "__get__":
            return func(*args, **named)
        self._calls += 1
        if self._calls > self.limit.calls:
            raise BoundsError("too many calls")
        if func in NESTED:
            with self._deeper():  # not metered inside, but where it leads back to this backward
                return func(*args, **named)
        room = self.limit.elements - self._elements
        if room < math.inf and _may_exceed(room, name, args, named) and foreseen(func, name, args, named) > room:
            raise BoundsError("too many elements")
        result = func(*args, **named)
        if name in UNWRITTEN and isinstance(result, Tensor):
            fill(result)  # else an answer might depend on what was there
        self._elements += result.numel() if isinstance(result, Tensor) else sum(t.numel() for t in tensors(result))
        return result

    @contextlib.contextmanager
    def _deeper(self) -> Iterator[None]:
        """Count one more backward inside the others; the engine starts no thread for one that is refused."""
        if self._depth >= self.limit.depth:
            raise BoundsError("too many backwards inside one another")
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        try:
            yield
        finally:
            self._depth -= 1


def _may_exceed(room: float, name: str, args: Any, kwargs: Any) -> bool:
    """Return True where ``largest`` is more than this; tensors and numbers alone are multiplied without any detour."""
    product = 1
    for item in (*args, *kwargs.values()) if kwargs else args:
        kind = type(item)
        if kind is Tensor:
            product *= item.numel() or 1
        elif kind is int:
            product *= 1 + abs(item)
        elif kind is not float and kind is not str and item is not None:
            return largest(name, args, kwargs) > room
    return largest(name, args, kwargs) > room if name in SQUARED or name in VALUED else product > room


def largest(name: str, args: Any, kwargs: Any) -> float:
    """Bound the elements of any result of a function of torch: sizes and whole numbers, multiplied."""
    product = 1.0
    for item in leaves((args, kwargs)):
        if isinstance(item, Tensor):
            product *= max(1, item.numel())
            if name in VALUED and item.numel() and not item.is_complex() and item.device.type != "meta":
                product *= 1 + abs(float(item.detach().max()))
        elif isinstance(item, int) or (name in VALUED and isinstance(item, float)):
            product *= 1 + abs(item)
    return product * product if name in SQUARED else product


def foreseen(func: Callable[..., Any], name: str, args: Any, kwargs: Any) -> float:
    """Count the elements a call will make, by a call on tensors without data; infinite where torch has none.

    What depends on the values (a mask as an index) has no more elements than its largest argument.
    """
    given = list(tensors((args, kwargs)))
    if not given or name in VALUED:
        return math.inf
    if name in ("__getitem__", "__setitem__", "masked_select", "nonzero") and any(t.dtype == torch.bool for t in given):
        return math.prod(max(1, t.numel()) for t in given if t.dtype != torch.bool)
    with users_errors(), torch.no_grad():
        return sum(t.numel() for t in tensors(_called(func, _without_data(args), _without_data(kwargs))))
    return math.inf


@hands_over
def _called(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


def _without_data(item: Any) -> Any:
    if isinstance(item, Tensor):
        return torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device="meta")
    if isinstance(item, torch.device):
        return torch.device("meta")
    if type(item) in (list, tuple):
        return type(item)(_without_data(part) for part in item)
    return {key: _without_data(part) for key, part in item.items()} if type(item) is dict else item


class Loops:
    """A ``range`` whose loops all together end after so many steps."""

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    @hands_over
    def __call__(self, *args: int) -> range:
        """Return the range, if there is room for its steps."""
        found = builtins.range(*args)
        self.left -= len(found)
        if self.left < 0:
            raise BoundsError("too many steps")
        return found


FORBIDDEN = frozenset(
    ("open", "exec", "eval", "compile", "input", "breakpoint", "exit", "quit", "__import__", "globals", "locals")
)
HARMLESS = frozenset(("torch", "numpy", "math", "cmath", "builtins", "typing", "functools", "operator", "einops"))
WRITERS = frozenset(("save", "load", "write", "unlink", "remove", "system", "popen", "dump", "tofile", "step"))
PLAIN = (
    type(None), bool, int, float, complex, str, bytes, slice, range, Tensor, np.ndarray, np.generic,
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Generator,
)  # fmt: skip
INDEXING = ("gather", "scatter", "index_", "take", "put_", "one_hot", "embedding", "masked_scatter")
LOOPS = (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Code = ast.FunctionDef | ast.Lambda


def countable(tree: Code, function: FunctionType, inside: tuple[Any, ...] = ()) -> bool:
    """Return True if all that a function does is computing, and can be counted.

    It imports and opens nothing, has no loop without a known end, and reaches only what is ``reachable``. A function
    that is called from it has no way back to one that called it, and loops only where they can be counted as well: in
    one that backward itself calls by a name of its module.
    """
    local = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    local |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    whole = {id(n.value): n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.While, ast.Delete)):
            return False
        if isinstance(node, ast.Attribute) and node.attr in WRITERS:
            return False
        if isinstance(node, ast.BinOp) and any(isinstance(part, ast.List) for part in (node.left, node.right)):
            return False  # [0] * n may not fit into memory
        if inside and isinstance(node, LOOPS) and not (len(inside) == 1 and called_by_name(function, inside[0])):
            return False
        if isinstance(node, ast.Name) and node.id not in (*local, "print"):
            known = node.id in function.__code__.co_freevars or node.id in function.__globals__
            value = value_around(function, node.id) if known else getattr(builtins, node.id, None)
            if isinstance(value, type) and id(node) in whole:
                value = getattr(value, whole[id(node)], None)
            if node.id in FORBIDDEN or not reachable(value, (*inside, function)):
                return False
    return True


def called_by_name(function: FunctionType, caller: FunctionType) -> bool:
    """Return True for a function that another one can only reach by its own name in their module."""
    return function.__closure__ is None and caller.__globals__.get(function.__name__) is function


def counted(function: FunctionType, ranges: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals of a function, those that it calls by name with a ``range`` that is counted."""
    given = function.__globals__
    for name, called in user_source.named_functions(function).items():
        if "range" in called.__code__.co_names and called_by_name(called, function):
            names = {**called.__globals__, "range": ranges}
            again = FunctionType(called.__code__, names, name, called.__defaults__)
            again.__kwdefaults__ = called.__kwdefaults__
            given = {**given, name: again}
    return given


def indexes(tree: ast.AST) -> bool:
    """Return True if indices are computed: on an accelerator one that does not exist ends the process's use of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith(INDEXING):
            return True
        if isinstance(node, ast.Subscript) and any(
            isinstance(part, (ast.Name, ast.Call)) for part in ast.walk(node.slice)
        ):
            return True
    return False


def reachable(value: Any, inside: tuple[Any, ...] = ()) -> bool:
    """Return True for plain data, what is torch's or Python's own, or a function of which this holds in turn."""
    if isinstance(value, PLAIN):
        return True
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        items = (*value, *value.values()) if isinstance(value, dict) else tuple(value)
        return len(inside) < 8 and all(reachable(item, (*inside, None)) for item in items)
    if isinstance(value, ModuleType):
        return value.__name__.split(".")[0] in HARMLESS
    if isinstance(value, functools.partial):
        return all(reachable(item, inside) for item in (value.func, value.args, value.keywords))
    if isinstance(value, torch.nn.Module):
        return all(type(part).__module__.startswith("torch.") for part in value.modules())
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):  # its apply
        methods = [inspect.unwrap(getattr(owner, name)) for name in ("forward", "backward")]
        return all(reachable(method, inside) for method in methods)
    home = (getattr(value, "__module__", None) or "builtins").split(".")[0]
    if isinstance(value, FunctionType) and home not in HARMLESS:
        trees = [] if value in inside or len(inside) > 4 else _trees(value)
        return bool(trees) and all(countable(tree, value, inside) for tree in trees)
    named = getattr(value, "__name__", "")
    known = isinstance(value, (type, FunctionType, BuiltinFunctionType)) or callable(value)
    return known and home in HARMLESS and named not in FORBIDDEN | WRITERS


def _trees(function: FunctionType) -> list[Code]:
    code = function.__code__
    if code.co_name != "<lambda>":
        found = user_source.method_at(code)
        return [found] if isinstance(found, ast.FunctionDef) else []
    module = user_source.module_tree(code.co_filename)
    lambdas = [n for n in ast.walk(module) if isinstance(n, ast.Lambda)] if module is not None else []
    return [n for n in lambdas if n.lineno == code.co_firstlineno]
