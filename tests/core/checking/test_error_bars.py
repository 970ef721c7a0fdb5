"""Error bars cover the truth: derivatives of closed forms, computed by mpmath to 40 digits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.checking.steps.refine import refine

mpmath = pytest.importorskip("mpmath")

FUNCTIONS = {
    "exp": (torch.exp, mpmath.exp, (-3, 3)),
    "sin 20x": (lambda x: (20 * x).sin(), lambda x: mpmath.sin(20 * x), (-2, 2)),
    "1/x": (lambda x: 1 / x, lambda x: 1 / x, (1e-3, 1e-1)),
    "log": (torch.log, mpmath.log, (1e-2, 5)),
    "tanh": (torch.tanh, mpmath.tanh, (-4, 4)),
    "cube": (lambda x: x**3, lambda x: x**3, (-5, 5)),
    "gamma": (torch.lgamma, mpmath.loggamma, (0.1, 6)),
    "offset": (lambda x: x.sin() + 1e6, lambda x: mpmath.sin(x) + 10**6, (-3, 3)),
    "root": (torch.sqrt, mpmath.sqrt, (1e-4, 4)),
    "erf": (torch.erf, mpmath.erf, (-2, 2)),
}
POINTS = 60


def bars(fn, low, high):
    """Points, and the derivative with its error bar at each, as the ladder finds them."""
    generator = torch.Generator().manual_seed(9)
    x = torch.rand(POINTS, generator=generator, dtype=torch.float64) * (high - low) + low
    run = GradcheckRun(Problem(fn, x.requires_grad_()), None, None, None)
    with run.problem.session():
        run.find_blocks()
        raw = run.raws[0, 0]
        found = refine(raw, np.ones(raw.matrices.analytical.shape, dtype=bool))
    return x.detach().numpy()[found.entries[:, 0]], found.value, found.error


def test_error_bars_cover_the_truth():
    covered, generous = [], []
    with mpmath.workdps(40):
        for fn, exact, interval in FUNCTIONS.values():
            points, values, errors = bars(fn, *interval)
            truth = np.array([float(mpmath.diff(exact, mpmath.mpf(float(p)))) for p in points])
            off = np.abs(values - truth)
            covered.extend(off <= errors + 2 * np.finfo(float).eps * np.abs(truth))
            generous.extend(errors / np.maximum(off, np.finfo(float).eps * np.abs(truth)))
    assert len(covered) == POINTS * len(FUNCTIONS)
    assert np.mean(covered) >= 0.99
    assert np.median(generous) <= 100
