"""release: the student version of a source notebook, or a sentence that says why there is none."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from nbautograd.core.findings import Phrase
from nbautograd.course import leak_check, student
from nbautograd.course.catalogue import BESIDE, declared_in, find
from nbautograd.course.exercise import Exercise
from nbautograd.course.rehearse import AnswerCheck, passed_untouched, rehearse
from nbautograd.course.source import Source, SourceError
from nbautograd.course.translations import languages, stale

PINNED = ("nbautograd", "torch", "numpy", "matplotlib", "ipywidgets", "anywidget", "graphviz", "ipython", "jupyterlab")
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a zip without a time in it is the same each time


class ReleaseError(SourceError):
    """A release that is refused."""


@dataclass(frozen=True)
class Release:
    """Contents of what goes to students.

    Attributes:
        name: of the notebook.
        lang: its language.
        files: name -> content, of all files in the zip.
        warnings: about translations that may be out of date; each is put into words when it is printed.
    """

    name: str
    lang: str
    files: dict[str, str]
    warnings: tuple[Phrase, ...] = ()

    @property
    def notebook(self) -> str:
        """The text of the ``.ipynb``."""
        return self.files[f"{self.name}.ipynb"]

    def zipped(self) -> bytes:
        """Return the zip, the same bytes for the same files."""
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(self.files):
                entry = zipfile.ZipInfo(f"{self.name}/{name}", LONG_AGO)
                entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                archive.writestr(entry, self.files[name])
        return held.getvalue()


def make(source: Source, lang: str, *, rehearsed: bool = False, graded: bool = False) -> Release:
    """Make the student version of a source notebook.

    Args:
        source: the source notebook; an own ``*_exercises.py`` lies beside it.
        lang: ``"en"`` or ``"zh"``.
        rehearsed: True when all answers were tried already.
        graded: True for nbgrader, with its metadata and a cell of points below each exercise.

    Raises:
        ReleaseError: when a reference fails, a known-wrong answer passes or fails otherwise than it should, a part of
            a solution is left anywhere, or something in the student version passes.
        SourceError: for a source that cannot be released.
    """
    exercises = _exercises(source)
    if lang not in languages(source):
        raise SourceError("course.no_language", name=source.name, lang=lang)
    if not rehearsed:
        refuse_failures(source)
    outdated = list(stale(source))
    content = student.notebook(source, lang, [cell for cell, _ in outdated], exercises if graded else None)
    files = {f"{source.name}.ipynb": student.written(content), **_declarations(source.path, exercises)}
    manifest = _manifest(source, lang, files, exercises)
    files["manifest.json"] = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    files["requirements.txt"] = "".join(f"{line}\n" for line in manifest["requirements"])
    warnings = tuple(
        Phrase("course.stale", pair=cell.metadata.get("pair", ""), name=source.name, stamp=now)
        for cell, now in outdated
    )
    made = Release(source.name, lang, files, warnings)
    _refuse_leaks(source, content)
    return made


def refuse_failures(source: Source) -> None:
    """Try every answer of a source, and its student version untouched.

    Raises:
        ReleaseError: for the first answer that does not come out as its author promised, or an exercise that something
            in the student version passes.
    """
    for tried in rehearse(source):
        if not tried.holds:
            raise ReleaseError(f"course.refused.{_reason(tried)}", **_params_of(tried))
    for exercise, name in passed_untouched(source):
        raise ReleaseError("course.refused.given_away", exercise=exercise, name=name)


def _reason(tried: AnswerCheck) -> str:
    if tried.result is None:
        return "plain" if tried.role == "plain" else "raised"
    if tried.role == "wrong":
        return "wrong_passes" if tried.result.passed else "wrong_otherwise"
    return tried.role


def _params_of(tried: AnswerCheck) -> dict[str, Any]:
    codes = "" if tried.result is None else ", ".join(tried.result.codes) or tried.result.state
    return {
        "exercise": tried.exercise, "role": tried.role, "expected": tried.expected, "head": tried.head,
        "error": tried.error, "codes": codes,
    }  # fmt: skip


def _exercises(source: Source) -> dict[str, Exercise]:
    """Return the exercises of a source's cells by name, each of one cell that a student's kernel checks."""
    exercises: dict[str, Exercise] = {}
    above = itertools.takewhile(lambda cell: not cell.is_answer, source.cells)
    lines = [line for cell in above if cell.kind == "code" for line in cell.text.splitlines()]
    for cell in source.answers:
        if cell.exercise in exercises:
            raise ReleaseError("course.refused.twice", exercise=cell.exercise)
        if cell.text.split()[:2] != ["%%exercise", cell.exercise]:
            raise ReleaseError("course.refused.no_magic", exercise=cell.exercise)
        if not any(line.startswith("%load_ext nbautograd") for line in lines):
            raise ReleaseError("course.refused.not_loaded")
        exercises[cell.exercise] = find(cell.exercise, source.path.parent)
    return exercises


def _declarations(path: Path, exercises: Mapping[str, Exercise]) -> dict[str, str]:
    """Return the files beside the source that declare an exercise of it; the package's own travel with the package."""
    used = [
        file
        for file in sorted(path.parent.glob(BESIDE))
        if any(declared_in(file).get(name) is exercise for name, exercise in exercises.items())
    ]
    return {file.name: file.read_text(encoding="utf-8") for file in used}


def _manifest(source: Source, lang: str, files: dict[str, str], exercises: Mapping[str, Exercise]) -> dict[str, Any]:
    return {
        "name": source.name,
        "language": lang,
        "source": source.hash,
        "files": {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in sorted(files.items())},
        "nbautograd": _version("nbautograd"),
        "requirements": requirements(),
        "exercises": [
            {"name": e.name, "answer": e.answer, "checks": " ".join(e.ids), "points": e.points}
            for e in exercises.values()
        ],
        "points": sum(exercise.points for exercise in exercises.values()),
    }


def requirements() -> list[str]:
    """Pin what was used here: nbautograd and the packages that it stands on."""
    versions = {package: _version(package) for package in PINNED}
    return [f"{package}=={v}" for package, v in versions.items() if v]


def _version(package: str) -> str:
    """Return the installed version, without a build's own ``+cpu``; empty when nothing is installed."""
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def _refuse_leaks(source: Source, content: Any) -> None:
    """Raise for the first line of a solution that is left; what declares an exercise has its formula, on purpose."""
    texts = dict(leak_check.strings(content))
    for exercise, line, where in leak_check.leaks(source, texts):
        raise ReleaseError("course.refused.leak", text=line, exercise=exercise, where=where)
