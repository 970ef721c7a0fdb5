"""Is the Function used by the graph as its author thinks: is backward alive, do outputs and inputs work alone?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import (
    cotangents,
    gradient_tolerance,
    nodes,
    own_node,
    pull,
    rounding_level,
    user_backward,
)
from nbautograd.core.checking.backward_lines import last_line
from nbautograd.core.checking.phrases import about, seen
from nbautograd.core.checking.probes.exceptions import explain, undefined_grad
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.contract import rules
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.torch_private.tensors import gradients

MOST = 4  # inputs of which all subsets are tried


def backward_never_called(subject: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Backward can never run: forward was called without ``apply``, or the outputs were hidden in a list."""
    if nodes(outputs):
        return
    named = [subject.cls] if subject.cls is not None else functions_named(subject.fn)
    if not named:
        return
    raw = subject.fn(*subject.fresh())
    if isinstance(raw, (list, dict)) and not any(t.requires_grad for t in outputs):
        yield rules.outputs_in_container(seen(subject, phrases.forward_line(subject)), type(raw).__name__)
    elif any(t.requires_grad for t in outputs):
        yield about(subject, "backward_never_called", None, name=named[0].__name__)


def functions_named(fn: Any) -> list[type]:
    """Function classes that a callable's code names."""
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    cells = zip(code.co_freevars, getattr(fn, "__closure__", None) or (), strict=False)
    known = {**fn.__globals__, **{name: cell.cell_contents for name, cell in cells if _filled(cell)}}
    found = [known.get(name) for name in (*code.co_names, *code.co_freevars)]
    return [c for c in found if isinstance(c, type) and issubclass(c, torch.autograd.Function)]


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def outputs_alone(subject: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Gradients that arrive at one output only must count as zeros at the others."""
    takes = subject.differentiable_outputs(outputs)
    if len(takes) < 2:
        if subject.source is not None and subject.source.materialize_grads is False:
            yield from _undefined(subject, outputs)
        return
    v = cotangents(subject, outputs, subject.seed + 31)
    together = pull(subject, outputs, v)
    rel, low = gradient_tolerance(outputs, subject.inputs), rounding_level(outputs, subject.inputs)
    try:
        shares = [pull(subject, outputs, [c if k == o else None for k, c in enumerate(v)]) for o in takes]
    except Exception as error:
        yield explain(error, subject)
        return
    total = [_sum(parts) for parts in zip(*shares, strict=True)]
    if not all(agree_relative(a, b, rel, low) for a, b in zip(together, total, strict=True)):
        zeros = [torch.zeros_like(c) if c is not None else None for c in v]
        filled = [pull(subject, outputs, [c if k == o else zeros[k] for k, c in enumerate(v)]) for o in takes]
        for o, share, right in zip(takes, shares, filled, strict=True):
            if not all(agree_relative(a, b, 1e3 * rel, low) for a, b in zip(share, right, strict=True)):
                yield undefined_grad(last_line(subject, o) or phrases.backward_line(subject))
                return


def _sum(parts: tuple[Tensor | None, ...]) -> Tensor | None:
    there = [p for p in parts if p is not None]
    return torch.stack(there).sum(0) if there else None


def _undefined(subject: Problem, outputs: Outputs) -> Iterator[Finding]:
    node = own_node(subject, outputs)
    if node is None:
        return
    count = len(subject.source.grad_outputs) if subject.source is not None else len(outputs)
    try:
        user_backward(type(node)._forward_cls)(node, *[None] * count)
    except Exception as error:
        yield explain(error, subject)


def inputs_alone(subject: Problem, outputs: Outputs) -> Iterator[Finding]:
    """The gradient of an input must not depend on which other inputs want one: some of them are left out in turn."""
    if len(subject.differentiable) < 2 or not subject.has_functions:
        return
    v = cotangents(subject, outputs, subject.seed + 32)
    rel, low = gradient_tolerance(outputs, subject.inputs), rounding_level(outputs, subject.inputs)
    together = dict(zip(subject.differentiable, pull(subject, outputs, v), strict=True))
    for wanted in _subsets(subject.differentiable):
        given = tuple(
            x.detach().requires_grad_(i in wanted) if i in subject.differentiable else x
            for i, x in enumerate(subject.fresh())
        )
        name = subject.input_names[wanted[0]]
        try:
            found = _only(subject, given, wanted, v)
        except Exception as error:
            said = phrases.short(" ".join(str(error).split()), 120)
            yield _wrong_alone(subject, "causes.needs_input_grad_raises", input=name, said=said)
            return
        for position, gradient in zip(wanted, found, strict=True):
            if not agree_relative(gradient, together[position], rel, low):
                yield _wrong_alone(subject, input=subject.input_names[position])
                return


def _wrong_alone(subject: Problem, sentence: str = "", **params: Any) -> Finding:
    return about(subject, "needs_input_grad_wrong", sentence=sentence, **params)


def _subsets(positions: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Each input alone, then all but one; of up to four inputs all subsets."""
    count = len(positions)
    sizes = range(1, count) if count <= MOST else (1, count - 1)
    for size in sizes:
        yield from itertools.combinations(positions, size)


def _only(
    subject: Problem, given: tuple[Any, ...], wanted: tuple[int, ...], v: list[Tensor | None]
) -> tuple[Tensor | None, ...]:
    outputs = subject.call(given)
    pairs = [(o, c) for o, c in zip(outputs, v, strict=True) if c is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(wanted)
    tensors, grads = zip(*pairs, strict=True)
    return gradients(tensors, [given[i] for i in wanted], grads)
