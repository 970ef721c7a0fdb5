"""Mistakes in custom Functions, one per kind, and correct Functions that look suspicious; each with its diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from fn import Fn
from torch import Tensor

import nbautograd
from nbautograd.core.findings import Finding

BUFFER: list[Tensor] = []
SCALE = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)


def draw(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 42)
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    return values.requires_grad_()


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def first(fn: Any, *inputs: Any) -> Finding:
    """Return the first finding on a Function whose backward is wrong."""
    report = nbautograd.gradcheck(fn, inputs, order=1)
    assert report.verdict == "wrong"
    return report.findings[0]


@dataclass(frozen=True)
class Mistake:
    name: str
    fn: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    codes: tuple[str, ...]


class Catalogue(list[Mistake]):
    """Functions to check, a row each; what does not fit into a row is a class below ``written``."""

    def case(self, name: str, forward: str, backward: str, inputs: Any, *codes: str, **more: Any) -> None:
        """Add a Function in the words of ``Fn.of``; ``more`` are other methods."""
        self.written(inputs, *codes)(Fn.of(name, forward, backward, depth=2, **more))

    def written(self, inputs: Any, *codes: str, call: Any = None) -> Callable[[type], type]:
        def keep(cls: Any) -> type:
            self.append(Mistake(cls.__name__, call or cls.apply, inputs, codes))
            return cls  # type: ignore[no-any-return]

        return keep


ROWS = Catalogue()
case, written = ROWS.case, ROWS.written

# fmt: off
case("AffineTransposedWeight", "x, w: save(x, w); return x @ w.t()",
     "grad_out: x, w = saved; grad_x = grad_out @ w; grad_w = x.t() @ grad_out; return grad_x, grad_w",
     lambda: (draw(3, 5), draw(5, 5, seed=1)), "transposed_grad", "wrong_derivative", "wrong_unclassified")
case("ProductSwapped", "a, b: save(a, b); return a * b", "g: a, b = saved; return a * g, b * g",
     lambda: (draw(4), draw(4, seed=1)), "swapped_inputs", "wrong_derivative")
case("MinusForgotten", "x: y = x.exp(); save(y); return -y", "g: (y,) = saved; return g * y", lambda: (draw(5),),
     "sign")
case("SumOfGradOutput", "x: return x * 3", "g: return 3 * g.sum().expand(g.shape)", lambda: (draw(6),), "extra_entries",
     "missing_coupling", "wrong_unclassified", "wrong_derivative")
case("SigmoidAlone", "x: s = x.sigmoid(); save(s); return s", "g: (s,) = saved; return s * (1 - s)", lambda: (draw(5),),
     "ignores_grad_output")
case("Normalised", "x: return 2 * x", "g: return 2 * g / (g.norm() + 1e-12)", lambda: (draw(5),),
     "nonlinear_in_grad_output")
case("OneForgotten", "a, b: save(b); return a * b", "g: (b,) = saved; return g * b, None",
     lambda: (draw(5), draw(5, seed=1)), "none_gradient", "zero_gradient")
case("WindowInverted", "x: mask = x.abs() < 0.4; save(mask); return x * mask", "g: (mask,) = saved; return g * ~mask",
     lambda: (draw(10, seed=6),), "wrong_derivative", "wrong_unclassified", "conditional")
case("EpsilonOnlyBehind", "x: save(x); return x.rsqrt()", "g: (x,) = saved; return -0.5 * g * (x + 1e-4) ** -1.5",
     lambda: (draw(6, low=0.5, high=2.0),), "constant_factor", "wrong_derivative")
case("ScalesInPlace", "x: return 5 * x", "g: return g.mul_(5)", lambda: (draw(6),), "mutates_grad_output")
case("SavedInPlace", "x: ctx.double = 2 * x; return x**2", "g: ctx.double.mul_(g); return ctx.double",
     lambda: (draw(6),), "mutates_saved", "nondeterministic_backward")


@written(lambda: (draw(6),), "shared_state")
class KeptOnTheClass(Fn):
    last: Any = None

    def forward(ctx, x):
        KeptOnTheClass.last = x.detach()
        return x**2

    def backward(ctx, g):
        return 2 * g * KeptOnTheClass.last


case("OneBuffer", "x: return 4 * x",
     "g: if not BUFFER or BUFFER[0].shape != g.shape: BUFFER[:] = [torch.empty_like(g)]; "
     "return torch.mul(g, 4, out=BUFFER[0])", lambda: (draw(6),), "grad_buffer_reused", "shared_state")
case("DropsInBackward", "x: return 4 * x", "g: return 4 * g * (torch.rand_like(g) > 0.1)", lambda: (draw(6),),
     "nondeterministic_backward")
case("HiddenScale", "x: return x * SCALE", "g: return g * SCALE.detach()", lambda: (draw(6),), "hidden_input")
case("ReadsMemoryOfGrad", "x: ctx.shape = x.shape; return x * 2",
     "g: flat = torch.as_strided(g, (g.numel(),), (1,)) if 0 not in g.stride() else g.reshape(-1); "
     "return 2 * flat.reshape(ctx.shape)", lambda: (draw(3, 4),), "wrong_noncontiguous_grad")
case("ReadsMemoryOfInput",
     "x: flat = torch.as_strided(x, (x.numel(),), (1,)).reshape(x.shape); save(x); return flat**2",
     "g: (x,) = saved; return 2 * g * x", lambda: (draw(3, 4),), "wrong_noncontiguous_input")
case("NoneNotHandled", "x: ctx.set_materialize_grads(False); return x * 2, x * 3", "g, h: return g * 2 + h * 3",
     lambda: (draw(4),), "undefined_grad")
case("WrongIndexNeeded", "a, b: save(a, b); return a * b",
     "g: a, b = saved; ga = g * b if ctx.needs_input_grad[0] else None; "
     "gb = g * a if ctx.needs_input_grad[0] else None; return ga, gb", lambda: (draw(4), draw(4, seed=1)),
     "needs_input_grad_wrong")
case("MarkedByMistake", "x: y, z = x * 2, x.sin(); ctx.mark_non_differentiable(z); save(x); return y, z",
     "g, h: (x,) = saved; return g * 2 + h * x.cos()", lambda: (draw(4),), "nondiff_marked_wrongly")


@written(lambda: (draw(4),), "exception")
class ForwardsVariable(Fn):
    def forward(ctx, x):
        result = x.exp()
        return result  # noqa: RET504

    def backward(ctx, g):
        return g * result  # noqa: F821


case("NothingOnCtx", "x: return x.exp()", "g: return g * ctx.result", lambda: (draw(4),), "exception")


@written(lambda: (draw(4),), "backward_never_called", call=lambda x: NeverApplied.forward(None, x))
class NeverApplied(Fn):
    def forward(ctx, x):
        return x * 3

    def backward(ctx, g):
        return g


case("LogOfNegative", "x: save(x); return x.abs() ** 1.5", "g: (x,) = saved; return g * 1.5 * x**0.5",
     lambda: (draw(4),), "nonfinite")
case("IntermediateOnCtx", "x: ctx.slope = 3 * x**2; return x**3", "g: return g * ctx.slope", lambda: (draw(4),),
     "double_backward_wrong")
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
