"""The lecture: order of calls, KillHead with its loop, |uv| away from and at its kink."""

from __future__ import annotations

from said import says

KILL_HEAD = """\
%%autograd_function {line}
class KillHead(Function):
    @staticmethod
    def forward(ctx, input, n):
        ctx.n = n
        result = input.clone()
        result[:, 0:ctx.n] = 0
        return result

    @staticmethod
    def backward(ctx, grad_output):
        result = grad_output.clone()
        result[:, 0:ctx.n] = 0
        return result, None

killhead = KillHead.apply
"""
LOOP = """\
y = torch.randn(3, 8)
x = torch.randn(3, 8).requires_grad_()
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD([x], lr=1.0)
losses = []
for k in range(5):
    loss = criterion(killhead(x, 2), y)
    losses.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_killhead_is_right(notebook) -> None:
    notebook("x = torch.empty(10, 20, dtype=torch.float64).uniform_(-1, 1).requires_grad_()")
    ran = notebook(KILL_HEAD.format(line="--inputs x, 4"))
    assert says(ran.text, "views.headline.right", function="KillHead")
    assert notebook("gradcheck(killhead, (x, 4), eps=1e-6, atol=1e-4)").result.result is True


def test_the_loop_trains_as_ever_and_its_calls_are_recorded(notebook) -> None:
    notebook(KILL_HEAD.format(line=""))
    notebook("torch.manual_seed(1)\n" + LOOP)
    recorded = list(notebook["losses"])
    log = notebook("%autograd_calls KillHead").result.result
    assert [call.method for call in log] == ["forward", "backward"] * 5
    assert log[0].ctx.attributes["n"].repr == "2"
    assert recorded == sorted(recorded, reverse=True)
    notebook("%unload_ext nbautograd")
    notebook(KILL_HEAD.removeprefix("%%autograd_function {line}\n"))
    notebook("torch.manual_seed(1)\n" + LOOP)
    assert recorded == notebook["losses"]  # bit by bit the same without us


def test_the_engine_calls_backward_with_the_ctx_of_forward(notebook) -> None:
    ran = notebook("""\
%%autograd_function
class Dummy(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output

y = Dummy.apply(torch.ones(2, requires_grad=True))
print(y.grad_fn.name())
y.sum().backward()
""")
    assert ran.stdout == "DummyBackward\n"
    forward, backward = notebook("%autograd_calls Dummy").result.result
    assert (forward.method, backward.method, backward.forward) == ("forward", "backward", forward.index)


ABS_PRODUCT = """\
%%autograd_function --inputs u, v
class AbsProduct(Function):
    @staticmethod
    def forward(ctx, u, v):
        ctx.save_for_backward(u, v)
        return (u * v).abs()

    @staticmethod
    def backward(ctx, grad_output):
        u, v = ctx.saved_tensors
        sign = torch.where(u * v < 0, -1.0, 1.0)
        return grad_output * sign * v, grad_output * sign * u
"""
POINT = """\
u = torch.tensor([{first}., -2., 3.]).double().requires_grad_()
v = torch.tensor([-1., 2., 5.]).double().requires_grad_()
"""


def test_the_absolute_product_is_right_away_from_its_kink(notebook) -> None:
    notebook(POINT.format(first=1))
    assert says(notebook(ABS_PRODUCT).text, "views.headline.right", function="AbsProduct")


def test_at_the_kink_nobody_calls_it_wrong(notebook) -> None:
    notebook(POINT.format(first=0))
    ran = notebook(ABS_PRODUCT)
    assert not says(ran.text, "views.headline.wrong_for")
    assert "kink" in ran.text
    assert notebook("gradcheck(AbsProduct.apply, (u, v))").error is not None  # which is all that torch says


def test_in_float32_the_check_says_that_digits_are_missing_or_agrees(notebook) -> None:
    notebook("x = torch.empty(4, 5).uniform_(-1, 1).requires_grad_()")
    ran = notebook(KILL_HEAD.format(line="--inputs x, 4"))
    assert not says(ran.text, "views.headline.wrong_for")
