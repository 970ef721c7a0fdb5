"""A fix found by trying: small edits of the user's backward against the derivative of the forward."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import syntax
from nbautograd.core.checking import other_points, phrases
from nbautograd.core.checking.problem import Subject
from nbautograd.core.checking.repair import untestable
from nbautograd.core.checking.repair.budget import TRIES, Budget
from nbautograd.core.checking.repair.edit import Edit, Hints
from nbautograd.core.checking.repair.edits import edits
from nbautograd.core.checking.repair.script import Script, constants, dims, names, read
from nbautograd.core.checking.repair.verification_points import ODD, TIDY, Stage, Stages, stage
from nbautograd.core.findings import Finding, Fix

# what no edit of backward can mend
NO_EDIT = {
    "hidden_input",
    "mutates_input",
    "backward_never_called",
    "output_not_tensor_tuple",
    "nondiff_marked_wrongly",
}
LIKELY = 1.6  # what each of two edits in sequence may cost


class Repair:
    """Tries edits on a subject until one makes the gradients of the targets right everywhere.

    Args:
        subject: what was checked.
        budget: how much may be tried.
    """

    def __init__(self, subject: Subject, budget: Budget) -> None:
        self.subject, self.budget = subject, budget
        self.script: Script | None = None if subject.cls is None else read(subject.cls)
        self._stages: dict[tuple[tuple[int, ...], str], tuple[Stages, Stages, Stages]] = {}

    def fix(self, finding: Finding) -> Fix | None:
        """The smallest edit that mends what a finding speaks of, verified at fresh points and shapes; else None.

        An edit is offered only when it agrees at every point and size that was tried, those made for it alone among
        them; where the differences give no clear answer a point says nothing.
        """
        if self.script is None or self.subject.cls is None:
            return None
        targets = self._targets(finding)
        sure, doubtful, fresh = self._tried_at(targets, finding.code)
        if not targets or not sure.at_least(2) or all(s.passes(self.subject, s.original) for s in sure):
            return None
        hints, near, hidden = self._hints(finding), self._near(finding), untestable.values(self.script, self.subject)
        for script, edit in self._candidates(self.script, hints, near):
            if self.budget.spent:
                break
            if untestable.touched(edit, hidden):
                continue
            backward = script.compiled(script.changed(edit.nodes, edit.replacement))
            stages = itertools.chain(sure, doubtful, fresh)
            if backward is not None and all(self.budget.paid(s) and s.passes(self.subject, backward) for s in stages):
                return self._offered(script.tidied(edit.nodes, edit.replacement))
        return None

    def _candidates(self, script: Script, hints: Hints, near: list[int]) -> Iterator[tuple[Script, Edit]]:
        """Single edits, the likeliest first; then likely ones on the wrong value's line followed by a second one."""
        names = self._names()
        single = edits(script, names, hints, near)
        yield from ((script, edit) for edit in single)
        self.budget.last_part()
        for first in (e for e in single if e.cost <= LIKELY):
            changed = script.with_text(script.changed(first.nodes, first.replacement))
            for second in edits(changed, [], hints, near) if changed is not None else ():
                if second.cost > LIKELY:
                    break
                yield changed or script, second

    def _offered(self, text: str) -> Fix:
        assert self.script is not None
        after, before, line = self.script.difference(text)
        return Fix(after, True, line, before)

    def _targets(self, finding: Finding) -> list[int]:
        positions = self.subject.differentiable
        if finding.where is None:
            return list(range(len(positions)))
        both = finding.code == "swapped_inputs"
        return [k for k, p in enumerate(positions) if both or p == finding.where[1]]

    def _tried_at(self, targets: list[int], code: str) -> tuple[Stages, Stages, Stages]:
        """Where an edit must agree: near the inputs given and at their sizes; at other sizes; where none was tried."""
        key = (tuple(targets), code if code in ODD or code in TIDY else "")
        if key not in self._stages:
            subject, seed = self.subject, self.subject.seed + 101
            same = itertools.chain([subject.fresh()], other_points.points(subject, seed))
            sure = itertools.chain(same, other_points.together(subject, seed))
            places = sure, other_points.apart(subject, seed), other_points.fresh(subject, subject.seed + 307)
            first, second, third = (Stages(self._made(given, targets, code)) for given in places)
            self._stages[key] = first, second, third
        return self._stages[key]

    def _made(self, places: Iterable[tuple[Any, ...]], targets: list[int], code: str) -> Iterator[Stage]:
        """The stages at these inputs; shapes for which the user's own backward fails say nothing."""
        for k, inputs in enumerate(places):
            made = stage(self.subject, inputs, targets, self.subject.seed + 101 + 10 * k, ODD.get(code), code in TIDY)
            if made is not None and (code in ODD or code == "exception" or made.runs(self.subject)):
                yield made

    def _node(self) -> Any:
        """The Function's node at the first point that was made."""
        return next((s.node for made in self._stages.values() for s in made[0]), None)

    def _near(self, finding: Finding) -> list[int]:
        assert self.script is not None
        lines = [finding.line] if finding.line is not None else []
        if finding.where is not None:
            found = phrases.returned(self.subject, finding.where[1])
            lines += [found.line] if found is not None and found.line is not None else []
        inside = [n - self.script.first_line + 1 for n in lines]
        return [n for n in inside if n > 1]

    def _names(self) -> list[str]:
        assert self.script is not None
        node = self._node()
        on_ctx = [f"ctx.{n}" for n, v in vars(node).items() if isinstance(v, (Tensor, int, float))] if node else []
        held = 0 if node is None or "saved_tensors" in self.script.text else len(node.saved_tensors)
        return [*names(self.script), *on_ctx, *(f"ctx.saved_tensors[{k}]" for k in range(held))]

    def _hints(self, finding: Finding) -> Hints:
        said = {key: str(finding.params.get(key, "")) for key in ("factor", "name", "term", "right")}
        forward = getattr(self.subject.cls, "forward", None)
        given = self.subject.source.grad_outputs if self.subject.source is not None else ()
        output = finding.where[0] if finding.where is not None else 0
        node = self._node()
        sizes = [f"ctx.{n}.numel()" for n, v in vars(node).items() if isinstance(v, torch.Size)] if node else []
        return Hints(
            tuple(_tight(said[k].removeprefix("1/")) for k in ("factor", "name") if said[k] and "- 1)" not in said[k])
            + tuple(sizes),
            tuple(_tight(said[k]) for k in ("term", "right") if said[k]),
            given[output] if output < len(given) else "grad_output",
            tuple(c for c in constants(forward) if c not in (0, 1)) if forward is not None else (),
            tuple(syntax.parameters(self.script.tree)[1:]) if self.script is not None else (),
            tuple(dims(forward)) if forward is not None else (),
            _lost(finding, tuple(dims(forward)) if forward is not None else ()),
        )


