"""A cross-encoder as reranker: order, cut, pairs that are scored once, and models that are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from blocks_engine import BlocksEngine
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.plugins.reranking import cross_encoder, pair_model
from ragauge.plugins.reranking.cross_encoder import CrossEncoderReranker
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.ranking import check_reranked
from ragauge.retrieval.reading import reader_of
from small_pipeline import SmallPipelines
from tiny_cross_encoder import write_cross_encoder

needs_onnx = pytest.mark.skipif(not onnx_backend.installed(), reason="the extra onnx is not installed")

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["who built it?", "where?"]})
CHUNKS = pd.DataFrame(
    {"docno": list("abcd"), "text": ["anna built the tower", "the bridge " * 9, "mountains", "mountains"]}
)
RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2,
        "docno": list("abcdab"),
        "score": [4.0, 3.0, 2.0, 1.0, 2.0, 1.0],
        "rank": [0, 1, 2, 3, 0, 1],
        "similarity": np.arange(6.0),
    }
)


class Letters:
    """Stands where the model does: a score that follows from the pair, and the pairs that were scored."""

    def __init__(self) -> None:
        self.scored: list[tuple[str, str]] = []

    def scores(self, pairs: list[tuple[str, str]], batch_size: Any, threads: Any) -> np.ndarray:
        self.scored += pairs
        return np.array([len(set(q) & set(text)) for q, text in pairs], dtype=np.float32)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    stand_in = Letters()
    monkeypatch.setattr(cross_encoder, "load_pair_model", lambda *given: stand_in)
    return stand_in


@pytest.fixture(autouse=True)
def nothing_loaded() -> Iterator[None]:
    """Models are kept for the process; a test starts as a process does."""
    pair_model.load_pair_model.cache_clear()
    pair_model._checked.cache_clear()
    yield
    pair_model.load_pair_model.cache_clear()


# --- what comes out -----------------------------------------------------------------------------------


def test_the_best_depth_hits_are_ordered_by_score_and_cut_at_top_k(tiny: Path, letters: Letters, tools: Tools) -> None:
    part = CrossEncoderReranker(str(tiny), depth=4, backend="torch")
    made = part.rerank(RUN[::-1], TOPICS, CHUNKS, tools)
    of_q1 = made[made["qid"] == "q1"]
    assert of_q1["docno"].tolist() == ["a", "b", "c", "d"]
    # Letters shared with `who built it?`, the space among them: w h o _ b u i l t; t h _ b i; o u t i.
    assert of_q1["score"].tolist() == [9.0, 5.0, 4.0, 4.0]
    assert of_q1["similarity"].tolist() == [0.0, 1.0, 2.0, 3.0]
    check_reranked(RUN, made, "CrossEncoder")
    cut = replace(part, depth=3, top_k=1).rerank(RUN, TOPICS, CHUNKS, tools)
    assert cut[["qid", "docno", "rank"]].values.tolist() == [["q1", "a", 0], ["q2", "a", 0]]


def test_what_lies_below_depth_is_dropped_even_if_it_would_be_best(tiny: Path, letters: Letters, tools: Tools) -> None:
    run = RUN.assign(rank=[3, 2, 1, 0, 0, 1], score=[1.0, 2.0, 3.0, 4.0, 2.0, 1.0])
    made = CrossEncoderReranker(str(tiny), depth=2, backend="torch").rerank(run, TOPICS, CHUNKS, tools)
    assert made[made["qid"] == "q1"]["docno"].tolist() == ["c", "d"]


def test_fused_scores_are_the_weighted_sum_of_both_within_each_topic(
    tiny: Path, letters: Letters, tools: Tools
) -> None:
    part = CrossEncoderReranker(str(tiny), depth=4, backend="torch", fuse=0.25)
    made = part.rerank(RUN, TOPICS, CHUNKS, tools)
    # q1: the cross-encoder's 9, 5, 4, 4 are 1, .2, 0, 0 and the retriever's 4, 3, 2, 1 are 1, 2/3, 1/3, 0.
    of_q1 = made[made["qid"] == "q1"].set_index("docno")["score"]
    expected = {"a": 1.0, "b": 0.75 * 0.2 + 0.25 * 2 / 3, "c": 0.25 / 3, "d": 0.0}
    assert of_q1.to_dict() == pytest.approx(expected, abs=1e-12)
    check_reranked(RUN, made, "CrossEncoder")
    n = len(letters.scored)
    # What is cut off at depth counts in no topic's range, and equal scores of a stage are 1 each.
    flat = RUN.assign(score=7.0)
    cut = replace(part, depth=2, fuse=0.9).rerank(flat, TOPICS, CHUNKS, tools)
    assert cut[cut["qid"] == "q1"]["score"].tolist() == pytest.approx([1.0, 0.9])
    assert len(letters.scored) == n  # another weight scores nothing again


class Reading(Letters):
    """A stand-in that reads 125 letters of question and chunk together: 1 where it finds the question in the chunk."""

    def scores(self, pairs: list[tuple[str, str]], batch_size: Any, threads: Any) -> np.ndarray:
        self.scored += pairs
        read = [(query, text.replace(" ", "")[: 125 - len(query)]) for query, text in pairs]
        return np.array([query in text for query, text in read], dtype=np.float32)


def test_the_best_window_of_a_chunk_counts_with_max(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four chunks that differ at the end, each with its question: a cut reads none of them there."""
    folder = write_cross_encoder(tmp_path / "wide", positions=128)
    ends = ["bicycle", "theology", "trumpet", "volcano"]
    chunks = pd.DataFrame({"docno": ends, "text": [f"{'river ' * 60}{end}" for end in ends]})
    topics = pd.DataFrame({"qid": ends, "query": ends})
    run = topics.merge(chunks, how="cross").assign(rank=[0, 1, 2, 3] * 4, score=[4.0, 3.0, 2.0, 1.0] * 4)
    run = run.drop(columns=["query", "text"])
    model = Reading()
    monkeypatch.setattr(cross_encoder, "load_pair_model", lambda *given: model)
    right = {}
    for long in ("cut", "max"):
        part = CrossEncoderReranker(str(folder), depth=4, top_k=1, backend="torch", long=long)
        right[long] = (part.rerank(run, topics, chunks, tools).eval("qid == docno")).mean()
    assert right == {"cut": 0.25, "max": 1.0}
    assert all(len(text.replace(" ", "")) + len(query) <= 125 for query, text in model.scored[16:])


