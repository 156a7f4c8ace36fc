"""A job around its stages: parts from a config, the record it leaves, and the per-question table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from ragauge.answering import ChatGenerator, NoLLM
from ragauge.answering.judges import ChatJudge, NoJudge
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.contract.record import RECORD_FILE
from ragauge.experiment import job
from ragauge.experiment.job import execute
from ragauge.experiment.request import JobFolder, Request, write_json
from ragauge.experiment.setup import config
from ragauge.experiment.stages.components import instantiate_components, make_pipeline
from ragauge.experiment.stages.pipeline import Sample
from ragauge.findings import per_question as room
from ragauge.findings.per_question import per_question
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.retrievers import BM25
from small_pipeline import SmallPipelines
from sweep_records import job_json

CONF = Path(__file__).resolve().parents[2] / "conf"
CHEAP = ["chunker=none", "tokenizer=words", "llm=none", "judge=none"]

Configure = Callable[..., DictConfig]


@pytest.fixture
def configure(tmp_path: Path) -> Iterator[Configure]:
    """Composes the shipped configuration, with a store of the test's own."""
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield lambda *overrides: compose(
            "config",
            overrides=[
                *CHEAP,
                *([] if any(o.startswith("dataset=") for o in overrides) else ["dataset=sample"]),
                f"store={tmp_path / 's'}",
                *overrides,
            ],
        )


def folder_of(path: Path, sweep: Path | None = None, number: int = 0) -> JobFolder:
    return JobFolder(path, sweep, number, {"retriever": "bm25", "llm": "none"}, ("retriever=bm25",))


def record_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / RECORD_FILE).read_text(encoding="utf-8"))
    return found


# --- parts ------------------------------------------------------------------------------------------------


def test_every_group_becomes_its_part(configure: Configure) -> None:
    found = instantiate_components(configure("retriever=bm25", "retriever.top_k=7"))
    assert identity(found.retriever) == identity(BM25(top_k=7))
    assert (found.llm.kind, found.judge.kind, found.tokenizer.name) == ("none", "none", "words")


def test_a_sample_is_no_part_of_the_judge(configure: Configure) -> None:
    some = configure("judge=lexical", "judge.sample=20")
    assert identity(instantiate_components(some).judge) == identity(
        instantiate_components(configure("judge=lexical")).judge
    )
    assert make_pipeline(Request(some, folder_of(Path("unused")))).sample == Sample(20, "uniform", 0)
    assert make_pipeline(Request(configure("judge=lexical"), folder_of(Path("unused")))).sample is None


def test_a_sample_is_no_part_of_the_llm_and_holds_that_of_the_judge(configure: Configure) -> None:
    some = configure("llm=extractive", "judge=lexical", "llm.sample=20")
    whole = configure("llm=extractive", "judge=lexical")
    assert identity(instantiate_components(some).llm) == identity(instantiate_components(whole).llm)
    assert make_pipeline(Request(some, folder_of(Path("unused")))).answered == Sample(20, "uniform", 0, "llm")
    within = configure("llm=extractive", "judge=lexical", "llm.sample=20", "judge.sample=21")
    with pytest.raises(ConfigError, match=r"judge\.sample=21 is more than llm\.sample=20"):
        make_pipeline(Request(within, folder_of(Path("unused"))))
    with pytest.raises(ConfigError, match=r"llm\.sample=1: allowed are integers of at least 2"):
        make_pipeline(Request(configure("llm=extractive", "llm.sample=1"), folder_of(Path("unused"))))


def test_a_sample_by_prediction_needs_a_predictor(configure: Configure) -> None:
    asked = configure("judge=lexical", "judge.sample=20", "judge.sample_design=neyman")
    with pytest.raises(ConfigError, match="give predictor="):
        make_pipeline(Request(asked, folder_of(Path("unused"))))


