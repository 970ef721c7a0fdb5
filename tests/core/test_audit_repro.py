"""save_repro: scripts that show a wrong gradient with torch alone, in a fresh process, without the user's data."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from fn import BASE, Fn, written

import nbautograd
from nbautograd.errors import CallError

pytestmark = pytest.mark.slow  # each script is tried in a fresh process, which imports torch

PACKAGE = f'''
import torch

SCALE = 1.5


def act(x):
    return x * torch.sigmoid(SCALE * x)


# Swish of some rows; wrong since the scale is left out of the derivative.
{
    written(
        "Gather",
        "x, rows, power=2: save(x, rows); return act(x)[rows]",
        "grad: x, rows = saved; "
        "s = torch.sigmoid(SCALE * x); "
        "return torch.zeros_like(x).index_add_(0, rows, grad) * s * (1 + x * (1 - s)), None, None",
        base=BASE,
    )
}
# Takes positive numbers only; wrong by a factor.
{
    written(
        "Root",
        "x: if (x <= 0).any(): raise ValueError('not in the domain'); save(x); return x.sqrt()",
        "grad: (x,) = saved; return grad / x.sqrt()",
        base=BASE,
    )
}
# Computes in a buffer that is made without a dtype, and fills it with what float32 holds and float64 exceeds.
{
    written(
        "Buffered",
        "x: least = torch.full(x.shape, -torch.finfo(x.dtype).max); return Root.forward(ctx, torch.maximum(x, least))",
        base="Root",
    )
}
# Wrong for its second input alone.
{
    written(
        "Halves",
        "x, y: save(x, y); return x * y.exp()",
        "grad: x, y = saved; return grad * y.exp(), grad * x * y.exp() / 2",
        base=BASE,
    )
}

class InPlace(torch.autograd.Function):
    """Changes its input without a word; its gradient is that of the changed one."""

    @staticmethod
    def forward(ctx, x):
        with torch.no_grad():
            x.mul_(2)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


# A factor at the numbers of the program, and another mistake elsewhere.
{
    written(
        "WrongAtThese",
        "x: save(x); return x.exp()",
        "grad: (x,) = saved; if bool((x > 0.5).all() & (x < 0.6).all()): return 3 * grad * x.exp(); return grad * x",
        base=BASE,
    )
}
{written("Right", "x: return 2 * x", "grad: return 2 * grad", base=BASE)}
@torch.library.custom_op("nbautograd_repro::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


def cube_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def cube_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return 3 * x * grad


cube.register_autograd(cube_backward, setup_context=cube_setup)
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A module as a user has it installed."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "nbautograd_repro_package.py").write_text(PACKAGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("nbautograd_repro_package"), folder


def run(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(folder), "PATH": ""}
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)


def audited(*calls):
    with nbautograd.audit() as audit:
        for fn, *args in calls:
            fn(*args)
    return audit.report()


def test_each_wrong_function_has_a_script_that_shows_it_in_a_fresh_process(package, tmp_path):
    module, folder = package
    x = torch.randn(6, 3, requires_grad=True)
    positive = torch.rand(4).add(0.5).requires_grad_()
    report = audited(
        (module.Gather.apply, x, torch.tensor([0, 2, 5]), 3),
        (module.Root.apply, positive),
        (module.Buffered.apply, positive),
        (module.Right.apply, x),
        (module.cube, x),
    )
    made = report.save_repro(tmp_path / "repros")
    assert sorted(one.function for one in made) == ["Buffered", "Gather", "Root", "nbautograd_repro::cube"]
    for one in made:
        text = one.script.read_text()
        assert "import nbautograd\n" not in text
        assert "weights_only=True" in text
        stored = torch.load(one.data, weights_only=True)
        for tensor in stored.values():
            assert not any(
                tensor.shape == own.shape and torch.allclose(tensor.double(), own.double()) for own in (x, positive)
            )
    done = run(made[0].script, folder)  # each was run before it was written
    assert (done.returncode, "WRONG" in done.stdout) == (1, True), done.stderr


@pytest.mark.nightly
def test_a_script_compares_the_input_that_the_report_names(package, tmp_path):
    module, folder = package
    report = audited((module.Halves.apply, torch.randn(3).requires_grad_(), torch.randn(3).requires_grad_()))
    [one] = report.save_repro(tmp_path)
    assert report.functions[0].situations[0].cause.where == (0, 1)
    shown = re.findall(r"WRONG: input (\d)", run(one.script, folder).stdout)
    assert shown
    assert set(shown) == {"1"}


@pytest.mark.parametrize(
    ("name", "values", "include_data", "why"),
    [
        ("InPlace", [1.0, 2.0], False, "repro_other"),
        ("InPlace", [1.0, 2.0], True, "repro_other"),
        pytest.param("WrongAtThese", [0.51, 0.55, 0.59], True, "", marks=pytest.mark.nightly),
    ],
)
def test_a_script_shows_what_the_report_claims_or_is_not_written(package, tmp_path, name, values, include_data, why):
    module, folder = package
    x = torch.tensor(values, dtype=torch.float64).requires_grad_()
    report = audited((getattr(module, name).apply, x))
    assert report.verdict == "wrong"
    [one] = report.save_repro(tmp_path, include_data=include_data)
    assert (one.script is None) == bool(why)
    assert getattr(one.reason, "message_id", "").removeprefix("audit.") == why
    assert why or run(one.script, folder).returncode == 1


@pytest.mark.nightly
def test_a_script_says_so_once_the_gradient_is_right(package, tmp_path):
    module, _ = package
    [one] = audited((module.Root.apply, torch.rand(4).add(0.5).requires_grad_())).save_repro(tmp_path)
    mended = tmp_path / "mended"
    mended.mkdir()
    (mended / "nbautograd_repro_package.py").write_text(PACKAGE.replace("grad / x.sqrt()", "grad / x.sqrt() / 2"))
    done = run(one.script, mended)
    assert (done.returncode, "WRONG" in done.stdout) == (0, False), done.stderr


@pytest.mark.nightly
def test_real_data_is_written_only_when_asked_for(package, tmp_path):
    module, folder = package
    x = torch.rand(4).add(0.5).requires_grad_()
    [one] = audited((module.Root.apply, x)).save_repro(tmp_path, include_data=True)
    [stored] = torch.load(one.data, weights_only=True).values()
    assert torch.equal(stored, x.detach().double())
    assert run(one.script, folder).returncode == 1


@pytest.mark.nightly
def test_a_class_of_a_script_goes_into_its_script_with_what_it_reads(tmp_path):
    program = PACKAGE.replace("class Root", "class Unused").replace("(Root)", "(Unused)") + textwrap.dedent(
        f"""
        import nbautograd
        x = torch.zeros(1)  # a global of the name of an argument is not read
        with nbautograd.audit() as audit:
            Gather.apply(torch.randn(5, 2, requires_grad=True), torch.tensor([1, 1, 0]))
            cube(torch.randn(5, 2, requires_grad=True))
        made = audit.report().save_repro({str(tmp_path / "out")!r})
        print([str(one.reason) for one in made])
        """
    )
    (tmp_path / "program.py").write_text(program)
    package = str(Path(nbautograd.__file__).parents[1])
    done = run(tmp_path / "program.py", Path(package))
    assert done.returncode == 0, done.stderr
    scripts = sorted((tmp_path / "out").glob("*.py"))
    assert [one.name for one in scripts] == ["repro_Gather.py", "repro_nbautograd_repro_cube.py"], done.stdout
    for one in scripts:
        done = run(one, tmp_path / "nowhere")
        assert done.returncode == 1, done.stderr


@pytest.mark.nightly
def test_a_script_of_a_module_of_the_project_runs_from_anywhere(tmp_path):
    project = tmp_path / "project"
    (project / "layers").mkdir(parents=True)
    (project / "layers" / "__init__.py").write_text("")
    (project / "layers" / "own_root.py").write_text(PACKAGE)
    program = """
    import torch, nbautograd
    from layers.own_root import Root
    with nbautograd.audit() as audit:
        Root.apply(torch.rand(4).add(0.5).requires_grad_())
    print([str(one.reason) for one in audit.report().save_repro("repro")])
    """
    (project / "program.py").write_text(textwrap.dedent(program))
    environment = {"PYTHONPATH": str(Path(nbautograd.__file__).parents[1]), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, env=environment, cwd=project, check=False
    )
    script = project / "repro" / "repro_Root.py"
    assert script.exists(), done.stdout + done.stderr
    assert str(tmp_path) not in script.read_text()
    done = run(script, tmp_path / "nowhere")
    assert (done.returncode, "WRONG" in done.stdout) == (1, True), done.stderr
    (project / "layers" / "own_root.py").unlink()
    done = run(script, tmp_path / "nowhere")
    assert (done.returncode, "ModuleNotFoundError" in done.stderr) == (2, True), done.stderr


def test_what_no_script_can_be_written_of_says_why(tmp_path):
    class Local(Fn):
        forward, backward = (lambda ctx, x: 2 * x), (lambda ctx, grad: 3 * grad)

    [one] = audited((Local.apply, torch.randn(3, requires_grad=True))).save_repro(tmp_path)
    assert one.script is None
    assert one.reason.message_id == "audit.repro_local"
    assert not list(tmp_path.iterdir())


def test_a_script_that_shows_nothing_is_not_kept(package, tmp_path, monkeypatch):
    module, _ = package
    report = audited((module.Root.apply, torch.rand(4).add(0.5).requires_grad_()))
    monkeypatch.setattr("nbautograd.inspection.repro._TEMPLATE", "print('all is well')")
    [one] = report.save_repro(tmp_path)
    assert one.script is None
    assert "all is well" in str(one.reason)


def test_a_report_from_elsewhere_has_no_arguments_to_write(tmp_path):
    with pytest.raises(CallError):
        nbautograd.types.AuditReport().save_repro(tmp_path)
