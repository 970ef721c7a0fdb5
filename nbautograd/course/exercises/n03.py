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
from nbautograd.course.exercise import Exercise, Failure, Texts
from nbautograd.course.exercises.gradchecks_tried import RIGHT, WRONG, TriedGradcheck
from nbautograd.course.exercises.tried import NOT_A_FUNCTION, TRUE_OR_FALSE, python

# my_gradcheck

RAISES = {
    "en": "On {case} it raises {error}: {said}. A check answers False; it does not raise.",
    "zh": "检查“{case}”时抛出了 {error}：{said}。检查应当回答 False，而不是抛出异常。",
}
CHANGES = {
    "en": "After the check of {case} the inputs have other values than before. Put back what you move, or move a copy.",
    "zh": "检查完“{case}”之后，输入的值变了。移动过的要放回原处，或者只移动副本。",
}
ALWAYS = {
    "en": "It says {said} to everything. Print both numbers for one entry of y = x³ at x = 2 and compare.",
    "zh": "它对什么都回答 {said}。取 y = x³、x = 2，把一个元素的两个数都打印出来比一比。",
}
REJECTS = {
    "en": "{count} of 10 right backwards are called wrong, {case} among them. What error does the difference"
    " itself have?",
    "zh": "10 个正确的 backward 有 {count} 个被判为错，其中有“{case}”。想想差分本身有多大误差。",
}
MISSES = {
    "en": "{count} of 10 wrong backwards get through, {case} among them. Print both numbers for each of its entries:"
    " which pair differs, and what lets it pass?",
    "zh": "10 个错误的 backward 有 {count} 个蒙混过关，其中有“{case}”。把它每个元素的两个数都打印出来：哪一对不同？"
    "又是怎么放过去的？",
}
SECOND = {
    "en": "A mistake in the gradient of the second input gets through ({case}). Are all inputs compared?",
    "zh": "第二个输入的梯度错了，却没有查出来（{case}）。所有的输入都比较了吗？",
}
ONES = {
    "en": "A backward that is right for an upstream gradient of ones gets through ({case}). Which grad_outputs do"
    " you send?",
    "zh": "只在上游梯度全为 1 时才对的 backward 蒙混过关了（{case}）。你送进去的是什么样的 grad_output？",
}


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
            yield Failure("raises", RAISES, {"case": case.name, "error": type(error).__name__, "said": short})
            return
        found = python(found)
        if not isinstance(found, bool):
            yield Failure(
                "not_bool", TRUE_OR_FALSE, {"name": "my_gradcheck", "case": case.name, "got": type(found).__name__}
            )
            return
        if not all(torch.allclose(x, y, rtol=1e-9, atol=1e-9) for x, y in zip(inputs, before, strict=True)):
            yield Failure("changes_inputs", CHANGES, {"case": case.name})
            return
        said[case] = found or said.get(case, False)
    yield from filter(None, [_judged(said)])


def _judged(said: dict[TriedGradcheck, bool]) -> Failure | None:
    rejected, missed = [c for c in RIGHT if not said[c]], [c for c in WRONG if said[c]]
    if len(set(said.values())) == 1:
        return Failure(f"always_{str(not rejected).lower()}", ALWAYS, {"said": not rejected})
    if len(rejected) > 1:
        return Failure("rejects_right", REJECTS, {"count": len(rejected), "case": rejected[0].name})
    for code, sentence, telling in (("second_input", SECOND, 2), ("upstream_ones", ONES, 1)):
        if len(missed) == telling and all(c.group == code for c in missed):
            return Failure(code, sentence, {"case": missed[0].name})
    if len(missed) > 1:
        return Failure("misses_wrong", MISSES, {"count": len(missed), "case": missed[0].name})
    return None


# hiding_input

NOT_MATRIX = {
    "en": "A square matrix of ordinary float64 numbers is wanted: else the wrong line does not even run.",
    "zh": "需要一个由普通 float64 数组成的方阵，否则错误的那一行根本跑不起来。",
}
TOO_PLAIN = {
    "en": "It hides the mistake, but anybody would distrust it. Find a larger one without a zero.",
    "zh": "它确实藏得住错误，但谁见了都会起疑。找一个更大的、不含 0 的。",
}
FOUND_OUT = {
    "en": "With this `a` the check finds the mistake. The wrong line lacks a transpose: for which matrices does"
    " that make no difference?",
    "zh": "用这个 `a`，检查就会发现错误。错误的那一行少了转置：什么样的矩阵，转不转置都一样？",
}


