"""Private names of torch about tensors, modes and the engine, each behind a probe with a way to go on without it.

Everything here raises when torch has changed; nothing reads memory.
"""

from __future__ import annotations

import functools
import gc
import operator
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import torch

from nbautograd.core.stumbles import hands_over
from nbautograd.core.this_thread import undone


def _probe(path: str, otherwise: Any) -> Any:
    """Return something private of torch by its dotted name, or what to use where it does not exist."""
    value: Any = torch
    for name in path.split("."):
        value = getattr(value, name, None)
        if value is None:
            return otherwise
    return value


def _no(*_: Any) -> bool:
    return False


def _nothing(*_: Any) -> None:
    return None


# in C: cheap enough to be asked on every recorded call
functorch_active: Callable[[], bool] = _probe("_C._are_functorch_transforms_active", _no)
tracing: Callable[[], bool] = _probe("_C._is_tracing", _no)
keep_graph: Callable[[], bool] = _probe("_C._autograd._get_current_graph_task_keep_graph", _no)
profiling: Callable[[], bool] = _probe("_C._autograd._profiler_enabled", _no)
disable_torch_function: Callable[[], AbstractContextManager[Any]] = _probe("_C.DisableTorchFunction", nullcontext)
# True where a function mode is on and ``disable_torch_function`` can keep it from what is asked
function_mode_active: Callable[[], bool] = (
    _no if disable_torch_function is nullcontext else _probe("_C._is_torch_function_mode_enabled", _no)
)

_trace: Callable[[], Any] = _probe("_guards.TracingContext.try_get", _nothing)

_dispatch_keys: Callable[[torch.Tensor], Any] | None = _probe("_C._dispatch_keys", None)
_is_cow: Callable[[torch.Tensor], bool] = _probe("_C._is_cow_tensor", _no)
# what tells storages apart: the same number for tensors that share one, while they live
storage_address: Callable[[torch.Tensor], int] = _probe("_C._storage_address", id)
_is_batched: Callable[[Any], bool] = _probe("_C._functorch.is_batchedtensor", _no)
_is_wrapped_for_grad: Callable[[Any], bool] = _probe("_C._functorch.is_gradtrackingtensor", _no)
_unwrapped: Callable[[Any], Any] = _probe("_C._functorch.get_unwrapped", _nothing)
_level: Callable[[Any], int] = _probe("_C._functorch.maybe_get_level", _nothing)


def _storage_data(tensor: torch.Tensor) -> int:
    first = 0 if _is_cow(tensor) else tensor.data_ptr()
    return first - int(tensor.storage_offset()) * tensor.itemsize if first else 0


# Returns the address at which a tensor's storage begins, 0 when that was freed. Unlike ``data_ptr`` this leaves
# copy-on-write storages as they are. ``untyped_storage()`` must not be asked: the Python object that it makes counts as
# a user of the storage, and the engine then adds gradients out of place.
storage_data: Callable[[torch.Tensor], int] = _probe("_C._data_address", _storage_data)


@hands_over
def data_address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's first element, which in a slice is not that of its storage; 0 when freed."""
    start = storage_data(tensor)
    offset: int = tensor.storage_offset()  # type: ignore[assignment]  # a SymInt only where there is no address
    return start + offset * tensor.itemsize if start and offset else start


def dispatch_keys(tensor: torch.Tensor) -> int:
    """Return the dispatch keys of a tensor as one number, 0 where this torch does not tell.

    The number, not the set: in torch 2.6 the set has no ``__eq__``.
    """
    if _dispatch_keys is None:
        return 0
    keys: int = _dispatch_keys(tensor).raw_repr()
    return keys


def _keys_of_plain_tensors(inference: bool) -> int:
    try:
        with torch.inference_mode(inference):
            return dispatch_keys(torch.empty(1, device="cpu"))
    except (AttributeError, RuntimeError, TypeError):  # no such interface in this torch: no tensor counts as ordinary
        return 0


# Dispatch keys of an ordinary strided CPU tensor: no subclass, vmap level, fake, meta, sparse, quantised, named,
# nested, conjugated or lazily negated one. One made in inference mode has fewer, and no version.
ORDINARY = _keys_of_plain_tensors(inference=False)
INFERENCE = _keys_of_plain_tensors(inference=True)


