"""Jupyter of this environment: the browser halves of packages, and the Python of its kernel."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which

# package -> its extension of JupyterLab, and the major version of that which belongs to the Python half:
# None where both halves carry the same number
_EXTENSIONS = {"anywidget": ("anywidget", None), "ipywidgets": ("@jupyter-widgets/jupyterlab-manager", {"8": "5"})}


@dataclass(frozen=True)
class BrowserSide:
    """The JavaScript half of a package, as JupyterLab finds it.

    Attributes:
        version: in its package.json.
        folder: where it lies.
        majors: from the Python half's major version to this one's; None when both carry the same number.
    """

    version: str
    folder: Path
    majors: dict[str, str] | None = None

    def fits(self, python_version: str) -> bool:
        """Return True if it belongs to this version of the Python half."""
        if self.majors is None:
            return self.version.split(".")[:2] == python_version.split(".")[:2]
        return self.majors.get(python_version.split(".")[0]) == self.version.split(".")[0]


def browser_side(package: str, folders: list[str] | None = None) -> BrowserSide | None:
    """The first one that JupyterLab would load, or None.

    Args:
        package: ``"anywidget"`` or ``"ipywidgets"``.
        folders: where to look, in this order; None asks Jupyter.
    """
    if folders is None:
        try:
            from jupyter_core.paths import jupyter_path
        except ImportError:
            return None
        folders = list(jupyter_path("labextensions"))
    name, majors = _EXTENSIONS[package]
    for folder in folders:
        try:
            about = json.loads((Path(folder, name) / "package.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return BrowserSide(str(about.get("version", "")), Path(folder, name), majors)
    return None


def kernel_python() -> str | None:
    """The Python that the kernel ``python3`` starts, or None when there is no such kernel."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return None
    try:
        argv = KernelSpecManager().get_kernel_spec("python3").argv
    except NoSuchKernel:
        return None
    # Jupyter itself replaces a bare "python" by the Python that it runs in
    return sys.executable if re.fullmatch(r"python(3(\.\d+)?)?", argv[0]) else which(argv[0]) or argv[0]


def same_python(other: str) -> bool:
    """Return True if this Python runs here: same folder, same binary (``python`` and ``python3`` are one)."""
    mine = Path(sys.executable)
    theirs = Path(os.path.abspath(other))
    return theirs.parent == mine.parent and theirs.resolve() == mine.resolve()
