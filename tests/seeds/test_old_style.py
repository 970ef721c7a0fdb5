"""The note for old torch: Functions with ``__init__`` and instance methods, explained and migrated."""

from __future__ import annotations

import pytest
from said import says

LEGACY = {
    "Linear": """\
class Linear(Function):
    def forward(self, input, weight, bias=None):
        self.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    def backward(self, grad_output):
        input, weight, bias = self.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if self.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if self.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and self.needs_input_grad[2]:
            grad_bias = grad_output.sum(0).squeeze(0)
        return grad_input, grad_weight, grad_bias
""",
    "AddConstant": """\
class AddConstant(Function):
    def __init__(self, constant):
        super().__init__()
        self.constant = constant

    def forward(self, tensor):
        return tensor + self.constant

    def backward(self, grad_output):
        return grad_output
""",
    "Transpose": """\
class Transpose(Function):
    def __init__(self, first, second):
        super().__init__()
        self.first = first
        self.second = second

    def forward(self, tensor):
        return tensor.transpose(self.first, self.second).clone()

    def backward(self, grad_output):
        return grad_output.transpose(self.first, self.second)
""",
}
OLD_CALLS = {"Linear": "Linear()(x, w)", "AddConstant": "AddConstant(2.0)(x)", "Transpose": "Transpose(0, 1)(x)"}
NEW_CALLS = {
    "Linear": "Linear.apply(x, w)",
    "AddConstant": "AddConstant.apply(x, 2.0)",
    "Transpose": "Transpose.apply(x, 0, 1)",
}
POINT = "x = torch.randn(3, 4).double().requires_grad_()\nw = torch.randn(2, 4).double().requires_grad_()"


@pytest.fixture
def next_input(notebook) -> list[str]:
    texts: list[str] = []
    notebook.shell.set_next_input = lambda text, replace=False: texts.append(text)
    yield texts
    del notebook.shell.set_next_input


@pytest.mark.parametrize("name", LEGACY)
def test_an_old_function_is_explained_and_its_migration_runs(notebook, next_input, name: str) -> None:
    notebook(POINT)
    ran = notebook("%%autograd_function --inputs x, w\n" + LEGACY[name])
    assert ran.result.success
    assert says(ran.text, "magics.migrated", function=name)
    migrated = next_input[0]
    assert "@staticmethod" in migrated
    assert migrated.strip() in ran.text
    old = notebook(OLD_CALLS[name])
    assert isinstance(old.error, RuntimeError)
    assert "Legacy autograd function" in str(old.error)
    assert notebook("%%autograd_function\n" + migrated).result.success
    assert notebook(f"%gradcheck {NEW_CALLS[name]}").result.result.verdict == "right"


def test_the_migration_is_offered_as_a_new_cell_once(notebook, next_input) -> None:
    for _ in range(3):
        notebook("%%autograd_function\n" + LEGACY["AddConstant"])
    assert len(next_input) == 1


SHADOWED = """\
%%autograd_function
class Linear(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()

    def forward(self, x):
        return Linear()(x)
"""
NO_SUPER = """\
%%autograd_function
class Linear(torch.nn.Module):
    def __init__(self, sizes):
        self.weight = torch.nn.Parameter(torch.ones(sizes))
"""


@pytest.mark.parametrize(
    ("cell", "call", "error"), [(SHADOWED, "Linear(3)(x)", TypeError), (NO_SUPER, "Linear(3)", AttributeError)]
)
def test_the_old_modules_bugs_raise_as_they_do_without_the_magic(notebook, cell: str, call: str, error: type) -> None:
    notebook(POINT)
    assert says(notebook(cell).text, "magics.no_function")
    assert isinstance(notebook(call).error, error)
