"""The quick way to write calls down: for methods that only compute, when a call looks like one before it.

A training loop calls the same methods with the same shapes again and again. What a method that changes nothing was
given can as well be described at its end, together with what it gave; and when all of that looks as in an earlier call
(``forms.py``), only what differs is written down (``short.py``). Everything else goes the writer's own way.

Each beginning and each end stands written out, with the same last lines, instead of calling what they share: these four
calls per method were measured, and cost a sixth of all that recording costs (2.3 of 15 us for a forward and backward).
"""

from __future__ import annotations

from collections.abc import Callable

from nbautograd.core.recording.quick_backward import backward, setup_context
from nbautograd.core.recording.quick_forward import forward
from nbautograd.core.recording.writer import Begin, End, Writer
from nbautograd.core.torch_private import tensors as internals

_PAIRS: dict[str, Callable[[Writer], tuple[Begin, End]]] = {
    "forward": forward,
    "setup_context": setup_context,
    "backward": backward,
}


def pair(writer: Writer) -> tuple[Begin, End]:
    """How the calls of a method begin and end: the quick ways where there are any.

    Args:
        writer: of the method.

    Returns:
        Two functions as ``writer.begin`` and ``writer.end`` are.
    """
    if writer.watch.awake or writer.method not in _PAIRS:
        return writer.begin, writer.end
    writer.quick = True
    begin, end = _PAIRS[writer.method](writer)
    for function in (begin, end):
        internals.skip_in_dynamo(function.__code__, with_calls=True)
    return begin, end
