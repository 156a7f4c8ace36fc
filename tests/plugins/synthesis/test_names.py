"""Which names two documents have in common."""

from __future__ import annotations

from ragauge.plugins.synthesis.names import shared_names


def test_a_name_that_more_than_a_quarter_of_the_documents_hold_is_not_rare() -> None:
    texts = {f"d{i}": f"The mill of place {i} grinds." for i in range(12)}
    for i in range(4):
        texts[f"d{i}"] += " It belongs to Aldor."
    for i in (3, 4, 5):
        texts[f"d{i}"] += " It belongs to Brenn."
    found = shared_names(texts)
    assert {docno: dict(by) for docno, by in found.items()} == {
        "d3": {"d4": "Brenn", "d5": "Brenn"},
        "d4": {"d3": "Brenn", "d5": "Brenn"},
        "d5": {"d3": "Brenn", "d4": "Brenn"},
    }
    # Of four documents two may hold it, though a quarter is one.
    few = {docno: texts[docno] for docno in ("d3", "d4", "d6", "d7")}
    assert shared_names(few)["d3"] == [("d4", "Brenn")]


def test_of_two_shared_names_the_rarer_and_then_the_longer_one_counts() -> None:
    texts = {f"d{i}": f"The mill of place {i} grinds." for i in range(16)}
    for i in (0, 1, 2, 3):
        texts[f"d{i}"] += " It belongs to Aldorstein."
    for i in (0, 3):
        texts[f"d{i}"] += " It belongs to Ilm. It belongs to Brenn."
    found = shared_names(texts)
    assert found["d0"] == [("d3", "Brenn"), ("d1", "Aldorstein"), ("d2", "Aldorstein")]
    assert found["d2"] == [("d0", "Aldorstein"), ("d1", "Aldorstein"), ("d3", "Aldorstein")]