def _lost(finding: Finding, dims: tuple[str, ...]) -> tuple[str, ...]:
    """The dimensions along which a term is missing, the forward's own names for them first."""
    if finding.code != "missing_coupling" and "dims" not in finding.params:
        return ()
    own = tuple(d for d in dims if re.fullmatch(r"-?\d+", d))
    return own or ("0", "-1")


def _tight(text: str) -> str:
    return text if re.fullmatch(r"[\w.\[\]]+", text) else f"({text})"


def repaired(subject: Subject, findings: Sequence[Finding], tries: float = TRIES) -> dict[int, Fix]:
    """Fixes for findings, by their number in the sequence; each input is mended once, and so much is tried in all."""
    fixes: dict[int, Fix] = {}
    workshop = Repair(subject, Budget(tries))
    told: set[Any] = set()
    for k, finding in enumerate(findings):
        place = None if finding.where is None else finding.where[1]
        if finding.kind != "bug" or place in told or workshop.budget.spent:
            continue
        told.add(place)
        fix = workshop.fix(finding)
        if fix is not None:
            fixes[k] = fix
    return fixes


def mended(subject: Subject, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings, with a fix where a small edit of backward was tried and makes the gradient right."""
    fixes: dict[int, Fix] = {}
    if any(f.kind == "bug" and f.code not in NO_EDIT for f in findings):
        with contextlib.suppress(Exception):  # a backward that no edit was made for is not mended
            fixes = repaired(subject, findings)
    return tuple(dataclasses.replace(f, fix=fixes[k]) if k in fixes else f for k, f in enumerate(findings))
