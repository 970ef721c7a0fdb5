"""``nbautograd mark``: marks for what a class handed in, from processes of their own."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbautograd.command.page import require_ours
from nbautograd.command.program import write_page_of
from nbautograd.errors import CommandError, NbautogradError
from nbautograd.messages import text

BAR = 30  # characters


def mark(
    release: Path,
    submitted: Path,
    out: Path,
    *,
    hidden: Path | None,
    jobs: int,
    executor: str,
    resume: bool,
    seconds: float,
    memory: int,
) -> int:
    """Mark submissions, print the table of the class, and write marks, a page and a journal.

    Args:
        release: what was handed out.
        submitted: what was handed in.
        out: the file of marks; the page ``.html`` and the journal ``.jsonl`` are beside it.
        hidden: a file that declares hidden exercises.
        jobs: processes that mark at the same time.
        executor: ``dask://HOST:PORT``, or nothing.
        resume: go on with the journal.
        seconds: that a submission's process may take for an exercise.
        memory: megabytes that it may take besides torch.

    Returns:
        0 when every submission has its mark, 1 when some could not be marked.

    Raises:
        CommandError: when marks are there already, or something cannot be read or written.
    """
    from nbautograd.course.marking import batch
    from nbautograd.course.marking.class_report import ClassReport, class_document
    from nbautograd.course.marking.submissions import assignment, submissions
    from nbautograd.views.to_text import to_text

    if not out.name:
        raise CommandError(text("command.freeze.no_file", path=out, reason=os.strerror(errno.EISDIR)))
    journal = out.with_suffix(".jsonl")
    there = [path for path in (out, journal) if path.exists()]
    if there and not resume:
        raise CommandError(text("command.mark.exists", path=there[0]))
    require_ours(out.with_suffix(".html"))
    try:
        what = assignment(release, hidden)
        books = submissions(submitted, what)
        limits = {"seconds": seconds, "memory": memory << 20}
        with batch.executor(jobs, executor) as make, _progress(len(books)) as watch:
            marks, failed = batch.mark_all(what, books, journal, make, limits, watch)
        report = ClassReport(what, tuple(marks), tuple(sorted(failed.items())))
        table = batch.free_name(out)
        batch.write_csv(table, what, marks)
    except NbautogradError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=out, reason=error.strerror or error)) from None
    except KeyboardInterrupt:
        print(text("command.mark.stopped", path=journal), file=sys.stderr)
        raise
    document = class_document(report)
    print(to_text(document))
    write_page_of(document, table.with_suffix(".html"), "nbautograd mark")
    print(text("command.written", path=table))
    return int(bool(failed))


@contextlib.contextmanager
def _progress(count: int) -> Iterator[Any]:
    """Give what draws a bar on a terminal, and nothing into a file."""
    start, shown = time.monotonic(), sys.stderr.isatty()
    begun: list[int] = []

    def watch(done: int) -> None:
        begun[:] = begun or [done]  # what a journal had took no time
        new = done - begun[0]
        left = (time.monotonic() - start) / new * (count - done) if new else 0
        bar = "█" * (BAR * done // max(count, 1))
        if shown:
            what = text("command.mark.progress", done=done, count=count, seconds=round(left))
            print(f"\r{bar:░<{BAR}} {what} ", end="", file=sys.stderr, flush=True)

    try:
        yield watch
    finally:
        if shown:
            print(file=sys.stderr)


def grader(release: Path, folder: Path, hidden: Path | None, seconds: float, memory: int) -> int:
    """Write a grader for other platforms; returns 0.

    Raises:
        CommandError: when something is there already, or cannot be read or written.
    """
    from nbautograd.course.marking.grader import write

    try:
        for path in write(folder, release, hidden, {"seconds": seconds, "memory": memory << 20}):
            print(text("command.written", path=path))
    except NbautogradError as error:
        raise CommandError(str(error)) from None
    except FileExistsError as error:
        raise CommandError(text("command.mark.exists", path=error.filename)) from None
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=folder, reason=error.strerror or error)) from None
    return 0
