"""Answers to one exercise, ordinary and hostile: what they are worth, and the code that they must fail with."""

from __future__ import annotations

EXERCISES = """
import torch
from nbautograd.course.exercise import Exercise, Failure

def rule(answer, draw):
    if answer([1, 2], scale=3) != [3, 6]:
        yield Failure("wrong_list", {"en": "The list is wrong.", "zh": "列表不对。"})

EXERCISES = (
    Exercise("square", "Square", "value gradient own_function double_backward", formula=lambda x: x * x,
             inputs=lambda draw: (draw.normal(3, 4),), points=2),
    Exercise("cube", "Cube", "value gradient forward_mode vmap", formula=lambda x, y: x**3 * y,
             inputs=lambda draw: (draw.normal(3), draw.normal(3)), points=3, shares={"gradient": 2}),
    Exercise("plain", "plain", "value gradient double_backward forward_mode vmap", formula=lambda x: x.sin() * x,
             inputs=lambda draw: (draw.normal(3),)),
    Exercise("scaled", "scaled", "custom", own=rule),
)
"""

SQUARE = """class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output
"""
CUBE = """class Cube(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return power(x) * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 3 * x**2 * y * g, x**3 * g

    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        return 3 * x**2 * y * dx + x**3 * dy
"""
SCALED = "def scaled(numbers, scale=2):\n    return [scale * x for x in numbers]\n"


def before(code: str, text: str = SQUARE) -> str:
    """Square with this code as the first line of its backward."""
    return text.replace("        (x,) =", f"        {code}\n        (x,) =")


# exercise square: what the cell holds, the points of 2, and the code it fails with
ORDINARY = {
    "right": (SQUARE, 2, ""),
    "sign": (SQUARE.replace("return 2 *", "return -2 *"), 0, "sign"),
    "value": (SQUARE.replace("return x * x", "return x * x + 1"), 0, "forward_value"),
    "once differentiable": (SQUARE.replace("    def backward", "    @once_differentiable\n    def backward"), 0, "once_differentiable"),
    "cut off": (SQUARE.replace("return 2 * x", "return 2 * x.detach()"), 0, "double_backward_wrong"),
    "None": (SQUARE.replace("return 2 * x * grad_output", "return None"), 0, "none_gradient"),
    "two gradients": (SQUARE.replace("return 2 * x * grad_output", "return 2 * x * grad_output, x"), 0, "exception_number_of_gradients"),
    "float32": (SQUARE.replace("return 2 * x * grad_output", "return (2 * x * grad_output).float()"), 0, "grad_dtype_cast"),
    "writes into grad_output": (before("grad_output.mul_(1.5)"), 0, "mutates_grad_output"),
    "raises": (before("raise KeyError('x')"), 0, ""),
    "not a Function": ("def Square(x):\n    return x * x\n", 0, "not_through_function"),
    "renamed": (SQUARE.replace("class Square", "class Sqaure"), 0, "not_defined"),
    "syntax": (SQUARE + "\n)", 0, "cell_raised"),
    "defined, then raises": (SQUARE + "\n1 / 0\n", 2, ""),
    "untouched": ("class Square(Function):\n    ...  # your code here\n", 0, "not_answered"),
}  # fmt: skip

# by the author of the judge, so that they prove less than a stranger's would; the judge knows of none of them by name
HOSTILE = {
    "endless backward": (before("while True: pass"), 0, "too_slow"),
    "endless cell": (SQUARE + "\nwhile True: pass\n", 0, "too_slow"),
    "sleeps, deaf to signals": (
        before("import signal, time; [signal.signal(s, signal.SIG_IGN) for s in (2, 15, 24)]; time.sleep(999)"), 0, "too_slow"),
    "os._exit": (before("import os; os._exit(0)"), 0, "process_ended"),
    "SystemExit": (before("raise SystemExit"), 0, "process_ended"),
    "segmentation fault": (before("import ctypes; ctypes.string_at(0)"), 0, "process_ended"),
    "recursion": (before("f = lambda f: f(f); f(f)"), 0, "exception_other"),
    "memory": (before("held = bytearray(30 << 30)"), 0, "out_of_memory"),
    "memory of tensors": (before("held = torch.ones(4 << 30)"), 0, "exception_other"),
    "a huge output": (SQUARE.replace("return x * x", "return torch.ones(20_000, 20_000)"), 0, ""),
    "disk": (before("open('/tmp/nbautograd-fills-a-disk', 'wb').write(b'x' * 10**6)"), 0, "exception_other"),
    "fork": (before("import os; os.fork()"), 0, "exception_other"),
    "a program": (before("import subprocess; subprocess.run(['true'])"), 0, "exception_other"),
    "ends its parent": (before("import os, signal; os.kill(os.getppid(), signal.SIGKILL)"), 0, "exception_other"),
    "ends everybody": (before("import os, signal; os.kill(-1, signal.SIGKILL)"), 0, "exception_other"),
    "network": (before("import socket; socket.create_connection(('127.0.0.1', 9), 1)"), 0, "exception_other"),
    "reads a password file": (before("open('/etc/passwd').read()"), 0, "exception_other"),
    "reads the instructor's folder": (before("import os; os.listdir(os.environ.get('HOME', '/root'))"), 0, "exception_other"),
    "prints without end": (before("print('x' * 10**6)"), 2, ""),
    "patches the comparison": (
        "import nbautograd.course.attempt as a\na.close = lambda *x: True\ntorch.allclose = lambda *x, **k: True\n"
        + SQUARE.replace("2 * x", "3 * x"), 0, "constant_factor"),
    "patches the checks": (
        "import nbautograd.course.run as r\nimport nbautograd.course.checks as c\nfor k in c.ROUTINES: c.ROUTINES[k] = lambda a: ()\n"
        "r.check = lambda *a, **k: None\n" + SQUARE.replace("2 * x", "3 * x"), 0, "constant_factor"),
    "looks for the formula": (
        "import gc\nfound = [o for o in gc.get_objects() if type(o).__name__ == 'Exercise' and o.name == 'square']\n"
        "f = found[0].formula\n" + SQUARE, 0, ""),
    "writes on every descriptor": (
        before("import os\n        for fd in range(3, 64):\n            try: os.write(fd, b'x' * 64)\n            except OSError: pass"), 0, "garbled"),
    "a frame of its own": (
        before("import os, json\n        m = json.dumps({'call': 0, 'grads': [{'tensor': ['float64', [9**9], [1], 0, 0, 8]}], "
               "'graph': [0], 'raw': True, 'changed': []}).encode()\n        for fd in range(3, 64):\n"
               "            try: os.write(fd, len(m).to_bytes(4, 'little') + (8).to_bytes(8, 'little') + m + bytes(8))\n"
               "            except OSError: pass"), 0, "garbled"),
    "not a number": (SQUARE.replace("return 2 * x", "return float('nan') * x"), 0, ""),
    "a tensor that agrees with everything": (
        "class Agreeing(torch.Tensor):\n    def __eq__(self, other): return True\n    def __bool__(self): return True\n\n"
        + SQUARE.replace("return 2 * x * grad_output", "return (3 * x * grad_output).as_subclass(Agreeing)"), 0, "constant_factor"),
    "counts its calls": (
        "calls = []\n" + before("calls.append(1)\n        if len(calls) > 1: return grad_output"), 0, ""),
}  # fmt: skip
