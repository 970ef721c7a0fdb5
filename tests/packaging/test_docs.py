"""The documentation is made from the code: the API page has every public name, the tour's pictures are there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import nbautograd

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The API page, made anew."""
    make = runpy.run_path(str(DOCS / "make_api.py"))["make"]
    return str(make(tmp_path_factory.mktemp("api")).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_public_name_has_its_place(page: str) -> None:
    assert [name for name in nbautograd.__all__ if f'id="{name}"' not in page] == []


@pytest.mark.slow
def test_the_page_needs_no_network(page: str) -> None:
    assert re.findall(r"""(?:src|<link[^>]+href)=["'](?:https?:)?//[^"']+""", page) == []


def test_the_tour_shows_the_pictures_that_there_are() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (DOCS / "tour.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(f"tour/{file.name}" for file in (DOCS / "tour").iterdir())
    assert sum(file.stat().st_size for file in (DOCS / "tour").iterdir()) < 400_000


def test_the_readme_leads_to_the_documentation() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((docs/[^)#]+)\)", readme)
    assert {"docs/tour.md", "docs/gradcheck.md"} <= set(linked)
    assert [link for link in linked if not (DOCS.parent / link).exists()] == []


def test_the_page_on_recording_names_what_is_there():
    """docs/how-it-works.md can be checked against core/recording alone."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "how-it-works.md").read_text()
    recording = root / "nbautograd" / "core" / "recording"
    files = re.findall(r"`(\w+\.py)`", page)
    assert len(files) > 8
    assert [name for name in files if not (recording / name).exists()] == []
    sources = "".join(path.read_text() for path in recording.glob("*.py"))
    classes = set(re.findall(r"`(_?[A-Z][a-z]+[A-Z]\w+)[.`]", page))
    assert len(classes) > 6
    assert [name for name in classes if f"class {name}" not in sources] == []
