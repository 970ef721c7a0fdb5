"""A fix found by trying: small edits of the user's backward against the derivative of the forward."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import syntax
from nbautograd.core.checking import words
from nbautograd.core.checking.probes.layout import expanded, strided
from nbautograd.core.checking.probes.raw import cotangents, own_node, pull, standing_in, user_backward
from nbautograd.core.checking.repair import variants
from nbautograd.core.checking.repair.edit import Edit, Hints
from nbautograd.core.checking.repair.edits import edits
from nbautograd.core.checking.repair.script import Script, constants, dims, names, read
from nbautograd.core.checking.repair.truth import Direction, direction
from nbautograd.core.checking.subject import Outputs, Subject
from nbautograd.core.findings import Finding, Fix

BUDGET = 1.0  # seconds of this thread's time
PAIRS = 0.25  # of these at most, for two edits in sequence
LIKELY = 1.6  # what each of two edits may cost
# for these the values are right, but something is changed that must stay as it is
TIDY = ("mutates_grad_output", "mutates_saved")
# for these the values are right, but only for gradients that lie in memory as usual
ODD: dict[str, Callable[[Tensor], Tensor]] = {"fails_noncontiguous_grad": expanded, "wrong_noncontiguous_grad": strided}


@dataclass(frozen=True)
class Stage:
    """One point at which an edited backward must agree with the forward.

    Attributes:
        outputs: of a call there, with their graph.
        node: the Function's node in it.
        v: the cotangents.
        directions: what the gradients must agree with.
        tidy: True when grad_outputs and ctx must be left as they were.
    """

    outputs: Outputs
    node: Any
    v: Sequence[Tensor | None]
    directions: tuple[Direction, ...]
    tidy: bool = False

    @property
    def original(self) -> Callable[..., Any]:
        """The user's own backward."""
        return user_backward(type(self.node)._forward_cls)

    def _anew(self, subject: Subject) -> tuple[Outputs, Any]:
        """The call made again, since the backward before may have changed what it left."""
        outputs = subject.call(self.outputs.inputs)
        return outputs, own_node(subject, outputs)

    def runs(self, subject: Subject) -> bool:
        """Whether the user's own backward comes to an end here."""
        try:
            pull(subject, self.outputs, self.v)
        except Exception:
            return False
        return True

    def passes(self, subject: Subject, backward: Callable[..., Any]) -> bool:
        """Whether this backward gives gradients that agree in every direction."""
        outputs, node = (self.outputs, self.node) if not self.tidy else self._anew(subject)
        try:
            with standing_in(node, _watched(backward) if self.tidy else backward):
                gradients = pull(subject, outputs, self.v)
        except Exception:
            return False
        return all(d.agrees(gradients[d.which]) for d in self.directions)


def _watched(backward: Callable[..., Any]) -> Callable[..., Any]:
    """The same backward; raises when it changed a grad_output or a tensor on ctx in place."""

    def watching(ctx: Any, *grads: Any) -> Any:
        held = [t for t in (*grads, *ctx.saved_tensors, *vars(ctx).values()) if isinstance(t, Tensor)]
        before, names = [t._version for t in held], {k: id(v) for k, v in vars(ctx).items()}
        result = backward(ctx, *grads)
        if [t._version for t in held] != before or {k: id(v) for k, v in vars(ctx).items()} != names:
            raise RuntimeError("changed in place")
        return result

    return watching


def stage(
    subject: Subject,
    inputs: tuple[Any, ...],
    targets: Sequence[int],
    seed: int,
    odd: Callable[[Tensor], Tensor] | None = None,
    tidy: bool = False,
) -> Stage | None:
    """A stage at these inputs; None where the forward fails or its derivative cannot be had clearly."""
    try:
        outputs = subject.call(inputs)
    except Exception:
        return None
    node = own_node(subject, outputs)
    v = [c if c is None or odd is None else odd(c) for c in cotangents(subject, outputs, seed)]
    if node is None or any(isinstance(y, Tensor) and not torch.isfinite(y.detach()).all() for y in outputs):
        return None
    asked = [direction(subject, outputs.inputs, k, v, seed + s) for k in targets for s in (1, 2)]
    clear = tuple(d for d in asked if d is not None)
    return Stage(outputs, node, v, clear, tidy) if len(clear) == len(asked) else None


