"""What questions are written from: order by strata, windows, names, pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Embedder
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.synthesis.documents import drawn
from ragauge.plugins.synthesis.names import names, shared_names
from ragauge.plugins.synthesis.settings import COMPARISON, ONE_HOP, TWO_HOP
from ragauge.plugins.synthesis.units import Drawer


def docs(*rows: tuple[str, str], **columns: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame([(docno, "", text) for docno, text in rows], columns=["docno", "title", "text"])
    return frame.astype("str").assign(**columns)


def numbered(n: int, folder: str = "") -> list[tuple[str, str]]:
    return [(f"{folder}{i}", f"The mill of place {i} grinds {i} sacks a day.") for i in range(n)]


def test_every_beginning_of_the_order_has_the_strata_at_their_shares() -> None:
    corpus = docs(*numbered(30, "a/"), *numbered(60, "b/"), *numbered(10, "c/"))
    order = list(drawn(corpus, "auto", seed=3).in_order)
    assert sorted(order) == sorted(corpus["docno"])
    for n in (10, 20, 50, 90):
        share = Counter(docno[0] for docno in order[:n])
        assert abs(share["a"] - 0.3 * n) <= 1
        assert abs(share["b"] - 0.6 * n) <= 1
        assert abs(share["c"] - 0.1 * n) <= 1


def test_the_order_follows_from_the_seed_and_not_from_the_order_of_the_corpus() -> None:
    corpus = docs(*numbered(40))
    first = list(drawn(corpus, "none", 0).in_order)
    assert first == list(drawn(corpus[::-1], "none", 0).in_order)
    assert first != list(drawn(corpus, "none", 1).in_order)


def test_strata_are_folders_lengths_or_a_column() -> None:
    flat = docs(("1", "a b c d e."), ("2", "a b c d e f g."), ("3", "a b c d e f g h i j."), ("4", f"{'x ' * 40}."))
    found = drawn(flat, "auto", 0)
    assert found.by == "length"
    assert [found.in_order[str(i)].stratum for i in range(1, 5)] == ["shortest", "short", "long", "longest"]
    of_topic = drawn(flat.assign(topic=["x", "x", "y", "y"]), "topic", 0)
    assert {d.docno: d.stratum for d in of_topic.in_order.values()} == {
        "1": "x",
        "2": "x",
        "3": "y",
        "4": "y",
    }
    with pytest.raises(ConfigError, match=r"stratify='topic': allowed are auto, folder, length, none$"):
        drawn(flat, "topic", 0)


def test_documents_without_a_sentence_are_counted_and_none_at_all_is_an_error() -> None:
    some = drawn(docs(("1", ""), ("2", "Too short."), ("3", "This one is long enough here.")), "none", 0)
    assert (list(some.in_order), some.too_short) == (["3"], 2)
    with pytest.raises(DataError, match="none of the 2 documents has a sentence of 5 words"):
        drawn(docs(("1", ""), ("2", " \n ")), "none", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The tower was built by Ines Korvath in Graz.", {"Ines Korvath", "Graz"}),
        ("In Linz stands a bridge. Linz is old.", {"Linz"}),
        ("Bridges are old. They last.", set()),
        ("Bridges by Anna are old. Anna Bridges built them.", {"Anna", "Anna Bridges", "Bridges"}),
        ("He met Louis 14 there.", {"Louis 14"}),
        ("It was Korvath's work.", {"Korvath"}),
        ("", set()),
        ("北京是中国的首都。", set()),
    ],
)
def test_names_by_hand(text: str, expected: set[str]) -> None:
    found = names(text)
    assert set(found) == expected
    assert all(text[start:end] == name for name, (start, end) in found.items())


def test_documents_share_the_rarest_name() -> None:
    texts = {
        "a": "He asked Ines Korvath in Graz.", "b": "It was Ines Korvath of Graz.", "c": "They saw Graz.",
        **{f"z{i}": "nothing here is a name at all" for i in range(9)}, "d": "She knew Ines alone.",
    }  # fmt: skip
    found = shared_names(texts)
    assert found["a"][0] == ("b", "Ines Korvath")
    assert ("c", "Graz") in found["a"]
    assert "d" not in found
    assert shared_names({"a": "He asked Ines Korvath."}) == {}


def test_pairs_share_no_document_within_a_cycle_and_never_come_twice(hash_embedder) -> None:
    others = ((f"x{i}", "nobody is named in any of these") for i in range(18))
    corpus = docs(*((str(i), f"The mill of Karol Weiss grinds {i} sacks.") for i in range(6)), *others)
    documents = drawn(corpus, "none", 0)
    drawer = Drawer(documents, [TWO_HOP], hash_embedder)
    seen: set[frozenset[str]] = set()
    while units := drawer.draw(TWO_HOP, 100):
        used = [docno for unit in units for docno in unit.docnos]
        assert len(used) == len(set(used))
        pairs = {frozenset(unit.docnos) for unit in units}
        assert not pairs & seen
        seen |= pairs
    assert len(seen) >= 9  # of 15; the last pairs may be left where both are taken


def test_documents_of_a_kind_are_near_in_the_same_stratum_and_no_copies(hash_embedder) -> None:
    corpus = docs(
        ("a/1", "The bridge of stone spans the wide river."), ("a/2", "The bridge of iron spans the river."),
        ("a/3", "The bridge of stone spans the wide river."), ("b/1", "The bridge of stone spans the river."),
        ("b/2", "A cake needs flour and eggs and milk."),
    )  # fmt: skip
    drawer = Drawer(drawn(corpus, "folder", 0), [COMPARISON], hash_embedder)
    pairs = set()
    while units := drawer.draw(COMPARISON, 10):
        pairs |= {frozenset(unit.docnos) for unit in units}
    assert pairs <= {frozenset(p) for p in (("a/1", "a/2"), ("a/2", "a/3"), ("b/1", "b/2"))}
    assert len(pairs) >= 2


def test_a_kind_that_the_documents_do_not_give_is_told_before_anything_is_asked(hash_embedder) -> None:
    alone = drawn(docs(("1", "The mill of Karol Weiss grinds well.")), "none", 0)
    for kind, why in ((TWO_HOP, "share a rare name"), (COMPARISON, "are of one kind")):
        with pytest.raises(ConfigError, match=f"shares.{kind}: no two of the 1 documents {why}"):
            Drawer(alone, [ONE_HOP, kind], hash_embedder)
    drawer = Drawer(alone, [ONE_HOP], hash_embedder)
    assert [unit.use for _ in range(3) for unit in drawer.draw(ONE_HOP, 5)] == [0, 1, 2]


def test_documents_are_copies_from_a_cosine_of_98_hundredths_on() -> None:
    class Angles(Embedder):
        """The first text is (1, 0), the others have these cosines with it."""

        def __init__(self, *cosines: float) -> None:
            of = np.array([1, *cosines])
            self.vectors = np.column_stack([of, np.sqrt(1 - of**2)])

        def embed(self, texts, role="passage", scratch=None):
            assert texts[0].startswith("\nThe mill of place 0")
            return self.vectors[: len(texts)]

    corpus = drawn(docs(*numbered(2)), "none", 0)
    corpus = replace(corpus, in_order=dict(sorted(corpus.in_order.items())))
    with pytest.raises(ConfigError, match=r"shares\.comparison"):
        Drawer(corpus, [COMPARISON], Angles(0.98))
    [unit] = Drawer(corpus, [COMPARISON], Angles(0.9799)).draw(COMPARISON, 10)
    assert unit.docnos == ("0", "1")
