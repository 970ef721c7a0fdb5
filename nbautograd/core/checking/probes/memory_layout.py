"""Does backward work for gradients and inputs that lie in memory in other ways, or have one more dimension?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, gradients_agree, pull, rounding_level
from nbautograd.core.checking.problem import Subject
from nbautograd.core.findings import Finding, Kind


def layout(subject: Subject) -> Iterator[Finding]:
    """Findings on expanded and transposed grad_outputs, non-contiguous inputs and a batch dimension."""
    yield from _grad_outputs(subject)
    yield from _inputs(subject)
    yield from _batched(subject)


def _finding(subject: Subject, code: str, kind: Kind, error: Exception | None = None, **params: Any) -> Finding:
    said = "" if error is None else phrases.short(" ".join(str(error).split()), 120)
    return Finding(code, kind, f"causes.{code}", {"said": said, **params}, None, phrases.backward_line(subject))


def _grad_outputs(subject: Subject) -> Iterator[Finding]:
    outputs = subject.call()
    rel, low = gradient_tolerance(outputs, subject.inputs), rounding_level(outputs, subject.inputs)
    for change in (expanded, strided):
        odd = [None if v is None else change(v) for v in cotangents(subject, outputs, subject.seed + 21)]
        plain = [None if v is None else v.contiguous() for v in odd]
        right = pull(subject, outputs, plain)
        try:
            found = pull(subject, outputs, odd)
        except Exception as error:
            yield _finding(subject, "fails_noncontiguous_grad", "bug", error)
            return
        if not all(gradients_agree(a, b, rel, low) for a, b in zip(found, right, strict=True)):
            yield _finding(subject, "wrong_noncontiguous_grad", "bug")
            return


def expanded(v: Tensor) -> Tensor:
    """One number seen everywhere, as ``y.sum().backward()`` sends."""
    return v.reshape(-1)[:1].reshape(()).expand(v.shape) if v.numel() else v


def strided(v: Tensor) -> Tensor:
    """The same values with gaps in memory, and the last dimension outermost."""
    if v.dim() == 0:
        return v
    wide = torch.empty((*v.shape[::-1], 2), dtype=v.dtype, device=v.device)[..., 0]
    return wide.permute(*reversed(range(v.dim()))).copy_(v)


def _inputs(subject: Subject) -> Iterator[Finding]:
    """Inputs with gaps in memory and dimensions exchanged, and inputs of one number seen everywhere."""
    if not subject.has_functions:
        return
    for change in (strided,) if subject.mutates_inputs else (strided, expanded):
        odd = _laid_out(subject, change)
        outputs = subject.call(tuple(_packed(x) for x in odd))
        v = cotangents(subject, outputs, subject.seed + 22)
        right = pull(subject, outputs, v)
        try:
            moved = subject.call(odd)
            found = pull(subject, moved, v)
        except Exception as error:
            yield _finding(subject, "fails_noncontiguous_input", "lint", error)
            return
        rel, low = gradient_tolerance(outputs, subject.inputs), rounding_level(outputs, subject.inputs)
        floating = [(a, b) for a, b in zip(outputs, moved, strict=True) if a.is_floating_point() or a.is_complex()]
        # which of several equal numbers is the largest may depend on how they lie; their shares together may not
        shares = [(_total(a), _total(b)) if change is expanded else (a, b) for a, b in zip(found, right, strict=True)]
        same = all(gradients_agree(a.detach(), b.detach(), rel) for a, b in floating)
        if not same or not all(gradients_agree(a, b, rel, low) for a, b in shares):
            yield _finding(subject, "wrong_noncontiguous_input", "bug")
            return


def _total(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.sum()


def _packed(item: Any) -> Any:
    if not isinstance(item, Tensor):
        return item
    return item.detach().clone(memory_format=torch.contiguous_format).requires_grad_(item.requires_grad)


def _laid_out(subject: Subject, change: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
    """The inputs, those to differentiate laid out in another way."""
    return tuple(
        change(x.detach()).requires_grad_(x.requires_grad) if i in subject.differentiable else x
        for i, x in enumerate(subject.fresh())
    )


def _batched(subject: Subject) -> Iterator[Finding]:
    """One more dimension in front of the first input, where the forward really takes it: both halves come out alike."""
    if not subject.has_functions or not subject.differentiable:
        return
    outputs, position = subject.call(), subject.differentiable[0]
    given = list(subject.fresh())
    x = given[position].detach()
    if x.dim() < 2:
        return
    given[position] = torch.stack([x, x]).requires_grad_()
    try:
        batched = subject.call(tuple(given))
    except Exception:
        return
    if not _twice(subject, outputs, batched):
        return
    params = {"input": subject.input_names[position], "dims": x.dim() + 1}
    v = cotangents(subject, outputs, subject.seed + 23)
    try:
        both = pull(subject, batched, [None if c is None else torch.stack([c, -2 * c]) for c in v])[0]
    except Exception as error:
        advice = "fails_batched" if "t()" in str(error) else "fails_batched_raises"
        found = _finding(subject, "fails_batched", "note", error, **params)
        yield dataclasses.replace(found, message_id=f"causes.{advice}")
        return
    one = pull(subject, outputs, v)[0]
    rel, low = gradient_tolerance(outputs, subject.inputs), rounding_level(outputs, subject.inputs)
    if both is None or one is None or gradients_agree(both, torch.stack([one, -2 * one]), rel, low):
        return
    yield dataclasses.replace(
        _finding(subject, "fails_batched", "note", None, **params), message_id="causes.fails_batched_wrong"
    )


def _twice(subject: Subject, outputs: Sequence[Tensor], batched: Sequence[Tensor]) -> bool:
    """Whether a batch of two gave the same outputs twice."""
    if [tuple(y.shape) for y in batched] != [(2, *y.shape) for y in outputs]:
        return False
    rel = gradient_tolerance(outputs, subject.inputs)
    pairs = zip(batched, outputs, strict=True)
    return all(
        gradients_agree(b.detach(), torch.stack([y.detach()] * 2), rel) for b, y in pairs if y.is_floating_point()
    )
