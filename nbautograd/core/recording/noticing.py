"""What only the moment can tell: looked at right after a method ran, and only where its code can have done it.

A Watch notices; ``watching.py`` makes findings of it when the record is read.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

import torch

from nbautograd.core.recording.describing import DESCRIBE, Known
from nbautograd.core.recording.materialising import told
from nbautograd.core.recording.side_effects import found, harmless, loose_names
from nbautograd.core.recording.snapshot import DATA, PLAIN_TYPES, STRIDES, SUMMARY, VERSION, Raw
from nbautograd.core.recording.state import GIVEN, KNOWN, NUMBER, Noticed, Open, Subject
from nbautograd.core.source import as_written
from nbautograd.core.torch_private import tensors as internals

_DETAILED = DATA + 1  # fields of a tensor described with more than its shape


class Watch:
    """Looks at one method of one Function after each call.

    Attributes:
        awake: False when the method's code can do nothing of what is looked for.
    """

    def __init__(self, subject: Subject, method: str) -> None:
        cls = subject.cls
        self.subject, self.takes_ctx = subject, not (method == "forward" and subject.sets_up)
        self.method = method
        self.returned: list[tuple[weakref.ref[torch.Tensor], int, int]] = []  # gradients, their versions, their calls
        function = _function(cls, method)
        self.loose = loose_names(function) if method == "forward" else ()
        self.stateful = cls is not None and any(_mentions(_function(cls, m), cls) for m in subject.methods.codes)
        self.flags = method in ("forward", "setup_context") and "set_materialize_grads" in _names(function)
        self.tame = harmless(function, self.takes_ctx)
        self.awake = not self.tame or bool(self.loose) or self.stateful or self.flags

    def forward(self, args: Sequence[Any], result: Any, call: Open) -> Noticed:
        """After forward: inputs changed, outputs that share an input's memory, tensors that came in otherwise."""
        inputs = args[1:] if self.takes_ctx else args
        outputs = result if type(result) is tuple else (result,)
        noticed = [*_changed(inputs, call[GIVEN], call[KNOWN]), *self._hidden(inputs)]
        if not self.tame:
            noticed += _aliases(inputs, outputs)
        return tuple(noticed) + self._state() + (self._flag(args[0]) if self.takes_ctx else ())

    def setup(self, args: Sequence[Any], call: Open) -> Noticed:
        """After setup_context."""
        output = args[2] if type(args[2]) is tuple else (args[2],)
        changed = () if self.tame else tuple(_changed((*args[1], *output), call[GIVEN], call[KNOWN]))
        return changed + self._state() + self._flag(args[0])

    def backward(self, args: Sequence[Any], result: Any, call: Open) -> Noticed:
        """After backward: gradients or saved tensors changed, and results that came before."""
        if self.tame:
            return self._state()
        changed = tuple(_changed(args[1:], call[GIVEN], call[KNOWN])) if call[KNOWN] else ()
        reused = tuple(self._reused(result if type(result) is tuple else (result,), call))
        return reused + changed + _saved(args[0], self.subject.level) + self._state()

    def _reused(self, gradients: Sequence[Any], call: Open) -> Iterator[tuple[Any, ...]]:
        """Gradients that an earlier call returned and that were written to since."""
        for i, gradient in enumerate(gradients):
            if type(gradient) not in PLAIN_TYPES or id(gradient) in call[KNOWN] or gradient.is_inference():
                continue
            for before, version, index in self.returned:
                same = before()
                if same is not None and same is gradient and same._version > version:
                    yield "reused", i, index
                    break
            kept = [one for one in self.returned if one[0]() is not None and one[0]() is not gradient]
            self.returned = [*kept[-15:], (weakref.ref(gradient), gradient._version, call[NUMBER])]

    def failure(self, args: Sequence[Any]) -> Noticed:
        """After backward raised: which gradients were not contiguous."""
        spread = (i for i, g in enumerate(args[1:]) if type(g) in PLAIN_TYPES and not g.is_contiguous())
        return tuple(("spread", i) for i in spread)

    def _hidden(self, inputs: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        function = _function(self.subject.cls, self.method) if self.loose else None
        if not isinstance(function, FunctionType):
            return
        for name in self.loose:
            value = found(function, name)
            if type(value) in PLAIN_TYPES and value.requires_grad and not any(value is given for given in inputs):
                yield "hidden", name

    def _state(self) -> Noticed:
        """The attributes of the class that are no methods, as numbers that tell them apart."""
        cls = self.subject.cls if self.stateful else None
        if cls is None:
            return ()
        kept = [(name, value) for name, value in vars(cls).items() if _is_state(name, value)]
        return (("state", *((n, id(v), v._version if type(v) in PLAIN_TYPES else _worth(v)) for n, v in kept)),)

    def _flag(self, ctx: Any) -> Noticed:
        return (("materialize", told(ctx)),) if self.flags else ()


def _worth(value: Any) -> Any:
    return value if type(value) in (int, float, bool, str) else 0


def _is_state(name: str, value: Any) -> bool:
    if name.startswith(("__", "_backward_cls")) or name in ("generate_vmap_rule",):
        return False
    return not hasattr(type(value), "__get__")


def _function(cls: type | None, method: str) -> Any:
    """The user's plain function, else whatever is there."""
    for base in cls.__mro__ if cls is not None else ():
        for name in (method, "vjp") if method == "backward" else (method,):
            if name in vars(base) and base.__module__ != "torch.autograd.function":
                entry = as_written(vars(base)[name])
                return entry.__func__ if isinstance(entry, (staticmethod, classmethod)) else entry
    return None


def _names(function: Any) -> frozenset[str]:
    """Every name in a function's code, that of inner functions and of what it wraps included."""
    names: set[str] = set()
    codes = [getattr(f, "__code__", None) for f in (function, getattr(function, "__wrapped__", None))]
    while codes:
        code = codes.pop()
        if code is not None:
            names.update(code.co_names, code.co_freevars)
            codes += [const for const in code.co_consts if hasattr(const, "co_code")]
    return frozenset(names)


def _mentions(function: Any, cls: type) -> bool:
    return cls.__name__ in _names(function) or "__class__" in _names(function)


def _changed(values: Sequence[Any], given: tuple[Raw, ...], known: Known) -> Iterator[tuple[Any, ...]]:
    """Values that are not what they were; they are described anew should they be met again."""
    for i, (value, one) in enumerate(zip(values, given, strict=False)):
        if len(one) == 2 or type(value) not in PLAIN_TYPES:
            continue
        moved = one[VERSION] is not None and value._version != one[VERSION]
        if moved or _other_bytes(value, one):
            known.pop(id(value), None)
            yield "changed", i


def _other_bytes(value: torch.Tensor, one: Raw) -> bool:
    """True when a tensor that was kept whole has other elements now (``.data`` and numpy leave no other trace)."""
    if len(one) < _DETAILED or not one[DATA] or one[STRIDES] is None or internals.bytes_reason(value):
        return False
    address = internals.memory(value) if value.is_contiguous() else 0
    return bool(address) and internals.copy_bytes(address, len(one[DATA])) != one[DATA]


def _aliases(inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Outputs that share memory with an input though autograd knows of no view."""
    for j, output in enumerate(outputs):
        if type(output) not in PLAIN_TYPES or internals.bytes_reason(output) or output._is_view():
            continue
        for i, given in enumerate(inputs):
            if type(given) not in PLAIN_TYPES or given is output or internals.bytes_reason(given):
                continue
            same = internals.memory(output) == internals.memory(given) != 0
            if same or internals.storage_of(output) == internals.storage_of(given):
                yield "aliases", j, i


def _saved(ctx: Any, level: int) -> Noticed:
    """The saved tensors as they are now, past hooks and version checks."""
    try:
        kept = [saved.data for saved in ctx._raw_saved_tensors]
    except (AttributeError, RuntimeError):
        return ()
    if any(tensor is not None and type(tensor) not in PLAIN_TYPES for tensor in kept):
        return ()
    return (("saved", DESCRIBE[min(level, SUMMARY)](kept, {})),)