def test_scores_with_max_are_the_highest_of_the_model_s_own_over_the_windows(tmp_path: Path, tools: Tools) -> None:
    from sentence_transformers import CrossEncoder

    folder = write_cross_encoder(tmp_path / "wide", positions=128)
    generator = np.random.default_rng(2)
    texts = [" ".join("".join(generator.choice(list("abcdefgh"), 4)) for _ in range(n)) for n in (2, 20, 90, 250)]
    chunks = CHUNKS.assign(text=texts)
    cut = CrossEncoderReranker(str(folder), depth=4, backend="torch")
    whole = replace(cut, long="max")
    by_cut, by_max = (
        part.rerank(RUN, TOPICS, chunks, tools).set_index(["qid", "docno"])["score"] for part in (cut, whole)
    )
    reader, model = reader_of(folder), CrossEncoder(str(folder), device="cpu")
    for qid, docno in by_max.index:
        pair = dict(TOPICS.values)[qid], dict(chunks.values)[docno]
        windows = reader.windows_of_pairs([pair], "")[0]  # type: ignore[union-attr]
        assert (len(windows) > 1) == (docno in "cd")
        assert by_max[qid, docno] == pytest.approx(model.predict(windows).max(), abs=1e-5)
        if docno in "ab":
            assert by_max[qid, docno] == by_cut[qid, docno]
    assert tools.counted["reranker_pairs_cached"] == 4  # the pairs that are read whole
    assert "long" not in identity(cut)
    assert identity(whole) == {**identity(cut), "long": "max"}
    assert (cut.reader(), whole.reader()) == (reader, None)


