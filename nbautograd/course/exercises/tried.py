"""One expression of an exercise's own check: what it gave, and the failure when that is not right."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.course.attempt import plain
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Failure

Check = Callable[[Any, InputGenerator], Iterator[Failure]]


def python(value: Any) -> Any:
    """Return what NumPy or torch holds as Python's numbers, truth values and lists; anything else as it is."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray, Tensor)) else value


@contextlib.contextmanager
def backward_set(answer: Any, backward: Any) -> Iterator[None]:
    """Give a Function another backward inside a block."""
    own = answer.__dict__.get("backward")
    answer.backward = backward
    try:
        yield
    finally:
        delattr(answer, "backward") if own is None else setattr(answer, "backward", own)


@contextlib.contextmanager
def backward_calls(answer: Any) -> Iterator[list[tuple[Any, Any]]]:
    """Note what a Function's backward gets besides ctx and what it returns, call by call, inside a block."""
    backward = answer.backward
    noted: list[tuple[Any, Any]] = []

    def noting(ctx: Any, *grads: Any) -> Any:
        noted.append((grads, backward(ctx, *grads)))
        return noted[-1][1]

    with backward_set(answer, staticmethod(noting)):
        yield noted


class Tried:
    """Outcome of one expression, run on what is given: a value or an error."""

    def __init__(self, what: str, run: Callable[..., Any], *given: Any) -> None:
        self.what, self.value, self.error = what, None, None  # type: str, Any, Exception | None
        try:
            self.value = run(*given)
        except Exception as error:
            self.error = error

    def refused(self, code: str) -> Iterator[Failure]:
        """Yield a failure when it raised."""
        if isinstance(self.error, RecursionError):
            yield Failure("recursion", "course.recursion", {"what": self.what})
        elif self.error is not None:
            words = f"{type(self.error).__name__}: {str(self.error).splitlines()[0] if str(self.error) else ''}"
            yield Failure(code, "course.raised", {"what": self.what, "error": words.rstrip(": ")[:160]})

    def same(self, code: str, expected: Tensor) -> Iterator[Failure]:
        """Yield a failure unless it gave this tensor."""
        if self.error is not None:
            yield from self.refused(code)
        elif not isinstance(self.value, Tensor):
            got = type(self.value).__name__
            yield Failure(code, "course.wrong_type", {"what": self.what, "got": got, "expected": "Tensor"})
        elif self.value.shape != expected.shape or not torch.allclose(plain(self.value), expected.to(self.value.dtype)):
            shown = {"got": plain(self.value).tolist(), "expected": expected.tolist()}
            yield Failure(code, "course.wrong_value", {"what": self.what, **shown})


def in_turn(*checks: Check) -> Check:
    """Return the check that makes several, one after another, up to the first failure."""
    return lambda answer, draw: islice((failure for check in checks for failure in check(answer, draw)), 1)