def compiling() -> bool:
    """Return True while ``torch.compile`` or ``torch.export`` traces; torch 2.6 itself says so of exports alone."""
    return torch.compiler.is_compiling() or _trace() is not None


@hands_over
def vmap_level(tensor: torch.Tensor) -> int | None:
    """Return the level of ``torch.func.vmap`` that batches a tensor, None when none does."""
    return _level(tensor) if _is_batched(tensor) else None


@hands_over
def unwrap_for_grad(tensor: Any) -> Any:
    """Return the tensor inside the levels of ``torch.func.grad`` and ``jvp``; other tensors as they are."""
    while _is_wrapped_for_grad(tensor):
        tensor = _unwrapped(tensor)
    return tensor


def _guard_for(*backends: str) -> Callable[[], AbstractContextManager[Any]] | None:
    """Return a maker of guards under which only these backends' kernels hear of an operation.

    Autograd, the levels of ``torch.func``, autocast and the user's dispatch modes are left out. The profiler is not:
    what runs under the guard appears in its table.
    """
    keyset, keys = _probe("_C.DispatchKeySet", None), _probe("_C.DispatchKey", None)
    full, guard = _probe("_C._dispatch_keyset_full", None), _probe("_C._ExcludeDispatchKeyGuard", None)
    try:
        others = full()
        for backend in backends:
            if hasattr(keys, backend):
                others = others - keyset(getattr(keys, backend))
        with guard(others):
            torch.ones(2).as_strided((1,), (1,))
    except (AttributeError, RuntimeError, TypeError):  # this torch has no such guard
        return None
    return lambda: guard(others)


only_kernels = _guard_for("CPU", "CUDA", "XPU", "MPS", "PrivateUse1", "BackendSelect")

_dispatch_modes: Callable[[], int] = _probe("_C._len_torch_dispatch_stack", lambda: 1)
_key_included: Callable[[Any], bool] = _probe("_C._dispatch_tls_is_dispatch_key_included", lambda _: True)
_pre_dispatch: Any = _probe("_C.DispatchKey.PreDispatch", None)


def nobody_hears() -> bool:
    """Return True where a view of a plain tensor makes no node, and no mode and no transform hears of it."""
    return not (torch.is_grad_enabled() or functorch_active() or _dispatch_modes() or _key_included(_pre_dispatch))


_call = operator.methodcaller("__call__")


