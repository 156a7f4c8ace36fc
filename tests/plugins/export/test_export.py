"""A job as a file of samples, and what cannot be written so; what reads the file is tested with recorded systems."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from processes import run
from ragauge.contract.errors import DataError
from ragauge.plugins.export.command import main
from ragauge.plugins.export.samples import samples

DIGEST = "1" * 64


def test_the_command_says_what_it_wrote(two_by_two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = next(folder for folder in sorted(two_by_two.glob("multirun/*/*/0")))
    out = tmp_path / "out" / "samples.jsonl"
    assert main([str(job), "--out", str(out)]) == 0
    assert f"{out}: 12 samples; experiment=recorded recorded.path={out} reads them" in capsys.readouterr().out
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert rows == list(samples(job))


def test_a_turn_is_exported_with_the_turns_before_it(tmp_path: Path) -> None:
    def frame(stage: str, name: str, **columns: list[object]) -> None:
        (tmp_path / stage / DIGEST).mkdir(parents=True, exist_ok=True)
        pd.DataFrame(columns).to_parquet(tmp_path / stage / DIGEST / f"{name}.parquet")

    qids = ["c-1", "c-2"]
    frame("dataset", "topics", qid=qids, query=["Who?", "When?"], answer=["Anna", None],
          history=[[], ["Who?", "Anna"]], conversation=["c", "c"], turn=[1.0, 2.0])  # fmt: skip
    frame("dataset", "evidence", qid=["c-1"], part=[0], docno=["d"], text=["Anna did."])
    frame("context", "layouts", qid=qids, layout=[0, 0], text=["Anna did."] * 2, docnos=[["d"]] * 2, starts=[[0]] * 2)
    frame("context", "prefixes", qid=qids, layout=[0, 0], n_tokens=[5, 5], end=[9, 9], n_chunks=[1, 1], n_used=[2, 2])
    pd.DataFrame({"qid": qids, "answer": ["Anna", "In May."], "answer_status": "ok", "answer_error": None,
                  "label": [5, None]}).to_parquet(tmp_path / "outcomes.parquet")  # fmt: skip
    entries = {"dataset": DIGEST, "context": DIGEST}
    record = {"name": "a job", "store": str(tmp_path), "entries": entries, "n_tokens": 5}
    (tmp_path / "job.json").write_text(json.dumps(record))
    first, second = samples(tmp_path)
    assert "history" not in first
    assert (second["user_input"], second["history"], second["turn"]) == ("When?", ["Who?", "Anna"], 2)
    assert (second["retrieved_contexts"], second["docnos"]) == (["Anna did."], ["d"])
    # Contexts that are not known are null, and no empty list: that would be a retrieval of nothing.
    frame("run", "unranked", qid=["c-2"], why=["no context"])
    (tmp_path / "job.json").write_text(json.dumps({**record, "entries": {**entries, "run": DIGEST}}))
    first, second = samples(tmp_path)
    assert first["docnos"] == ["d"]
    assert (second["retrieved_contexts"], second["docnos"]) == (None, None)


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    done = run(tmp_path, "export", ".")
    assert done.returncode == 2
    assert "is no folder of a finished job: it holds no job.json" in done.stderr
    (tmp_path / "outcomes.parquet").touch()
    outcomes = pd.DataFrame({"qid": ["q1"]})
    outcomes.to_parquet(tmp_path / "outcomes.parquet")
    record = {
        "name": "a job",
        "store": str(tmp_path / "gone"),
        "entries": {"dataset": "0" * 64},
        "n_tokens": 5,
    }
    (tmp_path / "job.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"a job: the store .* no longer holds its topics: run the job again"):
        list(samples(tmp_path))
    (tmp_path / "job.json").write_text(json.dumps({"name": "a job"}))
    with pytest.raises(DataError, match="its job retrieved nothing"):
        list(samples(tmp_path))
