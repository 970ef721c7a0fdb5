"""A release is made, or refused with a sentence: every reason to refuse is tripped once."""

from __future__ import annotations

import json
import sys
import zipfile
from io import BytesIO

import fn
import nbformat
import pytest
import torch
from said import pattern, says
from small_course import EXERCISES, written

from nbautograd.course import nbgrader, release
from nbautograd.course.answers import answers_of
from nbautograd.course.exercise import Exercise
from nbautograd.course.rehearse import main as rehearse_main
from nbautograd.course.rehearse import passed_untouched
from nbautograd.course.release import ReleaseError
from nbautograd.course.source import SourceError, read, stamp
from nbautograd.course.translations import stale


def make(path, lang):
    """Read a source and make its student version."""
    return release.make(read(path), lang)


def cells(release):
    return json.loads(release.notebook)["cells"]


def source_of(cell):
    return "".join(cell["source"])


def test_chinese_has_the_same_code(tmp_path):
    path = written(tmp_path)
    english, chinese = (cells(make(path, lang)) for lang in ("en", "zh"))
    assert source_of(chinese[0]) == "# 平方"
    assert "...  # 在此作答" in source_of(chinese[3])
    assert [c["id"] for c in english] == [c["id"] for c in chinese]
    assert 'nbautograd.set_language("zh")\n%load_ext nbautograd' in source_of(chinese[1])


def test_what_code_says_is_chinese_in_a_chinese_notebook(tmp_path):
    path = written(tmp_path, plain='loss = 3\nprint("the loss", loss)  # of the last step')
    path.write_text(
        path.read_text() + '\n# %% [raw] lang="zh"\n# "the loss" → "损失"\n# of the last step → 最后一步的\n'
    )
    said = {lang: source_of(cells(make(path, lang))[-2]) for lang in ("en", "zh")}
    assert said == {
        "en": 'loss = 3\nprint("the loss", loss)  # of the last step',
        "zh": 'loss = 3\nprint("损失", loss)  # 最后一步的',
    }


@pytest.mark.parametrize("line", ["of the first step → 第一步的", "of the last step"])
def test_chinese_words_of_no_code(tmp_path, line):
    path = written(tmp_path, plain="x = 1  # of the last step")
    path.write_text(path.read_text() + f'\n# %% [raw] lang="zh"\n# {line}\n')
    with pytest.raises(SourceError, match=pattern("course.words_unused")):
        make(path, "zh")


def test_two_releases_are_the_same_bytes(tmp_path):
    path = written(tmp_path)
    first, second = make(path, "en"), make(path, "en")
    assert first.files == second.files
    assert first.zipped() == second.zipped()


