"""One sweep on 1, 2 and 3 nodes of Ray with a core each: seconds, and by how much the numbers differ.

Six jobs that have nothing to share: chunks of six sizes of the same documents, each embedded by MiniLM. The
nodes are those of examples/cluster/trial.py, all on this machine, so no more run at a time than it has cores.
Beside them the same sweep without a cluster, one job after the other on one core.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timing import print_header, print_row

from ragauge.experiment.sweep.jobs import records_in

ROOT = Path(__file__).resolve().parents[1]
TRIAL = ROOT / "examples" / "cluster" / "trial.py"
SIZES = (60, 80, 100, 120, 140, 160)
SWEEP = [
    "-m", f"chunker.size={','.join(map(str, SIZES))}", "chunker=tokens", "retriever=sim",
    "n_tokens=300", "dataset=fictional_hard", "dataset.documents=500", "dataset.questions=13",
]  # fmt: skip
ON_RAY = ["hydra/launcher=ray", "hydra.launcher.address=127.0.0.1:6379"]
NODES = (1, 2, 3)


def told(command: Sequence[str | Path], folder: Path, **more: str) -> float:
    """Seconds of a command in the folder; ends the benchmark with what it printed where it fails."""
    left_out = ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE", "RAGAUGE_LEDGER")
    environment = {name: value for name, value in os.environ.items() if name not in left_out} | more
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return time.perf_counter() - start


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of every job of the folder's one sweep, in their order, but for what work took."""
    (sweep,) = (folder / "multirun").glob("*/*")
    own = ("seconds", "latency", "stages_made")  # when and by whom, not what
    return [
        {name: value for name, value in job.metrics.items() if not any(word in name for word in own)}
        for job in records_in(sweep)
    ]


def largest_difference(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> str:
    """The largest difference in any metric of any job, and its name; ends where others are there."""
    if [job.keys() for job in found] != [job.keys() for job in expected]:
        sys.exit("the jobs have other metrics than without a cluster")
    differences = {
        name: abs(value - of_expected[name])
        for of_found, of_expected in zip(found, expected, strict=True)
        for name, value in of_found.items()
        if value != of_expected[name] and not (value != value and of_expected[name] != of_expected[name])
    }
    name = max(differences, key=lambda name: differences[name], default="")
    return f"{differences[name]:.1g} ({name})" if name else "none"


def on_nodes(folder: Path, nodes: int) -> float:
    """Seconds of the sweep on a cluster of so many nodes, which is started before and stopped after it."""
    cluster = [sys.executable, TRIAL, "--folder", folder / "trial"]
    told([*cluster, "start", "--workers", str(nodes), "--no-mlflow", "--no-postgres"], folder)
    try:
        return told([*cluster, "run", sys.executable, ROOT / "run.py", *SWEEP, *ON_RAY], folder)
    finally:
        told([*cluster, "stop"], folder)


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = {nodes: Path(scratch) / str(nodes) for nodes in (0, *NODES)}
        for folder in folders.values():
            folder.mkdir()
        one_core = told([sys.executable, ROOT / "run.py", *SWEEP], folders[0], OMP_NUM_THREADS="1")
        local = metrics(folders[0])
        print(f"{len(local)} jobs, {os.cpu_count()} cores.\n")
        print_header("nodes of one core", "seconds", "of one node", "largest difference in a metric")
        print_row("none: no cluster, one core", f"{one_core:.0f} s", "", "")
        seconds: dict[int, float] = {}
        for nodes in NODES:
            seconds[nodes] = on_nodes(folders[nodes], nodes)
            same = largest_difference(metrics(folders[nodes]), local)
            print_row(str(nodes), f"{seconds[nodes]:.0f} s", f"{seconds[nodes] / seconds[NODES[0]]:.2f}", same)


if __name__ == "__main__":
    main()
