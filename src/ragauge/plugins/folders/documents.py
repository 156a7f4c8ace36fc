"""Reads document files as the texts of their pages, or of the sections under their headings."""

from __future__ import annotations

import logging
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ragauge.contract.extras import require_extra
from ragauge.datasets.fields import BadRow, valid_string

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


@dataclass(frozen=True)
class Section:
    """A part of a file: the part of its docno behind `#`, its label in the title, and its text.

    anchor and label are "" of what stands before the first heading, and of a file without any.
    """

    anchor: str
    label: str
    text: str


Heading = tuple[int, str]  # level (0: the title of all), text
Block = Heading | str
Reader = Callable[[Path, str], Iterable[Section]]  # of a file and an encoding


def plain_text(file: Path, encoding: str) -> list[Section]:
    """The file unchanged."""
    return [Section("", "", _decoded(file, encoding))]


def markdown(file: Path, encoding: str) -> list[Section]:
    """The file unchanged, split before every heading line (# to ######) outside of fenced code."""
    fence: str | None = None
    blocks: list[Block] = []
    for line in _decoded(file, encoding).splitlines(keepends=True):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        heading = re.match(r" {0,3}(#{1,6})[ \t]+(.*)$", line.rstrip("\r\n"))
        if mark and fence is None:
            fence = mark[1]
        elif mark and fence is not None and mark[1].startswith(fence) and not line.strip(" \t\r\n`~"):
            fence = None
        elif heading and fence is None:
            blocks.append((len(heading[1]), heading[2].rstrip(" \t").rstrip("#").rstrip(" \t")))
        blocks.append(line)
    return _sections(blocks, heading_in_text=False)


def html(file: Path, encoding: str) -> list[Section]:
    """The text that a browser shows, split before every h1 to h6; without scripts, styles and templates."""
    blocks = blocks_of_html(_decoded(file, encoding))
    return _sections(
        ((int(tag[1]), text) if re.fullmatch("h[1-6]", tag) else f"{text}\n\n" for tag, text in blocks),
        heading_in_text=True,
    )


def docx(file: Path, encoding: str) -> list[Section]:
    """Paragraphs and tables of a Word document, split before every heading paragraph."""
    require_extra(str(file), "docx")
    import docx as library
    from docx.table import Table

    def blocks() -> Iterator[Block]:
        for item in library.Document(str(file)).iter_inner_content():
            if isinstance(item, Table):
                yield "".join("\t".join(cell.text for cell in row.cells) + "\n" for row in item.rows)
                continue
            style = re.fullmatch(r"Title|Heading (\d)", (item.style and item.style.name) or "")
            if style and item.text.strip():
                yield int(style[1] or 0), item.text.strip()
            else:
                yield f"{item.text}\n"

    with _Readable():
        return _sections(blocks(), heading_in_text=True)


def pdf(file: Path, encoding: str) -> Iterator[Section]:
    """The pages of a PDF with text; BadRow if it is unreadable or has none."""
    require_extra(str(file), "pypdf")
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of every oddity of a file
    n, with_text = 0, 0
    with _Readable():
        for n, page in enumerate(pypdf.PdfReader(file).pages, start=1):
            text = _clean(page.extract_text())
            if text.strip():
                with_text += 1
                yield Section(f"page={n}", f"page {n}", text)
    if not with_text:
        raise BadRow(f"none of its {n} pages has a text; scanned pages have to be recognised first")


def by_llama_index(reader: Any) -> Reader:
    """The sections by a LlamaIndex reader of a file, one per returned document."""

    def read(file: Path, encoding: str) -> list[Section]:
        with _Readable():
            made = list(reader.load_data(file))
        if len(made) == 1:
            return [Section("", "", _clean(made[0].text))]
        found = []
        for number, document in enumerate(made, start=1):
            page = document.metadata.get("page_label", number)
            kind = "page" if "page_label" in document.metadata else "part"
            found.append(Section(f"{kind}={page}", f"{kind} {page}", _clean(document.text)))
        return found

    return read


READERS: Mapping[str, Reader] = {
    ".txt": plain_text, ".md": markdown, ".markdown": markdown, ".html": html, ".htm": html, ".docx": docx,
    ".pdf": pdf,
}  # fmt: skip


def require_small_archive(file: Path, most: float) -> None:
    """BadRow if a ZIP file, such as Word's, unpacks to more than so many bytes; ignores other files.

    Its own record of its sizes may be wrong, so it is unpacked to be measured, and nothing is kept.
    """
    if not zipfile.is_zipfile(file):
        return
    size = 0
    with _Readable(), zipfile.ZipFile(file) as archive:
        for part in archive.infolist():
            if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BadRow(f"its part {part.filename[:80]!r} is packed by another method than deflate")
            part.file_size = sys.maxsize  # else no more would be read than it says
            with archive.open(part) as stream:
                while piece := stream.read(1 << 16):
                    size += len(piece)
                    if size > most:
                        raise BadRow(f"it unpacks to more than dataset.max_megabytes={most / 1e6:g}")


class _Readable:
    """Reports any exception of a library within the block as an unreadable file."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, BadRow):
            reason = " ".join(str(error).split())[:200]
            raise BadRow(f"cannot be read: {type(error).__name__}: {reason}") from error


def _decoded(file: Path, encoding: str) -> str:
    try:
        return file.read_bytes().decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadRow(f"not {encoding} (dataset.encoding): {error}") from None


def _clean(text: str) -> str:
    """The text without lone surrogates and zero bytes, which broken fonts leave in PDFs."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def _sections(blocks: Iterable[Block], heading_in_text: bool) -> list[Section]:
    """A section for each heading and its content, labelled with the headings above it.

    A heading that has nothing but deeper headings under it is a part of their labels alone.
    """
    above: list[Heading] = []
    found: list[tuple[str, str, list[str]]] = [("", "", [])]
    levels = [0]
    anchors: dict[str, int] = {}
    for block in blocks:
        if isinstance(block, str):
            found[-1][2].append(block)
            continue
        level, title = block
        if levels[-1] < level and len(found) > 1 and not "".join(found[-1][2][1:]).strip():
            found.pop()
            levels.pop()
        above = [*(heading for heading in above if heading[0] < level), block]
        slug = re.sub(r"[^\w-]", "", title.lower().strip().replace(" ", "-")) or "section"
        anchors[slug] = anchors.get(slug, -1) + 1
        anchor = slug if anchors[slug] == 0 else f"{slug}-{anchors[slug]}"
        label = " > ".join(text for _, text in above)
        found.append((anchor, label, [f"{title}\n"] if heading_in_text else []))
        levels.append(level)
    texts = ((anchor, label, valid_string("".join(texts), "the text")) for anchor, label, texts in found)
    return [Section(anchor, label, text.strip()) for anchor, label, text in texts if text.strip()]


def blocks_of_html(page: str) -> list[tuple[str, str]]:
    """Tag and text of every nonempty block of a page, in order; the tag is "" after a closed block."""
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
