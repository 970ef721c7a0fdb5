"""Encoding of states and answers: always JSON, deflated, whose arrays stand in it as base64."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Entry, GradcheckReport
from nbautograd.core.stumbles import any_errors
from nbautograd.views.jacobian import wrong_cells
from nbautograd.views.packing import BlockState, Whole, array
from nbautograd.views.to_json import to_json
from nbautograd.widgets.states import Answer, BlocksState, State

LEVEL = 6  # of zlib: three times as quick as the highest, a twentieth heavier


def encode(state: Any, _widget: Any = None) -> bytes:
    """Return a state or an answer as it is sent and stored; frontend/wire.js decodes it.

    Example:
        >>> import json, zlib
        >>> from nbautograd.widgets.encoding import encode
        >>> json.loads(zlib.decompress(encode({"a": b"1"})))
        {'a': {'$b64': 'MQ=='}}
    """

    def in_text(part: bytes) -> dict[str, str]:
        return {"$b64": base64.b64encode(part).decode()}

    written = json.dumps(to_json(state), default=in_text, allow_nan=False, separators=(",", ":"))
    return zlib.compress(written.encode(), LEVEL)


FREEZING = "NBAUTOGRAD_FREEZING"  # environment variable of the kernel
MOST_WHOLE = 1_000_000  # bytes of whole blocks in one view
MOST_LENSES = 6  # blocks whose worst entry can be looked at closely
POINTS = 3  # other random points
QUICK = 2.0  # seconds that a check may take to be run at other points

Ask = Callable[[Mapping[str, Any]], Answer]


def without_kernel(state: State, questions: Mapping[str, Ask], value: Any) -> State:
    """Return the state as it is, or with what a page without a kernel needs while a notebook runs to be frozen."""
    return with_answers(state, questions, value) if os.environ.get(FREEZING) else state


def with_answers(state: State, questions: Mapping[str, Ask], value: Any) -> State:
    """Return the state with every entry that there is room for, and with answers to likely questions."""
    if not isinstance(state, BlocksState) or not state.blocks:
        return state
    parts = (getattr(value, "gradcheck", None), getattr(value, "jacobian", None), value)
    blocks: Any = next(filter(None, (getattr(part, "blocks", None) for part in parts)))
    seconds = next((part.seconds for part in parts if isinstance(part, GradcheckReport)), None) or QUICK
    answers = _answers(state, questions, POINTS if seconds < QUICK else 0)
    return replace(state, blocks=_with_whole(state.blocks, blocks), answers=answers)


def question_key(question: Mapping[str, Any]) -> str:
    """Return a question as the page writes it to find its answer.

    Example:
        >>> from nbautograd.widgets.encoding import question_key
        >>> question_key({"kind": "microscope", "entry": [0, 1]})
        '[["entry",[0,1]],["kind","microscope"]]'
    """
    return json.dumps(sorted([k, v] for k, v in question.items()), separators=(",", ":"))


def _with_whole(states: Sequence[BlockState], blocks: Mapping[tuple[int, int], Any]) -> list[BlockState]:
    """Return every entry of the pooled blocks, the wrong ones first, as far as the room goes."""
    room = MOST_WHOLE
    whole: dict[int, Whole] = {}
    for k in sorted(range(len(states)), key=lambda k: states[k].verdict != "mismatch"):
        maps, block = states[k].maps, blocks[states[k].output, states[k].input]
        pooled = maps is not None and maps.rows * maps.cols > 1
        if pooled and 16 * block.entries <= room:
            room -= 16 * block.entries
            wrong = wrong_cells(block, (0, 0), (1, 1), block.shape)
            whole[k] = Whole(
                analytical=array(block.analytical()),
                numerical=array(block.numerical()),
                wrong=None if wrong is None else array(wrong, "uint8"),
            )
    return [replace(state, whole=whole.get(k)) for k, state in enumerate(states)]


def _answers(state: BlocksState, questions: Mapping[str, Ask], points: int) -> dict[str, bytes]:
    """Return answers to likely questions: the microscope on worst entries, the text, so many other points."""
    lenses = [_lens(block, block.worst) for block in state.blocks if block.worst is not None]
    texts = [{"kind": "text", "redacted": redacted} for redacted in (False, True)]
    asked = [*lenses[:MOST_LENSES], *texts, {"kind": "motion"}]
    asked += [{"kind": "elsewhere", "seed": seed} for seed in range(1, points + 1)]
    answers = {}
    for question in asked:
        if question["kind"] in questions:
            with any_errors(f"question {question['kind']}"):  # what cannot be answered now is not offered later
                answers[question_key(question)] = encode(questions[question["kind"]](question))
    return answers


def _lens(block: BlockState, worst: Entry) -> dict[str, Any]:
    """Return the question for the microscope on a block's worst entry."""
    sides = ((worst.output_index, block.output_shape), (worst.input_index, block.input_shape))
    entry = [int(np.ravel_multi_index(tuple(index), tuple(shape))) if shape else 0 for index, shape in sides]
    return {"kind": "microscope", "block": [block.output, block.input], "entry": entry}
