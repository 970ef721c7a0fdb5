"""Functions for the battery: each factory makes a fresh class, so that a check never sees another check's."""

from __future__ import annotations

import inspect
import sys
import warnings

import torch
from fn import Fn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def mul():
    class Mul(Function):
        """Product, with ctx in forward."""

        @staticmethod
        def forward(ctx, x, y, scale=1.0):
            ctx.save_for_backward(x, y)
            ctx.scale = scale
            return x * y * scale

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            grad_x = grad_y = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_output * y * ctx.scale
            if ctx.needs_input_grad[1]:
                grad_y = grad_output * x * ctx.scale
            return grad_x, grad_y, None

    return Mul


def cube(generate=True):
    class Cube(Function):
        generate_vmap_rule = generate

        @staticmethod
        def forward(x):
            dx = 3 * x**2
            return x**3, dx

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            _, dx = output
            ctx.save_for_backward(x, dx)
            ctx.save_for_forward(x)

        @staticmethod
        def backward(ctx, grad, grad_dx):
            x, dx = ctx.saved_tensors
            return grad * dx + grad_dx * 6 * x

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors[:1]
            return tangent * 3 * x**2, tangent * 6 * x

    return Cube


def sine_by_hand():
    return Fn.of(
        "Sine",
        "x: return x.sin()",
        "g: (x,) = saved; return g * x.cos()",
        setup_context="inputs, output: save(inputs[0])",
        vmap="in_dims, x: return Sine.apply(x), in_dims[0]",
    )


def once():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.exp()

    return Once


def dirty():
    return Fn.of("AddOne", "x: ctx.mark_dirty(x); return x.add_(1)", "g: return g")


def sorting():
    return Fn.of(
        "Sort",
        "x: values, index = x.sort(); ctx.mark_non_differentiable(index); save(index); return values, index",
        "g, g_index: (index,) = saved; return torch.zeros_like(g).scatter(0, index, g)",
    )


def view():
    return Fn.of("Flat", "x: ctx.shape = x.shape; return x.view(-1)", "g: return g.view(ctx.shape)")


def same():
    return Fn.of("Same", "x: return x", "g: return g * 2")


def two_outputs(materialize):
    return Fn.of(
        "Two",
        f"x: ctx.set_materialize_grads({materialize}); return x * 2, x * 3",
        "g, h: Two.seen = (g is None, h is None); return (0 if g is None else g * 2) + (0 if h is None else h * 3)",
    )


def failing(where):
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            if where == "forward":
                raise ValueError("no forward today")
            if where == "interrupt":
                raise KeyboardInterrupt
            if where == "exit":
                raise SystemExit(3)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if where == "backward":
                raise ValueError("no backward today")
            if where == "many":
                return g, g
            if where == "shape":
                return g.new_ones(7)
            if where == "none":
                return None
            if where == "float":
                return 1.5
            return g

    return Failing


def failing_setup():
    class FailingSetup(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            raise RuntimeError("no setup today")

        @staticmethod
        def backward(ctx, g):
            return g

    return FailingSetup


def keyword_heavy():
    return Fn.of("Keywords", "x, *, power=2: save(x); return x**power", "g: (x,) = saved; return g * 2 * x")


def variadic():
    return Fn.of("Total", "*tensors: ctx.count = len(tensors); return sum(tensors)", "g: return (g,) * ctx.count")


def vjp_style():
    return Fn.of("Vjp", "x: return x * 5", vjp="g: return g * 5")


def both_styles():
    return Fn.of("Both", "x: return x * 5", "g: return g * 5", vjp="g: return g * 5")


def class_methods():
    class ByClass(Function):
        factor = 3

        @classmethod
        def forward(cls, ctx, x):
            return x * cls.factor

        @classmethod
        def backward(cls, ctx, g):
            return g * cls.factor

    return ByClass


def plain_methods():
    class Plain(Function):
        def forward(ctx, x):
            return x * 4

        def backward(ctx, g):
            return g * 4

    return Plain


def legacy():
    class Legacy(Function):
        def forward(self, x):
            return x

        def backward(self, g):
            return g

    return Legacy


def boxed():
    class Boxed(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, grads):
            first, second = grads
            grads.clear()
            return first * 2, second * 3

    return Boxed


def printing():
    return Fn.of(
        "Printing",
        'x: print("forward", tuple(x.shape)); return x * 2',
        'g: print("backward", g.sum().item()); return g * 2',
    )


def warning():
    class Warning_(Function):
        @staticmethod
        def forward(ctx, x):
            warnings.warn("mind the step", UserWarning, stacklevel=1)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Warning_


def looking_at_itself():
    class Itself(Function):
        @staticmethod
        def forward(ctx, x):
            Itself.found = (
                Itself.forward is vars(Itself)["forward"].__func__,
                inspect.getsource(Itself.forward).count("def forward"),
                sys._getframe(0).f_code.co_name,
                type(ctx).__name__,
                sorted(vars(ctx)),
                torch.is_grad_enabled(),
            )
            return x * 2

        @staticmethod
        def backward(ctx, g):
            Itself.found += (Itself.backward.__name__, torch.is_grad_enabled(), sorted(vars(ctx)))
            return g * 2

    return Itself


def outer_of(inner):
    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                inside = inner.apply(x.detach().requires_grad_(), torch.full_like(x, 2.0))
            ctx.save_for_backward(x)
            return inside.detach()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return inner.apply(g, torch.full_like(x, 2.0))

    return Outer


def random():
    return Fn.of(
        "Random",
        "x: mask = torch.rand_like(x) < 0.5; save(mask); return x * mask",
        "g: (mask,) = saved; return g * mask",
    )


def keeping():
    class Keeping(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = x
            ctx.text = "as it was"
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.kept

    return Keeping
