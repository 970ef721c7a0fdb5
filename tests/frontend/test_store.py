"""The store that selection, theme and lens are kept in."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.browser


def test_listeners_hear_of_another_value_until_their_signal(blank: Any) -> None:
    heard = blank.evaluate(
        """async () => {
          const { store } = await import("/frontend/store.js");
          const lens = store(""), end = new AbortController(), heard = [];
          lens.on((value) => heard.push(`first ${value}`), end.signal);
          lens.on((value) => heard.push(`second ${value}`));
          lens.set("memory");
          lens.set("memory");
          end.abort();
          lens.set("stale");
          return [...heard, lens.get()];
        }"""
    )
    assert heard == ["first memory", "second memory", "second stale", "stale"]


def test_a_listener_may_leave_while_it_is_told(blank: Any) -> None:
    heard = blank.evaluate(
        """async () => {
          const { store } = await import("/frontend/store.js");
          const lens = store(""), end = new AbortController(), heard = [];
          lens.on(() => end.abort(), end.signal);
          lens.on((value) => heard.push(value));
          lens.set("memory");
          return heard;
        }"""
    )
    assert heard == ["memory"]
