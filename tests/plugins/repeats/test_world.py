"""Three answers to each of six topics, two verdicts on each: what job and sweep say of them, beside plain loops."""

from __future__ import annotations

import math
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Fold, Grid
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.outcomes import CLUSTER
from ragauge.contract.usage import Usage
from ragauge.estimate.intervals import bounded_mean
from ragauge.plugins.repeats.entropy import SemanticEntropy
from ragauge.plugins.repeats.finding import RepeatsFound, RepeatsOfSystems
from sweep_records import record, sweep

# Answers to a topic, with the two verdicts on each, and three measures; - is a missing verdict, a dot a missing value.
# q6 cannot be answered, q7 was not judged.
TOPICS = """
qid  cluster  score  answers      verdicts  em   few  lone
q0   a        0.9    yes_yes_yes  55_55_55  111  111  1.1
q1   a        0.8    yes_no_yes   55_51_55  101  010  010
q2   b        0.4    yes_no_so    15_4-_22  001  ...  ...
q3   b        0.2    yes_so_yes   44_55_44  010  ...  ...
q4   c        .      yes_no_no    51_11_11  1.1  ...  ...
q5   c        0.1    yes_yes_a    44_44_35  000  ...  ...
q6   d        0.3    yes_no_no    11_55_55  000  111  111
q7   d        0.3    yes_no_no    .._.._..  000  000  000
"""
N_BOOT, SEED = 40, 3
PARTS = ("topic", "answer", "judge")
SHARES = {**{f"judge_share_{c}": f"{c}" for c in range(1, 6)}, "judge_share_missing": "-",
          "hallucination_share": "24", "correct_share": "5"}  # fmt: skip
COUNTED = [line.split() for line in TOPICS.strip().splitlines()[1:]][:6]


class Priced:
    """A model at a dollar for a hundred tokens that are read, and for ten that are written."""

    def cost(self, usage: Usage) -> float:
        return (usage.prompt_tokens or 0) / 100 + (usage.completion_tokens or 0) / 10


def job(r: int = 3, k: int = 2, clustered: bool = True) -> Any:
    repeated, outcomes = [], []
    for qid, cluster, score, answers, verdicts, *measures in [line.split() for line in TOPICS.strip().splitlines()[1:]]:
        outcomes.append((qid, math.nan if score == "." else float(score), qid == "q6", cluster))
        for s in range(r):
            values = [float("nan" if of[s] == "." else of[s]) for of in measures]
            for v, label in enumerate(verdicts.split("_")[s][:k]):
                status = None if label == "." else "missing" if label == "-" else "ok"
                told = (qid, s, v, f"{answers.split('_')[s]} \n", int(label) if label.isdigit() else None, status)
                repeated.append((*told, *values))
    columns = ["qid", "sample", "repeat", "answer", "label", "judge_status", "em", "few", "lone"]
    frame = pd.DataFrame(repeated, columns=columns).astype({"label": "Int8"})
    # Of three answers two share a request.
    replies = pd.DataFrame({"request": ["a", "a", "b"], "prompt_tokens": [30, 30, 10], "completion_tokens": [2, 2, 4]})
    pipeline = SimpleNamespace(
        several=True, repeated=frame, all_answers=replies.drop(columns="request"),
        all_verdicts=replies, components=SimpleNamespace(llm=Priced(), judge=Priced()),
    )  # fmt: skip
    infos = [AnswerMeasureInfo(name, name, unit="share") for name in ("em", "few", "lone", "absent")]
    told = pd.DataFrame(outcomes, columns=["qid", "ir_score", "unanswerable", CLUSTER])
    told = told.drop(columns=[] if clustered else CLUSTER)
    return SimpleNamespace(pipeline=pipeline, outcomes=told, answer_measures=infos, n_boot=N_BOOT, seed=SEED)


