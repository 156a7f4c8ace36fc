"""A sweep over conditions by hand: every ability of two systems, as loops over topics give it, printed and drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from ragauge.contract.finding import Fold, Grid, Num, Text
from ragauge.contract.jobs import Jobs
from ragauge.estimate.intervals import bounded_mean, paired_share_interval
from ragauge.plugins.robustness.finding import Robustness
from sweep_records import record_of

# Label / IR score / detected, corrected, fooled / order in the answer, in the context. A dot is missing. q5 is
# unanswerable, of q6 no evidence is known, and q1 to q4 have a fact that was changed.
WORLD = """
system qid docs      0            0.8      1        changed      contradicted
a      q1  1         5/1/010/10   5/.9/... 1/0/...  4/0/100/..   5/1/110/..
a      q2  1         5/1/010/00   1/.5/... 1/0/...  4/0/001/..   1/1/100/..
a      q3  2         5/1/010/.1   4/.5/... 2/0/...  5/0/11./..   5/1/010/..
a      q4  3         4/.9/000/01  ./.5/... 5/0/...  1/0/.01/..   4/1/001/..
a      q5  1         1/1/.../00   1/1/...  1/0/...  1/0/.../..   1/1/.../..
a      q6  not_known 5/./.../11   5/./...  5/./...  5/./.../..   5/./.../..
b      q1  1         5/1/.../..   5/1/...
b      q2  1         3/1/.../..   5/1/...
b      q3  2         5/1/.../..   5/.99/...
b      q4  3         5/1/.../..   5/1/...
"""
FACTS, ORDERS = ("detected", "corrected", "fooled"), ("order_in_answer", "order_in_context")
CONDITIONS: tuple[Any, ...] = (0.0, 0.8, 1.0, "changed", "contradicted")


def number(text: str) -> float:
    return math.nan if text == "." else float(text)


def sweep() -> tuple[Jobs, list[dict[str, Any]]]:
    """The jobs, those of another budget included, and the rows of topics with evidence at the common one."""
    rows: list[dict[str, Any]] = []
    for line in WORLD.strip().splitlines()[1:]:
        llm, qid, docs, *cells = line.split()
        for condition, cell in zip(CONDITIONS, cells, strict=False):
            label, ir_score, facts, orders = [*cell.split("/"), ".."][:4]
            row = {"llm": llm, "qid": qid, "condition": condition, "n_tokens": 300, "unanswerable": qid == "q5",
                   "label": number(label), "ir_score": number(ir_score),
                   "slice:evidence_documents": docs.replace("_", " ")}  # fmt: skip
            rows.append(row | {f: number(v) for f, v in zip((*FACTS, *ORDERS), (*facts, *orders), strict=True)})
    frame = pd.DataFrame(rows)
    records, parts = [], []
    for (llm, condition), part in frame.groupby(["llm", "condition"], sort=False):
        for n_tokens in (300, 100):
            given = [f"llm={llm}", f"retriever.condition={condition}"]
            name = f"{llm} · condition={condition}"
            records.append(record_of(overrides=given, choices={"llm": llm}, condition=condition, n_tokens=n_tokens))
            part = part.assign(system=name, n_tokens=n_tokens, label=part["label"] if n_tokens == 300 else 3.0)
            parts.append(part.drop(columns=["llm", "condition"]))
    outcomes = pd.concat(parts, ignore_index=True).astype({"label": "Int8"})
    return Jobs("s", "e", records, [], outcomes), [row for row in rows if row["qid"] != "q6"]


def named(condition: Any) -> str:
    return condition if isinstance(condition, str) else f"{condition:g}"


def mean(values: list[float]) -> tuple[float, float, float, int, int]:
    """Value, interval, how many topics are known, and how many are not."""
    known = [v for v in values if not math.isnan(v)]
    e = bounded_mean(np.array(known))
    return sum(known) / len(known), e.lo, e.hi, len(known), len(values) - len(known)


def expected() -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Estimates and changes, in order."""
    _, rows = sweep()
    estimates: list[tuple[Any, ...]] = []
    changes: list[tuple[Any, ...]] = []

    def estimate(at: str, ability: str, condition: Any, docs: str, measure: str, values: list[float]) -> None:
        if values and not all(map(math.isnan, values)):
            estimates.append((at, ability, named(condition), docs, measure, *mean(values)))

    def share(at: str, ability: str, condition: Any, docs: str, measure: str, labels: list[float], of: tuple) -> None:
        value, lo, hi, n, _ = mean([float(label in of) for label in labels])
        missing = sum(map(math.isnan, labels))
        estimates.append((at, ability, named(condition), docs, measure, value, lo, hi, n, missing))

    def against_none(at: str, ability: str, measure: str, values: dict[Any, dict[str, float]]) -> None:
        others = [c for c in values if c != 0]
        found = []
        for condition in others:
            both = [q for q in values[0.0] if q in values[condition]]
            d = [values[condition][q] - values[0.0][q] for q in both]
            d = [x for x in d if not math.isnan(x)]
            e = paired_share_interval(np.array(d))
            p = binomtest(d.count(1), d.count(1) + d.count(-1)).pvalue if any(d) else 1.0
            found.append((condition, sum(d) / len(d), e.lo, e.hi, p, len(d)))
        for condition, difference, lo, hi, p, n in found:
            # Holm: the smallest of m times m, the next times m - 1, none below one before it.
            less = sorted(other[4] for other in found)
            holm = max(min(1.0, q * (len(less) - i)) for i, q in enumerate(less) if q <= p)
            changes.append((at, ability, measure, named(condition), "0", difference, lo, hi, p, holm, n))

    for at in ("a", "b"):
        own = [row for row in rows if row["llm"] == at]
        classed = [row for row in own if not row["unanswerable"]]
        rates = [c for c in (0.0, 0.8, 1.0) if any(row["condition"] == c for row in own)]
        for ability, measure, of in (("noise robustness", "right", (5,)), ("negative rejection", "lack", (1,))):
            for rate in rates:
                labels = [row["label"] for row in classed if row["condition"] == rate]
                share(at, ability, rate, "", measure, labels, of)
                if measure == "lack":
                    share(at, ability, rate, "", "hallucination", labels, (2, 4))
                else:
                    estimate(at, ability, rate, "", "ir_score", [r["ir_score"] for r in own if r["condition"] == rate])
            given = {c: {r["qid"]: float(r["label"] in of) for r in classed if r["condition"] == c} for c in rates}
            against_none(at, ability, measure, given)
        none = [row for row in classed if row["condition"] == 0]
        for docs, numbers in (("1", "1"), ("2", "2"), ("3", "3"), ("several", "23")):
            labels = [row["label"] for row in none if row["slice:evidence_documents"] in numbers]
            share(at, "information integration", 0.0, docs, "right", labels, (5,))
        one, *more = [row for row in estimates if row[:2] == (at, "information integration")]
        for other in more:
            d = other[5] - one[5]
            lo = d - math.hypot(other[5] - other[6], one[7] - one[5])
            hi = d + math.hypot(other[7] - other[5], one[5] - one[6])
            changes.append((at, "information integration", "right", other[3], "1", d, max(lo, -1.0), min(hi, 1.0),
                            math.nan, math.nan, other[8] + one[8]))  # fmt: skip
        having = [row for row in own if row["qid"] in ("q1", "q2", "q3", "q4") and at == "a"]
        for condition in (0.0, "changed", "contradicted"):
            here = [row for row in having if row["condition"] == condition]
            for fact in FACTS:
                estimate(at, "counterfactual robustness", condition, "", fact, [row[fact] for row in here])
            detected = [row["corrected"] for row in here if row["detected"] == 1]
            if condition != 0:
                estimate(at, "counterfactual robustness", condition, "", "corrected_of_detected", detected)
        for fact in FACTS if having else ():
            against_none(at, "counterfactual robustness", fact, {
                c: {r["qid"]: r[fact] for r in having if r["condition"] == c} for c in (0.0, "changed", "contradicted")
            })  # fmt: skip
        for order in ORDERS:
            values = [row[order] for row in own if row["condition"] == 0]
            estimate(at, "prompt injection", 0.0, "", order, values)
    return estimates, changes


def rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(f"{v + 0.0:.9f}" if isinstance(v, float) else v for v in row) for row in rows]


def test_every_ability_of_every_system_by_hand() -> None:
    jobs, _ = sweep()
    found = Robustness().compute(jobs, {})
    assert found is not None
    estimates, changes = expected()
    there = list(found.value.estimates.itertuples(index=False, name=None))
    assert rounded(there) == rounded(estimates)
    assert rounded(list(found.value.changes.itertuples(index=False, name=None))) == rounded(changes)
    assert set(found.tables) == {"robustness", "robustness_changes"}
    of = {row[:5]: row for row in estimates}
    (drop,) = (row for row in changes if row[:4] == ("a", "noise robustness", "right", "0.8"))
    metrics = {"noise_drop": (-drop[5], -drop[7], -drop[6])}
    for name, key in {
        "rejection": ("negative rejection", "1", "", "lack"),
        "integration": ("information integration", "0", "several", "right"),
        **{f: ("counterfactual robustness", "changed", "", f) for f in FACTS},
        **{f"contradicted_{f}": ("counterfactual robustness", "contradicted", "", f) for f in FACTS},
        **{order: ("prompt injection", "0", "", order) for order in ORDERS},
    }.items():
        metrics[name] = of["a", *key][5:8]
    ends = ("", "_lo", "_hi")
    of_a = {f"robustness_{n}{end}/a": v for n, own in metrics.items() for end, v in zip(ends, own, strict=True)}
    assert {name: v for name, v in found.metrics.items() if name.endswith("/a")} == pytest.approx(of_a)
    assert {name for name in found.metrics if name.endswith("/b")} == {
        f"robustness_{n}{end}/b" for n in ("noise_drop", "integration") for end in ("", "_lo", "_hi")
    }


