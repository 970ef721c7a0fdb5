"""``nbautograd audit``: runs a script or module and checks every custom gradient that it used."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from nbautograd.command.page import require_ours
from nbautograd.errors import CommandError
from nbautograd.inspection.audit import Audit
from nbautograd.inspection.audit_report import AuditReport
from nbautograd.messages import language, text
from nbautograd.views.builders.audit import audit_document
from nbautograd.views.bundle import written
from nbautograd.views.document import Document
from nbautograd.views.to_text import to_text

FOUND, COULD_NOT_RUN = 1, 2  # exit status
_PAGE = (
    '<!doctype html><html lang="{language}"><head><meta charset="utf-8"><meta name="generator" content="nbautograd">'
    '<meta name="color-scheme" content="light dark">'
    '<title>{title}</title></head><body style="font-family:sans-serif;margin:24px">{body}</body></html>\n'
)


class Unrunnable(CommandError):  # noqa: N818 - as its base
    """Error of a name that cannot be run at all."""

    status = COULD_NOT_RUN


def audit(
    target: str,
    arguments: Sequence[str],
    *,
    module: bool = False,
    json_file: Path | None = None,
    html_file: Path | None = None,
    repro: Path | None = None,
    budget: float | None = None,
) -> int:
    """Run a program as ``python`` would, then check and report the custom gradients that it used.

    Args:
        target: path of a script, or name of a module.
        arguments: those of the program.
        module: True where ``target`` is a module's name.
        json_file, html_file: where the report is written besides.
        repro: folder for scripts that show what is wrong with torch alone.
        budget: seconds of all checks; None takes the default.

    Returns:
        1 when a gradient is wrong, else 2 when the program raised or the checks were interrupted, else 0.

    Raises:
        Unrunnable: when there is no such script or module.
        CommandError: when a file cannot be written.
    """
    if html_file is not None:
        require_ours(html_file)
    audited = Audit() if budget is None else Audit(budget=budget)
    with _main(target, arguments, module) as program:
        ended = _run(program, audited)
        print(text("command.audit.checking"), file=sys.stderr, flush=True)
        line = _Line() if sys.stderr.isatty() else None
        report = audited.report(progress=line)
        if line is not None:
            line.clear()
        document = audit_document(report, in_python=False)
        print(to_text(document))
        _write(report, document, json_file, html_file)
        if repro is not None and report.wrong:
            _reproduce(report, repro)
    if report.wrong:
        return FOUND
    return COULD_NOT_RUN if ended or not report.complete else 0


@contextlib.contextmanager
def _main(target: str, arguments: Sequence[str], module: bool) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """Have the program be ``__main__`` for the time, with its own ``sys.argv`` and first place on ``sys.path``."""
    main = ModuleType("__main__")
    name, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.path[:1] = [str(Path.cwd()) if module else str(Path(target).resolve().parent)]
    try:
        code = _code_of_module(target, main) if module else _code_of_script(target, main)
        sys.modules["__main__"] = main
        sys.argv = [main.__file__ or target, *arguments]
        yield code, vars(main)
    finally:
        sys.modules["__main__"], sys.argv = name, argv
        sys.path[:] = path


def _code_of_script(target: str, main: ModuleType) -> CodeType:
    path = Path(target)
    if path.is_dir() and (path / "__main__.py").is_file():
        path = path / "__main__.py"
    try:
        source = path.read_bytes()
        main.__file__ = str(path)
        return compile(source, str(path.resolve()), "exec", dont_inherit=True)
    except OSError as error:
        raise Unrunnable(text("command.audit.no_script", path=target, reason=error.strerror or error)) from None
    except (SyntaxError, ValueError) as error:
        raise Unrunnable(text("command.audit.syntax", path=target, reason=error)) from None


def _code_of_module(target: str, main: ModuleType) -> CodeType:
    try:
        spec = importlib.util.find_spec(target)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{target}.__main__")
    except (ImportError, ValueError) as error:
        raise Unrunnable(text("command.audit.no_module", module=target, reason=error)) from None
    loader: Any = None if spec is None else spec.loader
    code: CodeType | None = loader.get_code(spec.name) if spec is not None and hasattr(loader, "get_code") else None
    if spec is None or code is None:
        reason = text("command.audit.not_found")
        raise Unrunnable(text("command.audit.no_module", module=target, reason=reason))
    main.__file__, main.__spec__, main.__loader__ = spec.origin, spec, loader
    main.__package__ = spec.parent
    return code


def _run(program: tuple[CodeType, dict[str, Any]], audited: Audit) -> bool:
    """Run the program; return True where it ended by an exception, which is shown as Python shows it."""
    code, namespace = program
    try:
        with audited:
            exec(code, namespace)
    except SystemExit as error:
        if error.code not in (None, 0):
            print(text("command.audit.exited", status=error.code), file=sys.stderr)
        return error.code not in (None, 0)
    except KeyboardInterrupt:
        print(text("command.audit.stopped"), file=sys.stderr)
        return True
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        print(text("command.audit.raised"), file=sys.stderr)
        return True
    return False


class _Line:
    """One line on a terminal that says what is being checked."""

    def __call__(self, done: int, total: int, what: str) -> None:
        words = text("command.audit.progress", percent=100 * done // max(1, total), what=what)
        sys.stderr.write(f"\r\x1b[K{words}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        sys.stderr.write("\r\x1b[K")


def _write(report: AuditReport, document: Document, json_file: Path | None, html_file: Path | None) -> None:
    try:
        if json_file is not None:
            json_file.write_text(json.dumps(report.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=json_file, reason=error.strerror or error)) from None
    if html_file is not None:
        write_page_of(document, html_file, "nbautograd audit")


def write_page_of(document: Document, file: Path, title: str) -> None:
    """Write a document as one HTML page that needs nothing else.

    Raises:
        CommandError: when the file cannot be written.
    """
    page = _PAGE.format(language=language(), title=title, body=written(document)["text/html"])
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=file, reason=error.strerror or error)) from None


def _reproduce(report: AuditReport, folder: Path) -> None:
    for one in report.save_repro(folder):
        which = "audit.repro_not_written" if one.script is None else "audit.repro_written"
        print(text(which, function=one.function, script=one.script, reason=one.reason))
