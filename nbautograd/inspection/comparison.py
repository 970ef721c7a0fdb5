"""Comparison: a Function beside a reference, and what the comparison could have seen; plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nbautograd.core.checking.block import Verdict
from nbautograd.core.display import Phrase, Redactable, plain, render
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.user_source import FunctionSource
from nbautograd.core.values import Value
from nbautograd.errors import GradcheckError
from nbautograd.inspection.audit_report import AuditedInput
from nbautograd.version import __version__

FUNC_GRAD = "func_grad"  # a way to compile, beside an ordinary backward
RISKS = ("mixed", "autocast", "large", "odd")  # changes at which a fault is a risk and leaves the verdict as it is


@dataclass(frozen=True)
class ComparedQuantity:
    """An output or a gradient, its error beside the yardstick's, and what its comparison could have seen.

    Errors are root mean squares over all entries and draws, relative to the golden values.

    Attributes:
        kind: ``"output"`` or ``"gradient"``.
        name: of the output, or of the input.
        shape: its shape.
        dtype: what the Function returned it in.
        verdict: on this quantity.
        error: the Function's against the golden values.
        yardstick: the reference's in the dtype itself against them.
        bias: the systematic part: by how much the whole quantity is too large (0.01: by one percent) in the mean of
            all draws.
        spread: how much that number varies among correct implementations.
        resolution: the smallest error of the whole quantity, relative to it, that would have been seen; ``inf`` where
            none would.
        entry_resolution: the same of a single typical entry.
        condition: by how much the quantity amplifies a relative error of the inputs; 0 where it was not measured.
        tried: codes of the wrong gradients with which the comparison was tried; none of a gradient that is wrong.
        unseen: which of them would have passed.
        values: the Function's and the reference's at the given inputs.
        difference: Function's less reference's, element by element; None where they cannot be subtracted.
        largest: the largest absolute difference; ``inf`` where shapes differ or one side has no gradient.
    """

    kind: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    verdict: Verdict
    error: float
    yardstick: float
    bias: float
    spread: float
    resolution: float
    entry_resolution: float
    condition: float = 0.0
    tried: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    values: tuple[Value, Value] | None = None
    difference: Value | None = None
    largest: float = 0.0

    @property
    def ratio(self) -> float:
        """The error in units of the yardstick's."""
        if self.yardstick:
            return self.error / self.yardstick
        return math.inf if self.error else 0.0


