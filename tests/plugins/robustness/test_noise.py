"""`retriever=noise`: what is mixed with the evidence, by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from options import CONF
from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.experiment.setup import config
from ragauge.experiment.stages.components import instantiate_components
from ragauge.plugins.robustness.noise import Noise
from ragauge.plugins.robustness.retriever import Robustness
from ragauge.retrieval.retrievers import BM25, MLQ
from small_pipeline import SmallPipelines


def chunks_of(texts: dict[str, tuple[str, list[tuple[int, int]]]]) -> pd.DataFrame:
    rows = [
        (f"{doc}%p{i}", text[a:b], doc, a, b) for doc, (text, spans) in texts.items() for i, (a, b) in enumerate(spans)
    ]
    return pd.DataFrame(rows, columns=["docno", "text", "parent", "start", "end"])


def evidence_of(*rows: tuple[str, str | None, str | None]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=["qid", "docno", "text"], dtype=object)
    return frame.assign(part=frame.groupby("qid").cumcount())


N_DOCS = 400


def collection(n_topics: int = 40, parts: int = 4) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """One chunk a document; a topic's evidence is so many documents of its own."""
    texts = {f"d{i:03}": f"number {i} of the words" for i in range(N_DOCS)}
    docs = {docno: (text, [(0, len(text))]) for docno, text in texts.items()}
    chunks = chunks_of(docs)
    topics = pd.DataFrame({"qid": [f"q{t}" for t in range(n_topics)]}, dtype="str")
    topics["query"] = [f"number {parts * t}" for t in range(n_topics)]
    evidence = evidence_of(*((f"q{n // parts}", f"d{n:03}", texts[f"d{n:03}"]) for n in range(n_topics * parts)))
    return topics, evidence, chunks


def mixed(
    noise: Noise, tools: Tools, folder: Path, n_topics: int = 40
) -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """Of every topic the chunks in rank order, and those of its evidence."""
    topics, evidence, chunks = collection(n_topics)
    if noise.options and not any(folder.iterdir()):
        noise.build_index(chunks, folder, tools)
    run = noise.rank_with_evidence(topics, evidence, chunks, folder, tools)
    frames.check("run", run)
    found = run.groupby("qid", sort=False)["docno"].agg(list).to_dict()
    own = {qid: {f"{docno}%p0" for docno in docnos} for qid, docnos in evidence.groupby("qid")["docno"]}
    return found, own


RATES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def test_the_share_of_evidence_is_the_rate_s_and_nested(tools: Tools, tmp_path: Path) -> None:
    kept: list[dict[str, set[str]]] = []
    for rate in RATES:
        found, own = mixed(Noise(noise_rate=rate, n_passages=5), tools, tmp_path)
        assert all(len(docnos) == 5 == len(set(docnos)) for docnos in found.values())
        kept.append({qid: set(docnos) & own[qid] for qid, docnos in found.items()})
        # 4 parts of 5 passages: 5 * (1 - rate), whole here, but no more than 4.
        assert {len(of_topic) for of_topic in kept[-1].values()} == {min(round(5 * (1 - rate)), 4)}
    for more, less in pairwise(kept):
        assert all(less[qid] <= more[qid] for qid in more)


def test_a_share_between_two_numbers_is_kept_on_average(tools: Tools, tmp_path: Path) -> None:
    found, own = mixed(Noise(noise_rate=0.9), tools, tmp_path, n_topics=100)  # 0.4 of 4 chunks
    kept = [len(set(docnos) & own[qid]) for qid, docnos in found.items()]
    assert set(kept) == {0, 1}
    assert np.mean(kept) == pytest.approx(0.4, abs=4 * (0.4 * 0.6 / 100) ** 0.5)
    assert {len(docnos) for docnos in found.values()} == {4}


@pytest.mark.parametrize("order", ["first", "last", "middle", "shuffled"])
def test_where_the_evidence_stands(order: Any, tools: Tools, tmp_path: Path) -> None:
    found, own = mixed(Noise(noise_rate=0.6, n_passages=10, order=order), tools, tmp_path)
    places = {tuple(i for i, d in enumerate(docnos) if d in own[qid]) for qid, docnos in found.items()}
    expected = {"first": {(0, 1, 2, 3)}, "last": {(6, 7, 8, 9)}, "middle": {(3, 4, 5, 6)}}
    if order == "shuffled":
        assert len(places) > 20
    else:
        assert places == expected[order]


