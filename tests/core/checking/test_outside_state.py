"""Names outside ctx are left alone where the Function writes nothing to them, and undone where it does."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
import torch
from fn import Fn
from own_mistakes import draw

import nbautograd
from nbautograd.core import stumbles
from nbautograd.core.checking import outside_state
from nbautograd.core.checking.budget import OutOfBudgetError, OutOfRunsError
from nbautograd.core.checking.outside_state import ClassState
from nbautograd.core.process_copy import Refused, in_copy

TABLE = {"scale": [2.0, 3.0]}
ROWS = np.ones(3)
FACTOR = 2.0
COUNT = 0
CALLS: list[int] = []


def count_up():
    global COUNT
    COUNT += 1


SEEN: deque = deque()
note = SEEN.append  # a callable is no state, so that it is not exchanged itself


class Reads(Fn):
    """Half of the right gradient, so that a fix is searched for; all that it names is only read."""

    offset = torch.zeros(3, dtype=torch.float64)
    kept: dict = {}

    def forward(ctx, x):
        note((id(TABLE), id(ROWS), id(Reads.offset), id(Reads.kept)))
        ctx.FACTOR, ctx.offset = FACTOR, Reads.offset  # names of ctx
        return x * FACTOR * TABLE["scale"][0] + torch.from_numpy(ROWS) + Reads.offset + len(Reads.kept)

    def backward(ctx, g):
        return g * ctx.FACTOR


Writes = Fn.of("Writes", "x: count_up(); CALLS.append(COUNT); return x * 2", "g: return g")


class Refuses:
    __slots__ = ()

    def __getattr__(self, name):
        raise RuntimeError(name)


REFUSES = [Refuses()]  # within a list, for pytest asks what stands in a module
ReadsIt = Fn.of("ReadsIt", "x: assert REFUSES; return x * 2", "g: return g * 2")


def test_an_object_outside_is_not_asked_for_its_attributes() -> None:
    assert nbautograd.gradcheck(ReadsIt, (draw(3),)).verdict == "right"


def test_what_is_only_read_keeps_its_object_while_a_fix_is_searched_for() -> None:
    SEEN.clear()
    report = nbautograd.gradcheck(Reads, (draw(3),), order=1)
    assert report.verdict == "wrong"
    assert len(SEEN) > 50
    assert set(SEEN) == {(id(TABLE), id(ROWS), id(Reads.offset), id(Reads.kept))}


def test_a_write_of_another_thread_into_what_is_only_read_stays() -> None:
    state = ClassState(Reads)
    with state.put_back():
        globals()["FACTOR"] = 5.0  # as another thread may: no code of the Function binds it
    try:
        assert FACTOR == 5.0
        with state.put_back():
            assert FACTOR == 5.0
    finally:
        globals()["FACTOR"] = 2.0


def test_what_is_written_holds_its_first_values_meanwhile() -> None:
    state = ClassState(Writes)
    first, calls = COUNT, [*CALLS]
    Writes.apply(draw(2))
    after = COUNT, CALLS, [*CALLS]
    with state.put_back():
        assert first == COUNT
        assert calls == CALLS
        Writes.apply(draw(2))
    assert after[0] == COUNT
    assert after[2] == CALLS
    assert CALLS is after[1]


def test_a_write_of_another_thread_to_what_the_function_binds_stays_while_a_fix_is_searched_for(monkeypatch) -> None:
    def beside(run):
        answer = in_copy(run)
        globals()["COUNT"] = 10**6  # as another thread may before the search is over
        return answer

    monkeypatch.setattr(outside_state, "in_copy", beside)
    monkeypatch.setitem(globals(), "COUNT", COUNT)
    report = nbautograd.gradcheck(Writes, (draw(3),), order=1)
    assert COUNT >= 10**6
    assert report.findings[0].fix.source.strip() == "return g * 2"


@pytest.mark.parametrize(
    ("copy", "budget"),
    [
        (lambda run: Refused("fork"), {}),
        (lambda run: Refused("outside"), {}),
        (lambda run: pytest.fail("a copy has no clock that may interrupt"), {"budget": 60.0}),
    ],
)
def test_where_no_copy_can_be_made_a_fix_is_searched_for_here(copy, budget, monkeypatch) -> None:
    monkeypatch.setattr(outside_state, "in_copy", copy)
    found = nbautograd.gradcheck(Writes, (draw(3),), order=1, **budget).findings[0]
    assert found.fix.source.strip() == "return g * 2"


@pytest.mark.parametrize("error", [OutOfBudgetError, OutOfRunsError, KeyboardInterrupt])
def test_what_ends_a_job_in_a_copy_ends_it_here(error) -> None:
    def job():
        raise error

    with pytest.raises(error) as caught:
        ClassState(Writes).apart(job)
    assert type(caught.value) is error
    assert stumbles.recent() == ()


def test_a_copy_that_dies_is_a_stumble_and_no_fix(monkeypatch) -> None:
    monkeypatch.setattr(outside_state, "in_copy", lambda run: Refused("died", "SIGSEGV"))
    report = nbautograd.gradcheck(Writes, (draw(3),), order=1)
    assert (report.verdict, report.findings[0].fix) == ("wrong", None)
    assert "SIGSEGV" in stumbles.recent()[0].what
    stumbles.forget()


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (lambda: TABLE.update(more=1), lambda: (id(TABLE), {**TABLE}, id(TABLE["scale"]))),
        (lambda: ROWS.fill(7), lambda: (id(ROWS), ROWS.tolist())),
        (lambda: Reads.offset.fill_(7), lambda: (id(Reads.offset), Reads.offset.tolist())),
        (lambda: Reads.kept.update(a=1), lambda: (id(Reads.kept), {**Reads.kept})),
    ],
)
def test_what_is_written_inside_for_the_first_time_is_undone_in_the_very_object(write, read) -> None:
    state, before = ClassState(Reads), read()
    with state.put_back():
        write()
        assert read() != before
    assert read() == before


def test_containers_can_be_emptied_for_a_while() -> None:
    before = id(TABLE), {**TABLE}
    with ClassState(Reads).put_back(empty=True):
        assert TABLE == {}
    assert (id(TABLE), TABLE) == before
