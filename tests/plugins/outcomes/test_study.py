"""experiment=study: the reference figures, as a user's command gives them, and what it refuses."""

import hashlib
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient

from processes import run
from ragauge.estimate import fit_thresholds, fit_zones
from ragauge.estimate.prediction import foresee
from ragauge.findings.study import JUDGE_SHARES
from ragauge.plugins import outcomes
from ragauge.plugins.outcomes.dataset import StudyOutcomes
from ragauge.track import Reader

CONF = Path(outcomes.__file__).parent / "conf"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("study")
    ended = run(folder, "experiment=study", "bootstrap=20", "hydra.run.dir=job", "tracking.note=as read off")
    assert ended.returncode == 0, ended.stderr
    return folder, ended.stdout


@pytest.fixture(scope="module")
def bm25() -> pd.DataFrame:
    rows = StudyOutcomes().outcomes()
    return rows[rows["system"] == "bm25"]


def test_the_reference_figures(done: tuple[Path, str]) -> None:
    record = json.loads((done[0] / "job" / "job.json").read_text())
    found = record["metrics"]
    assert record["status"] == "FINISHED"
    for name, expected in {
        "topics": 7404,
        "predictor_auc_correct": 0.730,
        "predictor_auc_lack": 0.742,
        "threshold_k": 0.745,
        "threshold_k_accuracy": 0.695,
        "threshold_k_base_rate": 0.576,
        "threshold_h_base_rate": 0.922,
        "threshold_h_degenerate": 1,
        "unjudged_right_mae_predictor": 0.018,
        "unjudged_right_mae_unchanged": 0.167,
        "zone_right_share": 0,
        "zone_lack_share": 0,
    }.items():
        assert found[name] == pytest.approx(expected, abs=0.002), name
    assert found["threshold_k_gain_lo"] > 0.1
    assert found["threshold_h_gain"] <= 0
    # What classes 2 to 4 are one of the other is not recorded.
    assert not any(name.startswith(("hallucination", "judge_share_2", "judge_share_4")) for name in found)


def test_the_run_in_mlflow_has_metrics_figures_tables_and_report(done: tuple[Path, str]) -> None:
    record = json.loads((done[0] / "job" / "job.json").read_text())
    artifacts = next((done[0] / "mlruns" / "artifacts").glob("*/*/artifacts"))
    files = {str(path.relative_to(artifacts)) for path in artifacts.rglob("*") if path.is_file()}
    assert files >= {
        "report.html", "figures/sorted_scores.png", "figures/foreseen.png", "tables/foreseen.csv",
        "tables/zones_by_alpha.csv", "config/config.yaml",
    }  # fmt: skip
    logged = Reader(record["tracking_uri"]).run(record["run_id"])
    assert logged.metrics == {name: v for name, v in record["metrics"].items() if v == v}
    assert 0 < logged.metrics["seconds_total"] < 600
    digest = hashlib.sha256(StudyOutcomes().files()["outcomes"].read_bytes()).hexdigest()
    assert logged.tags["dataset_digest"] == record["dataset_digest"] == digest
    shown = MlflowClient(record["tracking_uri"]).get_experiment(record["experiment_id"]).tags
    assert "mlflow.note.content" in shown
    assert [key for key in shown if key.startswith("mlflow.sharedViewState.ragauge-")]
    told, found = done[1], record["metrics"]
    assert f"\nk = {found['threshold_k']:.3f}, right above: " in told
    auc = f"AUC {found['predictor_auc_correct']:.3f} for right answers, {found['predictor_auc_lack']:.3f} for lack"
    assert f"\npredictor, on unseen topics: {auc}\n" in told
    assert "right answers of sim: predictor 34.5%, above k 15.7%, judged 32.0%" in told
    *_, report, run_and_folder, where = done[1].splitlines()
    assert report == f"report: {(done[0] / 'job').resolve() / 'report.html'}"
    assert run_and_folder == f"MLflow run {record['run_id']}; folder {(done[0] / 'job').resolve()}"
    assert where.startswith("MLflow UI: ")
    assert where.endswith(f"/runs/{record['run_id']}")
    page = (done[0] / "job" / "report.html").read_text()
    assert "<script" not in page
    assert "<p>as read off</p>" in page
    assert "There is no zone for “right”: no threshold holds." in page
    assert "degenerate: says “never”" in page


