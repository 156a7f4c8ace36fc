"""What a reranker tuned on a training file gains over the hybrid that it reranks, and beside a recorded run.

    python benchmarks/training_reranker.py --docs texts.csv --topics train.csv --validation val.csv
        [--study run.trec] [--elsewhere hotpotqa.json] [--store .trained] [--seeds 0,1,2] [--limit 300]
        [--validation-limit 100] [--max-seconds 900] [--weights 0.3,0.5,0.7] [--set loss=mse ...]

Candidates are those of the hybrid of BM25 and the embedder (min-max sum). Training questions that stand in
the validation are left out. Early stopping looks at topics that are taken from the training, so that the
validation decides nothing. Measures are means of the topics' values; differences are paired topic by topic,
with 95 % bootstrap intervals; "apart" are the topics that share no document with the training. `--study` is a
TREC run over the validation's topics and documents. Prints Markdown tables. The store keeps candidates and
trained models: what was done is not done again, and what was cut short goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from timing import print_header, print_row

from ragauge.contract.identity import identity
from ragauge.contract.loading import build
from ragauge.experiment.setup.config import register
from ragauge.measures.rankings import full_name, metric_of, ranking_values
from ragauge.plugins.training.contract import MODEL, TrainingData, TrainingTools
from ragauge.plugins.training.jobs.comparison import gains, ranked_by
from ragauge.plugins.training.jobs.splits import Splits, load_splits, training_data
from ragauge.retrieval.rerankers import NoReranker
from ragauge.store import Key

CONF = Path(__file__).resolve().parents[1] / "conf"
MEASURES = ("F1@1", "F1@2", "F1@3", "F1@4", "F1@5", "P@1", "R@5")
STOPPING = 0.06  # of the training topics: early stopping looks at these


def splits(args: argparse.Namespace) -> tuple[Any, Splits]:
    """The configuration, and both files with the hybrid's candidates."""
    register()
    given = [
        "dataset=csv", f"dataset.docs={args.docs}", f"dataset.topics={args.topics}", "dataset.qid_column=id",
        f"dataset.limit={args.limit or 'null'}", f"++validation.topics={args.validation}",
        f"++validation.limit={args.validation_limit or 'null'}", "leaks=drop", "retriever=hybrid",
        "retriever.fusion=weighted", f"measures=[{','.join(MEASURES)}]", f"store={args.store}",
        "trainer=reranker", *(f"++trainer.{setting}" for setting in args.set),
    ]  # fmt: skip
    if args.elsewhere:
        given += ["dataset@elsewhere=hotpotqa", f"elsewhere.path={args.elsewhere}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("train", overrides=given)
    return cfg, load_splits(cfg)


def trained(cfg: Any, sides: Splits, seed: int, max_seconds: float | None) -> tuple[Any, Path, dict[str, Any]]:
    """The trainer, the folder of its model, and what the training says of itself."""
    from omegaconf import OmegaConf

    trainer = build("trainer", OmegaConf.to_container(cfg.trainer, resolve=True), {})
    whole = training_data(sides.training)
    qids = np.sort(whole.topics["qid"].to_numpy(dtype=object))
    order = np.random.default_rng(seed).permutation(qids)
    n = max(2, round(STOPPING * len(order)))
    store = sides.training.store
    inputs = {name: sides.training.entry_of(name).frame_digest(name) for name in ("topics", "evidence", "run")}
    params = {"trainer": identity(trainer), "base": dict(trainer.base()), "seed": seed, "cap": max_seconds}
    key = Key("trained", trainer.version, params, inputs)

    def make(folder: Path) -> None:
        checkpoints = store.root / "checkpoints" / key.digest
        checkpoints.mkdir(parents=True, exist_ok=True)

        def report(step: int, values: Mapping[str, float]) -> None:
            if any(name.startswith("validation") for name in values):
                print(f"seed {seed}, step {step}: {dict(values)}", flush=True)

        tools = TrainingTools(sides.training.tools, checkpoints, seed, max_seconds, report)
        found = trainer.train(of(whole, order[n:]), of(whole, order[:n]), folder, tools)
        facts = {**found.values, **found.facts}
        (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    entry = store.get(key, make)
    facts = json.loads((entry.path / "facts.json").read_text(encoding="utf-8"))
    return trainer, entry.path / MODEL, {**facts, "seconds": entry.seconds_made}


def of(data: TrainingData, qids: Sequence[str]) -> TrainingData:
    """The data of some topics."""
    kept = {name: getattr(data, name) for name in ("topics", "evidence", "run")}
    return replace(data, **{name: frame[frame["qid"].isin(set(qids))] for name, frame in kept.items()})


def study(file: Path, sides: Splits) -> pd.DataFrame:
    """The measures of a TREC run by topic, [qid, measure, value], over the validation's evidence."""
    run = pd.read_csv(file, sep=r"\s+", names=["qid", "q0", "docno", "rank", "score", "name"], dtype=str)
    run = run.assign(rank=run["rank"].astype(int))[["qid", "docno", "rank"]]
    qrels = sides.validation.frame("evidence")[["qid", "docno"]].drop_duplicates().assign(relevance=1)
    values = ranking_values(run[run["qid"].isin(set(qrels["qid"]))], qrels, MEASURES)
    names = {metric_of(name): full_name(name) for name in MEASURES}
    return values.assign(measure=values["measure"].map(names))


def means(title: str, rows: pd.DataFrame) -> None:
    """Prints a row of means per system."""
    print(f"\n### {title}\n")
    print_header("system", *MEASURES)
    for name, part in rows.groupby("system", sort=False):
        value = part.groupby("measure")["value"].mean()
        print_row(str(name), *(f"{value[measure]:.3f}" for measure in MEASURES))


def differences(title: str, before: pd.DataFrame, after: pd.DataFrame, shared: frozenset[str]) -> None:
    """Prints a row of paired differences per system; before: [qid, measure, value]."""
    print(f"\n### {title}\n")
    print_header("system", "topics", "n", *MEASURES)
    against = pd.concat([before.assign(system=name) for name in after["system"].unique()], ignore_index=True)
    table = gains(against[["system", "qid", "measure", "value"]], after, "validation", shared)
    for (part, system), rows in table.groupby(["topics", "system"], sort=False):
        of_measure = rows.set_index("measure")
        cells = [
            f"{r['difference']:+.3f} ({r['lo']:+.3f} to {r['hi']:+.3f})"
            for r in (of_measure.loc[measure] for measure in MEASURES)
        ]
        print_row(str(system), str(part), str(rows["n"].iloc[0]), *cells)


def main() -> None:
    """Trains once per seed and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("docs", "topics", "validation"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--study", type=Path)
    parser.add_argument("--elsewhere", type=Path)
    parser.add_argument("--store", type=Path, default=Path(".trained"))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--weights", default="0.3,0.5,0.7", help="of the hybrid's score, above 0 and below 1")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--validation-limit", type=int)
    parser.add_argument("--max-seconds", type=float)
    parser.add_argument("--set", action="append", default=[], metavar="key=value")
    args = parser.parse_args()
    began = time.perf_counter()
    cfg, sides = splits(args)
    print(f"{sides.values()}; candidates after {time.perf_counter() - began:.0f} s", flush=True)
    pipelines = {
        "validation": sides.validation,
        **({"elsewhere": sides.elsewhere} if sides.elsewhere else {}),
    }
    first = {side: ranked_by(pipeline, {"hybrid": {"reranker": NoReranker()}}) for side, pipeline in pipelines.items()}
    tables: dict[str, list[pd.DataFrame]] = {side: [] for side in pipelines}
    for seed in map(int, args.seeds.split(",")):
        trainer, model, facts = trained(cfg, sides, seed, args.max_seconds)
        print(f"seed {seed}: {facts}", flush=True)
        for side, pipeline in pipelines.items():
            named = {}
            for weight in map(float, args.weights.split(",")):
                systems = replace(trainer, fuse=weight).systems(pipeline.components, model)
                named[f"reranked, seed {seed}"] = systems["reranked"]
                named[f"fused {weight:g}, seed {seed}"] = systems["fused"]
            tables[side].append(ranked_by(pipeline, named))
    for side in pipelines:
        after = pd.concat(tables[side], ignore_index=True)
        recorded = study(args.study, sides) if args.study and side == "validation" else None
        extra = [] if recorded is None else [recorded.assign(system="recorded run")]
        means(f"{side}: means", pd.concat([*extra, first[side], after], ignore_index=True))
        shared = sides.shared if side == "validation" else frozenset()
        differences(f"{side}: beyond the hybrid", first[side].drop(columns="system"), after, shared)
        if recorded is not None:
            both = pd.concat([first[side], after], ignore_index=True)
            differences(f"{side}: beyond the recorded run", recorded, both, shared)


if __name__ == "__main__":
    main()
