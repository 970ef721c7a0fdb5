"""Reading a notebook's file, and running its cells from top to bottom, in memory: the file itself is not changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbautograd.command.error import CommandError
from nbautograd.messages import text


def read(notebook: Path, unread: str = "command.no_json") -> Any:
    """The notebook in a file.

    Args:
        notebook: an ``.ipynb`` file.
        unread: the sentence for a file that is no notebook.

    Raises:
        CommandError: when there is no such file, or when it is no notebook.
    """
    import nbformat

    try:
        written = notebook.read_text(encoding="utf-8")
        nbformat.validate(json.loads(written), version=4)  # first, since reading takes anything for an old format
        return nbformat.reads(written, as_version=4)
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=notebook, reason=error.strerror or error)) from None
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        reason = str(error).strip().splitlines()[0]
        raise CommandError(text(unread, path=notebook, reason=reason)) from None


def run(
    content: Any,
    folder: Path,
    seconds: int,
    *,
    keep_widgets: bool = False,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run all cells in place.

    Args:
        content: the notebook; its outputs become those of this run.
        folder: where the kernel runs.
        seconds: the most that one cell may take.
        keep_widgets: whether the state of widgets is kept in the notebook's metadata.
        environment: variables of the kernel beside those of this process.

    Returns:
        One line about the cell that failed, or ``""``.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from traitlets.config import Config

    options: dict[str, Any] = {"timeout": seconds, "kernel_name": "python3", "store_widget_state": keep_widgets}
    quiet = Config({"KernelManager": {"transport_encryption": "auto"}})  # else the kernel warns on stderr
    client = NotebookClient(content, resources={"metadata": {"path": folder}}, config=quiet, **options)
    failure = ""
    try:
        client.execute(env={**os.environ, **(environment or {})})
    except CellExecutionError as error:
        failure = f"{error.ename}: {error.evalue}".rstrip(".")
    except (CellTimeoutError, DeadKernelError) as error:
        failure = str(error).strip().splitlines()[0]
    if failure and keep_widgets:  # what nbclient does only after the last cell
        client.set_widgets_metadata()
    return failure
