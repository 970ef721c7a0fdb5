"""The line magics take a call as written."""

from __future__ import annotations

import pytest
from fn import written
from IPython.core.error import UsageError
from said import says

from nbautograd.magics import lines

FORWARD = "a, b: save(a, b); if a.numel() == 13: raise ValueError('thirteen'); return a * b"
CELL = f"""\
%%autograd_function
{written("Product", FORWARD, "g: a, b = saved; return g * b, g * a")}
product = Product.apply
a = torch.tensor([2., -3.], dtype=torch.double, requires_grad=True)
b = torch.tensor([5., 0.5], dtype=torch.double, requires_grad=True)
"""


@pytest.fixture
def filled(notebook):
    assert notebook(CELL).result.success
    return notebook


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("%gradcheck product(a, b)", "GradcheckReport"),
        ("%gradcheck product(b=b, a=a)", "GradcheckReport"),
        ("%gradcheck __import__('functools').partial(product, a)(b)", "GradcheckReport"),
        ("%gradcheck (lambda x: product(x, x))(a)", "GradcheckReport"),
        ("%jacobian product(a, b)", "JacobianReport"),
        ("%autograd_graph product(a, b).sum()", "AutogradGraph"),
        ("%autograd_graph product(a, b), a * b", "AutogradGraph"),
        ("%autograd_calls", "CallLog"),
        ("%autograd_calls product", "CallLog"),
        ("%autograd_calls torch.autograd.function.InplaceFunction", "CallLog"),
        ("%autograd_compare product(a, b) torch.mul(a, b)", "Comparison"),
        ("%autograd_compare product(a, b), torch.mul(a, b)", "Comparison"),
        ("%autograd_compare product(a, b.t().t()) a * b.t().t()", "Comparison"),
    ],
)
def test_each_returns_its_value_and_shows_it_once(filled, line: str, kind: str) -> None:
    ran = filled(line)
    assert kind in {cls.__name__ for cls in type(ran.result.result).__mro__}
    assert len(ran.bundles) == 1
    assert {"text/plain", "text/html"} <= set(ran.bundles[0])


def test_a_value_that_is_thrown_away_is_shown_and_one_that_is_kept_is_not(filled) -> None:
    assert len(filled("%gradcheck product(a, b)\nx = 1").bundles) == 1
    assert len(filled("for i in range(3):\n    %gradcheck product(a, b)\nNone").bundles) == 3
    ran = filled("report = %gradcheck product(a, b)")
    assert ran.bundles == []
    assert filled["report"].verdict == "right"
    assert filled("%gradcheck product(a, b);").bundles == []
    filled("report = %gradcheck product(a, b);")
    assert filled["report"].verdict == "right"


@pytest.mark.parametrize("interactivity", ["all", "last_expr"])
def test_each_value_is_shown_once_whatever_ipython_shows(filled, interactivity: str) -> None:
    filled.shell.ast_node_interactivity = interactivity
    try:
        assert len(filled("%gradcheck product(a, b)\nif True:\n    %gradcheck product(a, b)").bundles) == 2
    finally:
        filled.shell.ast_node_interactivity = "last_expr"


def test_names_of_a_function_body_are_seen(filled) -> None:
    filled("def check(local):\n    return get_ipython().run_line_magic('gradcheck', 'product(local, b)')")
    assert filled("check(a).verdict").result.result == "right"
    filled("def also(local):\n    report = %gradcheck product(local, b)\n    return report")
    assert filled("also(a).verdict").result.result == "right"


def test_braces_and_dollars_are_left_alone(filled) -> None:
    assert filled("%gradcheck product(*{'p': (a, b)}['p'])").result.result.verdict == "right"


def test_a_graph_names_its_leaves_after_the_variables(filled) -> None:
    graph = filled("loss = product(a, b).sum()\n%autograd_graph loss").result.result
    assert {leaf.label for leaf in graph.leaves} == {"a", "b"}
    assert graph.roots[0][1] == "loss"


@pytest.mark.parametrize(
    ("line", "key", "told"),
    [
        ("%gradcheck product(a, zz)", "line_undefined", {"name": "zz"}),
        ("%gradcheck prodct(a, b)", "did_you_mean", {"near": "product"}),
        ("%autograd_graph inn", "line_undefined", {"name": "inn"}),  # not `In`
        ("%gradcheck product(a, b.nope)", "line_failed", {}),
        ("%gradcheck product(a)", "missing_arguments", {"missing": "b", "call": "product(a, b)"}),
        (
            "%gradcheck (lambda x, y: product(x, y))(a)",
            "missing_arguments",
            {"missing": "y", "call": "(lambda x, y: product(x, y))(a, y)"},
        ),
        ("%gradcheck product(a, b, a)", "too_many_arguments", {"takes": "a, b", "given": 3}),
        ("%autograd_compare product(a) torch.neg(a)", "missing_arguments", {"missing": "b", "call": "product(a, b)"}),
        ("%gradcheck product(a, b) --order 3", "unknown_choice", {"value": 3, "choices": "1, 2"}),
        ("%gradcheck product(a, b) --reference 3", "other_arguments", {}),
        ("%autograd_graph", "no_call", {"example": "%autograd_graph loss"}),
        ("%autograd_graph 3", "not_a_tensor", {"text": 3, "type": "int"}),
        ("%autograd_calls Prodct", "did_you_mean", {"near": "Product"}),
        ("%autograd_calls torch", "no_such_function", {"text": "torch", "names": "Product"}),
        ("%autograd_compare product(a, b)", "two_calls", {}),
        ("%autograd_compare product(a, b) torch.ones(2)", "other_arguments", {}),
    ],
)
def test_a_wrong_line_is_one_sentence(filled, line: str, key: str, told: dict[str, object]) -> None:
    filled("_ = product(a, b)")
    ran = filled(line)
    assert isinstance(ran.error, UsageError)
    assert says(ran.stderr, f"magics.{key}", **told)
    assert "stumbled" not in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stdout


