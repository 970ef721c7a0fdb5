"""Command line: the arguments that a person types in a terminal, and who answers them."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from nbautograd import __version__
from nbautograd.command.places import GUIDES
from nbautograd.errors import CommandError, NbautogradError
from nbautograd.messages import LANGUAGES, language, meaning, printable, set_language, text


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``nbautograd`` command.

    Args:
        argv: the words after ``nbautograd``; None takes those of this process.

    Returns:
        The exit status: 0 when all went well, 1 when it did not (one sentence on stderr says why), 2 for a word that
        is not understood. Those of ``audit``, ``check`` and ``explain`` are 1 when something was found alone, and 2
        when nothing could be run or told.

    Example:
        >>> from nbautograd.command import main
        >>> main(["course"])  # doctest: +ELLIPSIS
        The course: ...
        0
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ or Chinese shows ? and goes on
    parser = _parser()
    words = list(sys.argv[1:] if argv is None else argv)
    if "\0" in "".join(words):
        parser.error(text("command.null_character"))  # no path may hold one, and Python raises for each of them
    # argparse would read the first word after "--" as the notebook; a program under audit has a "--" of its own
    end = words.index("--") if words[:1] in (["lab"], ["course"]) and "--" in words else len(words)
    options = parser.parse_args(words[:end])
    if jupyter := words[end + 1 :]:
        if "jupyter" not in options:
            parser.error(text("command.nothing_passed_on", words=" ".join(jupyter)))
        options.jupyter = jupyter
    if options.answer is None:
        parser.print_help()
        return 0
    try:
        status = int(options.answer(options))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print(text("command.interrupted"), file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (Exception, SystemExit) as error:  # silent: it is said; nobody's status 0, nor Python's 1, is a verdict
        reason = printable(_reason(error))
        print(f"nbautograd: {reason}", file=sys.stderr)
        if getattr(options, "github", False):
            from nbautograd.command.github import could_not_run

            print(could_not_run(reason))
    return 2 if options.answer in (_audit, _check, _explain) else 1


def _reason(error: BaseException) -> str:
    """Return what to say of an error that ended a command: a sentence of ours, the system's, or where we stumbled."""
    if isinstance(error, (CommandError, NbautogradError, UnicodeError)):  # a name or a text that has no bytes
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return text("command.freeze.no_file", path=error.filename, reason=error.strerror)
    from nbautograd.core.findings import of_stumble
    from nbautograd.core.stumbles import record

    stumble = record(error, "nbautograd")
    return f"{type(error).__name__}: {error}" if stumble is None else str(of_stumble(stumble))


