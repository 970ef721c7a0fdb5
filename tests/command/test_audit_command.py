"""nbautograd audit: a program run as Python runs it, and what its exit status says."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path

import pytest
from fn import BASE, written
from said import pattern, says

from nbautograd import messages
from nbautograd.command import main
from nbautograd.core.checking import gradcheck as core_gradcheck
from nbautograd.inspection import audit_checks

FUNCTION = "import sys\nimport torch\n" + written(
    "Scaled", "x: save(x); return x.exp()", "grad: (x,) = saved; return {factor} * grad * x.exp()", base=BASE
)
CALL = "\nif __name__ == '__main__':\n    Scaled.apply(torch.randn(3, requires_grad=True)).sum().backward()\n"


def program(tmp_path: Path, factor: int = 1, more: str = "", name: str = "program.py") -> str:
    path = tmp_path / name
    path.write_text(FUNCTION.format(factor=factor) + CALL + textwrap.dedent(more))
    return str(path)


def test_status_0_where_every_gradient_is_right(tmp_path, capsys) -> None:
    assert main(["audit", program(tmp_path)]) == 0
    assert messages.text("views.audit.right", count=1) in capsys.readouterr().out


def test_status_1_where_one_is_wrong_and_files_are_written_besides(tmp_path, capsys) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    assert main(["audit", "--json", str(out), "--html", str(page), program(tmp_path, 2)]) == 1
    assert "report.functions" not in capsys.readouterr().out
    data = json.loads(out.read_text())
    [function] = data["functions"]
    assert (function["name"], function["line"]) == ("Scaled", 3)
    assert function["situations"][0]["verdict"] == "wrong"
    assert function["situations"][0]["fix"]["line"] == 12
    assert "Scaled" in page.read_text()
    assert '<meta name="color-scheme" content="light dark">' in page.read_text()
    assert main(["audit", "--html", str(page), program(tmp_path, 1)]) == 0  # a page of ours is replaced


def test_a_page_of_somebody_elses_is_left_alone(tmp_path, capsys) -> None:
    page = tmp_path / "mine.html"
    page.write_text("mine")
    assert main(["audit", "--html", str(page), program(tmp_path)]) == 2
    assert page.read_text() == "mine"


def test_the_program_has_its_own_arguments_name_and_path(tmp_path, capsys) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 5")
    more = """
    import beside
    print([__name__, sys.argv[1:], beside.VALUE, sys.modules['__main__'].Scaled is Scaled])
    """
    before = list(sys.path), list(sys.argv), sys.modules["__main__"]
    assert main(["audit", program(tmp_path, 1, more), "--lr", "3", "-m", "x"]) == 0
    assert "['__main__', ['--lr', '3', '-m', 'x'], 5, True]" in capsys.readouterr().out
    assert (list(sys.path), list(sys.argv), sys.modules["__main__"]) == before


def test_a_module_is_run_as_python_m_does(tmp_path, capsys, monkeypatch) -> None:
    package = tmp_path / "audited_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("VALUE = 7")
    program(package, 2, "from .other import VALUE\nprint(VALUE, __package__, sys.argv[1:])", "__main__.py")
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "-m", "audited_package", "one"]) == 1
    assert "7 audited_package ['one']" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ("raise ValueError('no more')", 2, "ValueError: no more"),
        ("sys.exit(3)", 2, "the program ended (status 3)"),
        ("sys.exit()", 0, ""),
        ("raise KeyboardInterrupt", 2, "(KeyboardInterrupt)"),
    ],
)
def test_a_program_that_does_not_reach_its_end_is_told_and_what_ran_is_checked(tmp_path, capsys, more, status, words):
    out = tmp_path / "out.json"
    assert main(["audit", "--json", str(out), program(tmp_path, 1, more)]) == status
    said = capsys.readouterr()
    data = json.loads(out.read_text())
    assert data["complete"] is (status == 0)
    unseen = messages.text("audit.program_raised", error="").partition(":")[2]
    assert any(unseen in note for note in data["notes"]) is (status == 2)
    assert words in said.err
    assert "command/audit.py" not in said.err
    assert messages.text("views.audit.right", count=1) in said.out


@pytest.mark.parametrize("checked", [0, 1])
def test_status_2_where_the_checks_are_interrupted_and_how_many_were_made_is_told(
    tmp_path, capsys, monkeypatch, checked
) -> None:
    made = []

    def interrupted(*args, **options):
        if len(made) == checked:
            raise KeyboardInterrupt
        made.append(args)
        return core_gradcheck.gradcheck(*args, **options)

    monkeypatch.setattr(audit_checks, "gradcheck", interrupted)
    more = "class Other(Scaled): pass\nOther.apply(torch.randn(3, requires_grad=True))"
    assert main(["audit", program(tmp_path, 1, more)]) == 2
    said = capsys.readouterr().out
    assert says(said, ["views.audit.unchecked", "views.audit.unchecked_some"][checked], count=2)
    assert says(said, "audit.interrupted", checked=checked, count=2)
    good = ("views.audit.right", "views.audit.unchecked_some", "views.audit.unsure")
    assert any(says(said, key) for key in good) == bool(checked)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py"], "nowhere.py: No such file"),
        (["-m", "no_such_module_here"], pattern("command.program.no_module", module="no_such_module_here")),
        (["-m", "no_such.module.here"], pattern("command.program.no_module", module="no_such.module.here")),
        ([], pattern("command.program.nothing")),
    ],
)
@pytest.mark.parametrize("command", ["audit", "explain"])
def test_status_2_where_there_is_nothing_to_run(capsys, command: str, arguments: list[str], words: str) -> None:
    assert main([command, *arguments]) == 2
    assert re.search(f"nbautograd: .*{words}", capsys.readouterr().err)


@pytest.mark.slow
def test_scripts_that_show_what_is_wrong_are_written_on_request(tmp_path, capsys) -> None:
    assert main(["audit", "--repro", str(tmp_path / "repro"), program(tmp_path, 2)]) == 1
    assert (tmp_path / "repro" / "repro_Scaled.py").exists()
    assert "repro_Scaled.py" in capsys.readouterr().out
