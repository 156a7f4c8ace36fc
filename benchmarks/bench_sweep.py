"""What a sweep costs beside its distinct work: cold and warm, 50 jobs against 5, on the shipped sample.

Prints a Markdown row each. Every run is the real command in a process of its own; vectors of the texts are
made in a first run and kept, so that the embedding model's time does not hide the rest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
RETRIEVERS = "retriever=bm25,sim,mmr,mlq,reo"
FIFTY, FIVE = [RETRIEVERS, "n_tokens=range(100,1100,100)"], [RETRIEVERS, "n_tokens=1000"]


def sweep(folder: Path, arguments: list[str]) -> float:
    """Seconds of one sweep in the folder."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE")}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "-m", *arguments],
        cwd=folder, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    return time.perf_counter() - start


def forget(folder: Path) -> None:
    """Removes every stage output but the vectors of texts."""
    for stage in (folder / ".ragauge").iterdir():
        if stage.name != "vectors":
            shutil.rmtree(stage)


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        first = sweep(folder, FIFTY)
        warm = [sweep(folder, FIFTY) for _ in range(3)]
        forget(folder)
        fifty = sweep(folder, FIFTY)
        forget(folder)
        five = sweep(folder, FIVE)
        one = min(sweep(folder, ["n_tokens=1000"]) for _ in range(3))
    print("| what | ours | beside | ratio | agreement |")
    print("|---|---|---|---|---|")
    print(f"| 50 jobs, nothing known | {first:.0f} s | | | |")
    print(
        f"| 50 jobs, vectors known | {fifty:.0f} s | 5 jobs at N=1000: {five:.0f} s | {fifty / five:.2f}x | |"
    )
    per_job = (median(warm) - one) / 49
    print(
        f"| 50 jobs, all stages known | {median(warm):.0f} s | 1 job, all stages known: {one:.0f} s | "
        f"{1000 * per_job:.0f} ms for each further job | |"
    )


if __name__ == "__main__":
    main()
