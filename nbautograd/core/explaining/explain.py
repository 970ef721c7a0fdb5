"""From an error, a tensor or a run to its cause: which of the rooms answers which kind of error."""

from __future__ import annotations

import re
from typing import Any

import torch

from nbautograd.core.explaining.at_the_line import MEANT, at_the_line
from nbautograd.core.explaining.cause import ErrorCause, finding
from nbautograd.core.explaining.freed import freed
from nbautograd.core.explaining.in_place import in_place, view_written
from nbautograd.core.explaining.no_grad import no_grad, unused, unused_parameters
from nbautograd.core.explaining.not_finite import BackwardWatch, not_finite
from nbautograd.core.explaining.program import Program
from nbautograd.core.explaining.returned import returned
from nbautograd.core.explaining.torch_errors import kind_of
from nbautograd.core.torch_private.nodes import SHOWS_SAVED

NODE = re.compile(r"Function '?(\w+)'? returned nan")  # anomaly mode's own word for it


def cause_of_error(error: BaseException, watch: Any = None) -> tuple[ErrorCause | None, Program]:
    """Return the cause of one of torch's gradient errors, and the evidence; no cause for every other error."""
    program = Program(error, watch=watch)
    kind = kind_of(error)
    if kind is None:
        return None, program
    return _cause(kind, program) or _only_kind(kind, program), program


def _cause(kind: str, program: Program) -> ErrorCause | None:
    if kind.startswith("returned_") or kind in ("mark_dirty", "save_for_backward"):
        return returned(program, kind)
    if kind == "view" and program.roots:
        return view_written(program)
    if kind in MEANT:
        return at_the_line(program, kind)
    answers = {
        "in_place": in_place,
        "freed": freed,
        "no_grad": no_grad,
        "unused": unused,
        "unused_parameters": unused_parameters,
    }
    if kind in answers:
        return answers[kind](program)
    seen = getattr(program.watch, "backward", None)  # anomaly mode raises in a backward that was watched
    return not_finite(program, seen if seen is not None and seen.node else None) if kind == "not_finite" else None


def _only_kind(kind: str, program: Program) -> ErrorCause:
    """Return what is known where the evidence is gone: the kind of error, and what it means."""
    if kind == "not_finite" and (node := NODE.search(str(program.error))) is not None:
        return ErrorCause(kind, (finding("not_finite.known_node", None, node=node[1]),), params={"node": node[1]})
    if kind == "in_place" and not SHOWS_SAVED:
        return ErrorCause(kind, (finding("hidden", None, version=torch.__version__),))
    return ErrorCause(kind, (finding(f"{kind}.known"),))


def cause_of_tensor(tensor: torch.Tensor, program: Program, backward: BackwardWatch | None = None) -> ErrorCause | None:
    """Return what keeps a tensor from a gradient, or makes its gradients NaN; None where nothing does."""
    if not tensor.requires_grad and bool(tensor.detach().isfinite().all()):
        return no_grad(program)
    return not_finite(program, backward)
