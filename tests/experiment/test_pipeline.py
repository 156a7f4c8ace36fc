"""The stages of a job: each made once, made again for what can change it, and nothing joined by position."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from quoting import Quoting
from ragauge.answering import NoLLM
from ragauge.answering.extractive import LACK_OF_INFORMATION
from ragauge.answering.judges import LexicalJudge, NoJudge
from ragauge.contract import frames
from ragauge.contract.answering import Generator, Judge
from ragauge.contract.component import ChatModel, Tokenizer, Tools
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.errors import ConfigError, DataError, MissingError
from ragauge.contract.identity import runtime
from ragauge.contract.replies import Reply
from ragauge.contract.retrieval import Retriever
from ragauge.contract.stages import Read, Reads
from ragauge.contract.usage import Usage, usage_columns
from ragauge.estimate.topic_samples import Sample
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.experiment.stages.plan import file_digest
from ragauge.measures import Substring, Words, rankings
from ragauge.retrieval.chunkers import NoChunker, TokenChunker
from ragauge.retrieval.retrievers import BM25, Hybrid, NoRetrieval, Oracle, Sim
from ragauge.store import _parquet
from small_pipeline import DOCS, TOPICS, SmallPipelines, replaced

STAGES = (
    "dataset", "located", "chunks", "index", "run", "context", "scores", "answers", "verdicts", "classics",
)  # fmt: skip


def made(of: Pipeline) -> set[str]:
    """Runs every stage; those that were not in the store."""
    assert len(of.outcomes) == len(of.frame("topics"))
    assert of.frame("ranking_values")["measure"].nunique() == len(rankings.CLASSICS)
    return set(of.made)


def made_after(small: SmallPipelines, before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """The stages that a job makes after another one in the same store."""
    assert made(small(**before)) == set(STAGES)
    return made(small(**after))


# --- fakes ------------------------------------------------------------------------------------------------


def replies_frame(keys: pd.DataFrame, replies: Sequence[Reply]) -> dict[str, Any]:
    """The columns that answers and verdicts share."""
    return {
        "qid": keys["qid"].to_numpy(),
        "n_tokens": keys["n_tokens"].to_numpy(),
        "status": ["missing" if r.text is None else "ok" for r in replies],
        **{n: c for n, c in usage_columns([r.usage for r in replies]).items() if n not in ("calls", "usage_unknown")},
        "cached": [r.cached for r in replies],
    }


@dataclass(frozen=True)
class FakeChat(ChatModel, Generator):
    """Answers `<qid> has <context>`, and nothing to the topics of `failing`; `asked` gathers all prompts.

    `reverse` returns the rows in another order than they were asked for.
    """

    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    asked: list[str] = runtime(None)
    failing: tuple[str, ...] = runtime(())
    reverse: bool = False

    def ask(self, prompts: Sequence[str], store: Any, what: str, **how: Any) -> list[Reply]:
        self.asked.extend(prompts)
        return [
            Reply(None, "no reply") if p.startswith(self.failing) else Reply(p, None, Usage(10, 2, 0.5, 0.25))
            for p in prompts
        ]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        prompts = [f"{q} has {text}" for q, text in zip(contexts["qid"], contexts["text"], strict=True)]
        replies = self.ask(prompts, tools.store, "answers")
        columns = replies_frame(contexts, replies)
        texts = pd.array([r.text for r in replies], dtype="str")
        frame = pd.DataFrame({**columns, "answer": texts, "error": [r.error for r in replies]})
        frame["error"] = frame["error"].astype("str")
        return frame[::-1] if self.reverse else frame


@dataclass(frozen=True)
class FakeJudge(Judge):
    """The class that stands after a qid in `labels`; none for the others. Rows in reverse order."""

    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    labels: Mapping[str, int]

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        labels = [self.labels.get(qid) for qid in answers["qid"]]
        replies = [Reply(None if label is None else str(label)) for label in labels]
        frame = pd.DataFrame(replies_frame(answers, replies)).assign(
            label=pd.array(labels, dtype="Int8"), raw=pd.array([r.text for r in replies], dtype="str")
        )
        return frame[::-1]


@dataclass(frozen=True)
class FakeQueries(Retriever):
    """Retrieves the first chunk for every topic; `origins` say who wrote a topic's queries."""

    uses: ClassVar[frozenset[str]] = frozenset()
    reorder_after_cut: ClassVar[bool] = False

    top_k: int = 1
    origins: tuple[str, ...] = runtime(())
    asked: list[str] = runtime(None)

    def index_identity(self) -> Mapping[str, Any]:
        return {"class": "none"}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """There is none."""

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            self.asked.extend(topics["qid"])
            return pd.DataFrame(
                {
                    "qid": topics["qid"],
                    "docno": chunks["docno"].iloc[0],
                    "score": 1.0,
                    "rank": 0,
                    "queries": self.origins,
                }
            )

        return rank


