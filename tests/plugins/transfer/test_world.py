"""A sweep by hand: what a predictor of the others says of each retriever and each chunker, by refits in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ragauge.contract.finding import Fold, Num, Text
from ragauge.contract.jobs import Jobs
from ragauge.estimate import fit_predictor
from ragauge.plugins.transfer.finding import Transfers
from sweep_records import record_of

# retriever, chunker, n_tokens; then the IR score and the label of each topic. q4 is unanswerable; a dot is missing.
WORLD = """
bm25 tokens 100  .1 .4 .9 .3 .6 .7 .9 .0   1 4 5 1 1 5 5 1
sim  tokens 100  .3 .5 .7 .2 .1 .8 . .1   1 5 5 4 1 5 5 4
sim  tokens 300  .5 .7 .9 .3 .5 .9 .8 .1   4 5 5 1 1 4 5 1
mmr  parent 300  .2 .6 .8 .4 .9 .9 .7 .2   1 5 4 1 5 5 5 4
"""
HOW = {"features": ["ir_score"], "spline": False, "calibrate": False, "penalty": 1e-3}
FOLDS, SEED, N_BOOT = 5, 2, 30


def sweep() -> tuple[Jobs, pd.DataFrame]:
    """The jobs, and the rows that can be predicted: answerable, with a label and a score."""
    rows, records = [], []
    for number, line in enumerate(WORLD.strip().splitlines()):
        retriever, chunker, n, *cells = line.split()
        how = HOW if number == 0 else {**HOW, "penalty": 9.0}  # the first counts
        records.append(record_of(overrides=[f"retriever={retriever}"], estimate=how, bootstrap=N_BOOT, seed=SEED,
                                 number=number))  # fmt: skip
        for i in range(8):
            score, label = (math.nan if cell == "." else float(cell) for cell in (cells[i], cells[8 + i]))
            rows.append((f"q{i}", retriever, chunker, "e", int(n), score, label, i == 4))
    columns = ["qid", "retriever", "chunker", "llm", "n_tokens", "ir_score", "label", "unanswerable"]
    frame = pd.DataFrame(rows, columns=columns).astype({"label": "Int8"}).assign(system=lambda f: f["retriever"])
    known = frame[~frame["unanswerable"] & frame["label"].notna() & frame["ir_score"].notna()]
    return Jobs("s", "e", records, [], frame), known.reset_index(drop=True)


def refitted(rows: pd.DataFrame, by: str, weight: dict[str, float]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the others' rows of other topics say of every row, by the predictor and by their shares."""
    qids = sorted(rows["qid"].unique())
    fold_of = dict(zip(qids, np.random.default_rng(SEED).permutation(len(qids)) % FOLDS, strict=True))
    predicted: list[np.ndarray] = [np.zeros(5)] * len(rows)
    base: list[np.ndarray] = [np.zeros(5)] * len(rows)
    fold = rows["qid"].map(fold_of)
    for group in rows[by].unique():
        for held in range(FOLDS):
            train = rows[(rows[by] != group) & (fold != held)].assign(weight=lambda f: f["qid"].map(weight))
            of_class = [train["weight"][train["label"] == c].sum() / train["weight"].sum() for c in range(1, 6)]
            here = rows[(rows[by] == group) & (fold == held)]
            if len(here):
                found = fit_predictor(train, **HOW).predict_proba(here)
                for i, p in zip(here.index, found, strict=True):
                    predicted[i], base[i] = p, np.array(of_class)
    return predicted, base


def apart(d: float, sd: float) -> float:
    """E |N(d, sd^2)|."""
    grid = norm.ppf((np.arange(4000) + 0.5) / 4000)
    return float(np.abs(d + sd * grid).mean())


