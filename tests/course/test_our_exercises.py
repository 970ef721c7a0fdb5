"""The course's own exercises: what is told of an answer, and that an answer without understanding does not pass."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch
from said import says
from written_answers import define, function

from nbautograd import messages
from nbautograd.course.catalogue import find
from nbautograd.course.exercises import n15
from nbautograd.course.exercises.tried import python
from nbautograd.course.run import check


def sinh(sign):
    return function(
        "Sinh",
        "x: grown, shrunk = x.exp(), (-x).exp(); save(grown, shrunk); return (grown - shrunk) / 2, grown, shrunk",
        f"g, gg, gs: grown, shrunk = saved; return g * (grown + shrunk) / 2 + gg * grown {sign} gs * shrunk",
    )


def test_a_term_that_only_a_second_backward_uses_is_named():
    assert check(find("sinh"), sinh("-")).codes == ()
    result = check(find("sinh"), sinh("+"))
    assert result.codes == ("double_backward_wrong", "exponential_ignored")
    sentences = " ".join(sentence for outcome in result.outcomes for sentence in outcome.sentences("what"))
    assert "the output number 3" in sentences, sentences


class PooledAgain(n15.Pool):
    @staticmethod
    def example(seed):
        generator = torch.Generator().manual_seed(seed)
        return tuple(torch.randn(2, 3, 4, dtype=torch.float64, generator=generator))


def test_mutants_of_another_try_are_others():
    one, other = ({mutant.after for mutant in n15._of_own(PooledAgain, seed)} for seed in (1, 2))
    assert len(one) > 10
    assert len(one & other) < len(one)


def test_the_codes_that_authors_are_told_of_exist():
    root = Path(__file__).resolve().parents[2]
    table = re.findall(
        r"^\| [a-zA-Z_, ]+ \| (`[a-z_]+`(?: `[a-z_]+`)+) \|$", (root / "notebooks" / "README.md").read_text(), re.M
    )
    told = {code for row in table for code in re.findall(r"\w+", row)}
    sources = [*root.glob("nbautograd/course/**/*.py"), *root.glob("nbautograd/core/**/*.py")]
    known = "".join(path.read_text(encoding="utf-8") for path in sources)
    known += " ".join(f'"{name.partition(".")[2]}"' for name in messages.catalogue("en"))
    assert len(told) > 35
    assert {code for code in told if f'"{code}"' not in known} == set()


def test_what_numpy_or_torch_holds_is_what_python_has():
    assert python(np.isclose(1.0, 1.0)) is True
    assert python(torch.tensor(False)) is False
    assert python(np.float32(0.5)) == 0.5
    assert python("too few") == "too few"


def test_what_the_checks_raise_on_an_answer_is_not_said_to_be_raised_by_it():
    inside = define("def bars(w1, w2):\n    return (w1, w2)[9]\n", "bars")
    sentences = {
        name: check(find(name), answer).outcomes[0].sentences("what")[0]
        for name, answer in (("reverse_by_hand", inside), ("scalar_tensor", 3), ("op_log", list))
    }
    assert says(sentences["reverse_by_hand"], "course.own_raised", error="IndexError")
    assert says(sentences["scalar_tensor"], "course.own_unusable")
    assert says(sentences["op_log"], "course.own_unusable")
