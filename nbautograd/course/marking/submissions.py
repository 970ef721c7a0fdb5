"""What was handed out and what was handed in: read from folders and zips, and never unpacked.

Nothing is written to a disk and no link is followed, so that a name in an archive leads nowhere; the number and the
size of what is read are bounded.
"""

from __future__ import annotations

import ast
import hashlib
import io
import itertools
import json
import os
import re
import stat
import symtable
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from nbautograd.course.catalogue import declared_by
from nbautograd.course.source import without_magics
from nbautograd.errors import NbautogradError

MOST_FILES = 20_000  # in one folder or zip: a class of 1,000 with 20 files each
MOST_BYTES = 32 << 20  # of one notebook or inner zip: with pictures a notebook of the course has 2 MB
DECLARATIONS = "_exercises.py"
_EXERCISE = re.compile(r"\s*%%exercise\s+(\w+)")


class MarkError(NbautogradError, ValueError):
    """A release or submissions that cannot be read; its reader is the instructor."""


@dataclass(frozen=True)
class Assignment:
    """What is marked.

    Attributes:
        notebook: the name of the file that students fill in.
        exercises: their names, in order, hidden ones last.
        texts: name -> text of the files that declare them; a later one replaces exercises of an earlier one.
        hidden: the names of those that students have not seen.
    """

    notebook: str
    exercises: tuple[str, ...]
    texts: Mapping[str, str]
    hidden: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Of everything that a mark depends on."""
        parts = [self.notebook, *self.exercises, *self.texts, *self.texts.values()]
        return hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Notebook:
    """A notebook that was handed in: its code cells, with the exercise that each belongs to, or nothing."""

    cells: tuple[tuple[str, str], ...]
    digest: str

    def cells_of(self, exercise: str, answer: str) -> tuple[list[tuple[str, str]], str]:
        """Return what has to run for one exercise, as (file name, text), and the text of its own cell.

        Of other cells the statements run that define a name which the exercise's cells use, directly or through
        another such statement: a loop that trains for an hour, or a plot, does not run.

        Args:
            exercise: its name; its cells know it by their first line or their metadata.
            answer: the name it defines; a cell that defines it is the exercise's where none has its name.
        """
        own = [k for k, (name, _) in enumerate(self.cells) if name == exercise]
        own = own or [k for k, (_, text) in enumerate(self.cells) if answer in _Statement(text).binds]
        used = {name for k in own for name in _Statement(self.cells[k][1]).uses}
        others = [
            (k, n, _Statement(text))
            for k, (_, cell) in enumerate(self.cells)
            if k not in own
            for n, text in enumerate(_statements(cell))
        ]
        needed: set[tuple[int, int]] = set()
        while True:
            more = [(k, n, s) for k, n, s in others if (k, n) not in needed and (s.binds & used or "*" in s.binds)]
            if not more:
                break
            needed |= {(k, n) for k, n, _ in more}
            used |= {name for _, _, s in more for name in s.uses}
        run: list[tuple[tuple[int, int], str, str]] = [((k, 0), f"<{exercise}>", self.cells[k][1]) for k in own]
        run += [((k, n), f"<cell {k + 1}>", s.text) for k, n, s in others if (k, n) in needed]
        last = self.cells[own[-1]][1] if own else ""
        return [(file, text) for _, file, text in sorted(run)], last


class _Statement:
    """The names that a piece of code binds at its top, and the global ones that it uses anywhere."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.binds: set[str] = set()
        self.uses: set[str] = set()
        try:
            whole = symtable.symtable(text, "<cell>", "exec")
        except (SyntaxError, ValueError, RecursionError):
            return
        if re.search(r"^\s*from\s+\S+\s+import\s+\*", text, re.MULTILINE):
            self.binds.add("*")
        waiting = [whole]
        while waiting:
            table = waiting.pop()
            waiting += table.get_children()
            for symbol in table.get_symbols():
                if symbol.is_referenced() and (table is whole or symbol.is_global()):
                    self.uses.add(symbol.get_name())
        self.binds |= {s.get_name() for s in whole.get_symbols() if s.is_assigned() or s.is_imported()}