def test_the_seed_alone_decides_and_other_topics_do_not(tools: Tools, tmp_path: Path) -> None:
    found, _ = mixed(Noise(n_passages=6), tools, tmp_path)
    again, _ = mixed(Noise(n_passages=6), tools, tmp_path, n_topics=7)
    assert again == {qid: found[qid] for qid in again}
    assert mixed(Noise(n_passages=6, seed=1), tools, tmp_path)[0] != found


def test_hard_distractors_are_the_other_retriever_s_best_without_the_evidence(tools: Tools, tmp_path: Path) -> None:
    options = {"bm25": BM25()}
    noise = Noise(noise_rate=1, n_passages=3, distractors="hard", order="first", options=options)
    found, own = mixed(noise, tools, tmp_path)
    topics, _, chunks = collection()
    deep = BM25(top_k=50)
    run = deep.transformer(chunks, tmp_path / "bm25", tools)(topics)
    for qid, hits in run.groupby("qid", sort=False)["docno"].agg(list).items():
        assert found[str(qid)] == [docno for docno in hits if docno not in own[str(qid)]][:3]


def test_no_distractor_holds_evidence_word_by_word(tools: Tools, tmp_path: Path) -> None:
    texts = {f"d{i}": ("The  same words stand in every document of this corpus.", [(0, 55)]) for i in range(9)}
    texts["other"] = ("Nothing of it.", [(0, 14)])
    topics = pd.DataFrame({"qid": ["q"], "query": ["words"]}, dtype="str")
    evidence = evidence_of(("q", "d0", "same words stand"))
    noise = Noise(noise_rate=1, n_passages=5)
    run = noise.rank_with_evidence(topics, evidence, chunks_of(texts), tmp_path, tools)
    assert run["docno"].tolist() == ["other%p0"]


def test_a_topic_without_evidence_gets_distractors_alone(tools: Tools, tmp_path: Path) -> None:
    topics, evidence, chunks = collection(2)
    noise = Noise(noise_rate=0, n_passages=3)
    run = noise.rank_with_evidence(topics, evidence[evidence["qid"] != "q1"], chunks, tmp_path, tools)
    assert run.groupby("qid").size().to_dict() == {"q0": 3, "q1": 3}


def test_no_topics_have_no_hits_and_blank_evidence_refuses_no_distractor(tools: Tools, tmp_path: Path) -> None:
    topics, evidence, chunks = collection(2)
    blank = evidence.assign(text=evidence["text"].mask(evidence["part"] == 3, " "))
    for one in (Noise(noise_rate=1, n_passages=3), Robustness(1, distractors="random")):
        found = one.rank_with_evidence(topics, blank, chunks, tmp_path, tools)
        assert found.groupby("qid").size().min() >= 3
    assert Noise(n_passages=3).rank_with_evidence(topics.iloc[:0], evidence, chunks, tmp_path, tools).empty


def test_what_is_not_asked_is_no_part_of_the_identity() -> None:
    options = {"bm25": BM25()}
    assert identity(Noise(options=options)) == identity(Noise())
    assert identity(Noise(distractors="hard", options=options)) != identity(Noise())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"noise_rate": 1.5}, "retriever.noise_rate=1.5: allowed are numbers from 0 to 1"),
        ({"n_passages": 0}, "retriever.n_passages=0: allowed are integers from 1, and null (as many"),
        ({"distractors": "soft"}, "retriever.distractors='soft': allowed are random, hard"),
        ({"order": "rank"}, "retriever.order='rank': allowed are shuffled, first, last, middle"),
        ({"seed": -1}, "retriever.seed=-1"),
        (
            {"distractors": "hard", "from_retriever": "x"},
            "retriever.from_retriever: 'x' is no retriever here",
        ),
        ({"distractors": "hard", "options": {"bm25": MLQ()}}, "options.bm25: mlq writes queries of its own"),
    ],
    ids=str,
)
def test_a_bad_value_is_told_in_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as told:
        Noise(**{"options": {"bm25": BM25()}, **given})
    assert says in str(told.value)
    assert "\n" not in str(told.value)


def test_noise_leaves_out_evidence_in_a_job(small: SmallPipelines) -> None:
    noise = [small(retriever=Noise(noise_rate=rate)).retrieved["ir_score"].mean() for rate in (0, 1)]
    assert noise[0] == 1
    assert noise[1] < 0.5
    hard = small(retriever=Noise(noise_rate=1, n_passages=2, distractors="hard", options={"bm25": BM25()}))
    assert hard.frame("run").groupby("qid").size().tolist() == [2, 2, 2]


def test_the_noise_has_the_job_s_seed() -> None:
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        part = instantiate_components(compose("config", overrides=["retriever=noise", "seed=7"])).retriever
    assert part.seed == 7
