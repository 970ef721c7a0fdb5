"""The route for tensors on other devices, forced on the CPU: there is no other device where these tests run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbautograd.core.recording import memory
from nbautograd.core.recording.live_log import summary_of
from nbautograd.core.recording.snapshot import SUMMARY, VALUES, elements, snapshots
from nbautograd.core.torch_private import tensors as private


@pytest.fixture
def forced(monkeypatch):
    """Every tensor goes the way of those on another device."""

    def unusual(value, level, wanted):
        one = real(value, "Tensor", 1, [])
        if level >= SUMMARY:
            one.data, one.strides, one.reason = memory.copied_from_device(value, level == SUMMARY)
        return one

    from nbautograd.core.recording import snapshot

    real = snapshot._unusual
    monkeypatch.setattr(memory, "device_values", True)
    monkeypatch.setattr(snapshot, "_tensor", lambda value, kind, level, wanted: unusual(value, level, wanted))


@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(0, 40), max_size=3),
    layout=st.sampled_from(["as is", "transposed", "sliced", "expanded"]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.complex64, torch.int32, torch.bool]),
)
def test_what_arrives_are_the_tensors_elements(shape, layout, dtype):
    tensor = (torch.randn(shape) * 3).to(dtype)
    if layout == "transposed" and tensor.ndim > 1:
        tensor = tensor.transpose(0, -1)
    elif layout == "sliced" and tensor.ndim:
        tensor = tensor[::2]
    elif layout == "expanded":
        tensor = tensor.expand(2, *tensor.shape)
    memory.device_values, before = True, memory.device_values
    try:
        copy, strides, reason = memory.copied_from_device(tensor, sample=False)
    finally:
        memory.device_values = before
    assert (strides, reason) == ((), None)
    expected = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor).flatten()
    assert copy.wait() == expected.view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x.t(), lambda x: x[:, ::3], lambda x: x[:1].expand(300, -1)])
def test_a_sample_is_spread_evenly_in_row_major_order(make, forced):
    tensor = make(torch.arange(300.0 * 200).reshape(300, 200))
    (one,) = snapshots([tensor], SUMMARY)
    sample = elements(one)
    step = (tensor.numel() - 1) // 511
    assert sample.tolist() == tensor.flatten()[: 511 * step + 1 : step].tolist()
    assert summary_of(one).sampled


def test_what_changes_after_the_call_does_not_change_the_record(forced):
    x = torch.ones(3)
    (one,) = snapshots([x], VALUES)
    x.zero_()
    assert elements(one).tolist() == [1.0, 1.0, 1.0]


def test_a_storage_smaller_than_the_tensor_says_is_not_read(forced):
    x = torch.zeros(1000)
    x.untyped_storage().resize_(4)
    (one,) = snapshots([x], SUMMARY)
    assert one.data is None
    assert one.reason.message_id == "recording.missing.storage"


def test_off_unless_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "device_values", False)
    assert memory.copied_from_device(torch.ones(3), sample=True)[0] is None


def test_nothing_is_copied_while_a_graph_is_captured(monkeypatch):
    monkeypatch.setattr(memory, "device_values", True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    on_a_gpu = SimpleNamespace(device=torch.device("cuda"))  # nothing else of it is looked at
    copy, _, reason = memory.copied_from_device(on_a_gpu, sample=True)
    assert copy is None
    assert "captured" in str(reason)


def test_a_copy_is_waited_for_before_it_is_read():
    host, waited = torch.zeros(2), []

    class Event:
        def synchronize(self):
            waited.append(True)
            host.fill_(5)

    assert np.frombuffer(memory.PendingCopy(host, Event()).wait(), np.float32).tolist() == [5.0, 5.0]
    assert waited == [True]
    assert private.only_kernels is not None
