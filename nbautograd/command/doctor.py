"""``nbautograd doctor``: is everything here that nbautograd needs, and does it fit together?"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from shutil import which
from typing import Literal

import nbautograd
from nbautograd.command.lab_extension import is_editable, lay_down
from nbautograd.messages import text

Mark = Literal["✓", "✗", "·"]  # well; ill; absent and not needed
TESTED_TORCH = "2.13"


@dataclass(frozen=True)
class Check:
    """One line of the doctor's answer."""

    name: str
    mark: Mark
    sentence: str


def doctor() -> int:
    """Print what is here; returns 0 when nothing that is needed is missing, else 1."""
    ill = False
    for check in checks():
        ill = ill or check.mark == "✗"
        print(f"{check.mark} {check.name:<14} {check.sentence}", flush=True)
    print(text("command.doctor.ill" if ill else "command.doctor.well"))
    return int(ill)


def checks() -> Iterator[Check]:
    """Yield all checks, as they are made."""
    yield Check("python", "✓", f"{'.'.join(map(str, sys.version_info[:3]))}, {sys.executable}")
    yield Check("nbautograd", "✓", text("command.doctor.installed", version=nbautograd.__version__, folder=_home()))
    yield _torch()
    for package in ("numpy", "matplotlib", "ipython", "ipywidgets", "anywidget", "jupyterlab", "nbclient", "nbconvert"):
        yield installed(package)
    yield from filter(None, map(_browser_side, ("ipywidgets", "anywidget")))
    yield _lab_extension()
    yield _kernel()
    yield _recording()
    yield _dot()


def _home() -> Path:
    return Path(nbautograd.__file__).resolve().parent


def _torch() -> Check:
    try:
        import torch
    except ModuleNotFoundError:
        return Check("torch", "✗", text("command.doctor.missing", package="torch", python=sys.executable))
    except (ImportError, OSError) as error:
        return Check("torch", "✗", text("command.doctor.torch_broken", reason=str(error).splitlines()[0]))
    built = {"cuda": torch.version.cuda, "count": torch.cuda.device_count()}
    device = text("command.doctor.cuda", **built) if torch.version.cuda else text("command.doctor.cpu")
    known = torch.__version__.startswith(f"{TESTED_TORCH}.")
    sentence = "command.doctor.torch" if known else "command.doctor.torch_untested"
    return Check("torch", "✓", text(sentence, version=torch.__version__, device=device, tested=TESTED_TORCH))


def installed(package: str, *, version_of: Callable[[str], str] = metadata.version) -> Check:
    """Check that this package is here, in a version that nbautograd's own metadata accepts."""
    try:
        version = version_of(package)
    except metadata.PackageNotFoundError:
        return Check(package, "✗", text("command.doctor.missing", package=package, python=sys.executable))
    wanted = _wanted(package)
    if wanted and not _fits(version, wanted):
        words = {"version": version, "wanted": wanted, "package": package, "python": sys.executable}
        return Check(package, "✗", text("command.doctor.old", **words))
    return Check(package, "✓", version)


def _wanted(package: str) -> str:
    """Return the versions that nbautograd's metadata asks for, such as ``">=8.1"``; ``""`` when it asks for none."""
    from packaging.requirements import Requirement

    for line in metadata.requires("nbautograd") or []:
        requirement = Requirement(line)
        if requirement.name == package:
            return str(requirement.specifier)
    return ""


def _fits(version: str, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version, prereleases=True)


def _browser_side(package: str) -> Check | None:
    """Check that JupyterLab finds the JavaScript half of this package, in a version that fits the Python half."""
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return None  # already said
    found = browser_side(package)
    name = f"{package}.js"
    if found is None:
        fix = text("command.doctor.browser_side_missing", python=sys.executable, package=package)
        return Check(name, "✗", fix)
    if not found.fits(version):
        words = {"found": found.version, "folder": found.folder, "version": version}
        return Check(name, "✗", text("command.doctor.browser_side_differs", **words))
    return Check(name, "✓", text("command.doctor.browser_side", found=found.version))