# --- made once --------------------------------------------------------------------------------------------


def test_every_stage_is_made_once_and_read_by_a_second_pipeline(small: SmallPipelines) -> None:
    first, second = small(), small()
    assert made(first) == set(STAGES)
    assert len(first.made) == len(first.store.made) == len(STAGES)
    assert made(second) == set(second.store.made) == set()
    assert set(first.seconds) == set(second.seconds) == set(STAGES)
    for stage in STAGES[:6]:
        entries = [p.entry(stage) for p in (first, second)]
        assert entries[0].digest == entries[1].digest
        for name in entries[0].manifest["frames"]:
            pd.testing.assert_frame_equal(entries[0].frame(name), entries[1].frame(name))
    pd.testing.assert_frame_equal(first.outcomes, second.outcomes)
    for name in ("answers", "verdicts", "contexts"):
        frames.check(name, second.frame(name))


def test_of_a_sample_of_topics_no_other_is_answered_and_all_are_scored(small: SmallPipelines) -> None:
    asked: list[str] = []
    judge = FakeJudge({"q1": 5, "q2": 4, "q3": 1})
    some = replace(small(llm=FakeChat(asked), judge=judge), answered=Sample(2, of="llm"))
    rows = some.outcomes.set_index("qid")
    chosen = rows.index[rows["judged"]]
    assert sorted(prompt.split()[0] for prompt in asked) == sorted(chosen)
    assert len(chosen) == len(some.answers) == len(some.verdicts) == 2
    assert rows["ir_score"].notna().all()
    (other,) = rows.index.difference(chosen)
    assert rows.loc[other, ["answer", "label"]].isna().all()
    assert rows.loc[other, ["answer_status", "judge_status"]].eq("not sampled").all()
    # The judge's own sample is within, and a choice of its own leaves the answers as they are.
    within = replace(
        small(llm=FakeChat(asked), judge=judge, max_missing_share=0.0), answered=Sample(3, of="llm"), sample=Sample(2)
    )
    assert len(within.answers) == 3
    assert set(within.verdicts["qid"]) == set(chosen)


def test_the_numbers_of_a_small_job_by_hand(small: SmallPipelines) -> None:
    job = small(n_tokens=4, n_grid=(2,))
    assert job.grid == [2, 4]
    # The chunks of d1 are its two sentences, but for the tokens that 6 leave over.
    chunks = job.frame("chunks")
    assert chunks["text"].head(2).tolist() == ["Anna built the tower. It", "stands high above Graz."]
    # q1's best chunk has the evidence in 5 tokens, of which the full stop is cut.
    assert job.contexts["text"][0] == "Anna built the tower"
    scores = job.frame("scores").set_index(["qid", "n_tokens"])["value"]
    assert scores["q1", 4] == pytest.approx(len("Anna built the tower") / len("Anna built the tower."))
    assert scores["q1", 2] == pytest.approx(len("Anna built") / len("Anna built the tower."))
    outcomes = job.outcomes.set_index("qid")
    assert outcomes.loc["q1", "answer"] == "Anna built the tower"
    assert outcomes.loc["q1", "answer_reference"] == "Anna"
    assert outcomes.loc["q1", "label"] == 5
    assert outcomes.loc["q1", "ir_score"] == scores["q1", 4]
    assert set(outcomes["n_tokens"]) == {4}


