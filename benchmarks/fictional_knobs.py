"""Which knobs of the hard fictional world spread the IR scores most, of seeds 1 to 5.

    python benchmarks/fictional_knobs.py --store .knobs [--retrievers bm25,sim] [--seeds 1,2]
        [--documents 150] [--look-alikes 0] [--pronouns 0,1] [--hops 2]

The spread of a setting is the standard deviation of the topics' IR scores, averaged over retrievers,
budgets and seeds. Nothing is answered and nobody judges: classes cannot be looked at. Prints a Markdown row
a setting, then the widest. Outputs of stages are kept in the store, so that a run that was cut short goes on.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from timing import print_header, print_row

from ragauge.experiment.setup.config import register
from ragauge.experiment.stages.components import instantiate_components
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.store import Store

CONF = Path(__file__).resolve().parents[1] / "conf"
RETRIEVERS = ("bm25", "sim", "mmr", "mlq", "reo")
BUDGETS = tuple(range(100, 1001, 100))
QUESTIONS = 12  # of each kind
SEEDS = (1, 2, 3, 4, 5)
DOCUMENTS, LOOK_ALIKES, PRONOUNS, HOPS = (100, 150), (0, 3, 6), (0.0, 0.5, 1.0), (2, 3, 4)
Setting = tuple[int, int, float, int]


def scores(
    store: Path, retriever: str, documents: int, look_alikes: int, pronouns: float, hops: int, seed: int
) -> pd.DataFrame:
    """The IR scores of one world by one retriever: a row per topic and budget."""
    world = {
        "documents": documents,
        "look_alikes": look_alikes,
        "pronouns": pronouns,
        "max_hops": hops,
        "seed": seed,
        "questions": QUESTIONS,
    }
    overrides = ["dataset=fictional_hard", f"retriever={retriever}", "llm=none", "judge=none"]
    cfg = compose("config", overrides=[*overrides, *(f"dataset.{key}={value}" for key, value in world.items())])
    return Pipeline(instantiate_components(cfg), Store(store), BUDGETS[-1], BUDGETS).frame("scores")


def spread(frame: pd.DataFrame) -> dict[str, float]:
    """Of one retriever's scores: mean, standard deviation over topics, and the shares at 1 and near 0."""
    values = frame["value"].to_numpy()
    deviations = frame.groupby("n_tokens")["value"].std(ddof=1)
    return {
        "spread": float(deviations.mean()),
        "mean": float(values.mean()),
        "at 1": float((values > 0.999).mean()),
        "below 0.1": float((values < 0.1).mean()),
    }


def main(store: Path, retrievers: Sequence[str], seeds: Sequence[int], settings: Sequence[Setting]) -> None:
    """Prints the table and the widest setting."""
    print_header("documents", "look-alikes", "pronouns", "hops", "spread", "mean", "at 1", "below 0.1", "seconds")
    found: dict[Setting, float] = {}
    register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        for setting in settings:
            start = time.perf_counter()
            worlds = [spread(scores(store, r, *setting, seed)) for seed in seeds for r in retrievers]
            means = {name: float(np.mean([world[name] for world in worlds])) for name in worlds[0]}
            found[setting] = means["spread"]
            cells = (f"{means[name]:.3f}" for name in ("spread", "mean", "at 1", "below 0.1"))
            print_row(*map(str, setting), *cells, f"{time.perf_counter() - start:.0f}")
    widest = max(found, key=lambda setting: found[setting])
    print("widest: documents={}, look_alikes={}, pronouns={:g}, max_hops={}".format(*widest))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _shares(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split(","))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--retrievers", type=lambda text: tuple(text.split(",")), default=RETRIEVERS)
    parser.add_argument("--seeds", type=_numbers, default=SEEDS)
    parser.add_argument("--documents", type=_numbers, default=DOCUMENTS)
    parser.add_argument("--look-alikes", type=_numbers, default=LOOK_ALIKES)
    parser.add_argument("--pronouns", type=_shares, default=PRONOUNS)
    parser.add_argument("--hops", type=_numbers, default=HOPS)
    given = parser.parse_args()
    grid = itertools.product(given.documents, given.look_alikes, given.pronouns, given.hops)
    main(given.store, given.retrievers, given.seeds, list(grid))
