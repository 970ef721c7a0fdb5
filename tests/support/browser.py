"""The Chromium that tests and the scripts in docs/ and benchmarks/ drive."""

from __future__ import annotations

import os
import shutil

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# without a sandbox because CI runs as root; one colour profile and no hinting, so that screenshots repeat
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
]


def find_browser() -> str | None:
    """Return the Chromium to drive: what NBAUTOGRAD_CHROMIUM names, else the first one on the PATH."""
    named = os.environ.get("NBAUTOGRAD_CHROMIUM")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)