def test_manifest_and_zip(tmp_path):
    made = make(written(tmp_path), "en")
    with zipfile.ZipFile(BytesIO(made.zipped())) as archive:
        names = [
            f"99_squares/{name}"
            for name in ("99_squares.ipynb", "manifest.json", "own_exercises.py", "requirements.txt")
        ]
        assert sorted(archive.namelist()) == names
        manifest = json.loads(archive.read("99_squares/manifest.json"))
    assert manifest["exercises"] == [
        {"answer": "Square", "checks": "value gradient", "name": "own_square", "points": 2}
    ]
    assert manifest["points"] == 2
    assert manifest["source"] == read(tmp_path / "99_squares.py").hash
    assert any(line.startswith("torch==") and "+" not in line for line in manifest["requirements"])
    assert set(manifest["files"]) == {"99_squares.ipynb", "own_exercises.py"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nbgrader_metadata(tmp_path, lang):
    """The student's cell is graded by nobody; the locked cell below it has the points."""
    made = release.make(read(written(tmp_path)), lang, graded=True)
    found = {c["id"]: c["metadata"]["nbgrader"] for c in cells(made) if "nbgrader" in c["metadata"]}
    common = {"task": False, "schema_version": 3, "cell_type": "code"}
    assert {name: {k: v for k, v in meta.items() if k != "checksum"} for name, meta in found.items()} == {
        "code": {"grade_id": "setup", "grade": False, "solution": False, "locked": True, **common},
        "own_square": {"grade_id": "own_square", "grade": False, "solution": True, "locked": False, **common},
        "own_square-points": {
            "grade_id": "own_square-points", "grade": True, "solution": False, "locked": True, "points": 2, **common
        },
    }  # fmt: skip
    texts = {c["id"]: source_of(c) for c in cells(made)}
    assert texts["own_square"].splitlines()[-3].strip() == "### BEGIN SOLUTION"
    assert texts["own_square-points"].endswith('points("own_square", Square)')


def test_the_points_of_an_answer(tmp_path, monkeypatch):
    written(tmp_path)
    monkeypatch.chdir(tmp_path)

    def points(returned):
        answer = fn.Fn.of("Square", "x: save(x); return x * x", f"g: return {returned}")
        return nbgrader.points("own_square", answer)

    assert points("2 * ctx.saved_tensors[0] * g") == 2
    with pytest.raises(nbgrader.NoPointsError, match=pattern("course.no_points", points=2)) as refused:
        points("-2 * ctx.saved_tensors[0] * g")
    assert says(refused.value, "causes.mended_sign.what")
    assert refused.value._render_traceback_() == [str(refused.value)]
    with pytest.raises(nbgrader.NoPointsError, match="own_square"):
        nbgrader.points("own_square", ...)
    shares = EXERCISES.replace("points=2", 'points=3, shares={"value": 1}')
    (tmp_path / "own_exercises.py").write_text(shares)
    assert points("-2 * ctx.saved_tensors[0] * g") == 1
    assert points("2 * ctx.saved_tensors[0] * g") == 3
    with pytest.raises(ReleaseError, match=pattern("course.refused.untouched", exercise="own_square")):
        make(tmp_path / "99_squares.py", "en")  # the skeleton would earn the share of its forward


@pytest.mark.parametrize("shares", [{"edges": 1}, {"value": 2, "gradient": 1}])
def test_shares_that_make_no_sense(shares):
    with pytest.raises(ValueError, match="shares="):
        Exercise("s", "S", "value gradient", torch.sin, lambda draw: (draw.normal(2),), points=2, shares=shares)


def test_the_checksum_is_nbgraders():
    """Computed by nbgrader 0.9.6's own function for these cells."""
    assert nbgrader.graded("own_square", "x = 1", 2)["checksum"] == "47b8d0cefa92e90cb8ee980b6c5e645a"
    assert nbgrader.solution("own_square", "x = 1")["checksum"] == "a8d27f2cf13d7e22c727d666620925ef"
    assert nbgrader.read_only("setup", "import torch", "code")["checksum"] == "d0cdc2b363c2c02da6dcefa715c0dd70"


@pytest.mark.parametrize(
    ("changes", "reason", "told"),
    [
        ({"solution": "3 * x * grad_output"}, "solution", {"exercise": "own_square"}),
        ({"right": "x * grad_output"}, "right", {"exercise": "own_square"}),
        ({"wrong": "2 * ctx.saved_tensors[0] * grad_output"}, "wrong_passes", {"expected": "sign"}),
        ({"expects": "swapped_inputs"}, "wrong_otherwise", {"expected": "swapped_inputs", "codes": "sign"}),
        (
            {
                "tags": ' exercise="own_square"',
                "plain": "# %%exercise own_square\n### BEGIN SOLUTION\n### END SOLUTION",
            },
            "twice",
            {},
        ),
        ({"plain": "1 / 0"}, "plain", {"error": "ZeroDivisionError: division by zero"}),
        ({"plain": "if True:\n#     %pip install x"}, "plain", {}),
        ({"plain": "# return 2 * x * grad_output"}, "leak", {"where": "/cells/4/source"}),
        ({"plain": "y = 'return 2*x * grad_output'"}, "leak", {"where": "/cells/4/source"}),
        ({"markdown": "\n# > return   2 * x * grad_output"}, "leak", {"where": "/cells/2/source"}),
        ({"metadata": ' note="return 2 * x * grad_output"'}, "leak", {"where": "/cells/3/metadata/note"}),
    ],
)
def test_a_release_is_refused(tmp_path, changes, reason, told):
    with pytest.raises(ReleaseError, match=pattern(f"course.refused.{reason}", **told)):
        make(written(tmp_path, **changes), "en")


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        (["# %%exercise own_square\n"], "refused.no_magic"),
        (["# %load_ext nbautograd\n"], "refused.not_loaded"),
        (["        ### END SOLUTION\n"], "marker_alone"),
        (["        ### BEGIN SOLUTION\n", "        ### END SOLUTION\n"], "refused.untouched"),
    ],
)
def test_a_notebook_whose_exercises_nothing_would_check_is_refused(tmp_path, lines, key):
    path = written(tmp_path)
    text = path.read_text(encoding="utf-8")
    for line in lines:
        text = text.replace(line, "", 1)
    path.write_text(text, encoding="utf-8")
    with pytest.raises((ReleaseError, SourceError), match=pattern(f"course.{key}")):
        make(path, "en")


