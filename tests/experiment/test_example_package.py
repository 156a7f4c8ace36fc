"""examples/team_config: installed into a fresh environment, and its parts by hand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pandas as pd
import pytest
from langchain_core.messages import HumanMessage
from test_sweep import job_records, mlflow_runs, sweep_folders

from processes import clean_environment
from ragauge.contract.identity import identity

adapters = pytest.importorskip("ragauge.plugins.adapters.retrievers")  # the example's retriever is a PyTerrier pipeline

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "team_config"
SITE = Path(sysconfig.get_path("purelib"))
SMALL = ["dataset=sample", "dataset.limit=12", "chunker=none", "llm=team_chat", "bootstrap=50"]


def installed() -> dict[str, int]:
    """The distributions of the environment that the tests run in, with the time they were written."""
    return {folder.name: folder.stat().st_mtime_ns for folder in SITE.glob("*.dist-info")}


def fresh_environment(folder: Path, *how: str) -> Path:
    """The interpreter of an environment that has this one's packages and, of its own, the example alone."""
    before = installed()
    venv.create(folder / "venv", symlinks=True)
    (own,) = (folder / "venv").glob("lib/python*/site-packages")
    # addsitedir, because what is installed as editable is found by .pth files of its own.
    (own / "parent.pth").write_text(f"import site; site.addsitedir({str(SITE)!r})\n")
    python = folder / "venv" / "bin" / "python"
    # A copy, because a build writes beside the sources.
    shutil.copytree(EXAMPLE, folder / "team_config", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    command = [
        *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-index", "--no-deps", "--no-build-isolation", *how, folder / "team_config"),
    ]
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    assert [d.name for d in own.glob("*.dist-info")] == ["team_config-0.1.0.dist-info"]
    assert installed() == before
    return python


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), str(ROOT / "run.py"), *arguments],
        cwd=folder, env=clean_environment(), capture_output=True, text=True, timeout=3000,
    )  # fmt: skip


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_environment(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def swept(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example's retriever and ragauge's own were swept."""
    folder = tmp_path_factory.mktemp("swept")
    done = run(python, folder, "-m", *SMALL, "retriever=team_pipeline,bm25", "n_tokens=100,300")
    assert done.returncode == 0, done.stderr
    assert "team_pipeline" in done.stdout
    return folder


@pytest.mark.slow
def test_a_sweep_of_the_package_s_retriever_and_ragauge_s_own(swept: Path) -> None:
    client, runs = mlflow_runs(swept, "job")
    found = {(r.data.tags["retriever"], r.data.tags["n_tokens"]): r for r in runs}
    assert set(found) == {(r, n) for r in ("team_pipeline", "bm25") for n in ("100", "300")}
    for logged in runs:
        assert logged.info.status == "FINISHED"
        assert logged.data.tags["config_packages"] == "team-config 0.1.0"
        assert 0 < logged.data.metrics["ir_score"] <= 1
    team = found["team_pipeline", "300"]
    assert team.data.params["retriever.pipeline._target_"] == "team_config.pipelines.team_pipeline"
    assert team.data.params["retriever.pipeline.depth"] == "100"
    assert "ranking/p_at_1" in team.data.metrics
    (pooled,) = mlflow_runs(swept, "sweep")[1]
    assert pooled.data.tags["retriever"] == "team_pipeline,bm25"
    assert {a.path for a in client.list_artifacts(pooled.info.run_id)} >= {"report.html", "leaderboard.json"}


@pytest.mark.slow
def test_its_experiment_picks_retriever_chat_model_and_budgets_also_in_workers(
    python: Path, swept: Path, tmp_path: Path
) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    shutil.copytree(swept / ".ragauge", tmp_path / ".ragauge")
    workers = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    done = run(
        python, tmp_path, "-m", *SMALL, "experiment=team", "retriever=team_pipeline,bm25", *workers,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, runs = mlflow_runs(tmp_path, "job")
    assert {r.data.tags["retriever"] for r in runs} == {"team_pipeline", "bm25"}
    for logged in runs:
        assert (logged.data.tags["llm"], logged.data.tags["n_tokens"]) == ("team_chat", "400")
        assert logged.data.params["n_grid"] == "[100, 200, 400, 800]"
        assert logged.data.metrics["llm_calls"] + logged.data.metrics["cost/llm_calls_cached"] == 12
        assert logged.data.metrics["cost/completion_tokens"] > 0
    first = min(job_records(sweep_folders(tmp_path)[0]), key=lambda record: record["number"])
    assert "index" not in first["stages_made"]  # the sweep before made it


@pytest.mark.slow
def test_an_editable_install_is_seen_and_its_changed_code_reads_no_older_run(tmp_path: Path) -> None:
    python = fresh_environment(tmp_path, "--editable")
    job = [*SMALL, "retriever=team_pipeline", "n_tokens=100", "judge=none"]
    assert "team_chat" in run(python, tmp_path, "--help").stdout
    made = []
    for _ in range(2):
        done = run(python, tmp_path, "-m", *job)
        assert done.returncode == 0, done.stderr
        made.append(job_records(sweep_folders(tmp_path)[-1])[0]["stages_made"])
    code = tmp_path / "team_config" / "src" / "team_config" / "pipelines.py"
    code.write_text(re.sub(r"\* \(1 \+ ", "* (2 + ", code.read_text(encoding="utf-8")), encoding="utf-8")
    done = run(python, tmp_path, "-m", *job)
    assert done.returncode == 0, done.stderr
    made.append(job_records(sweep_folders(tmp_path)[-1])[0]["stages_made"])
    assert "run" in made[0]
    assert made[1] == []
    assert "run" in made[2]
    assert "chunks" not in made[2]


# --- its parts ----------------------------------------------------------------------------------------------


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE / "src")


def test_phrases_and_names_by_hand(on_path: None) -> None:
    from team_config.pipelines import names_in, shared_pairs

    hit = pd.Series({"query": "Who built the Tower?", "text": "He built the tower. The tower stands."})
    assert shared_pairs(hit) == pytest.approx(2 / 3)  # built the, the tower; not who built
    assert shared_pairs(pd.Series({"query": "Tower", "text": "Tower"})) == 0
    assert names_in("Which river does the Aare join in Koblenz?") == "Aare Koblenz"


def test_the_pipeline_ranks_a_phrase_and_a_name_first(on_path: None, tmp_path: Path) -> None:
    chunks = pd.DataFrame(
        {
            "docno": ["a%p0", "b%p0", "c%p0"],
            "text": ["The bridge of stone is new.", "The stone bridge is new.", "Graz is a town by the Mur."],
        }
    )
    made = adapters.PyTerrierPipeline(
        {"_target_": "team_config.pipelines.team_pipeline", "depth": 2, "phrase_bonus": 1, "name_weight": 1},
        {"_target_": "team_config.pipelines.build_index"},
    )
    assert set(identity(made)["code"]) == {"team_config"}
    made.build_index(chunks, tmp_path, None)
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["a stone bridge", "Where in Graz is a bridge?"]})
    found = made.transformer(chunks, tmp_path, None)(topics)
    assert found.groupby("qid")["docno"].agg(list).to_dict() == {
        "q1": ["b%p0", "a%p0"],
        "q2": ["c%p0", "b%p0"],
    }


def test_the_chat_model_quotes_a_sentence_or_says_that_it_cannot(on_path: None) -> None:
    from team_config.gateway import TeamChat

    prompt = "Rules.\n\nDocuments:\nAnna built the tower. It rains.\n\nQuestion: Who built it?\nAnswer:"
    reply = TeamChat(model="m").invoke([HumanMessage(prompt)])
    assert reply.text == "Anna built the tower."
    assert reply.usage_metadata["output_tokens"] == 4
    strict = TeamChat(model="m", min_shared_words=2).invoke([HumanMessage(prompt)])
    assert "not hold enough information" in strict.text
