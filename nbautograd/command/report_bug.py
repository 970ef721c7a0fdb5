"""``nbautograd report-bug``: what to send when nbautograd itself failed, without the user's data."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from nbautograd import __version__
from nbautograd.core import stumbles
from nbautograd.core.findings import of_stumble
from nbautograd.errors import CommandError
from nbautograd.messages import text

PACKAGES = ("torch", "numpy", "ipython", "anywidget")
PLAIN = ("part", "file", "at", "function")  # parameters that hold nothing of the user's
_NAME = re.compile(r"[\w.<>/ -]{1,200}")  # what else stands in their place ends a line or a block of Markdown


def report_bug(file: Path | None) -> int:
    """Print versions, the errors of nbautograd's own, and a script to fill in, as Markdown to paste.

    Args:
        file: the JSON of a report; by default what failed in this process is told.

    Returns:
        0.

    Raises:
        CommandError: the file is no JSON.
    """
    data = None if file is None else _read(file)
    if file is None:
        failed = [of_stumble(one).params for one in stumbles.recent()]
    else:
        told = [one.get("params") for one in _values(data) if one.get("code") == "stumbled"]
        failed = [params for params in told if isinstance(params, dict)]
    print(f"### {text('command.report_bug.title')}\n\n{', '.join(_versions())}\n")
    for params in {json.dumps(one, sort_keys=True, default=str): one for one in failed}.values():
        plain = {name: _name(params.get(name)) for name in PLAIN}
        kind = _name(str(params.get("error")).partition(":")[0])  # what follows may quote a value
        print(f"- `{plain['part']}`: {kind} ({plain['file']}:{plain['at']}, `{plain['function']}`)")
    if not failed:
        print(text("command.report_bug.none"))
    reports = (one for one in _values(data) if one.get("type") == "GradcheckReport")
    for script in dict.fromkeys(_script(one) for one in reports if isinstance(one.get("blocks"), dict)):
        print(f"\n```python\n{script}\n```")
    print(f"\n{text('command.report_bug.last')}")
    return 0


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise TypeError
        return data
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CommandError(text("command.report_bug.unread", file=file, reason=type(error).__name__)) from None


def _name(value: Any) -> str:
    """Return a name from a file, which anybody may have written."""
    return str(value) if _NAME.fullmatch(str(value)) else "?"


def _versions() -> Iterator[str]:
    yield f"nbautograd {__version__}"
    known = {package: list(metadata.distributions(name=package)) for package in PACKAGES}
    yield from (f"{package} {found[0].version}" for package, found in known.items() if found)
    yield f"Python {platform.python_version()}"
    yield platform.platform(terse=True)


def _values(data: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every mapping inside a report."""
    waiting = [data]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
        waiting += reversed(list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else [])


def _script(check: Mapping[str, Any]) -> str:
    """Return the check with made-up numbers in the sizes that it had; the Function is left to be filled in."""
    blocks = [one for one in check["blocks"].values() if isinstance(one, dict)]
    shapes = {str(one.get("input_name")): one.get("input_shape") for one in blocks}
    inputs = {
        name: tuple(shape)
        for name, shape in shapes.items()
        if isinstance(shape, list) and all(type(size) is int for size in shape)
    }
    names = [f"x{k}" for k in range(len(inputs))]
    function = _name(check.get("function", "F"))
    lines = [
        "import torch, nbautograd",
        f"# class {function}(torch.autograd.Function): ...",
        *(
            f"{name} = torch.randn({shape}, dtype=torch.float64, requires_grad=True)"
            for name, shape in zip(names, inputs.values(), strict=True)
        ),
        f"print(nbautograd.gradcheck({function}, ({', '.join(names)},)))",
    ]
    return "\n".join(lines)
