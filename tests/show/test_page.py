"""What others wrote is text in a page, and its control characters show as symbols."""

from __future__ import annotations

from ragauge.show.html import _environment


def test_controls_in_a_page_show_as_symbols() -> None:
    page = (
        _environment()
        .from_string("<p title='{{ x }}'>{{ x }}</p>{{ y | safe }}")
        .render(x="<b>a\x00b\x1b[2Jc\u202e\n", y="<i>mark</i>")
    )
    shown = "&lt;b&gt;a␀b␛[2Jc⟦U+202E⟧\n"
    assert page == f"<p title='{shown}'>{shown}</p><i>mark</i>"
