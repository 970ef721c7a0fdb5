"""A notebook, run from top to bottom, as one HTML file that needs nothing else: no server, no network, no kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbautograd.errors import CommandError
from nbautograd.messages import text

_MARK = '<meta name="generator" content="nbautograd">'
_LIVE = "application/vnd.jupyter.widget-view+json"


def write_page(notebook: Path, *, seconds: int = 600) -> Path:
    """Run a notebook and write what it shows beside it, as ``NAME.html``. The notebook itself is not changed.

    Args:
        notebook: an ``.ipynb`` file.
        seconds: the most that one cell may take.

    Returns:
        The page's path.

    Raises:
        CommandError: when a cell raises (the page is written and shows where), when the file is no notebook, or when
            a page of that name is there that is not ours.
    """
    page = notebook.with_suffix(".html")
    require_ours(page)
    content = read(notebook)
    failure = run(content, notebook.parent, seconds)
    try:
        page.write_text(as_html(content, notebook.stem), encoding="utf-8")
    except OSError as error:
        raise CommandError(text("command.folder", folder=page.parent, reason=error.strerror or error)) from None
    if failure:
        raise CommandError(text("command.cell_failed", path=page, reason=failure))
    return page


def require_ours(page: Path) -> None:
    """Raise CommandError when a page is there that nbautograd did not write."""
    if page.exists() and _MARK not in page.read_text(encoding="utf-8", errors="replace"):
        raise CommandError(text("command.freeze.taken", path=page))


def as_html(content: Any, title: str) -> str:
    """Return a notebook as a page. Nothing is loaded from elsewhere: no require.js, no MathJax, no widget manager."""
    from nbconvert import HTMLExporter

    content.metadata.pop("widgets", None)
    for cell in content.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(_LIVE, None)
    exporter = HTMLExporter(
        embed_images=True, mathjax_url="", require_js_url="", jquery_url="", widget_renderer_url="", mermaid_js_url=""
    )
    html, _ = exporter.from_notebook_node(content, resources={"metadata": {"name": title}})
    return str(html).replace("<head>", f"<head>{_MARK}", 1)


def read(notebook: Path) -> Any:
    """Return the notebook in a file.

    Args:
        notebook: an ``.ipynb`` file.

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
    except (ValueError, TypeError, AttributeError, AssertionError, RecursionError, nbformat.ValidationError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CommandError(text("command.no_json", path=notebook, reason=reason)) from None


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
