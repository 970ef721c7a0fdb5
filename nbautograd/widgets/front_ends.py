"""Front ends: what the page that a kernel talks to can do with a widget.

JupyterLab and Notebook 7 open the model as soon as Python does, so that it can take the place of the static report; the
notebook then stores the report alone, which can be read wherever it is opened. A stored *view* cannot: it says "model
not found" with a fresh kernel, and nothing at all in a page that nbconvert makes. VS Code and Colab know a widget only
by its view.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import uuid
from typing import Any

VARIABLES = ("VSCODE_PID", "PYCHARM_HOSTED", "DATABRICKS_RUNTIME_VERSION", "NBAUTOGRAD_WIDGET_VIEW")


def shows_views_only() -> bool:
    """Return True if a widget appears only where its view is displayed; or ``NBAUTOGRAD_WIDGET_VIEW=1`` is set."""
    if "google.colab" in sys.modules or any(os.environ.get(name) for name in VARIABLES):
        return True
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return "__vsc_ipynb_file__" in getattr(shell, "user_ns", {})  # VS Code on a server that it did not start


def fresh_anchor() -> str:
    """A class by which one static report is found on a page."""
    return f"nbag-{uuid.uuid4().hex[:16]}"


def heard_while_busy(comm: Any) -> bool:
    """Let the page's messages arrive on the subshell that the page sends them to, a thread beside the busy one.

    ipykernel 7.0 to 7.3 do as the page says. 7.4 asks the comm for the thread, which names the one that sent the last
    message, the busy one; that question is answered here for this comm alone. Where it is put in another way, or by a
    kernel without subshells (before ipykernel 7), nothing is changed and messages arrive when the kernel has time; the
    page's button then has the server interrupt the kernel.

    Args:
        comm: of the bar on the page.

    Returns:
        True when the answer was put in.
    """
    route = getattr(comm, "_reply_subshell_for", None)
    try:
        known = list(inspect.signature(route).parameters) == ["data", "default"] if route is not None else False
        if known:
            comm._reply_subshell_for = lambda data, default: default
    except (TypeError, ValueError, AttributeError):  # no function, or an attribute that cannot be set
        return False
    return known


def kernel_id() -> str:
    """The number under which a Jupyter server knows this kernel, as its connection file has it; empty when unknown."""
    try:
        from ipykernel.connect import get_connection_file

        found = re.search(r"kernel-([0-9a-fA-F-]{36})\.json$", get_connection_file())
    except Exception:  # no kernel, or none that a server started
        return ""
    return found[1] if found else ""


def still_busy() -> None:
    """Say again that the kernel is at work: a message answered on a subshell makes JupyterLab show it as idle."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    kernel: Any = getattr(shell, "kernel", None)
    with contextlib.suppress(Exception):  # no kernel, or not ipykernel's: what is shown is then one moment behind
        parent, topic = kernel.get_parent("shell"), f"kernel.{kernel.ident}.status".encode()
        kernel.session.send(kernel.iopub_socket, "status", {"execution_state": "busy"}, parent=parent, ident=topic)
