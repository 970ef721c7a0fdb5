"""audit(): every custom gradient of a program checked where it was used, worst first, with what was not seen."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import threading
from typing import ClassVar

import pytest
import said
import torch
import torch.utils.checkpoint
from fn import BASE, Fn, written
from torch import nn

import nbautograd
from nbautograd import messages
from nbautograd.core import formats, process_copy
from nbautograd.core.checking import gradcheck as core_gradcheck
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.budget import OutOfBudgetError
from nbautograd.core.display import Phrase
from nbautograd.errors import CallError, GradcheckError
from nbautograd.inspection import audit_checks, evidence
from nbautograd.inspection.audit_report import joined

pytestmark = pytest.mark.usefixtures("without_fixes")


Right = Fn.of("Right", "x: save(x); return x.exp()", "grad: (x,) = saved; return grad * x.exp()")
Wrong = Right.of("Wrong", backward="grad: (x,) = saved; return grad * x.exp() * 2")
# Right once; its backward takes the input out of the graph.
WrongTwice = Fn.of("WrongTwice", "x: save(x); return x.exp()", "grad: (x,) = saved; return grad * x.detach().exp()")
# Straight through: meant to be no derivative.
Rounded = Fn.of("Rounded", "x: return x.round()", "grad: return grad")
# A kernel that takes float32 alone, as many extensions do.
SingleOnly = Right.of("SingleOnly",
    'x: if x.dtype is not torch.float32: raise TypeError("float32 only"); return Right.forward(ctx, x)')  # fmt: skip


class Buffered(Right):
    """Computes in a buffer that is made without a dtype, and fills it with what float32 holds and float64 exceeds."""

    elsewhere: ClassVar[set[torch.dtype]] = set()  # what another thread makes meanwhile

    def forward(ctx, x):
        ctx.save_for_backward(x)
        thread = threading.Thread(target=lambda: Buffered.elsewhere.add(torch.zeros(1).dtype))
        thread.start()
        thread.join()
        largest = torch.full(x.shape, -torch.finfo(x.dtype).max)
        counts = torch.arange(x.numel())
        assert counts.dtype is torch.int64
        out = torch.zeros(x.shape)
        out += torch.maximum(x, largest).exp()
        return out


# Off by less than float32 can tell.
BufferedAndSlightlyOff = Buffered.of("BufferedAndSlightlyOff",
    backward="grad: (x,) = saved; return grad * x.exp() * (1 + 3e-5)")  # fmt: skip
# Reads float64 as if it were float32: no error, other numbers; right where the program calls it.
GarbageInDouble = Right.of("GarbageInDouble",
    "x: save(x); return x.exp() if x.dtype is torch.float32 else x.view(torch.float32)[..., ::2].double()")  # fmt: skip
# What `x.float()` returns is `x` itself in the program's dtype, and a copy in double precision.
InPlaceInSingle = Fn.of("InPlaceInSingle", "x: y = x.float().exp_(); save(y); return y.clone()",
    "grad: (y,) = saved; return grad * y")  # fmt: skip
# Wrong for positive inputs only, which the program may never have.
WrongAbove = Right.of("WrongAbove", backward="grad: (x,) = saved; return grad * x.exp() * (1 + (x > 0))")
# Mixes the rows of the batch, so that no slice of it can stand for all; wrong by a factor.
Mixing = Fn.of("Mixing", "x: return x - x.mean(0, keepdim=True)",
    "grad: return 2 * (grad - grad.mean(0, keepdim=True))")  # fmt: skip


def leaf(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(1)).requires_grad_()


LONG = {"budget": 3600.0, "per_function": 3600.0}  # on a busy machine, nothing is left out for lack of time


def audited(*calls, **options):
    with nbautograd.audit(**(options or LONG)) as audit:
        for cls, *args in calls:
            cls.apply(*args)
    return audit.report()


def verdicts(report):
    return {f.name: f.verdict for f in report.functions}


@pytest.mark.usefixtures("fixes")
def test_the_cause_and_the_tried_fix_are_those_of_a_whole_check():
    report = audited((Wrong, leaf(3)))
    situation = report.functions[0].situations[0]
    assert situation.cause.code == "missing_factor"
    assert situation.cause.fix.verified
    assert "* 2" not in situation.cause.fix.source
    assert situation.report.verdict == "wrong"
    assert situation.dtype == "float64"
    assert report.functions[0].file.startswith(__file__)


def test_one_callable_can_be_audited_at_once():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    report = nbautograd.audit(lambda x: Wrong.apply(model(x)).sum(), leaf(2, 3), **LONG)
    assert verdicts(report) == {"Wrong": "wrong"}
    assert all(p.grad is None for p in model.parameters())
    assert verdicts(nbautograd.audit(Right, leaf(2), **LONG)) == {"Right": "right"}


def test_a_kernel_for_one_dtype_is_checked_in_it():
    report = audited((SingleOnly, leaf(3)), (GarbageInDouble, leaf(3)), (InPlaceInSingle, leaf(3)))
    assert verdicts(report) == {"SingleOnly": "right", "GarbageInDouble": "right", "InPlaceInSingle": "wrong"}
    assert {s.dtype for f in report.functions for s in f.situations} == {"float32"}


def test_buffers_without_a_dtype_follow_a_check_in_double_precision_in_this_thread_alone():
    report = audited((Buffered, leaf(3)), (BufferedAndSlightlyOff, leaf(3)))
    assert verdicts(report) == {"Buffered": "right", "BufferedAndSlightlyOff": "wrong"}
    assert {s.dtype for f in report.functions for s in f.situations} == {"float64"}
    assert Buffered.elsewhere == {torch.float32}


def test_a_gradient_is_judged_at_what_the_program_gave_it():
    below, above = -leaf(4).detach().abs(), leaf(4).detach().abs()
    assert audited((WrongAbove, below.requires_grad_())).verdict == "right"
    assert audited((WrongAbove, above.requires_grad_())).verdict == "wrong"


def test_every_kept_call_of_a_situation_is_checked():
    below, above = -leaf(4).detach().abs(), leaf(5).detach().abs()
    report = audited((WrongAbove, below.requires_grad_()), (WrongAbove, above.requires_grad_()))
    [situation] = report.functions[0].situations
    assert (situation.verdict, situation.calls, situation.checked) == ("wrong", 2, 2)


def test_a_large_input_is_cut_to_a_few_rows_where_the_batch_allows_it():
    report = audited((Wrong, leaf(300, 100)), (Right, leaf(300, 100)))
    assert verdicts(report) == {"Wrong": "wrong", "Right": "right"}
    assert {s.how for f in report.functions for s in f.situations} == {"slice"}


def test_a_large_input_that_cannot_be_cut_moves_along_random_directions():
    report = audited((Mixing, leaf(300, 100)))
    [situation] = report.functions[0].situations
    assert (situation.verdict, situation.how) == ("wrong", "smaller")
    assert situation.cause is not None
    sizes = formats.shape(situation.report.blocks[0, 0].input_shape)
    assert said.says(report, "views.audit.smaller", sizes=f"`x` {sizes}")


@pytest.mark.parametrize(("most", "verdict", "directions"), [(0, "unchecked", 0), (1, "right", 1), (3, "right", 3)])
def test_the_directions_that_there_was_time_for_count(monkeypatch, most, verdict, directions):
    along = evidence.directional_derivative
    done = []

    def until_time_is_up(*args, **options):
        if len(done) == most:
            raise OutOfBudgetError
        done.append(args)
        return along(*args, **options)

    monkeypatch.setattr(evidence, "directional_derivative", until_time_is_up)
    monkeypatch.setattr(
        audit_checks.Checks, "_verdict", lambda *args: GradcheckReport(args[1].__name__, "cannot tell", complete=False)
    )
    monkeypatch.setattr(audit_checks, "EVALUATIONS", 1e9)  # as if a forward took minutes
    [situation] = audited((Right, leaf(audit_checks.QUICK + 1))).functions[0].situations
    assert (situation.verdict, situation.directions) == (verdict, directions)
    if not most:
        assert situation.reason.message_id == "audit.out_of_time_size"
        assert situation.reason.params["count"] > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_kinks_on_the_way_are_no_wrong_gradient(dtype):
    Size = Fn.of("Size", "x: save(x); return x.abs().sum(-1)", "g: (x,) = saved; return g[..., None] * x.sign()")
    Off = Size.of("Off", backward="grad: return 1.01 * Size.backward(ctx, grad)")
    report = audited((Size, leaf(40, 50, dtype=dtype)), (Off, leaf(40, 50, dtype=dtype)))
    assert verdicts(report) == {"Size": "right", "Off": "wrong"}


def test_a_program_that_raises_is_its_own_and_what_ran_before_is_checked():
    audit = nbautograd.audit(**LONG)
    with pytest.raises(ZeroDivisionError), audit:
        divide_after(Wrong.apply(leaf(3)))
    assert audit.report().verdict == "wrong"


def divide_after(_):
    return 1 / 0


def test_of_many_classes_those_without_time_say_so():
    classes = [type(Right)(f"F{k}", (Right,), {}) for k in range(300)]
    report = audited(*((cls, leaf(2)) for cls in classes), budget=0.2)
    assert len(report.functions) == 300
    unchecked = [f for f in report.functions if f.verdict == "unchecked"]
    assert unchecked
    assert {str(s.reason) for f in unchecked for s in f.situations} == {
        messages.text("audit.out_of_time", seconds="0.2")
    }
    assert len(str(report).splitlines()) < 120


def test_an_interrupt_keeps_what_is_done(monkeypatch):
    done = []

    def interrupted(fn, inputs, **options):
        if done:
            raise KeyboardInterrupt
        done.append(fn)
        return core_gradcheck.gradcheck(fn, inputs, **options)

    monkeypatch.setattr(audit_checks, "gradcheck", interrupted)
    report = audited((Wrong, leaf(3)), (Right, leaf(3)))
    assert not report.complete
    assert verdicts(report) == {"Wrong": "wrong", "Right": "unchecked"}
    assert "interrupted" in str(report)


def test_progress_rises_to_its_end_and_can_stop_the_checks():
    told = []
    with nbautograd.audit(**LONG) as audit:
        Right.apply(leaf(3))
        Wrong.apply(leaf(3))
    audit.report(progress=lambda done, total, what: told.append((done, total, what)))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert {total for _, total, _ in told} == {400}
    assert told[-1][0] <= 400

    def stop(done, total, what):
        raise KeyboardInterrupt

    with nbautograd.audit(**LONG) as audit:
        Right.apply(leaf(3))
    assert not audit.report(progress=stop).complete


def test_wrong_gradients_can_raise():
    with pytest.raises(GradcheckError, match="Wrong"):
        audited((Wrong, leaf(3))).raise_if_wrong()
    right = audited((Right, leaf(3)))
    assert right.raise_if_wrong() is right


@pytest.mark.parametrize(
    "make",
    [
        lambda: nbautograd.audit(budget=0),
        lambda: nbautograd.audit(per_function="long"),
        lambda: nbautograd.audit(None, 3),
        lambda: nbautograd.audit(3),
    ],
)
def test_a_call_that_makes_no_sense_is_a_sentence(make):
    with pytest.raises(CallError):
        make()


def test_a_function_of_an_installed_package_stands_at_its_version():
    def program(x):
        return torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True).sum()

    report = nbautograd.audit(program, leaf(3), **LONG)
    [function] = report.functions
    version = importlib.metadata.version("torch")
    assert function.package == json.loads(json.dumps(report.to_dict()))["functions"][0]["package"] == f"torch {version}"
    assert f"(torch {version})" in str(report)
    assert audited((Right, leaf(3))).functions[0].package == ""


def test_who_made_the_calls_is_kept_by_situation_and_joined():
    reports = []
    for names in (("a", "b"), ("b", "c")):
        with nbautograd.audit(**LONG) as audit:
            for name in names:
                audit.watch.caller = name
                Wrong.apply(leaf(3))
            audit.watch.caller = ""
            Right.apply(leaf(3))
        reports.append(audit.report())
    whole = joined(reports)
    assert {f.name: f.tests for f in whole.functions} == {"Wrong": ("a", "b", "c"), "Right": ()}
    assert said.says(whole, "views.audit.tests", tests="`a`, `b` and `c`")
    assert [s["tests"] for f in whole.to_dict()["functions"] for s in f["situations"]] == [["a", "b", "c"], []]
    assert {test for f in whole.redact().functions for s in f.situations for test in s.tests} == set()


def test_calls_that_were_checked_are_counted_and_wrong_second_derivatives_explained():
    report = audited(*[(WrongTwice, leaf(3)) for _ in range(5)])
    assert said.says(report, "views.audit.left_out", checked=3, calls=5)
    assert said.says(report, "views.audit.second_means")
    assert "once_differentiable" in str(report)
    assert not said.says(audited((Right, leaf(3))), "views.audit.second_means")


def test_the_report_waits_for_the_end_of_the_block():
    with nbautograd.audit(**LONG) as audit, pytest.raises(CallError, match=said.pattern("audit.still_open")):
        audit.report()


def test_inside_vmap_torch_calls_no_method_of_the_users_and_the_report_says_so():
    Batched = Fn.of("Batched", "x: return x * 2", "grad: return grad * 2", setup_context="inputs, output: pass")
    Batched.generate_vmap_rule = True
    with nbautograd.audit(**LONG) as audit:
        torch.vmap(Batched.apply)(torch.randn(3, requires_grad=True))
    assert "torch.vmap" in str(audit.report())


def test_an_operation_of_torch_library_has_its_name_and_the_lines_of_its_author():
    @torch.library.custom_op("nbautograd_audit::twice", mutates_args=())
    def twice(x: torch.Tensor, times: int) -> torch.Tensor:
        return x * times

    def setup_context(ctx, inputs, output):
        ctx.times = inputs[1]

    def backward(ctx, grad):
        return grad * ctx.times**2, None

    twice.register_autograd(backward, setup_context=setup_context)
    with nbautograd.audit(**LONG) as audit:
        twice(leaf(3), 3)
    [function] = audit.report().functions
    assert (function.name, function.module) == ("nbautograd_audit::twice", __name__)
    assert (function.file, function.line) == (__file__, backward.__code__.co_firstlineno)
    [situation] = function.situations
    assert situation.verdict == "wrong"
    assert [str(one) for one in situation.inputs] == ["x: float32 3", "times: 3"]
    assert situation.cause.line == backward.__code__.co_firstlineno + 1
    assert {f.code for f in function.findings} == {"opcheck_faketensor", "opcheck_aot_dispatch_dynamic"}
    assert "test_faketensor" in str(audit.report())  # no fake implementation is registered


def test_a_registered_rule_for_batches_is_compared_with_the_items_one_by_one():
    @torch.library.custom_op("nbautograd_audit::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    @square.register_fake
    def _(x):
        return torch.empty_like(x)

    square.register_autograd(
        lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )

    def codes():
        with nbautograd.audit(**LONG) as audit:
            square(leaf(3))
        [function] = audit.report().functions
        assert not function.findings
        return {f.code for s in function.situations for f in s.findings}

    assert codes() == set()
    square.register_vmap(lambda info, in_dims, x: (x * x * 2, in_dims[0]))
    assert codes() == {"vmap_wrong"}


def test_lists_and_keyword_only_arguments_of_an_operation_are_checked_as_they_are():
    schema = "(Tensor[] xs, *, float scale) -> Tensor"  # torch 2.6 reads list[Tensor] out of no annotation

    @torch.library.custom_op("nbautograd_audit::scaled_sum", mutates_args=(), schema=schema)
    def scaled_sum(xs, *, scale):
        return torch.stack(xs).sum(0) * scale

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.count, ctx.scale = len(inputs[0]), keyword_only_inputs["scale"]

    def backward(ctx, grad):
        return [grad * ctx.scale] * ctx.count

    scaled_sum.register_autograd(backward, setup_context=setup_context)
    with nbautograd.audit(**LONG) as audit:
        scaled_sum([leaf(3), leaf(3)], scale=2.0)
    [function] = audit.report().functions
    assert function.calls == 1
    assert function.verdict in ("right", "cannot tell")


@pytest.mark.usefixtures("fixes")
def test_checking_leaves_the_program_as_it_is():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    with nbautograd.audit(**LONG) as audit:
        Wrong.apply(model(leaf(4, 3))).sum().backward()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    grads = [p.grad.clone() for p in model.parameters()]
    seed = torch.get_rng_state()
    audit.report()
    assert torch.equal(seed, torch.get_rng_state())
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), grads, strict=True))


def test_reports_of_several_processes_are_joined():
    first = audited((Wrong, leaf(3)), (Right, leaf(3)))
    second = audited((Wrong, leaf(3)), (Rounded, leaf(3)))
    with nbautograd.audit(**LONG) as audit:
        pass
    whole = joined([first.without_blocks(), second, audit.report()])
    assert verdicts(whole) == {"Wrong": "wrong", "Rounded": "meant", "Right": "right"}
    [situation] = whole.functions[0].situations
    assert (situation.calls, whole.functions[0].calls) == (2, 2)
    # of torch.compile in this process, as other tests use it, the report says so
    assert [note for note in whole.notes if note != Phrase("audit.compiled")] == []
    assert not first.without_blocks().functions[0].situations[0].report.blocks
    assert first.without_blocks().functions[0].situations[0].cause == first.functions[0].situations[0].cause


RANKS = f"""
import sys

