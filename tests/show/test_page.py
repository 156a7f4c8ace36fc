"""The report as HTML: each kind of block, and what others wrote is text whose control characters show as symbols."""

from __future__ import annotations

from pathlib import Path

from ragauge.contract.finding import (
    Article,
    Block,
    Bullets,
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
)
from ragauge.show.html import Page, _environment, blocks, html, write_report


def test_controls_in_a_page_show_as_symbols() -> None:
    page = (
        _environment()
        .from_string("<p title='{{ x }}'>{{ x }}</p>{{ y | safe }}")
        .render(x="<b>a\x00b\x1b[2Jc\u202e\n", y="<i>mark</i>")
    )
    shown = "&lt;b&gt;a␀b␛[2Jc⟦U+202E⟧\n"
    assert page == f"<p title='{shown}'>{shown}</p><i>mark</i>"


def page(name: str, *found: Block, **changes: object) -> Page:
    return Page(name, "an experiment", f"title of {name}", "about", 0, [], [], [Section("What & how, 2", found)], {},
                **changes)  # type: ignore[arg-type]  # fmt: skip


def test_a_report_is_written_whole_over_an_older_one_and_into_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "report.html"
    for text in ("first \ud800", "second"):
        write_report([page("s", Text(text))], path)
        assert text[:5] in path.read_text(encoding="utf-8")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_sections_of_several_groups_have_anchors_of_their_own() -> None:
    alone, both = html([page("s")]), html([page("s", group="a"), page("s", group="b")])
    assert 'id="what-how-2"' in alone
    assert 'id="g1-what-how-2"' in both
    assert 'id="g2-what-how-2"' in both
    assert 'id="what-how-2"' not in both


def shown(block: Block, **images: str) -> str:
    return str(blocks([block], images))


def test_a_table_has_heads_for_its_columns_and_rows() -> None:
    columns = ["<System", "Score / mean", Col("Answer", left=True, wrap=True)]
    rows = [["a<b", Num(0.5, "score", 0.4, 0.6, "best", "of 3"), Tagged("t", "x", "bad", "below")], [],
            [Code("k=1"), Num(None), "c"]]  # fmt: skip
    text = shown(Grid("label & all", columns, rows))
    assert 'aria-label="label &amp; all"' in text
    assert (
        '<th scope="col">System</th><th scope="col">Score<small>mean</small></th>'
        '<th scope="col" class="left">Answer</th>'
    ) in text
    assert (
        '<tr><th scope="row">a&lt;b</th><td><span class="tag">best</span> 0.500 <span class="ci">0.400 to 0.600 of 3'
        '</span></td><td class="left wrap">t <span class="tag bad">x</span> <span class="ci">below</span></td></tr>'
    ) in text
    assert '<tr><th scope="row"><code>k=1</code></th><td>–</td><td class="left wrap">c</td></tr>' in text
    assert text.count("<tr>") == 3


def test_every_kind_of_block_is_drawn() -> None:
    drawn = [
        (Text("a `b` <c>", "note", "tag", "none"),
         '<p class="note"><span class="tag none">tag</span> a <code>b</code> &lt;c&gt;</p>'),
        (Text("plain"), "<p>plain</p>"),
        (Text("small", "small"), '<p class="small soft">small</p>'),
        (Heading("h"), "<h3>h</h3>"),
        (Preformatted("a\n b"), '<pre dir="auto">a\n b</pre>'),
        (Bullets(["a"]), '<ul><li dir="auto">a</li></ul>'),
        (Bullets(["a"], numbered=True), '<ol><li dir="auto">a</li></ol>'),
        (Fold("more", [Heading("h")]), "<details><summary>more</summary>\n<h3>h</h3>\n</details>"),
        (Facts([("term", Text("a")), ("terms", [Text("b"), Text("c")])]),
         '<dl class="facts">\n<dt>term</dt><dd><p>a</p></dd>\n<dt>terms</dt><dd><p>b</p>\n<p>c</p></dd>\n</dl>'),
        (Marked("d1", [("x", [1, 2], True), ("y", [3], False), ("z", [], False)]),
         '<p class="chunk text" dir="auto"><span class="where" dir="ltr">d1</span><mark>x<sup>1,2</sup></mark>'
         '<mark class="faint">y<sup>3</sup></mark>z</p>'),
        (Marked("", [("z", [], False)]), '<p class="chunk text" dir="auto">z</p>'),
        (Article("m", "t", []), '<article>\n<p class="meta">m</p>\n<h4 dir="auto">t</h4>\n\n</article>'),
        (Picture("curve", "a line", "below"),
         '<figure><img src="data:x" alt="a line"><figcaption>below</figcaption></figure>'),
        (Picture("curve", "a line"), '<figure><img src="data:x" alt="a line"></figure>'),
        (Picture("not there", "a line"), ""),
    ]  # fmt: skip
    for block, text in drawn:
        assert shown(block, curve="data:x") == text
