"""A comm that writes down what is sent, and messages as the page sends them."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any


class Wire:
    """Everything that was sent: (message type, contents, buffers)."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any], list[bytes]]] = []

    def opened(self) -> list[dict[str, Any]]:
        """What our widgets sent when they opened; each opens a layout model beside it."""
        states = [data for kind, data, _ in self.sent if kind == "comm_open"]
        return [data for data in states if "_kind" in data["state"]]

    def state(self) -> Any:
        """The state that our last widget opened with, as the page decodes it."""
        data, buffers = [(d, b) for kind, d, b in self.sent if kind == "comm_open" and "_kind" in d["state"]][-1]
        return decoded(buffers[data["buffer_paths"].index(["state"])])

    def closed(self) -> int:
        """How many of our widgets closed, layout models and all."""
        closed = sum(kind == "comm_close" for kind, _, _ in self.sent)
        assert closed % 2 == 0
        return closed // 2

    def answers(self) -> list[tuple[dict[str, Any], list[bytes]]]:
        """Contents and buffers of the custom messages."""
        messages = [(data, buffers) for kind, data, buffers in self.sent if kind == "comm_msg"]
        return [(d["content"], b) for d, b in messages if d.get("method") == "custom"]


def decoded(data: bytes) -> Any:
    """A state or an answer, as the page decodes it."""
    return json.loads(zlib.decompress(data), object_hook=_with_bytes)


def _with_bytes(part: dict[str, Any]) -> Any:
    return base64.b64decode(part["$b64"]) if set(part) == {"$b64"} else part


def put(widget: Any, content: Any) -> None:
    """A custom message from the page."""
    data = {"method": "custom", "content": content}
    widget._handle_msg({"content": {"comm_id": widget.comm.comm_id, "data": data}, "buffers": []})


def sync(widget: Any, **state: Any) -> None:
    """A change of traits from the page."""
    data = {"method": "update", "state": state, "buffer_paths": []}
    widget._handle_msg({"content": {"comm_id": widget.comm.comm_id, "data": data}, "buffers": []})
