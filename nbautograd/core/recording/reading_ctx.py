"""Reading ctx as forward or setup_context leaves it: only plain attributes, never ``saved_tensors``.

``ctx.saved_tensors`` runs unpack hooks, checks versions and may clear; ``ctx.to_save`` holds the same objects while
forward has not been wrapped up yet.
"""

from __future__ import annotations

from typing import Any

import torch

from nbautograd.core.recording.describing import DESCRIBE, Known
from nbautograd.core.recording.snapshot import PLAIN_TYPES, SUMMARY
from nbautograd.core.torch_private import tensors as internals

ONLY_SAVES = frozenset({"save_for_backward", "needs_input_grad"})  # of these only the first leaves anything


def innermost(ctx: Any) -> Any:
    """The real ctx inside the wrappers that ``torch.func.vmap`` puts around it."""
    while "_pt_inner_ctx" in getattr(ctx, "__dict__", ()):
        ctx = ctx.__dict__["_pt_inner_ctx"]
    return ctx


def read_ctx(ctx: Any, uses: frozenset[str] | None, known: Known, level: int) -> tuple[Any, ...]:
    """Describe what was saved, put or marked on ctx.

    Args:
        ctx: the real ctx.
        uses: the attributes of ctx that the method can have touched, None when it can be any.
        known: what this call has described; grows.
        level: how much to keep.

    Returns:
        Saved tensors, names and values of attributes, needs_input_grad (None: as the inputs say), ids of the dirty and
        of the non-differentiable tensors, and for each saved tensor its storage and how many bytes that has (nothing
        where the sizes tell).
    """
    raws: tuple[Any, ...] = ()
    held: tuple[int, ...] = ()
    try:
        saved = ctx.to_save
        if saved:
            if type(saved) is not tuple:
                saved = (saved,)
            raws = tuple(map(known.get, map(id, saved)))
            met = all(raws)
            if not met:
                raws = DESCRIBE[level](saved, known)
            if level >= SUMMARY and not (met and own_storages(saved)):
                held = _held(saved)
        if uses is not None and uses <= ONLY_SAVES:
            return raws, (), (), None, (), (), held
        needs, dirty, marked = ctx.needs_input_grad, ctx.dirty_tensors, ctx.non_differentiable
    except AttributeError:  # forward called without a ctx of PyTorch's
        needs = dirty = marked = None
    names: tuple[str, ...] = ()
    attributes: tuple[Any, ...] = ()
    put = ctx.__dict__
    if put:
        names = tuple([name for name in put if not name.startswith("_pt_")])
        attributes = DESCRIBE[level]([put[name] for name in names], known)
    return raws, names, attributes, needs or (), _ids(dirty), _ids(marked), held


def places(met: tuple[Any, ...], saved: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Where among these values each saved tensor is, -1 for None; None when one is not among them."""
    at = {id(value): i for i, value in reversed([*enumerate(met)])}
    found = tuple([-1 if tensor is None else at.get(id(tensor), -2) for tensor in saved])
    return None if -2 in found else found


def beside_saved(
    ctx: Any, saved: tuple[Any, ...], uses: frozenset[str] | None, all_met: bool, level: int
) -> tuple[Any, ...] | None:
    """What ``read_ctx`` gives besides the saved tensors and the marks; None when it takes more than a short record.

    Args:
        ctx, uses, level: as there.
        saved: what was saved.
        all_met: whether all of it was given or returned.
    """
    held = () if level < SUMMARY or (all_met and own_storages(saved)) else _held(saved)
    if uses is not None and uses <= ONLY_SAVES:
        return ((), (), None, held) if held else ()
    if ctx.dirty_tensors or ctx.non_differentiable:
        return None
    put = ctx.__dict__
    names = tuple([name for name in put if not name.startswith("_pt_")])
    if any(isinstance(put[name], torch.Tensor) for name in names):
        return None
    return names, DESCRIBE[level]([put[name] for name in names], {}), ctx.needs_input_grad or (), held


def _ids(tensors: Any) -> tuple[int, ...]:
    if not tensors:
        return ()
    return tuple(map(id, tensors if isinstance(tensors, tuple) else (tensors,)))


def own_storages(saved: tuple[Any, ...]) -> bool:
    """True when the storages can be told from the sizes: inputs and outputs, and no views."""
    for tensor in saved:  # noqa: SIM110 - faster than all()
        if type(tensor) not in PLAIN_TYPES or tensor._is_view():
            return False
    return True


def _held(saved: tuple[Any, ...]) -> tuple[int, ...]:
    """For each saved tensor what tells its storage apart, and the bytes of that storage: a view's is its base's."""
    held = []
    for tensor in saved:
        if type(tensor) in PLAIN_TYPES:
            try:
                held.append(internals.storage_of(tensor))
                base = tensor._base if tensor._is_view() else tensor
                held.append(base.nbytes)
            except (NotImplementedError, RuntimeError):  # sparse, or inside a level of torch.func
                del held[len(held) // 2 * 2 :]
    return tuple(held)
