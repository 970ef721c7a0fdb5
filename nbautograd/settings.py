"""Settings: what magics take where their line says nothing, of the project's pyproject.toml, else of JupyterLab."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # JupyterLab writes them into its settings


def setting(name: str) -> str:
    """Return what is set for all lines, ``order``, ``budget``, ``language`` or ``reports``; empty where nothing is.

    A project's own counts before that of the person: ``[tool.nbautograd]`` of the nearest pyproject.toml at or above
    the kernel's folder.
    """
    found = next((value for read in (_of_project, _of_editor) if (value := read().get(name)) not in (None, "")), "")
    return str(found)


def _of_project() -> Mapping[str, Any]:
    try:
        here = Path.cwd()
        files = (folder / "pyproject.toml" for folder in (here, *here.parents))
        nearest = next((file for file in files if file.is_file()), None)
    except OSError:  # the folder is gone, or one above may not be looked into
        return {}
    return _read(nearest, lambda text: tomllib.loads(text).get("tool", {}).get("nbautograd", {}))


def _of_editor() -> Mapping[str, Any]:
    try:
        from jupyter_core.paths import jupyter_config_dir
    except ImportError:  # plain IPython
        return {}
    folder = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(jupyter_config_dir(), "lab", "user-settings")
    file = Path(folder, "nbautograd", "plugin.jupyterlab-settings")
    return _read(file, lambda text: json.loads(COMMENTS.sub(lambda found: found[1] or "", text)))


def _read(file: Path | None, parse: Callable[[str], Any]) -> Mapping[str, Any]:
    """Return a table; an empty one for a file that is not there, or not one of its kind, which its own tools tell."""
    try:
        table = {} if file is None else parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, AttributeError):
        return {}
    return table if isinstance(table, Mapping) else {}
