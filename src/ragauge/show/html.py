"""The report as one HTML file without network access, for any screen width and for print.

Every text that comes from data is escaped.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from ragauge.contract.finding import (
    Article,
    Block,
    Bullets,
    Card,
    Cell,
    Code,
    Col,
    Facts,
    Fold,
    Grid,
    Heading,
    Marked,
    Num,
    Picture,
    Preformatted,
    Section,
    Tagged,
    Text,
    columns_of,
)
from ragauge.contract.output_files import replacing
from ragauge.contract.visible import visible
from ragauge.show.drawing import svg
from ragauge.show.formats import interval, written

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Page:
    """The report of comparable jobs: its head and its sections.

    name: the sweep's; group: the name of these jobs among the sweep's other groups, "" where there are none.
    about: a line under the title. failed: how many jobs failed. lead: sentences before all else. defined: the
    definition of the cards' score. notes: remarks that limit all numbers, at the foot, with a link at the head.
    """

    name: str
    experiment: str
    title: str
    about: str
    failed: int
    notes: Sequence[str]
    cards: Sequence[Card]
    sections: Sequence[Section]
    figures: Mapping[str, Figure]
    group: str = ""
    lead: Sequence[str] = ()
    defined: str = ""


# What every report has at its beginning (template/head.html).
REPORT_MARK = """content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">"""


def write_report(pages: Sequence[Page], path: Path) -> None:
    """Writes the pages as one HTML file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        # Lone surrogates, which a JSON corpus may hold, have no UTF-8.
        draft.write_bytes(html(pages).encode("utf-8", "replace"))


def html(pages: Sequence[Page]) -> str:
    """The report as text."""
    several = len(pages) > 1
    shown = [_as_template_takes(page, f"g{n}-" if several else "") for n, page in enumerate(pages, 1)]
    template = _environment().get_template("page.html")
    return template.render(experiment=pages[0].experiment, pages=shown, blocks=blocks)


def blocks(found: Sequence[Block], images: Mapping[str, str]) -> Markup:
    """The blocks one after the other; `images` are data URIs of the figures by name."""
    return Markup("\n").join(_RENDERED[type(block)](block, images) for block in found)


def _as_template_takes(page: Page, mark: str) -> dict[str, Any]:
    return {
        **vars(page),
        "mark": mark,
        "images": {name: _data_uri(figure) for name, figure in page.figures.items()},
        "sections": [
            {"anchor": anchor_of(one.heading), "heading": one.heading, "blocks": one.blocks, "folded": one.folded}
            for one in page.sections
        ],
    }


def anchor_of(heading: str) -> str:
    """The anchor of a section: its heading in lower case, with hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _paragraph(block: Text, images: Mapping[str, str]) -> Markup:
    classes = {"": "", "small": ' class="small soft"', "note": ' class="note"'}[block.style]
    tag = _tag(block.tag, block.tone) + " " if block.tag else ""
    text = Markup('<a href="{}">{}</a>').format(block.page, _prose(block.text)) if block.page else _prose(block.text)
    return Markup(f"<p{classes}>{tag}{text}</p>")


def _grid(block: Grid, images: Mapping[str, str]) -> Markup:
    columns = columns_of(block.columns)
    head = Markup("").join(
        Markup('<th scope="col"{}>{}{}</th>').format(
            Markup(' class="left"') if one.left and at else "",
            _plain(one.title),
            Markup("<small>{}</small>").format(_plain(one.note)) if one.note else "",
        )
        for at, one in enumerate(columns)
    )
    rows = Markup("\n").join(_row(row, columns) for row in block.rows if row)
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table>\n'
        "<thead><tr>{}</tr></thead><tbody>\n{}\n</tbody></table></div>"
    ).format(_plain(block.label), head, rows)


