"""A sweep on 1, 2 and 3 Ray nodes of one core each: seconds, and how many times as fast as on one.

Six jobs that share nothing but the documents, of 2,000 articles. All nodes are processes of this machine, in
a network that has nothing but loopback: where none can be made, or Ray is not installed, a line says so. More
nodes than the machine has cores gain nothing. Prints a Markdown row each; `--nodes 1 2` measures these alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STORE_BYTES = 100_000_000  # of a node's object store, Ray's least is 75 MB
COMMON = ["dataset=fictional", "dataset.documents=2000", "retriever=bm25", "llm=none", "judge=none"]
JOBS = [*COMMON, "chunker=tokens", "chunker.overlap=0", "chunker.size=32,48,64,96,128,192"]
N_JOBS = 6
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
LOOPBACK = 'ip link set lo up || exit 97; exec "$@"'


def lacking() -> str | None:
    """Why nothing can be measured here; None where it can."""
    if find_spec("ray") is None:
        return "Ray is not installed (pip install 'ragauge[ray]')"
    if missing := [name for name in ("unshare", "ip") if shutil.which(name) is None]:
        return f"there is no program {missing[0]}, which a network of its own needs"
    tried = subprocess.run([*ALONE, LOOPBACK, "sh", "true"], capture_output=True, text=True, check=False)
    return f"no network of its own can be made: {tried.stderr.strip()}" if tried.returncode else None


def command(folder: Path, *arguments: str) -> float:
    """Seconds of `run.py` with the arguments in the folder; RuntimeError with what it said if it fails."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE")}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *arguments],
        cwd=folder, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"run.py {' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - start


def on_nodes(folder: Path, n_nodes: int) -> float:
    """Seconds of the sweep on a head without cores and so many nodes of one."""
    from ray.cluster_utils import Cluster

    sizes = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **sizes})
    try:
        for _ in range(n_nodes):
            cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        cluster.wait_for_nodes()
        address = f"hydra.launcher.address={cluster.address}"
        return command(folder, "-m", *JOBS, "hydra/launcher=ray", address)
    finally:
        cluster.shutdown()


def table(nodes: list[int]) -> None:
    """Prints a row for every number of nodes."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command(folder, *COMMON)  # the documents, and what imports leave on disk
        seconds = {}
        for n_nodes in nodes:
            for stage in (folder / ".ragauge").iterdir():
                if stage.name != "dataset":
                    shutil.rmtree(stage)
            seconds[n_nodes] = on_nodes(folder, n_nodes)
    first = nodes[0]
    print(f"{N_JOBS} jobs, {os.cpu_count()} cores; the head has none of its own.\n")
    print("| nodes of one core | seconds | as fast |")
    print("|---|---|---|")
    for n_nodes, took in seconds.items():
        print(f"| {n_nodes} | {took:.0f} | {seconds[first] / took:.2f} times {first} |")


def main() -> None:
    """Measures, in a network of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        table(given.nodes)
    elif (why := lacking()) is not None:
        print(f"skipped: {why}")
    else:
        own = [sys.executable, __file__, "--inside", "--nodes", *map(str, given.nodes)]
        sys.exit(subprocess.run([*ALONE, LOOPBACK, "sh", *own], check=False).returncode)


if __name__ == "__main__":
    main()