def test_a_predictor_reads_what_is_known_before_an_answer(configure: Configure) -> None:
    """Of the job's measures those that look at no answer, too."""
    chosen = "estimate.features=[ir_score,evidence_words,rr]"
    make_pipeline(Request(configure("answers=[em,evidence_words]", chosen), folder_of(Path("unused"))))
    words = "evidence_words"
    for answers, features, allowed in (
        (f"[em,{words}]", "[em]", words),
        ("[em]", f"[{words}]", "rr"),
        ("[em]", "[]", "rr"),
    ):
        asked = configure(f"answers={answers}", f"estimate.features={features}")
        with pytest.raises(ConfigError, match=rf"estimate.features=.*: allowed are ir_score, .*{allowed}"):
            make_pipeline(Request(asked, folder_of(Path("unused"))))


def test_the_config_error_of_a_part_comes_as_it_is(configure: Configure) -> None:
    with pytest.raises(ConfigError) as caught:
        instantiate_components(configure("retriever=bm25", "retriever.top_k=0"))
    assert str(caught.value) == "retriever.top_k=0: allowed are integers from 1"
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["retriever=bm25", "+retriever.colour=red"], "^retriever: .*unexpected keyword argument 'colour'"),
        (["measure._target_=ragauge.measures.Nothing"], r"^measure\._target_=.*Nothing"),
        (["chunker._target_=no_such_package.Chunker"], r"^chunker\._target_=.*no_such_package"),
    ],
)
def test_any_other_error_names_its_group(configure: Configure, overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        instantiate_components(configure(*overrides))


def test_chat_models_of_a_sweep_spend_together_unless_told_otherwise(configure: Configure) -> None:
    cfg = configure("llm=ollama", "judge=ollama", "judge.budget=mine")
    found = instantiate_components(cfg, "the-sweep")
    assert isinstance(found.llm, ChatGenerator)
    assert isinstance(found.judge, ChatJudge)
    assert (found.llm.budget, found.judge.budget) == ("the-sweep", "mine")
    alone = instantiate_components(cfg)
    assert isinstance(alone.llm, ChatGenerator)
    assert alone.llm.budget is None
    assert identity(alone.llm) == identity(found.llm)


@pytest.mark.parametrize("installed", [True, False])
def test_what_auto_stands_for_is_written_into_the_config(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    monkeypatch.setattr(onnx_backend, "installed", lambda: installed)
    cfg = configure("embedder.backend=auto")
    config.settle(cfg)
    assert cfg.embedder.backend == ("onnx" if installed else "torch")
    chosen = configure("embedder.backend=torch")
    config.settle(chosen)
    assert chosen.embedder.backend == "torch"
    foreign = configure("embedder._target_=team.Embedder")
    config.settle(foreign)
    assert foreign.embedder.backend == "auto"


def test_a_pipeline_is_made_of_checked_values(configure: Configure, tmp_path: Path) -> None:
    made = make_pipeline(Request(configure("n_tokens=300", "n_grid=[100,200]"), folder_of(tmp_path)))
    assert made.grid == [100, 200, 300]
    assert made.store.root == tmp_path / "s"
    assert made.made == []
    with pytest.raises(ConfigError, match="n_tokens=-1: allowed are"):
        make_pipeline(Request(configure("n_tokens=-1"), folder_of(tmp_path)))
    with pytest.raises(ConfigError, match=r"dataset\.docs=nowhere: there is no such file"):
        make_pipeline(Request(configure("dataset=jsonl", "dataset.docs=nowhere"), folder_of(tmp_path)))


# --- names ------------------------------------------------------------------------------------------------


def named(cfg: DictConfig, choices: dict[str, str]) -> str:
    return Request(cfg, JobFolder(Path(), None, 0, choices, ())).name


def test_a_run_is_called_by_retriever_budget_and_model(configure: Configure) -> None:
    choices = {"retriever": "mmr", "llm": "extractive"}
    assert named(configure("n_tokens=300"), choices) == "mmr · N=300 · extractive"
    chat = configure("llm=ollama", "llm.chat.model=tiny", "n_tokens=0")
    assert named(chat, {**choices, "llm": "ollama"}) == "mmr · N=0 · tiny"
    assert named(configure("n_tokens=1"), {}) == "? · N=1 · ?"
    more = {**choices, "rewriter": "prf", "reranker": "none", "expander": "parent", "order": "rank"}
    assert named(configure("n_tokens=300"), more) == "mmr + prf + parent · N=300 · extractive"


def test_all_jobs_of_a_sweep_have_one_id_and_other_sweeps_another(tmp_path: Path) -> None:
    sweep = tmp_path / "multirun" / "2024-05-06" / "07-08-09"
    jobs = [folder_of(sweep / str(n), sweep, n) for n in range(3)]
    ids = {folder.sweep_id for folder in jobs}
    assert len(ids) == 1
    (sweep_id,) = ids
    assert sweep_id is not None
    assert sweep_id.startswith("2024-05-06_07-08-09_")
    # Another second, another day, and the same moment at another place.
    day = sweep.parent
    others = [
        day / "07-08-10",
        day.with_name("2024-05-07") / sweep.name,
        tmp_path / "elsewhere" / day.name / sweep.name,
    ]
    assert len({folder_of(other / "0", other).sweep_id for other in (sweep, *others)}) == 4
    assert folder_of(tmp_path).sweep_id is None


# --- the record -------------------------------------------------------------------------------------------


def test_a_config_error_is_recorded_before_any_run_is_made(configure: Configure, tmp_path: Path) -> None:
    cfg = configure("retriever=bm25", "dataset=jsonl", "tracking.uri=sqlite:////nowhere/mlflow.db")
    assert execute(cfg, folder_of(tmp_path)) == 2
    record = record_of(tmp_path)
    assert (record["status"], record["exit_code"]) == ("FAILED", 2)
    assert record["error"] == "dataset.docs is not set: give the path of a file"
    assert "run_id" not in record
    assert record["sweep_id"] is None
    assert not (tmp_path / "s").exists()


def test_an_error_that_nobody_foresaw_is_recorded_with_its_type(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(job, "_run", fail)
    assert execute(configure(), folder_of(tmp_path)) == 1
    assert record_of(tmp_path)["error"] == "RuntimeError: out of order"


def test_a_ledger_that_names_no_variable_of_the_environment_fails_its_job_alone(
    configure: Configure, tmp_path: Path
) -> None:
    cfg = configure("llm=ollama", "llm.ledger=${oc.env:NOT_SET_ANYWHERE}")
    assert execute(cfg, folder_of(tmp_path)) == 2
    record = record_of(tmp_path)
    assert (record["status"], record["exit_code"]) == ("FAILED", 2)
    assert "NOT_SET_ANYWHERE" in record["error"]
    assert record["written_in"] == str(tmp_path.resolve())


def test_a_dry_run_records_what_is_needed_and_tracks_nothing(
    configure: Configure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = ["llm=ollama", "judge=lexical", "retriever=none", "dataset.limit=3", "dry_run=true"]
    cfg = configure(*overrides, "tracking.uri=sqlite:////nowhere/mlflow.db")
    assert execute(cfg, folder_of(tmp_path)) == 0
    record = record_of(tmp_path)
    assert record["status"] == "DRY RUN"
    assert record["needs"]["llm"]["calls"] + record["needs"]["llm"]["calls_cached"] == 3
    assert "llm: 3 calls" in capsys.readouterr().out


def test_a_record_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "new" / "job.json"
    write_json(file, {"name": "bm25 · N=100", "value": np.float64(0.5), "count": np.int64(3)})
    assert json.loads(file.read_text(encoding="utf-8")) == {"name": "bm25 · N=100", "value": 0.5, "count": 3}
    assert "·" in file.read_text(encoding="utf-8")
    assert list(file.parent.iterdir()) == [file]

    before = file.read_bytes()
    with pytest.raises(TypeError):
        write_json(file, {"value": object()})
    assert file.read_bytes() == before

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write_json(file, {"value": 2})
    assert file.read_bytes() == before
    write_json(file, {"value": 2})
    assert json.loads(file.read_text()) == {"value": 2}
    assert list(file.parent.iterdir()) == [file]


# --- the per-question table ---------------------------------------------------------------------------------


def test_the_table_holds_question_truth_context_and_what_came_of_it(small: SmallPipelines) -> None:
    pipeline = small(n_tokens=8)
    table = per_question(pipeline, pipeline.outcomes[::-1])
    assert table["qid"].tolist() == ["q3", "q2", "q1"]
    row = table.set_index("qid").loc["q1"]
    assert row["query"] == "Who built the tower?"
    assert row["answer_reference"] == "Anna"
    assert row["evidence"] == ["Anna built the tower."]
    context = pipeline.contexts.set_index("qid").loc["q1"]
    assert row["context"] == context["text"]
    assert row["context_chars"] == len(context["text"])
    assert row["chunks"].split() == list(context["docnos"])
    assert row["label"] == pipeline.outcomes["label"][0]


def test_the_table_sets_what_came_of_a_question_beside_it(small: SmallPipelines) -> None:
    pipeline = small(n_tokens=8)
    outcomes = pipeline.outcomes.assign(
        label=pd.array([5, None, 1], dtype="Int8"), ir_score=[1.0, 0.256, 0.0], answer=["Anna", "Linz", None]
    )
    table = per_question(pipeline, outcomes)
    # MLflow groups by the first column and compares the second.
    assert list(table.columns[:2]) == ["query", "outcome"]
    assert table["outcome"].tolist() == [
        "right · IR score 1.00: Anna",
        "no verdict · IR score 0.26: Linz",
        "lack of information · IR score 0.00: ",
    ]


def test_what_is_missing_is_null_in_the_table_s_json(small: SmallPipelines) -> None:
    pipeline = small(llm=NoLLM(), judge=NoJudge())
    table = per_question(pipeline, pipeline.outcomes)
    rows = json.loads(table.to_json(orient="records"))
    for row in rows:
        assert (row["answer"], row["answer_error"], row["label"], row["judge_raw"]) == (None,) * 4
        assert row["judge_status"] == "none"


def test_evidence_of_several_parts_stands_in_their_order(small: SmallPipelines) -> None:
    parts = [{"docno": "d1", "text": "It stands"}, {"docno": "d1", "text": "Anna built the tower."}]
    topic = {"qid": "q", "query": "Who built the tower?", "answer": "Anna", "evidence": parts}
    pipeline = small(topics=[topic])
    table = per_question(pipeline, pipeline.outcomes)
    assert table["evidence"].tolist() == [["It stands", "Anna built the tower."]]


@pytest.mark.parametrize(("limit", "there"), [(3, True), (2, False)])
def test_the_table_of_many_topics_leaves_the_contexts_out(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch, limit: int, there: bool
) -> None:
    monkeypatch.setattr(room, "_TABLE_TOPICS", limit)
    pipeline = small()
    table = per_question(pipeline, pipeline.outcomes)
    assert len(table) == 3
    assert ("context" in table) is there
    assert {"context_chars", "chunks", "evidence"} <= set(table)


def test_a_row_names_no_more_than_the_first_chunks(small: SmallPipelines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_TABLE_CHUNKS", 1)
    pipeline = small(n_tokens=16)
    table = per_question(pipeline, pipeline.outcomes).set_index("qid")
    contexts = pipeline.contexts.set_index("qid")
    assert table["chunks"].to_dict() == {qid: docnos[0] for qid, docnos in contexts["docnos"].items()}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"run_id": "a", "exit_code": 0}, "a"),
        ({"run_id": "a", "exit_code": 1}, "a"),
        ({"run_id": "a", "exit_code": 143}, None),
        ({"run_id": "a", "exit_code": 130}, None),
        ({"exit_code": 2}, None),
        (None, None),
    ],
)
def test_a_record_names_the_run_that_ended_unless_it_was_interrupted(
    tmp_path: Path, record: dict[str, Any] | None, expected: str | None
) -> None:
    if record is not None:
        job_json(tmp_path, record)
    assert folder_of(tmp_path, tmp_path.parent).ended_run == expected
