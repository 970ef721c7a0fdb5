"""Run code in another precision than it was written for: in float64 throughout, or with every result rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from nbautograd.core import pytrees
from nbautograd.core.stumbles import hands_over
from nbautograd.core.torch_private.dispatch import ThreadDispatchMode

TABLE = 65_537  # a prime, so that no dimension is a multiple of it; random numbers would cost most of a run

COARSER = frozenset((torch.float32, torch.float16, torch.bfloat16))

# operations that are one in torch and several in a kernel: what a kernel may round in between is seen by taking them
# apart, as torch's own reference decompositions do
_FUSED = (
    "_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm",
    "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward", "silu", "silu_backward", "gelu",
    "gelu_backward", "native_group_norm", "native_group_norm_backward", "nll_loss_forward", "nll_loss_backward",
)  # fmt: skip


# sums, whose terms are rounded before: in another order also a sum is rounded that is exact in this one
_SUMS = ("mean", "sum", "var", "var_mean")
# these likewise in float32. Of less than that they are added up in float32 inside.
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "dot", "mv")
# differences likewise, of numbers, too: 1 + erf(x) is left of terms that another formula has rounded
_TERMS = ("add", "sub", "rsub")

# operations in which values meet that may come from the same one: a kernel computes that again, or keeps it rounded
_MEETING = ("add", "sub", "rsub", "mul", "div", "mm", "bmm", "addmm", "baddbmm", "dot", "mv")

# operations that hand on some of what they get: rounded, the largest would be none of those that it is compared with
_PICKING = ("amax", "amin", "max", "min", "maximum", "minimum", "sort", "topk", "median", "kthvalue")

# operations that draw random numbers; others may use them inside, and their results are not random numbers alone
_RANDOM = (
    "bernoulli", "bernoulli_", "exponential_", "geometric_", "multinomial", "native_dropout", "normal_", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "random_", "randperm", "uniform_",
)  # fmt: skip


class RandomNumbers(ThreadDispatchMode):
    """Keeps the random numbers that a run draws, for runs in another precision, which would draw others."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn: dict[tuple[str, torch.Size], list[Tensor]] = {}

    @hands_over
    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation and keep what it drew."""
        result = func(*args, **(kwargs or {}))
        if (name := _name(func)) in _RANDOM:
            kept = result[1] if name == "native_dropout" else result  # the mask
            self._drawn.setdefault((name, kept.shape), []).append(kept.clone())
        return result

    def replay(self) -> Mapping[tuple[str, torch.Size], Iterator[Tensor]]:
        """Return what was drawn, by operation and shape, from the beginning."""
        return {key: iter(tensors) for key, tensors in self._drawn.items()}


def _replayed(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], drawn: Mapping[tuple[str, torch.Size], Iterator[Tensor]]
) -> Any:
    """Return what an operation drew in another run, in this one's dtype; NotImplemented where it drew nothing."""
    if not drawn or (name := _name(func)) not in _RANDOM:
        return NotImplemented
    given = args[0] if args else kwargs.get("size", ())
    shape = given.shape if isinstance(given, Tensor) else torch.Size([given] if isinstance(given, int) else given)
    kept = next(drawn.get((name, shape), iter(())), None)
    if kept is None:
        return NotImplemented
    if name == "native_dropout":
        return given * kept / (1 - args[1]), kept
    if name.endswith("_"):
        return given.copy_(kept)
    wide = kwargs.get("dtype") is torch.float64 or (isinstance(given, Tensor) and given.dtype is torch.float64)
    return kept.to(torch.float64) if wide and kept.is_floating_point() else kept.clone()


