"""``%autograd_explain``, and the line below the traceback of an error about gradients."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from IPython.core.error import UsageError
from IPython.core.history import extract_hist_ranges
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.display import display

from nbautograd import messages
from nbautograd.core.checking.progress import watched
from nbautograd.core.findings import Phrase
from nbautograd.errors import NbautogradError
from nbautograd.magics import output
from nbautograd.magics.call_expression import EvaluationError, evaluate, expression, one_line
from nbautograd.magics.options import EXPLAIN
from nbautograd.magics.progress import ProgressBar
from nbautograd.views.bundle import mimebundle
from nbautograd.views.card import Notice
from nbautograd.widgets.live import kernel
from nbautograd.widgets.marks import marks_bundle

if TYPE_CHECKING:
    from nbautograd.core.explaining.trial import Rerun

MOST_ASKED = 50  # cards of errors whose cells are remembered
CELLS = re.compile(r"\d+(-\d+)?(\s+\d+(-\d+)?)*").fullmatch


@magics_class
class ExplainMagics(Magics):
    """``%autograd_explain``; nothing is watched, a cell that ends without an error costs one comparison."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._shell = shell
        self._at_once = False
        self._runs = False  # the cell again, for an answer at once
        self._last: Any = None
        self._cell: int | None = None  # in which it was raised
        self._other: Any = None  # an error since, which is none of gradients
        self._quiet: int | None = None  # the last cell since that raised nothing
        self._asked: dict[str, Sequence[int]] = {}  # the cells to run again, by the name that a card has for them

    def after_cell(self, result: Any) -> None:
        """Write one line, or the answer, below an error about gradients: IPython's ``post_run_cell``."""
        error = getattr(result, "error_in_exec", None)
        if error is None:
            asks = "autograd_explain" in (getattr(getattr(result, "info", None), "raw_cell", None) or "")
            self._quiet = self._quiet if asks else getattr(result, "execution_count", None)
            return
        if error is self._last:
            return
        try:
            from nbautograd.core.explaining.explain import kind_of_error

            if isinstance(error, UsageError):
                self._other = None
                return
            self._quiet = None
            if kind_of_error(error) is None:
                self._other = error
                return
            self._last, self._other = error, None  # IPython keeps it too, as sys.last_value
            self._cell = getattr(result, "execution_count", None)
            self._show(error, _cells_needed(error))
        except Exception as problem:  # a mistake of ours is a sentence, the user's error stands
            output.show_stumble("%autograd_explain", problem)

    def _show(self, error: BaseException, numbers: Sequence[int]) -> None:
        """Show the explanation where it is wanted at once; else how to have it, with what the error itself shows."""
        if self._at_once:
            bar = ProgressBar(self._shell, messages.text("lab.finding"))
            with bar:
                again = _run_again(error, numbers, self._shell.user_ns) if self._runs else None
                found = _explain(error, run=again)
            if not bar.show_instead(found):
                display(found)
            return
        which = f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else "--run"
        hint = Phrase("explain.run_again", command=f"%autograd_explain {which}")
        bundle: dict[str, Any] = mimebundle(Notice((hint,)))
        if kernel() is not None and numbers:
            bundle |= marks_bundle(_explain(error), self._find(numbers))
        display(bundle, raw=True)

    def _find(self, numbers: Sequence[int]) -> str:
        """Return the line that runs these cells: by a name, as numbers mean others in a notebook opened again."""
        name = secrets.token_hex(4)
        self._asked[name] = numbers
        while len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        return f"%autograd_explain @{name}"

    @no_var_expand
    @line_magic
    def autograd_explain(self, line: str) -> Any:
        """Explain the last gradient error; the text of the help is set when the extension is loaded."""
        if output.show_help(self, "autograd_explain", line):
            return None
        text, options = EXPLAIN.read(line.strip().removesuffix(";"))
        if not text and (options.get("on") or options.get("off")):
            self._at_once = bool(options.get("on"))
            self._runs = self._at_once and bool(options.get("run"))
            which = "on" if self._at_once else "off"
            output.show_message(f"explain.turned_{which}")
            return None
        try:
            return self._answer(text, bool(options.get("run")))
        except EvaluationError as error:
            raise UsageError(
                messages.text("magics.line_failed", magic="%autograd_explain", error=one_line(error))
            ) from None
        except NbautogradError as error:
            raise UsageError(str(error)) from None
        except KeyboardInterrupt as interrupt:  # the copy of the process is gone with it
            output.render_as_users_own(self._shell, interrupt)
            raise
        except UsageError:
            raise
        except Exception as problem:
            words = output.kept(problem, "%autograd_explain")
            raise UsageError(messages.text("magics.stumbled", magic="%autograd_explain", error=words)) from None

    def _answer(self, text: str, runs: bool) -> Any:
        with watched() as bar:
            if bar is not None and (runs or CELLS(text) or text.startswith("@")):
                bar(0, 0, messages.text("lab.finding"))
            return self._answered(text, runs)

    def _answered(self, text: str, runs: bool) -> Any:
        variables = self._shell.user_ns
        if text.startswith("@") and text[1:] not in self._asked:
            raise UsageError(messages.text("explain.asked_before"))
        if text and not text.startswith("@") and not CELLS(text):
            written = expression(text, "%autograd_explain")
            value = evaluate(written, variables)
            graph = getattr(value, "grad_fn", None)
            if isinstance(written, ast.Attribute) and written.attr == "grad" and graph is None:
                written = written.value  # how a gradient came about, or did not, its tensor knows
                text, value = ast.unparse(written), evaluate(written, variables)
            if runs and not callable(value):
                return _explain(_tensor_again(value, text, written, variables))
            return _explain(value, names={text: value, **variables})
        if text:
            ranges = [range(a, b or a + 1) for _, a, b in extract_hist_ranges(text)] if CELLS(text) else ()
            numbers = self._asked.get(text[1:]) or [n for numbers in ranges for n in numbers]
            again = _run_of(numbers, variables)
            return (
                _explain(again) if self._last is None or self._cell not in numbers else _explain(self._last, run=again)
            )
        error = self._last or self._other or getattr(sys, "last_value", None)
        if error is None or isinstance(error, UsageError):
            raise UsageError(messages.text("explain.no_error"))
        if self._last is not None and self._other is not None:
            output.show_message("explain.earlier", error=type(self._other).__name__)
        elif self._quiet is not None and self._cell is not None:
            output.show_message("explain.quiet_since", cell=self._cell, quiet=self._quiet)
        needed = _cells_needed(error)
        if not runs:
            found = _explain(error)
            *others, last = found.findings
            if last.code != "explain_run_again" or not needed:
                return found
            button = replace(last, params={**last.params, "find": self._find(needed)})
            return replace(found, findings=(*others, button))
        found = _explain(error, run=_run_again(error, needed, variables))
        # what an earlier cell reaches for is no reason to say nothing of the one that raised
        alone = found.run == "refused" and len(needed) > 1
        return _explain(error, run=_run_again(error, needed[-1:], variables)) if alone else found


