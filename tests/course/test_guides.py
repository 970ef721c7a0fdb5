"""The guides beside the demo, in both languages: what their text says of a cell's output, and what comes of trying."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from said import either
from test_course_notebooks import by_day, errors, executed, said

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
GUIDES = ("torch_errors", "audit")
LANGUAGES = ("en", "zh")
each_guide = pytest.mark.parametrize("name", GUIDES)
DAILY = (("torch_errors", "en"), ("audit", "zh"))  # the code is the same in both, which a test holds
CELL = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
KEEP = "optimizer.step()\n    state = state.detach()"
NORM = "r = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()"
STEP = "%%autograd_audit\nloss = nn.functional.cross_entropy(model(x), labels)\nloss.backward()"
# What the text beside a cell says of its output.
SEEN = {
    "torch_errors": {
        "in-place": ("output 0 of Tanh, is at version 1; expected version 0", "`%autograd_explain --run`"),
        "in-place-explain": (r"`hidden`", either("explain.in_place.saved", op="Tanh")),
        "in-place-run": (r"`hidden \+= x`.*`hidden`", r"\+ hidden = hidden \+ x", either("explain.tried_same")),
        "in-place-mended": (r"\(4, 4\)",),
        "second": ("a second time.*retain_graph=True",),
        "second-explain": (r"state = state\.detach\(\)", either("explain.freed.tie")),
        "second-mended": ("steps: 3",),
        "retain": ("modified by an inplace operation",),
        "retain-explain": (r"optimizer\.step\(\)", r"cell\.weight_hh"),
        "no-grad": ("element 0 of tensors does not require grad",),
        "no-grad-explain": (r"\.item\(\)", either("explain.no_grad.python")),
        "no-grad-mended": (r"\(4, 4\)",),
        "none": ("gradient: None", r"UserWarning: The \.grad attribute of a Tensor that is not a leaf"),
        "none-explain": (either("graphs.none.not_a_leaf.what", name="scale"),),
        "none-mended": (r"gradient: \(4,\) leaf: True",),
        "nan": (r"loss: 3\.0", r"gradient: tensor\(\[ +nan, 0\.5000, 0\.2500\]\)"),
        "nan-explain": (r"NaN[\s\S]*Sqrt", either("explain.trap.sqrt_at_zero"), "(0 times infinity|0 乘无穷)"),
        "nan-run": (r"torch\.where\(lengths > 0, lengths, 1\)\.sqrt\(\)", either("explain.tried_finite")),
        "nan-mended": (r"loss: 3\.0", r"gradient: tensor\(\[0\.0000, 0\.5000, 0\.2500\]\)"),
        "own": (r"invalid gradient at index 1 - got \[4, 3\]",),
        "own-explain": (r"`weight`.*4×3", r"3×4", r"grad_weight = rows\.t\(\) @ grad_output"),
        "own-silent": ("torch said nothing", either("views.headline.wrong_for", inputs="`weight`")),
        "own-mended": (f"✓ {either('views.block.match')}",),
    },
    "audit": {
        "audit": (
            either("views.audit.wrong", count=3, wrong=1, names="`RMSNorm`"),
            "RMSNorm.*(line |第 )14",
            r"\.mean\(-1, keepdim=True\)",
            "✗",
            r"cap: 5\.0",
            "x\\*: float32 16×8",
        ),
        "object": ("RMSNorm wrong calls: 1\nSoftCap right calls: 1\nSwish right calls: 1",),
        "open": (r"\+ .*\.mean\(-1, keepdim=True\)", either("views.aside.right.one", inputs="`weight`")),
        "repro": (r"repro_RMSNorm\.py",),
        "audit-again": (
            either("views.audit.right", count=3),
            either("views.audit.second"),
        ),
    },
}
# A cell changed as a "Try" asks for, what is run behind it, and what comes then.
TRIED = {
    "torch_errors": (
        ("in-place", {"torch.tanh": "nn.functional.silu", "backward()": "backward(), print('walked')"}, "", "walked"),
        ("second-mended", {"state.detach())": "state)", "optimizer.step()": KEEP}, "", "steps: 3"),
        ("no-grad-mended", {".mean())": ".mean().detach())"}, "%autograd_explain --run", r"\.detach\(\)\)`"),
        ("none", {".double()": ".double()\nscale.retain_grad()"}, "print(scale.is_leaf)", r"tensor[\s\S]*False"),
        ("nan-explain", {"sqrt": "log"}, "", r"Log[\s\S]*(0 times infinity|0 乘无穷)"),
        (
            "own-mended",
            {"grad_rows, grad_weight": "grad_rows"},
            "%autograd_explain",
            either("explain.returned_number.what", got=1),
        ),
    ),
    "audit": (
        (
            "mended",
            {"g = grad": f"{NORM}\n        g = grad"},
            STEP,
            rf"\A(?![\s\S]*{either('views.audit.second')})[\s\S]*{either('views.audit.right', count=3)}",
        ),
    ),
}


def content(name: str, lang: str) -> dict[str, Any]:
    """A guide as it is committed."""
    file = f"{name}.ipynb" if lang == "en" else f"{name}.{lang}.ipynb"
    return json.loads((NOTEBOOKS / file).read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def sources(name: str, lang: str, kind: str) -> dict[str, str]:
    """The cells of one kind by their ids."""
    return {c["id"]: "".join(c["source"]) for c in content(name, lang)["cells"] if c["cell_type"] == kind}


def with_tries(name: str, lang: str) -> dict[str, Any]:
    """A guide with the cells that a reader is asked to try at its end."""
    guide, code = content(name, lang), sources(name, lang, "code")
    for number, (cell, changes, behind, _) in enumerate(TRIED[name]):
        changed = code[cell]
        for old, new in changes.items():
            assert old in changed
            changed = changed.replace(old, new)
        for part, source in (("try", changed), ("behind", behind)):
            guide["cells"].append({**CELL, "id": f"{part}-{number}", "source": source})
    return guide


@pytest.mark.parametrize(
    ("name", "lang"), [by_day(*pair, day=pair in DAILY) for pair in itertools.product(GUIDES, LANGUAGES)]
)
@pytest.mark.notebooks
def test_a_guide_shows_what_its_text_says(name, lang):
    cells = {cell.id: cell for cell in executed(with_tries(name, lang), lang) if cell.cell_type == "code"}
    told = {key: "\n".join([*errors(cell), said(cell)]) for key, cell in cells.items()}
    assert {
        (key, p): told[key] for key, all_of in SEEN[name].items() for p in all_of if not re.search(p, told[key])
    } == {}
    tries = {
        (cell, pattern): told[f"try-{k}"] + told[f"behind-{k}"] for k, (cell, *_, pattern) in enumerate(TRIED[name])
    }
    assert {key: text for key, text in tries.items() if not re.search(key[1], text)} == {}
    meant = {key for key, cell in cells.items() if "raises-exception" in cell.metadata.get("tags", [])}
    raised = {key for key, cell in cells.items() if errors(cell) and not key.startswith("try-")}
    assert raised == meant
    if name == "audit":
        before, after = (float(told[key].split()[-1]) for key in ("model", "train-again"))
        assert after < before


@each_guide
def test_a_guide_has_the_same_code_in_both_languages(name):
    english, chinese = (sources(name, lang, "code") for lang in LANGUAGES)
    assert {key: code for key, code in english.items() if key != "setup"} == {
        key: code for key, code in chinese.items() if key != "setup"
    }
    assert list(sources(name, "en", "markdown")) == list(sources(name, "zh", "markdown"))
