"""The text of an HTML page: what a reader sees, block by block."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_UNSEEN = frozenset({"script", "style", "title", "noscript", "template", "textarea", "select"})
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog",
        "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
        "h6", "header", "hr", "legend", "li", "main", "menu", "nav", "ol", "p", "pre", "section",
        "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
    }
)  # fmt: skip
_SPACE = re.compile(r"\s+")


def blocks_of_html(page: str) -> list[tuple[str, str]]:
    """Tag and text of every block of a page that has a text, in order; the tag is "" after one that ended."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    blocks = ((tag, _SPACE.sub(" ", "".join(texts)).strip()) for tag, texts in reader.blocks)
    return [(tag, text) for tag, text in blocks if text]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[str, list[str]]] = [("", [])]
        self._unseen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _UNSEEN:
            self._unseen.append(tag)
        elif tag in _BLOCKS:
            self.blocks.append((tag, []))
        elif tag in ("br", "td", "th"):
            self.blocks[-1][1].append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            del self._unseen[self._unseen.index(tag) :]
        elif tag in _BLOCKS:
            self.blocks.append(("", []))

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.blocks[-1][1].append(data)
