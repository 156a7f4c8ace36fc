"""Fusing 1,000 topics x 3 runs x 1,000 hits, against ranx: seconds, and whether scores are the same.

ranx holds a run as a dictionary of dictionaries with names as keys and is asked about fewer topics; the time
to read runs in is left out on both sides. Medians of interleaved runs in one process; the processors' own
time stands beside the clock's, which is longer where other work takes its share of them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from timing import interleaved, print_header, print_row

from ragauge.retrieval.fusion import Scored, fuse

N_TOPICS, N_RUNS, DEPTH, N_DOCS = 1_000, 3, 1_000, 100_000
ASKED = 200  # topics that ranx is asked for
ROUNDS = 5
METHODS = {
    "rrf": ("rrf", None, {"fusion": "rrf"}),
    "weighted": ("sum", "min-max", {"fusion": "weighted"}),
    "mnz": ("mnz", "min-max", {"fusion": "mnz"}),
}


def runs() -> list[Scored]:
    """Runs that share about half of their hits."""
    rng = np.random.default_rng(0)
    pools = np.array([rng.choice(N_DOCS, 2 * DEPTH, replace=False) for _ in range(100)])
    topic = np.repeat(np.arange(N_TOPICS), DEPTH)
    found = []
    for _ in range(N_RUNS):
        items = [rng.permutation(pools[t % len(pools)])[:DEPTH] for t in range(N_TOPICS)]
        scores = -np.sort(-rng.gamma(2, 1, (N_TOPICS, DEPTH)), axis=1)
        found.append((topic, np.concatenate(items), scores.ravel()))
    return found


def of_ranx(lists: list[Scored]) -> list[Any]:
    """The first topics of the runs as ranx has them."""
    from ranx import Run

    n = ASKED * DEPTH
    made = []
    for _, item, score in lists:
        of_topic: dict[str, dict[str, float]] = {f"q{t}": {} for t in range(ASKED)}
        for row, (d, s) in enumerate(zip(item[:n].tolist(), score[:n].tolist(), strict=True)):
            of_topic[f"q{row // DEPTH}"][f"d{d}"] = s
        made.append(Run(of_topic))
    return made


def main() -> None:
    """Prints the table."""
    try:
        import ranx
    except ImportError:
        ranx = None
    lists, order = runs(), np.arange(N_DOCS)
    theirs = of_ranx(lists) if ranx else []
    print_header("fusion, the best 1,000 of every topic kept", "ours", "ranx", "ratio", "agreement")
    for name, (method, norm, how) in METHODS.items():

        def ours(how: dict[str, Any] = how) -> Scored:
            return fuse(lists, order, N_TOPICS, DEPTH, **how)

        works: dict[str, Any] = {"ours": ours}
        if ranx:

            def fused(method: str = method, norm: str | None = norm) -> Any:
                return ranx.fuse(runs=theirs, norm=norm, method=method)

            works["theirs"] = fused
            fused()  # compiles
        ours()
        seconds, found = interleaved(works, ROUNDS)
        start = time.process_time()
        ours()
        took = f"{seconds['ours']:.2f} s, {time.process_time() - start:.2f} s of the processor"
        if not ranx:
            print_row(name, took, "not installed", "", "")
            continue
        ratio = (seconds["theirs"] / ASKED) / (seconds["ours"] / N_TOPICS)
        theirs_s = f"{1000 * seconds['theirs'] / ASKED:.2f} ms a topic ({ASKED} topics)"
        print_row(name, took, theirs_s, f"{ratio:.0f}x", agreement(found["ours"], found["theirs"].to_dict()))


def agreement(ours: Scored, theirs: dict[str, dict[str, float]]) -> str:
    """The largest difference of a score."""
    topic, item, score = (values[ours[0] < ASKED] for values in ours)
    off = max(
        abs(theirs[f"q{t}"][f"d{d}"] - s) for t, d, s in zip(topic.tolist(), item.tolist(), score.tolist(), strict=True)
    )
    return f"scores differ by {off:.0e} at most"


if __name__ == "__main__":
    main()
