"""Mistakes in custom Functions, one per kind, and correct Functions that look suspicious; each with its diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from fn import Fn
from torch import Tensor

BUFFER: list[Tensor] = []
SCALE = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)


def draw(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 42)
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    return values.requires_grad_()


@dataclass(frozen=True)
class Mistake:
    name: str
    fn: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    codes: tuple[str, ...]
    right: Callable[..., Any] | None = None


class Catalogue(list[Mistake]):
    """Functions to check, a row each; what does not fit into a row is a class below ``written``."""

    def case(self, name: str, forward: str, backward: str, inputs: Any, *codes: str, **more: Any) -> None:
        """Add a Function in the words of ``Fn.of``; ``more`` are ``right`` and other methods."""
        right = more.pop("right", None)
        self.written(inputs, *codes, right=right)(Fn.of(name, forward, backward, depth=2, **more))

    def written(self, inputs: Any, *codes: str, right: Any = None, call: Any = None) -> Callable[[type], type]:
        def keep(cls: Any) -> type:
            self.append(Mistake(cls.__name__, call or cls.apply, inputs, codes, right))
            return cls  # type: ignore[no-any-return]

        return keep


ROWS = Catalogue()
case, written = ROWS.case, ROWS.written

# fmt: off
case("AffineTransposedWeight", "x, w: save(x, w); return x @ w.t()",
     "grad_out: x, w = saved; grad_x = grad_out @ w; grad_w = x.t() @ grad_out; return grad_x, grad_w",
     lambda: (draw(3, 5), draw(5, 5, seed=1)), "transposed_grad", "wrong_derivative", "permuted_entries",
     right=lambda x, w: x @ w.t())
case("ProductSwapped", "a, b: save(a, b); return a * b", "g: a, b = saved; return a * g, b * g",
     lambda: (draw(4), draw(4, seed=1)), "swapped_inputs", "wrong_derivative", right=lambda a, b: a * b)
case("TwoOutputsSwapped", "x: save(x); return x.sin(), x.exp()",
     "g_exp, g_sin: (x,) = saved; return g_sin * x.cos() + g_exp * x.exp()", lambda: (draw(4),), "wrong_derivative",
     right=lambda x: (x.sin(), x.exp()))
case("MinusForgotten", "x: y = x.exp(); save(y); return -y", "g: (y,) = saved; return g * y", lambda: (draw(5),),
     "sign", right=lambda x: -x.exp())
case("HalfForgotten", "x: save(x); return (x**2).sum() / 2", "g: (x,) = saved; return 2 * x * g", lambda: (draw(2, 3),),
     "constant_factor", "wrong_derivative", "missing_factor", right=lambda x: (x**2).sum() / 2)
case("RowMeanUndivided", "x: ctx.rows = x.shape[0]; return x.mean(0)", "g: return g.unsqueeze(0).expand(ctx.rows, -1)",
     lambda: (draw(3, 4),), "constant_factor", "missing_factor", "wrong_derivative", right=lambda x: x.mean(0))
case("SumOfGradOutput", "x: return x * 3", "g: return 3 * g.sum().expand(g.shape)", lambda: (draw(6),), "extra_entries",
     "missing_coupling", "wrong_unclassified", "wrong_derivative", right=lambda x: x * 3)
case("SigmoidAlone", "x: s = x.sigmoid(); save(s); return s", "g: (s,) = saved; return s * (1 - s)", lambda: (draw(5),),
     "ignores_grad_output", right=lambda x: x.sigmoid())
case("Normalised", "x: return 2 * x", "g: return 2 * g / (g.norm() + 1e-12)", lambda: (draw(5),),
     "nonlinear_in_grad_output", right=lambda x: 2 * x)
case("OneForgotten", "a, b: save(b); return a * b", "g: (b,) = saved; return g * b, None",
     lambda: (draw(5), draw(5, seed=1)), "none_gradient", "zero_gradient", right=lambda a, b: a * b)
case("TanhNotSquared", "x: y = (3 * x).tanh() / 3; save(y); return y", "g: (y,) = saved; return g * (1 - 3 * y)",
     lambda: (draw(7, seed=3),), "missing_factor", "wrong_derivative", right=lambda x: (3 * x).tanh() / 3)
case("LogInnerForgotten", "x: save(x); return x.log() ** 2", "g: (x,) = saved; return g * 2 * x.log()",
     lambda: (draw(8, low=0.5, high=3.0),), "missing_factor", "wrong_derivative", right=lambda x: x.log() ** 2)
case("ReluWithoutMask", "x: save(x); return x.clamp(min=0)", "g: return g", lambda: (draw(9, seed=5),), "extra_entries",
     "conditional", "missing_factor", right=lambda x: x.clamp(min=0))
case("WindowInverted", "x: mask = x.abs() < 0.4; save(mask); return x * mask", "g: (mask,) = saved; return g * ~mask",
     lambda: (draw(10, seed=6),), "wrong_derivative", "wrong_unclassified", "conditional",
     right=lambda x: torch.where(x.abs() < 0.4, x, x.detach() * 0))
case("OneBranchWrong", "x: save(x); return torch.where(x > 0, x, 2 * x)",
     "g: (x,) = saved; return g * torch.where(x > 0, torch.ones_like(x), 3 * torch.ones_like(x))",
     lambda: (draw(10, seed=6),), "conditional", "wrong_derivative", right=lambda x: torch.where(x > 0, x, 2 * x))
case("SoftmaxDiagonal", "x: p = x.softmax(0); save(p); return p", "g: (p,) = saved; return g * p * (1 - p)",
     lambda: (draw(5),), "missing_coupling", "missing_entries", right=lambda x: x.softmax(0))
case("RowSumSpreadWrongly", "x: ctx.shape = x.shape; return x.sum(1)", "g: return g.expand(ctx.shape)",
     lambda: (draw(3, 3),), "wrong_reduction_dim", "transposed_grad", "wrong_derivative", "permuted_entries",
     right=lambda x: x.sum(1))
case("RollNotUndone", "x: return x.roll(2)", "g: return g", lambda: (draw(9),), "permuted_entries", "wrong_derivative",
     right=lambda x: x.roll(2))
case("OrderLost", "x: return x.reshape(3, 4).t().reshape(12)", "g: return g.reshape(2, 6)", lambda: (draw(2, 6),),
     "permuted_entries", right=lambda x: x.reshape(3, 4).t().reshape(12))
case("OneCornerWrong", "x: return x * 2", "g: grad = 2 * g; grad[17, 1] = 0.3 * g[17, 1]; return grad",
     lambda: (draw(40, 3),), "wrong_derivative", "missing_entries", "constant_factor", right=lambda x: x * 2)
case("EpsilonOnlyBehind", "x: save(x); return x.rsqrt()", "g: (x,) = saved; return -0.5 * g * (x + 1e-4) ** -1.5",
     lambda: (draw(6, low=0.5, high=2.0),), "constant_factor", "wrong_derivative", right=lambda x: x.rsqrt())
case("ScalesInPlace", "x: return 5 * x", "g: return g.mul_(5)", lambda: (draw(6),), "mutates_grad_output",
     right=lambda x: 5 * x)
case("SavedInPlace", "x: ctx.double = 2 * x; return x**2", "g: ctx.double.mul_(g); return ctx.double",
     lambda: (draw(6),), "mutates_saved", "nondeterministic_backward", right=lambda x: x**2)


@written(lambda: (draw(6),), "shared_state", right=lambda x: x**2)
class KeptOnTheClass(Fn):
    last: Any = None

    def forward(ctx, x):
        KeptOnTheClass.last = x.detach()
        return x**2

    def backward(ctx, g):
        return 2 * g * KeptOnTheClass.last


case("OneBuffer", "x: return 4 * x",
     "g: if not BUFFER or BUFFER[0].shape != g.shape: BUFFER[:] = [torch.empty_like(g)]; "
     "return torch.mul(g, 4, out=BUFFER[0])", lambda: (draw(6),), "grad_buffer_reused", "shared_state",
     right=lambda x: 4 * x)
case("DropsInBackward", "x: return 4 * x", "g: return 4 * g * (torch.rand_like(g) > 0.1)", lambda: (draw(6),),
     "nondeterministic_backward", right=lambda x: 4 * x)
case("HiddenScale", "x: return x * SCALE", "g: return g * SCALE.detach()", lambda: (draw(6),), "hidden_input")
case("ReadsMemoryOfGrad", "x: ctx.shape = x.shape; return x * 2",
     "g: flat = torch.as_strided(g, (g.numel(),), (1,)) if 0 not in g.stride() else g.reshape(-1); "
     "return 2 * flat.reshape(ctx.shape)", lambda: (draw(3, 4),), "wrong_noncontiguous_grad", right=lambda x: x * 2)
case("ReadsMemoryOfInput",
     "x: flat = torch.as_strided(x, (x.numel(),), (1,)).reshape(x.shape); save(x); return flat**2",
     "g: (x,) = saved; return 2 * g * x", lambda: (draw(3, 4),), "wrong_noncontiguous_input", right=lambda x: x**2)
case("NoneNotHandled", "x: ctx.set_materialize_grads(False); return x * 2, x * 3", "g, h: return g * 2 + h * 3",
     lambda: (draw(4),), "undefined_grad", right=lambda x: (x * 2, x * 3))
case("WrongIndexNeeded", "a, b: save(a, b); return a * b",
     "g: a, b = saved; ga = g * b if ctx.needs_input_grad[0] else None; "
     "gb = g * a if ctx.needs_input_grad[0] else None; return ga, gb", lambda: (draw(4), draw(4, seed=1)),
     "needs_input_grad_wrong", right=lambda a, b: a * b)
case("MarkedByMistake", "x: y, z = x * 2, x.sin(); ctx.mark_non_differentiable(z); save(x); return y, z",
     "g, h: (x,) = saved; return g * 2 + h * x.cos()", lambda: (draw(4),), "nondiff_marked_wrongly")


@written(lambda: (draw(4),), "exception", right=lambda x: x.exp())
class ForwardsVariable(Fn):
    def forward(ctx, x):
        result = x.exp()
        return result  # noqa: RET504

    def backward(ctx, g):
        return g * result  # noqa: F821


case("NothingOnCtx", "x: return x.exp()", "g: return g * ctx.result", lambda: (draw(4),), "exception",
     right=lambda x: x.exp())


@written(lambda: (draw(4),), "backward_never_called", call=lambda x: NeverApplied.forward(None, x))
class NeverApplied(Fn):
    def forward(ctx, x):
        return x * 3

    def backward(ctx, g):
        return g


case("LogOfNegative", "x: save(x); return x.abs() ** 1.5", "g: (x,) = saved; return g * 1.5 * x**0.5",
     lambda: (draw(4),), "nonfinite", right=lambda x: x.abs() ** 1.5)
case("IntermediateOnCtx", "x: ctx.slope = 3 * x**2; return x**3", "g: return g * ctx.slope", lambda: (draw(4),),
     "double_backward_wrong", right=lambda x: x.exp())
case("DetachInBackward", "x: save(x); return x.sin()", "g: (x,) = saved; return g * x.detach().cos()",
     lambda: (draw(4),), "double_backward_wrong")
case("InADict", 'x: return {"y": x * 2}', "g: return g * 2", lambda: (draw(4),), "output_not_tensor_tuple")


# ------------------------------------------------------------------------------------------- nothing wrong with these


case("Affine", "x, w, b: save(x, w); return x @ w.t() + b", "g: x, w = saved; return g @ w, g.t() @ x, g.sum(0)",
     lambda: (draw(3, 2), draw(4, 2, seed=1), draw(4, seed=2)))
case("NumpyOnce", "x: save(x); return torch.from_numpy(np.sin(x.detach().numpy()))",
     "g: (x,) = saved; return torch.from_numpy(g.numpy() * np.cos(x.numpy()))", lambda: (draw(6),), once=True)
case("DropoutWithMask", "x: mask = (torch.rand_like(x) > 0.3).double(); save(mask); return x * mask / 0.7",
     "g: (mask,) = saved; return g * mask / 0.7", lambda: (draw(6),))
case("NoneHandled", "x, scale: return x * scale", "g: return (None, None) if g is None else (g * ctx.scale, None)",
     lambda: (draw(6), 2.5), setup_context="inputs, output: ctx.set_materialize_grads(False); ctx.scale = inputs[1]")
case("InPlaceMarked", "x: ctx.mark_dirty(x); return x.mul_(3)", "g: return g * 3", lambda: (draw(4),))
case("CubeWithSlope", "x: return x**3, 3 * x**2", "g, h: x, slope = saved; return g * slope + h * 6 * x",
     lambda: (draw(4),), setup_context="inputs, output: save(inputs[0], output[1])")


def in_second_order(mistake: Mistake) -> bool:
    """Return whether first derivatives are right and second ones are not."""
    return mistake.codes == ("double_backward_wrong",)


MISTAKES = [case for case in ROWS if case.codes]
CORRECT = [case for case in ROWS if not case.codes]
