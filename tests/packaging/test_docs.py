"""The pages in the repository lead somewhere, as files; tests/site follows those of the site."""

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
