"""The drawn sheet and the shares by older labels of a small world, beside twins of plain loops."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ragauge.contract.errors import DataError
from ragauge.contract.finding import Grid, Num
from ragauge.contract.outcomes import CLUSTER
from ragauge.contract.settings import Settings
from ragauge.estimate.ppi import cross_fit
from ragauge.plugins.labels.command import main
from ragauge.plugins.labels.finding import ByOtherLabels, OfSystemsByOtherLabels
from ragauge.plugins.labels.rogan_gladen import judge_by
from sweep_records import job_json, record, sweep

# Score and verdict by budget, and what is answered at 300 tokens. q8 cannot be answered, q5 has no answer of sim.
ANSWERS = """
qid  bm25/100  bm25/300  sim/300  bm25     sim
q0   0.9:5     1.0:5     0.9:5    iron     iron
q1   0.9:5     0.8:5     0.7:4    1889     1889
q2   0.1:1     0.9:4     0.2:5    Paris    Lyon
q3   0.1:1     0.2:5     0.6:2    tower    tower
q4   0.1:1     0.1:1     0.3:1    none     ?
q5   0.1:1     0.5:2     0.4:-    a_b      .
q6   0.1:1     0.7:5     0.8:5    324      330
q7   0.1:1     0.3:1     0.1:3    rust     iron
q8   0.9:5     .:1       .:1      unknown  unknown
"""
CLASSES = (5,), (2, 4)  # right answers, hallucinations


def answers() -> pd.DataFrame:
    """A row per job and topic."""
    head, *lines = [line.split() for line in ANSWERS.strip().splitlines()]
    rows = []
    for at, job in enumerate(head[1:4], 1):
        system, n = job.split("/")
        for line in lines:
            score, label = line[at].split(":")
            text = line[head.index(system, 4)]
            rows.append({
                "qid": line[0], "query": f"what of {line[0]}?", "answer_reference": "that", "n_tokens": int(n),
                "system": system, "retriever": system, "ir_score": np.nan if score == "." else float(score),
                "label": None if label == "-" else int(label), "answer": None if text == "." else text,
                "unanswerable": line[0] == "q8",
            })  # fmt: skip
    return pd.DataFrame(rows).astype({"label": "Int8"})


def write(folder: Path, rows: pd.DataFrame) -> Path:
    """The folder of the sweep with these outcomes."""
    for number, ((system, n), part) in enumerate(rows.groupby(["system", "n_tokens"])):
        (folder / str(number)).mkdir(parents=True)
        part.drop(columns="system").to_parquet(folder / str(number) / "outcomes.parquet", index=False)
        job_json(folder / str(number), {
            "status": "FINISHED", "number": number, "sweep_id": "s", "name": system, "n_tokens": int(n),
            "overrides": [f"retriever={system}", f"n_tokens={n}"], "experiment": "towers", "seed": 0, "bootstrap": 20,
            "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False}, "metrics": {},
            "choices": {"dataset": "made", "retriever": system}, "dataset_digest": "made",
            "measured_by": {"measure": "m", "tokenizer": "t", "judge": "j"},
        })  # fmt: skip
    return folder


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def sizes(frame: pd.DataFrame, labels: list[int], uniform: float | None) -> tuple[list[float], float]:
    """What the probabilities of drawing are proportional to, and the uniform share; `labels` are earlier ones, or 0."""
    p = cross_fit(frame.assign(judged=True), seed=0)[["p1", "p2", "p3", "p4", "p5"]].to_numpy()
    said = [0 if pd.isna(label) else int(label) for label in frame["label"]]
    scores = [0.0 if pd.isna(score) else float(score) for score in frame["ir_score"]]
    mean = sum(scores) / len(scores)
    scores = [mean if pd.isna(score) else float(score) for score in frame["ir_score"]]
    known = [i for i, label in enumerate(labels) if label]
    wrong, left = [], []
    for classes in CLASSES:
        prior = []
        for i, label in enumerate(said):
            share = sum(p[i, c - 1] for c in classes)
            fits = clip(share if label in classes else 1 - share, 0.01, 0.99)
            odds = 0.1 / 0.9 * (1 - fits) / fits
            prior.append(odds / (1 + odds))
        wrong.append(prior)
    if known:
        both = [[(label in of) != (say in of) for label, say in zip(labels, said, strict=True)] for of in CLASSES]
        wrong = [learnt(frame, wrong, errors, known, said, scores) for errors in both]
    for classes, errs in zip(CLASSES, wrong, strict=True):
        yes = [label in classes for label in said]
        of_yes = np.mean([w for w, y in zip(errs, yes, strict=True) if y])
        of_no = np.mean([w for w, y in zip(errs, yes, strict=True) if not y])
        slope, share = clip(1 - of_yes - of_no, 0, 1), np.mean(yes)
        at = [share + slope * (y - share) for y in yes]
        left.append([((y - a) ** 2, (1 - y - a) ** 2) for y, a in zip(yes, at, strict=True)])
    found = []
    for i in range(len(said)):
        rest = sum((1 - w[i]) * of[i][0] + w[i] * of[i][1] for w, of in zip(wrong, left, strict=True))
        found.append(math.sqrt(rest + 1e-6))
    systems = list(frame["system"])
    means = {s: np.mean([f for f, of in zip(found, systems, strict=True) if of == s]) for s in systems}
    found = [f / means[s] for f, s in zip(found, systems, strict=True)]
    if uniform is None:
        uniform = 0.7
    if known and uniform < 0:
        by_topic: dict[float, dict[str, list[float]]] = {share: {} for share in (0.2, 0.4, 0.6)}
        for i in known:
            seen = sum(
                of[i][int((labels[i] in classes) != (said[i] in classes))]
                for classes, of in zip(CLASSES, left, strict=True)
            )
            for share, topics in by_topic.items():
                gain = seen * (1 - 1 / (share + (1 - share) * found[i]))
                topics.setdefault(frame["qid"].iloc[i], []).append(gain)
        sure = {}
        for share, topics in by_topic.items():
            gains = [np.mean(of) for of in topics.values()]
            sure[share] = np.mean(gains) - np.std(gains, ddof=1) / math.sqrt(len(gains))
        uniform = max(sure, key=lambda share: sure[share]) if max(sure.values()) > 0 else 0.7
    return [uniform + (1 - uniform) * f for f in found], uniform


def learnt(
    frame: pd.DataFrame,
    wrong: list[list[float]],
    errors: list[bool],
    known: list[int],
    said: list[int],
    scores: list[float],
) -> list[float]:
    """The probabilities of errors by models of earlier labels, each for topics that it did not see."""
    p = np.clip(wrong, 1e-3, 0.999)
    n = len(said)
    x = np.array([
        [*(math.log(of[i] / (1 - of[i])) for of in p), scores[i], *(said[i] == c for c in range(1, 6)),
         scores[i] * (said[i] == 5)]
        for i in range(n)
    ])  # fmt: skip
    topics = sorted(set(frame["qid"]))
    place = np.random.default_rng(0).permutation(len(topics))
    fold = [place[topics.index(qid)] % 5 for qid in frame["qid"]]
    found = [0.0] * n
    for number in range(5):
        seen = [i for i in known if fold[i] != number]
        of = [errors[i] for i in seen]
        if len(set(of)) == 1:
            at = [float(of[0])] * n
        else:
            at = LogisticRegression(C=3.0, max_iter=500).fit(x[seen], of).predict_proba(x)[:, 1]
        for i in range(n):
            if i not in known:
                found[i] += at[i] / 5
            elif fold[i] == number:
                found[i] = at[i]
    return found


def drawn(qids: list[str], size: list[float], n: int, salt: str = "") -> dict[str, tuple[int, float]]:
    """Place and probability of each topic of a system."""
    numbers = {}
    for qid, s in zip(qids, size, strict=True):
        digest = hashlib.blake2b(f"labels\0{0}\0{salt}\0{qid}".encode(), digest_size=8).digest()
        numbers[qid] = int.from_bytes(digest, "big") / s
    order = sorted(qids, key=lambda qid: numbers[qid])
    rng, shares = np.random.default_rng(0), np.array(size) / sum(size)
    ranks = rng.random((500, len(size))) / shares
    chance = [
        np.mean([min(1.0, shares[i] * sorted(np.delete(row, i))[n - 1]) for row in ranks]) for i in range(len(size))
    ]
    return {qid: (order.index(qid), min(c * n / sum(chance), 1)) for qid, c in zip(qids, chance, strict=True)}


def expected_sheet(rows: pd.DataFrame, labels: list[int], n: int, uniform: float | None, salt: str) -> pd.DataFrame:
    size, _ = sizes(rows, labels, uniform)
    systems = list(dict.fromkeys(rows["system"]))
    of = [
        drawn(list(part["qid"]), [size[i] for i in part.index], n, salt)
        for _, part in rows.groupby("system", sort=False)
    ]
    alike: dict[tuple[str, ...], list[tuple[int, str, float, Any]]] = {}
    for row in rows.to_dict("records"):
        place, chance = of[systems.index(row["system"])][row["qid"]]
        alike.setdefault((row["qid"], row["retriever"], row["answer"]), []).append(
            (place, row["system"], chance, row["label"])
        )
    found = []
    for (qid, _, answer), several in alike.items():
        place, system, _, label = sorted(several, key=lambda one: one[:2])[0]
        names = [system, *(one[1] for one in several if one[1] != system)]
        found.append((place, system, qid, "; ".join(names), answer, label, max(one[2] for one in several)))
    chosen = [one[2:] for one in sorted(found) if one[0] < n]
    return pd.DataFrame(chosen, columns=["qid", "system", "answer", "judge_class", "probability"])


def counted(rows: pd.DataFrame) -> pd.DataFrame:
    kept = rows[rows["n_tokens"].eq(300) & ~rows["unanswerable"] & rows["answer"].notna()]
    return kept.sort_values("system", kind="stable").reset_index(drop=True)


@pytest.mark.parametrize("several", [False, True])
def test_a_sheet_draws_what_plain_loops_draw(several: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answers()
    if several:  # what sets the systems apart is no component: equal answers are one row
        rows["retriever"] = "bm25"
    sheet = tmp_path / "labels.csv"
    assert main([str(write(tmp_path / "sweep", rows)), "--budget", "9", "--out", str(sheet)]) == 0
    twin = expected_sheet(counted(rows), [0] * 15, 4, None, "")
    found = pd.read_csv(sheet)
    for column in ("qid", "system", "answer", "judge_class"):
        assert found[column].astype(str).tolist() == twin[column].astype(str).tolist()
    assert found["probability"].tolist() == pytest.approx(twin["probability"].tolist(), rel=1e-9)
    assert found["label"].isna().all()
    said = capsys.readouterr().out
    assert f"{len(twin)} of 15 answers of 2 system(s), 0 with a label" in said
    assert "by verdict and IR score alone; 70% of the draw is uniform" in said
    # Of a system with no more answers all are drawn for certain.
    if not several:
        assert main([str(tmp_path / "sweep"), "--budget", "15", "--out", str(tmp_path / "all.csv")]) == 0
        assert pd.read_csv(tmp_path / "all.csv").query("system == 'sim'")["probability"].tolist() == [1.0] * 7


@pytest.mark.parametrize(("errs", "share"), [("on low scores", 0.2), ("on each fourth", 0.6), ("on each sixth", 0.7)])
def test_earlier_labels_say_where_the_judge_errs(
    errs: str, share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 50 topics people labelled 36; on errors without a pattern the draw is as without labels."""
    rng = np.random.default_rng(4)
    score, dice = rng.random(50).round(2), rng.random(50)
    label = np.where(dice < 0.2 + 0.6 * score, 5, np.where(dice < 0.9, 1, 4))
    rows = pd.DataFrame({
        "qid": [f"q{i:02}" for i in range(50)], "query": "?", "answer_reference": "that", "n_tokens": 300,
        "system": "sim", "retriever": "sim", "ir_score": score, "label": pd.array(label, "Int8"),
        "answer": [f"a{i}" for i in range(50)], "unanswerable": False,
    })  # fmt: skip
    numbers = np.arange(50)
    wrong = {"on low scores": (label == 5) & (score < 0.6), "on each fourth": numbers % 4 == 0,
             "on each sixth": numbers % 6 == 1}[errs]  # fmt: skip
    said = np.where(wrong, np.where(label == 5, 4, 5), label)
    people = np.where(numbers % 7 < 2, 0, said).tolist()
    file, sheet = tmp_path / "before.csv", tmp_path / "labels.csv"
    told = rows.assign(label=people)[["qid", "answer", "label"]]
    told[told["label"] > 0].to_csv(file, index=False)
    arguments = [str(write(tmp_path / "sweep", rows)), "--budget", "12", "--out", str(sheet), "--earlier", str(file)]
    assert main(arguments) == 0
    salt = hashlib.sha256(file.read_bytes()).hexdigest()
    _, uniform = sizes(rows, people, -1.0)
    assert f"learnt from {sum(map(bool, people))} labels; {uniform:.0%} of the draw" in capsys.readouterr().out
    assert uniform == share
    twin = expected_sheet(rows, people, 12, -1.0, salt)
    found = pd.read_csv(sheet)
    assert found["qid"].tolist() == twin["qid"].tolist()
    assert found["probability"].tolist() == pytest.approx(twin["probability"].tolist(), rel=1e-4)


