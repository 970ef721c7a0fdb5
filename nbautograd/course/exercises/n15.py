"""Exercises of notebook 15, an operation of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.user_source import function_class
from nbautograd.course.attempt import close, cotangents, forward, ready, tensors, vjp
from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.mutants import COUNT, Mutant, copy, kills, mutants
from nbautograd.course.run import check

POINTS = 4
NEEDED = 18  # of 20: the last two may need a point that nobody would think of


class Pool(Function):
    """A mean of values, weighted by the softmax of scores: the notebook shows the same."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, values: Tensor) -> Tensor:
        """Weigh and add up each row."""
        p = scores.softmax(1)
        ctx.save_for_backward(p, values)
        return (p * values).sum(1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of scores and values."""
        (g,) = grads
        p, values = ctx.saved_tensors
        mean = (p * values).sum(1, keepdim=True)
        grad_scores = g[:, None] * p * (values - mean)
        return grad_scores, g[:, None] * p


# telling_inputs

NOT_THREE = {
    "en": "Three float64 tensors are wanted, `(scores, values, grad_output)`: two of the same shape, rows times"
    " columns, and one number for each row.",
    "zh": "需要三个 float64 张量 `(scores, values, grad_output)`：前两个形状相同，都是二维的；第三个是每行一个数。",
}
ONES = {
    "en": "{count} of {whole} mutants survive. All numbers of your grad_output are the same: who forgets one of them,"
    " or takes another row's, is not found out.",
    "zh": "{whole} 个变异体里有 {count} 个活了下来。你的 grad_output 里各个数都一样："
    "漏用其中一个，或者弄错了行，都看不出来。",
}
CONSTANT = {
    "en": "{count} of {whole} mutants survive. In a row of `{name}` all numbers are the same; what of the gradient"
    " vanishes then?",
    "zh": "{whole} 个变异体里有 {count} 个活了下来。`{name}` 的某一行里各个数都一样；这样一来，梯度里有什么消失了？",
}
ONE_ROW = {
    "en": "{count} of {whole} mutants survive. With a single row nobody can mistake rows for columns.",
    "zh": "{whole} 个变异体里有 {count} 个活了下来。只有一行，行和列弄混了也看不出来。",
}
SURVIVORS = {
    "en": "{count} of {whole} mutants survive. One of them:\n{mutant}",
    "zh": "{whole} 个变异体里有 {count} 个活了下来。其中一个是：\n{mutant}",
}


@cache
def _of_pool() -> tuple[Mutant, ...]:
    torch_0 = torch.Generator().manual_seed(0)  # the points and the seed of the notebook: the same twenty
    numbers = torch.randn(POINTS, 2, 12, dtype=torch.float64, generator=torch_0).unflatten(2, (3, 4))
    return mutants(Pool, [(scores, values) for scores, values in numbers], seed=9)


def _telling(answer: Any, draw: Draw) -> Iterator[Failure]:
    if not _three(answer):
        yield Failure("not_three", NOT_THREE)
        return
    scores, values, grad_output = (x.detach() for x in answer)
    surviving = [m for m in _of_pool() if not _differs(m.function, scores, values, grad_output)]
    if not surviving:
        return
    told = {"count": len(surviving), "whole": len(_of_pool())}
    if bool((grad_output == grad_output[0]).all()):
        yield Failure("upstream_ones", ONES, told) if len(scores) > 1 else Failure("one_row", ONE_ROW, told)
        return
    for name, rows in (("scores", scores), ("values", values)):
        if bool((rows == rows[:, :1]).all(1).any()):
            yield Failure("constant", CONSTANT, {**told, "name": name})
            return
    yield Failure("survivors", SURVIVORS, {**told, "mutant": surviving[0]})


def _three(answer: Any) -> bool:
    if not (isinstance(answer, (tuple, list)) and len(answer) == 3):
        return False
    if not all(isinstance(x, Tensor) and x.dtype == torch.float64 and x.numel() for x in answer):
        return False
    scores, values, grad_output = answer
    return bool(scores.dim() == 2 and scores.shape == values.shape and grad_output.shape == scores.shape[:1])


def _differs(function: Any, scores: Tensor, values: Tensor, grad_output: Tensor) -> bool:
    right, found = (vjp(forward(f.apply, ready((scores, values))), [grad_output]) for f in (Pool, function))
    return not all(close(a, b, 1e-6) for a, b in zip(found, right, strict=True))


# own_operation

NO_FUNCTION = {
    "en": "`Own` should be a subclass of Function, with forward and backward.",
    "zh": "`Own` 应当是 Function 的子类，带有 forward 和 backward。",
}
MISSING = {
    "en": "`Own` has no static method `{name}`. `plain(*inputs)` says what the operation is, `example(seed)` what it"
    " takes.",
    "zh": "`Own` 没有静态方法 `{name}`。`plain(*inputs)` 说明这个运算是什么，`example(seed)` 给出它的输入。",
}
EXAMPLE = {
    "en": "`example(0)` should return a tuple with at least one float64 tensor in it, and no other floating dtype; got"
    " {got}.",
    "zh": "`example(0)` 应当返回一个元组，其中至少有一个 float64 张量，不能有别的浮点类型；实际得到的是 {got}。",
}
SAME = {
    "en": "`example` gives the same numbers for every seed. A check at one point is one check.",
    "zh": "不论种子是多少，`example` 给的数都一样。那么不管检查多少次，都只检查了这一个点。",
}
PLAIN_IS_OWN = {
    "en": "`plain` goes through a Function of yours: then it says what your backward says, right or wrong. Write it"
    " with torch's own operations alone.",
    "zh": "`plain` 里用了你自己的 Function：这样一来，不论你的 backward 是对是错，它的结果都跟着一样。"
    "请只用 torch 自带的运算来写。",
}
TOO_SHORT = {
    "en": "Right. But of this backward {count} mutants can be made, and {whole} are wanted. Write it as a `def` with"
    " its lines in it, and choose an operation with enough to it.",
    "zh": "运算是对的。可是从这个 backward 只能生成 {count} 个变异体，而这里要 {whole} 个。请用 `def` 写 backward，"
    "把每一步都写在里面，并选一个更复杂些的运算。",
}
LINEAR = {
    "en": "Right, but too plain: its gradient is the same whatever the inputs are. Choose an operation that has to save"
    " something.",
    "zh": "运算是对的，但太简单：不论输入是什么，梯度都一样。请选一个 backward 要用到保存的张量的运算。",
}


def _operation(answer: Any, draw: Draw) -> Iterator[Failure]:
    failure = _undeclared(answer)
    if failure is not None:
        yield failure
        return
    result = check(_declared(answer), answer, seed=draw.seed)
    failures = [failure for outcome in result.outcomes for failure in outcome.failures]
    made = _of_own(answer) if not failures else ()
    if failures:
        yield failures[0]
    elif len(made) < COUNT:
        yield Failure("too_short", TOO_SHORT, {"count": len(made), "whole": COUNT})
    elif _is_linear(answer):
        yield Failure("linear_operation", LINEAR)


def _is_linear(answer: Any) -> bool:
    """Return True if the gradient is the same at two points."""
    runs = [forward(answer.plain, ready(answer.example(seed))) for seed in (0, 1)]
    if runs[0].outputs[0].shape != runs[1].outputs[0].shape:
        return False
    first, second = (vjp(run, cotangents(run.outputs, 0)) for run in runs)
    return all(close(a, b, 1e-9) for a, b in zip(first, second, strict=True))


def _declared(answer: Any) -> Exercise:
    """The student's operation as an exercise: judged like all others."""
    return Exercise(
        "own_operation", "Own", "value own_function gradient linear arity shapes unchanged repeatable",
        formula=answer.plain, inputs=lambda draw: tuple(answer.example(draw.seed)),
    )  # fmt: skip


def _undeclared(answer: Any) -> Failure | None:
    """Return the failure for the first thing missing without which nothing can be judged."""
    if function_class(answer) is None:
        return Failure("not_a_function", NO_FUNCTION)
    for name in ("plain", "example"):
        if not callable(getattr(answer, name, None)):
            return Failure(f"no_{name}", MISSING, {"name": name})
    first, second = answer.example(0), answer.example(1)
    floating = [x for x in first if isinstance(x, Tensor) and x.is_floating_point()] if _is_tuple(first) else []
    if not floating or any(x.dtype != torch.float64 for x in floating):
        got = f"({', '.join(_short(x) for x in first)})" if _is_tuple(first) else _short(first)
        return Failure("example_unusable", EXAMPLE, {"got": got})
    if all(torch.equal(a, b) for a, b in zip(first, second, strict=True) if isinstance(a, Tensor)):
        return Failure("same_example", SAME)
    if functions_of(tuple(tensors(answer.plain(*ready(first))))):
        return Failure("plain_is_own", PLAIN_IS_OWN)
    return None


def _is_tuple(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _short(value: Any) -> str:
    return f"{value.dtype} tensor" if isinstance(value, Tensor) else type(value).__name__


def _of_own(answer: Any) -> tuple[Mutant, ...]:
    return mutants(answer, [tuple(answer.example(seed)) for seed in range(POINTS)])


# own_test

NOT_A_PAIR = {
    "en": "`shipped` should be the pair `(Own, test)`: your Function, and a function of one argument that tests it.",
    "zh": "`shipped` 应当是一对 `(Own, test)`：你的 Function，以及一个只有一个参数、用来测试它的函数。",
}
NOT_READY = {
    "en": "`Own` itself does not pass the exercise above yet. Begin there.",
    "zh": "`Own` 本身还没有通过上一道练习，请先做那一道。",
}
REFUSED = {
    "en": "Your test objects to your own operation, in a class of another identity: {error}",
    "zh": "你的测试把你自己的运算（放在另一个类里）判成了错的：{error}",
}
FEW = {
    "en": "{killed} of {whole} mutants are killed; {needed} are wanted. This one survives:\n{mutant}",
    "zh": "{whole} 个变异体杀死了 {killed} 个，要求是 {needed} 个。活下来的有：\n{mutant}",
}
NONE_KILLED = {
    "en": "Not one of {whole} mutants is killed. Does your test look at a gradient at all?",
    "zh": "{whole} 个变异体一个都没有杀死。你的测试看过梯度吗？",
}


def _test(answer: Any, draw: Draw) -> Iterator[Failure]:
    if not (_is_tuple(answer) and len(answer) == 2 and callable(answer[1]) and not isinstance(answer[1], type)):
        yield Failure("not_a_pair", NOT_A_PAIR)
        return
    own, test = answer
    if next(_operation(own, draw), None) is not None:
        yield Failure("operation_not_ready", NOT_READY)
        return
    for seed in (0, 1):  # a test that is right by luck is not
        error = _objection(test, copy(own), draw.seed + seed)
        if error is not None:
            yield Failure("right_refused", REFUSED, {"error": error})
            return
    made = _of_own(own)
    with torch.random.fork_rng(devices=[]):  # the same points for the same submission
        torch.manual_seed(draw.seed)
        surviving = [mutant for mutant in made if not kills(test, mutant.function)]
    killed = len(made) - len(surviving)
    if not killed:
        yield Failure("none_killed", NONE_KILLED, {"whole": len(made)})
    elif killed < NEEDED:
        told = {"killed": killed, "whole": len(made), "needed": NEEDED, "mutant": surviving[0]}
        yield Failure("survivors", FEW, told)


def _objection(test: Any, function: Any, seed: int) -> str | None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return "False" if test(function) is False else None
        except Exception as error:
            return f"{type(error).__name__}: {error}".splitlines()[0][:160]


EXERCISES = (
    Exercise("telling_inputs", "telling", "custom", own=_telling),
    Exercise("own_operation", "Own", "custom", own=_operation, points=2),
    Exercise("own_test", "shipped", "custom", own=_test, points=2),
)
