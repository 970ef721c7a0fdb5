"""``nbautograd check``: a Function by itself or beside a reference, for scripts, CI and agents."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from nbautograd.command.page import require_ours
from nbautograd.command.program import COULD_NOT_RUN, FOUND, Unrunnable, write_report
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.budget import DEFAULT
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.core.kernel.raised import users_trace
from nbautograd.errors import NbautogradError
from nbautograd.inspection.compare import compare
from nbautograd.inspection.comparison import Comparison
from nbautograd.messages import text
from nbautograd.views.builders import build
from nbautograd.views.to_text import to_text


def check(
    function: str,
    inputs: str,
    *,
    reference: str | None = None,
    json_file: Path | None = None,
    html_file: Path | None = None,
    budget: float | None = None,
    compile: bool = False,
) -> int:
    """Check a Function, against a reference where there is one, and print the report.

    Args:
        function, reference, inputs: ``MODULE:NAME`` each; ``inputs`` is a tuple or a callable that returns one.
        json_file, html_file: where the report is written besides.
        budget: seconds that the check may take; None takes the default.
        compile: True compares it under torch.compile as well; without a reference with itself as it is.

    Returns:
        0 when the Function is right, 1 when it is wrong, 2 when it cannot be told.

    Raises:
        Unrunnable: when a name leads nowhere, or the check cannot be run.
        CommandError: when a file cannot be written.
    """
    if html_file is not None:
        require_ours(html_file)
    fn, given = _named(function), _named(inputs)
    eager = None if reference is None else _named(reference)
    try:
        arguments = given() if callable(given) else given
        seconds = DEFAULT if budget is None else budget
        report: Comparison | GradcheckReport
        if eager is None and not compile:
            report = gradcheck(fn, arguments, budget=seconds)
        else:
            report = compare(fn, eager, arguments, budget=seconds, compile=compile)
    except NbautogradError as error:
        raise Unrunnable(str(error)) from None
    except Exception as error:
        print(users_trace(error), file=sys.stderr)
        raise Unrunnable(text("command.check.raised", error=f"{type(error).__name__}: {error}")) from error
    document = build(report)
    print(to_text(document))
    write_report(report, document, "nbautograd check", json_file, html_file)
    return {"right": 0, "wrong": FOUND}.get(report.verdict, COULD_NOT_RUN)


def _named(given: str) -> Any:
    """Return the object that ``MODULE:NAME`` names; dots in the name lead to attributes."""
    place, colon, name = given.rpartition(":")
    if not colon or not place or not name:
        raise Unrunnable(text("command.check.no_colon", given=given))
    value: Any = _module(place)
    for attribute in name.split("."):
        if not hasattr(value, attribute):
            raise Unrunnable(text("command.check.no_name", module=place, name=name))
        value = getattr(value, attribute)
    return value


def _module(place: str) -> ModuleType:
    """Import a module by its name, or by the path of its file, whose folder is then on the path as of any script."""
    path = Path(place).resolve()
    folder = str(path.parent if place.endswith(".py") else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
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
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise Unrunnable(text("command.check.no_module", module=place, reason=said)) from None
