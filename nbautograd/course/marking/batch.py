"""A class: each submission marked once, through any ``concurrent.futures.Executor``, with a journal of what is done."""

from __future__ import annotations

import contextlib
import csv
import json
import multiprocessing
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nbautograd.course.catalogue import declared_by
from nbautograd.course.marking.judge import SubmissionMark, mark
from nbautograd.course.marking.submissions import Assignment, MarkError, Notebook

ROUNDS = 2  # a worker that the system killed takes its pool along: the rest is tried once more
Limits = Mapping[str, float]


@contextlib.contextmanager
def executor(jobs: int = 1, address: str = "") -> Iterator[Callable[[], Executor]]:
    """Give what makes an executor: of processes here, or of a Dask cluster's workers.

    Args:
        jobs: processes on this machine.
        address: ``dask://HOST:PORT`` of a scheduler whose workers have nbautograd; empty for none.

    Raises:
        MarkError: when there is no such cluster, or ``distributed`` is not installed.
    """
    if not address:
        context = multiprocessing.get_context("spawn")  # torch has threads, and a fork would copy one of them
        yield lambda: ProcessPoolExecutor(jobs, context, signal.signal, (signal.SIGINT, signal.SIG_IGN))
        return
    scheme, _, place = address.partition("://")
    if scheme != "dask" or not place:
        raise MarkError("course.mark.no_executor", address=address)
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise MarkError("course.mark.no_distributed") from None
    try:
        client = Client(f"tcp://{place}")
    except OSError as error:
        raise MarkError("course.mark.no_cluster", address=address, reason=error) from None
    with client:
        yield lambda: client.get_executor(retries=ROUNDS)


def mark_all(
    assignment: Assignment,
    books: Mapping[str, Notebook | None],
    journal: Path,
    make: Callable[[], Executor],
    limits: Limits,
    watch: Callable[[int], None] = lambda count: None,
) -> tuple[list[SubmissionMark], dict[str, str]]:
    """Mark what the journal does not have yet, and write each mark into it as it comes.

    Args:
        assignment: what was handed out.
        books: what was handed in.
        journal: a file of JSON lines; marks in it of the same notebook for the same assignment are kept.
        make: makes the executor.
        limits: as in ``mark``.
        watch: called with the number of marks after each.

    Returns:
        The marks by name of the submission, and what could not be marked, with the reason: an error of nbautograd or
        of the cluster, never of the submission.
    """
    done = {name: m for name, m in _read(journal, assignment).items() if name in books}
    for name in [n for n, m in done.items() if m.digest != _digest(books[n])]:
        del done[name]  # handed in anew
    failed: dict[str, str] = {}
    watch(len(done))
    with _appending(journal) as write:
        for _ in range(ROUNDS):
            left = {n: book for n, book in books.items() if n not in done}
            if not left:
                break
            failed = {}
            pool = make()
            jobs: dict[Future[SubmissionMark], str] = {}
            try:
                for name, book in left.items():
                    seed = secrets.randbits(62) + 1
                    jobs[pool.submit(mark, assignment, name, book, dict(limits), seed)] = name
                for job in as_completed(jobs):
                    try:
                        one = job.result()
                    except Exception as error:  # silent: it has no mark, which is told with the reason
                        failed[jobs[job]] = f"{type(error).__name__}: {error}"
                        continue
                    write({"assignment": assignment.digest, **asdict(one)})
                    done[one.submission] = one
                    watch(len(done))
            except BrokenExecutor as error:  # while it was given its jobs
                failed = {name: str(error) for name in left if name not in done}
            finally:
                for job in jobs:  # after Ctrl-C; a cluster's executor does not know cancel_futures=
                    job.cancel()
                pool.shutdown()
    return [done[name] for name in sorted(done)], failed


def _digest(book: Notebook | None) -> str:
    return "" if book is None else book.digest


def _read(journal: Path, assignment: Assignment) -> dict[str, SubmissionMark]:
    """Return the marks in a journal; the last line may be cut where the machine was switched off."""
    marks = {}
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
        try:
            held = json.loads(line)
        except ValueError:
            continue
        if held.pop("assignment") == assignment.digest:
            marks[held["submission"]] = SubmissionMark(**{**held, "results": tuple(held["results"])})
    return marks


@contextlib.contextmanager
def _appending(journal: Path) -> Iterator[Callable[[Any], None]]:
    cut = journal.exists() and journal.stat().st_size and not journal.read_bytes().endswith(b"\n")
    with journal.open("a", encoding="utf-8") as file:
        file.write("\n" if cut else "")

        def write(held: Any) -> None:
            file.write(json.dumps(held, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

        yield write


def free_name(path: Path) -> Path:
    """Return the path, or the next free one: what was written once is never written over."""
    number = 2
    chosen = path
    while chosen.exists():
        chosen, number = path.with_stem(f"{path.stem}-{number}"), number + 1
    return chosen


def write_csv(path: Path, assignment: Assignment, marks: list[SubmissionMark]) -> None:
    """Write a row a submission: points in all and for each exercise, codes, what was reported, and a first sentence."""
    declared = declared_by(assignment.texts, assignment.exercises)
    total = sum(declared[name].points for name in assignment.exercises)
    with path.open("x", encoding="utf-8-sig", newline="") as file:  # a spreadsheet knows UTF-8 by its mark
        table = csv.writer(file)
        names = [*assignment.exercises, "codes", "not verified by the marker", "sentences"]
        table.writerow(["submission", "points", "of", *names])
        for one in marks:
            codes = "; ".join(f"{r['exercise']}: {', '.join(r['codes'])}" for r in one.results if r["codes"])
            reported = "; ".join(f"{name}: {', '.join(checks)}" for name, checks in one.reported.items() if checks)
            points = [r["earned"] for r in one.results]
            said = " | ".join(f"{r['exercise']}: {first_sentence(r)}" for r in one.results if first_sentence(r))
            row = [one.submission, one.earned, total, *points, codes, reported, said]
            table.writerow([_harmless(cell) for cell in row])


def first_sentence(result: Mapping[str, Any]) -> str:
    """Return what is said first of an answer that failed, in the language of the moment."""
    from nbautograd.messages import language

    failures = [f for outcome in result["outcomes"] for f in outcome["failures"]]
    return next((f["sentences"][language()][0] for f in failures if f["sentences"][language()]), "")


def _harmless(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: the name of a file is the student's choice."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell
