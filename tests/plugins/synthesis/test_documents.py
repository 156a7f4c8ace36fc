"""The order and the strata of the documents that questions are written from."""

from __future__ import annotations

import pandas as pd

from ragauge.plugins.synthesis.documents import Document, drawn, window


def corpus(**texts: str) -> pd.DataFrame:
    return pd.DataFrame([(docno, "", text) for docno, text in texts.items()], columns=["docno", "title", "text"])


def test_no_stratum_is_always_the_first() -> None:
    """One document of ten is alone in its folder: in systematic sampling it comes first once in eighteen."""
    names = {f"a/{i}": "The mill of this place grinds." for i in range(9)} | {"b/0": "Its bridge is made of stone."}
    orders = [list(drawn(corpus(**names), "folder", seed).in_order) for seed in range(360)]
    assert 10 <= sum(order[0] == "b/0" for order in orders) <= 32
    assert 30 <= sum(order[0] == "a/3" for order in orders) <= 60  # 17 / 18 of a ninth: 38


def test_a_text_on_a_quartile_of_the_lengths_belongs_to_the_shorter_ones() -> None:
    texts = {str(n): "The mill of this place grinds" + "." * n for n in (1, 2, 3, 4, 5)}
    found = drawn(corpus(**texts), "length", 0)
    assert {docno: one.stratum for docno, one in found.in_order.items()} == {
        "1": "shortest", "2": "shortest", "3": "short", "4": "long", "5": "longest",
    }  # fmt: skip


def test_the_heading_of_a_part_is_no_folder() -> None:
    text = "The mill of this place grinds."
    found = drawn(corpus(**{"a/b.md#one/two": text, "a/c.md": text, "d.md#x/y": text}), "folder", 0)
    assert {docno: one.stratum for docno, one in found.in_order.items()} == {
        "a/b.md#one/two": "a", "a/c.md": "a", "d.md#x/y": "",
    }  # fmt: skip


def test_a_window_is_full_wherever_it_begins() -> None:
    sentences = [f"Mill number {i} grinds corn." for i in range(6)]
    one = Document("d", "", " ".join(sentences), "")
    shown = [window(one, 3 * len(sentences[0]) + 2, 0, use) for use in range(40)]
    assert set(shown) == {" ".join(sentences[i : i + 3]) for i in range(4)}
    long = Document("d", "", "mill " * 50 + "grinds.", "")
    assert window(long, 60, 0, 0) == long.text[:60]
