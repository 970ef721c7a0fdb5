"""The blog post: f(a, b) = a * b beside native ``*``, and its open question about a numerical backward."""

from __future__ import annotations

import math

import pytest
from said import says

PRODUCT = """\
%%autograd_function --inputs a, b {line}
class f(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(b, a)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        b, a = ctx.saved_tensors
        return b * grad_output, a * grad_output
"""
INPUTS = """\
a = torch.tensor([2., -3.], dtype=torch.double, requires_grad=True)
b = torch.tensor([5., 0.5], dtype=torch.double, requires_grad=True)
"""


def test_the_custom_product_agrees_with_the_native_one(notebook) -> None:
    notebook(INPUTS)
    for line in ("--reference torch.mul", "--reference a * b"):
        ran = notebook(PRODUCT.format(line=line))
        assert says(ran.text, "views.headline.right", function="f")
        reference = line.removeprefix("--reference ")
        assert says(ran.text, "views.comparison.right", function="`f`", reference=f"`{reference}`")


def test_the_two_are_compared_by_a_line_magic(notebook) -> None:
    notebook(INPUTS)
    notebook(PRODUCT.format(line=""))
    for second in ("torch.mul(a, b)", "a * b", "torch.mul(b, a)"):
        compared = notebook(f"%autograd_compare f.apply(a, b) {second}").result.result
        assert compared.verdict == "right"
        assert compared.function == "f.apply"
    graphs = compared.graphs
    assert [len(graph.leaves) for graph in graphs] == [2, 2]
    differs = notebook("%autograd_compare f.apply(a, b) a + b").result.result
    assert differs.wrong


def test_a_numerical_backward_passes_as_gradcheck_does(notebook) -> None:
    notebook("x = torch.linspace(0.5, 2, 4).double().requires_grad_()")
    ran = notebook("""\
%%autograd_function --inputs x
class NumericalSin(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        eps = 1e-6
        return grad_output * (torch.sin(x + eps) - torch.sin(x - eps)) / (2 * eps)
""")
    assert says(ran.text, "views.headline.right", function="NumericalSin")
    assert notebook("gradcheck(NumericalSin.apply, (x,))").result.result is True


def test_the_graph_of_reverse_accumulation(notebook) -> None:
    notebook("w1 = torch.tensor(0.5, requires_grad=True)\nw2 = torch.tensor(3., requires_grad=True)")
    graph = notebook("w5 = torch.sin(w1) + w1 * w2\n%autograd_graph w5").result.result
    assert {node.name for node in graph.nodes} == {"AddBackward0", "SinBackward0", "MulBackward0", "AccumulateGrad"}
    assert {leaf.label for leaf in graph.leaves} == {"w1", "w2"}
    assert len([edge for edge in graph.edges if graph.nodes[edge.target].label == "w1"]) == 2  # two paths add up
    notebook("import nbautograd\ngraph = nbautograd.backward(w5)")
    gradients = {leaf.label: leaf.gradient.values[0] for leaf in notebook["graph"].leaves}
    assert gradients["w1"] == pytest.approx(math.cos(0.5) + 3)
    assert gradients["w2"] == pytest.approx(0.5)
