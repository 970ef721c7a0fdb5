"""A program that a person names: a script or a module, run as ``python`` would, and where its report is written."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

import torch

from nbautograd.core.explaining.torch_errors import WATCHED_CALL
from nbautograd.errors import CommandError
from nbautograd.messages import language, text
from nbautograd.views.bundle import written
from nbautograd.views.document import Document

FOUND, COULD_NOT_RUN = 1, 2  # exit status
SCHEMA = 1  # of the JSON: another number where a field goes or means something else; schema.json says what it holds
_OURS = str(Path(__file__).resolve().parents[1]) + os.sep
_PAGE = (
    '<!doctype html><html lang="{language}"><head><meta charset="utf-8"><meta name="generator" content="nbautograd">'
    '<meta name="color-scheme" content="light dark">'
    '<title>{title}</title></head><body style="font-family:sans-serif;margin:24px">{body}</body></html>\n'
)


@contextlib.contextmanager
def as_main(target: str, arguments: Sequence[str], module: bool) -> Iterator[tuple[CodeType, dict[str, Any]]]:
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
        raise CommandError(text("command.freeze.no_file", path=target, reason=error.strerror or error)) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the last two of very deep ones
        raise CommandError(text("command.program.syntax", path=target, reason=_said(error))) from None


def _code_of_module(target: str, main: ModuleType) -> CodeType:
    try:
        spec = importlib.util.find_spec(target)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{target}.__main__")
        loader: Any = None if spec is None else spec.loader
        code: CodeType | None = loader.get_code(spec.name) if spec is not None and hasattr(loader, "get_code") else None
    except (Exception, SystemExit) as error:  # silent: of the package, which is imported for its program
        raise CommandError(text("command.program.no_module", module=target, reason=_said(error))) from None
    if spec is None or code is None:
        reason = text("command.program.not_found")
        raise CommandError(text("command.program.no_module", module=target, reason=reason))
    main.__file__, main.__spec__, main.__loader__ = spec.origin, spec, loader
    main.__package__ = spec.parent
    return code


def _said(error: BaseException) -> str:
    return ("" if isinstance(error, SystemExit) else str(error)) or type(error).__name__


def run(
    program: tuple[CodeType, dict[str, Any]], around: AbstractContextManager[Any], then: str
) -> BaseException | None:
    """Run the program, show what it ended in as Python does, and return it; None where it ended well.

    Args:
        program: as ``as_main`` gives it.
        around: what it is watched by.
        then: what follows, in words: it stands below its traceback.
    """
    code, namespace = program
    streams = sys.stdout, sys.stderr
    try:
        try:
            with around:
                exec(code, namespace)
        finally:
            _speak_again(*streams)
    except SystemExit as error:
        if error.code in (None, 0):
            return None
        status = error.code if isinstance(error.code, (int, str)) else type(error.code).__name__
        print(text("command.program.ended", how=f"status {status}", then=then), file=sys.stderr)
        return error
    except KeyboardInterrupt as error:
        print(text("command.program.ended", how="KeyboardInterrupt", then=then), file=sys.stderr)
        return error
    except BaseException as error:  # silent: the program's own, printed as Python does
        traceback.print_exception(type(error), error, _programs_own(error, code))
        print(text("command.program.ended", how=type(error).__name__, then=then), file=sys.stderr)
        return error
    return None


def _speak_again(output: Any, errors: Any) -> None:
    """Put back the streams that a program replaced; in place of one that it closed stands the other, or nothing."""
    open_ones = [stream for stream in (output, errors) if not getattr(stream, "closed", stream is None)]
    sys.stdout, sys.stderr = (
        stream if stream in open_ones else open_ones[0] if open_ones else io.StringIO() for stream in (output, errors)
    )


def _programs_own(error: BaseException, code: CodeType) -> TracebackType | None:
    """Return the traceback that a program shows without a watch: from its own code on, without our frames.

    Torch's Python functions go through ``handle_torch_function`` to a watch, which calls them once more.
    """
    entries: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        file, name = trace.tb_frame.f_code.co_filename, trace.tb_frame.f_code.co_name
        if trace.tb_frame.f_code is code:
            entries.clear()
        if name == "handle_torch_function" and file == torch.overrides.__file__:
            entries.pop()
        elif not file.startswith(_OURS) and name != WATCHED_CALL:
            entries.append(trace)
        trace = trace.tb_next
    own: TracebackType | None = None
    for entry in reversed(entries):
        own = TracebackType(own, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return own


def write_report(report: Any, document: Document, title: str, json_file: Path | None, html_file: Path | None) -> None:
    """Write a report as JSON and as a page, where that is wanted; folders that are not there are made.

    Raises:
        CommandError: when a file cannot be written.
    """
    try:
        if json_file is not None:
            data = {"schema": SCHEMA, **report.to_dict()}
            json_file.parent.mkdir(parents=True, exist_ok=True)
            json_file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=json_file, reason=error.strerror or error)) from None
    if html_file is not None:
        write_page_of(document, html_file, title)


def write_page_of(document: Document, file: Path, title: str) -> None:
    """Write a document as one HTML page that needs nothing else.

    Raises:
        CommandError: when the file cannot be written.
    """
    page = _PAGE.format(language=language(), title=title, body=written(document)["text/html"])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=file, reason=error.strerror or error)) from None
