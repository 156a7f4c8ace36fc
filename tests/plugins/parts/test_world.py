"""A sweep by hand: what each option brings over another, all else equal, and over the LLM alone, by loops over topics.

A dot is a value that is missing, a minus a topic that the system lacks; q4 is unanswerable and has no evidence.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.finding import Grid, Num, columns_of
from ragauge.contract.jobs import Jobs
from ragauge.estimate.intervals import paired_mean, paired_share_interval
from ragauge.plugins.parts.finding import Parts
from sweep_records import record

# retriever, chunker.size, n_tokens: of q1 to q5 the IR score, the label and F1
WORLD = """
bm25 64  100   .4 .6 .2 .  .8   5 4 1 1 5   .9 .1 .0 .0 1.
bm25 128 100   .8 .6 .4 .  1.   5 5 2 5 .   .8 .7 .2 .1 .6
sim  64  100   .5 .1 .3 .  -    4 5 3 1 -   .2 .9 .4 .0 -
sim  128 100   .2 .2 .2 .  .2   2 2 5 1 5   .1 .3 .8 .3 .9
none 64  100   0. 0. 0. .  0.   1 5 1 1 4   .0 .8 .1 .2 .3
none 64  0     1. 1. 1. .  1.   5 5 5 5 5   .9 .9 .9 .9 .9
none 128 20    1. 1. 1. .  1.   5 5 5 5 5   .9 .9 .9 .9 .9
none 128 50    0. 0. 0. .  0.   3 1 1 1 1   .0 .0 .1 .2 .0
bm25 64  50    .1 .1 .1 .  .1   4 4 4 4 4   .0 .0 .0 .0 .0
"""
F1 = {"name": "f1", "label": "F1", "unit": "share"}
CLASSES = {
    "correct": (5,), "hallucination": (2, 4), "judge_share_1": (1,), "judge_share_2": (2,), "judge_share_3": (3,),
    "judge_share_4": (4,),
}  # fmt: skip


def world() -> tuple[Jobs, dict[str, dict[str, dict[str, float]]]]:
    """The jobs, and {measure: {system: {qid: value}}} at 100 tokens, or at what an LLM alone has."""
    records, rows = [], []
    values: dict[str, dict[str, dict[str, float]]] = {name: {} for name in ("ir_score", *CLASSES, "f1")}
    for line in WORLD.strip().splitlines():
        retriever, size, n, *cells = line.split()
        scores = {f"{m}": dict(enumerate(cells[i * 5 : i * 5 + 5])) for i, m in enumerate(("ir", "label", "f1"))}
        records.append(record(f"retriever={retriever}", f"chunker.size={size}", n=int(n)))
        records[-1].take({"answer_measures": [F1], "number": len(records)})
        system = f"{retriever} · {size} tokens"
        of = (
            {name: values[name].setdefault(system, {}) for name in values}
            if (retriever, int(n)) not in (("none", 0), ("none", 20), ("bm25", 50))
            else {}
        )
        for i in range(5):
            if (label := scores["label"][i]) == "-":
                continue
            qid, ir, f1 = f"q{i + 1}", scores["ir"][i], float(scores["f1"][i])
            ir_score = math.nan if ir == "." else float(ir)
            rows.append((qid, system, int(n), ir_score, None if label == "." else int(label), f1, qid == "q4"))
            if of:
                of["f1"][qid] = f1
                if qid != "q4":
                    of["ir_score"][qid] = ir_score
                    for name, members in CLASSES.items():
                        if label != "." or name == "correct":  # without a verdict any other class is possible
                            of[name][qid] = float(label != "." and int(label) in members)
    columns = ["qid", "system", "n_tokens", "ir_score", "label", "f1", "unanswerable"]
    return Jobs("s", "e", records, [], pd.DataFrame(rows, columns=columns).astype({"label": "Int8"})), values


DOCUMENTS = {"q1": 0, "q2": 0, "q3": 1, "q4": 1, "q5": 2}


def difference(
    of: dict[str, dict[str, float]], couples: list[tuple[str, str]], measure: str, clustered: bool
) -> tuple[Any, ...]:
    """Over the topics that all of the couples have: the mean, its limits over topics or documents, and how many."""
    topics = [q for q in ("q1", "q2", "q3", "q4", "q5") if all(q in of[s] for couple in couples for s in couple)]
    apart = np.array([[of[a][q] - of[b][q] for a, b in couples] for q in topics])
    clusters = np.array([DOCUMENTS[q] for q in topics]) if clustered else None
    if measure in CLASSES:
        of_rows = None if clusters is None else np.repeat(clusters, len(couples))
        e = paired_share_interval(apart.ravel(), np.repeat(np.arange(len(topics)), len(couples)), clusters=of_rows)
    else:
        e = paired_mean(apart.mean(axis=1), clusters=clusters)
    return pytest.approx(apart.mean()), pytest.approx(e.lo), pytest.approx(e.hi), len(topics)


@pytest.mark.parametrize("clustered", [False, True])
def test_what_each_part_brings_by_hand(clustered: bool) -> None:
    jobs, values = world()
    if clustered:
        jobs.outcomes["topic_cluster"] = jobs.outcomes["qid"].map(DOCUMENTS)
    found = Parts().compute(jobs, {})
    assert found is not None
    expected: list[tuple[Any, ...]] = []
    # No chunk size changes what the LLM alone says: `none` is the base of retrievers, and no match of sizes.
    contrasts = [
        ("retriever", "bm25", "none", [(f"bm25 · {n} tokens", f"none · {n} tokens") for n in (64, 128)]),
        ("retriever", "sim", "none", [(f"sim · {n} tokens", f"none · {n} tokens") for n in (64, 128)]),
        ("chunker.size", "128", "64", [(f"{r} · 128 tokens", f"{r} · 64 tokens") for r in ("bm25", "sim")]),
    ]
    for factor, option, base, couples in contrasts:
        for measure in ("ir_score", "correct", "hallucination"):
            found_of = difference(values[measure], couples, measure, clustered)
            expected.append((factor, option, base, measure, *found_of, 2))
    table = found.value.ablation
    columns = ["factor", "option", "base", "measure", "difference", "lo", "hi", "n", "settings"]
    assert list(table[columns].itertuples(index=False, name=None)) == expected
    gained = []
    for retriever, size in (("bm25", 64), ("bm25", 128), ("sim", 64), ("sim", 128)):
        couple = (f"{retriever} · {size} tokens", f"none · {size} tokens")
        for measure in (*CLASSES, "f1"):
            gained.append((*couple, measure, *difference(values[measure], [couple], measure, clustered)))
    columns = ["system", "base", "measure", "difference", "lo", "hi", "n"]
    assert list(found.value.gains[columns].itertuples(index=False, name=None)) == gained
    assert set(found.tables) == {"ablation", "gain_over_llm_only", "chunk_sizes"}
    (section,) = Parts().show(jobs, found.value, {}).sections
    gain = next(block for block in section.blocks if isinstance(block, Grid) and block.label.startswith("Gain"))
    assert [column.title for column in columns_of(gain.columns)] == [
        "System", "Right", "Hallucination", "1 lack", "2 partly wrong", "3 incomplete", "4 wrong", "F1 ↑",
    ]  # fmt: skip
    row = found.value.gains.iloc[6]
    assert gain.rows[0][7] == Num(row["difference"], "points", row["lo"], row["hi"])


def test_without_a_match_or_a_verdict_there_is_nothing_to_show() -> None:
    jobs, _ = world()
    kept = [0, 3]  # bm25 with 64, and sim with 128: they differ in two parts
    systems = [jobs.systems[i] for i in kept]
    rows = jobs.outcomes[jobs.outcomes["system"].isin(systems) & jobs.outcomes["n_tokens"].eq(100)]
    found = Parts().compute(Jobs("s", "e", [jobs.records[i] for i in kept], [], rows), {})
    assert found is not None
    assert set(found.tables) == {"chunk_sizes"}
    rows = jobs.outcomes.assign(label=pd.NA, f1=math.nan).astype({"label": "Int8"})
    found = Parts().compute(Jobs("s", "e", jobs.records, [], rows), {})
    assert found is not None
    assert set(found.value.ablation["measure"]) == {"ir_score"}
    assert "gain_over_llm_only" not in found.tables
