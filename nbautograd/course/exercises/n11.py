"""Exercises of notebook 11, code that is not PyTorch and numerical backwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.torch_private.library import implementation_of
from nbautograd.course.choices import wrong_choices
from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure, Texts
from nbautograd.course.exercises.shapes import of_sizes
from nbautograd.course.observer import ARITHMETIC, MOVING, Observer

BY_TORCH = {
    "en": "`{name}` of torch is called here. The numbers are to come from NumPy; torch only carries them in and out.",
    "zh": "这里调用了 torch 的 `{name}`。这道题要用 NumPy 算出这些数，torch 只负责把它们送进送出。",
}


def _computed_by_torch(call: Callable[..., Any], seen: Observer, allowed: Collection[str]) -> Iterator[Failure]:
    """Yield a failure when an answer's lines run an operation of torch that is not one of these."""
    with seen:
        call()
    other = [ran.name for ran in seen.operations if ran.line and ran.name not in {*allowed, "numpy"}]
    for name in other[:1]:
        yield Failure("computed_by_torch", BY_TORCH, {"name": name})


def _there_and_back(answer: Any, *inputs: Tensor) -> Callable[[], Any]:
    return lambda: torch.autograd.grad((y := answer.apply(*inputs)), inputs, torch.ones_like(y))


# numpy_softplus


def _softplus(x: Tensor) -> Tensor:
    return torch.nn.functional.softplus(x)


def _softplus_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    """Without dimensions, empty, transposed, and far out where a careless exp overflows."""
    yield (draw.normal(),)
    yield (draw.normal(0, 3),)
    yield (draw.normal(3, 4).t(),)
    yield (torch.tensor([-800.0, -30.0, 0.0, 30.0, 800.0], dtype=torch.float64),)


GIVES_SECOND = {
    "en": "A second derivative was asked for, with a grad_output that needs a gradient, and nobody refused: the share"
    " of this Function is simply missing. Which decorator refuses?",
    "zh": "在 grad_output 需要梯度的情况下要求二阶导数，却没有被拒绝：这个 Function 的那一份就这样丢了。"
    "哪个装饰器会拒绝？",
}


def _numpy_once(answer: Any, draw: Draw) -> Iterator[Failure]:
    """NumPy computes, and a second derivative is refused."""
    x, g = draw.normal(3).requires_grad_(), draw.normal(3).requires_grad_()
    yield from _computed_by_torch(_there_and_back(answer, x), Observer(answer), ARITHMETIC)
    (slope,) = torch.autograd.grad(answer.apply(x), x, g, create_graph=True)
    try:
        slope.sum().backward()
    except RuntimeError:
        return
    yield Failure("second_derivative_given", GIVES_SECOND)


# numpy_correlate


def _correlate(signal: Tensor, kernel: Tensor) -> Tensor:
    return torch.nn.functional.conv1d(signal[None, None], kernel[None, None])[0, 0]


def _correlate_inputs(draw: Draw) -> tuple[Any, ...]:
    kernel, more = draw.sizes(2)
    return draw.normal(kernel + more), draw.normal(kernel)


def _correlate_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    """A kernel of one, a kernel as long as the signal, every second element of something longer."""
    yield draw.normal(6), draw.normal(1)
    yield draw.normal(5), draw.normal(5)
    yield draw.normal(14)[::2], draw.normal(3)


def _numpy_alone(answer: Any, draw: Draw) -> Iterator[Failure]:
    signal, kernel = draw.normal(9).requires_grad_(), draw.normal(4).requires_grad_()
    yield from _computed_by_torch(_there_and_back(answer, signal, kernel), Observer(answer), MOVING)


# numerical_backward


class _BlackBox:
    """y_i = sin(a x_i) + b x_i times the mean of x, in NumPy: every output depends on every input.

    Attributes:
        a: drawn, as b is, anew for each box: nobody knows what is in it.
        points: where it was called.
    """

    def __init__(self, draw: Draw) -> None:
        self.a, self.b = (float(draw.uniform(0.5, 1.5)) for _ in range(2))
        self.points: list[Any] = []

    def __call__(self, x: Any) -> Any:
        self.points.append(np.array(x))
        return np.sin(self.a * x) + self.b * x * np.mean(x)


