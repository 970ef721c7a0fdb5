"""A fix found by trying: small edits of the user's backward against the derivative of the forward."""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking import other_points, phrases
from nbautograd.core.checking.budget import interrupts
from nbautograd.core.checking.diagnosis.predicates import Clues
from nbautograd.core.checking.meant import handed_on
from nbautograd.core.checking.other_arguments import constants_in
from nbautograd.core.checking.point import GIVEN, Point
from nbautograd.core.checking.points import SINGLES, points
from nbautograd.core.checking.prepared_inputs import DOUBLE, in_double
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.repair.bounds import indexes, reachable
from nbautograd.core.checking.repair.factors import Factors
from nbautograd.core.checking.repair.grammar import edits
from nbautograd.core.checking.repair.kinds import ANY, SENTENCES
from nbautograd.core.checking.repair.script import (
    Edit,
    Hints,
    Script,
    amplified,
    dims,
    names,
    read,
    says_nothing,
    strangeness,
)
from nbautograd.core.checking.repair.settings import Setting, settings
from nbautograd.core.checking.repair.values import KnownValues, Span, idle, noted_values, span
from nbautograd.core.checking.repair.verification_points import ANOTHER_SHAPE, ODD, TIDY, Stage, Stages, stage
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.process_copy import in_copy
from nbautograd.core.stumbles import any_errors, users_errors

TRIES = 800.0  # calls of an edited backward on something small: about a third of a second
STEP_SCALES = (0.01, 1.0, 100.0, 1e4)  # times an input's size: a threshold may lie far out, a window near zero
PAIRS = 200.0  # of these, for two edits in sequence


class Tries:
    """Calls of an edited backward that are left.

    Args:
        tries: how many calls on something small there may be; see ``Stage.price`` for others.
    """

    def __init__(self, tries: float = TRIES) -> None:
        self.left = tries


NO_EDIT = {  # of backward can mend these
    *("hidden_input", "mutates_input", "backward_never_called", "output_not_tensor_tuple", "nondiff_marked_wrongly"),
}
# of inputs of more elements edits are tried at dimensions of at most this size, and at the size given at last: a call
# of something as large as that takes about twice as long as one of something small
EDITED_INPUTS, EDITED_SIZE = 20_000, 12
LIKELY = 1.6  # what each of two edits in sequence may cost
CLOSE = 0.05  # edits whose costs differ by less are as likely as each other: the shortest is taken
BOTH = " + "  # between the kinds of two edits in sequence
CHOICES = 3  # edits that mend the same inputs, among which the one is chosen that a person would write
SEEN_WRONG = 5  # points of which one must show that a gradient is wrong, before it is mended: at one some are not
FEW_NEAR = 3  # points at the sizes given, before others
MOST_FAR = 12  # points with a dimension more or less, with arguments of any sign, and with both
MOST_OUTPUTS = 4  # that backward is asked about one at a time
AWAY = 1.5  # what an edit of another value than the wrong one costs more
BEFORE = 0.5  # the same where the wrong one may be computed from one that is wrong as well


@dataclass(frozen=True)
class Mended:
    """An edit that was tried, and what it makes right.

    Attributes:
        text: the whole backward with the edit.
        inputs: numbers of the inputs whose gradient was wrong and is right now.
        cost: of the edit.
        kinds: of the edits, as the grammar names them.
    """

    text: str
    inputs: frozenset[int]
    cost: float
    kinds: tuple[str, ...] = ()


