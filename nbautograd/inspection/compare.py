"""``compare``: a Function beside a reference, the one comparison that all doors lead to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from nbautograd.core.checking.backward_call import own_node, tensors_on_ctx
from nbautograd.core.checking.block import Verdict
from nbautograd.core.checking.budget import DEFAULT, Budget, Clock, budgeted, stopped, validated_budget
from nbautograd.core.checking.prepared_inputs import is_floating
from nbautograd.core.checking.probes.run_probes import probed
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.progress import Tell, watched
from nbautograd.core.checking.report_verdict import notes
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding, validated_hints
from nbautograd.core.kernel.cases import Maker, NamedCase, compared_case, fullest, maker_of, named_cases
from nbautograd.core.kernel.check import CONDITIONED, DRAWS, Outcome, check
from nbautograd.core.kernel.compiled import BACKENDS, compiled
from nbautograd.core.kernel.golden import Pair, readable, run
from nbautograd.core.kernel.layouts import INPUTS, layout_cases
from nbautograd.core.kernel.raised import RaisedError, one_line, users_trace
from nbautograd.core.kernel.sharded import sharded
from nbautograd.core.kernel.sweep import (
    Case,
    Result,
    cases_of_shapes,
    compared,
    dtype_cases,
    judged,
    raising,
    refusal,
    refused_by_reference,
    repeated,
    risk_cases,
    settled_by_size,
    shapes_of,
    size_cases,
    smallest,
)
from nbautograd.core.kernel.trial import Track
from nbautograd.core.numerics.draws import child
from nbautograd.core.stumbles import RAISED, Stumble, collected, is_ours, own_errors
from nbautograd.errors import CallError
from nbautograd.inspection.audit_report import AuditedInput
from nbautograd.inspection.audited_calls import elements
from nbautograd.inspection.beside import Sides, beside, next_step, sides
from nbautograd.inspection.compared_compiled import row as compiled_row
from nbautograd.inspection.compared_compiled import told
from nbautograd.inspection.compared_rows import findings_of, kind, row, row_verdict, unknown_rows
from nbautograd.inspection.comparison import ComparedQuantity, Comparison, worst_first

UNSTEADY = "nondeterministic_backward"  # of a kernel that adds up in another order each time: told below, as a risk


def compare(
    fn: Callable[..., Any],
    reference: Callable[..., Any] | None = None,
    inputs: Any = (),
    *,
    cases: Any = None,
    sizes: Sequence[Any] | None = None,
    layouts: str | Sequence[str] | None = None,
    dtypes: Sequence[torch.dtype] = (),
    overwrites: str | Sequence[str] = (),
    compile: bool | Sequence[Any] = False,
    ranks: Any = 1,
    placements: Mapping[int, int] | None = None,
    timeout: float = 120.0,
    graph: bool = False,
    time: bool = False,
    names: tuple[str, str] | None = None,
    seed: int = 0,
    hints: str = "fix",
    budget: Budget | float | None = DEFAULT,
    progress: Tell | None = None,
) -> Comparison:
    """Compare a Function with a reference: outputs and gradients, and where asked graphs and time.

    There is no tolerance. Golden values are the reference's in float64 on the same inputs. The yardstick is the
    reference in the dtype itself. Random rounding samples how far apart correct implementations may be. In float64
    nothing is more exact, so what rounding in float32 explains passes.

    Args:
        fn: a Function class, its ``apply``, or any callable that returns tensors.
        reference: a callable that takes the same arguments and computes the same with torch's own operations. None,
            with ``compile``, takes ``fn`` itself.
        inputs: a tuple of arguments, tensors or not. Those that require grad are differentiated, or all floating ones
            if none does. A single tensor will do. Copies are used, so no ``.grad`` changes. Or a callable that makes
            them. If its first arguments are whole numbers, they are sizes: the sweep calls it with others, one changed
            at a time, and resizes nothing by itself.
        cases: pairs of a name and arguments, or a callable that yields them. Each is a row as it is, and no other sizes
            are tried. Without inputs the first is checked in full; with ``layouts`` the one with the most dimensions.
        sizes: other shapes to compare at: one for each tensor among the inputs, or the first one's, which tensors of
            the same sizes follow. None takes sizes around those of the inputs, powers of two and tiles, and other
            memory layouts; ``()`` none.
        layouts: names of memory layouts, or ``"all"``: contiguous, transposed, expanded, with gaps, slices of one
            tensor, behind others in one storage, channels last; each for inputs and grad_outputs. None takes the most
            usual ones, beside sizes.
        dtypes: further dtypes to compare in.
        overwrites: names, as a report has them, of inputs, saved tensors or grad_outputs that ``fn`` is meant to write
            over. That is no finding then, for what shares their memory either; to overwrite another tensor is one.
        compile: True compares the same call under torch.compile as well, with torch's backends that compile here; or
            the backends. That takes seconds, with inductor up to a minute, which the budget does not count. What
            torch.compile changes is told as a risk.
        ranks: with more than 1, as many processes on this machine call ``fn`` in a gloo group; the reference runs in
            this process. Or a ``torch.distributed.launcher.api.LaunchConfig``, for ranks elsewhere. ``fn`` has to be
            importable; nothing is swept.
        placements: with ``ranks``, maps the position of an input to the dimension along which ranks get their pieces,
            as ``Shard(dim)`` does. Each rank gets the other inputs whole, and must return whole gradients for them.
        timeout: seconds that the ranks may take.
        graph: True adds the two backward graphs, and the bytes that each keeps.
        time: True adds how long each takes.
        names: what to call the two; by default their own names.
        seed: of the draws, and given to all random generators before each call.
        hints: how much is told of a Function's gradient that is wrong while its outputs agree, as for ``gradcheck``:
            from ``"where"`` on the line is looked for.
        budget: seconds and memory, as for ``gradcheck``; other sizes are left out first.
        progress: called with (steps done, steps in all, what is being done).

    Returns:
        The comparison. A wrong gradient never raises.

    Raises:
        CallError: ``fn`` or ``reference`` cannot be called, ``reference`` and ``compile`` are missing, inputs are no
            tuple, sizes do not fit, or nothing has a name of ``overwrites``.
        InputError: nothing in the inputs can be differentiated.

    Example:
        >>> import torch, nbautograd
        >>> x = torch.linspace(-2, 2, 300, dtype=torch.bfloat16, requires_grad=True)
        >>> nbautograd.compare(torch.tanh, lambda x: (2 * x).sigmoid() * 2 - 1, x).verdict
        'right'
        >>> nbautograd.compare(lambda x: 1.1 * x.exp(), torch.exp, x, sizes=()).findings[0].code
        'compare_factor'
    """
    if reference is None and not compile:
        raise CallError("compare.no_reference")
    pair = (fn, fn if reference is None else reference)
    named = named_cases(cases) if cases is not None else [inputs] if isinstance(inputs, NamedCase) else []
    maker = maker_of(inputs, seed) if callable(inputs) else None
    if maker is not None:
        inputs = maker()
    elif named and isinstance(inputs, tuple) and not inputs:
        inputs = named[0] if layouts is None else fullest(named)
    if ranks != 1:
        return _in_ranks(fn, Problem(pair[1], inputs, seed, assume_grad=True), ranks, placements or {}, timeout, budget)
    candidate, eager = (Problem(one, inputs, seed, assume_grad=True) for one in pair)
    candidate.overwrites = frozenset((overwrites,) if isinstance(overwrites, str) else overwrites)
    if reference is None or any(isinstance(x, torch.Tensor) and not readable(x) for x in candidate.inputs):
        sizes = ()  # at other sizes nothing is compiled, and a sparse or nested tensor has none
    hints = validated_hints(hints)
    with budgeted(validated_budget(budget)) as clock, watched(progress) as tell, candidate.session(), eager.session():
        case = inputs if isinstance(inputs, NamedCase) else None
        one = Compare(candidate, eager, clock, tell, seed, names, named if cases is not None else (), maker, case)
        one.resizable, one.hints = not named, hints
        report = one.run(() if named and sizes is None else sizes, dtypes, layouts)
        if report.quantities and (graph or time):  # what raised has neither
            report = beside(report, candidate, eager, graph=graph, time=time)
    return witnessed(report, fn, eager.fn, candidate.inputs, compile) if compile else report


def _in_ranks(
    fn: Callable[..., Any],
    single: Problem,
    ranks: Any,
    placements: Mapping[int, int],
    timeout: float,
    budget: Budget | float | None,
) -> Comparison:
    """Return the report of a function in several ranks beside one process."""
    names = (getattr(fn, "__name__", type(fn).__name__), single.name)
    with budgeted(validated_budget(budget)) as clock, single.session(), collected() as stumbled:
        single.call()
        run = Compare(single, single, clock, None, single.seed, names)
        run.stumbled, ran = stumbled, None
        with own_errors("comparison of ranks", decides=True):
            ran = sharded(fn, single, placements, ranks, timeout, single.seed)
            run.outcome, run.findings, run.trace = ran.outcome, list(ran.findings), ran.trace
    report = run.report()
    if ran is not None and ran.outcome is None:
        report = replace(report, reason=ran.reason)
    code = getattr(fn, "__code__", None)
    return replace(
        report,
        module=getattr(fn, "__module__", ""),
        file=getattr(code, "co_filename", None),
        line=getattr(code, "co_firstlineno", None),
        backward_line=None,
    )


class Compare:
    """One check against a reference while it runs.

    Args:
        candidate, reference: both in a session.
        clock: of the check.
        tell: who is told of progress, or None.
        seed: of the draws.
        names: what to call the two; None for their own names.
        named: cases that the caller names, each a row.
        maker: what made the inputs, if anything did.
        given: the case that the inputs are, if they are one.
    """

    def __init__(
        self,
        candidate: Problem,
        reference: Problem,
        clock: Clock,
        tell: Tell | None,
        seed: int,
        names: tuple[str, str] | None = None,
        named: Sequence[NamedCase] = (),
        maker: Maker | None = None,
        given: NamedCase | None = None,
    ) -> None:
        self.named, self.maker, self.given, self.resizable, self.hints = named, maker, given, True, "none"
        self.candidate, self.reference, self.clock, self.tell, self.seed = candidate, reference, clock, tell, seed
        self.names = names or (candidate.name, reference.name)
        self.values: list[Sides] = []
        self.whole: list[ComparedQuantity] = []
        self.outcome: Outcome | None = None
        self.findings: list[Finding] = []
        self.stumbled: list[Stumble] = []
        self.results: list[Result] = []
        self.notes: list[Phrase] = []
        self.smallest: Case | None = None
        self.interrupted = False
        self.trace = ""
        self.reason: Phrase | str = ""  # why nothing was compared at the inputs
        self._start = time.perf_counter()
        self._steps = 0

    def run(
        self, shapes: Sequence[Any] | None, dtypes: Sequence[torch.dtype], layouts: str | Sequence[str] | None = None
    ) -> Comparison:
        """Compare at the inputs, then at all others."""
        with collected() as self.stumbled:
            try:
                self._compare_at(shapes, dtypes, layouts)
            except KeyboardInterrupt:
                self.interrupted = True
                self.notes.append(Phrase("compare.sweep_stopped", done=len(self.results)))
        return self.report()

    def _compare_at(
        self, shapes: Sequence[Any] | None, dtypes: Sequence[torch.dtype], layouts: str | Sequence[str] | None
    ) -> None:
        got, expected = (sum(map(is_floating, one.call())) for one in (self.candidate, self.reference))
        if got != expected:
            raise CallError("compare.outputs_differ", function=self.names[0], got=got, expected=expected)
        self._refuse_unknown_names()
        cases = list(cases_of_shapes(self.reference, shapes or (), self.seed))  # refused before anything is compared
        if layouts is not None or shapes is None:
            cases += layout_cases(self.reference, layouts)
        with own_errors("comparison beside the reference", decides=True):
            self._compare()
        self.clock.verdict_known()
        if self.outcome is not None:
            causes, notes = next_step(self.candidate, self.reference, self.outcome, self.seed, self.hints)
            self.findings += causes
            self.notes += notes
        if shapes is None and self.maker is not None and self.maker.sizes:
            cases += self.maker.cases(bool(self.candidate.assumed))
        elif shapes is None:
            cases += size_cases(self.reference, self.seed)
        cases += dtype_cases(self.reference, dtypes)
        if shapes is None and self.outcome is not None:
            cases += risk_cases(self.reference, self.outcome.trial.pair.dtype)
        for case in self.named:
            with own_errors("a named case", decides=True):
                self.results.append(self._named_case(case))
            self._done(len(self.named))
        self._sweep(cases)

    def _refuse_unknown_names(self) -> None:
        problem = self.candidate
        node = own_node(problem, problem.call()) if problem.overwrites else None
        if node is None or problem.source is None:
            return
        saved = (name for name, _ in tensors_on_ctx(problem, node))
        known = (*problem.input_names, *problem.source.grad_outputs, *saved, *(f"ctx.{name}" for name in vars(node)))
        for name in problem.overwrites.difference(known, problem.output_names):
            raise CallError("compare.overwrites_unknown", name=name, names=", ".join(dict.fromkeys(known)))

    def _named_case(self, case: NamedCase) -> Result:
        if case is self.given and self.outcome is not None:  # what was compared in full is not compared again
            row = Case(self.candidate.inputs, name=case.name, required=True)
            return judged(self.candidate, self.reference, row, self.outcome, self.seed, power=True)
        return compared_case(self.candidate, self.reference, case, child(self.seed, "rows"))

    def _compare(self) -> None:
        pair = Pair(self.candidate, self.reference, torch.float32)
        draw = pair.draw(self.candidate.inputs, self.seed)
        theirs = run(self.reference, draw)  # what it raises is its author's
        try:
            self.outcome = check(self.candidate, self.reference, seed=self.seed, power=True, done=self._done)
        except RaisedError as raised:
            self.trace = users_trace(raised.error)
            if raised.in_forward:  # it ran at the inputs themselves
                self.reason = Phrase("compare.refuses_near", error=one_line(raised.error))
            else:
                self.findings.append(raising(raised.error))
            return
        except RAISED as error:  # it ran in the dtype of the inputs, not in float64
            if is_ours(error):
                raise
            said = refused_by_reference(Case(self.candidate.inputs), error)
            self.reason, self.trace = said.excused, said.trace
            return
        self.findings += self.outcome.findings
        self.values = list(zip(run(self.candidate, draw).tensors, theirs.tensors, strict=False))
        self._compare_whole_numbers()
        if draw.random:
            self.notes.append(Phrase("compare.random", reference=self.names[1]))
        if self.candidate.overwrites:
            self.notes.append(Phrase("compare.overwrites", names=", ".join(sorted(self.candidate.overwrites))))
        outputs = self.candidate.call()
        probes: tuple[tuple[Any, ...], ...] = (("state",), ("outputs_alone", outputs), ("inputs_alone", outputs))
        told = [f for name, *given in probes for f in probed(name, self.candidate, *given)]
        broken = [f for f in told if f.kind == "bug" and f.code != UNSTEADY]
        self.findings += broken
        if broken:
            return
        other = repeated(self.candidate, draw)
        if other is not None:
            params = {"name": other[0], "gap": other[1]}
            self.findings.append(Finding("compare_nondeterministic", "lint", "compare.nondeterministic", params))

    def _compare_whole_numbers(self) -> None:
        """Compare the outputs that are no floating numbers: they are equal, or wrong."""
        several = [[y for y in one.call() if not is_floating(y)] for one in (self.candidate, self.reference)]
        floating = self.reference.output_names
        names = [n for n, y in zip(floating, self.reference.call(), strict=True) if not is_floating(y)]
        for name, ours, theirs in zip(names, *several, strict=False):
            same = ours.shape == theirs.shape and bool((ours == theirs).all())
            if not same:
                self.findings.append(Finding("compare_integers", "bug", "compare.integers", {"name": name}))
            share = 0.0 if same else math.inf if ours.shape != theirs.shape else float((ours != theirs).double().mean())
            self.whole.append(
                ComparedQuantity(
                    "output",
                    name,
                    tuple(theirs.shape),
                    str(ours.dtype).removeprefix("torch."),
                    "right" if same else "wrong",
                    share,
                    0.0,
                    0.0,
                    0.0,
                    0.0,
                    0.0,
                    **sides(name, (ours, theirs)),
                )
            )

    def _sweep(self, cases: Sequence[Case]) -> None:
        for case in cases:
            with own_errors(f"case {case.change}", decides=True):
                self.results.append(compared(self.candidate, self.reference, case, child(self.seed, "rows")))
            self._done(len(cases))
        self.results = settled_by_size(self.results)
        with own_errors("smallest case"):
            self._find_smallest()

    def _find_smallest(self) -> None:
        """Shrink what is wrong at other sizes, or at the given inputs; what the caller named stays as it is."""
        # of other sizes new inputs are made, which lie in order
        laid = [one for one in self.results if one.case.name == "" and not any(n in INPUTS for n in one.case.layouts)]
        failing = [one.case for one in laid if one.wrong and one.case.fatal]
        given = self.outcome is not None and bool(self.outcome.wrong)
        if not self.resizable:
            return
        if self.maker is not None and self.maker.sizes:
            made = [one.case for one in self.results if one.wrong and one.case.name]
            self.smallest = min(made, key=lambda case: elements(case.inputs), default=None)
        elif failing and not given:
            self.smallest = smallest(self.candidate, self.reference, failing[0], self.seed)
        elif given:
            self.smallest = smallest(self.candidate, self.reference, Case(self.candidate.inputs), self.seed)

    def _done(self, cases: int = 0) -> None:
        self._steps += 1
        if self.tell is not None:
            what = Phrase("compare.comparing", function=self.names[0], reference=self.names[1])
            self.tell(self._steps, max(self._steps, cases + DRAWS), str(what))

    def report(self) -> Comparison:
        """Return what is known."""
        candidate, outcome = self.candidate, self.outcome
        tracks = [] if outcome is None else outcome.trial.tracks
        wrong, conditions = ((), {}) if outcome is None else (outcome.wrong, outcome.conditions)
        quantities = tuple(  # the values of ranks stay there
            _quantity(track, k in wrong, conditions.get(k, 0.0), self.values[k] if self.values else None)
            for k, track in enumerate(tracks)
        )
        findings = tuple(self.findings)
        broken = any(finding.kind == "bug" for finding in findings)
        if not wrong and (outcome is not None or not broken):  # else the sweep shows the same once more
            swept = tuple(findings_of(self.results, self.smallest))  # a layout may show what a breach breaks
            findings = (*findings, *swept) if broken else (*swept, *findings)
        findings = (*findings, *notes(self.stumbled))
        verdict, reason = self._verdict(quantities, tracks, findings)
        source, code = candidate.source, None if candidate.direct else getattr(candidate.fn, "__code__", None)
        own = zip(candidate.input_names, candidate.inputs, strict=True)
        # a layout that was refused is the reason of "cannot tell", and beside another finding only confuses
        told = [one for one in self.results if one.findings or verdict == "cannot tell"]
        return Comparison(
            *self.names,
            verdict,
            reason,
            findings,
            (*self.whole, *quantities),
            worst_first(map(row, self.results)),
            None if self.smallest is None else shapes_of(self.smallest.inputs),
            dtype="" if outcome is None else str(outcome.trial.pair.dtype).removeprefix("torch."),
            inputs=tuple(AuditedInput(name, kind(x)) for name, x in own),
            draws=0 if outcome is None else outcome.draws,
            notes=(*candidate.notes, *_overflows(tracks), *self.notes),
            seconds=time.perf_counter() - self._start,
            seed=self.seed,
            complete=not self.interrupted,
            trace=self.trace or next((one.trace for one in told if one.trace), ""),
            torch=torch.__version__,
            module=getattr(candidate.cls or candidate.fn, "__module__", "") or "",
            file=source.file if source is not None else getattr(code, "co_filename", None),
            line=source.lines.get("forward") if source is not None else getattr(code, "co_firstlineno", None),
            backward_line=source.line("backward") if source is not None else None,
            source=source,
        )

    def _verdict(
        self, quantities: Sequence[ComparedQuantity], tracks: Sequence[Track], findings: Sequence[Finding]
    ) -> tuple[Verdict, Phrase | str]:
        if any(finding.kind == "bug" for finding in findings):
            return "wrong", ""
        for note in notes([one for one in self.stumbled if one.decides]):
            return "cannot tell", note.phrase("what") or ""
        if self.outcome is None:
            return "cannot tell", stopped(self.clock, "verdict").message if self.clock.ended else self.reason
        endless = [one.name for one, track in zip(quantities, tracks, strict=True) if track.unknown]
        if endless:
            return "cannot tell", Phrase("compare.golden_not_finite", names=", ".join(endless))
        unsampled = [one.name for one, track in zip(quantities, tracks, strict=True) if track.unsampled]
        if unsampled:
            return "cannot tell", Phrase("compare.rounding_not_finite", names=", ".join(unsampled))
        blind = [one.name for one in quantities if one.verdict == "cannot tell"]
        if blind:
            return "cannot tell", Phrase("compare.zero_passes", names=", ".join(blind))
        if not any(one.kind == "gradient" and one.tried for one in quantities):
            return "cannot tell", Phrase("compare.no_gradient_to_see")
        named = [one for one in self.results if one.case.required and row_verdict(one) == "cannot tell"]
        if self.named and named:
            return "cannot tell", Phrase("compare.case_unknown", name=named[0].case.name, reason=refusal(named[0]))
        unknown = unknown_rows([one for one in self.results if one.case.fatal])
        return ("cannot tell", unknown) if unknown else ("right", "")


def _quantity(track: Track, wrong: bool, condition: float, pair: Sides | None) -> ComparedQuantity:
    blind = track.quantity.kind == "gradient" and "zero" in track.unseen()
    verdict: Verdict = "wrong" if wrong else "cannot tell" if blind or track.unknown or track.unsampled else "right"
    return ComparedQuantity(
        track.quantity.kind,
        track.quantity.name,
        track.shape,
        str(track.dtype).removeprefix("torch."),
        verdict,
        track.error,
        track.yardstick_error,
        track.bias,
        track.spread,
        track.resolution,
        track.allowed,
        condition if condition >= CONDITIONED else 0.0,
        () if wrong else tuple(track.mutants),  # other errors on top of one may be what mends it
        () if wrong else track.unseen(),
        **({} if pair is None else sides(track.quantity.name, pair)),
    )


def _overflows(tracks: Sequence[Track]) -> Iterator[Phrase]:
    for track in tracks:
        if track.overflown:
            yield Phrase("compare.overflow", name=track.quantity.name, wrong=track.overflown)


def witnessed(
    report: Comparison, fn: Any, reference: Any, inputs: tuple[Any, ...], backends: bool | Sequence[Any]
) -> Comparison:
    """Return a report with what torch.compile makes of the same call.

    Args:
        report: of the check without compiling.
        fn, reference, inputs: as the check was given them.
        backends: True for torch's own.
    """
    if report.verdict != "right":
        return replace(report, notes=(*report.notes, Phrase("compare.compile_not_tried")))
    asked = BACKENDS if backends is True else tuple(backends or ())
    rows = [compiled_row(one) for one in compiled(fn, reference, inputs, asked, seed=report.seed)]
    findings, notes = told(rows)
    return replace(report, compiled=tuple(rows), findings=(*report.findings, *findings), notes=(*report.notes, *notes))
