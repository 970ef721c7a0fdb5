"""Check of a layer with parameters: ``linear_module`` and ``repair_module``."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Failure

INS, OUTS = 4, 3


def says(code: str, en: str, zh: str, **params: Any) -> Failure:
    """A failure in both languages."""
    return Failure(code, {"en": en, "zh": zh}, params)


def layer(answer: Any, draw: Draw) -> Iterator[Failure]:
    """A linear layer of 4 inputs and 3 outputs, with and without bias: the first thing that is wrong."""
    for check in (_is_module, _registers, _may_do_without_bias, _computes, _learns, _converts, _starts_well, _speaks):
        found = list(check(answer, draw))
        if found:
            yield found[0]
            return


def _made(answer: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return answer(INS, OUTS, **options)


def _is_module(answer: Any, draw: Draw) -> Iterator[Failure]:
    if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
        yield says(
            "not_a_module",
            "A subclass of nn.Module is wanted.",
            "需要一个 nn.Module 的子类。",
        )
        return
    try:
        made = _made(answer)
    except AttributeError as error:
        missing = "before Module.__init__" in str(error)
        yield says(
            "no_super_init" if missing else "cannot_be_made",
            "Making the layer raises: {error}. What must be called before the first parameter is set?"
            if missing
            else "Making the layer raises: {error}.",
            "创建这一层时抛出：{error}。设置第一个参数之前，必须先调用什么？"
            if missing
            else "创建这一层时抛出：{error}。",
            error=str(error),
        )
        return
    except Exception as error:
        yield says(
            "cannot_be_made",
            "{call} raises {kind}: {error}",
            "{call} 抛出 {kind}：{error}",
            call=f"{answer.__name__}({INS}, {OUTS})",
            kind=type(error).__name__,
            error=str(error).splitlines()[0],
        )
        return
    del made


def _registers(answer: Any, draw: Draw) -> Iterator[Failure]:
    shapes = {name: tuple(p.shape) for name, p in _made(answer).named_parameters()}
    if set(shapes) != {"weight", "bias"}:
        yield says(
            "not_registered",
            "named_parameters() lists {got}; weight and bias are wanted. What makes an attribute a parameter?",
            "named_parameters() 列出的是 {got}，需要 weight 和 bias。怎样的属性才算参数？",
            got=", ".join(shapes) or "-",
        )
    elif shapes != {"weight": (OUTS, INS), "bias": (OUTS,)}:
        yield says(
            "wrong_shape",
            "For {ins} inputs and {outs} outputs the Function wants weight {want} and bias {one}; they are {got}.",
            "输入 {ins} 个、输出 {outs} 个时，Function 需要的 weight 是 {want}，bias 是 {one}；现在是 {got}。",
            ins=INS,
            outs=OUTS,
            want=(OUTS, INS),
            one=(OUTS,),
            got=shapes,
        )


def _may_do_without_bias(answer: Any, draw: Draw) -> Iterator[Failure]:
    try:
        without = _made(answer, bias=False)
        without(draw.normal(2, INS).float())
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


def _computes(answer: Any, draw: Draw) -> Iterator[Failure]:
    made = _made(answer)
    x = draw.normal(5, INS).float()
    got, expected = made(x), nn.functional.linear(x, made.weight, made.bias)
    if not isinstance(got, Tensor) or got.shape != expected.shape or not torch.allclose(got, expected, atol=1e-5):
        yield says(
            "output_wrong",
            "The output is not x times weight transposed, plus bias.",
            "输出不等于 x 乘以 weight 的转置再加 bias。",
        )


def _learns(answer: Any, draw: Draw) -> Iterator[Failure]:
    made = _made(answer)
    x, g = draw.normal(5, INS).float(), draw.normal(5, OUTS).float()
    made(x).backward(g)
    missing = [name for name, p in made.named_parameters() if p.grad is None]
    if missing:
        yield says(
            "no_gradient",
            "After backward `{name}` has no gradient: did forward use the parameter itself?",
            "反向传播之后，`{name}` 没有梯度：forward 用的是参数本身吗？",
            name=missing[0],
        )


def _converts(answer: Any, draw: Draw) -> Iterator[Failure]:
    made = copy.deepcopy(_made(answer)).double()
    try:
        fine = made(draw.normal(2, INS)).dtype == torch.float64
    except Exception:
        fine = False
    if not fine:
        yield says(
            "not_converted",
            "After .double() the layer does not take float64: something that it holds was left behind.",
            "调用 .double() 之后，这一层仍不接受 float64：它持有的某个东西没有跟着转换。",
        )


def _starts_well(answer: Any, draw: Draw) -> Iterator[Failure]:
    weight = _made(answer).weight.detach()
    if not bool(weight.isfinite().all()) or float(weight.std()) < 1e-3 or float(weight.abs().max()) > 10:
        yield says(
            "badly_initialised",
            "The weights of a new layer should be small random numbers; these are from {low:.3g} to {high:.3g}.",
            "新建一层时，权重应当是较小的随机数；现在的范围是 {low:.3g} 到 {high:.3g}。",
            low=float(weight.min()),
            high=float(weight.max()),
        )


def _speaks(answer: Any, draw: Draw) -> Iterator[Failure]:
    shown = repr(_made(answer, bias=False))
    wanted = (f"input_features={INS}", f"output_features={OUTS}", "bias=False")
    missing = [words for words in wanted if words not in shown.replace(" = ", "=")]
    if missing:
        yield says(
            "repr_silent",
            "print(layer) shows {got}; `{words}` should be in it.",
            "print(layer) 显示 {got}，里面应当有 `{words}`。",
            got=shown.replace("\n", " "),
            words=missing[0],
        )
