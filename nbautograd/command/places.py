"""Folders of the notebooks: in an installed wheel, in a checkout, and for a person's copy."""

from __future__ import annotations

import os
import tempfile
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


def own_copy(original: Path, folder: Path) -> tuple[Path, bool]:
    """Put a copy of a notebook into a person's folder, once: a file that is there is theirs and stays as it is.

    Args:
        original: the notebook to copy.
        folder: made when it does not exist.

    Returns:
        The copy's path, and True when it is new.

    Raises:
        CommandError: when the folder cannot be written to.
    """
    copy = folder.resolve() / f"nbautograd-{original.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _probe(folder)
        if copy.exists():
            return copy, False
        with copy.open("xb") as file:
            file.write(original.read_bytes())
    except OSError as error:
        raise CommandError(text("command.folder", folder=folder.resolve(), reason=error.strerror or error)) from None
    return copy, True


def _probe(folder: Path) -> None:
    """Raise OSError when nothing can be written here; os.access does not know of read-only mounts."""
    descriptor, name = tempfile.mkstemp(prefix=".nbautograd-", dir=folder)
    os.close(descriptor)
    os.unlink(name)
