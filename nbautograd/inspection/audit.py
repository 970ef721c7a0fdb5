"""audit: every custom gradient in a program, checked at the arguments that it really met.

``core/recording/watching.py`` keeps copies of arguments while the program runs; ``audit_checks.py`` checks each
situation at the end, and makes a report of plain data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import torch

from nbautograd.core.checking.progress import Tell, watched
from nbautograd.core.display import Phrase
from nbautograd.core.recording.watching import (
    BlockEnd,
    FunctionWatch,
    Held,
)
from nbautograd.errors import CallError
from nbautograd.inspection.audit_checks import Checks
from nbautograd.inspection.audit_report import (
    AuditReport,
)

COMPILED = ("aot_eager", "inductor")
SECONDS = 120.0  # of all checks together
SECONDS_EACH = 10.0  # of one Function


class Audit:
    """Watches a program; made by ``audit()``.

    Args:
        budget, per_function: seconds of all checks, and of those of one Function.
        compile: as of ``audit``.

    Attributes:
        watch: what was seen.
        block: what a ``with`` statement holds until its block is over.
        ended: why the program did not reach its end, None where it did.
        name: under which its report is found.
    """

    def __init__(
        self, budget: float = SECONDS, per_function: float = SECONDS_EACH, compile: bool | Sequence[Any] = False
    ) -> None:
        for seconds in (budget, per_function):
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
                raise CallError("audit.no_seconds", given=repr(seconds))
        self.watch = FunctionWatch()
        self._budget, self._per_function = budget, per_function
        self.backends = COMPILED if compile is True else tuple(compile or ())
        self._report: AuditReport | None = None
        self.block: Held | None = None
        self.ended: Phrase | None = None
        self.name = "report"

    @property
    def watching(self) -> bool:
        """True inside its block."""
        return self.watch.running

    def __enter__(self) -> Audit:
        self._report = self.ended = None
        self.watch.begin(self.block)
        return self

    def _leave(self, _: object = None, error: BaseException | None = None, __: object = None) -> None:
        self.watch.end()
        self.ended = self.ended or (None if error is None else ended_by(error))

    __exit__ = BlockEnd(_leave)

    def report(self, *, progress: Tell | None = None) -> AuditReport:
        """Check what was seen, once; a second call returns the same report.

        Args:
            progress: called with (steps done, steps in all, what is being done). An interrupt ends the checks with
                what they have.

        Raises:
            CallError: inside the block, which has not ended.
        """
        if self.watching:
            raise CallError("audit.still_open")
        if self._report is None:
            with watched(progress) as tell:
                seen = self.watch, self.ended, self.name, self.backends
                self._report = Checks(*seen, self._budget, self._per_function, tell).run()
        return self._report

    def __repr__(self) -> str:
        state = "watching" if self.watching else "not checked yet" if self._report is None else repr(self._report)
        return f"<Audit of {len(self.watch.functions)} Functions: {state}>"


@overload
def audit(
    fn: None = None, *, budget: float = ..., per_function: float = ..., compile: bool | Sequence[Any] = ...
) -> Audit: ...
@overload
def audit(
    fn: Callable[..., Any],
    *args: Any,
    budget: float = ...,
    per_function: float = ...,
    compile: bool | Sequence[Any] = ...,
    **kwargs: Any,
) -> AuditReport: ...


def audit(
    fn: Callable[..., Any] | None = None,
    *args: Any,
    budget: float = SECONDS,
    per_function: float = SECONDS_EACH,
    compile: bool | Sequence[Any] = False,
    **kwargs: Any,
) -> Any:
    """Check every custom gradient that a piece of a program uses, at the arguments that it gets there.

    It watches every ``torch.autograd.Function`` called inside the block and every operation of ``torch.library`` with a
    gradient. That changes nothing. It keeps copies of the smallest arguments (three of a kind, 64 MiB of a Function,
    256 MiB in all); ``report()`` checks them.

    Args:
        fn: a callable to run once; None to return a context manager.
        args, kwargs: its arguments.
        budget: seconds that all checks may take.
        per_function: seconds that those of one Function may take.
        compile: True compares each Function that is right with itself under torch.compile (``aot_eager``,
            ``inductor``), or the backends. Each takes seconds, which count. What changes is a finding.

    Returns:
        Without ``fn`` an Audit, for ``with``; its ``report()`` gives the AuditReport. With ``fn`` the AuditReport.

    Raises:
        CallError: for a budget that is no positive number. What ``fn`` raises is raised.

    Example:
        >>> import torch, nbautograd
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return 3 * grad
        >>> with nbautograd.audit() as audit:
        ...     loss = Double.apply(torch.ones(3, requires_grad=True)).sum()
        >>> audit.report()
        <AuditReport wrong: 1 of 1 Functions wrong>
    """
    watching = Audit(budget, per_function, compile)
    if fn is None:
        if args or kwargs:
            raise CallError("audit.no_callable")
        return watching
    if not callable(fn):
        raise CallError("audit.not_callable", type=type(fn).__name__)
    with watching:
        (fn.apply if isinstance(fn, type) and issubclass(fn, torch.autograd.Function) else fn)(*args, **kwargs)
    return watching.report()


def ended_by(error: BaseException) -> Phrase | None:
    """Return how a program ended that raised; None where it ended itself and all was well."""
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return None
    return Phrase("audit.program_raised", error=type(error).__name__)
