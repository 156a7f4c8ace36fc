"""IR scores as people's evidence corrects them: a world of twelve topics against loops that know nothing of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.finding import Grid, Num
from ragauge.contract.jobs import Jobs
from ragauge.contract.settings import Settings
from ragauge.measures import Substring
from ragauge.plugins.annotate.corrected import corrected_mean
from ragauge.plugins.annotate.finding import ByPeoplesEvidence, OfSystemsByPeoplesEvidence
from small_pipeline import SmallPipelines
from sweep_records import record

# Scores by made evidence of bm25 and sim, and by people's of both, at 100 tokens. `-`: no evidence; nothing: not asked.
# e1 and e2 have the dataset's evidence; f1 is unanswerable; sim has no row of g1.
WORLD = """
a1 evaluator 1.0 0.5 1.0  0.5
a2 evaluator 0.5 0.25 0.75 0.25
b1 evaluator 0.25 0.75 - -
b2 evaluator - - 0.5 1.0
c1 evaluator 0.5 1.0 0.0 0.75
c2 evaluator 1.0 0.25
d1 evaluator 0.75 0.5
d2 evaluator 1.0 0.0
e1 dataset 0.5 0.5
e2 dataset 0.75 1.0
f1 evaluator 0.5 0.25
g1 evaluator 0.5 none 0.75
"""


class Row(NamedTuple):
    """people: a score, nan for no evidence, None where they were not asked."""

    cluster: str
    given: bool
    made: float
    people: float | None


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def powered(rows: Sequence[Row], y: list[float], f: list[float]) -> tuple[float, float, list[float]]:
    """PPI++ by strata of the mean of y, known where people were asked: estimate, mean lambda, what each row adds."""
    judged = {s: [i for i, r in enumerate(rows) if r.given == s and r.people is not None] for s in (False, True)}
    others = {s: [i for i, r in enumerate(rows) if r.given == s and r.people is None] for s in (False, True)}
    weight = {s: (len(judged[s]) + len(others[s])) / len(rows) for s in judged}

    def gain_and_cost(s: bool, without: int = -1) -> tuple[float, float]:
        of = [i for i in judged[s] if i != without]
        if len(of) < 2 or not others[s]:
            return 0, 0
        middle_y, middle_f = mean([y[i] for i in of]), mean([f[i] for i in of])
        scale = weight[s] ** 2 / (len(of) - 1)
        gain = sum((y[i] - middle_y) * (f[i] - middle_f) for i in of) / len(of)
        cost = sum((f[i] - middle_f) ** 2 for i in of) * (1 / len(of) + 1 / len(others[s]))
        return scale * gain, scale * cost

    lam: dict[int, float] = {}
    for s, of in judged.items():
        for i in of:
            found = [gain_and_cost(one, i if one == s else -1) for one in judged]
            gain, cost = (sum(side) for side in zip(*found, strict=True))
            lam[i] = min(max(gain / cost, 0), 1) if cost > 1e-15 else 0
    value = {}
    for s, of in judged.items():
        rest = mean([f[i] for i in others[s]]) if others[s] else 0
        value |= {i: y[i] + lam[i] * (rest - f[i]) if others[s] else y[i] for i in of}
    means = {s: mean([value[i] for i in of]) if of else 0 for s, of in judged.items()}
    estimate = sum(weight[s] * means[s] for s in means)
    adds = [(means[r.given] - estimate) / len(rows) for r in rows]
    for s, of in judged.items():
        for i in of:
            adds[i] += weight[s] * (value[i] - means[s]) / len(of)
        for j in others[s]:
            rest = mean([f[i] for i in others[s]])
            adds[j] += weight[s] * mean([lam[i] for i in of]) * (f[j] - rest) / len(others[s])
    return estimate, mean(list(lam.values())), adds


def by_loops(rows: Sequence[Row], least: float = 0.0) -> dict[str, float]:
    """The ratio's columns of the table: the R at which the mean of has * (score - R) is 0."""
    has = [float(r.people is not None and not isnan(r.people)) for r in rows]
    had = [float(not isnan(r.made)) for r in rows]
    share, _, _ = powered(rows, has, had)
    labels = [r.people for r, one in zip(rows, has, strict=True) if one and r.people is not None]
    ratio = mean(labels)
    for _ in range(200):
        y = [(r.people or 0) - ratio if one else 0.0 for r, one in zip(rows, has, strict=True)]
        f = [r.made - ratio if one else 0.0 for r, one in zip(rows, had, strict=True)]
        step, lam, adds = powered(rows, y, f)
        ratio += step / share
    clusters = {r.cluster for r in rows}
    variance = 0.0
    for one in clusters:
        part = sum(r.cluster == one for r in rows) / len(rows)
        total = sum(add for r, add in zip(rows, adds, strict=True) if r.cluster == one)
        variance += (total / (1 - part) * sqrt(1 - 1 / len(clusters))) ** 2  # CR3
    asked = [r for r in rows if r.people is not None]
    sizes = [sum(r.cluster == one for r in asked) for one in {r.cluster for r in asked}]
    strata = len({r.given for r in asked})
    df = min(len(asked) - strata, max(sum(sizes) ** 2 / sum(n**2 for n in sizes) - 1, 1))
    reach = t.isf(0.025, df) * sqrt(variance) / share
    lo, hi = max(ratio - reach, least), min(ratio + reach, 1)
    return {"value": ratio, "lo": lo, "hi": hi, "people_only": mean(labels), "lambda": lam, "labelled": len(asked)}