def parts(of: list[list[float]], units: int = 0, whole: float = 0.0) -> list[float]:
    """Variance between topics, answers and verdicts of [mean, answer, judge, within] each; a resample's first grows."""
    means = [topic[0] for topic in of]
    spread = sum((mean - np.mean(means)) ** 2 for mean in means) / max(len(of) - 1, 1)
    answer, judge, within = (float(np.mean([topic[i] for topic in of])) for i in (1, 2, 3))
    return [spread - within + (whole / (units - 1) if units > 1 else 0), answer, judge]


def varied(topics: list[tuple[str, list[str], list[list[float]]]]) -> dict[str, float]:
    """A row of the table of [(cluster, answers, the values of each)]."""
    terms, r, k, n = [], len(topics[0][1]), len(topics[0][2][0]), len(topics)
    for _, texts, values in topics:
        means = [sum(of) / k for of in values]
        spread = [
            sum((v - m) ** 2 for v in of) / (k - 1) if k > 1 else 0.0 for of, m in zip(values, means, strict=True)
        ]
        pairs = [((means[s] - means[t]) ** 2 - (spread[s] + spread[t]) / k) / 2 if texts[s] != texts[t] else 0.0
                 for s, t in combinations(range(r), 2)]  # fmt: skip
        answer = sum(pairs) / len(pairs) if r > 1 else math.nan
        shared = sum(spread[s] for s in range(r) for t in range(r) if texts[s] == texts[t]) / (r * r * k)
        judge = sum(spread) / r if k > 1 else math.nan
        terms.append([sum(means) / r, answer, judge, shared + (answer / r if r > 1 else 0.0)])
    seen, names = parts(terms), sorted({cluster for cluster, *_ in topics})
    units = [[of for of, topic in zip(terms, topics, strict=True) if topic[0] == name] for name in names]
    drawn = []
    for times in np.random.default_rng(SEED).multinomial(len(units), [1 / len(units)] * len(units), size=N_BOOT):
        chosen = [of for unit, n_times in zip(units, times, strict=True) for of in unit * n_times]
        drawn.append(parts(chosen, len(units), seen[0]))
    error = float(np.var([topic[0] for topic in terms], ddof=1)) / n
    of_answers = seen[1] / r if r > 1 else 0.0
    of_judge = sum(topic[3] for topic in terms) / n - of_answers
    found = {"mean": sum(topic[0] for topic in terms) / n, "topics": n, "error": math.sqrt(error)}
    of_error = (seen[0], of_answers, of_judge)
    for name, value, values, share in zip(PARTS, seen, np.transpose(drawn), of_error, strict=True):
        lo, hi = np.percentile(values, [2.5, 97.5]) if len(units) > 1 else (math.nan, math.nan)
        found |= {
            name: value,
            f"{name}_lo": lo,
            f"{name}_hi": hi,
            f"of_error_{name}": share / n / error if error else math.nan,
        }
    return found


def agreeing(labels: str) -> float:
    pairs = [a == b for a, b in combinations(labels, 2)]
    return sum(pairs) / len(pairs)


