"""What every test folder may ask for: a browser, a tab that never leaves this machine, a folder for pictures."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import said
from browser import FLAGS, find_browser

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["NBAUTOGRAD_LANG"] = "en"  # the tests read English sentences; a test that wants Chinese says so

with contextlib.suppress(ImportError):  # which does not come with every environment that runs some of the tests
    from hypothesis import HealthCheck, settings

    # no test has a time limit: a busy machine is no fault
    settings.register_profile("nbautograd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("nbautograd")

# jsonschema, which nbformat imports, can do without it: it compiles 38 grammars, about a second in each process
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# --doctest-modules would import each folder's conftest as one module of the same name
collect_ignore_glob = ["*conftest.py", "support/triton_*.py"]  # triton is not there everywhere

ROOT = Path(__file__).resolve().parents[1]
LOCAL = ("http://127.0.0.1", "data:", "blob:", "about:", "file:")


# The objects of 600 modules are no garbage: looking through them took a quarter of the time of collecting tests
gc.disable()


def pytest_collection_finish() -> None:
    """Give torch one thread, and what was imported to no collection of garbage: it stays.

    On a small machine more threads only get into each other's way. Of several workers each comes here; who only hands
    out their tests does not, and needs no torch.
    """
    import torch

    torch.set_num_threads(1)
    said.listen()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker's tests said to who hands out the tests; sentences that no test said fail the run."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["said"] = sorted(said.SAID)
    elif "NBAUTOGRAD_UNSAID" in os.environ and len(said.unsaid()) > said.MOST:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker's tests said."""
    said.SAID.update(getattr(node, "workeroutput", {}).get("said", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the sentences that no test said, where ``NBAUTOGRAD_UNSAID`` asks for it, as ``.ci/test`` does."""
    if "NBAUTOGRAD_UNSAID" in os.environ:
        terminalreporter.write_line(f"said by no test: {' '.join(said.unsaid())}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the nightly tests, unless the marks asked for or the test named on the command line are theirs."""
    if "nightly" in config.option.markexpr or any("::" in arg for arg in config.args):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly:
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]


def pytest_runtest_setup() -> None:
    """Begin each test with the same random numbers, whichever tests ran before it."""
    import torch

    torch.default_generator.manual_seed(0)  # torch.manual_seed formats a stack for each device that is not there


@pytest.fixture(autouse=True)
def no_stumbles() -> Iterator[None]:
    """Fail a test in which nbautograd's own code failed and went on; one about stumbles forgets its own."""
    from nbautograd.core import stumbles

    stumbles.forget()
    yield
    assert stumbles.recent() == ()


@pytest.fixture
def fixes() -> None:
    """Look for fixes as well, in a module whose other tests are ``without_fixes``."""


@pytest.fixture
def without_fixes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the search for a fix, which takes two thirds of the check of a wrong backward."""
    if "fixes" not in request.fixturenames:
        monkeypatch.setattr(
            "nbautograd.core.checking.gradcheck.Mending", lambda: lambda _, findings, clues=None: findings
        )


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Go back to English after a test that chose a language; what a file imported stays, and is no garbage either."""
    from nbautograd.messages import set_language

    os.environ["NBAUTOGRAD_LANG"] = "en"  # `lab` chooses a language for the whole process
    set_language(None)
    if nextitem is None or nextitem.path != item.path:
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Leave nothing to collect to the end: each IPython shell that there was looks through everything once more."""
    gc.freeze()


@pytest.fixture
def saved_tensors_shown() -> None:
    """Skip where torch shows what a node saved only by unpacking it, as torch 2.6 does."""
    from nbautograd.core.torch_private.nodes import SHOWS_SAVED

    if not SHOWS_SAVED:
        pytest.skip("this torch shows saved tensors only by unpacking them")


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """The folder, ignored by git, where screenshots and logs are kept for whoever looks at a run."""
    folder = Path(os.environ.get("NBAUTOGRAD_ARTIFACTS", ROOT / "artifacts"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One headless Chromium for the whole run. On a CI machine its absence is a failure, elsewhere a skip."""
    executable = find_browser()
    if executable is None:
        message = "no Chromium found; `.ci/test` installs it, or name one in NBAUTOGRAD_CHROMIUM"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A fresh tab. It may speak to this machine only: `page.refused` lists what it asked of others.

    `page.errors` holds the uncaught JavaScript errors as text; a test that wants none says so.
    """
    context = chromium.new_context(
        viewport={"width": 1000, "height": 760}, reduced_motion="reduce", color_scheme="light"
    )
    tab = context.new_page()
    tab.errors, tab.refused = [], []

    def route(request: Any) -> None:
        if request.request.url.startswith(LOCAL):
            request.continue_()
        else:
            tab.refused.append(request.request.url)
            request.abort()

    context.route("**/*", route)
    tab.on("pageerror", lambda error: tab.errors.append(f"{error}\n{error.stack or ''}"))
    yield tab
    context.close()