def test_a_model_with_a_prompt_of_its_own_has_no_windows(tiny: Path, tmp_path: Path, tools: Tools) -> None:
    folder = shutil.copytree(tiny, tmp_path / "prompted")
    (folder / "config_sentence_transformers.json").write_text('{"default_prompt_name": "query", "prompts": {}}')
    part = CrossEncoderReranker(str(folder), backend="torch", long="max")
    with pytest.raises(ConfigError, match=r"^reranker\.long: .*prompted puts a prompt around question and chunk"):
        part.rerank(RUN, TOPICS, CHUNKS, tools)


def test_no_hits_need_no_model(tiny: Path, letters: Letters, tools: Tools) -> None:
    made = CrossEncoderReranker(str(tiny), backend="torch").rerank(RUN[:0], TOPICS, CHUNKS, tools)
    assert made.empty
    assert letters.scored == []
    assert tools.counted == {"reranker_pairs": 0, "reranker_pairs_cached": 0}


def test_a_hit_of_no_chunk_is_an_error(tiny: Path, letters: Letters, tools: Tools) -> None:
    with pytest.raises(DataError, match="docno='d' is not known"):
        CrossEncoderReranker(str(tiny), backend="torch").rerank(RUN, TOPICS, CHUNKS[:3], tools)


# --- no pair is scored twice --------------------------------------------------------------------------


def test_each_distinct_pair_of_texts_is_scored_once_ever(tiny: Path, letters: Letters, tools: Tools) -> None:
    part = CrossEncoderReranker(str(tiny), depth=3, backend="torch")
    part.rerank(RUN, TOPICS, CHUNKS, tools)
    assert len(letters.scored) == 5
    # Deeper, another cut, other batches, and an equal text under another docno: one topic asks a new pair.
    more = pd.concat([RUN, RUN[:1].assign(qid="q2", docno="c", rank=2, score=0.5)])
    deeper = replace(part, depth=4, top_k=2, batch_size=3, threads=1)
    deeper.rerank(more, TOPICS, CHUNKS, tools)
    assert letters.scored[5:] == [("where?", "mountains")]
    assert tools.counted == {"reranker_pairs": 6, "reranker_pairs_cached": 5}
    replace(part, max_length=16).rerank(RUN, TOPICS, CHUNKS, tools)
    assert len(letters.scored) == 6 + 5  # another model: cut elsewhere


def test_one_pair_is_not_another_of_the_same_letters(tiny: Path, letters: Letters, tools: Tools) -> None:
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["ab", "a"]})
    chunks = pd.DataFrame({"docno": ["x", "y"], "text": ["c", "bc"]})
    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["x", "y"], "score": 1.0, "rank": 0})
    CrossEncoderReranker(str(tiny), backend="torch").rerank(run, topics, chunks, tools)
    assert sorted(letters.scored) == [("a", "bc"), ("ab", "c")]