# What people and the judge said of older answers, and with which probability each was drawn.
SHEET = """
qid  retriever  label  judge_class  probability
a    bm25       5      5            0.5
a    sim        5      4            0.25
b    bm25       5      5            0.5
c    bm25       5      5            0.2
d    bm25       1      1            0.5
d    mmr        1      5            0.5
d    sim        4      2            0.25
e    bm25       2      1            1.0
f    bm25       .      5            0.5
"""
NEW = {"a": 5, "b": 5, "c": 5, "d": 1, "e": 4, "f": None}  # verdicts on new answers; a, b and c, d are of one document


def rate(rows: list[tuple[str, float, float]]) -> tuple[float, float]:
    """Share and effective number of [(topic, yes or no, weight)]."""
    total = sum(weight for *_, weight in rows)
    share = sum(yes * weight for _, yes, weight in rows) / total
    topics: dict[str, list[tuple[float, float]]] = {}
    for qid, yes, weight in rows:
        topics.setdefault(qid, []).append((weight / total * (yes - share), 1))
    variance = 0.0
    for parts in topics.values():
        added = sum(part for part, _ in parts) / (1 - len(parts) / len(rows)) * math.sqrt(1 - 1 / len(topics))
        variance += added**2
    kish = 1 / sum((weight / total) ** 2 for *_, weight in rows)
    return share, min(share * (1 - share) / variance, kish)


