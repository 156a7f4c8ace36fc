"""The command line that repeats a logged run: checks `rerun=<run id>`, and turns it into arguments.

`prepared` turns `rerun=<run id>` into its own configuration: a copy of conf/ in which every config group has one more
option, the run's own part, named `run_<id>`. Its root holds the run's values. So what was logged is what runs, whatever
conf/ says today, and overrides work as they always do. A sweep is a multirun over its jobs' options of the group
`rerun`.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.experiment.setup.trust import refuse_foreign
from ragauge.plugins.rerun.comparison import of_sweep
from ragauge.plugins.rerun.conf_folder import origin, write_conf
from ragauge.plugins.rerun.differences import environment_differences, tell
from ragauge.plugins.rerun.jobs import LoggedJob, is_under, logged_jobs, runnable, unknown_keys

__all__ = ["of_sweep", "origin", "prepared"]  # as of `ragauge.experiment.arguments.Argument`


@contextmanager
def prepared(arguments: Sequence[str], conf: Path) -> Iterator[list[str]]:
    """Arguments that make Hydra repeat the run of `rerun=<run id>`, valid within the block.

    Prints on stderr which code and packages differ from the run's. ConfigError where the run is unknown, was not made
    by ragauge, or cannot be run as it was.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    run_id, rest = _asked(arguments)
    given = [a for a in rest if not a.startswith("-") and ("=" in a or a.startswith("~"))]
    further = [o for o in OverridesParser.create().parse_overrides(given) if not o.is_hydra_override()]
    root = OmegaConf.load(conf / "config.yaml")
    uris = [OmegaConf.select(root, "tracking.uri")]
    uris += [o.value() for o in further if o.key_or_group == "tracking.uri"]
    uri = track.tracking_uri(uris[-1])

    reader = track.Reader(uri)
    source = reader.run(run_id)
    run_id = source.run_id
    told: list[str] = []
    jobs = logged_jobs(reader, source, rest, told)
    left_out = {o.key_or_group for o in further if o.is_delete()} & {k for j in jobs for k in unknown_keys(j)}
    rest = [a for a in rest if a.lstrip("~").split("=")[0] not in left_out]
    further = [o for o in further if o.key_or_group not in left_out]
    keys = [str(o.key_or_group) for o in further]
    jobs = [runnable(job, keys, left_out) for job in jobs]
    if not any(o.key_or_group == "trust" and o.value() is True for o in further):
        refuse_foreign(run_id, [job.config for job in jobs], keys, conf, _config_dir(rest))
    _refuse_equal_jobs(jobs, keys)

    told += environment_differences(jobs[0].run.tags, jobs[0].packages)
    sweep = source.tags["role"] == "sweep"
    tell(f"rerun of {'sweep ' if sweep else ''}{run_id}, {len(jobs)} job(s)", told)
    with tempfile.TemporaryDirectory(prefix="ragauge-rerun-") as scratch:
        write_conf(Path(scratch), conf, jobs, source)
        multirun = ["--multirun"] if sweep and not {"-m", "--multirun"} & set(rest) else []
        options = ",".join(job.option for job in jobs)
        yield ["--config-path", scratch, *multirun, *rest, f"rerun={options}"]


def _asked(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The run id of `rerun=`, and the other arguments; ConfigError for incompatible ones."""
    ids = [a.removeprefix("rerun=") for a in arguments if a.startswith("rerun=")]
    rest = [a for a in arguments if not a.startswith("rerun=")]
    if len(ids) != 1 or not re.fullmatch(r"[\w-]+", ids[0]):
        raise ConfigError(
            f"rerun={ids[0] if len(ids) == 1 else ' rerun='.join(ids)}: give the id of one MLflow run; "
            "a sweep is run again by the id of its own run"
        )
    for argument in rest:
        if argument.split("=")[0] in ("--config-name", "-cn", "--config-path", "-cp"):
            raise ConfigError(f"{argument}: rerun= takes the configuration that the run logged")
        if argument.lstrip("+~").split("=")[0] == "experiment":
            raise ConfigError(
                f"{argument}: the run's configuration holds its preset already; give single values instead, "
                "or leave rerun= out"
            )
    return ids[0], rest


def _config_dir(arguments: Sequence[str]) -> Path | None:
    """The folder of `--config-dir`, if any."""
    from hydra._internal.utils import get_args_parser

    given = get_args_parser().parse_known_args(list(arguments))[0].config_dir
    return Path(given).absolute() if given else None


def _refuse_equal_jobs(jobs: Sequence[LoggedJob], given: Sequence[str]) -> None:
    """ConfigError if an override sets a key that distinguishes a sweep's jobs, so that some would be repeated."""

    def distinct(keys: Sequence[str]) -> int:
        flats = [track.flatten(job.config) for job in jobs]
        return len({json.dumps({k: v for k, v in f.items() if not is_under(k, keys)}) for f in flats})

    if distinct(given) < distinct(()):
        raise ConfigError(
            f"{', '.join(given)}: the jobs of the sweep differ in this, and some would be the same; rerun "
            "one of them (rerun=<id of the job>), or give the sweep as a command"
        )
