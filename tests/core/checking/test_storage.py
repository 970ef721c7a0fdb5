"""Blocks are kept by structure and read as if they were dense."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbautograd.core.checking.jacobian import structure
from nbautograd.core.checking.jacobian.layout import BlockLayout, Matrices, indices
from nbautograd.errors import InputError


@st.composite
def layouts(draw):
    pairs = draw(st.lists(st.integers(2, 3), max_size=2))
    out = pairs + draw(st.lists(st.integers(1, 3), max_size=2))
    inp = pairs + draw(st.lists(st.integers(1, 3), max_size=2))
    out_order, in_order = draw(st.permutations(range(len(out)))), draw(st.permutations(range(len(inp))))
    found = tuple((out_order.index(k), in_order.index(k)) for k in range(len(pairs)))
    return BlockLayout(tuple(out[k] for k in out_order), tuple(inp[k] for k in in_order), tuple(sorted(found)))


def dense(layout, data):
    """The whole matrix, entry by entry."""
    blocks, rows, cols = layout.sizes
    full = np.zeros((int(np.prod(layout.output_shape)), int(np.prod(layout.input_shape))))
    for b in range(blocks):
        for r in range(rows):
            for c in range(cols):
                out, inp = layout.place((b, r, c))
                row = np.ravel_multi_index(out, layout.output_shape) if out else 0
                col = np.ravel_multi_index(inp, layout.input_shape) if inp else 0
                full[row, col] = data[b, r, c]
    return full


@settings(max_examples=60)
@given(layout=layouts(), seed=st.integers(0, 9))
def test_parts_pools_and_products_are_those_of_the_dense_matrix(layout, seed):
    random = np.random.default_rng(seed)
    data = random.normal(size=layout.sizes)
    full, matrices = dense(layout, data), Matrices(layout, data, 2 * data)
    every = [np.arange(n) for n in full.shape]
    np.testing.assert_array_equal(matrices.part("analytical", *every), full)
    np.testing.assert_array_equal(matrices.part("difference", every[0][::2], every[1][-1:]), -full[::2, -1:])
    u, v = random.normal(size=layout.input_shape), random.normal(size=layout.output_shape)
    np.testing.assert_allclose(structure.push_forward(layout, data, u).reshape(-1), full @ u.reshape(-1))
    np.testing.assert_allclose(structure.pull_back(layout, data, v).reshape(-1), full.T @ v.reshape(-1))
    pooled = matrices.pool("analytical", (-(-full.shape[0] // 2), -(-full.shape[1] // 3)), (2, 3))
    for (i, j), cell in np.ndenumerate(pooled):
        part = full[2 * i : 2 * i + 2, 3 * j : 3 * j + 3]
        assert abs(cell) == np.abs(part).max()
        assert cell in part or cell == 0


def test_entries_beyond_the_edge_are_refused():
    with pytest.raises(InputError):
        indices([5], 5)
    assert list(indices([-1], 5)) == [4]
    assert list(indices(slice(1, None, 2), 5)) == [1, 3]
