"""Expanders by hand, and their spans against brute force over characters."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract import frames
from ragauge.contract.component import Tokenizer, Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.expansion.expanders import DocumentExpander, NeighbourExpander, ParentExpander
from ragauge.texts.tokenizers import WordTokenizer

TEXT = "One two. Three four.\n\nFive six.  Seven eight. Nine ten."
TEN = "a b c d e f g h i j"


def docs_of(texts: dict[str, str]) -> pd.DataFrame:
    names = pd.Series(list(texts), dtype="str")
    return pd.DataFrame({"docno": names, "title": "", "text": pd.Series(list(texts.values()), dtype="str")})


def chunks_of(docs: pd.DataFrame, spans: Sequence[tuple[str, int, int]]) -> pd.DataFrame:
    """Frame `chunks` of spans (document, start, end), numbered within the document as they come."""
    text = dict(zip(docs["docno"], docs["text"], strict=True))
    count: dict[str, int] = {}
    rows = []
    for parent, start, end in spans:
        number = count.setdefault(parent, 0)
        count[parent] += 1
        rows.append((f"{parent}%p{number}", text.get(parent, "?" * end)[start:end], parent, start, end))
    return pd.DataFrame(rows, columns=["docno", "text", "parent", "start", "end"]).astype(
        {"docno": "str", "text": "str", "parent": "str"}
    )


def run_of(hits: dict[str, list[str]]) -> pd.DataFrame:
    """Frame `run`: the scores are 10, 9, 8, … by rank."""
    rows = [(qid, docno, 10.0 - i, i) for qid, docnos in hits.items() for i, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"]).astype({"qid": "str", "docno": "str"})


def sentences(text: str, *wanted: str) -> list[tuple[int, int]]:
    return [(text.index(one), text.index(one) + len(one)) for one in wanted]


DOCS = docs_of({"d": TEXT, "e": "Alpha. Beta. Gamma."})
PARTS = ("One two.", "Three four.", "Five six.", "Seven eight.", "Nine ten.")
CHUNKS = chunks_of(
    DOCS,
    [("d", *span) for span in sentences(TEXT, *PARTS)]
    + [("e", *span) for span in sentences("Alpha. Beta. Gamma.", "Alpha.", "Beta.", "Gamma.")],
)


AS_THEY_ARE = ParentExpander(tokens=1)  # hits are longer by themselves, and merged where they touch


def expand(expander: Any, hits: dict[str, list[str]], tools: Tools, **given: pd.DataFrame) -> pd.DataFrame:
    made = expander.expand(run_of(hits), given.get("chunks", CHUNKS), given.get("docs", DOCS), tools)
    return frames.check("passages", made)


def test_neighbours_are_those_of_the_same_document(tools: Tools) -> None:
    found = expand(NeighbourExpander(width=1), {"q": ["e%p0", "d%p3"], "r": ["d%p4"]}, tools)
    assert found["qid"].tolist() == ["q", "q", "r"]
    assert found["rank"].tolist() == [0, 1, 0]
    assert found["docno"].tolist() == ["e%p0", "d%p3", "d%p4"]
    assert found["score"].tolist() == [10.0, 9.0, 10.0]
    assert found["text"].tolist() == [
        "Alpha. Beta.",
        "Five six.  Seven eight. Nine ten.",
        "Seven eight. Nine ten.",
    ]
    assert found["parent"].tolist() == ["e", "d", "d"]
    assert found["start"].tolist() == [0, TEXT.index("Five"), TEXT.index("Seven")]
    assert found["end"].tolist() == [12, len(TEXT), len(TEXT)]


def test_passages_that_overlap_are_one_at_the_place_of_the_best_hit(tools: Tools) -> None:
    # d%p3 with its neighbours overlaps d%p1 with its own in "Five six."; e%p2 stands between them.
    found = expand(NeighbourExpander(width=1), {"q": ["d%p3", "e%p2", "d%p1"]}, tools)
    assert found["docno"].tolist() == ["d%p3", "e%p2"]
    assert found["text"].tolist() == [TEXT, "Beta. Gamma."]
    assert found["rank"].tolist() == [0, 1]
    assert found["score"].tolist() == [10.0, 9.0]


def test_passages_that_touch_are_one_and_those_with_text_between_them_are_not(tools: Tools) -> None:
    # Of width 1 around p0 and p3: "One … four." and "Five … ten." have only white space between them.
    found = expand(NeighbourExpander(width=1), {"q": ["d%p3", "d%p0"]}, tools)
    assert found["text"].tolist() == [TEXT]
    apart = chunks_of(DOCS, [("d", 0, 3), ("d", 9, 14), ("d", 15, 20)])  # "One", "Three", "four."
    found = expand(AS_THEY_ARE, {"q": ["d%p0", "d%p1", "d%p2"]}, tools, chunks=apart)
    assert found["text"].tolist() == ["One", "Three four."]
    found = expand(
        AS_THEY_ARE, {"q": ["d%p0"], "r": ["d%p1"]}, tools, chunks=chunks_of(DOCS, [("d", 0, 3), ("d", 0, 8)])
    )
    assert found["text"].tolist() == ["One", "One two."]
    # What was taken of a longer document says nothing of the next one.
    found = expand(AS_THEY_ARE, {"q": ["d%p4", "e%p0", "e%p2"], "r": ["e%p2", "e%p0"]}, tools)
    assert found["text"].tolist() == ["Nine ten.", "Alpha.", "Gamma.", "Gamma.", "Alpha."]


def test_the_same_text_of_two_topics_or_documents_is_not_merged(tools: Tools) -> None:
    docs = docs_of({"a": "Same text.", "b": "Same text."})
    chunks = chunks_of(docs, [("a", 0, 10), ("b", 0, 10)])
    hits = {"q": ["b%p0", "a%p0"], "r": ["a%p0"]}
    for expander in (NeighbourExpander(), ParentExpander(), DocumentExpander()):
        found = expand(expander, hits, tools, docs=docs, chunks=chunks)
        assert found["docno"].tolist() == ["b%p0", "a%p0", "a%p0"]


def test_windows_are_those_of_each_document_among_many(tools: Tools) -> None:
    words = {name: [f"{name}{i}" for i in range(n)] for name, n in (("a", 3), ("b", 40), ("c", 9), ("d", 25))}
    docs = docs_of({name: " ".join(of) for name, of in words.items()})
    text = dict(zip(docs["docno"], docs["text"], strict=True))
    middle = {name: of[len(of) // 2] for name, of in words.items()}
    spans = [(name, text[name].index(word), text[name].index(word) + len(word)) for name, word in middle.items()]
    found = expand(ParentExpander(tokens=3), {"q": [f"{name}%p0" for name in words]}, tools, docs=docs,
                   chunks=chunks_of(docs, spans))  # fmt: skip
    assert found["text"].tolist() == [" ".join(of[len(of) // 2 - 1 : len(of) // 2 + 2]) for of in words.values()]


def test_a_chunk_that_ends_last_need_not_begin_last(tools: Tools) -> None:
    docs = docs_of({"d": TEN})
    chunks = chunks_of(docs, [("d", 0, 19), ("d", 4, 5), ("d", 6, 7), ("d", 8, 9)])
    found = expand(NeighbourExpander(width=1), {"q": ["d%p1"]}, tools, docs=docs, chunks=chunks)
    assert found["text"].tolist() == [TEN]
    # Two chunks further it is no neighbour any more.
    found = expand(NeighbourExpander(width=1), {"q": ["d%p3"]}, tools, docs=docs, chunks=chunks)
    assert found["text"].tolist() == ["d e"]


@pytest.mark.parametrize(
    ("tokens", "span", "wanted"),
    [
        (1, "e", "e"),
        (2, "e", "e f"),  # an odd rest falls behind the hit
        (3, "e", "d e f"),
        (4, "e", "d e f g"),
        (4, "a", "a b c d"),  # at the beginning all of it does
        (4, "b", "a b c d"),
        (4, "j", "g h i j"),
        (4, "i", "g h i j"),
        (6, "c d e f", "b c d e f g"),
        (3, "c d e f", "c d e f"),  # a hit is never cut
        (10, "e", TEN),
        (10, "j", TEN),
        (99, "j", TEN),
    ],
)
def test_the_hit_stands_in_the_middle_of_its_parent(tools: Tools, tokens: int, span: str, wanted: str) -> None:
    docs = docs_of({"c": "x", "d": TEN})
    start = TEN.index(span)
    chunks = chunks_of(docs, [("d", start, start + len(span))])
    found = expand(ParentExpander(tokens=tokens), {"q": ["d%p0"]}, tools, docs=docs, chunks=chunks)
    assert found["text"].tolist() == [wanted]


def test_a_hit_that_is_no_whole_token_is_in_its_parent(tools: Tools) -> None:
    docs = docs_of({"d": "alpha beta gamma  delta", "e": " \n "})
    # "ta gam" cuts two words; a span of white space holds no token, and the next one is behind it.
    # So it is behind an empty hit; a document without a token has nothing to widen one with.
    chunks = chunks_of(docs, [("d", 8, 14), ("d", 16, 18), ("d", 11, 11), ("e", 1, 2)])
    hits = {"q": ["d%p0"], "r": ["d%p1"], "s": ["d%p2"], "t": ["e%p0"]}
    found = expand(ParentExpander(tokens=1), hits, tools, docs=docs, chunks=chunks)
    assert found["text"].tolist() == ["beta gamma", "  delta", "gamma", "\n"]


@dataclasses.dataclass(frozen=True)
class Cut(Tokenizer):
    """A tokenizer that cuts every text at these places."""

    at: list[tuple[int, int]]

    def offsets(self, texts: list[str]) -> list[np.ndarray]:
        return [np.array(self.at) for _ in texts]


@pytest.mark.parametrize(
    ("tokens", "at", "hit", "wanted"),
    [
        (3, [(0, 2), (2, 5), (5, 8), (8, 11)], (6, 8), "bb cc dd"),  # tokens that begin with white space
        (3, [(0, 3), (3, 6), (6, 9), (9, 11)], (3, 5), "aa bb cc"),  # and that end with it
        (2, [(0, 1), (3, 5), (1, 2), (6, 8)], (3, 5), "bb"),  # marks in another order than in the text
    ],
)
def test_windows_of_other_tokenizers(tools: Tools, tokens: int, at: Any, hit: tuple[int, int], wanted: str) -> None:
    docs = docs_of({"d": "aa bb cc dd"})
    given = dataclasses.replace(tools, tokenizer=Cut(at))  # type: ignore[arg-type]
    found = expand(
        ParentExpander(tokens=tokens), {"q": ["d%p0"]}, given, docs=docs, chunks=chunks_of(docs, [("d", *hit)])
    )
    assert found["text"].tolist() == [wanted]


def test_whole_documents_at_the_place_of_their_best_chunk(tools: Tools) -> None:
    found = expand(DocumentExpander(), {"q": ["d%p4", "e%p0", "d%p0", "e%p2"]}, tools)
    assert found["text"].tolist() == [TEXT, "Alpha. Beta. Gamma."]
    assert found["docno"].tolist() == ["d%p4", "e%p0"]


@pytest.mark.parametrize("expander", [NeighbourExpander(), ParentExpander(), DocumentExpander()], ids=repr)
def test_depth_leaves_out_what_is_further_behind(tools: Tools, expander: Any) -> None:
    hits = {"q": ["d%p0", "e%p0", "d%p4"], "r": ["e%p0"]}
    found = expand(dataclasses.replace(expander, depth=1), hits, tools)
    assert found["docno"].tolist() == ["d%p0", "e%p0"]


@pytest.mark.parametrize("expander", [NeighbourExpander(), ParentExpander(), DocumentExpander()], ids=repr)
def test_without_hits_there_are_no_passages(tools: Tools, expander: Any) -> None:
    found = expand(expander, {}, tools)
    assert len(found) == 0
    assert {"parent", "start", "end"} <= set(found)


@pytest.mark.parametrize("expander", [NeighbourExpander(), ParentExpander(), DocumentExpander()], ids=repr)
def test_a_chunk_without_its_parent_is_one_line(tools: Tools, expander: Any) -> None:
    chunks = chunks_of(DOCS, [("d", 0, 8), ("gone", 0, 5)])
    with pytest.raises(DataError) as error:
        expand(expander, {"q": ["d%p0", "gone%p0"]}, tools, chunks=chunks)
    assert str(error.value) == (
        f"expander={expander.component}: chunk docno='gone%p0' has the parent 'gone', which is no document "
        "of the dataset; without parents use expander=none"
    )
    for start, end in ((13, 90), (-1, 5), (13, 12)):
        wrong = CHUNKS.copy()
        wrong.loc[wrong["docno"] == "e%p2", ["start", "end"]] = (start, end)
        wrong.loc[wrong["docno"] == "d%p4", "end"] = 99  # a hit behind it
        with pytest.raises(DataError, match=f"docno='e%p2' spans the characters {start} to {end} of 'e', which has 19"):
            expand(expander, {"q": ["d%p0", "e%p2", "d%p4"]}, tools, chunks=wrong)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: NeighbourExpander(width=0), "expander.width=0: allowed are integers from 1"),
        (lambda: NeighbourExpander(depth=0), "expander.depth=0: allowed are integers from 1, and null"),
        (lambda: ParentExpander(tokens=0), "expander.tokens=0: allowed are integers from 1"),
        (lambda: ParentExpander(tokens=1.5), "expander.tokens=1.5: allowed are integers from 1"),  # type: ignore[arg-type]
        (lambda: ParentExpander(depth=0), "expander.depth=0: allowed are integers from 1, and null"),
        (lambda: DocumentExpander(depth=-1), "expander.depth=-1: allowed are integers from 1, and null"),
    ],
)
def test_values_that_are_not_allowed(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace(".", r"\.")):
        make()
    assert (NeighbourExpander(), ParentExpander()) == (NeighbourExpander(1, None), ParentExpander(512, None))


# --- against brute force ------------------------------------------------------------------------------------

texts = st.text(alphabet="ab. \n", min_size=1, max_size=30)


@st.composite
def collections(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, list[str]]]:
    """Documents, chunks anywhere in them, and hits."""
    docs = docs_of({f"d{i}": text for i, text in enumerate(draw(st.lists(texts, min_size=1, max_size=3)))})
    spans = []
    for docno, text in zip(docs["docno"], docs["text"], strict=True):
        cuts = st.integers(0, len(text))
        some = draw(st.lists(st.tuples(cuts, cuts), max_size=5))
        spans += [(docno, min(pair), max(pair)) for pair in some if pair[0] != pair[1]]
    chunks = chunks_of(docs, spans)
    names = chunks["docno"].tolist()
    hits = {
        qid: draw(st.lists(st.sampled_from(names), unique=True, max_size=8)) if names else [] for qid in ("q1", "q2")
    }
    return docs, chunks, {qid: found for qid, found in hits.items() if found}


def naive_spans(expander: Any, docs: pd.DataFrame, chunks: pd.DataFrame, docno: str) -> tuple[str, int, int]:
    """Document, start and end of the passage around one chunk, from the expander's definition."""
    chunk = chunks[chunks["docno"] == docno].iloc[0]
    text = docs.set_index("docno")["text"][chunk["parent"]]
    if isinstance(expander, DocumentExpander):
        return chunk["parent"], 0, len(text)
    if isinstance(expander, NeighbourExpander):
        own = chunks[chunks["parent"] == chunk["parent"]].sort_values(["start", "end"], kind="stable")
        at = own["docno"].tolist().index(docno)
        near = own.iloc[max(0, at - expander.width) : at + expander.width + 1]
        return chunk["parent"], int(near["start"].min()), int(near["end"].max())
    tokens = WordTokenizer().offsets([text])[0].tolist()
    inside = [i for i, (a, b) in enumerate(tokens) if a < chunk["end"] and b > chunk["start"]]
    if not inside:
        # Between two tokens: the window begins with the one behind it.
        inside = [sum(b <= chunk["start"] for _, b in tokens)]
        taken: list[int] = []
    else:
        taken = list(inside)
    first, last = inside[0], inside[0] + len(taken)
    behind = True
    while last - first < expander.tokens and last - first < len(tokens):
        if (behind and last < len(tokens)) or first == 0:
            last += 1
        else:
            first -= 1
        behind = not behind
    start, end = chunk["start"], chunk["end"]
    if last > first:
        start, end = min(start, tokens[first][0]), max(end, tokens[last - 1][1])
    while start < chunk["start"] and text[start].isspace():
        start += 1
    while end > chunk["end"] and text[end - 1].isspace():
        end -= 1
    return chunk["parent"], int(start), int(end)


