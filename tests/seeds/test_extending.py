"""The Chinese notes: setup_context, MulConstant in three forms, MyCube, a module, ``__torch_function__``."""

from __future__ import annotations

import pytest
from said import says

LINEAR = """\
%%autograd_function {line}
class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias

def linear(input, weight, bias=None):
    return LinearFunction.apply(input, weight, bias)
"""
POINT = """\
a = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
w = torch.randn(2, 4, dtype=torch.double, requires_grad=True)
bias = torch.randn(2, dtype=torch.double, requires_grad=True)
"""


def test_linear_with_setup_context_is_right_with_and_without_bias(notebook) -> None:
    notebook(POINT)
    for inputs in ("a, w, bias", "a, w, None"):
        ran = notebook(LINEAR.format(line=f"--inputs {inputs}"))
        assert says(ran.text, "views.headline.right", function="LinearFunction")
    assert notebook("%gradcheck linear(a, w)").result.result.verdict == "right"
    assert notebook("%gradcheck linear(a, weight=w, bias=bias)").result.result.verdict == "right"
    assert notebook("gradcheck(linear, (a, w), eps=1e-6, atol=1e-4)").result.result is True


COMBINED = """\
%%autograd_function
class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        return input.mm(weight.t()) if bias is None else input.mm(weight.t()) + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        # a gradient is returned for every tensor, needed or not
        return grad_output.mm(weight), grad_output.t().mm(input), None if bias is None else grad_output.sum(0)
"""


def test_the_combined_form_runs_and_func_grad_refuses_it_in_its_own_words(notebook) -> None:
    notebook(POINT)
    notebook(COMBINED)
    assert notebook("%gradcheck LinearFunction.apply(a, w, bias)").result.result.verdict == "right"
    ran = notebook("torch.func.grad(lambda w: LinearFunction.apply(a, w).sum())(w)")
    assert isinstance(ran.error, RuntimeError)
    assert "setup_context" in str(ran.error)


def test_a_gradient_for_a_tensor_that_needs_none_is_no_error(notebook) -> None:
    notebook(POINT)
    notebook(COMBINED)
    assert notebook("LinearFunction.apply(a.detach(), w, bias).sum().backward()").result.success
    assert notebook("%gradcheck LinearFunction.apply(a.detach(), w, bias)").result.result.verdict == "right"


MUL = """\
%%autograd_function {line}
class MulConstant(Function):
    @staticmethod
    def forward({ctx}tensor, constant):
        {keep_in_forward}
        return tensor * constant
{setup}
    @staticmethod
    def backward(ctx, grad_output):
        {guard}
        return grad_output * ctx.constant, {second}
"""
SETUP = """
    @staticmethod
    def setup_context(ctx, inputs, output):
        tensor, constant = inputs
        {materialize}
        ctx.constant = constant
"""
FORMS = {
    "setup_context": {"setup": SETUP.format(materialize="pass")},
    "not materialized": {
        "setup": SETUP.format(materialize="ctx.set_materialize_grads(False)"),
        "guard": "if grad_output is None: return None, None",
    },
    "combined": {"ctx": "ctx, ", "keep_in_forward": "ctx.constant = constant"},
}


def mul(line: str, **parts: str) -> str:
    return MUL.format(
        **{"line": line, "ctx": "", "keep_in_forward": "pass", "setup": "", "guard": "pass", "second": "None", **parts}
    )


@pytest.mark.parametrize("form", FORMS)
def test_mul_constant_is_right_in_three_forms(notebook, form: str) -> None:
    notebook("x = torch.randn(3, dtype=torch.double, requires_grad=True)")
    ran = notebook(mul("--inputs x, 3.5", **FORMS[form]))
    assert says(ran.text, "views.headline.right", function="MulConstant")
    ran = notebook("MulConstant.apply(x, 2.0).sum().backward(); x.grad.tolist()")
    assert ran.result.result == [2.0, 2.0, 2.0]


CUBE = """\
%%autograd_function --inputs x
class MyCube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        dx = 3 * x ** 2
        return x ** 3, dx

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, = inputs
        result, dx = output
        ctx.save_for_backward(x, dx)

    @staticmethod
    def backward(ctx, grad_output, grad_dx):
        x, dx = ctx.saved_tensors
        return {returned}

def my_cube(x):
    return MyCube.apply(x)[0]
"""


def test_my_cube_is_right_to_second_order(notebook) -> None:
    notebook("x = torch.randn(3, dtype=torch.double, requires_grad=True)")
    ran = notebook(CUBE.format(returned="grad_output * dx + grad_dx * 6 * x"))
    assert says(ran.text, "views.headline.right", function="MyCube")
    report = notebook("report = %gradcheck my_cube(x)\nreport").result.result
    assert report.verdict == "right"
    assert report.order2.verdict == "right"


