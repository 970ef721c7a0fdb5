from __future__ import annotations

import pytest
import torch
from fn import Fn
from IPython.core.error import UsageError
from said import pattern

from nbautograd.magics.call_expression import EvaluationError, parse_call, read_inputs, read_reference

Linear = Fn.of(
    "Linear",
    "input, weight, bias=None: return input @ weight if bias is None else input @ weight + bias",
    "grad_output: return grad_output, grad_output, None",
)


A = torch.ones(2, 2, requires_grad=True)
B = torch.ones(2, 3, requires_grad=True)
NAMES = {
    "linear": Linear.apply,
    "Linear": Linear,
    "a": A,
    "b": B,
    "n": torch.arange(3),
    "x": torch.ones(2),
    "torch": torch,
}


def test_a_call_is_taken_apart() -> None:
    call = parse_call("linear(a, b.t().t(), bias=None)", "%gradcheck", NAMES)
    assert call.function is NAMES["linear"]
    assert call.arguments[0] is A
    assert call.arguments[2] is None
    assert call.function_text == "linear"
    assert call.names["a"] is A


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(linear(a, b) + 1).sum()", ("a", "b")), ("linear(a, b) + 1", ("a", "b")), ("-linear(a, b)[0]", ("a", "b")),
        ("b.t().sin()", ("b",)), ("linear(a, b).mul(linear(a, b)).sum()", ("a", "b")),
    ],
)  # fmt: skip
def test_what_is_computed_of_a_call_is_a_function_of_its_tensors(text: str, names: tuple[str, ...]) -> None:
    call = parse_call(text, "%gradcheck", NAMES)
    assert [argument is NAMES[name] for argument, name in zip(call.arguments, names, strict=True)]
    assert torch.equal(call.function(*call.arguments), eval(text, dict(NAMES)))


def test_stars_and_keywords_find_their_places() -> None:
    call = parse_call("linear(*(a, b))", "%gradcheck", NAMES)
    assert call.arguments[1] is B
    call = parse_call("linear(weight=b, input=a)", "%gradcheck", NAMES)
    assert call.arguments[0] is A
    assert call.arguments[1] is B


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("", "no_call", {"example": "%gradcheck linear(a, b)"}),
        ("linear", "not_a_call", {"text": "linear", "call": "linear(input, weight)"}),
        ("Linear", "not_a_call", {"text": "Linear", "call": "Linear.apply(input, weight)"}),
        ("n", "not_a_call", {"text": "n", "call": "linear(a, b)"}),
        ("linear, (a, b)", "not_a_call", {}),
        ("linear(a, b", "not_expression", {"text": "linear(a, b"}),
        ("a(b)", "not_callable", {"text": "a", "type": "Tensor"}),
        ("n.shape(a)", "not_callable", {"text": "n.shape", "type": "Size"}),
        ("linear(a, b, wrong=1)", "does_not_fit", {"reason": "got an unexpected keyword argument 'wrong'"}),
        ("torch.mul(a, other=b)", "by_keyword", {"names": "other"}),
    ],
)
def test_what_is_no_call_is_answered(text: str, key: str, told: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=pattern(f"magics.{key}", **told)):
        parse_call(text, "%gradcheck", NAMES)


def test_an_argument_that_raises_is_the_users() -> None:
    with pytest.raises(EvaluationError, match="ZeroDivisionError: division by zero"):
        parse_call("linear(1 / 0)", "%gradcheck", NAMES)


def test_an_error_whose_words_leave_the_program_is_named_alone() -> None:
    class RudeError(Exception):
        def __str__(self) -> str:
            raise SystemExit

    def rude() -> None:
        raise RudeError

    with pytest.raises(EvaluationError, match=r"^RudeError: $"):
        parse_call("linear(rude())", "%gradcheck", {**NAMES, "rude": rude})


@pytest.mark.parametrize(
    "text", ["a, b", "(a, b)", "{'input': a, 'weight': b}", "tuple([a, b])", "*[a, b]", "a, *(b,)", "*(a, b), None"]
)
def test_inputs_are_a_tuple_or_a_dict(text: str) -> None:
    values = read_inputs(text, Linear, NAMES).values
    assert values[0] is A
    assert values[1] is B


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("a, bb", "did_you_mean", {"near": "b"}),
        ("a, zzz", "inputs_undefined", {"name": "zzz"}),
        ("a, 1 / 0", "inputs_failed", {"error": "ZeroDivisionError: division by zero"}),
        ("*pair, a", "inputs_undefined", {"name": "pair"}),
        ("a, b)", "not_expression", {"text": "a, b)", "reason": "unmatched ')'"}),
        ("a", "inputs_do_not_fit", {"given": 1, "reason": "missing a required argument: 'weight'"}),
        ("a, b, a, b", "inputs_do_not_fit", {"given": 4, "reason": "too many positional arguments"}),
    ],
)
def test_inputs_that_cannot_be_used_are_answered(text: str, key: str, told: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=pattern(f"magics.{key}", **told)) as caught:
        read_inputs(text, Linear, NAMES)
    assert "\n" not in str(caught.value)


def test_a_reference_is_a_function_or_an_expression_of_the_inputs() -> None:
    inputs = read_inputs("a, b", Linear, NAMES)
    assert read_reference("torch.mm", inputs, NAMES) is torch.mm
    product = read_reference("a @ b", inputs, NAMES)
    assert product(2 * torch.eye(2), B).equal(2 * B[:2])
    for text, key in (("n", "reference_not_callable"), ("zz", "reference_failed")):
        with pytest.raises(UsageError, match=pattern(f"magics.{key}")):
            read_reference(text, inputs, NAMES)
