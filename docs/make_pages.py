"""Writes the pages of the site that are made from the code: findings, torch's errors, commands, magics, notebooks.

    PYTHONPATH=tests/support:benchmarks python docs/make_pages.py        writes docs/generated

Every example runs, and its page is written from what it gave: one that gives something else stops the build.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import inspect
import io
import json
import linecache
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from baseline import loaded
from gradient_errors import PROGRAMS, Case, cases

import nbautograd
import nbautograd.types
from nbautograd import messages
from nbautograd.command import finding, main
from nbautograd.core.explaining.torch_errors import KINDS, kind_of
from nbautograd.core.findings import Finding
from nbautograd.magics.options import GRAMMARS

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = HERE / "generated"
GUIDES = ("demo", "audit", "torch_errors")
COMMANDS = ("lab", "course", "freeze", "release", "mark", "audit", "explain", "check", "doctor", "report-bug")
SETS = ("own_mistakes", "mistakes_in_layers", "mistakes_in_plumbing", "odd_but_right", "right_functions")
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
    file = inspect.unwrap(cls.forward).__code__.co_filename  # of a row this is a file of its own
    whole = file != module.__file__
    source = published("".join(linecache.getlines(file)) if whole else inspect.getsource(cls))
    if getattr(found.fn, "__self__", None) is not cls:
        return source, found.fn, found.inputs
    namespace = {**vars(module), "__name__": wanted}  # as a file of its own, so that the report's lines are the page's
    linecache.cache[f"{wanted}.py"] = len(source), None, source.splitlines(keepends=True), f"{wanted}.py"
    exec(compile(source, f"{wanted}.py", "exec"), namespace)
    return source, namespace[wanted].apply, found.inputs


Ran = tuple[str, Any, Finding | None, str]  # source, report, the finding, and the source that mends it


def ran(code: str, about: Mapping[str, Any]) -> Ran:
    """Run the example of a code."""
    torch.manual_seed(0)
    if "example" in about:
        source, fn, inputs = example_of(about["example"])
        report = nbautograd.gradcheck(fn, inputs())
        return source, report, found_in(report, code), ""
    source = finding.program(about)
    report = run_program(f"{code}.py", source)
    right = finding.program(about, about["right"]) if "right" in about else ""
    if right and found_in(run_program(f"{code}_right.py", right), code):
        raise Untrue(f"{code}: what is called right has the finding too")
    return source, report, found_in(report, code), right


def run_program(name: str, source: str) -> Any:
    """Run a program as a file of that name and return its report."""
    torch.manual_seed(0)
    if "__main__" in source:  # ranks import it as the file that was started
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_text(source)
            return runpy.run_path(str(file), run_name="__main__")["report"]
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    module = sys.modules[name.removesuffix(".py")] = ModuleType(name.removesuffix(".py"))  # torch.compile imports it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, name, "exec"), vars(module))
    return module.report


def found_in(report: Any, code: str) -> Finding | None:
    """Return the finding of this code in a report, of second derivatives too."""
    second = getattr(report, "order2", None)
    every = [*getattr(report, "findings", ()), *(second.findings if second is not None else ())]
    every += [one for call in getattr(report, "calls", ()) for one in getattr(call, "warnings", ())]
    return next((one for one in every if one.code == code), None)


def finding_page(code: str, about: Mapping[str, Any]) -> None:
    """Check the example and write the page of its code; without one its sentences alone."""
    parts = [finding.heading(code), finding.why(code)]
    if not {"example", "backward", "program"} & set(about):
        parts += ["## What you see", "`…` stands for names and numbers of yours."]
        write(f"findings/{code}.md", "\n\n".join((*parts, *(f"- {said}" for said in finding.sentences(code)), ALSO)))
        return
    source, report, found, right = ran(code, about)
    if found is None or found.kind != finding.kind(code):
        raise Untrue(f"{code}: its example does not give it: {report}")
    parts += ["## The code", marked(source, found), "## What you see", fenced("text", str(report))]
    if right or found.fix is not None:
        before, after = (source, right) if right else (found.fix.before or about["program"], found.fix.source)
        lines = difflib.unified_diff(before.strip().splitlines(), after.strip().splitlines(), n=1, lineterm="")
        parts += ["## The change", fenced("diff", "\n".join(line for line in list(lines)[2:] if line[:2] != "@@"))]
    parts += ["## How it is confirmed", confirmed(found), ALSO]
    write(f"findings/{code}.md", "\n\n".join(parts))


def marked(source: str, found: Finding) -> str:
    """Return the source with the line that changes emphasised, where the finding has one."""
    first = "" if found.fix is None else found.fix.before.strip().partition("\n")[0].strip()
    at = next((n for n, line in enumerate(source.splitlines(), 1) if first and line.strip() == first), None)
    return fenced("python", source, *(() if at is None else (f":emphasize-lines: {at}", "")))


def confirmed(found: Finding) -> str:
    """Say on what a finding rests."""
    if found.code.startswith("compare_"):
        return (
            "The reference ran in float64 on the same numbers, and in the kernel's own dtype, which says how large "
            "rounding is. The difference was larger, and at fresh draws of inputs and grad_outputs it was so again."
        )
    if found.fix is not None and found.fix.verified:
        return (
            "The change was run at random points that it was not found at: every entry of every gradient agreed with "
            "finite differences there. A change that fails at one of them is not shown."
        )
    if found.kind == "bug":
        return (
            "backward disagrees with finite differences by more than their error bars, or broke torch's contract when "
            "it ran. The cause was looked for again at other random points, and is named only where it held there."
        )
    return "It was seen when the Function ran. No derivative is judged by it."


ALSO = "[All findings](index.md). [How a verdict is reached](../../explanation/verdicts.md)."


def findings() -> None:
    """Write one page for each code, and their list."""
    untrue = list[str]()
    for code, about in finding.table().items():
        try:
            finding_page(code, about)
        except Exception as error:
            untrue.append(f"{code}: {type(error).__name__}: {error}")
    if untrue:
        raise Untrue("\n".join(untrue))
    pages = sorted(finding.table())
    rows = [f"| [`{code}`]({code}.md) | {finding.why(code)} |" for code in pages]
    listed = ["# Findings", FINDINGS, "| code | |\n|---|---|\n" + "\n".join(rows), toctree(pages, hidden=True)]
    write("findings/index.md", "\n\n".join(listed))


FINDINGS = """Every finding of a report has a code; look it up here. `nbautograd explain CODE` prints its page.
Codes do not change between versions ([what a version promises](../../project/versioning.md)); the sentences may."""


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
`nbautograd explain` answers. In a notebook, `%autograd_explain --run` beneath an error answers the same."""


