"""The stop button's way into ipykernel: what it asks for is there, and what is not there is left alone."""

from __future__ import annotations

import pytest

from nbautograd.widgets import front_ends


class Asks:
    """A comm as ipykernel 7.4 has it."""

    def _reply_subshell_for(self, data, default):
        return "busy"


class AsksOtherwise:
    def _reply_subshell_for(self, message, header, default):
        return "busy"


class CannotBeSet:
    __slots__ = ()

    def _reply_subshell_for(self, data, default):
        return "busy"


def test_a_comm_that_is_asked_for_the_thread_names_the_pages():
    comm, other = Asks(), Asks()
    assert front_ends.heard_while_busy(comm)
    assert comm._reply_subshell_for({}, "the page's") == "the page's"
    assert other._reply_subshell_for({}, "the page's") == "busy"


@pytest.mark.parametrize(
    "comm", [object(), AsksOtherwise(), CannotBeSet(), type("Comm", (), {"_reply_subshell_for": 3})()]
)
def test_whatever_else_a_comm_may_be_stays_as_it_is(comm):
    before = getattr(comm, "_reply_subshell_for", None)
    assert not front_ends.heard_while_busy(comm)
    assert getattr(comm, "_reply_subshell_for", None) == before


def test_without_a_kernel_nobody_is_told(monkeypatch):
    front_ends.still_busy()
    monkeypatch.setattr("IPython.get_ipython", Asks)
    front_ends.still_busy()


CELL = """
import ipykernel, sys
from comm import create_comm
from nbautograd.widgets import front_ends
comm = create_comm(target_name="nowhere")
put_in = front_ends.heard_while_busy(comm)
asked = hasattr(type(comm), "_reply_subshell_for")
route = comm._reply_subshell_for({"content": {"id": "1"}}, "page") if asked else "page"
front_ends.still_busy()
print(put_in == asked, route)
"""


@pytest.mark.slow
def test_the_kernel_that_is_installed_is_one_of_those():
    """Run with another ipykernel first on PYTHONPATH this speaks for that one."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        seen: list[tuple[str, str]] = []

        def note(message):
            if message["header"]["msg_type"] == "status":
                seen.append(("status", message["content"]["execution_state"]))
            elif message["header"]["msg_type"] == "stream":
                seen.append(("says", message["content"]["text"]))

        client.execute_interactive(CELL, output_hook=note, timeout=60)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert ("says", "True page\n") in seen
    assert [state for kind, state in seen if kind == "status"].count("busy") == 2
