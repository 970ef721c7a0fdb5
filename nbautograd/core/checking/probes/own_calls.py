"""Calls of the check's own as recording would have them, for the rules of the contract that watch a call."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import Observed
from nbautograd.core.checking.jacobian.forward_values import StubContext
from nbautograd.core.checking.problem import Problem, separate_context
from nbautograd.core.checking.quiet import seed_all
from nbautograd.core.recording.record import OWN_CALL, CallRecord, CtxRecord, InstrumentedFunction
from nbautograd.core.recording.snapshot import SHAPES, Known, snapshots
from nbautograd.core.torch_private import ctx as private_ctx


def forward_record(subject: Problem) -> CallRecord | None:
    """Run forward once with a stand-in ctx; return the record of it, None where the class is not called directly.

    The record has no outputs, and of ctx only what inputs need a gradient, where forward wants the real ctx.
    """
    if subject.cls is None or not subject.direct:
        return None
    given = subject.fresh()
    ctx = StubContext(tuple(isinstance(x, Tensor) and x.requires_grad for x in given))
    record = _record(subject.cls, "forward", given)
    record.ctx = CtxRecord(needs_input_grad=ctx.needs_input_grad)
    with contextlib.suppress(Exception):
        seed_all(subject.seed)
        subject.meter.count()
        values = _run(subject.cls, ctx, given)
        record.outputs = snapshots(values, SHAPES, record.known)
        put = private_ctx.attributes(ctx)
        record.ctx.attributes = dict(zip(put, snapshots(put.values(), SHAPES, record.known), strict=True))
        record.ctx.dirty = tuple(map(id, ctx.dirty_tensors))
    return record


def _run(cls: Any, ctx: StubContext, given: tuple[Any, ...]) -> Sequence[Any]:
    """Run forward as ``apply`` does, with grad mode off."""
    with torch.no_grad():
        if separate_context(cls):
            result = cls.forward(*given)
            cls.setup_context(ctx, given, result)
        else:
            result = cls.forward(ctx, *given)
    return result if isinstance(result, (tuple, list)) else (result,)


def backward_record(cls: type, observed: Observed) -> CallRecord:
    """Return the record of a backward that was observed."""
    record = _record(cls, "backward", observed.grad_outputs)
    record.outputs = snapshots(observed.returned or (), SHAPES)
    record.changed = tuple(observed.changed)
    return record


def _record(cls: type, method: str, given: Sequence[Any]) -> CallRecord:
    record = CallRecord(OWN_CALL, InstrumentedFunction(cls, SHAPES), method, None, "", None)
    record.known = Known()
    record.inputs = snapshots(given, SHAPES, record.known)
    return record