SOLUTION = "return 2 * x * grad_output"


@pytest.mark.parametrize(
    "left", ["# return 2 * x * grad_output", '"""By 2 * x * grad_output."""', "#  2*x*grad_output, see 3"]
)
def test_a_solution_left_in_the_exercise_s_own_cell_is_refused(tmp_path, left):
    """Above the solution: in a comment, or in the docstring of the method."""
    path = written(tmp_path)
    begin = "        ### BEGIN SOLUTION"
    path.write_text(path.read_text(encoding="utf-8").replace(begin, f"        {left}\n{begin}"), encoding="utf-8")
    with pytest.raises(ReleaseError, match=pattern("course.refused.leak", text=SOLUTION, where="/cells/3/source")):
        make(path, "en")


def test_what_an_exercise_declares_is_no_leak(tmp_path):
    """A formula or a declared backward says what a solution says, and has to travel with the notebook."""
    path = written(tmp_path, solution="grad_output * (2 * x)")
    declared = tmp_path / "own_exercises.py"
    text = declared.read_text()
    declared.write_text(text.replace("points=2", "points=2, vjp=lambda x, grad_output: grad_output * (2 * x)"))
    assert make(path, "en").notebook


def test_outputs_stay_with_the_author(tmp_path):
    import jupytext

    content = jupytext.read(written(tmp_path))
    output = nbformat.v4.new_output("stream", text=SOLUTION)
    for cell in content.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [output], 1
    nbformat.write(content, tmp_path / "99_squares.ipynb")
    assert all(not cell.get("outputs") for cell in cells(make(tmp_path / "99_squares.ipynb", "en")))


WORDED = fn.written("Power", "base: save(base); return base ** 2", "g: (base,) = saved; return g * base + base * g")


def test_an_answer_in_other_words_is_found_by_running_it(tmp_path):
    """No text of it is the solution's, and a text cannot tell that it is one."""
    assert release.make(read(written(tmp_path, plain=WORDED)), "en", rehearsed=True).notebook
    with pytest.raises(ReleaseError, match=pattern("course.refused.given_away", name="Power")):
        make(written(tmp_path, plain=WORDED), "en")
    assert make(written(tmp_path, plain=WORDED, tags=' tags=["shown"]'), "en").notebook


def test_what_a_student_has_is_run_untouched(tmp_path):
    """A cell below the exercise gets the skeleton, as a student's own does, and no answer."""
    assert list(passed_untouched(read(written(tmp_path, plain="class Other(Square): ...")))) == []
    found = passed_untouched(read(written(tmp_path, plain="square = lambda x: x * x")))
    assert list(found) == [("own_square", "square")]


def test_a_line_that_is_shown_on_purpose(tmp_path):
    made = make(
        written(tmp_path, tags=' tags=["shown"]', plain="def f(x, grad_output):\n    return 2 * x * grad_output"), "en"
    )
    assert "shown" not in json.dumps([cell["metadata"] for cell in cells(made)])


@pytest.mark.parametrize("plain", ["class (:", "x = '\0'"])
def test_a_cell_that_is_no_python(tmp_path, plain):
    path = written(tmp_path, tags=' tags=["raises-exception"]', plain=plain)
    with pytest.raises(SourceError, match=pattern("course.no_python")):
        make(path, "en")


