"""FunctionReport: everything about one Function in one value, and ``inspect``, which makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbautograd.core import stumbles
from nbautograd.core.checked import wrong_gradients
from nbautograd.core.checking.backward_call import cotangents
from nbautograd.core.checking.block import GradcheckReport, JacobianReport, Verdict
from nbautograd.core.checking.budget import DEFAULT, Budget, OutOfBudgetError, budgeted, validated_budget
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.progress import Tell, watched
from nbautograd.core.contract.rules import FOR_A_CHECK_TO_PROVE, RANK
from nbautograd.core.contract.source_rules import read_contract
from nbautograd.core.display import Phrase, Plottable, Redactable, plural
from nbautograd.core.findings import Finding, limit_findings
from nbautograd.core.findings import validated_hints as allowed
from nbautograd.core.graphs.backward import backward
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.graphs.nodes import judged
from nbautograd.core.recording.api import recording
from nbautograd.core.recording.call import CallLog
from nbautograd.core.stumbles import RAISED, is_ours
from nbautograd.core.user_source import FunctionSource, read_source
from nbautograd.inspection.compare import compare
from nbautograd.inspection.comparison import Comparison


@dataclass(frozen=True, repr=False)
class FunctionReport(Plottable, Redactable[GradcheckReport]):
    """Report of the magic: one Function called on one set of inputs.

    Attributes:
        function: name of the Function.
        gradcheck: the check.
        calls: what forward, backward, ... saw.
        graph: the backward graph with gradients on its edges, or None when there is none.
        findings: of the checker and of the contract, most serious first.
        comparison: beside the reference, when one was given.
        source: the source of the class, or None.
        notes: sentences about what is missing, in the language chosen when they are read: ``str(note)``.
    """

    function: str
    gradcheck: GradcheckReport
    calls: CallLog = field(default_factory=CallLog)
    graph: AutogradGraph | None = None
    findings: tuple[Finding, ...] = ()
    comparison: Comparison | None = None
    source: FunctionSource | None = field(default=None, repr=False)
    notes: tuple[Phrase, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The checker's verdict."""
        return self.gradcheck.verdict

    @property
    def jacobian(self) -> JacobianReport:
        """The check's blocks, without a verdict on the Function."""
        return JacobianReport(self.function, self.gradcheck.blocks, self.gradcheck.complete)

    def __repr__(self) -> str:
        calls = plural(len(self.calls), "call")
        return f"<FunctionReport {self.function}: {self.verdict}, {calls}>"


def inspect(
    fn: Callable[..., Any],
    *inputs: Any,
    reference: Callable[..., Any] | None = None,
    hints: str = "fix",
    order: int | None = None,
    budget: Budget | float | None = DEFAULT,
) -> FunctionReport:
    """Run a Function once, differentiate it with a random cotangent, check it, and report everything.

    Args:
        fn: a Function class, its ``apply``, or any callable that uses one.
        inputs: its arguments; copies are used, so no ``.grad`` changes.
        reference: a native op or plain function to compare with.
        hints: how much the findings give away, as for ``gradcheck``.
        order: whether second derivatives count, as for ``gradcheck``.
        budget: seconds and memory that the run and the check may use, as for ``gradcheck``.

    Returns:
        The report; show it by putting it last in a cell.

    Raises:
        CallError: when ``fn`` cannot be called, or there are no such hints.
        InputError: when no input can be differentiated.

    Example:
        >>> import torch, nbautograd
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         return 2 * grad_output
        >>> nbautograd.inspect(Double, torch.ones(3, dtype=torch.float64, requires_grad=True)).verdict
        'right'
    """
    return run_inspection(fn, inputs, reference=reference, hints=hints, order=order, budget=budget)


def run_inspection(
    fn: Callable[..., Any],
    inputs: tuple[Any, ...],
    *,
    reference: Callable[..., Any] | None = None,
    reference_name: str = "",
    names: Mapping[str, Any] | None = None,
    progress: Tell | None = None,
    hints: str = "fix",
    order: int | None = None,
    budget: Budget | float | None = DEFAULT,
) -> FunctionReport:
    """Run ``inspect`` with what the magic knows besides.

    Args:
        fn, inputs, reference: as for ``inspect``.
        reference_name: what to call the reference.
        names: the user's variables by name, to label the graph's leaves.
        progress: told how far the check is, as for ``gradcheck``.
        hints: how much the findings give away, as for ``gradcheck``.
        order: whether second derivatives count, as for ``gradcheck``.
        budget: seconds and memory that the run and the check may use, as for ``gradcheck``.

    Returns:
        The report. What could not be had is said in ``notes``.
    """
    with budgeted(validated_budget(budget)), watched(progress) as tell:
        run = _Run(fn, inputs, names or {})
        checked = gradcheck(fn, inputs, progress=tell, hints=hints, order=order)
    noticed = (() if run.cls is None else read_contract(run.cls)) + tuple(
        f for call in run.calls for f in call.warnings if f.code not in FOR_A_CHECK_TO_PROVE
    )
    return FunctionReport(
        function=run.name,
        gradcheck=checked,
        calls=run.calls,
        graph=run.judged_graph(),
        findings=ranked(checked.findings, limit_findings(noticed, allowed(hints))),
        comparison=_compare(fn, reference, reference_name, inputs, run),
        source=None if run.cls is None else read_source(run.cls),
        notes=tuple(run.notes),
    )


