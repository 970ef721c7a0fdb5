"""Figures for print: what is drawn, in whatever Axes it is asked for."""

from __future__ import annotations

import numpy as np
import pytest
import sample_values as samples
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from nbautograd.errors import CallError, InputError
from nbautograd.views.figures import plot


def panels(figure):
    return [ax for ax in figure.axes if ax.images]


def test_three_panels_per_block_wrong_first():
    figure = plot(samples.report(wrong=True))
    assert [ax.get_title() for ax in panels(figure)] == ["your backward", "finite differences", "difference"] * 2
    assert panels(figure)[0].get_xlabel() == "weight"


def test_the_worst_entry_has_a_frame():
    *_, difference = panels(plot(samples.gradcheck(wrong=True)))[:3]
    frames = [p for p in difference.patches if isinstance(p, Rectangle)]
    assert [(p.get_x(), p.get_y()) for p in frames] == [(2.5, -0.5)]


def test_ticks_are_index_names():
    ax = panels(plot(samples.report().jacobian))[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]


def test_one_symmetric_scale():
    figure = plot(samples.block([[1.0, -4.0]], [[1.0, 2.0]]))
    bar = next(ax for ax in figure.axes if not ax.images)
    assert [t.get_text() for t in bar.get_yticklabels()] == ["-4.0", "0.0", "4.0"]


def test_an_outlier_is_marked_and_does_not_set_the_scale():
    matrix = np.ones((8, 8))
    matrix[2, 3] = 50.0
    figure = plot(samples.block(matrix, np.ones((8, 8))))
    bar = next(ax for ax in figure.axes if not ax.images)
    assert [t.get_text() for t in bar.get_yticklabels()] == ["-1.0", "0.0", "1.0"]
    marks = [[p.get_xy()[0].tolist() for p in ax.patches if isinstance(p, Polygon)] for ax in panels(figure)]
    assert marks == [[[3.1, 1.5]], [], [[3.1, 1.5]]]


def test_draws_into_the_axes_it_is_given():
    figure = Figure()
    ax = figure.subplots()
    assert plot(samples.report(wrong=True), ax=ax) is figure
    assert len(ax.child_axes) == 4
    figure.canvas.draw()


@pytest.mark.parametrize(
    "matrix",
    [np.full((2, 2), np.nan), np.array([[np.inf, 0.0]]), np.zeros((3, 3)), np.ones((1, 500)), np.array([[1 + 1j]])],
    ids=["nan", "inf", "zero", "wide", "complex"],
)
def test_unusual_matrices(matrix):
    plot(samples.block(matrix)).canvas.draw()


def test_more_blocks_than_fit_are_counted():
    figure = plot(samples.gradcheck(blocks={(0, k): samples.block(np.eye(2)) for k in range(9)}))
    assert len(panels(figure)) == 18
    assert figure.get_supxlabel() == "more blocks: 3"


def test_nothing_to_draw_is_a_sentence():
    with pytest.raises(InputError, match="There is no Jacobian to draw here"):
        plot(samples.report(gradcheck=samples.gradcheck(blocks={})))
    with pytest.raises(CallError, match="not a value of type int"):
        plot(3)


def test_a_dollar_in_a_name_is_not_mathematics():
    plot(samples.block(np.eye(2), names=("$y$", "a$b"))).canvas.draw()
