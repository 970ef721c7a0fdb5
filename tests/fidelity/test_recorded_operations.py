"""Operations of torch.library do the same with and without recording, bit for bit, and are as they were afterwards."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import nbautograd
from nbautograd.core.recording import api


@torch.library.custom_op("nbautograd_fidelity::swish", mutates_args=())
def swish(x: Tensor, beta: float = 2.0) -> Tensor:
    return x * torch.sigmoid(beta * x)


@swish.register_fake
def _(x, beta=2.0):
    return torch.empty_like(x)


def swish_setup(ctx, inputs, output):
    x, ctx.beta = inputs
    ctx.save_for_backward(x)


def swish_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    s = torch.sigmoid(ctx.beta * x)
    return grad * (s + ctx.beta * x * s * (1 - s)), None


def swish_vmap(info, in_dims, x, beta=2.0):
    return swish(x, beta), in_dims[0]


swish.register_autograd(swish_backward, setup_context=swish_setup)
swish.register_vmap(swish_vmap)


@torch.library.custom_op("nbautograd_fidelity::thrice", mutates_args=(), device_types="cpu")
def thrice(x: Tensor) -> Tensor:
    return x * 3


thrice.register_autograd(lambda ctx, grad: grad * 3)


@torch.library.custom_op("nbautograd_fidelity::scaled", mutates_args=())
def scaled(x: Tensor, *, by: float) -> tuple[Tensor, Tensor]:
    return x * by, x.detach() + by


def scaled_setup(ctx, inputs, keyword_only_inputs, output):
    ctx.by = keyword_only_inputs["by"]
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


scaled.register_autograd(lambda ctx, grad, _: grad * ctx.by, setup_context=scaled_setup)


# the schema is given since torch 2.6 makes none of list[Tensor]
@torch.library.custom_op("nbautograd_fidelity::joined", mutates_args=(), schema="(Tensor[] xs, Tensor y) -> Tensor")
def joined(xs: list[Tensor], y: Tensor) -> Tensor:
    return torch.stack([*xs, y]).sum(0)


def joined_setup(ctx, inputs, output):
    ctx.count = len(inputs[0])


joined.register_autograd(
    lambda ctx, grad: ([grad.clone() for _ in range(ctx.count)], grad * 1), setup_context=joined_setup
)


@torch.library.custom_op("nbautograd_fidelity::raising", mutates_args=())
def raising(x: Tensor, where: str) -> Tensor:
    if where == "forward":
        raise ZeroDivisionError(where)
    return x if where == "alias" else x + 1


def raising_setup(ctx, inputs, output):
    ctx.where = inputs[1]
    if ctx.where == "setup_context":
        raise ZeroDivisionError(ctx.where)


def raising_backward(ctx, grad):
    if ctx.where == "backward":
        raise ZeroDivisionError(ctx.where)
    return grad  # one gradient too few


raising.register_autograd(raising_backward, setup_context=raising_setup)

OPERATIONS = (swish, thrice, scaled, joined, raising)


def graph(tensor: Tensor) -> list[str]:
    names, nodes = [], [tensor.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None:
            names.append(node.name())
            nodes += [following for following, _ in node.next_functions]
    return names


def differentiated(call: Callable[[Tensor, Tensor], Any]) -> list[Any]:
    x = torch.linspace(-1, 1, 6, dtype=torch.double).requires_grad_()
    y = torch.linspace(2, 3, 6, dtype=torch.double).requires_grad_()
    outputs = call(x, y)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    first = torch.autograd.grad(outputs[0].square().sum(), (x, y), create_graph=True, allow_unused=True)
    second = torch.autograd.grad(first[0].sum(), (x, y), allow_unused=True)
    return [*outputs, *first, *second, *graph(outputs[0])]


def on_meta() -> list[Any]:
    x = torch.ones(3, device="meta", requires_grad=True)
    return [swish(x).shape, graph(swish(x))]


def batched() -> list[Any]:
    x = torch.linspace(-1, 1, 6).requires_grad_()
    batch = torch.func.vmap(swish, (0, None))(x, 2.0)
    return [batch, *torch.autograd.grad(batch.sum(), x), *graph(batch)]


def without_grad() -> list[Any]:
    x = torch.linspace(-1, 1, 6, requires_grad=True)
    with torch.no_grad():
        plain = swish(x), joined([x, x], x), *scaled(x, by=2.0)
    with torch.inference_mode():
        return [*plain, swish(x), thrice(x)]


def with_hooks() -> list[Any]:
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t * 1):
        return [differentiated(lambda x, y: swish(x)), packed]


def compiled() -> list[Any]:
    torch._dynamo.reset()
    fast = torch.compile(lambda x, y: swish(x, 0.5) * y, backend="aot_eager", fullgraph=True)
    x, y = torch.linspace(-1, 1, 6).requires_grad_(), torch.ones(6)
    outputs = fast(x, y), fast(x * 2, y)
    return [*outputs, *torch.autograd.grad(outputs[0].sum() + outputs[1].sum(), x)]


def opchecked() -> list[Any]:
    return [torch.library.opcheck(swish, (torch.randn(3, requires_grad=True), 2.0))]


WAYS: dict[str, Callable[[], list[Any]]] = {
    "plain": lambda: differentiated(lambda x, y: swish(x, 1.5)),
    "a default": lambda: differentiated(lambda x, y: swish(x)),
    "no setup_context": lambda: differentiated(lambda x, y: thrice(x)),
    "keyword-only": lambda: differentiated(lambda x, y: scaled(x, by=2.5)),
    "lists": lambda: differentiated(lambda x, y: joined([x, y, x], y)),
    "the overload": lambda: differentiated(lambda x, y: torch.ops.nbautograd_fidelity.swish(x * y, 3.0)),
    "meta": on_meta,
    "vmap": batched,
    "no grad": without_grad,
    "hooks": with_hooks,
    "compiled": compiled,
    "opcheck": opchecked,
}


@pytest.fixture
def recorded():
    yield lambda: [nbautograd.instrument(op) for op in OPERATIONS]
    for op in OPERATIONS:
        nbautograd.uninstrument(op)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and a.requires_grad == b.requires_grad and torch.equal(a, b)
    return len(a) == len(b) and all(map(same, a, b)) if isinstance(a, (list, tuple)) else a == b


@pytest.mark.parametrize("way", WAYS)
def test_results_gradients_and_graph_are_the_same(recorded, way: str) -> None:
    torch.manual_seed(0)
    bare = WAYS[way]()
    recorded()
    torch.manual_seed(0)
    assert same(WAYS[way](), bare)
    assert not api._recorder.errors


def what_is_raised(where: str) -> tuple[Any, ...]:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        raising(x, where).sum().backward()
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    return type(caught.value), str(caught.value), frames


@pytest.mark.parametrize("where", ["forward", "setup_context", "backward", "alias", "too few gradients"])
def test_errors_are_the_same(recorded, where: str) -> None:
    bare = what_is_raised(where)
    recorded()
    kind, text, frames = what_is_raised(where)
    assert (kind, text) == bare[:2]
    assert [name for name in frames if name != "run"] == bare[2]


def test_each_operation_is_afterwards_as_it_was(recorded) -> None:
    before = [(type(op), dict(vars(op)), dict(op._backend_fns), op._backend_fns) for op in OPERATIONS]
    recorded()
    WAYS["plain"]()
    WAYS["keyword-only"]()
    torchs = type(swish(torch.ones(2, requires_grad=True)).grad_fn)
    for op in OPERATIONS:
        nbautograd.uninstrument(op)
    for op, (kind, kept, kernels, by_device) in zip(OPERATIONS, before, strict=True):
        assert type(op) is kind
        assert vars(op) == kept
        assert op._backend_fns is by_device
        assert by_device == kernels
    assert "materialize_grads" not in vars(torchs)
