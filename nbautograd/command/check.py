"""``nbautograd check``: a Function by itself or beside a reference, for scripts, CI and agents."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from nbautograd.command import github
from nbautograd.command.page import require_ours
from nbautograd.command.program import COULD_NOT_RUN, FOUND, write_report
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.budget import DEFAULT
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.core.kernel.raised import users_trace
from nbautograd.errors import CallError, CommandError, NbautogradError
from nbautograd.inspection.compare import compare
from nbautograd.inspection.comparison import Comparison
from nbautograd.messages import text
from nbautograd.views.builders import build
from nbautograd.views.to_text import to_text

SAVED = (".pt", ".pth")  # what torch.save writes


@dataclass(frozen=True)
class Given:
    """Inputs of a check, and who may see them.

    Attributes:
        inputs: the arguments, or a callable that makes them.
        cases: pairs of a name and arguments, or a callable that yields them; None for none.
        hidden: True where no value of theirs is shown: they came from a file.
    """

    inputs: Any = ()
    cases: Any = None
    hidden: bool = False


def check(
    function: str,
    inputs: str | None = None,
    *,
    reference: str | None = None,
    cases: str | None = None,
    layouts: str | None = None,
    overwrites: str | None = None,
    seed: int = 0,
    json_file: Path | None = None,
    html_file: Path | None = None,
    budget: float | None = None,
    compile: bool = False,
    on_github: bool = False,
    allow_unjudged: bool = False,
) -> int:
    """Check a Function, against a reference where there is one, and print the report.

    Args:
        function, reference: ``MODULE:NAME`` each.
        inputs: ``MODULE:NAME`` of a tuple or of a callable that returns one, or a file that ``torch.save`` wrote,
            whose values are shown nowhere.
        cases: ``MODULE:NAME`` of pairs of a name and arguments, or of a callable that yields them.
        layouts: names of memory layouts with commas between, or ``all``.
        overwrites: names of tensors that it is meant to write over, with commas between.
        seed: of torch's generators before inputs are made, and of the check.
        json_file, html_file: where the report is written besides.
        budget: seconds that the check may take; None takes the default.
        compile: True compares it under torch.compile as well, where it is right.
        on_github: True prints annotations, and adds a table to the summary of the job.
        allow_unjudged: True lets a right verdict stand beside rows of the sweep that could not be judged.

    Returns:
        0 when the Function is right, 1 when it is wrong or torch.compile changes it, 2 when it, a row of its sweep, or
        a way to compile it cannot be told.

    Raises:
        CommandError: when a name leads nowhere, or the check cannot be run.
        CommandError: when a file cannot be written.
    """
    if html_file is not None:
        require_ours(html_file)
    fn, eager = _named(function), None if reference is None else _named(reference)
    torch.manual_seed(seed)
    given = _given(inputs, cases)
    laid: Any = layouts if layouts in (None, "all") else _listed(str(layouts))
    seconds = DEFAULT if budget is None else budget
    reports: list[Comparison | GradcheckReport] = []
    try:
        if eager is None:
            if given.cases is not None or ((laid is not None or overwrites) and not compile):
                raise CallError("compare.no_reference")
            arguments = given.inputs() if callable(given.inputs) else given.inputs
            reports.append(gradcheck(fn, arguments, budget=seconds, seed=seed))
        if eager is not None or (compile and reports[0].verdict == "right"):
            options: dict[str, Any] = {"cases": given.cases, "layouts": laid, "compile": compile}
            options["overwrites"] = _listed(overwrites or "")
            reports.append(compare(fn, eager, given.inputs, budget=seconds, seed=seed, **options))
    except NbautogradError as error:
        raise CommandError(str(error)) from None
    except (Exception, SystemExit) as error:
        if given.hidden:  # its words may hold a value
            raise CommandError(text("command.check.raised", error=type(error).__name__)) from None
        print(users_trace(error), file=sys.stderr)
        raise CommandError(text("command.check.raised", error=f"{type(error).__name__}: {error}")) from error
    report, place = reports[-1], _place(reports[-1])
    shown: Any = report.redact() if given.hidden else report
    document = build(shown)
    for one in reports[:-1]:
        print(to_text(build(one.redact() if given.hidden else one)))
    print(to_text(document))
    verdict = report.verdict
    if isinstance(report, Comparison) and (report.overall == "wrong" or not allow_unjudged):
        verdict = report.overall
    if isinstance(report, Comparison) and verdict != report.verdict == "right" and report.unjudged:
        print(text("command.check.unjudged", count=report.unjudged))
    status = {"right": 0, "wrong": FOUND}.get(verdict, COULD_NOT_RUN)
    write_report(shown, document, "nbautograd check", json_file, html_file)
    if on_github:
        github.write(shown, *place, status)
    return status


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _place(report: Comparison | GradcheckReport) -> tuple[str | None, int | None]:
    """Return the file of a Function and the line of its backward."""
    if isinstance(report, Comparison):
        return report.file, report.backward_line or report.line
    return (None, None) if report.source is None else (report.source.file, report.source.line("backward"))


def _given(inputs: str | None, cases: str | None) -> Given:
    """Return what is to be checked at; a file that cannot be read is a sentence."""
    if inputs is None and cases is None:
        raise CommandError(text("command.check.no_inputs"))
    if inputs is not None and inputs.endswith(SAVED):
        try:
            saved = torch.load(inputs, weights_only=True)
            if isinstance(saved, dict):
                named = [(str(name), one if isinstance(one, Tensor) else tuple(one)) for name, one in saved.items()]
                return Given(cases=named, hidden=True)
            return Given(saved if isinstance(saved, Tensor) else tuple(saved), hidden=True)
        except Exception as error:  # silent: of a file that is hidden only the kind of error is told
            raise CommandError(text("command.check.no_file", path=inputs, reason=type(error).__name__)) from None
    return Given(() if inputs is None else _named(inputs), None if cases is None else _named(cases))


def _named(given: str) -> Any:
    """Return the object that ``MODULE:NAME`` names; dots in the name lead to attributes."""
    place, colon, name = given.rpartition(":")
    if not colon or not place or not name:
        raise CommandError(text("command.check.no_colon", given=given))
    value: Any = _module(place)
    try:
        for attribute in name.split("."):
            value = getattr(value, attribute)
    except Exception:  # silent: of a module that answers for its names itself, too
        raise CommandError(text("command.check.no_name", module=place, name=name)) from None
    return value


def _module(place: str) -> ModuleType:
    """Import a module by its name, or by the path of its file; its folder is then on the path, as of any script.

    Of a file in a package that is the folder around the package, so that it can import from its neighbours.
    """
    path = Path(place).resolve()
    folder, name = (path.parent, path.stem) if place.endswith(".py") else (Path.cwd(), place)
    while place.endswith(".py") and (folder / "__init__.py").is_file():
        folder, name = folder.parent, f"{folder.name}.{name}"
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        if not place.endswith(".py") or "." in name:
            return importlib.import_module(name)
        known = sys.modules.get(path.stem)
        if known is not None and getattr(known, "__file__", None) == str(path):
            return known
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(text("command.program.not_found"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # a second name from the same file means the same objects
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}"
        raise CommandError(text("command.check.no_module", module=place, reason=said)) from None
