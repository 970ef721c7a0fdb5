"""Writes the pages of the site that are made from the code: findings, torch's errors, commands, magics, notebooks.

    PYTHONPATH=tests/support:benchmarks python docs/make_pages.py        writes docs/generated

Every example runs, and its page is written from what it gave: one that gives something else stops the build.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import linecache
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from baseline import loaded
from gradient_errors import PROGRAMS, Case, cases

import nbautograd
import nbautograd.types
from nbautograd import messages
from nbautograd.command import main
from nbautograd.core.contract.rules import SEVERITY
from nbautograd.core.explaining.torch_errors import KINDS, kind_of
from nbautograd.core.findings import Finding
from nbautograd.magics.options import GRAMMARS

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = HERE / "generated"
GUIDES = ("demo", "audit", "torch_errors")
COMMANDS = ("lab", "course", "freeze", "release", "mark", "audit", "explain", "check", "doctor", "report-bug")
SETS = ("own_mistakes", "mistakes_in_layers", "mistakes_in_plumbing", "mistakes_in_reductions")
SETS += ("odd_but_right", "right_functions")
KIND = {
    "bug": "A mistake: the verdict is *wrong*, or the call breaks torch's contract.",
    "lint": "Legal, and a trap: the verdict stays what it is.",
    "note": "Worth knowing: the verdict stays what it is.",
}
Example = tuple[str, Callable[..., Any], Callable[[], tuple[Any, ...]]]  # its source, and what is checked


class Untrue(Exception):  # noqa: N818 - what is wrong is the example
    """An example that does not give what its page says."""


def write(path: str, text: str) -> None:
    """Write a page below ``OUT``."""
    file = OUT / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.rstrip() + "\n", encoding="utf-8")


def fenced(language: str, text: str, *options: str) -> str:
    """Return a block of code, with the options of its directive."""
    fence = "{code-block} " + language if options else language
    return "\n".join((f"```{fence}", *options, text.rstrip(), "```"))


# the findings


def published(source: str) -> str:
    """Return a Function of the tests as a user writes it: torch's own base, static methods, no decorator."""
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.ClassDef)
    lines = source.splitlines()[tree.lineno - 1 :]
    lines[0] = re.sub(r"\(Fn\b", "(torch.autograd.Function", lines[0])
    written = []
    for line in lines:
        if re.match(r"    def \w+\((ctx|info)\b", line) and "staticmethod" not in written[-1]:
            written.append("    @staticmethod")
        written.append(line)
    return "\n".join(written)


def example_of(name: str) -> Example:
    """Return one Function of ``tests/support``, named as in ``findings.toml``."""
    file, _, wanted = name.partition("/")
    module = loaded(ROOT / "tests" / "support" / f"{file}.py")
    every = [one for kind in ("MISTAKES", "CORRECT", "RIGHT") for one in getattr(module, kind, ())]
    found = next(one for one in every if one.name == wanted)
    cls = getattr(module, wanted)
    source = published(inspect.getsource(cls))
    if getattr(found.fn, "__self__", None) is not cls:
        return source, found.fn, found.inputs
    namespace = {**vars(module), "__name__": wanted}  # as a file of its own, so that the report's lines are the page's
    linecache.cache[f"{wanted}.py"] = len(source), None, source.splitlines(keepends=True), f"{wanted}.py"
    exec(compile(source, f"{wanted}.py", "exec"), namespace)
    return source, namespace[wanted].apply, found.inputs


def finding_page(code: str, why: str, example: str) -> None:
    """Check the example and write the page of its code."""
    source, fn, inputs = example_of(example)
    torch.manual_seed(0)
    report = nbautograd.gradcheck(fn, inputs())
    finding = next((one for one in report.findings if one.code == code), None)
    if finding is None:
        raise Untrue(f"{example} gives {[one.code for one in report.findings]}, and not {code}")
    parts = [heading(code, finding.kind), why, "## The code", marked(source, finding), "## What you see"]
    parts.append(fenced("text", str(report)))
    if finding.fix is not None:
        before = "\n".join(f"- {line}" for line in finding.fix.before.strip().splitlines())
        after = "\n".join(f"+ {line}" for line in finding.fix.source.strip().splitlines())
        parts += ["## The change", fenced("diff", f"{before}\n{after}")]
    parts += ["## How it is confirmed", confirmed(finding), ALSO]
    write(f"findings/{code}.md", "\n\n".join(parts))


def heading(code: str, kind: str) -> str:
    """Return the title of a page, by which it is looked up."""
    return f"# `{code}`\n\n{KIND[kind]}"


def marked(source: str, finding: Finding) -> str:
    """Return the source with the line that changes emphasised, where the finding has one."""
    first = "" if finding.fix is None else finding.fix.before.strip().splitlines()[0].strip()
    at = next((n for n, line in enumerate(source.splitlines(), 1) if first and line.strip() == first), None)
    return fenced("python", source, *(() if at is None else (f":emphasize-lines: {at}", "")))