def expected(rows: pd.DataFrame, by: str) -> tuple[pd.DataFrame, dict[str, float]]:
    """The table, and mae, mae_base and mae_perfect, by refits in which each topic weighs a little more."""
    once = dict.fromkeys(sorted(rows["qid"].unique()), 1.0)
    groups, n = sorted(rows[by].unique()), len(once)
    truth = [np.array([float(label == c) for c in range(1, 6)]) for label in rows["label"]]

    def means(of: list[np.ndarray], group: str) -> np.ndarray:
        return np.mean([of[i] for i in rows.index[rows[by] == group]], axis=0)

    own, step = refitted(rows, by, once), 0.005
    moved = {q: refitted(rows, by, once | {q: 1 + step}) for q in once}
    drawn = [np.bincount(d, minlength=n) for d in np.random.default_rng(SEED).integers(n, size=(N_BOOT, n))]
    lines, errors, perfect = [], ([], []), []
    resampled: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])  # differences [replicates, 5] of each group
    lacking: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for group in groups:
        own_rows = rows[rows[by] == group]
        judged = means(truth, group)
        for c in range(5):
            lines.append((group, c + 1, means(own[0], group)[c], judged[c], len(own_rows)))
        for which in (0, 1):
            difference = means(own[which], group) - judged
            fit = np.array([means(up[which], group) - means(own[which], group) for up in moved.values()]) / step
            fit -= fit.mean(axis=0)
            gap = np.array(
                [sum((own[which][i] - truth[i] - difference for i in own_rows.index[own_rows["qid"] == q]), np.zeros(5))
                 / len(own_rows) for q in once]
            )  # fmt: skip
            same = ((gap + fit) ** 2).sum(axis=0) * n / (n - 1)
            other = ((gap**2).sum(axis=0) + (fit**2).sum(axis=0)) * n / (n - 1)
            lacking[which].append(np.sqrt(np.maximum(other - same, 0)))
            errors[which].extend(map(apart, difference, lacking[which][-1]))
            again = []
            for times in drawn:  # a topic that is drawn twice counts twice, and moves the fits once more
                w = {q: int(t) for q, t in zip(once, times, strict=True)}
                total = sum(w[q] for q in own_rows["qid"])
                moving = sum((w[q] - 1) * f for q, f in zip(once, fit, strict=True))
                gaps = [w[q] * (own[which][i] - truth[i]) for i, q in own_rows["qid"].items()]
                again.append(np.sum(gaps, axis=0) / total + moving if total else np.full(5, math.nan))
            resampled[which].append(np.array(again))
            if which == 0:
                perfect += [math.sqrt(2 / math.pi * v) for v in np.maximum(same, other)]
    table = pd.DataFrame(lines, columns=["group", "class", "predicted", "judged", "n"])
    ends = [np.nanquantile(of, [0.025, 0.975], axis=0) for of in resampled[0]]
    table["lo"], table["hi"] = np.hstack([lo for lo, _ in ends]), np.hstack([hi for _, hi in ends])
    found = {"mae": np.mean(errors[0]), "mae_base": np.mean(errors[1]), "mae_perfect": np.mean(perfect)}
    folded = [
        np.nanmean([apart(d, x) for of, xs in zip(resampled[0], lacking[0], strict=True)
                    for d, x in zip(of[b], xs, strict=True)]) for b in range(N_BOOT)
    ]  # fmt: skip
    lo, hi = np.quantile(folded, [0.025, 0.975]) - np.mean(folded) + found["mae"]
    found |= {"mae_lo": max(lo, 0.0), "mae_hi": hi}
    return table, {name: float(value) for name, value in found.items()}


def test_shares_of_what_was_left_out_are_those_of_refits_without_it_and_without_its_topics() -> None:
    by = "retriever"
    jobs, rows = sweep()
    found = Transfers().compute(jobs, {"thresholds": None})  # type: ignore[dict-item]
    assert found is not None
    assert set(found.value) == {"retriever", "chunker"}  # all answers are of one LLM
    table, metrics = expected(rows, by)
    there = found.tables["transfer_retriever"]
    assert there[["group", "class", "n"]].equals(table[["group", "class", "n"]])
    assert there["predicted"].tolist() == pytest.approx(table["predicted"].tolist())
    assert there["judged"].tolist() == pytest.approx(table["judged"].tolist())
    assert there["difference"].tolist() == pytest.approx((table["predicted"] - table["judged"]).tolist())
    for end in ("lo", "hi"):
        assert there[end].tolist() == pytest.approx(table[end].tolist(), abs=0.01)
    for measure, value in metrics.items():
        assert found.metrics[f"transfer_{measure}"] == pytest.approx(value, rel=5e-3, abs=1e-3)
    right = table[table["class"] == 5]
    signs = [
        np.sign(right["predicted"].iloc[i] - right["predicted"].iloc[j])
        * np.sign(right["judged"].iloc[i] - right["judged"].iloc[j])
        for i in range(len(right)) for j in range(i)
    ]  # fmt: skip
    assert found.metrics["transfer_kendall_tau"] == pytest.approx(np.mean(signs))
    # Chunkers: sim's two budgets are of one chunker, and a left-out chunker is predicted by the other alone.
    shares = found.tables["transfer_chunker"].groupby("group")["judged"].apply(list)
    labels = rows.groupby("chunker")["label"].agg(list)
    assert {name: of[4] for name, of in shares.items()} == {name: labels[name].count(5) / len(labels[name])
                                                            for name in ("parent", "tokens")}  # fmt: skip
    assert {"transfer_chunker_mae", "transfer_chunker_mae_base"} < set(found.metrics)
    (section,) = Transfers().show(jobs, {by: found.value[by]}, {}).sections
    said, _, fold = section.blocks
    assert isinstance(said, Text)
    assert isinstance(fold, Fold)
    assert f"miss by {100 * metrics['mae_base']:.1f}. Kendall" in said.text
    cells = fold.blocks[0].rows[4]  # type: ignore[union-attr]
    assert cells[:4] == [
        table["group"][0], "5 right", Num(there["predicted"][4], "share"), Num(there["judged"][4], "share"),
    ]  # fmt: skip


def test_without_thresholds_or_a_second_group_nothing_is_left_out() -> None:
    jobs, _ = sweep()
    assert Transfers().compute(jobs, {}) is None
    one = Jobs("s", "e", jobs.records, [], jobs.outcomes[jobs.outcomes["retriever"] == "sim"])
    assert Transfers().compute(one, {"thresholds": None}) is None  # type: ignore[dict-item]
