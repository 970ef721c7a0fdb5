"""``%autograd_explain``, and the line beneath the traceback of one of torch's gradient errors."""

from __future__ import annotations

import contextlib
import linecache
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.history import extract_hist_ranges
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.display import display

from nbautograd import messages
from nbautograd.errors import NbautogradError
from nbautograd.magics import output
from nbautograd.magics.call_expression import EvaluationError, evaluate, expression
from nbautograd.magics.inputs import one_line
from nbautograd.magics.options import EXPLAIN

WORDS = ("on", "off")
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
        self._other: Any = None  # an error since, which is none of torch's

    def after_cell(self, result: Any) -> None:
        """Write one line, or the answer, beneath an error of torch's: IPython's ``post_run_cell``."""
        error = getattr(result, "error_in_exec", None)
        if error is None or error is self._last:
            return
        try:
            from nbautograd.core.explaining.torch_errors import kind_of

            if kind_of(error) is None:
                self._other = None if isinstance(error, UsageError) else error
                return
            self._last, self._other = error, None  # IPython keeps it too, as sys.last_value
            self._cell = getattr(result, "execution_count", None)
            if self._at_once:
                display(_explain(error, run=_rerun_cells(error, [], self._shell.user_ns) if self._runs else None))
            else:
                output.show_message("explain.hint")
        except Exception as problem:  # a mistake of ours is a sentence, the user's error stands
            words = f"{type(problem).__name__}: {problem}"
            output.show_message("magics.stumbled", magic="%autograd_explain", error=words)

    @no_var_expand
    @line_magic
    def autograd_explain(self, line: str) -> Any:
        """Explain the last gradient error; the text of the help is set when the extension is loaded."""
        text, options = EXPLAIN.read(line.strip().removesuffix(";"))
        if text in WORDS:
            self._at_once, self._runs = text == "on", text == "on" and bool(options.get("run"))
            output.show_message("explain.turned_on_run" if self._runs else f"explain.turned_{text}")
            return None
        try:
            cells = [n for _, a, b in extract_hist_ranges(text) for n in range(a, b or a + 1)] if CELLS(text) else []
            if text and not cells:
                value = evaluate(expression(text, "%autograd_explain"), self._shell.user_ns)
                return _explain(value, names={text: value, **self._shell.user_ns})
            error = self._last or self._other or getattr(sys, "last_value", None)
            if not cells and (error is None or isinstance(error, UsageError)):
                raise UsageError(messages.text("explain.no_error"))
            if not cells and self._last is not None and self._other is not None:
                which = "explain.earlier" if self._cell is None else "explain.earlier_in_cell"
                output.show_message(which, error=type(self._other).__name__, cell=self._cell)
            again = _rerun_cells(error, cells, self._shell.user_ns) if cells or options.get("run") else None
            if cells and (self._last is None or self._cell not in cells):
                return _explain(again)
            return _explain(error, run=again)
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
            words = f"{type(problem).__name__}: {one_line(problem)}"
            raise UsageError(messages.text("magics.stumbled", magic="%autograd_explain", error=words)) from None


def set_help() -> None:
    """Write the help text in the language that is chosen now."""
    ExplainMagics.autograd_explain.__doc__ = messages.text("magics.line_autograd_explain")


def _explain(target: Any, **options: Any) -> Any:
    from nbautograd.inspection.explanation import explain

    return explain(target, **options)


def _rerun_cells(error: BaseException | None, numbers: Sequence[int], namespace: dict[str, Any]) -> Any:
    """Return a run of cells, or of the one that ended in an error, with the variables as they are now.

    As in the notebook, the next cell runs also after one that raises.
    """
    from nbautograd.core.explaining.program import Program
    from nbautograd.core.explaining.trial import Run

    if numbers:
        cells = [namespace["In"][n] if 0 < n < len(namespace["In"]) else "" for n in numbers]
        if "" in cells:
            raise UsageError(messages.text("explain.no_cell", number=numbers[cells.index("")]))
        texts = {_file_of(cell) or f"<cell {n}>": cell for n, cell in zip(numbers, cells, strict=True)}
    else:
        frames = Program(error).frames
        if not frames:
            raise UsageError(messages.text("explain.no_error"))
        file = frames[0][0].f_code.co_filename
        texts = {file: "".join(linecache.getlines(file))}
    last = list(texts)[-1]

    def call(changed: Mapping[str, str]) -> None:
        for file, text in changed.items():
            with contextlib.suppress(*([] if file == last else [Exception])):
                exec(compile(text, file, "exec"), namespace)

    return Run(call, texts)


def _file_of(text: str) -> str:
    """Return the file name that a cell was compiled by; empty where it is not known."""
    source = text.strip()
    entries = [(name, entry) for name, entry in linecache.cache.items() if len(entry) == 4]
    return next((name for name, entry in reversed(entries) if "".join(entry[2]).strip() == source), "")
