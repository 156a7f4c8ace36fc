"""TREC's SGML: documents (<DOC>) and topics (<top>); only some elements are closed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragauge.datasets.fields import BadRow, valid_string
from ragauge.datasets.packing import every_line, longest, require_short

_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*+)([^<>]*)>")
_LABEL = re.compile(r"(?:(?<!\s)\s+)?(?:Number|Topic|Description|Narrative)\s*:\s*", re.IGNORECASE)
_TITLES = ("headline", "title", "ttl", "head", "hl")
# Elements that are no text of a document without <TEXT>.
_NO_TEXT = (
    "docno", "docid", "docoldno", "dochdr", "doctype", "fileid", "parent", "date", "date_time", "pub", "page",
    "section", "length", "profile", *_TITLES,
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """The text between an element's tags, its attributes, and whether it was closed."""

    text: str
    attributes: str
    closed: bool


def blocks(file: Path, tags: str, encoding: str) -> Iterator[tuple[str, Block]]:
    """The elements named in `tags` (separated by |) with their first line numbers.

    Bytes that are not of the encoding become lone surrogates, which the check of the text refuses.
    """
    mark = re.compile(rf"<(/?)(?:{tags})(\s[^<>]*)?>", re.IGNORECASE)
    held: list[str] | None = None
    size, most = 0, longest(file)
    where = attributes = ""
    for number, raw in enumerate(every_line(file), start=1):
        line = raw.decode(encoding, "surrogateescape")
        at = 0
        for found in mark.finditer(line):
            if held is not None:
                held.append(line[at : found.start()])
                yield where, Block("".join(held), attributes, bool(found[1]))
            held, size = None if found[1] else [], 0
            where, attributes = f"{file}, line {number}", found[2] or ""
            at = found.end()
        if held is not None:
            held.append(line[at:])
            size += len(raw)
            require_short(file, size, most, f"the element <{tags.partition('|')[0]}>")
    if held is not None:
        yield where, Block("".join(held), attributes, False)


def document(block: Block) -> tuple[str, str, str]:
    """docno, title and text of a <DOC>.

    The text is that of all its <TEXT> elements. Where it has none, as in the Vaswani collection, it is what
    stands in <DOC> outside of `_NO_TEXT`.
    """
    _require_closed(block, "DOC")
    docnos = _elements(block.text, "docno")
    if len(docnos) != 1:
        raise BadRow(f"the document has {len(docnos)} <DOCNO> elements; it must have one")
    titles = [title for name in _TITLES for title in _elements(block.text, name)]
    title = " ".join(_plain(titles[0], "the title").split()) if titles else ""
    found = _elements(block.text, "text") or [_without(block.text, _NO_TEXT)]
    texts = [_plain(text, "the text").strip() for text in found]
    return _plain(docnos[0], "the docno").strip(), title, "\n".join(texts)


def topic(block: Block, field: str) -> tuple[str, str]:
    """qid and query of a <top> or <topic>; the element `field` holds the query."""
    _require_closed(block, "top")
    fields: dict[str, str] = {}
    tags = list(_TAG.finditer(block.text))
    for tag, end in zip(tags, [*(t.start() for t in tags[1:]), len(block.text)], strict=True):
        if not tag[1]:
            text = _plain(block.text[tag.end() : end], f"<{tag[2]}>")
            fields.setdefault(tag[2].lower(), " ".join(_LABEL.sub("", text, count=1).split()))
    number = re.search(r"""\b(?:number|id)\s*=\s*["']?([^"'\s>]+)""", block.attributes, re.IGNORECASE)
    qid = fields.get("num") or (number[1] if number else "")
    if not qid:
        raise BadRow("the topic has no <num> and no attribute number")
    if not fields.get(field.lower()):
        there = ", ".join(f"<{name}>" for name in fields) or "nothing"
        raise BadRow(f"topic {qid!r} has no <{field}> (dataset.query_field); it has {there}")
    return qid, fields[field.lower()]


def _require_closed(block: Block, tag: str) -> None:
    if not block.closed:
        raise BadRow(f"the element <{tag}> is not closed")


def _elements(text: str, name: str) -> list[str]:
    """The text between each pair of tags with the name."""
    found: list[str] = []
    start: int | None = None
    for tag in re.finditer(rf"<(/?){name}(?:\s[^<>]*)?>", text, re.IGNORECASE):
        if start is None and not tag[1]:
            start = tag.end()
        elif start is not None and tag[1]:
            found.append(text[start : tag.start()])
            start = None
    return found


def _without(text: str, names: Sequence[str]) -> str:
    """The text without elements of these names; keeps one that is never closed."""
    kept: list[str] = []
    opened: re.Match[str] | None = None
    at = 0
    for tag in re.finditer(rf"<(/?)({'|'.join(names)})(?:\s[^<>]*)?>", text, re.IGNORECASE):
        if opened is None and not tag[1]:
            opened = tag
        elif opened is not None and tag[1] and tag[2].lower() == opened[2].lower():
            kept.append(text[at : opened.start()])
            at, opened = tag.end(), None
    return " ".join([*kept, text[at:]])


def _plain(text: str, what: str) -> str:
    """The text without tags, with entities decoded."""
    return valid_string(html.unescape(_TAG.sub(" ", text)), what)
