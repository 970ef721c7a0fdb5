"""Front ends: what the page that a kernel talks to can do with a widget.

JupyterLab and Notebook 7 open the model as soon as Python does, so that it can take the place of the static report; the
notebook then stores the report alone, which can be read wherever it is opened. A stored *view* cannot: it says "model
not found" with a fresh kernel, and nothing at all in a page that nbconvert makes. VS Code and Colab know a widget only
by its view.
"""

from __future__ import annotations

import os
import sys
import uuid

VARIABLES = ("VSCODE_PID", "PYCHARM_HOSTED", "DATABRICKS_RUNTIME_VERSION")


def shows_views_only() -> bool:
    """Return True if a widget appears only where its view is displayed."""
    if "google.colab" in sys.modules or any(os.environ.get(name) for name in VARIABLES):
        return True
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return "__vsc_ipynb_file__" in getattr(shell, "user_ns", {})  # VS Code on a server that it did not start


def fresh_anchor() -> str:
    """Return a class by which one static report is found on a page."""
    return f"nbag-{uuid.uuid4().hex[:16]}"
