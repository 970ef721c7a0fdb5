"""Kernels in Triton, run by its interpreter on the CPU: right ones are right, each wrong twin is found.

Triton is no dependency: ``.ci/triton`` brings it into a folder of its own, which ``NBAUTOGRAD_TRITON`` names.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from nbautograd import compare
from nbautograd.types import Comparison

FOLDER = os.environ.get("NBAUTOGRAD_TRITON", "")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="NBAUTOGRAD_TRITON names no folder with triton: .ci/triton makes one"
)
NAMES = ("softmax", "rms_norm", "cross_entropy")
TAIL, MASK, ACCUMULATED, LOST, RACE, UNSEEN = 1, 2, 3, 4, 5, 6


@pytest.fixture(scope="module")
def kernels() -> Iterator[ModuleType]:
    """The kernels, with Triton in its interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("triton_kernels")
        for name in [name for name in sys.modules if name.partition(".")[0] in ("triton", "triton_kernels")]:
            patch.delitem(sys.modules, name)


def checked(kernels: ModuleType, name: str, twin: int = 0, columns: int = 40, **options: object) -> Comparison:
    given = {"sizes": (), **options}
    fn, eager = getattr(kernels, name)(twin), kernels.KERNELS[name]
    return compare(fn, eager, kernels.inputs(name, columns), **given)


@pytest.mark.parametrize("name", NAMES)
def test_a_right_kernel_is_right(kernels: ModuleType, name: str) -> None:
    sizes = {"softmax": [(3, 1), (2, 16), (1, 33)], "rms_norm": [(3, 15), (2, 16), (1, 33)], "cross_entropy": ()}
    report = checked(kernels, name, sizes=sizes[name])
    assert (report.verdict, report.findings) == ("right", ())
    assert [case.verdict for case in report.cases] == ["right"] * len(sizes[name])
    assert report.resolution < 0.02


@pytest.mark.parametrize("twin", [TAIL, MASK, ACCUMULATED, LOST, RACE])
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_twin_is_wrong(kernels: ModuleType, name: str, twin: int) -> None:
    report = checked(kernels, name, twin)
    assert report.verdict == "wrong"
    assert not {one.code for one in report.findings} & {"compare_raises", "compare_nonfinite"}


@pytest.mark.parametrize("name", NAMES)
def test_the_tail_is_named(kernels: ModuleType, name: str) -> None:
    finding = checked(kernels, name, TAIL).findings[0]
    assert finding.code == "compare_region"
    assert str(finding.params["where"]).endswith("[:, 32:]")


@pytest.mark.parametrize("name", ["softmax", "rms_norm"])
def test_a_tail_that_full_tiles_hide_shows_at_another_size(kernels: ModuleType, name: str) -> None:
    report = checked(kernels, name, TAIL, columns=32, sizes=[(4, 48), (4, 33)])
    assert {one.verdict for one in report.quantities} == {"right"}
    assert report.findings[0].code == "compare_sizes"
    assert {case.shapes[0]: case.verdict for case in report.cases} == {(4, 48): "right", (4, 33): "wrong"}


def test_a_race_that_needs_programs_at_once_does_not_show(kernels: ModuleType) -> None:
    """The interpreter runs one program after the other: the page says so."""
    assert checked(kernels, "rms_norm", UNSEEN).verdict == "right"
