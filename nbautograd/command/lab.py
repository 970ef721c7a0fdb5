"""``nbautograd lab``: the demo or a guide, in JupyterLab or as a page."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nbautograd.command.places import guide, own_copy
from nbautograd.errors import CommandError
from nbautograd.messages import set_language, text


def lab(name: str, folder: Path, *, lang: str, jupyter: Sequence[str], headless: bool) -> int:
    """Open JupyterLab on a person's copy of the demo or of a guide, or run the copy and write what it shows as a page.

    Args:
        name: of the notebook, one of ``places.GUIDES``.
        folder: where the copy lives.
        lang: language of the notebook and of its reports.
        jupyter: options of JupyterLab, such as ``--no-browser``.
        headless: write an HTML page instead of opening anything.

    Raises:
        CommandError: with what to do about it.
    """
    set_language(lang)
    os.environ["NBAUTOGRAD_LANG"] = lang  # for the kernel, which is another process
    _require("nbclient" if headless else "jupyterlab")
    original = guide(name, lang)
    copy = own_copy(original, folder, f"nbautograd-{original.name}")
    if headless:
        from nbautograd.command.page import write_page

        print(text("command.page", path=write_page(copy)))
        return 0
    return _serve(copy, jupyter)


def serve(notebook: Path, *, lang: str, jupyter: Sequence[str]) -> int:
    """Open JupyterLab on a notebook.

    Args:
        notebook: a file; its folder is what JupyterLab shows.
        lang, jupyter: as for ``lab``.

    Raises:
        CommandError: with what to do about it.
    """
    set_language(lang)
    os.environ["NBAUTOGRAD_LANG"] = lang
    _require("jupyterlab")
    return _serve(notebook, jupyter)


def _require(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise CommandError(text("command.missing", module=module, python=sys.executable))


def _serve(notebook: Path, jupyter: Sequence[str]) -> int:
    """Hand over to JupyterLab, which stays in the foreground until it is stopped."""
    print(text("command.opening"), flush=True)
    words = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={notebook.parent}"]
    words.append(f"--LabApp.default_url=/lab/tree/{notebook.name}")  # also in the address that it prints
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        words.append("--allow-root")  # JupyterLab refuses root otherwise, and a fresh container has no one else
    words += jupyter
    if os.name == "posix":
        os.execv(sys.executable, words)
    return subprocess.call(words)
