"""The seeds' examples where no thread can be started and no process copied, as in a browser or at a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join((str(ROOT), str(ROOT / "tests" / "support")))


def without_threads(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": PATHS}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no_threads",
        "-p",
        "no:cacheprovider",
        "-o",
        "timeout=0",
        *words,
    ]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.nightly
def test_the_seeds_run_without_threads_and_fork() -> None:
    run = without_threads("tests/seeds", f"--ignore={Path(__file__).relative_to(ROOT)}", "-m", "not nightly")
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
    assert " passed" in run.stdout


@pytest.mark.slow
def test_the_simulation_refuses_threads(tmp_path: Path) -> None:
    test = tmp_path / "test_threads.py"
    test.write_text("import os, threading\n\ndef test(): assert hasattr(os, 'fork') or threading.Thread().start()\n")
    assert "can't start new thread" in without_threads("-c", os.devnull, str(test)).stdout
