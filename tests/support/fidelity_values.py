"""Checks of the battery that compare numbers: outputs, gradients, counts of what autograd built."""

from __future__ import annotations

import threading

import fidelity_functions as make
import pytest
import torch
from torch.utils.checkpoint import checkpoint

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def bits(value):
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.detach().contiguous().numpy().tobytes()
    if isinstance(value, (tuple, list)):
        return tuple(bits(item) for item in value)
    return value


def leaf(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()


def run(cls, *inputs, **kwargs):
    out = cls.apply(*inputs, **kwargs)
    outs = out if isinstance(out, tuple) else (out,)
    loss = sum((o * (i + 1)).sum() for i, o in enumerate(outs) if o.requires_grad)
    leaves = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    return bits((out, torch.autograd.grad(loss, leaves, create_graph=False)))


RUNS = {
    "outputs and gradients": (make.mul, lambda: (leaf(3, 4), leaf(3, 4, seed=1))),
    "setup_context": (make.cube, lambda: (leaf(3, 4),)),
    "empty input": (make.mul, lambda: (leaf(0, 3), leaf(0, 3))),
    "scalar input": (make.mul, lambda: (leaf(), leaf(seed=1))),
    "variadic": (make.variadic, lambda: (leaf(3), leaf(3, seed=1), leaf(3, seed=2))),
    "vjp": (make.vjp_style, lambda: (leaf(3),)),
    "class methods": (make.class_methods, lambda: (leaf(3),)),
}
for name, (function, inputs) in RUNS.items():
    CHECKS[name] = lambda wrap, function=function, inputs=inputs: run(wrap(function()), *inputs())


@check
def bfloat16(wrap):
    x = leaf(5, dtype=torch.bfloat16)
    return bits(wrap(make.mul()).apply(x, x).float())


@check
def complex_input(wrap):
    x = torch.randn(4, dtype=torch.complex128, generator=torch.Generator().manual_seed(1)).requires_grad_()
    y = wrap(make.mul()).apply(x, x.conj())
    return bits(torch.view_as_real(y)), bits(torch.view_as_real(torch.autograd.grad(y.abs().sum(), x)[0]))


@check
def sparse_input(wrap):
    cls, x = wrap(make.mul()), torch.eye(3).to_sparse()
    return bits(cls.apply(x, x).to_dense())


@check
def meta_input(wrap):
    return tuple(wrap(make.mul()).apply(torch.empty(3, device="meta"), torch.empty(3, device="meta")).shape)


@check
def inference_mode(wrap):
    cls = wrap(make.mul())
    with torch.inference_mode():
        out = cls.apply(torch.ones(3), torch.ones(3))
    return bits(out.clone()), out.is_inference()


@check
def no_grad(wrap):
    cls = wrap(make.mul())
    with torch.no_grad():
        out = cls.apply(leaf(3), leaf(3))
    return out.requires_grad, out.grad_fn is None


def keywords_or_skip():
    """Skip where Function.apply takes none, as in torch 2.6."""
    try:
        make.mul().apply(torch.ones(1), y=torch.ones(1))
    except TypeError as error:
        pytest.skip(f"this torch: {error}")


@check
def keyword_arguments(wrap):
    keywords_or_skip()
    return run(wrap(make.mul()), leaf(3), leaf(3, seed=1), scale=2.0)


@check
def keyword_for_tensor(wrap):
    keywords_or_skip()
    cls, x = wrap(make.mul()), leaf(3)
    return bits(torch.autograd.grad(cls.apply(x, y=torch.full((3,), 2.0, dtype=torch.float64)).sum(), x))


@check
def double_backward(wrap):
    cls, x, y = wrap(make.mul()), leaf(3), leaf(3, seed=1)
    (g,) = torch.autograd.grad((cls.apply(x, y) ** 2).sum(), x, create_graph=True)
    return bits(torch.autograd.grad((g**2).sum(), (x, y)))


@check
def forward_mode_gradcheck(wrap):
    return torch.autograd.gradcheck(wrap(make.cube()).apply, (leaf(3),), check_forward_ad=True)


@check
def forward_mode_tangent(wrap):
    import torch.autograd.forward_ad as forward_ad

    cls = wrap(make.cube())
    with forward_ad.dual_level():
        out = cls.apply(forward_ad.make_dual(leaf(3).detach(), torch.ones(3, dtype=torch.float64)))
        return bits([forward_ad.unpack_dual(o).tangent for o in out])


@check
def mark_dirty(wrap):
    x = leaf(3)
    inside = x * 2
    version = inside._version
    out = wrap(make.dirty()).apply(inside)
    return out is inside, inside._version - version, bits(torch.autograd.grad(out.sum(), x)), bits(out)


@check
def non_differentiable(wrap):
    x = leaf(5)
    values, index = wrap(make.sorting()).apply(x)
    return index.requires_grad, index.grad_fn is None, bits(index), bits(torch.autograd.grad(values[0], x))


@check
def view_output(wrap):
    x = leaf(2, 3)
    out = wrap(make.view()).apply(x)
    return out._is_view(), out.data_ptr() == x.data_ptr(), bits(torch.autograd.grad(out.sum(), x))


@check
def input_returned(wrap):
    x = leaf(3)
    out = wrap(make.same()).apply(x)
    return out is x, out._is_view(), bits(torch.autograd.grad(out.sum(), x))


@check
def materialised_gradients(wrap):
    cls, x = wrap(make.two_outputs(True)), leaf(3)
    return bits(torch.autograd.grad(cls.apply(x)[0].sum(), x)), cls.seen


@check
def undefined_gradients(wrap):
    cls, x = wrap(make.two_outputs(False)), leaf(3)
    return bits(torch.autograd.grad(cls.apply(x)[1].sum(), x)), cls.seen


@check
def boxed_gradients(wrap):
    if not hasattr(torch.autograd.Function, "boxed_grads_call"):
        pytest.skip("this torch gives backward no list of gradients")
    return run(wrap(make.boxed()), leaf(3), leaf(3, seed=1))


@check
def nested_functions(wrap):
    return run(wrap(make.outer_of(wrap(make.mul()))), leaf(3))


@check
def backward_that_calls_another(wrap):
    cls, x = wrap(make.outer_of(wrap(make.mul()))), leaf(3)
    (g,) = torch.autograd.grad((cls.apply(x) ** 2).sum(), x, create_graph=True)
    return bits(g), bits(torch.autograd.grad(g.sum(), x))


@check
def random_numbers(wrap):
    torch.manual_seed(7)
    first = run(wrap(make.random()), leaf(20))
    return first, bits(torch.rand(3))


@check
def needs_input_grad(wrap):
    cls, x = wrap(make.mul()), leaf(3)
    return bits(torch.autograd.grad(cls.apply(x, leaf(3, seed=1).detach()).sum(), x))


@check
def node_name_and_count(wrap):
    out = wrap(make.mul())
    out = out.apply(leaf(3) * 2, leaf(3)).sum()
    nodes, todo = [], [out.grad_fn]
    while todo:
        node = todo.pop()
        nodes.append(type(node).__name__)
        todo += [n for n, _ in node.next_functions if n is not None]
    return nodes


@check
def sequence_numbers(wrap):
    cls, x = wrap(make.mul()), leaf(3)
    start = (x * 2).grad_fn._sequence_nr()
    out = cls.apply(x * 2, x)
    return [node._sequence_nr() - start for node in (out.grad_fn, (out * 2).grad_fn)]


@check
def accumulate_grad_steals_the_buffer(wrap):
    cls, x = wrap(make.mul()), leaf(3)
    seen = []
    out = cls.apply(x, torch.ones(3, dtype=torch.float64))
    out.grad_fn.register_hook(lambda grads, _: seen.append(grads[0].data_ptr()))
    out.sum().backward()
    return x.grad.data_ptr() == seen[0]


@check
def retain_graph(wrap):
    x = leaf(3)
    out = wrap(make.mul()).apply(x, x * 2).sum()
    out.backward(retain_graph=True)
    out.backward()
    return bits(x.grad)


@check
def hooks_on_the_node(wrap):
    x, seen = leaf(3), []
    out = wrap(make.mul()).apply(x, x)
    out.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    out.register_hook(lambda g: seen.append(bits(g)))
    out.sum().backward()
    return seen


@check
def saved_tensor_hooks(wrap):
    cls, x, counts = wrap(make.mul()), leaf(3), []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: counts.append("pack") or t, lambda t: counts.append("unpack") or t
    ):
        out = cls.apply(x, x * 2)
    out.sum().backward()
    return counts


