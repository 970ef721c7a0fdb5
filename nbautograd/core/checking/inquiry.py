"""Inquiry: one check while it runs: the call, the blocks as they come, and what went wrong on the way."""

from __future__ import annotations

from nbautograd.core.checking import statements
from nbautograd.core.checking.assembly import Assembly, Raw
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.exceptions import contract_broken, from_forward
from nbautograd.core.checking.real import epsilon
from nbautograd.core.checking.storage import Matrices
from nbautograd.core.checking.subject import Outputs, Subject
from nbautograd.core.checking.verdict import Judged, Tolerance, judge


class Inquiry:
    """Finds and judges all blocks of a subject.

    Args:
        subject: what is checked.
        atol, rtol, eps: as given to ``gradcheck``.
        judge: False to leave out the second look and the verdicts.

    Attributes:
        blocks: by (output, input) positions.
        outputs: what the first call returned, or None when it could not be made.
        error: what backward raised, or torch on account of the Function's contract; None when nothing.
        complete: False when it was interrupted.
    """

    def __init__(
        self, subject: Subject, atol: float | None, rtol: float | None, eps: float | None, judge: bool = True
    ) -> None:
        self.subject, self.eps, self.judge = subject, eps, judge
        self.atol, self.rtol = atol, rtol
        self.blocks: dict[tuple[int, int], Block] = {}
        self.outputs: Outputs | None = None
        self.error: Exception | None = None
        self.complete = True

    def blocks_found(self) -> None:
        """Run the check; what the user's forward raises propagates, an interrupt ends it early."""
        try:
            self._run()
        except KeyboardInterrupt:
            self.complete = False

    def _run(self) -> None:
        try:
            self.outputs = self.subject.call()
        except Exception as error:
            if from_forward(error, self.subject.cls) or not contract_broken(error):
                raise
            self.error = error
            return
        try:
            self._take(self.outputs)
        except Exception as error:
            self.error = error

    def _take(self, outputs: Outputs) -> None:
        assembly = Assembly(self.subject, outputs, self.eps)
        for (i, j), raw in assembly.blocks():
            where = (assembly.wanted[i], self.subject.differentiable[j])
            leaf, output = outputs.inputs[where[1]], outputs[where[0]]
            tolerance = Tolerance(self.atol, self.rtol, max(epsilon(leaf), epsilon(output)))
            judged = judge(raw.forward, raw, (i, j), tolerance) if self.judge else None
            self.blocks[where] = self._block(where, raw, judged, assembly)

    def _block(self, where: tuple[int, int], raw: Raw, judged: Judged | None, assembly: Assembly) -> Block:
        matrices = raw.matrices if judged is None else judged.matrices
        i, j = assembly.wanted.index(where[0]), self.subject.differentiable.index(where[1])
        output_shape, input_shape = assembly.forward.shapes[i], assembly.forward.points[j].shape
        names = (self.subject.output_names[where[0]], self.subject.input_names[where[1]])
        block = Block(
            *where, *names, output_shape, input_shape, structure(matrices), _size(output_shape, input_shape), matrices
        )
        if judged is None:
            return block
        said = statements.said(raw, judged)
        fields = ("verdict", "reason", "wrong", "worst", "largest_error", "steps", "errors")
        judgement = {name: getattr(judged, name) for name in fields}
        return Block(**{**_fields(block), **judgement, "witnesses": said})


def structure(matrices: Matrices) -> str:
    """What a block looks like: ``"zero"``, ``"sampled"``, ``"diagonal"``, ``"block diagonal"`` or ``"dense"``."""
    if matrices.rows is not None:
        return "sampled"
    if not matrices.analytical.any() and not matrices.numerical.any():
        return "zero"
    return matrices.layout.structure


def _size(output_shape: tuple[int, ...], input_shape: tuple[int, ...]) -> int:
    size = 1
    for n in (*output_shape, *input_shape):
        size *= n
    return size


def _fields(block: Block) -> dict[str, object]:
    names = ("output", "input", "output_name", "input_name", "output_shape", "input_shape", "structure", "entries")
    return {**{name: getattr(block, name) for name in names}, "matrices": block.matrices}