def test_a_model_that_moved_is_the_same_and_other_weights_are_another(tiny: Path, tmp_path: Path) -> None:
    here = identity(CrossEncoderReranker(str(tiny), backend="torch"))
    moved = write_cross_encoder(tmp_path / "elsewhere" / "tiny")
    assert identity(CrossEncoderReranker(str(moved), backend="torch", threads=7, batch_size=2)) == here
    scorer = {"digest": here["scorer"]["digest"], "backend": "torch", "device": "cpu", "max_length": None, "version": 1}
    own = {"component": "cross_encoder", "version": 1, "model": "tiny", "depth": 30, "top_k": 30}
    assert here == {**own, "scorer": scorer}
    for weight, more in ((0.0, {}), (0.5, {"fuse": 0.5})):  # what was stored before there was the key is found again
        assert identity(CrossEncoderReranker(str(tiny), backend="torch", fuse=weight)) == {**here, **more}
    gpus = [identity(CrossEncoderReranker(str(tiny), backend="torch", device=f"cuda:{n}")) for n in (0, 1)]
    assert gpus[0] == gpus[1]
    for more in ({"device": "cuda"}, {"max_length": 16}, {"depth": 40}, {"top_k": 7}):
        assert identity(CrossEncoderReranker(str(tiny), backend="torch", **more)) != here
    other = write_cross_encoder(tmp_path / "other" / "tiny", seed=1)
    assert identity(CrossEncoderReranker(str(other), backend="torch"))["scorer"] != here["scorer"]
    logged = CrossEncoderReranker("models:/tiny/3", backend="torch", folder=str(moved))
    assert identity(logged) == {**here, "model": "models:/tiny/3"}


def test_the_same_job_twice_scores_no_pair(tiny: Path, letters: Letters, small: SmallPipelines) -> None:
    part = CrossEncoderReranker(str(tiny), backend="torch", depth=2)
    first, second, cut = (small(reranker=p) for p in (part, part, replace(part, top_k=1)))
    assert first.frame("run")["qid"].value_counts().max() == 2
    n = len(letters.scored)
    assert n == first.tools.counted["reranker_pairs"] > 0
    second.frame("run")
    assert second.made == []
    assert second.tools.counted == {}
    cut.frame("run")
    assert cut.made == ["reranked"]
    assert cut.tools.counted == {"reranker_pairs": 0, "reranker_pairs_cached": n}
    assert len(letters.scored) == n


# --- batches, torch and ONNX --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["torch", pytest.param("onnx", marks=needs_onnx)])
def test_batches_and_threads_do_not_matter(tiny: Path, tmp_path: Path, backend: str) -> None:
    import torch

    threads = torch.get_num_threads()
    pairs = [(f"who {i}?", "river " * (i % 23)) for i in range(70)] + [("", ""), ("\ud800", "日本")]
    model = pair_model.load_pair_model(tiny, backend, "cpu", None, tmp_path)
    try:
        scores = model.scores(pairs)
        assert scores.dtype == np.float32
        assert len(np.unique(scores)) > 60
        for how in ({"batch_size": 1}, {"batch_size": 7, "threads": 3}):
            np.testing.assert_allclose(model.scores(pairs, **how), scores, atol=1e-5)
        alone = [model.scores([pair])[0] for pair in pairs[:5]]
        np.testing.assert_allclose(alone, scores[:5], atol=1e-5)
    finally:
        torch.set_num_threads(threads)


