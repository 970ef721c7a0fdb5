"""The one place that touches torch's private names, each behind a probe with a way to go on without it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import CodeType
from typing import Any

import torch

_C = torch._C


def _probe(path: str, otherwise: Any) -> Any:
    """Something private of torch by its dotted name, or what to use where it does not exist."""
    found: Any = torch
    for name in path.split("."):
        found = getattr(found, name, None)
        if found is None:
            return otherwise
    return found


def _no(*_: Any) -> bool:
    return False


def _nothing(*_: Any) -> None:
    return None


# in C: cheap enough to be asked on every recorded call
functorch_active: Callable[[], bool] = _probe("_C._are_functorch_transforms_active", _no)
function_mode_active: Callable[[], bool] = _probe("_C._is_torch_function_mode_enabled", _no)
tracing: Callable[[], bool] = _probe("_C._is_tracing", _no)
keep_graph: Callable[[], bool] = _probe("_C._autograd._get_current_graph_task_keep_graph", _no)
disable_torch_function: Callable[[], AbstractContextManager[Any]] = _probe("_C.DisableTorchFunction", nullcontext)

dispatch_keys: Callable[[torch.Tensor], Any] | None = _probe("_C._dispatch_keys", None)
_is_cow: Callable[[torch.Tensor], bool] = _probe("_C._is_cow_tensor", _no)
_data_address: Callable[[torch.Tensor], int] | None = _probe(
    "_C._data_address", lambda tensor: 0 if _is_cow(tensor) else tensor.data_ptr()
)
_storage_address: Callable[[torch.Tensor], int] | None = _probe("_C._storage_address", None)
_is_batched: Callable[[Any], bool] = _probe("_C._functorch.is_batchedtensor", _no)
_is_wrapped_for_grad: Callable[[Any], bool] = _probe("_C._functorch.is_gradtrackingtensor", _no)
_unwrapped: Callable[[Any], Any] = _probe("_C._functorch.get_unwrapped", _nothing)
_level: Callable[[Any], int] = _probe("_C._functorch.maybe_get_level", _nothing)


def _plain_keys() -> tuple[Any, ...]:
    """Dispatch keys of an ordinary CPU tensor, without and with inference mode."""
    if dispatch_keys is None:
        return ()
    with torch.inference_mode():
        inference = torch.empty(1, device="cpu")
    with torch.inference_mode(False):
        ordinary = torch.empty(1, device="cpu")
    return dispatch_keys(ordinary), dispatch_keys(inference)


try:
    ORDINARY, _INFERENCE = _plain_keys()
except Exception:
    ORDINARY = _INFERENCE = None


def bytes_reason(tensor: torch.Tensor) -> str:
    """Why the elements of a tensor may not be read from its memory; empty when they may be.

    Ordinary strided CPU tensors may: no subclass, vmap level, fake, meta, sparse, quantised or lazily negated one.
    """
    if dispatch_keys is None or _data_address is None:
        return "this torch does not tell"
    keys = dispatch_keys(tensor)
    if keys == ORDINARY or keys == _INFERENCE:  # noqa: SIM109 - a tuple of pybind objects is slower
        return ""
    if _is_batched(tensor):
        return f"vmap level {_level(tensor)}"
    if tensor.is_meta:
        return "meta device"
    if tensor.device.type != "cpu":
        return f"{tensor.device.type} device"
    return "not an ordinary strided tensor"


def unwrap_for_grad(tensor: Any) -> Any:
    """The ordinary tensor inside the levels of ``torch.func.grad`` and ``jvp``; other tensors as they are."""
    while _is_wrapped_for_grad(tensor):
        tensor = _unwrapped(tensor)
    return tensor


class _Chars(dict[int, Any]):
    """By a number of bytes: what makes a view of so many of them at an address."""

    def __missing__(self, count: int) -> Any:
        if len(self) > 4096:
            self.clear()
        found = self[count] = (ctypes.c_char * count).from_address
        return found


CHARS = _Chars()


def copy_bytes(address: int, count: int) -> bytes:
    """Copy raw memory; the caller has made sure that it is there."""
    copied: bytes = CHARS[count](address).raw
    return copied


def memory_view(address: int, count: int) -> Any:
    """Raw memory as a buffer for numpy, for the moment of one copy."""
    return (ctypes.c_char * count).from_address(address)


# Address of the first element, 0 when the storage was freed. Unlike ``data_ptr`` it leaves copy-on-write storages as
# they are. ``untyped_storage()`` must not be asked: the Python object that it makes counts as a user of the storage,
# and the engine then adds gradients out of place.
memory: Callable[[torch.Tensor], int] = _data_address if _data_address is not None else lambda tensor: 0


def storage_of(tensor: torch.Tensor) -> int:
    """What tells storages apart: the same number for tensors that share one, while they live."""
    return _storage_address(tensor) if _storage_address is not None else id(tensor)


@cache
def skip_strategy(with_calls: bool) -> Any:
    """How Dynamo is told to leave a frame alone, None where this torch has no such thing."""
    strategy = _probe("_C._dynamo.eval_frame._FrameExecStrategy", None)
    action = _probe("_C._dynamo.eval_frame._FrameAction", None)
    if strategy is None or action is None:
        return None
    return strategy(action.SKIP, action.SKIP if with_calls else action.DEFAULT)


def skip_in_dynamo(*codes: CodeType, with_calls: bool) -> None:
    """Keep ``torch.compile`` from compiling these frames of ours, and what they call where that is ours too."""
    set_strategy = _probe("_C._dynamo.eval_frame.set_code_exec_strategy", None)
    strategy = skip_strategy(with_calls)
    if set_strategy is None or strategy is None:
        return
    for code in codes:
        set_strategy(code, strategy)


def backward_class(cls: type) -> type | None:
    """The hidden class whose instances are ``ctx`` and ``grad_fn`` of a Function."""
    found = vars(cls).get("_backward_cls")
    return found if isinstance(found, type) else None


def user_function_code() -> CodeType | None:
    """The code that looks up a user's ``backward`` when the engine runs a node."""
    return getattr(getattr(torch.autograd.function.BackwardCFunction, "_get_user_fn", None), "__code__", None)