@pytest.mark.parametrize(("r", "k", "clustered"), [(3, 2, True), (2, 2, False), (3, 1, False), (1, 2, False)])
def test_a_job_logs_the_parts_of_the_variance_and_the_stability_of_its_answers(r: int, k: int, clustered: bool) -> None:
    made = job(r, k, clustered)
    found = RepeatsFound().compute(made, {})
    assert found is not None
    topics = [(row[1] if clustered else row[0], row[3].split("_")[:r], [of[:k] for of in row[4].split("_")][:r])
              for row in COUNTED]  # fmt: skip
    rows = {
        name: varied([(unit, texts, [[float(label in of) for label in labels] for labels in verdicts])
                      for unit, texts, verdicts in topics])
        for name, of in SHARES.items()
    }  # fmt: skip
    for at, name in enumerate(("em", "few"), 5):
        known = [(row[1] if clustered else row[0], row[3].split("_")[:r], [[float(v)] for v in row[at][:r]])
                 for row in COUNTED if "." not in row[at][:r]]  # fmt: skip
        rows[name] = varied(known)
    if r == 1:  # of one answer two topics have the third measure, too
        rows["lone"] = varied([(row[0], ["yes"], [[float(row[7][0])]]) for row in COUNTED[:2]])
    table = found.tables["repeats_variance"].set_index("of")
    assert table.index.tolist() == list(rows)
    for name, row in rows.items():
        assert table.loc[name].to_dict() == pytest.approx(row, nan_ok=True)
    right = rows["correct_share"]
    expected = {"repeat_topics": 6, "repeat_answers": r, "repeat_verdicts": k}
    expected |= {"repeat_price_answer": (70 / 100 + 8 / 10) / 3, "repeat_price_verdict": (40 / 100 + 6 / 10) / 2}
    for name in PARTS:
        expected |= {f"repeat_variance_{name}{end}": right[f"{name}{end}"] for end in ("", "_lo", "_hi")}
        expected[f"repeat_error_{name}"] = right[f"of_error_{name}"]
    first = ["".join(of[0] for of in verdicts) for *_, verdicts in topics]
    shares = {}
    if r > 1:
        shares = {
            "agreement": [agreeing(of) for of in first], "right_once": [float("5" in of) for of in first],
            "right_always": [float(set(of) == {"5"}) for of in first],
            "same_answers": [float(len({*texts}) == 1) for _, texts, _ in topics],
        }  # fmt: skip
        at = [i for i, row in enumerate(COUNTED) if row[2] != "."]
        scores, varies = [float(COUNTED[i][2]) for i in at], [np.var([c == "5" for c in first[i]], ddof=1) for i in at]
        units = [[j for j, i in enumerate(at) if topics[i][0] == u] for u in sorted({topic[0] for topic in topics})]
        units, moved, rng = [unit for unit in units if unit], [], np.random.default_rng(SEED)
        for _ in range(N_BOOT):
            chosen = [i for u in rng.integers(0, len(units), len(units)) for i in units[u]]
            x, y = [scores[i] for i in chosen], [varies[i] for i in chosen]
            if len(set(x)) > 1 and len(set(y)) > 1:
                moved.append(spearmanr(x, y).statistic)
        lo, hi = np.percentile(moved, [2.5, 97.5])
        whole = spearmanr(scores, varies).statistic
        expected |= {"repeat_foresight": whole, "repeat_foresight_lo": lo, "repeat_foresight_hi": hi}
    if k > 1:
        shares["judge_agreement"] = [sum(map(agreeing, verdicts)) / r for *_, verdicts in topics]
    for name, values in shares.items():
        interval = bounded_mean(np.array(values), clusters=np.array([unit for unit, *_ in topics]))
        expected |= {
            f"repeat_{name}": sum(values) / 6,
            f"repeat_{name}_lo": interval.lo,
            f"repeat_{name}_hi": interval.hi,
        }
    expected = {name: value for name, value in expected.items() if value == value}
    assert found.metrics == pytest.approx(expected)
    lines = RepeatsFound().show(made, found.value, {}).lines
    if clustered:
        # First verdicts: q0 555, q1 555, q2 142, q3 454, q4 511, q5 443.
        assert lines[0] == "3 answers to each topic: right at least once 67%, always 33%"
    of_error = [f"{name} {right[f'of_error_{part}']:.0%}" for name, part in
                zip(("topics", "answers", "judge"), PARTS, strict=True)]  # fmt: skip
    assert lines[-1] == f"variance of the share of right answers: {', '.join(of_error)}"
    assert len(lines) == (2 if r > 1 else 1)


def test_equal_answers_are_said_and_without_a_verdict_there_is_the_table_alone() -> None:
    same = job()
    same.pipeline.repeated["answer"] = "yes"
    found = RepeatsFound().compute(same, {})
    assert found is not None
    assert RepeatsFound().show(same, found.value, {}).lines[0] == (
        "llm.repeat: the 3 answers to each topic are equal, for all 6 topics"
    )
    same.pipeline.repeated["label"] = pd.array([None] * 48, "Int8")
    bare = RepeatsFound().compute(same, {})
    assert bare is not None
    assert (bare.value, list(bare.tables), RepeatsFound().show(same, None, {}).lines) == (None, ["repeats"], ())


