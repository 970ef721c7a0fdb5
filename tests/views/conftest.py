"""English sentences for every test here, whatever the machine speaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nbautograd


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    nbautograd.set_language("en")
    yield
    nbautograd.set_language(None)
