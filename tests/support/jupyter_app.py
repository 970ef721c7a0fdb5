"""Starts JupyterLab or Notebook 7 with settings of its own, and drives a notebook in a page."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKEN = "end-to-end"
EXTENSION = Path(__file__).resolve().parents[2] / "nbautograd" / "labextension"
STATUS = f"api/status?token={TOKEN}"
CLASSES = {"lab": "LabApp", "notebook": "JupyterNotebookApp"}
ADDRESSES = {"lab": "doc/tree", "notebook": "notebooks"}
# no news, no saving behind the test's back, and every cell on the page at once
QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": QUIET,
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}
# The kernel is connected and has nothing to do. Not a promise: a promise would be truthy at once.
READY = """() => {
  const shown = window.jupyterapp?.shell?.currentWidget;
  const session = shown?.sessionContext;
  const kernel = session?.isReady && session.session?.kernel;
  return Boolean(kernel) && kernel.connectionStatus === "connected" && kernel.status === "idle";
}"""
EXECUTE = "async ([command, args]) => { await window.jupyterapp.commands.execute(command, args); }"


@dataclass(frozen=True)
class App:
    """A running server.

    Attributes:
        kind: ``"lab"`` or ``"notebook"``.
        root: the folder that it serves.
        url: without the token.
        log: what the server writes.
    """

    kind: str
    root: Path
    url: str
    log: Path

    def address(self, name: str) -> str:
        """Where a notebook of the root folder is opened."""
        return f"{self.url}/{ADDRESSES[self.kind]}/{name}?token={TOKEN}"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(folder: Path) -> dict[str, str]:
    """The environment of a server that neither reads nor writes anything of the person's who runs the tests."""
    overrides = folder / "config" / "labconfig" / "default_setting_overrides.json"
    overrides.parent.mkdir(parents=True)
    overrides.write_text(json.dumps(SETTINGS))
    extensions = folder / "data" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "nbautograd").symlink_to(EXTENSION)  # this checkout's, whatever is installed
    own = {f"JUPYTER_{name.upper()}_DIR": str(folder / name) for name in ("config", "data", "runtime")}
    rest = {
        "IPYTHONDIR": str(folder / "ipython"),
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "NBAUTOGRAD_LANG": "en",
        "JUPYTER_TOKEN": TOKEN,
        "JUPYTER_PREFER_ENV_PATH": "0",  # else the link of the environment goes before the one above
    }
    return {**os.environ, **own, **rest}


@contextlib.contextmanager
def running(command: list[str], folder: Path, log: Path, url: str, ready: str = STATUS) -> Iterator[None]:
    """A server process, from when it answers under ``ready`` until the end of the block."""
    with log.open("w") as file:
        process = subprocess.Popen(
            command, env=settings(folder), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            cwd=folder, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for_server(process, log, f"{url}/{ready}")
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


def wait_for_server(process: subprocess.Popen[bytes], log: Path, url: str, seconds: float = 90) -> None:
    """Until the server answers; what it wrote is in the error when it does not."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server does not answer at {url}:\n{log.read_text()[-4000:]}")
        pause(process)


def pause(process: subprocess.Popen[bytes]) -> None:
    """A tenth of a second, or less when the process ends."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.1)


@contextlib.contextmanager
def app(kind: str, folder: Path, log: Path) -> Iterator[App]:
    """JupyterLab or Notebook 7, serving ``folder/notebooks``."""
    root, port = folder / "notebooks", free_port()
    root.mkdir(parents=True)
    command = [
        sys.executable, "-m", "jupyter", kind, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}",
        f"--{CLASSES[kind]}.expose_app_in_browser=True",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with running(command, folder, log, url):
        yield App(kind, root, url, log)


def put(served: App, original: Path) -> str:
    """Copy a notebook into the served folder; returns its name there."""
    return shutil.copy(original, served.root / original.name).name


def write(served: App, name: str, *cells: str) -> str:
    """Write a notebook of code cells into the served folder; returns its name."""
    import nbformat

    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": python})
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, served.root / name)
    return name


def visit(page: Any, served: App, name: str) -> None:
    """Open a notebook and wait for its kernel."""
    page.goto(served.address(name))
    page.wait_for_function(READY, timeout=90_000)


def execute(page: Any, command: str, **args: Any) -> None:
    """One command of the application, as its menus would run it."""
    page.evaluate(EXECUTE, [command, args])


def run_all(page: Any) -> None:
    """Run every cell and wait until the kernel has nothing to do and every code cell has its number."""
    execute(page, "notebook:run-all-cells")
    page.wait_for_function(READY, timeout=120_000)


def run_cell(page: Any, number: int, *, wait: bool = True) -> None:
    """Run one cell, counted from 1, and wait until it is done, well or not."""
    page.evaluate("k => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = k; }", number - 1)
    if wait:
        execute(page, "notebook:run-cell")
    else:
        page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")


def cell(page: Any, number: int) -> Any:
    """The code cell with this number, counted from 1."""
    return page.locator(".jp-CodeCell").nth(number - 1)


def cell_with(page: Any, source: str) -> Any:
    """The first code cell with a line that contains this; a change that is offered below a line is none."""
    return (
        page.locator(".jp-CodeCell").filter(has=page.locator(".cm-line", has_text=re.compile(re.escape(source)))).first
    )


def choose_theme(page: Any, name: str) -> None:
    """Change the theme, and wait until the splash screen that this shows has gone."""
    execute(page, "apputils:change-theme", theme=name)
    dark = "false" if "Dark" in name else "true"
    page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{dark}'")
    page.wait_for_function("() => !document.querySelector('#jupyterlab-splash')")


def ours(errors: list[str]) -> list[str]:
    """Those of a page's errors that come from our module, which anywidget loads from a blob."""
    return [error for error in errors if "blob:" in error or "nbautograd" in error]