def _hides(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    a = answer.detach() if isinstance(answer, Tensor) and answer.dtype == torch.float64 else torch.empty(0)
    if a.dim() != 2 or not 0 < a.shape[0] == a.shape[1] or not bool(torch.isfinite(a).all()):
        yield Failure("not_a_matrix", NOT_MATRIX)
    elif not torch.allclose(a, a.t(), rtol=1e-9, atol=1e-9):
        yield Failure("found_out", FOUND_OUT)
    elif len(a) == 1 or bool((a == 0).any()):
        yield Failure("too_plain", TOO_PLAIN)


# best_step

STEPS = {
    "forward64": 1.5e-8,
    "central64": 6e-6,
    "forward32": 3.5e-4,
    "central32": 5e-3,
}  # sqrt and cube root of epsilon
FOUR_STEPS = {
    "en": "A dict with four positive numbers is wanted, under the keys {keys}.",
    "zh": "需要一个字典，键为 {keys}，值是四个正数。",
}
EXPONENT = {
    "en": "{key}: {got} looks like an exponent. Write the step itself, such as 1e-3.",
    "zh": "{key}：{got} 看起来是指数。请写步长本身，例如 1e-3。",
}
TOO_SMALL = {
    "en": "{key}: at {got:g} most of the error is rounding. Which side of the valley are you on?",
    "zh": "{key}：步长取 {got:g} 时，误差大半来自舍入。你在谷底的哪一侧？",
}
TOO_LARGE = {
    "en": "{key}: at {got:g} most of the error is from the curve of the function. Go further down the valley.",
    "zh": "{key}：步长取 {got:g} 时，误差大半来自函数本身的弯曲。继续往谷底走。",
}


def _steps(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    steps = {key: python(step) for key, step in answer.items()} if isinstance(answer, dict) else {}
    if set(steps) != set(STEPS) or not all(isinstance(v, Real) and v == v for v in steps.values()):
        yield Failure("not_four_steps", FOUR_STEPS, {"keys": ", ".join(STEPS)})
        return
    for key, best in STEPS.items():
        got = float(steps[key])
        if got <= 0 or got >= 1:
            yield Failure("exponent", EXPONENT, {"key": key, "got": f"{got:g}"})
            return
        if not best / 10 <= got <= best * 10:
            code, sentence = ("step_too_small", TOO_SMALL) if got < best else ("step_too_large", TOO_LARGE)
            yield Failure(code, sentence, {"key": key, "got": got})
            return


# which_check

NOT_CHECKS = {
    "en": 'A dict with the keys "A" to "D" is wanted, and under each a function of two arguments, `function` and `x`.',
    "zh": '需要一个字典，键为 "A" 到 "D"，每个键下是一个有两个参数 `function`、`x` 的函数。',
}
OBJECTS = {
    "en": "{name}: it says False of a right backward, that of {formula}. Does it know the cube alone, or call numbers"
    " different that differ in their last digits?",
    "zh": "{name}：{formula} 的 backward 是对的，它却说 False。它是不是只认得立方，或者末几位不同就判为不等？",
}
FAULTS: dict[str, tuple[Callable[[Tensor, Tensor, Tensor], Tensor], Texts]] = {  # of grad_output, derivative, x
    "A": (
        lambda g, slope, x: g.mul_(slope),
        {"en": "A gets through, in {formula}: read its line once more. What does the underscore at the end of a"
         " method's name mean, and who else has this grad_output?",
         "zh": "{formula} 里的 A 蒙混过关了：把那一行再读一遍。方法名末尾的下划线是什么意思？"
         "这个 grad_output 还有谁在用？"},
    ),
    "B": (
        lambda g, slope, x: (g * slope).float(),
        {"en": "B gets through, in {formula}: the numbers are right to seven digits, and arrive in float64 again. What"
         " does a number look like that has been through float32?",
         "zh": "{formula} 里的 B 蒙混过关了：数值有七位是对的，送到时又成了 float64。经过 float32 的数，有什么特征？"},
    ),
    "C": (
        lambda g, slope, x: g * slope.detach(),
        {"en": "C gets through, in {formula}: the gradient is right everywhere. What does autograd see, if it"
         " differentiates this backward?",
         "zh": "{formula} 里的 C 蒙混过关了：梯度处处都对。"
         "如果让 autograd 对这个 backward 再求一次导，它看到的是什么？"},
    ),
    "D": (
        lambda g, slope, x: g * slope * x.sign(),
        {"en": "D gets through, in {formula}: at the points that you are given it agrees exactly. What have these"
         " points in common?",
         "zh": "{formula} 里的 D 蒙混过关了：在给你的那几个点上，它完全吻合。这些点有什么共同之处？"},
    ),
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
        yield Failure("not_checks", NOT_CHECKS)
        return
    for name, (gradient, hint) in FAULTS.items():
        for formula in FORMULAS:
            for right in draw.choice(((True, False), (False, True), (True, True, False))):
                function = _with_backward(formula, (lambda g, slope, x: g * slope) if right else gradient)
                x = draw.uniform(0.5, 2.0, *draw.sizes(1)).requires_grad_()
                said = python(answer[name](function, x))
                if not isinstance(said, bool):
                    yield Failure(
                        "not_said", TRUE_OR_FALSE, {"name": name, "case": formula, "got": type(said).__name__}
                    )
                    return
                if said is not right:
                    objects = Failure("right_refused", OBJECTS, {"name": name, "formula": formula})
                    yield objects if right else Failure(f"mutant_{name.lower()}", hint, {"formula": formula})
                    return


# slips_through

FORWARD_CHANGED = {
    "en": "forward should give x ** 3, and leave x as it is; the fault belongs in backward.",
    "zh": "forward 应当返回 x ** 3，并且不改动 x；毛病要藏在 backward 里。",
}
SEEN = {
    "en": "torch.autograd.gradcheck objects: {said}. It looks at values alone. What else can be wrong?",
    "zh": "torch.autograd.gradcheck 没有通过：{said}。它只看数值。除了数值，还有什么可以是错的？",
}
HARMLESS = {
    "en": "torch's gradcheck is content, and no other check here found anything wrong at x = {x}. Who would be hurt by"
    " this backward, at these very points?",
    "zh": "torch 的 gradcheck 通过了，这里的其他检查在 x = {x} 处也没有发现毛病。"
    "就在这些点上，谁会吃这个 backward 的亏？",
}


def _slips(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not (isinstance(answer, type) and issubclass(answer, Function)):
        yield Failure("not_a_function", NOT_A_FUNCTION, {"name": "Sly"})
        return
    for turn in range(4):
        there = InputGenerator(draw.seed, turn)
        x = there.away_from(there.normal(*there.sizes(1)), 0.0, 0.2).requires_grad_()
        before = x.detach().clone()
        y = answer.apply(x)
        if not isinstance(y, Tensor) or not torch.allclose(y, before**3) or not torch.equal(x, before):
            yield Failure("forward_changed", FORWARD_CHANGED)
            return
        torch.autograd.grad(answer.apply(x), x, there.normal(*x.shape), allow_unused=True)
        try:
            torch.autograd.gradcheck(answer.apply, (x,))
        except GradcheckError as error:
            yield Failure("gradcheck_sees", SEEN, {"said": str(error).split("\n")[0][:160].rstrip(":,. ")})
            return
    report = gradcheck(answer, (x,), order=2, budget=COUNTS)
    if not report.wrong and not report.findings:
        yield Failure("nothing_wrong", HARMLESS, {"x": ", ".join(f"{value:.2f}" for value in x.tolist())})


EXERCISES = (
    Exercise("my_gradcheck", "my_gradcheck", "custom", own=_checks),
    Exercise("best_step", "steps", "custom", own=_steps),
    Exercise("hiding_input", "a", "custom", own=_hides),
    Exercise("which_check", "checks", "custom", own=_kills),
    Exercise("slips_through", "Sly", "custom", own=_slips),
)
