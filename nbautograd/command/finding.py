"""The page of a finding's code, as ``nbautograd explain CODE`` prints it and the site shows it."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from nbautograd import messages
from nbautograd.messages import text
from nbautograd.version import page_of

_FUNCTION = """class Example(torch.autograd.Function):
    @staticmethod
    def forward({given}):
{forward}

{setup}    @staticmethod
    def backward(ctx, {grads}):
{backward}
"""
_SETUP = """    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

"""
_IN_DOUBLE = "x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)"
_IN_HALF = "x = torch.randn(8, 256, dtype=torch.bfloat16, requires_grad=True)"
_EXP = "y = x.exp()\nctx.save_for_backward(y)\nreturn y"
_OPEN = re.compile(r"({\w+[^}]*})+[.。]?")  # what a sentence leaves open
_MADE_OF = ("backward", "program")  # either of them makes an entry a program

# a code -> the one whose first sentence says it too
_SAID_BY = {
    **dict.fromkeys(("data_in_backward", "no_grad_in_backward", "numpy_in_backward"), "cut_in_backward"),
    **dict.fromkeys(("mixed", "autocast", "large"), "layout"),
}


@cache
def table() -> Mapping[str, Mapping[str, Any]]:
    """Return what ``findings.toml`` holds of each code."""
    return tomllib.loads((files(messages) / "findings.toml").read_text(encoding="utf-8"))


def page(code: str) -> str:
    """Return what there is to say of a code, as Markdown.

    Example:
        >>> from nbautograd.command.finding import page
        >>> print(page("sign").splitlines()[0])
        # `sign`
    """
    about = table()[code]
    parts = [heading(code), why(code), *(f"- {said}" for said in sentences(code))]
    if source := program(about):
        parts.append(f"```python\n{source}```")
    return "\n\n".join((*parts, page_of(code)))


def rule(code: str) -> str:
    """Return torch's rule behind a code of ``explain``, such as ``in_place_step``; empty for another word."""
    while code and f"explain.{code}.rule" not in messages.catalogue("en"):
        code = code.rpartition("_")[0]
    return text(f"explain.{code}.rule") if code else ""


def heading(code: str) -> str:
    """Return the title of a page, by which it is looked up, and how serious the finding is."""
    return f"# `{code}`\n\n{text(f'command.finding.{kind(code)}')}"


def why(code: str) -> str:
    """Return why a code is a finding, in the chosen language."""
    return str(table()[code]["why"][messages.LANGUAGES.index(messages.language())])


def kind(code: str) -> str:
    """Return ``"bug"``, ``"lint"`` or ``"note"``."""
    return str(table()[code].get("kind", "bug"))


def sentences(code: str) -> list[str]:
    """Return what reports say of a code, with ``…`` for names and numbers of the user's."""
    catalogue = messages.catalogue(messages.language())
    own = code.removeprefix("compare_")
    rooms = ("compare",) if own != code else ("causes", "checking", "recording")
    name = _SAID_BY.get(own, own)
    ids = (i.removesuffix(".what") for i in catalogue if i.endswith(".what"))
    fitting = [i for i in ids if i.partition(".")[0] in rooms and re.fullmatch(rf"{name}(_\w+)?", i.partition(".")[2])]
    advice = {i: catalogue.get(f"{rooms[0]}.{own}.advice", catalogue.get(f"{i}.advice", "")) for i in fitting}
    return [_OPEN.sub("…", messages.paragraph((catalogue[f"{i}.what"], advice[i]))) for i in sorted(fitting)]


def program(about: Mapping[str, Any], backward: str = "") -> str:
    """Return the program of an entry, with this body of backward if one is given; empty where the entry has none."""
    if not any(name in about for name in _MADE_OF):
        return ""
    compared = about.get("reference")
    args = about.get("args", "x")
    lines = ["import torch", *about.get("imports", "").splitlines(), "", "import nbautograd", "", ""]
    if compared:
        lines += [f"def reference({args}):", f"    return {compared}", "", ""]
    lines += [about.get("program") or _function(about, args, backward or about["backward"], bool(compared)), ""]
    lines += [about.get("inputs", (_IN_HALF if compared else _IN_DOUBLE) + _others(args, bool(compared)))]
    call = f"compare(Example, reference, ({args},))" if compared else f"gradcheck(Example, ({args},))"
    call = about.get("call", f"nbautograd.{call}")
    return "\n".join((*lines, call if call.startswith(("with ", "if ")) else f"report = {call}", ""))


def _others(args: str, compared: bool) -> str:
    """Return lines that make further tensors as the first is made, and numbers of what is called n."""
    made = {"w": _IN_HALF if compared else _IN_DOUBLE, "n": "n = 3"}
    return "".join(f"\n{made[name].replace('x =', f'{name} =')}" for name in args.split(", ")[1:])


def _function(about: Mapping[str, Any], args: str, backward: str, compared: bool) -> str:
    saved = about.get("save", "")
    body = about.get("forward", _EXP if compared else "return x * 2")
    if saved and not about.get("setup"):
        body = f"ctx.save_for_backward({saved})\n{body}"
    written = _FUNCTION.format(
        given=args if about.get("setup") else f"ctx, {args}",
        forward=textwrap.indent(body, " " * 8),
        setup=_SETUP if about.get("setup") else "",
        grads=about.get("args_back", "g"),
        backward=textwrap.indent(backward, " " * 8),
    )
    return written + (f"\n{textwrap.indent(about['more'], ' ' * 4)}\n" if "more" in about else "")
