"""`ragauge gate` and the gate of a job: real jobs in a real MLflow store of SQLite."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlflow
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


def test_bounds_decide_the_exit_code_and_investigate_does_not(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert jobs.gate("good", "ir_score=0.9", "f1={max: 1}") == 0
    assert jobs.gate("bad", "ir_score=0.99") == 3
    assert "is below 0.99" in capsys.readouterr().out
    assert jobs.gate("bad", "ir_score={max: 0.01}") == 3
    assert jobs.gate("bad", "ir_score={min: 0.99, action: investigate}", "f1=0") == 0
    assert "missed (investigate)" in capsys.readouterr().out


def test_a_metric_that_a_run_has_no_value_of_is_invalid_and_no_pass(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs.gate("unjudged", "correct_share=0.1") == 2
    assert "correct_share: no answer has a verdict" in capsys.readouterr().out
    assert jobs.gate("unjudged", "predicted_correct_share=0.1") == 2
    assert "this job has no value" in capsys.readouterr().out
    # What fails goes before what is not decided.
    assert jobs.gate("unjudged", "correct_share=0.1", "ir_score={max: 0}") == 3


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["ir_scor=0.5"], "ir_scor: no such metric. Did you mean ir_score?"),
        (["rouge_l=0.5"], "rouge_l: no such metric"),
        (["slice/side/north/ir_score=0.5"], "no such slice; there are"),
        (["ir_score={min: 0, slice: {side: north}}"], "no such slice (side: north); there are"),
        (["ir_score={min: 0, slice: sides}"], "no such slice (sides); there are side"),
        (["ir_score={tolerance: 0.1}"], "a tolerance is of a baseline: give --baseline="),
        (["ir_score=0.1", "--baseline", "abc"], "no rule has a tolerance"),
        (["n_chunks={tolerance: 1}", "--baseline", "abc"], "n_chunks has no value for every topic"),
        (["ir_score={tolerance: 2}", "--baseline", "abc"], "numbers from 0 to below 1 (0.02 is two points)"),
        (["ir_score=0.5", "--system", "bm25"], "they choose jobs of a sweep, and this is one job"),
        (["ir_score=0.5", "--pooled"], "this is one job"),
        ([], "was made without a gate"),
        (["--strict"], "they are of rules given here"),
        (["ir_score"], "'ir_score': allowed are rules such as ir_score=0.6"),
        (["ir_score=0.5", "--json", "-", "--github"], "--json and --github: one format"),
        (["--preset", "guideline"], "preset=guideline: faithfulness: no such metric"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_exit_code_2(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], rules: list[str], message: str
) -> None:
    assert jobs.gate("good", *rules) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert told.count("\n") == 0


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


def test_a_drop_beyond_the_tolerance_regresses_and_the_numbers_are_those_of_the_tables(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    found = jobs.checks(capsys, "bad", "ir_score={tolerance: 0.02}", "--baseline", jobs.ids["good"])
    (check,) = found
    reader = Reader(jobs.uri)
    tables = {n: reader.table(jobs.ids[n], "per_question.json").set_index("qid") for n in ("good", "bad")}
    difference = tables["bad"]["ir_score"] - tables["good"]["ir_score"]
    assert difference.mean() < -0.1
    assert check["difference"] == pytest.approx(difference.mean())
    assert (check["verdict"], check["n"]) == ("regressed", TOPICS)
    assert jobs.gate("bad", "ir_score={tolerance: 0.02}", "--baseline", jobs.ids["good"][:8]) == 3
    told = "ir_score={tolerance: 0.02, action: investigate}"
    assert jobs.gate("bad", told, "--baseline", jobs.ids["good"]) == 0


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


def test_equal_runs_pass_and_what_is_inconclusive_fails_where_it_is_strict(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [
        "ir_score={tolerance: 0.1}",
        "correct_share={tolerance: 0.1}",
        "hallucination_share={tolerance: 0.1}",
    ]
    assert jobs.gate("same", *rules, "--baseline", jobs.ids["good"], "--strict") == 0
    tight = "correct_share={tolerance: 0.001}"
    assert jobs.gate("same", tight, "--baseline", jobs.ids["good"]) == 0
    assert "more topics would decide it" in capsys.readouterr().out
    assert jobs.gate("same", tight, "--baseline", jobs.ids["good"], "--strict") == 3


def test_a_baseline_that_does_not_compare_is_invalid_with_its_reason(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, rule, reason in (
        ("fewer", "ir_score={tolerance: 0.1}", "has another dataset (digest"),
        ("words", "ir_score={tolerance: 0.1}", "was measured by another measure"),
        ("unjudged", "correct_share={tolerance: 0.1}", "was measured by another judge"),
        (
            "unjudged",
            "em={tolerance: 0.1}",
            "with a value in both runs; a comparison takes 2 (the baseline lack",
        ),
        ("good", "rejection_share={tolerance: 0.1}", "0 topic(s) with a value in both runs"),
    ):
        (check,) = jobs.checks(capsys, "same", rule, "--baseline", jobs.ids[name])
        assert (check["verdict"], check["fails"]) == ("invalid", False)
        assert reason in check["said"], check["said"]
        assert jobs.gate("same", rule, "--baseline", jobs.ids[name]) == 2
    for source, reason in (
        (jobs.ids["same"], "is the run itself"),
        ("0" * 32, "holds no run"),
        ("nothere", "is neither a folder nor an MLflow run id"),
    ):
        (check,) = jobs.checks(capsys, "same", "ir_score={tolerance: 0.1}", "--baseline", source)
        assert check["verdict"] == "invalid"
        assert reason in check["said"]


def test_a_copied_folder_of_the_run_is_the_run_itself(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copied = shutil.copytree(jobs.folder / "outputs" / "1", tmp_path / "copied")
    (check,) = jobs.checks(capsys, "same", "ir_score={tolerance: 0.1}", "--baseline", str(copied))
    assert "is the run itself" in check["said"]


def altered(jobs: Jobs, name: str, change: Any) -> str:
    """The id of a copy of a run whose table of questions is changed."""
    run = Reader(jobs.uri).run(jobs.ids[name])
    table = change(Reader(jobs.uri).table(run.run_id, "per_question.json"))
    tags = {key: value for key, value in run.tags.items() if not key.startswith("mlflow.")}
    with Tracker(jobs.uri, run.experiment).run(run.name, {}, tags) as copy:
        copy.metrics(run.metrics)
        copy.table(table, "per_question.json")
    return copy.run_id


def test_missing_and_foreign_values_make_a_comparison_invalid(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    def half(column: str, value: object) -> Any:
        return lambda t: t.assign(**{column: t[column].astype(object).where(t.index % 2 == 0, value)})

    for change, rule, reason in (
        (half("ir_score", None), "ir_score", "50.0% of the topics have no value"),
        (half("label", None), "correct_share", "50.0% of the topics have no value"),
        (lambda t: t[::2], "f1", "50.0% of the topics have no value"),
        (half("ir_score", "much"), "ir_score", "cannot be read"),
        (half("f1", "much"), "f1", "cannot be read"),
        (half("ir_score", 7.0), "ir_score", "is not a number in [0, 1]"),
        (half("qid", "q00"), "ir_score", "is not the same topic"),
        (lambda t: pd.concat([t, t[:1]]), "ir_score", "occurs twice"),
        (lambda t: t.drop(columns="label"), "ir_score", "has no column label"),
        (lambda t: t.assign(query="Who?"), "ir_score", "is not the same topic"),
    ):
        base = altered(jobs, "good", change)
        (check,) = jobs.checks(capsys, "same", f"{rule}={{tolerance: 0.1}}", "--baseline", base)
        assert check["verdict"] == "invalid", rule
        assert reason in check["said"], check["said"]


def test_the_newest_run_with_a_tag_is_the_baseline(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    client = mlflow.MlflowClient(jobs.uri)
    rule = "ir_score={tolerance: 0.1}"
    (check,) = jobs.checks(capsys, "same", rule, "--baseline-tag", "release")
    assert "no other finished run of the experiment" in check["said"]
    for name, value in (("bad", "1"), ("good", "2"), ("same", "3")):
        client.set_tag(jobs.ids[name], "release", value)
    (check,) = jobs.checks(capsys, "same", rule, "--baseline-tag", "release")
    assert check["baseline"] == f"the baseline {jobs.ids['bad'][:8]}"  # started last
    (check,) = jobs.checks(capsys, "same", rule, "--baseline-tag", "release=2")
    assert check["baseline"] == f"the baseline {jobs.ids['good'][:8]}"
    for tag in ("a`b", "a='", "x y", ""):
        (check,) = jobs.checks(capsys, "same", rule, "--baseline-tag", tag or "=")
        assert check["verdict"] == "invalid"
        assert "allowed are a name, and name=value" in check["said"]


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


def test_every_job_of_a_sweep_is_held_to_the_gate_or_one_system_or_the_pooled_run(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    for source in ("sweep", "folder"):
        found = jobs.checks(capsys, source, "ir_score=0.1")
        assert [c["verdict"] for c in found] == ["pass", "missed"]
    assert jobs.gate("sweep", "ir_score=0.1") == 3
    assert jobs.gate("sweep", "ir_score=0.1", "--system", "bm25") == 0
    assert jobs.gate("sweep", "ir_score=0.1", "--system", "mmr") == 2
    assert "--system mmr: no such job in this sweep; there are bm25, none" in capsys.readouterr().err
    assert jobs.gate("sweep", "predictor_ece={max: 0.1}", "--pooled") == 0
    assert jobs.gate("sweep", "predictor_ece={max: 0.01}", "--pooled") == 3
    assert jobs.gate("sweep", "ir_score=0.1", "--pooled") == 2


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


def test_the_formats_of_a_real_gate_are_read_by_their_readers(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capsys.readouterr()
    junit, summary = tmp_path / "out" / "junit.xml", tmp_path / "out" / "gate.md"
    code = jobs.gate(
        "bad", "ir_score={tolerance: 0.02, slice: side}", "f1=0.99", "--baseline", jobs.ids["good"],
        "--junit", str(junit), "--markdown", str(summary), "--github",
    )  # fmt: skip
    assert code == 3
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert suite.attrib["tests"] == "3"
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure")) >= 2
    said = capsys.readouterr().out
    commands = [line for line in said.splitlines() if line.startswith("::")]
    assert all(line.startswith(("::error title=", "::warning title=")) for line in commands)
    assert len(commands) == int(suite.attrib["failures"]) + int(suite.attrib["skipped"])
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("### Quality gate failed")
    assert "**regressed**" in text


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


def test_slices_of_a_rule_are_those_of_the_run(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    name = "ir_score={tolerance: 0.02, slice: {side: west}}"
    (check,) = jobs.checks(capsys, "bad", name, "--baseline", jobs.ids["good"])
    assert check["metric"] == "slice/side/west/ir_score"
    tables = [
        pd.DataFrame(Reader(jobs.uri).table(jobs.ids[n], "per_question.json")).set_index("qid") for n in ("bad", "good")
    ]
    west = tables[0]["slice:side"] == "west"
    assert check["difference"] == pytest.approx((tables[0]["ir_score"] - tables[1]["ir_score"])[west].mean())
