"""The battery under a watch: a watched program gives the same as the bare one, in everything a check looks at."""

from __future__ import annotations

import fidelity_behaviour
import fidelity_values
import pytest

from nbautograd.core.recording.watching import FunctionWatch

CHECKS = {**fidelity_values.CHECKS, **fidelity_behaviour.CHECKS}

# a watch that runs keeps what it will check: the classes that it met, and copies of a few arguments
WATCHED_SHOWS = {"class_freed"}


def bare(cls):
    return cls


@pytest.mark.parametrize("name", CHECKS)
def test_same_as_bare(name):
    check = CHECKS[name]
    expected = check(bare)
    with FunctionWatch() as watch:
        watched = check(bare)
    assert (watched == expected) == (name not in WATCHED_SHOWS)
    assert watch.errors == {}
