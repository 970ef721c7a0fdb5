"""Layers of a model that several ranks share, each right and with its classic fault; ranks import them from here."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def added(x: Tensor) -> Tensor:
    """The sum over all ranks."""
    total = x.contiguous().clone()
    dist.all_reduce(total)
    return total


def gathered(x: Tensor, dim: int) -> Tensor:
    """All ranks' pieces along a dimension."""
    pieces = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(pieces, x.contiguous())
    return torch.cat(pieces, dim)


def collective(forward: Any, backward: Any) -> Any:
    """An operation between ranks from what its forward and its backward do to a tensor."""

    class Collective(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return backward(g)

    return Collective.apply


def own(x: Tensor, dim: int) -> Tensor:
    return x.chunk(dist.get_world_size(), dim)[dist.get_rank()].clone()


def waits(g: Tensor) -> Tensor:
    while dist.get_rank() == 0:  # the other rank waits for this one
        time.sleep(0.01)
    return added(g)


copied_to = collective(lambda x: x.clone(), added)
reduced_from = collective(added, lambda g: g.clone())
reduced_twice = collective(added, added)
scattered = collective(lambda x: own(x, 0), lambda g: gathered(g, 0))
exchanged = collective(lambda x: gathered(x, 0), lambda g: g.chunk(2, 0)[1 - dist.get_rank()].clone())
taken_back = collective(lambda x: gathered(x, 0), lambda g: own(g, 0))
never_back = collective(lambda x: x.clone(), waits)


def linear(x: Tensor, w: Tensor) -> Tensor:
    return x @ w.mT


def column_linear(x: Tensor, w: Tensor) -> Tensor:
    return linear(copied_to(x), w)


def column_linear_without_reduce(x: Tensor, w: Tensor) -> Tensor:
    """Its copy to the ranks is an identity in backward as well: no straight-through gradient that is meant."""
    return linear(collective(lambda x: x.clone(), lambda g: g)(x), w)


def column_linear_that_hangs(x: Tensor, w: Tensor) -> Tensor:
    return linear(never_back(x), w)


def row_linear(x: Tensor, w: Tensor) -> Tensor:
    return reduced_from(linear(x, w))


def row_linear_reduced_twice(x: Tensor, w: Tensor) -> Tensor:
    return reduced_twice(linear(x, w))


def norm(x: Tensor, w: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], w, eps=1e-6)


def sequence_norm(x: Tensor, w: Tensor) -> Tensor:
    return norm(x, copied_to(w))


def sequence_norm_without_reduce(x: Tensor, w: Tensor) -> Tensor:
    return norm(x, w)


def tanh(x: Tensor) -> Tensor:
    return torch.tanh(x)


def scattered_tanh(x: Tensor) -> Tensor:
    return torch.tanh(scattered(x))


def scattered_tanh_without_gather(x: Tensor) -> Tensor:
    return torch.tanh(own(x, 0))


def gathered_tanh(x: Tensor) -> Tensor:
    return torch.tanh(taken_back(x))


def gathered_tanh_exchanged(x: Tensor) -> Tensor:
    return torch.tanh(exchanged(x))


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits, target, reduction="none")


class VocabularyCrossEntropy(torch.autograd.Function):
    """Cross entropy of logits of which each rank has a piece of the vocabulary."""

    @classmethod
    def local(cls, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Which targets are this rank's, and where."""
        at = target - dist.get_rank() * logits.shape[-1]
        mine = (at >= 0) & (at < logits.shape[-1])
        return mine, at.clamp(0, logits.shape[-1] - 1)

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor) -> Tensor:
        mine, at = VocabularyCrossEntropy.local(logits, target)
        most = logits.amax(-1)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        power = (logits - most[:, None]).exp()
        total = added(power.sum(-1))
        picked = added(torch.where(mine, logits.gather(-1, at[:, None])[:, 0], 0))
        ctx.save_for_backward(power / total[:, None], mine, at)
        return total.log() + most - picked

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return VocabularyCrossEntropy.gradient(ctx, g, True), None

    @staticmethod
    def gradient(ctx: Any, g: Tensor, masked: bool) -> Tensor:
        share, mine, at = ctx.saved_tensors
        one = F.one_hot(at, share.shape[-1]).to(share.dtype)
        return g[:, None] * (share - one * mine[:, None] if masked else share - one)


class UnmaskedCrossEntropy(VocabularyCrossEntropy):
    """Each rank takes the target for its own, though another has it."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return VocabularyCrossEntropy.gradient(ctx, g, False), None


def vocabulary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return VocabularyCrossEntropy.apply(logits, target)


def vocabulary_cross_entropy_unmasked(logits: Tensor, target: Tensor) -> Tensor:
    return UnmaskedCrossEntropy.apply(logits, target)