# --- what a change makes again ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"retriever": BM25()}, {"retriever": BM25(threads=2)}),
        ({}, {"max_missing_share": 0.5}),
    ],
    ids=["nothing and other paths", "threads", "max_missing_share"],
)
def test_what_cannot_change_the_output_makes_nothing_again(small: SmallPipelines, before, after) -> None:
    assert made_after(small, before, after) == set()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"retriever": Sim(top_k=1), "n_tokens": 16},
            {"retriever": Sim(top_k=3), "n_tokens": 16},
            "run context scores classics answers verdicts",
        ),
        (
            {"n_tokens": 16},
            {"n_tokens": 16, "chunker": NoChunker()},
            "chunks index run context scores classics answers verdicts",
        ),
        ({}, {"n_tokens": 16}, "answers verdicts"),
        ({}, {"n_tokens": 12}, "context scores answers verdicts"),
        ({}, {"measure": Words()}, "scores"),
        ({}, {"llm": Quoting(threshold=1.0)}, "answers verdicts"),
        # Of a short context all sentences are the answer: equal answers have the same verdicts.
        ({}, {"llm": Quoting(n_sentences=9, threshold=-1.0)}, "answers"),
        ({}, {"judge": LexicalJudge(cover=1.0)}, "verdicts"),
    ],
    ids=["top_k", "chunker", "n_tokens of the grid", "n_tokens", "measure", "llm", "equal answers", "judge"],
)
def test_a_changed_parameter_makes_again_what_depends_on_it(
    small: SmallPipelines, before, after, expected: str
) -> None:
    assert made_after(small, before, after) == set(expected.split())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"docs": replaced(DOCS, 0, text="Anna built the tower in May. It stands in Graz.")}, set(STAGES)),
        # A title is in no chunk, and equal chunks are the same chunks.
        ({"docs": replaced(DOCS, 0, title="A tower")}, {"dataset", "located", "chunks"}),
        (
            {"topics": replaced(TOPICS, 0, query="Which rivers?")},
            set(STAGES) - {"located", "chunks", "index"},
        ),
        ({"topics": replaced(TOPICS, 0, answer="Anna herself")}, {"dataset", "verdicts"}),
        (
            {"topics": replaced(TOPICS, 0, evidence=[{"docno": "d1", "text": "It stands high"}])},
            {"dataset", "located", "scores", "classics", "verdicts"},
        ),
        ({"topics": TOPICS[:2]}, set(STAGES) - {"chunks", "index"}),
    ],
    ids=["text", "title", "question", "reference answer", "evidence", "fewer topics"],
)
def test_changed_data_make_again_what_reads_them(small: SmallPipelines, data, expected: set[str]) -> None:
    assert made_after(small, {}, data) == expected


def test_a_shared_model_counts_where_a_part_uses_it_and_nowhere_else(small: SmallPipelines) -> None:
    other = type(small.embedder)(dimensions=32)  # type: ignore[call-arg]
    # BM25 does not embed, the extractive answers do.
    after_bm25 = made_after(small, {"retriever": BM25()}, {"retriever": BM25(), "embedder": other})
    assert after_bm25 - {"verdicts"} == {"answers"}
    made(small())
    after_sim = made(small(embedder=other))
    assert {"index", "run"} <= after_sim
    assert "chunks" not in after_sim


def test_a_tokenizer_enters_the_chunks_only_of_chunkers_that_use_it(small: SmallPipelines) -> None:
    @dataclass(frozen=True)
    class Letters(Tokenizer):
        name: ClassVar[str] = "letters"

        def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
            return [np.array([[i, i + 1] for i in range(len(t))]).reshape(-1, 2) for t in texts]

    whole = {"chunker": NoChunker()}
    expected = {"context", "scores", "answers", "verdicts"}
    assert made_after(small, whole, {**whole, "tokenizer": Letters()}) == expected
    assert "chunks" in made(small(tokenizer=Letters()))


def test_a_part_that_uses_an_unknown_model_is_an_error(small: SmallPipelines) -> None:
    @dataclass(frozen=True)
    class Odd(TokenChunker):
        uses: ClassVar[frozenset[str]] = frozenset({"oracle"})

    with pytest.raises(TypeError, match=r"uses \['oracle'\]; shared models are \['chat', 'embedder'"):
        _ = small(chunker=Odd()).frame("chunks")


