"""Expanders against LlamaIndex's sentence window and auto-merging retriever, over the same hits."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from ragauge.contract.component import Tools
from ragauge.plugins.expansion.expanders import DocumentExpander, NeighbourExpander
from ragauge.texts.sentences import sentence_spans


@pytest.fixture(autouse=True)
def llama_index() -> None:
    pytest.importorskip("llama_index.core")


TEXTS = {
    "a": "Anna built the tower. It took her nine years. The stone came from Linz. Nobody paid. It stands.",
    "b": "The bridge is old. It was made of wood. A flood took it in 1899. The new one is of iron.",
    "c": "Rivers carry water. All of them reach the sea.",
}
DOCS = pd.DataFrame({"docno": list(TEXTS), "title": "", "text": list(TEXTS.values())}).astype("str")
CHUNKS = pd.DataFrame(
    [
        (f"{docno}%p{i}", text[start:end], docno, start, end)
        for docno, text in TEXTS.items()
        for i, (start, end) in enumerate(sentence_spans(text))
    ],
    columns=["docno", "text", "parent", "start", "end"],
).astype({"docno": "str", "text": "str", "parent": "str"})


def run_of(hits: dict[str, float]) -> pd.DataFrame:
    """Frame `run` of one topic: hits by falling score."""
    docnos = sorted(hits, key=lambda docno: -hits[docno])
    found = {"qid": "q", "docno": docnos, "score": [hits[d] for d in docnos], "rank": range(len(docnos))}
    return pd.DataFrame(found).astype({"qid": "str", "docno": "str"})


def expanded(expander: Any, hits: dict[str, float], tools: Tools) -> list[str]:
    found: list[str] = expander.expand(run_of(hits), CHUNKS, DOCS, tools)["text"].tolist()
    return found


def sentences_of(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


# --- the sentence window ------------------------------------------------------------------------------------


def windows(hits: dict[str, float], width: int) -> list[str]:
    """What MetadataReplacementPostProcessor puts in the place of the hits."""
    from llama_index.core import Document
    from llama_index.core.node_parser import SentenceWindowNodeParser
    from llama_index.core.postprocessor import MetadataReplacementPostProcessor
    from llama_index.core.schema import NodeWithScore

    parser = SentenceWindowNodeParser.from_defaults(sentence_splitter=sentences_of, window_size=width)
    nodes: dict[str, Any] = {}
    for docno, text in TEXTS.items():
        for i, node in enumerate(parser.get_nodes_from_documents([Document(text=text)])):
            nodes[f"{docno}%p{i}"] = node
    found = [NodeWithScore(node=nodes[d], score=hits[d]) for d in run_of(hits)["docno"]]
    replaced = MetadataReplacementPostProcessor(target_metadata_key="window").postprocess_nodes(found)
    return [node.node.get_content() for node in replaced]


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("place", range(4))
def test_neighbours_of_sentences_are_the_sentence_window(width: int, place: int, tools: Tools) -> None:
    hits = {f"b%p{place}": 0.9, "c%p0": 0.8, f"a%p{place}": 0.7}
    assert expanded(NeighbourExpander(width=width), hits, tools) == windows(hits, width)


def test_where_windows_overlap_llama_index_repeats_the_text(tools: Tools) -> None:
    hits = {"a%p1": 0.9, "c%p0": 0.8, "a%p2": 0.7}
    theirs = windows(hits, 1)
    assert [text.count("It took her nine years.") for text in theirs] == [1, 0, 1]
    ours = expanded(NeighbourExpander(width=1), hits, tools)
    assert ours == [TEXTS["a"].removesuffix(" It stands."), TEXTS["c"]]
    # Every sentence of theirs is there.
    assert {s for text in theirs for s in sentences_of(text)} == {s for text in ours for s in sentences_of(text)}


# --- auto-merging -------------------------------------------------------------------------------------------


def auto_merged(hits: dict[str, float], threshold: float) -> list[str]:
    """What AutoMergingRetriever makes of the hits, with whole documents as the sentences' parents."""
    from llama_index.core import StorageContext
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.retrievers import AutoMergingRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.storage.docstore import SimpleDocumentStore

    nodes: dict[str, TextNode] = {}
    for parent, own in CHUNKS.groupby("parent"):
        whole = nodes[parent] = TextNode(id_=parent, text=TEXTS[parent])
        children = [TextNode(id_=docno, text=text) for docno, text in zip(own["docno"], own["text"], strict=True)]
        whole.relationships[NodeRelationship.CHILD] = [c.as_related_node_info() for c in children]
        for i, child in enumerate(children):
            child.relationships[NodeRelationship.PARENT] = whole.as_related_node_info()
            if i:
                child.relationships[NodeRelationship.PREVIOUS] = children[i - 1].as_related_node_info()
                children[i - 1].relationships[NodeRelationship.NEXT] = child.as_related_node_info()
            nodes[child.node_id] = child

    class Hits(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=nodes[d], score=hits[d]) for d in run_of(hits)["docno"]]

    store = SimpleDocumentStore()
    store.add_documents(list(nodes.values()))
    storage = StorageContext.from_defaults(docstore=store)
    merging = AutoMergingRetriever(Hits(), storage, simple_ratio_thresh=threshold)
    return [found.node.get_content() for found in merging.retrieve("?")]


@pytest.mark.parametrize(
    "hits",
    [
        {"a%p0": 0.9, "b%p3": 0.5},
        {"b%p1": 0.9, "a%p0": 0.8, "a%p4": 0.7, "c%p0": 0.1},
        {"c%p1": 0.9, "c%p0": 0.8, "b%p0": 0.7, "b%p1": 0.6, "b%p2": 0.5, "b%p3": 0.4},
    ],
)
def test_documents_are_what_auto_merging_gives_where_any_hit_merges(hits: dict[str, float], tools: Tools) -> None:
    assert expanded(DocumentExpander(), hits, tools) == auto_merged(hits, 0.0)


def test_auto_merging_leaves_a_hit_alone_below_its_share_of_children(tools: Tools) -> None:
    hits = {"a%p0": 0.9, "b%p0": 0.8, "b%p2": 0.7, "b%p3": 0.6}  # one of five, three of four
    assert auto_merged(hits, 0.5) == ["Anna built the tower.", TEXTS["b"]]
    assert expanded(DocumentExpander(), hits, tools) == [TEXTS["a"], TEXTS["b"]]


def test_auto_merging_takes_the_mean_score_of_the_hits_and_not_the_best(tools: Tools) -> None:
    hits = {"a%p0": 0.9, "c%p1": 0.6, "c%p0": 0.55, "a%p3": 0.1}
    assert auto_merged(hits, 0.0) == [TEXTS["c"], TEXTS["a"]]
    assert expanded(DocumentExpander(), hits, tools) == [TEXTS["a"], TEXTS["c"]]


def test_a_sentence_between_two_hits_is_filled_in_by_both(tools: Tools) -> None:
    hits = {"a%p1": 0.9, "a%p3": 0.8}
    # Theirs only where the two follow each other in the ranking and in the text.
    assert auto_merged(hits, 0.9) == ["It took her nine years.", "The stone came from Linz.", "Nobody paid."]
    assert auto_merged({"a%p1": 0.9, "c%p0": 0.85, "a%p3": 0.8}, 0.9) == [
        "It took her nine years.",
        "Rivers carry water.",
        "Nobody paid.",
    ]
    assert expanded(NeighbourExpander(width=1), hits, tools) == [TEXTS["a"]]
    assert expanded(NeighbourExpander(width=1), {**hits, "c%p0": 0.85}, tools) == [TEXTS["a"], TEXTS["c"]]
