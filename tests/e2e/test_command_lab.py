"""The `nbautograd lab` command as one types it: a server that serves the demo; a page that needs nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request

import pytest
from jupyter_app import free_port, running
from playwright.sync_api import expect
from widget_page import words

from nbautograd.command.places import guide
from nbautograd.messages import speaking, text


@pytest.mark.e2e
def test_lab_serves_the_demo(tmp_path, artifacts):
    port, mine, log = free_port(), tmp_path / "mine", artifacts / "nbautograd-lab.log"
    words = ["lab", "--folder", str(mine), "--", "--no-browser", "--port", str(port)]
    command = [sys.executable, "-m", "nbautograd", *words]
    with running(command, tmp_path, log, f"http://127.0.0.1:{port}"):
        assert (mine / "nbautograd-demo.ipynb").read_bytes() == guide("demo", "en").read_bytes()
        urllib.request.urlopen(f"http://127.0.0.1:{port}/static/favicons/favicon.ico", timeout=10).close()
    said = log.read_text()
    assert text("command.course.copied", path=mine / "nbautograd-demo.ipynb") in said
    assert f"http://127.0.0.1:{port}/lab/tree/nbautograd-demo.ipynb" in said


@pytest.fixture(scope="module", params=["en", pytest.param("zh", marks=pytest.mark.nightly)])
def headless(request, tmp_path_factory):
    """What `nbautograd lab --headless` writes, and what it says."""
    folder = tmp_path_factory.mktemp("headless")
    options = ["--headless", "--folder", str(folder), "--lang", request.param]
    command = [sys.executable, "-m", "nbautograd", "lab", *options]
    environment = {**os.environ, "IPYTHONDIR": str(folder / "ipython")}
    run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    (page,) = folder.glob("*.html")
    assert str(page) in run.stdout
    return page, request.param


@pytest.mark.notebooks
def test_headless_writes_a_page_that_needs_nothing_else(headless, page):
    written, lang = headless
    needed = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?http", written.read_text(encoding="utf-8"))
    assert needed == []
    original = guide("demo", lang)
    assert original.read_bytes() == (written.parent / f"nbautograd-{original.name}").read_bytes()
    page.goto(written.as_uri())
    for verdict in ("right", "wrong_for"):
        with speaking(lang):
            said = words(f"views.headline.{verdict}")
        expect(page.locator(".nbautograd").filter(has_text=said).first).to_be_visible()
    assert page.refused == []
    assert page.errors == []
    assert written.stat().st_size < 3_000_000


@pytest.mark.notebooks
def test_headless_twice_writes_its_own_page_again_but_no_one_elses(headless, capsys, monkeypatch):
    from nbautograd.command import page
    from nbautograd.errors import CommandError

    written, _ = headless
    monkeypatch.setattr(page, "run", lambda *_: "")
    notebook = written.with_suffix(".ipynb")
    assert page.write_page(notebook) == written
    written.write_text("mine")
    with pytest.raises(CommandError, match=words("command.freeze.taken").pattern):
        page.write_page(notebook)
    assert written.read_text() == "mine"
