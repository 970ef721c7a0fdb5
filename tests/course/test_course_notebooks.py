"""Our own course: what its authors promised of every answer, that the hand-outs are fresh, and that they run."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import json
import os
import re
from pathlib import Path

import pytest
from said import either

from nbautograd import messages
from nbautograd.core.user_source import function_class
from nbautograd.course import rendering as _registers  # noqa: F401
from nbautograd.course import source as notebooks
from nbautograd.course import student
from nbautograd.course.answers import answers_of
from nbautograd.course.catalogue import find
from nbautograd.course.draw import InputGenerator
from nbautograd.course.mutants import mutants
from nbautograd.course.rehearse import _define, _tried, passed_untouched, rehearse
from nbautograd.course.release import make
from nbautograd.course.run import check
from nbautograd.course.sentences import LEVELS
from nbautograd.course.translations import stale
from nbautograd.views.bundle import html, text

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "notebooks" / "source").glob("[0-9][0-9]_*.py"))
NAMES = [source.stem for source in SOURCES]
source_at = functools.cache(notebooks.read)


def answers_at(path):
    """The file of known answers: beside the tests, as a source is there to be read and translated."""
    return Path(__file__).with_name("answers") / f"{path.stem}.diff"


each_source = pytest.mark.parametrize("path", SOURCES, ids=NAMES)
LANGUAGES = ("en", "zh")
RIGHT = re.compile(r"✓ [^`\s]+ `")  # the verdict of an exercise, and its name
SECONDS = 90
# The grammar of repair makes the mutants, so their numbers change with it. That each test finds more than the one
# before does not.
EACH_BETTER = r"'it_runs': 0, 'right_values': 0, 'at_ones': (\d|1[0-3]), 'one_row': 1[4-8], 'upstream_ones': 1[89]"
# What the text beside a cell says of its output: a line of the cell, and what it must print.
CLAIMS = {
    "01_first_function": (
        (
            "pairs = {",
            r"B Function arrows to \['AccumulateGrad', 'AccumulateGrad'\]\nB native   arrows to \['AccumulateGrad'\]",
        ),
        ("nbautograd.backward(w5)", r"w1 .* 5\.078"),
        ("class Forgetful", r"\+=  loss 10\.\d+ -> 0\.000\s+=  loss 10\.\d+ -> [1-9]"),
    ),
    "02_vector_jacobian_products": (
        ("(g.flatten() @ J)", r"(\[\[ 4\., 13\.\],\s+\[-1\., -4\.\]\][\s\S]*){2}"),
        ("PrintingLinear.apply(A, B)", r"grad_weight= tensor\(\[\[2., 2., 2.\],\s+\[4., 4., 4.\]\]"),
        ("PrintingLinear.apply(A, B)", r"grad_bias= None"),
        (
            "class Another",
            r"g Wᵀ: loss 0\.93\d -> 0\.0\d+\s+g B, random: \S+ \S+ -> 0\.0[12]\d+\s+0, frozen: \S+ \S+ -> 0\.0[3-9]",
        ),
        ("class Deaf", r"\[True, True\]"),
        ("%gradcheck Deaf", r"✗"),
        ("class LostTranspose", r"≠"),
        ("(LinearFunction, Another)", r"LinearFunction right\s+Another wrong"),
    ),
    "03_checking_gradients": (
        ("for function in (Linear, NoTranspose)", r"\[True, False\]"),
        ("torch.autograd.gradcheck(Linear.apply, (data, weights)", r"True"),
        ("for mutant in (A, B, C, D)", r"\[True, True, True, True\]"),
        ("%gradcheck C.apply(x)", r"second ones are silently wrong|二阶"),
        ("nbautograd.gradcheck(D.apply", r"\['right', 'wrong'\]"),
        ("torch.autograd.gradcheck(NoTranspose.apply, (same, w))", r"torch: True"),
        (
            "%gradcheck NoTranspose.apply(same, w)",
            r"right here\s+but\s+wrong\s+at\s+other|其他输入上却是错的",
        ),
    ),
    "04_ctx_contract": (
        ("returns = {", r"A refused[^\n]*\nB no error\nC refused[^\n]*\nD refused[^\n]*\nE no error\nF no error"),
        ("LinearFunction.apply(x, w), linear(x, w)", r"the same without a bias: True"),
        ("class Square", r"tensor\(8\.,"),
        ("%autograd_calls Twice", r"grad_double f64 3×4[,，] ?grad_triple f64 3×4"),
        ("%autograd_compare KillHead.apply", f"({either('views.compare.equal')}[\\s\\S]*){{2}}"),
        ("descend(KillHead.apply)", r"to the last digit: True"),
        ("class TwoCopies", r"✗[^\n]*12/144"),
    ),
    "05_reductions_and_normalisation": (
        ("reductions.items()", r"logsumexp \[0\.09, 0\.39, 0\.18, 0\.02, 0\.32\] together 1\.0"),
        ("far.softmax(0)", r"apart: loss inf, gradient \[nan, nan\]\s+together: loss 1000, gradient \[-1\.0, 1\.0\]"),
        ("def first_path_alone", r"all three paths: loss \S+ -> 0\.00\d+\s+one path: loss \S+ -> 0\.0"),
        ("nbautograd.gradcheck(normalise", r"right\s+wrong"),
    ),
    "06_kinks_and_surrogates": (
        ("def four(x)", r"0  0\.0 ≠ 0\.5\s+1 +0\.0\s+2  1\.0 ≠ 0\.5\s+3 +0\.5"),
        ("%gradcheck torch.relu(origin)", r"∠"),
        ("class HonestRound", r"✓[^\n]*0/9"),
        ("%autograd_graph fired", r"SpikeBackward \(fired\)[\s\S]*\nw "),
        ("the true derivative", r"your surrogate: loss 0\.\d+ -> 0\.00\s+the true derivative: loss (0\.\d+) -> \1"),
    ),
    "07_in_place_and_saved_tensors": (
        (
            "program in programs",
            r"exp, then y +raises[^\n]*\nexp, then h +works\nsin, then y +works\nsin, then h +raises[^\n]*\n"
            r"3 \* h, then h +works\nh \* h, then h +raises[^\n]*\nrelu, then y +raises[^\n]*\nh \+ h, then h +works",
        ),
        ("%autograd_graph chain", r"ExpBackward0 .*24 B\nSinBackward0 .*24 B\nMulBackward0 .* 8 B"),
        (
            "z = y**2\ny += 1",
            r"modified by an inplace operation.*output 0 of Add.* is at version 1; expected version 0",
        ),
        ("UnmarkedExp.apply(h)", r"UnmarkedExpBackward \(y\).*\nMulBackward0 \(h\)"),
        ("Greedy.apply(w, 3.0)", r"\nw +1 +6\.0"),
        ("class LeakyTanh", r"✓[^\n]*0/9[\s\S]*`ctx\.y`[\s\S]*`ctx\.save_for_backward`"),
        ("row.mul_(10)", r"is a view and is being modified inplace.* would override the custom backward"),
    ),
    "08_double_backward": (
        ("cubes_then_squares(HonestCube.apply)", r"right:  tensor\(\[ 2.4000, -9.6000, 14.4000\]"),
        ("cubes_then_squares(HonestCube.apply)", r"silent: tensor\(\[ 0.6000, -2.4000,  3.6000\]"),
        ("cubes_then_squares(HonestCube.apply)", r"unused: \(None,\)"),
        ("cubes_then_squares(HonestCube.apply)", r"loud:   trying to differentiate twice"),
        (
            "class ForgetfulTanh",
            r"penalty 0\.\d\d, smallest 0\.000\d, .*\n[^\n]*forgets: penalty 0\.\d\d, smallest 0\.0[12]",
        ),
        ("class ForgetfulTanh", r"forgets: .*at the end 0\.0[3-9]"),
    ),
    "09_forward_mode_vmap_func": (
        ("class SlippedSquare", r"jvp[\s\S]*33 ?%[\s\S]*✓[^\n]*0/9"),
        ("per_sample(plane", r"size of the sum 0\.000, the three largest: \[11, 37, 52\]"),
        ("grad(lambda weight", r"must override the setup_context staticmethod"),
        ("class Peek", r"Size\(\[5, 2\]\)[\s\S]*'in_dims': \(None, 1\), 'A': \(2, 3\), 'x': \(3, 5\), 'batch': 5"),
        ("(x**3).sum()", r"0  1\.8   0\.0 +0\.0\n +1  0\.0  -7\.2 +0\.0"),
    ),
    "10_modules_and_old_code": (
        ("OldTranspose(0, 2)", r"Legacy autograd function with non-static forward method is deprecated\ntoday: True"),
        (
            "class Home(nn.Module)",
            r"\['parameter', 'buffer'\]\n[^\n]*'plain': torch\.float32, 'buffer': torch\.float64",
        ),
        ("y = linear(x, w)", r"\nWeightedSumBackward \(y\) .*\nw +3×4\n"),
        (
            "class AddConstant",
            r"@staticmethod[\s\S]*def forward\(ctx, tensor, constant\)[\s\S]*return grad_output, None",
        ),
        ("class Homeless", r"4 parameters, loss \S+ -> 0\.00"),
        ("class Homeless", r"3 parameters, loss \S+ -> 0\.[2-9].*\s+.*moved by up to 0\s"),
        ("notes_of_2017()(4, 3)", r"cannot assign parameters before Module.__init__\(\) call"),
    ),
    "11_code_that_is_not_pytorch": (
        (
            "situations = {",
            r"in a test .*True.*True.*True\n.*million.*False.*True.*True\n.*closed.*True.*True.*True\n.*float16.*False",
        ),
        ("np.exp(torch.zeros(2))", r"tensor\(\[1\., 1\.\][^\n]*\nCan't call numpy\(\) on Tensor that requires grad"),
        ("--order 2 NumericalSin", r"@once_differentiable"),
        ("Approximate.apply(two", r"0.1 12.61.*\n0.0001 12.0006.*\n1e-08 (11.9999|12.0000)"),
    ),
    "12_extending_torch": (
        ("torch.mean(Stranger(5, 2))", r"mean\(\): argument 'input' \(position 1\) must be Tensor, not Stranger"),
        ("class Guest", r"0\.4\nTypeError"),
        ("ScalarTensor)[before", r"(?s)\A(?!.*torch\.mean).*torch\.add"),
        ("class Eager", r"RecursionError"),
        ("class Forgetful", r"Forgetful no unit\nForgetful no unit\nForgetful no unit"),
        ("kept = smooth", r"units: m m m"),
    ),
    "16_below_autograd": (
        ("class Peek", r"mul\.Tensor[\s\S]*sum[\s\S]*ones_like[\s\S]*expand[\s\S]*mul\.Tensor[\s\S]*add[\s\S]*detach"),
        ("print(points.grad)", r"loss \d+\.\d+\ntensor\(\[(\[nan, nan\],?\s*){6}\]\)"),
        ("class Sizes", r"aten\.div\.Tensor is operation (\d+) of \d+, and backward begins with operation (?!\1)\d+"),
        (
            "masked_before",
            r"masked_after +first: aten\.div\.Tensor, finite: False\nmasked_before first: None, finite: True",
        ),
    ),
    "13_implicit_differentiation": (
        ("def newton_sqrt", r"4 steps: +4000 bytes, relative error 3e-05 of the value, 4e-04 of the gradient"),
        ("def newton_sqrt", r"5 steps:.*error 5e-10 of the value, 1e-08 of the gradient\n +6 steps:.*0e\+00.*0e\+00"),
        ("def newton_sqrt", r"16 steps: +13600 bytes"),
        ("exact, implicit =", r"implicit: 3360 bytes\nerror of the implicit gradient: (0e\+00|\de-1\d)"),
        ("def held_out", r"strength 0\.018 -> 11\.\d+, best on the grid 11\."),
    ),
    "15_an_operation_of_your_own": (
        ("class Pool", r"negate[\s\S]*values\)\.mean\(1[\s\S]*factor[\s\S]*left out[\s\S]*gradients exchanged"),
        ("tests = [it_runs", EACH_BETTER),
        ("tests = [it_runs", r"'all_random': 20"),
        ("own_tests = shipped", r"score: 20 of 20"),
    ),
    "14_saving_memory": (
        ("class Ledger", r"1\.57 MB at the top; one activation takes 0\.066 MB"),
        ("def chained", r"chained +keeps 5\.0 times.*\ntorch +keeps 1\.0 times.*\nyours +keeps 1\.0 times"),
        ('"two layers"', r"two layers 1\.80 MB wait\nyours +0\.41 MB wait\nthe same gradients: True"),
        ("class Behind", r"(as it is|in place|checkpoints|both) .*the same gradients: True\n" * 4),
        ("class Behind", r"as it is +1\.57 MB[^\n]*\nin place +0\.79 MB[^\n]*\ncheckpoints +0\.52 MB"),
    ),
}


def by_day(*values, day):
    name = "-".join(getattr(value, "stem", value) for value in values)
    return pytest.param(*values, marks=() if day else pytest.mark.nightly, id=name)


@each_source
def test_a_notebook_has_what_it_should(path):
    source = source_at(path)
    assert 3 <= len(source.answers) <= 6
    for cell in source.answers:
        expected = [a.expected for a in answers_of(source, answers_at(path)) if a.exercise == cell.exercise]
        assert len({*expected} - {"right"}) >= 2, cell.exercise
        assert "right" in expected, cell.exercise
        assert list(notebooks.solution_lines(cell)), cell.exercise
        assert find(cell.exercise).name == cell.exercise
    assert "setup" in next(cell for cell in source.cells if cell.kind == "code").tags
    assert source.cells[-1].text.strip() == "%exercises"
    assert {"course", "title_en", "title_zh", "minutes"} <= set(source.metadata)
    assert int(source.metadata["minutes"]) <= 95
    assert [cell.metadata["pair"] for cell, _ in stale(source)] == []


def without_strings(content):
    """Return what the code of a notebook does, whatever it says."""
    texts = [notebooks.without_magics(cell.source) for cell in content.cells if cell.cell_type == "code"]
    trees = [ast.parse(text.replace(notebooks.PLACEHOLDER["zh"], notebooks.PLACEHOLDER["en"])) for text in texts]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
        elif isinstance(node, ast.JoinedStr):  # Chinese may put what is filled in into another order
            node.values = sorted((v for v in node.values if not isinstance(v, ast.Constant)), key=ast.dump)
    return [ast.dump(tree) for tree in trees]


@each_source
def test_chinese_words_change_no_code(path):
    english, chinese = (without_strings(student.notebook(source_at(path), lang, [])) for lang in ("en", "zh"))
    assert english == chinese


@pytest.mark.parametrize("path", [by_day(path, day=path.stem[:2] in ("07", "11", "12")) for path in SOURCES])
@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_every_answer_comes_out_as_promised(path):
    all_tried = list(rehearse(source_at(path), answers_at(path)))
    assert [str(tried) for tried in all_tried if not tried.holds] == []
    for tried in all_tried:
        assert_drawn(tried.result)


# answers of notebooks that are tried at night, whose sentences nothing else by day says
RARE = {
    "01": "multiply cannot_call",
    "05": "logsumexp exception_shapes_elementwise",
    "06": "find_kinks mutates_input",
    "08": "numpy_sin double_backward_wrong, numpy_sin double_backward_raised",
    "16": "counting_wrapper counts_wrong, counting_wrapper tuple_not_wrapped, op_log names_wrong",
}


@pytest.mark.parametrize("number", RARE)
def test_a_rare_answer_comes_out_as_promised(number):
    path = next(path for path in SOURCES if path.stem.startswith(number))
    source, namespace = source_at(path), {"__name__": "__main__"}
    for cell in source.cells:
        if "setup" in cell.tags:
            _define(cell.text, namespace)
    wanted = [tuple(pair.split()) for pair in RARE[number].split(", ")]
    answers = [a for a in answers_of(source, answers_at(path)) if (a.exercise, a.expected) in wanted]
    tried = [_tried(find(a.exercise), "wrong", a.text, namespace, a.expected) for a in answers]
    assert len(tried) >= len(wanted)
    assert [str(one) for one in tried if not one.holds] == []


@pytest.mark.parametrize("path", [by_day(path, day=path.stem.startswith("04")) for path in SOURCES])
@pytest.mark.slow
def test_mutants_of_the_solutions_fail(path):
    """Beyond the answers that somebody wrote down: a solution with one small edit in its backward."""
    namespace = {"__name__": "__main__"}
    survivors, count = [], 0
    for cell in source_at(path).cells:
        if cell.kind == "code":
            _define(notebooks.solved(cell), namespace)
        exercise = find(cell.exercise) if cell.is_answer else None
        if exercise is None or exercise.formula is None or exercise.apply is not None or exercise.vjp is not None:
            continue
        solution = namespace[exercise.answer]
        if function_class(solution) is None:
            continue
        points = [exercise.inputs(InputGenerator(turn, turn)) for turn in range(3)]
        for mutant in mutants(function_class(solution), points, count=2):
            count += 1
            answer = mutant.function if isinstance(solution, type) else mutant.function.apply
            survivors += [str(mutant)] if check(exercise, answer).passed else []
    assert survivors == []
    assert count or path.stem[:2] in ("03", "06", "10", "12", "15", "16"), "no solution has a mutant"


@each_source
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_nothing_that_is_handed_out_is_an_answer(path):
    assert list(passed_untouched(source_at(path))) == []


def assert_drawn(result):
    """It shows itself in both languages with all hints, with no place left open."""
    for lang, hints in itertools.product(LANGUAGES, LEVELS):
        with messages.speaking(lang):
            shown = dataclasses.replace(result, hints=hints)
            drawn = text(shown) + html(shown)
            assert all(outcome.sentences(hints) for outcome in shown.outcomes if outcome.state == "failed")
        assert not re.search(r"\{(input|said|error|got|expected|value)\}", drawn), drawn


@each_source
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_hand_out_is_a_fresh_release(path, lang):
    """Trips when a source, an exercise's points or the release changes: run `nbautograd release notebooks/source`."""
    made = make(source_at(path), lang, rehearsed=True)
    committed = ROOT / "notebooks" / lang / f"{path.stem}.ipynb"
    assert committed.read_text(encoding="utf-8") == made.notebook


