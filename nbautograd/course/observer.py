"""Observer: what an answer runs: its Functions' methods, torch's operations in them, and derivatives asked of torch."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from nbautograd.core.checking.problem import graph_nodes
from nbautograd.core.pytrees import tensors

KEPT = 2000  # what an operation gets and what it makes are counted apart
METHODS = ("forward", "setup_context", "backward", "vjp", "jvp")
# nodes that hand a gradient on as it is, in another shape or dtype
CARRYING = {"AccumulateGrad", "Clone", "Alias", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "ToCopy"}
HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
WRITTEN = {"grad": "torch.autograd.grad", "_make_dual": "torch.func.jvp", "call_wrapped": "torch.fx.GraphModule"}
# what takes numbers out of torch; of those below one that stands alone may tell when to stop
LEAVING = {"numpy", "__array__", "tolist", "__dlpack__", "untyped_storage", "storage", "data_ptr"}
ONE_BY_ONE = {"item", "__float__", "__complex__"}
# what makes, moves, copies or converts numbers, and computes none
MOVING = {
    "alias", "as_strided", "cat", "clone", "contiguous", "copy", "detach", "empty", "empty_like", "empty_strided",
    "expand", "fill", "flip", "full", "full_like", "index", "index_put", "index_select", "is_same_size",
    "lift_fresh", "local_scalar_dense", "movedim", "new_empty", "new_empty_strided", "new_full", "new_ones",
    "new_zeros", "ones", "ones_like", "permute", "repeat", "reshape", "reshape_alias", "roll", "scalar_tensor",
    "select", "set", "slice", "split", "split_with_sizes", "squeeze", "stack", "t", "to", "to_copy", "transpose",
    "unbind", "unfold", "unsafe_view", "unsqueeze", "view", "zero", "zeros", "zeros_like",
}  # fmt: skip
ARITHMETIC = MOVING | {
    *("add", "sub", "rsub", "mul", "div", "neg", "abs", "reciprocal", "where", "maximum", "minimum"),
    *("clamp", "clamp_min", "clamp_max"),
}
# elementwise functions beyond arithmetic, what is made of them, and what computes them elsewhere
_TRANSCENDENTAL = (
    "exp exp2 expm1 log log2 log10 log1p xlogy logaddexp logaddexp2 logsumexp logcumsumexp pow float_power matrix_exp"
    " sin cos tan sinc asin acos atan atan2 sinh cosh tanh asinh acosh atanh polar angle"
    " sigmoid logit softplus log_sigmoid softmax log_softmax silu mish elu selu celu gelu"
    " erf erfc erfinv erfcx ndtr ndtri log_ndtr entr igamma igammac lgamma digamma"
)
TRANSCENDENTAL = frozenset(_TRANSCENDENTAL.split())


Numbers = tuple[tuple[int, Tensor], ...]


@dataclass(frozen=True)
class Operation:
    """One operation of torch that computed something; views are left out.

    Attributes:
        name: torch's own, without overload and underscores: ``"softmax"``, whatever the answer called to get it;
            ``"numpy"`` where numbers leave torch, for NumPy or a list.
        written: what the answer called: ``"softmin"``.
        method: of the Function that ran it: one of ``METHODS``; empty outside of them.
        line: of the answer's cell.
        read: addresses of the memory of the tensors that it got.
        inside: names of the functions of torch, written in Python, that ran it for the answer, the outermost first.
        arguments: copies of the tensors of real numbers that it got, made before it ran, each with the address of its
            memory; empty unless the observer keeps them.
        made: the same of what it returned.
    """

    name: str
    written: str
    method: str
    line: int
    read: frozenset[int]
    inside: tuple[str, ...] = ()
    arguments: Numbers = field(default=(), repr=False, compare=False)
    made: Numbers = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Call:
    """One call of a method: what it was called, what it got besides ctx, and what it returned."""

    method: str
    inputs: tuple[Any, ...]
    returned: Any


class Observer:
    """Sees what runs while it is entered, in the methods of Functions and around them.

    It says what was computed, in whatever way that was written: an alias, a helper, a method, an operator of
    ``torch.ops`` are the same to it.

    Args:
        answers: Functions, whose methods are watched, and other functions. Lines of their modules are told, and of the
            notebook, which is ``__main__``.
        keep: the numbers in the operations too, of each method in the first thousand.

    Attributes:
        calls: the calls of the methods, in order.
        operations: what ran, in order.
        derivatives: names and lines of what asks for a derivative instead of writing it. Every way leads through one
            of six: gradients switched on inside a method, the engine, a dual number, complex numbers in a method whose
            inputs are real, a ready-made backward of torch, a program that torch recorded. ``torch.nn.grad`` is
            allowed: the gradient of a convolution is another convolution, and has no other name.
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
        ['mul', 'integer_power', 'mul']
    """

    def __init__(self, *answers: Any, keep: bool = False) -> None:
        self.calls: list[Call] = []
        self.operations: list[Operation] = []
        self.derivatives: list[tuple[str, int]] = []
        self.outside: list[tuple[str, int]] = []
        self._classes = [one for one in answers if isinstance(one, type) and issubclass(one, Function)]
        self._modules = {"__main__", *(str(getattr(one, "__module__", "")) for one in answers)}
        self._entered: FrameType | None = None  # whoever watches, and all that called it, is no answer
        self._complex = False  # among what the methods got
        self._method = self._written = ""
        self._calling = self._running = self._without = False
        self._stack = contextlib.ExitStack()
        self._keep, self._copies_by_method = keep, Counter[str]()
        self._alive: list[Tensor] = []  # what is alive has an address of its own

    def __enter__(self) -> Observer:
        """Watch the methods, and what is around them."""
        self._entered = sys._getframe(1)
        for cls in self._classes:
            for method in METHODS:
                if getattr(cls, method, None) is not getattr(Function, method, None):
                    self._stack.enter_context(self._replaced(cls, method))
        self._stack.enter_context(self._within(""))
        return self

    def __exit__(self, *_: Any) -> None:
        """Leave the classes as they were."""
        self._stack.close()
        self._entered = None

    def ran(self, refused: Mapping[str, Collection[str]]) -> Iterator[Operation]:
        """Yield what ran in a method although it is refused there, under the name that is refused.

        A refused name may be a part of another one: who refuses ``softmax`` refuses ``_safe_softmax``. torch has many
        operations a second time, written in Python of simpler ones (``torch._refs``, ``torch._decomp``): what these
        run counts as theirs.

        Args:
            refused: method -> names of operations; what is refused in forward is refused in setup_context.
        """
        for operation in self.operations:
            asked = {"setup_context": "forward", "vjp": "backward"}.get(operation.method, operation.method)
            names = refused.get(asked, ())
            if _has(operation.name, names):
                yield operation
            else:
                yield from (replace(operation, written=name) for name in operation.inside if _has(name, names))

    @contextlib.contextmanager
    def _replaced(self, cls: Any, method: str) -> Iterator[None]:
        own, call = cls.__dict__.get(method), getattr(cls, method)

        def inside(*args: Any) -> Any:
            self._complex |= any(x.is_complex() for x in tensors(args[1:]))
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
        before = self._method, self._written, self._calling, self._without
        without = method != "" and not torch.is_grad_enabled()
        self._method, self._written, self._calling, self._without = method, "", False, without
        try:
            with _Operations(self), _Calls(self):
                yield
        finally:
            self._method, self._written, self._calling, self._without = before

    def called(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Note what a call says of derivatives, and make it."""
        if self._calling:  # what torch calls by itself
            return func(*args, **kwargs)
        name = _base(getattr(func, "__name__", ""))
        if name in ("grad", "backward", "_make_dual") or (
            _native_derivative([name]) and _native_derivative([name, *self._place()[1]])
        ):
            self._note_derivative(WRITTEN.get(name, name))
        elif self._switched_on() or (name == "_set_grad_enabled" and args == (True,) and self._without):
            self._note_derivative("torch.enable_grad")
        if name in HOOKS and self._method == "" and (line := self._line()):
            self.outside.append((name, line))
        self._calling, self._written = True, name
        try:
            if _leaves(name, args):
                self.operations.append(Operation("numpy", name, self._method, self._line(), frozenset()))
            result = func(*args, **kwargs)
        finally:
            self._calling, self._written = False, ""
        if self._method == "":
            self._recorded(result)
        return result

    def ran_operation(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Note one operation, and run it."""
        if self._running:
            return func(*args, **kwargs)
        self._running = True
        given = list(tensors((*args, *kwargs.values())))
        try:
            before = self._numbers(given)
            result = func(*args, **kwargs)
            stepped = self._method != "" and not self._complex and _steps_aside(func.__name__, given, result)
            after = self._numbers(tensors(result))
        finally:
            self._running = False
        if not getattr(func, "is_view", False) and func.__name__ not in ("detach.default", "lift_fresh.default"):
            calling, self._calling = self._calling, True  # what is asked here is no call of the answer
            self._note(func.__name__, given, _plain(func.__name__, args), before, after)
            self._calling = calling
        if stepped:
            self._note_derivative("1j")
        return result

    def _numbers(self, found: Iterable[Tensor]) -> Numbers:
        self._copies_by_method[self._method] += 1
        if not self._keep or self._copies_by_method[self._method] > KEPT:
            return ()
        calling, self._calling = self._calling, True
        real = [x for x in found if x.is_floating_point() and x.layout is torch.strided]
        self._alive += real
        copied = tuple((memory(x), x.detach().clone()) for x in real)
        self._calling = calling
        return copied

    def _note(self, full: str, given: list[Tensor], name: str, before: Numbers, after: Numbers) -> None:
        line, inside = self._place()
        read = frozenset(map(memory, given))
        self.operations.append(Operation(name, self._written or name, self._method, line, read, inside, before, after))
        ready_made = _native_derivative([*inside, "" if self._written else _base(full)])
        if asked := ready_made or ("torch.enable_grad" if self._switched_on() else ""):
            self._note_derivative(WRITTEN.get(asked, asked))

    def _switched_on(self) -> bool:
        """Return True in a method that began without gradients and has them on now."""
        return self._without and torch.is_grad_enabled()

    def _note_derivative(self, name: str) -> None:
        """Note that a derivative was asked for, unless whoever watches did it."""
        line = self._line()
        if line:
            self.derivatives.append((name, line))

    def _recorded(self, result: Any) -> None:
        """Note the nodes of torch that a call outside of the methods left."""
        for node in graph_nodes(list(tensors(result))):
            kind = type(node).__name__.partition("Backward")[0]
            if kind not in CARRYING and not hasattr(type(node), "_forward_cls") and (line := self._line()):
                self.outside.append((type(node).__name__, line))
                return

    def _line(self) -> int:
        """Return the line that runs now of the answer or the notebook; 0 where none of them does."""
        return self._place()[0]

    def _place(self) -> tuple[int, tuple[str, ...]]:
        """Return that line, and the names of torch's functions in Python between it and what runs now."""
        frame, names = sys._getframe(1), []
        while frame is not None and (module := str(frame.f_globals.get("__name__", ""))) not in self._modules:
            if module == "torch._ops":  # an operator, called or decomposed
                names.append(_base(getattr(frame.f_locals.get("self"), "__name__", frame.f_code.co_name)))
            elif module.partition(".")[0] == "torch":
                names.append(frame.f_code.co_name)
            frame = frame.f_back if frame is not self._entered else None  # type: ignore[assignment]
        return (0, ()) if frame is None or frame is self._entered else (frame.f_lineno, tuple(names[::-1]))


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
    return "integer_power" if whole else plain


def _has(name: str, words: Collection[str]) -> bool:
    """Return True if one of these names is this one, or a part of it: ``softmax`` of ``safe_softmax``."""
    return any(f"_{word}_" in f"_{name.strip('_')}_" for word in words)


def _native_derivative(names: Collection[str]) -> str:
    """Return the first of these functions of torch that is a derivative; empty in one of ``torch.nn.grad``."""
    if any(name.startswith("conv") and name.endswith(("_input", "_weight")) for name in names):
        return ""
    return next((name for name in names if "_backward" in name or name == "call_wrapped"), "")


def _leaves(name: str, args: Any) -> bool:
    """Return True if a call takes numbers out of torch, or their bits, other than whole ones and one that is alone."""
    bits = name == "view" and any(isinstance(item, torch.dtype) for item in args)
    if name not in LEAVING | ONE_BY_ONE and not bits:
        return False
    x = next(tensors(args), None)
    if x is None or not (x.is_floating_point() or x.is_complex()):
        return False
    return bits or name in LEAVING or x.untyped_storage().nbytes() > x.element_size()


def _steps_aside(name: str, given: Iterable[Tensor], result: Any) -> bool:
    """Return True where real numbers become complex, as those at which a derivative by complex steps is taken.

    A Fourier transform and eigenvalues are complex by themselves.
    """
    real = any(x.is_floating_point() for x in given) and not name.startswith(("_fft", "linalg", "_linalg"))
    return real and any(x.is_complex() for x in tensors(result))


def memory(tensor: Tensor) -> int:
    """Return the address of a tensor's memory; 0 for one without, as a sparse one is."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