def test_a_dataset_without_topics_is_refused(small: SmallPipelines) -> None:
    source = small.source()
    data = source.load()

    @dataclass(frozen=True)
    class Empty(Source):
        name: ClassVar[str] = "empty"

        def files(self) -> Mapping[str, Path]:
            return source.files()

        def load(self) -> Dataset:
            return replace(data, topics=data.topics[:0])

    with pytest.raises(ConfigError, match="dataset empty: no topic is left"):
        _ = small(dataset=Empty()).frame("topics")


@pytest.mark.parametrize("batch_rows", [50_000, 2])
def test_documents_without_a_chunk_are_refused_and_not_scored_as_0(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    class Silent(NoChunker):
        def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
            return super().chunk(docs.assign(text=" "), tools)

    monkeypatch.setattr(_parquet, "BATCH_ROWS", batch_rows)
    for _ in range(2):
        with pytest.raises(DataError, match=r"^dataset jsonl: Silent makes no chunk of its 4 documents: at"):
            _ = small(chunker=Silent()).frame("chunks")


def test_skipped_rows_are_kept_with_their_reasons(small: SmallPipelines) -> None:
    source = replace(small.source(topics=replaced(TOPICS, 1, answer="")), on_error="skip")
    skipped = small(dataset=source).frame("skipped")["skipped"].tolist()
    assert len(skipped) == 1
    assert "'q2'" in skipped[0]
    assert "reference answer is empty" in skipped[0]


def test_a_changed_file_has_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text("one")
    assert file_digest(file) == hashlib.sha256(b"one").hexdigest()
    file.write_text("two")  # of the same size
    os.utime(file, ns=(1, 1))
    assert file_digest(file) == hashlib.sha256(b"two").hexdigest()


# --- answers and verdicts ---------------------------------------------------------------------------------


def test_an_incomplete_frame_of_answers_is_not_stored_and_asked_for_again(small: SmallPipelines) -> None:
    asked: list[str] = []
    llm = FakeChat(asked, failing=("q2",))
    assert isinstance(llm, ChatModel)
    first = small(llm=llm)
    assert first.answers["status"].tolist() == ["ok", "missing", "ok"]
    assert first.answers["answer"].isna().tolist() == [False, True, False]
    assert first.answers["error"][1] == "no reply"
    assert "answers" in first.made
    assert not (first.store.root / "answers").exists()

    # All is asked for again; what of it has to be paid is the generator's business.
    second = small(llm=replace(llm, failing=()))
    assert second.answers["status"].tolist() == ["ok"] * 3
    assert [p[:2] for p in asked] == ["q1", "q2", "q3"] * 2
    assert second.answers["cost_usd"].sum() == 1.5
    assert second.made[-1] == "answers"

    third = small(llm=llm)
    assert third.answers["status"].tolist() == ["ok"] * 3
    assert len(asked) == 6
    assert third.made == []


def test_answers_from_the_store_are_cached_and_cost_nothing(small: SmallPipelines) -> None:
    llm = FakeChat([])
    fresh, stored = small(llm=llm).answers, small(llm=llm).answers
    assert not fresh["cached"].any()
    assert fresh["seconds"].tolist() == [0.25] * 3
    assert stored["cached"].all()
    assert stored["cost_usd"].tolist() == stored["seconds"].tolist() == [0] * 3
    assert stored["prompt_tokens"].tolist() == [10] * 3
    pd.testing.assert_series_equal(stored["answer"], fresh["answer"])


def test_too_many_missing_answers_fail_with_their_count(small: SmallPipelines) -> None:
    llm = FakeChat([], failing=("q1", "q3"))
    with pytest.raises(
        MissingError, match=r"2 of 3 answers are missing, more than max_missing_share=0\.5 allows"
    ) as caught:
        _ = small(llm=llm, max_missing_share=0.5).answers
    assert caught.value.exit_code == 4
    assert small(llm=llm, max_missing_share=2 / 3).answers["answer"].notna().sum() == 1


def test_too_many_missing_verdicts_fail_and_few_stay_as_missing(small: SmallPipelines) -> None:
    judge = FakeJudge({"q1": 5})
    with pytest.raises(MissingError, match="2 of 3 verdicts are missing"):
        _ = small(judge=judge, max_missing_share=0.5).verdicts
    job = small(judge=judge)
    assert job.outcomes["label"].tolist() == [5, pd.NA, pd.NA]
    assert not (job.store.root / "verdicts").exists()


@pytest.mark.parametrize("judge", [NoJudge(), LexicalJudge(), FakeJudge({})])
def test_without_llm_nothing_is_missing(small: SmallPipelines, judge: Any) -> None:
    job = small(llm=NoLLM(), judge=judge, max_missing_share=0.0)
    assert job.outcomes["answer"].isna().all()
    assert job.outcomes["label"].isna().all()


def test_without_judge_verdicts_are_not_missing(small: SmallPipelines) -> None:
    job = small(judge=NoJudge(), max_missing_share=0.0)
    assert job.outcomes["judge_status"].tolist() == ["none"] * 3


def test_verdicts_made_elsewhere_are_checked_and_taken(small: SmallPipelines) -> None:
    made_there = small(judge=FakeJudge({"q1": 5, "q2": 4, "q3": 1})).verdicts
    job = small(max_missing_share=0.0)
    with pytest.raises(DataError, match="verdicts frame from a judge"):
        job.set_verdicts(made_there.assign(label=6))
    with pytest.raises(MissingError, match="3 of 3 verdicts"):
        job.set_verdicts(made_there.assign(label=pd.array([None] * 3, dtype="Int8")))
    job.set_verdicts(made_there)
    assert job.outcomes.set_index("qid")["label"].to_dict() == {"q1": 5, "q2": 4, "q3": 1}
    assert "verdicts" not in job.made


# --- a sample of topics to judge --------------------------------------------------------------------------


def test_the_sample_depends_on_topics_and_seed_alone(small: SmallPipelines) -> None:
    topics = [{**TOPICS[0], "qid": f"q{i}", "query": f"Who built the tower {i}?"} for i in range(12)]
    jobs = [
        small(topics=topics),
        small(topics=topics, n_tokens=4, retriever=Sim(top_k=1)),
        small(topics=topics),
    ]
    for job, seed in zip(jobs, (0, 0, 1), strict=True):
        job.sample = Sample(5, seed=seed)
    first, second, other = (set(job.sampled.loc[job.sampled["judged"], "qid"]) for job in jobs)
    assert first == second != other
    assert len(first) == 5


def test_a_choice_made_elsewhere_decides_what_is_judged(small: SmallPipelines) -> None:
    job = small(judge=FakeJudge({"q1": 5, "q2": 4, "q3": 1}))
    job.sample = Sample(2, "neyman")
    job.set_sampled(pd.DataFrame({"qid": ["q3", "q1", "q2"], "stratum": [0, 1, 1], "judged": [True, False, True]}))
    labels = job.outcomes.set_index("qid")["label"]
    assert labels.dropna().to_dict() == {"q2": 4, "q3": 1}
    assert job.outcomes.set_index("qid")["stratum"].to_dict() == {"q1": 1, "q2": 1, "q3": 0}


@pytest.mark.parametrize(("n", "design"), [(1, "uniform"), (0, "uniform"), (True, "uniform"), (5, "best")])
def test_a_sample_out_of_range_is_refused(n: int, design: str) -> None:
    with pytest.raises(ConfigError, match=r"judge\.sample"):
        Sample(n, design)


# --- outcomes ---------------------------------------------------------------------------------------------


def test_outcomes_are_joined_by_topic_and_not_by_position(small: SmallPipelines) -> None:
    labels = {"q1": 5, "q2": 4, "q3": 1}
    job = small(llm=FakeChat([], reverse=True), judge=FakeJudge(labels))
    assert job.answers["qid"].tolist() == ["q3", "q2", "q1"]
    outcomes = job.outcomes
    assert outcomes["qid"].tolist() == ["q1", "q2", "q3"]
    scores = job.frame("scores").query("n_tokens == 8").set_index("qid")["value"]
    contexts = job.contexts.set_index("qid")["text"]
    for row in outcomes.itertuples():
        assert row.answer == f"{row.qid} has {contexts[row.qid]}"
        assert row.label == labels[row.qid]
        assert row.judge_raw == str(labels[row.qid])
        assert row.ir_score == scores[row.qid]
    assert outcomes["answer_reference"].tolist() == ["Anna", "Linz", "Snow"]


def test_topics_without_hits_score_0_and_stay(small: SmallPipelines) -> None:
    job = small(topics=replaced(TOPICS, 1, query="???"))
    assert set(job.frame("run")["qid"]) == {"q1", "q3"}
    scores = job.frame("scores")
    assert scores.groupby("qid")["value"].max()["q2"] == 0
    assert scores.groupby("n_tokens").size().to_dict() == {4: 3, 8: 3, 16: 3}
    outcomes = job.outcomes.set_index("qid")
    assert outcomes.loc["q2", "ir_score"] == 0
    assert outcomes.loc["q2", "answer"] == LACK_OF_INFORMATION
    assert outcomes.loc["q2", "label"] == 1
    # The mean over three topics, of which two have their document at rank 1.
    assert rankings.ranking_means(job.frame("ranking_values"))["p_at_1"] == pytest.approx(2 / 3)
    assert outcomes["p_at_1"].tolist() == [1, 0, 1]


def test_no_retrieval_scores_0_everywhere(small: SmallPipelines) -> None:
    job = small(retriever=NoRetrieval())
    assert job.outcomes["ir_score"].tolist() == [0, 0, 0]
    assert job.contexts["text"].tolist() == [""] * 3
    assert not job.frame("ranking_values")["value"].any()


def test_evidence_that_no_document_holds_leaves_the_document_measures_out(small: SmallPipelines) -> None:
    job = small(topics=[{**t, "evidence": [f"{p['text']} Or so." for p in t["evidence"]]} for t in TOPICS])
    assert job.frame("ranking_values").empty
    assert [info for info in job.answer_measures if info.of == "ranking"] == []
    assert "p_at_1" not in job.outcomes
    assert job.outcomes["ir_score"].max() > 0


# --- queries that an LLM failed to write -------------------------------------------------------------------


def test_a_run_with_failed_queries_is_kept_aside_and_asked_for_again(small: SmallPipelines) -> None:
    asked: list[str] = []
    part = FakeQueries(origins=("llm", "question", "llm"), asked=asked)
    first, second = small(retriever=part), small(retriever=part)
    assert first.outcomes["ir_score"][0] > 0
    assert first.entry("run").made
    assert second.entry("run").made
    assert asked == ["q1", "q2", "q3"] * 2
    assert "incomplete" in first.entry("run").manifest["params"]
    assert first.entry("run").digest != second.entry("run").digest
    # Both are entries of the store: what was logged of a run can be read again.
    assert all(p.store.find(p.entry("run").key) is not None for p in (first, second))

    third = small(retriever=replace(part, origins=("llm",) * 3))
    assert third.entry("run").made
    assert "incomplete" not in third.entry("run").manifest["params"]
    assert not small(retriever=part).entry("run").made
    assert len(asked) == 9


def test_a_run_whose_queries_are_made_by_rules_is_stored(small: SmallPipelines) -> None:
    part = FakeQueries(origins=("rules",) * 3, asked=[])
    assert small(retriever=part).entry("run").made
    assert not small(retriever=part).entry("run").made


# --- retrievers over others, and the evidence --------------------------------------------------------------


def test_a_hybrid_shares_the_stored_indexes_of_its_arms(small: SmallPipelines) -> None:
    bm25, sim = BM25(), Sim()
    alone = {name: small(retriever=part).entry("index") for name, part in (("bm25", bm25), ("sim", sim))}
    job = small(retriever=Hybrid(options={"bm25": bm25, "sim": sim}))
    assert not job.frame("run").empty
    assert job.made.count("index") == 1  # the folder of both
    assert {name: job.entry(f"index:{name}").digest for name in alone} == {
        name: entry.digest for name, entry in alone.items()
    }
    folders = alone["sim"].path, job.entry("index").path / "sim"
    assert len({(folder / "vectors.npy").stat().st_ino for folder in folders}) == 1
    assert not (job.entry("index").path / "sim" / "key.json").exists()
    # Another job finds all of it, and lists every index.
    again = small(retriever=Hybrid(options={"bm25": bm25, "sim": sim}))
    assert not again.entry("run").made
    # What its indexes took whoever made them is that of all three.
    took = [again.entry(label).seconds_made for label in ("index:bm25", "index:sim", "index")]
    assert min(took) > 0
    assert again.making["index"].seconds == pytest.approx(sum(took))
    assert {line.name: line.stored for line in again.lines() if line.name.startswith("index")} == {
        "index:bm25": True, "index:sim": True, "index": True,
    }  # fmt: skip


def test_an_approximate_search_says_its_recall_and_an_exact_one_does_not(small: SmallPipelines) -> None:
    job = small(retriever=Sim(index="hnsw"))
    assert job.frame("ann").to_numpy().tolist() == [["ann_recall_at_10", 1.0]]
    assert "ann" in [stage.name for stage in job.stages]
    assert "ann" not in [stage.name for stage in small(retriever=Sim()).stages]
    hybrid = small(retriever=Hybrid(options={"bm25": BM25(), "sim": Sim(index="hnsw")}))
    assert hybrid.frame("ann")["value"].tolist() == [1.0]


def test_the_oracle_finds_all_evidence(small: SmallPipelines) -> None:
    assert small(retriever=Oracle()).retrieved["ir_score"].tolist() == [1.0] * 3


# --- seconds ----------------------------------------------------------------------------------------------


def test_a_plan_says_what_is_stored_and_what_a_key_waits_for(small: SmallPipelines) -> None:
    cold = {line.name: line for line in small().lines()}
    assert cold["dataset"].key is not None
    assert {line.waits_for for name, line in cold.items() if name != "dataset"} >= {"dataset", "located", "chunks"}
    assert small().plan_in_words().startswith("stages: 0 stored; made dataset; then located, chunks, index, run, ")
    small().frame("run")
    job = small()
    lines = {line.name: line for line in job.lines()}
    assert [name for name, line in lines.items() if line.stored] == ["dataset", "chunks", "index", "run"]
    # Of a frame that is never stored, what it is made of is waited for.
    waits = {name: lines[name].waits_for for name in ("located", "context", "scores", "answers", "verdicts")}
    assert waits == {"located": None, "context": None, "scores": "context", "answers": "context", "verdicts": "located"}
    assert job.plan_in_words().startswith("stages: 4 stored; made located, context; then scores, ")
    assert job.made == job.store.made == []
    # The keys of a plan are those under which the job stores.
    planned = lines["context"].key
    assert planned is not None
    assert job.entry("context").digest == planned.digest
    made(job)
    job.frame("evidence_trail")
    job.frame("floors")
    whole = list(small().lines())
    assert {line.stored for line in whole} == {True, None}
    assert {line.waits_for for line in whole} == {None}


def test_a_stage_sees_the_columns_that_it_declares_and_nothing_else(small: SmallPipelines) -> None:
    seen: list[list[str]] = []

    class Noting(Quoting):
        def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
            seen.append([*topics.columns, *contexts.columns])
            return super().answer(topics, contexts, tools)

    assert len(small(llm=Noting(threshold=-1.0)).answers) == 3
    assert seen == [["qid", "query", "qid", "n_tokens", "text"]]
    nothing = Reads((Read("run"),), lambda read: pd.DataFrame(), lambda read: Path())
    with pytest.raises(KeyError, match="'run@reranked', which its `reads` do not name"):
        _ = nothing[Read("run", before="reranked")]
    with pytest.raises(KeyError, match="'index/', which its"):
        nothing.folder("index")


def test_the_stages_take_no_longer_than_the_job(small: SmallPipelines) -> None:
    @dataclass(frozen=True)
    class Slow(TokenChunker):
        def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
            time.sleep(0.05)
            return super().chunk(docs, tools)

    job = small(chunker=Slow(size=6, overlap=0))
    start = time.perf_counter()
    made(job)
    took = time.perf_counter() - start
    assert job.seconds["chunks"] >= 0.05
    assert sum(job.seconds.values()) <= took


def test_a_stage_that_fails_leaves_its_time_and_no_entry(small: SmallPipelines) -> None:
    @dataclass(frozen=True)
    class Broken(TokenChunker):
        def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
            raise DataError("no chunks")

    job = small(chunker=Broken())
    with pytest.raises(DataError, match="no chunks"):
        _ = job.entry("run")
    assert set(job.seconds) == {"dataset", "chunks"}
    assert job.made == ["dataset"]
    assert not (job.store.root / "chunks").exists()


def test_keys_say_in_clear_what_was_hashed_and_name_no_path(small: SmallPipelines) -> None:
    job = small()
    made(job)
    files = list(job.store.root.glob("*/*/key.json"))
    assert len(files) == len(STAGES)
    for file in files:
        key = json.loads(file.read_text())
        assert key["stage"] == file.parts[-3]
        assert str(small.folder) not in json.dumps(key)


def test_features_are_known_before_any_llm_is_asked(small: SmallPipelines) -> None:
    pipeline = small(n_tokens=8)
    features = pipeline.retrieved.set_index("qid")
    contexts = pipeline.contexts.set_index("qid")["text"]
    parts = pipeline.frame("part_scores").query("n_tokens == 8").groupby("qid")["value"]
    run = pipeline.frame("run").set_index(["qid", "rank"])["score"]
    assert set(features.index) == set(pipeline.frame("topics")["qid"])
    for topic in pipeline.frame("topics").itertuples():
        row = features.loc[topic.qid]
        assert row["evidence_best"] == parts.max()[topic.qid]
        assert row["evidence_worst"] == parts.min()[topic.qid]
        assert row["answer_in_context"] == float(topic.answer.casefold() in contexts[topic.qid].casefold())
        assert row["score_gap"] == pytest.approx(run[topic.qid, 0] - run[topic.qid, 1])
        assert 0 < row["n_used"] <= 8


def test_answers_that_lose_a_topic_are_an_error(small: SmallPipelines, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = small()
    whole = type(pipeline.components.llm).answer
    monkeypatch.setattr(
        type(pipeline.components.llm), "answer", lambda self, *arguments: whole(self, *arguments).iloc[1:]
    )
    with pytest.raises(DataError, match=r"answers frame: 1 topic\(s\) missing or unknown, such as 'q1'"):
        _ = pipeline.answers


# --- the floor of the score ---------------------------------------------------------------------------------


def test_the_floor_is_made_once_for_all_retrievers_budgets_and_corrections(small: SmallPipelines) -> None:
    first = small()
    means = first.frame("floor_means")
    assert means["n_tokens"].tolist() == [4, 8, 16]
    assert means["value"].between(0, 1).all()
    assert first.made.count("floor") == 1
    for other in (
        small(retriever=Sim(top_k=1)),
        small(n_tokens=16),
        small(measure=Substring(correct="floor")),
    ):
        assert "floor" not in made_with_floor(other)
    for another in (
        small(n_tokens=12),
        small(chunker=NoChunker()),
        small(measure=Words()),
        small(measure=Substring(fold=("case",))),
    ):
        assert "floor" in made_with_floor(another)


def made_with_floor(of: Pipeline) -> list[str]:
    """The stages that a job made for its scores and their floor."""
    of.frame("scores")
    of.frame("floor_means")
    return of.made


def test_corrected_scores_are_the_raw_ones_less_their_floor(small: SmallPipelines) -> None:
    plain, job = small(), small(measure=Substring(correct="floor"))
    raw, floor = plain.frame("part_scores"), plain.frame("floors")
    both = raw.merge(floor, on=["qid", "n_tokens", "part"], suffixes=("", "_floor"))
    expected = ((both["value"] - both["value_floor"]) / (1 - both["value_floor"])).clip(0, 1)
    found = job.frame("part_scores")
    np.testing.assert_allclose(found["value"], expected)
    assert "scores" not in job.made  # the raw scores are those of the other job
    at_8 = job.frame("scores").query("n_tokens == 8").set_index("qid")["value"]
    assert job.retrieved.set_index("qid")["ir_score"].to_dict() == at_8.to_dict()
    assert (at_8 <= plain.frame("scores").query("n_tokens == 8").set_index("qid")["value"]).all()


def test_defaults_of_fold_and_correct_are_in_no_key(small: SmallPipelines) -> None:
    assert small().key("scores").params == {"component": {"component": "substring", "version": 1}}
    folded = small(measure=Substring(fold=("case",))).key("scores")
    assert folded.params == {"component": {"component": "substring", "version": 1, "fold": ["case"]}}


def test_a_job_with_another_setting_has_made_nothing_yet(small: SmallPipelines) -> None:
    job = small()
    job.frame("chunks")
    assert "chunks" in job.made
    other = replace(job, n_tokens=4)
    assert (other.made, other.seconds, other.making) == ([], {}, {})
