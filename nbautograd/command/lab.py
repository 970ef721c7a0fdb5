"""``nbautograd lab``: the demo or a guide, in JupyterLab or as a page."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

from nbautograd.command.places import guide, own_copy
from nbautograd.errors import CommandError
from nbautograd.messages import set_language, text


def lab(name: str, folder: Path, *, lang: str, port: int | None, browser: bool, headless: bool) -> int:
    """Open JupyterLab on a person's copy of the demo or of a guide, or run the copy and write what it shows as a page.

    Args:
        name: of the notebook, one of ``places.GUIDES``.
        folder: where the copy lives.
        lang: language of the notebook and of its reports.
        port: of the server; None takes the first free one from 8888.
        browser: False only prints the address.
        headless: write an HTML page instead of opening anything.

    Raises:
        CommandError: with what to do about it.
    """
    set_language(lang)
    os.environ["NBAUTOGRAD_LANG"] = lang  # for the kernel, which is another process
    _require("nbclient" if headless else "jupyterlab")
    copy, new = own_copy(guide(name, lang), folder)
    print(text("command.copied" if new else "command.kept", path=copy), flush=True)
    if headless:
        from nbautograd.command.page import write_page

        print(text("command.page", path=write_page(copy)))
        return 0
    return _opened(copy, port, browser)


def serve(notebook: Path, *, lang: str, port: int | None, browser: bool) -> int:
    """Open JupyterLab on a notebook.

    Args:
        notebook: a file; its folder is what JupyterLab shows.
        lang, port, browser: as for ``lab``.

    Raises:
        CommandError: with what to do about it.
    """
    set_language(lang)
    os.environ["NBAUTOGRAD_LANG"] = lang
    _require("jupyterlab")
    return _opened(notebook, port, browser)


def _opened(notebook: Path, port: int | None, browser: bool) -> int:
    if port is not None:
        _require_free(port)
    print(text("command.opening"), flush=True)
    return _serve(notebook, port, browser)


def _require(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise CommandError(text("command.missing", module=module, python=sys.executable))


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port just given back is free
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CommandError(text("command.port", port=port, reason=reason)) from None


def _serve(notebook: Path, port: int | None, browser: bool) -> int:
    """Hand over to JupyterLab, which stays in the foreground until it is stopped."""
    words = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={notebook.parent}"]
    words.append(f"--LabApp.default_url=/lab/tree/{notebook.name}")  # also in the address that it prints
    if port is not None:
        words += [f"--port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        words.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        words.append("--allow-root")  # JupyterLab refuses root otherwise, and a fresh container has no one else
    if os.name == "posix":
        os.execv(sys.executable, words)
    return subprocess.call(words)
