"""The shell of the tests of the magics, for the examples of the seeds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "shell_of_the_magics", Path(__file__).parents[1] / "magics" / "conftest.py"
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
__import__("sys").modules[_spec.name] = _module
_spec.loader.exec_module(_module)

ipython, bare, notebook = _module.ipython, _module.bare, _module.notebook