def test_a_rerun_says_how_its_metrics_compare_and_is_held_to_its_gate(done: tuple[Path, str]) -> None:
    record = json.loads((done[0] / "job" / "job.json").read_text())
    again = run(done[0], f"rerun={record['run_id']}", "hydra.run.dir=again", "+gate.ir_score=0.9")
    assert again.returncode == 3, again.stderr
    assert "ir_score" in again.stderr.splitlines()[-1]
    assert re.search(r"^(\d+) of \1 metrics equal to the last bit$", again.stdout, re.M)


def test_the_published_thresholds(bm25: pd.DataFrame) -> None:
    right, lack = bm25["label"].eq(5), bm25["label"].eq(1)
    assert ((bm25["ir_score"] > 0.67) == right).mean() == pytest.approx(0.690, abs=0.002)
    assert ((bm25["ir_score"] < 0.105) == lack).mean() == pytest.approx(0.896, abs=0.002)
    rows = StudyOutcomes().outcomes()
    others = rows[rows["system"] != "bm25"]
    table = foresee(bm25, others, 0.105, 0.67, JUDGE_SHARES)
    of_right = table[table["share"] == "right"].set_index("system")
    assert of_right["thresholds"].round(3).to_dict() == pytest.approx(
        {"sim": 0.237, "mmr": 0.163, "mlq": 0.111, "reo": 0.056}, abs=0.002
    )
    assert of_right["predictor"].to_dict() == pytest.approx(
        {"sim": 0.345, "mmr": 0.305, "mlq": 0.268, "reo": 0.184}, abs=0.002
    )
    assert (of_right["thresholds"] - of_right["judged"]).abs().mean() == pytest.approx(0.116, abs=0.002)
    isotonic = foresee(bm25, others, 0.105, 0.67, JUDGE_SHARES, calibrate=True).query("share == 'right'")
    assert (isotonic["predictor"] - isotonic["judged"]).abs().mean() == pytest.approx(0.014, abs=0.002)


def test_the_zones(bm25: pd.DataFrame) -> None:
    assert fit_zones(bm25, 0.3).right.n == 0
    found = fit_zones(bm25, 0.35).right
    assert (found.value, found.n) == (0.70, 2567)
    assert fit_thresholds(bm25, n_boot=0).h.degenerate == "never"


def test_the_shipped_config_says_the_published_shares() -> None:
    from omegaconf import OmegaConf

    conf = OmegaConf.load(CONF / "dataset" / "study.yaml")
    assert {name: tuple(shares) for name, shares in conf.judged_shares.items()} == {
        name: JUDGE_SHARES[name] for name in ("sim", "mmr", "mlq", "reo")
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-m"], "run it without -m"),
        (["estimate.features=[ir_score,n_used]"], "of recorded outcomes ir_score alone is known"),
        (["zones.alpha=1.2"], "zones.alpha=1.2: allowed are numbers from 0.001 to 0.5"),
        (["slices=[user]"], "recorded outcomes have no attributes to slice by"),
        (["+gate.ir_score={tolerance:0.1}", "+gate.baseline=a"], "recorded outcomes have no baseline"),
        (["dataset.path=nowhere.csv"], "dataset.path=nowhere.csv: there is no such file"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    ended = run(tmp_path, "experiment=study", *arguments)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_dry_run_asks_for_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, "experiment=study", "dry_run=true")
    assert (ended.returncode, "no LLM calls" in ended.stdout) == (0, True)
