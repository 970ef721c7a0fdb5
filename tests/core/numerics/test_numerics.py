"""Comparisons and slopes, against what torch and calculus say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nbautograd.core.numerics.compare import (
    agree_bitwise,
    agree_within,
    agree_within_rounding,
    largest_finite,
)
from nbautograd.core.numerics.directional import slope_at_zero

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        ([1.0, NAN], [1.0, NAN], True), ([1.0, NAN], [1.0, 2.0], False), ([INF], [INF], True), ([INF], [-INF], False),
        ([NAN], [0.0], False), ([0.0], [-0.0], True), ([1.0], [1.0 + 2**-52], False), ([], [], True),
    ],
)  # fmt: skip
def test_bits(a, b, alike):
    a, b = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b))
    assert agree_bitwise(a, b) is alike
    assert agree_bitwise(b, a) is alike


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 6)), min_size=1, max_size=20))
def test_a_number_agrees_with_its_rounding_and_not_with_one_of_fewer_digits(values):
    exact = np.array(values)
    eps = float(np.finfo(np.float32).eps)
    assert agree_within_rounding(exact, exact.astype(np.float32), eps)
    coarse = exact + 1e-3 * np.abs(exact).max(initial=1.0)
    assert not agree_within_rounding(exact, coarse, eps)


def test_rounding_takes_nan_for_nan_and_infinity_for_infinity_only():
    exact = np.array([NAN, INF, 1.0])
    assert agree_within_rounding(exact, exact.copy(), 1e-12)
    assert not agree_within_rounding(np.array([1.0, 2.0]), np.array([NAN, 2.0]), 1e-3)


def test_a_bound_widens_what_agrees_and_nan_never_agrees():
    one, other = np.array([1.0, 1.0, NAN, 1.0]), np.array([1.5, 1.5, 1.0, 1.0 + 1e-9])
    found = agree_within(one, other, np.array([1.0, 0.1, 10.0, 1e-8]))
    assert found.tolist() == [True, False, False, True]


def test_small_numbers_beside_an_infinite_one_are_compared_by_what_is_finite():
    exact = np.array([np.inf, 1.0, 1e-9])
    assert agree_within_rounding(exact, exact, 1e-6)
    assert not agree_within_rounding(exact, np.array([np.inf, 1.0, 2e-2]), 1e-6)
    assert largest_finite(exact) == 1.0
    assert largest_finite(np.array([np.nan])) == largest_finite(np.empty(0)) == 0.0


@pytest.mark.parametrize("f", [abs, lambda h: NAN if h < 0 else math.sqrt(h), lambda h: NAN])
def test_no_slope_at_a_kink_or_outside_the_domain(f):
    assert slope_at_zero(f, 1.0, torch.float64) is None
