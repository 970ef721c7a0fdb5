"""Facts about a node or a graph: what a gradient must look like, kept memory, changed tensors, origins, ghosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Slot:
    """What the engine expects of one gradient.

    Attributes:
        shape, dtype: of the gradient; None when torch does not say.
        device: such as ``"cpu"``.
    """

    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str = ""


class Storage(NamedTuple):
    """Memory that a node keeps for its backward.

    Attributes:
        number: the same for the same memory, in one graph: what two nodes share is counted once.
        bytes: its size.
        name: the user's name of the tensor, if it has one.
    """

    number: int
    bytes: int
    name: str = ""


class Stale(NamedTuple):
    """A saved tensor that was changed in place after it was saved; backward will refuse it.

    Attributes:
        slot: what the node calls it, such as ``"self"`` or ``"saved[0]"``.
        name: the user's name of it, if it has one.
        saved, now: its version when it was saved, and now.
        by: what changed it: the op that torch names, or what is written in ``line``; empty when that is not known.
        line: of the calling code, if one was found that changes it; else None.
    """

    slot: str
    name: str
    saved: int
    now: int
    by: str = ""
    line: int | None = None


class Origin(NamedTuple):
    """Where a node of a second graph comes from in the first one.

    Attributes:
        node: id of the node in the first graph.
        name: its name.
        same: True when it is that very node; False when that node's backward made it.
    """

    node: int
    name: str
    same: bool


@dataclass(frozen=True)
class Ghost:
    """A tensor of the user that needs a gradient and gets none from this graph, since no way leads to it.

    Attributes:
        name: the user's name of it.
        reason: ``"detach"``, ``"no_grad"``, ``"integer"``, ``"python"`` (it became a Python number, list or array) or
            ``"unused"`` (nothing says that it was used).
        line: of the code that cuts it off, if that was found; else None.
        text: what is written there, such as ``"a.detach()"``; else empty.
        shape: of the tensor.
        node: id of the node that used its values, if that is known; else None.
        where: name of the function that the line is in; empty in the calling code.
        sure: False when the line was only read in a branch or in another function, and need not have run.
    """

    name: str
    reason: str
    line: int | None = None
    text: str = ""
    shape: tuple[int, ...] = ()
    node: int | None = None
    where: str = ""
    sure: bool = True