def world() -> tuple[Jobs, dict[str, list[Row | None]]]:
    """The sweep, and of each system its rows; the rows of 50 tokens would say other things."""
    outcomes, people = [], {"bm25": {}, "sim": {}}
    rows: dict[str, list[Row | None]] = {"bm25": [], "sim": []}
    for line in WORLD.split("\n")[1:-1]:
        qid, by, *told = line.split()
        for system, made, label in zip(rows, told[:2], [*told[2:], "", ""][:2], strict=True):
            if made == "none":
                rows[system].append(None)
                continue
            score = nan if made == "-" else float(made)
            asked = None if not label else nan if label == "-" else float(label)
            if asked is not None:
                people[system][qid] = None if isnan(asked) else asked
            of = {"qid": qid, "system": system, "topic_cluster": f"of {qid[0]}", "evidence_by": by}
            of |= {"unanswerable": qid == "f1", "label": None}
            outcomes += [{**of, "n_tokens": n, "ir_score": score * (n == 100)} for n in (50, 100)]
            row = Row(qid[0], by == "dataset", score, score if by == "dataset" else asked)
            rows[system].append(None if qid == "f1" else row)
    records = [
        replace(record(f"retriever={system}", n=n),
                added={"people_ir_scores": people[system] if n == 100 else {"a1": 0, "a2": 0.1}})
        for system in rows for n in (100, 50)
    ]  # fmt: skip
    return Jobs("s", "e", records, [], pd.DataFrame(outcomes)), rows


def test_systems_are_ranked_by_what_people_say_of_all_topics() -> None:
    jobs, rows = world()
    found = OfSystemsByPeoplesEvidence().compute(jobs, {})
    assert found is not None
    table = found.tables["people_evidence"].set_index("system")
    # By made evidence bm25 is ahead, with the topic that sim lacks and without it.
    assert table.loc["bm25", "ir_score"] == pytest.approx(7.25 / 11)
    assert table.loc["sim", "ir_score"] == pytest.approx(5.0 / 10)
    for system, own in rows.items():
        want = by_loops([row for row in own if row is not None])
        got = table.loc[system].rename({"ir_score_people": "value"})
        assert got[list(want)].to_dict() == pytest.approx(want, abs=1e-6), system
    assert 0 < table.loc["sim", "lambda"] < 1
    [best, other] = table.index
    assert (best, table.loc[best, "difference"]) == ("bm25", 0)
    apart = []
    for mine, its in zip(rows[other], rows[best], strict=True):
        if mine is not None and its is not None:
            both = None if mine.people is None or its.people is None else mine.people - its.people
            apart.append(mine._replace(made=mine.made - its.made, people=both))
    want = by_loops(apart, -1.0)
    assert table.loc[other, ["difference", "difference_lo", "difference_hi"]].tolist() == pytest.approx(
        [want["value"], want["lo"], want["hi"]], abs=1e-6
    )
    [section] = OfSystemsByPeoplesEvidence().show(jobs, found.value, {}).sections
    grid = section.blocks[1]
    assert isinstance(grid, Grid)
    numbers = [[cell if isinstance(cell, str) else cell.value for cell in row] for row in grid.rows]
    of = table.reset_index()[["system", "ir_score_people", "ir_score", "difference", "lambda"]].to_numpy().tolist()
    assert numbers == [[*of[0][:3], 1, "–", of[0][4]], [*of[1][:3], 2, *of[1][3:]]]
    assert [cell.tag for cell in (row[1] for row in grid.rows) if isinstance(cell, Num)] == ["best", ""]
    unlabelled = [replace(one, added={}) for one in jobs.records]
    assert OfSystemsByPeoplesEvidence().compute(Jobs("s", "e", unlabelled, [], jobs.outcomes), {}) is None


