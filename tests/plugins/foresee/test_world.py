"""A window of answers by hand: what is foreseen of them by loops over training topics, and what the command writes."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from scipy.stats import beta, ks_2samp, t
from sklearn.linear_model import LogisticRegression

from ragauge.estimate import fit_predictor
from ragauge.estimate.intervals import bounded_mean
from ragauge.estimate.portable import portable
from ragauge.experiment.request import JobFolder
from ragauge.experiment.setup import config
from ragauge.plugins.foresee.reference import READ_BY, Reference, as_settings
from ragauge.plugins.foresee.window import execute, foreseen, lines
from ragauge.track import Reader

ROOT = Path(__file__).resolve().parents[3]
X, HOW = "question_coverage", {"spline": False, "calibrate": False, "penalty": 1.0}
# Answers of the training: topic, coverage, label, and how many answers each stands for; t0 and t1 have two.
TRAINING = """
t0 0.0 1 1   t0 0.5 4 1   t1 1.0 5 2   t1 0.8 5 2   t2 0.9 5 1   t3 0.2 4 1   t4 0.3 1 2   t5 0.7 5 1   t6 0.6 3 1
t7 0.1 1 1   t8 1.0 4 1   t9 0.4 2 1   t10 0.9 5 1  t11 0.2 1 2
"""
WINDOW = {"w0": 1.0, "w1": 0.5, "w2": 0.9, "w3": 0.5, "w4": 1.1, "w5": 1.2, "w6": math.nan, "w7": -0.1}
DOCUMENTS = ["d0", "d0", "d1", "d1", "d2", "d2", "d3", "d3"]
FOLDS, SEED = 10, 4


def training() -> pd.DataFrame:
    cells = iter(TRAINING.split())
    rows = [(q, float(x), int(c), float(w)) for q, x, c, w in zip(cells, cells, cells, cells, strict=True)]
    return pd.DataFrame(rows, columns=["qid", X, "label", "weight"]).astype({"label": "Int8"})


def of_classes(p: list[float]) -> dict[str, float]:
    return {f"share_{c}": p[c - 1] for c in range(1, 6)} | {"correct_share": p[4], "hallucination_share": p[1] + p[3]}


@pytest.mark.parametrize("over", ["topics", "documents", "these topics"])
def test_shares_are_the_mean_of_the_window_and_the_errors_of_training_topics_like_it(over: str) -> None:
    """w5 and w6 are refused: 1.2 is more than a tenth beyond the training, and one has no value."""
    rows = training()
    model = fit_predictor(rows, [X], **HOW, seed=SEED)
    window = pd.DataFrame({"qid": list(WINDOW), "query": "what?", X: list(WINDOW.values())})
    if over == "documents":
        window["topic_cluster"] = DOCUMENTS
    known = window[~window["qid"].isin(["w5", "w6"])]
    found = foreseen(
        window, model.model, [X], Reference(rows, HOW, 24, {"retriever": 0.02}), over == "these topics", SEED
    )
    topics = sorted(rows["qid"].unique())
    fold = dict(zip(topics, np.random.default_rng(SEED).permutation(len(topics)) % FOLDS, strict=True))
    # How much more common a row is in the window, where each training topic counts once.
    x = np.array([*rows[X], *known[X]])
    scaled = ((x - x.mean()) / x.std())[:, None]
    once = [1 / (rows["qid"] == qid).sum() for qid in rows["qid"]] + [1.0] * len(known)
    like = LogisticRegression(max_iter=200).fit(scaled, [0] * len(rows) + [1] * len(known), sample_weight=once)
    ratio = np.exp(like.decision_function(scaled[: len(rows)]))
    ratio /= ratio.mean()
    foreseen_of = [of_classes(p) for p in model.predict_proba(known)]
    apart: dict[str, dict[str, float]] = {}
    weight: dict[str, float] = dict.fromkeys(topics, 0.0)
    for qid in topics:
        others = rows[rows["qid"].map(fold) != fold[qid]]
        refit = fit_predictor(others, [X], **HOW, seed=SEED)
        own = rows[rows["qid"] == qid]
        sums = dict.fromkeys(foreseen_of[0], 0.0)
        for i, p in zip(own.index, refit.predict_proba(own), strict=True):
            w = ratio[i] * rows["weight"][i]
            weight[qid] += w
            truth = of_classes([float(rows["label"][i] == c) for c in range(1, 6)])
            for name, value in of_classes(p).items():
                sums[name] += w * (truth[name] - value)
        apart[qid] = {name: value / weight[qid] for name, value in sums.items()}
    total, n = sum(weight.values()), len(known)
    effective = total**2 / sum(w * w for w in weight.values())
    expected: dict[str, float] = {"topics": 8, "foreseen_refused_share": 2 / 8, "foreseen_effective_topics": effective}
    for name in foreseen_of[0]:
        mean = sum(of[name] for of in foreseen_of) / n
        off = sum(weight[q] * apart[q][name] for q in topics) / total
        # The training of 24 topics is known by 12 of them.
        variance = sum((weight[q] * (apart[q][name] - off) / total) ** 2 for q in topics) * 12 / 24
        if over == "these topics":
            variance += sum(of[name] * (1 - of[name]) for of in foreseen_of) / n**2
        else:
            documents = known["topic_cluster"] if over == "documents" else known["qid"]
            for document in set(documents):
                own_of = [(of[name] - mean) / n for of, d in zip(foreseen_of, documents, strict=True) if d == document]
                # A document pulls the mean towards itself, the more so the more of the topics it has.
                pulled = math.sqrt(1 - 1 / len(set(documents))) / (1 - len(own_of) / n) if over == "documents" else 1
                variance += (sum(own_of) * pulled) ** 2
        value = min(max(mean + off, 0), 1)
        least = 1 / (2 * effective + 2)
        inside = min(max(value, least), 1 - least)
        reach = t.isf(0.025, effective - 1) * math.sqrt(variance) / (inside * (1 - inside))
        middle, none = math.log(inside / (1 - inside)), beta.ppf(0.975, 1, effective)
        lo, hi = (1 / (1 + math.exp(-(middle + sign * reach))) for sign in (-1, 1))
        expected |= {f"foreseen_{name}": value, f"foreseen_{name}_lo": min(lo, 1 - none, value),
                     f"foreseen_{name}_hi": max(hi, none, value)}  # fmt: skip
    distances = ks_2samp(rows.sample(frac=1, random_state=SEED).drop_duplicates("qid")[X], window[X].dropna())
    expected |= {"drift_features": 0, f"drift/{X}": distances.statistic}
    assert found.metrics == pytest.approx(expected)
    # The highest risk first, of equal ones by name; what was refused last.
    risk = {qid: of["hallucination_share"] for qid, of in zip(known["qid"], foreseen_of, strict=True)}
    order = sorted(risk, key=lambda qid: (-risk[qid], qid))
    assert found.topics["qid"].tolist() == [*order, "w5", "w6"]
    assert found.topics["refused"].tolist() == [""] * 6 + [f"{X} 1.2", f"no {X}"]
    alone = foreseen(window, model.model, [X], None, False, SEED).shares
    assert alone is not None
    clusters = known["topic_cluster"] if over == "documents" else None
    right = bounded_mean(np.array([of["correct_share"] for of in foreseen_of]), known["qid"], clusters=clusters)
    assert alone.estimates["correct_share"] == right
    said = lines(found, Reference(rows, HOW, 24, {"retriever": 0.02}))
    share = [expected[f"foreseen_correct_share{end}"] for end in ("", "_lo", "_hi")]
    assert said[0] == "8 answers, 2 of them refused"
    assert said[1].endswith(f"more than 10% of its range beyond the training: {X} of 2 (w5, w6)")
    assert f"foreseen right {share[0]:.1%} ({share[1]:.1%} to {share[2]:.1%}), hallucination" in said[2]
    assert said[3].endswith(f"on 24 training topics, which are worth {effective:.0f} that look like this window")
    assert said[4] == "  fewer than 30 training topics look like this window: label some of its answers"
    assert said[5:] == [
        "  drift against the training: none of 1 features",
        "  in the training, shares of what was left out were missed: another retriever by 2.0%; no interval counts "
        "that",
    ]


def test_the_command_writes_the_window_of_recorded_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of the words colour and thing the context holds two, one or none; q3 is unanswerable, q4 has no word."""
    rows = training()
    model = fit_predictor(rows, [X], **HOW)
    settings = as_settings(rows, [X], HOW, {}, seed=0) | {READ_BY: {"answers.qpp": "of another version"}}
    (tmp_path / "predictor.json").write_text(portable(model.model, settings).to_json(), encoding="utf-8")
    window = [
        ("q0", "What colour has the thing?", "The thing has a colour.", {}, 1.0),
        ("q1", "What colour has the thing?", "A thing is here.", {}, 0.5),
        ("q2", "What colour has the thing?", "Nothing is known.", {}, 0.0),
        ("q3", "What colour has the thing?", "A thing is here.", {"unanswerable": True}, None),
        ("q4", "???", "A thing is here.", {}, math.nan),
    ]
    recorded = [{"qid": q, "question": text, "contexts": [context], "answer": f"{q}!"} | more
                for q, text, context, more, _ in window]  # fmt: skip
    (tmp_path / "now.jsonl").write_text("\n".join(map(json.dumps, recorded)), encoding="utf-8")
    config.register()
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"

    def code(name: str, *overrides: str) -> int:
        usual = ["experiment=recorded", "tokenizer=words", "bootstrap=20", "answers.qpp.vectors=false",
                 f"recorded.path={tmp_path / 'now.jsonl'}", f"predictor={tmp_path / 'predictor.json'}",
                 f"store={tmp_path / 'store'}", f"tracking.uri={uri}"]  # fmt: skip
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            cfg = compose("foresee", overrides=[*usual, "predictor_mismatch=allow", *overrides])
        return execute(cfg, JobFolder(tmp_path / name, None, 0, {}, ()))

    measure, tokenizer = {"component": "substring", "version": 1}, {"component": "words", "version": 2}
    same = {"measure": measure, "tokenizer": tokenizer, "n_tokens": [1, 99999]}
    (tmp_path / "other.json").write_text(portable(model.model, settings | same).to_json(), encoding="utf-8")
    unknown = fit_predictor(rows.rename(columns={X: "unknown"}), ["unknown"], **HOW).model
    (tmp_path / "unknown.json").write_text(portable(unknown, {}).to_json(), encoding="utf-8")
    (tmp_path / "none.jsonl").write_text(json.dumps(recorded[3]), encoding="utf-8")
    refused = {
        "measure: fitted on None": ["predictor_mismatch=refuse"],
        "settings of answers.qpp are others": ["predictor_mismatch=refuse", f"predictor={tmp_path / 'other.json'}"],
        "give the predictor": ["predictor=null"],
        "it reads unknown, which nothing here computes": [f"predictor={tmp_path / 'unknown.json'}"],
        "all questions are unanswerable": [f"recorded.path={tmp_path / 'none.jsonl'}"],
    }
    for told, overrides in refused.items():
        assert code("refused", *overrides) != 0
        assert told in json.loads((tmp_path / "refused/job.json").read_text())["error"]
    assert code("dry", "dry_run=true") == 0
    assert json.loads((tmp_path / "dry/job.json").read_text())["status"] == "DRY RUN"
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert code("out") == 0, caplog.text
    folder = tmp_path / "out"
    coverage = {q: x for q, *_, x in window}
    written = pd.read_csv(folder / "topics_at_risk.csv").set_index("qid")
    p = dict(
        zip(
            ("q0", "q1", "q2"), model.predict_proba(pd.DataFrame({"qid": list("abc"), X: [1.0, 0.5, 0.0]})), strict=True
        )
    )
    order = sorted(["q0", "q1", "q2"], key=lambda q: -(p[q][1] + p[q][3]))
    assert written.index.tolist() == [*order, "q4"]
    for q in order:
        assert written.loc[q, ["p1", "p2", "p3", "p4", "p5", "risk", X]].tolist() == pytest.approx(
            [*p[q], p[q][1] + p[q][3], coverage[q]], rel=1e-4
        )
    assert written["answer"].tolist() == [f"{q}!" for q in [*order, "q4"]]
    assert written.loc["q4", "refused"] == f"no {X}"
    record = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    run = Reader(uri).run(record["run_id"])
    assert (record["status"], record["role"], run.tags["role"]) == ("FINISHED", "foresee", "foresee")
    assert (run.metrics["topics"], run.metrics["foreseen_refused_share"]) == (4, 0.25)
    assert run.metrics["seconds_total"] < 600
    assert run.metrics == pytest.approx(record["metrics"] | {"seconds_total": run.metrics["seconds_total"]})
    assert run.tags["predictor"] == str(tmp_path / "predictor.json")
    assert run.tags["dataset_digest"] == record["dataset_digest"]
    assert "dataset" in {entry.partition("/")[0] for entry in run.entries or ()}
    assert run.experiment_id == record["experiment_id"]
    reader = Reader(uri)
    whole = pd.read_parquet(folder / "topics_at_risk.parquet")
    assert whole["qid"].tolist() == reader.table(run.run_id, "topics_at_risk.json")["qid"].tolist() == [*order, "q4"]
    assert reader.table(run.run_id, "drift.json")["feature"].tolist() == [X]
    assert reader.files(run.run_id, "config")
    assert f"the topics at risk: {folder / 'topics_at_risk.csv'}" in caplog.text
    assert record["run_id"] in caplog.text
    assert "predictor used on other ground: n_tokens" in caplog.text
    assert "predictor used on other ground: other settings of answers.qpp" in caplog.text
    assert "1 of 5 questions are unanswerable and left out" in caplog.text
    assert "4 answers, 1 of them refused" in caplog.text