def test_shares_by_older_labels_weigh_them_and_take_topics_and_clusters_for_units(tmp_path: Path) -> None:
    cells = [",".join("" if cell == "." else cell for cell in line.split()) for line in SHEET.strip().splitlines()]
    (tmp_path / "then.csv").write_text("\n".join(cells))
    old = [line.split() for line in SHEET.strip().splitlines()[1:-1]]
    right = rate([(q, float(c == "5"), 1 / float(p)) for q, _, label, c, p in old if label == "5"])
    other = rate([(q, float(c != "5"), 1 / float(p)) for q, _, label, c, p in old if label != "5"])
    rows = pd.DataFrame({"qid": list(NEW), "label": pd.array(list(NEW.values()), "Int8"), CLUSTER: list("xxyyzw")})
    new = rate([(cluster, float(label == 5), 1.0) for cluster, label in zip("xxyyzw", NEW.values(), strict=True)])
    job: Any = SimpleNamespace(outcomes=rows, settings=Settings(human_labels_from=str(tmp_path / "then.csv")))
    found = ByOtherLabels().compute(job, {})  # type: ignore[arg-type]
    assert found is not None
    z = 1.959963984540054
    (p, n), (q1, m1), (q0, m0) = new, right, other
    value = (p + q0 - 1) / (q1 + q0 - 1)
    a, b = (m0 * q0 + 1) / (m0 + 2), (m1 * q1 + 1) / (m1 + 2)
    c, v0, v1 = (n * p + z * z / 2) / (n + z * z), a * (1 - a) / (m0 + 2), b * (1 - b) / (m1 + 2)
    theta = (c + a - 1) / (a + b - 1)
    middle = theta + 2 * z * z * (theta * v1 - (1 - theta) * v0)
    reach = z * math.sqrt(c * (1 - c) / (n + z * z) + (1 - theta) ** 2 * v0 + theta**2 * v1) / (a + b - 1)
    metric = "correct_share_rogan_gladen"
    assert found.metrics == pytest.approx({
        metric: value, f"{metric}_lo": max(middle - reach, 0.0), f"{metric}_hi": min(middle + reach, 1.0),
        "judge_sensitivity": q1, "judge_specificity": q0,
    })  # fmt: skip
    (line,) = ByOtherLabels().show(job, found.value, {}).lines  # type: ignore[arg-type]
    assert f"by 8 labels of other answers (Rogan-Gladen): right {value:.1%}" in line
    assert line.endswith(f"judged 50.0%; sensitivity {q1:.2f}, specificity {q0:.2f}")
    # With a sample only the judged ones count.
    some: Any = SimpleNamespace(
        outcomes=rows.assign(judged=[True, False, False, True, True, True]), settings=job.settings
    )
    assert ByOtherLabels().compute(some, {}).value[0].value == 0.25  # type: ignore
    none: Any = SimpleNamespace(outcomes=rows.assign(label=pd.array([None] * 6, "Int8")), settings=job.settings)
    assert ByOtherLabels().compute(none, {}) is None  # type: ignore[arg-type]


