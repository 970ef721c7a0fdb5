"""The grammar of the magics' lines: their options and what stands beside them, for reading, help and completion."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from IPython.core.error import UsageError

from nbautograd import messages
from nbautograd.core.checking.budget import DEFAULT, Budget
from nbautograd.core.findings import Hints
from nbautograd.course.sentences import LEVELS
from nbautograd.inspection.audit import SECONDS_EACH, Audit
from nbautograd.settings import setting

MAGIC = "%%autograd_function"
NO_LIMIT = "none"  # in place of a number of seconds


@dataclass(frozen=True)
class Option:
    """One row of the table: its spellings, the field of ``Options`` that it fills, what may follow it.

    Attributes:
        spellings: as typed, the long one first.
        field: name of the field in ``Options``.
        metavar: what help calls its value; empty for a switch.
        choices: the values it may have; empty when any text may follow.
    """

    spellings: tuple[str, ...]
    field: str
    metavar: str = ""
    choices: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """Write the option as help shows it, such as ``--inputs, -i EXPR``."""
        value = "{" + ",".join(self.choices) + "}" if self.choices else self.metavar
        return " ".join(filter(None, (", ".join(self.spellings), value)))


TABLE = (
    Option(("--inputs", "-i"), "inputs", "EXPR"),
    Option(("--name", "-n"), "name", "NAME"),
    Option(("--reference",), "reference", "EXPR"),
    Option(("--compile",), "compile"),
    Option(("--hints",), "hints", "HINTS", get_args(Hints)),
    Option(("--order",), "order", "ORDER", ("1", "2")),
    Option(("--budget",), "budget", "SECONDS"),
)


@dataclass(frozen=True)
class Grammar:
    """Options that may stand on a magic's line: for reading, help and completion.

    Attributes:
        magic: its name, with ``%`` or ``%%``.
        options: the rows of its table.
        operand: what stands beside the options: ``"expression"``, ``"exercise"``, ``"function"``, or nothing.
    """

    magic: str
    options: tuple[Option, ...] = ()
    operand: str = ""

    @property
    def by_spelling(self) -> dict[str, Option]:
        """Return the options by everything that may be typed for them."""
        return {spelling: option for option in self.options for spelling in option.spellings}

    def read(self, line: str) -> tuple[str, dict[str, str | bool]]:
        """Read a line.

        A value reaches up to the next option, quotes around it or not; beside an operand it is one word, and the rest
        belongs to the operand.

        Args:
            line: what follows the magic.

        Returns:
            The operand as written, and the fields that the options fill.

        Raises:
            UsageError: one sentence that names the nearest right spelling.
        """
        before, *groups = self._groups(line)
        operands, fields = [before[1]], {}
        for spelling, text in groups:
            option = self.by_spelling[spelling]
            value, rest = (text, "") if option.metavar else ("", text)
            if option.metavar and self.operand and option.metavar != "EXPR":  # an expression has spaces of its own
                value, _, rest = text.partition(" ")
            operands.append(rest.strip())
            fields[option.field] = self._value(option, spelling, value) if option.metavar else True
            if option.metavar == "EXPR" and self.operand and not any(operands):
                raise self.refused("magics.operand_first", magic=self.magic, option=spelling)
        stray = next(filter(None, operands), "")
        if stray and not self.operand:
            raise self.refused("magics.stray", text=stray)
        return " ".join(filter(None, operands)), fields

    def setting(self, field: str) -> str:
        """Return what is set for every line in place of an option, as its line would have it; empty where nothing is.

        Raises:
            UsageError: for a value that the option does not take.
        """
        text = setting(field)
        option = next(option for option in self.options if option.field == field)
        return self._value(option, f"nbautograd.{field}", text) if text else ""

    def refused(self, message_id: str, word: str = "", known: Iterable[str] = (), **params: str) -> UsageError:
        """Return the error for a line that is not understood; a cell magic's says that its cell was not run.

        Args:
            message_id: what is wrong.
            word: what was typed in place of one of those that are known.
        """
        ending = f" {messages.text('magics.not_run')}" if self.magic.startswith("%%") else ""
        return UsageError(messages.with_guess(messages.text(message_id, **params), word, known) + ending)

    def _groups(self, line: str) -> list[tuple[str, str]]:
        """Return what stands before the first option, then each option as typed with what follows it."""
        known = self.by_spelling
        starts: list[tuple[str, int, int]] = [("", 0, 0)]
        for found in _WORD.finditer(line):
            if found["open"]:
                raise self.refused("magics.open_quote", line=line.strip())
            if found["option"] in known:
                starts.append((found["option"], found.start(), found.end()))
            elif found["option"] and found["option"].startswith("--"):
                raise self._unknown(found["option"])
        ends = [start for _, start, _ in starts[1:]] + [len(line)]
        return [(spelling, line[begin:end].strip()) for (spelling, _, begin), end in zip(starts, ends, strict=True)]

    def _unknown(self, word: str) -> UsageError:
        offered = " ".join(option.spellings[0] for option in self.options)
        known = [spelling for spelling in self.by_spelling if spelling.startswith("--")]
        return self.refused("magics.unknown_option", word, known, option=word, options=offered)

    def _value(self, option: Option, spelling: str, text: str) -> str:
        value = text[1:-1].strip() if _QUOTED.fullmatch(text) else text
        if not value:
            raise self.refused("magics.no_value", option=spelling, metavar=option.usage)
        if option.choices and value not in option.choices:
            choices = ", ".join(option.choices)
            raise self.refused(
                "magics.unknown_choice", value, option.choices, option=spelling, value=value, choices=choices
            )
        if option.metavar == "SECONDS" and value != NO_LIMIT and not _SECONDS.fullmatch(value):
            raise self.refused("magics.no_seconds", option=spelling, value=value)
        return value


# a word that begins with a quote and ends with it, one that only begins so, and an option with or without "="
_WORD = re.compile(
    r"""(?:^|(?<=[\s=]))(?:"[^"]*"|'[^']*'|(?P<open>["'])|(?P<option>--?[A-Za-z][\w-]*)(?:=|(?=\s|$)))"""
)
_SECONDS = re.compile(r"(?=.*[1-9])\d*\.?\d*s?")
_QUOTED = re.compile(r"""\"[^"]*\"|'[^']*'""")