def run_unheard(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run operations, which are in C, by the kernels alone; returns what they give.

    Without the guard's keys there is no autograd for anything that runs meanwhile. A signal handler of the user's runs
    between two steps of Python, so the guard is entered, used and left in one step; a finalizer runs when the garbage
    collector does, before Python 3.12 at any allocation, so that is off for the step, unless another thread could ask
    whether it is.
    """
    assert only_kernels is not None
    guard = only_kernels()
    leave = functools.partial(guard.__exit__, None, None, None)
    pause = sys.version_info < (3, 12) and gc.isenabled() and threading.active_count() == 1
    before, after = ([gc.disable], [gc.enable]) if pause else ([], [])
    try:
        returned = list(map(_call, (*before, guard.__enter__, *calls, leave, *after)))
    except BaseException:
        leave()
        if pause:
            gc.enable()
        raise
    return returned[len(before) + 1 : len(before) + 1 + len(calls)]


@cache
def _skip_strategy(with_calls: bool) -> Any:
    """Return how Dynamo is told to leave a frame alone, None where this torch has no such thing."""
    strategy = _probe("_C._dynamo.eval_frame._FrameExecStrategy", None)
    action = _probe("_C._dynamo.eval_frame._FrameAction", None)
    if strategy is None or action is None:
        return None
    return strategy(action.SKIP, action.SKIP if with_calls else action.DEFAULT)


@contextmanager
def uncounted_by_dynamo() -> Iterator[None]:
    """Leave what ``torch.compile`` has counted in this process as it was: what is compiled meanwhile is ours."""
    counters = _dynamo_counters()
    before = {name: dict(counts) for name, counts in counters.items()}
    try:
        yield
    finally:
        counters = _dynamo_counters()
        for name in [*counters]:
            counters[name].clear()
            counters[name].update(before.get(name, {}))


def _dynamo_counters() -> Any:
    utils = sys.modules.get("torch._dynamo.utils")
    return {} if utils is None else getattr(utils, "counters", {})


def skip_in_dynamo(*codes: CodeType, with_calls: bool) -> None:
    """Keep ``torch.compile`` from compiling these frames of ours, and what they call where that is ours too."""
    set_strategy = _probe("_C._dynamo.eval_frame.set_code_exec_strategy", None)
    strategy = _skip_strategy(with_calls)
    if set_strategy is not None and strategy is not None:
        for code in codes:
            set_strategy(code, strategy)
        return
    skip_code = _probe("_C._dynamo.eval_frame.skip_code", _nothing)  # torch 2.6 knows no "and what they call"
    for code in (*codes, *(_codes_that_record() if with_calls else ())):
        skip_code(code)


def _codes_that_record() -> Iterator[CodeType]:
    rooms = (f"{__package__}.", "nbautograd.core.recording.", "nbautograd.core.display")
    for name in [name for name in sys.modules if name.startswith(rooms)]:
        values = [value for value in vars(sys.modules[name]).values() if getattr(value, "__module__", None) == name]
        for value in values:
            entries = vars(value).values() if isinstance(value, type) else [value]
            functions = [getattr(entry, "__func__", getattr(entry, "fget", entry)) for entry in entries]
            yield from _with_inner([one.__code__ for one in functions if isinstance(one, FunctionType)])


def _with_inner(codes: Iterable[Any]) -> Iterator[CodeType]:
    for code in codes:
        if isinstance(code, CodeType):
            yield code
            yield from _with_inner(code.co_consts)


_run_backward: Callable[..., Any] | None = _probe("autograd.Variable._execution_engine.run_backward", None)
_PLAIN = (torch.Tensor, torch.nn.Parameter)


@hands_over
def gradients(
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    grad_outputs: Sequence[torch.Tensor],
    create_graph: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """Return what ``torch.autograd.grad`` gives for fitting grad_outputs; the graph stays, what is not reached is None.

    The engine is asked straight away: on its way to it torch imports sympy once (half a second) and compares symbolic
    shapes each time, which takes as long as a small backward.
    """
    plain = _run_backward is not None and all(type(t) in _PLAIN for t in (*outputs, *inputs, *grad_outputs))
    if _run_backward is None or not plain:
        return torch.autograd.grad(
            outputs, inputs, grad_outputs, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
    computed: tuple[torch.Tensor | None, ...] = _run_backward(
        tuple(outputs), tuple(grad_outputs), True, create_graph, tuple(inputs), True, accumulate_grad=False
    )
    return computed


@hands_over
def vmap(function: Callable[..., Any], in_dims: Any, *given: Any) -> Any:
    """Call a function for many arguments at once, as ``torch.vmap`` does."""
    return torch.func.vmap(function, in_dims=in_dims)(*given)


def refuses_grad(error: BaseException) -> bool:
    """Return True for what a backward raised since ``torch.autograd.grad`` was called, not ``backward()``.

    Only code that asks torch for it can know the difference.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "_is_checkpoint_valid" in trace.tb_frame.f_code.co_names


@contextmanager
def modes_restored() -> Iterator[None]:
    """Leave whatever modes (``TorchDispatchMode``, ``TorchFunctionMode``) a block enters and forgets to leave."""
    before = [size() for size, _, _ in _STACKS]

    def undo() -> None:
        for (size, pop, wanted), depth in zip(_STACKS, before, strict=True):
            while size() > depth:
                pop(*wanted)

    with undone(undo):
        yield


_STACKS: list[tuple[Callable[[], int], Callable[..., Any], tuple[None, ...]]] = [
    (size, pop, wanted)
    for kind, wanted in (("dispatch", (None,)), ("function", ()))  # what pop wants
    if (size := _probe(f"_C._len_torch_{kind}_stack", None)) and (pop := _probe(f"_C._pop_torch_{kind}_stack", None))
]
