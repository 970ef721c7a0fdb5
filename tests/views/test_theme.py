"""One table of colours: words in them can be read, and what is drawn takes them from there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from nbautograd.views import dot, svg, theme
from nbautograd.views.theme import TONES, contrast

ROOT = Path(__file__).resolve().parents[2]
READABLE = 4.5  # WCAG 2.2, 1.4.3
SEEN = 3.0  # WCAG 2.2, 1.4.11: what is not words
GROUNDS = (theme.PAPER, theme.SOFT)
BOXES = (theme.OP, theme.FUNCTION, theme.LEAF, theme.OUTPUT, theme.GROUP)
WORDS = (theme.INK, theme.FAINT, theme.GOOD, theme.BAD, theme.OPEN, theme.PLAIN, theme.BRAND)
PAIRS = [
    *((words, ground) for words in WORDS for ground in GROUNDS),
    *((words, box) for words in (theme.INK, theme.FAINT, theme.BAD) for box in BOXES),
    *((words, theme.FUNCTION) for words in (theme.GOOD, theme.OPEN)),
    *((theme.CHANGE_INK, ground) for ground in (theme.GONE, theme.COME, theme.MARKED)),
    (theme.TIE, theme.PAPER),
]


def test_the_standard_contrasts():
    assert contrast("#000000", "#ffffff") == contrast("#ffffff", "#000000") == 21
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the well-known grey that just fails


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_on_their_grounds(scheme):
    found = {(a, b): contrast(getattr(a, scheme), getattr(b, scheme)) for a, b in PAIRS}
    assert {pair: c for pair, c in found.items() if c < READABLE} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_borders_of_boxes_are_seen(scheme):
    lines = (theme.FUNCTION_LINE, theme.LEAF_LINE, theme.OUTPUT_LINE, theme.GROUP_LINE)
    assert all(contrast(getattr(line, scheme), getattr(theme.PAPER, scheme)) >= SEEN for line in lines)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_on_every_chip_and_the_chip_is_seen_on_any_page(scheme):
    for tone in TONES.values():
        assert contrast(getattr(theme.PAPER, scheme), getattr(tone, scheme)) >= READABLE
        assert contrast(tone.light, "#111111") >= 2.9  # where only the light form is left


def test_the_front_end_holds_the_colours_and_types_of_the_table_and_the_tree():
    stale = runpy.run_path(str(ROOT / "frontend" / "generate.py"))["stale"]()
    assert stale == {}, "run python frontend/generate.py, then npm run build"


NAMED = re.compile(r"""["'](?:black|white|gr[ae]y|red|green|blue|yellow|orange)["']|rgba\(\d+,""")


def test_pictures_and_dot_take_the_same_colours():
    sheet = svg.style_sheet(svg.RULES)
    light, dark = sheet.split("@media(prefers-color-scheme:dark)")
    known = {colour.light for colour in theme.NAMED.values()}, {colour.dark for colour in theme.NAMED.values()}
    for part, colours in zip((light, dark), known, strict=True):
        assert set(re.findall(r"#[0-9a-f]{6}", part)) <= colours
    looks = {value for look in dot.LOOKS.values() for value in look.values() if value.startswith("#")}
    assert looks <= known[0]
    assert theme.colours("dark")[theme.PAPER_INDEX] == theme.PAPER.dark
