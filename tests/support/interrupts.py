"""An interrupt at each step of some files, one after the other."""

from __future__ import annotations

import dis
import linecache
import sys


def steps_of(action, files, stop_at=None) -> int:
    """Run something; an interrupt comes at one of the steps in these files. Returns how many steps there were."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        code = frame.f_code
        if code.co_filename not in files:
            return None
        line = linecache.getline(code.co_filename, frame.f_lineno).strip()
        if line.startswith("with ") and code.co_code[frame.f_lasti] == dis.opmap["LOAD_CONST"]:
            return trace  # where the lock is let go of: no signal handler runs between that and what is before it
        count += 1
        if count == stop_at:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()  # coverage counts what comes after this test, too
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
