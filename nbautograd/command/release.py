"""``nbautograd release``: the student versions of source notebooks, written beside them or into a folder."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from nbautograd.errors import CommandError, NbautogradError
from nbautograd.messages import printable, text


def release(
    sources: Sequence[Path],
    langs: Sequence[str] = (),
    folder: Path | None = None,
    graded: bool = False,
) -> int:
    """Release source notebooks.

    Args:
        sources: source notebooks, or folders of them.
        langs: the languages to make; without any, those that a source is written in.
        folder: where ``NAME.ipynb``, ``NAME-LANG.zip`` and ``NAME-LANG.manifest.json`` go. None writes the notebook
            alone, into a folder named as the language: beside the source's folder if that is named ``source``, else
            in it. Two languages go into two folders.
        graded: write the notebooks for nbgrader, with what they need beside them, and no zip.

    Returns:
        0 when all were made; 1 when one was refused, with the reason on stderr.

    Raises:
        CommandError: when there is no such source, or a folder cannot be written to.
    """
    refused = [reason for source in _files(sources) if (reason := _refused(source, langs, folder, graded))]
    for reason in refused:
        print(f"nbautograd: {reason}", file=sys.stderr)
    return int(bool(refused))


def new(name: str, lang: str, folder: Path) -> int:
    """Write a template of a source notebook, with its exercises beside it; returns 0.

    Raises:
        CommandError: when a file of that name exists, or the folder cannot be written to.
    """
    from nbautograd.course.template import template

    files = template(name, lang)
    there = [folder / file for file in files if (folder / file).exists()]
    if there or not re.fullmatch(r"\w+", name):
        raise CommandError(
            text("command.release.exists" if there else "command.release.no_name", path=there, name=name)
        )
    _write(folder, {file: content.encode("utf-8") for file, content in files.items()})
    for file in files:
        print(text("command.written", path=folder / file))
    return 0


def _refused(source: Path, langs: Sequence[str], folder: Path | None, graded: bool) -> str:
    """Release one source; returns why not, or nothing."""
    try:
        _release(source, langs, folder, graded)
    except NbautogradError as error:
        return printable(f"{source.name}: {error}")
    return ""


def _files(sources: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for source in sources:
        inside = sorted(p for p in source.glob("*.py") if not p.stem.endswith("_exercises")) if source.is_dir() else []
        if not inside and not source.is_file():
            raise CommandError(text("command.release.no_source", path=source))
        found += inside or [source]
    return found


def _release(source: Path, langs: Sequence[str], folder: Path | None, graded: bool) -> None:
    from nbautograd.course.release import make, refuse_failures
    from nbautograd.course.source import read
    from nbautograd.course.translations import languages

    content = read(source)
    refuse_failures(content)
    langs = langs or languages(content)
    for lang in langs:
        made = make(content, lang, rehearsed=True, graded=graded)
        parent = source.resolve().parent
        home = folder or (parent.parent if parent.name == "source" else parent)
        where = home / lang if folder is None or len(langs) > 1 else home
        files: dict[str, bytes] = {f"{made.name}.ipynb": made.notebook.encode("utf-8")}
        if graded:
            beside = {n: text for n, text in made.files.items() if n.endswith(".py")}
            files.update({n: text.encode("utf-8") for n, text in beside.items()})
        elif folder is not None:
            files[f"{made.name}-{lang}.zip"] = made.zipped()
            files[f"{made.name}-{lang}.manifest.json"] = made.files["manifest.json"].encode("utf-8")
        _write(where, files)
        for warning in made.warnings if lang == "zh" else ():
            print(warning, file=sys.stderr)
        print(text("command.written", path=where / f"{made.name}.ipynb"), flush=True)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise CommandError(text("command.folder", folder=folder, reason=error.strerror or error)) from None
