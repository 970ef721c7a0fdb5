"""What a comparison shows besides its verdict: both values, the line that is wrong, both graphs, bytes and time."""

from __future__ import annotations

import contextlib
import statistics
import time as clock
from collections.abc import Container, Iterator
from dataclasses import replace
from typing import Any

import torch

from nbautograd.core.checking.backward_call import cotangents
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.core.checking.prepared_inputs import unreadable_kind
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.build import graph as graph_of
from nbautograd.core.kernel.check import Outcome
from nbautograd.core.kernel.golden import wide
from nbautograd.core.stumbles import any_errors
from nbautograd.core.values import describe
from nbautograd.inspection.comparison import Comparison

Sides = tuple[torch.Tensor | None, torch.Tensor | None]  # the Function's and the reference's
REPEATS = 7  # of which the time is the median


def sides(name: str, pair: Sides) -> dict[str, Any]:
    """Return both values of a quantity, their difference, and the largest one of it."""
    ours, theirs = pair
    error, largest = None, 0.0 if ours is theirs else float("inf")
    if ours is not None and theirs is not None and ours.shape == theirs.shape:
        exact = ours.is_floating_point()
        error = ours.detach() - theirs.detach() if exact else None
        largest = 0.0 if not ours.numel() else float(error.abs().max() if error is not None else (ours != theirs).any())
    return {
        "values": (describe(name, ours), describe(name, theirs)),
        "difference": None if error is None else describe(name, error),
        "largest": largest,
    }


# seconds of a call: a check makes hundreds, of an interpreted kernel for minutes, and has no budget of its own inside
# that of the comparison
QUICK = 2e-3


def next_step(
    candidate: Problem, reference: Problem, outcome: Outcome, seed: int, hints: str
) -> tuple[list[Finding], list[Phrase]]:
    """Return the lines that make gradients wrong, and what to look at where there are none.

    A check of backward against its own forward finds them, so forward has to agree with the reference, and the
    reference to have the derivative for its gradient: a reversal has not. In float64 first, where finite differences
    see most.
    """
    tracks = outcome.trial.tracks
    wrong = {tracks[k].quantity.name: tracks[k] for k in outcome.wrong}
    if not wrong or candidate.source is None or hints in ("none", "what"):
        return [], []
    if any(track.quantity.kind == "output" for track in wrong.values()):
        return [], [Phrase("compare.forward_first")]
    with any_errors("line of a wrong gradient"):
        seconds = []
        for _ in range(3):
            start = clock.perf_counter()
            candidate.call()
            seconds.append(clock.perf_counter() - start)
        if min(seconds) > QUICK:
            return [], []
    for inputs in (tuple(map(wide, candidate.inputs)), candidate.inputs):
        # a kernel may refuse float64
        with any_errors("line of a wrong gradient"):
            if not gradcheck(reference.fn, inputs, order=1, seed=seed, hints="none"):
                return [], []
            check = gradcheck(candidate.fn, inputs, order=1, seed=seed, hints=hints)
            dtype = outcome.trial.pair.dtype
            rounded = check.verdict == "right" and inputs is not candidate.inputs and dtype is not torch.float64
            note = Phrase("compare.rounded", dtype=str(dtype).removeprefix("torch."))
            return list(_lines(check, wrong)), [note] if rounded else []
    return [], []


def _lines(check: GradcheckReport, wrong: Container[str]) -> Iterator[Finding]:
    """Yield what a check says of lines that gradients of these names come from."""
    for one in check.findings:
        if one.line is not None and one.where is not None and check.input_names[one.where[1]] in wrong:
            yield replace(one, where=None)  # a comparison has no Jacobian to show


def beside(report: Comparison, candidate: Problem, reference: Problem, *, graph: bool, time: bool) -> Comparison:
    """Return a comparison with both graphs and the bytes they keep, or with both times."""
    both = _Side(candidate, candidate.input_names), _Side(reference, candidate.input_names)
    if graph:
        first, second = both
        bytes_of_each = (first.saved_bytes, second.saved_bytes)
        report = replace(report, graphs=(first.graph, second.graph), saved_bytes=bytes_of_each)
    if not time:
        return report
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        for side, seconds in zip(both, taken, strict=True):
            seconds.append(side.once())
    return replace(report, seconds_of_each=(statistics.median(taken[0]), statistics.median(taken[1])))


class _Side:
    """One of the two callables; lives only while ``beside`` runs.

    Args:
        problem: what is called.
        names: of the inputs in both graphs.
    """

    def __init__(self, problem: Problem, names: tuple[str, ...]) -> None:
        self.problem = problem
        with _saved_storages() as saved:  # a call of its own: saved tensors that went through a hook cannot be shown
            problem.call()
        self.saved_bytes = sum(saved.values())
        self.outputs: Outputs = problem.call()
        self.cotangents = cotangents(problem, self.outputs, problem.seed)
        labels = dict(zip(names, self.outputs.inputs, strict=False))
        labels.update(zip(problem.output_names, self.outputs, strict=False))
        self.graph = graph_of(list(self.outputs), names=labels)

    def once(self) -> float:
        given = self.problem.fresh()
        leaves = [given[i] for i in self.problem.differentiable]
        start = clock.perf_counter()
        outputs = self.problem.evaluate(given)
        pairs = [(y, c) for y, c in zip(outputs, self.cotangents, strict=True) if c is not None]
        if pairs:
            torch.autograd.grad([y for y, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True)
        return clock.perf_counter() - start


@contextlib.contextmanager
def _saved_storages() -> Iterator[dict[int, int]]:
    """Count the bytes of each storage that autograd saves meanwhile, by its address."""
    seen: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if unreadable_kind(tensor) is None:  # the others have several storages, or none
            storage = tensor.untyped_storage()
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # the tensor itself could hold its own node: a cycle that nothing collects

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield seen
