"""`ragauge gate` and the gate of a job: real jobs in a real MLflow store of SQLite."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import open_dict

from ragauge.answering.judges import LexicalJudge
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.job import execute
from ragauge.experiment.setup import config
from ragauge.plugins.gate.command import main
from ragauge.plugins.gate.looks import level_of
from ragauge.track import Reader, Tracker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
CHEAP = [
    "chunker=none", "tokenizer=words", "llm=extractive", "llm.threshold=-1", "judge=lexical", "bootstrap=50",
    "slices=[side]", "answers=[em,f1]", "n_tokens=24",
]  # fmt: skip
SIDE = 'east <&> "x"\n::error::'
TOPICS = 40


@dataclass
class Jobs:
    """An MLflow store and what ran in it: run ids, and errors, by a name."""

    folder: Path
    ids: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.folder / 'mlflow.db'}"

    def source(self, n: int = TOPICS) -> list[str]:
        """A corpus in which the first hit is the right one for even numbers, and questions over it."""
        built = "Anna built tower number{} of Graz."
        asked = "tower number{0} tower number{0}: who built tower number{0}?"
        docs = [
            {"docno": f"{kind}{i}", "title": "", "text": text.format(i)}
            for i in range(TOPICS)
            for kind, text in (("t", built), *([("s", asked)] if i % 2 else []))
        ]
        topics = [
            {
                "qid": f"q{i:02}", "query": f"Who built tower number{i}?", "answer": "Anna", "side":
                SIDE if i < n // 2 else "west",
                "evidence": [{"docno": f"t{i}", "text": f"Anna built tower number{i} of Graz."}],
            }
            for i in range(n)
        ]  # fmt: skip
        for kind, rows in (("docs", docs), (f"topics{n}", topics)):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (self.folder / f"{kind}.jsonl").write_text(text, encoding="utf-8")
        return [
            "dataset=jsonl",
            f"dataset.docs={self.folder}/docs.jsonl",
            f"dataset.topics={self.folder}/topics{n}.jsonl",
        ]  # fmt: skip

    def run(self, name: str, *overrides: str, sweep: Path | None = None) -> int:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            cfg = compose("config", overrides=[*self.source(), *CHEAP, f"store={self.folder / 'store'}",
                                               f"tracking.uri={self.uri}", *overrides])  # fmt: skip
        with open_dict(cfg):
            cfg.embedder = {"_target_": "conftest.HashEmbedder"}
        chosen = dict(o.split("=", 1) for o in [*CHEAP, *overrides] if re.fullmatch(r"[a-z]+=[a-z0-9]+", o))
        number = len(list((sweep or self.folder / "outputs").glob("*")))
        path = (sweep or self.folder / "outputs") / str(number)
        path.mkdir(parents=True)
        choices = {"measure": "substring", "embedder": "hash", **chosen}
        code = execute(cfg, JobFolder(path, sweep, number, choices, tuple(overrides)))
        record = json.loads((path / "job.json").read_text(encoding="utf-8"))
        self.ids[name] = record.get("run_id", "")
        self.errors[name] = record.get("error", "")
        return code

    def gate(self, source: str, *arguments: str) -> int:
        return main([self.ids.get(source, source), *arguments, "--tracking-uri", self.uri])

    def checks(self, capsys: pytest.CaptureFixture[str], source: str, *arguments: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        self.gate(source, *arguments, "--json", "-")
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["checks"]
        return found


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """A good system, a bad one, others that do not compare with these, and a sweep of the two."""
    config.register()
    made = Jobs(tmp_path_factory.mktemp("gated"))
    assert made.run("good", "retriever=bm25", "retriever.top_k=2") == 0
    assert made.run("same", "retriever=bm25", "retriever.top_k=2", "seed=1", "+gate.ir_score=0.5") == 0
    assert made.run("bad", "retriever=bm25", "retriever.top_k=1") == 0
    assert made.run("unjudged", "retriever=bm25", "judge=none", "answers=[f1]") == 0
    assert made.run("words", "retriever=bm25", "measure=words") == 0
    assert made.run("fewer", "retriever=bm25", *made.source(20)) == 0
    sweep = made.folder / "multirun" / "day" / "hour"
    for retriever in ("bm25", "none"):
        assert made.run(f"sweep-{retriever}", f"retriever={retriever}", sweep=sweep) == 0
    sweep_id = str(JobFolder(sweep / "0", sweep, 0, {}, ()).sweep_id)
    with Tracker(made.uri, "jsonl").run("sweep", {}, {"role": "sweep", "sweep_id": sweep_id}) as run:
        run.metrics({"predictor_ece": 0.05})
        made.ids["sweep"] = run.run_id
    made.ids["folder"] = str(sweep)
    return made


# --- rules without a baseline -------------------------------------------------------------------------------


def test_without_rules_a_run_is_held_to_those_of_its_config(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    (check,) = jobs.checks(capsys, "same")
    assert (check["metric"], check["bound"], check["verdict"]) == ("ir_score", 0.5, "pass")


def test_a_gate_file_is_read_and_its_names_are_checked(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(
        f"ir_score: 0.5\nbaseline: {jobs.ids['good']}\nrules:\n  - {{metric: f1, tolerance: 0.5, slice: side}}\n"
    )
    found = jobs.checks(capsys, "same", "--rules", str(file))
    assert [c["kind"] for c in found] == ["min", "baseline", "baseline"]
    assert {c["n"] for c in found[1:]} == {TOPICS // 2}
    file.write_text("ir_scor: 0.5\n")
    assert jobs.gate("same", "--rules", str(file)) == 2
    assert f"{file}: ir_scor: no such metric. Did you mean ir_score?" in capsys.readouterr().err
    file.write_text("rules: [{metric: ir_scor, min: 0.5}]\n")
    assert jobs.gate("same", "--rules", str(file)) == 2
    assert "rules, rule 1 (ir_scor): no such metric. Did you mean ir_score?" in capsys.readouterr().err


# --- against a baseline -------------------------------------------------------------------------------------


def test_a_job_judges_its_sample_in_looks_and_stops_once_its_gate_is_decided(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    judge = LexicalJudge.judge

    def counted(self: LexicalJudge, topics: Any, evidence: Any, answers: pd.DataFrame, tools: Any) -> pd.DataFrame:
        asked.extend(answers["qid"])
        return judge(self, topics, evidence, answers, tools)

    monkeypatch.setattr(LexicalJudge, "judge", counted)
    baseline, rule = jobs.ids["sweep-none"], "hallucination_share={tolerance: 0.05}"
    given = [f"+gate.{rule}", f"+gate.baseline={baseline}", "judge.sample=40", "judge.looks=4"]
    assert jobs.run("stopped", "retriever=bm25", *given) == 3  # everything is made up, and nothing in the baseline
    assert "regressed; look 2 of 4, on 20 of at most 40 topics" in jobs.errors["stopped"]
    assert len(asked) == len(set(asked)) == 20
    run = Reader(jobs.uri).run(jobs.ids["stopped"])
    assert run.metrics["judged_topics"] == 20
    # A gate of the logged run knows that it was looked at twice.
    (check,) = jobs.checks(capsys, "stopped", rule, "--baseline", baseline)
    assert (check["verdict"], check["look"], check["looks"], check["look_topics"]) == ("regressed", 2, 4, 20)
    assert check["level"] == pytest.approx(level_of(0.05, [0.25, 0.5]))
    # Once more the verdicts are in the store, and a system without a difference takes all looks.
    assert jobs.run("stopped again", "retriever=bm25", *given) == 3
    assert len(asked) == 20
    assert jobs.run("whole", "retriever=none", *given) == 0
    assert sorted(asked[20:]) == sorted(set(asked))


def test_a_copied_folder_of_the_run_is_the_run_itself(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copied = shutil.copytree(jobs.folder / "outputs" / "1", tmp_path / "copied")
    (check,) = jobs.checks(capsys, "same", "ir_score={tolerance: 0.1}", "--baseline", str(copied))
    assert "is the run itself" in check["said"]


def test_a_job_and_the_command_know_the_looks_of_each_other(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    system = ["retriever=bm25", "retriever.top_k=2", "+gate.ir_score={min: 0.2}", "+gate.series=looks"]
    assert jobs.run("first", *system, *jobs.source(20), "+gate.look=1/2") == 0
    (check,) = jobs.checks(capsys, "good", "ir_score=0.2", "--look", "2", "of", "2", "--series", "looks")
    assert (check["look"], check["looks"], check["look_topics"], check["max_topics"]) == (2, 2, TOPICS, 40.0)
    assert check["level"] == pytest.approx(level_of(0.025, [0.5, 1.0]))
    assert jobs.gate("first", "ir_score=0.2", "--look", "1/2", "--series", "looks") == 2
    assert "look 1 of 2 on 20 topics: look 2 on 40 topics" in capsys.readouterr().err
    # A job is told before its work.
    assert jobs.run("late", *system, *jobs.source(20), "+gate.look=2/2") == 2
    assert "was before; that was the last, and a new series has a name of its own" in jobs.errors["late"]
    assert jobs.ids["late"] == ""


# --- sweeps -------------------------------------------------------------------------------------------------


def test_a_job_of_a_sweep_has_the_job_of_its_name_in_another_sweep_for_a_baseline(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    again = jobs.folder / "multirun" / "day" / "again"
    base = f"+gate.baseline={jobs.ids['sweep']}"
    for name in ("none", "bm25"):
        code = jobs.run(f"again-{name}", f"retriever={name}", "+gate.ir_score={tolerance:0.1}", base, sweep=again)
        assert code == 0, jobs.errors[f"again-{name}"]
    found = jobs.checks(capsys, str(again), "ir_score={tolerance: 0.1}", "--baseline", jobs.ids["sweep"])
    assert [c["baseline"][-8:] for c in found] == [jobs.ids[f"sweep-{n}"][:8] for n in ("none", "bm25")]
    assert {c["verdict"] for c in found} == {"pass"}
    (check,) = jobs.checks(capsys, "words", "ir_score={tolerance: 0.1}", "--baseline", jobs.ids["sweep"])
    assert check["verdict"] == "invalid"


def test_a_job_that_did_not_finish_is_no_pass(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = jobs.folder / "multirun" / "day" / "broken"
    assert jobs.run("whole", "retriever=bm25", sweep=sweep) == 0
    assert jobs.run("broken", "retriever=bm25", "retriever.top_k=0", sweep=sweep) == 2
    found = jobs.checks(capsys, str(sweep), "ir_score=0.1")
    assert sorted(c["verdict"] for c in found) == ["invalid", "pass"]
    assert jobs.gate(str(sweep), "ir_score=0.1") == 2


# --- formats ------------------------------------------------------------------------------------------------


# --- the gate of a job --------------------------------------------------------------------------------------


def test_a_gate_on_an_unknown_metric_ends_a_job_before_any_work(jobs: Jobs, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for rule, message in (
        ("+gate.ir_scor=0.5", "gate.ir_scor: no such metric. Did you mean ir_score?"),
        ("+gate.rouge_l=0.5", "gate.rouge_l: no such metric"),
        ("+gate={slice/side/north/ir_score:0.1}", "no such slice"),
        ("+gate.ir_score={tolerance:0.1}", "give gate.baseline=<MLflow run id> or gate.baseline_tag=<tag>"),
        ("+gate.ir_score=high", "gate.ir_score='high': allowed are a number"),
        ("+gate.preset=guideline", "gate.preset=guideline: faithfulness: no such metric"),
    ):
        assert jobs.run("refused", "retriever=bm25", rule, f"store={store}") == 2
        assert message in jobs.errors["refused"]
        assert jobs.ids["refused"] == ""  # no run in MLflow
        assert not any(store.glob("answers/*"))
    for base, message in (
        ("0" * 32, "holds no run"),
        (jobs.ids["fewer"], "has another dataset"),
        (jobs.ids["unjudged"], "has no em: measure it there, too"),
    ):
        rules = ["+gate.em={tolerance:0.1}", f"+gate.baseline={base}"]
        assert jobs.run("refused", "retriever=bm25", *rules, f"store={store}") == 2
        assert message in jobs.errors["refused"]
        assert not any(store.glob("answers/*"))
    assert jobs.run("refused", "retriever=bm25", "judge=none", "+gate.correct_share=0.5") == 2
    assert "gate.correct_share: this job has no verdicts" in jobs.errors["refused"]


def test_a_job_that_misses_its_gate_is_finished_and_ends_with_3(jobs: Jobs) -> None:
    base = f"+gate.baseline={jobs.ids['good']}"
    rules = ["+gate.ir_score={min:0.99,tolerance:0.02}", base]
    assert jobs.run("missed", "retriever=bm25", "retriever.top_k=1", *rules) == 3
    assert jobs.errors["missed"].startswith("quality gate not met: ir_score=")
    assert "is below 0.99; ir_score differs by -" in jobs.errors["missed"]
    assert Reader(jobs.uri).run(jobs.ids["missed"]).status == "FINISHED"
    told = "+gate.ir_score={min:0.99,action:investigate}"
    assert jobs.run("told", "retriever=bm25", "retriever.top_k=1", told) == 0
    empty = "+gate.predicted_correct_share=0.5"
    assert jobs.run("empty", "retriever=bm25", empty) == 2
    assert "predicted_correct_share: this job has no value" in jobs.errors["empty"]
