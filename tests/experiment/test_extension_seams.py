"""An answer measure and a reranker from a folder outside of this repository go everywhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from processes import ROOT, run_fresh
from ragauge.contract.metrics import without_groups

PACKAGE = """
from dataclasses import dataclass
from typing import ClassVar

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.measures.answers import measured
from ragauge.retrieval.ranking import ranked


@dataclass(frozen=True)
class Length:
    uses: ClassVar[frozenset[str]] = frozenset()
    info: ClassVar = AnswerMeasureInfo(
        "n_words", "words of the answer", "lower", "score", "Length of answers"
    )

    def measure(self, topics, evidence, contexts, answers, tools):
        return measured(answers, "n_words", lambda qid, answer: len(answer.split()))


@dataclass(frozen=True)
class Reversed:
    kind: ClassVar[str] = "reversed"
    uses: ClassVar[frozenset[str]] = frozenset()

    def rerank(self, run, topics, chunks, tools):
        return ranked(run.assign(score=-run["score"]))
"""
CONFIGS = {
    "answers/length.yaml": "length:\n  _target_: toys.Length\n",
    "reranker/backwards.yaml": "_target_: toys.Reversed\n",
}
SMALL = [
    "dataset=sample", "dataset.limit=12", "chunker=none", "llm.by=words", "bootstrap=50", "retriever=bm25",
    "n_tokens=100",
]  # fmt: skip
LABEL = "words of the answer ↓"


def toys(folder: Path) -> dict[str, str]:
    """Writes the package and its configs; the environment in which Python finds it."""
    (folder / "toys.py").write_text(PACKAGE, encoding="utf-8")
    for name, text in CONFIGS.items():
        file = folder / "toy_conf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    paths = [str(folder), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the toys were swept, and what the sweep printed."""
    folder = tmp_path_factory.mktemp("toys")
    done = run_fresh(
        folder, "--config-dir", "toy_conf", "-m", *SMALL, "reranker=none,backwards", "answers=[length,f1]",
        **toys(folder),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def client_and_runs(folder: Path, role: str) -> tuple[Any, list[Any]]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlruns' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("sample")
    return client, client.search_runs([experiment.experiment_id], f"tags.role = '{role}'")


def logged_table(client: Any, run_id: str, name: str) -> pd.DataFrame:
    table = json.loads(Path(client.download_artifacts(run_id, name)).read_text(encoding="utf-8"))
    return pd.DataFrame(table["data"], columns=table["columns"])


@pytest.mark.slow
def test_metrics_and_tables_of_a_job_have_the_measure(swept: tuple[Path, str]) -> None:
    client, runs = client_and_runs(swept[0], "job")
    assert len(runs) == 2
    for logged in runs:
        rows = logged_table(client, logged.info.run_id, "per_question.json")
        lengths = [len(answer.split()) for answer in rows["answer"].dropna()]
        assert rows["n_words"].dropna().tolist() == lengths
        metrics = without_groups(logged.data.metrics)
        assert metrics["n_words"] == pytest.approx(sum(lengths) / len(lengths))
        assert metrics["n_words_lo"] <= metrics["n_words"] <= metrics["n_words_hi"]
        assert metrics["n_words_missing"] == pytest.approx(1 - len(lengths) / len(rows))
        assert 0 <= metrics["f1"] <= 1


@pytest.mark.slow
def test_the_reranker_changes_the_run_and_names_the_system(swept: tuple[Path, str]) -> None:
    client, runs = client_and_runs(swept[0], "job")
    orders = {}
    for logged in runs:
        lines = Path(client.download_artifacts(logged.info.run_id, "run.trec")).read_text().splitlines()
        order: dict[str, list[str]] = {}
        for qid, _, docno, *_ in map(str.split, lines):
            order.setdefault(qid, []).append(docno)
        orders[logged.data.tags["reranker"]] = order
    assert set(orders) == {"none", "backwards"}
    for qid, docnos in orders["none"].items():
        assert set(orders["backwards"][qid]) == set(docnos)
    # Where each document holds one hit, the documents are in the opposite order, too.
    turned = [qid for qid, docnos in orders["none"].items() if orders["backwards"][qid] == docnos[::-1]]
    assert any(len(orders["none"][qid]) > 2 for qid in turned)
    _, (pooled,) = client_and_runs(swept[0], "sweep")
    board = logged_table(client, pooled.info.run_id, "leaderboard.json")
    assert set(board["system"]) == {"none", "backwards"}


@pytest.mark.slow
def test_the_leaderboard_shows_label_direction_interval_and_mark(swept: tuple[Path, str]) -> None:
    folder, printed = swept
    [headline] = [line for line in printed.splitlines() if line.lstrip().startswith("system")]
    assert "IR score" in headline
    # With verdicts, answer measures stand in the report and in the tables.
    assert LABEL not in headline
    assert len(headline) <= 80
    client, (pooled,) = client_and_runs(folder, "sweep")
    board = logged_table(client, pooled.info.run_id, "leaderboard.json")
    csv = pd.read_csv(client.download_artifacts(pooled.info.run_id, "tables/leaderboard.csv"))
    for table in (board, csv):
        best = table.loc[table["n_words"].idxmin()]
        assert best["n_words_in_best_set"] in (True, "True")
        assert {"n_words_lo", "n_words_hi", "n_words_missing", "f1"} <= set(table)
    tests = pd.read_csv(client.download_artifacts(pooled.info.run_id, "tables/paired_tests.csv"))
    (pair,) = tests[tests["measure"] == "n_words"].to_dict("records")
    means = board.set_index("system")["n_words"]
    if board["n_words_missing"].eq(0).all():
        assert pair["difference"] == pytest.approx(means[pair["a"]] - means[pair["b"]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ir_score", "the name 'ir_score' is that of a metric or column"),
        ("words of", "name 'words of': allowed are letters, digits and _"),
        ("f1", "would both write 'f1'"),
        ("f1_lo", "would both write 'f1_lo'"),
    ],
)
def test_a_name_that_collides_is_told_before_any_work(tmp_path: Path, name: str, says: str) -> None:
    environment = toys(tmp_path)
    file = tmp_path / "toys.py"
    file.write_text(PACKAGE.replace('"n_words"', repr(name)), encoding="utf-8")
    done = run_fresh(tmp_path, "--config-dir", "toy_conf", *SMALL, "answers=[f1,length]", **environment)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".ragauge").exists()
