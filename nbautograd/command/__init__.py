"""What a person types in a terminal: the arguments, and who answers them."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from nbautograd import __version__
from nbautograd.command.course_arguments import add_course, add_release, answer_course, answer_release
from nbautograd.command.error import CommandError
from nbautograd.messages import LANGUAGES, language, text


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``nbautograd`` command.

    Args:
        argv: the words after ``nbautograd``; None takes those of this process.

    Returns:
        The exit status: 0 when all went well, 1 when it did not (one sentence on stderr says why), 2 for a word that
        is not understood.

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
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        status = int(_ANSWERS[options.command](options))
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(f"nbautograd: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(text("command.interrupted"), file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nbautograd", description=text("command.help"), epilog=text("command.help.more")
    )
    parser.add_argument("--version", action="version", version=f"nbautograd {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="lab | course | freeze | release | doctor")
    _add_lab(commands)
    add_course(commands)
    _add_freeze(commands)
    add_release(commands)
    commands.add_parser("doctor", help=text("command.help.doctor"), description=text("command.help.doctor"))
    return parser


def _add_lab(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = text("command.help.lab")
    lab = commands.add_parser("lab", help=about, description=about, epilog=text("command.help.lab.more"))
    lab.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help=text("command.help.folder"))
    lab.add_argument("--lang", choices=LANGUAGES, default=language(), help=text("command.help.lang"))
    lab.add_argument("--port", type=int, metavar="N", help=text("command.help.port"))
    lab.add_argument("--no-browser", action="store_true", help=text("command.help.no_browser"))
    lab.add_argument("--headless", action="store_true", help=text("command.help.headless"))


def _add_freeze(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = text("command.help.freeze")
    freeze = commands.add_parser("freeze", help=about, description=about, epilog=text("command.help.freeze.more"))
    freeze.add_argument("notebook", type=Path, metavar="NB.ipynb", help=text("command.help.freeze.notebook"))
    freeze.add_argument("-o", "--out", type=Path, metavar="OUT", help=text("command.help.freeze.out"))
    run = argparse.BooleanOptionalAction
    freeze.add_argument("--execute", action=run, default=None, help=text("command.help.freeze.execute"))


def _lab(options: argparse.Namespace) -> int:
    from nbautograd.command.lab import lab

    return lab(
        options.folder, lang=options.lang, port=options.port, browser=not options.no_browser, headless=options.headless
    )


def _freeze(options: argparse.Namespace) -> int:
    from nbautograd.command.freeze import freeze

    return freeze(options.notebook, options.out, execute=options.execute)


def _doctor(_: argparse.Namespace) -> int:
    from nbautograd.command.doctor import doctor

    return doctor()


_ANSWERS = {"lab": _lab, "freeze": _freeze, "doctor": _doctor, "course": answer_course, "release": answer_release}
