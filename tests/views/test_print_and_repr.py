"""print(value) is the value's text, repr(value) one line, of every public value."""

from __future__ import annotations

import numpy as np
import pytest
import sample_values as samples
import torch

import nbautograd
from nbautograd.core.checking.block import Entry
from nbautograd.core.display import Displayable
from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.core.values import CtxSnapshot, Value
from nbautograd.views.bundle import text

CHECK = samples.gradcheck(wrong=True)
BLOCK = CHECK.blocks[0, 1]
JACOBIAN = nbautograd.jacobian(torch.sin, torch.ones(3, dtype=torch.float64, requires_grad=True))
DISPATCH = Dispatch(0, None, "__torch_function__", "ScalarTensor", "torch.add", outcome="returned")
SITUATION = nbautograd.types.AuditedSituation((), calls=2)
AUDITED = nbautograd.types.AuditedFunction("LayerNorm", "mylib", None, None, (SITUATION,), calls=2)
VALUES = [
    samples.report(wrong=True),
    samples.report(wrong=True).redact(),
    CHECK,
    BLOCK,
    JACOBIAN.blocks[0, 0],
    Entry((0, 1), (2,), 1.5, 2.0, 1e-9),
    JACOBIAN,
    CHECK.findings[0],
    CHECK.findings[0].fix,
    samples.comparison(),
    samples.calls(),
    samples.calls()[0],
    samples.calls()[0].ctx,
    CtxSnapshot(),
    samples.graph(),
    samples.graph().nodes[0],
    samples.graph().edges[0],
    samples.value("weight", np.ones((2, 3))),
    Value("bias", "NoneType", "None"),
    samples.tensor(np.arange(6.0)),
    DISPATCH,
    DispatchLog((DISPATCH,)),
    nbautograd.explain(torch.ones(1).sum()),
    nbautograd.types.AuditReport((AUDITED,)),
    AUDITED,
    SITUATION,
    nbautograd.types.Comparison("fused", "eager", "right", dtype="bfloat16"),
    nbautograd.types.SlowMotion("F", "y", ((3, "def backward(ctx, g):"),), (Value("g", "int", "1"),), (), (), ()),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_print_gives_the_text_and_repr_one_line(value: Displayable) -> None:
    assert str(value) == text(value) == value._repr_mimebundle_()["text/plain"]
    assert f"{value}".strip()
    assert "\n" not in repr(value)
    assert " object at 0x" not in repr(value)


def test_every_public_value_is_among_them() -> None:
    public = {getattr(nbautograd.types, name) for name in nbautograd.types.__all__}
    values = public - {nbautograd.types.Audit}  # a watch that is going on
    assert [cls for cls in values if not any(isinstance(value, cls) for value in VALUES)] == []
    assert all(issubclass(cls, Displayable) for cls in values)


def test_no_control_character_of_a_name_reaches_a_terminal() -> None:
    name = "F\x1b]0;title\x07\x9b2J\r"
    backward = staticmethod(lambda ctx, g: g * 2)
    cls = type(name, (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 1), "backward": backward})
    nbautograd.instrument(cls)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with nbautograd.audit() as watch:
        y = cls.apply(x)
        y.sum().backward()
    values = [
        nbautograd.gradcheck(cls, x), nbautograd.inspect(cls, x), nbautograd.jacobian(cls, x), nbautograd.graph(y),
        watch.report(), nbautograd.compare(cls, lambda x: x * 1, x), *nbautograd.calls(cls),
        nbautograd.calls(cls),
    ]  # fmt: skip
    written = [words for value in values for words in (str(value), repr(value))]
    with pytest.raises(nbautograd.GradcheckError) as raised:
        values[0].raise_if_wrong()
    assert any("\\x1b]0;title\\x07" in words for words in written)
    for words in (*written, str(raised.value)):
        assert not set(words) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}
