"""Calls that an audit runs again: on copies, with the tensors that modules and closures share with the arguments.

What an audit knows of a call besides its Jacobians is found here: that backward runs once, that a weight is read from
elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nbautograd.core.checking.backward_call import cotangents
from nbautograd.core.checking.problem import Problem
from nbautograd.core.display import UserValue
from nbautograd.core.recording.argument_copies import copied, is_structure
from nbautograd.core.recording.watching import TENSOR, CopiedCall
from nbautograd.core.stumbles import hands_over, users_errors
from nbautograd.core.torch_private import library
from nbautograd.core.user_source import FunctionSource, read_source
from nbautograd.core.values import dtype_and_shape, short_repr
from nbautograd.inspection.audit_report import AuditedInput, How

LARGE = 20_000  # elements of inputs and outputs above which not each entry is looked at: about a second
ROWS = 2  # of the batch that are left of a large input
ALONG = "wrong_along_directions"  # code of a finding
Pair = tuple[int, int]  # positions of an output and an input
AS_CLOSE = 1e-2  # two precisions that differ by more, relative to the largest number, are not the same function


def double(item: Tensor) -> Tensor:
    """Return a tensor in double precision; integers stay as they are."""
    if not (item.is_floating_point() or item.is_complex()):
        return item
    wide = torch.complex128 if item.is_complex() else torch.float64
    return item.detach().to(wide).requires_grad_(item.requires_grad)


class DoubleByDefault(TorchFunctionMode):
    """Makes float64 what a tensor is made in, in this thread, where no dtype is asked for.

    A forward that is called in double precision has its buffers and constants in it as well; other threads, which
    ``torch.set_default_dtype`` would reach, go on as they were.
    """

    _FLOATING = frozenset({torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn, torch.eye, torch.linspace})
    _AS_THEIR_NUMBERS = frozenset({torch.full, torch.tensor, torch.arange, torch.scalar_tensor})

    @hands_over
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; one that makes a floating tensor without a dtype makes it in float64."""
        kwargs = kwargs or {}
        numbers = func in self._AS_THEIR_NUMBERS and _holds_float([*args, *kwargs.values()])
        if kwargs.get("dtype") is None and (func in self._FLOATING or numbers):
            kwargs = {**kwargs, "dtype": torch.float64}
        return func(*args, **kwargs)


def _holds_float(items: Any) -> bool:
    return any(isinstance(x, float) or (isinstance(x, (list, tuple)) and _holds_float(x)) for x in items)


def defaults(call: CopiedCall, inputs: Sequence[Any]) -> contextlib.AbstractContextManager[Any]:
    """Give a forward that is called in another precision than the program's buffers of that precision."""
    return contextlib.nullcontext() if as_called(call, inputs) else DoubleByDefault()


def as_called(call: CopiedCall, inputs: Sequence[Any]) -> bool:
    """Return True where the inputs of a check have the precision that the program called with."""
    return dtype_of((*call.arguments, *call.keywords.values())) == dtype_of(inputs)


def dtype_of(inputs: Sequence[Any]) -> str:
    """Return the name of the coarsest floating dtype among these; "" where there is none."""
    kinds = [x.dtype for x in inputs if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())]
    return "" if not kinds else str(min(kinds, key=lambda kind: -torch.finfo(kind).eps)).removeprefix("torch.")


def reading(target: Any, arguments: tuple[Any, ...], names: Sequence[str]) -> tuple[Any, tuple[Any, ...]]:
    """Return a callable whose modules, closures and objects read the tensors that it is given, and what to give it.

    Each call gets copies of them, so that what one call leaves in a module or object is not there for the next.
    """
    if not isinstance(target, type) or not any(map(is_structure, arguments)):
        return target, arguments
    template = copied(arguments, _cloned)

    def call(*given: Any) -> Any:
        moved = [item.clone() if isinstance(item, Tensor) and item.requires_grad else item for item in given]
        tied = {id(old): new for old, new in zip(template, moved, strict=True) if isinstance(old, Tensor)}
        fresh = copied(template, _cloned, tied)
        pairs = zip(moved, fresh, strict=True)
        return target.apply(*[new if isinstance(new, Tensor) else old for new, old in pairs])  # type: ignore[attr-defined]

    call.__name__ = target.__name__
    call.function = target  # type: ignore[attr-defined]
    known = [name for name in names if name.isidentifier()][: len(arguments)]
    known += [f"input_{k}" for k in range(len(known), len(arguments))]
    positional = inspect.Parameter.POSITIONAL_ONLY
    call.__signature__ = inspect.Signature([inspect.Parameter(name, positional) for name in known])  # type: ignore[attr-defined]
    return call, tuple(None if is_structure(item) else item for item in arguments)


