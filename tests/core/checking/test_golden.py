"""The checker's reports are those of the golden file: whoever changes one writes the file anew, and says why."""

from __future__ import annotations

import json

import pytest
from golden_cases import GOLDEN, written


@pytest.mark.slow
def test_reports_are_the_golden_ones() -> None:
    golden, now = json.loads(GOLDEN.read_text(encoding="utf-8")), json.loads(written())
    assert sorted(now) == sorted(golden)
    changed = {name: (golden[name], now[name]) for name in golden if golden[name] != now[name]}
    assert changed == {}