class InFloat32(ThreadDispatchMode):
    """Computes in float32 what a reference widens to float64: nothing is asked for more digits than its dtype has."""

    @hands_over
    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, a cast to float64 as one to float32."""
        narrower = {"dtype": torch.float32} if (kwargs or {}).get("dtype") is torch.float64 else {}
        return func(*args, **{**(kwargs or {}), **narrower})


class InFloat64(ThreadDispatchMode):
    """Computes in float64 what is written for less: casts and new tensors of coarser dtypes become float64.

    So ``x.float()`` inside a reference, or weights of bfloat16 that it holds, leave its results exact to 15 digits.
    """

    def __init__(self, numbers: RandomNumbers | None = None) -> None:
        super().__init__()
        self._drawn = {} if numbers is None else numbers.replay()

    @hands_over
    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation on float64 tensors."""
        args, kwargs = _widened(func, args, dict(kwargs or {}))
        drawn = _replayed(func, args, kwargs, self._drawn)
        return func(*args, **kwargs) if drawn is NotImplemented else drawn


class RandomRounding(ThreadDispatchMode):
    """Computes in float64 and rounds each result to a dtype, after a random shift of up to half of its last digit.

    Each run gives another error of the size that computing in the dtype has: a sample of what rounding does to a
    function, however its operations are ordered or fused. Parker, D. S. (1997). Monte Carlo arithmetic: exploiting
    randomness in floating-point arithmetic. UCLA CSD-970002. Beyond it, each entry of a result is taken rounded or
    exact by chance wherever it is used: what cancels because both terms have the same rounding need not in another
    formula, such as the delta of an attention from its stored output, or x beside x - mean.

    Args:
        dtype: what results are rounded to.
        numbers: random numbers of another run, to take in place of drawing some.
    """

    def __init__(self, dtype: torch.dtype, seed: int, numbers: RandomNumbers | None = None) -> None:
        super().__init__()
        self._dtype, self._seed = dtype, seed
        self._drawn = {} if numbers is None else numbers.replay()
        self._generators: dict[torch.device, torch.Generator] = {}
        self._before: Any = WeakIdKeyDictionary()  # what results were before rounding, by storage

    @hands_over
    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, taken apart where torch fuses several, and round its floating results."""
        args, kwargs = _widened(func, args, dict(kwargs or {}))
        drawn = _replayed(func, args, kwargs, self._drawn)
        if _name(func) in _RANDOM:
            for given in pytrees.tensors(args):
                self._before.pop(given.untyped_storage(), None)  # it holds other numbers now
            return _mapped(self._rounded, func(*args, **kwargs)) if drawn is NotImplemented else drawn
        apart = _decompositions().get(func) if _name(func) in _FUSED else None
        if apart is not None:
            with self:
                result = apart(*args, **kwargs)
            if result is not NotImplemented:
                return result
        args, exact = tuple(args), _mapped(self._exact, tuple(args))
        if _aliases(func):  # a view's elements are rounded already, and what is written in place stays
            written = _written(func)
            if written and all(k < len(args) and args[k] is not exact[k] for k in written):
                func(*exact, **_mapped(self._exact, kwargs))
            return func(*args, **kwargs)
        if _name(func) in _MEETING:
            args, exact = (tuple(map(self._by_chance, args, exact)) for _ in range(2))
        single = self._dtype is torch.float32
        if _name(func) in _SUMS or (single and _name(func) in _PRODUCTS):
            args, exact = (_mapped(self._shifted, one) for one in (args, exact))
        result, beside = func(*args, **kwargs), func(*exact, **kwargs)
        if single and _name(func) in _TERMS and result.dtype is torch.float64:
            result, beside = self._off(result, args), self._off(beside, exact)
        result = result if _name(func) in _PICKING else _mapped(self._rounded, result)
        for a, b in zip(pytrees.tensors(result), pytrees.tensors(beside), strict=True):
            if a.dtype is torch.float64 and (a.shape, a.stride()) == (b.shape, b.stride()):
                self._before[a.untyped_storage()] = b
        return result

    def _off(self, result: Tensor, terms: Sequence[Any]) -> Tensor:
        """Return a sum with what rounding its terms changes."""
        size = sum(abs(x) for x in terms if getattr(x, "dtype", None) is not torch.bool)
        off = self._shifted(size) - size
        return result + torch.where(off.isfinite(), off, 0.0)

    def _exact(self, tensor: Tensor) -> Tensor:
        """Return what a tensor was before it was rounded; a view what the tensor was that it shows."""
        before: Tensor | None = self._before.get(tensor.untyped_storage())
        if before is None or tensor.dtype is not torch.float64:
            return tensor
        return before.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _by_chance(self, rounded: Any, exact: Any) -> Any:
        if rounded is exact or not isinstance(rounded, Tensor):
            return rounded
        return torch.where(_shifts(rounded, self._generator(rounded.device)) > 0, rounded, exact)

    def _rounded(self, tensor: Tensor) -> Tensor:
        if tensor.dtype is torch.complex128:
            real = torch.view_as_real(tensor.resolve_conj()).contiguous()
            return torch.view_as_complex(self._rounded(real))
        if tensor.dtype is not torch.float64:
            return tensor
        # a quarter to half of a last digit, so that what is representable stays
        shifted = self._shifted(tensor, 1.0)
        rounded = shifted.to(self._dtype).to(torch.float64)
        return torch.where(rounded.isinf(), shifted, rounded)  # a reference with float32 inside does not overflow

    def _shifted(self, tensor: Tensor, size: float = 2.0) -> Tensor:
        if tensor.dtype is not torch.float64:
            return tensor
        shifts = _shifts(tensor, self._generator(tensor.device)).mul_(float(torch.finfo(self._dtype).eps) / 2)
        return (1 + size * shifts) * tensor  # an infinity as well, which a sum would lose

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _shifts(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Return random numbers from -0.5 to 0.5 for all elements; beyond ``TABLE`` of them they repeat."""
    count = tensor.numel()
    options: dict[str, Any] = {"generator": generator, "dtype": torch.float64, "device": tensor.device}
    return repeated_up_to(count, torch.rand(min(count, TABLE), **options).sub_(0.5)).reshape(tensor.shape)


