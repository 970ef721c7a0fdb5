"""Each row of docs/how-to/from-gradcheck.md: what torch's gradcheck is asked for has its answer here."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable

import nbautograd
from nbautograd.errors import GradcheckError, InputError

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "from-gradcheck.md"


def scaled(factor: float, backward_factor: float | None = None) -> type[Function]:
    class Scaled(Fn):
        def forward(ctx, x):
            return x * factor

        def backward(ctx, g):
            return g * (factor if backward_factor is None else backward_factor)

    return Scaled


def codes(report: nbautograd.types.GradcheckReport, kind: str = "bug") -> list[str]:
    return [f.code for f in report.findings if f.kind == kind]


def test_every_option_of_torch_has_a_row() -> None:
    named = set(
        re.findall(r"`(\w+)", "".join(row.split("|")[1] for row in PAGE.read_text().splitlines() if row[:2] == "| "))
    )
    for function in (gradcheck, gradgradcheck):
        assert set(inspect.signature(function).parameters) - {"func", "inputs"} - named == set()


def test_eps_is_the_first_step() -> None:
    seen: list[float] = []

    def watched(x: torch.Tensor) -> torch.Tensor:
        seen.append(float(x.detach()[0]))
        return x**2

    nbautograd.jacobian(watched, torch.zeros(1, dtype=torch.float64, requires_grad=True), eps=0.125)
    assert 0.125 in map(abs, seen)


def test_atol_and_rtol_are_the_callers() -> None:
    nearly = scaled(2.0, 2.0002)
    assert nbautograd.gradcheck(nearly, draw(3)).verdict == "wrong"
    assert nbautograd.gradcheck(nearly, draw(3), rtol=1e-3, order=1).verdict == "right"
    assert nbautograd.gradcheck(nearly, draw(3), atol=1e-2, order=1).verdict == "right"


def test_raise_exception_either_way() -> None:
    report = nbautograd.gradcheck(scaled(2.0, 3.0), draw(3))
    assert not report
    with pytest.raises(GradcheckError, match="number is wrong"):
        report.raise_if_wrong()
    assert nbautograd.gradcheck(scaled(2.0), draw(3)).raise_if_wrong()


@pytest.mark.parametrize(("size", "verdict", "kind"), [(1e-11, "right", "lint"), (0.1, "wrong", "bug")])
def test_nondet_tol(size: float, verdict: str, kind: str) -> None:
    class Noisy(Fn):
        def forward(ctx, x):
            return x * 2

        def backward(ctx, g):
            return 2 * g * (1 + size * torch.rand(g.shape, dtype=g.dtype))

    report = nbautograd.gradcheck(Noisy, draw(5))
    assert report.verdict == verdict
    assert "nondeterministic_backward" in codes(report, kind)


def test_check_undefined_grad() -> None:
    class Two(Fn):
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        def backward(ctx, g, h):
            return 2 * g + 3 * h

    assert codes(nbautograd.gradcheck(Two, draw(4)))[:1] == ["undefined_grad"]


def test_check_grad_dtypes() -> None:
    class Casts(Fn):
        def forward(ctx, x):
            return x * 2

        def backward(ctx, g):
            return 2 * g.double()

    x = draw(4).detach().float().requires_grad_()
    report = nbautograd.gradcheck(Casts, x)
    assert codes(report) == []
    assert "grad_dtype_cast" in codes(report, "lint")


def test_check_batched_grad_holds_nothing_against_a_backward_that_vmap_cannot_run() -> None:
    class Itemised(Fn):
        def forward(ctx, x):
            return x * 2

        @once_differentiable
        def backward(ctx, g):
            return torch.tensor([2 * v.item() for v in g.data], dtype=g.dtype)

    assert nbautograd.gradcheck(Itemised, draw(4)).verdict == "right"


def test_check_forward_ad() -> None:
    class WrongForward(Fn):
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            return x * x

        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 3 * x * tangent

    assert "jvp_wrong" in codes(nbautograd.gradcheck(WrongForward, draw(4)))


@pytest.mark.slow
def test_fast_mode_misses_one_entry_of_ten_thousand_and_we_do_not() -> None:
    class OneEntry(Fn):
        def forward(ctx, x):
            return 2 * x

        def backward(ctx, g):
            out = 2 * g
            out[1234] = 0
            return out

    x = torch.randn(10_000, dtype=torch.float64, requires_grad=True)
    assert gradcheck(OneEntry.apply, (x,), fast_mode=True)
    report = nbautograd.gradcheck(OneEntry, x)
    assert report.verdict == "wrong"
    assert report.blocks[0, 0].wrong == 1


def test_masked_or_not_a_sparse_input_is_wrapped() -> None:
    dense = torch.eye(3, dtype=torch.float64)
    with pytest.raises(InputError, match="sparse_coo_tensor"):
        nbautograd.gradcheck(lambda s: (2 * s).to_dense(), dense.to_sparse().requires_grad_())
    indices, values = dense.to_sparse().indices(), draw(3)
    stored = nbautograd.gradcheck(lambda v: (2 * torch.sparse_coo_tensor(indices, v, (3, 3))).to_dense(), values)
    assert stored.verdict == "right"
    assert stored.blocks[0, 0].input_shape == (3,)
    whole = nbautograd.gradcheck(lambda d: (2 * d.to_sparse()).to_dense(), dense.requires_grad_())
    assert whole.blocks[0, 0].input_shape == (3, 3)


def test_gradgradcheck_is_order_2() -> None:
    report = nbautograd.gradcheck(Cube, draw(4))
    assert report.order2 is not None
    assert report.order2.verdict == "right"
    assert nbautograd.gradcheck(Cube, draw(4), order=1).order2 is None
    assert nbautograd.gradcheck(CubeOnce, draw(4)).order2 is None


Cube = Fn.of("Cube", "x: save(x); return x**3", "g: (x,) = saved; return 3 * x**2 * g")


CubeOnce = Cube.of("CubeOnce", backward="g: (x,) = saved; return 3 * x**2 * g", once=True)


def test_grad_outputs_are_of_both_signs_and_follow_the_seed() -> None:
    seen: list[torch.Tensor] = []

    class Watched(Fn):
        def forward(ctx, x):
            return 2 * x

        def backward(ctx, g):
            seen.append(g.detach().clone())
            return 2 * g

    def sent(seed: int) -> list[list[float]]:
        seen.clear()
        nbautograd.gradcheck(Watched, draw(5), seed=seed, order=1)
        return [g.flatten().tolist() for g in seen if not torch._C._functorch.is_batchedtensor(g)]

    first, again, other = sent(1), sent(1), sent(2)
    assert min(map(min, first)) < 0 < max(map(max, first))
    assert first == again != other


@pytest.mark.parametrize(
    ("read", "code"), [("view", "fails_noncontiguous_grad"), ("memory", "wrong_noncontiguous_grad")]
)
def test_gen_non_contig_grad_outputs(read: str, code: str) -> None:
    class Reads(Fn):
        def forward(ctx, x):
            return 2 * x

        def backward(ctx, g):
            return 2 * (g.view(-1).view(3, 4) if read == "view" else torch.as_strided(g, (3, 4), (4, 1)))

    assert code in codes(nbautograd.gradcheck(Reads, draw(3, 4)))