import torch
import torch.distributed as dist

import nbautograd

rank = int(sys.argv[1])
dist.init_process_group("gloo", store=dist.FileStore(sys.argv[2], 2), rank=rank, world_size=2)


{
    written(
        "Summed",
        "x: total = x.clone(); dist.all_reduce(total); return total",
        "grad: total = grad.clone(); dist.all_reduce(total); return total",
        base=BASE,
    )
}
{written("Twice", "x: return 2 * x", "grad: return 2 * grad", base=BASE)}
def step():
    x = torch.full((3,), 1.0 + rank, requires_grad=True)
    (Summed.apply(x) + Twice.apply(x)).sum().backward()


if rank:  # this one checks nothing, and waits for the other only where the program does
    step()
else:
    with nbautograd.audit() as audit:
        step()
    print(audit.report())
dist.barrier()
dist.destroy_process_group()  # its threads end before the process does
"""


@pytest.mark.slow
def test_a_check_waits_for_no_other_process(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    command = [sys.executable, str(script)]
    ranks = [subprocess.Popen([*command, rank, str(tmp_path / "store")], stdout=subprocess.PIPE) for rank in "01"]
    told, _ = (rank.communicate()[0].decode() for rank in ranks)
    assert [rank.returncode for rank in ranks] == [0, 0]
    said.heard(told, "audit.other_processes")
    assert "(`allreduce_`)" in told
    assert re.search(r"Twice .* right", told)


def test_functions_under_autocast_and_those_that_are_differentiated_once_are_checked():
    class Cast(Fn):
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x.exp() * 3

    Once = Right.of("Once", backward="grad: (x,) = saved; return grad * x.exp()", once=True)
    with torch.autocast("cpu", dtype=torch.bfloat16), nbautograd.audit(**LONG) as audit:
        Cast.apply(leaf(3))
        Once.apply(leaf(3))
    assert verdicts(audit.report()) == {"Cast": "wrong", "Once": "right"}


def test_a_function_under_torch_func_is_checked_for_what_is_differentiated_there():
    backward = "grad: return grad * ctx.saved_tensors[0], None"  # none for the scale, which is never asked for
    Scaled = Fn.of("Scaled", "x, scale: return x * scale", backward, setup_context="inputs, output: save(inputs[1])")
    with nbautograd.audit(**LONG) as audit:
        torch.func.grad(lambda x: Scaled.apply(x, torch.full((3,), 2.0)).sum())(torch.randn(3))
    [function] = audit.report().functions
    assert (function.name, function.verdict) == ("Scaled", "right")


# Leaves a term out where it needs no gradient, as in `if bias.requires_grad: addmm, else: mm`.
AsksForFlags = Right.of("AsksForFlags", "x, bias: save(x); return x.exp() + bias if bias.requires_grad else x.exp()",
    "grad: return Right.backward(ctx, grad), grad")  # fmt: skip
AsksForFlagsAndLosesIt = AsksForFlags.of("AsksForFlagsAndLosesIt",
    backward="grad: return Right.backward(ctx, grad), torch.zeros_like(grad)")  # fmt: skip


@pytest.mark.parametrize("size", [3, 40, 2000])
def test_differences_are_taken_with_the_flags_of_the_call(size):
    report = audited(*((cls, leaf(size), leaf(size)) for cls in (AsksForFlags, AsksForFlagsAndLosesIt)))
    assert verdicts(report) == {"AsksForFlagsAndLosesIt": "wrong", "AsksForFlags": "right"}


def test_a_situation_of_which_nothing_could_be_kept_is_described_all_the_same():
    Called = Fn.of("Called", "rows, flag, x: return x * 2", "grad: return None, None, grad")
    [function] = audited((Called, iter([1]), True, leaf(2))).functions
    [situation] = function.situations
    assert [str(one) for one in situation.inputs] == ["rows: list_iterator", "flag: True", "x: float32 (1-D)"]
    assert said.says(situation.reason, "audit.not_copied", type="list_iterator")


@pytest.mark.slow
def test_compiled_code_is_not_seen_and_the_report_says_so():
    compiled = torch.compile(lambda x: Right.apply(x).sum(), backend="aot_eager", fullgraph=True)
    bare, watched = leaf(3), leaf(3)
    compiled(bare).backward()
    with nbautograd.audit(**LONG) as audit:
        Right.apply(leaf(3))  # a spy stands on the class now, which torch.compile must not see
        torch.compile(lambda x: Right.apply(x).sum(), backend="aot_eager", fullgraph=True)(watched).backward()
    assert torch.equal(bare.grad, watched.grad)
    assert audit.watch.unseen.compiled
    assert not audit.watch.errors
    assert said.says(audit.report(), "audit.compiled")


def test_many_situations_of_one_function_are_told_in_a_few_rows():
    Powered = Fn.of("Powered", "x, by: ctx.by = by; return x * by", "grad: return grad * ctx.by, None")
    report = audited(*((Powered, leaf(2), 1.0 + k) for k in range(12)))
    assert len(report.functions[0].situations) == 12
    assert said.says(report, "views.audit.alike", count=8)
    assert str(report).count("by:") == 4


def test_an_input_that_held_nan_is_named():
    report = audited((Right, torch.tensor([1.0, float("nan"), float("nan")], requires_grad=True)))
    assert report.verdict == "cannot tell"
    assert said.says(report, "audit.input_nan", input="x", count=2, total=3)


Twofold = Right.of("Twofold", backward="grad: return 2 * Right.backward(ctx, grad)")
# Hands its input on and turns its gradient round, as is meant.
Reversal = Fn.of("Reversal", "x: return x.view_as(x)", "grad: return -grad")


def test_directions_tell_first_of_what_takes_long_entry_by_entry(monkeypatch):
    monkeypatch.setattr(process_copy, "why_not", lambda: "fork")  # checks run in this process
    looked_at = []

    def out_of_time(checks, target, inputs, seconds, meant):
        looked_at.append(target.__name__)
        return GradcheckReport(target.__name__, "cannot tell", complete=False)

    monkeypatch.setattr(audit_checks.Checks, "_verdict", out_of_time)
    size = audit_checks.QUICK + 1
    monkeypatch.setattr(audit_checks, "SMALL", size)  # so that a wrong one is looked at as it is
    report = audited(
        (Right, leaf(size)), (Twofold, leaf(size)), (WrongAbove, -leaf(size).abs()), (Reversal, leaf(size))
    )
    assert verdicts(report) == {"Right": "right", "Twofold": "wrong", "WrongAbove": "right", "Reversal": "meant"}
    assert looked_at == ["Right", "WrongAbove", "Reversal"]
    hows = {f.name: f.situations[0].how for f in report.functions}
    assert (hows["Right"], hows["Twofold"]) == ("directions", "entries")
