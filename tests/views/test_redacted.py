"""report.redact(): nothing of the user's numbers is in its text, its HTML or its data, and what helps is."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fn import Fn
from said import says

import nbautograd
from nbautograd.core.display import Phrase, UserValue
from nbautograd.views.bundle import html
from nbautograd.views.issue import for_issue

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = pytest.mark.slow

F64 = torch.float64


# Prints, keeps and raises with its data.
Leaky = Fn.of("Leaky", 'x, factor, secret: print("first entry", x[0, 0].item(), secret); save(x); '
    'ctx.factor, ctx.secret = factor, secret; return factor * x',
    "grad_output: return grad_output * ctx.factor**2, None, None")  # fmt: skip
Raising = Leaky.of("Raising",
    backward="g: raise ValueError(f'cannot take {ctx.saved_tensors[0][0, 1].item()} with {ctx.secret}')")  # fmt: skip


def everything(redacted: nbautograd.types.GradcheckReport | nbautograd.types.Explanation) -> str:
    """All that anybody can copy of it."""
    return "\n".join(
        [str(redacted), repr(redacted), html(redacted), json.dumps(redacted.to_dict(), ensure_ascii=False)]
    )


def spellings(values: np.ndarray) -> set[str]:
    """Numbers as repr and as reports write them."""
    return {spelled for v in values.ravel().tolist() for spelled in (repr(v), f"{v:.6g}", f"{v:.4g}", f"{v:.4f}")}


@pytest.mark.parametrize("cls", [Leaky, Raising])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_entry_of_the_data_nor_its_repr_is_in_it(cls: type, seed: int) -> None:
    x = torch.randn(3, 4, dtype=F64, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    report = nbautograd.inspect(cls, x, 2.7182818, "hunter2")
    copied = everything(report.redact())
    blocks = report.gradcheck.blocks.values()
    values = [
        x.detach().numpy(),
        np.array([2.7182818]),
        *(b.analytical() for b in blocks),
        *(b.numerical() for b in blocks),
    ]
    for call in report.calls:
        values += [np.array(v.tensor.values) for v in (*call.inputs, *call.outputs) if v.tensor is not None]
    shown = {s for v in values for s in spellings(v) if len(s.replace("-", "").replace(".", "")) > 3}
    assert len(shown) > 50
    assert [s for s in shown if s in copied] == []
    assert "hunter2" not in copied
    assert "hunter2" in str(report) + json.dumps(report.to_dict())  # the whole report does hold it


def test_what_helps_is_in_it() -> None:
    x, w = (torch.ones(3, 3, dtype=F64, requires_grad=True) for _ in range(2))

    Product = Fn.of(
        "Product",
        "a, b: save(a, b); return a * b",
        "grad_output: a, b = saved; return -grad_output * b, grad_output * a",
    )
    report = nbautograd.inspect(Product, x, w)
    printed = str(report.redact())
    assert says(printed, "views.headline.wrong", function="Product")
    assert "gradient of `a`" in printed
    assert "+ return grad_output * b, grad_output * a" in printed
    assert pickle.loads(pickle.dumps(report.redact())) == report.redact()


# Wrong by a factor that is the user's own number.
Scaled = Fn.of("Scaled", "x, factor, secret: ctx.factor = factor; return factor * x",
    "grad_output: return grad_output * ctx.factor**2, None, None")  # fmt: skip


def test_a_kernels_report_keeps_its_errors_and_no_value() -> None:
    x = torch.rand(16, generator=torch.Generator().manual_seed(5)).bfloat16().requires_grad_()
    report = nbautograd.compare(Scaled, lambda x, f, _: f * x, (x, 2.71875, "hunter2"))
    assert "2.72" in str(report)
    assert "hunter2" in json.dumps(report.to_dict())
    copied = report.redact()
    assert copied.verdict == "wrong"
    for language in ("en", "zh"):
        nbautograd.set_language(language)
        assert not any(one in everything(copied) for one in ("2.72", "2.71875", "hunter2"))
    assert str(copied.findings[0]) != str(report.findings[0])
    assert [q.error for q in copied.quantities] == [q.error for q in report.quantities]
    assert copied.inputs[0] == report.inputs[0]


DATA = torch.rand(2, dtype=F64, generator=torch.Generator().manual_seed(3))


def what_an_error_left() -> nbautograd.types.Explanation:
    x = DATA.clone().requires_grad_() * 1
    y = x ** DATA[0].item()
    x += 1
    with pytest.raises(RuntimeError, match="inplace") as caught:
        y.sum().backward()
    return nbautograd.explain(caught.value)


def of_an_error_that_quotes() -> nbautograd.types.Explanation:
    return nbautograd.explain(lambda: int(str(DATA[0].item())))


@pytest.mark.usefixtures("saved_tensors_shown")
@pytest.mark.parametrize("explained", [what_an_error_left, of_an_error_that_quotes])
def test_an_explanation_keeps_its_lines_and_no_value(explained) -> None:
    found = explained()
    shown = spellings(DATA.numpy())
    assert any(one in str(found) for one in shown) == (found.code == "not_torch")  # the error's words quote one
    copied = found.redact()
    assert [one for one in shown if one in everything(copied)] == []
    assert (copied.code, copied.tensor, copied.fix) == (found.code, found.tensor, found.fix)
    assert found.did is None or copied.did == dataclasses.replace(found.did, file=Path(__file__).name)
    assert [f.code for f in copied.findings] == [f.code for f in found.findings]
    assert found.raised is None or found.raised.text in str(copied)


# as every formatter of the package may write them, and parts of them
MARKS = ("81253", "8.125", "8.13", "0.4931", "0.493", "493107", "hunter2", "patient", "/data/")
NUMBER, COUNT, SECRET, PATH = 8.125371, 493107, "hunter2", "/data/patient-77/scan.npy"


# Wrong, with a number, a count, a word and a path of the user's among its arguments.
Marked = Fn.of("Marked",
    "x, factor, count, secret, path: ctx.factor, ctx.more = factor, (secret, path, count); save(x); "
    "return x * factor + count",
    "grad_output: return grad_output * ctx.factor**2, None, None, None, None")  # fmt: skip
# Raises with all of them in its words.
Quoting = Marked.of("Quoting", backward="g: raise ValueError(f'{ctx.factor} {ctx.more} {ctx.saved_tensors[0]}')")
# Cannot be told, with the element and its number in the reason.
Edged = Marked.of("Edged", 'x, factor, count, secret, path: ctx.factor = factor; '
    'return torch.where(x > factor, float("nan"), x)')  # fmt: skip


def marked(dtype: torch.dtype = F64) -> torch.Tensor:
    return torch.full((2, 3), NUMBER, dtype=dtype).requires_grad_()


def arguments(dtype: torch.dtype = F64) -> tuple[Any, ...]:
    return marked(dtype), NUMBER, COUNT, SECRET, PATH


def audited(cls: type) -> nbautograd.types.AuditReport:
    with nbautograd.audit() as watch, contextlib.suppress(ValueError):
        cls.apply(*arguments()).sum().backward()
    return watch.report()


def kernel(cls: type) -> nbautograd.types.Comparison:
    return nbautograd.compare(cls, lambda x, f, c, s, p: x * f + c, arguments(torch.bfloat16))


def explained(cls: type) -> nbautograd.types.Explanation:
    def program() -> None:
        y = cls.apply(*arguments()) * 1
        z = y.exp()
        z += NUMBER
        z.sum().backward()

    return nbautograd.explain(program)


def reports() -> Iterator[Any]:
    """Every type of report that can be redacted, of what is wrong, raises and cannot be told."""
    for name, make in {
        "gradcheck": lambda cls: nbautograd.gradcheck(cls, arguments()),
        "order 2": lambda cls: nbautograd.gradcheck(cls, arguments(), order=2),
        "inspect": lambda cls: nbautograd.inspect(cls, *arguments()),
        "audit": audited, "kernel": kernel, "explain": explained,
    }.items():  # fmt: skip
        for cls in (Marked, Quoting, Edged):
            yield pytest.param(make, cls, id=f"{name} {cls.__name__}")


@pytest.mark.parametrize(("make", "cls"), list(reports()))
def test_no_type_of_report_shows_a_marked_value(make: Callable[[type], Any], cls: type) -> None:
    report = make(cls)
    for language in ("en", "zh"):
        nbautograd.set_language(language)
        copied = everything(report.redact())
        copied += "" if make is explained else for_issue(report, redact=True)
        assert [mark for mark in MARKS if mark in copied] == []
        assert str(Path(__file__).parent) not in copied


def test_the_marks_are_in_the_reports_themselves() -> None:
    whole = [audited(Quoting), kernel(Quoting), nbautograd.inspect(Quoting, *arguments())]
    shown = "".join(map(everything, whole))
    assert [mark for mark in ("8.125", "493107", "hunter2", "patient", "/data/") if mark not in shown] == []


def test_a_sentence_of_tomorrow_shows_only_what_is_known_to_be_the_programs() -> None:
    note = Phrase("report.as_text", text="x * 2", gist="8.125371", line=3, input=UserValue("x"), wrong=0.5)
    copied = nbautograd.types.AuditReport(notes=(note,)).redact().notes[0].params
    assert copied == {"text": "x * 2", "gist": "…", "line": 3, "input": "…", "wrong": "…"}
