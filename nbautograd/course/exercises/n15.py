"""Exercises of notebook 15, an operation of one's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.pytrees import tensors
from nbautograd.core.user_source import function_class
from nbautograd.course.attempt import close, forward, is_float, plain, ready, vjp
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.tried import NOT_A_FUNCTION, backward_set
from nbautograd.course.mutants import COUNT, Mutant, copy, kills, mutants, objection, same_gradients
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
NOT_FINITE = {
    "en": "Not all numbers are finite: there no gradient can be told from another one.",
    "zh": "有的数不是有限的：这样一来，什么梯度也分辨不出来。",
}
ONES = {
    "en": "All numbers of your grad_output are the same: who forgets one of them, or takes another row's, is not found"
    " out.",
    "zh": "你的 grad_output 里各个数都一样：漏用其中一个，或者弄错了行，都看不出来。",
}
CONSTANT = {
    "en": "In a row of `{name}` all numbers are the same: who exchanges them, or takes their mean, is not found out.",
    "zh": "`{name}` 的某一行里各个数都一样：把它们互换，或者求了平均，都看不出来。",
}
ONE_ROW = {
    "en": "With a single row nobody can be found out who mistakes rows for columns.",
    "zh": "只有一行，行和列弄混了也看不出来。",
}
SURVIVORS = {
    "en": "{count} of {whole} mutants survive. One of them:\n{mutant}",
    "zh": "{whole} 个变异体里有 {count} 个活了下来。其中一个是：\n{mutant}",
}
ENOUGH = 20  # numbers, of at most three digits
MANY = {
    "en": "It tells, but with {count} numbers. At most {most} are wanted: who shall see what each of them is for?",
    "zh": "这个点能分辨，可是用了 {count} 个数；最多用 {most} 个，否则谁也看不出每个数起什么作用。",
}


@cache
def _of_pool() -> tuple[Mutant, ...]:
    torch_0 = torch.Generator().manual_seed(0)  # the points and the seed of the notebook: the same twenty
    numbers = torch.randn(POINTS, 2, 12, dtype=torch.float64, generator=torch_0).unflatten(2, (3, 4))
    return mutants(Pool, [(scores, values) for scores, values in numbers], seed=34)


def _telling(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not _three(answer):
        yield Failure("not_three", NOT_THREE)
        return
    scores, values, grad_output = map(plain, answer)
    hidden = _hides(scores, values, grad_output)
    if hidden is not None:
        yield hidden
        return
    surviving = [m for m in _of_pool() if not _differs(m.function, scores, values, grad_output)]
    if not surviving:
        count = sum(x.numel() for x in (scores, values, grad_output))
        if count > ENOUGH:
            yield Failure("too_many_numbers", MANY, {"count": count, "most": ENOUGH})
        return
    told = {"count": len(surviving), "whole": len(_of_pool())}
    yield Failure("survivors", SURVIVORS, {**told, "mutant": surviving[0]})


def _hides(scores: Tensor, values: Tensor, grad_output: Tensor) -> Failure | None:
    """Return the failure for numbers at which some mistake is never seen, whatever mutants there are."""
    if not all(bool(torch.isfinite(x).all()) for x in (scores, values, grad_output)):
        return Failure("not_finite", NOT_FINITE)
    if len(scores) == 1:
        return Failure("one_row", ONE_ROW)
    if bool((grad_output == grad_output[0]).all()):
        return Failure("upstream_ones", ONES)
    for name, rows in (("scores", scores), ("values", values)):
        if bool((rows == rows[:, :1]).all(1).any()):
            return Failure("constant", CONSTANT, {"name": name})
    return None


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
    "en": "`example` gives the same numbers for the seeds {one} and {other}. A check at one point is one check, however"
    " often it is made.",
    "zh": "种子 {one} 和 {other} 得到的 `example` 是同样的数。在同一个点上检查多少次，都只算检查了一次。",
}
PLAIN_IS_OWN = {
    "en": "`plain` goes through a Function of yours: then it says what your backward says, right or wrong. Write it"
    " with torch's own operations alone.",
    "zh": "`plain` 里用了你自己的 Function：这样一来，不论你的 backward 是对是错，它的结果都跟着一样。"
    "请只用 torch 自带的运算来写。",
}
PLAIN_GIVES = {
    "en": "`plain(*example(0))` returns no tensor. Is a `return` missing?",
    "zh": "`plain(*example(0))` 没有返回张量。是不是少了 `return`？",
}
TOO_SHORT = {
    "en": "Right. But of what this backward needs {count} mutants can be made, and {whole} are wanted; what could be"
    " left out does not count. Write it as a `def` with its lines in it, and choose an operation with enough to it.",
    "zh": "运算是对的。可是从这个 backward 真正用得着的部分，只能生成 {count} 个变异体，而这里要 {whole} 个；"
    "删掉也不影响结果的代码不算。请用 `def` 写 backward，把每一步都写在里面，并选一个更复杂些的运算。",
}


def _operation(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    failure = _undeclared(answer, draw)
    if failure is not None:
        yield failure
        return
    result = check(_declared(answer), answer, seed=draw.seed)
    failures = [failure for outcome in result.outcomes for failure in outcome.failures]
    made = _of_own(answer, draw.seed) if not failures else ()
    if failures:
        yield failures[0]
    elif len(made) < COUNT:
        yield Failure("too_short", TOO_SHORT, {"count": len(made), "whole": COUNT})


def _declared(answer: Any) -> Exercise:
    return Exercise(
        "own_operation", "Own", "value own_function gradient",
        formula=answer.plain, inputs=lambda draw: tuple(answer.example(draw.seed)),
    )  # fmt: skip


def _undeclared(answer: Any, draw: InputGenerator) -> Failure | None:
    """Return the failure for the first thing missing without which nothing can be judged."""
    if function_class(answer) is None:
        return Failure("not_a_function", NOT_A_FUNCTION, {"name": "Own"})
    for name in ("plain", "example"):
        if not callable(getattr(answer, name, None)):
            return Failure(f"no_{name}", MISSING, {"name": name})
    first = answer.example(0)
    floating = [x for x in first if isinstance(x, Tensor) and x.is_floating_point()] if _is_tuple(first) else []
    if not floating or any(x.dtype != torch.float64 for x in floating):
        got = f"({', '.join(_short(x) for x in first)})" if _is_tuple(first) else _short(first)
        return Failure("example_unusable", EXAMPLE, {"got": got})
    alike = _two_alike(answer, [*range(POINTS), *draw.integers(POINTS, 10**6, POINTS).tolist()])
    if alike is not None:
        return Failure("same_example", SAME, {"one": alike[0], "other": alike[1]})
    outputs = tuple(tensors(answer.plain(*ready(first))))
    if not outputs:
        return Failure("plain_gives_nothing", PLAIN_GIVES)
    if functions_of(outputs):
        return Failure("plain_is_own", PLAIN_IS_OWN)
    return None


def _two_alike(answer: Any, seeds: Sequence[int]) -> tuple[int, int] | None:
    found = {seed: [x for x in answer.example(seed) if is_float(x)] for seed in seeds}
    for (one, a), (other, b) in itertools.combinations(found.items(), 2):
        if len(a) == len(b) and all(close(x, y, 1e-3) for x, y in zip(a, b, strict=True)):
            return one, other
    return None


def _is_tuple(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _short(value: Any) -> str:
    return f"{value.dtype} tensor" if isinstance(value, Tensor) else type(value).__name__


def _of_own(answer: Any, seed: int) -> tuple[Mutant, ...]:
    return mutants(answer, _examples(answer), seed=seed)


def _examples(answer: Any) -> list[tuple[Any, ...]]:
    return [tuple(answer.example(seed)) for seed in range(POINTS)]


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
    "en": "Your test objects to your own operation, handed to it as a copy, or with a wrapped backward: {error}",
    "zh": "把你自己的运算复制一份，或者给它的 backward 套一层，再交给你的测试，就被判成了错的：{error}",
}
FEW = {
    "en": "{killed} of {whole} mutants are killed; {needed} are wanted. This one survives:\n{mutant}",
    "zh": "{whole} 个变异体杀死了 {killed} 个，要求是 {needed} 个。活下来的有：\n{mutant}",
}
NONE_KILLED = {
    "en": "Your test says the same of every Function it is given: of one that returns None, one of zeros, one whose"
    " gradient is twice the right one. Does it use the Function it gets, and look at a gradient?",
    "zh": "不管给它哪个 Function，你的测试都说一样的话：返回 None 的、全是 0 的、梯度是正确值两倍的，都通过了。"
    "它用的是传进来的那个 Function 吗？看过梯度吗？",
}
LEFT_OUT = {
    "en": "A backward that returns None for every input gets through.",
    "zh": "对每个输入都返回 None 的 backward 也通过了。",
}
ZERO = {
    "en": "A backward whose gradients are all 0 gets through.",
    "zh": "梯度全是 0 的 backward 也通过了。",
}
DOUBLED = {
    "en": "A backward whose gradient number {number} is twice the right one gets through.",
    "zh": "第 {number} 个梯度是正确值两倍的 backward 也通过了。",
}
AVERAGED = {
    "en": "A backward that takes the mean of grad_output in the place of each of its numbers gets through. Which"
    " grad_outputs do you send?",
    "zh": "把 grad_output 里的每个数都换成它们的平均值，这样的 backward 也通过了。你送进去的是什么样的 grad_output？",
}
BY_ITSELF = {
    "en": "Your test kills mutants that are another class, and accepts them when they are `Own` itself: it compares"
    " `Own` with `Own`. Whoever changes your operation changes it there. What says what is right, apart from it? One"
    " that gets through:\n{mutant}",
    "zh": "变异体是另一个类时，你的测试能杀死它；它就是 `Own` 本身时，却通过了：测试是拿 `Own` 和 `Own` 相比。"
    "以后有人修改你的运算，改的正是 `Own`。除了它自己，还有什么能说明怎样才对？通过的一个：\n{mutant}",
}


def _test(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not (_is_tuple(answer) and len(answer) == 2 and callable(answer[1]) and not isinstance(answer[1], type)):
        yield Failure("not_a_pair", NOT_A_PAIR)
        return
    own, test = answer
    if next(_operation(own, draw), None) is not None:
        yield Failure("operation_not_ready", NOT_READY)
        return
    again = copy(own)
    for seed in (0, 1):  # a test that is right by luck is not
        for right in (again, _behind(own, again.backward)):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(draw.seed + seed)
                error = objection(test, right)
            if error is not None:
                yield Failure("right_refused", REFUSED, {"error": error})
                return
    with torch.random.fork_rng(devices=[]):  # the same points for the same submission
        torch.manual_seed(draw.seed)
        yield from _survivors(own, test, draw.seed)


def _survivors(own: Any, test: Any, seed: int) -> Iterator[Failure]:
    """Yield what gets through: of spoilt gradients, which are the same for all operations, then of drawn mutants."""
    made, right = _of_own(own, seed), own.backward
    told = {"whole": len(made), "needed": NEEDED}
    spoilt = list(_spoilt(own, right))
    through = [failure for failure, backward in spoilt if not kills(test, _behind(own, backward))]
    if through:
        yield through[0] if len(through) < len(spoilt) else Failure("none_killed", NONE_KILLED)
        return
    surviving = [mutant for mutant in made if not kills(test, _behind(own, mutant.function.backward))]
    if len(made) - len(surviving) < NEEDED:
        yield Failure("survivors", FEW, {**told, "killed": len(made) - len(surviving), "mutant": surviving[0]})
        return
    for mutant in made:  # whoever changes the operation changes it where it stands
        if mutant not in surviving:
            with backward_set(own, _hidden(mutant.function.backward)):
                if not kills(test, own):
                    yield Failure("judged_by_itself", BY_ITSELF, {"mutant": mutant})
                    return


def _behind(own: Any, backward: Any) -> Any:
    """Return the Function with this backward, behind a line that is the same for all: what it does has to tell."""
    return type(own.__name__, (own,), {"backward": _hidden(backward)})


def _hidden(backward: Any) -> Any:
    def hidden(ctx: Any, *grads: Any) -> Any:
        return backward(ctx, *grads)

    return staticmethod(hidden)


def _spoilt(own: Any, backward: Any) -> Iterator[tuple[Failure, Any]]:
    """Yield backwards whose gradient of one input is spoilt, or of all, with the failure of a test that accepts it."""
    count = sum(map(is_float, own.example(0)))

    def spoil(change: Callable[[Tensor], Tensor | None], chosen: Collection[int]) -> Any:
        def spoilt(ctx: Any, *grads: Any) -> Any:
            found = backward(ctx, *grads)
            given = found if isinstance(found, tuple) else (found,)
            tensor = itertools.count()
            return tuple(change(x) if isinstance(x, Tensor) and next(tensor) in chosen else x for x in given)

        return spoilt

    yield Failure("survivors", LEFT_OUT), spoil(lambda _: None, range(count))
    yield Failure("survivors", ZERO), spoil(torch.zeros_like, range(count))
    for k in range(count):
        yield Failure("survivors", DOUBLED, {"number": k + 1}), spoil(lambda x: 2 * x, [k])

    def averaged(ctx: Any, *grads: Any) -> Any:
        return backward(ctx, *(g.mean().expand_as(g) for g in grads))

    if not same_gradients(_behind(own, averaged), own, _examples(own)):  # else there is nothing to be seen
        yield Failure("survivors", AVERAGED), averaged


EXERCISES = (
    Exercise("telling_inputs", "telling", "custom", own=_telling),
    Exercise("own_operation", "Own", "custom", own=_operation, inside=True, points=2),
    Exercise("own_test", "shipped", "custom", own=_test, points=2),
)
