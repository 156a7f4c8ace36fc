"""`ragauge.run`, `sweep` and `load`: the command line for Python."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import ragauge
from processes import ROOT, clean_environment
from processes import run as run_py
from ragauge.contract.job_files import FRAMES_TAG
from ragauge.experiment.results import JobResult, Logged, SweepResult, Whereabouts, whereabouts
from ragauge.show import notebook
from ragauge.track import LoggedRun

SMALL = [
    "dataset=sample", "dataset.limit=8", "chunker=none", "tokenizer=words", "bootstrap=20", "n_grid=[50,100]",
]  # fmt: skip
JOB = [*SMALL, "retriever=bm25", "n_tokens=100"]
FRAMES = ("topics", "run", "contexts", "scores", "answers", "verdicts", "outcomes")
SCRIPT = "<script>alert(1)</script>"


# --- without a job -----------------------------------------------------------------------------------------


def test_importing_ragauge_loads_nothing_heavy() -> None:
    code = (
        "import sys, ragauge\n"
        "heavy = {'hydra', 'torch', 'mlflow', 'pandas', 'numpy', 'matplotlib', 'tqdm'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)), ragauge.__version__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert done.stdout == f"HEAVY [] {version}\n", done.stderr


def test_every_dependency_ranges_from_what_the_tests_run_with_to_the_next_major_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if not line.startswith("#")]
    pinned = [one for one in pinned if one.marker is None or one.marker.evaluate()]
    pins = {canonicalize_name(one.name): Version(str(one.specifier).removeprefix("==")) for one in pinned}
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    extras = [text for text in extras if not text.startswith("ragauge[")]
    for wanted in map(Requirement, [*project["dependencies"], *extras]):
        pin = pins[canonicalize_name(wanted.name)]
        assert pin in wanted.specifier, wanted
        # An untested older or newer major version, such as sentence-transformers 5.7 or 7, is outside.
        assert f"{pin.major + 1}" not in wanted.specifier, wanted
        (least,) = (bound.version for bound in wanted.specifier if bound.operator in (">=", "=="))
        assert f"{pin.base_version}.".startswith(f"{least}."), wanted


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ("retriever=bm25", "a list of texts"),
        ([300], "a list of texts"),
        (
            ["-m", "retriever=bm25,sim"],
            "-m: options belong to the command line; run() is one job",
        ),
        (["--cfg=job"], "--cfg=job: options belong"),
        (["hydra.mode=MULTIRUN"], "hydra.mode=MULTIRUN: options belong"),
        (["dry_run=true"], "dry_run=true: what would be needed is printed by the command line"),
    ],
)
def test_what_is_no_override_is_refused_in_a_line(overrides, told) -> None:
    for call in (ragauge.run, ragauge.sweep):
        with pytest.raises(ragauge.ConfigError) as raised:
            call(overrides)
        assert told in str(raised.value)
        assert "\n" not in str(raised.value)


def test_a_topic_that_holds_a_script_is_shown_and_not_run() -> None:
    outcomes = pd.DataFrame(
        {"query": [SCRIPT], "answer": ['"><img src=x onerror=alert(1)>'], "label": pd.array([5], "Int8"),
         "answer_reference": ["a\x1b[2Jb\u202ec $x$"], "ir_score": [0.5]}
    )  # fmt: skip
    shown = notebook.job_html(SCRIPT, "abc", Path(f"/tmp/{SCRIPT}"), {"ir_score": 0.5}, outcomes)
    board = pd.DataFrame({"system": [SCRIPT], "ir_score": [0.5], "ir_score_lo": [0.1], "ir_score_hi": [0.9]})
    shown += notebook.sweep_html([(SCRIPT, "abc", board, {SCRIPT: notebook.Figure(b"\x89PNG")})])
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 5
    assert shown.count("<img") == 1  # the figure's
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "0.500 (0.100 to 0.900)" in shown


@pytest.mark.parametrize(
    "told",
    [
        "no JSON",
        "[]",
        '{"folder": 1, "store": 2, "frames": {}}',
        '{"folder": "/tmp", "store": "/tmp", "frames": {"run": 7}}',
    ],
)
def test_a_damaged_tag_names_no_place(told: str) -> None:
    assert whereabouts({FRAMES_TAG: told}) == Whereabouts()


def test_a_tag_of_a_shared_server_leads_out_of_no_store(tmp_path: Path) -> None:
    digest = "a" * 64
    frames = {
        "run": f"../../etc/{digest}", "topics": f"dataset/{digest}/../../x", "scores": f"scores/{digest}",
        "answers": "https://example.org/x",
    }  # fmt: skip
    told = {"folder": str(tmp_path / "gone"), "store": str(tmp_path), "frames": frames}
    found = whereabouts({FRAMES_TAG: json.dumps(told)})
    assert found == Whereabouts(None, tmp_path, {"scores": f"scores/{digest}"})
    for store in ("https://example.org/store", "s3://bucket/store", "relative"):
        assert whereabouts({FRAMES_TAG: json.dumps({**told, "store": store})}).store is None


def test_tables_keep_systems_that_pandas_would_take_for_missing() -> None:
    class OneTable:
        def contents(self, run_id: str, folder: str) -> dict[str, bytes]:
            assert (run_id, folder) == ("abc", "tables")
            return {"board.csv": b"system,qid,ir_score\nNA,007,0.5\nnull,1e3,\n", "notes.txt": b"\xff"}

    run = LoggedRun("abc", "name", "FINISHED", "1", "e", 0.0, {}, {}, {})
    [(name, table)] = Logged(run, OneTable()).tables.items()  # type: ignore[arg-type]
    assert name == "board"
    assert table["system"].tolist() == ["NA", "null"]
    assert table["qid"].tolist() == ["007", "1e3"]
    assert table["ir_score"].isna().tolist() == [False, True]


# --- a job -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working directory of the job, without an MLflow or a store of the user's."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE"):
            patch.delenv(name, raising=False)
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def job(home: Path) -> JobResult:
    return ragauge.run(JOB)


def timeless(metrics: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if not name.startswith("seconds")}


@pytest.mark.slow
def test_a_job_from_python_is_that_of_the_command_line(home: Path, job: JobResult, tmp_path: Path) -> None:
    done = run_py(tmp_path, *JOB)
    assert done.returncode == 0, done.stderr
    [record] = [json.loads(f.read_text("utf-8")) for f in tmp_path.glob("outputs/*/*/job.json")]
    same = ragauge.load(record["run_id"], f"sqlite:///{tmp_path}/mlruns/mlflow.db")
    assert isinstance(same, JobResult)
    assert timeless(job.metrics) == timeless(same.metrics)
    assert len(timeless(job.metrics)) > 30
    for name in FRAMES:
        left, right = (getattr(of, name) for of in (job, same))
        pd.testing.assert_frame_equal(left.drop(columns="seconds", errors="ignore"),
                                      right.drop(columns="seconds", errors="ignore"))  # fmt: skip
    assert job.folder is not None
    assert same.folder is not None
    assert job.folder.relative_to(home).parts[0] == "outputs"
    own, others = ({p.relative_to(f).as_posix() for p in f.rglob("*")} for f in (job.folder, same.folder))
    assert own == others
    assert "IR score" in (job.folder / "run.log").read_text("utf-8")
    differ = {name for name, value in job.params.items() if same.params[name] != value}
    assert differ == set()


@pytest.mark.slow
def test_the_frames_of_a_job_fit_together(job: JobResult) -> None:
    qids = job.topics["qid"].tolist()
    assert len(qids) == len(set(qids)) == 8
    assert set(job.contexts["qid"]) == set(job.answers["qid"]) == set(qids)
    assert (job.contexts["n_tokens"] == 100).all()
    assert job.contexts["text"].str.split().str.len().max() <= 100
    assert set(job.scores["n_tokens"]) == {50, 100}
    at_n = job.scores[job.scores["n_tokens"] == 100].set_index("qid")["value"]
    assert job.metrics["ir_score"] == pytest.approx(at_n.mean())
    assert job.outcomes.set_index("qid")["ir_score"].to_dict() == at_n.to_dict()
    labels = job.verdicts.set_index("qid")["label"]
    assert job.metrics["correct_share"] == pytest.approx(float((labels == 5).mean()))
    assert set(job.run["docno"]) > set(job.contexts["docnos"].sum())
    assert job.figures["sorted_scores"].png.startswith(b"\x89PNG")
    assert "8 topics" in job._repr_html_()


@pytest.mark.slow
def test_the_columns_that_the_guide_names_are_those_of_the_frames(job: JobResult) -> None:
    guide = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    for name in FRAMES:
        [row] = re.findall(rf"^\| `{name}` \| (.*) \|$", guide, re.MULTILINE)
        named = re.findall(r"`([^`]+)`", row)
        assert "qid" in named
        assert not set(named) - set(getattr(job, name).columns), name


@pytest.mark.slow
def test_a_job_is_loaded_in_another_process_and_without_its_store(home: Path, job: JobResult) -> None:
    code = (
        "import sys, ragauge\n"
        "job = ragauge.load(sys.argv[1])\n"
        f"for name in {FRAMES}: getattr(job, name).to_pickle(name + '.pickle')\n"
        "print(job.folder)\n"
    )

    def loaded() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, job.run_id[:10]], cwd=home, env=clean_environment(),
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(name: str) -> pd.DataFrame:
        found = pd.read_pickle(home / f"{name}.pickle")
        assert isinstance(found, pd.DataFrame)
        return found

    assert loaded() == f"{job.folder}\n"
    frames = {name: getattr(job, name) for name in FRAMES}
    for name, frame in frames.items():
        pd.testing.assert_frame_equal(read(name), frame)
    away = home / "away"
    away.mkdir()
    try:
        for place in (".ragauge", "outputs"):
            (home / place).rename(away / place)
        assert loaded() == "None\n"
    finally:
        for place in (".ragauge", "outputs"):
            (away / place).rename(home / place)
    by_topic = {name: read(name).set_index("qid") for name in FRAMES}
    known = {name: frame.set_index("qid") for name, frame in frames.items()}
    for name, column in (
        ("topics", "answer"), ("contexts", "text"), ("answers", "answer"), ("verdicts", "label"),
        ("verdicts", "raw"), ("outcomes", "ir_score"),
    ):  # fmt: skip
        one, other = (of[name][column].sort_index() for of in (by_topic, known))
        assert one.fillna(-1).tolist() == other.fillna(-1).tolist(), (name, column)
    assert set(read("run").groupby("qid").size().index) == set(frames["run"]["qid"])
    assert read("run")["rank"].min() == 0


@pytest.mark.slow
def test_a_run_leaves_the_process_as_it_was(home: Path, job: JobResult, tmp_path: Path, capfd) -> None:
    """Within a running event loop and somebody's own Hydra, from another folder than the run before."""
    place = tmp_path / "conf"
    place.mkdir()
    (place / "config.yaml").write_text("mine: 1\n", "utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    handlers, hook, argv = logging.getLogger().handlers[:], sys.excepthook, sys.argv
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/own.db")
    environment = dict(os.environ)
    capfd.readouterr()

    async def one() -> JobResult:
        return ragauge.run([*JOB, f"store={home / '.ragauge'}"])

    with pytest.MonkeyPatch.context() as patch, initialize_config_dir(str(place), version_base="1.3"):
        patch.delenv("MLFLOW_TRACKING_URI")
        patch.chdir(elsewhere)
        second = asyncio.run(one())
        assert compose("config").mine == 1
        said = capfd.readouterr()
        assert (said.out, said.err) == ("", "")
        assert mlflow.get_tracking_uri() == f"sqlite:///{tmp_path}/own.db"
        assert "MLFLOW_TRACKING_URI" not in os.environ or os.environ["MLFLOW_TRACKING_URI"].endswith("own.db")
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    assert not GlobalHydra.instance().is_initialized()
    assert (logging.getLogger().handlers, sys.excepthook, sys.argv) == (handlers, hook, argv)
    assert environment.get("HYDRA_FULL_ERROR") == os.environ.get("HYDRA_FULL_ERROR")
    assert second.run_id != job.run_id
    assert (elsewhere / "mlruns" / "mlflow.db").is_file()
    assert timeless(second.metrics) | {"stages_made": 0} == timeless(job.metrics) | {"stages_made": 0}


@pytest.mark.slow
def test_errors_are_those_of_ragauge_and_no_exit(home: Path, job: JobResult) -> None:
    with pytest.raises(ragauge.ConfigError, match=r"unknown key 'n_tokes'. Did you mean n_tokens"):
        ragauge.run([*SMALL, "n_tokes=5"])
    with pytest.raises(ragauge.ConfigError, match="n_tokens=-5: allowed are 0"):
        ragauge.run([*SMALL, "n_tokens=-5"])
    with pytest.raises(ragauge.ConfigError, match="looks like a key"):
        ragauge.run([*SMALL, "tracking.note=sk-proj-" + "a1B2c3D4" * 6])
    (home / "questions.csv").write_text("qid,query\n1,a\n", "utf-8")
    (home / "docs.csv").write_text("docno,text\n1,a\n", "utf-8")
    csv = ["dataset=csv", "dataset.docs=docs.csv", "dataset.topics=questions.csv", *JOB[2:]]
    with pytest.raises(ragauge.DataError, match=r"docs\.csv: column 'id'"):
        ragauge.run(csv)
    with pytest.raises(ragauge.ConfigError, match="holds no run 0123"):
        ragauge.load("0123")


# --- a sweep -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sweep_from_python(home: Path, job: JobResult, capfd) -> None:
    capfd.readouterr()
    swept = ragauge.sweep([*SMALL, "retriever=bm25,none", "n_tokens=50,100,-5"])
    assert capfd.readouterr().out == ""
    assert swept.folder is not None
    assert swept.folder.relative_to(home).parts[0] == "multirun"
    assert [(j.status, j.params["n_tokens"]) for j in swept.jobs] == [
        ("FINISHED", "50"), ("FINISHED", "100"), ("FAILED", "-5")] * 2  # fmt: skip
    assert len(swept.failed) == 2
    assert all("n_tokens=-5: allowed are 0" in told for told in swept.failed.values())
    with pytest.raises(ragauge.DataError, match=r"is FAILED and has no contexts: .*n_tokens=-5"):
        _ = swept.jobs[2].contexts
    assert swept.leaderboard["system"].tolist() == ["bm25", "none"]
    assert len(swept.outcomes) == 4 * 8
    assert swept.metrics["jobs_failed"] == 2
    assert swept.leaderboard["ir_score"][0] == pytest.approx(swept.jobs[1].metrics["ir_score"])
    assert swept.jobs[1].metrics["ir_score"] == job.metrics["ir_score"]
    assert "data:image/png;base64," in swept._repr_html_()
    assert swept.report().read_text("utf-8").startswith("<!doctype html>")
    again = ragauge.load(swept.run_id)
    assert isinstance(again, SweepResult)
    assert again.folder == swept.folder
    assert [j.run_id for j in again.jobs] == [j.run_id for j in swept.jobs]
    pd.testing.assert_frame_equal(again.leaderboard, swept.leaderboard)
    assert again.figures["ir_score_by_n"].png == swept.figures["ir_score_by_n"].png
    with pytest.raises(ragauge.ConfigError, match="n_tokens=-5: allowed are 0"):
        ragauge.sweep([*SMALL, "retriever=bm25", "n_tokens=-5,-6"])
    pytest.importorskip("ragauge.plugins.rerun")
    with pytest.raises(ragauge.ConfigError, match=r"is a sweep: ragauge.sweep"):
        ragauge.run([f"rerun={swept.run_id}"])
