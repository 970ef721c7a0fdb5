"""What a widget sends when it opens, and what it takes from the page."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from comm_wire import Wire, decoded, put, sync
from said import pattern, says

import nbautograd
from nbautograd import messages
from nbautograd.core.tracing.dispatches import DispatchLog
from nbautograd.course.progress import CourseProgress
from nbautograd.errors import CallError
from nbautograd.inspection.explanation import Explanation
from nbautograd.widgets.live import VIEWS, widget

MEGABYTE = 1_000_000


def numbers(packed: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(packed["buffer"], packed["dtype"]).reshape(packed["shape"])


def test_every_public_report_has_a_view(wire: Wire, samples: Any) -> None:
    parts = [samples.report().jacobian, samples.gradcheck(), samples.calls()]
    parts.append(nbautograd.types.SlowMotion("F", "y", (), (), (), (), ()))
    documents = [
        samples.comparison(),
        nbautograd.types.AuditReport(),
        Explanation("nothing", (samples.NOTE,)),
        DispatchLog(),
        CourseProgress(),
    ]
    values = [samples.report(), samples.graph(), *parts, *documents]
    kinds = ["inspector", "graph", "jacobian", "gradcheck", "calls", "motion", *["document"] * len(documents)]
    assert [type(v).__name__ for v in values] == list(VIEWS)
    assert [v.widget()._kind for v in values] == kinds


def test_what_is_none_by_default_stays_at_home(wire: Wire, samples: Any) -> None:
    view = samples.report().widget()
    assert view.state.blocks[0].whole is None
    assert "whole" not in wire.state()["blocks"][0]
    assert wire.state()["check"]["since"] is None  # has no default: it always goes


def test_not_a_number_stays_json(wire: Wire, samples: Any) -> None:
    bad = np.array([[np.nan, np.inf], [-np.inf, 1.0]])
    blocks = {(0, 0): samples.block(bad, np.ones((2, 2)))}
    nbautograd.types.GradcheckReport("F", "wrong", blocks=blocks).widget()
    block = wire.state()["blocks"][0]
    assert np.isnan(numbers(block["maps"]["analytical"])[0, 0])


def weight(wire: Wire) -> int:
    """Bytes of all that the last widget sent when it opened."""
    state = wire.opened()[-1]["state"]
    buffers = next(
        buffers for kind, data, buffers in reversed(wire.sent) if kind == "comm_open" and "_kind" in data["state"]
    )
    return len(json.dumps(state)) + sum(map(len, buffers))


@pytest.fixture(scope="module")
def heaviest(samples: Any) -> Any:
    """2,000 calls, a graph of 10,000 nodes, 2,500 blocks with a hundred thousand entries each, long values."""
    random = np.random.default_rng(0)
    blocks = [samples.block(m, m + (k % 3 == 0)) for k, m in enumerate(random.normal(size=(50, 300, 400)))]
    check = nbautograd.types.GradcheckReport(
        "F", "wrong", blocks={(o, i): replace(blocks[i], output=o, input=i) for o in range(50) for i in range(50)}
    )
    one = samples.calls().calls
    calls = [replace(c, index=k, stdout="a line\n" * 900) for k, c in enumerate(one * (2_000 // len(one)))]
    y = x = torch.ones(2, requires_grad=True)
    for _ in range(5_000):
        y = y.sin() * x
    return replace(
        samples.report(wrong=True),
        gradcheck=check,
        calls=nbautograd.types.CallLog(calls),
        graph=nbautograd.graph(y.sum()),
    )


@pytest.mark.slow
def test_an_inspector_of_everything_large_stays_below_a_megabyte(wire: Wire, heaviest: Any) -> None:
    view = heaviest.widget()
    assert len(heaviest.graph.nodes) > 10_000
    assert weight(wire) < MEGABYTE
    put(view, {"id": 1, "kind": "picture", "opened": "all"})
    ((content, (buffer,)),) = wire.answers()
    assert content == {"id": 1}
    assert len(decoded(buffer)["layout"]["boxes"]) > 10_000
    assert len(buffer) < MEGABYTE


def test_of_many_blocks_the_wrong_ones_come_whole_and_the_others_when_asked_for(wire: Wire, samples: Any) -> None:
    right, wrong = samples.gradcheck().blocks[0, 0], samples.gradcheck(wrong=True).blocks[0, 1]
    blocks = {(0, i): replace(wrong if i == 170 else right, input=i) for i in range(180)}
    view = nbautograd.types.GradcheckReport("F", "wrong", blocks=blocks).widget()
    states = view.state.blocks
    assert [len(states), sum(state.maps is not None for state in states)] == [180, 150]
    assert states[170].maps is not None
    assert states[179].verdict == "match"
    put(view, {"id": 5, "kind": "block", "block": [0, 179]})
    ((_, (buffer,)),) = wire.answers()
    answer = decoded(buffer)["block"]
    assert answer["input"] == 179
    assert np.array_equal(numbers(answer["maps"]["analytical"]), right.analytical())
    put(view, {"id": 6, "kind": "block", "block": [3, 0]})
    assert "error" in wire.answers()[-1][0]


def test_python_sets_and_reads_the_selection(wire: Wire, samples: Any) -> None:
    view = samples.report(wrong=True).widget()
    view.tab = "jacobian"
    assert wire.sent[-1][1]["state"] == {"tab": "jacobian"}
    sync(view, selection={"block": [0, 1], "entry": [2, 3]})
    assert view.selection == {"block": [0, 1], "entry": [2, 3]}


def test_unknown_option_is_a_type_error_with_advice(wire: Wire, samples: Any) -> None:
    with pytest.raises(TypeError, match=pattern("widgets.unknown_option", name="tabs")):
        widget(samples.report(), tabs="calls")


def test_no_view_is_a_type_error_with_advice(samples: Any) -> None:
    with pytest.raises(CallError, match=pattern("widgets.no_view", type="Finding")):
        samples.NOTE.widget()


def test_displayed_by_itself_it_takes_the_place_of_its_report(wire: Wire, samples: Any) -> None:
    view = samples.gradcheck().widget()
    bundle, _ = view._repr_mimebundle_()
    assert sorted(bundle) == ["text/html", "text/plain"]  # a stored view could not be read without its kernel
    assert f'class="nbautograd {view._anchor}"' in bundle["text/html"]
    assert wire.sent[-1][1]["state"] == {"_anchor": view._anchor}
    assert view._repr_mimebundle_()[0] == bundle
    assert says(bundle["text/plain"], "views.headline.right", function="LinearFunction")


@pytest.mark.parametrize("where", ["VSCODE_PID", "google.colab", "__vsc_ipynb_file__"])
def test_where_only_views_are_shown_it_brings_one(wire: Wire, samples: Any, monkeypatch: Any, where: str) -> None:
    if where == "google.colab":
        monkeypatch.setitem(sys.modules, where, ModuleType(where))
        monkeypatch.setattr("anywidget._util.enable_custom_widget_manager_once", lambda: None)
    elif where == "VSCODE_PID":
        monkeypatch.setenv(where, "1")
    else:
        monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(user_ns={where: "nb.ipynb"}))
    view = samples.gradcheck().widget()
    bundle, _ = view._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id
    # the report and the view are never both on the page: the report has no name to be replaced by
    assert re.search(r'class="nbautograd (nbag-[0-9a-f]{16})"', bundle["text/html"]) is None


# --- questions of the page


def ask(view: Any, wire: Wire, **question: Any) -> dict[str, Any]:
    put(view, {"id": 7, **question})
    content, buffers = wire.answers()[-1]
    assert content["id"] == 7
    return decoded(buffers[0]) if buffers else content


@pytest.fixture
def large(samples: Any) -> Any:
    numerical = np.random.default_rng(1).normal(size=(200, 150))
    analytical = numerical.copy()
    analytical[130, 77] += 5
    block = samples.block(analytical, numerical, ((20, 10), (150,)))
    return nbautograd.types.GradcheckReport("F", "wrong", blocks={(0, 0): block})


def test_zoom_gives_exact_entries(wire: Wire, large: Any) -> None:
    seen = ask(large.widget(), wire, kind="zoom", block=[0, 0], rows=[120, 140], cols=[70, 90])
    assert (seen["rows"], seen["cols"]) == (1, 1)
    block = large.blocks[0, 0]
    assert np.array_equal(numbers(seen["analytical"]), block.analytical()[120:140, 70:90])
    assert np.array_equal(numbers(seen["numerical"]), block.numerical()[120:140, 70:90])
    assert numbers(seen["difference"])[10, 7] == pytest.approx(5)


def test_zoom_pools_what_is_still_large(wire: Wire, large: Any) -> None:
    seen = ask(large.widget(), wire, kind="zoom", block=[0, 0], rows=[0, 200], cols=[0, 150])
    assert (seen["rows"], seen["cols"], seen["difference"]["shape"]) == (4, 3, [50, 50])
    assert numbers(seen["difference"])[130 // 4, 77 // 3] == pytest.approx(5)


@pytest.mark.parametrize(
    "bad",
    [
        {"block": [0, 9]},
        {"block": "0,0"},
        {"block": [0, True]},
        {"rows": [0, 201]},
        {"rows": [-1, 3]},
        {"rows": [3, 3]},
        {"cols": [0.0, 1.0]},
        {"cols": None},
    ],
)
def test_a_question_that_makes_no_sense_gets_a_sentence(wire: Wire, large: Any, bad: dict[str, Any]) -> None:
    question = {"kind": "zoom", "block": [0, 0], "rows": [0, 10], "cols": [0, 10], **bad}
    reply = ask(large.widget(), wire, **question)
    assert reply["error"] == messages.text("widgets.no_answer", reason=messages.text("widgets.no_block"))


@pytest.mark.parametrize(
    "content",
    [None, "zoom", {"kind": "zoom"}, {"id": "7", "kind": "zoom"}, {"id": 7, "kind": "eval", "code": "1"}, {"id": 7}],
)
def test_messages_that_are_no_question_are_ignored(wire: Wire, large: Any, content: Any) -> None:
    view = large.widget()
    put(view, content)
    assert wire.answers() == []


def test_the_page_cannot_change_the_state(wire: Wire, samples: Any) -> None:
    view = samples.gradcheck().widget()
    sync(view, state={"check": {"verdict": "wrong"}}, _kind="graph")
    assert view.state.check.verdict == "right"
    assert view._kind == "gradcheck"
