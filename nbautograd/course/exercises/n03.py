"""Exercises of notebook 03, checking gradients and what checks miss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.gradcheck import GradcheckError

from nbautograd.core.checking.budget import COUNTS
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.gradchecks_tried import RIGHT, WRONG, TriedGradcheck
from nbautograd.course.exercises.tried import python

# my_gradcheck


def _checks(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    said: dict[TriedGradcheck, bool] = {}
    cases = (*RIGHT, *WRONG, *WRONG)  # the wrong ones twice: a grad_output may be lucky
    for case in (cases[k] for k in torch.randperm(len(cases), generator=draw.generator).tolist()):
        inputs = tuple(x.requires_grad_() for x in case.inputs(draw))
        before = [x.detach().clone() for x in inputs]
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(draw.seed + len(said))
                found = answer(case.function, inputs)
        except Exception as error:
            short = str(error).split("\n")[0][:120]
            yield Failure(
                "raises", "course.n03.raises", {"case": case.name, "error": type(error).__name__, "said": short}
            )
            return
        found = python(found)
        if not isinstance(found, bool):
            yield Failure(
                "not_bool",
                "course.true_or_false",
                {"name": "my_gradcheck", "case": case.name, "got": type(found).__name__},
            )
            return
        if not all(torch.allclose(x, y, rtol=1e-9, atol=1e-9) for x, y in zip(inputs, before, strict=True)):
            yield Failure("changes_inputs", "course.n03.changes", {"case": case.name})
            return
        said[case] = found or said.get(case, False)
    yield from filter(None, [_judged(said)])


def _judged(said: dict[TriedGradcheck, bool]) -> Failure | None:
    rejected, missed = [c for c in RIGHT if not said[c]], [c for c in WRONG if said[c]]
    if len(set(said.values())) == 1:
        return Failure(f"always_{str(not rejected).lower()}", "course.n03.always", {"said": not rejected})
    if len(rejected) > 1:
        return Failure("rejects_right", "course.n03.rejects", {"count": len(rejected), "case": rejected[0].name})
    for code, sentence, telling in (("second_input", "course.n03.second", 2), ("upstream_ones", "course.n03.ones", 1)):
        if len(missed) == telling and all(c.group == code for c in missed):
            return Failure(code, sentence, {"case": missed[0].name})
    if len(missed) > 1:
        return Failure("misses_wrong", "course.n03.misses", {"count": len(missed), "case": missed[0].name})
    return None


# hiding_input


def _hides(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    a = answer.detach() if isinstance(answer, Tensor) and answer.dtype == torch.float64 else torch.empty(0)
    if a.dim() != 2 or not 0 < a.shape[0] == a.shape[1] or not bool(torch.isfinite(a).all()):
        yield Failure("not_a_matrix", "course.n03.not_matrix")
    elif not torch.allclose(a, a.t(), rtol=1e-9, atol=1e-9):
        yield Failure("found_out", "course.n03.found_out")
    elif len(a) == 1 or bool((a == 0).any()):
        yield Failure("too_plain", "course.n03.too_plain")


# best_step

STEPS = {
    "forward64": 1.5e-8,
    "central64": 6e-6,
    "forward32": 3.5e-4,
    "central32": 5e-3,
}  # sqrt and cube root of epsilon


def _steps(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    steps = {key: python(step) for key, step in answer.items()} if isinstance(answer, dict) else {}
    if set(steps) != set(STEPS) or not all(isinstance(v, Real) and v == v for v in steps.values()):
        yield Failure("not_four_steps", "course.n03.four_steps", {"keys": ", ".join(STEPS)})
        return
    for key, best in STEPS.items():
        got = float(steps[key])
        if got <= 0 or got >= 1:
            yield Failure("exponent", "course.n03.exponent", {"key": key, "got": f"{got:g}"})
            return
        if not best / 10 <= got <= best * 10:
            code, sentence = (
                ("step_too_small", "course.n03.too_small") if got < best else ("step_too_large", "course.n03.too_large")
            )
            yield Failure(code, sentence, {"key": key, "got": got})
            return


# which_check

FAULTS: dict[str, tuple[Callable[[Tensor, Tensor, Tensor], Tensor], str]] = {  # of grad_output, derivative, x
    "A": (lambda g, slope, x: g.mul_(slope), "course.n03.mutant_a"),
    "B": (lambda g, slope, x: (g * slope).float(), "course.n03.mutant_b"),
    "C": (lambda g, slope, x: g * slope.detach(), "course.n03.mutant_c"),
    "D": (lambda g, slope, x: g * slope * x.sign(), "course.n03.mutant_d"),
}  # fmt: skip
FORMULAS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {  # forward, derivative
    "x ** 3": (lambda x: x**3, lambda x: 3 * x * x),
    "exp(x)": (torch.exp, torch.exp),
    "tan(x / 4)": (lambda x: (x / 4).tan(), lambda x: (1 + (x / 4).tan() ** 2) / 4),
}


def _with_backward(formula: str, gradient: Callable[[Tensor, Tensor, Tensor], Tensor]) -> type[Function]:
    compute, derivative = FORMULAS[formula]

    class Tried(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return compute(x)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            (x,) = ctx.saved_tensors
            return gradient(grads[0], derivative(x), x)

    return Tried


def _kills(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Require that each check accept right backwards and object to its fault, with functions and points drawn."""
    if not isinstance(answer, dict) or set(answer) != set(FAULTS) or not all(map(callable, answer.values())):
        yield Failure("not_checks", "course.n03.not_checks")
        return
    for name, (gradient, hint) in FAULTS.items():
        for formula in FORMULAS:
            for right in draw.choice(((True, False), (False, True), (True, True, False))):
                function = _with_backward(formula, (lambda g, slope, x: g * slope) if right else gradient)
                x = draw.uniform(0.5, 2.0, *draw.sizes(1)).requires_grad_()
                said = python(answer[name](function, x))
                if not isinstance(said, bool):
                    yield Failure(
                        "not_said",
                        "course.true_or_false",
                        {"name": name, "case": formula, "got": type(said).__name__},
                    )
                    return
                if said is not right:
                    objects = Failure("right_refused", "course.n03.objects", {"name": name, "formula": formula})
                    yield objects if right else Failure(f"mutant_{name.lower()}", hint, {"formula": formula})
                    return