def test_my_cube_without_grad_dx_passes_for_its_first_output_and_fails_to_second_order(notebook) -> None:
    notebook("x = torch.randn(3, dtype=torch.double, requires_grad=True)")
    ran = notebook(CUBE.format(returned="grad_output * dx"))
    assert says(ran.text, "views.headline.wrong_for", function="MyCube")  # its second output is ignored
    assert notebook("gradcheck(my_cube, (x,))").result.result is True
    assert notebook("torch.autograd.gradgradcheck(my_cube, (x,))").error is not None
    report = notebook("%gradcheck my_cube(x) --order 2").result.result
    assert report.verdict == "right"
    assert not report
    assert all(block.verdict == "match" for block in report.blocks.values())
    assert report.order2.verdict == "wrong"


MODULE = (
    LINEAR
    + """
class Linear(torch.nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super().__init__()
        self.sizes = input_features, output_features
        self.weight = torch.nn.Parameter(torch.empty(output_features, input_features).uniform_(-0.1, 0.1))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(output_features).uniform_(-0.1, 0.1))
        else:
            self.register_parameter("bias", None)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "input_features=%d, output_features=%d, bias=%s" % (*self.sizes, self.bias is not None)
"""
)


def test_the_module_works_and_its_function_is_recorded(notebook) -> None:
    notebook(MODULE.format(line=""))
    assert notebook("repr(Linear(4, 2))").result.result == "Linear(input_features=4, output_features=2, bias=True)"
    notebook("net = Linear(4, 2, bias=False).double()\nx = torch.randn(3, 4).double().requires_grad_()")
    notebook("loss = net(x).pow(2).sum()\nloss.backward()")
    assert notebook["net"].weight.grad.shape == (2, 4)
    assert [
        c.method for c in notebook("%autograd_calls LinearFunction").result.result if c.method != "setup_context"
    ] == ["forward", "backward"]
    assert notebook("%gradcheck net(x)").result.result.verdict == "right"
    drawn = notebook("y = net(x)\n%autograd_graph y").result.result
    assert any(node.name == "LinearFunctionBackward" for node in drawn.nodes)
    assert {leaf.label for leaf in drawn.leaves} == {"x", "weight"}


SCALAR_TENSOR = """\
%%autograd_function
HANDLED = {{}}

class ScalarTensor:
    def __init__(self, n, value):
        self._n, self._value = n, value

    def __repr__(self):
        return f"ScalarTensor(N={{self._n}}, value={{self._value}})"

    def tensor(self):
        return self._value * torch.eye(self._n)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {{}}
        if func not in HANDLED or not all(issubclass(t, (torch.Tensor, ScalarTensor)) for t in types):
            {otherwise}
        return HANDLED[func](*args, **kwargs)

def implements(torch_function):
    def register(function):
        HANDLED[torch_function] = function
        return function
    return register

@implements(torch.mean)
def mean(input):
    return float(input._value) / input._n

def ensure_tensor(value):
    return value.tensor() if isinstance(value, ScalarTensor) else torch.as_tensor(value)

@implements(torch.add)
def add(input, other):
    try:
        if input._n == other._n:
            return ScalarTensor(input._n, input._value + other._value)
        raise ValueError("Shape mismatch!")
    except AttributeError:
        return torch.add(ensure_tensor(input), ensure_tensor(other))

s = ScalarTensor(2, 2)
"""
FALLBACK = "return func(*[a.tensor() if hasattr(a, 'tensor') else a for a in args], **kwargs)"


def test_scalar_tensor_runs_and_its_dispatches_are_traced(notebook) -> None:
    ran = notebook(SCALAR_TENSOR.format(otherwise="return NotImplemented"))
    assert ran.result.success
    assert "Tracing `ScalarTensor`" in ran.text
    assert notebook("torch.mean(ScalarTensor(5, 2))").result.result == 0.4
    assert repr(notebook("torch.add(s, s)").result.result) == "ScalarTensor(N=2, value=4)"
    assert notebook("torch.add(s, torch.ones(2, 2)).tolist()").result.result == [[3.0, 1.0], [1.0, 3.0]]
    ran = notebook("torch.mul(s, 3)")
    assert isinstance(ran.error, TypeError)
    assert "'torch.mul'" in str(ran.error)
    log = notebook("%autograd_dispatches ScalarTensor").result.result
    assert [(d.func, d.outcome, d.handler) for d in log] == [
        ("torch.mean", "returned", "mean"),
        ("torch.add", "returned", "add"),
        ("torch.add", "returned", "add"),
        ("torch.mul", "NotImplemented", ""),
    ]


def test_the_fallback_converts_positional_arguments_and_recurses_on_others(notebook) -> None:
    notebook(SCALAR_TENSOR.format(otherwise=FALLBACK))
    assert notebook("torch.mul(s, s).tolist()").result.result == [[4.0, 0.0], [0.0, 4.0]]
    ran = notebook("""\
try:
    torch.stack([s, s])
except RecursionError as error:  # IPython takes long to draw such a traceback
    print(type(error).__name__)
""")
    assert ran.stdout == "RecursionError\n"