def _opened(box: Any, x: Tensor) -> Tensor:
    opened: Tensor = torch.sin(box.a * x) + box.b * x * x.mean()
    return opened


NOT_CENTRAL = {
    "en": "Central differences are asked for: backward should call `box` with element {number} of x a step ahead, and a"
    " step behind, and all others where they are. It did not.",
    "zh": "这里要用中心差分：backward 应当把 x 的第 {number} 个元素前移一步、后移一步，其余元素不动，各调用一次 `box`。"
    "实际并没有这样调用。",
}


def _central(answer: Any, draw: Draw) -> Iterator[Failure]:
    """Each element is moved to both sides, alone."""
    box, x = _BlackBox(draw), draw.normal(draw.choice(range(2, 4)), draw.choice(range(2, 4))).requires_grad_()
    y, here = answer.apply(box, x), x.detach().numpy()
    box.points.clear()
    torch.autograd.grad(y, x, draw.normal(*y.shape))
    moves = [point - here for point in box.points if point.shape == here.shape and not np.iscomplexobj(point)]
    for number in range(x.numel()):
        alone = [float(move.flat[number]) for move in moves if np.count_nonzero(move) == 1 and move.flat[number]]
        if not any(abs(step + other) < 0.01 * abs(step) for step in alone for other in alone):
            yield Failure("not_central", NOT_CENTRAL, {"number": number + 1})
            return


# when_numerical

CASES: dict[str, tuple[str, Texts]] = {  # case -> digest of the right choice, hint
    "check a backward in a test": (
        "58c44483d01218b0",
        {
            "en": "A few inputs, in float64, once: this is what a gradient check is.",
            "zh": "输入少、用 float64、只算一次：梯度检查本来就是这样。",
        },
    ),
    "a layer with a million inputs": (
        "3090bdc37a561559",
        {
            "en": "How many forward passes does one backward need there?",
            "zh": "那里做一次反向，需要多少次前向？",
        },
    ),
    "a closed simulator with 3 parameters, float64": (
        "81b40a52500a3e47",
        {
            "en": "Six more calls for a gradient that nothing else can give.",
            "zh": "多调用六次，就得到别处得不到的梯度。",
        },
    ),
    "training in float16": (
        "de63c6f1b633a059",
        {
            "en": "Where is the bottom of the error curve when there are three digits?",
            "zh": "只有三位有效数字时，误差曲线的最低点在哪里？",
        },
    ),
    "a simulator that draws new random numbers in each call": (
        "78f1a2333fd77d7c",
        {
            "en": "What is the difference of two calls made of, when the step is small?",
            "zh": "步长很小时，两次调用之差主要是什么？",
        },
    ),
    "a loss that needs second derivatives": (
        "4e6d6e0180014ffa",
        {
            "en": "What does once_differentiable say to a second backward?",
            "zh": "再次求导时，once_differentiable 会怎么说？",
        },
    ),
}


def _judges(answer: Any, draw: Draw) -> Iterator[Failure]:
    if not isinstance(answer, dict) or set(answer) != set(CASES):
        yield Failure(
            "cases_missing",
            {"en": "`verdicts` is a dict with the six cases as keys, as they are written above.",
             "zh": "`verdicts` 应当是一个字典，键就是上面写好的六种情形。"},
        )  # fmt: skip
        return
    undecided = [case for case, verdict in answer.items() if not isinstance(verdict, bool)]
    if undecided:
        yield Failure(
            "not_true_or_false",
            {
                "en": "{case}: True or False is wanted.",
                "zh": "{case}：请回答 True 或 False。",
            },
            {"case": undecided[0]},
        )
        return
    for case, why in wrong_choices("when_numerical", CASES, answer):
        texts = {lang: f"{{case}}: {said}" if lang == "en" else f"{{case}}：{said}" for lang, said in why.items()}
        yield Failure("accepts_too_much" if answer[case] else "refuses_too_much", texts, {"case": case})