def confirmed(finding: Finding) -> str:
    """Say on what a finding rests."""
    if finding.fix is not None:
        return (
            "The change was run at random points that it was not found at: every entry of every gradient agreed with "
            "finite differences there. A change that fails at one of them is not shown."
        )
    if finding.kind == "bug":
        return (
            "backward disagrees with finite differences by more than their error bars, or broke torch's contract when "
            "it ran. The cause was looked for again at other random points, and is named only where it held there."
        )
    return "It was seen when the Function ran. No derivative is judged by it."


ALSO = "[All findings](index.md). [How a verdict is reached](../../explanation/verdicts.md)."


def plain_page(code: str, kind: str, ids: list[str], why: str) -> None:
    """Write the page of a code without an example: its sentences, with what they leave open in braces."""
    catalogue = messages.catalogue("en")
    said = [f"- {catalogue[f'{i}.what']} {catalogue.get(f'{i}.advice', '')}".rstrip() for i in ids]
    parts = [
        heading(code, kind),
        why,
        "## What you see",
        "Words in braces stand for names and numbers of yours.",
        *said,
    ]
    write(f"findings/{code}.md", "\n\n".join(part for part in parts if part) + f"\n\n{ALSO}")


def sentences_of(code: str) -> list[str]:
    """Return the ids that begin with the code's name, in whichever room."""
    ids = {i.removesuffix(".what") for i in messages.catalogue("en") if i.endswith(".what")}
    name = code.removeprefix("compare_")
    rooms = ("compare",) if name != code else ("causes", "checking")
    return sorted(
        i for i in ids if i.partition(".")[0] in rooms and re.fullmatch(rf"{name}(_\w+)?", i.partition(".")[2])
    )


def written_codes() -> dict[str, str]:
    """Return every code that the package's sources give to a finding, with its kind."""
    found = dict(SEVERITY)
    for file in (ROOT / "nbautograd").rglob("*.py"):
        found |= dict(re.findall(r'Finding\(\s*"(\w+)",\s*"(bug|lint|note)"', file.read_text(encoding="utf-8")))
    return found


def findings() -> None:
    """Write one page for each code, and their list."""
    table = tomllib.loads((HERE / "reference" / "findings.toml").read_text(encoding="utf-8"))
    kinds, untrue = {**dict.fromkeys(table, "bug"), **written_codes()}, list[str]()
    for code in sorted(kinds):
        why, example = (table.get(code, {}).get(key, "") for key in ("why", "example"))
        if example:
            try:
                finding_page(code, why, example)
            except Untrue as error:
                untrue.append(str(error))
        elif why or sentences_of(code):
            plain_page(code, kinds[code], sentences_of(code), why)
        else:
            untrue.append(f"{code} has neither an example nor a sentence")
    if untrue:
        raise Untrue("\n".join(untrue))
    pages = sorted(file.stem for file in (OUT / "findings").glob("*.md"))
    rows = [f"| [`{c}`]({c}.md) | {table.get(c, {}).get('why', '') or first_sentence(c)} |" for c in pages]
    listed = ["# Findings", FINDINGS, "| code | |\n|---|---|\n" + "\n".join(rows), toctree(pages, hidden=True)]
    write("findings/index.md", "\n\n".join(listed))


FINDINGS = """What a report finds has a code, for programs and for looking up. Codes do not change between versions
([what a version promises](../../project/versioning.md)); the sentences may."""


def first_sentence(code: str) -> str:
    """Return what is said of a code that the table does not explain."""
    return messages.catalogue("en")[f"{sentences_of(code)[0]}.what"].replace("|", "\\|")


def toctree(pages: list[str], *, hidden: bool = False) -> str:
    """Return a table of contents."""
    return "\n".join(("```{toctree}", *((":hidden:", "") if hidden else (":maxdepth: 1", "")), *pages, "```"))


# torch's errors


def error_of(case: Case) -> BaseException | None:
    """Run a program and return what it raises."""
    torch.manual_seed(0)
    try:
        exec(compile(case.text, "program.py", "exec"), {"torch": torch, "__name__": "__main__"})
    except Exception as error:
        return error
    return None


def error_pages() -> None:
    """Write one page for each kind of torch's gradient errors, with torch's words as its title."""
    pages = []
    for kind in dict.fromkeys(kind for _, kind in KINDS):
        fitting = [case for case in cases(PROGRAMS) if case.code.startswith(kind)]
        ran = [(case, error) for case in fitting if kind_of(error := error_of(case)) == kind]
        if ran:
            case, error = min(ran, key=lambda pair: len(pair[0].text))
            pages.append(kind)
            error_page(kind, case, str(error).splitlines()[0])
    listed = ["# Errors of torch's, and what is behind them", ERRORS, toctree(pages)]
    write("torch-errors/index.md", "\n\n".join(listed))