def repeated_up_to(count: int, table: Tensor) -> Tensor:
    """Return so many elements: those of a vector, from its beginning again where they end."""
    return table if count == len(table) else table.repeat(-(-count // len(table)))[:count]


@cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return torch's decompositions by operation; where there are none a fused operation counts as one rounding."""
    try:
        from torch._decomp import decomposition_table  # takes a second, so only when it is used
    except ImportError:
        return {}
    return decomposition_table


@cache
def _name(func: Any) -> str:
    return str(getattr(getattr(func, "overloadpacket", None), "__name__", ""))


@cache
def _aliases(func: Any) -> bool:
    schema = getattr(func, "_schema", None)
    return schema is not None and any(value.alias_info is not None for value in schema.returns)


@cache
def _written(func: Any) -> tuple[int, ...]:
    return tuple(k for k, value in enumerate(func._schema.arguments) if value.alias_info and value.alias_info.is_write)


def _widened(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments with float64 in place of a coarser dtype, and of tensors where some are float64."""
    if kwargs.get("dtype") in COARSER:
        kwargs["dtype"] = torch.float64
    dtypes = set()
    for value in (*args, *kwargs.values()):  # of each operation, so without a generator for each argument
        if isinstance(value, Tensor):
            dtypes.add(value.dtype)
        elif isinstance(value, (list, tuple, dict)):
            dtypes.update(t.dtype for t in pytrees.tensors(value))
    if torch.float64 not in dtypes or dtypes.isdisjoint(COARSER) or _aliases(func):
        return args, kwargs
    return _mapped(_to_float64, tuple(args)), {name: _mapped(_to_float64, value) for name, value in kwargs.items()}


def _to_float64(tensor: Tensor) -> Tensor:
    return tensor.to(torch.float64) if tensor.dtype in COARSER else tensor


def _mapped(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(change, item) for item in value)
    if isinstance(value, Mapping):
        return {key: _mapped(change, item) for key, item in value.items()}
    return value
