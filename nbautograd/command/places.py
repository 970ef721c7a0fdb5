"""Folders of the notebooks: in an installed wheel, in a checkout, and for a person's copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import nbautograd
from nbautograd.errors import CommandError
from nbautograd.messages import text

GUIDES = ("demo", "torch_errors", "audit")
_PACKAGE = Path(nbautograd.__file__).resolve().parent


def notebook(name: str, *, package: Path = _PACKAGE) -> Path:
    """Return the file of one of our notebooks.

    A wheel carries them inside the package; a checkout, installed with ``pip install -e``, has them beside it.

    Args:
        name: such as ``"demo.ipynb"``.
        package: the folder of the package.

    Raises:
        CommandError: when neither place has it, which means that the installation is incomplete.
    """
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / name).is_file():
            return folder / name
    raise CommandError(text("command.no_notebook", name=name, package=package))


def notebooks(lang: str, *, package: Path = _PACKAGE) -> list[Path]:
    """Return the files of the course's notebooks in this language, in order."""
    for folder in (package / "notebooks" / lang, package.parent / "notebooks" / lang):
        if folder.is_dir():
            return sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    raise CommandError(text("command.no_notebook", name=f"{lang}/01_*.ipynb", package=package))


def guide(name: str, lang: str) -> Path:
    """Return the file of the demo or of another notebook outside the course, in a language.

    Args:
        name: one of ``GUIDES``.
        lang: ``"en"`` or ``"zh"``.

    Raises:
        CommandError: when it is not installed.
    """
    return notebook(f"{name}.ipynb" if lang == "en" else f"{name}.{lang}.ipynb")


def own_copy(original: Path, folder: Path, name: str, is_current: Callable[[Path], bool] = lambda mine: True) -> Path:
    """Put a copy of a notebook into a person's folder, and say what was done.

    A file that is there is theirs: it stays in its place as long as it is current. Where it is not, it is renamed to a
    free number and the new one takes its place. Nothing is ever overwritten.

    Args:
        original: the notebook to copy.
        folder: made when it does not exist.
        name: of the copy.
        is_current: tells of their file whether the original is no newer.

    Raises:
        CommandError: when the folder cannot be written to.
    """
    copy, aside, done = folder.resolve() / name, "", "kept"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if copy.exists() and not is_current(copy):
            numbered = (copy.with_name(f"{copy.stem}.mine-{number}{copy.suffix}") for number in itertools.count(1))
            aside = copy.rename(next(free for free in numbered if not free.exists())).name
        if not copy.exists():
            with copy.open("xb") as file:
                file.write(original.read_bytes())
            done = "aside" if aside else "copied"
    except OSError as error:
        raise CommandError(text("command.folder", folder=folder.resolve(), reason=error.strerror or error)) from None
    print(text(f"command.course.{done}", path=copy, aside=aside), flush=True)
    return copy
