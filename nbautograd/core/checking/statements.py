"""What each witness said of a block, in one sentence each."""

from __future__ import annotations

import math

from nbautograd.core.checking.block import Statement
from nbautograd.core.checking.block_verdict import Judged
from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.witnesses import Testimony
from nbautograd.core.display import Phrase

SAME = 1e-6  # relative; closer than this two witnesses say the same


def statements(raw: FirstPass, judged: Judged, forward: Testimony, jvp: Testimony) -> tuple[Statement, ...]:
    """The statements of all four witnesses."""
    return (
        backward(raw),
        differences(raw, judged),
        _other("autograd of forward", forward),
        _other("jvp", jvp),
    )


def _other(witness: str, testimony: Testimony) -> Statement:
    if testimony.apart is None:
        return Statement(witness, False, Phrase(f"checking.absent_{testimony.absent}"))
    if testimony.apart < SAME:
        says = Phrase("checking.witness_agrees", digits=min(15, int(-math.log10(max(testimony.apart, 1e-15)))))
    else:
        says = Phrase("checking.witness_differs", percent=number(100 * testimony.apart))
    return Statement(witness, True, says, testimony.largest, testimony.apart)


def backward(raw: FirstPass) -> Statement:
    """State how the analytical Jacobian came about."""
    shape = raw.matrices.layout.structure
    message = "checking.backward_said" if raw.linear else "checking.backward_not_linear"
    return Statement("backward", True, Phrase(message, structure=Phrase(f"checking.structure_{_id(shape)}")))


def differences(raw: FirstPass, judged: Judged) -> Statement:
    """State how the numerical Jacobian came about, and its distance from backward."""
    precision = Phrase("checking.promoted" if raw.forward.promoted else "checking.same_precision")
    says = Phrase("checking.differences_said", largest=number(judged.largest_error), precision=precision)
    return Statement("finite differences", True, says, judged.largest_error)


def number(value: float) -> str:
    """A size in two digits, as one would write it: 0.25, 3,100, 4.2e-11."""
    return f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.2g}"


def _id(structure: str) -> str:
    return structure.replace(" ", "_")