@check
def checkpoint_reentrant(wrap):
    return _checkpointed(wrap, True)


@check
def checkpoint_not_reentrant(wrap):
    return _checkpointed(wrap, False)


def _checkpointed(wrap, reentrant):
    cls, x, calls = wrap(make.mul()), leaf(3), []

    def block(x):
        calls.append(1)
        return cls.apply(x, x.sin())

    checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    return bits(x.grad), len(calls)


@check
def threads(wrap):
    cls, results = wrap(make.mul()), [None] * 8

    def work(i):
        x = leaf(5, seed=i)
        for _ in range(20):
            results[i] = bits(torch.autograd.grad((cls.apply(x, x * 2) ** 2).sum(), x))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    return results


@check
def backward_on_another_thread(wrap):
    x = leaf(3)
    loss = wrap(make.mul()).apply(x, x).sum()
    worker = threading.Thread(target=loss.backward)
    worker.start()
    worker.join()
    return bits(x.grad)


@check
def inherited(wrap):
    class Child(make.mul()):
        pass

    return run(wrap(Child), leaf(3), leaf(3, seed=1)), Child.__mro__[1].forward is Child.forward


@check
def overridden_in_a_subclass(wrap):
    class Child(make.mul()):
        @staticmethod
        def backward(ctx, g):
            return g, g, None

    return run(wrap(Child), leaf(3), leaf(3, seed=1))


