"""Does what backward returns, and what forward marks, fit its inputs and outputs before the engine makes it fit?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents, observe
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.phrases import about
from nbautograd.core.checking.problem import Outputs, Subject
from nbautograd.core.findings import Finding


def contract(subject: Subject, outputs: Outputs) -> Iterator[Finding]:
    """What backward returned, before the engine made it fit."""
    seen = observe(subject, outputs, cotangents(subject, outputs, subject.seed + 33))
    if seen.returned is None or not subject.direct:
        return
    for position, gradient in enumerate(seen.returned[: len(subject.inputs)]):
        x = subject.inputs[position]
        if isinstance(gradient, Tensor) and isinstance(x, Tensor):
            yield from _fits(subject, position, gradient, x)


def _fits(subject: Subject, position: int, gradient: Tensor, x: Tensor) -> Iterator[Finding]:
    params = {"input": subject.input_names[position], "value": phrases.value(subject, position)}
    found = phrases.returned(subject, position)
    line = found.line if found is not None else None
    if not x.requires_grad:
        if x.is_floating_point() or x.is_complex():
            yield about(subject, "ignores_needs_input_grad", line, position=position, **params)
        return
    if gradient.shape != x.shape:
        shapes = {"got": list(gradient.shape), "expected": list(x.shape)}
        yield about(subject, "grad_shape_reduced", line, **shapes, **params)
    if gradient.dtype != x.dtype:
        dtypes = {"got": str(gradient.dtype)[6:], "expected": str(x.dtype)[6:]}
        yield about(subject, "grad_dtype_cast", line, **dtypes, **params)


def differentiable_outputs(
    subject: Subject, outputs: Outputs, blocks: Mapping[tuple[int, int], Block]
) -> Iterator[Finding]:
    """Outputs marked (or not marked) as non-differentiable although they should not (or should) be."""
    if not subject.has_functions:
        return
    for k, y in enumerate(outputs):
        mine = [b for (o, _), b in blocks.items() if o == k]
        others = [b for (o, _), b in blocks.items() if o != k]
        if y.is_floating_point() and not y.requires_grad and subject.direct:
            yield from _wrongly_marked(subject, outputs, k)
        elif mine and others and all(_empty(b) for b in mine) and not all(_empty(b) for b in others):
            yield about(subject, "unused_output_grad", phrases.forward_line(subject), output=subject.output_names[k])


def _empty(block: Block) -> bool:
    pooled = block.pooled()
    return block.verdict == "match" and not pooled.analytical.any() and not pooled.numerical.any()


def _wrongly_marked(subject: Subject, outputs: Outputs, k: int) -> Iterator[Finding]:
    generator = torch.Generator().manual_seed(subject.seed + 35)
    weights: list[Tensor | None] = [None] * len(outputs)
    weights[k] = torch.randn(outputs[k].shape, generator=generator, dtype=outputs[k].dtype)
    for which, position in enumerate(subject.differentiable):
        slopes = [directional_derivative(subject, subject.fresh(), which, weights, subject.seed + s) for s in (36, 37)]
        if all(s is not None and abs(s.slope) > 100 * s.error + 1e-9 for s in slopes):
            names = {"output": subject.output_names[k], "input": subject.input_names[position]}
            yield about(subject, "nondiff_marked_wrongly", phrases.forward_line(subject), **names)
            return
