"""The plan from a pilot by hand: labels, widths of samples and the next dollar, beside plain loops."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.outcomes import CLUSTER
from ragauge.plugins.planning.command import main
from ragauge.plugins.planning.repeats import Prices, best_design, gains, variance_of_mean
from sweep_records import job_json

# Verdicts at 300 tokens, and what was predicted of being right. Two topics a document; q11 cannot be answered.
PILOT = """
qid  document  bm25  p5   sim  p5
q0   a         5     0.9  5    0.8
q1   a         5     0.8  4    0.6
q2   b         4     0.4  1    0.3
q3   b         1     0.2  1    0.1
q4   c         5     0.7  5    0.7
q5   c         5     0.3  2    0.4
q6   d         2     0.1  1    0.2
q7   d         4     0.5  5    0.5
q8   e         5     0.9  3    0.6
q9   e         5     0.6  5    0.9
q10  f         3     0.4  -    0.3
q11  f         1     0.5  1    0.5
"""
# What jobs with repeats logged.
REPEATS = """
metric                  bm25/100  bm25/300  sim/300
repeat_variance_topic   9         0.1       0.2
repeat_variance_answer  9         0.05      -0.01
repeat_variance_judge   9         0.2       0.04
repeat_topics           9         100       50
repeat_answers          9         4         2
repeat_verdicts         9         3         2
repeat_price_answer     9         1         0.5
repeat_price_verdict    9         0.25      2
"""
Z, Z_80 = 1.959963984540054, 0.8416212335729143


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pilot; at 100 tokens all answers of bm25 are wrong."""
    folder = tmp_path_factory.mktemp("pilot")
    head, *metrics = table(REPEATS)
    for number, job in enumerate(head[1:], 1):
        system, n = job.split("/")
        at = 2 if system == "bm25" else 4
        rows = pd.DataFrame(
            {"qid": row[0], CLUSTER: row[1], "n_tokens": int(n), "ir_score": float(row[at + 1]) / (1 + (n == "100")),
             "label": 4 if n == "100" else None if row[at] == "-" else int(row[at]), "p5": float(row[at + 1]),
             "retriever": system, "unanswerable": row[0] == "q11"} for row in table(PILOT)[1:]
        )  # fmt: skip
        (folder / str(number)).mkdir()
        rows.astype({"label": "Int8"}).to_parquet(folder / str(number) / "outcomes.parquet", index=False)
        job_json(folder / str(number), {
            "status": "FINISHED", "number": number, "sweep_id": "pilot", "name": job, "n_tokens": int(n),
            "overrides": [f"retriever={system}", f"n_tokens={n}"], "experiment": "towers", "seed": 0, "bootstrap": 20,
            "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False}, "dataset_digest": "made",
            "choices": {"dataset": "made", "retriever": system},
            "metrics": {row[0]: float(row[number]) for row in metrics},
        })  # fmt: skip
    return folder


