"""The operation, evaluated at other points than the one it was called at, as whoever takes differences does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from nbautograd.course.attempt import Attempt, close, is_float, positions
from nbautograd.course.observer import Operation

ENOUGH = 3  # a formula may meet one or two by a symmetry of the operation
TRIED, AHEAD = 100, 300  # points that are tried in a method; operations after each in which its value is looked for
FAR, SAME = 1e-7, 1e-9  # how far a point is from the one given; how closely a value is the operation's


def moved_points(attempt: Attempt, ran: Sequence[Operation], again: Sequence[Operation]) -> Operation | None:
    """Return the operation that first reads or makes a point at which the answer evaluates what it is to differentiate.

    A point is a tensor of an input's shape, or a batch of such, that does not depend on grad_output and is not that
    input; it is evaluated where something computed from it is what the formula gives there. So the way in which that
    is written makes no difference, and a derivative that is written as a formula has no such points.

    Args:
        attempt: the answer, with the formula.
        ran: the operations of one run, with their numbers, at ``attempt.point()``.
        again: those of another one, with another sign of grad_output.

    Returns:
        The operation; None unless there are three points with different values.
    """
    inputs = attempt.point()
    here = [y.detach() for y in attempt.reference_run(inputs).outputs]
    fixed = {_key(x) for operation in again for _, x in (*operation.arguments, *operation.made)}
    seen: dict[bytes, str] = {}
    found: list[tuple[Operation, Tensor]] = []
    for number, operation in enumerate(ran):
        for address, tensor in (*operation.arguments, *operation.made):
            key = _key(tensor)
            if key not in fixed or key in seen or list(seen.values()).count(operation.method) == TRIED:
                continue
            if not any(_samples(tensor, inputs[k].shape) for k in positions(inputs)):
                continue
            made = list(_computed_from(address, ran[number : number + AHEAD]))
            if not any(tensor.numel() >= y.numel() for tensor in made for y in here):
                continue  # nobody looks at it, or at little of it
            seen[key] = operation.method
            for value in _values(attempt, inputs, here, tensor):
                if _among(value, made) and not _among(value, [other for _, other in found]):
                    found.append((operation, value))
            if len(found) >= ENOUGH:
                return found[0][0]
    return None


def _values(attempt: Attempt, inputs: tuple[object, ...], here: Sequence[Tensor], tensor: Tensor) -> Iterator[Tensor]:
    """Yield what the formula gives with each input of this shape moved there, where that is another value than here."""
    for k in positions(inputs):
        x = inputs[k]
        assert isinstance(x, Tensor)
        for point in _samples(tensor, x.shape):
            if close(point, x, FAR):
                continue
            outputs: tuple[Tensor, ...] = ()
            with torch.no_grad(), contextlib.suppress(Exception):  # the formula may not be defined there
                outputs = attempt.reference_run((*inputs[:k], point, *inputs[k + 1 :])).outputs
            for y, other in zip(outputs, here, strict=False):
                if is_float(y) and bool(torch.isfinite(y).all()) and not close(y, other, FAR):
                    yield y


def _computed_from(address: int, ran: Sequence[Operation]) -> Iterator[Tensor]:
    """Yield what operations made of the memory at an address, or of what was made of it, in place too."""
    reached, written = {address}, set[int]()
    for operation in ran:
        if reached & operation.read:
            yield from (tensor for where, tensor in operation.arguments if where in written)
            yield from (tensor for _, tensor in operation.made)
            made = {where for where, _ in operation.made}
            reached, written = reached | made, written | made & operation.read


def _samples(tensor: Tensor, shape: torch.Size) -> list[Tensor]:
    """Return the tensor in this shape if it has as many numbers, its parts if it is a batch of such."""
    if tensor.numel() == shape.numel():
        return [tensor.reshape(shape)]
    batch = len(shape) > 0 and tensor.dim() > len(shape) and tensor.shape[-len(shape) :] == shape
    batch = batch or (
        len(shape) > 1 < tensor.dim() and tensor.shape[-1] == shape.numel()
    )  # rows, not yet in this shape
    return list(tensor.reshape(-1, *shape)[:TRIED]) if batch and tensor.numel() else []


def _among(value: Tensor, tensors: Sequence[Tensor]) -> bool:
    parts = [part.to(value.dtype) for tensor in tensors for part in _samples(tensor, value.shape)]
    if not parts:
        return False
    apart = (torch.stack(parts) - value).abs().reshape(len(parts), -1).sum(1)
    return bool((apart <= SAME * max(float(value.abs().max()), 1e-6)).any())


def _key(tensor: Tensor) -> bytes:
    return repr(tuple(tensor.shape)).encode() + tensor.double().contiguous().numpy().tobytes()
