"""Backward in slow motion: what each line computes, beside what it computes where the gradients come out right.

What a value ought to be is known from a second run alone, whose gradients are right at these inputs: one with the
changes that the check has tried, else one with the results that ``wrong_line`` has found put in. A value is right
where both runs have the same. Where there is no such run nothing is said of it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal

import torch
from torch import Tensor

from nbautograd.core import stumbles, user_source
from nbautograd.core.checking.backward_call import tensors_on_ctx, user_backward
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.diagnosis.wrong_line import (
    SIMPLE,
    Key,
    LineSearch,
    Steps,
    TracedResult,
    laid_out,
    written,
)
from nbautograd.core.checking.entry_curve import problem_of
from nbautograd.core.checking.point import Gradients, Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.repair import script as scripts
from nbautograd.core.display import Displayable, Phrase, plural
from nbautograd.core.numerics.compare import agree_bitwise, agree_relative
from nbautograd.core.stumbles import RAISED, any_errors, hands_over, is_ours
from nbautograd.core.values import Value, describe
from nbautograd.errors import InputError

Known = Literal["right", "wrong", "wrong by here", "follows", ""]
MOST_STOPS = 100  # that are shown
WRAPPED = 1  # lines that a compiled script has above the backward
RIGHT = ("match", "subgradient")  # verdicts of a block


@dataclass(frozen=True, repr=False)
class LineValue(Displayable):
    """A tensor of a run of backward, and what it is where the gradients come out right.

    Attributes:
        value: what it is, under the name of its variable or its expression.
        known: ``"right"``; ``"wrong"`` where it goes wrong first, ``"wrong by here"`` where what is before it may be
            wrong already; ``"follows"`` where it is computed from what is wrong; empty where nothing is known.
        right: what it is where the gradients come out right, if that is something else.
        difference: the value less the right one, where they have one shape.
    """

    value: Value
    known: Known = ""
    right: Value | None = None
    difference: Value | None = None

    def __repr__(self) -> str:
        return f"<LineValue {self.value.name}: {self.known or 'unknown'}>"


@dataclass(frozen=True, repr=False)
class LineStop(Displayable):
    """One turn of one line of backward that computed something.

    Attributes:
        line, end: first and last line of the statement, in the cell or file.
        values: its results, which it assigns, returns or writes.
        parts: of its expressions, in the order in which they were computed.
        reads: names of the grad_outputs and saved tensors that it reads.
    """

    line: int
    end: int
    values: tuple[LineValue, ...]
    parts: tuple[LineValue, ...] = ()
    reads: tuple[str, ...] = ()

    @property
    def known(self) -> Known:
        """The worst that is known of its results; where a part goes wrong first, that."""
        order: tuple[Known, ...] = ("wrong", "wrong by here", "follows", "", "right")
        parts = [v.known for v in self.parts if v.known.startswith("wrong")]
        return min((*parts, *(v.known for v in self.values)), key=order.index)

    def __repr__(self) -> str:
        return f"<LineStop {self.line}: {self.known or 'unknown'}>"


@dataclass(frozen=True, repr=False)
class ReturnedGradient(LineValue):
    """The gradient of an input that backward returned; ``known`` is the check's verdict on it.

    Attributes:
        position: of the input.
        stop: number of the stop that computed it; the number of stops where none did.
    """

    position: int = 0
    stop: int = 0


@dataclass(frozen=True, repr=False)
class SlowMotion(Displayable):
    """A run of backward, line by line.

    Attributes:
        function, output: names of the Function, and of the output at which a random gradient arrives.
        lines: number and text of the lines of backward; empty without its source.
        arrived: the grad_outputs.
        saved: the tensors on ctx.
        stops: the lines that computed something, in the order in which they ran.
        gradients: what was returned, one for each input that is differentiated; empty where backward raised.
        notes: from where it is known what is right, and what is missing.
        last: the line that it ended in, if known.
        raised: True where it ended in an error.
        position: of the output.
    """

    function: str
    output: str
    lines: tuple[tuple[int, str], ...]
    arrived: tuple[Value, ...]
    saved: tuple[Value, ...]
    stops: tuple[LineStop, ...]
    gradients: tuple[ReturnedGradient, ...]
    notes: tuple[Phrase, ...] = ()
    last: int | None = None
    raised: bool = False
    position: int = 0

    def __repr__(self) -> str:
        return f"<SlowMotion {self.function}: {plural(len(self.stops), 'step')}>"


def slow_motion(report: GradcheckReport) -> SlowMotion:
    """Run the backward of a checked Function once more and keep what each line computed.

    Args:
        report: of a check of a Function by itself, made in this session.

    Raises:
        InputError: when there is no such Function, or it is not known any more.
    """
    problem = problem_of(report)
    if problem.cls is None or not problem.direct:
        raise InputError("checking.motion_no_function", function=problem.name)
    wrong = [at for at, block in report.blocks.items() if block.verdict == "mismatch"]
    output = next(iter(wrong or report.blocks), (0, 0))[0]
    with problem.session():
        problem.call()
        at = points(problem).first("given")
        code = getattr(inspect.unwrap(user_backward(problem.cls)), "__code__", None)
        if at is None or not at.works or at.node is None or code is None:
            raise InputError("checking.motion_no_function", function=problem.name)
        return _Motion(report, at.through(output), output, code).made()


@dataclass
class BackwardRun:
    """One run of a backward.

    Attributes:
        steps: the results of its calls of torch.
        arrived: the grad_outputs.
        returned: what it returned.
        names: its local variables as it left them.
        gradients: what the engine made of that; None where it raised.
        last: the line that it ended in.
        raised: what it raised.
    """

    steps: Mapping[Key, TracedResult] = field(default_factory=dict)
    arrived: tuple[Any, ...] = ()
    returned: tuple[Any, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)
    gradients: Gradients | None = None
    last: int | None = None
    raised: BaseException | None = None


def _run(
    at: Point, backward: Callable[..., Any], code: CodeType, replaced: Mapping[Key, Callable[[Tensor], Tensor]] = {}
) -> BackwardRun:
    run, steps = BackwardRun(), Steps(code, replaced)

    @hands_over
    def traced(ctx: Any, *grads: Any) -> Any:
        run.arrived = tuple(g.clone() if isinstance(g, Tensor) else g for g in grads)
        with steps:
            result = backward(ctx, *grads)
        run.returned = result if isinstance(result, tuple) else (result,)
        return result

    try:
        run.gradients = at.pull(traced)
    except RAISED as error:
        if is_ours(error):
            raise
        run.raised = error
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code is code]
        run.last = lines[-1] if lines else None
    if steps.frame is not None:
        run.last = run.last or steps.frame.f_lineno
        run.names = dict(steps.frame.f_locals)
    run.steps = steps.found
    return run


Turn = tuple[int, int, list[tuple[Key, TracedResult]]]  # first line of a statement, its how-many-th turn, its results


@dataclass
class RightRun:
    """A second run, whose gradients are right.

    Attributes:
        values: what the results of the first one are there, as far as they have a counterpart.
        wrong: the results at which it is made right, and whether they go wrong first.
        until: the line up to which a value that is the same in both is known to be right; None for all.
        notes: say what it is.
        lost: True where a line that was changed computes nothing there that could be compared.
    """

    values: Mapping[Key, Tensor]
    wrong: Mapping[Key, Known] = field(default_factory=dict)
    until: int | None = None
    notes: tuple[Phrase, ...] = ()
    lost: bool = False


class _Motion:
    """The run of a Function's own backward at the inputs of a check, and the one beside it."""

    def __init__(self, report: GradcheckReport, at: Point, output: int, code: CodeType) -> None:
        self.report, self.at, self.output, self.code = report, at, output, code
        self.problem = at.problem
        held = tensors_on_ctx(self.problem, at.node)
        self.saved = [(name, tensor.detach().clone()) for name, tensor in held]
        self.own = _run(at, user_backward(self.problem.cls), code)
        tree = user_source.method_at(code)
        nodes = [] if tree is None else [*user_source.own_nodes(tree)]
        self.tree = tree
        right = [i for (o, i), block in report.blocks.items() if o == output and block.verdict in RIGHT]
        self.returned_right = {id(g) for i, g in enumerate(self.own.returned) if i in right}
        names = (n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self._stored = Counter(names)  # how often each variable is assigned
        self._spans, self._loops = (
            [(n.lineno, n.end_lineno or n.lineno) for n in nodes if isinstance(n, kinds)]
            for kinds in (SIMPLE, (ast.For, ast.While))
        )

    def made(self) -> SlowMotion:
        """Return what is shown."""
        own, right = self.own, self._right()
        turns = list(itertools.islice(self._turns(own.steps), MOST_STOPS))
        stops = tuple(self._stop(line, steps, right) for line, _, steps in turns)
        names = list(self.problem.source.grad_outputs) if self.problem.source is not None else []
        names += [f"grad_output {k}" for k in range(len(names), len(own.arrived))]
        return SlowMotion(
            self.problem.name,
            self.problem.output_names[self.output],
            self._lines(),
            tuple(map(describe, names, own.arrived)),
            tuple(describe(name, tensor) for name, tensor in self.saved),
            stops,
            () if own.gradients is None else tuple(self._gradients(own.gradients, turns)),
            (*(() if right is None else right.notes), *self._missing(right, len(turns))),
            own.last,
            own.raised is not None,
            self.output,
        )

    def _missing(self, right: RightRun | None, shown: int) -> Iterator[Phrase]:
        error = self.own.raised
        if right is None and error is None:
            yield Phrase("views.motion.unknown")
        if self.tree is None:
            yield Phrase("views.motion.no_source")
        if len(self.own.steps) >= Steps.most or shown == MOST_STOPS:
            yield Phrase("views.motion.cut", count=shown)
        if error is not None:  # last: the view says it where it happened
            first = (stumbles.said(error).strip().splitlines() or [""])[0]
            said = f"{type(error).__name__}: {first}".removesuffix(": ")
            yield Phrase("views.motion.raised", error=said)

    def _lines(self) -> tuple[tuple[int, str], ...]:
        if self.tree is None:
            return ()
        text = user_source.text_of(self.code.co_filename, self.tree).rstrip().split("\n")
        above = self.tree.lineno - user_source.first_line(self.tree)  # its decorators
        return tuple(enumerate(text[above:], self.tree.lineno))

    def _span(self, line: int) -> tuple[int, int]:
        return max((s for s in self._spans if s[0] <= line <= s[1]), default=(line, line))

    def _turns(self, steps: Mapping[Key, TracedResult], shift: int = 0) -> Iterator[Turn]:
        """Yield the results of each turn of a statement; a loop's next turn begins where the code goes back."""
        counts, now, before = Counter[int](), list[tuple[Key, TracedResult]](), 0
        for key, step in steps.items():
            line = self._span(step.line + shift)[0]
            # calls of a helper all come from one place of the code
            again = bool(now) and now[-1][0][0] == key[0] and step.item <= now[-1][1].item
            again = again and any(first <= line <= end for first, end in self._loops)
            if now and (line != before or key[0] < now[-1][0][0] or again):
                yield before, counts[before], now
                counts[before] += 1
                now = []
            now.append((key, step))
            before = line
        if now:
            yield before, counts[before], now

    def _right(self) -> RightRun | None:
        checked = [(i, b.verdict) for (o, i), b in self.report.blocks.items() if o == self.output]
        wrong = [i for i, verdict in checked if verdict not in RIGHT]
        if checked and not wrong and self.own.gradients is not None:
            return RightRun({key: step.value for key, step in self.own.steps.items()})
        with any_errors("slow motion"):
            changed = self._changed()
            return changed if changed is not None and not changed.lost else self._replaced(wrong) or changed
        return None

    def _is_right(self, run: BackwardRun) -> bool:
        at = self.at
        if run.gradients is None or at.right is None:
            return False
        pairs = enumerate(zip(run.gradients, at.right, strict=True))
        return all(at.trusts(k) and agree_relative(a, b, at.rel) for k, (a, b) in pairs)

    def _changed(self) -> RightRun | None:
        """Run backward with the changes that were tried; None where there are none, or they are no such run."""
        tried = (f.fix for f in self.report.findings if f.fix is not None and f.fix.verified and f.fix.line is not None)
        fixes = list(dict.fromkeys(tried))
        script = scripts.read(self.problem.cls)
        if not fixes or script is None:
            return None
        text, lines = script.text.split("\n"), set[int]()
        for fix in fixes:
            new, old = fix.source.split("\n"), fix.before.split("\n")
            first = (fix.line or 0) - script.first_line
            if len(new) != len(old) or not 0 <= first <= len(text) - len(new):
                return None  # lines that come or go have no counterpart
            text[first : first + len(new)] = [line.removeprefix(script.indent) for line in new]
            lines |= {self._span(script.first_line + first + k)[0] for k in range(len(new))}
        backward: Any = script.compiled("\n".join(text))
        if backward is None:
            return None
        run = _run(self.at, backward, backward.__code__)
        if not self._is_right(run):
            return None
        values, wrong, lost = dict[Key, Tensor](), dict[Key, Known](), False
        shift = script.first_line - WRAPPED - 1
        theirs = {(line, turn): steps for line, turn, steps in self._turns(run.steps, shift)}
        for line, turn, steps in self._turns(self.own.steps):
            other = theirs.get((line, turn), [])
            if line not in lines and len(other) == len(steps):
                values |= {key: step.value for (key, _), (_, step) in zip(steps, other, strict=True)}
            elif other:  # the parts of another expression are no counterparts
                values[steps[-1][0]] = other[-1][1].value
                wrong |= {steps[-1][0]: "wrong"} if line in lines else {}
            elif line in lines:  # it calls no torch there, as in ``ones = grad_output``
                name = written(self.code, steps[-1][0], steps[-1][1].item)[0]
                other_value = run.names.get(name) if self._stored[name] == 1 else None
                if isinstance(other_value, Tensor):
                    values[steps[-1][0]], wrong[steps[-1][0]] = other_value.detach(), "wrong"
                lost = lost or not isinstance(other_value, Tensor)
        sources = ((fix.line, " ".join(fix.source.split())) for fix in fixes)
        notes = (Phrase("views.motion.by_change", line=at, source=source) for at, source in sources)
        return RightRun(values, wrong, None, tuple(notes), lost)

    def _replaced(self, wrong: Sequence[int]) -> RightRun | None:
        replaced, notes, until = dict[Key, Callable[[Tensor], Tensor]](), list[Phrase](), list[int]()
        goes = dict[Key, Known]()
        for position in wrong:
            search = LineSearch(self.problem, self.output, self.problem.differentiable.index(position))
            found, place = search.found(), search.at(self.at)
            if found is None or found.key is None or found.key not in self.own.steps or place is None:
                return None
            laid = laid_out(place.values[found.belongs], self.own.steps[found.key].value)
            if laid is None:
                return None
            replaced[found.key] = lambda _, laid=laid: laid.clone()  # type: ignore[misc]
            until.append(found.agreed)
            goes[found.key] = "wrong" if found.first else "wrong by here"
            what = Phrase(f"views.motion.{found.kind}", name=found.expression, output=self.problem.output_names[0])
            inputs = self.problem.input_names
            params = {"what": what, "name": found.name, "line": found.line, "input": inputs[position]}
            notes.append(Phrase("views.motion.by_value", **params))
        run = _run(self.at, user_backward(self.problem.cls), self.code, replaced)
        if not self._is_right(run):
            return None
        return RightRun({key: step.value for key, step in run.steps.items()}, goes, min(until), tuple(notes))

    def _stop(self, line: int, steps: Sequence[tuple[Key, TracedResult]], right: RightRun | None) -> LineStop:
        read = [t for _, step in steps for t in step.read if isinstance(t, Tensor)]
        names = () if self.problem.source is None else self.problem.source.grad_outputs
        given = [*zip(names, self.own.arrived, strict=False), *self.saved]
        reads = [n for n, g in given if isinstance(g, Tensor) and any(agree_bitwise(g, t) for t in read)]
        used = {key for _, step in steps for key in step.read if not isinstance(key, Tensor)}
        values, parts = (
            tuple(self._value(key, step, right) for key, step in steps if (key in used) is inside)
            for inside in (False, True)
        )
        return LineStop(line, self._span(line)[1], values, parts, tuple(dict.fromkeys(reads)))

    def _value(self, key: Key, step: TracedResult, right: RightRun | None) -> LineValue:
        name = written(self.code, key, step.item)[0]
        value = describe(name, step.value)
        other = None if right is None else right.values.get(key)
        if right is None or other is None:
            return LineValue(value)
        if self._same(step.value, other):
            known = right.until is None or step.line <= right.until or id(step.tensor) in self.returned_right
            return LineValue(value, "right" if known else "")
        return LineValue(value, right.wrong.get(key, "follows"), *_beside(name, step.value, other))

    def _same(self, a: Tensor, b: Tensor) -> bool:
        close = (a.is_floating_point() or a.is_complex()) and a.dtype == b.dtype
        return agree_relative(a, b, self.at.rel) if close else agree_bitwise(a, b)

    def _gradients(self, gradients: Gradients, turns: Sequence[Turn]) -> Iterator[ReturnedGradient]:
        made = {id(step.tensor): k for k, (_, _, steps) in enumerate(turns) for _, step in steps}
        for k, position in enumerate(self.problem.differentiable):
            block, yours = self.report.blocks.get((self.output, position)), gradients[k]
            verdict = "" if block is None else block.verdict
            known: Known = "right" if verdict in RIGHT else "wrong" if verdict == "mismatch" else ""
            name, at = self.problem.input_names[position], self.at
            right = at.right[k] if known != "right" and at.right is not None and at.trusts(k) else None
            given = yours if yours is not None or right is None else torch.zeros_like(right)
            both = _beside(name, given, right) if given is not None and right is not None else (None, None)
            stop = made.get(id(self.own.returned[position]), len(turns)) if position < len(self.own.returned) else 0
            yield ReturnedGradient(describe(name, yours), known, both[0], both[1], position, stop)


def _beside(name: str, yours: Tensor, right: Tensor) -> tuple[Value, Value | None]:
    number = yours.is_floating_point() or yours.is_complex()
    difference = describe(name, yours - right) if number and yours.shape == right.shape else None
    return describe(name, right), difference
