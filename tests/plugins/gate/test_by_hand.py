"""`ragauge gate` on small logged runs: the numbers of each check by hand, and what cannot be asked or compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlflow import MlflowClient

from logged_runs import LoggedRuns
from ragauge import track
from ragauge.contract import comparable
from ragauge.contract.answer_measures import as_tag
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.plugins.gate.command import main

# qid, side, unanswerable, then of the new run and of the baseline: score and label (None: no value, no verdict).
# q10 stands in the new run alone, q11 in the baseline alone.
WORLD = [
    ("q0", "east", False, (0.25, 5), (0.50, 5)),
    ("q1", "east", False, (0.00, 1), (0.75, 5)),
    ("q2", "east", False, (0.50, 4), (0.50, 5)),
    ("q3", "east", False, (0.25, 4), (1.00, 5)),
    ("q4", "west", False, (1.00, 5), (0.50, 3)),
    ("q5", "west", False, (0.50, 5), (0.50, 5)),
    ("q6", "west", False, (0.75, None), (0.75, 5)),
    ("q7", "west", True, (0.00, 4), (0.00, 1)),
    ("q8", "west", True, (0.00, 1), (0.00, 1)),
    ("q9", "west", False, (0.25, 2), (None, 5)),
    ("q10", "east", False, (1.00, 5), None),
    ("q11", "east", False, None, (0.25, 1)),
]  # fmt: skip
F1 = AnswerMeasureInfo("f1", "token F1", unit="share")
SIDES = {"slice/side/east/ir_score": 0.4, "slice/side/west/ir_score": 0.45, "slice/side/west/correct_share": 0.5}


def rows(which: int, lacks: str = "") -> pd.DataFrame:
    """The questions of the new run (0) or of the baseline (1), as a job logs them."""
    table = pd.DataFrame(
        [(qid, side, marked, *of[which]) for qid, side, marked, *of in WORLD if of[which] is not None],
        columns=["qid", "slice:side", "unanswerable", "ir_score", "label"],
    ).astype({"label": "Int8", "ir_score": "float64"})
    texts = {"query": [f"What is {qid}?" for qid in table["qid"]], "answer": "It is.", "n_used": 10.0}
    return table.assign(**texts, f1=table["ir_score"] / 2).drop(columns=lacks or [])


@dataclass
class Store:
    """Logged runs by name, and the command at them."""

    logged: LoggedRuns
    ids: dict[str, str]
    capsys: Any = None

    def add(self, name: str, table: pd.DataFrame, metrics: dict[str, float] | None = None, **tags: str) -> str:
        whole = {**as_tag([F1]), **tags}
        self.ids[name] = self.logged.job(table, tags.pop("named", name), None, **whole)
        with track.Tracker(self.logged.uri, self.logged.experiment).resume(self.ids[name]) as run:
            run.metrics({**SIDES, "f1": 0.2, **(metrics or {})})
        return self.ids[name]

    def gate(self, *arguments: str) -> int:
        given = [self.ids.get(word, word) for word in arguments]
        return main([*given, "--tracking-uri", self.logged.uri])

    def asked(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        self.capsys.readouterr()
        code = self.gate(*arguments, "--json", "-")
        return code, json.loads(self.capsys.readouterr().out)["checks"]

    def refused(self, *arguments: str) -> str:
        """The one line of an error."""
        self.capsys.readouterr()
        assert self.gate(*arguments) == 2
        told = str(self.capsys.readouterr().err).strip()
        assert "\n" not in told
        return told


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(LoggedRuns(f"sqlite:///{tmp_path_factory.mktemp('by_hand') / 'mlflow.db'}", "by hand"), {})
    store.add("base", rows(1))
    store.add("new", rows(0), {"judged_topics": 9})
    return store


@pytest.fixture
def store(made: Store, capsys: pytest.CaptureFixture[str]) -> Store:
    made.capsys = capsys
    return made


def test_differences_are_over_the_topics_of_both(store: Store) -> None:
    expected = {
        # Of q0 to q8 both have a score: -.25 -.75 0 -.75 +.5, and four zeros.
        "ir_score": (-1.25 / 9, 9), "f1": (-0.625 / 9, 9),
        # Of q0 to q6 and q9, which have an answer: q1, q2, q3, q6 and q9 are no longer right, q4 is.
        "correct_share": (-4 / 8, 8), "judge_share_5": (-4 / 8, 8), "judge_share_missing": (1 / 8, 8),
        # And without q6, of which it is unknown whether the new answer is one.
        "hallucination_share": (3 / 7 - 0 / 7, 7), "judge_share_1": (1 / 7, 7), "judge_share_2": (1 / 7, 7),
        "judge_share_3": (-1 / 7, 7), "judge_share_4": (2 / 7, 7),
        # Of q7 and q8, which have none.
        "rejection_share": (-1 / 2, 2),
        # In the slices as the new run has them.
        "slice/side/east/ir_score": (-1.75 / 4, 4), "slice/side/west/ir_score": (0.5 / 5, 5),
        "slice/side/west/correct_share": (-1 / 4, 4),
    }  # fmt: skip
    rules = [f"{metric}={{tolerance: 0.1}}" for metric in expected]
    code, checks = store.asked("new", *rules, "--baseline", "base", "--rules", str(lenient(store)))
    assert code == 0
    found = {c["metric"]: (c["difference"], c["n"]) for c in checks}
    found.pop("topics")
    assert list(found) == list(expected)
    for metric, (difference, n) in expected.items():
        assert found[metric] == (pytest.approx(difference), n), metric
        check = next(c for c in checks if c["metric"] == metric)
        assert check["difference_lo"] < difference < check["difference_hi"]
        assert (check["kind"], check["bound"]) == ("baseline", 0.1)
        assert check["baseline"] == f"the baseline {store.ids['base'][:8]}"


def lenient(store: Store) -> Path:
    """A file of one rule that allows half of the values to be missing."""
    file = Path(store.logged.uri.removeprefix("sqlite:///")).with_name("gate.yaml")
    file.write_text("topics: {min: 2, by: value}\nmax_missing_share: 0.5\n", encoding="utf-8")
    return file


def test_of_a_sample_the_topics_that_were_judged_in_both_are_compared(store: Store) -> None:
    # Of q0 to q5 one is won and three are lost; no prediction tells the runs apart.
    for which, name in enumerate(("new sample", "base sample")):
        table = rows(which).assign(stratum=0, **{f"p{c}": 0.2 for c in range(1, 6)})
        judged = table["qid"].isin([f"q{i}" for i in range(6)])
        store.add(name, table.assign(judged=judged, label=table["label"].where(judged)))
    rule = ["correct_share={tolerance: 0.1}", "--baseline", "base sample", "--rules", str(lenient(store))]
    for look in ([], ["--look", "1/2", "--max-topics", "20"]):
        check = store.asked("new sample", *rule, *look)[1][1]
        assert (check["difference"], check["n"], check["verdict"]) == (pytest.approx(-2 / 6), 6, "inconclusive")
        assert check["look_topics"] == (6 if look else 0)


def test_missing_values_are_counted_of_the_topics_that_either_has(store: Store) -> None:
    # Of twelve topics q9, q10 and q11 lack a score in one; verdicts lack on 3 of 10, or one of nine answers.
    for metric, share in (("ir_score", 3 / 12), ("rejection_share", None), ("correct_share", 2 / 10)):
        code, [check] = store.asked("new", f"{metric}={{tolerance: 0.1}}", "--baseline", "base")
        if share is None:
            assert (code, check["verdict"]) == (0, "inconclusive")
            continue
        assert (code, check["verdict"], check["fails"]) == (2, "invalid", False)
        assert check["reason"] == (
            f"{share:.1%} of the topics have no value in this run or in the baseline {store.ids['base'][:8]} "
            "(allowed 5.0%)"
        )


def test_a_baseline_that_does_not_compare_says_why(store: Store) -> None:
    def measured(**parts: str) -> dict[str, str]:
        means = {"measure": "substring", "tokenizer": "words", "judge": "chat", **parts}
        return comparable.as_tag(comparable.digests({name: {"component": of} for name, of in means.items()}))

    full = rows(0).assign(ir_score=0.5, f1=0.25, label=pd.array([5] * 11, dtype="Int8"))
    store.add("own", full, **measured())
    store.add("other data", full, dataset_digest="1" * 64)
    store.add("other measure", full, **measured(measure="words"))
    store.add("other tokenizer", full, **measured(tokenizer="llama3"))
    store.add("other judge", full, **measured(judge="lexical"))
    store.add("no f1", full.drop(columns="f1"), **{next(iter(as_tag([F1]))): "[]"})
    store.add("other topic", full.assign(query="Who?"))
    store.add("twice", pd.concat([full, full[:1]]))
    for name, rule, reason in (
        ("other data", "ir_score", "has another dataset (digest 111111111111, here 000000000000): no topic is paired"),
        ("other measure", "ir_score", "was measured by another measure"),
        ("other tokenizer", "correct_share", "was measured by another tokenizer"),
        ("other judge", "correct_share", "was measured by another judge"),
        ("other judge", "judge_share_missing", "was measured by another judge"),
        ("other judge", "ir_score", None),
        ("no f1", "f1", "0 topic(s) with a value in both runs; a comparison takes 2 (the baseline lack it)"),
        ("other topic", "ir_score", "is not the same topic"),
        ("twice", "ir_score", "occurs twice"),
        ("own", "ir_score", "is the run itself"),
        ("0" * 32, "ir_score", "holds no run"),
        ("nothere", "ir_score", "is neither a folder nor an MLflow run id"),
    ):
        code, [check] = store.asked("own", f"{rule}={{tolerance: 0.4}}", "--baseline", name)
        if reason is None:
            assert (code, check["verdict"], check["difference"]) == (0, "pass", 0)
        else:
            assert (code, check["verdict"]) == (2, "invalid"), name
            assert reason in check["said"], check["said"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["ir_scor=0.5"], "ir_scor: no such metric. Did you mean ir_score?"),
        (["slice/side/north/ir_score=0.5"], "no such slice; there are slice/side/east, slice/side/west"),
        (["ir_score={min: 0, slice: {side: north}}"], "no such slice (side: north); there are east, west"),
        (["ir_score={min: 0, slice: sides}"], "no such slice (sides); there are side"),
        (["slice/side/east/ir_score={min: 0, slice: side}"], "slice: the metric names a slice itself"),
        (["ir_score={tolerance: 0.1}"], "a tolerance is of a baseline: give --baseline="),
        (["ir_score=0.1", "--baseline", "abc"], "no rule has a tolerance"),
        (["topics={tolerance: 1}", "--baseline", "abc"], "topics has no value for every topic"),
        (["ir_score={tolerance: 2}", "--baseline", "abc"], "numbers from 0 to below 1 (0.02 is two points)"),
        (["ir_score=0.5", "--system", "bm25"], "they choose jobs of a sweep, and this is one job"),
        (["ir_score=0.5", "--pooled"], "this is one job"),
        (["--strict"], "they are of rules given here"),
        (["ir_score"], "'ir_score': allowed are rules such as ir_score=0.6"),
        (["ir_score={min"], "'ir_score={min' cannot be read: "),
        (["ir_score=0.5", "--json", "-", "--github"], "--json and --github: one format"),
        (["ir_score=0.5", "--json", "-", "--junit", "-"], "--junit and --json: one format"),
        (["--preset", "guideline"], "preset=guideline: faithfulness: no such metric"),
        (["f1={tolerance: 0.1}", "--baseline", "a", "--baseline-tag", "b"], "one of them says what the baseline is"),
    ],
)
def test_what_cannot_be_asked_is_one_line(store: Store, rules: list[str], message: str) -> None:
    assert message in store.refused("new", *rules)


def test_bounds_decide_the_exit_code_and_files_say_the_same(store: Store, tmp_path: Path) -> None:
    # The mean score of the new run is 4.5 / 11.
    exact = "ir_score={min: 0.40, max: 0.41, by: value}"
    code, checks = store.asked("new", exact, "f1={max: 0.1, action: investigate}")
    assert code == 0
    assert [(c["kind"], c["verdict"], c["fails"]) for c in checks] == [
        ("min", "pass", False), ("max", "pass", False), ("max", "missed", False),
    ]  # fmt: skip
    assert checks[0]["value"] == pytest.approx(4.5 / 11)
    code, checks = store.asked("new", "ir_score={min: 0.41, by: value}", "f1=0.1")
    assert (code, [c["verdict"] for c in checks]) == (3, ["missed", "pass"])
    code, [check] = store.asked("new", "ir_score=0.41")
    assert (code, check["verdict"]) == (0, "inconclusive")
    assert store.asked("new", "ir_score=0.41", "--strict")[0] == 3
    for strict, more, code in (("true", [], 3), ("false", [], 0), ("false", ["--strict"], 3), ("true", ["f1=0"], 3)):
        (file := tmp_path / "gate.yaml").write_text(f"ir_score: 0.41\nstrict: {strict}\n", encoding="utf-8")
        assert store.asked("new", *more, "--rules", str(file))[0] == code
    assert "there are two rules for it" in store.refused("new", "ir_score=0.1", "--rules", str(file))
    code, checks = store.asked("new", "f1={min: 0.1, slice: side}", "ir_score={min: 0.44, by: value, slice: side}")
    assert (code, [(c["metric"], c["verdict"]) for c in checks]) == (3, [
        ("slice/side/east/f1", "invalid"), ("slice/side/west/f1", "invalid"),
        ("slice/side/east/ir_score", "missed"), ("slice/side/west/ir_score", "pass"),
    ])  # fmt: skip
    assert checks[0]["said"] == "slice/side/east/f1: this job has no value"
    assert store.asked("new", "slice/side/west/ir_score={min: 0.44, by: value}", "ir_score=0")[0] == 0
    files = {name: tmp_path / "out" / name for name in ("junit", "markdown", "json")}
    store.capsys.readouterr()
    told = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    assert store.gate("new", "f1=0.9", *told, "--github") == 3
    said = store.capsys.readouterr()
    annotation = "::error title=gate%3A f1 at least 0.9::new: f1=0.2000 is below 0.9\n"
    assert said.out.endswith(f"Gate failed: 1 missed\n{annotation}")
    assert said.err.splitlines()[-3:] == [f"wrote {file}" for file in files.values()]
    assert json.loads(files["json"].read_text())["checks"][0]["verdict"] == "missed"
    assert files["markdown"].read_text().startswith("### Quality gate failed: 1 missed\n")
    assert 'failures="1"' in files["junit"].read_text()
    files["markdown"].write_text("mine")
    assert "ragauge did not write it" in store.refused("new", "f1=0", "--markdown", str(files["markdown"]))
    store.capsys.readouterr()
    assert store.gate("new", "f1=0", "--markdown", "-") == 0
    assert store.capsys.readouterr().out.startswith("### Quality gate passed: 1 pass\n")


def test_a_look_is_asked_for_in_either_form_before_or_behind_the_rules(store: Store) -> None:
    more = ["--max-topics", "400", "--series", "pr-12"]
    for words in (["--look", "2/5"], ["--look", "2", "of", "5"], ["--look=2 of 5"]):
        for given in (["new", "ir_score=0.1", *words], [*words, "new", "ir_score=0.1"]):
            [check] = store.asked(*given, *more)[1]
            assert (check["look"], check["looks"], check["look_topics"], check["max_topics"]) == (2, 5, 11, 400)
    # Of verdicts the topics that were judged count, of a difference those of both runs.
    for rule, n in (("correct_share=0.1", 9), ("ir_score={tolerance: 0.1}", 10)):
        baseline = ["--baseline", "base"] if "tolerance" in rule else []
        assert store.asked("new", rule, "--look", "2/5", *more, *baseline)[1][0]["look_topics"] == n
    for tag in ("a`b", "a='", "x y", "="):
        [check] = store.asked("new", "f1={tolerance: 0.1}", "--baseline-tag", tag)[1]
        assert check["verdict"] == "invalid"
        assert "allowed are a name, and name=value" in check["said"]


def test_a_sweep_is_held_job_by_job_or_one_system_or_its_own_run(store: Store) -> None:
    ours = Store(LoggedRuns(store.logged.uri, "swept"), {}, store.capsys)
    for job, (retriever, n) in enumerate([("bm25", "100"), ("sim", "100"), ("sim", "200")]):
        tags = {"named": f"{retriever} {n}", "retriever": retriever, "n_tokens": n, "sweep_id": "s", "job": str(job)}
        ours.add(f"{retriever} {n}", rows(0 if retriever == "bm25" else 1).assign(f1=0.1), {"f1": 0.1 * job}, **tags)
    ours.ids["sweep"] = ours.logged.sweep("s", {"predictor_ece": 0.05})
    tags = {"named": "mmr 100", "retriever": "mmr", "n_tokens": "100", "sweep_id": "s", "job": "3"}
    client, broken = MlflowClient(ours.logged.uri), ours.add("mmr 100", rows(0), **tags)
    client.set_tag(broken, "error", "no disk")
    client.set_terminated(broken, "FAILED")
    code, checks = ours.asked("sweep", "f1=0.1")
    assert (code, [(c["job"], c["verdict"]) for c in checks]) == (
        3, [("mmr 100", "invalid"), ("bm25 100", "missed"), ("sim 100", "pass"), ("sim 200", "pass")],
    )  # fmt: skip
    assert checks[0]["said"] == "the job is FAILED: no disk"
    assert ours.asked("sweep", "f1=0.1", "--system", "mmr")[0] == 2
    client.delete_run(broken)
    assert [c["job"] for c in ours.asked("sweep", "f1=0.1", "--system", "sim", "--n-tokens", "200")[1]] == ["sim 200"]
    assert ours.refused("sweep", "f1=0", "--system", "lsa").endswith("no such job in this sweep; there are bm25, sim")
    assert ours.refused("sweep", "f1=0", "--n-tokens", "3").endswith("no such job in this sweep; there are 100, 200")
    for limit, code in ((0.1, 0), (0.01, 3)):
        assert ours.asked("sweep", f"predictor_ece={{max: {limit}}}", "--pooled")[0] == code
    for rule, option, message in (
        ("ir_score=0.1", [], "no such metric"), ("predictor_ece=0", ["--system", "sim"], "has no system"),
        ("f1={tolerance: 0.1}", ["--baseline", "x"], "have no value per topic"),
    ):  # fmt: skip
        assert message in ours.refused("sweep", rule, "--pooled", *option)
    # Against a sweep each job has the one of its name.
    base = Store(LoggedRuns(store.logged.uri, "swept before"), {}, store.capsys)
    for job, name in enumerate(("sim 100", "bm25 100")):
        base.add(name, rows(1), sweep_id="before", job=str(job))
    base.ids["sweep"] = base.logged.sweep("before")
    checks = ours.asked("sweep", "f1={tolerance: 0.1}", "--baseline", base.ids["sweep"])[1]
    assert [c["baseline"] for c in checks] == [
        f"the baseline {base.ids['bm25 100'][:8]}", f"the baseline {base.ids['sim 100'][:8]}", "the baseline",
    ]  # fmt: skip
    assert "is a sweep with none of the name 'sim 200'; its jobs are sim 100, bm25 100" in checks[2]["said"]
