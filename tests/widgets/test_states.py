"""States and answers: the page's types are made from the classes that Python sends."""

from __future__ import annotations

import runpy
import typing
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import anywidget
import pytest
from comm_wire import Wire, decoded

import nbautograd
from nbautograd.widgets import states
from nbautograd.widgets.encoding import encode

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "frontend" / "generate.py"))


def test_another_field_of_a_state_makes_the_types_of_the_page_stale(generator, monkeypatch):
    assert "states.d.ts" not in generator["stale"]()
    more = make_dataclass("CallState", [("colour", str)], bases=(states.CallState,), frozen=True, kw_only=True)
    more.__module__ = states.__name__
    monkeypatch.setattr(states, "CallState", more)
    assert "  colour: string;" in generator["stale"]()["states.d.ts"]


def test_what_is_none_by_default_is_optional_on_the_page_and_what_is_not_can_be_null(generator: dict[str, Any]) -> None:
    lines = generator["state_types"]().split("\n")
    assert "  methods?: Block[];" in lines
    assert "  trends: TrendsState | null;" in lines
    assert "  layout: Layout;" in lines


def test_a_type_that_the_page_cannot_know_is_no_type(generator: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        generator["_type"](complex)


def test_every_view_sends_the_state_that_the_page_is_told(wire: Wire, samples: Any) -> None:
    values = [samples.report(), samples.graph(), samples.report().jacobian, samples.gradcheck(), samples.calls()]
    told = typing.get_type_hints(states.Views)
    for value in (*values, samples.comparison()):
        view = value.widget()
        assert type(view.state) is told[view._kind]


def test_the_page_is_told_the_answer_to_every_question(wire: Wire, samples: Any) -> None:
    asked = {kind for value in (samples.report(), samples.graph()) for kind in value.widget().questions()}
    assert asked <= set(typing.get_type_hints(states.Answers))
    told = typing.get_type_hints(states.Answers)
    view = nbautograd.types.GradcheckReport("F", "right", blocks=samples.gradcheck().blocks).widget()
    answer = view.questions()["block"]({"block": [0, 0]})
    assert type(answer) is told["block"]
    assert decoded(encode(answer))["block"]["entries"] == samples.gradcheck().blocks[0, 0].entries


def test_the_page_is_told_every_trait_that_is_sent(wire: Wire, samples: Any) -> None:
    view = samples.gradcheck().widget()
    sent = set(view.keys) - set(anywidget.AnyWidget().keys)
    told = typing.get_type_hints(states.Traits)
    assert set(told) == sent
    assert set(typing.get_args(told["_kind"])) == set(typing.get_type_hints(states.Views))
