"""Trust: no false alarm on torch's own operators, no damaged gradient unseen. The oracle is torch's gradcheck."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import islice

import pytest
import torch
from fn import Fn

from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.run import GradcheckRun

pytest.importorskip("expecttest", reason="torch's op_db needs the package expecttest")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DAMAGES = {
    "negated": lambda g: -g,
    "slightly scaled": lambda g: g * 1.00001,
    "wiggled": lambda g: g * (1 + 0.01 * torch.linspace(-1, 1, g.numel(), dtype=torch.float64).sin().reshape(g.shape)),
    "zero": torch.zeros_like,
}


def verdicts(fn, inputs):
    run = GradcheckRun(Problem(fn, inputs), None, None, None)
    with run.problem.session():
        run.find_blocks()
    return {b.verdict for b in run.blocks.values() if b.entries} | ({"error"} if run.error else set())


def torch_passes(fn, inputs):
    try:
        return torch.autograd.gradcheck(fn, inputs)
    except Exception:  # GradcheckError, or whatever the operator raises
        return False


@pytest.mark.parametrize(("per_op", "step", "least"), [(1, 12, 22), pytest.param(3, 1, 800, marks=pytest.mark.nightly)])
def test_no_false_alarm_on_torchs_operators(per_op, step, least):
    from op_db_samples import samples

    alarms, undecided, right = [], [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fn, inputs in islice(samples(per_op), 0, None, step):
            found = verdicts(fn, inputs)
            right += found <= {"match", "subgradient"}
            if found & {"mismatch", "error"} and torch_passes(fn, inputs):
                alarms.append(name)
            elif found & {"undecided", "flat"} and torch_passes(fn, inputs):
                undecided.append(name)
    assert right > least
    assert alarms == []
    assert len(undecided) <= 0.005 * right


# The identity with a damaged gradient, put in front of an operator.
Damaged = Fn.of("Damaged", "x, damage: ctx.damage = damage; return x.view_as(x)",
    "grad: return DAMAGES[ctx.damage](grad), None")  # fmt: skip


@pytest.mark.nightly
def test_damaged_gradients_are_seen():
    from op_db_samples import samples

    seen, missed = Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fn, inputs in islice(samples(1), 2, None, 3):
            gradient = _gradient(fn, inputs)
            if gradient is None or gradient.numel() < 2:
                continue
            for damage in DAMAGES:
                if not torch.allclose(DAMAGES[damage](gradient), gradient, rtol=1e-6, atol=0):
                    found = verdicts(lambda x, *rest, d=damage, f=fn: f(Damaged.apply(x, d), *rest), inputs)
                    seen["mismatch" in found] += 1
                    if "mismatch" not in found:
                        missed.append((name, damage, found))
    assert seen[True] > 400
    assert seen[False] <= 0.005 * seen[True], missed


def _gradient(fn, inputs):
    """The gradient of a random projection, or None where torch itself does not vouch for the operator."""
    try:
        result = fn(*inputs)
        outputs = [t for t in (result if isinstance(result, (tuple, list)) else [result]) if t.requires_grad]
        total = sum((t.real * torch.linspace(1, 2, t.numel()).reshape(t.shape)).sum() for t in outputs)
        gradient = torch.autograd.grad(total, inputs[0], allow_unused=True)[0]
    except Exception:  # integer or complex results that this projection does not know
        return None
    known = gradient is not None and torch.isfinite(gradient).all() and (gradient.abs() > 1e-9).any()
    return gradient if known and torch_passes(fn, inputs) else None
