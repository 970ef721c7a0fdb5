"""The page's question why a tensor has no gradient: the sentence, and the picture with the tensor as a ghost."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.graphs.source_cuts import CELLS
from nbautograd.core.graphs.why_none import Answer, ask, askable
from nbautograd.errors import InputError

MOST_NAMES = 400


def names(graph: AutogradGraph) -> list[str]:
    """The tensors that can be asked for: the graph's, then the others of the notebook."""
    return askable(graph, variables())[:MOST_NAMES]


def answer(graph: AutogradGraph, question: Mapping[str, Any]) -> Answer:
    """Say why the tensor that ``question["name"]`` names has no gradient.

    Raises:
        InputError: when it is no text.
    """
    name = question.get("name")
    if not isinstance(name, str):
        raise InputError("widgets.no_box")
    return ask(graph, name, variables(), cells())


def with_ghost(graph: AutogradGraph, asked: Answer) -> AutogradGraph:
    """The graph with the tensor that was asked for among its ghosts, unless it is drawn anyway."""
    if asked.ghost is None or asked.ghost in graph.ghosts:
        return graph
    return replace(graph, ghosts=(*graph.ghosts, asked.ghost))


def variables() -> Mapping[str, Any] | None:
    """The notebook's variables; None where no notebook runs."""
    space = getattr(_shell(), "user_ns", None)
    return space if isinstance(space, dict) else None


def cells() -> list[str]:
    """The notebook's latest cells, the last one first."""
    run = (variables() or {}).get("In")
    return [cell for cell in reversed(run[-CELLS:]) if isinstance(cell, str)] if isinstance(run, list) else []


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
