"""The gate of a job, and `ragauge gate` on it: real jobs of twelve topics in an MLflow store of SQLite."""

from __future__ import annotations

import json
import logging
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
from ragauge.experiment.job import execute
from ragauge.experiment.request import JobFolder
from ragauge.experiment.setup import config
from ragauge.plugins.gate.command import main
from ragauge.track import Reader

ROOT = Path(__file__).resolve().parents[3]
CHEAP = [
    "chunker=none", "tokenizer=words", "llm=extractive", "llm.threshold=-1", "judge=lexical", "bootstrap=50",
    "slices=[side]", "answers=[em,f1]", "n_tokens=24", "n_grid=[24]", "retriever=bm25",
]  # fmt: skip
TOPICS = 12


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
        """A corpus in which the first hit is the right one for even numbers, the second for odd ones."""
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
                "east" if i < n // 2 else "west",
                "evidence": [{"docno": f"t{i}", "text": f"Anna built tower number{i} of Graz."}],
            }
            for i in range(n)
        ]  # fmt: skip
        for kind, rows in (("docs", docs), (f"topics{n}", topics)):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (self.folder / f"{kind}.jsonl").write_text(text, encoding="utf-8")
        files = {"docs": "docs", "topics": f"topics{n}"}
        return ["dataset=jsonl", *(f"dataset.{key}={self.folder}/{name}.jsonl" for key, name in files.items())]

    def run(self, name: str, *overrides: str) -> int:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            cfg = compose("config", overrides=[*self.source(), *CHEAP, f"store={self.folder / 'store'}",
                                               f"tracking.uri={self.uri}", *overrides])  # fmt: skip
        with open_dict(cfg):
            cfg.embedder = {"_target_": "conftest.HashEmbedder"}
        chosen = dict(o.split("=", 1) for o in [*CHEAP, *overrides] if re.fullmatch(r"[a-z]+=[a-z0-9]+", o))
        path = self.folder / "outputs" / name
        path.mkdir(parents=True)
        choices = {"measure": "substring", "embedder": "hash", **chosen}
        code = execute(cfg, JobFolder(path, None, 0, choices, tuple(overrides)))
        record = json.loads((path / "job.json").read_text(encoding="utf-8"))
        self.ids[name] = record.get("run_id", "")
        self.errors[name] = record.get("error", "")
        return code

    def checks(self, capsys: pytest.CaptureFixture[str], source: str, *arguments: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        main([self.ids[source], *arguments, "--json", "-", "--tracking-uri", self.uri])
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["checks"]
        return found


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    config.register()
    made = Jobs(tmp_path_factory.mktemp("gated"))
    assert made.run("good", "retriever.top_k=2") == 0
    return made


def test_a_job_is_held_to_numbers_and_to_its_baseline_and_is_finished(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    base = f"+gate.baseline={jobs.ids['good']}"
    with caplog.at_level(logging.INFO):
        assert jobs.run("same", "retriever.top_k=2", "+gate.ir_score={min:0.5,tolerance:0.6}", base) == 0
        # The six odd topics have their evidence in the second hit; of 33 or 34 characters the first has
        # " built tower number1": (6 + 5 * 20 / 33 + 21 / 34) / 12.
        rules = ["+gate.ir_score={min:0.99,tolerance:0.02}", "+gate.em={min:2,action:investigate}", base]
        assert jobs.run("worse", "retriever.top_k=1", *rules) == 3
    said = [(line.levelname, line.getMessage()) for line in caplog.records if line.getMessage().startswith("gate: ")]
    of = f"from the baseline {jobs.ids['good'][:8]} over 12 topics"
    assert [level for level, _ in said] == ["INFO", "WARNING"]
    assert said[0][1].startswith("gate: ir_score differs by +0.0000 [")
    assert said[0][1].endswith(f"{of}, tolerance 0.6: pass")
    assert said[1][1].endswith("is below 2")
    error = jobs.errors["worse"]
    assert error.startswith("quality gate not met: ir_score=0.8040 [")
    assert re.search(rf"is below 0.99; ir_score differs by -0.1960 \[.*\] {of}, tolerance 0.02: regressed$", error)
    assert Reader(jobs.uri).run(jobs.ids["worse"]).status == "FINISHED"
    # Asked later, a run is held to the rules of its config; the copied folder of a run is the run.
    found = jobs.checks(capsys, "worse")
    assert [(c["metric"], c["kind"], c["verdict"], c["fails"]) for c in found] == [
        ("ir_score", "min", "missed", True), ("ir_score", "baseline", "regressed", True),
        ("em", "min", "missed", False),
    ]  # fmt: skip
    copied = shutil.copytree(jobs.folder / "outputs" / "same", jobs.folder / "copied")
    [check] = jobs.checks(capsys, "same", "ir_score={tolerance: 0.1}", "--baseline", str(copied))
    assert "is the run itself" in check["said"]
    [sliced, _] = jobs.checks(capsys, "worse", "em={min: 0, slice: side}")
    assert (sliced["metric"], sliced["verdict"]) == ("slice/side/east/em", "pass")


def test_a_gate_that_no_job_can_meet_ends_it_before_any_work(jobs: Jobs, tmp_path: Path) -> None:
    assert jobs.run("unjudged", "judge=none", "answers=[f1]") == 0
    of_em, of_right, looks = "+gate.em={tolerance:0.1}", "+gate.correct_share=0.5", ["judge.sample=4", "judge.looks=2"]
    for number, (rules, message) in enumerate((
        (["+gate.ir_scor=0.5"], "gate.ir_scor: no such metric. Did you mean ir_score?"),
        (["+gate={slice/side/north/ir_score:0.1}"], "no such slice"),
        ([of_right, "judge=none"], "gate.correct_share: this job has no verdicts"),
        ([of_em, f"+gate.baseline={jobs.ids['good']}", *jobs.source(6)], "has another dataset"),
        ([of_em, f"+gate.baseline={jobs.ids['unjudged']}"], "has no em: measure it there, too"),
        (["+gate.correct_share={min:0.5,by:value}", *looks], "no rule is about verdicts"),
        ([of_right, *looks, "judge.looks=1"], "judge.looks=1: allowed are integers from 2 to 20, null for none"),
        ([of_right, *looks, "judge.sample=3"], "give judge.sample=n, at least 4"),
        ([of_right, *looks, "sample_target=topics"], "use sample_target=population"),
        ([of_right, *looks, "+gate.look=1/2"], "the job takes its looks itself; leave gate.look out"),
    )):  # fmt: skip
        name = f"refused {number}"
        assert jobs.run(name, *rules, f"store={tmp_path}") == 2, rules
        assert message in jobs.errors[name]
        assert jobs.ids[name] == ""  # no run in MLflow
        assert not any(tmp_path.glob("answers/*"))
    assert jobs.run("empty", "+gate.predicted_correct_share=0.5") == 2
    assert "predicted_correct_share: this job has no value" in jobs.errors["empty"]


def test_a_job_judges_its_sample_in_looks_and_stops_once_its_gate_is_decided(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    judge = LexicalJudge.judge

    def counted(self: LexicalJudge, topics: Any, evidence: Any, answers: pd.DataFrame, tools: Any) -> pd.DataFrame:
        asked.extend(answers["qid"])
        return judge(self, topics, evidence, answers, tools)

    monkeypatch.setattr(LexicalJudge, "judge", counted)
    looks = ["judge.sample=8", "judge.looks=2"]
    # No share comes near to 9: the first look passes. One that lies within the interval takes both.
    for name, limit, judged in (("stopped", 9, 4), ("whole", 0.5, 8)):
        asked.clear()
        caplog.clear()
        with caplog.at_level(logging.INFO):
            given = [f"+gate.hallucination_share={{max:{limit}}}", f"store={jobs.folder / name}", *looks]
            assert jobs.run(name, *given) == 0
        assert len(asked) == len(set(asked)) == judged
        run = Reader(jobs.uri).run(jobs.ids[name])
        assert run.metrics["judged_topics"] == judged
        said = [line.getMessage() for line in caplog.records if line.getMessage().startswith("judge.looks: ")]
        assert [re.findall(r"look \d of \d, on \d of at most 8 topics", line) for line in said] == [
            [f"look {n} of 2, on {4 * n} of at most 8 topics"] for n in range(1, judged // 4 + 1)
        ]
        # A gate of the logged run knows of its looks. Two looks, the first at half: 2.963 and 1.969.
        [check] = jobs.checks(capsys, name, f"hallucination_share={{max: {limit}}}")
        assert (check["look"], check["looks"], check["look_topics"], check["max_topics"]) == (judged / 4, 2, judged, 8)
        assert check["level"] == pytest.approx({4: 0.00152, 8: 0.02448}[judged], abs=3e-5)
        assert check["verdict"] == ("pass" if judged == 4 else "inconclusive")


def test_a_job_and_the_command_know_the_looks_of_each_other(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    system = ["retriever.top_k=2", "+gate.ir_score={min: 0.2}", "+gate.series=looks"]
    assert jobs.run("first", *system, *jobs.source(6), "+gate.look=1/2") == 0
    [check] = jobs.checks(capsys, "good", "ir_score=0.2", "--look", "2", "of", "2", "--series", "looks")
    assert (check["look"], check["looks"], check["look_topics"], check["max_topics"]) == (2, 2, TOPICS, 12)
    assert check["level"] == pytest.approx(0.02448, abs=3e-5)
    # A job is refused before its work.
    assert jobs.run("late", *system, *jobs.source(6), "+gate.look=2/2") == 2
    assert "look 2 on 12 topics" in jobs.errors["late"]
    assert "that was the last, and a new series has a name of its own" in jobs.errors["late"]
    assert jobs.ids["late"] == ""
