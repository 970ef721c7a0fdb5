"""Heat maps: the colours mean what they say, the picture is a document, nothing rests on colour alone."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from matplotlib.colors import rgb_to_hsv, to_rgb
from PIL import Image

from nbautograd.views import theme
from nbautograd.views.heatmap import Axis, heatmap, png, thumbnail
from nbautograd.views.jacobian import breaks
from nbautograd.views.theme import MAPS, luminance

ANY = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_number_has_the_colour_of_a_wrong_gradient(scheme):
    wrong, *numbers = (rgb_to_hsv(to_rgb(c)) for c in (getattr(theme.BAD, scheme), *MAPS[scheme]))
    hues = [hue for hue, saturation, _ in numbers if saturation > 0.1]
    assert all(abs((hue - wrong[0] + 0.5) % 1 - 0.5) > 1 / 20 for hue in hues)


def test_zero_nan_and_infinities_are_told_apart():
    index = theme.indices(np.array([0.0, np.nan, np.inf, -np.inf, 1e-9, 1e-3]), 1.0)
    assert list(index[:5]) == [
        theme.PAPER_INDEX, theme.NAN_INDEX, theme.PLUS_INF, theme.MINUS_INF, theme.PAPER_INDEX,
    ]  # fmt: skip
    assert index[5] == theme.ZERO  # small but not nothing: the middle colour, not paper


def test_an_outlier_does_not_set_the_robust_limit_and_a_large_number_does():
    assert theme.robust_limit(np.append(np.linspace(0.1, 1, 99), 40.0)) == pytest.approx(1.0)
    assert theme.robust_limit(np.linspace(0.1, 1, 99), np.array([1.9])) == 1.9
    assert theme.robust_limit(np.append(np.zeros(1000), 3.0)) == 3.0  # zeros do not count
    assert theme.robust_limit(np.append(np.full(1000, 1e-12), 3.0)) == 3.0  # nor does round-off
    assert theme.robust_limit(np.append(np.full(1000, 1e-12), 3.0), negligible=0) == 1e-12  # of recorded values it does
    assert theme.robust_limit(np.array([np.nan, np.inf])) == theme.robust_limit(np.empty(0)) == 1.0


def test_lines_stand_between_the_slices_of_the_slowest_dimension():
    rows, cols = Axis("y", breaks=breaks((2, 3), 1, 6)), Axis("x", breaks=breaks((4,), 1, 4))
    document = heatmap(np.ones((6, 4)), rows=rows, cols=cols)
    lines = re.search(r'class="e" d="([^"]*)"', document)[1]
    assert (lines.count("h"), lines.count("v")) == (1, 0)
    crowded = heatmap(np.ones((60, 4)), rows=Axis(breaks=breaks((30, 2), 1, 60)))
    assert 'class="e"' not in crowded.partition("</style>")[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_read_well_on_every_colour(scheme):
    for colour in theme.colours(scheme):
        ink = 0.0 if theme.ink_on(colour) == "#000000" else 1.0
        light, dark = sorted((luminance(colour), ink), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@given(arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=ANY))
def test_every_matrix_is_a_document(matrix):
    document = heatmap(matrix)
    assert ElementTree.fromstring(document).tag.endswith("svg")
    assert len(document) < 40_000


def test_nan_is_hatched_and_the_worst_cell_framed():
    document = heatmap(np.array([[np.nan, 1.0], [0.0, np.inf]]), worst=(1, 0))
    assert document.count('class="h"') == 1
    assert "∞" in document
    assert document.count('class="w"') == 1


def test_a_small_map_takes_the_scale_that_it_is_given_and_leaves_out_what_is_below_its_floor() -> None:
    numbers = np.array([[1e-9, 0.5]])
    assert thumbnail(numbers) == thumbnail(2 * numbers)  # a scale of its own
    assert thumbnail(numbers, 1.0) == thumbnail(np.array([[0.0, 0.5]]), 1.0) != thumbnail(numbers)
    assert thumbnail(numbers, 1e-6, 1e-8) == thumbnail(np.array([[0.0, 0.5]]), 1e-6)
    assert thumbnail(numbers, 1e-6, 1e-10) != thumbnail(np.array([[0.0, 0.5]]), 1e-6)


def test_png_is_what_was_put_in():
    index = np.array([[0, 1], [2, 3], [4, 5]])
    colours = theme.colours("light")
    image = Image.open(io.BytesIO(png(index, colours))).convert("RGB")
    assert image.size == (2, 3)
    assert ["#{:02x}{:02x}{:02x}".format(*image.getpixel((c, r))) for r, c in np.ndindex(3, 2)] == list(colours[:6])
