"""What a model reads of a text: tokens against its limit, and windows over what is longer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.retrieval.chunkers import SemanticChunker
from ragauge.retrieval.embedders import CachedEmbedder, SentenceTransformerEmbedder
from ragauge.retrieval.reading import Reader, reader_of
from ragauge.retrieval.retrievers import Sim
from ragauge.texts.model_files import model_path
from tiny_cross_encoder import write_cross_encoder

MINILM = Path(str(model_path("all-MiniLM-L6-v2")))


def words(n: int, last: str = "") -> str:
    return " ".join([*["river"] * (n - bool(last)), *([last] if last else [])])


def test_tokens_are_counted_with_the_model_s_marks_against_its_own_limit() -> None:
    reader = reader_of(MINILM)
    assert reader == Reader(MINILM, 256)
    # [CLS] and [SEP] leave 254 words of one token each.
    assert reader.lengths(["river", words(254), "", "\ud800"]).tolist() == [3, 256, 2, 3]
    found = reader.reading([words(254), words(255), words(354)])
    assert (found.longer, found.texts) == (2, 3)
    assert found.unread == pytest.approx(101 / (256 + 257 + 356))
    assert reader.reading([words(200)], beside=100).unread == pytest.approx(46 / 302)
    assert reader_of(MINILM, 100) == Reader(MINILM, 100)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"config.json": {"max_position_embeddings": 512}}, 512),
        ({"config.json": {"max_position_embeddings": 512}, "tokenizer_config.json": {"model_max_length": 128}}, 128),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, None),
        ({"config.json": {"max_position_embeddings": 512}, "sentence_bert_config.json": {"max_seq_length": 64}}, 64),
        ({"config.json": {"max_position_embeddings": 512}, "sentence_any_config.json": {"document_length": 180}}, 180),
        ({}, None),
    ],
)  # fmt: skip
def test_the_limit_is_what_sentence_transformers_hands_over(
    files: dict[str, object], limit: int | None, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    found = reader_of(tmp_path)
    assert (found and found.limit) == limit


def test_windows_hold_the_whole_text_end_between_words_and_fit_behind_the_prefix() -> None:
    reader = Reader(MINILM, 100)
    rng = np.random.default_rng(0)
    vocabulary = ["river", "unbelievably", "Ljubljana", "x-ray,", "l'été", "日本"]
    texts = [" ".join(rng.choice(vocabulary, n)) for n in (0, 5, 60, 333)] + ["a" * 700]
    windows = reader.windows(texts, "passage: ")
    for text, of_text in zip(texts, windows, strict=True):
        assert "".join(window for window, _ in of_text) == text
        assert max(reader.lengths([f"passage: {window}" for window, _ in of_text])) <= 100
        if " " in text:
            assert all(window.endswith(" ") for window, _ in of_text[:-1])
    assert [len(of_text) for of_text in windows[:2]] == [1, 1]
    assert len(windows[3]) > 3
    with pytest.raises(
        ConfigError, match=r"embedder\.long: a window has \d+ tokens, too few to cut texts for \(at least 48\)"
    ):
        Reader(MINILM, 20).windows(texts)


@pytest.mark.parametrize("files", ["tokenizer.json", "vocab.txt"])
def test_a_window_of_a_pair_fits_beside_its_question(files: str, tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "pairs", positions=200)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    if files == "vocab.txt":  # as older models are kept
        vocabulary = tokenizer.get_vocab()
        (folder / files).write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "model_max_length": 200}')
        (folder / "tokenizer.json").unlink()
    reader = reader_of(folder)
    assert reader is not None
    pairs = [("who?", words(n, "end")) for n in (1, 39, 40, 333)] + [("why " * 99, words(60))]
    found = reader.windows_of_pairs(pairs, "reranker.long")
    for (question, text), of_pair in zip(pairs, found, strict=True):
        assert {first for first, _ in of_pair} == {question}
        assert "".join(window for _, window in of_pair) == text
        size = [len(tokenizer.encode(window, add_special_tokens=False)) for _, window in of_pair]
        # Three marks, and the question or as much of it as leaves half to the window.
        assert max(size) <= max(197 - len(tokenizer.encode(question, add_special_tokens=False)), 98)
    # 4 tokens of the question and 3 marks leave 193: 38 rivers and an end, which have 193.
    assert [len(of_pair) for of_pair in found[:3]] == [1, 1, 2]
    with pytest.raises(ConfigError, match=r"^reranker\.long: a window has 33 tokens"):
        Reader(folder, 70).windows_of_pairs([("who?", "")], "reranker.long")


def test_a_semantic_chunker_reads_long_sentences_in_windows_where_its_embedder_does(tmp_path: Path) -> None:
    """Four sentences of 300 words, the third of another end: a cut sees no difference."""
    text = " ".join(f"{words(300, end).capitalize()}." for end in ("bank", "bank", "theology", "theology"))
    docs = pd.DataFrame({"docno": ["d"], "text": [text]}, dtype="str")
    chunker = SemanticChunker(window_each_side=0, max_tokens=None, breakpoint_percentile=60)
    found = {}
    for long in ("cut", "mean", "max"):
        model = SentenceTransformerEmbedder(backend="torch", long=long)
        tools = Tools(None, CachedEmbedder(model, tmp_path / long), None)  # type: ignore[arg-type]
        found[long] = [chunk.split()[-1] for chunk in chunker.chunk(docs, tools)["text"]]
    assert found["mean"] == found["max"] == ["bank.", "theology."]
    assert found["cut"] != found["mean"]


def test_a_mean_over_windows_tells_texts_apart_that_differ_behind_the_limit() -> None:
    texts = [words(300, "bicycle"), words(300, "theology"), "A river."]
    cut, mean = (SentenceTransformerEmbedder(backend="torch", long=long) for long in ("cut", "mean"))  # type: ignore
    same, other = cut.embed(texts), mean.embed(texts)
    assert same[0] @ same[1] == pytest.approx(1, abs=1e-6)
    assert other[0] @ other[1] < 0.999
    assert other[2] == pytest.approx(same[2], abs=1e-6)
    windows = Reader(MINILM, 256).windows(texts[:1])[0]
    by_hand = sum(tokens * cut.embed([window])[0] for window, tokens in windows)
    assert other[0] == pytest.approx(by_hand / np.linalg.norm(by_hand), abs=1e-5)
    assert np.linalg.norm(other, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert "long" not in identity(cut)
    assert identity(mean)["long"] == "mean"
    assert mean.reader() is None
    with pytest.raises(ConfigError, match=r"embedder\.long='?most"):
        SentenceTransformerEmbedder(long="most")


def test_with_max_a_chunk_is_found_by_its_best_window(tmp_path: Path) -> None:
    """Four documents that differ behind the limit, each with its question: a cut finds none but by chance."""
    ends = ["bicycle", "theology", "volcano", "trumpet"]
    chunks = pd.DataFrame({"docno": ends, "text": [words(600, end) for end in ends]}, dtype="str")
    topics = pd.DataFrame({"qid": ends, "query": ends}, dtype="str")
    model = SentenceTransformerEmbedder(backend="torch", long="max")
    tools = Tools(None, CachedEmbedder(model, tmp_path / "store"), None)  # type: ignore[arg-type]
    sim = Sim(top_k=1)
    sim.build_index(chunks, tmp_path, tools)
    run = sim.transformer(chunks, tmp_path, tools)(topics)
    assert run["docno"].tolist() == ends
    windows = model.windows(chunks["text"].tolist())
    assert windows == [[window for window, _ in of] for of in Reader(MINILM, 256).windows(chunks["text"].tolist())]
    alone = SentenceTransformerEmbedder(backend="torch")
    best = [float((alone.embed(of) @ alone.embed([end])[0]).max()) for of, end in zip(windows, ends, strict=True)]
    assert run["score"].tolist() == pytest.approx(best, abs=1e-5)
    assert identity(model)["long"] == "max"
    assert model.reader() is None
    mean = SentenceTransformerEmbedder(backend="torch", long="mean")
    assert model.embed([words(300, "x")]) == pytest.approx(mean.embed([words(300, "x")]))
    assert mean.windows(["x"]) is alone.windows(["x"]) is None
