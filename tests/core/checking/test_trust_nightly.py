"""The whole of op_db and all mutants, as ``benchmarks/trust.py`` runs them; tens of minutes, with ``-m nightly``."""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from pathlib import Path

import pytest

pytest.importorskip("expecttest", reason="torch's op_db needs the package expecttest")
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(7200)]


@pytest.fixture
def trust(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "benchmarks"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import trust

        yield trust


def asked(per_op: int, names: bool = False) -> Namespace:
    return Namespace(per_op=per_op, part="1/1", seconds=math.inf, names=names)


def test_no_false_alarm_on_any_sample_of_torchs_operators(trust) -> None:
    total, wrong, unsure = trust.alarms(asked(per_op=100_000))
    assert total > 13_000
    assert wrong <= 0.0005 * total
    assert unsure <= 0.005 * total


def test_damaged_gradients_of_all_operators_are_detected_and_named(trust) -> None:
    operators, total, detected, named = trust.mutants(asked(per_op=1, names=True))
    assert operators >= 300
    assert len(trust.DAMAGES) >= 16
    assert detected >= 0.995 * total
    assert named >= 0.95 * total
