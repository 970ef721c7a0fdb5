"""Engine "in place": each method replaced by a wrapper; the fallback.

It rests on nothing but that PyTorch looks methods up on the class when it calls them. Differences from the bare class
that it cannot avoid: ``cls.forward is f`` no longer holds, and calls that the user makes are recorded too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nbautograd.core.display import Phrase
from nbautograd.core.recording.record import InstrumentedFunction, local
from nbautograd.core.recording.recorder import Recorder, method_recorder, recording_wrapper
from nbautograd.core.torch_private import ctx as private_ctx
from nbautograd.core.torch_private import tensors as private
from nbautograd.core.user_source import defining_classes


class InPlaceEngine:
    """Records through wrappers in the class's dict; see the module."""

    name = "in place"

    def __init__(self) -> None:
        self._before: dict[tuple[int, str], tuple[Any, Any]] = {}  # what stood there, and what stands there now

    def install(self, cls: type, function: InstrumentedFunction, recorder: Recorder) -> list[Phrase]:
        """Replace what the class itself defines; a method that it inherits is wrapped on the class, not on its base."""
        problems = []
        for method, owner in defining_classes(cls).items():
            entry = vars(owner)[method]
            inner = entry.__func__ if isinstance(entry, (staticmethod, classmethod)) else entry
            if not callable(inner):
                problems.append(Phrase("recording.not_callable", function=cls.__name__, method=method))
                continue
            wrapped = _Wrapper(inner, function, method, recorder, isinstance(entry, classmethod))
            replacement = type(entry)(wrapped) if isinstance(entry, (staticmethod, classmethod)) else wrapped
            self._before[id(cls), method] = (entry if owner is cls else None, replacement)
            setattr(cls, method, replacement)
        private_ctx.watch_materialize_grads(cls)
        return problems

    def withdraw(self, cls: type) -> None:
        """Do as ``remove``: there is nothing else to keep."""
        self.remove(cls)

    def remove(self, cls: type) -> None:
        """Put the originals back, except where the user has set the method anew."""
        private_ctx.leave_materialize_grads(cls)
        for key in [key for key in self._before if key[0] == id(cls)]:
            entry, replacement = self._before.pop(key)
            if vars(cls).get(key[1]) is not replacement:
                continue
            if entry is None:
                delattr(cls, key[1])
            else:
                setattr(cls, key[1], entry)


class _Wrapper:
    """A callable in the place of a method, with the user's code and defaults, by which PyTorch binds keywords.

    Args:
        inner: the user's function.
        function: whose method it is.
        method: its name.
        recorder: where the records go.
        takes_class: True for a classmethod, whose first argument is the class.
    """

    def __init__(
        self,
        inner: Callable[..., Any],
        function: InstrumentedFunction,
        method: str,
        recorder: Recorder,
        takes_class: bool,
    ) -> None:
        self._inner, self._function, self._method, self._takes_class = inner, function, method, takes_class
        self._recorder = method_recorder(function, method, recorder)
        functools.update_wrapper(self, inner)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            setattr(self, name, getattr(inner, name, None))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        cls, given = args[: self._takes_class], args[self._takes_class :]
        if self._method == "forward":  # PyTorch has made a ctx, and this engine has no notice of it
            local.state.armed_ctx = id(given[0]) if given and not self._function.sets_up else 0
        try:
            return recording_wrapper(functools.partial(self._inner, *cls, **kwargs), self._recorder)(*given)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # type: ignore[attr-defined]  # by its name, as the user's function is

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


private.skip_in_dynamo(_Wrapper.__call__.__code__, with_calls=False)