def naive(expander: Any, docs: pd.DataFrame, chunks: pd.DataFrame, hits: dict[str, list[str]]) -> list[Any]:
    """(qid, rank, docno, text): passages are joined two at a time until none touch."""
    made = []
    for qid, docnos in hits.items():
        passages = [(i, *naive_spans(expander, docs, chunks, docno)) for i, docno in enumerate(docnos)]
        text = docs.set_index("docno")["text"]

        def touch(one: Any, two: Any, text: Any = text) -> bool:
            if one[1] != two[1]:
                return False
            first, second = sorted((one, two), key=itemgetter(2, 3))
            return second[2] <= first[3] or not text[one[1]][first[3] : second[2]].strip()

        while True:
            pair = next(((a, b) for a in passages for b in passages if a is not b and touch(a, b)), None)
            if pair is None:
                break
            a, b = pair
            passages = [p for p in passages if p is not a and p is not b]
            passages.append((min(a[0], b[0]), a[1], min(a[2], b[2]), max(a[3], b[3])))
        for rank, (best, doc, start, end) in enumerate(sorted(passages)):
            made.append((qid, rank, docnos[best], text[doc][start:end]))
    return made


@pytest.mark.parametrize(
    "expander",
    [NeighbourExpander(width=1), NeighbourExpander(width=3), ParentExpander(tokens=3), DocumentExpander()],
    ids=repr,
)
@settings(max_examples=60)
@given(collection=collections())
def test_the_same_as_brute_force(expander: Any, collection: Any) -> None:
    docs, chunks, hits = collection
    tools = Tools(store=None, embedder=None, tokenizer=WordTokenizer())  # type: ignore[arg-type]
    found = expander.expand(run_of(hits), chunks, docs, tools)
    columns = ["qid", "rank", "docno", "text"]
    assert [tuple(row) for row in found[columns].itertuples(index=False)] == naive(expander, docs, chunks, hits)
