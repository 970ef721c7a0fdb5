"""Parts of the page's state that several views share: arrays, tensors, values, findings, source lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nbautograd.core.display import plain
from nbautograd.core.user_source import FunctionSource
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.views.to_json import array, matrix

_UNSENT = ("thumbnail", "type", "values", "requires_grad", "sampled")
_NOTHING = (None, "")
SOURCE_LIMIT = 40_000  # characters of source that are sent


def inline(state: Any) -> Any:
    """The same state with its arrays as lists of numbers, for an answer, whose parts cannot be buffers.

    Example:
        >>> from nbautograd.views.to_json import array
        >>> from nbautograd.widgets.parts import inline
        >>> inline(array([1.0, float("inf")]))["values"]
        [1.0, 'Infinity']
    """
    if isinstance(state, list):
        return [inline(part) for part in state]
    if not isinstance(state, dict):
        return state
    if "buffer" in state:
        numbers = np.frombuffer(state["buffer"], np.dtype(state["dtype"]).newbyteorder("<")).tolist()
        words = [x if np.isfinite(x) else f"{x}".replace("inf", "Infinity") for x in numbers]
        return {"dtype": state["dtype"], "shape": state["shape"], "values": words}
    return {name: inline(part) for name, part in state.items()}


def weight(state: Any) -> int:
    """About how many bytes a part of the state takes on its way."""
    if isinstance(state, dict):
        return sum(len(name) + 4 + weight(part) for name, part in state.items())
    if isinstance(state, (list, tuple)):
        return sum(map(weight, state))
    return len(state) if isinstance(state, (str, bytes)) else 8


def tensor(summary: TensorSummary, drawn: bool = True) -> dict[str, Any]:
    """A tensor's summary; the thumbnail goes as an array, unless the same tensor is drawn elsewhere."""
    facts = {k: v for k, v in plain(summary).items() if k not in _UNSENT and v not in _NOTHING}
    facts["sampled"] = summary.sampled
    if drawn and summary.thumbnail is not None and summary.thumbnail.size:
        facts["thumbnail"] = array(matrix(summary.thumbnail), "float32")
    return facts


def value(one: Value) -> dict[str, Any]:
    """One argument, output, saved tensor or gradient."""
    return {
        "name": one.name,
        "type": one.type,
        "repr": one.repr,
        "same_as": one.same_as,
        "tensor": None if one.tensor is None else tensor(one.tensor, drawn=not one.same_as),
    }


def values(several: Iterable[Value]) -> list[dict[str, Any]]:
    """Several values in their order."""
    return [value(one) for one in several]


def ctx(snapshot: CtxSnapshot) -> dict[str, Any]:
    """Return what is kept on ctx: saved tensors, attributes and the flags."""
    return {
        "saved": values(snapshot.saved_tensors),
        "attributes": values(snapshot.attributes.values()),
        "needs_input_grad": list(snapshot.needs_input_grad),
        "dirty": list(snapshot.dirty),
        "non_differentiable": list(snapshot.non_differentiable),
        "materialize_grads": snapshot.materialize_grads,
        "bytes": snapshot.bytes,
        "freed": snapshot.freed,
    }


def source(text: FunctionSource | None) -> dict[str, Any] | None:
    """The source of the class, or None."""
    if text is None or not text.text:
        return None
    return {"text": text.text[:SOURCE_LIMIT], "first_line": text.first_line, "lines": dict(text.lines)}