ERRORS = """Look your error up by torch's own words. Each page has a program that raises it, and what
`nbautograd explain` answers; beneath an error in a notebook, `%autograd_explain` does the same."""


def error_page(kind: str, case: Case, said: str) -> None:
    """Write one page: the error, the program, the answer."""
    program = "import torch\n\n" + re.sub(
        r"  # (made|did|saved|made did|.*\bdid\b.*)$", "", case.text, flags=re.MULTILINE
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "program.py").write_text(program, encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-m", "nbautograd", "explain", "program.py"],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}, capture_output=True, text=True,
        )  # fmt: skip
    if ran.returncode not in (1, 2) or not ran.stdout.strip():
        raise Untrue(f"{case.name}: {ran.stdout}{ran.stderr}")
    title = re.split(r"(?<=[a-z])[.:] ", said)[0].rstrip(".")
    parts = [f"# {title.replace('`', '')}", "The whole of torch's first line:", fenced("text", said)]
    parts += ["## A program that raises it", fenced("python", program)]
    parts += ["## What `nbautograd explain program.py` answers", fenced("text", ran.stdout.replace(folder, "."))]
    parts.append("[All errors](index.md). [Explain](../../tutorials/explain.md): what it knows, and what it does not.")
    write(f"torch-errors/{kind}.md", "\n\n".join(parts))


# commands, magics, glossary, notebooks


def printed(*words: str) -> str:
    """Return what a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main(list(words))
    return out.getvalue()


def commands() -> None:
    """Write the help of every command."""
    os.environ["COLUMNS"] = "100"
    parts = ["# Command line", fenced("text", printed("--help"))]
    for name in COMMANDS:
        parts += [f"## nbautograd {name}", fenced("text", printed(name, "--help"))]
    write("reference/command-line.md", "\n\n".join(parts))


def api() -> None:
    """Write the reference of every public name, from its docstring."""
    parts = ["# Python", "What is returned is described in `nbautograd.types`, below."]
    for module, names in ((nbautograd, nbautograd.__all__), (nbautograd.types, nbautograd.types.__all__)):
        parts.append(f"## {module.__name__}")
        for name in names:
            kind = "class" if inspect.isclass(getattr(module, name)) else "function"
            options = "\n   :members:" if kind == "class" else ""
            parts += [f"### {name}", f"```{{eval-rst}}\n.. auto{kind}:: {module.__name__}.{name}{options}\n```"]
    write("reference/api.md", "\n\n".join(parts))


def demo() -> None:
    """Freeze the demo, executed, for the front page."""
    notebook, page = OUT / "notebooks" / "en" / "demo.ipynb", OUT / "extra" / "generated" / "demo.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    if main(["freeze", str(notebook), "-o", str(page), "--execute"]) != 0:
        raise Untrue("the demo cannot be frozen")


def magics() -> None:
    """Write the table of options of every magic."""
    parts = ["# Magics", "`%load_ext nbautograd` registers them. `-h` after a magic prints its options."]
    for grammar in GRAMMARS.values():
        parts.append(f"## `{grammar.magic}`" + (f" *{grammar.operand}*" if grammar.operand else ""))
        parts += [f"- `{' '.join(filter(None, (', '.join(o.spellings), o.metavar)))}`" for o in grammar.options]
    write("reference/magics.md", "\n\n".join(parts))


def notebooks() -> None:
    """Copy the notebooks: the guides are executed by the build, the course is for doing and is shown as handed out."""
    for lang, ending in (("en", ""), ("zh", ".zh")):
        folder = OUT / "notebooks" / lang
        folder.mkdir(parents=True)
        for name in GUIDES:
            shutil.copy(ROOT / "notebooks" / f"{name}{ending}.ipynb", folder / f"{name}.ipynb")
        course = sorted((ROOT / "notebooks" / lang).glob("*.ipynb"))
        for file in course:
            shutil.copy(file, folder / file.name)
        title = {"en": "# The course and the guides", "zh": "# 课程与指南"}[lang]
        write(f"notebooks/{lang}/index.md", f"{title}\n\n{toctree([*GUIDES, *(file.stem for file in course)])}")
    skill = (ROOT / "nbautograd" / "command" / "skill.md").read_text(encoding="utf-8")
    write("reference/coding-agents.md", re.sub(r"^---\n.*?---\n", "", skill, flags=re.DOTALL))
    shutil.copy(ROOT / "notebooks" / "glossary.md", OUT / "reference" / "glossary.md")


def build() -> None:
    """Write all of it anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    findings()
    error_pages()
    commands()
    magics()
    api()
    notebooks()
    demo()


if __name__ == "__main__":
    build()
