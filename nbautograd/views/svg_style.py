"""The looks of the SVG: one rule per class, light and dark, of which a document carries those that it uses."""

from __future__ import annotations

from collections.abc import Iterable

ROOT = ("font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1b1f27", "fill:#e6e9ef")
RULES: dict[str, tuple[str, str]] = {
    # class: (declarations, what the dark scheme changes)
    "b": ("fill:#fafbfc;stroke:#c8cdd6", "fill:#15181d;stroke:#3a414c"),
    "e": ("fill:none;stroke:#697281;stroke-width:1.3", "stroke:#98a2b1"),
    "x": ("fill:none;stroke:#c0262d;stroke-width:1.8", "stroke:#ff7a7a"),
    "z": ("fill:none;stroke:#7d8694;stroke-dasharray:4 3", "stroke:#98a2b1"),
    "tie": ("fill:none;stroke:#8a56b8;stroke-width:1.4;stroke-dasharray:1.5 4;stroke-linecap:round", "stroke:#c79bea"),
    "same": ("fill:none;stroke:#8a56b8;stroke-width:1.2", "stroke:#c79bea"),
    "op": ("fill:#fff;stroke:#8d95a3", "fill:#20252c;stroke:#7a8494"),
    "portal": ("fill:#fff;stroke:#8d95a3;stroke-dasharray:3 2", "fill:#20252c;stroke:#7a8494"),
    "ghost": ("fill:none;stroke:#7d8694;stroke-dasharray:3 3", "stroke:#98a2b1"),
    "function": ("fill:#e9edff;stroke:#4a5fc1;stroke-width:1.6", "fill:#1f2747;stroke:#8fa2ff"),
    "leaf": ("fill:#e3f3e6;stroke:#3f8a50", "fill:#17301e;stroke:#66b67a"),
    "output": ("fill:#fdf0d8;stroke:#a9741a", "fill:#382b12;stroke:#d9a441"),
    "group": ("fill:#eef0f3;stroke:#697281;stroke-width:2", "fill:#2a3038;stroke:#98a2b1"),
    "l": ("font-size:10px;fill:#4a5160", "fill:#b4bcc9"),
    "y": ("font-size:10px;fill:#b01c23", "fill:#ff8f8f"),
    "m": ("font-size:11px;fill:#4a5160", "fill:#b4bcc9"),
    "n": ("font-size:11px;font-weight:600", ""),
    "t": ("font-size:13px;font-weight:600", ""),
    "g": ("font-size:11px", ""),
    "r": ("font-size:11px;fill:#b01c23", "fill:#ff8f8f"),
}


def style_sheet(used: Iterable[str]) -> str:
    """The rules of the classes in use; the dark ones hold where the page says that its scheme is dark."""
    classes = [name for name in RULES if name in set(used)]
    light = f"svg{{{ROOT[0]}}}" + "".join(f".{name}{{{RULES[name][0]}}}" for name in classes)
    dark = f"svg{{{ROOT[1]}}}" + "".join(f".{name}{{{RULES[name][1]}}}" for name in classes if RULES[name][1])
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
