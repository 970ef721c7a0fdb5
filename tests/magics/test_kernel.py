"""A real kernel, as a notebook talks to it: messages with and without the magic, cards, completion, help."""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from jupyter_client.manager import KernelManager
from notebook_shell import DOUBLE
from said import says

pytestmark = pytest.mark.slow
DEADLINE = 60


class Kernel:
    """A kernel and its client."""

    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE)

    def stop(self) -> None:
        """End the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code: str, interrupt_at: str = "") -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Run a cell; the reply's content and the messages on iopub; interrupted once it printed some text."""
        sent = self.client.execute(code)
        messages = []
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            messages.append({"type": message["msg_type"], "content": message["content"]})
            if interrupt_at and interrupt_at in str(message["content"].get("text", "")):
                self.manager.interrupt_kernel()
                interrupt_at = ""
        while True:
            reply = self.client.get_shell_msg(timeout=DEADLINE)
            if reply["parent_header"].get("msg_id") == sent:
                return reply["content"], messages


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    running = Kernel()
    running.run("import torch, inspect, pickle, sys\nfrom torch.autograd import Function\n%load_ext nbautograd")
    yield running
    running.stop()


def is_card(message: dict[str, Any]) -> bool:
    """True for the card of the recorded calls, which is all that the magic adds to a cell."""
    return message["content"].get("data", {}).get("text/plain", "").startswith("Recording `Double`")


def normal(seen: Any, first_line: str) -> str:
    """What was seen, without what cannot be the same in two runs: numbers of cells, names of files, addresses."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", repr(seen)).replace(first_line, "")
    text = re.sub(
        r"In\[\d+\]|In \[\d+\]|ipykernel_\d+.\d+|\d+\.py|0x[0-9a-f]+|'execution_count': \d+|<ipython-input[^>]*>",
        "",
        text,
    )
    text = re.sub(r"'(engine_info|started|user_expressions|payload)': (\{.*?\}|\[.*?\])", "", text)
    return re.sub(r"\\n +1 (?=\\n)|'\s+1 \\n", "", re.sub(r"\s+1 # one line\\n", "", text))


CELLS = {
    "error": DOUBLE + "\n\n\n\n\n\ndef inner():\n    return 1 / 0\ninner()",
    "error in backward": DOUBLE.replace("2 * grad_output", "undefined")
    + "\n\n\n\nDouble.apply(torch.ones(2, requires_grad=True)).sum().backward()",
    "await": DOUBLE + "import asyncio\nawait asyncio.sleep(0)\nDouble.apply(torch.ones(2)).tolist()",
    "getsource": DOUBLE + "inspect.getsource(Double.forward)",
    "help": DOUBLE + "Double.forward?",
    "source": DOUBLE + "Double.backward??",
    "display": DOUBLE + "from IPython.display import display\ndisplay(1)\ndisplay({'text/plain': 'x'}, raw=True)",
    "exit code": DOUBLE + "!exit 3\n_exit_code",
}


@pytest.mark.parametrize("name", CELLS)
def test_messages_are_those_of_a_cell_without_the_magic(kernel: Kernel, name: str) -> None:
    body = CELLS[name]
    bare = kernel.run("# one line\n" + body)
    reply, messages = kernel.run("%%autograd_function\n" + body)
    ours = reply, [m for m in messages if not is_card(m)]
    shown = [normal(ours, "%%autograd_function\\n"), normal(bare, "# one line\\n")]
    assert shown[0] == shown[1]


def test_an_interrupt_of_the_cell_is_the_kernels_own(kernel: Kernel) -> None:
    body = DOUBLE + "\n\n\nprint('ready', flush=True)\nwhile True:\n    pass"
    for line in ("# one line\n", "%%autograd_function\n"):
        reply, messages = kernel.run(line + body, interrupt_at="ready")
        assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
        shown = (m["type"] for m in messages if not is_card(m))
        types = [kind for kind, _ in groupby(shown)]  # a line may come as two streams
        assert types == ["status", "execute_input", "stream", "error"]


def test_a_report_that_cannot_be_made_stops_a_run_of_all_cells(kernel: Kernel) -> None:
    reply, messages = kernel.run("%%autograd_function --inputs nowhere\n" + DOUBLE)
    assert (reply["status"], reply["ename"]) == ("error", "UsageError")
    (stream,) = [m["content"] for m in messages if m["type"] == "stream"]
    assert stream["name"] == "stderr"
    assert says(stream["text"], "magics.inputs_undefined", name="nowhere")
    kernel.run("import torch\nx = torch.ones(2, requires_grad=True)")
    reply, messages = kernel.run("%%autograd_function --inputs x\n" + DOUBLE.replace("2 * x", "1 / 0"))
    assert (reply["status"], reply["ename"]) == ("error", "ZeroDivisionError")
    (error,) = [m["content"] for m in messages if m["type"] == "error"]
    assert "nbautograd" not in re.sub(r"\x1b\[[0-9;]*m", "", "".join(error["traceback"]))


def test_the_migration_of_an_old_function_is_offered_as_a_cell(kernel: Kernel) -> None:
    old = DOUBLE.replace("    @staticmethod\n", "").replace("ctx", "self").replace("Double", "Old")
    reply, _ = kernel.run("%%autograd_function\n" + old)
    (payload,) = reply["payload"]
    assert payload["source"] == "set_next_input"
    assert "@staticmethod" in payload["text"]