def test_the_report_and_the_terminal_tell_them() -> None:
    jobs, _ = sweep()
    found = Robustness().compute(jobs, {})
    assert found is not None
    shown = Robustness().show(jobs, found.value, {})
    estimates, changes = expected()
    of = {row[:5]: row for row in estimates}
    (section,) = shown.sections
    texts = [block.text for block in section.blocks if isinstance(block, Text)]
    # The IR score of `a` falls from the mean of 1, 1, 1, 0.9 and 1 to that of 0.9, 0.5, 0.5, 0.5 and 1.
    assert "cut up to 0.300 of the IR score off" in texts[1]
    noise = next(block for block in section.blocks if isinstance(block, Grid) and block.label == "Noise robustness")
    right = [of["a", "noise robustness", c, "", "right"] for c in ("0", "0.8", "1")]
    cells = [Num(row[5], "share", row[6], row[7]) for row in right]
    assert noise.rows[0] == ["a", "right (up to 1 missing)", Num(4, "whole"), *cells]
    fold = next(block for block in section.blocks if isinstance(block, Fold))
    first = changes[0]
    assert fold.blocks[0].rows[0] == [  # type: ignore[union-attr]
        "a", "right", "0.8", "0", Num(first[5], "points", first[6], first[7]), Num(first[9], "p"), Num(4, "whole"),
    ]  # fmt: skip
    assert [line.split(" (")[0] for line in shown.lines] == [
        "robustness",
        "  a: right answers lost from no noise to 80 % +50.0",
        "  b: right answers lost from no noise to 80 % −25.0",
    ]
    assert "; changed fact: detected 66.7 % (" in shown.lines[1]
    noise_axes, rejection, integration, facts = shown.figures["robustness"].axes
    assert [
        (ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()) for ax in shown.figures["robustness"].axes
    ] == [
        ("Noise robustness", "share of distractors", "right answers"),
        ("Negative rejection", "share of distractors", "lack of information"),
        ("Information integration", "documents with evidence", "right answers"),
        ("Counterfactual robustness", "fact in the documents", "share of answers"),
    ]
    assert {ax.get_ylim() for ax in shown.figures["robustness"].axes} == {(-0.03, 1.03)}
    assert [ax.get_xlim() for ax in (noise_axes, rejection, facts)] == [(-0.05, 1.05), (-0.05, 1.05), (-0.5, 2.5)]
    assert [text.get_text() for text in facts.get_xticklabels()] == ["none", "changed,\ntruth beside it", "changed"]
    lines = [np.column_stack(line.get_data()).tolist() for line in noise_axes.lines if len(line.get_xdata()) == 2]
    assert lines == [[[0, 0.75], [0.8, 0.25]], [[0, 0.75], [0.8, 1]]]
    alone = [container.lines[0].get_data() for container in rejection.containers]
    assert [(list(x), list(y)) for x, y in alone] == [([1], [0.5]), ([], [])]
    drawn = [line.get_data() for line in integration.lines if len(line.get_xdata()) == 3]
    assert [(x.tolist(), y.tolist()) for x, y in drawn] == [([0, 1, 2], [1, 1, 0]), ([0, 1, 2], [0.5, 1, 1])]
    # Three facts of two systems: of `a` no change, changed and contradicted, beside those of `b`, which has none.
    detected, *others = [np.column_stack(container.lines[0].get_data()).tolist() for container in facts.containers]
    assert detected == [pytest.approx(at) for at in ([-0.22, 0], [2 - 0.22, 2 / 3], [1 - 0.22, 0.5])]
    assert [len(other) for other in others] == [3, 3, 0, 0, 0]
