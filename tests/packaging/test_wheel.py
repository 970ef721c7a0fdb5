"""The wheel has what it should and nothing else, and works in a fresh virtual environment."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging
ROOT = Path(__file__).parents[2]
MADE_HERE = ("build", "dist", "*.egg-info", "__pycache__", "node_modules", "artifacts", "my-notebooks", ".*_cache")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", *MADE_HERE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is made from it, as one would publish them."""
    source, out = tmp_path_factory.mktemp("source") / "nbautograd", tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return {path.suffix: path for path in out.iterdir()}


def expected_in_wheel():
    """Every module of the package, its data, and the notebooks, which live beside the package in the repository."""
    files = {f"nbautograd/{p.relative_to(ROOT / 'nbautograd')}" for p in ROOT.glob("nbautograd/**/*.py")}
    files |= {f"nbautograd/static/{p.name}" for p in ROOT.glob("nbautograd/static/*.[jc]s*")}
    files |= {f"nbautograd/notebooks/{p.relative_to(ROOT / 'notebooks')}" for p in ROOT.glob("notebooks/**/*.ipynb")}
    return files | {"nbautograd/py.typed"}


def test_wheel_has_exactly_what_it_should(built):
    names = {name for name in zipfile.ZipFile(built[".whl"]).namelist() if ".dist-info/" not in name}
    assert names == expected_in_wheel()
    assert {"nbautograd/static/widget.js", "nbautograd/static/widget.css", "nbautograd/notebooks/demo.ipynb"} <= names


def test_sdist_has_what_one_needs_to_build_and_test(built):
    with tarfile.open(built[".gz"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "frontend/package.json", ".ci/run"}
    wanted |= {"frontend/package-lock.json", "tests/conftest.py", "notebooks/demo.ipynb", "benchmarks/import_time.py"}
    assert wanted <= names
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]


@pytest.fixture(scope="module")
def fresh(built, tmp_path_factory):
    """A new virtual environment with the wheel. It borrows the dependencies of this one, torch is too large to copy."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*command, str(built[".whl"])], check=True, stdin=subprocess.DEVNULL)
    (site,) = folder.glob("lib/python*/site-packages")
    # a path in a .pth file is searched last, and .pth files in there (the editable install's) are not read
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(fresh, *words):
    """Run a program of the fresh environment, far away from the checkout."""
    environment = {**os.environ, "NBAUTOGRAD_LANG": "en"}
    environment.pop("PYTHONPATH", None)
    program = [str(fresh / "bin" / words[0]), *words[1:]]
    return subprocess.run(program, cwd=fresh, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_the_command_works_from_the_wheel(fresh):
    import nbautograd

    for words in (("nbautograd", "--version"), ("python", "-m", "nbautograd", "--version")):
        assert run(fresh, *words).stdout == f"nbautograd {nbautograd.__version__}\n"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_course_is_copied_from_the_wheel(fresh, lang, tmp_path):
    """Without a network, and without any solution: the sources stay in the repository."""
    run(fresh, "nbautograd", "course", "copy", str(tmp_path), "--lang", lang)
    originals = {path.name: path.read_bytes() for path in (ROOT / "notebooks" / lang).glob("*.ipynb")}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == originals
    assert originals


def test_the_package_comes_from_the_wheel_and_finds_its_notebooks(fresh):
    code = "from nbautograd.command.places import demo; print(demo('en')); print(demo('zh'))"
    result = run(fresh, "python", "-c", code)
    assert result.returncode == 0, result.stderr
    for line in result.stdout.split():
        assert line.startswith(str(fresh.resolve()))


def test_a_gradcheck_works_from_the_wheel(fresh):
    code = (
        "import torch, nbautograd\n"
        "x = torch.ones(2, dtype=torch.float64, requires_grad=True)\n"
        "print(nbautograd.gradcheck(torch.sin, (x,)).verdict)"
    )
    result = run(fresh, "python", "-c", code)
    assert result.stdout == "right\n", result.stderr