class Repair:
    """Tries edits on a subject until one makes the gradients of the targets right everywhere.

    Args:
        subject: what was checked.
        deadline: in seconds of ``time.thread_time``.
    """

    def __init__(self, subject: Subject, deadline: float) -> None:
        self.subject, self.deadline = subject, deadline
        self.script: Script | None = None if subject.cls is None else read(subject.cls)
        self._stages: dict[tuple[tuple[int, ...], str], tuple[list[Stage], list[Stage]]] = {}

    def fix(self, finding: Finding) -> Fix | None:
        """The smallest edit that mends what a finding speaks of, verified at fresh points and shapes; else None.

        An edit is offered only when it agrees at every point and size that was tried, those made for it alone among
        them; where the differences give no clear answer a point says nothing.
        """
        if self.script is None or self.subject.cls is None:
            return None
        targets = self._targets(finding)
        sure, doubtful = self._tried_at(targets, finding.code)
        if not targets or len(sure) < 2 or all(s.passes(self.subject, s.original) for s in sure):
            return None
        hints, near = self._hints(finding), self._near(finding)
        for script, edit in self._candidates(self.script, hints, near):
            if time.thread_time() > self.deadline:
                break
            if "None" in edit.replacement and None in map(_plain, self.subject.inputs):
                continue  # what is None here may be a tensor elsewhere
            backward = script.compiled(script.changed(edit.nodes, edit.replacement))
            stages = itertools.chain(sure, doubtful, self._fresh(targets, finding.code))
            if backward is not None and all(s.passes(self.subject, backward) for s in stages):
                return self._offered(script.tidied(edit.nodes, edit.replacement))
        return None

    def _candidates(self, script: Script, hints: Hints, near: list[int]) -> Iterator[tuple[Script, Edit]]:
        """Single edits, the likeliest first; then likely ones on the wrong value's line followed by a second one."""
        names = self._names()
        single = edits(script, names, hints, near)
        yield from ((script, edit) for edit in single)
        until = time.thread_time() + PAIRS
        for first in (e for e in single if e.cost <= LIKELY):
            changed = script.with_text(script.changed(first.nodes, first.replacement))
            for second in edits(changed, [], hints, near) if changed is not None else ():
                if second.cost > LIKELY or time.thread_time() > until:
                    break
                yield changed or script, second

    def _fresh(self, targets: list[int], code: str) -> Iterator[Stage]:
        """Stages at points made once an edit has agreed everywhere else."""
        key = (tuple(targets), "fresh " + (code if code in ODD or code in TIDY else ""))
        if key not in self._stages:
            places = variants.fresh(self.subject, self.subject.seed + 307)
            self._stages[key] = self._made(places, targets, code), []
        yield from self._stages[key][0]

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

    def _tried_at(self, targets: list[int], code: str) -> tuple[list[Stage], list[Stage]]:
        key = (tuple(targets), code if code in ODD or code in TIDY else "")
        if key not in self._stages:
            seed, places = self.subject.seed + 101, variants.points(self.subject, self.subject.seed + 101)
            same = [self.subject.fresh(), *places]
            sure = [*same, *variants.together(self.subject, seed)]
            made = [self._made(given, targets, code) for given in (sure, variants.apart(self.subject, seed))]
            self._stages[key] = (made[0], made[1])
        return self._stages[key]

    def _made(self, places: Iterable[tuple[Any, ...]], targets: list[int], code: str) -> list[Stage]:
        """The stages at these inputs; shapes for which the user's own backward fails say nothing."""
        found = []
        for k, inputs in enumerate(places):
            made = stage(self.subject, inputs, targets, self.subject.seed + 101 + 10 * k, ODD.get(code), code in TIDY)
            if made is not None and (code in ODD or code == "exception" or made.runs(self.subject)):
                found.append(made)
        return found

    def _near(self, finding: Finding) -> list[int]:
        assert self.script is not None
        lines = [finding.line] if finding.line is not None else []
        if finding.where is not None:
            found = words.returned(self.subject, finding.where[1])
            lines += [found.line] if found is not None and found.line is not None else []
        inside = [n - self.script.first_line + 1 for n in lines]
        return [n for n in inside if n > 1]

    def _names(self) -> list[str]:
        assert self.script is not None
        node = next((s.node for made in self._stages.values() for s in made[0]), None)
        on_ctx = [f"ctx.{n}" for n, v in vars(node).items() if isinstance(v, (Tensor, int, float))] if node else []
        held = 0 if node is None or "saved_tensors" in self.script.text else len(node.saved_tensors)
        return [*names(self.script), *on_ctx, *(f"ctx.saved_tensors[{k}]" for k in range(held))]

    def _hints(self, finding: Finding) -> Hints:
        said = {key: str(finding.params.get(key, "")) for key in ("factor", "name", "term", "right")}
        forward = getattr(self.subject.cls, "forward", None)
        given = self.subject.source.grad_outputs if self.subject.source is not None else ()
        output = finding.where[0] if finding.where is not None else 0
        node = next((s.node for made in self._stages.values() for s in made[0]), None)
        sizes = [f"ctx.{n}.numel()" for n, v in vars(node).items() if isinstance(v, torch.Size)] if node else []
        return Hints(
            tuple(_tight(said[k].removeprefix("1/")) for k in ("factor", "name") if said[k] and "- 1)" not in said[k])
            + tuple(sizes),
            tuple(_tight(said[k]) for k in ("term", "right") if said[k]),
            given[output] if output < len(given) else "grad_output",
            tuple(c for c in constants(forward) if c not in (0, 1)) if forward is not None else (),
            tuple(syntax.parameters(self.script.tree)[1:]) if self.script is not None else (),
            tuple(dims(forward)) if forward is not None else (),
        )


def _plain(item: Any) -> Any:
    return 0 if isinstance(item, Tensor) else item


def _tight(text: str) -> str:
    return text if re.fullmatch(r"[\w.\[\]]+", text) else f"({text})"


def repaired(subject: Subject, findings: Sequence[Finding], budget: float = BUDGET) -> dict[int, Fix]:
    """Fixes for findings, by their number in the sequence; each input is mended once."""
    fixes: dict[int, Fix] = {}
    workshop = Repair(subject, time.thread_time() + budget)
    told: set[Any] = set()
    for k, finding in enumerate(findings):
        place = None if finding.where is None else finding.where[1]
        if finding.kind != "bug" or place in told or time.thread_time() > workshop.deadline:
            continue
        told.add(place)
        fix = workshop.fix(finding)
        if fix is not None:
            fixes[k] = fix
    return fixes
