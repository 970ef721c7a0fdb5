"""From an error, a tensor or a function to its explanation; a run in a copy of the process leaves no trace."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading

import pytest
import torch
from said import pattern

from nbautograd import explain
from nbautograd.core.explaining.cause import TrialEdit
from nbautograd.core.explaining.torch_errors import KINDS, kind_of
from nbautograd.core.explaining.trial import Rerun, edited, mends
from nbautograd.core.explaining.watch import Cut, leaves_behind
from nbautograd.errors import InputError
from nbautograd.messages import catalogue

pytestmark = pytest.mark.usefixtures("saved_tensors_shown")

SECOND = 2.0


def broken():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y[0] = SECOND
    y.sum().backward()
    return x


def caught(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


def test_an_explanation_is_plain_data():
    found = explain(broken)
    assert pickle.loads(pickle.dumps(found)) == found
    assert json.loads(json.dumps(found.to_dict()))["did"]["text"] == "y[0] = SECOND"
    assert repr(found) == f"<Explanation in_place of y, line {broken.__code__.co_firstlineno + 3}>"
    assert "<table" in found._repr_mimebundle_()["text/html"]


def test_an_error_leaves_the_graph_to_be_drawn():
    found = explain(caught(broken))
    assert [node.name for node in found.graph.nodes][:2] == ["SumBackward0", "CopySlices"]


def test_a_function_is_run_in_a_copy_of_the_process():
    seen = []
    found = explain(lambda: (seen.append(1), broken()))
    assert (found.code, found.tensor, found.run, seen) == ("in_place", "y", "copy", [])
    assert found.fix.source == "y = y.clone()\ny[0] = SECOND"


def test_a_function_can_be_run_here():
    seen = []
    state = torch.get_rng_state()
    found = explain(lambda: (seen.append(torch.randn(1)), broken()), apart=False)
    assert (found.code, found.run, len(seen)) == ("in_place", "here", 1)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.slow
def test_a_change_that_alters_the_gradients_is_not_offered():
    """``y = y.detach()`` ends the error as well, and is no answer."""
    line = broken.__code__.co_firstlineno + 3
    run = Rerun(lambda _: broken())
    right = TrialEdit(__file__, line, "y[0] = SECOND", "y = y.clone()\ny[0] = SECOND")
    wrong = TrialEdit(__file__, line, "y[0] = SECOND", "y = y * 2")
    raises = TrialEdit(__file__, line, "y[0] = SECOND", "y[1] = SECOND")
    assert [mends(run, edit, "in_place") for edit in (right, wrong, raises)] == [True, False, False]


def test_an_edit_fits_its_line_only():
    assert (
        edited("if a:\n    y += 1\n", TrialEdit("", 2, "y += 1", "y = y.clone()\ny += 1"))
        == "if a:\n    y = y.clone(); y += 1\n"
    )
    with pytest.raises(ValueError, match="line 1"):
        edited("y = 1", TrialEdit("", 1, "y += 1", "y = 2"))


def test_nothing_wrong_is_said_as_such():
    x = torch.ones(2, requires_grad=True)
    loss = (x * 2).sum()
    found = explain(loss)
    assert (found.code, bool(found), x.grad) == ("nothing", False, None)
    loss.backward()  # its graph is as it was
    assert explain(lambda: (x * 2).sum().backward()).code == "nothing"


def test_a_grad_that_is_none():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    loss = (a * b.detach()).sum()
    loss.backward()
    assert explain(b).code.startswith("grad_none")


def test_a_nan_in_a_grad_is_said_after_the_graph_is_freed():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    loss = torch.where(x > 0, x.sqrt(), 0.0).sum()
    assert explain(loss).code == "not_finite_masked_sqrt_at_zero"
    loss.backward()
    for asked in (loss, x):
        found = explain(asked)
        assert (found.code, found.tensor, found.did) == ("not_finite", "x", None)
        assert found.findings[0].code == "explain_not_finite_in_grad"
    x.grad = None
    assert explain(x).code != "not_finite"


def test_a_tensor_that_is_no_leaf_keeps_no_grad():
    scale = torch.ones(2, requires_grad=True).double()
    loss = (scale * 3).sum()
    loss.backward()
    found = explain(scale)
    assert (found.code, found.tensor) == ("grad_none_not_a_leaf", "scale")
    assert explain(loss).code == "nothing"  # nothing was computed from it
    lost = scale * 3
    (lost.detach() * scale).sum().backward()
    assert explain(lost).code == "grad_none_not_a_leaf"
    kept = torch.ones(2, requires_grad=True).double()
    kept.retain_grad()
    out = kept.sum()
    assert (explain(kept).code, explain(out).code) == ("nothing", "nothing")


def test_on_another_thread_what_is_left_is_enough():
    found = []
    thread = threading.Thread(target=lambda: found.append(explain(caught(broken))))
    thread.start()
    thread.join()
    assert (found[0].code, found[0].tensor) == ("in_place", "y")


def test_of_a_compiled_function_the_remains_are_read():
    compiled = torch.compile(lambda x: x.exp(), backend="eager")

    def run():
        y = compiled(torch.ones(2, requires_grad=True))
        y += 1
        y.sum().backward()

    found = explain(caught(run))
    assert (found.code, found.tensor) == ("in_place", "y")


def test_what_cannot_be_explained_is_refused_with_advice():
    with pytest.raises(InputError, match=pattern("explain.not_explainable", type="int")):
        explain(3)


def test_every_kind_has_a_sentence_for_when_nothing_is_left():
    error = RuntimeError("Trying to backward through the graph a second time")
    assert kind_of(error) is None  # never raised by torch
    rules = {f"explain.{kind}.rule" for _, kind in KINDS}
    assert rules - catalogue("en").keys() == {"explain.not_finite.rule"}  # whose error itself names the node


def test_a_value_that_is_nan_is_not_put_down_to_a_derivative():
    p = torch.nn.Parameter(torch.zeros(3))
    loss = (p / p.norm()).sum()
    assert explain(loss).code == "not_finite_division_by_zero"
    loss = (p.norm() + float("nan")).sum()
    assert explain(loss).code == "not_finite"


def test_a_value_without_a_name_is_called_as_it_was_typed():
    p = torch.zeros(3, requires_grad=True)
    constant = explain(torch.ones(2) * 3)
    loss = explain((p / p.norm()).sum())
    assert (constant.tensor, loss.tensor) == ("torch.ones(2) * 3", "(p / p.norm()).sum()")


def test_another_error_of_a_run_is_none_of_torch_s():
    found = explain(lambda: [][1])
    assert (found.code, bool(found)) == ("not_torch", False)


@pytest.mark.filterwarnings("ignore:Error detected:UserWarning")
def test_the_node_that_anomaly_mode_names_is_said():
    def run():
        with torch.autograd.detect_anomaly(check_nan=True):
            (torch.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()

    with pytest.warns(UserWarning, match="Anomaly"):
        assert "`SqrtBackward0`" in str(explain(caught(run)))


DISTRIBUTED = """
import sys, torch, torch.distributed as distributed
from nbautograd import explain
from nbautograd.messages import set_language
set_language("en")
distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.frozen = torch.nn.Linear(3, 3).requires_grad_(False)
        self.second = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.first(x)


