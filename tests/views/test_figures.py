"""Figures for print: what is drawn, in whatever Axes it is asked for."""

from __future__ import annotations

import numpy as np
import pytest
import sample_values as samples
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from said import pattern, says

from nbautograd.errors import CallError, InputError
from nbautograd.views.figures import plot


def panels(figure):
    return [ax for ax in figure.axes if ax.images]


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
    assert says(figure.get_supxlabel(), "views.more_blocks", n=3)


def test_nothing_to_draw_is_a_sentence():
    with pytest.raises(InputError, match=pattern("views.plot.nothing")):
        plot(samples.report(gradcheck=samples.gradcheck(blocks={})))
    with pytest.raises(CallError, match=pattern("views.plot.what", type="int")):
        plot(3)


def test_a_dollar_in_a_name_is_not_mathematics():
    plot(samples.block(np.eye(2), names=("$y$", "a$b"))).canvas.draw()
