"""The pages of the documentation lead somewhere, and those about the code name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page
    for pages in (*((ROOT / folder).glob("*.md") for folder in ("", "notebooks", "benchmarks")), DOCS.rglob("*.md"))
    for page in pages
    if "generated" not in page.parts
)


def test_every_page_is_in_a_table_of_contents() -> None:
    """The build would warn; this says so without one."""
    listed = {
        (file.parent / line.strip()).resolve()
        for file in DOCS.rglob("index.md")
        for tree in re.findall(r"```\{toctree\}(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL)
        for line in tree.splitlines()
        if line.strip() and not line.startswith(":")
    }
    pages = {file.with_suffix("").resolve() for file in PAGES if file.is_relative_to(DOCS)}
    assert pages - listed == {DOCS / "index"}


def test_the_page_on_recording_names_what_is_there():
    """docs/explanation/recording.md can be checked against core/recording and core/contract alone."""
    page = (DOCS / "explanation" / "recording.md").read_text()
    assert len(page.partition("### What an instrumented")[0]) < 5_000  # one printed page, at 10 points
    rooms = [ROOT / "nbautograd" / "core" / room for room in ("recording", "contract")]
    there = {path.name: path.read_text() for room in rooms for path in room.glob("*.py")}
    files = re.findall(r"`(\w+\.py)`", page)
    assert len(files) > 8
    assert [name for name in files if name not in there] == []
    elsewhere = re.findall(r"`((?:core|views)/[\w/]*(?:\.py)?)`", page)
    assert len(elsewhere) > 6
    assert [path for path in elsewhere if not (ROOT / "nbautograd" / path).exists()] == []
    hooks = re.findall(r"`(whose|link|arguments|argument_snapshots|observe|leave|strided)`", page)
    recorder = there["recorder.py"]
    overridden = {name for name in re.findall(r"def (\w+)\(self", recorder) if recorder.count(f"def {name}(self") > 1}
    assert overridden - {"__init__"} == set(hooks)
    classes = set(re.findall(r"`(_?[A-Z][a-z]+[A-Z]\w+)[.`]", page))
    assert len(classes) > 6
    assert [name for name in classes if f"class {name}" not in "".join(there.values())] == []


def links(page: Path) -> list[str]:
    """Return where a page leads on this machine: links and pictures."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    return [link for link in found if not link.startswith("http") and "generated/" not in link]  # those: tests/site


def dead(page: Path) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of it."""
    wrong = []
    for link in links(page):
        file, mark, heading = link.partition("#")
        there = page.parent / file if file else page
        titles = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE) if mark else []
        if not there.exists() or (mark and heading not in {title.lower().replace(" ", "-") for title in titles}):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    assert dead(page) == []


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '# One title\n[a](#one-title) [b](#another) [c](no.md) ![d](no.png) <img src="no.gif"> [e](page.md)\n'
    )
    assert dead(page) == ["#another", "no.md", "no.png", "no.gif"]
