from __future__ import annotations

import pytest
from IPython.core.error import UsageError
from said import says

from nbautograd import messages
from nbautograd.magics.options import GRADCHECK, TABLE, Options, help_text, parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", Options()),
        ("--inputs a, b", Options(inputs="a, b")),
        ("-i a, b -n Linear", Options(inputs="a, b", name="Linear")),
        ('--inputs "torch.randn(3), 2"', Options(inputs="torch.randn(3), 2")),
        ("--inputs=a,b --order 2", Options(inputs="a,b", order="2")),
        ('--inputs d["a key"], x', Options(inputs='d["a key"], x')),
        ("--inputs x, -2", Options(inputs="x, -2")),
        ("--reference a * b --inputs a, b", Options(inputs="a, b", reference="a * b")),
        ("--reference 'lambda a, b: a * b'", Options(reference="lambda a, b: a * b")),
    ],
)
def test_lines_are_read_with_and_without_quotes(line: str, expected: Options) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "key", "told"),
    [
        ("--input a", "did_you_mean", {"near": "--inputs"}),
        ("--tolerance 3", "unknown_option", {"option": "--tolerance"}),  # not --reference
        ("--hints wher", "did_you_mean", {"near": "where"}),
        ("--hints 17", "unknown_choice", {"option": "--hints", "value": 17, "choices": "none, what, where, fix"}),
        ("--inputs", "no_value", {"option": "--inputs", "metavar": "--inputs, -i EXPR"}),
        ("a, b", "stray", {"text": "a, b"}),
        ("--inputs 'a", "open_quote", {"line": "--inputs 'a"}),
    ],
)
def test_a_wrong_line_is_answered_with_the_nearest_right_one(line: str, key: str, told: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert says(caught.value, f"magics.{key}", **told)
    assert says(caught.value, "magics.not_run")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["--reference torch.mul f(a, b)", "--order 2 --reference=lambda a, b: a * b f(a, b)"])
def test_a_reference_that_takes_the_call_with_it_is_answered_with_the_order(line: str) -> None:
    with pytest.raises(UsageError, match=r"%gradcheck f\(a, b\) --reference torch\.mul$"):
        GRADCHECK.read(line)
    assert GRADCHECK.read("f(a, b) --reference a * b") == ("f(a, b)", {"reference": "a * b"})


def test_help_names_every_option_in_both_languages() -> None:
    for language in ("en", "zh"):
        messages.set_language(language)
        shown = help_text()
        assert all(option.usage in shown for option in TABLE)
