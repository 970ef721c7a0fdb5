"""The card under a cell: what it says at once, how it follows later calls, when it stops."""

from __future__ import annotations

import threading
import time

import pytest
from notebook_shell import DOUBLE
from said import says

from nbautograd import magics

CELL = "%%autograd_function\n" + DOUBLE + "\nx = torch.ones(2, requires_grad=True)\n"


@pytest.fixture
def live(bare):
    """A shell whose front end can change what it has shown, as a kernel's can."""
    bare.shell.kernel = object()
    bare.shell.extension_manager.load_extension("nbautograd")
    yield bare
    del bare.shell.kernel


def test_later_calls_appear_in_it_once_per_cell(live) -> None:
    live(CELL)
    ran = live("for _ in range(3):\n    Double.apply(x).sum().backward()")
    assert len(ran.updates) == 1
    assert says(ran.text, "views.headline.calls", calls="calls: 6")
    assert live("1 + 1").updates == []
    assert len(live("Double.apply(x)").updates) == 1


@pytest.mark.parametrize(
    "between", [["%gradcheck Double.apply(x.double().detach().requires_grad_())"], ["Double.apply(x)", CELL]]
)
def test_checks_and_those_of_a_cell_before_it_was_run_again_are_not_among_the_calls(live, between) -> None:
    live(CELL)
    for cell in between:
        live(cell)
    ran = live("Double.apply(x)")
    assert len(ran.updates) == 1
    assert says(ran.text, "views.headline.calls", calls="calls: 1")


UNTIL_SHOWN = """\
import threading, time
before = [t.name for t in threading.enumerate()]
end = time.monotonic() + 20
while len(get_ipython().seen) < 2 and time.monotonic() < end:
    Double.apply(x).sum().backward()
"""


@pytest.fixture
def seen(live, monkeypatch):
    """When each bundle was published, and the bundle; also what a thread publishes while a cell runs."""
    publisher, published = live.shell.display_pub, []
    keep = lambda data, *rest, **more: published.append((time.monotonic(), data, more))  # noqa: E731
    monkeypatch.setattr(publisher, "publish", keep)
    live.shell.seen = published
    yield published
    del live.shell.seen


def test_while_a_cell_runs_the_card_follows(live, seen) -> None:
    live.shell.run_cell(CELL)
    seen.clear()
    live.shell.run_cell(UNTIL_SHOWN)
    during, final = seen[:2], seen[-1]
    assert all(more["update"] and more["transient"]["display_id"] for _, _, more in during)
    assert says(during[1][1]["text/plain"], "magics.card_last", last=4)  # the first may come after four
    assert during[1][0] - during[0][0] >= 0.1
    assert says(final[1]["text/plain"], "magics.card_last", last=12)
    assert "nbautograd card" in live["before"]
    assert "nbautograd card" not in [t.name for t in threading.enumerate()]


def test_an_interrupted_cell_leaves_no_thread(live, seen) -> None:
    live.shell.run_cell(CELL)
    live.shell.run_cell("Double.apply(x)\nraise KeyboardInterrupt")
    assert "nbautograd card" not in [t.name for t in threading.enumerate()]
    assert says(seen[-1][1]["text/plain"], "views.headline.calls", calls="calls: 1")


def test_what_a_cell_captures_is_the_users_alone(live, seen) -> None:
    live.shell.run_cell(CELL)
    seen.clear()
    live.shell.run_cell("from IPython.utils.capture import capture_output\nwith capture_output() as kept:\n    "
                        + UNTIL_SHOWN.replace("\n", "\n    "))  # fmt: skip
    assert len(seen) >= 2
    assert live["kept"].outputs == []


def test_a_terminal_is_not_flooded(notebook) -> None:
    notebook(CELL)
    assert notebook("Double.apply(x)").bundles[1:] == []


def test_after_unload_cards_stand_still(live) -> None:
    live(CELL)
    live("%unload_ext nbautograd")
    assert live("Double.apply(x)").updates == []
    assert magics._loaded.get(live.shell) is None
