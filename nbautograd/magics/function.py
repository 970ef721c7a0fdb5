"""The registered ``%%autograd_function``: help, ``%lsmagic``, wrong options, and shells without the transformer."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand

from nbautograd import messages
from nbautograd.magics.options import help_text, parse
from nbautograd.magics.output import CellFailedError
from nbautograd.magics.session import Cell, Session
from nbautograd.magics.transformer import Request


@magics_class
class FunctionMagics(Magics):
    """``%%autograd_function`` as IPython knows it.

    A well written cell never gets here, since the transformer lets it run natively. What does get here: a line with
    wrong options, which is answered with a sentence and runs nothing, as with any other magic; and calls of
    ``run_cell_magic``, as in an exported script.
    """

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self._shell = shell
        self._session = session

    @no_var_expand
    @cell_magic
    def autograd_function(self, line: str, cell: str) -> None:
        """Record the Functions that the cell defines; the text of the help is set when the extension is loaded."""
        options = parse(line)
        if not cell.strip():
            raise UsageError(messages.text("magics.empty_body"))
        watched = Cell(None, Request(options, nested=False))
        self._session.begin(watched)
        result = None
        try:
            # the comment keeps the line numbers of tracebacks; IPython would strip an empty line
            result = self._shell.run_cell(f"# %%autograd_function\n{cell}", store_history=False)
        finally:
            self._session.end(watched, result)
        if result is None or not result.success:
            raise CellFailedError


def set_help() -> None:
    """Write the help text in the language that is chosen now."""
    FunctionMagics.autograd_function.__doc__ = help_text()