def planned(pilot: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    assert main([str(pilot), "--difference", "0.1", "--json", *more]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    return plan


def width(share: float, variance: float) -> float:
    """Of the interval of a share on the logit scale."""
    at, reach = math.log(share / (1 - share)), Z * math.sqrt(variance) / (share * (1 - share))
    low, high = (1 / (1 + math.exp(-at - side * reach)) for side in (-1, 1))
    return high - low


def powered(share: float, rho: float, ratio: float, n: int, total: int) -> float:
    """The variance of a share from n verdicts and predictions of all."""
    rest = 1 - n / total
    if rest == 0 or rho <= 0:
        return share * (1 - share) / n
    lam = min(max(rho * ratio * rest, 0), 1)
    return share * (1 - share) / n * (1 - 2 * lam * rho / ratio + (lam / ratio) ** 2 / rest)


@pytest.mark.parametrize(("system", "column"), [("bm25", 2), ("sim", 4)])
def test_labels_and_widths_are_those_of_plain_loops(
    pilot: Path, capsys: pytest.CaptureFixture[str], system: str, column: int
) -> None:
    rows = [row for row in table(PILOT)[1:] if row[0] != "q11"]
    y, f = [float(row[column] == "5") for row in rows], [float(row[column + 1]) for row in rows]
    n, share, total = len(y), sum(y) / len(y), 3000
    documents: dict[str, list[float]] = {}
    for row, right in zip(rows, y, strict=True):
        documents.setdefault(row[1], []).append(right - share)
    of_clusters = sum((sum(of) / n / (1 - len(of) / n)) ** 2 * (1 - 1 / len(documents)) for of in documents.values())
    spread = sum((v - share) ** 2 for v in y) / (n - 1) / n
    design = max(of_clusters / spread, 1)
    # The limits, with 80 % confidence, that take the most labels.
    m, z = n / design, 0.8416212335729143
    middle, reach = share + z * z / 2 / m, z * math.sqrt(share * (1 - share) / m + z * z / 4 / m / m)
    careful = min(max(0.5, (middle - reach) / (1 + z * z / m)), (middle + reach) / (1 + z * z / m))
    rho, sd_y, sd_f = float(np.corrcoef(y, f)[0, 1]), float(np.std(y)), float(np.std(f))
    u, v = (np.array(y) - share) / sd_y, (np.array(f) - np.mean(f)) / sd_f
    influence = float(np.var(u * v - rho * (u * u + v * v) / 2)) / (1 - rho**2) ** 2 / n
    least = max(math.tanh(math.atanh(rho) - Z_80 * math.sqrt(max(influence, 1 / (n - 3)))), 1e-9)
    ratio = sd_y / sd_f

    def needed(p: float, of: float | None) -> int:
        variance = (lambda k: p * (1 - p) / k) if of is None else (lambda k: powered(p, of, ratio, k, total))
        return next(k for k in range(2, total + 1) if width(p, design * variance(k)) <= 0.25)

    of_system = {row["kind"]: row for row in planned(pilot, capsys, "--topics", "3000", "--width", "0.25")["labels"]
                 if row["system"] == system}  # fmt: skip
    alone, predictor = of_system["alone"], of_system["predictor"]
    assert (alone["share"], alone["n"]) == (pytest.approx(share), 11)
    assert (alone["labels"], alone["labels_upper"]) == (needed(share, None), needed(careful, None))
    assert predictor["correlation"] == pytest.approx(rho)
    assert (predictor["labels"], predictor["labels_upper"]) == (needed(share, rho), needed(careful, least))
    expected = []
    for size in (50, 100, 200, 400, 800, 1600):
        rest = 1 - size / total
        slope = min(max(rho, 0), 1 / (ratio * rest))
        of_these = share * (1 - share) / size * rest * (1 - 2 * slope * rho + slope**2)
        of_all = design * powered(share, rho, ratio, size, total)
        expected.append([size, pytest.approx(width(share, of_all)), pytest.approx(width(share, of_these))])
    assert predictor["widths"] == expected


def test_the_next_dollar_of_a_pilot_is_of_its_largest_budget(pilot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = planned(pilot, capsys, "--topic-price", "20")["repeats"]
    bm25, sim = rows
    k = math.sqrt(0.2 / 0.05 * 1 / 0.25)
    r = math.sqrt((0.05 + 0.2 / k) / 0.1 * 20 / (1 + k * 0.25))
    assert bm25 == pytest.approx({
        "system": "bm25", "n": 100, "r": 4, "k": 3, "topic": 0.1, "answer": 0.05, "judge": 0.2,
        "error": math.sqrt((0.1 + 0.05 / 4 + 0.2 / 12) / 100), "best_r": r, "best_k": k, "price_answer": 1,
        "price_verdict": 0.25, "buys": "verdicts on each answer",
    })  # fmt: skip
    # A verdict to all answers: 0.2 / (4 * 9 * 100) / (100 * 4 * 0.25); a topic: 0.129 / 100^2 / 27; an answer:
    # (0.05 + 0.2 / 3) / (16 * 100) / (100 * 1.75). The variance of sim's answers is below 0 and counts as 0.
    assert (sim["best_k"], sim["best_r"], sim["buys"]) == (None, 1, "topics")
    assert sim["error"] == pytest.approx(math.sqrt((0.2 + 0.04 / 4) / 50))


# Over clusters of 12 / 6 topics the differences of IR scores are .15, .1, -.05, -.05, 0 and .05 (SD .0816), so that an
# independent topic has .0816 sqrt(2), and 8 clusters are needed. Of being right, over clusters of 11 / 6 topics, they
# are .529, -.017, .529, -.562, .529 and .083 (SD .439): .439 sqrt(11 / 6); 57 clusters at 0.05 / 4.
SHOWN = {
    "--difference 0.1 --topics 3000 --width 0.25 --topic-price 20": """
Pilot towers: 12 topics, N = 300 tokens
The topics are in 6 clusters: the numbers are of topics in clusters of the same size, 2.0 each

Topics to see a difference of 0.1 in IR score with power 0.8 (two-sided test at 0.05)
  pair        SD of difference  topics  80% sure
  bm25 – sim             0.115      16        20

Labels for an interval of width 0.25 of the share of right answers (95 %; the judge or the predictor on 3,000 topics)
system  right  labels                      correlation  number  80% sure
bm25    54.5%  alone                                       124       125
bm25    54.5%  judged, with the predictor         0.72      65        90
sim     36.4%  alone                                        55        59
sim     36.4%  judged, with the predictor         0.73      29        41

Width of that interval if n of 3,000 topics are answered and judged (llm.sample=n, sample_target)
system  about           n = 50  n = 100  n = 200  n = 400  n = 800  n = 1,600
bm25    the population   0.283    0.204    0.146    0.106    0.079      0.062
bm25    these topics     0.194    0.137    0.095    0.064    0.041      0.023
sim     the population   0.191    0.136    0.097    0.070    0.052      0.041
sim     these topics     0.188    0.132    0.091    0.061    0.039      0.022

The next dollar (a topic costs 20 USD beside its answers; --topic-price)
bm25: buys verdicts on each answer. Variance of right answers: topics 0.100, answers 0.050, verdicts 0.200; \
standard error 0.036 with 100 topics, 4 answers, 3 verdicts; best for the money: 3.2 answers and 4.0 verdicts
sim: buys topics. Variance of right answers: topics 0.200, answers -0.010, verdicts 0.040; \
standard error 0.065 with 50 topics, 2 answers, 2 verdicts; best for the money: 1.0 answers and verdicts without end

“80% sure”: from a confidence limit of what the pilot measured, as 12 topics do not tell it exactly
""",
    "--difference 0.2 --measure correct --comparisons 4": """
Topics to see a difference of 0.2 in right answers with power 0.8 (two-sided test at 0.05 / 4)
  pair        SD of difference  topics  80% sure
  bm25 – sim             0.594     105       235

Labels for an interval of width 0.1 of the share of right answers (95 %; the judge or the predictor on 11 topics)
system  right  labels                      correlation   number  80% sure
bm25    54.5%  alone                                        801       808
bm25    54.5%  judged, with the predictor         0.72  over 11   over 11
sim     36.4%  alone                                        354       382
sim     36.4%  judged, with the predictor         0.73  over 11   over 11
""",
}


@pytest.mark.parametrize("arguments", SHOWN)
def test_what_the_terminal_says(pilot: Path, arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(pilot), *arguments.split()]) == 0
    said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    expected = SHOWN[arguments].replace("\\\n", "").strip("\n").splitlines()
    at = said.index(expected[0])
    assert said[at : at + len(expected)] == expected


def test_gains_are_how_fast_the_variance_falls_for_a_dollar() -> None:
    parts, prices = (0.1, 0.05, 0.2), Prices(10.0, 1.0, 0.25)
    n, r, k, step = 100.0, 4.0, 3.0, 1e-4
    each = 1 + k * 0.25
    costs = {"topic": 10 + r * each, "answer": n * each, "judge": n * r * 0.25}
    moved = {"topic": (n + step, r, k), "answer": (n, r + step, k), "judge": (n, r, k + step)}
    for name, found in gains(parts, prices, n, r, k).items():
        fall = (variance_of_mean(parts, n, r, k) - variance_of_mean(parts, *moved[name])) / step
        assert found == pytest.approx(fall / costs[name], rel=1e-3)


def test_the_next_dollar() -> None:
    # Cochran: r = sqrt(answer / topic * price of a topic / price of an answer), by hand 4.
    assert best_design((0.1, 0.1, 0.0), Prices(16.0, 1.0, 0.0))[0] == pytest.approx(4)
    assert best_design((0.1, 0.1, 0.0), Prices(0.0, 1.0, 0.5)) == (1, 1)  # free topics: one answer to each
    r, k = best_design((0.1, 0.05, 0.2), Prices(10.0, 1.0, 0.25))
    assert k == pytest.approx(math.sqrt(0.2 / 0.05 / 0.25))

    def variance(r: float, k: float) -> float:
        """For a budget of 1,000 US dollars."""
        return variance_of_mean((0.1, 0.05, 0.2), 1000 / (10 + r * (1 + 0.25 * k)), r, k)

    at_best = variance(r, k)
    assert all(variance(r * a, k * b) >= at_best for a, b in ((0.9, 1), (1.1, 1), (1, 0.9), (1, 1.1)))
    by = gains((0.1, 0.05, 0.2), Prices(10.0, 1.0, 0.25), 100, r, k)
    assert by["topic"] == pytest.approx(by["answer"])
    assert by["answer"] == pytest.approx(by["judge"])
    assert best_design((0.0, 0.1, 0.0), Prices(1.0, 1.0, 0.0))[0] == math.inf
