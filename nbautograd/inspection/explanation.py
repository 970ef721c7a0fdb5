"""Explanation: what is behind one of torch's gradient errors, from an error, a tensor, or a function that is run."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType, FunctionType
from typing import Any

import torch

from nbautograd.core import stumbles
from nbautograd.core.display import Redactable
from nbautograd.core.explaining.cause import ErrorCause, SourceLine, TrialEdit, at, finding
from nbautograd.core.explaining.cells import cell_of, first_needed
from nbautograd.core.explaining.explain import cause_of_error, cause_of_tensor
from nbautograd.core.explaining.grad_none import grad_none, of_returned
from nbautograd.core.explaining.not_finite import of_gradients, of_value
from nbautograd.core.explaining.program import Program, node_of, users_frame
from nbautograd.core.explaining.torch_errors import ending
from nbautograd.core.explaining.trial import (
    GradientWatch,
    Rerun,
    ends_finite,
    mends,
    reaches,
    reaches_readers,
)
from nbautograd.core.explaining.watch import Bad, all_finite, tensors_of
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.graphs.build import graph
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.graphs.why_none import of_leaf, of_tensor, reason_finding
from nbautograd.core.process_copy import Refused, in_copy
from nbautograd.core.stumbles import any_errors, record
from nbautograd.core.this_thread import warnings_ignored
from nbautograd.core.user_source import method_at, returns, tree_of
from nbautograd.errors import InputError

BY_FUNCTION = "nbautograd.explain(function)"
LONGEST_ERROR = 120  # letters of an error that is none of torch's
LONGEST_NAME = 48  # of what a function returns
MOST_NAMED = 4  # parameters in one sentence
MOST_NODES = 60  # of a graph that is drawn beside the answer
UNSEEN = ("in_place", "freed", "no_grad", "not_finite", "grad_none", "grad_none_not_a_leaf")  # a run shows the line


@dataclass(frozen=True, repr=False)
class Explanation(Redactable["Explanation"]):
    """The cause of one of torch's gradient errors.

    Attributes:
        code: stable, made for programs: ``"in_place"``, ``"freed_carried"``, ``"no_grad_detach"``, ...; ``"nothing"``
            where nothing is wrong, ``"not_torch"`` for an error that is not one of torch's gradient errors.
        findings: what was shown, the most important first, then what to do.
        tensor: what your code calls the tensor; empty where it has no name.
        made: the line that made it, where that was shown.
        saved: the line that saved it for backward, where that was shown.
        did: the line that did what torch complains of, where that was shown.
        fix: a changed line that was tried: no error, and gradients that agree with an independent way.
        raised: the line that raised the error, or that called torch.
        graph: the graph of what was differentiated, where it is small enough to be seen.
        run: how it was found: ``"no"`` (from what the error left behind), ``"copy"`` (by a run in a copy of the
            process), ``"here"``, ``"program"`` (while the program itself ran), or ``"refused"``.
        params: more plain data, such as versions and names of operations.
    """

    code: str
    findings: tuple[Finding, ...] = ()
    tensor: str = ""
    made: SourceLine | None = None
    did: SourceLine | None = None
    fix: Fix | None = None
    raised: SourceLine | None = None
    graph: AutogradGraph | None = field(default=None, repr=False)
    run: str = "no"
    params: dict[str, Any] = field(default_factory=dict)
    saved: SourceLine | None = None

    def __bool__(self) -> bool:
        """Return True where there is something to explain."""
        return self.code not in ("nothing", "not_torch")

    def __repr__(self) -> str:
        line = "" if self.did is None else f", line {self.did.line}"
        name = f" of {self.tensor}" if self.tensor else ""
        return f"<Explanation {self.code}{name}{line}>"


def explain(
    target: Any, *args: Any, apart: bool = True, names: Mapping[str, Any] | None = None, run: Rerun | None = None
) -> Explanation:
    """Say what is behind one of torch's gradient errors: which tensor, which line.

    Args:
        target: an error that torch raised. Or a loss or another tensor, for NaN, a graph that is cut, or a ``.grad``
            that is None. Or a function, which is run and watched, to see lines that an error no longer shows.
        args: arguments of the function.
        apart: run the function in a copy of the process: its changes are discarded, and nothing reaches files or the
            network. False runs it in this process, as a call would.
        names: the variables to look for tensors in; None takes those of the calling code.
        run: how an error's program is run once more; the notebook gives its cell.

    Returns:
        The explanation. It names a line only where that was shown, and offers a changed line only where it was tried.

    Raises:
        InputError: for a target that is none of these.

    Example:
        >>> import torch, nbautograd
        >>> y = torch.ones(3, requires_grad=True).exp()
        >>> y += 1
        >>> try:
        ...     y.sum().backward()
        ... except RuntimeError as error:
        ...     nbautograd.explain(error).code
        'in_place'
    """
    if isinstance(target, BaseException):
        before = _of_error(target)
        if run is None:
            return before
        kept = tuple(finding for finding in before.findings if not finding.code.startswith("explain_run_"))
        return _of_run(run, replace(before, findings=kept), apart, ending(target))
    if isinstance(target, torch.Tensor):
        return _of_tensor(target, names)
    if isinstance(target, Rerun):
        return _of_run(target, None, apart)
    if callable(target):
        return _of_run(Rerun(lambda _: target(*args), returned=partial(_returned, target)), None, apart)
    raise InputError("explain.not_explainable", type=type(target).__name__)


def _of_error(error: BaseException) -> Explanation:
    cause, program = cause_of_error(error)
    if cause is None:
        return Explanation("not_torch", (_note("not_torch"),))
    explanation = _explained(cause, program)
    unseen = cause.did is None and (cause.code in UNSEEN or cause.code.startswith("not_finite"))
    if unseen and cause.findings[0].code != "explain_hidden":
        return replace(explanation, findings=(*explanation.findings, _run_it(program, cause)))
    return explanation


def _run_it(program: Program, cause: ErrorCause) -> Finding:
    cell = cell_of(program)
    if cell is None:
        return _note("run_again", command=BY_FUNCTION)
    first = _first_cell(program, cause, cell)
    return _note("run_again", command=f"%autograd_explain {'--run' if first == cell else f'{first}-{cell}'}")


def first_cell(error: BaseException) -> int:
    """Return the first of the cells that have to run again to explain an error of a notebook."""
    cause, program = cause_of_error(error)
    cell = cell_of(program) or 1
    return cell if cause is None else _first_cell(program, cause, cell)


def _first_cell(program: Program, cause: ErrorCause, cell: int) -> int:
    # where something has no graph, or no gradient, it is to be seen why, of what has none itself as well
    whole = cause.code.startswith(("no_grad", "unused", "grad_none"))
    name = re.split(r"\W", cause.tensor, maxsplit=1)[0] if whole else ""
    return first_needed([name] if name else [], cell, program.frames[0][0].f_globals, whole)


def _of_tensor(tensor: torch.Tensor, names: Mapping[str, Any] | None) -> Explanation:
    frame: Any = users_frame() or sys._getframe(2)
    scope = {**frame.f_globals, **frame.f_locals} if names is None else names
    program = Program(scope={_typed(frame): tensor, **scope} if names is None else scope, roots=(tensor,))
    if names is None or frame.f_globals.get("In", frame) is names.get(
        "In"
    ):  # the magic hands over the notebook's names
        program.frames.append((frame, frame.f_lineno))
    if tensor.is_leaf and tensor.requires_grad and bool(tensor.detach().isfinite().all()):
        return _of_leaf(tensor, program, names)
    cause = cause_of_tensor(tensor, program)
    if cause is not None:
        found = _explained(cause, program)
        unseen = cause.did is None and cause.code.startswith(("no_grad", "not_finite"))
        return replace(found, findings=(*found.findings, _run_tensor(names))) if unseen else found
    if of_tensor(tensor) == "not_a_leaf" and (tensor.numel() != 1 or _is_inside(tensor, program)):
        name = program.name_of(tensor)
        finding = reason_finding("not_a_leaf", name=name or "?", at="")
        return Explanation(finding.code, (finding,), name)
    return Explanation("nothing", (_note("nothing"),))


def _run_tensor(names: Mapping[str, Any] | None) -> Finding:
    asked = "" if names is None or "In" not in names else next(iter(names))
    if not asked:
        return _note("run_again", command=BY_FUNCTION)
    command = f"%autograd_explain {asked} --run"
    return _note("run_again", command=command, find=command)


def _returned(function: Callable[..., Any]) -> str:
    """Return what a function returns, as it is written where it has one short ``return`` of its own."""
    source = method_at(function.__code__) if isinstance(function, FunctionType) else None
    own = returns(source) if isinstance(source, ast.FunctionDef) else []
    only = own[0].value if len(own) == 1 else None
    written = "" if only is None else ast.unparse(only)
    return written if 0 < len(written) <= LONGEST_NAME else f"{getattr(function, '__name__', 'it')}()"


def _typed(frame: FrameType) -> str:
    """Return what a line that calls ``explain`` asks about, as it is written."""
    tree = tree_of("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    calls = [part for part in ast.walk(tree) if isinstance(part, ast.Call) and part.args] if tree is not None else []
    here = [call for call in calls if call.lineno <= frame.f_lineno <= (call.end_lineno or 0)]
    asked = [call.args[0] for call in here if ast.unparse(call.func).rpartition(".")[2] == "explain"]
    return ast.unparse(asked[0]) if len(asked) == 1 else "tensor"


def _is_inside(tensor: torch.Tensor, program: Program) -> bool:
    others = [t for t in program.tensors.values() if node_of(t) not in (None, node_of(tensor))]
    return node_of(tensor) in Program(roots=tuple(others)).nodes()


def _of_leaf(tensor: torch.Tensor, program: Program, names: Mapping[str, Any] | None) -> Explanation:
    """Explain a leaf by the losses that were computed beside it, and by the optimizers that are to change it."""
    name = program.name_of(tensor)
    if tensor.grad is not None:
        if cause := of_gradients(program, [tensor]):
            found = _explained(cause, program)
            return replace(found, findings=(replace(found.findings[0], hints="what"), _run_tensor(names)))
        optimizers = {n: v for n, v in program.variables.items() if isinstance(v, torch.optim.Optimizer)}
        held = [parameter for one in optimizers.values() for group in one.param_groups for parameter in group["params"]]
        if not optimizers or any(parameter is tensor for parameter in held):
            return Explanation("nothing", (_note("nothing"),), name)
        facts = (_note("optimizer_holds_others", name=name or "?", optimizers=", ".join(optimizers)),)
        return Explanation("optimizer_holds_others", facts, name)
    losses = [t for t in program.tensors.values() if node_of(t) is not None and t.numel() == 1]
    finding = reason_finding("not_run", name=name or "?")
    if losses:
        finding = of_leaf(tensor, losses, {"__name__": "", **program.variables})
    if name and "name" in finding.params:
        finding = replace(finding, params={**finding.params, "name": name})
    if finding.code in ("grad_none_not_a_part", "grad_none_not_run"):  # why is to be seen while it runs
        return Explanation(finding.code, (replace(finding, hints="what"), _run_tensor(names)), name)
    return Explanation(finding.code, (finding,), name)


def _note(which: str, **params: Any) -> Finding:
    return Finding(f"explain_{which}", "note", f"explain.{which}", params)


def _explained(cause: ErrorCause, program: Program, run: str = "no") -> Explanation:
    raised = program.caller if program.error is not None else None
    lines = any(one.message_id == "explain.no_grad.left" for one in cause.findings)
    alone = cause.did is None and not lines and cause.code in UNSEEN[:3]  # a node says where a NaN comes from
    unseen = (_note("unseen"),) if alone else ()
    facts = cause.findings if run == "no" else (*cause.findings, *unseen, _note(f"ran_{run}"))
    here = program.caller
    if cause.did is not None and cause.did.cell not in (None, here.cell if here is not None else None):
        facts = (facts[0], _note("in_cell", line=cause.did.line, cell=cause.did.cell), *facts[1:])
    found = Explanation(cause.code, facts, cause.tensor, cause.made, cause.did, graph=_drawn(program), run=run)
    return replace(found, raised=raised, params=dict(cause.params), saved=cause.saved)


def _drawn(program: Program) -> AutogradGraph | None:
    if not 0 < len(program.nodes()) <= MOST_NODES:
        return None
    with any_errors("picture of an explanation"):  # an extra; the answer stands without it
        roots = list(program.roots)
        return graph(roots if len(roots) > 1 else roots[0], names={"__name__": "", **program.tensors})
    return None


def _of_run(run: Rerun, before: Explanation | None, apart: bool, ended: str | None = None) -> Explanation:
    """Run a program once more, watched, and try the changes that its cause suggests.

    Args:
        run: the program.
        before: what its error left behind.
        apart: run it in a copy of the process.
        ended: what it ended in before; None where that is not known.
    """
    if not apart:
        with torch.random.fork_rng():
            explanation, cause, now = _watched_run(run, "here")
        if ended is not None and now not in ("", ended):
            return _differs(now, ended, "here", before)
        return explanation
    seen: tuple[Explanation, ErrorCause | None, str] | Refused = in_copy(lambda: _watched_run(run, "copy"))
    if isinstance(seen, Refused):
        return _refused(seen, before)
    explanation, cause, now = seen
    bare = ended if now == ended else in_copy(lambda: _bare_run(run), compiled=True)
    if isinstance(bare, str) and bare != now:
        return _differs(now, bare, "copy", before)
    if before is not None and now != ended:
        return replace(before, findings=(*before.findings, _note("did_not_happen_again")), run="copy")
    return explanation if cause is None else _with_a_change(explanation, cause, run)


def _with_a_change(explanation: Explanation, cause: ErrorCause, run: Rerun) -> Explanation:
    for edit in cause.edits:
        if tried := _proof(run, edit, cause):
            params = {**explanation.params, "tried": tried}
            fix = Fix(edit.after, True, edit.line, edit.before, edit.file)
            return replace(explanation, fix=fix, params=params)
    return explanation


def explain_watched(watch: GradientWatch, error: BaseException | None, run: Rerun, tries: bool) -> Explanation:
    """Explain a program that ran under a watch in this process.

    Args:
        watch: what was seen, over by now.
        error: what the program ended in.
        run: runs it once more, for changes to be tried.
        tries: whether they are tried, in copies of the process.
    """
    explanation, cause, _ = explained_run(watch, error, None, run, "program")
    return explanation if cause is None or not tries else _with_a_change(explanation, cause, run)


def _proof(run: Rerun, edit: TrialEdit, cause: ErrorCause) -> str:
    """Return what a trial shows of a change, as its message is called; empty where it mends nothing.

    ``same``: the gradients are those of an independent way. ``finite``: they are finite, and as they were where they
    had been. ``reaches``, ``further``: there is no other way to have them, but they arrive, and at more tensors.
    """
    code = cause.code
    if code.startswith("not_finite"):
        return "finite" if ends_finite(run, edit) else ""
    if code.startswith(("freed_carried", "freed_shared_grad")):
        return "reaches" if reaches(run, edit) else ""
    if code == "in_place_step":
        works = mends(run, edit, "in_place") if edit.exact else reaches(run, edit, further=True)
        return "" if not works else "same" if edit.exact else "further"
    if code.startswith("in_place"):
        return "same" if mends(run, edit, "in_place") and reaches_readers(run, edit) else ""
    if code.startswith(("no_grad", "unused", "grad_none")):
        return "further" if reaches(run, edit, further=True) else ""
    return "same" if mends(run, edit, "freed") else ""


def _differs(watched: str, bare: str, where: str, before: Explanation | None) -> Explanation:
    """Return that a run ended otherwise under watch: what was seen there is not what the program does."""
    ends = {"watched": watched.partition(":")[0], "bare": bare.partition(":")[0]}
    finding = _note("ran_differently", **ends)
    if before is None:
        return Explanation("ran_differently", (finding,), run=where, params=ends)
    return replace(before, findings=(*before.findings, finding), run=where)


def _end(run: Rerun) -> tuple[Any, BaseException | None]:
    """Run a program, and return what it returned and the error that it ended in; leaving by ``sys.exit`` is none."""
    try:
        with warnings_ignored():  # they were shown when it ran for the first time
            return run(), None
    except SystemExit:
        return None, None
    except Exception as error:
        record(error, "run that is explained")
        return None, error


def _bare_run(run: Rerun) -> str:
    error = _end(run)[1]
    return "" if error is None else ending(error)


def _watched_run(run: Rerun, where: str) -> tuple[Explanation, ErrorCause | None, str]:
    watch = GradientWatch(finite=True)
    with watch.on(), watch.steps:
        result, error = _end(run)
    return explained_run(watch, error, result, run, where)


def explained_run(
    watch: GradientWatch, error: BaseException | None, result: Any, run: Rerun, where: str
) -> tuple[Explanation, ErrorCause | None, str]:
    """Return what a watched run showed, its cause where its changes are worth a trial, and what it ended in.

    Args:
        watch: what was seen.
        error: what the run ended in.
        result: what it returned.
        run: the program.
        where: how it was run, as in ``Explanation.run``.
    """
    cause, program = cause_of_error(error, watch) if error is not None else (None, Program())
    if error is not None and cause is not None:
        return _explained(cause, program, where), cause, ending(error)
    ended, raised = ("", ()) if error is None else (ending(error), (_raised(error, program),))
    caught, inner = cause_of_error(watch.raised, watch) if watch.raised is not None else (None, program)
    if caught is not None:
        caught = replace(caught, findings=(*raised, *caught.findings, _note("caught")))
        return _explained(caught, inner, where), None, ended
    if error is not None:
        program.roots = program.roots or watch.roots
        seen = _seen(watch, program, None, "")
        if seen is None:
            return Explanation("not_torch", (*raised, _note("not_torch")), run=where), None, ended
        seen = replace(seen, findings=(*raised, *seen.findings))
        return _explained(seen, program, where), seen, ended
    program = Program(roots=watch.roots or tuple(tensors_of(result)), watch=watch, scope=run.scope)
    cause = (_asked if run.asks else _seen)(watch, program, result, run.returned())
    if cause is None:
        return Explanation("nothing", (_note("nothing"),), run=where), None, ""
    return _explained(cause, program, where), cause, ""


def _asked(watch: GradientWatch, program: Program, tensor: Any, name: str) -> ErrorCause | None:
    if isinstance(tensor, torch.Tensor) and not all_finite(tensor):
        return of_value(program, tensor)
    if isinstance(tensor, torch.Tensor) and not tensor.requires_grad:
        return grad_none(program, tensor, name)
    return _seen(watch, program, tensor, name)


def _seen(watch: GradientWatch, program: Program, result: Any, name: str) -> ErrorCause | None:
    bad = [root for root in program.roots if root.requires_grad or watch.events.last(Bad, root) is not None]
    # a function that returns a loss leaves its backward to its caller, so that it is tried here
    cause = cause_of_tensor(bad[0], program, watch.backward if watch.passes else None) if bad else None
    asked = isinstance(result, torch.Tensor) and result.requires_grad
    steps, lacking = watch.steps.cause(), of_returned(result, watch, name) if asked else None
    if steps is not None and watch.steps.holds(result) and (lacking is None or lacking.did is None):
        # says more of a tensor that an optimizer holds in place of another
        also = () if lacking is None else lacking.findings[:1]
        lacking = replace(steps, findings=(steps.findings[0], *also, *steps.findings[1:]))
    return lacking or cause or steps or _not_stepped(watch, program) or _nan_alive(watch, program)


def _not_stepped(watch: GradientWatch, program: Program) -> ErrorCause | None:
    """Return why a parameter that an optimizer holds had no gradient at any of its steps."""
    idle = list(watch.steps.idle())
    causes = ((name, place, grad_none(program, tensor, name)) for name, place, tensor in idle)
    for name, place, cause in sorted(causes, key=lambda one: one[2].did is None):  # first one whose line is known
        names = "`, `".join([name, *(other for other, *_ in idle if other not in ("", name))][:MOST_NAMED])
        what = finding("grad_none.not_stepped", place, name=names, line=place.line, text=place.text)
        return replace(cause, findings=(what, *cause.findings), tensor=name)
    return None


def _nan_alive(watch: GradientWatch, program: Program) -> ErrorCause | None:
    """Return where the first NaN of a run began that is in some tensor still; of infinities many are meant."""
    nans = [(bad.order, tensor) for tensor, bad in watch.events.alive(Bad) if bad.what == "NaN"]
    return of_value(program, min(nans, key=lambda one: one[0])[1]) if nans else None


def _raised(error: BaseException, program: Program) -> Finding:
    first, did = next(iter(stumbles.said(error).splitlines()), ""), program.caller
    words = f"{type(error).__name__}: {first if len(first) <= LONGEST_ERROR else first[:LONGEST_ERROR] + '…'}"
    return _note("raised_other", error=words if first else type(error).__name__, at=at(did))


def _refused(seen: Refused, before: Explanation | None) -> Explanation:
    which = "no_answer" if seen.reason in ("late", "died") else seen.reason
    finding = _note(f"refused_{which}", detail=seen.detail)
    if before is None:
        return Explanation("refused", (finding,), run="refused")
    return replace(before, findings=(*before.findings, finding), run="refused")