def set_help() -> None:
    """Write the help text in the language that is chosen now."""
    ExplainMagics.autograd_explain.__doc__ = messages.text("magics.line_autograd_explain")


def _explain(target: Any, **options: Any) -> Any:
    from nbautograd.inspection.explanation import explain

    return explain(target, **options)


def _cells_needed(error: BaseException) -> Sequence[int]:
    """Return the cell that raised, and those before it from the first that made what has to be computed again."""
    from nbautograd.core.explaining.cells import cell_of
    from nbautograd.core.explaining.program import Program
    from nbautograd.inspection.explanation import first_cell

    last = cell_of(Program(error))
    return () if last is None else range(first_cell(error), last + 1)


def _run_again(error: BaseException, numbers: Sequence[int], variables: dict[str, Any]) -> Rerun:
    from nbautograd.core.explaining.program import Program
    from nbautograd.core.explaining.trial import Rerun

    if numbers:
        return _run_of(numbers, variables)
    frames = Program(error).frames
    if not frames:
        raise UsageError(messages.text("explain.no_error"))
    file = frames[0][0].f_code.co_filename
    return Rerun(
        partial(_run_texts, variables, [file], torch.is_grad_enabled()),
        {file: "".join(linecache.getlines(file))},
        scope=variables,
    )


def _tensor_again(value: Any, text: str, written: ast.expr, variables: dict[str, Any]) -> Rerun:
    """Return a run of the cells that made a tensor; of a leaf, of those as well that may have brought its gradient."""
    from nbautograd.core.explaining.cells import first_needed, last_assigned, reads, without_magics

    names, cells = reads(text, variables), variables["In"]
    now = len(cells) - (without_magics(cells[-1]).strip() == "pass")  # a cell that only asks made nothing
    leaf = isinstance(value, torch.Tensor) and value.is_leaf and not bool(value.detach().isnan().any())
    last = now - 1 if leaf else last_assigned(names, now, variables)
    if last < 1:
        raise UsageError(messages.text("explain.no_cell_of", name=text))
    again = _run_of(range(first_needed(names, last, variables, whole=True), last + 1), variables)

    def call(changed: Mapping[str, str]) -> Any:
        again.call(changed)
        return evaluate(written, variables)

    return replace(again, call=call, returned=lambda: text, asks=True)


def _run_of(numbers: Sequence[int], variables: dict[str, Any]) -> Rerun:
    from nbautograd.core.explaining.cells import switches_off, without_magics
    from nbautograd.core.explaining.trial import Rerun

    cells = [variables["In"][n] if 0 < n < len(variables["In"]) else "" for n in numbers]
    if "" in cells:
        raise UsageError(messages.text("explain.no_cell", number=numbers[cells.index("")]))
    files = [_file_of(cell) or f"<cell {n}>" for n, cell in zip(numbers, cells, strict=True)]
    texts = dict(zip(files, map(without_magics, cells), strict=True))  # a cell that ran twice is there once
    enabled = torch.is_grad_enabled() or any(switches_off(cell, variables) for cell in cells)
    return Rerun(partial(_run_texts, variables, files, enabled), texts, scope=variables)


def _run_texts(variables: dict[str, Any], files: Sequence[str], enabled: bool, texts: Mapping[str, str]) -> None:
    """Run cells; as in the notebook, the next one runs also after one that raises."""
    torch.set_grad_enabled(enabled)  # of the copy
    for k, file in enumerate(files):
        with contextlib.suppress(*([Exception] if k < len(files) - 1 else [])):  # silent: the cells' own
            exec(compile(texts[file], file, "exec"), variables)


def _file_of(text: str) -> str:
    """Return the file name that a cell was compiled by; empty where it is not known."""
    source = text.strip()
    entries = [(name, entry) for name, entry in linecache.cache.items() if len(entry) == 4]
    return next((name for name, entry in reversed(entries) if "".join(entry[2]).strip() == source), "")
