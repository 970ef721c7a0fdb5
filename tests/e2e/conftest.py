"""One JupyterLab and one Notebook 7 for the whole run; their logs are kept beside the screenshots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_app import App, app


@pytest.fixture(scope="session")
def lab(chromium: object, tmp_path_factory: pytest.TempPathFactory, artifacts: Path) -> Iterator[App]:
    """A running JupyterLab."""
    with app("lab", tmp_path_factory.mktemp("lab"), artifacts / "lab.log") as served:
        yield served


@pytest.fixture(scope="session")
def notebook7(chromium: object, tmp_path_factory: pytest.TempPathFactory, artifacts: Path) -> Iterator[App]:
    """A running Notebook 7."""
    with app("notebook", tmp_path_factory.mktemp("notebook7"), artifacts / "notebook7.log") as served:
        yield served
