"""The command `ragauge dataset`: writes a dataset's topics into an evaluation dataset of MLflow."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ragauge.commands.conf import take_config_options
from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError

ABOUT = "writes a dataset's topics into MLflow, as an evaluation dataset that people edit"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge dataset",
        description="Writes topics with their references and evidence as an evaluation dataset of MLflow, which "
        "dataset=mlflow reads with what people changed there. Called again, it adds the topics that are not there.",
    )
    parser.add_argument("name", help="the name of the evaluation dataset")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as dataset=sample tracking.uri=…")
    take_config_options(parser)
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    # After the arguments: they import for seconds.
    from ragauge.commands.stages import composed
    from ragauge.experiment.stages.components import instantiate_components
    from ragauge.plugins.mlflow_pages.dataset import write_records
    from ragauge.plugins.mlflow_pages.records import records_of
    from ragauge.track import absolute_uri, tracking_uri
    from ragauge.track.views import where_text

    if "=" in given.name:
        raise ConfigError(f"ragauge dataset {given.name}: the first argument is the name of the evaluation dataset")
    cfg = composed(given.overrides)
    source = instantiate_components(cfg).dataset
    data = source.load()
    uri = absolute_uri(tracking_uri(cfg.tracking.uri))
    records = records_of(data.topics, data.evidence)
    added, experiment_id = write_records(uri, given.name, cfg.tracking.experiment or given.name, records)
    swaps = {"dataset=": "dataset@dataset.documents=", "dataset.": "dataset.documents."}
    own = [
        f"{new}{one.removeprefix(old)}" for one in given.overrides for old, new in swaps.items() if one.startswith(old)
    ]
    print(
        f"{given.name}: {added:,} of {len(records):,} topics added to MLflow's evaluation dataset; the others were "
        f"there\n{where_text(uri, f'#/experiments/{experiment_id}/datasets')}\n"
        f"then: python run.py dataset=mlflow dataset.name={given.name} {' '.join(own)}"
    )
    return 0
