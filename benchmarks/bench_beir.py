"""A generated BEIR corpus through the stage `dataset`: seconds, and peak memory beside the goal of 2 GiB.

Every passage has 60 words. The stage takes the digests of the files, reads judgements and corpus, checks
every docno and finds the texts of the relevant documents; the store writes Parquet and takes its digest. The
process has imported what a job imports. BENCH_BEIR=100000 takes another number of passages than 1,000,000
and 5,000,000 (whose files take 4 GB of disk).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import against, print_header, print_row

SIZES = (1_000_000, 5_000_000)
QUERIES = 1_000
GOAL = 2_048  # MiB


def generate(folder: Path, n_docs: int) -> None:
    """Writes a folder in BEIR's format, the same at every call."""
    rng = random.Random(n_docs)
    words = ["".join(rng.choices("abcdefghiklmnoprstu", k=rng.randint(2, 9))) for _ in range(20_000)]
    # Every passage is two of these halves: drawing each of its words would take longer than reading it.
    halves = [" ".join(rng.choices(words, k=30)) for _ in range(50_000)]
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as corpus:
        for i in range(n_docs):
            a, b = rng.getrandbits(32) % len(halves), rng.getrandbits(32) % len(halves)
            row = {"_id": str(i), "title": f"Passage {i}", "text": f"{halves[a]} {halves[b]}"}
            corpus.write(json.dumps({**row, "metadata": {}}) + "\n")
    with (folder / "queries.jsonl").open("w") as queries, (folder / "qrels" / "test.tsv").open("w") as qrels:
        qrels.write("query-id\tcorpus-id\tscore\n")
        for i in range(QUERIES):
            queries.write(json.dumps({"_id": f"q{i}", "text": " ".join(rng.choices(words, k=6))}) + "\n")
            for docno in rng.sample(range(n_docs), 2):
                qrels.write(f"q{i}\t{docno}\t1\n")


def measure(folder: Path, store: Path) -> dict[str, float]:
    """The stage in this process: seconds, and MiB of memory before and at the most."""
    for name in ("ragauge.commands.main", "mlflow", "sentence_transformers"):
        importlib.import_module(name)
    from ragauge.contract.stages import Budget, Components, Reads
    from ragauge.experiment.stages.documents import ReadDataset
    from ragauge.plugins.benchmarks.beir import Beir
    from ragauge.store import Key, Store

    components = Components(Beir(path=folder), *[None] * 13)  # type: ignore[arg-type]
    stage = ReadDataset(components, Budget(100, (100,)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, processor = time.perf_counter(), time.process_time()
    key = Key(stage.name, stage.version, stage.params(), stage.inputs())
    nothing = Reads((), lambda read: _none(read.name), lambda read: Path(_none(read.name)))
    entry = Store(store).get_frames(key, lambda: stage.make(nothing, None))  # type: ignore[arg-type]
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    evidence = entry.frame("evidence")
    assert len(evidence) == 2 * QUERIES
    assert evidence["text"].notna().all()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "processor": processor, "before": before / 1024, "peak": peak / 1024}


def _none(name: str) -> str:
    raise KeyError(name)


def main() -> None:
    """Prints the table."""
    print_header("passages", "corpus.jsonl", "seconds", "of them processor", "imports", "peak memory")
    for n_docs in [int(os.environ["BENCH_BEIR"])] if "BENCH_BEIR" in os.environ else SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "beir"
            generate(folder, n_docs)
            command = [sys.executable, __file__, "--folder", str(folder), "--store", f"{scratch}/store"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{n_docs:,} passages: {done.stderr}")
            found = json.loads(done.stdout.splitlines()[-1])
            size = (folder / "corpus.jsonl").stat().st_size / 2**20
        print_row(
            f"{n_docs:,}",
            f"{size:,.0f} MiB",
            f"{found['seconds']:,.0f}",
            f"{found['processor']:,.0f}",
            f"{found['before']:,.0f} MiB",
            f"{found['peak']:,.0f} MiB" + against(GOAL, found["peak"], at_most=True),
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    if given.folder is None:
        main()
    else:
        print(json.dumps(measure(given.folder, given.store)))
