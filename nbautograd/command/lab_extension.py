"""The JupyterLab extension of a checkout: an editable install lays down no data files, so this does.

``.ci/environment`` calls it as ``python -m nbautograd.command.lab_extension``, and so does ``nbautograd doctor``.
"""

from __future__ import annotations

import json
import shutil
import sys
from importlib import metadata
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "labextension"  # in a checkout; a wheel has it where JupyterLab looks
PLACE = Path("share", "jupyter", "labextensions", "nbautograd")


def is_editable() -> bool:
    """Return True where this environment has nbautograd as an editable install of the code that runs here."""
    try:
        about = json.loads(metadata.distribution("nbautograd").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        return False
    return bool(about.get("dir_info", {}).get("editable")) and about["url"] == SOURCE.parents[1].as_uri()


def lay_down(prefix: Path) -> Path | None:
    """Lay the extension down in an environment, as a link that stays up to date, or a copy where links are refused.

    Args:
        prefix: of the environment.

    Returns:
        Where it is now; None where this is no checkout, or the folder cannot be written.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from nbautograd.command.lab_extension import lay_down
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (lay_down(Path(folder)) / "package.json").is_file()
        True
    """
    place = prefix / PLACE
    if not SOURCE.is_dir():
        return None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink():
            place.unlink()
        elif place.exists():
            shutil.rmtree(place)
        try:
            place.symlink_to(SOURCE, target_is_directory=True)
        except OSError:
            shutil.copytree(SOURCE, place)
    except OSError:
        return None
    return place


if __name__ == "__main__":
    lay_down(Path(sys.prefix))