class Repair:
    """Tries edits on a problem until they make the wrong gradients right everywhere.

    Args:
        tries: how much may be tried.
        clues: what the wrong entries suggest.

    Attributes:
        right: numbers of the differentiable inputs whose gradients are right at the inputs given, as far as is known.
        kept: numbers of those whose gradient stands for none that forward has (straight-through, a surrogate): no edit
            may change it, and least of all to the zeros that differences give there.
    """

    def __init__(self, problem: Problem, tries: Tries, clues: Clues) -> None:
        self.original, self.tries, self.clues = problem, tries, clues
        self.problem = _in_double(other_points.shrunk(problem, EDITED_INPUTS, EDITED_SIZE, problem.seed))
        self.script: Script | None = None if problem.cls is None else read(problem.cls)
        away = any(isinstance(x, Tensor) and x.device.type != "cpu" for x in problem.inputs)
        if self.script is not None and away and indexes(self.script.tree):
            self.script = None
        self._stream, self._stages = points(self.problem), dict[str, Stages]()
        self._counts = set[int]()  # ids of the expressions that are, or may be, whole numbers
        self.right: frozenset[int] = frozenset()
        self.kept: frozenset[int] = frozenset()

    def mended(self, findings: Sequence[Finding], wrong: frozenset[int], named: frozenset[int]) -> Mended | None:
        """Return the edit after which all of backward is right.

        An edit counts only when it agrees at every point and size that was tried, those made for it alone among
        them, for all outputs together and each by itself, and leaves no input wrong that was right. Where the
        differences give no clear answer a point says nothing.

        Args:
            findings: bugs whose values are to be mended together.
            wrong: numbers, among the differentiable ones, of the inputs that they may speak of.
            named: of those that findings of any kind say to be wrong.
        """
        if self.script is None:
            return None
        code = findings[0].code
        key = code if code in ODD or code in TIDY else ""  # those of all that is wrong in values are the same
        if key not in self._stages:
            self._stages[key] = Stages(self._points(code))
        stages = self._stages[key]
        several = len(list(itertools.islice(stages, 2))) > 1
        wrong = frozenset(k for k in wrong if several and _wrong_somewhere(stages, k))
        if not wrong or not named <= wrong or wrong & self.kept:
            return None
        found: list[Mended] = []
        hints, near = self._hints(findings), self._near(findings)
        idle_spans, nothing = self._idle(wrong), any(x is None for x in self.problem.inputs)

        def wanted(script: Script, edit: Edit) -> bool:
            gone = nothing and "None" in edit.replacement  # for good
            inside = (any(a[:2] >= b[:2] and a[2:] <= b[2:] for b in idle_spans) for a in map(span, edit.nodes))
            return not (gone or (script is self.script and all(inside)))

        for script, edit in self._candidates(self.script, hints, near, stages, wrong):
            if not wanted(script, edit):
                continue
            dearest = min((m.cost for m in found if m.inputs == wrong), default=math.inf) + CLOSE
            if self.tries.left <= 0 or edit.cost > dearest:
                break  # no edit of this cost, or above, would be preferred to those found
            text = script.changed(edit.changes)
            inputs = self._mended_inputs(script.compiled(text), stages, wrong, "None" in edit.replacement)
            enough = not inputs or sum(m.inputs == inputs for m in found) >= CHOICES
            refuted = enough or says_nothing(text, script.text)
            refuted = refuted or self._large_enough(script, edit, stages, inputs)
            refuted = refuted or self._unseen(script, text, stages, inputs)
            refuted = refuted or self._reads_variables(text)
            if not refuted and self._holds_elsewhere(script.compiled(text), inputs):
                found.append(Mended(script.tidied(edit.changes), inputs, edit.cost, tuple(edit.kind.split(BOTH))))
        return self._whole(found, stages, wrong)

    def _reads_variables(self, text: str) -> bool:
        """Return True for a change that reads a variable of the notebook: it has the name of an argument of forward."""
        assert self.script is not None
        brought = user_source.names_read(user_source.parse(text)) - user_source.names_read(self.script.tree)
        variables = self.script.function.__globals__
        return any(isinstance(variables.get(name), (Tensor, int, float)) for name in brought)

    def _holds_elsewhere(self, backward: Callable[..., Any] | None, mended: frozenset[int]) -> bool:
        """Return True for a change that is right where numbers are others that forward reads outside the Function.

        They are others in a copy of the process alone, where nobody else reads them. Without one nothing holds.
        """
        assert self.problem.cls is not None
        found = settings(self.problem.cls)

        def holds(setting: Setting) -> bool:
            for other in setting.others:
                with setting.changed(other):
                    at = stage(Point(self.problem, self.problem.fresh(), seed=self.problem.seed))
                    if at is not None and at.original is not None:
                        gradients = at.gradients(backward) if backward is not None else ""
                        return not isinstance(gradients, str) and all(
                            at.point.is_right(k, gradients[k]) is not False for k in mended
                        )
            return True  # forward takes no other

        return not found or (not interrupts() and in_copy(lambda: all(map(holds, found))) is True)

    def _large_enough(self, script: Script, edit: Edit, stages: Stages, mended: frozenset[int]) -> bool:
        """Return True for a number that only has to be large enough, as the end of a loop: one more mends it too."""
        if id(edit.node) not in self._counts or edit.also:
            return False
        more = script.compiled(script.changed([(edit.node, f"({edit.replacement} + 1)")]))
        return self._mended_inputs(more, stages, mended, False) == mended

    def _unseen(self, script: Script, text: str, stages: Stages, mended: frozenset[int]) -> bool:
        """Return True where a tensor in a statement that was changed may as well be another: it is too small to see.

        What is done with it there may be wrong still, as the second term of a series is where the first is all that
        can be told.
        """
        changed, more = script.with_text(text), list[Callable[..., Any] | None]()
        if changed is not None:
            more = [changed.compiled(changed.changed(c)) for c in amplified(changed.tree, script.tree)]
        return any(self._mended_inputs(backward, stages, mended, False) == mended for backward in more)

    def _whole(self, found: Sequence[Mended], stages: Stages, wrong: frozenset[int]) -> Mended | None:
        """Return the shortest change after which all is right; names before numbers.

        A change for some inputs while others stay wrong is none: one mistake may be behind both.
        """
        assert self.script is not None
        before = self.script.text
        whole = [one for one in found if one.inputs == wrong]
        for one in sorted(whole, key=lambda m: (*strangeness(m.text, before), m.cost)):
            changed = self.script.compiled(one.text)
            if len(wrong) == 1 or self._mended_inputs(changed, stages, wrong, True) == wrong:
                return one
        return None

    def _mended_inputs(
        self, backward: Callable[..., Any] | None, stages: Stages, wrong: frozenset[int], nothing: bool
    ) -> frozenset[int]:
        """Return the inputs among the wrong ones that an edited backward makes right wherever it can be told.

        Args:
            backward: the edited one.
            stages: where it is called, each call paid for.
            wrong: the inputs that may be mended; no other may become wrong.
            nothing: whether the edit says None in so many words; a gradient that is zero for another reason is none.
        """
        if backward is None:
            return frozenset()
        left, alive, confirmed = set(wrong), set[int](), collections.Counter[int]()
        raised = sized = 0
        for at in stages:
            if at.outside(self.right):
                continue
            sized += at.kind.sized
            self.tries.left -= at.price
            gradients = at.gradients(backward)
            if isinstance(gradients, str):
                if (at.kind.ranked or at.kind.foreign) and (
                    gradients == ANOTHER_SHAPE or not any(map(at.was_right, wrong))
                ):
                    continue  # loud, as a `.t()` is for a batch: nothing is silently wrong there
                if at.kind.sized and (gradients == at.raised or len(wrong) > 1):
                    raised += 1  # written for one size, and the edit does not touch that; or another input's mistake
                    continue
                return frozenset()
            for k, gradient in enumerate(gradients):
                if k in wrong:
                    right = at.point.is_right(k, gradient) if k in left else False
                    if right is None and at.kind is GIVEN and gradient is not None and not gradient.isfinite().all():
                        right = False  # NaN at a kink, of which differences tell nothing, stays NaN
                    if right is False and at.kind.foreign and not at.was_right(k):
                        right = None
                    left -= {k} if right is False else set()
                    confirmed[k] += right is True
                    alive |= {k} if gradient is not None and bool(gradient.any()) else set()
                elif _spoilt(at, k, gradient) or (k in self.kept and not at.as_before(k, gradient)):
                    return frozenset()
            if not left:
                break
        if sized and raised == sized and len(wrong) == 1:
            return frozenset()  # right at one size alone is not right
        told = {k for k in left if confirmed[k] > 1}
        return frozenset(k for k in told if k in alive or (nothing and not self._depends(k)))

    def _depends(self, which: int) -> bool:
        """Return True where outputs change with an input: if flat between jumps, None mends nothing."""
        generator = draws.generator(self.problem.seed, "depends")
        place = (self.problem.differentiable[which],)
        with users_errors():
            here = self.problem.call()
            for scale in STEP_SCALES:
                change = functools.partial(other_points.signed, generator=generator, scale=scale)
                moved = self.problem.changed_inputs(change, place)
                if not all(map(agree_bitwise, here, self.problem.call(moved))):
                    return True
            return False
        return True

    def _idle(self, wrong: frozenset[int]) -> list[Span]:
        assert self.script is not None
        handed = [self.problem.arguments.get(self.problem.differentiable[k]) for k in wrong]
        known = [argument for argument in handed if argument is not None]
        return idle(self.script.tree, known) if len(known) == len(handed) else []

    def _candidates(
        self, script: Script, hints: Hints, near: Mapping[int, float], stages: Stages, wrong: frozenset[int]
    ) -> Iterator[tuple[Script, Edit]]:
        start = next(iter(stages))
        known = KnownValues() if start.kind.sized or start.kind.ranked else noted_values(script, start)
        hints = self._with_factors(hints, script, known, stages, wrong)
        self._counts |= {k for k, v in known.of.items() if v is None or (v.number is not None and v.number % 1 == 0)}
        single = edits(script, self._names(), hints, near, known)
        yield from ((script, edit) for edit in single)
        self.tries.left = min(self.tries.left, PAIRS)  # what follows is unlikely
        for first in (e for e in single if e.cost <= LIKELY):
            changed = script.with_text(script.changed(first.changes))
            for second in edits(changed, [], hints, near) if changed is not None else ():
                if second.cost > LIKELY:
                    break
                both = replace(second, cost=first.cost + second.cost + 2, kind=first.kind + BOTH + second.kind)
                yield changed or script, both

    def _with_factors(
        self, hints: Hints, script: Script, known: KnownValues, stages: Stages, wrong: frozenset[int]
    ) -> Hints:
        seen = ((at, k) for at in itertools.islice(stages, SEEN_WRONG) for k in sorted(wrong) if at.is_wrong(k))
        at, which = next(seen, (None, 0))
        if at is None or not known.of:
            return hints
        found = Factors(script, known, at, which, hints.constants)
        self.tries.left -= found.tries
        return replace(hints, factors=found.texts)

    def fix(self, mended: Mended) -> Fix:
        """Return the fix that a person reads."""
        assert self.script is not None
        after, before, line = self.script.difference(mended.text)
        return Fix(after, True, line, before)

    def _points(self, code: str) -> Iterator[Stage]:
        """Yield the stages, the likeliest to fail an edit first.

        A point at which the user's own backward raises says nothing, unless only a size was doubled there: an edit
        that is right at one size alone is not, unless it raises there for the very reason that the original does.
        """
        raises, arrange = code in ODD or code == "exception", ODD.get(code)

        def made_at(point: Point, arrange: Callable[[Tensor], Tensor] | None = arrange) -> Stage | None:
            laid = point if arrange is None else point.arranged(lambda _, c: arrange(c))
            return stage(laid, code in TIDY)

        for point in self._likely():
            made = made_at(point)
            if made is not None and (raises or made.kind.sized or made.original is not None):
                yield made
        # where gradients of zero come in, by which no fix may divide; and where nobody may have written backward for it
        stream = self._stream
        late = itertools.chain(
            (made_at(p, arrange or other_points.thinned) for p in itertools.islice(stream.of("near"), 1)),
            map(made_at, self._at_other_arguments()),
        )
        yield from (made for made in late if made is not None and made.original is not None)
        if self.original is not self.problem:  # once, at last
            made = made_at(Point(self.original, self.original.fresh(), seed=self.original.seed))
            if made is not None and (raises or made.original is not None):
                yield made

    def _likely(self) -> Iterator[Point]:
        stream = self._stream
        yield from itertools.islice(stream.of("given", "near"), FEW_NEAR)
        yield from stream.of("together")
        outputs = range(min(MOST_OUTPUTS, len(self.problem.output_names)))
        yield from (at.through(k) for at in stream.of("given") for k in (outputs if len(outputs) > 1 else ()))
        yield from stream.of("doubled")
        yield from itertools.islice(stream.of("single"), SINGLES)
        yield from stream.of("one", "unseen")

    def _at_other_arguments(self) -> Iterator[Point]:
        """Yield points with other arguments, with a dimension more or less, and with both.

        Of arguments that the forward may not have been written for only a forward that surely ends is given some.
        """
        stream = self._stream
        yield from stream.of("argument")
        yield from stream.again.of("argument")
        yield from stream.of("bounds", "one value")
        yield from itertools.islice(stream.of("ranked"), MOST_FAR)
        for kind in ("far", "ranked far") if self._ends() else ():
            yield from itertools.islice(stream.of(kind), MOST_FAR)

    def _ends(self) -> bool:
        """Return True where what is called has no loop or recursion that another number may keep going for ever."""
        methods = (getattr(self.problem.cls, name, None) for name in ("forward", "setup_context"))
        called = [inspect.unwrap(method) for method in methods if inspect.isfunction(method)]
        outer = [] if self.problem.direct else [self.problem.fn]
        return all(map(reachable, (*called, *outer)))

    def _near(self, findings: Sequence[Finding]) -> dict[int, float]:
        """Find the lines on which findings place the mistake, and what edits elsewhere cost more for each.

        That is less for a line that returns, and for one that is only known as the last to write what is wrong: a value
        that is wrong there may have been so before. Of a variable that goes wrong it was looked at what it is made of.
        """
        assert self.script is not None
        last, near = len(self.script.text.split("\n")), dict[int, float]()
        returned = {node.lineno for node in user_source.returns(self.script.tree)}
        for finding in findings:
            found = None if finding.where is None else phrases.returned(self.problem, finding.where[1])
            lines = (finding.line, None if found is None else found.line)
            inside = (n - self.script.first_line + 1 for n in lines if n is not None)
            for line in [n for n in inside if 1 < n <= last][:1]:
                traced = finding.message_id.startswith("causes.wrong_line")
                near[line] = AWAY if traced and line not in returned else BEFORE
        return near

    def _names(self) -> list[str]:
        assert self.script is not None
        point = next((s.point for made in self._stages.values() for s in made), None)
        node = None if point is None else point.node
        on_ctx = [f"ctx.{n}" for n, v in vars(node).items() if isinstance(v, (Tensor, int, float))] if node else []
        held = 0 if node is None or "saved_tensors" in self.script.text else len(node.saved_tensors)
        found, source = names(self.script), self.problem.source
        if point is not None and point.outputs is not None and source is not None and self.problem.direct:
            flowing = self.problem.differentiable_outputs(point.outputs)  # into the grad_outputs of others flow zeros
            zeros = [name for k, name in enumerate(source.grad_outputs) if k not in flowing]
            found = [name for name in found if name not in zeros]
        return [*found, *on_ctx, *(f"ctx.saved_tensors[{k}]" for k in range(held))]

    def _hints(self, findings: Sequence[Finding]) -> Hints:
        assert self.script is not None
        forward = getattr(self.problem.cls, "forward", None)
        given = self.problem.source.grad_outputs if self.problem.source is not None else ()
        output = next((f.where[0] for f in findings if f.where is not None), 0)
        own = tuple(dims(forward)) if forward is not None else ()
        named = tuple(d for d in own if re.fullmatch(r"-?\d+|\(.+\)", d)) or ("0", "-1")
        return Hints(
            grad_output=given[output] if output < len(given) else "grad_output",
            constants=tuple(c for c in constants_in(forward) if c not in (0, 1)) if forward is not None else (),
            dims=own,
            lost=named if self.clues.coupled else (),
        )