def _statements(text: str) -> Iterator[str]:
    """Yield a cell's statements, each in its lines."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.splitlines(True)
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        yield "\n" * (first - 1) + "".join(lines[first - 1 : node.end_lineno])


def notebook_of(text: bytes) -> Notebook | None:
    """Return a notebook's code cells without magics; None for what is no notebook."""
    try:
        cells = json.loads(text)["cells"]
        kept = []
        for cell in cells:
            if cell["cell_type"] != "code":
                continue
            source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            known = _EXERCISE.match(source)
            named = cell.get("metadata", {}).get("nbautograd", {})
            exercise = known[1] if known else str(named.get("exercise", "")) if isinstance(named, dict) else ""
            kept.append((exercise, without_magics(source) + "\n"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return Notebook(tuple(kept), hashlib.sha256(text).hexdigest())


def released(release: Path) -> dict[str, bytes]:
    """Return the files of a release, by name: of its zip, where it is one or has one."""
    read = dict(_files(release))
    zips = {n.partition(".zip/")[0] for n in read if ".zip/" in n}
    if len(zips) == 1:  # the notebook lies beside it as well
        read = {n: text for n, text in read.items() if ".zip/" in n}
    return read


def assignment(release: Path, hidden: Path | None = None) -> Assignment:
    """Read what was handed out.

    Args:
        release: the zip that ``nbautograd release`` wrote, or a folder with one such zip, or with the notebook and what
            declares its exercises.
        hidden: a file that declares further exercises of the same answers, or replaces some by name.

    Raises:
        MarkError: when there is no notebook with exercises, or more than one.
        UnknownExerciseError: when nothing declares one.
    """
    read = released(release)
    texts = {PurePosixPath(n).name: text.decode("utf-8") for n, text in read.items() if n.endswith(DECLARATIONS)}
    books = {n: book for n, text in read.items() if n.endswith(".ipynb") and (book := notebook_of(text)) is not None}
    named = {n: list(dict.fromkeys(e for e, _ in book.cells if e)) for n, book in books.items()}
    named = {n: exercises for n, exercises in named.items() if exercises}
    if len(named) != 1:
        raise MarkError("course.mark.no_release", path=release, count=len(named))
    ((name, exercises),) = named.items()
    more: list[str] = []
    if hidden is not None:
        try:
            texts[hidden.name] = hidden.read_text(encoding="utf-8")
        except OSError as error:
            raise MarkError("command.freeze.no_file", path=hidden, reason=error.strerror or error) from None
        more = list(declared_by({hidden.name: texts[hidden.name]}, ()))
    declared_by(texts, exercises)
    whole = (*exercises, *(n for n in more if n not in exercises))
    return Assignment(PurePosixPath(name).name, whole, texts, tuple(more))


def submissions(place: Path, assignment: Assignment) -> dict[str, Notebook | None]:
    """Read what was handed in, one notebook a submission, by name; None where there is none that can be read.

    A submission is a notebook, a zip or a folder directly in ``place``, which is a folder or a zip: of notebooks, of
    folders such as nbgrader's ``submitted``, or what a platform exports.

    Raises:
        MarkError: when there is nothing.
    """
    read = _by_student((n, notebook_of(text) if n.endswith(".ipynb") else None) for n, text in _files(place))
    if place.is_file() and len(read) == 1:
        ((_, files),) = read.items()
        if len({n.partition("/")[0] for n in files}) > 1:  # a platform's export: one folder around it all
            read = _by_student(files.items())
    if not read:
        raise MarkError("course.mark.no_submissions", path=place)
    return {student: _chosen(files, assignment) for student, files in sorted(read.items())}


def _by_student(files: Iterable[tuple[str, Notebook | None]]) -> dict[str, dict[str, Notebook | None]]:
    read: dict[str, dict[str, Notebook | None]] = {}
    for name, book in files:
        student, _, inner = name.partition("/")
        if inner or student.endswith((".ipynb", ".zip")):
            read.setdefault(student.removesuffix(".ipynb").removesuffix(".zip"), {})[inner or name] = book
    return read


def single(place: Path, assignment: Assignment, without: Path) -> Notebook | None:
    """Return the notebook of one submission, wherever it is in a folder; None where there is none.

    Args:
        place: what a platform calls the submission's folder.
        assignment: what was handed out.
        without: a folder that is not the student's, and may be in there.
    """
    files = ((n, text) for n, text in _files(place) if not (place / n).resolve().is_relative_to(without.resolve()))
    return _chosen({n: notebook_of(text) for n, text in files if n.endswith(".ipynb")}, assignment)


def _chosen(files: Mapping[str, Notebook | None], assignment: Assignment) -> Notebook | None:
    """Return the notebook of the assignment: the one with most of its exercises, by its name where several have."""
    stem = PurePosixPath(assignment.notebook).stem

    def rank(name: str) -> tuple[int, bool, str]:
        exercises = {e for e, _ in books[name].cells} & {*assignment.exercises}
        return len(exercises), PurePosixPath(name).stem == stem, name

    books = {name: book for name, book in files.items() if book is not None}
    return books[max(books, key=rank)] if books else None


def _files(place: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files in a folder or zip, and in the zips there: the path inside, and the content of those we read.

    Raises:
        MarkError: when there is no such place.
    """
    try:
        if place.is_dir():
            for path in itertools.islice(_walked(place), MOST_FILES):
                name = path.relative_to(place).as_posix()
                yield name, _content(name, path.open)
                if name.endswith(".zip"):
                    yield from _in_zip(name + "/", path)
        elif zipfile.is_zipfile(place):
            yield from _in_zip("", place)
        else:
            place.stat()
            yield place.name, _content(place.name, place.open)
    except OSError as error:
        raise MarkError("command.freeze.no_file", path=place, reason=error.strerror or error) from None


def _walked(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder; no link is followed, and nothing hidden is looked at."""
    for here, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(n for n in folders if not n.startswith((".", "__MACOSX")))
        paths = (Path(here) / name for name in sorted(names) if not name.startswith("."))
        yield from (path for path in paths if stat.S_ISREG(path.lstat().st_mode))


def _content(name: str, opened: Callable[[str], IO[bytes]]) -> bytes:
    """Return the content of a file that we read; nothing of the others, and of those that are too large."""
    if not name.endswith((".ipynb", ".py", "manifest.json")):
        return b""
    with opened("rb") as file:
        content = file.read(MOST_BYTES + 1)
    return content if len(content) <= MOST_BYTES else b""


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, _: str) -> IO[bytes]:
    return archive.open(entry)


def _in_zip(before: str, held: Path | io.BytesIO) -> Iterator[tuple[str, bytes]]:
    """Yield the files in a zip, and in the zips there; a name in it is a key and never a path."""
    try:
        with zipfile.ZipFile(held) as archive:
            for entry in archive.infolist()[:MOST_FILES]:
                name, is_link = entry.filename, stat.S_ISLNK(entry.external_attr >> 16)
                parts = name.split("/")
                if entry.is_dir() or is_link or any(p.startswith((".", "__MACOSX")) for p in parts):
                    continue
                if name.endswith(".zip") and before.count(".zip/") == 0:
                    with archive.open(entry) as file:
                        inner = file.read(MOST_BYTES + 1)
                    yield before + name, b""
                    yield from _in_zip(f"{before}{name}/", io.BytesIO(inner))
                else:
                    yield before + name, _content(name, partial(_entry, archive, entry))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):  # also one with a password
        yield before or "-", b""