@pytest.mark.skipif(not SOURCES, reason="an sdist has no solutions")
def test_no_hand_out_without_a_source():
    handed_out = {path.stem for lang in LANGUAGES for path in (ROOT / "notebooks" / lang).glob("*.ipynb")}
    assert handed_out == set(NAMES)


def executed(content, lang):
    """Run a notebook in a kernel of its own; errors stay in the outputs."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    # the machine speaks English: the notebook says itself which language it speaks
    env = {**os.environ, "NBAUTOGRAD_LANG": "en", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    notebook = nbformat.reads(json.dumps(content), as_version=4)
    quiet = Config({"KernelManager": {"transport_encryption": "auto"}})  # else the kernel warns on stderr
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", allow_errors=True, config=quiet)
    client.execute(cwd=str(ROOT / "notebooks" / lang), env=env)
    return notebook.cells


def answered(path, lang):
    """The hand-out with the solutions filled in."""
    answers = {cell.exercise: notebooks.solved(cell) for cell in source_at(path).answers}
    content = content_of(path, lang)
    for cell in content["cells"]:
        if exercise_of(cell):
            cell["source"] = answers[exercise_of(cell)]
    return content


def content_of(path, lang):
    return json.loads((ROOT / "notebooks" / lang / f"{path.stem}.ipynb").read_text(encoding="utf-8"))


def errors(cell):
    return [f"{o['ename']}: {o['evalue']}" for o in cell.get("outputs", []) if o["output_type"] == "error"]


def said(cell):
    """What a cell put out; a line of a stream may have come in several pieces."""
    text = ""
    for output in cell.get("outputs", []):
        plain = output.get("data", {}).get("text/plain")
        text += str(output.get("text", "")) if plain is None else f"\n{plain}\n"
    return text


def drawn(cell):
    """Return True if a cell plots (agg shows nothing), or one of our pictures is among what it put out."""
    pages = [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])]
    return "plt." in cell.source or any("<svg" in page or "<img" in page for page in pages)


def exercise_of(cell):
    return cell.get("metadata", {}).get("nbautograd", {}).get("exercise")


@pytest.mark.parametrize(
    ("path", "lang"),
    [by_day(path, lang, day=lang == "en" and number % 2) for number, path in enumerate(SOURCES) for lang in LANGUAGES],
)
@pytest.mark.notebooks
def test_with_the_reference_answers(path, lang):
    """Every cell runs, every exercise is right."""
    cells = executed(answered(path, lang), lang)
    meant = [c for c in cells if "raises-exception" in c.metadata.get("tags", [])]
    assert [errors(cell) for cell in cells if errors(cell) and cell not in meant] == []
    assert {
        exercise_of(c): said(c).splitlines()[-2:] for c in cells if exercise_of(c) and not RIGHT.search(said(c))
    } == {}
    assert "✓" in said(cells[-1])
    assert any(map(drawn, cells)), "a notebook has a picture"
    claims = CLAIMS.get(path.stem, ()) if lang == "en" else ()  # in Chinese the same code prints other words
    assert [
        line
        for line, pattern in claims
        if not any(re.search(pattern, "\n".join([said(c), *errors(c)])) for c in cells if line in c.source)
    ] == []


@pytest.mark.parametrize(
    ("path", "lang"),
    [by_day(path, lang, day=path.stem[:2] == day) for path in SOURCES for lang, day in (("en", "01"), ("zh", "10"))],
)
@pytest.mark.notebooks
def test_untouched(path, lang):
    """The cells of the exercises say that they are not answered yet; none raises, nor does one that needs an answer."""
    cells = executed(content_of(path, lang), lang)
    asked = [cell for cell in cells if exercise_of(cell)]
    meant = [c for c in cells if "raises-exception" in c.metadata.get("tags", [])]
    assert [(errors(cell), cell.source[:60]) for cell in cells if errors(cell) and cell not in meant] == []
    with messages.speaking(lang):
        unanswered = messages.text("course.chip.unanswered")
    assert [exercise_of(cell) for cell in asked if unanswered not in said(cell)] == []
    assert errors(cells[-1]) == []