def _in_double(problem: Problem) -> Problem:
    """Return the problem in double precision, in which differences tell more; itself where forward rounds inside."""
    wide = tuple(map(in_double, problem.inputs))
    if all(not isinstance(x, Tensor) or x.dtype == given.dtype for x, given in zip(wide, problem.inputs, strict=True)):
        return problem
    double = Problem(problem.fn, wide, problem.seed)
    with users_errors() as guard:
        outputs = double.call()
    if guard.failed:
        return problem
    fine = all(y.dtype in DOUBLE for y in outputs if y.requires_grad)
    return double if fine and double.casts.coarsest <= torch.finfo(torch.float64).eps else problem


def _wrong_somewhere(stages: Iterable[Stage], which: int) -> bool:
    for at in itertools.islice(stages, SEEN_WRONG):
        again = at.gradients(at.own)  # it ran before: some are wrong the second time
        if isinstance(again, str) or at.original is None or at.point.is_right(which, again[which]) is False:
            return True
    return False


def _spoilt(at: Stage, which: int, gradient: Tensor | None) -> bool:
    if at.original is None:
        return at.point.is_right(which, gradient) is False
    was = at.original[which]
    return (
        not at.as_before(which, gradient)
        and at.point.is_right(which, gradient) is False
        and at.point.is_right(which, was) is not False
    )


