"""Reading ctx as forward or setup_context leaves it: only plain attributes, never ``saved_tensors``.

``ctx.saved_tensors`` runs unpack hooks, checks versions and may clear; ``ctx.to_save`` holds the same objects while
forward has not been wrapped up yet.
"""

from __future__ import annotations

from typing import Any

import torch

from nbautograd.core import torch_internals as internals
from nbautograd.core.recording.snapshot import PLAIN_TYPES, Raw, raw
from nbautograd.core.recording.state import RawCtx

Seen = dict[int, tuple[str, Raw]]


def innermost(ctx: Any) -> Any:
    """The real ctx inside the wrappers that ``torch.func.vmap`` puts around it."""
    while "_pt_inner_ctx" in getattr(ctx, "__dict__", ()):
        ctx = ctx.__dict__["_pt_inner_ctx"]
    return ctx


def read_ctx(ctx: Any, seen: Seen, level: int) -> RawCtx:
    """Describe what was saved, put or marked on ctx; seen says which objects are inputs and outputs."""
    kept = RawCtx()
    saved = getattr(ctx, "to_save", None)
    if saved:
        saved = saved if isinstance(saved, tuple) else (saved,)
        kept.saved, kept.saved_same = _known(saved, seen, level)
        kept.bytes = _bytes(saved)
    attributes = {name: value for name, value in vars(ctx).items() if not name.startswith("_pt_")}
    if attributes:
        described, same = _known(tuple(attributes.values()), seen, level)
        kept.attributes = dict(zip(attributes, described, strict=True))
        kept.attributes_same = dict(zip(attributes, same, strict=True))
    kept.needs_input_grad = tuple(getattr(ctx, "needs_input_grad", None) or ())
    kept.dirty = _names(getattr(ctx, "dirty_tensors", None), seen)
    kept.non_differentiable = _names(getattr(ctx, "non_differentiable", None), seen)
    return kept


def _known(values: tuple[Any, ...], seen: Seen, level: int) -> tuple[tuple[Raw, ...], tuple[str, ...]]:
    before = [seen.get(id(value)) if isinstance(value, torch.Tensor) else None for value in values]
    described = tuple(raw(v, level) if b is None else b[1] for v, b in zip(values, before, strict=True))
    return described, tuple("" if b is None else b[0] for b in before)


def _names(tensors: Any, seen: Seen) -> tuple[str, ...]:
    if not tensors:
        return ()
    tensors = tensors if isinstance(tensors, tuple) else (tensors,)
    return tuple(seen.get(id(tensor), ("?", None))[0] for tensor in tensors)


def _bytes(saved: tuple[Any, ...]) -> int:
    """Bytes that the saved tensors hold; of those that share a storage the largest counts."""
    sizes: dict[int, int] = {}
    for tensor in saved:
        plain = internals.unwrap_for_grad(tensor) if type(tensor) in PLAIN_TYPES else tensor
        if type(plain) in PLAIN_TYPES and not internals.bytes_reason(plain):
            storage = internals.storage_of(plain)
            sizes[storage] = max(sizes.get(storage, 0), plain.numel() * plain.element_size())
    return sum(sizes.values())
