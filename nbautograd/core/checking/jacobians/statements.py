"""What each witness said of a block, in one sentence each."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.checking.block import Statement
from nbautograd.core.checking.jacobians.assembly import Raw
from nbautograd.core.checking.jacobians.witnesses import Testimony
from nbautograd.core.checking.verdict import Judged


def said(raw: Raw, judged: Judged, forward: Testimony, jvp: Testimony) -> tuple[Statement, ...]:
    """The statements of all four witnesses."""
    return (
        backward(raw),
        differences(raw, judged),
        _other("autograd of forward", forward),
        _other("jvp", jvp),
    )


def _other(witness: str, testimony: Testimony) -> Statement:
    if testimony.apart is None:
        return Statement(witness, False, messages.text(f"checking.absent_{testimony.absent}"))
    says = messages.text("checking.witness_said", apart=f"{testimony.apart:.1e}")
    return Statement(witness, True, says, testimony.largest, testimony.apart)


def backward(raw: Raw) -> Statement:
    """How the analytical Jacobian came about."""
    shape = raw.matrices.layout.structure
    message = "checking.backward_said" if raw.linear else "checking.backward_not_linear"
    return Statement(
        "backward", True, messages.text(message, structure=messages.text(f"checking.structure_{_id(shape)}"))
    )


def differences(raw: Raw, judged: Judged) -> Statement:
    """How the numerical Jacobian came about, and how far it is from backward."""
    precision = messages.text("checking.promoted" if raw.forward.promoted else "checking.same_precision")
    says = messages.text("checking.differences_said", largest=f"{judged.largest_error:.1e}", precision=precision)
    return Statement("finite differences", True, says, judged.largest_error)


def _id(structure: str) -> str:
    return structure.replace(" ", "_")