def test_batches_hold_a_number_of_tokens_and_no_needless_padding(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pair_model.load_pair_model(tiny, "torch", "cpu", None, None)
    monkeypatch.setitem(pair_model.BATCH_TOKENS, "torch", 64)
    shapes: list[tuple[int, int]] = []
    run = pair_model.PairModel._run

    def seen(self: Any, features: dict[str, Any]) -> np.ndarray:
        shapes.append(tuple(features["input_ids"].shape))
        return run(self, features)

    monkeypatch.setattr(pair_model.PairModel, "_run", seen)
    model.scores([("a", "b" * n) for n in (1, 1, 1, 59, 28, 28, 90)])
    # [CLS] a [SEP] b... [SEP]: 4 + n - 1 + 1 tokens; the longest is cut at the model's 64.
    assert shapes == [(1, 64), (1, 63), (2, 32), (3, 5)]


@needs_onnx
def test_onnx_gives_torch_s_scores_and_is_exported_once(
    tiny: Path, tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGAUGE_CACHE", str(tmp_path / "cache"))
    pairs = [(f"who {i}?", "river " * (i % 23)) for i in range(40)]
    by_torch = pair_model.load_pair_model(tiny, "torch", "cpu", None, None).scores(pairs)
    by_onnx = pair_model.load_pair_model(tiny, "onnx", "cpu", None, None).scores(pairs)
    np.testing.assert_allclose(by_onnx, by_torch, atol=1e-5)
    pair_model.load_pair_model.cache_clear()
    CrossEncoderReranker(str(tiny), backend="onnx").rerank(RUN, TOPICS, CHUNKS, tools)
    assert len(list((tmp_path / "cache" / "onnx").glob("*/model.onnx"))) == 1


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"depth": 0}, r"reranker\.depth=0: allowed are integers from 1"),
        ({"depth": 5, "top_k": 6}, r"reranker\.top_k=6: allowed are 1 to reranker\.depth, which is 5"),
        ({"top_k": 0}, r"reranker\.top_k=0: allowed are integers from 1, and null \(depth\)"),
        ({"max_length": 2}, r"reranker\.max_length=2"),
        ({"long": "mean"}, r"reranker\.long='mean': allowed are cut, max"),
        ({"fuse": 1}, r"reranker\.fuse=1: allowed are numbers from 0 \(the reranker alone\) to below 1"),
        ({"fuse": float("nan")}, r"reranker\.fuse=nan"),
        ({"batch_size": 0}, r"reranker\.batch_size=0"),
        ({"model": " "}, r"reranker\.model=' '"),
        ({"backend": "tf"}, r"reranker\.backend='tf': allowed are auto, torch, onnx"),
        ({"backend": "onnx", "device": "cuda"}, r"reranker\.device=cuda: backend=onnx runs on the CPU"),
    ],
)
def test_a_value_out_of_range_is_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=f"^{says}") as caught:
        CrossEncoderReranker(**{"model": "m", **given})
    assert "\n" not in str(caught.value)
    ends = {"depth": 1, "top_k": 1, "max_length": 8, "batch_size": 1, "threads": 1, "fuse": 0}
    assert CrossEncoderReranker("m", backend="torch", **ends)


def test_a_model_without_a_single_score_is_one_line(tmp_path: Path) -> None:
    three = write_cross_encoder(tmp_path / "three", num_labels=3)
    with pytest.raises(ConfigError, match=r"^reranker\.model=.*three: gives a pair 3 scores") as caught:
        identity(CrossEncoderReranker(str(three), backend="torch"))
    assert "\n" not in str(caught.value)
    # Where config.json does not tell, the loaded network does.
    with pytest.raises(ConfigError, match="gives a pair 3 scores"):
        pair_model.load_pair_model(three, "torch", "cpu", None, None)


def test_an_embedding_model_is_no_cross_encoder(tmp_path: Path) -> None:
    """sentence-transformers would score with a head of random numbers."""
    import transformers

    folder = write_cross_encoder(tmp_path / "embedder")
    transformers.BertModel.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(ConfigError, match=r"^reranker\.model=.*embedder: is no cross-encoder"):
        identity(CrossEncoderReranker(str(folder), backend="torch"))


def test_a_length_that_the_network_does_not_have_is_one_line(tiny: Path, tools: Tools) -> None:
    part = CrossEncoderReranker(str(tiny), backend="torch", max_length=65)
    with pytest.raises(ConfigError, match=r"^reranker\.max_length=65: allowed are 8 to 64"):
        part.rerank(RUN, TOPICS, CHUNKS, tools)


def test_pickled_weights_are_not_loaded(tmp_path: Path) -> None:
    import torch

    folder = write_cross_encoder(tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"holds no \*\.safetensors"):
        identity(CrossEncoderReranker(str(folder), backend="torch"))


