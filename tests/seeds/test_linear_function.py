"""The LinearFunction notebook: right and wrong backward told apart, Exp."""

from __future__ import annotations

import pytest
from said import says

LINEAR = """\
%%autograd_function {line}
class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight)
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        print("forward gives", tuple(output.shape))
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight.t())
        if ctx.needs_input_grad[1]:
            grad_weight = {grad_weight}
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = {grad_bias}
        print("backward got", tuple(grad_output.shape))
        return grad_input, grad_weight, grad_bias

linear = LinearFunction.apply
"""
RIGHT, WRONG = "input.t().mm(grad_output)", "input.mm(grad_output)"
INPUTS = """\
a = torch.arange(4).view(2, 2).double().requires_grad_()
b = torch.arange(6).view(2, 3).double().requires_grad_()
bias = torch.ones(3).double().requires_grad_()
"""


def linear(line: str, grad_weight: str = RIGHT, grad_bias: str = "grad_output.sum(0).squeeze(0)") -> str:
    return LINEAR.format(line=line, grad_weight=grad_weight, grad_bias=grad_bias)


def test_the_right_backward_is_called_right(notebook) -> None:
    notebook(INPUTS)
    ran = notebook(linear("--inputs a, b"))
    assert ran.result.success
    assert says(ran.text, "views.headline.right", function="LinearFunction")
    assert ran.stdout == ""  # the check's own calls print nothing


def test_the_wrong_backward_is_called_wrong_and_the_cause_named(notebook) -> None:
    notebook(INPUTS)
    ran = notebook(linear("--inputs a, b", WRONG))
    assert says(ran.text, "views.headline.wrong_for", function="LinearFunction", inputs="`weight`")
    assert says(ran.text, "views.aside.right.one", inputs="`input`")
    assert "input.t().mm(grad_output)" in ran.text
    assert notebook("gradcheck(linear, (a, b))").error is not None  # torch says no as well


def test_a_symmetric_input_hides_the_wrong_backward_from_torch(notebook) -> None:
    notebook("a = torch.tensor([[0., 1.], [1., 3.]]).double().requires_grad_()")
    notebook("b = torch.ones(2, 3).double().requires_grad_()")
    notebook(linear("", WRONG))
    assert notebook("gradcheck(linear, (a, b))").result.result is True


def test_on_a_matrix_that_is_not_square_the_wrong_backward_raises(notebook) -> None:
    notebook("a = torch.ones(4, 2).double().requires_grad_()\nb = torch.ones(2, 3).double().requires_grad_()")
    ran = notebook(linear("--inputs a, b", WRONG))
    assert ran.result.success  # the error is the Function's; it stands in the report
    assert says(ran.text, "views.headline.raises", function="LinearFunction")
    assert "RuntimeError" in ran.text


def test_the_demonstration_with_ones_runs_as_ever_and_shows_in_the_card(notebook) -> None:
    notebook(INPUTS)
    ran = notebook(linear("") + "output = linear(a, b)\ntorch.sum(output).backward()\na.grad, b.grad")
    assert ran.stdout.startswith("forward gives (2, 3)\nbackward got (2, 3)\n")
    assert notebook["a"].grad.tolist() == [[3, 12], [3, 12]]
    assert notebook["b"].grad.tolist() == [[2, 2, 2], [4, 4, 4]]
    assert says(ran.text, "magics.card_called", names="`LinearFunction`")
    assert says(ran.text, "views.headline.calls", calls="calls: 2")
    assert "forward gives (2, 3)" in ran.text


@pytest.mark.parametrize("out_features", [3, 1])
def test_the_squeezed_bias_gradient_fails_for_one_output_feature(notebook, out_features: int) -> None:
    notebook(
        f"a = torch.randn(2, 2).double().requires_grad_()\nb = torch.randn(2, {out_features}).double().requires_grad_()"
    )
    notebook(f"bias = torch.randn({out_features}).double().requires_grad_()")
    ran = notebook(linear("--inputs a, b, bias"))
    assert says(ran.text, "views.headline.right") is (out_features == 3)
    whole = notebook(linear("--inputs a, b, bias", grad_bias="grad_output.sum(0)"))
    assert says(whole.text, "views.headline.right")


EXP = """\
%%autograd_function --inputs x
class Exp(Function):
    @staticmethod
    def forward(ctx, input):
        output = input.exp()
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        output, = ctx.saved_tensors
        return grad_output * output

exp = Exp.apply
"""


def test_exp_that_saves_its_output(notebook) -> None:
    notebook("x = torch.Tensor([2]).squeeze().double().requires_grad_()")
    ran = notebook(EXP)
    assert says(ran.text, "views.headline.right", function="Exp")
    assert says(ran.text, "views.evidence.order2.right")
    ran = notebook("output = exp(x); output.backward(); x.grad.item()")
    assert ran.result.result == pytest.approx(7.38905609893065)
