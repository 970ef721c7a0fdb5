"""The wheel has what it should and nothing else, and works in a fresh virtual environment."""

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import nbautograd

pytestmark = pytest.mark.packaging
ROOT = Path(__file__).parents[2]
LEADS = r'\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"'  # links and pictures


def expected_in_wheel():
    """Every module of the package, its data, and the notebooks, which live beside the package in the repository."""
    files = {f"nbautograd/{p.relative_to(ROOT / 'nbautograd')}" for p in ROOT.glob("nbautograd/**/*.py")}
    files |= {f"nbautograd/static/{p.name}" for p in ROOT.glob("nbautograd/static/*.[jc]s*")}
    files |= {f"nbautograd/notebooks/{p.relative_to(ROOT / 'notebooks')}" for p in ROOT.glob("notebooks/**/*.ipynb")}
    extension = ROOT / "nbautograd" / "labextension"
    data = f"nbautograd-{nbautograd.__version__}.data/data/share/jupyter/labextensions/nbautograd"
    files |= {f"{data}/{p.relative_to(extension)}" for p in extension.rglob("*.js*")}
    files |= {f"nbautograd/command/{name}" for name in ("schema.json", "skill.md")}
    return files | {"nbautograd/py.typed", *(f"nbautograd/messages/{name}.toml" for name in ("findings", "glossary"))}


def test_wheel_has_exactly_what_it_should(built):
    names = {name for name in zipfile.ZipFile(built[".whl"]).namelist() if ".dist-info/" not in name}
    assert names == expected_in_wheel()
    assert {"nbautograd/static/widget.js", "nbautograd/static/widget.css", "nbautograd/notebooks/demo.ipynb"} <= names


def test_the_readme_of_the_wheel_leads_nowhere_on_the_index(built):
    with zipfile.ZipFile(built[".whl"]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        about = wheel.read(name).decode("utf-8")
    leads = re.findall(LEADS, about)
    assert len(leads) == len(re.findall(LEADS, (ROOT / "README.md").read_text(encoding="utf-8"))) > 0
    assert [lead for lead in leads if not "".join(lead).startswith("https://")] == []


def test_sdist_has_what_one_needs_to_build_and_test(built):
    with tarfile.open(built[".gz"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "frontend/package.json", ".ci/run"}
    wanted |= {"frontend/package-lock.json", "tests/conftest.py", "notebooks/demo.ipynb", "benchmarks/import_time.py"}
    assert wanted <= names
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]


def test_sdist_leaves_out_the_courses_solutions(built):
    with tarfile.open(built[".gz"]) as sdist:
        texts = {
            m.name: sdist.extractfile(m).read() for m in sdist.getmembers() if m.isfile() and "/notebooks/" in m.name
        }
    assert texts
    assert [name for name in texts if "/notebooks/source" in name] == []
    assert [name for name, text in texts.items() if name[-3:] != ".md" and b"### BEGIN SOLUTION" in text] == []


def run(fresh, *words):
    """Run a program of the fresh environment, far away from the checkout."""
    environment = {**os.environ, "NBAUTOGRAD_LANG": "en"}
    environment.pop("PYTHONPATH", None)
    program = [str(fresh / "bin" / words[0]), *words[1:]]
    return subprocess.run(program, cwd=fresh, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_the_command_works_from_the_wheel(fresh):
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
    code = "from nbautograd.command.places import guide; print(guide('demo', 'en')); print(guide('demo', 'zh'))"
    result = run(fresh, "python", "-c", code)
    assert result.returncode == 0, result.stderr
    for line in result.stdout.split():
        assert line.startswith(str(fresh.resolve()))


def test_jupyterlab_finds_the_extension_of_the_wheel(fresh):
    """And nothing of it lies in the package as well; asked for with what looks for it in JupyterLab itself."""
    assert not list(fresh.glob("lib/*/site-packages/nbautograd/labextension"))
    folder = fresh / "share" / "jupyter" / "labextensions"
    about = json.loads((folder / "nbautograd" / "package.json").read_text(encoding="utf-8"))
    assert about["version"] == nbautograd.__version__
    assert (folder / "nbautograd" / about["jupyterlab"]["_build"]["load"]).is_file()
    environment = {**os.environ, "JUPYTER_PATH": str(fresh / "share" / "jupyter")}
    listed = [sys.executable, "-m", "jupyterlab.labextensions", "list"]
    shown = subprocess.run(listed, env=environment, capture_output=True, text=True)
    (line,) = [row for row in (shown.stdout + shown.stderr).splitlines() if "nbautograd" in row]
    assert "enabled" in line
    assert "OK" in line