def test_a_sheet_must_say_what_the_judge_is_worth(tmp_path: Path) -> None:
    sheet, rng = tmp_path / "then.csv", np.random.default_rng(1)
    rows = pd.DataFrame({"qid": list("abcd"), "label": [5, 5, 1, 1], "judge_class": [5, 1, 5, 1]})
    rows.to_csv(sheet, index=False)
    with pytest.raises(DataError, match="add up to at most 1, so its verdicts say nothing"):
        judge_by(sheet)
    rows.drop(columns="judge_class").to_csv(sheet, index=False)
    with pytest.raises(DataError, match="columns label and judge_class are needed"):
        judge_by(sheet)
    rows.assign(label=5).to_csv(sheet, index=False)
    with pytest.raises(DataError, match="people called all answers alike"):
        judge_by(sheet)
    # A judge without an error is known as well as its labels, whatever their weights sum to.
    for n in range(6, 26):
        classes = [5, 1] * n
        rows = pd.DataFrame({"qid": range(2 * n), "label": classes, "judge_class": classes})
        rows.assign(probability=rng.uniform(0.1, 0.6, 2 * n).round(4)).to_csv(sheet, index=False)
        judge = judge_by(sheet)
        assert (judge.sensitivity.value, judge.specificity.value) == (1, 1)
        assert 1 <= judge.sensitivity.n <= n


def test_the_table_of_a_sweep_has_the_systems_that_know_it_at_its_budget() -> None:
    name = "correct_share_rogan_gladen"
    known = {name: 0.5, f"{name}_lo": 0.25, f"{name}_hi": 0.75, "judge_sensitivity": 0.875, "judge_specificity": 0.625}
    jobs = sweep(record("retriever=bm25", **{k: v / 2 for k, v in known.items()}),
                 record("retriever=bm25", n=300, correct_share=0.375, **known),
                 record("retriever=sim", n=300))  # fmt: skip
    found = OfSystemsByOtherLabels().compute(jobs, {})
    assert found is not None
    (section,) = OfSystemsByOtherLabels().show(jobs, found.value, {}).sections
    (grid,) = [block for block in section.blocks if isinstance(block, Grid)]
    assert [list(row) for row in grid.rows] == [
        ["bm25", Num(0.375, "share"), Num(0.5, "share", 0.25, 0.75), Num(0.875, "score"), Num(0.625, "score")]
    ]
    assert OfSystemsByOtherLabels().compute(sweep(record()), {}) is None
