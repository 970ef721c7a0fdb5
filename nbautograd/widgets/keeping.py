"""State of a view for the time without a kernel: whole blocks, and answers that Python gave beforehand.

Only while a notebook runs to be frozen (``nbautograd freeze`` says so in the environment): it costs time and room.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nbautograd.views.jacobian import wrong_cells
from nbautograd.views.to_json import array

FREEZING = "NBAUTOGRAD_FREEZING"  # environment variable of the kernel
MOST_WHOLE = 1_000_000  # bytes of whole blocks in one view
MOST_LENSES = 6  # blocks whose worst entry can be looked at closely
POINTS = 3  # other random points
QUICK = 2.0  # seconds that a check may take to be run at other points

State = dict[str, Any]
Ask = Callable[[Mapping[str, Any]], tuple[dict[str, Any], list[bytes]]]


def kept(state: State, questions: Mapping[str, Ask], value: Any) -> State:
    """The state as it is, or with what a page without a kernel needs while a notebook runs to be frozen."""
    if not os.environ.get(FREEZING) or not state.get("blocks"):
        return state
    parts = (getattr(value, "gradcheck", None), getattr(value, "jacobian", None), value)
    blocks: Any = next(filter(None, (getattr(part, "blocks", None) for part in parts)))
    return {**state, "blocks": _with_whole(state["blocks"], blocks), "answers": _answers(state, questions)}


def question_key(question: Mapping[str, Any]) -> str:
    """A question as the page writes it to find its answer.

    Example:
        >>> from nbautograd.widgets.keeping import question_key
        >>> question_key({"kind": "microscope", "entry": [0, 1]})
        '[["entry",[0,1]],["kind","microscope"]]'
    """
    return json.dumps(sorted([k, v] for k, v in question.items()), separators=(",", ":"))


def _with_whole(states: list[State], blocks: Mapping[tuple[int, int], Any]) -> list[State]:
    """Every entry of the pooled blocks, the wrong ones first, as far as the room goes."""
    room, whole = MOST_WHOLE, {}
    for k in sorted(range(len(states)), key=lambda k: states[k].get("verdict") != "mismatch"):
        state, block = states[k], blocks[states[k]["output"], states[k]["input"]]
        pooled = state["maps"]["rows"] * state["maps"]["cols"] > 1
        if pooled and 16 * block.entries <= room:
            room -= 16 * block.entries
            whole[k] = {"analytical": array(block.analytical()), "numerical": array(block.numerical())}
            wrong = wrong_cells(block, (0, 0), (1, 1), block.shape)
            if wrong is not None:
                whole[k]["wrong"] = array(wrong, "uint8")
    return [{**state, "whole": whole[k]} if k in whole else state for k, state in enumerate(states)]


def _answers(state: State, questions: Mapping[str, Ask]) -> dict[str, Any]:
    """Answers to what a reader is likely to ask: the microscope on worst entries, the text, other points."""
    asked = [*[_lens(block) for block in state["blocks"] if block.get("worst")][:MOST_LENSES], {"kind": "text"}]
    if state.get("check") and (state["check"]["seconds"] or QUICK) < QUICK:
        asked += [{"kind": "elsewhere", "seed": seed} for seed in range(1, POINTS + 1)]
    answers = {}
    for question in asked:
        if question["kind"] in questions:
            try:
                answers[question_key(question)] = questions[question["kind"]](question)[0]
            except Exception:  # what cannot be answered now is not offered later
                continue
    return answers


def _lens(block: State) -> dict[str, Any]:
    """The question for the microscope on a block's worst entry."""
    worst = block["worst"]
    entry = [
        int(np.ravel_multi_index(worst[f"{side}_index"], block[f"{side}_shape"])) if block[f"{side}_shape"] else 0
        for side in ("output", "input")
    ]
    return {"kind": "microscope", "block": [block["output"], block["input"]], "entry": entry}
