"""Comparisons of runs whose questions are known: which runs make pairs, and every number by hand."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient
from scipy import stats

from logged_runs import LoggedRuns, questions
from ragauge.compare import choose_metrics, compare, markdown, runs_csv, text
from ragauge.contract import comparable
from ragauge.contract.answer_measures import as_tag
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.measures import AnswerMeasureInfo
from sweep_records import record_of

TOPICS = [f"q{i}" for i in range(8)]
RIGHT, WRONG, LACK, INCOMPLETE = 5, 4, 1, 3  # nobody is partly wrong
BM25 = [0.9, 0.5, 0.5, 0.1, 0.0, 0.7, 0.7, 0.2]
SIM = [0.6, 0.5, 0.25, 0.3, 0.0, 0.2, 0.9, 0.1]
OF_BM25 = [RIGHT, RIGHT, WRONG, LACK, LACK, RIGHT, INCOMPLETE, None]
OF_SIM = [WRONG, RIGHT, RIGHT, LACK, LACK, INCOMPLETE, RIGHT, LACK]


def rows(scores: list[float], labels: list[int | None] | None = None) -> pd.DataFrame:
    topics = TOPICS[: len(scores)]
    given = None if labels is None else dict(zip(topics, labels, strict=True))
    return questions(dict(zip(topics, scores, strict=True)), given)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> LoggedRuns:
    return LoggedRuns(f"sqlite:///{tmp_path_factory.mktemp('compared') / 'mlflow.db'}", "compared")


@pytest.fixture(scope="module")
def sweep(logged: LoggedRuns) -> str:
    grid = [("bm25", 100), ("bm25", 200), ("bm25", 300), ("sim", 100), ("sim", 200)]
    for number, (retriever, n) in enumerate(grid):
        made = rows(BM25, OF_BM25) if retriever == "bm25" else rows(SIM, OF_SIM)
        made["ir_score"] *= {100: 0.5, 200: 1.0, 300: 1.0}[n]
        params = {"retriever.top_k": "30", "bootstrap": "200", "seed": "3", "store": f"s{number}"}
        params |= {"n_tokens": str(n), "zones.alpha": "0.1" if n == 300 else "0.2"}
        logged.job(made, "job", params, retriever=retriever, n_tokens=str(n), sweep_id="swept", job=str(number))
    return logged.sweep("swept")


def test_the_jobs_of_the_largest_budget_that_all_have_make_the_pairs(logged: LoggedRuns, sweep: str) -> None:
    found = compare([sweep], logged.uri)
    runs = found.runs
    assert runs["run"].tolist() == [
        "bm25 · N=100", "sim · N=100", "bm25 · N=200", "sim · N=200", "bm25 · N=300",
    ]  # fmt: skip
    assert runs.loc[runs["compared"], "run"].tolist() == ["bm25 · N=200", "sim · N=200"]
    assert (found.n_tokens, found.n_boot, found.seed, found.baseline_chosen) == (200, 200, 3, True)
    assert found.names[found.baseline] == "bm25 · N=200"  # the better score, 0.45 to 0.35625
    # Where it was kept comes last.
    assert list(found.params) == ["retriever", "n_tokens", "zones.alpha", "store"]
    assert found.common["bootstrap"] == "200"
    with pytest.raises(ConfigError, match=r"n_tokens=300: 1 of the runs have this budget.*100 \(2 runs\)"):
        compare([sweep], logged.uri, n_tokens=300)
    assert compare([sweep], logged.uri, n_tokens=100).n_tokens == 100


def test_every_difference_is_the_run_less_the_baseline(logged: LoggedRuns, sweep: str) -> None:
    found = compare([sweep], logged.uri)
    pairs = found.pairs.set_index("measure")
    assert pairs["run_id"].nunique() == 1
    by_hand = [s - b for s, b in zip(SIM, BM25, strict=True)]
    assert pairs.loc["ir_score", "difference"] == pytest.approx(sum(by_hand) / 8)
    assert pairs.loc["ir_score", "lo"] < sum(by_hand) / 8 < pairs.loc["ir_score", "hi"]
    # An answer without a verdict is not right; whether it is a hallucination is unknown.
    both = list(zip(OF_SIM, OF_BM25, strict=True))
    for measure, label, n in (("correct", RIGHT, 8), ("hallucination", WRONG, 7)):
        wins = sum((a == label) - (b == label) for a, b in both)
        assert pairs.loc[measure, "difference"] == pytest.approx(wins / n)
        assert pairs.loc[measure, "n"] == n
    exact = stats.binomtest(2, 4).pvalue  # right in one alone: two each
    assert pairs.loc["correct", "p"] == pytest.approx(exact)
    assert found.n_tests == {"headline": 3}
    ps = pairs["p"].sort_values()
    holm = (ps * [3, 2, 1]).clip(upper=1).cummax()
    pd.testing.assert_series_equal(pairs["p_holm"].sort_index(), holm.sort_index(), check_names=False)
    turned = compare([sweep], logged.uri, baseline="sim · N=200").pairs.set_index("measure")
    for measure in pairs.index:
        assert turned.loc[measure, "difference"] == pytest.approx(-pairs.loc[measure, "difference"])
        assert turned.loc[measure, "lo"] == pytest.approx(-pairs.loc[measure, "hi"])
        assert turned.loc[measure, "p"] == pytest.approx(pairs.loc[measure, "p"])


def test_runs_of_the_same_name_are_told_apart_by_their_ids(logged: LoggedRuns) -> None:
    ids = [logged.job(rows(BM25, OF_BM25), retriever="bm25") for _ in range(2)]
    other = logged.job(rows(SIM, OF_SIM), retriever="sim")
    found = compare([*ids, other], logged.uri)
    assert found.runs["run"].tolist() == [*(f"bm25 ({i[:8]})" for i in ids), "sim"]
    assert found.baseline == ids[0]
    same = found.pairs[found.pairs["run_id"] == ids[1]].set_index("measure")
    equal = same.loc["ir_score"]
    assert equal["difference"] == 0
    assert equal["hi"] == -equal["lo"] > 0  # on these topics; others may differ
    assert not any(math.copysign(1, x) < 0 for x in same["difference"])  # no minus nothing
    # Only what tells runs apart is in a name, and as little of it as needed.
    deep = [logged.job(rows(SIM), params={"retriever.top_k": k, "seed": "1"}, retriever="sim") for k in ("5", "9")]
    names = compare([*deep, other], logged.uri).runs["run"].tolist()
    assert names[:2] == ["top_k=5", "top_k=9"]
    assert compare(deep, logged.uri).runs["run"].tolist() == names[:2]
    # Components come in the order of their groups, then other keys, and where it was kept.
    keys = ["store", "cluster", "retriever.top_k", "dataset.limit"]
    every = [logged.job(rows(SIM), params=dict.fromkeys(keys, k), llm=k) for k in ("5", "9")]
    assert list(compare(every, logged.uri).params) == ["llm", *reversed(keys)]
    MlflowClient(logged.uri).delete_tag(every[0], "compressor")  # of a version that had none
    assert list(compare(every, logged.uri).params)[:2] == ["compressor", "llm"]


def test_a_run_without_verdicts_is_compared_by_its_scores_alone(logged: LoggedRuns, sweep: str) -> None:
    silent, judged = logged.job(rows(SIM), retriever="sim"), logged.job(rows(BM25, OF_BM25), retriever="bm25")
    found = compare([judged, silent], logged.uri)
    assert found.pairs["measure"].tolist() == ["ir_score"]
    of_silent = found.runs.set_index("run_id").loc[silent]
    assert of_silent[["correct_share", "judge_share_5", "hallucination_share"]].isna().all()
    assert of_silent["judge_share_missing"] == 1
    assert "Without verdicts, so not compared by these: sim." in found.notes
    fewer = logged.job(rows(SIM[:5]), retriever="sim")
    noted = " ".join(compare([judged, fewer], logged.uri).notes)
    assert "0 topic(s) are only in sim, 3 only in bm25" in noted
    assert compare([judged, fewer], logged.uri).pairs["n"].tolist() == [5]


def test_a_measure_that_topics_lack_says_of_how_many_each_mean_is(logged: LoggedRuns) -> None:
    f1 = AnswerMeasureInfo("f1", "token F1")
    nan = math.nan
    ids = [
        logged.job(rows(scores).assign(f1=values), retriever=name, **as_tag([f1]))
        for name, scores, values in (
            ("bm25", BM25, [0.5, 1, nan, nan, nan, nan, 0.2, 0.1]),
            ("sim", SIM, [1, 1, 0, nan, 1, nan, nan, nan]),
        )
    ]
    found = compare(ids, logged.uri)
    counts = "Topics with a value of token F1: 4 of 8 in every run"
    told = f"{counts}; a mean is over these, a pair over those of both."
    assert told in found.notes
    assert told in text(found, choose_metrics(found), 3, 1000)
    assert found.pairs.set_index("measure").loc["f1", "n"] == 2
    whole = [logged.job(rows(BM25).assign(f1=0.5), retriever=name, **as_tag([f1])) for name in ("bm25", "sim")]
    assert not [note for note in compare(whole, logged.uri).notes if "with a value" in note]


def test_slices_are_told_of_and_shown_where_they_are_asked_for(logged: LoggedRuns) -> None:
    kinds = ["person", "place", "date", "place", "place", "person", "date", "place"]
    ids = [
        logged.job(rows(scores).assign(**{"slice:kind": kinds}), retriever=name)
        for name, scores in (("bm25", BM25), ("sim", SIM))
    ]
    untold = compare(ids, logged.uri)
    assert untold.found["slices"].tables is None
    assert "By slice of" not in text(untold, choose_metrics(untold), 0, 200)
    assert "The runs have slices by kind: --slices shows them." in untold.notes
    told = compare(ids, logged.uri, slices=True)
    assert any(note.startswith("Slices are many (3): Holm's correction") for note in told.notes)
    means = told.found["slices"].tables.estimates.query("measure == 'ir_score'").set_index(["run_id", "slice"])["value"]
    for run_id, scores in zip(ids, (BM25, SIM), strict=True):
        for kind in set(kinds):
            own = [score for score, k in zip(scores, kinds, strict=True) if k == kind]
            assert means[run_id, kind] == pytest.approx(sum(own) / len(own))
    none = [logged.job(rows(BM25), retriever="bm25"), logged.job(rows(SIM), retriever="sim")]
    assert "The compared runs have no slices in common (slices=[type])." in compare(none, logged.uri, slices=True).notes


def test_a_folder_of_records_is_a_sweep_and_what_is_no_job_is_refused(
    logged: LoggedRuns, sweep: str, tmp_path: Path
) -> None:
    one, two = logged.job(rows(BM25), retriever="bm25"), logged.job(rows(SIM), retriever="sim")
    for number, run_id in enumerate((one, two)):
        record = record_of(run_id=run_id, tracking_uri=logged.uri, number=number, folder=tmp_path / str(number))
        record.take({"metrics": {"ir_score": 0.5}, "dataset_digest": "d"})
        record.write()
    by_folder, by_id = compare([str(tmp_path)]), compare([two[:12], str(tmp_path / "0")], logged.uri)
    assert (by_folder.baseline, by_folder.baseline_chosen) == (one, True)  # the better score of a sweep
    assert (by_id.baseline, by_id.baseline_chosen) == (two, False)
    replace(record, role="training").write()
    for source, message in (
        (str(tmp_path), "is of a training, which has no outcomes"),
        ("nowhere", "neither a folder nor an MLflow run id"),
        (logged.job(rows(BM25), role="training"), "is a training: give jobs and sweeps"),
        (logged.job(rows(BM25), role="pool"), "no tag role=job or role=sweep"),
        (logged.sweep("empty"), "holds no job of sweep empty"),
    ):
        with pytest.raises((ConfigError, DataError), match=message):
            compare([source, one], logged.uri)


def test_what_else_differs_is_told_beside_the_numbers(logged: LoggedRuns, sweep: str) -> None:
    every = {"measure": {"component": "substring"}, "judge": {"component": "chat"}, "tokenizer": {"component": "words"}}
    other = {**every, "judge": {"component": "other"}, "tokenizer": {"component": "other"}}
    one, two = (
        logged.job(rows(BM25, OF_BM25), "job", {"answers.f1": value}, **comparable.as_tag(comparable.digests(of)))
        for value, of in (("1", every), ("2", other))
    )
    told = " ".join(compare([one, two], logged.uri).notes)
    for what in ("judges differ", "answer measures differ", "tokenizers differ, so the same N is not the same budget"):
        assert what in told
    wide = logged.job(rows(BM25, OF_BM25), n_tokens="200")
    plain = logged.job(rows(BM25, OF_BM25))
    told = compare([plain, wide], logged.uri).notes
    assert "The compared runs have different budgets (n_tokens)." in told
    assert not [note for note in told if "The runs' " in note]
    one, two, other, corrected = (
        logged.job(rows(BM25), "job", {f"measure.{key}": value for key, value in params.items()})
        for params in (
            {"fold": '["case", "nfkc"]'},
            {"fold": '["nfkc", "case"]', "threads": "2"},
            {"fold": '["case"]'},
            {"fold": '["case", "nfkc"]', "correct": "floor"},
        )
    )
    assert compare([one, two], logged.uri).pairs["n"].tolist() == [8]
    for run in (other, corrected):
        with pytest.raises(DataError, match="scored by different measures"):
            compare([one, run], logged.uri)


def test_what_cannot_be_compared_says_why(logged: LoggedRuns) -> None:
    one = logged.job(rows(BM25), retriever="bm25")
    with pytest.raises(ConfigError, match="takes two runs or more"):
        compare([one], logged.uri)
    elsewhere = logged.job(rows(BM25), retriever="sim", dataset="other", dataset_digest="1" * 64)
    with pytest.raises(DataError, match="over different datasets"):
        compare([one, elsewhere], logged.uri)
    across = compare([one, elsewhere], logged.uri, across_datasets=True)
    assert across.pairs["n"].tolist() == [8]
    assert any("The datasets differ" in note for note in across.notes)
    again = compare([one, one, elsewhere], logged.uri, across_datasets=True, n_boot=0, seed=4)
    assert (again.n_boot, again.seed, len(again.runs)) == (0, 4, 2)
    with pytest.raises(ConfigError, match=r"baseline 'mmr' is none of the compared runs; these are .*bm25"):
        compare([one, elsewhere], logged.uri, across_datasets=True, baseline="mmr")
    changed = rows(BM25).assign(query="Another question?")
    foreign = logged.job(changed, retriever="mmr", dataset_digest="2" * 64)
    with pytest.raises(DataError, match="qid 'q0' is not the same topic"):
        compare([one, foreign], logged.uri, across_datasets=True)


def test_the_texts_hold_the_numbers_of_the_frames(logged: LoggedRuns, sweep: str) -> None:
    found = compare([sweep], logged.uri)
    metrics = choose_metrics(found, None)
    shown = text(found, metrics, 3, 200)
    [line] = [line for line in shown.splitlines() if line.startswith("sim · N=200") and "-0.094" in line]
    # IR score, right answers, hallucinations: each difference with its interval.
    assert re.findall(r"([+-]\d\.\d{3}) +\[", line) == ["-0.094", "+0.000", "+0.000"]
    assert "a sign-flip permutation test of the IR score" in shown
    assert "McNemar's exact test of right answers and hallucinations" in shown
    silent = compare([logged.job(rows(BM25)), logged.job(rows(SIM), retriever="sim")], logged.uri)
    of_scores = text(silent, choose_metrics(silent, None), 3, 200)
    assert "IR score, difference" in of_scores
    assert "right, difference" not in of_scores
    assert "McNemar" not in of_scores
    table = markdown(found, metrics, 3)
    assert "0.094" in table, table
    back = pd.read_csv(io.StringIO(runs_csv(found, metrics)))
    assert back["ir_score"].tolist() == found.runs["ir_score"].tolist()
    assert back["difference_ir_score"].dropna().tolist() == pytest.approx([-0.09375])


def test_a_baseline_that_ties_with_others_is_not_called_the_best(logged: LoggedRuns, sweep: str) -> None:
    def why(source: str) -> str:
        found = compare([source], logged.uri)
        shown = " ".join(text(found, choose_metrics(found, None), 0, 200).split())
        return re.findall(r"was taken (.*?), so Holm", shown)[0]

    assert why(sweep) == "for its IR score, the best of them"
    for number, (name, scores) in enumerate(
        [("tied", BM25), ("tied", BM25), ("tied", SIM), ("none", []), ("none", [])]
    ):
        made = rows(scores or BM25, OF_BM25)
        given = {"retriever": f"r{number}", "n_tokens": "200", "sweep_id": name, "job": str(number)}
        logged.job(made if scores else made.assign(ir_score=math.nan), "job", **given)
    assert why(logged.sweep("tied")) == "as the first of 2 with the best IR score"
    assert why(logged.sweep("none")) == "as the first, since none has an IR score"
