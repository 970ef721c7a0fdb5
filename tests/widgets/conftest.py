"""The widgets without a page: what goes over the comm is written down, and messages are put into it."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import sample_values
from comm_wire import Wire


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """Comms that write down instead of sending."""
    import comm
    import ipywidgets.widgets.widget as home

    tape = Wire()

    class Recorded(comm.base_comm.BaseComm):
        def publish_msg(
            self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
        ) -> None:
            tape.sent.append((msg_type, data or {}, [bytes(b) for b in buffers or []]))

    monkeypatch.setattr(comm, "create_comm", Recorded)
    monkeypatch.setattr(home.comm, "create_comm", Recorded, raising=False)
    yield tape
    from nbautograd.widgets.live import close_all

    close_all()


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The values that the tests of the views made by hand."""
    return sample_values
