"""Wrong gradients made of a right one: what a comparison must be able to tell from it, or its silence means nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

TILES = (128, 64, 32, 16)  # what kernels cut dimensions into
ALMOST = 0.99


def mutations(
    gradient: Tensor, like: Mapping[str, Tensor], grad_outputs: Sequence[Tensor], dims: int | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Yield a code and the gradient with that fault.

    Args:
        gradient: float64, of any shape.
        like: the other tensors of its shape by name: inputs, grad_outputs, outputs.
        grad_outputs: those of the draw.
        dims: how many of its last dimensions are the gradient's own, where several draws are stacked.

    Yields:
        ``"zero"``, ``"almost"`` (0.99 of it), ``"tail_row"``, ``"tail_column"``, ``"tail_tile"`` (set to zero), and
        ``"term"`` (a projection of grad_output on an input too much or too little, as where the backward of a norm
        forgets its mean); those that make sense for its shape.
    """
    yield "zero", torch.zeros_like(gradient)
    yield "almost", ALMOST * gradient
    dims = gradient.dim() if dims is None else dims
    if dims > 1 and gradient.shape[-2] > 1:
        yield "tail_row", _without(gradient, -2, gradient.shape[-2] - 1)
    if dims and gradient.shape[-1] > 1:
        yield "tail_column", _without(gradient, -1, gradient.shape[-1] - 1)
        size = gradient.shape[-1]
        tile = next((tile for tile in TILES if tile < size), 0)
        if tile:
            yield "tail_tile", _without(gradient, -1, (size - 1) // tile * tile)
    flowing = next((g for g in grad_outputs if g.shape == gradient.shape), None)
    beside = next((t for name, t in like.items() if t is not flowing and name != "golden"), None)
    if flowing is not None and beside is not None and dims and gradient.shape[-1] > 1:
        yield "term", gradient + _term(gradient, flowing.to(torch.float64), beside)


def _without(gradient: Tensor, dim: int, start: int) -> Tensor:
    cut = gradient.clone()
    cut.narrow(dim, start, gradient.shape[dim] - start).zero_()
    return cut


def _term(gradient: Tensor, flowing: Tensor, operand: Tensor) -> Tensor:
    """Project grad_output on an input along the last dimension, as large as it is beside the gradient in a norm."""
    size = operand.square().sum(-1, keepdim=True)
    share = (flowing * operand).sum(-1, keepdim=True) / torch.where(size > 0, size, torch.ones_like(size))
    scale = gradient.square().mean().sqrt() / flowing.square().mean().sqrt().clamp_min(1e-300)
    return scale * share * operand
