"""One kind a code of the contract, whoever detects it."""

from __future__ import annotations

import ast
from pathlib import Path

import nbautograd
from nbautograd.core.contract.severity import RANK, SEVERITY

CORE = Path(nbautograd.__file__).parent / "core"


def stated_kinds():
    """Calls of ``Finding`` with a literal code of the contract and a literal kind."""
    for path in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding" and len(node.args) > 1:
                code, kind = node.args[:2]
                if isinstance(code, ast.Constant) and isinstance(kind, ast.Constant) and code.value in SEVERITY:
                    yield code.value, kind.value


def test_no_detector_states_another_kind_than_the_table():
    stated = set(stated_kinds())
    assert stated  # some are written out: the comparison can fail
    assert {(code, SEVERITY[code]) for code, _ in stated} == stated


def test_every_kind_has_a_rank():
    assert set(SEVERITY.values()) <= set(RANK)
