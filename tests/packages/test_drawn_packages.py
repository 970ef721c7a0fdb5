"""Packages that were drawn before they were audited: the published table of what is said of each class holds.

``benchmarks/packages.py`` makes the table, one package a process; ``.ci/packages nightly`` installs them all.
"""

from __future__ import annotations

import csv
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FOLDER = os.environ.get("NBAUTOGRAD_PACKAGES", "")
# called wrong for another reason than numbers that differ from the derivative of forward at the program's inputs
NOT_BY_NUMBERS = {
    "fairscale.nn.model_parallel.cross_entropy:_VocabParallelCrossEntropy",  # changes its input in place, unmarked
    "nni.compression.base.apply_method:BNNClampRound",  # changes grad_output in place
    "nni.compression.base.apply_method:QATClampRound",  # likewise
    "pyqtorch.differentiation.adjoint:AdjointExpectation",  # changes what forward saved: works once
}
STEPS = {
    "theseus.third_party.lml:LML_Function",  # stops at eps = 1e-4; at 1e-12 differences agree to 4e-10
    "odl.contrib.torch.operator:OperatorFunction",  # returns float32 for float64; with a step of 1 they agree to 6e-8
}
if FOLDER:
    sys.path.append(FOLDER)


def rows(text):
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


TABLE = rows((BENCHMARKS / "packages.tsv").read_text())
NAMES = list(dict.fromkeys(row["package"] for row in TABLE))


def said(row):
    """What is said of a class: the audit, plain torch, and the audit of the wrong term."""
    return row["audit"], row["torch"].partition(" ")[0], row["planted"], row["then"]


def test_the_drawn_packages_are_those_of_the_table():
    lines = [line for line in (BENCHMARKS / "packages.txt").read_text().splitlines() if "==" in line and line[0] != "#"]
    assert [line.partition("==")[0] for line in lines] == NAMES


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['package']}-{row['class'].rpartition(':')[2]}")
def test_no_verdict_is_one_that_plain_torch_contradicts(row):
    if row["class"] not in NOT_BY_NUMBERS:
        assert not (row["audit"] == "wrong" and row["torch"].startswith(("agrees", "flat")))
    if row["class"] not in STEPS:
        assert not (row["audit"] == "right" and row["torch"].startswith("differs"))


@pytest.mark.nightly  # two audits and a plain check in processes of their own, up to minutes each
@pytest.mark.parametrize("name", NAMES)
def test_each_class_is_called_what_the_table_says(name):
    if not FOLDER:
        pytest.skip("no packages here: .ci/packages installs them and runs this")
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not to be had")
    command = [sys.executable, str(BENCHMARKS / "packages.py"), name]
    path = os.pathsep.join([str(BENCHMARKS.parent / "tests/support"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=True)
    expected = {row["class"]: said(row) for row in TABLE if row["package"] == name}
    assert {row["class"]: said(row) for row in rows(done.stdout)} == expected
