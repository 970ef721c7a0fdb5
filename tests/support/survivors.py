"""What JupyterLab's sanitizer leaves of an untrusted page: our own list, kept smaller than the real one."""

from __future__ import annotations

import re
from html.parser import HTMLParser

TAGS = {
    "div", "span", "strong", "code", "pre", "table", "caption", "thead", "tbody", "tr", "th", "td", "details",
    "summary", "img", "p", "br", "wbr", "a",
}  # fmt: skip
ATTRIBUTES = {
    "*": {"class", "style"},
    "th": {"scope"},
    "td": {"colspan"},
    "details": {"open"},
    "img": {"src", "alt"},
    "span": {"title"},
    "a": {"href", "title"},
}
EMPTY = {"img", "br", "wbr"}

_LENGTH = r"-?(0|\d+(\.\d+)?(px|em|%))"
_COLOUR = r"(#[0-9a-f]{6}|rgba\(\d+,\d+,\d+,(0\.\d+|1)\)|transparent)"
STYLES = {
    r"margin|padding": rf"({_LENGTH} ?){{1,4}}",
    r"max-width|min-width|border-radius|font-size|margin-\w+|padding-\w+": _LENGTH,
    r"width|height": rf"auto|{_LENGTH}",
    r"line-height": r"\d+(\.\d+)?",
    r"opacity": r"0\.\d+",
    r"color|background-color": _COLOUR,
    r"border(-left|-top|-bottom)?": rf"none|\d+px solid {_COLOUR}",
    r"border-collapse": "collapse",
    r"caption-side": "top",
    r"cursor": "pointer",
    r"display": "block|inline-block",
    r"font-family": r"[\w, -]+",
    r"font-weight": "400|600",
    r"overflow-wrap": "normal|break-word",
    r"overflow-x": "auto",
    r"table-layout": "auto",
    r"text-align": "left|right",
    r"vertical-align": "top|middle|baseline",
    r"word-break": "normal|keep-all|break-all",
    r"white-space": "normal|pre|nowrap|pre-wrap|pre-line",
}  # fmt: skip


class Page(HTMLParser):
    """Reads a page and keeps what would not survive, what is not closed, the words, the pictures, the tags."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lost: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.pictures: list[dict[str, str]] = []
        self.tags: list[str] = []
        self.feed(html)
        self.close()
        self.lost += [f"<{tag}> is not closed" for tag in self.open]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in TAGS and (tag != "style" or attrs):  # goes with all that is in it
            self.lost.append(f"<{tag}>")
        allowed = ATTRIBUTES["*"] | ATTRIBUTES.get(tag, set())
        self.lost += [f"{tag}[{name}]" for name, _ in attrs if name not in allowed]
        known = {name: value or "" for name, value in attrs}
        self.lost += [f"{tag} style {rule}" for rule in lost_rules(known.get("style", ""))]
        if tag == "img":
            self.pictures.append(known)
            if not known["src"].startswith("data:image/svg+xml;base64,") or not known.get("alt"):
                self.lost.append("picture without alt or not inline")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in EMPTY:
            return
        if not self.open or self.open.pop() != tag:
            self.lost.append(f"</{tag}> closes something else")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.lost.append("a comment")


def lost_rules(style: str) -> list[str]:
    """The rules of an inline style that the sanitizer would drop, but for a theme's form of one that it keeps."""
    lost, kept = [], set()
    for rule in filter(None, style.split(";")):
        name, _, value = rule.partition(":")
        known = [pattern for names, pattern in STYLES.items() if re.fullmatch(names, name)]
        if known and re.fullmatch(known[0], value):
            kept.add(name)
        elif name not in kept or "light-dark(" not in value:
            lost.append(rule)
    return lost
