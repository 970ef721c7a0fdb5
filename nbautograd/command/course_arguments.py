"""The words of ``nbautograd course`` and ``nbautograd release``."""

from __future__ import annotations

import argparse
from pathlib import Path

from nbautograd.messages import LANGUAGES, language, set_language, text


def add_course(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``course list``, ``course copy DEST`` and ``course open 03``."""
    about = text("command.help.course")
    course = commands.add_parser("course", help=about, description=about)
    _add_language(course)
    what = course.add_subparsers(dest="what", metavar="list | copy DEST | open NUMBER")
    _add_language(what.add_parser("list", help=text("command.help.course.list")), argparse.SUPPRESS)
    copy = what.add_parser("copy", help=text("command.help.course.copy"))
    copy.add_argument("folder", type=Path, metavar="DEST", help=text("command.help.course.dest"))
    _add_language(copy, argparse.SUPPRESS)
    opened = what.add_parser("open", help=text("command.help.course.open"))
    opened.add_argument("number", metavar="NUMBER", help=text("command.help.course.number"))
    opened.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help=text("command.help.folder"))
    opened.add_argument("--port", type=int, metavar="N", help=text("command.help.port"))
    opened.add_argument("--no-browser", action="store_true", help=text("command.help.no_browser"))
    _add_language(opened, argparse.SUPPRESS)


def add_release(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``release SRC``."""
    about = text("command.help.release")
    release = commands.add_parser("release", help=about, description=about, epilog=text("command.help.release.more"))
    release.add_argument("source", type=Path, nargs="+", metavar="SRC", help=text("command.help.release.source"))
    release.add_argument("--lang", choices=LANGUAGES, help=text("command.help.release.lang"))
    release.add_argument("-o", "--out", type=Path, metavar="DIR", help=text("command.help.release.out"))
    release.add_argument("--stamp", action="store_true", help=text("command.help.release.stamp"))


def answer_course(options: argparse.Namespace) -> int:
    """Answer ``nbautograd course ...``."""
    from nbautograd.command import course

    lang = options.lang or language()
    if options.lang:
        set_language(lang)
    if options.what == "copy":
        return course.copy(options.folder, lang)
    if options.what == "open":
        return course.open_lesson(options.number, options.folder, lang, options.port, not options.no_browser)
    return course.show(lang)


def answer_release(options: argparse.Namespace) -> int:
    """Answer ``nbautograd release ...``."""
    from nbautograd.command.release import release

    return release(options.source, (options.lang,) if options.lang else LANGUAGES, options.out, options.stamp)


def _add_language(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, default=default, help=text("command.help.course.lang"))
