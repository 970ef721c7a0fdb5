"""The options of ``%%autograd_function``: one table for parsing, help and completion."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from difflib import get_close_matches
from typing import get_args

from IPython.core.error import UsageError

from nbautograd import messages
from nbautograd.core.findings import Hints

MAGIC = "%%autograd_function"
VIEWS = ("all", "calls", "graph", "jacobian", "gradcheck")


@dataclass(frozen=True)
class Option:
    """One row of the table: its spellings, the field of ``Options`` that it fills, what may follow it.

    Attributes:
        spellings: as typed, the long one first.
        field: name of the field in ``Options``.
        metavar: what help calls its value; empty for a switch.
        choices: the values it may have; empty when any text may follow.
        value: what a switch puts into the field.
    """

    spellings: tuple[str, ...]
    field: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    value: bool = True

    @property
    def usage(self) -> str:
        """How help writes it, such as ``--inputs, -i EXPR``."""
        value = "{" + ",".join(self.choices) + "}" if self.choices else self.metavar
        return " ".join(filter(None, (", ".join(self.spellings), value)))


TABLE = (
    Option(("--inputs", "-i"), "inputs", "EXPR"),
    Option(("--name", "-n"), "name", "NAME"),
    Option(("--reference",), "reference", "EXPR"),
    Option(("--gradcheck",), "gradcheck"),
    Option(("--no-gradcheck",), "gradcheck", value=False),
    Option(("--hints",), "hints", "HINTS", get_args(Hints)),
    Option(("--order",), "order", "ORDER", ("1", "2")),
    Option(("--view",), "view", "VIEW", VIEWS),
    Option(("--quiet",), "quiet"),
)
BY_SPELLING = {spelling: option for option in TABLE for spelling in option.spellings}


@dataclass(frozen=True)
class Options:
    """What the magic's line asks for.

    Attributes:
        inputs: expression for the arguments of the Function, or empty.
        name: which of the cell's Functions, or empty for the last one.
        reference: expression for what to compare with, or empty.
        gradcheck: False after ``--no-gradcheck``.
        hints: how much the findings give away.
        order: "2" lets second derivatives count, "1" leaves them out; empty looks at them as a risk.
        view: which part of the report comes first.
        quiet: True to record without showing or checking anything.
    """

    inputs: str = ""
    name: str = ""
    reference: str = ""
    gradcheck: bool = True
    hints: str = "fix"
    order: str = ""
    view: str = "all"
    quiet: bool = False


def parse(line: str) -> Options:
    """Read the magic's line.

    Args:
        line: what follows ``%%autograd_function``. Values may hold spaces, with or without quotes around them.

    Raises:
        UsageError: one sentence that names the nearest right spelling.

    Example:
        >>> from nbautograd.magics.options import parse
        >>> parse("--inputs a, b.t() --view graph").inputs
        'a, b.t()'
    """
    fields: dict[str, str | bool] = {}
    for spelling, words in _groups(_words(line)):
        option = BY_SPELLING[spelling]
        fields[option.field] = _value(option, spelling, words)
    return Options(**fields)  # type: ignore[arg-type]


def help_text() -> str:
    """The text that ``%%autograd_function?`` shows."""
    rows = [(o.usage, messages.text(f"magics.help_{o.spellings[0].strip('-').replace('-', '_')}")) for o in TABLE]
    width = max(len(usage) for usage, _ in rows) + 2
    options = "\n".join(f"  {usage:{width}}{says}" for usage, says in rows)
    return messages.text("magics.help", options=options)


def _words(line: str) -> list[str]:
    spaced = re.sub(r"(^|\s)(--[a-z-]+)=", r"\1\2 ", line)
    try:
        # quotes stay in the words, so that an expression such as d["a"] keeps its own
        return shlex.split(spaced, posix=False)
    except ValueError:
        raise _refused("magics.open_quote", line=line.strip()) from None


def _groups(words: list[str]) -> list[tuple[str, list[str]]]:
    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if word in BY_SPELLING:
            groups.append((word, []))
        elif re.match(r"--[A-Za-z]", word):
            raise _unknown(word)
        elif not groups or not BY_SPELLING[groups[-1][0]].metavar:
            raise _stray(word, words)
        else:
            groups[-1][1].append(word)
    return groups


def _unknown(word: str) -> UsageError:
    near = get_close_matches(word, [s for s in BY_SPELLING if s.startswith("--")], n=1, cutoff=0.5)
    if near:
        return _refused("magics.unknown_option_near", option=word, near=near[0])
    return _refused("magics.unknown_option", option=word, options=" ".join(o.spellings[0] for o in TABLE))


def _stray(word: str, words: list[str]) -> UsageError:
    rest = words[words.index(word) :]
    end = next((i for i, w in enumerate(rest) if w in BY_SPELLING), len(rest))
    return _refused("magics.stray", text=" ".join(rest[:end]))


def _refused(message_id: str, **params: str) -> UsageError:
    return UsageError(f"{messages.text(message_id, **params)} {messages.text('magics.not_run')}")


def _value(option: Option, spelling: str, words: list[str]) -> str | bool:
    if not option.metavar:
        return option.value
    value = _unquoted(words)
    if not value:
        raise _refused("magics.no_value", option=spelling, metavar=option.usage)
    if option.choices:
        return choice(option, spelling, value, more=f" {messages.text('magics.not_run')}")
    return value


def choice(option: Option, spelling: str, value: str, more: str = "") -> str:
    """The value, if it is one of the option's choices.

    Raises:
        UsageError: names the nearest one; ``more`` is said behind it.
    """
    if value in option.choices:
        return value
    near = get_close_matches(value, option.choices, n=1, cutoff=0.4)
    which = "magics.unknown_choice_near" if near else "magics.unknown_choice"
    params = {"option": spelling, "value": value, "near": "".join(near), "choices": ", ".join(option.choices)}
    raise UsageError(messages.text(which, **params) + more)


def _unquoted(words: list[str]) -> str:
    value = " ".join(words)
    if len(words) == 1 and len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1].strip()
    return value
