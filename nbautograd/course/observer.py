"""Observer: what an answer runs: its Functions' methods, torch's operations in them, and derivatives asked of torch."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from nbautograd.core.checking.problem import graph_nodes

METHODS = ("forward", "setup_context", "backward", "vjp", "jvp")
# nodes that hand a gradient on as it is, in another shape or dtype
CARRYING = {"AccumulateGrad", "Clone", "Alias", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "ToCopy"}
HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
WRITTEN = {"grad": "torch.autograd.grad", "_make_dual": "torch.func.jvp", "_set_grad_enabled": "torch.enable_grad"}
# elementwise functions beyond arithmetic, and what is made of them
_TRANSCENDENTAL = (
    "exp exp2 expm1 log log2 log10 log1p xlogy logaddexp logaddexp2 logsumexp logcumsumexp pow float_power matrix_exp"
    " sin cos tan sinc asin acos atan atan2 sinh cosh tanh asinh acosh atanh polar angle"
    " sigmoid logit softplus log_sigmoid softmax log_softmax silu mish elu selu celu gelu"
    " erf erfc erfinv erfcx ndtr ndtri log_ndtr entr igamma igammac lgamma digamma"
)
TRANSCENDENTAL = frozenset(_TRANSCENDENTAL.split())


@dataclass(frozen=True)
class Operation:
    """One operation of torch that computed something; views are left out.

    Attributes:
        name: torch's own, without overload and underscores: ``"softmax"``, whatever the answer called to get it;
            ``"numpy"`` where numbers leave torch for NumPy.
        written: what the answer called: ``"softmin"``.
        method: of the Function that ran it: one of ``METHODS``.
        line: of the answer's cell.
        read: addresses of the memory of the tensors that it got.
    """

    name: str
    written: str
    method: str
    line: int
    read: frozenset[int]


@dataclass(frozen=True)
class Call:
    """One call of a method: what it was called, what it got besides ctx, and what it returned."""

    method: str
    given: tuple[Any, ...]
    returned: Any


class Observer:
    """Sees what runs while it is entered, in the methods of Functions and around them.

    It says what was computed, in whatever way that was written: an alias, a helper, a method, an operator of
    ``torch.ops`` are the same to it.

    Args:
        answers: Functions, whose methods are watched, and other functions, whose lines are told.

    Attributes:
        calls: the calls of the methods, in order.
        operations: what ran inside methods, in order.
        derivatives: names and lines of what asks torch for a derivative. Every way leads through one of four:
            gradients switched on inside a method, the engine, a dual number, a ready-made backward of torch. That of
            a convolution is allowed: it is another convolution, and has no other name.
        outside: names and lines of what has a share in the gradient without being in a method: nodes that torch
            recorded, hooks.

    Example:
        >>> import torch
        >>> class Cube(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**3
        ...
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * 3 * ctx.saved_tensors[0].square()
        >>> from nbautograd.course.observer import Observer
        >>> with Observer(Cube) as seen:
        ...     Cube.apply(torch.ones(2, requires_grad=True)).backward(torch.ones(2))
        >>> [operation.name for operation in seen.operations if operation.method == "backward"]
        ['mul', 'integer_pow', 'mul']
    """

    def __init__(self, *answers: Any) -> None:
        self.calls: list[Call] = []
        self.operations: list[Operation] = []
        self.derivatives: list[tuple[str, int]] = []
        self.outside: list[tuple[str, int]] = []
        self._classes = [one for one in answers if isinstance(one, type) and issubclass(one, Function)]
        methods = (getattr(cls, method) for cls in self._classes for method in ("forward", "backward"))
        functions = (inspect.unwrap(one) for one in itertools.chain(answers, methods) if isinstance(one, FunctionType))
        self._files = {one.__code__.co_filename for one in functions}
        self._method = self._written = ""
        self._calling = self._running = False
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Observer:
        """Watch the methods, and what is around them."""
        for cls in self._classes:
            for method in METHODS:
                if getattr(cls, method, None) is not getattr(Function, method, None):
                    self._stack.enter_context(self._replaced(cls, method))
        self._stack.enter_context(self._within(""))
        return self

    def __exit__(self, *_: Any) -> None:
        """Leave the classes as they were."""
        self._stack.close()

    def ran(self, refused: Mapping[str, Collection[str]]) -> Iterator[Operation]:
        """Yield what ran in a method although it is refused there.

        Args:
            refused: method -> names of operations; what is refused in forward is refused in setup_context.
        """
        for operation in self.operations:
            asked = {"setup_context": "forward", "vjp": "backward"}.get(operation.method, operation.method)
            if operation.name in refused.get(asked, ()):
                yield operation

    @contextlib.contextmanager
    def _replaced(self, cls: Any, method: str) -> Iterator[None]:
        own, call = cls.__dict__.get(method), getattr(cls, method)

        def inside(*args: Any) -> Any:
            with self._within(method):
                returned = call(*args)
            self.calls.append(Call(method, args[1:], returned))
            return returned

        setattr(cls, method, staticmethod(inside))
        try:
            yield
        finally:
            delattr(cls, method) if own is None else setattr(cls, method, own)

    @contextlib.contextmanager
    def _within(self, method: str) -> Iterator[None]:
        """Enter a method. The engine runs backward outside of the modes of its caller, so they are entered anew."""
        before = self._method, self._written, self._calling
        self._method, self._written, self._calling = method, "", False
        try:
            with _Operations(self), _Calls(self):
                yield
        finally:
            self._method, self._written, self._calling = before

    def called(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Note what a call says of derivatives, and make it."""
        if self._calling:  # what torch calls by itself
            return func(*args, **kwargs)
        name = _base(getattr(func, "__name__", ""))
        switched = name == "_set_grad_enabled" and args == (True,) and self._method != ""
        if name in ("grad", "backward", "_make_dual") or switched or _ready_made_backward(name):
            self._asked(WRITTEN.get(name, name))
        if name in HOOKS and self._method == "" and (line := self._line()):
            self.outside.append((name, line))
        if name in ("numpy", "__array__") and self._method:
            self.operations.append(Operation("numpy", name, self._method, self._line(), frozenset()))
        self._calling, self._written = True, name
        try:
            result = func(*args, **kwargs)
        finally:
            self._calling, self._written = False, ""
        if self._method == "":
            self._recorded(result)
        return result

    def ran_operation(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Note one operation inside a method, and run it."""
        if self._running or self._method == "":
            return func(*args, **kwargs)
        self._running = True
        try:
            result = func(*args, **kwargs)
        finally:
            self._running = False
        if not getattr(func, "is_view", False) and func.__name__ not in ("detach.default", "lift_fresh.default"):
            name, read = _plain(func.__name__, args), frozenset(map(memory, _tensors((*args, *kwargs.values()))))
            self.operations.append(Operation(name, self._written or name, self._method, self._line(), read))
            if _ready_made_backward(_base(func.__name__)) and not self._written:
                self._asked(_base(func.__name__))
        return result

    def _asked(self, name: str) -> None:
        """Note that a derivative was asked for, unless whoever watches did it."""
        line = self._line()
        if line:
            self.derivatives.append((name, line))

    def _recorded(self, result: Any) -> None:
        """Note the nodes of torch that a call outside of the methods left."""
        for node in graph_nodes(list(_tensors((result,)))):
            kind = type(node).__name__.partition("Backward")[0]
            if kind not in CARRYING and not hasattr(type(node), "_forward_cls") and (line := self._line()):
                self.outside.append((type(node).__name__, line))
                return

    def _line(self) -> int:
        """Return the line that runs now of the files of the answer; 0 where none of them does."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename not in self._files:
            frame = frame.f_back  # type: ignore[assignment]
        return 0 if frame is None else frame.f_lineno


class _Calls(TorchFunctionMode):
    """Hands an observer the calls of torch's Python functions."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Hand on one call."""
        return self.observer.called(func, args, kwargs or {})


class _Operations(TorchDispatchMode):
    """Hands an observer the operations that torch runs."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.observer = observer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Hand on one operation."""
        return self.observer.ran_operation(func, args, kwargs or {})


def _base(name: str) -> str:
    return name.partition(".")[0]


def _plain(name: str, args: Any) -> str:
    """Return an operation's name as its users know it: ``softmax`` of ``_softmax.default``, ``exp`` of ``exp_``.

    A power by a whole number is a product, and no ``pow``.
    """
    plain = _base(name).strip("_").removeprefix("special_").removesuffix("_forward")
    whole = plain == "pow" and isinstance(args[1], (int, float)) and float(args[1]).is_integer()
    return "integer_pow" if whole else plain


def _ready_made_backward(name: str) -> bool:
    return "_backward" in name and name != "convolution_backward"


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def memory(tensor: Tensor) -> int:
    """Return the address of a tensor's memory."""
    return tensor.untyped_storage().data_ptr()
