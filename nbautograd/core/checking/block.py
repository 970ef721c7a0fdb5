"""Block: one output against one input of a Jacobian, and the reports made of blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from nbautograd.core import formats
from nbautograd.core.checking.jacobian.layout import Matrices, Which, indices
from nbautograd.core.display import Displayable, Phrase, Plottable, Redactable, plain, plural, render
from nbautograd.core.findings import Finding, Hints
from nbautograd.core.user_source import FunctionSource
from nbautograd.errors import CallError, GradcheckError

Array = np.ndarray[Any, Any]
Verdict = Literal["right", "wrong", "cannot tell"]
BlockVerdict = Literal["match", "mismatch", "subgradient", "flat", "undecided"]


@dataclass(frozen=True)
class Entry(Displayable):
    """One entry of a Jacobian.

    Attributes:
        output_index: index of the element of the output, one int per dimension.
        input_index: index of the element of the input, one int per dimension.
        analytical: what backward says.
        numerical: what finite differences (or the best witness) say.
        error_bar: estimated error of ``numerical``, absolute.
    """

    output_index: tuple[int, ...]
    input_index: tuple[int, ...]
    analytical: float | complex
    numerical: float | complex
    error_bar: float


@dataclass(frozen=True)
class Statement:
    """Statement of one witness on a block.

    Attributes:
        witness: ``"backward"``, ``"finite differences"``, ``"autograd of forward"`` or ``"jvp"``.
        took_part: False when it could not be asked.
        says: what it found, or why it was not asked; ``str`` gives the sentence, in the language of the moment.
        largest_difference: largest absolute difference from backward, or None.
        apart: the same relative to the largest number compared, for the witnesses that were asked one question.
    """

    witness: str
    took_part: bool
    says: Phrase
    largest_difference: float | None = None
    apart: float = 0.0


@dataclass(frozen=True)
class Pooled:
    """A block pooled to at most ``h`` x ``w`` cells, each showing the entry of largest size under it (its sign kept).

    Attributes:
        analytical, numerical, difference: arrays of the same shape; ``difference`` is analytical - numerical, pooled
            on its own so that a single wrong entry shows.
        rows, cols: how many outputs and inputs one cell stands for, (1, 1) when nothing was pooled.
    """

    analytical: Array
    numerical: Array
    difference: Array
    rows: int
    cols: int


@dataclass(frozen=True, repr=False)
class JacobianBlock(Displayable):
    """d output / d input: rows are the output's elements, columns the input's, both in row-major order.

    A complex tensor counts as pairs of real numbers: its shape here has one more dimension of size 2 (real, imaginary)
    at the end.

    Attributes:
        output, input: positions among forward's outputs and arguments (non-tensor arguments count).
        output_name, input_name: the names that the source gives them, else ``"output"`` (``"output 0"`` when there are
            several) and ``"input 0"``.
        output_shape, input_shape: shapes of the two tensors.
        structure: ``"dense"``, ``"diagonal"``, ``"block diagonal"``, ``"zero"``, ...
        entries: number of entries, rows x columns.
        matrices: where the numbers are kept; see ``structure.py``. Plain data.
        output_complex, input_complex: whether the tensors are complex, so that their last dimension is the pair.
    """

    output: int
    input: int
    output_name: str
    input_name: str
    output_shape: tuple[int, ...]
    input_shape: tuple[int, ...]
    structure: str
    entries: int
    matrices: Any = field(repr=False, compare=False)
    output_complex: bool = field(default=False, kw_only=True)
    input_complex: bool = field(default=False, kw_only=True)

    @property
    def shape(self) -> tuple[int, int]:
        """(number of output elements, number of input elements)."""
        return math.prod(self.output_shape), math.prod(self.input_shape)

    def entry_name(self, entry: Entry) -> str:
        """Name an entry: ``d output[0,0] / d weight[1,0]``; of a complex tensor ``output[0,0].real`` or ``.imag``."""
        output = self.output_name + formats.index(entry.output_index, self.output_complex)
        return f"d {output} / d {self.input_name}{formats.index(entry.input_index, self.input_complex)}"

    def analytical(self, rows: slice | Sequence[int] | None = None, cols: slice | Sequence[int] | None = None) -> Array:
        """Return backward's Jacobian at these rows and columns (all when None), no more of it.

        Raises:
            InputError: for more than 4 million entries at once; ask for a slice, or use ``pooled``.
        """
        return self._part("analytical", rows, cols)

    def numerical(self, rows: slice | Sequence[int] | None = None, cols: slice | Sequence[int] | None = None) -> Array:
        """Return the Jacobian by finite differences at these rows and columns; see ``analytical``."""
        return self._part("numerical", rows, cols)

    def _part(self, which: Which, rows: slice | Sequence[int] | None, cols: slice | Sequence[int] | None) -> Array:
        matrices: Matrices = self.matrices
        return matrices.part(which, indices(rows, self.shape[0]), indices(cols, self.shape[1]))

    def pooled(self, h: int = 32, w: int = 32) -> Pooled:
        """Return the block pooled to at most ``h`` x ``w`` cells."""
        cell = tuple(max(1, -(-size // want)) for size, want in zip(self.shape, (h, w), strict=True))
        shape = (-(-self.shape[0] // cell[0]), -(-self.shape[1] // cell[1]))
        matrices: Matrices = self.matrices
        pools = {which: matrices.pool(which, shape, (cell[0], cell[1])) for which in get_args(Which)}
        return Pooled(**pools, rows=cell[0], cols=cell[1])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; the matrices as a pooled picture of at most 32 x 32 cells."""
        return {**super().to_dict(), "pooled": plain(self.pooled())}

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"<{type(self).__name__} d {self.output_name} / d {self.input_name}: {shape}, {self.structure}>"