@pytest.mark.parametrize("where", ["config.json", "config_sentence_transformers.json", "nested"])
def test_a_configuration_cannot_have_functions_called(tmp_path: Path, where: str) -> None:
    """sentence-transformers calls what a model names as its activation, if it is anywhere in torch."""
    folder = write_cross_encoder(tmp_path / "attack")
    attack = {"activation_fn": "torch.utils.collect_env.main"}
    file = folder / ("config.json" if where == "nested" else where)
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | ({"sentence_transformers": attack} if where == "nested" else attack)))
    with pytest.raises(ConfigError, match=r"names the activation 'torch\.utils\.collect_env\.main'"):
        identity(CrossEncoderReranker(str(folder), backend="torch"))


def test_code_beside_a_model_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "attack")
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Evil: pass\n")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    own = {"model_type": "CrossEncoder"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(own))
    with pytest.raises(ConfigError, match=r"^reranker\.model=.*names the module 'evil\.Evil'; allowed are"):
        identity(CrossEncoderReranker(str(folder)))
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_a_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^reranker\.model=.*: the folder holds no model"):
        identity(CrossEncoderReranker(str(tmp_path), backend="torch"))


def test_a_score_that_is_no_number_is_an_error(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pair_model.load_pair_model(tiny, "torch", "cpu", None, None)
    monkeypatch.setattr(pair_model.PairModel, "_run", lambda self, f: np.full(len(f["input_ids"]), np.nan))
    with pytest.raises(DataError, match=r"\('who\?', 'me'\) the score nan"):
        model.scores([("who?", "me")])


# --- tokens that no head reads ------------------------------------------------------------------------


def test_the_last_layer_computes_the_first_token_alone(tiny: Path) -> None:
    from sentence_transformers import CrossEncoder

    seen: list[int] = []
    model = pair_model.load_pair_model(tiny, "torch", "cpu", None, None)
    network = model.model[0].model
    for layer in network.bert.encoder.layer:
        layer.intermediate.register_forward_hook(lambda _, given, made: seen.append(made.shape[1]))
    pairs = [("who?", "river " * n) for n in (1, 5, 9)]
    scores = model.scores(pairs, batch_size=1)
    assert seen[1::2] == [1, 1, 1]
    assert min(seen[::2]) > 1
    theirs = CrossEncoder(str(tiny), device="cpu").predict([list(pair) for pair in pairs])
    np.testing.assert_allclose(scores, theirs, atol=1e-6)


def test_a_head_that_reads_all_tokens_gets_them_all(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    pairs = [("who?", "river " * n) for n in (1, 5, 9)]

    def mean(self: Any, hidden: Any) -> Any:
        return self.activation(self.dense(hidden.mean(dim=1)))

    pooler = transformers.models.bert.modeling_bert.BertPooler
    monkeypatch.setattr(pooler, "forward", mean)
    model = pair_model.load_pair_model(tiny, "torch", "cpu", None, None)
    theirs = [float(model.model.predict([pair])[0]) for pair in pairs]  # alone, without padding
    assert not model.model[0].model.bert.encoder.layer[-1].attention.output._forward_pre_hooks
    np.testing.assert_allclose(model.scores(pairs, batch_size=1), theirs, atol=1e-5)


def test_a_run_by_blocks_is_the_same_run(small: SmallPipelines, tiny: Path, tmp_path: Path) -> None:
    cross, engine, source = CrossEncoderReranker(str(tiny), depth=3, backend="torch"), BlocksEngine(), small.source()
    here = SmallPipelines(tmp_path / "here", small.embedder)(reranker=cross, dataset=source)
    there = SmallPipelines(tmp_path / "there", small.embedder)(reranker=cross, dataset=source, engine=engine)
    own, other = here.frame("run"), there.frame("run")
    assert own[["qid", "docno", "rank"]].equals(other[["qid", "docno", "rank"]])
    # Which pairs a cross-encoder scores together moves a score by float noise.
    np.testing.assert_allclose(own["score"], other["score"], atol=1e-6)
    assert here.key("reranked") == there.key("reranked")
    assert engine.mapped["_PairScores"] > 1
    assert here.tools.counted == there.tools.counted
