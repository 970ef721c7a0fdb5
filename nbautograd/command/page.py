"""A notebook, run from top to bottom, as one HTML file that needs nothing else: no server, no network, no kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbautograd.command.error import CommandError
from nbautograd.command.running import read, run
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
        raise CommandError(text("command.page_taken", path=page))


def as_html(content: Any, title: str) -> str:
    """A notebook as a page. Nothing is loaded from elsewhere: no require.js, no MathJax, no widget manager."""
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
