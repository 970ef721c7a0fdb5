"""Engine "in place": each method replaced by a wrapper of exactly its signature; the fallback.

It rests on nothing but that PyTorch looks methods up on the class when it calls them. Differences from the bare class
that it cannot avoid: ``cls.forward is f`` no longer holds, and calls that the user makes are recorded too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from nbautograd import messages
from nbautograd.core.recording import materialising
from nbautograd.core.recording.engine import recordable_methods
from nbautograd.core.recording.recorder import Recorder
from nbautograd.core.recording.state import Open, Subject, local
from nbautograd.core.recording.writer import Writer
from nbautograd.core.recording.writers import writer
from nbautograd.core.torch_private import tensors as internals

_TEMPLATE = """
def {name}({parameters}):
    __tracebackhide__ = True
    __nb_args = ({arguments})
    __nb_record = __nb_begin(__nb_args)
    try:
        __nb_result = __nb_function({passed})
    except BaseException as __nb_error:
        if __nb_error.__traceback__ is not None:
            __nb_error.__traceback__ = __nb_error.__traceback__.tb_next
        __nb_fail(__nb_record, __nb_error, __nb_args)
        raise
    __nb_end(__nb_record, __nb_args, __nb_result)
    return __nb_result
"""


class InPlaceEngine:
    """Records through wrappers in the class's dict; see the module."""

    name = "in place"

    def __init__(self) -> None:
        self._before: dict[tuple[int, str], tuple[Any, Any]] = {}  # what stood there, and what stands there now

    def install(self, cls: type, subject: Subject, recorder: Recorder) -> list[str]:
        """Replace what the class itself defines; a method that it inherits is wrapped on the class, not on its base."""
        problems = []
        for method, owner in recordable_methods(cls):
            entry = vars(owner)[method]
            function = entry.__func__ if isinstance(entry, (staticmethod, classmethod)) else entry
            try:
                wrapped = _wrapper(function, subject, method, recorder, isinstance(entry, classmethod))
            except (TypeError, ValueError, SyntaxError):
                problems.append(messages.text("recording.not_callable", function=cls.__name__, method=method))
                continue
            kind = type(entry) if isinstance(entry, (staticmethod, classmethod)) else _same
            replacement = kind(wrapped)
            self._before[id(cls), method] = (entry if owner is cls else None, replacement)
            setattr(cls, method, replacement)
        materialising.listen(cls)
        return problems

    def withdraw(self, cls: type) -> None:
        """As ``remove``: there is nothing else to keep."""
        self.remove(cls)

    def remove(self, cls: type) -> None:
        """Put the originals back, except where the user has set the method anew."""
        materialising.leave(cls)
        for key in [key for key in self._before if key[0] == id(cls)]:
            entry, replacement = self._before.pop(key)
            if vars(cls).get(key[1]) is not replacement:
                continue
            if entry is None:
                delattr(cls, key[1])
            else:
                setattr(cls, key[1], entry)


def _same(function: Any) -> Any:
    return function


def _wrapper(
    function: Callable[..., Any], subject: Subject, method: str, recorder: Recorder, takes_class: bool
) -> Callable[..., Any]:
    """The wrapper, compiled with the parameters that the user's function has."""
    signature = inspect.signature(function)
    defaults = {f"__nb_default_{i}": p.default for i, p in enumerate(signature.parameters.values())}
    text = _TEMPLATE.format(
        name=function.__name__ if function.__name__.isidentifier() and function.__name__ != "<lambda>" else method,
        parameters=_parameters(signature),
        arguments="".join(_argument(p) + ", " for p in _described(signature)[takes_class:]),
        passed=", ".join(_passed(p) for p in signature.parameters.values()),
    )
    names = {**_recording(subject, writer(subject, method, recorder)), "__nb_function": function, **defaults}
    exec(compile(text, __file__, "exec"), names)
    wrapped: Callable[..., Any] = next(v for v in names.values() if getattr(v, "__module__", 0) is None)
    functools.update_wrapper(wrapped, function)
    wrapped.__defaults__ = getattr(function, "__defaults__", None)
    internals.skip_in_dynamo(wrapped.__code__, with_calls=False)
    return wrapped


def _recording(subject: Subject, writing: Writer) -> dict[str, Any]:
    forward = writing.method == "forward"

    def begin(args: tuple[Any, ...]) -> Open | None:
        state = local.state
        if forward:
            state.armed_ctx = id(args[0]) if args and not subject.sets_up else 0
        return writing.begin(args, state)

    def end(call: Open | None, args: tuple[Any, ...], result: Any) -> None:
        if call is not None:
            writing.end(call, args, result, local.state)

    def fail(call: Open | None, error: BaseException, args: tuple[Any, ...]) -> None:
        if call is not None:
            writing.fail(call, error, local.state, args)

    return {"__nb_begin": begin, "__nb_end": end, "__nb_fail": fail, "__name__": None}


def _described(signature: inspect.Signature) -> list[inspect.Parameter]:
    wanted = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return [p for p in signature.parameters.values() if p.kind not in wanted]


def _argument(parameter: inspect.Parameter) -> str:
    return f"*{parameter.name}" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else parameter.name


def _passed(parameter: inspect.Parameter) -> str:
    kinds = inspect.Parameter
    before: dict[Any, str] = {
        kinds.VAR_POSITIONAL: "*",
        kinds.VAR_KEYWORD: "**",
        kinds.KEYWORD_ONLY: f"{parameter.name}=",
    }
    return before.get(parameter.kind, "") + parameter.name


def _parameters(signature: inspect.Signature) -> str:
    """The parameter list as text, defaults by our own names of them."""
    parameters = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Named(f"__nb_default_{i}"))
        for i, p in enumerate(signature.parameters.values())
    ]
    return str(inspect.Signature(parameters))[1:-1]


class _Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name