def ranked(checked: tuple[Finding, ...], noticed: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings of the checker and of the contract, most serious first, each code told once per place.

    What the checker has found is not said again by whoever read the source or saw the calls. Where backward raised,
    the checker has explained it; what the contract says of the same mistake is left out.
    """
    raised = any(finding.code == "exception" for finding in checked)
    codes = {finding.code for finding in checked}
    others = [f for f in noticed if f.code not in codes and not (raised and f.kind == "bug")]
    kept: dict[tuple[Any, ...], Finding] = {}
    for finding in (*checked, *others):
        kept.setdefault((finding.code, finding.where, finding.line), finding)
    return tuple(sorted(kept.values(), key=lambda finding: RANK[finding.kind]))


def _compare(
    fn: Callable[..., Any], reference: Callable[..., Any] | None, name: str, inputs: tuple[Any, ...], run: _Run
) -> Comparison | None:
    if reference is None:
        return None
    names = (run.name, name or str(getattr(reference, "__name__", type(reference).__name__)))
    try:
        return compare(fn, reference, inputs, sizes=(), graph=True, time=True, names=names, hints="none")
    except RAISED as error:
        if is_ours(error):
            raise
        said = " ".join(stumbles.said(error).split())[:200]
        run.notes.append(Phrase("inspection.reference_failed", name=names[1], error=f"{type(error).__name__}: {said}"))
        return None


class _Run:
    """One forward and one backward of the Function on copies of the inputs, recorded.

    Attributes:
        calls: what was recorded.
        graph: the graph with gradients, or None when nothing requires grad.
        notes: what is missing.
    """

    def __init__(self, fn: Callable[..., Any], inputs: tuple[Any, ...], names: Mapping[str, Any]) -> None:
        self.problem = Problem(fn, inputs, assume_grad=True)
        self.notes: list[Phrase] = []
        self.graph: AutogradGraph | None = None
        self.calls = CallLog()
        try:
            self.problem.call()  # shows which Function takes part, and whether leaves have to be cloned first
            given = self.problem.fresh()
            self.labels = _labels(self.problem, given, inputs, names)
            self.calls = self._recorded(given)
        except OutOfBudgetError:
            self.notes.append(Phrase("inspection.stopped"))

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def cls(self) -> type | None:
        return self.problem.cls

    def judged_graph(self) -> AutogradGraph | None:
        """Return the graph as the check that ran since has judged its gradients."""
        if self.graph is None or self.cls is None:
            return self.graph
        wrong = wrong_gradients(self.cls)
        return judged(self.graph, {node.id: wrong for node in self.graph.nodes if node.function == self.name})

    def _recorded(self, given: tuple[Any, ...]) -> CallLog:
        if self.cls is None:
            self.notes.append(Phrase("inspection.no_function"))
            with self.problem.session():
                self._differentiate(given)
            return CallLog()
        with self.problem.session(recorded=True), recording(self.cls, level="pooled") as log:
            self._differentiate(given)
        return CallLog(log.calls, log.dropped, log.problems)

    def _differentiate(self, given: tuple[Any, ...]) -> None:
        outputs = self.problem.call(given)
        positions = self.problem.differentiable_outputs(outputs)
        if not positions:
            self.notes.append(Phrase("inspection.no_graph", function=self.name))
            return
        leaves = [given[i] for i in self.problem.differentiable]
        roots = [outputs[i] for i in positions]
        # from a generator of their own: after torch.manual_seed(0) the global one would draw the user's tensors again
        drawn = [c for c in cotangents(self.problem, outputs, self.problem.seed) if c is not None]
        names = {**{self.problem.output_names[i]: outputs[i] for i in positions}, **self.labels}
        self.graph = backward(roots, drawn, inputs=leaves, names=names, raises=False)


def _labels(
    problem: Problem, given: tuple[Any, ...], inputs: tuple[Any, ...], names: Mapping[str, Any]
) -> dict[str, Any]:
    """Name the leaves of the graph: the user's variables where the inputs are some, else forward's arguments."""
    variables = {id(value): name for name, value in names.items() if not name.startswith("_")}
    labels = {}
    for copy, original, argument in zip(given, inputs, problem.input_names, strict=True):
        labels[variables.get(id(original), argument)] = copy
    return labels
