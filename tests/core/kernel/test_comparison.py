"""``compare`` in every dtype: what rounding explains is right, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from fused_kernels import RMS_NORM

from nbautograd import compare
from nbautograd.errors import CallError
from nbautograd.types import Comparison

F = torch.nn.functional


def wrong(comparison: Comparison) -> list[str]:
    return [f"{one.kind} {one.name}" for one in comparison.quantities if one.verdict == "wrong"]


@pytest.mark.parametrize(
    ("fault", "kind", "names"),
    [
        ("", "float32", []),
        ("", "steps", []),  # not within 1e-2
        ("sums in bfloat16", "float32", ["gradient args[1]"]),
    ],
)
def test_bfloat16(fault: str, kind: str, names: list[str]) -> None:
    fn = RMS_NORM.faults[fault] if fault else RMS_NORM.kernel
    comparison = compare(fn, RMS_NORM.eager[kind], RMS_NORM.make(torch.bfloat16, 0), sizes=())
    assert wrong(comparison) == names
    assert comparison.wrong is bool(names)


def drawn(dtype: torch.dtype, *shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(s, generator=generator, dtype=torch.float64).to(dtype) for s in shapes)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt() * w + b


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("fn", "reference", "shapes"),
    [
        (lambda a, b: (a[:, :, None] * b[None]).sum(1), torch.mm, [(4, 5), (5, 3)]),
        (lambda x: x.exp() / x.exp().sum(-1, keepdim=True), lambda x: x.softmax(-1), [(4, 7)]),
        (lambda x: x.softmax(-1), lambda x: (x - x.amax(-1, keepdim=True)).softmax(-1), [(4, 7)]),
        (lambda x, w, b: F.layer_norm(x, (7,), w, b), layer_norm, [(4, 7), (7,), (7,)]),
        (F.gelu, lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), [(20,)]),
        (F.conv1d, lambda x, w: torch.einsum("bcik,ock->boi", x.unfold(-1, 3, 1), w), [(2, 3, 9), (4, 3, 3)]),
    ],
)
def test_two_ways_to_compute_the_same_agree(fn, reference, shapes, dtype):
    comparison = compare(fn, reference, drawn(dtype, *shapes), sizes=())
    assert comparison.verdict == "right"
    assert comparison.notes[0].message_id == "checking.assumed_grad"


@pytest.mark.parametrize(("dtype", "seen"), [(torch.float64, 1e-5), (torch.float32, 1e-5), (torch.bfloat16, 0.01)])
def test_a_factor_beyond_rounding_is_wrong(dtype: torch.dtype, seen: float) -> None:
    (x,) = drawn(dtype, (40,))
    report = compare(lambda x: torch.tanh(x) * (1 + seen), torch.tanh, x, sizes=())
    assert wrong(report) == ["output output", "gradient x"]
    assert {one.code for one in report.findings} == {"compare_factor" if seen == 0.01 else "compare_values"}
    assert not any(one.unseen for one in report.quantities)  # less of what is too much may be right


@pytest.mark.parametrize("dtype", [torch.complex128, torch.complex64])
def test_complex_numbers(dtype: torch.dtype) -> None:
    Product = Fn.of("Product", "a, b: save(a, b); return a * b", "g: a, b = saved; return g * b.conj(), g * a")
    real, imaginary = drawn(torch.float64, (2, 4), (2, 4))
    a, b = torch.complex(real, imaginary).to(dtype)
    assert wrong(compare(Product, torch.mul, (a, b), sizes=())) == ["gradient b"]
    assert compare(lambda a, b: b * a, torch.mul, (a, b), sizes=()).verdict == "right"


def test_whole_numbers_are_equal_or_wrong() -> None:
    x = torch.tensor([3.0, 1.0, 2.0])
    same = compare(lambda x: (2 * x, x.argsort()), lambda x: (x + x, x.argsort()), x, sizes=())
    assert same.verdict == "right"
    other = compare(lambda x: (2 * x, x.argsort()), lambda x: (x + x, x.argsort(descending=True)), x, sizes=())
    assert (other.verdict, wrong(other)) == ("wrong", ["output output 1"])
    assert other.findings[0].code == "compare_integers"


# what compare saw nothing of, though gradcheck did: as in fused activations that write over their inputs
BREACHES = {
    "mutates_saved": (
        Fn.of("WritesSaved", "x: save(x); return F.silu(x)",
              "g: x, = saved; s = x.sigmoid(); x.data.copy_(g * (x * s * (1 - s) + s)); return x"),
        F.silu, 1,
    ),
    "mutates_input": (
        Fn.of("WritesInput", "x: y = x.data.clamp_(min=0).clone(); save(y); return y",
              "g: y, = saved; return g * (y > 0)"),
        torch.relu, 1,
    ),
    "mutates_grad_output": (  # as the marginals' gradients of a published Sinkhorn layer
        Fn.of("WritesGrad", "x, w: save(x, w); return x * w", "g: x, w = saved; gx = g * w; g *= x; return gx, g"),
        torch.mul, 2,
    ),
    "needs_input_grad_wrong": (
        Fn.of("FrozenWeight", "x, w: save(x, w); return x * w",
              "g: x, w = saved; return g * w * (1 if ctx.needs_input_grad[1] else 2), g * x"),
        torch.mul, 2,
    ),
    "undefined_grad": (
        Fn.of("OneUnused", "x: ctx.set_materialize_grads(False); save(x); return x * x, x.clone()",
              "dy, dh: x, = saved; return None if dy is None or dh is None else 2 * x * dy + dh"),
        lambda x: (x * x, x.clone()), 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", BREACHES)
def test_what_gradcheck_calls_a_breach_is_one_beside_a_reference(code: str) -> None:
    fn, reference, count = BREACHES[code]
    inputs = tuple(x.requires_grad_() for x in drawn(torch.float32, *[(8, 16)] * count))
    assert [one.code for one in compare(fn, reference, inputs, sizes=()).findings] == [code]


WRITTEN = {name: BREACHES[name] for name in ("mutates_saved", "mutates_input", "mutates_grad_output")}
BOTH = Fn.of("BOTH", "x, w: save(x, w); return x * w",
             "g: x, w = saved; a, b = g * w, g * x; x.data.copy_(a); g *= 0; return x.clone(), b")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "reference", "names", "codes"),
    [
        *(
            (fn, eager, (name,), [code][: (name == "g") != (code == "mutates_grad_output")])
            for code, (fn, eager, _) in WRITTEN.items()
            for name in "xg"
        ),
        (BOTH, torch.mul, "g", ["mutates_saved"]),
        (BOTH, torch.mul, ["x"], ["mutates_grad_output"]),
        (BOTH, torch.mul, ["x", "g"], []),
        (lambda x, w: BOTH.apply(x, w.clone()), torch.mul, ["x", "g"], []),  # named as an argument, not as it is saved
        (lambda x, w: BOTH.apply(x.clone(), w), torch.mul, ["x", "g"], []),  # nor where forward's own copy is
    ],
)
def test_what_is_meant_to_be_overwritten_is_no_finding(fn: Any, reference: Any, names: Any, codes: list[str]) -> None:
    count = 1 if reference in (F.silu, torch.relu) else 2
    inputs = tuple(x.requires_grad_() for x in drawn(torch.float32, *[(8, 16)] * count))
    report = compare(fn, reference, inputs, sizes=(), overwrites=names)
    assert [one.code for one in report.findings] == codes
    assert report.verdict == ("wrong" if codes else "right")
    assert report.notes[-1].message_id == "compare.overwrites"


@pytest.mark.parametrize("fn", [BOTH, lambda x, w: BOTH.apply(x, w.clone())])
def test_a_name_that_nothing_has_is_told_with_the_names_that_there_are(fn: Any) -> None:
    inputs = tuple(x.requires_grad_() for x in drawn(torch.float32, (8, 16), (8, 16)))
    with pytest.raises(CallError) as caught:
        compare(fn, torch.mul, inputs, sizes=(), overwrites=["x", "logits"])
    assert caught.value.params == {"name": "logits", "names": "x, w, g"}


REVERSED = Fn.of("REVERSED", "x: return x.view_as(x)", "g: return -0.5 * g")
TRIPLED = ("x: save(x); return x * x", "g: x, = saved; return 3 * x * g")
HALVES = ("x, w: save(x, w); return x * w", "g: x, w = saved; return g * w, sum(g[i] * x[i] for i in range(len(x)))")


@pytest.mark.parametrize(
    ("methods", "dtype", "hints", "codes", "fixed", "notes"),
    [
        (TRIPLED, torch.float32, "fix", ["compare_factor", "constant_factor"], True, []),
        (TRIPLED, torch.bfloat16, "fix", ["compare_factor", "constant_factor"], True, []),
        (TRIPLED, torch.float32, "where", ["compare_factor", "constant_factor"], False, []),
        (TRIPLED, torch.float32, "what", ["compare_factor"], False, []),
        (
            ("x: save(x); return 1.5 * x * x", TRIPLED[1]), torch.float32, "fix",
            ["compare_factor", "compare_factor"], False, ["compare.forward_first"],
        ),
        (("x: return x.view_as(x)", "g: return -g"), torch.float32, "fix", ["compare_factor"], False, []),
        (HALVES, torch.bfloat16, "fix", ["compare_noise"], False, ["compare.rounded"]),
    ],
)  # fmt: skip
def test_a_wrong_gradient_comes_with_its_line_or_what_to_look_at(methods, dtype, hints, codes, fixed, notes):
    two = methods is HALVES
    inputs = tuple(one.requires_grad_() for one in drawn(dtype, *([(400, 8), (8,)] if two else [(4, 8)])))
    reference = torch.mul if two else REVERSED if "view_as" in methods[0] else torch.square
    report = compare(Fn.of("Made", *methods), reference, inputs, sizes=(), hints=hints)
    assert [finding.code for finding in report.findings] == codes
    assert [finding.line is not None for finding in report.findings] == [one == "constant_factor" for one in codes]
    assert any(finding.fix is not None and finding.fix.verified for finding in report.findings) is fixed
    assert [note.message_id for note in report.notes] == notes
