"""Reading ctx as forward or setup_context leaves it: only plain attributes, never ``saved_tensors``.

``ctx.saved_tensors`` runs unpack hooks, checks versions and may clear; ``ctx.to_save`` holds the same objects while
forward has not been wrapped up yet.
"""

from __future__ import annotations

from typing import Any

import torch

from nbautograd.core import torch_internals as internals
from nbautograd.core.recording.describing import Seen
from nbautograd.core.recording.snapshot import PLAIN_TYPES, Raw, raw


def innermost(ctx: Any) -> Any:
    """The real ctx inside the wrappers that ``torch.func.vmap`` puts around it."""
    while "_pt_inner_ctx" in getattr(ctx, "__dict__", ()):
        ctx = ctx.__dict__["_pt_inner_ctx"]
    return ctx


def read_ctx(ctx: Any, seen: Seen, level: int) -> tuple[tuple[Any, ...], int]:
    """Describe what was saved, put or marked on ctx; seen says which objects are inputs and outputs.

    Returns:
        The fields of a RawCtx, and how many bytes the descriptions take.
    """
    saved = getattr(ctx, "to_save", None) or ()
    saved = saved if isinstance(saved, tuple) else (saved,)
    raws, same, size = _known(saved, seen, level)
    held = _bytes(saved) if saved else 0
    names: tuple[str, ...] = ()
    attributes: tuple[Raw, ...] = ()
    attributes_same: tuple[str, ...] = ()
    if vars(ctx):
        put = {name: value for name, value in vars(ctx).items() if not name.startswith("_pt_")}
        names = tuple(put)
        attributes, attributes_same, more = _known(tuple(put.values()), seen, level)
        size += more
    needs = tuple(getattr(ctx, "needs_input_grad", None) or ())
    dirty = _names(getattr(ctx, "dirty_tensors", None), seen)
    marked = _names(getattr(ctx, "non_differentiable", None), seen)
    return (raws, same, names, attributes, attributes_same, needs, dirty, marked, held), size


def _known(values: tuple[Any, ...], seen: Seen, level: int) -> tuple[tuple[Raw, ...], tuple[str, ...], int]:
    described, same, size = [], [], 0
    for value in values:
        before = seen.get(id(value)) if isinstance(value, torch.Tensor) else None
        one = raw(value, level) if before is None else before[1]
        described.append(one)
        same.append("" if before is None else before[0])
        size += 250 + (len(one[7]) if before is None and len(one) == 10 and one[7] else 0)
    return tuple(described), tuple(same), size


def _names(tensors: Any, seen: Seen) -> tuple[str, ...]:
    if not tensors:
        return ()
    tensors = tensors if isinstance(tensors, tuple) else (tensors,)
    return tuple(seen.get(id(tensor), ("?", None))[0] for tensor in tensors)


def _bytes(saved: tuple[Any, ...]) -> int:
    """Bytes that the saved tensors hold; of those that share a storage the largest counts."""
    sizes: dict[int, int] = {}
    for tensor in saved:
        if type(tensor) in PLAIN_TYPES:
            try:
                storage, size = internals.storage_of(tensor), tensor.nbytes
            except (NotImplementedError, RuntimeError):  # sparse, or inside a level of torch.func
                continue
            sizes[storage] = max(sizes.get(storage, 0), size)
    return sum(sizes.values())
