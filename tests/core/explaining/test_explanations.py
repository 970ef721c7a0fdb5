"""From an error, a tensor or a function to its explanation; a run in a copy of the process leaves no trace."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import threading

import pytest
import torch

import nbautograd
from nbautograd import explain
from nbautograd.core.explaining.cause import Edit
from nbautograd.core.explaining.torch_errors import KINDS, kind_of
from nbautograd.core.explaining.trial import Run, edited, mends
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


def shared():
    w = torch.ones(3, requires_grad=True)
    s = w.exp()
    a, b = (s * 2).sum(), (s**2).sum()
    a.backward()
    b.backward()


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


def test_the_live_view_is_the_document():
    kinds = [type(block).__name__ for block in explain(caught(broken)).widget().state.document]
    assert kinds == ["Card", "Table", "Drawing"]


def test_an_error_leaves_the_graph_to_be_drawn():
    found = explain(caught(broken))
    assert [node.name for node in found.graph.nodes][:2] == ["SumBackward0", "CopySlices"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_answer_is_in_the_reader_s_language(language):
    found = explain(broken, apart=False)
    with nbautograd.messages.speaking(language):
        assert ("changed `y` in place" in str(found)) == (language == "en")
        assert ("原地修改了 `y`" in str(found)) == (language == "zh")


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


def test_a_shared_part_is_mended_by_keeping_the_graph():
    found = explain(shared)
    assert (found.code, found.tensor, found.fix.source) == ("freed_shared", "s", "a.backward(retain_graph=True)")


def behind_where():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(x > 0, x.sqrt(), 0.0).sum().backward()


def assigned_behind_where():
    n, d = torch.ones(2, requires_grad=True), torch.tensor([0.0, 2.0], requires_grad=True)
    ratio = n / d
    torch.where(d > 0, ratio, 0.0).sum().backward()


@pytest.mark.parametrize(
    ("function", "changed"),
    [
        (behind_where, "torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0.0).sum().backward()"),
        (assigned_behind_where, "ratio = n / torch.where(d > 0, d, 1)"),
    ],
)
def test_a_second_where_is_tried(function, changed):
    found = explain(function)
    assert (found.code.startswith("not_finite_masked"), found.fix.source) == (True, changed)
    assert "the same value, finite gradients" in str(found)


@pytest.mark.slow
def test_a_change_that_alters_the_gradients_is_not_offered():
    """``y = y.detach()`` ends the error as well, and is no answer."""
    line = broken.__code__.co_firstlineno + 3
    run = Run(lambda _: broken())
    right = Edit(__file__, line, "y[0] = SECOND", "y = y.clone()\ny[0] = SECOND")
    wrong = Edit(__file__, line, "y[0] = SECOND", "y = y * 2")
    raises = Edit(__file__, line, "y[0] = SECOND", "y[1] = SECOND")
    assert [mends(run, edit, "in_place") for edit in (right, wrong, raises)] == [True, False, False]


def test_an_edit_fits_its_line_only():
    assert (
        edited("if a:\n    y += 1\n", Edit("", 2, "y += 1", "y = y.clone()\ny += 1"))
        == "if a:\n    y = y.clone(); y += 1\n"
    )
    with pytest.raises(ValueError, match="line 1"):
        edited("y = 1", Edit("", 1, "y += 1", "y = 2"))


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
        assert "`x.grad` holds NaN" in str(found)
    x.grad = None
    assert explain(x).code != "not_finite"


def test_a_tensor_that_is_no_leaf_keeps_no_grad():
    scale = torch.ones(2, requires_grad=True).double()
    loss = (scale * 3).sum()
    loss.backward()
    found = explain(scale)
    assert (found.code, found.tensor) == ("grad_none_not_a_leaf", "scale")
    assert explain(loss).code == "nothing"  # nothing was computed from it
    kept = torch.ones(2, requires_grad=True).double()
    kept.retain_grad()
    out = kept.sum()
    assert (explain(kept).code, explain(out).code) == ("nothing", "nothing")


def test_an_optimizer_that_holds_other_tensors():
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD([torch.nn.Parameter(p.detach()) for p in net.parameters()], lr=0.1)
    net(torch.ones(1, 2)).sum().backward()
    found = explain(net.weight)
    assert (found.code, found.tensor) == ("optimizer_holds_others", "net.weight")
    opt.add_param_group({"params": list(net.parameters())})
    assert explain(net.weight).code == "nothing"


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


@pytest.mark.parametrize("apart", [True, False])
def test_only_reading_out_a_tensor_with_a_graph_is_said(apart):
    def error_rate():
        scores, wanted = torch.ones(2, requires_grad=True) * 2, torch.ones(2)
        array = scores.detach().numpy()
        other = wanted.numpy()
        loss = torch.from_numpy(array - other).mean()
        loss.backward()

    found = explain(error_rate, apart=apart)
    left = [one.params["text"] for one in found.findings if one.code == "explain_no_grad_left"]
    assert (found.code, found.did, left) == ("no_grad", None, ["array = scores.detach().numpy()"])


def test_an_input_is_named_where_a_module_takes_it_out_of_the_graph():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 2)

        def forward(self, x):
            print(float(x.detach().mean()))
            x = (x.data - 0.5) * 2
            return self.inner(x).relu()

    def saliency():
        image = torch.rand(1, 3, requires_grad=True)
        score = Net()(image).sum()
        return torch.autograd.grad(score, image)

    found = explain(saliency)
    assert (found.code, found.tensor, found.did.text) == ("no_grad_detach", "image", "x = (x.data - 0.5) * 2")


def test_what_cannot_be_explained_is_refused_with_advice():
    with pytest.raises(InputError, match="an error, a tensor, or a function"):
        explain(3)


def test_every_kind_has_a_sentence_for_when_nothing_is_left():
    error = RuntimeError("Trying to backward through the graph a second time")
    assert kind_of(error) is None  # never raised by torch
    known = {f"explain.{kind}.known" for _, kind in KINDS}
    assert known - catalogue("en").keys() == set()


def test_a_gradient_that_was_removed_is_not_said_to_be_still_to_come():
    lin = torch.nn.Linear(2, 1)
    loss = lin(torch.ones(1, 2)).sum()
    loss.backward()
    lin.zero_grad()
    words = str(explain(lin.weight))
    assert "`lin.weight` is a part of the graph: no backward has reached it, or `zero_grad()`" in words


def array_of_a_module():
    lin, x = torch.nn.Linear(2, 1), torch.ones(1, 2)
    lin(x).numpy()


def array_of_an_expression():
    w = torch.ones(2, requires_grad=True)
    (w * 2).numpy()


def test_a_parameter_is_not_taken_for_what_its_module_computes():
    found = explain(caught(array_of_a_module))
    assert (found.code, found.tensor, found.did.text) == ("numpy", "lin(x)", "lin(x).numpy()")
    assert explain(caught(array_of_an_expression)).tensor == "w * 2"


def without_gradients():
    lin, x = torch.nn.Linear(2, 1), torch.ones(1, 2)
    with torch.no_grad():
        out = lin(x)
    out.sum().backward()


def test_a_line_stands_with_its_own_text():
    found = explain(without_gradients, apart=False)
    assert (found.code, found.tensor, found.did.text) == ("no_grad_no_grad", "out.sum()", "out = lin(x)")
    assert f"What line {found.did.line}, `out = lin(x)`, computed with gradients switched off" in str(found)


def twice_on_a_line():
    w = torch.ones(3, requires_grad=True)
    loss = (w**2).sum()
    loss.backward(), loss.backward()


def test_no_loop_is_named_where_there_is_none():
    found = explain(twice_on_a_line)
    assert (found.code, found.tensor, "loop" in str(found)) == ("freed_again", "loss", False)
    assert "An earlier backward already went through `loss`" in str(found)


def test_a_value_that_is_nan_is_not_put_down_to_a_derivative():
    p = torch.nn.Parameter(torch.zeros(3))
    loss = (p / p.norm()).sum()
    assert explain(loss).code == "not_finite_division_by_zero"
    loss = (p.norm() + float("nan")).sum()
    assert explain(loss).code == "not_finite"


def changed_after_a_product():
    w = torch.ones(3, requires_grad=True)
    a = w.exp()
    b = a * w
    a += 1
    b.sum().backward()


def test_the_line_that_saved_a_tensor_is_not_the_one_that_made_it():
    found = explain(changed_after_a_product, apart=False)
    assert (found.made.text, found.saved.text, found.did.text) == ("a = w.exp()", "b = a * w", "a += 1")
    assert "saved by" in str(found)
    left = explain(caught(changed_after_a_product))
    assert (left.tensor, left.made, left.did) == ("a", None, None)
    assert "nbautograd.explain(function)" in " ".join(str(left).split())


def stepped():
    lin = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(lin.parameters(), 1.0)
    loss = lin(torch.ones(1, 2, requires_grad=True) * 2).sum()
    loss.backward(retain_graph=True)
    opt.step()
    loss.backward()


def test_a_parameter_is_not_said_to_be_made_where_it_was_used():
    found = explain(stepped, apart=False)
    assert (found.tensor, found.made) == ("lin.weight", None)
    assert found.saved.text == "loss = lin(torch.ones(1, 2, requires_grad=True) * 2).sum()"


def module_in_place():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sigmoid(), torch.nn.ReLU(inplace=True))
    loss = net(torch.ones(2, 3)).sum()
    loss.backward()


def test_a_module_that_changes_its_input_is_named():
    found = str(explain(module_in_place))
    assert "ran `net[2]`, `ReLU(inplace=True)`, which changed its input in" in found
    left = str(explain(caught(module_in_place)))
    assert "The memory of a tensor was written into" in left
    assert "(2, 3)" not in left


def test_a_value_without_a_name_is_called_as_it_was_typed():
    found = explain(torch.ones(2) * 3)
    assert "`torch.ones(2) * 3` has no graph" in str(found)
    p = torch.zeros(3, requires_grad=True)
    found = explain((p / p.norm()).sum())
    assert "`(p / p.norm()).sum()` is NaN" in str(found)


def test_another_error_of_a_run_is_said_with_its_line():
    found = explain(lambda: [][1])
    assert (found.code, bool(found)) == ("not_torch", False)
    assert "It raised `IndexError: list index out of range` in line " in str(found)


@pytest.mark.filterwarnings("ignore:Error detected:UserWarning")
def test_the_node_that_anomaly_mode_names_is_said():
    def run():
        with torch.autograd.detect_anomaly(check_nan=True):
            (torch.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()

    with pytest.warns(UserWarning, match="Anomaly"):
        assert "`SqrtBackward0`" in str(explain(caught(run)))


def left_out():
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.weight = torch.nn.Parameter(torch.ones(1, 3))
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()


def shared_out():
    body, head = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (body, head)]
    head(body(torch.ones(4, 3))).sum().backward()
    for optimizer in optimizers:
        optimizer.step()


def replaced_head():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 4))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    model[1] = torch.nn.Linear(2, 1)
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return optimizer.param_groups[0]["params"][0]


class Trainer:
    def __init__(self):
        self.model = torch.nn.Linear(2, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def resume(self):
        self.model = torch.nn.Linear(2, 1)

    def step(self):
        self.model(torch.ones(1, 2)).sum().backward()
        self.opt.step()


def resumed():
    trainer = Trainer()
    held = trainer.model.weight
    trainer.resume()
    trainer.step()
    return held


@pytest.mark.parametrize(
    ("program", "names", "text"),
    [
        (left_out, {"model.weight"}, "optimizer.step()"),
        (replaced_head, {"model[0].bias", "model[0].weight", "model[1].bias", "model[1].weight"}, "optimizer.step()"),
        (resumed, {"self.model.weight", "self.model.bias"}, "self.opt.step()"),
    ],
)
def test_parameters_that_no_optimizer_holds_are_named_with_the_step(program, names, text):
    torch.optim.SGD([torch.ones(1)], lr=0.1)  # torch makes folders with the first one
    found = explain(program, apart=False)
    assert (found.code, found.did.text) == ("optimizer_holds_others", text)
    assert {*found.findings[0].params["name"].split("`, `")} == names


def test_what_one_optimizer_leaves_out_another_may_hold():
    assert explain(shared_out, apart=False).code == "nothing"


def test_a_module_spread_over_devices_is_explained_where_there_is_one_device():
    net = torch.nn.DataParallel(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sigmoid()))

    def step():
        out = net(torch.ones(3, 2))
        out += 1
        out.sum().backward()

    found = explain(step, apart=False)
    assert (found.code, found.tensor, found.did.text) == ("in_place", "out", "out += 1")


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


@pytest.mark.slow
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


class Generated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = torch.nn.Linear(2, 6)
        self.main = torch.nn.Linear(3, 2)

    def forward(self, x):
        w = self.generator(torch.ones(2)).view(2, 3)
        self.main.weight = torch.nn.Parameter(w)
        return self.main(x)


def generated():
    model = Generated()
    loss = model(torch.ones(4, 3)).sum()
    loss.backward()
    return model.generator.weight


def scaled():
    patch = torch.ones(3, requires_grad=True) * 2
    patch.sum().backward()
    return patch


def logged(function):
    return function


@logged
@torch.no_grad()
def scored(net, x):
    return net(x)


def silent():
    loss = scored(torch.nn.Linear(2, 1), torch.ones(3, 2)).sum()
    loss.backward()


def at_zero():
    x = torch.zeros(3, requires_grad=True)
    return torch.where(x > 0, x.sqrt(), 0.0).sum()


def kept():
    h = torch.ones(3, requires_grad=True) * 2
    h.retain_grad()
    h.sum().backward()
    return h


def test_a_returned_parameter_without_gradient_is_explained_by_the_leaf_that_stands_in_its_way():
    found = explain(generated, apart=False)
    assert (found.code, found.tensor) == ("unused_new_leaf", "model.generator.weight")
    assert found.did.text == "self.main.weight = torch.nn.Parameter(w)"
    assert (found.findings[0].code, found.findings[0].params["name"]) == ("explain_no_grad_new_leaf", "w")


def test_a_returned_result_is_no_leaf_and_the_line_that_made_it_is_named():
    found = explain(scaled, apart=False)
    assert (found.code, found.tensor) == ("grad_none_not_a_leaf", "patch")
    assert found.made.text.startswith("patch = torch.ones")
    assert explain(kept, apart=False).code == "nothing"


def test_gradients_that_a_decorator_switches_off_are_said_with_its_line():
    off = explain(silent, apart=False).findings[1]
    assert (off.code, off.params["text"]) == ("explain_no_grad_switched_off", "@torch.no_grad()")


def test_the_backward_of_a_loss_that_a_function_returns_is_tried():
    found = explain(at_zero, apart=False)
    assert found.code == "not_finite_masked_sqrt_at_zero"
    assert "x.sqrt()" in found.did.text


def test_a_tensor_without_a_name_is_not_called_by_an_empty_one():
    said = str(explain(torch.zeros(1, requires_grad=True).log().sum().log(), names={}))
    assert "``" not in said


def frozen_in_parts():
    deep = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(12)])
    head = torch.nn.Linear(2, 1)
    for p in deep.parameters():
        p.requires_grad_(False)
    head.weight = torch.nn.Parameter(head.weight.detach(), requires_grad=False)
    head.bias = torch.nn.Parameter(head.bias.detach(), requires_grad=False)
    head(deep(torch.ones(3, 2))).sum().backward()


def test_the_line_that_froze_a_parameter_is_that_of_the_first_one_named():
    found = explain(frozen_in_parts, apart=False)
    assert (found.code, found.did.text) == ("no_grad_frozen", "p.requires_grad_(False)")
    assert found.tensor.startswith("deep[")
    assert "such as deep[" in found.findings[0].message


def read_as_numbers():
    angle = torch.nn.Parameter(torch.zeros(2))

    def turned():
        rows = [torch.tensor([math.cos(a), math.sin(a)], requires_grad=True) for a in angle]
        return torch.stack(rows).sum()

    turned().backward()
    return angle


def test_numbers_read_out_by_the_line_that_makes_a_tensor_of_them_are_what_cuts_the_graph():
    found = explain(read_as_numbers, apart=False)
    assert (found.code, found.tensor) == ("no_grad_python", "angle")
    assert "math.cos(a)" in found.did.text


def test_numbers_that_are_only_logged_are_not_what_cuts_the_graph():
    weight, other = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))

    def run():
        logged = [weight.sum().item()]
        torch.tensor(logged[0] + 1)
        (other * 2).sum().backward()
        return weight

    assert explain(run, apart=False).code == "unused"


def detached_loss(net):
    loss = net(torch.ones(3, 2)).sum()
    loss = loss.detach().requires_grad_()
    loss.backward()
    return net.weight


def test_a_loss_that_is_a_leaf_of_its_own_is_explained_by_the_line_that_took_it_out():
    found = explain(lambda: detached_loss(torch.nn.Linear(2, 1)), apart=False)
    assert (found.code, found.did.text) == ("no_grad_detach", "loss = loss.detach().requires_grad_()")


def two_epochs():
    net, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)

    def features(x, kept={}):  # noqa: B006 - which outlives the call, where no variable holds it
        if not kept:
            kept["x"] = torch.sigmoid(net(x))
        return kept["x"] + 0

    for _ in range(2):
        loss = head(features(torch.ones(1, 2))).sum()
        loss.backward()


def test_the_line_that_made_what_an_earlier_iteration_left_is_named():
    found = explain(two_epochs, apart=False)
    said = next(f for f in found.findings if f.code == "explain_freed_tie")
    assert said.params["by"] == 'kept["x"] = torch.sigmoid(net(x))'
    assert said.params["text"] == 'return kept["x"] + 0'
    assert found.did.text == "loss.backward()"


def hidden_view():
    def clip(left):
        left.clamp_(0.0, 1.0)

    def loss():
        whole = torch.ones(2, 4, requires_grad=True).exp()
        clip(whole[:, :2])
        return whole.sum()

    loss().backward()


def test_a_view_of_what_was_saved_is_not_said_to_be_what_was_saved():
    found = explain(hidden_view, apart=False)
    assert (found.tensor, found.did.text) == ("left", "left.clamp_(0.0, 1.0)")
    assert (found.made.text, found.saved.text[:6]) == ("clip(whole[:, :2])", "whole ")
    assert found.findings[1].params["shape"] == "2×4"


class WrongShape(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return None, grad_output.t() @ x


def test_shapes_are_written_as_everywhere():
    x, weight = torch.ones(2, 3), torch.ones(3, 4, requires_grad=True)
    found = str(explain(caught(lambda: WrongShape.apply(x, weight).sum().backward())))
    assert "a gradient of shape 4×3" in found
    assert "`weight` has shape 3×4" in " ".join(found.split())
    assert "[4, 3]" not in found


def test_the_shape_of_what_is_no_scalar_is_written_as_everywhere():
    w = torch.ones(3, 4, requires_grad=True)
    y = w * 2
    found = str(explain(caught(lambda: y.backward())))
    assert "shape 3×4" in found
    assert "(3, 4)" not in found


def masked_attention():
    scores = torch.zeros(3, 3, requires_grad=True)
    values = torch.ones(3, 2, requires_grad=True)
    masked = scores.masked_fill(torch.eye(3).cumsum(0) == 0, float("-inf"))
    masked = torch.where(torch.tensor([[True], [False], [True]]), masked, float("-inf"))
    weights = torch.softmax(masked, -1)
    out = weights @ values
    return out[0].sum() + out[2].sum()


def test_a_nan_of_forward_that_the_loss_does_not_show_is_told_with_its_own_line():
    found = explain(masked_attention, apart=False)
    assert (found.code, found.did.text) == ("not_finite_all_masked", "weights = torch.softmax(masked, -1)")
    assert [f.code for f in found.findings][1] == "explain_not_finite_hidden_at"
    assert "0 times infinity" not in str(found)


class Streaming(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.state = torch.nn.LSTM(2, 3), None

    def forward(self, x):
        h, state = self.rnn(x, self.state)
        self.state = state
        return h


def two_chunks():
    model = Streaming()
    for _ in range(2):
        out = model(torch.ones(1, 2))
        loss = out.sum()
        loss.backward()


def test_a_state_that_a_module_keeps_in_a_tuple_is_named_with_its_mend():
    found = explain(two_chunks)
    assert (found.code, found.tensor) == ("freed_carried", "model.state[0]")
    assert found.fix.source == "self.state = tuple(part.detach() for part in state)"


def adapted_twice():
    meta, learner = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    source = meta
    for _ in range(2):
        grads = torch.autograd.grad(source(torch.ones(1, 2)).sum() ** 2, list(source.parameters()), create_graph=True)
        for name, grad in zip(("weight", "bias"), grads, strict=True):
            setattr(learner, name, torch.nn.Parameter(getattr(source, name).data - 0.1 * grad))
        source = learner
    learner(torch.ones(1, 2)).sum().backward()
    return meta.weight


def test_parameters_made_anew_of_others_made_anew_are_traced_back_to_the_first():
    found = explain(adapted_twice, apart=False)
    assert (found.code, found.tensor) == ("unused_new_leaf", "meta.weight")
    assert found.did.text.startswith("setattr(learner, name, torch.nn.Parameter")
    assert "?" not in found.findings[0].message


def two_tasks():
    encoder, heads = torch.nn.Linear(2, 3), {"a": torch.nn.Linear(3, 1), "b": torch.nn.Linear(3, 1)}

    def losses_of(x):
        features = torch.tanh(encoder(x))
        return {name: head(features).sum() for name, head in heads.items()}

    losses = losses_of(torch.ones(1, 2))
    for loss in losses.values():
        loss.backward()


def test_losses_of_one_graph_are_not_said_to_be_carried_along():
    found = explain(two_tasks, apart=False)
    assert (found.code, found.tensor) == ("freed_shared", "loss")
    tie = next(f for f in found.findings if f.code == "explain_freed_tie")
    assert tie.params["by"].startswith("features =")


def mined():
    weight, found = torch.nn.Parameter(torch.ones(3)), []
    for k in range(3):
        found.append((weight[k] * 2).item())  # noqa: PERF401
    loss = torch.tensor(found, requires_grad=True).sum()
    loss.backward()
    return weight


def test_a_change_is_not_offered_where_gradients_arrive_at_no_other_leaf_than_before():
    found = explain(mined)
    assert (found.code, found.did.text) == ("no_grad_python", "found.append((weight[k] * 2).item())  # noqa: PERF401")
    assert found.fix is None


def test_a_leaf_is_not_taken_for_another_that_has_its_place_in_memory():
    leaf = torch.ones(1, requires_grad=True)
    cut, address = Cut("detach", None, "detach", "y", leaves=leaves_behind(leaf * 2)), id(leaf)
    assert cut.was(leaf)
    del leaf
    others = [torch.ones(1, requires_grad=True) for _ in range(10_000)]  # all alive: some takes the place that is free
    other = next(t for t in others if id(t) == address)
    assert not cut.was(other)


class HoldsItself(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.seen = torch.nn.Linear(2, 1), []
        self.seen.append(self.seen)

    def forward(self, x):
        return self.linear(x)


def twice_through():
    module = HoldsItself()
    y = module(torch.ones(1, 2)).sum()
    y.backward()
    y.backward()


def test_a_list_that_holds_itself_is_looked_through_once():
    assert explain(twice_through).code == "freed_again"


class Memory(torch.nn.Module):
    """Carries its state from one call to the next."""

    def __init__(self, read_again):
        super().__init__()
        self.inner, self.read_again, self.state = torch.nn.Linear(3, 3), read_again, None

    def reset(self):
        self.state = torch.zeros(2, 3)

    def forward(self, x):
        h = self.inner(x if self.state is None else x + self.state)
        self.state = h
        return self.state if self.read_again else h * 2


def steps_of(read_again):
    def program():
        torch.manual_seed(0)
        memory, optimizer = Memory(read_again), None
        optimizer = torch.optim.SGD(memory.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = memory(torch.randn(2, 3)).pow(2).sum()
            loss.backward()
            optimizer.step()

    return program


@pytest.mark.slow
def test_what_is_carried_is_detached_where_it_is_stored_unless_the_iteration_reads_it_from_there():
    kept, read = explain(steps_of(False)), explain(steps_of(True))
    first = Memory.forward.__code__.co_firstlineno
    for found in (kept, read):
        stored = [f for f in found.findings if f.code == "explain_freed_stored"]
        assert [(f.line, f.params["text"]) for f in stored] == [(first + 2, "self.state = h")]
    assert (kept.fix.line, kept.fix.source) == (first + 2, "self.state = h.detach()")
    assert read.fix.source == "loss.backward()\nmemory.state = memory.state.detach()"


class Table:
    """Keeps what it computed of its parameters, with the graph of the first time."""

    def __init__(self):
        self.weight, self.held = torch.ones(3, requires_grad=True), None

    def get(self):
        if self.held is None:
            root = self.weight.exp().sqrt()
            self.held = root.unsqueeze(1) * root.unsqueeze(0)
        return self.held


@pytest.mark.slow
def test_the_line_that_an_earlier_backward_shares_is_named_though_its_operations_save_nothing():
    def program():
        table, scale = Table(), torch.ones(3, 3, requires_grad=True)
        for _ in range(2):
            loss = (table.get() @ scale).sum()
            loss.backward()

    found = explain(program)
    line = Table.get.__code__.co_firstlineno + 3
    assert line in {f.line for f in found.findings} | {found.made.line if found.made else None}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.distributions.Normal(self.mean(x), self.spread(x).exp())


def drawn():
    torch.manual_seed(0)
    net, critic = Net(), torch.nn.Linear(2, 1)
    distribution = net(torch.ones(4, 3))
    action = distribution.sample()
    loss = critic(action).mean() - distribution.entropy().mean()
    loss.backward()
    return net.mean.weight


def numbers():
    weight = torch.ones(3, requires_grad=True)
    terms = []
    for scale in (0.5, 2.0):
        value = (weight * scale).sum()
        terms.append(3 * value.item())
    loss = torch.tensor(terms, requires_grad=True).sum()
    loss.backward()
    return weight


def taken_over():
    weight, layer = torch.ones(3, requires_grad=True), torch.nn.Linear(3, 1, bias=False)
    made = weight * 2
    layer.weight.data = made.view(1, 3)
    loss = layer(torch.ones(2, 3)).sum()
    loss.backward()
    return weight


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "code", "text"),
    [
        (drawn, "no_grad_inside", "action = distribution.sample()"),
        (numbers, "unused", None),
        (taken_over, "no_grad_data", "layer.weight.data = made.view(1, 3)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_leaf_that_no_gradient_reaches_is_followed_to_where_its_values_leave_the_graph(program, code, text):
    found = explain(program)
    assert (found.code, None if found.did is None else found.did.text) == (code, text)
    if program is numbers:
        assert found.findings[1].params["text"] == "terms.append(3 * value.item())"
    if program is taken_over:
        assert found.findings[0].params["name"] == "layer.weight"


@pytest.mark.slow
def test_a_sample_that_gradients_are_to_pass_through_is_drawn_by_reparametrisation_where_that_works():
    assert explain(drawn).fix.source == "action = distribution.rsample()"


@pytest.mark.slow
def test_a_tensor_without_a_name_is_not_called_by_that_of_the_loss():
    def program():
        weight = torch.ones(3, requires_grad=True)
        loss = weight.exp().detach().sum()
        loss.backward()

    found = explain(program)
    assert found.code == "no_grad_detach"
    assert "`loss`" not in found.findings[0].message


def slope_in_the_loss():
    x = torch.linspace(0, 1, 5).requires_grad_()
    weight = torch.ones(1, requires_grad=True)
    y = (weight * x).exp()
    slope = torch.autograd.grad(y, x, torch.ones_like(y))[0]
    loss = (slope - y).pow(2).sum()
    loss.backward()


def test_of_a_gradient_that_goes_into_the_loss_without_a_graph_no_one_change_is_offered():
    found = explain(slope_in_the_loss)
    assert (found.code, found.did.text) == (
        "freed_create_graph", "slope = torch.autograd.grad(y, x, torch.ones_like(y))[0]"
    )  # fmt: skip
    assert found.findings[1].code == "explain_freed_create_graph"
    assert found.fix is None  # with either, another gradient


def rolled_out():
    weight = torch.ones(2, requires_grad=True)

    def states():
        kept = torch.zeros(4, 2)
        for t in range(3):
            kept[t + 1] = weight * kept[t] + 1
        return kept[1:]

    out = states()
    out.sum().backward()


@pytest.mark.slow
def test_a_tensor_is_called_what_the_line_that_writes_into_it_calls_it():
    assert explain(rolled_out).tensor == "kept"


@pytest.mark.slow
def test_what_is_differentiated_without_a_name_is_quoted():
    def program():
        weight = torch.ones(3, requires_grad=True)
        trunk = weight.exp()
        for scale in (1.0, 2.0):
            (scale * trunk.pow(2).sum()).backward()

    assert "``" not in " ".join(f.message for f in explain(program).findings)


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


def positions():
    return torch.tensor([1.0, 2.0], requires_grad=True) * 3


@pytest.mark.slow
def test_a_tensor_without_a_name_that_is_no_leaf_is_told_by_its_line():
    def program():
        held = [positions()]
        held[0].pow(2).sum().backward()
        return held[0] if held else None

    found = explain(program)
    words = " ".join(f.message for f in found.findings)
    assert found.code == "grad_none_not_a_leaf"
    assert "?" not in words


class Embedder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self._cache = torch.nn.Linear(2, 2), {}

    def forward(self, key):
        if key not in self._cache:
            self._cache[key] = self._computed(key)
        return self._cache[key]

    def _computed(self, key):
        return self.inner(torch.ones(2) * key)


@pytest.mark.slow
def test_a_cache_that_keeps_graphs_is_named_with_the_line_that_stores():
    def program():
        embedder, head = Embedder(), torch.nn.Linear(2, 1)
        for _ in range(2):
            loss = head(embedder(1)).pow(2).sum()
            loss.backward()

    found = explain(program)
    assert found.tensor == "embedder._cache[1]"
    stored = [f.params["text"] for f in found.findings if f.code == "explain_freed_stored"]
    assert stored == ["self._cache[key] = self._computed(key)"]


class Pair:
    def __init__(self):
        self.students = [torch.nn.Linear(2, 2) for _ in range(2)]
        self.optimizer = torch.optim.SGD(self.students[0].parameters(), lr=0.1)

    def step(self):
        a, b = self.students
        hidden = a(torch.ones(3, 2, requires_grad=True))
        first, second = hidden.pow(2).sum(), b(hidden).pow(2).sum()
        del a, b
        first.backward(retain_graph=True)
        self.optimizer.step()
        second.backward()


@pytest.mark.slow
def test_a_parameter_of_a_module_in_a_list_has_a_name():
    assert explain(Pair().step).tensor == "self.students[0].weight"


class Schedule(torch.nn.Module):
    """Computes a learned table once."""

    def __init__(self):
        super().__init__()
        self.raw = torch.nn.Parameter(torch.zeros(4))
        self.table = torch.cumprod(self.raw.sigmoid(), 0)


@pytest.mark.slow
def test_what_is_computed_once_is_not_said_to_be_carried_and_no_change_stops_it_from_learning():
    def program():
        schedule, head = Schedule(), torch.nn.Linear(4, 1)
        for _ in range(3):
            loss = head(schedule.table).pow(2).sum()
            loss.backward()

    found = explain(program)
    assert (found.code, found.tensor) == ("freed_shared", "schedule.table")
    assert found.fix is None


@pytest.mark.slow
def test_a_leaf_made_of_numbers_is_not_said_to_have_made_the_parameter():
    assert explain(numbers).made.text == "weight = torch.ones(3, requires_grad=True)"


def split_and_scaled():
    z = torch.ones(2, 4, requires_grad=True) * 2
    keep, move = z[:, :2], z[:, 2:]
    scale = (keep @ torch.ones(2, 2, requires_grad=True)).tanh()
    move.mul_(scale)
    z.sum().backward()


def test_what_was_written_into_is_not_called_by_the_name_of_what_was_saved_beside_it():
    found = explain(split_and_scaled, apart=False)
    assert (found.tensor, found.did.text) == ("move", "move.mul_(scale)")
    said = found.findings[1]
    assert (said.code, said.params["op"], said.params["shape"]) == ("explain_in_place_saved_at", "Mm", "2×2")


def gated_and_leaked():
    gate = torch.sigmoid(torch.ones(2, 4, requires_grad=True) * 2)
    forget, other = gate[:, :2], gate[:, 2:]
    forget.mul_(0.5)
    (forget + other).sum().backward()


def test_of_a_result_that_is_changed_through_a_view_the_shape_of_the_result_is_said():
    found = explain(gated_and_leaked, apart=False)
    said = found.findings[1]
    assert (found.tensor, said.code, said.params["shape"]) == ("forget", "explain_in_place_saved_result_at", "2×4")


def two_buffers():
    w, a, b = torch.ones(2, requires_grad=True), torch.ones(2), torch.ones(2)
    loss = (w * a * 2).sum() + (w * b * 3).sum()
    a.add_(1)
    b.add_(1)
    loss.backward()


def test_other_lines_that_changed_what_was_saved_are_said():
    found = explain(two_buffers, apart=False)
    others = [finding.line for finding in found.findings if finding.code == "explain_in_place_others"]
    assert len(others) == 1
    assert {others[0] - found.did.line} <= {1, -1}


def carried_and_stepped():
    cell = torch.nn.Linear(2, 2)
    opt, h = torch.optim.SGD(cell.parameters(), lr=0.1), torch.ones(1, 2)
    for _ in range(3):
        h = cell(h).tanh()
        h.sum().backward(retain_graph=True)
        opt.step()


def test_a_step_under_a_graph_that_is_carried_on_is_named():
    found = explain(carried_and_stepped, apart=False)
    assert (found.code, found.did.text) == ("in_place_step", "opt.step()")


def weighed():
    body, last = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    recon = last(body(torch.ones(1, 2)).tanh()).exp()
    grad = torch.autograd.grad(recon.sum(), last.weight)[0]
    (recon * grad.norm().detach()).sum().backward()


def test_a_gradient_that_is_used_is_not_answered_with_adding_the_losses():
    found = explain(weighed)
    assert found.code == "freed_shared_grad"
    assert found.fix is not None
    assert "retain_graph=True" in found.fix.source


def half_overflows():
    x = torch.tensor([20.0, -1.0], dtype=torch.float16, requires_grad=True)
    torch.where(x > 0, x, torch.exp(x) - 1).sum().backward()
    return x


def test_a_where_goes_around_the_input_of_what_overflows():
    found = explain(half_overflows)
    assert found.fix is not None
    assert "torch.exp(torch.where(x > 0, 0, x))" in found.fix.source


def copied_between_leaves():
    w, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    w.copy_(b)


def test_of_two_leaves_the_one_that_is_written_into_is_named():
    found = explain(copied_between_leaves, apart=False)
    assert (found.code, found.tensor) == ("leaf", "w")


def switched_on_inside():
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        with torch.enable_grad():
            w.sum()
        y = (w * 2).sum()
    y.backward()


def test_the_line_that_switched_gradients_off_is_the_one_in_force():
    found = explain(switched_on_inside, apart=False)
    assert found.findings[1].params["text"] == "with torch.no_grad():"


def remembered():
    weight, memory = torch.ones(2, requires_grad=True), torch.zeros(3, 2)
    for i in range(3):
        key = weight * (i + 1)
        memory[i] = key.exp()
        loss = (memory * key).sum()
        loss.backward()


def test_a_memory_that_is_written_into_by_place_is_what_is_carried():
    found = explain(remembered)
    assert (found.code, found.tensor) == ("freed_carried", "memory")
    assert found.fix is not None
    assert "memory = memory.detach()" in found.fix.source


def infinite_at_first():
    w = torch.nn.Parameter(torch.tensor([0.0, 1.0]))
    for first in (True, False):
        values = w.log() if first else w * 2
        loss = values.sum()
        loss.backward()
        w.grad = None


def infinite_and_stepped():
    w = torch.nn.Parameter(torch.tensor([0.0, 1.0]))
    opt = torch.optim.SGD([w], lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        loss = w.reciprocal().sum()
        loss.backward()
        opt.step()


@pytest.mark.parametrize(
    ("program", "text"),
    [(infinite_at_first, "values = w.log()"), (infinite_and_stepped, "loss = w.reciprocal().sum()")],
)
def test_a_loss_that_was_not_finite_is_not_put_down_to_its_backward(program, text):
    found = explain(program, apart=False)
    assert found.findings[0].code == "explain_not_finite_forward"
    assert found.did.text.startswith(text)
    assert "What is differentiated is finite" not in str(found)


def both_on_one_line():
    w = torch.ones(3, requires_grad=True)
    s = w.exp()
    a, b = (s * 2).sum(), (s**2).sum()
    a.backward(), b.backward()


def test_a_line_with_both_backwards_is_not_said_to_have_run_before():
    assert explain(both_on_one_line, apart=False).findings[0].message.startswith("An earlier backward, in line")


def adapted_by_hand():
    net, fast = torch.nn.Linear(2, 1), {}
    fast = dict(net.named_parameters())
    for _ in range(2):
        loss = torch.func.functional_call(net, fast, (torch.ones(1, 2),)).pow(2).sum()
        gradients = torch.autograd.grad(loss, list(fast.values()))
        for (name, p), g in zip(list(fast.items()), gradients, strict=True):
            fast[name] = (p - 0.1 * g).detach().requires_grad_()
    torch.func.functional_call(net, fast, (torch.ones(1, 2),)).sum().backward()
    return net.weight


def test_leaves_made_anew_of_leaves_made_anew_are_followed_to_the_first():
    found = explain(adapted_by_hand, apart=False)
    assert (found.code, found.tensor) == ("no_grad_detach", "net.weight")
    assert found.did.text.startswith("fast[name] =")


def rounded():
    w = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    scale = w.max() / 7
    q = (w / scale).round().int() * scale.detach()
    q.sum().backward()


def test_a_detach_beside_integers_is_not_taken_for_what_cuts_the_graph():
    found = explain(rounded)
    assert (found.code, found.fix) == ("no_grad_integer", None)


def expanded():
    bias = torch.nn.Parameter(torch.zeros(3))
    rows = bias.expand(2, 3)
    rows[0] += 1


def asked_of_a_constant():
    x, t = torch.ones(3, requires_grad=True), torch.linspace(0, 1, 3)
    u = (x**2).sum()
    torch.autograd.grad(u, t)


def test_a_view_of_a_leaf_is_not_said_to_be_one_and_a_constant_not_to_be_what_is_computed_from():
    assert "or a view of one" in explain(expanded, apart=False).findings[0].message
    found = explain(asked_of_a_constant, apart=False)
    assert found.findings[0].message == "`t` does not require grad, so no graph leads back to it."


class Attends(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.cache = torch.nn.Linear(2, 2), None

    def forward(self, x):
        k = self.inner(x)
        self.cache = k if self.cache is None else torch.cat([self.cache, k])
        return self.cache.sum()


@pytest.mark.slow
def test_what_a_line_reads_and_stores_again_is_named_and_not_said_to_be_made_elsewhere():
    def program():
        attends = Attends()
        for _ in range(3):
            loss = attends(torch.ones(1, 2)).exp()
            loss.backward()

    found = explain(program)
    assert (found.code, found.tensor) == ("freed_carried", "attends.cache")
    assert found.made.text.startswith("self.cache = k if")
    assert found.fix is not None


def messages_of(program, apart=False):
    found = explain(program, apart=apart)
    return found, [finding.message for finding in found.findings]


def pruned():
    scores = torch.randn(3, 2, requires_grad=True).softmax(1)
    for k in range(3):
        row = scores[k]
        row.mul_(2)
    scores.sum().backward()


def test_of_a_view_that_is_written_into_the_line_of_what_it_shows_is_named():
    found, said = messages_of(pruned)
    assert (found.code, found.tensor) == ("in_place", "row")
    assert any(line.startswith("`row` is a view of what line") and "scores = torch.randn" in line for line in said)
    assert not any("is a view of" in line for line in messages_of(broken)[1])


def unbound():
    rate = torch.ones(1, requires_grad=True)
    path = torch.zeros(3, 2)
    path[0] = rate
    for k in range(2):
        x, v = path[k]
        path[k + 1] = torch.stack((v, -rate[0] * x))
    path.sum().backward()


def test_a_saved_view_that_torch_refuses_in_backward_is_put_down_to_the_line_that_wrote():
    found, said = messages_of(unbound)
    assert (found.code, found.did.text) == ("in_place", "path[k + 1] = torch.stack((v, -rate[0] * x))")
    assert said[0].endswith("changed `path` in place.")
    left = explain(caught(unbound))
    assert (left.code, left.did) == ("in_place", None)
    assert "what is left does not show by which line" in left.findings[0].message


def read_out():
    net, terms = torch.nn.Linear(2, 1), []
    for row in torch.ones(3, 2):
        value = net(row).sum()
        terms += [value.item()]
    torch.tensor(terms, requires_grad=True).sum().backward()
    return net.weight


def test_numbers_that_become_a_tensor_again_have_both_lines():
    found, said = messages_of(read_out)
    assert found.did.text == "terms += [value.item()]"
    assert "makes a tensor of such values" in said[1]
    assert "torch.tensor(terms, requires_grad=True)" in said[1]
    assert "cut off    net.weight" in str(found)


def test_an_error_that_a_program_catches_is_explained_and_said_to_be_caught():
    def program():
        with pytest.raises(RuntimeError):
            broken()

    found, said = messages_of(program)
    assert (found.code, found.tensor, found.did.text) == ("in_place", "y", "y[0] = SECOND")
    assert said[-2] == "The program caught this error itself and went on."


def test_parameters_that_were_frozen_when_they_were_used_are_named_though_they_are_not_any_more():
    def program():
        net = torch.nn.Linear(2, 1)
        net.weight.requires_grad_(False)
        net.bias.requires_grad_(False)
        loss = net(torch.ones(2)).sum()
        net.requires_grad_(True)
        loss.backward()

    found, said = messages_of(program)
    assert (found.code, found.did.text) == ("no_grad_frozen", "net.weight.requires_grad_(False)")
    assert "had `requires_grad=True` when it was used" in said[0]


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

    found, said = messages_of(program)
    assert found.code == ("nothing" if again else "grad_none_removed")
    assert again or "set `net.weight.grad` to None, and no backward has" in said[0]


def test_a_row_of_a_parameter_keeps_no_gradient():
    table = torch.nn.Parameter(torch.ones(4, 2))

    def program():
        table[1].square().sum().backward()
        return table[1]

    found, _ = messages_of(program)
    assert (found.code, found.tensor) == ("grad_none_not_a_leaf", "table[1]")
    assert found.findings[0].code == "explain_grad_none_named"


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_nan_that_anomaly_mode_refuses_has_its_line_and_its_trap():
    def program():
        x = torch.zeros(2, requires_grad=True)
        with torch.autograd.detect_anomaly():
            root = (x * x).sqrt()
            (root * x.detach()).sum().backward()

    found, said = messages_of(program)
    assert (found.did.text, found.code) == ("root = (x * x).sqrt()", "not_finite_masked_sqrt_at_zero")
    assert "The derivative of `sqrt` is infinite at 0." in said


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


@pytest.mark.slow
def test_a_state_that_is_zeroed_gets_new_zeros_rather_than_a_clone_with_a_graph():
    def program():
        state = torch.ones(2, requires_grad=True).exp()
        loss = state.square().sum()
        state.zero_()
        loss.backward()

    assert explain(program).fix.source == "state = torch.zeros_like(state)"


class Copies(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        scale = torch.nn.Parameter(self.scale.data)
        return x * scale


def test_a_leaf_with_the_memory_of_a_parameter_is_not_called_by_its_name():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), Copies())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        return net[1].scale

    found, said = messages_of(program)
    assert (found.code, found.tensor, found.did.text) == ("unused_new_leaf", "net[1].scale", "return x * scale")
    assert "uses another leaf with the same memory" in said[0]
    assert not any("does not hold" in line for line in said)


@pytest.mark.slow
def test_a_line_that_reads_what_it_writes_into_is_mended_though_a_clone_before_it_would_not_do():
    def program():
        gain = torch.ones(2, 2, requires_grad=True)
        cov = torch.eye(2) + gain
        cov -= cov.mm(cov)
        cov.sum().backward()

    assert explain(program).fix.source == "cov = cov - cov.mm(cov)"


def entropy_masked_afterwards():
    p = torch.tensor([0.0, 0.5, 0.5], requires_grad=True)
    terms = torch.where(p > 0, p * torch.log(p), torch.zeros(3))
    terms.sum().backward()
    return p


def test_masking_what_comes_out_is_said_not_to_help_where_an_earlier_operation_made_the_infinity():
    text = " ".join(str(explain(entropy_masked_afterwards, apart=False)).split())
    assert "The gradient that arrives at `Mul` is 0 there" in text
    assert "Masking what comes out of `log` does not help" in text


def classes_as_numbers():
    scores = torch.ones(3, 4, requires_grad=True)
    best = scores.argmax(-1).float()
    (best - 1).square().mean().backward()


def test_a_line_that_turns_integers_into_numbers_again_is_not_said_to_give_integers():
    text = " ".join(str(explain(classes_as_numbers, apart=False)).split())
    assert "goes through integers or booleans: no gradient goes back through them" in text
