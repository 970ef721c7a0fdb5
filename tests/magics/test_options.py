from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from nbautograd import messages
from nbautograd.magics.options import TABLE, VIEWS, Options, help_text, parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", Options()),
        ("--inputs a,b", Options(inputs="a,b")),
        ("--inputs a, b", Options(inputs="a, b")),
        ("-i a, b -n Linear", Options(inputs="a, b", name="Linear")),
        ('--inputs "torch.randn(3), 2"', Options(inputs="torch.randn(3), 2")),
        ("--inputs='a, b'", Options(inputs="'a, b'".strip("'"))),
        ("--inputs=a,b --quiet", Options(inputs="a,b", quiet=True)),
        ('--inputs d["a key"], x', Options(inputs='d["a key"], x')),
        ("--inputs x, -2", Options(inputs="x, -2")),
        ("--inputs a, -b --view graph", Options(inputs="a, -b", view="graph")),
        ("--inputs x --no-gradcheck", Options(inputs="x", gradcheck=False)),
        ("--gradcheck", Options()),
        ("--reference a * b --inputs a, b", Options(inputs="a, b", reference="a * b")),
        ("--reference 'lambda a, b: a * b'", Options(reference="lambda a, b: a * b")),
        ("--inputs f('x', y)", Options(inputs="f('x', y)")),
    ],
)
def test_lines_are_read_with_and_without_quotes(line: str, expected: Options) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_taken(view: str) -> None:
    assert parse(f"--view {view}").view == view


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--input a", "There is no option --input; did you mean --inputs?"),
        ("--refrence torch.mul", "did you mean --reference?"),
        ("--nogradcheck", "did you mean --no-gradcheck?"),
        ("--tolerance 3", "There is no option --tolerance. The options are --inputs"),  # not --reference
        ("--zzzzzz", "There is no option --zzzzzz. The options are --inputs --name --reference"),
        ("--view grahp", "--view cannot be grahp; did you mean graph?"),
        ("--view 17", "--view cannot be 17; it is one of all, calls, graph, jacobian, gradcheck."),
        ("--inputs", "--inputs needs a value: --inputs, -i EXPR"),
        ("--inputs --quiet", "--inputs needs a value"),
        ("a, b", "`a, b` belongs to no option. If these are the inputs, write --inputs a, b."),
        ("a, b --quiet", "write --inputs a, b."),
        ("--quiet a", "`a` belongs to no option"),
        ("--inputs 'a", "A quote is opened but not closed in: --inputs 'a"),
    ],
)
def test_a_wrong_line_is_answered_with_the_nearest_right_one(line: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert says in str(caught.value)
    assert str(caught.value).endswith("(The cell was not run.)")
    assert "\n" not in str(caught.value)


def test_help_names_every_option_in_both_languages() -> None:
    for language in ("en", "zh"):
        messages.set_language(language)
        shown = help_text()
        assert all(option.usage in shown for option in TABLE)
