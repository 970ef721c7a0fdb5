"""Silence while a Function is tried: its prints go nowhere and cost nothing; what it writes to a file is written."""

from __future__ import annotations

import builtins
import io
import threading

from nbautograd.core.checking.quiet import quiet


class Costly:
    """Counts how often it is written out."""

    written = 0

    def __str__(self) -> str:
        Costly.written += 1
        return "costly"


def test_prints_are_dropped_before_anything_is_written_out(capsys) -> None:
    file, before = io.StringIO(), builtins.print
    with quiet(), quiet():
        print(Costly())
        print("kept", file=file)
    assert builtins.print is before
    assert Costly.written == 0
    assert file.getvalue() == "kept\n"
    assert capsys.readouterr().out == ""
    print("heard again")
    assert capsys.readouterr().out == "heard again\n"


def test_two_threads_may_leave_in_any_order() -> None:
    before, entered, leave = builtins.print, threading.Event(), threading.Event()

    def other() -> None:
        with quiet():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with quiet():
        thread.start()
        assert entered.wait(10)
    leave.set()
    thread.join(10)
    assert builtins.print is before
