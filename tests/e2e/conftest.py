"""One JupyterLab and one Notebook 7 for each process of a run; their logs are kept beside the screenshots."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_app import App, app

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")


@pytest.fixture(scope="session")
def lab(chromium: object, tmp_path_factory: pytest.TempPathFactory, artifacts: Path) -> Iterator[App]:
    """A running JupyterLab."""
    with app("lab", tmp_path_factory.mktemp("lab"), artifacts / f"lab{WORKER}.log") as served:
        yield served


@pytest.fixture(scope="session")
def notebook7(chromium: object, tmp_path_factory: pytest.TempPathFactory, artifacts: Path) -> Iterator[App]:
    """A running Notebook 7."""
    with app("notebook", tmp_path_factory.mktemp("notebook7"), artifacts / f"notebook7{WORKER}.log") as served:
        yield served
