"""What forward and backward print while the magic's own run is made stands in the report, not in the cell."""

from fn import written

CELL = "%%autograd_function --inputs torch.ones(2, dtype=torch.float64, requires_grad=True)\n" + written(
    "Loud", "x: print('forward speaks'); return 2 * x", "g: print('backward speaks'); return 2 * g"
)


def test_prints_are_kept_with_their_calls(notebook):
    ran = notebook(CELL)
    assert ran.stdout == ""
    assert "forward speaks" in ran.text
    assert "backward speaks" in ran.html