@pytest.mark.parametrize("line", ["%gradcheck product(c, c)", "%autograd_compare product(c, c) c * c"])
def test_a_forward_that_raises_shows_its_own_traceback_without_ours(filled, line: str) -> None:
    filled("c = torch.ones(13).double().requires_grad_()")
    ran = filled(line)
    assert isinstance(ran.error, ValueError)
    assert "ValueError: thirteen" in ran.stdout
    assert "raise ValueError('thirteen')" in ran.stdout
    assert "nbautograd/" not in ran.stdout
    again = filled("%tb")
    assert "thirteen" in again.stdout
    assert "nbautograd/" not in again.stdout


def test_arguments_that_torch_itself_refuses_are_the_users_error(filled) -> None:
    ran = filled("%gradcheck torch.add(a)")
    assert isinstance(ran.error, TypeError)
    assert "add() received an invalid combination of arguments" in ran.stdout
    assert "nbautograd/" not in ran.stdout
    assert not says(ran.stderr, "magics.stumbled")


def test_a_graph_in_a_notebook_leaves_unrelated_tensors_out(filled) -> None:
    filled("stranger = torch.ones(2, requires_grad=True)\ncut = torch.ones(2, requires_grad=True)")
    graph = filled("other = (cut * 2).detach()\nloss = (a * other.sum()).sum()\n%autograd_graph loss").result.result
    assert "stranger" not in [ghost.name for ghost in graph.ghosts]


@pytest.mark.parametrize(
    ("line", "budget"),
    [
        ("product(a, b) --budget 30", 30.0),
        ("--budget none product(a, b)", None),
        ("--budget=2.5s --order 1 product(a, b)", 2.5),
    ],
)
def test_the_budget_of_gradcheck(filled, monkeypatch, line, budget):
    given = []
    monkeypatch.setattr(lines, "gradcheck", lambda *args, **options: given.append(options["budget"]))
    filled(f"%gradcheck {line}")
    assert given == [budget]


@pytest.mark.parametrize("written", ["torch.mul", "torch.mul(a, b)", "a * b", "eager", "lambda a, b: b * a"])
def test_a_reference_is_a_function_or_an_expression_of_the_same_arguments(filled, written):
    filled("eager = lambda a, b: a * b\na, b = (v.detach().repeat(40).bfloat16().requires_grad_() for v in (a, b))")
    result = filled(f"report = %gradcheck product(a, b) --reference {written}").result
    assert result.success
    report = filled.shell.user_ns["report"]
    assert (type(report).__name__, report.function) == ("Comparison", "Product")
    assert report.verdict == "right"


def test_calls_of_a_cell_that_was_run_again_are_those_of_the_class_as_it_is_now(filled):
    filled("product(a, b).sum().backward(); product(a, b)")
    assert [call.name for call in filled("%autograd_calls product").result.result] == ["#1", "#2", "#3"]
    assert filled(CELL).result.success
    filled("product(a, b)")
    assert [call.name for call in filled("%autograd_calls product").result.result] == ["#1"]
    assert len(filled("%autograd_calls").result.result) >= 4  # all that was recorded


def test_an_old_style_function_is_explained(filled) -> None:
    filled("class Old(Function):\n    def forward(self, x): return x\n    def backward(self, g): return g")
    assert says(filled("%gradcheck Old(a)").stderr, "checking.legacy", name="Old")


@pytest.mark.parametrize(
    ("asked", "call", "offered"),
    [
        ("Product", "Product.apply(a, b)", True),
        ("product", "product(a, b)", True),
        ("Other", "Other.apply(c)", False),  # no tensor of that name
    ],
)
def test_a_recorded_function_without_calls_is_offered_one_of_the_notebooks_tensors(filled, asked, call, offered):
    filled("import nbautograd\nnbautograd.clear()")
    filled("%%autograd_function\nclass Other(Function):\n    @staticmethod\n    def forward(ctx, c):\n        return c")
    (problem,) = filled(f"%autograd_calls {asked}").result.result.problems
    told = problem.params["call"], problem.params["offered"]
    assert (problem.message_id, *told) == ("recording.not_called", call, offered)


@pytest.mark.parametrize(("hints", "told"), [("", True), ("--hints what", False)])
def test_a_comparison_gives_away_no_more_than_is_asked(filled, hints, told):
    filled(CELL.replace("g * a", "g * b"))
    found = filled(f"%autograd_compare product(a, b) a * b {hints}").result.result
    assert (found.verdict, any(one.fix is not None for one in found.findings)) == ("wrong", told)
