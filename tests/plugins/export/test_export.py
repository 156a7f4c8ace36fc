"""A job as a file of samples, and what cannot be written so; what reads the file is tested with recorded systems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.export.command import main
from ragauge.plugins.export.samples import write_samples
from sweep_records import job_json

DIGEST = "1" * 64

# A job at N = 5 of a sweep that has contexts of 9 tokens, too; the rows of each table stand in an order of their own.
TOPICS = [
    {"qid": "q10", "query": "Who?", "answer": "Anna", "answers": ["Anna", "Ann", "A."], "unanswerable": False,
     "kind": "fact", "turn": 1.0, "history": []},
    {"qid": "q2", "query": "Wännn?", "answer": None, "answers": None, "unanswerable": True, "kind": None,
     "turn": 2.0, "history": ["Who?", "Anna"]},
    {"qid": "q3", "query": "Why?", "answer": "so", "answers": [], "unanswerable": False, "kind": "list",
     "turn": None, "history": []},
    {"qid": "q4", "query": "Left out?", "answer": "x", "answers": [], "unanswerable": False, "kind": "fact",
     "turn": None, "history": []},
    {"qid": "q5", "query": "Nothing?", "answer": None, "answers": [], "unanswerable": False, "kind": "fact",
     "turn": None, "history": []},
]  # fmt: skip
EVIDENCE = [  # qid, part, docno, text: some name no document, and some no text
    ("q3", 1, None, "late"), ("q10", 0, "d1", "Anna did."), ("q3", 0, "d4", "early"), ("q3", 2, "d4", None),
    ("q2", 0, "d7", None),
]  # fmt: skip
LAYOUTS = [  # a layout's text is its chunks with one space between; `starts` says where each begins
    ("q2", "When it was.", ["d7"], [0]),
    ("q10", "Anna did. Bob too. And Cy.", ["d1", "d2", "d3"], [0, 10, 19]),
    ("q3", "So it is.", ["d4"], [0]),
    ("q4", "left", ["d5"], [0]),
    ("q5", "", [], []),
]
PREFIXES = [  # n_tokens, and of the context at this budget: its characters and its chunks
    ("q5", 5, 0, 0), ("q10", 9, 26, 3), ("q10", 5, 13, 2), ("q2", 5, 12, 1), ("q3", 9, 9, 1), ("q3", 5, 5, 1),
    ("q4", 5, 4, 1), ("q2", 9, 12, 1), ("q4", 9, 4, 1), ("q5", 9, 0, 0),
]  # fmt: skip
OUTCOMES = [
    ("q5", "none", "ok", None, None),
    ("q4", None, "not sampled", None, None),
    ("q3", None, "failed", "HTTP 500", None),
    ("q2", "I do not know.", "ok", "an old error", 1),
    ("q10", "Anna", "ok", None, 5),
]
SAMPLES = [
    {"qid": "q10", "user_input": "Who?", "retrieved_contexts": ["Anna did.", "Bob"], "docnos": ["d1", "d2"],
     "response": "Anna", "reference": "Anna", "references": ["Ann", "A."], "reference_contexts": ["Anna did."],
     "label": 5, "kind": "fact", "turn": 1.0},
    {"qid": "q2", "user_input": "Wännn?", "history": ["Who?", "Anna"], "retrieved_contexts": ["When it was."],
     "docnos": ["d7"], "response": "I do not know.", "unanswerable": True, "reference_contexts": [], "label": 1,
     "turn": 2.0},
    {"qid": "q3", "user_input": "Why?", "retrieved_contexts": ["So it"], "docnos": ["d4"], "response": None,
     "error": "HTTP 500", "reference": "so", "reference_contexts": ["early", "late"], "kind": "list"},
    {"qid": "q5", "user_input": "Nothing?", "retrieved_contexts": [], "docnos": [], "response": "none",
     "reference_contexts": [], "kind": "fact"},
]  # fmt: skip


@pytest.fixture
def job(tmp_path: Path) -> Path:
    def frame(stage: str, name: str, rows: list[Any], *columns: str) -> None:
        (tmp_path / stage / DIGEST).mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows, columns=columns or None).to_parquet(tmp_path / stage / DIGEST / f"{name}.parquet")

    frame("dataset", "topics", TOPICS)
    frame("dataset", "evidence", EVIDENCE, "qid", "part", "docno", "text")
    frame("context", "layouts", [(qid, 0, *of) for qid, *of in LAYOUTS], "qid", "layout", "text", "docnos", "starts")
    frame("context", "prefixes", [(qid, n, 0, end, n, chunks) for qid, n, end, chunks in PREFIXES],
          "qid", "n_tokens", "layout", "end", "n_used", "n_chunks")  # fmt: skip
    # A topic without hits is unranked, too; only of q2 nothing is known.
    frame("run", "unranked", [("q5", "no hits"), ("q2", "no context")], "qid", "why")
    pd.DataFrame(OUTCOMES, columns=["qid", "answer", "answer_status", "answer_error", "label"]).to_parquet(
        tmp_path / "outcomes.parquet"
    )
    write_record(tmp_path)
    return tmp_path


def write_record(folder: Path, **changes: object) -> None:
    entries = {"dataset": DIGEST, "context": DIGEST}
    record = {"name": "a job", "store": str(folder), "entries": entries, "n_tokens": 5, **changes}
    job_json(folder, {"metrics": {"x": 1.0}, "dataset_digest": "d", **record})


def test_the_samples_of_a_job(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = job / "out" / "a.jsonl"
    assert main([str(job), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 4 samples; experiment=recorded recorded.path={out} reads them\n"
    text = out.read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == SAMPLES
    assert "Wännn?" in text
    # Contexts that are not known are null, and no empty list: that would be a retrieval of nothing.
    write_record(job, entries={"dataset": DIGEST, "context": DIGEST, "run": DIGEST})
    assert write_samples(job) == (job / "samples.jsonl", 4)
    unknown = {**SAMPLES[1], "retrieved_contexts": None, "docnos": None}
    lines = (job / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [SAMPLES[0], unknown, *SAMPLES[2:]]
    write_samples(job)
    (job / "samples.jsonl").write_text("of a person", encoding="utf-8")
    with pytest.raises(ConfigError, match="ragauge did not write it"):
        write_samples(job)
    assert main([str(job), "--force"]) == 0
    write_record(job, entries={"dataset": DIGEST, "context": DIGEST, "run": "2" * 64})  # of a run that ranked all
    plain = pd.read_parquet(job / "dataset" / DIGEST / "topics.parquet").drop(columns="unanswerable")
    plain.to_parquet(job / "dataset" / DIGEST / "topics.parquet")
    write_samples(job, out)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert rows == [{key: row[key] for key in row if key != "unanswerable"} for row in SAMPLES]


def test_what_cannot_be_exported_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "a job's folder: outputs/<date>/<time>, or one of a sweep" in " ".join(capsys.readouterr().out.split())
    assert main([str(tmp_path)]) == 2
    assert "is no folder of a finished job: it holds no job.json" in capsys.readouterr().err
    pd.DataFrame({"qid": ["q1"]}).to_parquet(tmp_path / "outcomes.parquet")
    write_record(tmp_path, store=str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"a job: the store .* no longer holds its topics: run the job again"):
        write_samples(tmp_path)
    write_record(tmp_path, store="")
    with pytest.raises(DataError, match="store is missing"):
        write_samples(tmp_path)
    write_record(tmp_path, entries={})
    with pytest.raises(DataError, match="its job retrieved nothing"):
        write_samples(tmp_path)
