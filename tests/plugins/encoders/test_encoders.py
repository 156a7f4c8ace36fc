"""`retriever=learned_sparse` and `late_interaction` with tiny models, beside brute force over the same models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sentence_transformers import MultiVectorEncoder, SparseEncoder

from hash_embedder import HashEmbedder
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.contract.option import values_of
from ragauge.plugins.encoders import _encoder
from ragauge.plugins.encoders._encoder import EncoderRetriever
from ragauge.plugins.encoders.late_interaction import LateInteraction
from ragauge.plugins.encoders.learned_sparse import LearnedSparse
from ragauge.retrieval.reading import reader_of
from ragauge.retrieval.retrievers import Hybrid
from ragauge.store import Store
from ragauge.texts.tokenizers import WordTokenizer
from tiny_encoder import write_encoder, write_multi_vector_encoder, write_sparse_encoder

LONG = " ".join(
    ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs"]
)  # 34 tokens: two records of the cache
TEXTS = ["a river", "rain falls", "a river", "", ". .", LONG, "zebra", "a river bank", "xyz 9"]
CHUNKS = pd.DataFrame({"docno": list("ihgfedcba"), "text": TEXTS}, dtype="str")
QUERIES = ["which river", "quick dogs", "?!", "xyz", "rain"]
TOPICS = pd.DataFrame({"qid": [f"q{i}" for i in range(len(QUERIES))], "query": QUERIES}, dtype="str")
Retriever = LearnedSparse | LateInteraction


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sparse_encoder(tmp_path_factory.mktemp("models") / "sparse")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_multi_vector_encoder(tmp_path_factory.mktemp("models") / "vectors")


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(store=Store(tmp_path / "store"), embedder=HashEmbedder(), tokenizer=WordTokenizer())


def run_of(retriever: Retriever | Hybrid, folder: Path, tools: Tools, chunks: pd.DataFrame = CHUNKS) -> pd.DataFrame:
    folder.mkdir(parents=True)
    retriever.build_index(chunks, folder, tools)
    return retriever.transformer(chunks, folder, tools)(TOPICS)


def check(run: pd.DataFrame, scores: np.ndarray, top_k: int, least: float) -> None:
    """The run holds each topic's best chunks above a score, equal ones by docno, and their scores; "?!" finds none."""
    expected = []
    for qid, query, row in zip(TOPICS["qid"], QUERIES, scores.round(4), strict=True):
        hits = sorted((-score, docno) for score, docno in zip(row, CHUNKS["docno"], strict=True) if score > least)
        expected += [(qid, docno, pytest.approx(-score, abs=2e-4)) for score, docno in hits[:top_k] if query != "?!"]
    assert list(zip(run["qid"], run["docno"], run["score"], strict=True)) == expected


@pytest.mark.parametrize("top_k", [3, 30])
def test_learned_sparse_is_the_dot_product_of_the_model_s_vectors(
    sparse: Path, tools: Tools, tmp_path: Path, top_k: int
) -> None:
    run = run_of(LearnedSparse(str(sparse), top_k), tmp_path / "index", tools)
    model = SparseEncoder(str(sparse))
    queries = model.encode_query(QUERIES, convert_to_sparse_tensor=False).numpy()
    check(run, queries @ model.encode_document(TEXTS, convert_to_sparse_tensor=False).numpy().T, top_k, 0)


ENDS = ["bicycle", "theology", "volcano", "trumpet"]


class OneHot:
    """Stands where the model does: reads 128 letters of a text, and gives each of its words a vector of its own."""

    def encode_query(self, texts: Sequence[str], **how: object) -> list[np.ndarray]:
        known = {word: i for i, word in enumerate(["x", *ENDS])}
        read = [[word for word in text.split() if text.replace(" ", "").index(word) < 128] for text in texts]
        return [np.eye(5, dtype=np.float32)[[known[word] for word in of_text]] for of_text in read]

    encode_document = encode_query


