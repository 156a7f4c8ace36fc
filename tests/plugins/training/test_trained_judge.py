"""A judge from training to a job: registered, named by its URI, and corrected by people's labels."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from ragauge.experiment import job
from ragauge.experiment.request import JobFolder
from ragauge.plugins.training import config
from ragauge.plugins.training.jobs import job as training
from tiny_cross_encoder import write_cross_encoder

CONF = Path(__file__).resolve().parents[3] / "conf"
Run = Callable[..., dict[str, Any]]
SMALL = ("dataset=sample", "retriever=bm25", "chunker=none", "tokenizer=words")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs what a config composes ("train" or "config") and returns its record."""

    def execute(what: str, *overrides: str) -> dict[str, Any]:
        config.register()
        (tmp_path / what).mkdir(exist_ok=True)
        folder = JobFolder(tmp_path / what, None, 0, {"trainer": "judge", "retriever": "bm25"}, overrides)
        here = [f"store={tmp_path / 's'}", f"tracking.uri=sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose(what, overrides=[*SMALL, *here, *overrides])
        (training.execute if what == "train" else job.execute)(cfg, folder)
        found: dict[str, Any] = json.loads((tmp_path / what / "job.json").read_text(encoding="utf-8"))
        return found

    return execute


@pytest.mark.slow
def test_a_registered_judge_measures_a_job_and_labels_correct_it(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = write_cross_encoder(tmp_path / "base", positions=128)
    made = run(
        "train", "trainer=judge", f"trainer.model={base}", "trainer.tune=false", "trainer.max_length=128",
        "register=judge", "leaks=drop", "validation_share=0.3",
    )  # fmt: skip
    assert made["status"] == "FINISHED", made
    assert 0 <= made["metrics"]["validation_answer_faithfulness_auc"] <= 1
    assert made["metrics"]["training_examples"] > 100
    labels = tmp_path / "labels.csv"
    from ragauge.datasets import SampleDataset

    qids = SampleDataset().load().topics["qid"].tolist()[::4]
    rows = [f"{qid},{int(i % 3 > 0)},{int(i % 5 > 0)}" for i, qid in enumerate(qids)]
    labels.write_text("\n".join(["qid,context_relevance,answer_faithfulness", *rows]), encoding="utf-8")
    given = (
        "llm=extractive",
        "answers=[ares]",
        "answers.ares.model=models:/judge/1",
        f"human_labels={labels}",
    )
    with caplog.at_level(logging.WARNING):
        done = run("config", *given)
    assert done["status"] == "FINISHED", done
    values = done["metrics"]
    assert {info["name"] for info in done["answer_measures"]} >= {
        "ares_context_relevance", "ares_answer_faithfulness", "ares_answer_relevance",
    }  # fmt: skip
    for name in ("ares_context_relevance", "ares_answer_faithfulness"):
        assert values[f"{name}_ppi_lo"] <= values[f"{name}_ppi"] <= values[f"{name}_ppi_hi"]
        assert values[f"{name}_labels"] == len(qids)
        assert values[f"{name}_lo"] <= values[name] <= values[f"{name}_hi"]
    share = sum(i % 3 > 0 for i in range(len(qids))) / len(qids)
    assert values["ares_context_relevance_labels_only"] == pytest.approx(share)
    assert "ares_answer_relevance_ppi" not in values
    assert f"{len(qids)} labels by people are few: below 150" in caplog.text


def test_a_judge_that_is_not_there_is_told_before_any_work(run: Run, tmp_path: Path) -> None:
    found = run("config", "llm=extractive", "answers=[ares]", "answers.ares.model=models:/none/1")
    assert found["exit_code"] == 2
    assert "answers.ares.model=models:/none/1 cannot be had from MLflow" in found["error"]
    found = run("config", "llm=extractive", "answers=[ares]", f"answers.ares.model={tmp_path}")
    assert "holds no judge.json" in found["error"]
    found = run("train", "trainer=judge", "trainer.model=/nowhere/at/all")
    assert found["exit_code"] == 2
    assert "trainer.model=/nowhere/at/all" in found["error"]