def machinery() -> tuple[frozenset[CodeType], frozenset[str]]:
    """Who calls backward, vjp, jvp and vmap on PyTorch's behalf: code objects, and files whose every function does."""
    base = torch.autograd.function.BackwardCFunction
    codes = {getattr(getattr(base, name, None), "__code__", None) for name in ("_get_user_fn", "apply", "apply_jvp")}
    try:
        from torch._functorch import autograd_function

        files = frozenset({autograd_function.generate_single_level_function.__code__.co_filename})
    except (ImportError, AttributeError):
        files = frozenset()
    return frozenset(code for code in codes if code is not None), files


_run_backward: Callable[..., Any] | None = _probe("autograd.Variable._execution_engine.run_backward", None)


def gradients(
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    grad_outputs: Sequence[torch.Tensor],
    create_graph: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """``torch.autograd.grad`` for grad_outputs that fit; the graph stays, what is not reached is None.

    The engine is asked straight away: on its way to it torch imports sympy once (half a second) and compares symbolic
    shapes each time, which takes as long as a small backward.
    """
    plain = _run_backward is not None and all(type(t) in _PLAIN for t in (*outputs, *inputs, *grad_outputs))
    if _run_backward is None or not plain:
        return torch.autograd.grad(
            outputs, inputs, grad_outputs, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
    found: tuple[torch.Tensor | None, ...] = _run_backward(
        tuple(outputs), tuple(grad_outputs), True, create_graph, tuple(inputs), True, accumulate_grad=False
    )
    return found


_PLAIN = (torch.Tensor, torch.nn.Parameter)


@contextmanager
def modes_kept() -> Iterator[None]:
    """Leave whatever modes (``TorchDispatchMode``, ``TorchFunctionMode``) a block enters and forgets to leave."""
    sizes = [_probe(f"_C._len_torch_{kind}_stack", None) for kind, _ in _STACKS]
    before = [size() if size is not None else 0 for size in sizes]
    try:
        yield
    finally:
        for (kind, wanted), size, kept in zip(_STACKS, sizes, before, strict=True):
            pop = _probe(f"_C._pop_torch_{kind}_stack", None)
            while size is not None and pop is not None and size() > kept:
                pop(*wanted)


_STACKS: tuple[tuple[str, tuple[None, ...]], ...] = (("dispatch", (None,)), ("function", ()))  # what pop wants


def same_as(tensors: Sequence[torch.Tensor]) -> Callable[..., bool]:
    """Tells of other tensors whether they look like these: type, shape, strides, dtype, device, flags, dispatch keys.

    Args:
        tensors: ordinary ones; the answer keeps none of them.

    Returns:
        A function of as many values, which may be anything.
    """
    if _GUARDS is not None:
        sizes, strides = [list(t.shape) for t in tensors], [list(t.stride()) for t in tensors]
        check: Callable[..., bool] = _GUARDS(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
        return check
    looks = [_look(tensor) for tensor in tensors]

    def check_looks(*others: Any) -> bool:  # while torch.jit.trace listens, to ask for a shape would be an operation
        return not tracing() and all(_look(other) == look for other, look in zip(others, looks, strict=True))

    return check_looks


def _look(value: Any) -> tuple[Any, ...]:
    if type(value) not in _PLAIN or dispatch_keys is None:
        return (type(value),)
    flags = type(value), value.dtype, value.device, value.requires_grad
    return *flags, repr(dispatch_keys(value)), value.shape, value.stride()


_GUARDS_TRIED = ("2.13.",)  # versions of torch: an interface that has changed would crash rather than raise


def _tensor_guards() -> Any:
    """Dynamo's guards, which ask all of it of several tensors at once in C; None where they do not tell apart."""
    guards = _probe("_C._dynamo.guards.TensorGuards", None)
    if guards is None or not torch.__version__.startswith(_GUARDS_TRIED):
        return None
    ones = [torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)]
    try:
        with torch.no_grad():  # where forward runs
            check = guards(*ones, dynamic_dims_sizes=[[2, 3]] * 2, dynamic_dims_strides=[[3, 1]] * 2).check
            a, b = ones
            others = (b, a.double(), a[:1], torch.ones(3, 2).t(), torch._neg_view(a), torch.nn.Parameter(a), None)
            works = check(a, b) and not check(a, a) and not any(check(other, b) for other in others)
    except Exception:
        return None
    return guards if works else None


_GUARDS = _tensor_guards()