def _calls(box: Callable[..., Any], x: Tensor) -> int:
    return 2 * x.numel() + 1


# library_op

PLAIN_FUNCTION = {
    "en": "`softplus` is a {got}. `torch.library.custom_op` gives an operation, with `register_fake` and"
    " `register_autograd`.",
    "zh": "`softplus` 是 {got}。`torch.library.custom_op` 得到的是一个运算，"
    "带有 `register_fake` 和 `register_autograd`。",
}
OPCHECK: dict[str, Texts] = {
    "test_schema": {
        "en": "opcheck, {dtype}: the operation does not keep what its schema promises. Does it change an argument, or"
        " return the memory of one? torch says: {said}",
        "zh": "opcheck，{dtype}：运算没有做到模式（schema）所承诺的。它是不是改动了参数，或者返回了参数的内存？"
        "torch 的说法：{said}",
    },
    "test_faketensor": {
        "en": "opcheck, {dtype}: what register_fake says of the result is not what comes out, or it says nothing."
        " torch says: {said}",
        "zh": "opcheck，{dtype}：register_fake 对结果的描述与实际结果不符，或者根本没有登记。torch 的说法：{said}",
    },
}
OPCHECK_OTHER = {
    "en": "opcheck, {dtype}: {test} does not pass. Which part has to run without numbers? torch says: {said}",
    "zh": "opcheck，{dtype}：{test} 没有通过。哪一部分要在没有数值的情况下运行？torch 的说法：{said}",
}


def _library_op(answer: Any, draw: Draw) -> Iterator[Failure]:
    """An operation that opcheck passes in both dtypes."""
    if not hasattr(answer, "register_autograd"):
        yield Failure("no_operation", PLAIN_FUNCTION, {"got": type(answer).__name__})
        return
    for dtype in (torch.float64, torch.float32):
        x = draw.normal(3, 4).to(dtype).requires_grad_()
        for test, outcome in torch.library.opcheck(answer, (x,), raise_exception=False).items():
            if outcome != "SUCCESS":
                said = re.sub(r" \(with implementation in <.*?>\)", "", " ".join(str(outcome).split()))[:160]
                params = {"dtype": str(dtype)[6:], "test": test, "said": said}
                yield Failure(test.replace("test_", "opcheck_"), OPCHECK.get(test, OPCHECK_OTHER), params)
                return
    x, implementation = draw.normal(3, 4), implementation_of(answer) or answer
    yield from _computed_by_torch(lambda: implementation(x), Observer(implementation), ARITHMETIC)


EXERCISES = (
    Exercise(
        "numpy_softplus",
        "Softplus",
        "value gradient linear unchanged dtypes own_function custom edges",
        _softplus,
        of_sizes(2),
        _softplus_edges,
        own=_numpy_once,
    ),
    Exercise(
        "numpy_correlate",
        "Correlate",
        "value gradient linear edges unchanged own_function custom",
        _correlate,
        _correlate_inputs,
        _correlate_edges,
        own=_numpy_alone,
    ),
    Exercise(
        "numerical_backward",
        "Numerical",
        "value gradient linear cost unchanged own_function custom edges",
        _opened,
        lambda draw: (_BlackBox(draw), draw.normal(*draw.sizes(1))),
        lambda draw: ((_BlackBox(draw), x) for x in (draw.normal(1), draw.normal(2, 3), draw.normal(8)[::2])),
        own=_central,
        forward_calls=_calls,
        precision=1e-6,
    ),
    Exercise(
        "library_op",
        "softplus",
        "value gradient linear own_function custom edges",
        formula=_softplus,
        inputs=of_sizes(2),
        edges=_softplus_edges,
        own=_library_op,
    ),
    Exercise("when_numerical", "verdicts", "custom", own=_judges),
)
