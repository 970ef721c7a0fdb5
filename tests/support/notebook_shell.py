"""A real IPython shell with the magics loaded, and what a cell put out as plain data."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from fn import written
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from nbautograd import magics
from nbautograd.core.recording import api as log
from nbautograd.magics import progress

DOUBLE = written("Double", "x: return 2 * x", "grad_output: return 2 * grad_output")

IMPORTS = "import torch, inspect\nfrom torch.autograd import Function, gradcheck"


@dataclass
class Ran:
    """One cell that ran.

    Attributes:
        result: IPython's ExecutionResult.
        stdout, stderr: what was written.
        bundles: MIME bundles that were displayed, updates among them.
        updates: the bundles that took another's place.
    """

    result: Any
    stdout: str
    stderr: str
    bundles: list[dict[str, Any]]
    updates: list[dict[str, Any]]

    @property
    def text(self) -> str:
        """All plain texts that were displayed."""
        return "\n".join(bundle.get("text/plain", "") for bundle in self.bundles)

    @property
    def html(self) -> str:
        """All HTML that was displayed."""
        return "\n".join(bundle.get("text/html", "") for bundle in self.bundles)

    @property
    def error(self) -> BaseException | None:
        """What the cell raised, before or while it ran."""
        return self.result.error_before_exec or self.result.error_in_exec  # type: ignore[no-any-return]


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class Notebook:
    """A shell that runs cells."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def __call__(self, cell: str, *, store_history: bool = True) -> Ran:
        with capture_output() as captured:
            result = self.shell.run_cell(cell, store_history=store_history)
        published = [(o if isinstance(o, dict) else vars(o)) for o in captured._outputs]
        bundles = [p["data"] for p in published]
        updates = [p["data"] for p in published if p.get("update")]
        return Ran(result, _uncoloured(captured.stdout), _uncoloured(captured.stderr), bundles, updates)

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]


@pytest.fixture(scope="module")
def ipython() -> Iterator[InteractiveShell]:
    """One plain shell, as a kernel has one; gone again when other tests run."""
    main = sys.modules["__main__"]
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    # as in a kernel, the last expression's value is published beside what is displayed
    shell.displayhook.write_output_prompt = lambda: None
    shell.displayhook.write_format_data = lambda bundle, metadata=None: shell.display_pub.publish(bundle, metadata)
    shell.run_cell(IMPORTS)
    yield shell
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


@contextlib.contextmanager
def without_the_extension(ipython: InteractiveShell) -> Iterator[Notebook]:
    """Lend the shell with torch imported; what was loaded and named in it is gone afterwards."""
    before = dict(ipython.user_ns)
    log.clear()
    torch.manual_seed(0)
    yield Notebook(ipython)
    ipython.extension_manager.unload_extension("nbautograd")
    magics.unload(ipython)
    # what IPython's own reset does besides takes half a second
    ipython.user_ns.clear()
    ipython.user_ns.update(before)


@pytest.fixture
def bare(ipython: InteractiveShell) -> Iterator[Notebook]:
    """A shell without the extension, with torch imported."""
    with without_the_extension(ipython) as lent:
        yield lent


@pytest.fixture
def notebook(bare: Notebook, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """A shell with the extension loaded; no progress bars, however busy the machine is."""
    monkeypatch.setattr(progress, "PATIENCE", math.inf)
    bare.shell.extension_manager.load_extension("nbautograd")
    return bare