@dataclass(frozen=True)
class ComparedCase:
    """One row of the sweep: inputs of some shapes, dtypes and layouts, and what came of them.

    Attributes:
        shapes: of the tensors among the inputs.
        dtype: the coarsest among them.
        change: what is unusual: ``""``, ``"strided"``, ``"expanded"``, ``"transposed"``, ``"fused"`` (slices of one
            tensor), ``"stacked"`` (one more dimension in front), ``"alternating"``, ``"odd"``, ``"grad_expanded"``,
            ``"grad_strided"``, ``"grad_transposed"``, ``"autocast"``, ``"large"``, ``"mixed"``, the other layouts
            of ``layouts="all"``, or one of inputs and one of grad_outputs with a space between.
        verdict: on it.
        ratio: the largest error in units of what rounding explains; significant from 1 on.
        quantity: where that was.
        codes: of the findings.
        reason: why it is wrong or cannot be told; ``str`` of it.
        name: what the caller calls it.
        refused: True where forward does not take these inputs, which nobody asked for.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    change: str = ""
    verdict: Verdict = "right"
    ratio: float = 0.0
    quantity: str = ""
    codes: tuple[str, ...] = ()
    reason: Phrase | str = ""
    name: str = ""
    refused: bool = False


@dataclass(frozen=True)
class ComparedCompiled:
    """The same call under torch.compile.

    Attributes:
        backend: of torch.compile; empty where nothing came to be compiled.
        way: ``"backward"`` (the call is compiled, backward is an ordinary one), ``"func_grad"`` (``torch.func.grad``
            stands inside of what is compiled), or as the first with one tensor as two arguments (``"twice"``), with
            the changed input used in place of what an in-place Function returns (``"discarded"``), or with sizes that
            are symbols (``"dynamic"``).
        verdict: ``"right"`` where it agrees with the reference as the Function itself does, ``"wrong"`` where
            torch.compile changes it, ``"cannot tell"`` where it could not be compiled.
        quantity: the output or gradient that is changed, or the worst.
        error: its error, relative to the golden values, root mean square.
        ratio: the same in units of the reference's in the dtype itself.
        reason: what is changed, or what torch said; ``str`` of it.
    """

    backend: str
    way: str
    verdict: Verdict
    quantity: str = ""
    error: float = 0.0
    ratio: float = 0.0
    reason: Phrase | str = ""


@dataclass(frozen=True, repr=False)
class Comparison(Redactable["Comparison"]):
    """A Function beside its reference, measured with the rounding that its dtype has.

    Attributes:
        function: name of the Function.
        reference: name of the reference.
        verdict: ``"right"``, ``"wrong"``, or ``"cannot tell"`` where a wrong gradient would have passed as well.
        reason: why it cannot be told; ``str`` of it.
        findings: what stands against it, most serious first, each confirmed at fresh draws.
        quantities: outputs, then gradients.
        cases: of the sweep, worst first.
        smallest: the smallest shapes at which a fault of the sweep still shows, or None.
        dtype: the coarsest one among inputs and outputs.
        inputs: the arguments; ``str`` of each is short.
        draws: at how many inputs and grad_outputs the two were compared.
        notes: what limits the answer, one sentence each (``str`` of it).
        seconds: wall time.
        seed: of the draws.
        complete: False where the check was interrupted, or its budget ended: then ``overall`` is not "right".
        torch, nbautograd: versions.
        module, file, line, backward_line: where the Function is defined, and its backward.
        compiled: the same call under torch.compile, where that was asked for.
        trace: the traceback of what the Function raised first, without frames of nbautograd and torch.
        graphs: the two backward graphs, where they were asked for.
        saved_bytes: bytes kept for backward by each, each storage once, inputs included; with the graphs.
        seconds_of_each: median wall time of forward and backward together, measured in turn, where it was asked for.
        source: the Function's source, or None.
    """

    function: str
    reference: str
    verdict: Verdict
    reason: Phrase | str = ""
    findings: tuple[Finding, ...] = ()
    quantities: tuple[ComparedQuantity, ...] = ()
    cases: tuple[ComparedCase, ...] = ()
    smallest: tuple[tuple[int, ...], ...] | None = None
    dtype: str = ""
    inputs: tuple[AuditedInput, ...] = ()
    draws: int = 0
    notes: tuple[Phrase, ...] = ()
    seconds: float = 0.0
    seed: int = 0
    complete: bool = True
    torch: str = ""
    nbautograd: str = __version__
    module: str = ""
    file: str | None = None
    line: int | None = None
    backward_line: int | None = None
    compiled: tuple[ComparedCompiled, ...] = ()
    trace: str = ""
    graphs: tuple[AutogradGraph, AutogradGraph] | None = None
    saved_bytes: tuple[int, int] | None = None
    seconds_of_each: tuple[float, float] | None = None
    source: FunctionSource | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        """Return True where all is right that was to be compared."""
        return self.overall == "right"

    @property
    def wrong(self) -> bool:
        """True where the verdict is "wrong"."""
        return self.verdict == "wrong"

    @property
    def changed(self) -> bool:
        """True where torch.compile changes what is right, but for torch.func.grad inside of it: that is a risk."""
        return any(row.verdict == "wrong" and row.way != FUNC_GRAD for row in self.compiled)

    @property
    def overall(self) -> Verdict:
        """The verdict of all rows and ways to compile together, with which ``nbautograd check`` exits."""
        if self.wrong or self.changed:
            return "wrong"
        return "cannot tell" if self.unjudged or not self.complete else self.verdict

    @property
    def unjudged(self) -> int:
        """How many rows of the sweep, or ways to compile, cannot be told, without those that are risks.

        What forward refuses loudly at inputs that nobody asked for gets no wrong gradient.
        """
        open_rows = (case for case in self.cases if case.verdict == "cannot tell" and not case.refused)
        rows = sum(case.change not in RISKS for case in open_rows)
        return rows + sum(row.verdict == "cannot tell" and row.way != FUNC_GRAD for row in self.compiled)

    @property
    def resolution(self) -> float:
        """The smallest relative error of a whole gradient that would have been seen, whichever gradient it is."""
        gradients = [one.resolution for one in self.quantities if one.kind == "gradient" and one.verdict != "wrong"]
        return max(gradients, default=math.inf)

    def raise_if_wrong(self) -> Comparison:
        """Return the report itself; raise GradcheckError with its text where it is wrong, or changed when compiled."""
        if self.wrong or self.changed:
            raise GradcheckError("report.as_text", text=render("text", self))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return plain data as ``nbautograd audit --json`` writes it, with numbers of each quantity."""
        messages = (finding.message for finding in self.findings)
        fix = next((finding.fix for finding in self.findings if finding.fix is not None), None)
        situation = {
            "inputs": [str(one) for one in self.inputs],
            "verdict": self.verdict,
            "order2": None,
            "codes": [finding.code for finding in self.findings],
            "message": next(messages, str(self.reason)),
            "fix": None if fix is None else {"line": fix.line, "before": fix.before, "source": fix.source},
            "calls": self.draws,
            "checked": self.draws,
            "how": "reference",
            "dtype": self.dtype,
            "quantities": [_numbers(one) for one in self.quantities],
        }
        function = {
            "name": self.function,
            "module": self.module,
            "file": self.file,
            "line": self.line,
            "backward_line": self.backward_line,
            "calls": self.draws,
            "left_out": 0,
            "without_gradient": 0,
            "reference": self.reference,
            "situations": [situation, *map(_situation, self.cases)],
            "findings": [],
            "smallest": plain(self.smallest),
            "compiled": [_bare(one) for one in self.compiled],
            "trace": self.trace,
        }
        return {
            "verdict": self.overall,
            "functions": [function],
            "notes": [str(note) for note in self.notes],
            "complete": self.complete,
            "torch": self.torch,
            "nbautograd": self.nbautograd,
        }

    def __repr__(self) -> str:
        return f"<Comparison {self.function} and {self.reference}: {self.verdict}>"


def _numbers(one: ComparedQuantity) -> dict[str, Any]:
    bare = {name: item for name, item in _bare(one).items() if name not in ("values", "difference")}
    return {**bare, "ratio": plain(one.ratio)}


def _bare(value: Any) -> dict[str, Any]:
    return {name: item for name, item in plain(value).items() if name != "type"}


def _situation(case: ComparedCase) -> dict[str, Any]:
    """Return a row of the sweep as the audit writes a situation."""
    return {
        "inputs": [f"{case.dtype} {shape}" for shape in case.shapes],
        "verdict": case.verdict,
        "order2": None,
        "codes": list(case.codes),
        "message": str(case.reason),
        "fix": None,
        "calls": 1,
        "checked": 1,
        "how": case.change or "shape",
        "name": case.name,
        "dtype": case.dtype,
        "ratio": plain(case.ratio),
    }


def worst_first(cases: Iterable[ComparedCase]) -> tuple[ComparedCase, ...]:
    """Return the rows of a sweep, wrong ones first, then by how far their error goes."""
    rank = {"wrong": 0, "cannot tell": 1, "right": 2}
    return tuple(sorted(cases, key=lambda case: (rank[case.verdict], -case.ratio)))