def _row(row: Sequence[Cell], columns: Sequence[Col]) -> Markup:
    cells = [Markup('<th scope="row">{}</th>').format(_cell(row[0]))]
    for cell, one in zip(row[1:], columns[1:], strict=True):
        classes = " ".join(name for name in ("left", "wrap") if getattr(one, name))
        cells.append(Markup("<td{}>{}</td>").format(Markup(f' class="{classes}"') if classes else "", _cell(cell)))
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _cell(cell: Cell) -> Markup:
    if isinstance(cell, Num):
        tag = _tag(cell.tag) + " " if cell.tag else ""
        found = Markup(f"{tag}{escape(written(cell.value, cell.kind))}")
        below = " ".join(filter(None, (interval(cell), cell.note))).replace(" %", "\u00a0%")
        return found + Markup(' <span class="ci">{}</span>').format(below) if below else found
    if isinstance(cell, Tagged):
        tag = " " + _tag(cell.tag, cell.tone) if cell.tag else ""
        below = Markup(' <span class="ci">{}</span>').format(_plain(cell.below)) if cell.below else ""
        return Markup(f"{_plain(cell.text)}{tag}{below}")
    if isinstance(cell, Code):
        return Markup("<code>{}</code>").format(_plain(cell.text))
    return _plain(cell)


def _picture(block: Picture, images: Mapping[str, str]) -> Markup:
    if block.figure not in images:
        return Markup("")
    caption = Markup("<figcaption>{}</figcaption>").format(_plain(block.caption)) if block.caption else ""
    return Markup('<figure><img src="{}" alt="{}">{}</figure>').format(images[block.figure], _plain(block.alt), caption)


def _fold(block: Fold, images: Mapping[str, str]) -> Markup:
    return Markup("<details><summary>{}</summary>\n{}\n</details>").format(
        _plain(block.summary), blocks(block.blocks, images)
    )


def _facts(block: Facts, images: Mapping[str, str]) -> Markup:
    rows = [
        Markup("<dt>{}</dt><dd>{}</dd>").format(
            _plain(term), blocks([said] if isinstance(said, Block) else said, images)
        )
        for term, said in block.rows
    ]
    return Markup('<dl class="facts">\n{}\n</dl>').format(Markup("\n").join(rows))


def _bullets(block: Bullets, images: Mapping[str, str]) -> Markup:
    kind = "ol" if block.numbered else "ul"
    items = Markup("").join(Markup('<li dir="auto">{}</li>').format(_cell(item)) for item in block.items)
    return Markup(f"<{kind}>{items}</{kind}>")


def _marked(block: Marked, images: Mapping[str, str]) -> Markup:
    where = Markup('<span class="where" dir="ltr">{}</span>').format(_plain(block.where))
    pieces = Markup("").join(
        Markup("<mark{}>{}<sup>{}</sup></mark>").format(
            "" if strong else Markup(' class="faint"'), _plain(text), ",".join(map(str, marks))
        )
        if marks
        else _plain(text)
        for text, marks, strong in block.pieces
    )
    return Markup('<p class="chunk text" dir="auto">{}{}</p>').format(where if block.where else "", pieces)


def _article(block: Article, images: Mapping[str, str]) -> Markup:
    return Markup('<article>\n<p class="meta">{}</p>\n<h4 dir="auto">{}</h4>\n{}\n</article>').format(
        _plain(block.meta), _plain(block.title), blocks(block.blocks, images)
    )


_RENDERED: Mapping[type, Any] = {
    Text: _paragraph,
    Heading: lambda block, images: Markup("<h3>{}</h3>").format(_plain(block.text)),
    Grid: _grid,
    Picture: _picture,
    Fold: _fold,
    Facts: _facts,
    Preformatted: lambda block, images: Markup('<pre dir="auto">{}</pre>').format(_plain(block.text)),
    Bullets: _bullets,
    Marked: _marked,
    Article: _article,
}


def _prose(text: str) -> Markup:
    """The text with backticked parts as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(_plain(text))))


def _tag(text: str, tone: str = "") -> Markup:
    return Markup('<span class="tag{}">{}</span>').format(f" {tone}" if tone else "", _plain(text))


def _plain(text: str) -> Markup:
    """The text escaped, with control characters as symbols."""
    return escape(visible(text))


def _data_uri(figure: Figure) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg(figure)).decode()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=True,
        loader=PackageLoader("ragauge.show", "template"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """A value as a template prints it, with control characters as symbols; markup stays markup."""
    return type(value)(visible(value)) if isinstance(value, str) else value
