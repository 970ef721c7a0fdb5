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
    pages = {"tour", "gradcheck", "comparison", "limits", "faq", "compatibility", "how-it-works"}
    assert {f"docs/{page}.md" for page in pages} <= set(linked)
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


@pytest.mark.parametrize("page", ["comparison", "limits", "faq"])
def test_links_between_the_pages_lead_somewhere(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    files = [link.partition("#") for link in re.findall(r"\]\((?!http)([^)]+)\)", text)]
    assert [file for file, _, _ in files if not (DOCS / file).is_file()] == []
    for file, mark, heading in files:
        if mark:
            titles = re.findall(r"^#+ (.*)$", (DOCS / file).read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {title.lower().replace(" ", "-") for title in titles}


def test_every_number_of_the_comparison_was_measured() -> None:
    """Each stands in the notes of the benchmarks, which say how it came about."""
    measured = (DOCS.parent / "benchmarks" / "README.md").read_text(encoding="utf-8")
    numbers = re.findall(r"[\d,.]*\d(?= (?:ms|kB|us)\b)", (DOCS / "comparison.md").read_text(encoding="utf-8"))
    assert len(numbers) > 40
    assert [number for number in numbers if not re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", measured)] == []