WHY = {
    "in_place": "Forward saves tensors for backward: the derivative of `y = x.exp()` is `y`. Each tensor counts the "
    "writes into its memory, its *version*. Where that has risen since forward, the saved numbers are gone, and "
    "backward refuses to compute with others."
}


def error_page(kind: str, case: Case, said: str) -> None:
    """Write one page: the error, the program, the answer."""
    program = "import torch\n\n" + re.sub(
        r"  # (made|did|saved|made did|.*\bdid\b.*)$", "", case.text, flags=re.MULTILINE
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "program.py").write_text(program, encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-m", "nbautograd", "explain", "--json", "said.json", "program.py"],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}, capture_output=True, text=True,
        )  # fmt: skip
        if ran.returncode not in (1, 2) or not ran.stdout.strip():
            raise Untrue(f"{case.name}: {ran.stdout}{ran.stderr}")
        fix = json.loads((Path(folder) / "said.json").read_text(encoding="utf-8")).get("fix")
    title = re.split(r"(?<=[a-z])[.:] ", said)[0].rstrip(".")
    why = f"{WHY.get(kind, '')} {messages.text(f'explain.{kind}.rule')}".strip()
    parts = [f"# {title.replace('`', '')}", why, "The whole of torch's first line:", fenced("text", said)]
    parts += ["## A program that raises it", fenced("python", program)]
    parts += ["## What `nbautograd explain program.py` answers", fenced("text", ran.stdout.replace(folder, "."))]
    if fix and fix["verified"] and fix["line"]:
        lines, at = program.splitlines(), fix["line"] - 1
        lines[at : at + len(fix["before"].splitlines())] = fix["source"].splitlines()
        exec(compile(mended := "\n".join(lines), "mended.py", "exec"), {"__name__": "__main__"})  # and raises nothing
        parts += ["## The program, mended", fenced("python", mended)]
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
    glossary = tomllib.loads(messages.GLOSSARY.read_text(encoding="utf-8"))
    terms = [(english, chinese, " ".join(means)) for english, chinese, _, *means in glossary["terms"]]
    said = [messages.catalogue(lang) for lang in messages.LANGUAGES]
    terms += [(*(one[key] for one in said), " ".join(means)) for key, means in glossary["meanings"].items()]
    rows = "\n".join(f"| {english} | {chinese} | {means} |" for english, chinese, means in terms)
    write("reference/glossary.md", f"# Glossary 术语表\n\n| English | 中文 | |\n|---|---|---|\n{rows}")


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
