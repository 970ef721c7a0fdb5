"""From an error, a tensor or a run to its cause: which of the rooms answers which kind of error."""

from __future__ import annotations

import re
from typing import Any

import torch

from nbautograd.core.explaining.at_the_line import MEANT, at_the_line, returned
from nbautograd.core.explaining.cause import ErrorCause, finding
from nbautograd.core.explaining.freed import freed
from nbautograd.core.explaining.grad_none import grad_none, without_requires_grad
from nbautograd.core.explaining.in_place import in_place
from nbautograd.core.explaining.no_grad import no_grad, unused, unused_parameters
from nbautograd.core.explaining.not_finite import BackwardWatch, not_finite, of_gradients, of_value
from nbautograd.core.explaining.program import Program
from nbautograd.core.explaining.symptoms import Symptom, symptom_of
from nbautograd.core.explaining.torch_errors import kind_of
from nbautograd.core.explaining.watch import all_finite
from nbautograd.core.torch_private.nodes import SHOWS_SAVED

NODE = re.compile(r"Function '?(\S+?)'? returned nan")  # anomaly mode's own word for it


def kind_of_error(error: BaseException) -> str | None:
    """Return the kind of an error that can be explained: torch's own, or what another one shows of a gradient."""
    kind = kind_of(error)
    if kind is None and (symptom := symptom_of(Program(error))) is not None:
        kind = symptom.kind
    return kind


def cause_of_error(error: BaseException, watch: Any = None) -> tuple[ErrorCause | None, Program]:
    """Return the cause of an error, and the evidence; no cause for one that has nothing to do with gradients."""
    program = Program(error, watch=watch)
    kind = kind_of(error)
    if kind is not None:
        return _cause(kind, program) or _only_kind(kind, program), program
    symptom = symptom_of(program)
    return None if symptom is None else _of_symptom(symptom, program), program


def _of_symptom(symptom: Symptom, program: Program) -> ErrorCause | None:
    if symptom.kind == "not_finite":
        program.roots = (symptom.tensor,)
        return of_value(program, symptom.tensor)
    program.roots = () if program.watch is None else program.watch.roots
    if symptom.kind == "grad_none":
        return grad_none(program, symptom.tensor, symptom.name)
    seen = None if program.watch is None else not_finite(program, program.watch.backward)
    return seen or of_gradients(program, [symptom.tensor])


def _cause(kind: str, program: Program) -> ErrorCause | None:
    if kind.startswith("returned_") or kind in ("mark_dirty", "save_for_backward"):
        return returned(program, kind)
    if kind == "view" and program.roots:
        return ErrorCause("in_place", (finding("in_place.rule"),))
    if kind in MEANT:
        return at_the_line(program, kind)
    answers = {answer.__name__: answer for answer in (in_place, freed, no_grad, unused, unused_parameters)}
    if kind in answers:
        return answers[kind](program)
    seen = getattr(program.watch, "backward", None)  # anomaly mode raises in a backward that was watched
    return not_finite(program, seen if seen is not None and seen.node else None) if kind == "not_finite" else None


def _only_kind(kind: str, program: Program) -> ErrorCause:
    if kind == "not_finite" and (node := NODE.search(str(program.error))) is not None:
        return ErrorCause(kind, (finding("not_finite.known_node", None, node=node[1]),), params={"node": node[1]})
    if kind == "in_place" and not SHOWS_SAVED:
        return ErrorCause(kind, (finding("hidden", None, version=torch.__version__),))
    return ErrorCause(kind, (finding(f"{kind}.rule"),))


def cause_of_tensor(tensor: torch.Tensor, program: Program, backward: BackwardWatch | None = None) -> ErrorCause | None:
    """Return what keeps a tensor from a gradient, or makes its gradients NaN; None where nothing does."""
    if not tensor.requires_grad and all_finite(tensor):
        return without_requires_grad(program, tensor, program.name_of(tensor) or "?")
    return not_finite(program, backward)
