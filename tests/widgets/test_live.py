"""Static and live: what ``_repr_mimebundle_`` gives with a kernel, without one, and when the widget cannot be made."""

from __future__ import annotations

import pkgutil
from types import SimpleNamespace
from typing import Any

import pytest
from comm_wire import Wire
from said import says

from nbautograd import messages
from nbautograd.views.bundle import mimebundle as static_bundle
from nbautograd.widgets import live


class Kernel:
    """As much of an ipykernel as the widgets ask for."""

    def __init__(self) -> None:
        self.parent: dict[str, Any] = {"metadata": {"cellId": "cell-1"}, "header": {"msg_id": "run-1"}}

    def get_parent(self, channel: str) -> dict[str, Any]:
        assert channel == "shell"
        return self.parent

    def run(self, cell: str, run: str) -> None:
        self.parent = {"metadata": {"cellId": cell}, "header": {"msg_id": run}}


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    import IPython

    kernel = Kernel()
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=kernel))
    return kernel


def test_without_a_kernel_only_the_static_report(wire: Wire, samples: Any) -> None:
    report = samples.report()
    assert report._repr_mimebundle_() == static_bundle(report)
    assert wire.sent == []


def test_with_a_kernel_the_widget_knows_its_place(wire: Wire, samples: Any, kernel: Kernel) -> None:
    bundle = samples.report()._repr_mimebundle_()
    assert sorted(bundle) == ["text/html", "text/plain"]  # no widget-view: the notebook can be read without a kernel
    (opened,) = wire.opened()
    assert f'class="nbautograd {opened["state"]["_anchor"]}"' in bundle["text/html"]
    assert opened["state"]["_kind"] == "inspector"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("nbautograd.views.answer", "_headline"),
        ("nbautograd.views.layout.build", "_build"),
        ("nbautograd.widgets.encoding.json", "dumps"),
        ("nbautograd.views.bundle", "build"),
    ],
)
def test_nothing_is_computed_twice_for_a_shown_report(wire, samples, kernel, monkeypatch, module, name):
    home, report, ran = pkgutil.resolve_name(module), samples.report(), []
    whole = getattr(home, name)
    monkeypatch.setattr(home, name, lambda *args, **kwargs: (ran.append(name), whole(*args, **kwargs))[1])
    report._repr_mimebundle_()
    assert len(ran) == 1


def test_each_display_has_its_own_place(wire: Wire, samples: Any, kernel: Kernel) -> None:
    report = samples.report()
    report._repr_mimebundle_()
    report._repr_mimebundle_()
    first, second = (opened["state"]["_anchor"] for opened in wire.opened())
    assert first != second


def test_an_interrupt_of_the_drawing_leaves_the_static_report_and_a_second_one_a_sentence(
    wire: Wire, samples: Any, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_args: Any, **_more: Any) -> Any:
        raise KeyboardInterrupt

    report, write = samples.report(), live.static_bundle
    monkeypatch.setattr(live, "widget", interrupted)
    assert report._repr_mimebundle_() == static_bundle(report)
    monkeypatch.setattr(live, "static_bundle", lambda value: interrupted() if value is report else write(value))
    said = report._repr_mimebundle_()
    assert said["text/plain"] == messages.text("views.interrupted")
    assert says(said["text/html"], "views.interrupted")


def test_a_cell_run_again_closes_its_old_widgets(wire: Wire, samples: Any, kernel: Kernel) -> None:
    samples.gradcheck()._repr_mimebundle_()
    samples.graph()._repr_mimebundle_()
    assert wire.closed() == 0
    kernel.run("cell-2", "run-2")
    samples.gradcheck()._repr_mimebundle_()
    assert wire.closed() == 0
    kernel.run("cell-1", "run-3")
    samples.gradcheck()._repr_mimebundle_()
    assert wire.closed() == 2


def test_the_oldest_give_way(wire: Wire, samples: Any, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_OPEN", 3)
    for k in range(5):
        kernel.run(f"cell-{k}", f"run-{k}")
        samples.calls()._repr_mimebundle_()
    assert wire.closed() == 2
    assert [cell for cell, _, _ in live._open] == ["cell-2", "cell-3", "cell-4"]


def test_no_cell_id_is_no_reason_to_close(wire: Wire, samples: Any, kernel: Kernel) -> None:
    for _ in range(3):
        kernel.parent = {}
        samples.calls()._repr_mimebundle_()
    assert wire.closed() == 0


def test_a_widget_that_cannot_be_made_leaves_the_static_report(wire, samples, kernel, monkeypatch):
    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("no comm")

    monkeypatch.setattr(live, "widget", broken)
    report = samples.report()
    assert report._repr_mimebundle_() == static_bundle(report)
