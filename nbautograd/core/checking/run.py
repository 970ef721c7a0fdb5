"""GradcheckRun: one check while it runs: the call, the blocks as they come, and the errors on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core import stumbles
from nbautograd.core.checking import budget
from nbautograd.core.checking.block import Block, BlockVerdict
from nbautograd.core.checking.block_verdict import Judged, Tolerance, far_off, judge, statements, unjudged
from nbautograd.core.checking.directional import DerivativeInside, derivative_inside
from nbautograd.core.checking.exceptions import contract_broken, from_forward
from nbautograd.core.checking.jacobian.assembly import Assembly, FirstPass, only_rounding
from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.checking.jacobian.structure import for_symmetric_changes
from nbautograd.core.checking.jacobian.witnesses import ForwardWitness, JvpWitness, confirmation_bound, forward_confirms
from nbautograd.core.checking.meant import Meant
from nbautograd.core.checking.outside_state import reached_inside
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.progress import PARTS, Progress, Tell
from nbautograd.core.checking.steps.refine import convergence_curve
from nbautograd.core.checking.steps.stairs import Stairs, almost_flat
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.forks import cached
from nbautograd.core.numerics.arrays import epsilon, real_size
from nbautograd.core.stumbles import RAISED, ask
from nbautograd.core.torch_private.nodes import graph_nodes, raw_slot_names, saved_peek
from nbautograd.core.torch_private.tensors import refuses_grad, storage_address

REENTRANT = "torch.utils.checkpoint is incompatible with"  # what torch raises for use_reentrant=True
LOW = 1e-10  # spacing of numbers at 1 above which they are no doubles
FEW_DIGITS = 1e-3  # relative: what may go unseen in an entry that agrees without a word on it
CURVES = 8  # blocks that agree and get the V of their worst entry


class InterruptedCheckError(KeyboardInterrupt):
    """A check inside another one was interrupted, which ends the other one as well: half a check bears nothing out."""


class GradcheckRun:
    """Finds and judges all blocks of a problem.

    Args:
        atol, rtol, eps: as given to ``gradcheck``.
        judge: False to leave out the second look and the verdicts.
        tell: called with (steps done, steps in all, what is being done).
        by_forward: True for a check that only bears a cause out; see ``Assembly``.
        meant: the pairs (output, input) whose gradient is meant to be no derivative, which is known from elsewhere.
        stairs: False to take forward for one that has a derivative.

    Attributes:
        blocks: by (output, input) positions.
        outputs: what the first call returned, or None when it could not be made.
        error: what backward raised, or torch on account of the Function's contract; None when nothing.
        complete: False when it was interrupted.
        inside: by position of a block whose entries forward refused to move, what directions that it takes showed.
        resolution: the relative error of an entry that would not be seen, where the precision is low; else 0.
        lacking: what the check would need more memory for than its budget has; None where it has enough.
        raws: the blocks as the first pass found them, by (output, input) positions.
    """

    def __init__(
        self,
        problem: Problem,
        atol: float | None,
        rtol: float | None,
        eps: float | None,
        judge: bool = True,
        tell: Tell | None = None,
        by_forward: bool = False,
        meant: Mapping[tuple[int, int], Meant] | None = None,
        stairs: bool = True,
    ) -> None:
        self.problem, self.eps, self.judge, self.by_forward = problem, eps, judge, by_forward
        self.meant = meant or {}
        self._looks_for_stairs = stairs
        self.atol, self.rtol = atol, rtol
        self.blocks: dict[tuple[int, int], Block] = {}
        self.outputs: Outputs | None = None
        self.error: BaseException | None = None
        self.complete = True
        self.lacking: Finding | None = None
        self.inside: dict[tuple[int, int], DerivativeInside] = {}
        self.symmetric: list[tuple[int, int]] = []
        self.resolution = 0.0
        self.more_steps: tuple[str, int] | None = None  # an argument, and what it is where nothing differs any more
        self.assembly: Assembly | None = None
        self.progress = Progress(tell)
        self.raws: dict[tuple[int, int], FirstPass] = {}

    def find_blocks(self) -> None:
        """Run the check; what the user's forward raises propagates, an interrupt ends it early."""
        try:
            if not self._call_forward():
                return
            assert self.outputs is not None
            self.assembly = assembly = Assembly(self.problem, self.outputs, self.eps, self.progress, self.by_forward)
            forward = assembly.forward
            self.progress.plan(len(forward.shapes) * len(forward.points))
            for (i, j), raw in assembly.blocks():
                where = (assembly.wanted[i], self.problem.differentiable[j])
                self.blocks[where] = self._block((i, j), where, raw)
                self.raws[where] = raw
        except KeyboardInterrupt:
            self.complete = False
            self._keep_partial()
        except RAISED as error:
            if self.outputs is None or not self._ended_by(error):
                raise

    def find_all_blocks(self) -> None:
        """Run the check inside another one.

        Raises:
            InterruptedCheckError: it did not come to its end.
        """
        self.find_blocks()
        if not self.complete:
            raise InterruptedCheckError

    def report_done(self) -> None:
        """Say that everything is done, unless it was interrupted."""
        if self.complete:
            with contextlib.suppress(KeyboardInterrupt):  # too late to stop anything
                self.progress.done(self.progress.total)

    def start_diagnosis(self, of: int) -> None:
        """Start the search for causes, in so many parts, each told by a tick."""
        total = self.progress.total
        self.progress.stage(total - PARTS, total - 1, of, Phrase("checking.looking_for_causes"))

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let an interrupt end what is in the block, and nothing else."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted()

    def interrupted(self) -> None:
        """Take note of an interrupt; the blocks are complete where it is the budget that ends what comes after them."""
        self.complete = budget.verdict_was_known()

    def add_curves(self) -> None:
        """Give the first few blocks that agree the V of their worst entry as well; the others have it already."""
        try:
            self.progress.done(self.progress.total - PARTS, Phrase("checking.looking_for_causes"))
            for where, raw in list(self.raws.items())[:CURVES]:
                block = self.blocks[where]
                if not block.steps.size and raw.matrices.rows is None:
                    steps, errors = convergence_curve(raw)
                    self.blocks[where] = dataclasses.replace(block, steps=steps, errors=errors)
        except KeyboardInterrupt:
            self.complete = False

    def _keep_partial(self) -> None:
        if self.assembly is None:
            return
        for (i, j), matrices in self.assembly.partial.items():
            where = (self.assembly.wanted[i], self.problem.differentiable[j])
            if where not in self.blocks:
                wrong, worst = far_off(matrices)
                self.blocks[where] = self._described(
                    (i, j), where, matrices, reason="interrupted", wrong=wrong, worst=worst
                )

    def _call_forward(self) -> bool:
        try:
            self.outputs = self.problem.call()
        except RAISED as error:
            if from_forward(error, self.problem.cls) or not contract_broken(error):
                raise
            self.error = error
            return False
        if self.judge:
            ends = (*self.outputs, *(self.problem.inputs[i] for i in self.problem.differentiable))
            self.problem.kept = kept_bytes(self.outputs)
            self.lacking = budget.bytes_lacking(sum(map(real_size, ends)), self.problem.kept)
            self.complete = self.lacking is None
        return self.complete

    def _ended_by(self, error: BaseException) -> bool:
        """Keep what ended the check after forward; return False for what is not backward's doing."""
        if REENTRANT in stumbles.said(error) or refuses_grad(error):
            sentence = "reentrant_checkpoint" if REENTRANT in stumbles.said(error) else "only_backward"
            self.lacking = Finding("reentrant_checkpoint", "note", f"checking.{sentence}")
            self.complete = False
            return True
        if self.assembly is None or all(rows.error is not error for rows in self.assembly.rows):
            return False
        self.error = error
        return True

    def _block(self, ij: tuple[int, int], where: tuple[int, int], raw: FirstPass) -> Block:
        assert self.assembly is not None
        if not self.judge:
            return self._described(ij, where, raw.matrices)
        judged = self._judged(ij, where, raw)
        asked = (self._forward_witness.testimony(*ij), self._jvp_witness.testimony(*ij)) if not self.by_forward else ()
        witnesses = statements(raw, judged, *asked) if asked else ()
        return self._described(
            ij, where, judged.matrices, verdict=judged.verdict, reason=judged.reason, wrong=judged.wrong,
            worst=judged.worst, largest_error=judged.largest_error, witnesses=witnesses, steps=judged.steps,
            errors=judged.errors, not_refined=judged.not_refined, deviation=judged.deviation,
        )  # fmt: skip

    def _described(self, ij: tuple[int, int], where: tuple[int, int], matrices: Matrices, **verdict: Any) -> Block:
        assert self.assembly is not None
        assert self.outputs is not None
        shapes = self.assembly.forward.shapes[ij[0]], self.assembly.forward.points[ij[1]].shape
        names = self.problem.output_names[where[0]], self.problem.input_names[where[1]]
        y, x = self.outputs[where[0]], self.outputs.inputs[where[1]]
        return Block(
            *where, *names, *shapes, structure(matrices), math.prod((*shapes[0], *shapes[1])), matrices,
            output_complex=y.is_complex(), input_complex=x.is_complex(), **verdict,
        )  # fmt: skip

    def _judged(self, ij: tuple[int, int], where: tuple[int, int], raw: FirstPass) -> Judged:
        assert self.outputs is not None
        assert self.assembly is not None
        ends = self.outputs.inputs[where[1]], self.outputs[where[0]]
        precision = max(*map(epsilon, ends), self.problem.casts.coarsest)
        tolerance = Tolerance(self.atol, self.rtol, precision)
        if where in self.meant:
            return unjudged(raw, tolerance, self.meant[where].reason)
        judged = judge(raw, tolerance, self.problem.seed)
        reason = self._beside_stairs(ij, judged) if self._looks_for_stairs else ""
        judged = self._confirmed(ij, unjudged(raw, tolerance, reason) if reason else judged)
        if not all(end.numel() for end in ends):
            return dataclasses.replace(judged, verdict="undecided", reason="no entries")
        mismatch = judged.verdict == "mismatch"
        halves = for_symmetric_changes(ends[0].detach(), judged.matrices) if mismatch else None
        if halves is not None:
            self.symmetric.append(where)
            apart = float(np.abs(halves.analytical - halves.numerical).max())
            judged = dataclasses.replace(
                judged, matrices=halves, verdict="match", wrong=0, worst=None, largest_error=apart, not_refined=0
            )
        if judged.verdict == "undecided" and judged.reason == "domain edge" and self.assembly.forward.raised:
            inside = derivative_inside(self.problem, self.outputs, where[0], ij[1])
            if inside is not None:
                self.inside[where] = inside
            return dataclasses.replace(judged, reason="raised")
        low = precision > LOW
        self.resolution = max(self.resolution, judged.resolution if low else 0.0)
        if judged.verdict == "match" and low and judged.resolution > FEW_DIGITS:
            return dataclasses.replace(judged, reason="low precision")
        if judged.reason != "noise":
            return judged
        why = "rounds inside" if raw.forward.inside else "float32" if low and not raw.forward.promoted else "noise"
        return dataclasses.replace(judged, reason=why)

    def _beside_stairs(self, ij: tuple[int, int], judged: Judged) -> str:
        """Return why forward has no derivative that backward could return; empty where it has one, or all agrees."""
        asked = judged.verdict == "mismatch" or (judged.verdict == "undecided" and judged.reason != "rounds inside")
        analytical, numerical = judged.matrices.analytical, judged.matrices.numerical
        if not asked or not analytical.any():
            return ""
        # where elements of several blocks moved together, a difference is no entry but a sum of them
        alone = judged.matrices.layout.sizes[0] == 1
        if (not alone or almost_flat(analytical, numerical)) and self._stairs.flat(*ij):
            return "staircase"
        return "scale of stairs" if self._stairs.scales(*ij) else ""

    def _confirmed(self, ij: tuple[int, int], judged: Judged) -> Judged:
        assert self.assembly is not None
        if judged.verdict in ("undecided", "flat") and forward_confirms(
            self._forward_witness, ij, judged.matrices, judged.unsure
        ):
            bound = confirmation_bound(self._forward_witness)
            return dataclasses.replace(judged, verdict="match", reason="", resolution=bound)
        rounding = only_rounding(self.assembly, ij, judged.matrices) if judged.verdict == "mismatch" else False
        if rounding is False:
            return judged
        right = dataclasses.replace(judged.matrices, wrong=np.zeros_like(judged.matrices.wrong))
        known: tuple[BlockVerdict, str] = ("match", "") if rounding else ("undecided", "backward noise")
        return dataclasses.replace(judged, matrices=right, verdict=known[0], reason=known[1], wrong=0, not_refined=0)

    def values_at(self, block: Block) -> tuple[float, float]:
        """Return the values of the elements of input and output that a block's worst entry is of."""
        assert self.assembly is not None
        assert block.worst is not None
        point = self.assembly.forward.points[self.problem.differentiable.index(block.input)]
        output = self.assembly.forward.values[self.assembly.wanted.index(block.output)]
        return float(point[block.worst.input_index]), float(output[block.worst.output_index])

    @property
    def raised(self) -> str:
        """Return what forward raised beside the inputs, or an empty string."""
        return "" if self.assembly is None else self.assembly.forward.raised

    @cached
    def _stairs(self) -> Stairs:
        assert self.assembly is not None
        assert self.outputs is not None
        return Stairs(self.problem, self.outputs, self.assembly.forward)

    @cached
    def _forward_witness(self) -> ForwardWitness:
        assert self.assembly is not None
        return ForwardWitness(self.assembly)

    @cached
    def _jvp_witness(self) -> JvpWitness:
        assert self.assembly is not None
        return JvpWitness(self.assembly)