FUNCTION = Grammar(MAGIC, tuple(option for option in TABLE if option.field != "compile"))
EXERCISE = Grammar("%%exercise", (Option(("--hints",), "hints", "HINTS", LEVELS),), operand="exercise")
GRADCHECK = Grammar(
    "%gradcheck",
    tuple(o for o in TABLE if o.field in ("hints", "order", "budget", "reference", "compile")),
    operand="expression",
)
COMPARE = Grammar("%autograd_compare", tuple(o for o in TABLE if o.field == "hints"), operand="expression")
_BUDGET = tuple(option for option in TABLE if option.field == "budget")
AUDIT = Grammar("%autograd_audit", _BUDGET, operand="expression")
AUDITED_CELL = Grammar("%%autograd_audit", _BUDGET)
EXPLAIN = Grammar(
    "%autograd_explain",
    (Option(("--run",), "run"), Option(("--on",), "on"), Option(("--off",), "off")),
    operand="expression",
)
GRAMMARS = {
    grammar.magic: grammar
    for grammar in (
        FUNCTION,
        EXERCISE,
        GRADCHECK,
        AUDIT,
        AUDITED_CELL,
        EXPLAIN,
        Grammar("%jacobian", operand="expression"),
        Grammar("%autograd_graph", operand="expression"),
        COMPARE,
        Grammar("%autograd_dispatches", operand="expression"),
        Grammar("%autograd_calls", operand="function"),
    )
}


@dataclass(frozen=True)
class Options:
    """Options of one magic's line, read.

    Attributes:
        inputs: expression for the arguments of the Function, or empty.
        name: which of the cell's Functions, or empty for the last one.
        reference: expression for what to compare with, or empty.
        compile: True compares with the reference under torch.compile as well.
        hints: how much the findings give away.
        order: "2" lets second derivatives count, "1" leaves them out; empty looks at them as a risk.
        budget: seconds that the check may take, or "none" for no limit; empty for the default.
    """

    inputs: str = ""
    name: str = ""
    reference: str = ""
    compile: bool = False
    hints: str = "fix"
    order: str = ""
    budget: str = ""

    @property
    def checked_budget(self) -> Budget | float | None:
        """The budget as ``gradcheck`` takes it."""
        budget = self.budget or FUNCTION.setting("budget")
        if not budget:
            return DEFAULT
        return None if budget == NO_LIMIT else float(budget.removesuffix("s"))

    @property
    def checked_order(self) -> int | None:
        """The order as ``gradcheck`` takes it."""
        order = self.order or FUNCTION.setting("order")
        return int(order) if order else None


def audit_within(options: Options) -> Audit:
    """Return an audit whose checks take the seconds that a line asks for."""
    budget = options.budget or AUDIT.setting("budget")
    if not budget:
        return Audit()
    seconds = math.inf if budget == NO_LIMIT else float(budget.removesuffix("s"))
    return Audit(seconds, max(SECONDS_EACH, seconds))


def parse(line: str) -> Options:
    """Read the magic's line.

    Args:
        line: what follows ``%%autograd_function``. Values may hold spaces, with or without quotes around them.

    Raises:
        UsageError: one sentence that names the nearest right spelling.
    """
    return Options(**FUNCTION.read(line)[1])  # type: ignore[arg-type]


def help_text() -> str:
    """Return the text that ``%%autograd_function?`` shows."""
    rows = [(o.usage, messages.text(f"magics.help_{o.spellings[0].strip('-').replace('-', '_')}")) for o in TABLE]
    width = max(len(usage) for usage, _ in rows) + 2
    options = "\n".join(f"  {usage:{width}}{says}" for usage, says in rows)
    return messages.text("magics.help", options=options)
