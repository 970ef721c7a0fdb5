"""The bar of long work: there when it takes a while, and replaced by what comes of it, also of an interrupt."""

import math
import signal
from types import SimpleNamespace

import pytest
from fn import written
from IPython.utils.capture import capture_output
from notebook_shell import DOUBLE
from said import says

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.course import catalogue
from nbautograd.course.exercise import Exercise
from nbautograd.magics import progress
from nbautograd.magics.output import Cards
from nbautograd.magics.progress import PATIENCE, ProgressBar


class Clock:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


@pytest.fixture
def told(bare):
    """Makes a bar that is told how far the work is at some moments, and gives it with what it showed."""

    def tell(*moments):
        clock = Clock()
        with capture_output() as captured:
            bar = ProgressBar(bare.shell, now=clock)
            for moment, done in moments:
                clock.time = moment
                bar(done, 200, "d y / d x")
        return bar, captured.outputs

    return tell


@pytest.fixture
def at_once(monkeypatch):
    """Every step shows the bar."""
    monkeypatch.setattr(progress, "PATIENCE", -1)
    monkeypatch.setattr(progress, "PAUSE", -1)


START = PATIENCE + 0.01


def test_a_quick_check_shows_none(told):
    bar, outputs = told((0.1, 10), (PATIENCE / 2, 100))
    assert outputs == []
    assert bar.show_instead("report") is False
    assert bar.close() is False


def test_nobody_counts_what_comes_after_the_verdict(bare):
    bar = ProgressBar(bare.shell)
    bar.verdict_known(GradcheckReport("F", "wrong"))
    assert bar.state().percent is None
    with bar:  # the next work
        assert bar.state().percent is None
        bar(1, 10, "d y / d x")
        assert bar.state().percent == 10


def test_a_terminal_gets_one_line_and_the_report_below_it(bare, capsys):
    clock = Clock()
    bar = ProgressBar(bare.shell, now=clock)
    for moment in range(1, 5):
        clock.time = moment
        bar(moment, 200, "d y / d x")
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert bar.show_instead("the report") is False


def test_one_long_step_has_a_bar_too(bare, at_once):
    """Nobody tells: the bar's own thread shows it."""
    shown = []
    publisher = SimpleNamespace(publish=lambda bundle, *_, **__: shown.append(bundle))
    bar = ProgressBar(SimpleNamespace(display_pub=publisher), "Running")
    with bar:
        while not shown:
            pass
    assert shown[0]["text/plain"].startswith("Running (")


@pytest.fixture
def interruptible():
    """A shell that starts the tests in the background has interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "call",
    [
        "%gradcheck Double.apply(x)",
        "%jacobian Double.apply(x)",
        "nbautograd.gradcheck(Double, x)",
        "%autograd_compare Double.apply(x) torch.mul(x, 2)",
        "nbautograd.inspect(Double, x)",
        "nbautograd.compare(Double, torch.exp, (x,))",
    ],
)
def test_what_the_cell_shows_next_takes_the_bars_place(notebook, monkeypatch, call):
    notebook(f"import nbautograd\n{CELL.partition(chr(10))[2]}")
    notebook("x = torch.ones(3, dtype=torch.float64, requires_grad=True)")
    seen_at_once(monkeypatch)
    ran = notebook(call)
    assert says(ran.bundles[0]["text/plain"], "magics.progress")
    assert "Double" in ran.updates[-1]["text/plain"]
    assert len(ran.bundles) - len(ran.updates) == 1  # one output, and nothing beside it
    monkeypatch.setattr(progress, "PATIENCE", math.inf)
    assert "Double" in notebook("nbautograd.gradcheck(Double, x)").text  # the next value is shown where it stands


def test_a_result_that_is_kept_leaves_no_bar(notebook, monkeypatch):
    notebook(f"import nbautograd\n{CELL.partition(chr(10))[2]}")
    seen_at_once(monkeypatch)
    ran = notebook("report = nbautograd.gradcheck(Double, torch.ones(2, dtype=torch.float64, requires_grad=True))")
    assert ran.updates[-1] == {"text/plain": "", "text/html": ""}


def seen_at_once(monkeypatch):
    """The bar is there as soon as the work begins."""
    monkeypatch.setattr(progress, "PATIENCE", -1)
    monkeypatch.setattr(progress, "PAUSE", -1)
    enter = ProgressBar.__enter__

    def entered(bar):
        bar._show_when_due()
        return enter(bar)

    monkeypatch.setattr(ProgressBar, "__enter__", entered)


MAGIC = "%%autograd_function --inputs torch.ones(3, dtype=torch.float64, requires_grad=True)\n"
ENDLESS = "x: press(); for _ in iter(int, 1): pass"
STOPPED = MAGIC + written("Endless", ENDLESS, "g: return 2 * g")
GRADED = "%%exercise square\n" + written("Square", ENDLESS, "g: return g")
CELL = f"{MAGIC}import torch\n{DOUBLE}"


@pytest.mark.usefixtures("interruptible")
def test_stopped_before_there_is_a_report_a_sentence_takes_its_place(notebook, monkeypatch):
    seen_at_once(monkeypatch)
    notebook.shell.user_ns["press"] = lambda: signal.raise_signal(signal.SIGINT)  # as a kernel that is interrupted
    ran = notebook(STOPPED)
    assert ran.updates[-1]["text/plain"].startswith(messages.text("magics.interrupted"))
    assert isinstance(ran.error, KeyboardInterrupt)  # as of any cell that is interrupted: those behind it do not run
    assert "Traceback" not in ran.stdout + ran.stderr


@pytest.mark.usefixtures("interruptible")
def test_grading_that_is_stopped_gives_no_grade(notebook, monkeypatch):
    exercise = Exercise("square", "Square", "value gradient", lambda x: x * x, lambda draw: (draw.normal(3),))
    monkeypatch.setattr(catalogue, "_packaged", lambda: {"square": exercise})
    seen_at_once(monkeypatch)
    notebook.shell.user_ns["press"] = lambda: signal.raise_signal(signal.SIGINT)  # as a kernel that is interrupted
    ran = notebook(GRADED)
    assert says(ran.bundles[0]["text/plain"], "course.checking", name="square")
    assert ran.updates[-1]["text/plain"].startswith(messages.text("magics.interrupted"))
    assert "square" not in notebook("%exercises").text.split("Checking")[0]


def test_a_verdict_that_is_known_stands_above_the_bar(bare):
    clock = Clock()
    with capture_output() as captured:
        bar = ProgressBar(bare.shell, now=clock)
        clock.time = START
        bar.verdict_known(GradcheckReport("Linear", "right"))
        bar(150, 200, "looking")
    shown = captured.outputs[0].data
    known = messages.text("views.headline.right", function="Linear")
    assert shown["text/plain"].startswith(f"{known}\nlooking")
    assert f"<strong>{known}</strong>" in shown["text/html"]


def test_without_another_thread_the_report_stands(notebook, monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", start)
    ran = notebook(CELL)
    assert (ran.stderr, says(ran.text, "views.headline.right", function="Double")) == ("", True)
    cards = Cards(updates=True)
    cards._cards.append(None)  # which a thread would bring up to date
    with cards.watching(None):
        pass