@pytest.mark.parametrize(
    ("answers", "key"),
    [("@@ other: sign\n+x = 1\n", "answer_of_no_exercise"),
     ("@@ own_square: sign\n-        return 3\n+        return 4\n", "edit_misses"),
     ("@@ own_square: sign\n-    @staticmethod\n+\n", "edit_misses")],
)  # fmt: skip
def test_an_answer_that_edits_nothing(tmp_path, answers, key):
    path = written(tmp_path)
    path.with_suffix(".diff").write_text(answers, encoding="utf-8")
    with pytest.raises(SourceError, match=pattern(f"course.{key}")):
        make(path, "en")


def test_answers_are_edits_of_the_solution_or_written_out(tmp_path):
    path = written(tmp_path)
    edits = """@@ own_square: sign
     @staticmethod
-    def backward(ctx, grad_output):
+    def backward(ctx, g):
@@
-        return 2 * x * grad_output
+        return -2 * x * g
@@ own_square: right
+Square = 1
+y = 2
"""
    path.with_suffix(".diff").write_text(edits, encoding="utf-8")
    edited, whole = answers_of(read(path))
    assert edited.text.splitlines()[-4::3] == ["    @staticmethod", "        return -2 * x * g"]
    assert "def backward(ctx, g):" in edited.text
    assert (edited.expected, whole.text) == ("sign", "Square = 1\ny = 2")
    assert answers_of(read(path), tmp_path / "none.diff") == ()


def test_cells_without_a_partner(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text().replace('lang="zh" pair="intro"', 'lang="zh" pair="other"'))
    with pytest.raises(SourceError, match="intro"):
        make(path, "en")


def test_one_language_alone(tmp_path):
    path = written(tmp_path)
    text = path.read_text(encoding="utf-8")
    begin, end = text.index('# %% [markdown] lang="zh"'), text.index('# %% tags=["setup"]')
    path.write_text(text[:begin] + text[end:], encoding="utf-8")
    assert source_of(cells(make(path, "en"))[0]) == "# Squares"
    assert list(stale(read(path))) == []
    with pytest.raises(SourceError, match=pattern("course.no_language", lang="zh")):
        make(path, "zh")


def test_a_header_that_is_no_yaml_is_named_with_its_line(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("#   nbautograd:", "#  nbautograd", 1), encoding="utf-8")
    with pytest.raises(SourceError, match=r"line \d+, column \d+"):
        read(path)


def test_an_exercise_that_nobody_declared(tmp_path):
    path = written(tmp_path)
    (tmp_path / "own_exercises.py").write_text("EXERCISES = ()")
    with pytest.raises(Exception, match=pattern("course.unknown", name="own_square")):
        make(path, "en")


def test_an_old_translation_is_reported_and_marked(tmp_path):
    path = written(tmp_path, of="00000000")
    assert [(cell.metadata["pair"], now) for cell, now in stale(read(path))] == [("intro", stamp("# Squares"))]
    made = make(path, "zh")
    assert "`intro`" in str(made.warnings[0])
    assert source_of(cells(made)[0]).startswith("> *")


def test_a_rehearsal_says_what_does_not_hold(tmp_path, capsys):
    assert rehearse_main([str(written(tmp_path))]) == 0
    assert "4 answers" in capsys.readouterr().out
    assert rehearse_main([str(written(tmp_path, expects="zero_gradient"))]) == 1
    assert "must fail with 'zero_gradient'; got: sign" in capsys.readouterr().out


def test_without_jupytext(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupytext", None)
    with pytest.raises(SourceError, match=pattern("course.no_jupytext")):
        read(written(tmp_path))


@pytest.mark.parametrize("name", ["broken.ipynb", "broken.py", "broken.txt"])
def test_what_is_no_notebook_is_not_quoted(tmp_path, name):
    (tmp_path / name).write_text("secret:x:0:0:{")
    with pytest.raises(SourceError) as refused:
        read(tmp_path / name)
    assert "secret" not in str(refused.value)
