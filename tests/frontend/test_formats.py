"""The live views write numbers as the static report does: frontend/formats.js against core/formats.py."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbautograd.core import formats
from nbautograd.views.markup import prose, unbroken

pytestmark = pytest.mark.browser

HALVES = [0.125, -0.375, 2.5, 1234.5, 0.0625, 99.95, 999.5, 0.5]  # where one may round up and the other down
ODD = [0.0, -0.0, 1e6, 999999.0, 9999.5, 1e-4, 0.99995e-4, 5e-324, 1.7e308, math.nan, math.inf, -math.inf]
NUMBERS = st.one_of(st.floats(), st.floats(-1e5, 1e5), st.integers(-(10**7), 10**7).map(float), st.sampled_from(HALVES))
QUIET = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def in_javascript(page: Any, calls: list[list[Any]]) -> list[Any]:
    """Return what functions of formats.js give, for ``[name, *arguments]`` each; floats go as text, for NaN's sake."""
    code = """async (calls) => {
      const formats = await import("/frontend/formats.js");
      const read = (x) => typeof x === "string" ? ({ nan: NaN, inf: Infinity, "-inf": -Infinity }[x] ?? Number(x)) : x;
      return calls.map(([name, ...args]) => formats[name](...args.map(read)));
    }"""
    return list(page.evaluate(code, [[call[0], *map(_sent, call[1:])] for call in calls]))


def _sent(argument: Any) -> Any:
    return repr(argument) if isinstance(argument, float) else argument


@QUIET
@given(st.lists(NUMBERS, min_size=1, max_size=50), st.integers(1, 9))
def test_numbers(blank, values, digits):
    values = [*values, *HALVES, *ODD]
    assert in_javascript(blank, [["number", v, digits] for v in values]) == [formats.number(v, digits) for v in values]
    assert in_javascript(blank, [["short", v] for v in values]) == [formats.short(v) for v in values]
    pairs = list(itertools.pairwise(values))
    assert in_javascript(blank, [["compared", a, b] for a, b in pairs]) == [
        list(formats.compared(a, b)) for a, b in pairs
    ]


@QUIET
@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=50), st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_counts_sizes_and_times(blank, wholes, seconds):
    wholes = [*wholes, 0, 999, 1000, 99_949, 99_950, 999_499, 999_500, 99_999_999, 100_000_000]
    seconds = [*seconds, 0.0, 4.2e-5, 0.00995, 0.01, 0.9995, 1.0, 9.95, 59.5, 60.0]
    for name in ("count", "size"):
        assert in_javascript(blank, [[name, n] for n in wholes]) == [getattr(formats, name)(n) for n in wholes]
    for name in ("milliseconds", "time"):
        assert in_javascript(blank, [[name, s] for s in seconds]) == [getattr(formats, name)(s) for s in seconds]


def test_shapes_and_indices(blank):
    positions = [(), (2,), (0, 2), (3, 1, 4)]
    assert in_javascript(blank, [["shape", list(p)] for p in positions]) == [formats.shape(p) for p in positions]
    assert in_javascript(blank, [["index", list(p)] for p in positions]) == [formats.index(p) for p in positions]
    pairs = [["index", list(p), True] for p in ((0, 2, 1), (0,))]
    assert in_javascript(blank, pairs) == ["[0,2].imag", ".real"]
    complex_numbers = [complex(1, -2), complex(0, math.nan)]
    assert blank.evaluate("""async () => { const { number } = await import("/frontend/formats.js");
        return [number([1, -2]), number([0, "nan"]), number(null)]; }""") == [
        *map(formats.number, complex_numbers), formats.number(None),
    ]  # fmt: skip


def test_words_that_may_not_be_broken_are_the_same_live_and_stored(blank):
    sentences = ["%%f --inputs a,b -i", "right to -1.1e-11, 3e-10.", "a-b x - y 2-3 e-3 well-known", "`--inputs` 1e5"]
    live = blank.evaluate(
        """async (sentences) => {
          const { prose } = await import("/frontend/dom.js");
          return sentences.map((s) => [...prose(s).querySelectorAll(".whole")].map((e) => e.textContent));
        }""",
        sentences,
    )
    stored = [re.findall('nowrap">([^<]*)<', prose(sentence)) for sentence in sentences]
    assert live == stored == [["--inputs", "-i"], ["-1.1e-11", "3e-10"], [], ["--inputs"]]


def test_words_that_stay_together_are_the_same_live_and_stored(blank):
    words = [
        "d y 0[1,2] / d x.w is 2 s",
        "3.1 kB of 40 B, 9 sums",
        "a = 10 % s if d else y / d if d / d else d",
        "d 输出 / d x",
    ]
    live = blank.evaluate(
        """async (words) => {
          const { el } = await import("/frontend/dom.js");
          return words.map((one) => el("span", null, one).textContent);
        }""",
        words,
    )
    assert live == [re.sub("<[^>]*>", "", unbroken(one)) for one in words]
    assert [one.count("\xa0") for one in live] == [3, 2, 0, 2]
