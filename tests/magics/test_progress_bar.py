"""The bar of a long check: there when it takes a while, gone or replaced when it is done."""

from IPython.utils.capture import capture_output

from nbautograd.magics import progress
from nbautograd.magics.progress import PATIENCE, PAUSE, ProgressBar


class Clock:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def told(*moments):
    clock = Clock()
    bar = ProgressBar(clock)
    with capture_output() as captured:
        for moment, done in moments:
            clock.time = moment
            bar(done, 200, "d y / d x")
    return bar, captured.outputs


def test_a_quick_check_shows_none(bare):
    bar, outputs = told((0.1, 10), (PATIENCE / 2, 100))
    assert outputs == []
    assert bar.show_instead("report") is False


def test_a_long_one_says_how_far_it_is(bare):
    _, outputs = told((PATIENCE + 0.01, 50))
    assert outputs[0].data["text/plain"] == (
        "25 % · d y / d x (The kernel's stop button ends it with what is done by then.)"
    )
    assert "width:25%" in outputs[0].data["text/html"]


def test_updates_are_few(bare):
    start = PATIENCE + 0.01
    _, outputs = told((start, 50), (start + PAUSE / 2, 60), (start + PAUSE + 0.01, 70))
    assert len(outputs) == 2


def test_the_result_takes_its_place(bare):
    bar, _ = told((PATIENCE + 0.01, 50))
    with capture_output() as captured:
        assert bar.show_instead("the report") is True
        bar.close()
    assert [out.data.get("text/html") for out in captured.outputs][-1] == ""


def test_the_magic_replaces_the_bar_by_the_report(notebook, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1)
    monkeypatch.setattr(progress, "PAUSE", -1)
    ran = notebook(CELL)
    assert "% · " in ran.bundles[0]["text/plain"]
    assert ran.updates[-1]["text/plain"].startswith("Twice: backward is right.")


CELL = """%%autograd_function --inputs torch.ones(3, dtype=torch.float64, requires_grad=True)
import torch
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output
"""
