"""What to call the values of a call: by the user's source where it tells, by position where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType

from nbautograd.core.recording.state import Recorded, Subject
from nbautograd.core.source import Returned

_VARARGS = 0x04


def input_names(subject: Subject, count: int) -> tuple[str, ...]:
    """Names of forward's arguments, ``*args`` spelt out."""
    takes_ctx = "setup_context" not in subject.methods.codes
    return argument_names(subject.methods.codes.get("forward"), count, takes_ctx, "input")


def argument_names(code: CodeType | None, count: int, takes_ctx: bool, otherwise: str) -> tuple[str, ...]:
    """Names of ``count`` arguments after ctx, from the method's code."""
    if code is None:
        return tuple(f"{otherwise} {i}" for i in range(count))
    positional = code.co_varnames[1 if takes_ctx and code.co_argcount else 0 : code.co_argcount]
    names = list(positional[:count])
    if len(names) < count and code.co_flags & _VARARGS:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [f"{star}[{i}]" for i in range(count - len(names))]
    return tuple(names) + tuple(f"{otherwise} {i}" for i in range(len(names), count))


def output_names(subject: Subject, count: int) -> tuple[str, ...]:
    """Names of what forward returns."""
    source = subject.source
    return _returned(source.outputs if source is not None else (), [f"output {i}" for i in range(count)])


def gradient_names(subject: Subject, count: int) -> tuple[str, ...]:
    """Names of what backward returns: the source's, else ``"gradient of x"``."""
    source = subject.source
    otherwise = [f"gradient of {name}" for name in input_names(subject, count)]
    return _returned(source.gradients if source is not None else (), otherwise)


def _returned(values: Sequence[Returned], otherwise: list[str]) -> tuple[str, ...]:
    if len(values) != len(otherwise):
        return tuple(otherwise)
    return tuple(value.name or name for value, name in zip(values, otherwise, strict=True))


def values_in(record: Recorded) -> tuple[str, ...]:
    """Names of the record's inputs."""
    subject, count = record.subject, len(record.inputs)
    codes = subject.methods.codes
    if record.method == "forward":
        return input_names(subject, count)
    if record.method == "setup_context":  # forward's inputs, then its output
        inputs = _setup_inputs(record)
        return (*input_names(subject, inputs), *output_names(subject, count - inputs))
    if record.method == "backward":
        return argument_names(codes.get("backward") or codes.get("vjp"), count, True, "grad_output")
    return argument_names(codes.get(record.method), count, record.method != "vmap", "input")


def _setup_inputs(record: Recorded) -> int:
    code = record.subject.methods.codes.get("forward")
    fixed = code is not None and not code.co_flags & _VARARGS
    return min(code.co_argcount, len(record.inputs)) if code is not None and fixed else len(record.inputs) - 1


def values_out(record: Recorded) -> tuple[str, ...]:
    """Names of the record's outputs."""
    count = len(record.outputs)
    if record.method == "forward":
        return output_names(record.subject, count)
    if record.method == "backward":
        return gradient_names(record.subject, count)
    return tuple(f"output {i}" for i in range(count))


def readable(place: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """``"input 1"`` as the name of that input; other texts as they are."""
    kind, _, number = place.partition(" ")
    names = {"input": inputs, "output": outputs}.get(kind, ())
    return names[int(number)] if number.isdigit() and int(number) < len(names) else place


def saved_names(subject: Subject, same: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """Names of the saved tensors: the source's, else the argument or output they are, else ``"saved[1]"``."""
    source = subject.source
    told = source.saved if source is not None else None
    if told is not None and len(told) == len(same):
        return list(told)
    return [readable(place, inputs, outputs) or f"saved[{i}]" for i, place in enumerate(same)]