def structure(matrices: Matrices) -> str:
    """Name a block's structure: ``"zero"``, ``"sampled"``, ``"diagonal"``, ``"block diagonal"`` or ``"dense"``."""
    if matrices.rows is not None:
        return "sampled"
    if not matrices.analytical.any() and not matrices.numerical.any():
        return "zero"
    return matrices.layout.structure


def kept_bytes(outputs: Outputs) -> int:
    """Return the bytes that the graph of a call holds beside its inputs and outputs, as far as they can be seen."""
    own = {_address(t) for t in (*outputs, *outputs.inputs) if isinstance(t, Tensor)} | {0}
    held: dict[int, int] = defaultdict(int)
    for tensor in (tensor for node in graph_nodes(outputs) for tensor in _tensors(node)):
        address = _address(tensor)
        if address not in own:
            held[address] = max(held[address], tensor.numel() * tensor.itemsize)
    return sum(held.values())


def _address(tensor: Tensor) -> int:
    return ask(lambda: storage_address(tensor), 0) if tensor.layout is torch.strided else 0


def _tensors(node: Any) -> Iterator[Tensor]:
    for name in raw_slot_names(type(node)):
        slots = ask(functools.partial(getattr, node, f"_raw_saved_{name}"), ())
        for slot in slots if isinstance(slots, (tuple, list)) else (slots,):
            tensor, _ = saved_peek(slot)
            if tensor is not None:
                yield tensor
    for name, value in ask(lambda: list(vars(node).items()), []):
        yield from (found for _, found in reached_inside(name, value) if isinstance(found, Tensor))