@dataclass(frozen=True, repr=False)
class Block(JacobianBlock):
    """A block with a verdict: a ``JacobianBlock``, whose attributes come first.

    Attributes:
        output, input: positions among forward's outputs and arguments (non-tensor arguments count).
        output_name, input_name: the names that the source gives them.
        output_shape, input_shape: shapes of the two tensors; ``shape`` is (output elements, input elements).
        output_complex, input_complex: True for complex tensors, whose shapes have a last dimension of size 2 more.
        structure, entries: ``"dense"``, ``"diagonal"``, ...; the number of entries, rows x columns.
        matrices: where the numbers are kept; take them by ``analytical()``, ``numerical()`` and ``pooled()``.
        verdict: ``"match"``, ``"mismatch"``, ``"subgradient"`` (at a kink, within the one-sided derivatives),
            ``"flat"`` (no derivative: straight-through, surrogate) or ``"undecided"``.
        reason: for verdicts other than match and mismatch why, one of ``"kink"``, ``"jump"``, ``"staircase"``,
            ``"scale of stairs"``, ``"handed on"`` (meant, in an audit), ``"float32"``,
            ``"noise"``, ``"backward noise"``, ``"domain edge"``, ``"no entries"``,
            ``"interrupted"``, ``"approximate"`` (of a match as well: right to ``deviation``),
            ``"low precision"`` (of a match that few digits show); else empty.
        wrong: how many entries differ by more than their error bars.
        worst: the entry that differs most, also when all agree; None for an empty block.
        largest_error: largest absolute difference of analytical and numerical.
        witnesses: what each witness said.
        not_refined: how many of the wrong entries are known by their first difference alone: the worst and others by
            chance were refined, and show the same error.
        steps, errors: for the worst entry, finite-difference steps and the difference from the best value there.
        deviation: how far the wrong entries are off, relative to the largest entry of the block: infinite where most
            entries are not off, 0 where none is.
    """

    verdict: BlockVerdict = "undecided"
    reason: str = ""
    wrong: int = 0
    worst: Entry | None = None
    largest_error: float = 0.0
    witnesses: tuple[Statement, ...] = ()
    steps: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    errors: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    not_refined: int = 0
    deviation: float = 0.0

    def curve(self) -> tuple[Array, Array]:
        """Return steps and errors of finite differences at the worst entry: the V of truncation and round-off."""
        return self.steps, self.errors

    def largest_difference(self) -> Phrase | str:
        """Say at which entry backward is furthest off, and what both give there; empty for an empty block."""
        if self.worst is None:
            return ""
        numerical, analytical = formats.compared(self.worst.numerical, self.worst.analytical)
        entry = self.entry_name(self.worst)
        return Phrase("checking.largest_difference", entry=entry, numerical=numerical, analytical=analytical)

    def wrong_entries(self) -> Array:
        """Return row and column of each entry that differs by more than its error bar, shaped (count, 2)."""
        matrices: Matrices = self.matrices
        return matrices.positions(matrices.wrong)

    def __repr__(self) -> str:
        return f"<Block d {self.output_name} / d {self.input_name}: {self.verdict}, {self.wrong}/{self.entries} wrong>"


