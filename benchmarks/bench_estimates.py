"""Prints one table: what the estimates of a sweep of 50 jobs x 7,404 topics take, and how much memory.

    python benchmarks/bench_estimates.py

Five retrievers at ten budgets, simulated outcomes whose class depends on the score: the findings of every job
(intervals, thresholds, predictor, its figure), then what is pooled over the jobs (leaderboard, tests,
thresholds, predictor, transfer, figures), and the report. Nothing is retrieved, answered or judged. The peak
is that of the process, all libraries included.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from timing import against, print_header, print_row

from ragauge.contract.jobs import Jobs
from ragauge.contract.record import JobRecord
from ragauge.estimate.prediction import settings_of
from ragauge.findings.estimates import findings
from ragauge.findings.pooling import pooled
from ragauge.show.html import write_report
from ragauge.store import Store

TOPICS, BUDGETS = 7404, range(100, 1100, 100)
QUALITY = {"bm25": 0.62, "sim": 0.52, "mmr": 0.46, "mlq": 0.43, "reo": 0.26}
ESTIMATE: dict[str, Any] = {"features": ["ir_score"], "spline": False, "calibrate": False}
SETTINGS = settings_of({"component": "substring"}, {"component": "words"}, list(BUDGETS))
GIB = 2


def outcomes(retriever: str, n: int, ease: np.ndarray, seed: int) -> pd.DataFrame:
    """A row per topic: a score that rises with its ease and the budget, and a class that depends on it."""
    rng = np.random.default_rng(seed)
    centre = QUALITY[retriever] * (0.6 + 0.4 * n / 1000)
    score = np.clip(0.5 * ease + centre - 0.25 + rng.normal(0, 0.15, TOPICS), 0, 1)
    right = rng.random(TOPICS) < 0.1 + 0.6 * score
    lack = ~right & (rng.random(TOPICS) < 0.3 * (1 - score))
    label = np.where(right, 5, np.where(lack, 1, rng.choice([2, 3, 4], TOPICS)))
    qid = [f"q{i:05}" for i in range(TOPICS)]
    return pd.DataFrame(
        {
            "qid": qid, "query": "?", "answer_reference": "a", "answer": "a", "ir_score": score,
            "label": pd.array(label, dtype="Int8"), "judge_raw": "", "judge_status": "ok", "n_tokens": n,
            "retriever": retriever, "dataset": "made", "chunker": "none", "llm": "made", "judge": "made",
            "measure": "substring", "tokenizer": "words",
        }
    )  # fmt: skip


def record(number: int, retriever: str, n: int, rows: pd.DataFrame, metrics: dict[str, float]) -> JobRecord:
    """What such a job leaves in job.json, as far as it is read here."""
    made = dict.fromkeys(("dataset", "chunker", "llm", "judge"), "made")
    return JobRecord(
        status="FINISHED",
        name=f"{retriever} · N={n}",
        number=number,
        attempt=None,
        exit_code=0,
        sweep_id="made",
        overrides=[f"retriever={retriever}", f"n_tokens={n}"],
        n_tokens=n,
        seed=0,
        bootstrap=1000,
        estimate=ESTIMATE,
        experiment="made",
        ir_score_at_n={n: float(rows["ir_score"].mean())},
        choices={**made, "retriever": retriever, "measure": "substring", "tokenizer": "words"},
        dataset_digest="made",
        settings=SETTINGS,
        written_in="nowhere",
        folder=Path("nowhere"),
        store="nowhere",
        entries=dict.fromkeys(("dataset", "context"), "nothing"),
        metrics={**metrics, "seconds_total": 1.0},
    )


def main() -> None:
    ease = np.random.default_rng(0).random(TOPICS)
    cells = [(retriever, n) for retriever in QUALITY for n in BUDGETS]
    frames = [outcomes(r, n, ease, number) for number, (r, n) in enumerate(cells)]
    with tempfile.TemporaryDirectory() as scratch:
        store, start = Store(Path(scratch) / "store"), time.perf_counter()
        metrics = [
            findings(store, rows, f"{r} {n}", 1000, 0, ESTIMATE, SETTINGS).metrics
            for rows, (r, n) in zip(frames, cells, strict=True)
        ]
        of_jobs = time.perf_counter() - start
        records = [
            record(i, r, n, rows, found)
            for i, ((r, n), rows, found) in enumerate(zip(cells, frames, metrics, strict=True))
        ]
        together = [rows.assign(system=r) for rows, (r, _) in zip(frames, cells, strict=True)]
        del frames
        sweep = Jobs("made", "made", records, [], pd.concat(together, ignore_index=True))
        start = time.perf_counter()
        content = pooled(sweep)
        of_pool = time.perf_counter() - start
        start = time.perf_counter()
        write_report([content.page], Path(scratch) / "report.html")
        of_report = time.perf_counter() - start
    unit = 1 << 20 if sys.platform == "linux" else 1 << 30
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print_header("jobs x topics", "50 jobs' findings, s", "pooled, s", "report, s", "in all, s", "peak, GiB")
    total = of_jobs + of_pool + of_report
    print_row(
        f"{len(cells)} x {TOPICS:,}",
        *(f"{seconds:.1f}" for seconds in (of_jobs, of_pool, of_report, total)),
        f"{peak:.2f}" + against(GIB, peak, at_most=True),
    )


if __name__ == "__main__":
    main()