def _together(findings: Sequence[Finding]) -> list[list[int]]:
    """Return numbers of the bugs whose values are mended together; what only layout or order spoils stands alone."""
    groups: dict[str, list[int]] = {}
    for k, finding in enumerate(findings):
        if finding.kind == "bug":
            groups.setdefault(finding.code if _alone(finding) else "", []).append(k)
    return list(groups.values())


def _alone(finding: Finding) -> bool:
    return finding.code in ODD or finding.code in TIDY or finding.where is None


def _targets(problem: Problem, finding: Finding) -> frozenset[int]:
    position = None if finding.where is None else finding.where[1]
    return frozenset(k for k, p in enumerate(problem.differentiable) if position is None or p == position)


def _handed_on(problem: Problem) -> frozenset[int]:
    """Return the numbers of inputs whose gradient is its author's: a reversal or a scale is lost by any change."""
    at = points(problem).first("given")
    pairs = {} if at is None or at.outputs is None else handed_on(problem, at.outputs)
    return frozenset(problem.differentiable.index(position) for _, position in pairs)


class Mending:
    """Looks for the fixes of one check: for wrong values before their cause is sought, at the end for the rest."""

    def __init__(self, tries: float = TRIES) -> None:
        self._tries, self._sought = Tries(tries), set[int]()

    def __call__(
        self, problem: Problem, findings: tuple[Finding, ...], clues: Clues | None = None
    ) -> tuple[Finding, ...]:
        """Return the findings, with a fix where a small edit of backward was tried and makes the gradient right.

        Args:
            findings: of any kind.
            clues: what the entries of wrong values suggest, which the findings then speak of; None at the end.
        """
        mends: list[tuple[list[int], Mended, Fix]] = []
        if any(f.kind == "bug" and f.fix is None and f.code not in NO_EDIT for f in findings):

            def job() -> tuple[list[tuple[list[int], Mended, Fix]], Mending, int]:
                return list(self._repaired(problem, findings, clues)), self, problem.meter.runs

            # a backward that no edit was made for is not mended; what calls at other sizes leave on the class is undone
            with any_errors("repair"):
                mends, done, problem.meter.runs = problem.state.apart(job)
                self._tries, self._sought = done._tries, done._sought
        told = list(findings)
        for (first, *others), mended, fix in mends:
            told[first] = replace(told[first], fix=fix)
            if clues is not None:
                told[first] = _explained(told[first], mended, fix, clues)
                for k in others:
                    code = told[first].code
                    told[k] = replace(told[k], code=code, message_id="causes.mended_as_well", line=fix.line)
        return tuple(told)

    def _repaired(
        self, problem: Problem, findings: Sequence[Finding], clues: Clues | None
    ) -> Iterator[tuple[list[int], Mended, Fix]]:
        workshop = Repair(problem, self._tries, clues or Clues())
        bugs = [_targets(problem, f) for f in findings if f.kind == "bug"]
        workshop.kept = frozenset[int]().union(*(_targets(problem, f) for f in findings if f.code == "surrogate"))
        workshop.kept |= _handed_on(problem)
        workshop.right = frozenset(range(len(problem.differentiable))).difference(*bugs)
        places = {f.where[1] for f in findings if f.kind == "bug" and f.where is not None}
        named = frozenset(k for k, position in enumerate(problem.differentiable) if position in places)
        done = False  # what was wrong as a whole is mended as a whole
        for numbers in _together(findings):
            group = [findings[k] for k in numbers]
            wrong = frozenset[int]().union(*(_targets(problem, f) for f in group))
            again = clues is None and wrong <= self._sought and not _alone(group[0])
            if done or again or any(f.fix is not None for f in group):
                continue
            self._sought |= wrong if clues is not None else set()
            mended = workshop.mended(group, wrong, named)
            if mended is not None:
                yield numbers, mended, workshop.fix(mended)
                done = any(f.where is None for f in group)


def _explained(finding: Finding, mended: Mended, fix: Fix, clues: Clues) -> Finding:
    """Return a finding on wrong entries that says what the change is of; what says more than that stays."""
    if finding.code not in ("wrong_derivative", "wrong_unclassified"):
        return finding
    code, sentence = SENTENCES.get(mended.kinds[0] if len(mended.kinds) == 1 else "", ANY)
    if code == "constant_factor" and not clues.scaled:
        code = finding.code  # a number that is changed may be a dimension, or the factor of one term
    said = {name: finding.params[name] for name in ("input", "output", "value", "example")}
    line = fix.line or finding.line
    return replace(finding, code=code, message_id=f"causes.{sentence}", params=said, line=line)