net = torch.nn.parallel.DistributedDataParallel(Net())
try:
    for _ in range(2):
        net(torch.ones(2, 3)).sum().backward()
except RuntimeError as error:
    found = explain(error)
print(found.code, found.tensor)
print(found.findings[0].message)
"""


@pytest.mark.nightly
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed package")
def test_parameters_that_a_distributed_module_waits_for_are_named(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(DISTRIBUTED)
    ran = subprocess.run(
        [sys.executable, script, tmp_path / "meet"], capture_output=True, text=True, timeout=120, check=True
    )
    code, sentence = ran.stdout.splitlines()[-2:]
    assert code == "unused_parameters net.module.second.weight"
    assert sentence.endswith("net.module.second.weight, net.module.second.bias.")


def test_a_leaf_is_not_taken_for_another_that_has_its_place_in_memory():
    leaf = torch.ones(1, requires_grad=True)
    cut, address = Cut("detach", None, "detach", "y", leaves=leaves_behind(leaf * 2)), id(leaf)
    assert cut.was(leaf)
    del leaf
    others = [torch.ones(1, requires_grad=True) for _ in range(10_000)]  # all alive: some takes the place that is free
    other = next(t for t in others if id(t) == address)
    assert not cut.was(other)


@pytest.mark.slow
def test_a_tensor_without_a_name_is_not_called_by_that_of_the_loss():
    def program():
        weight = torch.ones(3, requires_grad=True)
        loss = weight.exp().detach().sum()
        loss.backward()

    found = explain(program)
    assert found.code == "no_grad_detach"
    assert "`loss`" not in found.findings[0].message


def adapted():
    weights = [torch.ones(2, 2, requires_grad=True), torch.ones(1, 2, requires_grad=True)]
    fast = [w.clone() for w in weights]
    loss = (torch.ones(3, 2) @ fast[0].t() @ fast[1].t()).pow(2).sum()
    gradients = torch.autograd.grad(loss, fast, create_graph=True)
    with torch.no_grad():
        for w, g in zip(fast, gradients, strict=True):
            w.sub_(0.1 * g)
    outer = sum(g.pow(2).sum() for g in gradients)
    outer.backward()


@pytest.mark.slow
def test_of_several_broken_nodes_it_is_the_one_that_torch_refused():
    error = caught(adapted)
    shape = str(error).partition("FloatTensor [")[2].partition("]")[0]
    found = explain(adapted)
    assert ", ".join(map(str, found.params["shape"])) == shape


class Teacher:
    def __init__(self):
        self.net = torch.nn.Linear(2, 2).requires_grad_(False)

    @torch.no_grad()
    def update(self):
        for parameter in self.net.parameters():
            parameter.mul_(0.9)


class Job:
    def __init__(self):
        self.teacher = Teacher()

    def step(self):
        x = torch.ones(3, 2, requires_grad=True)
        loss = self.teacher.net(x).pow(2).sum()
        self.teacher.update()
        loss.backward()


@pytest.mark.slow
def test_a_tensor_of_an_object_in_an_object_has_its_name_rather_than_that_of_a_loop():
    job = Job()
    assert explain(job.step).tensor in ("job.teacher.net.weight", "self.teacher.net.weight")


@pytest.mark.parametrize("again", [False, True])
def test_a_gradient_that_is_removed_after_the_last_backward_has_its_line(again):
    net = torch.nn.Linear(2, 1)

    def program():
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(2)).sum().backward()
        optimizer.zero_grad()
        if again:
            net(torch.ones(2)).sum().backward()
        return net.weight

    assert explain(program, apart=False).code == ("nothing" if again else "grad_none_removed")


class Twofold(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.p, self.v = (torch.nn.Linear(2, 2) for _ in range(3))

    def forward(self, x):
        z = self.body(x).tanh()
        return self.p(z).exp(), self.v(z).exp()


def test_an_attribute_that_a_line_reads_is_not_taken_for_a_variable_of_its_name():
    def program():
        p, v = Twofold()(torch.ones(1, 2))
        v.sum().backward()
        p.sum().backward()

    found = explain(program, apart=False)
    assert (found.code, found.tensor == "v") == ("freed_shared", False)


def bounded(probs):
    probs.clamp_(min=1e-9)  # far below what a softmax gives here


def returned_in_vain(probs):
    return probs.clamp_(min=1e-9)


def bounded_and_returned(probs):
    probs.clamp_(min=1e-9)
    return probs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "offered"),
    [(bounded, False), (returned_in_vain, False), (bounded_and_returned, True), (returned_in_vain, True)],
)
def test_no_new_tensor_is_offered_to_one_of_several_names(write, offered):
    def program():
        probs = torch.ones(2, 3, requires_grad=True).softmax(1)
        probs = write(probs) if offered else (write(probs), probs)[1]  # by one of two names the old one is read
        probs.log().sum().backward()

    found = explain(program)
    assert (found.code, found.tensor) == ("in_place", "probs")
    assert (found.fix is not None) == offered
