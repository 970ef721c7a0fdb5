"""What each witness said of a block, in one sentence each."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.checking.assembly import Raw
from nbautograd.core.checking.block import Statement
from nbautograd.core.checking.verdict import Judged


def said(raw: Raw, judged: Judged) -> tuple[Statement, ...]:
    """The statements of backward and of finite differences."""
    return (backward(raw), differences(raw, judged))


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
