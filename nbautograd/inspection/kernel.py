"""The check of a Function against a reference, and ``gradcheck``, which chooses it where there is one."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any, overload

import torch

from nbautograd.core.checking import gradcheck as without_reference
from nbautograd.core.checking.block import GradcheckReport, Verdict
from nbautograd.core.checking.budget import DEFAULT, Budget, Clock, budgeted, codes_of, stopped, validated_budget
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.progress import Tell, watched
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.kernel.check import CONDITIONED, DRAWS, Outcome, check
from nbautograd.core.kernel.trial import Track
from nbautograd.core.values import describe
from nbautograd.errors import CallError
from nbautograd.inspection.kernel_report import KernelQuantity, KernelReport

ONLY_WITHOUT = ("atol", "rtol", "eps", "order")  # what finite differences alone can take


@overload
def gradcheck(fn: Any, inputs: Any, *, reference: None = None, **options: Any) -> GradcheckReport: ...


@overload
def gradcheck(fn: Any, inputs: Any, *, reference: Callable[..., Any], **options: Any) -> KernelReport: ...


def gradcheck(fn: Any, inputs: Any, *, reference: Any = None, **options: Any) -> GradcheckReport | KernelReport:
    """Check the backward of a Function: against finite differences, or in low precision against a reference.

    Args:
        fn: a Function class, its ``apply``, or any callable that returns tensors.
        inputs: a tuple of arguments, tensors or not; those that require grad are differentiated.
        reference: a callable that takes the same arguments and computes the same with torch's own operations. With one
            nothing is compared with finite differences, so that bfloat16 and float16 can be checked.
        options: without a reference ``atol``, ``rtol``, ``eps``, ``order``, ``seed``, ``hints``, ``budget`` and
            ``progress``, see ``nbautograd.core.checking.gradcheck.gradcheck``; with one
            ``seed``, ``budget`` and ``progress``, see ``check_kernel``.

    Returns:
        A ``GradcheckReport``, with a reference a ``KernelReport``. A wrong gradient never raises.

    Raises:
        CallError: ``fn`` or ``reference`` cannot be called, the inputs are no tuple, or an option is not known.
        InputError: nothing in the inputs can be differentiated.

    Example:
        >>> import torch, nbautograd
        >>> x = torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)
        >>> nbautograd.gradcheck(torch.sin, x).verdict
        'right'
        >>> y = torch.linspace(-2, 2, 300, dtype=torch.bfloat16, requires_grad=True)
        >>> nbautograd.gradcheck(torch.tanh, y, reference=lambda y: (2 * y).sigmoid() * 2 - 1).verdict
        'right'
    """
    if reference is None:
        return without_reference.gradcheck(fn, inputs, **options)
    refused = next((name for name in ONLY_WITHOUT if options.pop(name, None) is not None), None)
    if refused is not None:
        raise CallError("kernel.no_tolerance", option=refused)
    options.pop("hints", None)
    return check_kernel(fn, inputs, reference, **options)


gradcheck.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *inspect.signature(without_reference.gradcheck).parameters.values(),
        *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("reference",)),
    ],
    return_annotation="GradcheckReport | KernelReport",
)


def check_kernel(
    fn: Any,
    inputs: Any,
    reference: Callable[..., Any],
    *,
    seed: int = 0,
    budget: Budget | float | None = DEFAULT,
    progress: Tell | None = None,
) -> KernelReport:
    """Compare a Function in low precision with a reference, without a tolerance.

    Golden values are the reference's in float64 on the same inputs of low precision; the yardstick is the reference in
    the dtype itself, and how far correct implementations may be apart is sampled by random rounding.

    Args:
        fn: a Function class, its ``apply``, or any callable that returns tensors.
        inputs: a tuple of arguments, tensors or not; those that require grad are differentiated.
        reference: a callable that takes the same arguments and computes the same with torch's own operations.
        seed: of the draws of inputs and grad_outputs.
        budget: as for ``nbautograd.gradcheck``.
        progress: called with (steps done, steps in all, what is being done).

    Returns:
        The report.

    Raises:
        CallError: ``fn`` or ``reference`` cannot be called, or the inputs are no tuple.
        InputError: nothing in the inputs can be differentiated.

    Example:
        >>> import torch
        >>> from nbautograd.inspection.kernel import check_kernel
        >>> x = torch.linspace(-2, 2, 300, dtype=torch.bfloat16, requires_grad=True)
        >>> check_kernel(lambda x: 1.01 * x.exp(), x, torch.exp).findings[0].code
        'kernel_factor'
    """
    start = time.perf_counter()
    candidate, eager = Problem(fn, inputs, seed), Problem(reference, inputs, seed)
    with budgeted(validated_budget(budget)) as clock, watched(progress) as tell, candidate.session(), eager.session():
        clock.codes |= codes_of(candidate.fn)
        what = str(Phrase("kernel.comparing", function=candidate.name, reference=eager.name))
        steps = iter(range(1, 2 * DRAWS + 1))

        def done() -> None:
            if tell is not None:
                tell(next(steps), 2 * DRAWS, what)

        outcome: Outcome | None = None
        try:
            got, expected = (sum(y.is_floating_point() for y in one.call()) for one in (candidate, eager))
            if got != expected:
                raise CallError("kernel.outputs_differ", function=candidate.name, got=got, expected=expected)
            outcome = check(candidate, eager, seed=seed, power=True, done=done)
        except KeyboardInterrupt:
            if not clock.ended and tell is None:
                raise
    return _report(candidate, eager, outcome, clock, time.perf_counter() - start)


def _report(candidate: Problem, eager: Problem, outcome: Outcome | None, clock: Clock, seconds: float) -> KernelReport:
    tracks = [] if outcome is None else outcome.trial.tracks
    wrong = () if outcome is None else outcome.wrong
    conditions = {} if outcome is None else outcome.conditions
    quantities = tuple(_quantity(track, k in wrong, conditions.get(k, 0.0)) for k, track in enumerate(tracks))
    verdict, reason = _verdict(quantities, tracks, outcome, clock)
    findings: tuple[Finding, ...] = () if outcome is None else outcome.findings
    source = candidate.source
    code = getattr(candidate.fn, "__code__", None)
    return KernelReport(
        candidate.name,
        eager.name,
        verdict,
        reason,
        findings,
        quantities,
        dtype="" if outcome is None else str(outcome.trial.pair.dtype).removeprefix("torch."),
        inputs=tuple(
            f"{name}: {describe(name, x).repr if not isinstance(x, torch.Tensor) else _kind(x)}"
            for name, x in zip(candidate.input_names, candidate.inputs, strict=True)
        ),
        draws=0 if outcome is None else DRAWS,
        notes=tuple(_notes(tracks)),
        seconds=seconds,
        seed=candidate.seed,
        complete=outcome is not None,
        torch=torch.__version__,
        module=getattr(candidate.cls or candidate.fn, "__module__", "") or "",
        file=getattr(code, "co_filename", None),
        line=source.lines.get("forward") if source is not None else getattr(code, "co_firstlineno", None),
    )


def _kind(x: torch.Tensor) -> str:
    return f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"


def _quantity(track: Track, wrong: bool, condition: float) -> KernelQuantity:
    blind = track.quantity.kind == "gradient" and "zero" in track.unseen()
    verdict: Verdict = "wrong" if wrong else "cannot tell" if blind or track.unknown else "right"
    return KernelQuantity(
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
        tuple(track.mutants),
        track.unseen(),
    )


def _verdict(
    quantities: Sequence[KernelQuantity], tracks: Sequence[Track], outcome: Outcome | None, clock: Clock
) -> tuple[Verdict, Phrase | str]:
    if outcome is None:
        return "cannot tell", (stopped(clock, "verdict").message if clock.ended else Phrase("kernel.interrupted"))
    if outcome.wrong:
        return "wrong", ""
    unknown = [one.name for one, track in zip(quantities, tracks, strict=True) if track.unknown]
    if unknown:
        return "cannot tell", Phrase("kernel.golden_not_finite", names=", ".join(unknown))
    blind = [one.name for one in quantities if one.verdict == "cannot tell"]
    if blind:
        return "cannot tell", Phrase("kernel.zero_passes", names=", ".join(blind))
    if not any(one.kind == "gradient" and one.tried for one in quantities):
        return "cannot tell", Phrase("kernel.no_gradient_to_see")
    return "right", ""


def _notes(tracks: Sequence[Track]) -> list[Phrase]:
    return [
        Phrase("kernel.overflow", name=track.quantity.name, wrong=track.overflown)
        for track in tracks
        if track.overflown
    ]