class _Parser(argparse.ArgumentParser):
    """A parser that quotes no control characters."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="nbautograd", description=text("command.help"), epilog=text("command.help.more"))
    parser.set_defaults(answer=None)
    parser.add_argument("--version", action="version", version=f"nbautograd {__version__}")
    commands = parser.add_subparsers(title=text("command.help.commands"))

    _add_notebooks(commands)
    _add_release(commands)
    _add_mark(_add(commands, "mark", _mark, more=True))
    _add_checks(commands)
    _add(commands, "doctor", _doctor)
    bug = _add(commands, "report-bug", _report_bug)
    bug.add_argument("report", type=Path, nargs="?", metavar="REPORT.json", help=text("command.help.report-bug.report"))
    return parser


Commands: TypeAlias = "argparse._SubParsersAction[Any]"


def _add_notebooks(commands: Commands) -> None:
    lab = _add(commands, "lab", _lab, more=True)
    lab.add_argument("notebook", nargs="?", choices=GUIDES, default="demo", help=text("command.help.lab.notebook"))
    _add_server(lab)
    lab.add_argument("--lang", choices=LANGUAGES, default=language(), help=text("command.help.lang"))
    lab.add_argument("--headless", action="store_true", help=text("command.help.headless"))

    course = _add(commands, "course", _course)
    _add_language(course, None)
    what = course.add_subparsers(title=text("command.help.commands"))
    _add(what, "course.list", _course)
    copy = _add(what, "course.copy", _copy)
    copy.add_argument("folder", type=Path, metavar="DEST", help=text("command.help.course.dest"))
    opened = _add(what, "course.open", _open, more=True)
    opened.add_argument("number", metavar="NUMBER", help="01 ... 16")
    _add_server(opened)
    for parser_of_course in what.choices.values():
        _add_language(parser_of_course, argparse.SUPPRESS)


def _add_release(commands: Commands) -> None:
    freeze = _add(commands, "freeze", _freeze, more=True)
    freeze.add_argument("notebook", type=Path, metavar="NB.ipynb", help=text("command.help.freeze.notebook"))
    freeze.add_argument("-o", "--out", type=Path, metavar="OUT", help=text("command.help.freeze.out"))
    freeze.add_argument("--execute", action="store_true", help=text("command.help.freeze.execute"))

    release = _add(commands, "release", _release, more=True)
    release.add_argument("source", type=Path, nargs="*", metavar="SRC", help=text("command.help.release.source"))
    release.add_argument("--lang", choices=LANGUAGES, help=text("command.help.release.lang"))
    release.add_argument("-o", "--out", type=Path, metavar="DIR", help=text("command.help.release.out"))
    release.add_argument("--nbgrader", action="store_true", help=text("command.help.release.nbgrader"))
    release.add_argument("--new", metavar="NAME", help=text("command.help.release.new"))


def _add_mark(mark: argparse.ArgumentParser) -> None:
    mark.add_argument("release", type=Path, metavar="RELEASE", help=text("command.help.mark.release"))
    mark.add_argument(
        "submissions", type=Path, nargs="?", metavar="SUBMISSIONS", help=text("command.help.mark.submissions")
    )
    mark.add_argument(
        "-o", "--out", type=Path, default=Path("marks.csv"), metavar="FILE", help=text("command.help.mark.out")
    )
    mark.add_argument("--hidden", type=Path, metavar="FILE", help=text("command.help.mark.hidden"))
    mark.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help=text("command.help.mark.jobs"))
    mark.add_argument("--executor", default="", metavar="dask://HOST:PORT", help=text("command.help.mark.executor"))
    mark.add_argument("--resume", action="store_true", help=text("command.help.mark.resume"))
    mark.add_argument("--seconds", type=float, default=20, metavar="S", help=text("command.help.mark.seconds"))
    mark.add_argument("--memory", type=int, default=2048, metavar="MB", help=text("command.help.mark.memory"))
    mark.add_argument("--grader", type=Path, metavar="DIR", help=text("command.help.mark.grader"))


def _add_checks(commands: Commands) -> None:
    audit = _add(commands, "audit", _audit, more=True)
    _add_files(audit)
    audit.add_argument("--repro", type=Path, metavar="DIR", help=text("command.help.audit.repro"))
    audit.add_argument("--budget", type=float, metavar="SECONDS", help=text("command.help.audit.budget"))
    audit.add_argument("--compile", action="store_true", help=text("command.help.audit.compile"))
    _add_program(
        audit, "[--json FILE] [--html FILE] [--repro DIR]\n                        [--budget SECONDS] [--compile]"
    )
    explain = _add(commands, "explain", _explain, more=True)
    _add_files(explain)
    _add_program(explain, "[--json FILE] [--html FILE]")

    _add_kernel(_add(commands, "check", _check, more=True))
    _add(commands, "skill", _skill)


def _add_program(command: argparse.ArgumentParser, options: str) -> None:
    """Add a script, or a module with ``-m``, and its arguments.

    argparse writes any remainder as "...", so both forms of a program stand in one row, and the usage is spelled out.
    """
    forms = "SCRIPT | -m MODULE"
    command.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    command.add_argument("program", nargs=argparse.REMAINDER, metavar=forms, help=text("command.help.program"))
    command.usage = f"%(prog)s [-h] {options} ({forms}) [ARGS ...]"


def _add_files(command: argparse.ArgumentParser) -> None:
    for name in ("json", "html"):
        command.add_argument(f"--{name}", type=Path, metavar="FILE", help=text(f"command.help.{name}"))


def _add_kernel(check: argparse.ArgumentParser) -> None:
    check.add_argument("function", metavar="MODULE:FN", help=text("command.help.check.function"))
    options = {"reference": "MODULE:EAGER", "inputs": "MODULE:MAKE|FILE.pt", "cases": "MODULE:CASES", "layouts": "all"}
    options["overwrites"] = "NAMES"
    for name, metavar in options.items():
        check.add_argument(f"--{name}", metavar=metavar, help=text(f"command.help.check.{name}"))
    _add_files(check)
    check.add_argument("--budget", type=float, metavar="SECONDS", help=text("command.help.check.budget"))
    check.add_argument("--seed", type=seed, default=0, metavar="N", help=text("command.help.check.seed"))
    for name in ("compile", "github", "allow-unjudged"):
        check.add_argument(f"--{name}", action="store_true", help=text(f"command.help.check.{name}"))


def seed(words: str) -> int:
    """Return a seed that torch and NumPy take."""
    seed = int(words)
    if not 0 <= seed < 2**32:
        raise ValueError(words)
    return seed


def _add(
    commands: Commands,
    name: str,
    answer: Callable[..., int],
    more: bool = False,
) -> argparse.ArgumentParser:
    """Add a command with what the sentences say of it: ``command.help.NAME``, and ``.more`` below its options."""
    about = text(f"command.help.{name}")
    epilog = text(f"command.help.{name}.more") if more else None
    parser: argparse.ArgumentParser = commands.add_parser(
        name.rpartition(".")[2], help=about, description=about, epilog=epilog
    )
    parser.set_defaults(answer=answer)
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help=text("command.help.folder"))
    parser.set_defaults(jupyter=())


def _add_language(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, default=default, help=text("command.help.lang"))


def _lab(options: argparse.Namespace) -> int:
    from nbautograd.command.lab import lab

    return lab(options.notebook, options.folder, lang=options.lang, jupyter=options.jupyter, headless=options.headless)


def _freeze(options: argparse.Namespace) -> int:
    from nbautograd.command.freeze import freeze

    return freeze(options.notebook, options.out, execute=options.execute)


def _audit(options: argparse.Namespace) -> int:
    from nbautograd.command.audit import audit

    target, *arguments = _named_program(options, "audit")
    files = {"json_file": options.json, "html_file": options.html, "repro": options.repro}
    more = {"budget": options.budget, "compile": options.compile}
    return audit(target, arguments, module=bool(options.module), **more, **files)


def _explain(options: argparse.Namespace) -> int:
    from nbautograd.command.explain import explain
    from nbautograd.command.finding import page, rule, table

    target, *arguments = _named_program(options, "explain")
    said = page(target) if target in table() else meaning(" ".join((target, *arguments))) or rule(target)
    if said and not (options.module or Path(target).exists()):
        print(said)
        return 0
    files = {"json_file": options.json, "html_file": options.html}
    return explain(target, arguments, module=bool(options.module), **files)


def _named_program(options: argparse.Namespace, command: str) -> list[str]:
    words: list[str] = options.module or options.program
    if not words:
        raise CommandError(text("command.program.nothing", command=command))
    return words


def _check(options: argparse.Namespace) -> int:
    from nbautograd.command.check import check

    files = {"json_file": options.json, "html_file": options.html}
    same = ("reference", "cases", "layouts", "overwrites", "seed", "budget", "compile")
    given = {name: getattr(options, name) for name in same}
    gate = {"on_github": options.github, "allow_unjudged": options.allow_unjudged}
    return check(options.function, options.inputs, **given, **gate, **files)


def _skill(_: argparse.Namespace) -> int:
    print((Path(__file__).parent / "skill.md").read_text(encoding="utf-8"), end="")
    return 0


def _doctor(_: argparse.Namespace) -> int:
    from nbautograd.command.doctor import doctor

    return doctor()


def _report_bug(options: argparse.Namespace) -> int:
    from nbautograd.command.report_bug import report_bug

    return report_bug(options.report)


def _course(options: argparse.Namespace) -> int:
    from nbautograd.command import course

    return course.show(_language(options))


def _copy(options: argparse.Namespace) -> int:
    from nbautograd.command import course

    return course.copy(options.folder, _language(options))


def _open(options: argparse.Namespace) -> int:
    from nbautograd.command import course

    return course.open_lesson(options.number, options.folder, _language(options), options.jupyter)


def _language(options: argparse.Namespace) -> str:
    """Return the language of the course, and speak it where it was asked for."""
    if options.lang:
        set_language(options.lang)
    return options.lang or language()


def _release(options: argparse.Namespace) -> int:
    from nbautograd.command.release import new, release

    if options.new:
        return new(options.new, options.lang or language(), options.out or Path())
    if not options.source:
        raise CommandError(text("command.release.nothing"))
    # nbgrader looks for notebooks in one folder, so they are in one language
    alone = options.lang or (language() if options.nbgrader else "")
    return release(options.source, (alone,) if alone else (), options.out, options.nbgrader)


def _mark(options: argparse.Namespace) -> int:
    from nbautograd.command.mark import grader, mark

    if options.grader is not None:
        return grader(options.release, options.grader, options.hidden, options.seconds, options.memory)
    if options.submissions is None:
        raise CommandError(text("command.mark.nothing"))
    given = {name: getattr(options, name) for name in ("hidden", "jobs", "executor", "resume", "seconds", "memory")}
    return mark(options.release, options.submissions, options.out, **given)