@check
def parent_of_an_instrumented_class(wrap):
    parent = make.mul()

    class Child(parent):
        pass

    wrap(Child)
    return run(parent, leaf(3), leaf(3, seed=1))


@check
def apply_taken_before(wrap):
    cls, x = make.mul(), leaf(3)
    taken = cls.apply
    wrap(cls)
    return bits(torch.autograd.grad(taken(x, x).sum(), x)), taken == cls.apply


@check
def graph_built_before(wrap):
    cls, x = make.mul(), leaf(3)
    out = cls.apply(x, x)
    wrap(cls)
    return bits(torch.autograd.grad(out.sum(), x))


@check
def backward_set_anew(wrap):
    cls, x = wrap(make.mul()), leaf(3)
    out = cls.apply(x, x)
    cls.backward = staticmethod(lambda ctx, g: (g * 7, None, None))
    return bits(torch.autograd.grad(out.sum(), x))


@check
def called_directly(wrap):
    class Ctx:
        def save_for_backward(self, *tensors):
            self.saved_tensors = tensors

        needs_input_grad = (True, True)

    cls, ctx, x = wrap(make.mul()), Ctx(), leaf(3).detach()
    return bits(cls.forward(ctx, x, x)), bits(cls.backward(ctx, x))


@check
def mixed_precision(wrap):
    from torch.amp import custom_bwd, custom_fwd

    class Mixed(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g @ x.t() + x.t() @ g

    wrap(Mixed)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return run(Mixed, leaf(3, 3, dtype=torch.float32))


@check
def in_a_module_with_sgd(wrap):
    cls = wrap(make.mul())
    torch.manual_seed(3)
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = leaf(8, 4, dtype=torch.float32).detach()
    for _ in range(5):
        optimizer.zero_grad()
        cls.apply(layer(x), layer(x)).pow(2).mean().backward()
        optimizer.step()
    return bits(tuple(layer.parameters()))


@check
def compiled_autograd_key(wrap):
    cls = wrap(make.mul())
    return len(cls._compiled_autograd_key(cls.apply(leaf(3), leaf(3)).grad_fn))
