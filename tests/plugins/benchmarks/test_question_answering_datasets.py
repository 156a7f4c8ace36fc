"""A whole job of a question-answering benchmark, written out and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from processes import ROOT, run
from same_outcomes import assert_same

HOTPOT = ROOT / "../shared/data/hotpot_train_100.json"


@pytest.mark.slow
@pytest.mark.skipif(not HOTPOT.is_file(), reason="the data is not here")
def test_a_job_of_hotpotqa_written_out_and_read_back(tmp_path: Path) -> None:
    data = [
        "dataset=hotpotqa",
        f"dataset.path={HOTPOT}",
        "chunker=none",
        "bootstrap=20",
    ]
    done = run(tmp_path, *data, "retriever=bm25", "llm=extractive", "judge=lexical", "n_tokens=300",
               "hydra.run.dir=live")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert run(tmp_path, "export", "live").returncode == 0
    for name, more in (
        ("whole", ["experiment=recorded"]),
        ("same", [*data, "llm=recorded", "retriever=recorded"]),
    ):
        done = run(tmp_path, *more, "recorded.path=live/samples.jsonl", "judge=recorded", "n_tokens=2000",
                   "bootstrap=20", f"hydra.run.dir={name}")  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert_same(tmp_path / "live", tmp_path / name, ranked=name == "same")