def four_chunks() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Chunks that differ behind the 128 tokens that a model reads, and a question for each."""
    chunks = pd.DataFrame({"docno": ENDS, "text": [f"{'x ' * 170}{end}" for end in ENDS]}, dtype="str")
    return chunks, pd.DataFrame({"qid": ENDS, "query": ENDS}, dtype="str")


def test_with_max_a_query_token_finds_its_best_one_in_any_window(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_multi_vector_encoder(tmp_path / "wide", positions=128)
    monkeypatch.setattr(_encoder, "_load", lambda *given: OneHot())
    chunks, topics = four_chunks()
    right = {}
    for long in ("cut", "max"):
        retriever = LateInteraction(str(folder), 1, long=long)
        (tmp_path / long).mkdir()
        retriever.build_index(chunks, tmp_path / long, tools)
        run = retriever.transformer(chunks, tmp_path / long, tools)(topics)
        right[long] = run.eval("qid == docno").mean()
    assert right == {"cut": 0.25, "max": 1.0}


def test_with_max_a_chunk_has_the_vectors_of_all_its_windows(tools: Tools, tmp_path: Path) -> None:
    folder = write_multi_vector_encoder(tmp_path / "wide", positions=128, prompts={"document": "a b c "})
    chunks, topics = four_chunks()
    retriever = LateInteraction(str(folder), 4, long="max")
    retriever.build_index(chunks, tmp_path, tools)
    score = retriever.transformer(chunks, tmp_path, tools)(topics).set_index(["qid", "docno"])["score"]
    model, reader = MultiVectorEncoder(str(folder)), reader_of(folder)
    for docno, text in chunks.values:
        windows = [window for window, _ in reader.windows([text], "a b c ")[0]]  # type: ignore[union-attr]
        assert "".join(windows) == text
        vectors = np.concatenate([np.asarray(array) for array in model.encode_document(windows)])
        # Each window has two marks and the prompt's three letters; each letter of the text is there once.
        assert len(vectors) == len(windows) * 5 + 170 + len(docno)
        for qid in ENDS:
            by_hand = (np.asarray(model.encode_query([qid])[0]) @ vectors.T).max(axis=1).sum()
            assert score[qid, docno] == pytest.approx(by_hand, abs=2e-4)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_with_max_a_term_has_its_highest_weight_of_all_windows(similarity: str, tools: Tools, tmp_path: Path) -> None:
    folder = write_sparse_encoder(tmp_path / "wide", positions=128, similarity=similarity)
    texts = [LONG, " ".join([LONG] * 7), f"{'x ' * 170}zebra"]
    retriever = LearnedSparse(str(folder), long="max")
    found = retriever.arrays(texts, "passage", tools)
    model, reader = SparseEncoder(str(folder)), reader_of(folder)
    for text, array in zip(texts, found, strict=True):
        windows = [window for window, _ in reader.windows([text])[0]]  # type: ignore[union-attr]
        of_windows = model.encode_document(windows, convert_to_sparse_tensor=False).numpy()
        if similarity == "cosine":
            of_windows = of_windows / np.linalg.norm(of_windows, axis=1, keepdims=True)
        expected = of_windows.max(axis=0)
        if similarity == "cosine":
            expected = expected / np.linalg.norm(expected)
        dense = np.zeros_like(expected)
        dense[array[:, 0].astype(int)] = array[:, 1]
        np.testing.assert_allclose(dense, expected, atol=1e-5)
        assert (np.diff(array[:, 0]) > 0).all()
    query = retriever.arrays(texts[1:2], "query", tools)[0]
    np.testing.assert_array_equal(query, LearnedSparse(str(folder)).arrays(texts[1:2], "query", tools)[0])
    cut = LearnedSparse(str(folder))
    for key in (LearnedSparse.identity, LearnedSparse.index_identity):
        assert key(retriever) == {**key(cut), "long": "max"}
    assert (cut.reader(), retriever.reader()) == (reader, None)
    with pytest.raises(ConfigError, match=r"^retriever\.long='mean': allowed are cut, max"):
        LearnedSparse(str(folder), long="mean")


def test_a_sparse_model_that_compares_by_cosine_does_so_here(tools: Tools, tmp_path: Path) -> None:
    folder = write_sparse_encoder(tmp_path / "cosine", similarity="cosine")
    run = run_of(LearnedSparse(str(folder)), tmp_path / "index", tools)
    model = SparseEncoder(str(folder))
    check(run, model.similarity(model.encode_query(QUERIES), model.encode_document(TEXTS)).numpy(), 30, 0)


@pytest.mark.parametrize("top_k", [3, 30])
def test_late_interaction_is_maxsim_of_the_model_s_vectors(
    vectors: Path, tools: Tools, tmp_path: Path, top_k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragauge.plugins.encoders.late_interaction._TOKENS", 10)
    monkeypatch.setattr("ragauge.plugins.encoders.late_interaction._QUERIES", 2)
    run = run_of(LateInteraction(str(vectors), top_k), tmp_path / "index", tools)
    model = MultiVectorEncoder(str(vectors))
    of_queries, of_chunks = model.encode_query(QUERIES), model.encode_document(TEXTS)
    assert len(of_chunks[5]) > LateInteraction.rows_of_record
    by_hand = [[sum((c @ t).max() for t in q) for c in map(np.asarray, of_chunks)] for q in map(np.asarray, of_queries)]
    np.testing.assert_allclose(model.similarity(of_queries, of_chunks).numpy(), by_hand, rtol=1e-4)
    check(run, np.array(by_hand), top_k, -np.inf)


def test_a_chunk_or_question_without_a_token_is_no_hit_and_has_none(
    vectors: Path, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = EncoderRetriever.arrays

    def some_empty(self: EncoderRetriever, texts: list[str], role: str, tools: Tools) -> list[np.ndarray]:
        found = arrays(self, texts, role, tools)
        return [array[:0] if text in ("", "rain") else array for text, array in zip(texts, found, strict=True)]

    monkeypatch.setattr(EncoderRetriever, "arrays", some_empty)
    run = run_of(LateInteraction(str(vectors)), tmp_path / "index", tools)
    assert set(run["qid"]) == {"q0", "q1", "q3"}
    assert set(run["docno"]) == set(CHUNKS["docno"]) - {"f"}
    assert run_of(LateInteraction(str(vectors)), tmp_path / "none", tools, CHUNKS.iloc[:0]).empty


def of_kind(kind: str, sparse: Path, vectors: Path) -> Retriever:
    return LearnedSparse(str(sparse)) if kind == "sparse" else LateInteraction(str(vectors))


@pytest.mark.parametrize("kind", ["sparse", "vectors"])
def test_a_text_is_encoded_once_in_the_life_of_a_store(
    kind: str, sparse: Path, vectors: Path, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = of_kind(kind, sparse, vectors)
    run = run_of(retriever, tmp_path / "first", tools)
    asked: list[str] = []
    encode = _encoder._Encoding.__call__

    def count(self: _encoder._Encoding, texts: Sequence[str]) -> list[np.ndarray]:
        asked.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(_encoder._Encoding, "__call__", count)
    more = pd.concat([CHUNKS, pd.DataFrame({"docno": ["new"], "text": ["snow"]})], ignore_index=True)
    pd.testing.assert_frame_equal(run_of(retriever, tmp_path / "second", tools), run)
    assert not asked
    run_of(retriever, tmp_path / "third", tools, more)
    assert asked == ["snow"]


def test_damaged_segments_are_encoded_again(vectors: Path, tools: Tools, tmp_path: Path) -> None:
    retriever = LateInteraction(str(vectors))
    run = run_of(retriever, tmp_path / "first", tools)
    for segment in sorted(Path(tools.store.root).glob("vectors/*/segment-*")):
        (segment / "vectors.npy").write_bytes(b"damaged")
        again = run_of(retriever, tmp_path / segment.name, tools)
        pd.testing.assert_frame_equal(again, run, rtol=1e-5)


def test_they_are_arms_of_a_hybrid(sparse: Path, vectors: Path, tools: Tools, tmp_path: Path) -> None:
    arms = {"sparse": LearnedSparse(str(sparse)), "vectors": LateInteraction(str(vectors))}
    run = run_of(Hybrid(list(arms), arms, top_k=4, depth=9), tmp_path / "index", tools)
    runs = [run_of(arm, tmp_path / name, tools) for name, arm in arms.items()]
    ranks = pd.concat([r[r["rank"] < 9] for r in runs]).assign(score=lambda r: 1 / (60 + r["rank"] + 1))
    fused = ranks.groupby(["qid", "docno"])["score"].sum().round(12).reset_index()
    expected = fused.sort_values(["qid", "score", "docno"], ascending=[True, False, True]).groupby("qid").head(4)
    assert list(zip(run["qid"], run["docno"], strict=True)) == list(
        zip(expected["qid"], expected["docno"], strict=True)
    )


def test_a_sweep_over_both_names_a_model_for_each(sparse: Path, vectors: Path) -> None:
    models = {"learned_sparse": str(sparse), "late_interaction": str(vectors)}
    for made in (LearnedSparse, LateInteraction):
        own = models[made.component]
        assert identity(made(models)) == identity(made(own))  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=f"has no model for {made.component}"):
            made({"bm25": own})  # type: ignore[arg-type]


def test_the_identity_is_that_of_the_weights_and_not_of_the_place(sparse: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(sparse, tmp_path / sparse.name)
    other = write_sparse_encoder(tmp_path / "other" / sparse.name, seed=1)
    known, same, different = (identity(LearnedSparse(str(folder))) for folder in (sparse, moved, other))
    assert known == same != different
    scorer = {"kind": "SparseEncoder", "digest": known["scorer"]["digest"], "device": "cpu", "version": 1}
    assert known == {
        "component": "learned_sparse", "version": 1, "model": sparse.name, "scorer": scorer,
        "top_k": values_of("hydra/shared/hits")["top_k"],
    }  # fmt: skip
    index = {"index": "learned_sparse", "version": 1, "scorer": scorer}
    assert LearnedSparse(str(sparse)).index_identity() == index
    assert (LearnedSparse("m").batch_size, LearnedSparse("m").reorder_after_cut) == (16, False)
    for name in ("top_k", "batch_size", "threads"):
        with pytest.raises(ConfigError, match=rf"retriever\.{name}=0"):
            LearnedSparse("m", **{name: 0})
        assert LearnedSparse("m", **{name: 1})
    with pytest.raises(ConfigError, match=r"retriever\.device=''"):
        LearnedSparse("m", device="")
    gpus = [identity(LearnedSparse(str(sparse), device=device)) for device in ("cuda:0", "cuda:1")]
    assert gpus[0] == gpus[1] != known
    assert identity(LearnedSparse(str(sparse), top_k=5)) != known
    assert (
        LearnedSparse(str(sparse), top_k=5, batch_size=2).index_identity() == LearnedSparse(str(moved)).index_identity()
    )


@pytest.mark.parametrize("kind", ["sparse", "vectors"])
def test_models_of_another_kind_and_code_of_others_are_refused(
    kind: str, sparse: Path, vectors: Path, tmp_path: Path
) -> None:
    made = type(of_kind(kind, sparse, vectors))
    for folder in (write_encoder(tmp_path / "dense", dense=True), sparse if kind == "vectors" else vectors):
        with pytest.raises(ConfigError, match=r"^retriever\.model=.*: is no \w+ of sentence-transformers"):
            identity(made(str(folder)))
    with pytest.raises(ConfigError, match=r"retriever\.model=None: allowed are a model's name and the path"):
        made(None)  # type: ignore[arg-type]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="the folder holds no model"):
        identity(made(str(tmp_path / "empty")))
    foreign = shutil.copytree(sparse if kind == "sparse" else vectors, tmp_path / "foreign")
    modules = json.loads((foreign / "modules.json").read_text())
    modules[1]["type"] = "modeling.Module"
    (foreign / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ConfigError, match=r"names the module 'modeling\.Module'"):
        identity(made(str(foreign)))


def test_a_save_of_pylate_is_read(vectors: Path, tools: Tools, tmp_path: Path) -> None:
    folder = shutil.copytree(vectors, tmp_path / "pylate")
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "pylate.models.Dense.Dense"
    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    own = folder / "config_sentence_transformers.json"
    saved = {"model_type": "ColBERT", "query_prefix": "", "document_prefix": "", "do_query_expansion": False}
    own.write_text(json.dumps(json.loads(own.read_text()) | saved | {"skiplist_words": ["."]}))
    run = run_of(LateInteraction(str(folder)), tmp_path / "index", tools)
    pd.testing.assert_frame_equal(run, run_of(LateInteraction(str(vectors)), tmp_path / "own", tools), rtol=1e-5)
