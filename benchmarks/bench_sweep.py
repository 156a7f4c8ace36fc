"""What a sweep costs beside its distinct work: cold and warm, 50 jobs against 5, on the shipped sample.

Prints a Markdown row each. Every run is the real command in a process of its own; vectors of the texts are
made in a first run and kept, so that the embedding model's time does not hide the rest.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from timing import against

ROOT = Path(__file__).resolve().parents[1]
GOAL_COLD = 1.3  # what 50 jobs may cost of 5 jobs at the largest budget
GOAL_JOB = 0.2  # seconds of a job whose stages are known
GOAL_HELP = 1.0  # seconds of `run.py --help`
RETRIEVERS = "retriever=bm25,sim,mmr,mlq,reo"
JOBLIB = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
FIFTY, FIVE = [RETRIEVERS, "n_tokens=range(100,1100,100)"], [RETRIEVERS, "n_tokens=1000"]


def sweep(folder: Path, arguments: list[str]) -> float:
    """Seconds of one sweep in the folder."""
    return seconds_of(folder, "-m", *arguments)


def seconds_of(folder: Path, *arguments: str) -> float:
    """Seconds of `run.py` with the arguments in the folder."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE")}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *arguments],
        cwd=folder, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    return time.perf_counter() - start


def forget(folder: Path) -> None:
    """Removes every stage output but the vectors of texts."""
    for stage in (folder / ".ragauge").iterdir():
        if stage.name != "vectors":
            shutil.rmtree(stage)


def own_seconds(folder: Path) -> float:
    """The median of what the jobs of the latest sweep took by their own clock: all but Hydra's part."""
    records = sorted((folder / "multirun").glob("*/*"))[-1].glob("*/job.json")
    return median(json.loads(record.read_text())["metrics"]["seconds_total"] for record in records)


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as other:
        folder = Path(scratch)
        first_five = sweep(Path(other), FIVE)
        first = sweep(folder, FIFTY)
        warm = [sweep(folder, FIFTY) for _ in range(3)]
        own = own_seconds(folder)
        forget(folder)
        fifty = sweep(folder, FIFTY)
        forget(folder)
        two_at_a_time = sweep(folder, [*FIFTY, *JOBLIB])
        forget(folder)
        five = sweep(folder, FIVE)
        warm_five = [sweep(folder, FIVE) for _ in range(3)]
        told = median(seconds_of(folder, "--help") for _ in range(5))
    print("| what | ours | beside | ratio |")
    print("|---|---|---|---|")
    for what, ours, beside, theirs, goal in (
        ("50 jobs, nothing known", first, "5 jobs at N=1000, nothing known", first_five, GOAL_COLD),
        ("50 jobs, vectors known", fifty, "5 jobs at N=1000, vectors known", five, None),
        ("50 jobs, vectors known", fifty, "two at a time (joblib)", two_at_a_time, None),
    ):
        said = "" if goal is None else against(goal, ours / theirs, at_most=True)
        print(f"| {what} | {ours:.0f} s | {beside}: {theirs:.0f} s | {ours / theirs:.2f}{said} |")
    per_job = (median(warm) - median(warm_five)) / 45
    print(
        f"| 50 jobs, all stages known | {median(warm):.0f} s | 5 jobs, all stages known: "
        f"{median(warm_five):.1f} s | {per_job:.2f} s for each further job"
        f"{against(GOAL_JOB, per_job, at_most=True)}, {own:.2f} s of it the job's own |"
    )
    print(f"| `run.py --help` | {told:.2f} s{against(GOAL_HELP, told, at_most=True)} | | |")


if __name__ == "__main__":
    main()