@hands_over  # a part of the call that is checked: torch.func lets no tensor require grad in it
def _cloned(item: Tensor) -> Tensor:
    return item.detach().clone().requires_grad_(item.requires_grad)


def read_elsewhere(target: Any, inputs: tuple[Any, ...]) -> str:
    """Return the name of an input that forward gives the same result for, and backward a gradient; empty for none."""
    problem = Problem(target, inputs)
    with problem.session():
        outputs = problem.call()
        gradients = problem.vjp(outputs, cotangents(problem, outputs, 0))
        for which, gradient in zip(problem.differentiable, gradients, strict=True):
            moved = problem.fresh()
            with torch.no_grad():
                moved[which].add_(torch.rand_like(moved[which]))
            same = all(torch.equal(y, z) for y, z in zip(outputs, problem.call(moved), strict=True))
            if same and gradient is not None and bool(gradient.any()):
                return problem.input_names[which]
    return ""


def outputs_of(target: Any, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the tensors that a call gives."""
    return tuple(y.detach() for y in Problem(target, inputs).call())


def same_function(own: tuple[Any, tuple[Any, ...]], doubled: tuple[Any, tuple[Any, ...]]) -> bool:
    """Return True where outputs and gradients in double precision are those in the program's own, but for rounding.

    A kernel that reads the wrong dtype, or takes another way for it, is checked as the program calls it.
    """
    changed = any(isinstance(a, Tensor) and a.dtype != b.dtype for a, b in zip(own[1], doubled[1], strict=True))
    if not changed:
        return True
    with users_errors():
        weights: list[Tensor | None] = []
        first = _values(Problem(*own), weights)
        with DoubleByDefault():
            pairs = list(zip(first, _values(Problem(*doubled), weights), strict=True))
        return all(close(a, b) for a, b in pairs)
    return False


def _values(problem: Problem, weights: list[Tensor | None]) -> list[Tensor | None]:
    """Return outputs, the gradients for random cotangents, and whether forward changes what it is given.

    The cotangents are those in ``weights``, which the first call fills.
    """
    with problem.session():
        outputs = problem.call()
        if not weights:
            weights.extend(cotangents(problem, outputs, 0))
        own = [v if v is None else v.to(y.dtype) for v, y in zip(weights, outputs, strict=True)]
        changed = torch.tensor(problem.mutates_inputs)  # `x.float()` is a copy in double precision alone
        return [*(y.detach() for y in outputs), *problem.vjp(outputs, own), changed]


def close(a: Tensor | None, b: Tensor | None) -> bool:
    """Return True for tensors that are equal but for the rounding of a coarser dtype."""
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    if not (a.is_floating_point() or a.is_complex()):
        return torch.equal(a, b)
    wide = torch.complex128 if a.is_complex() else torch.float64
    first, second = a.to(wide), b.to(wide)
    there = torch.isfinite(first) & torch.isfinite(second)
    if not first.numel() or not bool(there.any()):
        return True
    apart, size = (first - second)[there].abs().max(), second[there].abs().max()
    return bool(apart <= max(AS_CLOSE, 8 * torch.finfo(a.dtype).eps) * size + 1e-30)


def audited_input(names: Sequence[str], k: int, key: Any, given: tuple[Any, ...] | None) -> AuditedInput:
    """Return what a report says of an argument: by what tells its situation, and by the call that was kept."""
    name = names[k] if k < len(names) and not names[k].startswith("*") else f"input {k}"
    item = None if given is None else given[k]
    if given is None:
        kind = key[k]
        dtype = str(kind[0]).removeprefix("torch.") if isinstance(kind, tuple) else getattr(kind, "__name__", "")
        if isinstance(kind, tuple) and len(kind) == TENSOR:
            return AuditedInput(name, f"{dtype} ({kind[1]}-D)", kind[2])
        if isinstance(kind, tuple) and isinstance(kind[1], (tuple, frozenset)):
            return AuditedInput(name, kind[0].__name__)  # of a list
        return AuditedInput(name, UserValue(short_repr(kind[1])) if isinstance(kind, tuple) else dtype)
    if not isinstance(item, Tensor):
        return AuditedInput(name, _code_name(item) if is_structure(item) else UserValue(short_repr(item)))
    notes = [] if item.device.type == "cpu" else [str(item.device)]
    notes += [] if item.is_contiguous() else ["not contiguous"]
    return AuditedInput(name, dtype_and_shape(item), item.requires_grad, tuple(notes))


def _code_name(item: Any) -> str:
    """Return a name for code or an object that is the same in each process."""
    if isinstance(item, functools.partial):
        return f"partial({_code_name(item.func)})"
    if isinstance(item, MethodType):
        return f"{type(item.__self__).__name__}.{item.__func__.__name__}"
    return item.__qualname__ if isinstance(item, FunctionType) else type(item).__name__


def target_of(cls: Any) -> tuple[Any, Sequence[str], FunctionSource | None]:
    """Return what to check for a Function, the names of its arguments, and its source."""
    op = library.operation_of(cls)
    if op is None:
        source = read_source(cls)
        return cls, () if source is None else source.inputs, source
    names = [argument.name for argument in op.overload._schema.arguments]
    made = library.function_of(op)
    if made is not None:
        return made, names, read_source(made)
    keywords = [argument.name for argument in op.overload._schema.arguments if argument.kwarg_only]
    first = len(names) - len(keywords)

    def call(*args: Any) -> Any:
        return op.overload(*args[:first], **dict(zip(keywords, args[first:], strict=False)))

    call.__name__ = op.name
    return call, names, None


def manageable(target: Any, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], How]:
    """Return inputs whose entries can be looked at one by one, or say that directions must do."""
    if elements(inputs) > LARGE // 2 or elements(outputs_of(target, inputs)) + elements(inputs) > LARGE:
        rows = _first_rows(target, inputs)
        return (inputs, "directions") if rows is None or elements(rows) > LARGE else (rows, "slice")
    return inputs, "entries"


def elements(items: Sequence[Any]) -> int:
    """Return how many elements the tensors among these have."""
    return sum(item.numel() for item in items if isinstance(item, Tensor))


def _first_rows(target: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the inputs with the first rows of the batch alone; None where the outputs are not those rows' outputs."""
    sizes = [x.shape[0] for x in inputs if isinstance(x, Tensor) and x.requires_grad and x.dim() > 1]
    batch = sizes[0] if sizes else 0
    if batch <= ROWS:
        return None
    whole, deepest = outputs_of(target, inputs), max(x.dim() for x in inputs if isinstance(x, Tensor))
    if not all(y.dim() and y.shape[0] == batch for y in whole):
        return None
    for least in (0, deepest):  # a weight may be as long as the batch by chance
        few = tuple(_rows(x, batch) if isinstance(x, Tensor) and x.dim() >= least else x for x in inputs)
        with users_errors():
            part = outputs_of(target, few)
            if len(whole) == len(part) and all(close(y[:ROWS], z) for y, z in zip(whole, part, strict=True)):
                return few
    return None


def _rows(item: Tensor, batch: int) -> Tensor:
    if not item.dim() or item.shape[0] != batch:
        return item
    return item.detach()[:ROWS].clone().requires_grad_(item.requires_grad)


def package_of(module: str) -> str:
    """Return the installed package that a module comes with, and its version; empty where there is none."""
    names = _distributions().get(module.partition(".")[0], ())
    return "" if len(set(names)) != 1 else f"{names[0]} {importlib.metadata.version(names[0])}"


@functools.cache
def _distributions() -> Mapping[str, Sequence[str]]:
    return importlib.metadata.packages_distributions()
