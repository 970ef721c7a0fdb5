"""The built site: its links, its pages in a browser, and that they need no network. `.ci/docs` builds it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import FLAGS, find_browser

import nbautograd
from nbautograd.command.finding import table
from nbautograd.core.explaining.torch_errors import KINDS

SITE = Path(__file__).parents[2] / "site"
MIB = 2**20
IN_A_BROWSER = (
    "index",
    "start/read-a-report",
    "start/install",
    "how-to/ci",
    "tutorials/kernels",
    "explanation/verdicts",
    "generated/findings/missing_coupling",
    "generated/torch-errors/in_place",
    "generated/reference/api",
    "generated/notebooks/en/audit",
)
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not SITE.is_dir(), reason=".ci/docs builds the site")]


class Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what an element names and asks for."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "link"):
            self.loaded += [given[name] for name in ("src", "href") if name in given]


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    return {file: Page(file) for file in SITE.rglob("*.html") if "_static" not in file.parts}


def dead(file: Path, links: list[str], pages: dict[Path, Page]) -> list[str]:
    wrong = []
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        there = (file.parent / path).resolve() if path else file
        if not there.exists() or (anchor and there in pages and anchor not in pages[there].anchors):
            wrong.append(link)
    return wrong


def test_links_and_anchors_lead_somewhere(pages: dict[Path, Page]) -> None:
    assert {str(file): wrong for file, page in pages.items() if (wrong := dead(file, page.links, pages))} == {}


def test_a_dead_link_would_be_seen(pages: dict[Path, Page]) -> None:
    assert dead(SITE / "index.html", ["nowhere.html", "#nothing", "index.html"], pages) == ["nowhere.html", "#nothing"]


def test_nothing_comes_from_a_network(pages: dict[Path, Page]) -> None:
    assert {str(f): far for f, page in pages.items() if (far := [x for x in page.loaded if "//" in x])} == {}


def test_every_code_error_and_public_name_has_its_page() -> None:
    assert {code for code in table() if not (SITE / f"generated/findings/{code}.html").exists()} == set()
    errors = {file.stem for file in (SITE / "generated/torch-errors").glob("*.html")}
    # without a program that raises them on this machine: the first asks for two processes, the others for a symptom
    assert {kind for _, kind in KINDS} - errors <= {"unused_parameters", "not_finite", "empty_optimizer"}
    api = Page(SITE / "generated/reference/api.html")
    names = [f"nbautograd.{name}" for name in nbautograd.__all__]
    assert [name for name in names if name not in api.anchors and name.rpartition(".")[2] not in api.anchors] == []


def test_pages_are_small(pages: dict[Path, Page]) -> None:
    sizes = {file: file.stat().st_size for file in pages}
    most = {file: 3 * MIB if "notebooks" in file.parts else MIB for file in sizes}
    assert {str(file): size for file, size in sizes.items() if size > most[file]} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", IN_A_BROWSER)
def test_a_page_in_a_browser(name: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = browser.new_page(color_scheme=scheme, viewport={"width": 480, "height": 900})
        errors: list[str] = []
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((SITE / f"{name}.html").as_uri())
        assert errors == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 480
        page.set_viewport_size({"width": 1280, "height": 900})
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]})
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found.response["violations"]] == []
        browser.close()