# slips_through


def _slips(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not (isinstance(answer, type) and issubclass(answer, Function)):
        yield Failure("not_a_function", "course.not_a_function", {"name": "Sly"})
        return
    for turn in range(4):
        there = InputGenerator(draw.seed, turn)
        x = there.away_from(there.normal(*there.sizes(1)), 0.0, 0.2).requires_grad_()
        before = x.detach().clone()
        y = answer.apply(x)
        if not isinstance(y, Tensor) or not torch.allclose(y, before**3) or not torch.equal(x, before):
            yield Failure("forward_changed", "course.n03.forward_changed")
            return
        torch.autograd.grad(answer.apply(x), x, there.normal(*x.shape), allow_unused=True)
        try:
            torch.autograd.gradcheck(answer.apply, (x,))
        except GradcheckError as error:
            yield Failure("gradcheck_sees", "course.n03.seen", {"said": str(error).split("\n")[0][:160].rstrip(":,. ")})
            return
    report = gradcheck(answer, (x,), order=2, budget=COUNTS)
    if not report.wrong and not report.findings:
        yield Failure("nothing_wrong", "course.n03.harmless", {"x": ", ".join(f"{value:.2f}" for value in x.tolist())})


EXERCISES = (
    Exercise("my_gradcheck", "my_gradcheck", "custom", own=_checks),
    Exercise("best_step", "steps", "custom", own=_steps),
    Exercise("hiding_input", "a", "custom", own=_hides),
    Exercise("which_check", "checks", "custom", own=_kills),
    Exercise("slips_through", "Sly", "custom", own=_slips),
)
