"""``nbautograd explain``: runs a script or module once, watched, and says what is behind the error it ends in."""

from __future__ import annotations

import contextlib
import linecache
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from nbautograd.command.page import require_ours
from nbautograd.command.program import COULD_NOT_RUN, FOUND, as_main, run, write_report
from nbautograd.core.explaining.trial import GradientWatch, Rerun
from nbautograd.inspection.explanation import explain_watched
from nbautograd.messages import text
from nbautograd.views.builders.explanation import explanation_document
from nbautograd.views.to_text import to_text

TRIED = 20.0  # seconds that a program may take for changes of it to be tried, each of which runs it about four times


def explain(
    target: str,
    arguments: Sequence[str],
    *,
    module: bool = False,
    json_file: Path | None = None,
    html_file: Path | None = None,
) -> int:
    """Run a program as ``python`` would, watched, then explain the error about gradients that it ended in.

    It runs once. Changes of a line are tried afterwards, in copies of the process, where that takes no longer than a
    person waits.

    Args:
        target: path of a script, or name of a module.
        arguments: those of the program.
        module: True where ``target`` is a module's name.
        json_file, html_file: where the explanation is written besides.

    Returns:
        1 when something was found, else 2 when the program raised, else 0.

    Raises:
        CommandError: when there is no such script or module.
        CommandError: when a file cannot be written.
    """
    if html_file is not None:
        require_ours(html_file)
    with as_main(target, arguments, module) as (code, namespace):
        before, watch, begun = dict(namespace), GradientWatch(finite=True), time.monotonic()
        enabled = torch.is_grad_enabled()
        both = contextlib.ExitStack()
        both.enter_context(watch.on())
        both.enter_context(watch.steps)
        error = run((code, namespace), both, text("command.explain.then"))
        tries = time.monotonic() - begun < TRIED
        torch.set_grad_enabled(enabled)  # a program may leave them switched off
        file = code.co_filename

        def again(texts: Mapping[str, str]) -> None:
            exec(compile(texts[file], file, "exec", dont_inherit=True), dict(before))

        program = Rerun(again, {file: "".join(linecache.getlines(file))}, scope=namespace)
        explanation = explain_watched(watch, error, program, tries)
        document = explanation_document(explanation)
        print(to_text(document))
        write_report(explanation, document, "nbautograd explain", json_file, html_file)
    return FOUND if explanation else 0 if error is None else COULD_NOT_RUN
