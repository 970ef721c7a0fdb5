"""Memory that ``torch.empty`` returned and nothing wrote: found whatever lies there, named, mended with zeros."""

from __future__ import annotations

import contextlib

import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.utils import deterministic

import nbautograd
from nbautograd.core.checking.quiet import FilledMemory

LastLeftOut = Fn.of("LastLeftOut", "x: return x[:-1] * 2",
    "g: gx = g.new_empty(len(g) + 1); gx[:-1] = 2 * g; return gx")  # fmt: skip
AddedToWhatWasThere = Fn.of("AddedToWhatWasThere", "table, at: save(at); ctx.shape = table.shape; return table[at]",
    "g: (at,) = saved; return torch.empty(ctx.shape, dtype=g.dtype).index_add_(0, at, g), None")  # fmt: skip
FirstRowForgotten = Fn.of("FirstRowForgotten", "x: save(x); return x**2",
    "g: (x,) = saved; gx = torch.empty_like(x); for i in range(1, len(x)): gx[i] = 2 * x[i] * g[i]; "
    "return gx")  # fmt: skip
ForwardForgets = Fn.of("ForwardForgets", "x: y = torch.empty_like(x); y[1:] = x[1:]; return y",
    "g: gx = g.clone(); gx[0] = 0; return gx")  # fmt: skip
AllWritten = Fn.of("AllWritten", "x: y = torch.exp(x, out=torch.empty_like(x)); save(y); return y",
    "g: (y,) = saved; gx = torch.empty_like(y); for i in range(len(y)): gx[i] = g[i] * y[i]; "
    "return gx")  # fmt: skip
# Its gradient is NaN there whatever memory holds.
RootAtZero = Fn.of("RootAtZero", "x: save(x); return x.sqrt()",
    "g: (x,) = saved; return torch.mul(g * 0, x.rsqrt(), out=torch.empty_like(x))")  # fmt: skip
# To begin with grad_output itself would mend the values, and write into it.
OutsideForgotten = Fn.of("OutsideForgotten", "x, mask: save(x, mask); return torch.where(mask, x * x, x)",
    "g: x, mask = saved; gx = torch.empty_like(x); gx[mask] = 2 * x[mask] * g[mask]; return gx, None")  # fmt: skip


def flat(report) -> str:
    return " ".join(str(report).split())


MENDED = {
    LastLeftOut: "gx = g.new_zeros(len(g) + 1)",
    AddedToWhatWasThere: "return torch.zeros(ctx.shape, dtype=g.dtype).index_add_(0, at, g), None",
    FirstRowForgotten: None,
}


@pytest.mark.parametrize(
    ("cls", "inputs", "entry"),
    [
        (LastLeftOut, (draw(6),), "x[5]"),
        (AddedToWhatWasThere, (draw(4, 3), torch.tensor([0, 2, 2])), "table[0,0]"),
        (FirstRowForgotten, (draw(5, 3),), "x[0,0]"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
@pytest.mark.parametrize("there", [0.0, 7.0, float("nan")])
def test_a_gradient_of_unwritten_memory_is_wrong_whatever_lay_there(cls, inputs, entry: str, there: float) -> None:
    rubbish = [torch.full((n,), there, dtype=torch.float64) for n in (3, 6, 12, 15)]
    del rubbish
    report = nbautograd.gradcheck(cls, inputs, order=1)
    assert report.verdict == "wrong"
    (found,) = report.findings
    assert (found.message_id, found.params["name"] + found.params["entry"]) == ("causes.gradient_never_written", entry)
    fix = found.fix
    assert (None if fix is None else fix.source.strip()) == MENDED[cls]


def test_no_fix_writes_into_grad_output() -> None:
    x = draw(3, 4)
    report = nbautograd.gradcheck(OutsideForgotten, (x, x.detach() > 0), order=1)
    assert report.findings[0].message_id == "causes.gradient_never_written"
    assert report.findings[0].fix is None or report.findings[0].fix.source.strip() != "gx = g"


def test_an_output_of_unwritten_memory_cannot_be_judged() -> None:
    report = nbautograd.gradcheck(ForwardForgets, (draw(5),), order=1)
    assert report.verdict != "right"
    assert [f.message_id for f in report.findings] == ["causes.output_never_written"]


@pytest.mark.parametrize(("cls", "inputs"), [(AllWritten, draw(4, 3)), (RootAtZero, torch.tensor([0.0, 1.0, 4.0]))])
def test_memory_that_is_written_and_nan_of_other_reasons_are_none(cls, inputs) -> None:
    report = nbautograd.gradcheck(cls, (inputs.detach().double().requires_grad_(),), order=1)
    assert not [f for f in report.findings if "never_written" in f.message_id]


@pytest.mark.parametrize("on", [False, True])
def test_filling_memory_leaves_torch_as_it_was(on: bool, monkeypatch) -> None:
    monkeypatch.setattr(deterministic, "fill_uninitialized_memory", False)
    torch.use_deterministic_algorithms(on, warn_only=False)
    try:
        with contextlib.suppress(KeyError), FilledMemory():
            filled = torch.empty(3)
            raise KeyError
        assert filled.isnan().all()
        state = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        assert (*state, deterministic.fill_uninitialized_memory) == (on, False, False)
    finally:
        torch.use_deterministic_algorithms(False)


class NotTransposed(Fn):
    """With more rows of `q` than of `k` its gradient of `q` has rows that nothing writes."""

    def forward(ctx, q, k):
        states = [torch.zeros(k.shape[1], k.shape[1], dtype=k.dtype)]
        outputs = []
        for t in range(len(k)):
            states.append(states[-1] + torch.outer(k[t], k[t]))
            outputs.append(states[-1] @ q[t])
        ctx.save_for_backward(q, k)
        ctx.states = states
        return torch.stack(outputs)

    def backward(ctx, g):
        q, k = ctx.saved_tensors
        gq, gk = torch.empty_like(q), torch.empty_like(k)
        total = torch.zeros_like(ctx.states[0])
        for t in reversed(range(len(k))):
            gq[t] = ctx.states[t + 1] @ g[t]
            total = total + torch.outer(g[t], q[t])
            gk[t] = (total + total) @ k[t]
        return gq, gk


def test_a_fix_does_not_depend_on_what_lay_in_memory() -> None:
    fixes = set()
    for there in (0.0, 1.0, 1e9):
        rubbish = [torch.full((n,), there, dtype=torch.float64) for n in range(6, 40, 3)]
        del rubbish
        report = nbautograd.gradcheck(NotTransposed, (draw(5, 3), draw(5, 3, seed=1)), order=1)
        fixes.add(report.findings[0].fix.source.strip())
    assert fixes == {"gk[t] = (total.t() + total) @ k[t]"}