@dataclass(frozen=True, repr=False)
class JacobianReport(Plottable):
    """Analytical and numerical Jacobian of a Function at one point, without a verdict.

    Attributes:
        function: name of the Function.
        blocks: by (output, input) positions.
        complete: False when it was interrupted.
    """

    function: str
    blocks: Mapping[tuple[int, int], JacobianBlock]
    complete: bool = True

    def __repr__(self) -> str:
        return f"<JacobianReport {self.function}: {plural(len(self.blocks), 'block')}>"


@dataclass(frozen=True, repr=False)
class GradcheckReport(Plottable, Redactable["GradcheckReport"]):
    """Is the backward right, and if not, why.

    Attributes:
        function: name of the Function.
        identity: module and qualified name of what was checked; another Function may have the same name.
        verdict: ``"right"``, ``"wrong"`` or ``"cannot tell"``, of the first derivatives. ``bool(report)`` is True for
            right; after an explicit ``order=2`` only when ``order2`` is right as well.
        findings: most serious first.
        blocks: by (output, input) positions.
        input_names, output_names: names by position.
        seed: of the random cotangents and probes.
        seconds: wall time of the check.
        complete: False when it was interrupted; then it holds what was done so far.
        order2: the report on second derivatives with a verdict of its own, or None where they were not looked at.
        source: the Function's source, or None.
        reason: for "cannot tell" why, for others below double precision what could have been seen, as a sentence;
            for second derivatives that were only sampled, how; else empty.
        order: as given: 2 lets second derivatives count, 1 leaves them out, None looks at them as a risk.
        notes: which inputs were checked although none requires grad; ``str`` of each is a sentence.
        hints: how much the findings give away, as given.
    """

    function: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    blocks: Mapping[tuple[int, int], Block] = field(default_factory=dict)
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 0.0
    complete: bool = True
    order2: GradcheckReport | None = None
    source: FunctionSource | None = field(default=None, repr=False)
    reason: Phrase | str = ""
    order: int | None = None
    identity: str = field(default="", repr=False)
    notes: tuple[Phrase, ...] = ()
    hints: Hints = "fix"

    def __bool__(self) -> bool:
        return self.verdict == "right" and (
            self.order != 2 or (self.order2 is not None and self.order2.verdict == "right")
        )

    @property
    def wrong(self) -> bool:
        """True when what was asked for is wrong: first derivatives, or with ``order=2`` the second ones."""
        return self.verdict == "wrong" or (self.order == 2 and self.order2 is not None and self.order2.wrong)

    def slow_motion(self) -> Any:
        """Run backward once more, and show what each line computed and, where that is known, what it ought to.

        Returns:
            A SlowMotion; put it last in a cell, or print it.

        Raises:
            InputError: for a check of something else than a Function by itself, or of another session.

        Example:
            >>> import torch, nbautograd
            >>> class Double(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         return 2 * x
            ...     @staticmethod
            ...     def backward(ctx, grad_output):
            ...         return 2 * grad_output
            >>> nbautograd.gradcheck(Double, torch.ones(3, dtype=torch.float64)).slow_motion()
            <SlowMotion Double: 1 step>
        """
        return render("slow motion", self)

    def raise_if_wrong(self) -> GradcheckReport:
        """Return the report itself, or raise GradcheckError with the report's text when ``wrong`` is True."""
        if self.wrong:
            raise GradcheckError("report.as_text", text=render("text", self))
        return self

    def __repr__(self) -> str:
        return f"<GradcheckReport {self.function}: {self.verdict}, {plural(len(self.findings), 'finding')}>"


@dataclass(frozen=True, repr=False)
class SecondOrderReport(GradcheckReport):
    """What ``report.order2`` holds: the same of second derivatives, whose verdict is asked for by name."""

    def __bool__(self) -> bool:
        # "if report.order2 and report.order2.wrong" could never be true
        raise CallError("checking.order2_bool")