def test_the_ratio_is_solved_for_where_few_topics_have_evidence() -> None:
    made = {0: 0.25, 1: 0.75, 2: 0.5, 30: 1.0, 31: 0.75}
    people = {0: 0.25, 1: 1.0, 2: 0.75}
    rows = [Row(str(i), False, made.get(i, nan), people.get(i, nan) if i < 30 else None) for i in range(60)]
    labelled = np.arange(60) < 30
    of_people, of_made = (np.array(scores) for scores in zip(*((r.people or nan, r.made) for r in rows), strict=True))
    found, want = corrected_mean(of_people, of_made, labelled), by_loops(rows)
    assert (found.mean.value, found.lam) == pytest.approx((want["value"], want["lambda"]), abs=1e-6)


def test_a_job_is_scored_by_the_quotes_of_people(small: SmallPipelines, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    lines = [
        "qid,docno,grade,quotes", "q1,d1,3,Anna built the tower. | It stands high above Graz.", "q2,d2,1,",
        "q3,d3,2,Snow covers them.",
    ]  # fmt: skip
    sheet.write_text("\n".join(lines), "utf-8")
    pipeline = small()
    job: Any = SimpleNamespace(
        pipeline=pipeline, frame=pipeline.frame, outcomes=pipeline.outcomes, n_tokens=8,
        settings=Settings(human_evidence=str(sheet)),
    )  # fmt: skip
    found = ByPeoplesEvidence().compute(job, {})
    assert found is not None
    contexts = pipeline.frame("contexts").query("n_tokens == 8").set_index("qid")["text"]

    def share(part: str, text: str) -> float:
        """Of the part the longest stretch that stands in the text."""
        return max(n for n in range(len(part) + 1) for i in range(len(part) - n + 1) if part[i : i + n] in text) / len(
            part
        )

    q1 = mean([share("Anna built the tower.", contexts["q1"]), share("It stands high above Graz.", contexts["q1"])])
    q3 = share("Snow covers them.", contexts["q3"])
    assert 0 < q3 < q1
    assert found.record == {"people_ir_scores": {"q1": pytest.approx(q1), "q2": None, "q3": pytest.approx(q3)}}
    made = {row.qid: row.ir_score for row in pipeline.outcomes.itertuples()}
    want = by_loops([Row(q, False, made[q], of) for q, of in (("q1", q1), ("q2", nan), ("q3", q3))])
    assert found.metrics == pytest.approx(
        {"ir_score_people": want["value"], "ir_score_people_lo": want["lo"], "ir_score_people_hi": want["hi"]}
    )
    [line] = ByPeoplesEvidence().show(job, found.value, {}).lines
    assert line == (
        f"  IR score by people's evidence on 3 topics (PPI): {want['value']:.3f} (95 % {want['lo']:.3f} to "
        f"{want['hi']:.3f}); by made evidence {mean(list(made.values())):.3f}"
    )
    json.dumps(found.record)
    sheet.write_text("\n".join([lines[0], lines[2]]), "utf-8")
    with pytest.raises(DataError, match="no topic has a passage whose grade reaches min_grade"):
        ByPeoplesEvidence().compute(job, {})
    job.pipeline = small(measure=Substring(correct="floor"))
    with pytest.raises(ConfigError, match=r"measure\.correct=floor is not computed by people's"):
        ByPeoplesEvidence().compute(job, {})
