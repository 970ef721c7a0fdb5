"""Check of a layer with parameters: ``linear_module`` and ``repair_module``."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nbautograd.core.torch_private.nodes import graph_nodes
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Failure


def says(code: str, en: str, zh: str, **params: Any) -> Failure:
    """Return a failure in both languages."""
    return Failure(code, {"en": en, "zh": zh}, params)


def layer(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Linear layers of a few sizes, with and without bias: the first thing that is wrong."""
    for sizes in ((4, 3), *((draw.choice(range(1, 8)), draw.choice(range(1, 8))) for _ in range(3))):
        make = _Maker(answer, *sizes)
        for check in CHECKS:
            for failure in check(make, draw):
                yield failure
                return


@dataclass(frozen=True)
class _Maker:
    """The class of the answer, and the numbers of inputs and outputs of its layers."""

    answer: Any
    ins: int
    outs: int

    def __call__(self, seed: int = 0, **options: Any) -> Any:
        torch.manual_seed(seed)
        return self.answer(self.ins, self.outs, **options)


def _is_module(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    answer = make.answer
    if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
        yield says(
            "not_a_module",
            "A subclass of nn.Module is wanted.",
            "需要一个 nn.Module 的子类。",
        )
        return
    try:
        make()
    except Exception as error:
        missing = "before Module.__init__" in str(error)
        yield says(
            "no_super_init" if missing else "cannot_be_made",
            "{call} raises {kind}: {error}" + missing * ". What must be called before the first parameter is set?",
            "{call} 抛出 {kind}：{error}" + missing * "。设置第一个参数之前，必须先调用什么？",
            call=f"{answer.__name__}({make.ins}, {make.outs})",
            kind=type(error).__name__,
            error=f"{error}".partition("\n")[0],
        )


def _registers(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    shapes = {name: tuple(p.shape) for name, p in make().named_parameters()}
    if set(shapes) != {"weight", "bias"}:
        yield says(
            "not_registered",
            "named_parameters() lists {got}; weight and bias are wanted. What makes an attribute a parameter?",
            "named_parameters() 列出的是 {got}，需要 weight 和 bias。怎样的属性才算参数？",
            got=", ".join(shapes) or "[]",
        )
    elif shapes != {"weight": (make.outs, make.ins), "bias": (make.outs,)}:
        yield says(
            "wrong_shape",
            "For {ins} inputs and {outs} outputs the Function wants weight {want} and bias {one}; they are {got}.",
            "输入 {ins} 个、输出 {outs} 个时，Function 需要的 weight 是 {want}，bias 是 {one}；现在是 {got}。",
            ins=make.ins,
            outs=make.outs,
            want=(make.outs, make.ins),
            one=(make.outs,),
            got=shapes,
        )


def _runs(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Call a layer with a bias, so that what is said of one without is about the bias."""
    try:
        make()(draw.normal(2, make.ins).float())
    except Exception as error:
        yield says(
            "forward_raised",
            "{call} raises {kind}: {error}. Run that line in a cell of its own to see where.",
            "{call} 抛出 {kind}：{error}。把这一行单独放进一格运行，看看出在哪里。",
            call=f"{make.answer.__name__}({make.ins}, {make.outs})(torch.randn(2, {make.ins}))",
            kind=type(error).__name__,
            error=str(error).splitlines()[0].rstrip("."),
        )


def _may_do_without_bias(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    try:
        without = make(bias=False)
        without(draw.normal(2, make.ins).float())
    except Exception as error:
        yield says(
            "bias_false_raises",
            "With bias=False it raises {kind}: {error}. What is `bias`, and what is `self.bias`?",
            "bias=False 时抛出 {kind}：{error}。`bias` 是什么？`self.bias` 又是什么？",
            kind=type(error).__name__,
            error=str(error).splitlines()[0],
        )
        return
    if set(without.state_dict()) != {"weight"} or getattr(without, "bias", 0) is not None:
        yield says(
            "bias_false_ignored",
            "With bias=False the state_dict holds {got}, and `bias` is {kind}; only weight is wanted, and None.",
            "bias=False 时 state_dict 里有 {got}，`bias` 是 {kind}；应当只有 weight，而 bias 为 None。",
            got=", ".join(without.state_dict()),
            kind=type(getattr(without, "bias", None)).__name__,
        )


def _computes(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Check the output, and every gradient of it."""
    for bias in (True, False):
        made = make(bias=bias)
        x = draw.normal(draw.choice(range(1, 7)), make.ins).float().requires_grad_()
        got, expected = made(x), nn.functional.linear(x, made.weight, made.bias)
        if not isinstance(got, Tensor) or got.shape != expected.shape or not torch.allclose(got, expected, atol=1e-5):
            yield says(
                "output_wrong",
                "The output is not x times weight transposed, plus bias.",
                "输出不等于 x 乘以 weight 的转置再加 bias。",
            )
            return
        leaves = dict(made.named_parameters()) | {"input": x}
        weights = torch.randn_like(expected)
        right = torch.autograd.grad(expected, list(leaves.values()), weights)
        found: tuple[Any, ...] = (None,) * len(leaves)
        if got.requires_grad:
            found = torch.autograd.grad(got, list(leaves.values()), weights, allow_unused=True)
        for name, mine, one in zip(leaves, found, right, strict=True):
            if mine is None:
                yield says(
                    "no_gradient",
                    "After backward `{name}` has no gradient: did forward use it as it is?",
                    "反向传播之后，`{name}` 没有梯度：forward 用的是它本身吗？",
                    name=name,
                )
                return
            if not torch.allclose(mine, one, atol=1e-5):
                yield says(
                    "gradient_wrong",
                    "The output is right, but the gradient of `{name}` is not. Is `{name}` itself handed to the"
                    " Function, once, and in its place?",
                    "输出是对的，但 `{name}` 的梯度不对。交给 Function 的是不是 `{name}` 本身？"
                    "是不是只交了一次，位置也对？",
                    name=name,
                )
                return


def _goes_through(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Check that a Function of Python gets the weight itself."""
    made, x = make(), draw.normal(5, make.ins).float()
    own = (node for node in graph_nodes((made(x),)) if hasattr(node, "_forward_cls"))
    if not any(getattr(node, "variable", None) is made.weight for one in own for node, _ in one.next_functions):
        yield says(
            "not_through_function",
            "The numbers are right, but they are torch's: no Function of yours gets `weight`."
            " The layer is to stand on the one that the notebook gives.",
            "数是对的，但用的是 torch 现成的运算：没有哪个自己的 Function 接收 `weight`。"
            "这一层要建立在笔记本给出的那个 Function 之上。",
        )


def _converts(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    made = copy.deepcopy(make()).double()
    try:
        got = str(made(draw.normal(2, make.ins)).dtype)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    if got != "torch.float64":
        yield says(
            "not_converted",
            "After .double() a float64 input should give float64, and gives {got}. Was something that the layer holds"
            " left behind, or does forward convert something itself?",
            "调用 .double() 之后，输入 float64 应当得到 float64，实际得到的是 {got}。"
            "是这一层持有的某个东西没有跟着转换，还是 forward 自己转换了什么？",
            got=got,
        )


def _starts_well(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Small numbers of both signs, other ones for each layer; told at a layer that is large enough to tell."""
    large = _Maker(make.answer, draw.choice(range(40, 60)), draw.choice(range(30, 50)))
    weight, other = large().weight.detach(), large(1).weight.detach()
    low, high, spread = float(weight.min()), float(weight.max()), float(weight.std())
    small = bool(weight.isfinite().all()) and spread > 1e-3 and max(-low, high) < 10
    varied = float((weight - other).std()) >= spread and len(weight.unique()) >= weight.numel() / 2
    if not (small and varied) or abs(float(weight.mean())) > spread / 2:
        yield says(
            "badly_initialised",
            "The weights of a new layer should be small random numbers, other ones for each layer; these are from"
            " {low:.3g} to {high:.3g}.",
            "新建一层时，权重应当是较小的随机数，每一层都不同；现在的范围是 {low:.3g} 到 {high:.3g}。",
            low=low,
            high=high,
        )


def _speaks(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    for bias in (False, True):
        shown = repr(make(bias=bias))
        wanted = (f"input_features={make.ins}", f"output_features={make.outs}", f"bias={bias}")
        missing = [words for words in wanted if words not in shown.replace(" = ", "=")]
        if missing:
            yield says(
                "repr_silent",
                "print(layer) shows {got}; `{words}` should be in it.",
                "print(layer) 显示 {got}，里面应当有 `{words}`。",
                got=shown.replace("\n", " "),
                words=missing[0],
            )
            return


CHECKS = (
    _is_module, _registers, _runs, _may_do_without_bias, _computes, _converts, _goes_through, _starts_well, _speaks,
)  # fmt: skip
