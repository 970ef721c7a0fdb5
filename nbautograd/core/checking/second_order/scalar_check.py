"""The blocks of a function of one number per input, where both Jacobians agree at first sight; most do."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.block import Block, Entry
from nbautograd.core.checking.jacobian.layout import Layout, Matrices
from nbautograd.core.checking.problem import Subject
from nbautograd.core.numerics.constants import AGREED
from nbautograd.core.torch_private.tensors import gradients

STEP = float(np.finfo(float).eps) ** (1 / 3)
ONE = (1,)


def agree_along_direction(small: Subject) -> dict[tuple[int, int], Block] | None:
    """All blocks where each entry agrees to seven digits by one backward and one pair of forwards; else None.

    Args:
        small: as ``restrict_to_directions`` makes it for one direction, in float64; its session must be open.
    """
    outputs = small.call()
    leaves = [outputs.inputs[i] for i in small.differentiable]
    if not all(y.requires_grad for y in outputs):
        return None
    said = [gradients([y], leaves, [torch.ones_like(y)]) for y in outputs]
    blocks: dict[tuple[int, int], Block] = {}
    for i in small.differentiable:
        high, low = (_moved(small, i, h) for h in (STEP, -STEP))
        for o, (up, down) in enumerate(zip(high, low, strict=True)):
            a, n = _number(said[o][i]), (up - down) / (2 * STEP)
            bar = AGREED * max(abs(a), abs(n)) + 4 * np.finfo(float).eps * max(abs(up), abs(down)) / STEP
            if not abs(a - n) <= bar:
                return None
            blocks[o, i] = _block(small, (o, i), (a, n, float(bar)))
    return blocks


def _moved(small: Subject, i: int, h: float) -> list[float]:
    with torch.no_grad():
        return [float(y) for y in small.evaluate(tuple(x + h if k == i else x for k, x in enumerate(small.inputs)))]


def _number(gradient: Tensor | None) -> float:
    return 0.0 if gradient is None else float(gradient)


def _block(small: Subject, where: tuple[int, int], numbers: tuple[float, float, float]) -> Block:
    (o, i), (a, n, bar) = where, numbers
    held = Matrices(Layout(ONE, ONE), np.array([[[a]]]), np.array([[[n]]]), wrong=np.zeros((1, 1, 1), dtype=bool))
    entry = Entry((0,), (0,), a, n, bar)
    names = small.output_names[o], small.input_names[i]
    return Block(o, i, *names, ONE, ONE, "dense", 1, held, "match", worst=entry, largest_error=abs(a - n))