def _lab_extension() -> Check:
    """Check that JupyterLab finds our own extension; in an editable install lay it down where it does not."""
    found, name = browser_side("nbautograd"), "nbautograd.js"
    if found is None and is_editable() and lay_down(Path(sys.prefix)) is not None:
        return Check(name, "✓", text("command.doctor.lab_extension_laid_down"))
    if found is None:
        return Check(name, "·", text("command.doctor.lab_extension_missing", python=sys.executable))
    if found.version != nbautograd.__version__:
        words = {"found": found.version, "folder": found.folder, "version": nbautograd.__version__}
        return Check(name, "✗", text("command.doctor.browser_side_differs", **words))
    return Check(name, "✓", text("command.doctor.lab_extension", found=found.version))


def _kernel() -> Check:
    python = kernel_python()
    if python is None:
        return Check("kernel", "✗", text("command.doctor.kernel_missing", python=sys.executable))
    if not same_python(python):
        return Check("kernel", "✗", text("command.doctor.kernel_other", other=python, python=sys.executable))
    return Check("kernel", "✓", text("command.doctor.kernel"))


def _recording() -> Check:
    try:
        return Check("recording", "✓", text("command.doctor.recording")) if _records() else _unrecorded("")
    except Exception as error:  # silent: its line says it, and the other lines are still wanted
        return _unrecorded(f"{type(error).__name__}: {error}")


def _unrecorded(reason: str) -> Check:
    return Check("recording", "✗", text("command.doctor.recording_fails", reason=reason))


def _records() -> bool:
    """Return True where a Function's three methods are recorded, each linked to its forward."""
    import torch

    from nbautograd.core.recording.api import recording

    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x * 3

        @staticmethod
        def setup_context(ctx: object, inputs: object, output: object) -> None:
            pass

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            return grad * 3

    with recording(Triple) as log:
        Triple.apply(torch.ones((), requires_grad=True)).backward()  # type: ignore[no-untyped-call]
    methods = [call.method for call in log] == ["forward", "setup_context", "backward"]
    return methods and {call.forward for call in log[1:]} == {log[0].index}


def _dot() -> Check:
    from shutil import which

    found = which("dot")
    return Check("dot", "✓", found) if found else Check("dot", "·", text("command.doctor.dot"))


# package -> its extension of JupyterLab, and the major version of that which belongs to the Python half:
# None where both halves carry the same number
_EXTENSIONS = {
    "anywidget": ("anywidget", None),
    "ipywidgets": ("@jupyter-widgets/jupyterlab-manager", {"8": "5"}),
    "nbautograd": ("nbautograd", None),
}


@dataclass(frozen=True)
class BrowserSide:
    """The JavaScript half of a package, as JupyterLab finds it.

    Attributes:
        version: in its package.json.
        folder: where it lies.
        majors: from the Python half's major version to this one's; None when both carry the same number.
    """

    version: str
    folder: Path
    majors: dict[str, str] | None = None

    def fits(self, python_version: str) -> bool:
        """Return True if it belongs to this version of the Python half."""
        if self.majors is None:
            return self.version.split(".")[:2] == python_version.split(".")[:2]
        return self.majors.get(python_version.split(".")[0]) == self.version.split(".")[0]


def browser_side(package: str, folders: list[str] | None = None) -> BrowserSide | None:
    """Return the first one that JupyterLab would load, or None.

    Args:
        package: ``"anywidget"``, ``"ipywidgets"`` or ``"nbautograd"``.
        folders: where to look, in this order; None asks Jupyter.
    """
    if folders is None:
        try:
            from jupyter_core.paths import jupyter_path
        except ImportError:
            return None
        folders = list(jupyter_path("labextensions"))
    name, majors = _EXTENSIONS[package]
    for folder in folders:
        try:
            about = json.loads((Path(folder, name) / "package.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return BrowserSide(str(about.get("version", "")), Path(folder, name), majors)
    return None


def kernel_python() -> str | None:
    """Return the Python that the kernel ``python3`` starts, or None when there is no such kernel."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return None
    try:
        argv = KernelSpecManager().get_kernel_spec("python3").argv
    except NoSuchKernel:
        return None
    # Jupyter itself replaces a bare "python" by the Python that it runs in
    return sys.executable if re.fullmatch(r"python(3(\.\d+)?)?", argv[0]) else which(argv[0]) or argv[0]


def same_python(other: str) -> bool:
    """Return True if this Python runs here: same folder, same binary (``python`` and ``python3`` are one)."""
    mine = Path(sys.executable)
    theirs = Path(os.path.abspath(other))
    return theirs.parent == mine.parent and theirs.resolve() == mine.resolve()
