"""How the IR score foresees the answers of a real LLM, from a file of them: the last numbers of docs/evidence.md.

    python benchmarks/real_answers.py answers.jsonl.gz

A row is {retriever, n_tokens, qid, reference, ir_score, answer}. An answer is right if it contains the reference, lacks
information if it says so (`judge=lexical`'s rules), and is anything else otherwise (class 4).
"""

from __future__ import annotations

import sys

import pandas as pd

from ragauge.estimate import fit_thresholds
from ragauge.estimate.prediction import foresee
from ragauge.estimate.validation import cross_validate
from ragauge.measures.answers import Contains, of_pairs
from ragauge.measures.tokens import tokens_of
from ragauge.texts.refusals import says_it_lacks

_EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def main(file: str) -> None:
    """Prints a table for each question that docs/evidence.md answers."""
    rows = pd.read_json(file, lines=True)
    told = rows["answer"].tolist(), rows["reference"].astype(str).tolist()
    contains = pd.Series(of_pairs(Contains.of_tokens, tokens_of("tokens", "squad", ("a", "an", "the")), *told) > 0)
    lacks = rows["answer"].map(says_it_lacks)
    rows["label"] = pd.Series(4, rows.index).mask(lacks, 1).mask(contains, 5)
    rows["system"] = rows["retriever"]
    yes_no = rows["reference"].astype(str).str.lower().isin(["yes", "no"])
    print(f"{len(rows)} answers to {rows['qid'].nunique()} questions; {yes_no.mean():.3f} ask for yes or no")
    print(f"right {rows['label'].eq(5).mean():.3f}, lack {rows['label'].eq(1).mean():.3f}")
    for name, part in (("all", rows), ("without yes and no", rows[~yes_no])):
        found = cross_validate(part[["qid", "system", "n_tokens", "ir_score", "label"]]).estimates
        loss, base, auc = (found[key] for key in ("log_loss", "log_loss_base", "auc_correct"))
        print(f"{name}: AUC right {auc.value:.3f} ({auc.lo:.3f} to {auc.hi:.3f}), log loss {loss.value:.3f}, ", end="")
        print(f"without the score {base.value:.3f}")
    zones = pd.cut(rows["ir_score"], _EDGES, include_lowest=True)
    print(rows.groupby(zones, observed=True)["label"].agg(n="size", right=lambda of: of.eq(5).mean()).round(3))
    print(rows.groupby("n_tokens")["label"].agg(right=lambda of: of.eq(5).mean()).round(3).T)
    fitted = fit_thresholds(rows, n_boot=0)
    print(f"h {fitted.h.value:.3f}, degenerate {fitted.h.degenerate}; k {fitted.k.value:.3f}, accuracy ", end="")
    print(f"{fitted.k.accuracy:.3f}, constant guess {fitted.k.base_rate:.3f}")
    moved = []
    for left_out in rows["retriever"].unique():
        judged, other = rows[rows["retriever"] != left_out], rows[rows["retriever"] == left_out]
        table = foresee(judged, other, fitted.h.value, fitted.k.value, {})
        right = table[table["share"] == "right"].iloc[0]
        moved.append((left_out, other["label"].eq(5).mean(), *right[["predictor", "thresholds", "unchanged"]]))
    print(pd.DataFrame(moved, columns=["left out", "right", "predictor", "above k", "as the others"]).round(3))


if __name__ == "__main__":
    main(sys.argv[1])
