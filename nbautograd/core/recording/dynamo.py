"""torch.compile reads a Function's methods instead of calling them: noticed by the code of its own that does so."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch

from nbautograd.core.recording.state import Subject

Listen = Callable[[CodeType, bool], None]
_COMPILE = getattr(torch.compile, "__code__", None)
_MODULE, _CLASS = "torch._dynamo.variables.misc", "AutogradFunctionVariable"


class Tracing:
    """Hears Dynamo meet a Function; Dynamo is loaded by the first ``torch.compile``, so that is heard too."""

    def __init__(self) -> None:
        self._subjects: list[weakref.ref[Subject]] = []
        self._codes: dict[int, CodeType] = {}
        self._listen: Listen | None = None

    def watch(self, listen: Listen, subject: Subject) -> None:
        """Mark the subject as traced once Dynamo has read it."""
        self._listen = listen
        self._subjects = [ref for ref in self._subjects if ref() is not None] + [weakref.ref(subject)]
        if _COMPILE is not None:
            self._hear(_COMPILE)
        self._hear_dynamo()

    def started(self, code: CodeType, frame: FrameType) -> None:
        """A code of theirs has begun."""
        if id(code) not in self._codes or code is _COMPILE:
            return
        cls = getattr(frame.f_locals.get("self"), "fn_cls", None)
        for ref in self._subjects:
            subject = ref()
            if subject is not None and cls is not None and subject.cls is cls:
                subject.traced = True

    def returned(self, code: CodeType) -> None:
        """A code of theirs has ended."""
        if code is _COMPILE:
            self._hear_dynamo()

    def forget(self) -> tuple[CodeType, ...]:
        """Hear nothing any more; gives what was heard."""
        codes = tuple(self._codes.values())
        self._codes.clear()
        self._subjects.clear()
        return codes

    def _hear_dynamo(self) -> None:
        found: Any = getattr(sys.modules.get(_MODULE), _CLASS, None)
        for name in ("call_function", "call_apply"):
            code = getattr(getattr(found, name, None), "__code__", None)
            if code is not None:
                self._hear(code)

    def _hear(self, code: CodeType) -> None:
        if id(code) not in self._codes and self._listen is not None:
            self._codes[id(code)] = code
            self._listen(code, True)
