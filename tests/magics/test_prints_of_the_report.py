"""What forward and backward print while the magic's own run is made stands in the report, not in the cell."""

CELL = """%%autograd_function --inputs torch.ones(2, dtype=torch.float64, requires_grad=True)
class Loud(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("forward speaks")
        return 2 * x
    @staticmethod
    def backward(ctx, grad_output):
        print("backward speaks")
        return 2 * grad_output
"""


def test_prints_are_kept_with_their_calls(notebook):
    ran = notebook(CELL)
    assert ran.stdout == ""
    assert "forward speaks" in ran.text
    assert "backward speaks" in ran.html
