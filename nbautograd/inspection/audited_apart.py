"""Checks of an audit in a copy of the process: what a Function does at made-up inputs never reaches the program.

A check runs code at inputs that the program did not make. Compiled code that trusts its inputs writes past the end of
its memory there (deepwave 0.1.0, at fewer sources than places for them). That ends a process at once, later, or never
and with other numbers. So nothing is believed of a copy that died: each case is then checked in a copy of its own.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbautograd.core import stumbles
from nbautograd.core.checking.meant import Meant
from nbautograd.core.checking.progress import Tell
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.process_copy import Refused, told_by_copy
from nbautograd.core.recording.watching import CopiedCall, Situation, WatchedFunction
from nbautograd.core.user_source import FunctionSource
from nbautograd.inspection.audit_report import RANK, AuditedSituation
from nbautograd.inspection.audited_calls import Pair
from nbautograd.inspection.comparison import ComparedCompiled

GRACE = 30.0  # seconds past the budget: the witnesses of a wrong gradient, and one call into C, are not cut short


@dataclass(eq=False)
class Judgement:
    """One situation on its way to its verdict.

    Attributes:
        watched: the Function.
        situation: its calls.
        target: what is checked.
        source: of it, or None.
        outcome: what is known so far.
        each: seconds that one forward takes, at most; 0 where it was not run.
        call: the kept call that the outcome is about.
        inputs: what that check was given.
        meant: the pairs of output and input whose gradient is meant to be no derivative, in the calls that were looked
            at.
        spent: seconds that its checks took.
        registered: what ``torch.library.opcheck`` says of an operation; None where it was not asked.
        compiled: what torch.compile makes of the call; None where it was not asked.
    """

    watched: WatchedFunction
    situation: Situation
    target: Any
    source: FunctionSource | None
    outcome: AuditedSituation
    each: float = 0.0
    call: CopiedCall | None = None
    inputs: tuple[Any, ...] = ()
    meant: Mapping[Pair, Meant] = dataclasses.field(default_factory=dict)
    spent: float = 0.0
    registered: tuple[Finding, ...] | None = None
    compiled: tuple[ComparedCompiled, ...] | None = None

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The order in the report: wrong (first small ones with a fix), cannot tell, unchecked, risky, meant, right."""
        outcome = self.outcome
        risky = outcome.verdict == "right" and outcome.order2 == "wrong"
        fixed = any(finding.fix is not None for finding in outcome.findings)
        return 3 if risky else RANK[outcome.verdict], not fixed, 0 if self.call is None else self.call.elements


Note = Callable[[Judgement], None]
Look = Callable[[Sequence[Judgement], Note, Tell | None], None]


def checked_apart(cases: Sequence[Judgement], look: Look, end: float, tell: Tell | None) -> None:
    """Check cases in copies of the process, and fill in what these tell; in this process where it cannot be copied.

    Args:
        cases: what is checked.
        look: checks cases, calls its second argument with each that it knows more of, and its third one with how far
            it is.
        end: when the time of all checks is over, by ``time.perf_counter``.
        tell: told how far it is.

    Raises:
        KeyboardInterrupt: here, or in a copy.
    """
    fresh = {case: vars(case).copy() for case in cases}
    groups = [list(cases)]
    while groups:
        group = groups.pop()
        answer = _answer(group, look, max(0.0, end - time.perf_counter()) + GRACE, tell)
        if answer == "interrupted":
            raise KeyboardInterrupt
        refused = answer.reason if isinstance(answer, Refused) else answer
        if refused in ("fork", "here"):
            look(group, lambda _: None, tell)
        elif refused == "late":
            for case in group:
                if case.outcome.verdict == "unchecked":
                    reason = Phrase("audit.late", seconds=f"{GRACE:g}")
                    case.outcome = dataclasses.replace(case.outcome, reason=case.outcome.reason or reason)
        elif refused == "died":
            for case in group:
                vars(case).update(fresh[case])
            if len(group) > 1:
                groups = [[case] for case in reversed(group)]
                continue
            reason = Phrase("audit.died", signal=answer.detail) if answer.detail else Phrase("audit.exited")
            group[0].outcome = dataclasses.replace(group[0].outcome, verdict="cannot tell", reason=reason)


def _answer(group: Sequence[Judgement], look: Look, seconds: float, tell: Tell | None) -> Any:
    """Check cases in one copy, fill in what it tells, and return how it ended."""

    def job(send: Callable[[Any], None]) -> str:
        faulthandler.disable()  # what it says of a crash is not about the program
        silent = os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):  # what compiled code prints
            os.dup2(silent, number)

        def note(case: Judgement) -> None:
            send(("case", group.index(case), _told(case)))

        ended = ""
        try:
            look(group, note, None if tell is None else lambda *how_far: send(("progress", *how_far)))
        except KeyboardInterrupt:
            ended = "interrupted"
        except Exception:  # silent: asked again in this process, where it is raised
            ended = "here"  # where it is raised to whoever asked
        send(("stumbles", stumbles.recent()))
        return ended

    answer: Any = None
    for answer in told_by_copy(job, seconds, fenced=False):
        match answer:
            case ("case", int(k), facts):
                _fill(group[k], facts)
            case ("progress", done, total, what) if tell is not None:
                tell(done, total, what)
            case ("stumbles", kept):
                stumbles.keep(kept)
    return answer


def _told(case: Judgement) -> dict[str, Any]:
    """Return what a copy knows of a case, as plain data.

    Inputs are needed for the script of a wrong gradient alone. What is the program's own stands there as its position:
    a class, a function or a lock is not plain data.
    """
    facts = {name: getattr(case, name) for name in ("outcome", "each", "spent", "registered", "compiled")}
    facts["call"] = None if case.call is None else case.situation.copies.index(case.call)
    if case.call is not None and case.outcome.verdict == "wrong":
        own = {id(item): k for k, item in enumerate(_arguments(case.call))}
        facts["inputs"] = [(own.get(id(item)), None if id(item) in own else item) for item in case.inputs]
    return facts


def _fill(case: Judgement, facts: dict[str, Any]) -> None:
    vars(case).update(facts, call=None if facts["call"] is None else case.situation.copies[facts["call"]])
    if case.call is not None and "inputs" in facts:
        own = _arguments(case.call)
        case.inputs = tuple([item if k is None else own[k] for k, item in facts["inputs"]])


def _arguments(call: CopiedCall) -> tuple[Any, ...]:
    return (*call.arguments, *call.keywords.values())
