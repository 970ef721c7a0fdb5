"""Summaries: the recorder's, made from raw bytes, say what the tensor's own elements say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbautograd.core import values
from nbautograd.core.recording import snapshot
from nbautograd.core.recording.live_log import summary_of
from nbautograd.core.recording.snapshot import POOLED, SUMMARY, VALUES, snapshots
from nbautograd.core.statistics import Ranges, statistics

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn,
]  # fmt: skip
STATISTICS = ("min", "max", "mean", "std", "norm", "nan", "inf", "zeros")


def kept(tensor, level):
    return snapshots([tensor], level)[0]


def made(shape, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * 3).to(dtype)


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(0, 5), max_size=3),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(["as is", "transposed", "sliced", "behind", "columns", "expanded"]),
    seed=st.integers(0, 9),
)
def test_raw_summary_is_the_tensors(shape, dtype, layout, seed):
    tensor = made(shape, dtype, seed)
    if layout == "transposed" and tensor.ndim > 1:
        tensor = tensor.transpose(0, -1)
    elif layout == "sliced" and tensor.ndim:
        tensor = tensor[::2]
    elif layout == "behind" and tensor.ndim:
        tensor = tensor[1:]
    elif layout == "columns" and tensor.ndim:
        tensor = tensor[..., 1:]
    elif layout == "expanded":
        tensor = tensor.expand(2, *tensor.shape)
    ours, full = summary_of(kept(tensor, SUMMARY)), values.summarise(tensor)
    assert ours.shape == full.shape == tuple(tensor.shape)
    assert not ours.sampled
    for name in STATISTICS:
        expected = getattr(full, name)
        assert getattr(ours, name) == (None if expected is None else pytest.approx(expected, rel=1e-6)), name
    np.testing.assert_allclose(ours.thumbnail, full.thumbnail, rtol=1e-6)
    assert ours.values == full.values


@given(
    data=st.lists(
        st.sampled_from([0.0, -0.0, 1.5, -2.0, float("nan"), float("inf"), -float("inf"), 1e308]), max_size=12
    )
)
def test_statistics_against_torch(data):
    tensor = torch.tensor(data, dtype=torch.float64)
    ours = values.summarise(tensor)
    finite = tensor[tensor.isfinite()]
    assert ours.nan == int(tensor.isnan().sum())
    assert ours.inf == int(tensor.isinf().sum())
    assert ours.zeros == int((tensor == 0).sum())
    if len(finite):
        assert (ours.min, ours.max) == (finite.min().item(), finite.max().item())
        if finite.abs().max() < 1e300:
            assert ours.norm == pytest.approx(torch.linalg.vector_norm(finite).item())
            assert ours.std == pytest.approx(finite.std(unbiased=False).item())
    else:
        assert ours.min is ours.norm is None


def test_large_tensors_are_sampled_at_summary_and_whole_at_values():
    tensor = torch.arange(100_000, dtype=torch.float64)
    sample, whole = summary_of(kept(tensor, SUMMARY)), summary_of(kept(tensor, VALUES))
    assert sample.sampled
    assert sample.min == 0.0
    assert sample.max > 99_000
    assert not whole.sampled
    assert whole.mean == pytest.approx(tensor.mean().item(), rel=4e-16)  # not every NumPy sums in torch's order


@pytest.mark.parametrize("level", [SUMMARY, POOLED, VALUES])
@pytest.mark.parametrize("large", [lambda x: x[40:], lambda x: x[40:, 1:], lambda x: x[40:].T])
def test_a_large_slice_is_read_from_where_it_begins(large, level):
    tensor = large(torch.arange(60_000.0).reshape(200, 300))
    ours = summary_of(kept(tensor, level))
    assert ours.min >= 12_000
    if level != SUMMARY:
        assert (ours.min, ours.max) == (tensor.min(), tensor.max())


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (torch.empty(3, device="meta"), "device"),
        (torch.eye(3).to_sparse(), "layout"),
        (torch.ones(3, dtype=torch.complex64).conj(), "layout"),
        (torch.ones(3, dtype=torch.complex64).conj().imag, "layout"),  # negative only when read
        (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8), "layout"),
        (torch.eye(3).to_sparse_csr(), "layout"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "layout"),
        (torch._efficientzerotensor((3,)), "layout"),
        (torch._to_functional_tensor(torch.ones(3)), "layout"),
    ],
)
@pytest.mark.parametrize("grad", [True, False])  # within forward it is off, and the check of the storage has no guard
def test_reasons_for_missing_elements(tensor, reason, grad):
    with torch.set_grad_enabled(grad):
        assert summary_of(kept(tensor, SUMMARY)).reason.message_id == f"recording.missing.{reason}"


def test_vmap_levels_have_no_elements_and_grad_levels_have():
    seen = []

    def f(x):
        seen.append(summary_of(kept(x, SUMMARY)))
        return x.sum()

    torch.func.vmap(f)(torch.ones(2, 3))
    torch.func.grad(f)(torch.full((3,), 2.0))
    assert (seen[0].reason.message_id, seen[0].reason.params["level"]) == ("recording.missing.vmap", 1)
    assert (seen[1].reason, seen[1].mean) == (None, 2.0)


def test_freed_storage_is_not_read():
    tensor = torch.ones(1000)
    tensor.untyped_storage().resize_(0)
    assert summary_of(kept(tensor, SUMMARY)).reason.message_id == "recording.missing.storage"


@settings(max_examples=40)
@given(shape=st.lists(st.integers(1, 90), min_size=1, max_size=3), seed=st.integers(0, 9), odd=st.booleans())
def test_a_pooled_picture_shows_the_range_of_each_block(shape, seed, odd):
    tensor = made(shape, torch.float64, seed)
    if odd:
        tensor.view(-1)[seed % tensor.numel()] = float("nan")
    found = values.summarise(tensor)
    sheet = tensor.reshape(-1, shape[-1])
    step = found.ranges or Ranges(1, 1, found.thumbnail, found.thumbnail)
    assert max(found.thumbnail.shape) <= 32
    for r, rows in enumerate(sheet.split(step.rows)):
        for c, block in enumerate(rows.split(step.cols, dim=1)):
            known = block[~block.isnan()]
            low, high, cell = step.low[r, c], step.high[r, c], found.thumbnail[r, c]
            if known.numel():
                assert (low, high) == (known.min().item(), known.max().item())
            assert math.isnan(cell) == bool(block.isnan().any())
            if not block.isnan().any():
                assert abs(cell) == block.abs().max().item()


@pytest.mark.parametrize("layout", ["as is", "transposed", "sliced"])
def test_a_large_tensor_is_pooled_from_all_of_its_elements(layout):
    tensor = torch.randn(300, 400, dtype=torch.float64)
    tensor[7, 11] = 1e6  # one wrong element
    tensor = {"as is": tensor, "transposed": tensor.t(), "sliced": tensor[::2]}[layout]
    ours, full = summary_of(kept(tensor, POOLED)), values.summarise(tensor)
    assert not ours.sampled
    assert (ours.nan, ours.zeros, ours.numel) == (full.nan, full.zeros, full.numel)
    np.testing.assert_array_equal(ours.thumbnail, full.thumbnail)
    np.testing.assert_array_equal(ours.ranges.low, full.ranges.low)
    assert (layout == "sliced") != (1e6 in ours.thumbnail)
    one = kept(tensor, POOLED)
    assert one.data is None  # what is kept of it is small


def test_a_tensor_beyond_all_bounds_is_sampled_even_so(monkeypatch):
    monkeypatch.setitem(snapshot._WHOLE, POOLED, 100_000)
    assert summary_of(kept(torch.zeros(20_000), POOLED)).ranges is not None
    assert summary_of(kept(torch.zeros(30_000), POOLED)).sampled


def test_an_expanded_tensor_of_any_size_is_described_without_being_written_out():
    one = torch.tensor([[0.0], [-3.0], [math.nan]])
    for level in (SUMMARY, VALUES):
        (huge,) = snapshots([one.expand(3, 10**12)], level)
        assert len(huge.data) == one.nbytes
        found = summary_of(huge)
        assert (found.numel, found.nan, found.zeros, found.sampled) == (3 * 10**12, 10**12, 10**12, False)
        assert (found.min, found.max, found.mean, found.values) == (-3.0, 0.0, -1.5, None)
        assert found.norm == pytest.approx(3 * 10**6)


@pytest.mark.parametrize("level", [SUMMARY, VALUES])
@pytest.mark.parametrize("rows", [3, 3000])
def test_repeats_have_the_statistics_of_what_is_written_out(rows, level):
    one = torch.randn(rows, 1, generator=torch.Generator().manual_seed(0))
    large = one.expand(rows, 2**17 // rows)
    (taken,) = snapshots([large[:, :7], large], level)[1:]
    found, expected = summary_of(taken), statistics(large.numpy())
    if not found.sampled:
        assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, rel=1e-5)
    assert bool(found.sampled) == (rows > 1024 and level == SUMMARY)


def test_windows_that_overlap_are_not_written_out():
    windows = torch.arange(200_000.0).as_strided((100_000, 100_000), (1, 1))
    (taken,) = snapshots([windows], VALUES)
    found = summary_of(taken)
    assert (found.sampled, found.min, found.max) == (199_999, 0.0, 199_998.0)
