"""A pytest plugin: ``assert_gradients(fn, inputs)``, a test for each named case, ``--autograd-audit`` for a whole run.

pytest loads this module at its start, so nothing but pytest is imported before the first check.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nbautograd.core.checking.block import GradcheckReport
    from nbautograd.inspection.audit import Audit
    from nbautograd.inspection.audit_report import AuditReport
    from nbautograd.inspection.comparison import Comparison

OPTION = "--autograd-audit"
CASES = "gradient_cases"  # the mark that makes a test of each named case
SENT = "nbautograd_audit"  # name under which a worker of pytest-xdist hands its report on

_audit: pytest.StashKey[Audit] = pytest.StashKey()
_reports: pytest.StashKey[list[AuditReport]] = pytest.StashKey()
_failed: pytest.StashKey[bool] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--autograd-audit``."""
    group = parser.getgroup("nbautograd")
    told = {
        "report": "check every custom gradient that the tests use, and tell at the end",
        "fail": "the same, and a wrong gradient fails the run",
    }
    for mode, words in told.items():  # a value stands behind "=" alone, so that a path may follow the option
        spellings = (OPTION, f"{OPTION}=report") if mode == "report" else (f"{OPTION}={mode}",)
        group.addoption(*spellings, action="store_const", const=mode, dest="autograd_audit", help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", f"{CASES}(cases=...): one test for each pair of a name and arguments, as `case`")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each named case."""
    mark = metafunc.definition.get_closest_marker(CASES)
    if mark is None:
        return
    from nbautograd.core.kernel.cases import named_cases

    named = named_cases(*mark.args, **mark.kwargs)
    metafunc.parametrize("case", named, ids=[one.name for one in named])


def pytest_load_initial_conftests(args: list[str]) -> None:
    """Let the value stand after a space as well, as pytest's own options do."""
    for k, word in reversed(list(enumerate(args[:-1]))):
        if word == OPTION and args[k + 1] in ("report", "fail"):
            args[k : k + 2] = [f"{word}={args[k + 1]}"]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to watch, in each process that runs tests."""
    config = session.config
    if config.getoption("autograd_audit") is None:
        return
    config.stash[_reports] = []
    if config.pluginmanager.hasplugin("dsession"):  # the workers run the tests
        return
    from nbautograd.inspection.audit import Audit

    config.stash[_audit] = Audit().__enter__()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tell the audit which test makes the calls from here on."""
    audit = item.config.stash.get(_audit, None)
    if audit is not None:
        audit.watch.caller = item.nodeid
    yield
    if audit is not None:
        audit.watch.caller = ""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take the report of a worker of pytest-xdist, which is a process of this run."""
    sent = getattr(node, "workeroutput", {}).get(SENT)
    if sent is not None:
        node.config.stash[_reports].append(pickle.loads(sent))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Check what was seen; hand the report on where this is a worker, else fail the run where that was asked for."""
    config = session.config
    audit, reports = config.stash.get(_audit, None), config.stash.get(_reports, None)
    if audit is not None and reports is not None:
        audit.__exit__()
        reports.append(audit.report())
    if reports is None:
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput[SENT] = pickle.dumps(reports[0].without_blocks())
    elif config.getoption("autograd_audit") == "fail" and any(report.wrong for report in reports):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        config.stash[_failed] = True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell what was found, once for all workers."""
    reports = config.stash.get(_reports, None)
    if not reports:
        return
    from nbautograd.inspection.audit_report import joined
    from nbautograd.views.builders.audit import audit_document
    from nbautograd.views.to_text import to_text

    terminalreporter.section("autograd audit")
    terminalreporter.write_line(to_text(audit_document(joined(reports), in_python=False)))
    if config.stash.get(_failed, False):
        from nbautograd.messages import text

        terminalreporter.write_line(text("audit.fails_the_run", option=f"{OPTION}=fail"), red=True)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop watching where the run ended before its end."""
    audit = config.stash.get(_audit, None)
    if audit is not None and audit.watching:
        audit.__exit__()


def assert_gradients(
    fn: Any, inputs: Any = (), *, reference: Callable[..., Any] | None = None, unsure: bool = False, **options: Any
) -> GradcheckReport | Comparison:
    """Fail the test unless the gradients of a Function are right, and say why they are not.

    Args:
        fn: a Function class, its ``apply``, or any callable that returns tensors.
        inputs: a tuple of arguments, tensors or not; those that require grad are differentiated. Or the ``case`` of a
            test that is marked ``gradient_cases``; with ``cases=`` in ``options`` it may be left out.
        unsure: True lets "cannot tell" pass, as for a straight-through gradient; "wrong" always fails. Second
            derivatives count with ``order=2``.
        reference: what it should compute: asks ``nbautograd.compare`` in place of ``nbautograd.gradcheck``.
        options: of that function.

    Returns:
        The report.

    Raises:
        GradcheckError: an AssertionError whose message is the report's text.
        CallError: the call makes no sense.
        InputError: nothing in the inputs can be differentiated.

    Example:
        >>> import torch
        >>> from nbautograd.pytest_plugin import assert_gradients
        >>> x = torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)
        >>> assert_gradients(torch.sin, x).verdict
        'right'
    """
    __tracebackhide__ = True
    from nbautograd.core.display import render
    from nbautograd.errors import GradcheckError

    report: GradcheckReport | Comparison
    compiled = {"compile": options.pop("compile", False)} if reference is None else {}
    if reference is None:
        from nbautograd.core.checking.gradcheck import gradcheck

        report = gradcheck(fn, inputs, **options)
    if reference is not None or (compiled["compile"] and report):
        from nbautograd.inspection.compare import compare

        report = compare(fn, reference, inputs, **options, **compiled)
    if report.wrong or getattr(report, "changed", False) or not (report or unsure):
        raise GradcheckError("report.as_text", text=render("text", report))
    return report


@pytest.fixture(name="assert_gradients")
def _assert_gradients() -> Callable[..., GradcheckReport | Comparison]:
    """Check the gradients of a torch.autograd.Function: assert_gradients(fn, inputs, **options)."""
    return assert_gradients
