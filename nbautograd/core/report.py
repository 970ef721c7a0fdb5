"""FunctionReport and Comparison: everything about one Function in one value, and the calls that make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nbautograd.core.checking.block import GradcheckReport, JacobianReport, Verdict
from nbautograd.core.display import Displayable, render
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.recording.calls import CallLog
from nbautograd.core.source import FunctionSource
from nbautograd.core.values import Value


@dataclass(frozen=True, repr=False)
class Comparison(Displayable):
    """A Function beside its reference, such as the blog post's ``f`` beside native ``*``.

    Attributes:
        names: of the Function and of the reference.
        outputs: pairs of outputs (Function's, reference's).
        gradients: pairs of gradients of the inputs that require grad, for the same random cotangent.
        input_names: names of those inputs.
        output_differences, gradient_differences: largest absolute difference per pair.
        graphs: the two backward graphs.
        saved_bytes: bytes kept for backward by each, each storage once.
        seconds: median wall time of forward and backward together, of each.
        agree: True when outputs and gradients agree within float tolerance of their dtype.
    """

    names: tuple[str, str]
    outputs: tuple[tuple[Value, Value], ...] = ()
    gradients: tuple[tuple[Value, Value], ...] = ()
    input_names: tuple[str, ...] = ()
    output_differences: tuple[float, ...] = ()
    gradient_differences: tuple[float, ...] = ()
    graphs: tuple[AutogradGraph, AutogradGraph] | None = None
    saved_bytes: tuple[int, int] = (0, 0)
    seconds: tuple[float, float] = (0.0, 0.0)
    agree: bool = True

    def __repr__(self) -> str:
        return f"<Comparison {self.names[0]} and {self.names[1]}: {'agree' if self.agree else 'differ'}>"


@dataclass(frozen=True, repr=False)
class FunctionReport(Displayable):
    """What the magic shows: one Function called on one set of inputs.

    Attributes:
        function: name of the Function.
        calls: what forward, backward, ... saw.
        graph: the backward graph with gradients on its edges, or None when there is none.
        gradcheck: the check, or None when it was not asked for.
        jacobian: the same blocks without verdicts, or None.
        findings: of the checker and of the contract, most serious first.
        comparison: beside the reference, when one was given.
        source: the source of the class, or None.
        view: which parts to show first: ``"all"``, ``"calls"``, ``"graph"``, ``"jacobian"`` or ``"gradcheck"``.
        notes: sentences about what is missing.
    """

    function: str
    calls: CallLog = field(default_factory=CallLog)
    graph: AutogradGraph | None = None
    gradcheck: GradcheckReport | None = None
    jacobian: JacobianReport | None = None
    findings: tuple[Finding, ...] = ()
    comparison: Comparison | None = None
    source: FunctionSource | None = field(default=None, repr=False)
    view: str = "all"
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The checker's verdict; None when nothing was checked."""
        return None if self.gradcheck is None else self.gradcheck.verdict

    def plot(self, ax: Any = None) -> Any:
        """Draw the Jacobian with matplotlib; returns the Figure."""
        return render("plot", self, ax=ax)

    def __repr__(self) -> str:
        return f"<FunctionReport {self.function}: {self.verdict or 'not checked'}, {len(self.calls)} calls>"


def inspect(fn: Callable[..., Any], *inputs: Any, reference: Callable[..., Any] | None = None) -> FunctionReport:
    """Run a Function once on these inputs and report everything."""
    raise LookupError


def compare(fn: Callable[..., Any], reference: Callable[..., Any], inputs: tuple[Any, ...]) -> Comparison:
    """Put a Function beside its reference."""
    raise LookupError
