"""Stumbles: whose an error is, what keeps it, and that no failure of ours turns a wrong gradient right."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from fn import Fn
from injected import broken

import nbautograd
from nbautograd.core import stumbles
from nbautograd.core.explaining.watch import noted
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.torch_private.tensors import gradients


@stumbles.hands_over
def handed_over(call: Callable[[], Any]) -> Any:
    return call()


def users() -> None:
    raise AttributeError("the user's")


Raises = Fn.of("Raises", "x: return 2 * x", "g: return g.nothing")


def through_backward() -> None:
    x = torch.ones(2, requires_grad=True)
    gradients([Raises.apply(x)], [x], [torch.ones(2)])


class WrongShape(Raises):
    def backward(ctx, g):
        return g.new_ones(5)


def engine_complains() -> None:
    x = torch.ones(2, requires_grad=True)
    gradients([WrongShape.apply(x)], [x], [torch.ones(2)])


CASES: list[tuple[Callable[[], Any], bool]] = [
    (broken(), True),
    (broken(error="nbautograd.errors.InputError('checking.hints_unknown', given='')"), True),  # NameError: no import
    (users, False),
    (lambda: agree_relative(torch.ones(2), "no tensor", 1e-3), True),  # type: ignore[arg-type]
    (lambda: np.ones(2).reshape(3), False),  # the user's frame calls numpy
    (lambda: nbautograd.gradcheck(torch.sin, (torch.ones(2),), order=3), False),  # raised on purpose
    (through_backward, False),
    (engine_complains, False),
]


@pytest.mark.parametrize(("call", "ours"), CASES)
def test_an_error_belongs_to_the_innermost_frame_that_is_not_torchs(call: Callable[[], Any], ours: bool) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    assert stumbles.is_ours(caught.value) is ours


def test_frames_of_what_dataclasses_write_and_of_exercises_are_told_apart() -> None:
    with pytest.raises(AttributeError) as ours:
        broken("core/values.py")()
    with pytest.raises(AttributeError) as checked:
        broken("course/exercises/n99.py")()
    assert stumbles.is_ours(ours.value)
    assert not stumbles.is_ours(checked.value)


def test_what_is_raised_right_in_a_function_that_hands_over_is_the_users() -> None:
    call = broken()
    with pytest.raises(AttributeError) as inside:
        handed_over(call)
    assert stumbles.is_ours(inside.value)  # not in the marked one itself
    with pytest.raises(AttributeError) as marked:
        stumbles.hands_over(call)()
    assert not stumbles.is_ours(marked.value)


def test_a_guard_keeps_our_errors_and_lets_through_what_it_was_not_asked_for() -> None:
    ours = broken()
    with stumbles.users_errors() as guard:
        users()
    assert guard.failed
    with stumbles.own_errors("part", decides=True) as guard:
        ours()
    assert guard.failed
    for wrong_guard, call in ((stumbles.users_errors(), ours), (stumbles.own_errors("part"), users)):
        with pytest.raises(AttributeError), wrong_guard:
            call()
    with pytest.raises(KeyboardInterrupt), stumbles.any_errors("part"):
        raise KeyboardInterrupt
    assert stumbles.recent() == (
        stumbles.Stumble("part", "AttributeError: renamed", "core/injected.py:2 broken", True),
    )
    stumbles.forget()


def test_a_note_beside_a_program_does_not_keep_it_from_ending() -> None:
    with pytest.raises(SystemExit):  # raised in whatever runs when a signal comes, of the handler's frame
        noted(lambda: sys.exit(3))
    noted(lambda: 1 / 0)


def test_collected_is_what_this_thread_met_and_the_list_is_bounded() -> None:
    def many() -> None:
        for k in range(stumbles.MOST_STUMBLES):
            with stumbles.any_errors("other thread"):
                broken(f"core/injected{k}.py")()

    with stumbles.collected() as found:
        threads = [threading.Thread(target=many) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == []
        with stumbles.any_errors("here"):
            broken()()
    assert [one.part for one in found] == ["here"]
    assert stumbles.MOST_STUMBLES <= len(stumbles.recent()) <= stumbles.MOST_STUMBLES + len(threads)
    stumbles.forget()


def test_the_text_of_an_error_runs_no_code_that_ends_us() -> None:
    class Leaves:
        def __str__(self) -> str:
            raise SystemExit

    with pytest.raises(ValueError) as caught:  # noqa: PT011
        broken(error="ValueError(args[0])")(Leaves())
    assert stumbles.record(caught.value)
    assert stumbles.recent()[0].what == "ValueError"
    stumbles.forget()


def test_what_refuses_to_answer_is_not_kept() -> None:
    def asked(thing: set) -> None:
        assert stumbles.ask(lambda: thing.missing, None) is None

    thing = set[int]()
    kept = weakref.ref(thing)
    asked(thing)
    del thing
    assert kept() is None  # at once: a gradient that somebody else holds is copied by the engine


class RudeError(Exception):
    def __str__(self):
        raise SystemExit


def rude(*_):
    raise RudeError


RAISE = {
    "forward": Fn.of("InForward", "x: return x * rude()", "grad: return grad"),
    "backward": Fn.of("InBackward", "x: return x * 2", "grad: return grad * rude()"),
}


@pytest.mark.parametrize("fn", RAISE.values(), ids=RAISE)
def test_an_error_whose_words_leave_the_program_does_not_make_it_leave_through_us(fn):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with contextlib.suppress(RudeError):
        str(nbautograd.gradcheck(fn, x))
    with nbautograd.audit() as audit, contextlib.suppress(RudeError):
        fn.apply(x).sum().backward()
    str(audit.report())
    with nbautograd.recording(fn) as log, contextlib.suppress(RudeError):
        fn.apply(x).sum().backward()
    str(log)
    str(nbautograd.explain(lambda: fn.apply(x).sum().backward()))
