"""What torch's gradcheck is asked for, by docs/how-to/from-gradcheck.md, has its answer here."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.autograd import gradcheck, gradgradcheck

import nbautograd
from nbautograd.errors import InputError

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "from-gradcheck.md"


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


def test_check_batched_grad_holds_nothing_against_a_backward_that_vmap_cannot_run() -> None:
    Itemised = Fn.of(
        "Itemised",
        "x: return x * 2",
        "g: return torch.tensor([2 * v.item() for v in g.data], dtype=g.dtype)",
        once=True,
    )
    assert nbautograd.gradcheck(Itemised, draw(4)).verdict == "right"


@pytest.mark.slow
def test_fast_mode_misses_one_entry_of_ten_thousand_and_we_do_not() -> None:
    OneEntry = Fn.of("OneEntry", "x: return 2 * x", "g: out = 2 * g; out[1234] = 0; return out")
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
