"""What trainings bring, on data of one's own: `python benchmarks/trainings.py encoder --docs ...`.

Every sub-command trains once per seed by `ragauge train`, and prints the paired differences before and after
as a Markdown table. Nothing is done twice: a second call prints what the store and MLflow hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

CONF = Path(__file__).resolve().parents[1] / "conf"
MEASURES = ("P@1", "R@5", "nDCG@10")


def trained(seed: int, overrides: Sequence[str], folder: Path) -> tuple[pd.DataFrame, dict[str, float]]:
    """The table before_after.json of a training, and its metrics."""
    from hydra import compose, initialize_config_dir

    from ragauge import track
    from ragauge.experiment.request import JobFolder
    from ragauge.experiment.setup import config
    from ragauge.plugins.training.jobs.job import execute

    config.register()
    uri = f"sqlite:///{folder / 'mlruns' / 'mlflow.db'}"
    given = [f"store={folder / 'store'}", f"tracking.uri={uri}", f"seed={seed}", *overrides]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("train", overrides=given)
    choices = {"trainer": next(a.partition("=")[2] for a in given if a.startswith("trainer="))}
    job = JobFolder(folder / f"seed-{seed}", None, 0, choices, tuple(given))
    job.path.mkdir(parents=True, exist_ok=True)
    code = execute(cfg, job)
    record = json.loads((job.path / "job.json").read_text(encoding="utf-8"))
    if code:
        sys.exit(f"seed {seed}: {record.get('error')}")
    return track.Reader(uri).table(record["run_id"], "before_after.json"), record["metrics"]


def print_gains(tables: Sequence[tuple[int, pd.DataFrame]]) -> None:
    """A row per dataset, part of its topics, system, measure and seed."""
    print("| dataset | topics | system | measure | seed | before | after | difference | 95 % interval | n |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    rows = pd.concat([table.assign(seed=seed) for seed, table in tables], ignore_index=True)
    keys = ["dataset", "topics", "system", "measure"]
    for (dataset, topics, system, measure), of in rows.groupby(keys, sort=False):
        for row in of.itertuples():
            print(
                f"| {dataset} | {topics} | {system} | {measure} | {row.seed} | {row.before:.3f} | "
                f"{row.after:.3f} | {row.difference:+.3f} | {row.lo:+.3f} to {row.hi:+.3f} | {row.n} |"
            )


def encoder(args: argparse.Namespace) -> None:
    """An encoder alone and in the hybrid, on the validation topics and elsewhere."""
    overrides = [
        "trainer=encoder",
        "dataset=csv",
        f"dataset.docs={args.docs.absolute()}",
        f"dataset.topics={args.topics.absolute()}",
        f"++validation.topics={args.validation.absolute()}",
        "leaks=drop",
        f"measures=[{','.join(MEASURES)}]",
    ]
    if args.limit is not None:
        overrides += [f"dataset.limit={args.limit}", f"++validation.limit={args.limit}"]
    if args.elsewhere is not None:
        overrides += ["dataset@elsewhere=hotpotqa", f"elsewhere.path={args.elsewhere.absolute()}"]
    if args.max_seconds is not None:
        overrides.append(f"max_seconds={args.max_seconds}")
    overrides += args.override
    found = [(seed, *trained(seed, overrides, args.folder)) for seed in args.seeds]
    print_gains([(seed, table) for seed, table, _ in found])
    print()
    print("| seed | seconds of training | steps | best step | topics trained on | share a document |")
    print("|---|---|---|---|---|---|")
    for seed, _, values in found:
        print(
            f"| {seed} | {values['seconds_training']:.0f} | {values['training_steps']:.0f} | "
            f"{values['best_step']:.0f} | {values['training_topics']:.0f} | "
            f"{values['validation_topics_sharing_documents']:.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("encoder", help=encoder.__doc__)
    one.add_argument("--docs", type=Path, required=True, help="CSV of documents (columns id, text)")
    one.add_argument("--topics", type=Path, required=True, help="CSV of the training questions")
    one.add_argument("--validation", type=Path, required=True, help="CSV of the validation questions")
    one.add_argument("--elsewhere", type=Path, help="HotpotQA's JSON: another domain")
    one.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    one.add_argument("--limit", type=int, help="the first so many questions of both files, for a trial")
    one.add_argument("--max-seconds", type=float, help="of every training")
    one.add_argument("--folder", type=Path, default=Path("trainings"), help="store, runs and MLflow")
    one.add_argument("--override", nargs="*", default=[], help="such as trainer.average=0.3")
    one.set_defaults(run=encoder)
    args = parser.parse_args()
    args.folder = args.folder.absolute()
    args.run(args)


if __name__ == "__main__":
    main()