def test_a_sweep_shows_the_systems_that_have_repeats_at_its_budget() -> None:
    known = {"repeat_answers": 3.0, "repeat_right_once": 0.75, "repeat_right_always": 0.25, "repeat_agreement": 0.5,
             "repeat_judge_agreement": 0.875, "repeat_foresight": -0.125, "repeat_variance_topic": 0.0625,
             "repeat_variance_answer": 0.03125, "repeat_error_topic": 0.75, "repeat_error_answer": 0.25}  # fmt: skip
    jobs = sweep(record("retriever=bm25", **{name: value / 2 for name, value in known.items()}),
                 record("retriever=bm25", n=300, **known), record("retriever=sim", n=300))  # fmt: skip
    found = RepeatsOfSystems().compute(jobs, {})
    assert found is not None
    assert found.tables["repeats"].to_dict("records") == [{"system": "bm25", **known}]
    (section,) = RepeatsOfSystems().show(jobs, found.value, {}).sections
    grid, fold = section.blocks[1:]
    assert isinstance(grid, Grid)
    assert isinstance(fold, Fold)
    values = [[getattr(cell, "value", cell) for cell in of.rows[0]] for of in (grid, fold.blocks[1])]  # type: ignore[union-attr]
    assert values == [
        ["bm25", 3.0, 0.75, 0.25, 0.5, 0.875, -0.125], ["bm25", 0.0625, 0.03125, None, 0.75, 0.25, None],
    ]  # fmt: skip
    assert RepeatsOfSystems().compute(sweep(record()), {}) is None


# Two texts mean the same by cosines where their angles differ by at most 30 degrees.
ANGLES = {"The Eiffel tower.": 0, "eiffel tower": 25, "Louvre": 50, "north": 90}
ANSWERS = """
topic  answers                                    meanings: equal  by cosine
a      The Eiffel tower.|eiffel tower|Louvre      2,1              2,1
b      eiffel tower|The Eiffel tower.|Louvre      2,1              3
c      north|Louvre|-                             1,1              1,1
d      Louvre|Louvre|Louvre                       3                3
e      -|-|-                                      .                .
"""


@pytest.mark.parametrize(("by", "column"), [("equal", -2), ("cosine", -1)])
def test_semantic_entropy_counts_meanings(by: Any, column: int) -> None:
    rows = [line.split("  ") for line in ANSWERS.strip().splitlines()[1:]]
    cells = [[cell.strip() for cell in row if cell] for row in rows]
    texts = [(row[0], s, None if text == "-" else text) for row in cells for s, text in enumerate(row[1].split("|"))]
    frame = pd.DataFrame(texts, columns=["qid", "sample", "answer"])

    def embed(texts: list[str]) -> np.ndarray:
        angles = np.radians([ANGLES[text] for text in texts])
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)

    measure = SemanticEntropy(by, math.cos(math.radians(30)))
    tools: Any = SimpleNamespace(embedder=SimpleNamespace(embed=embed))
    expected = {}
    for row in cells[:-1]:
        counts = [int(n) for n in row[column].split(",")]
        expected[row[0]] = -sum(n / sum(counts) * math.log(n / sum(counts)) for n in counts)
    found = measure.measure_repeats(frame, tools)["semantic_entropy"]
    assert found.to_dict() == pytest.approx(expected)
    assert math.copysign(1, found["d"]) == 1  # no -0.0
    assert measure.uses == ({"embedder"} if by == "cosine" else set())
    first: Any = measure.measure(frame, frame, frame, frame[frame["sample"] == 0].assign(n_tokens=100), tools)
    assert first["value"].dropna().tolist() == [0.0] * 4
    assert measure.measure_repeats(frame[frame["qid"] == "e"], tools).empty
    with pytest.raises(ConfigError, match=r"semantic_entropy\.threshold"):
        SemanticEntropy(threshold=1.5)
    with pytest.raises(ConfigError, match=r"semantic_entropy\.by"):
        SemanticEntropy(by="model")  # type: ignore[arg-type]
