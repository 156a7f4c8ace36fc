"""Classes of a logged configuration that lie in another module today, or are no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.build import locate
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.version import __version__


def name_as_today(config: Mapping[str, Any], tags: Mapping[str, str], conf: Path) -> list[str]:
    """Writes today's `_target_` over those of ragauge's classes that moved, and returns a line for each.

    config: of a logged job, changed in place. tags: of its MLflow run; they name the chosen options. A class
    has moved where the option's file in `conf` names a class of the same name. ConfigError, which says what
    version made the run, where there is none.
    """
    told = []
    for key, node, option in _nodes(config, tags):
        target = str(node.get("_target_"))
        if not target.startswith("ragauge.") or _is_there(target):
            continue
        today = _target_of(conf / option)
        if today.rpartition(".")[2] != target.rpartition(".")[2] or not _is_there(today):
            raise ConfigError(
                f"{key}._target_={target} is no class of ragauge {__version__}; the run was made by "
                f"{_maker(tags)}: run it again with that, or give {key} another value"
            )
        node["_target_"] = today
        told.append(f"{key}._target_: {target} of {_maker(tags)} is {today} today")
    return told


def _nodes(config: Mapping[str, Any], tags: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Key, node and option file of every component of a config."""
    for group in GROUPS:
        if isinstance(config.get(group), dict):
            yield group, config[group], f"{group}/{tags.get(group, '?')}.yaml"
    for name, node in (config.get(ANSWERS) or {}).items():
        if isinstance(node, dict):
            yield f"{ANSWERS}.{name}", node, f"{ANSWERS}/{name}.yaml"


def _is_there(target: str) -> bool:
    try:
        locate("rerun", target)
    except ConfigError:
        return False
    return True


def _target_of(file: Path) -> str:
    """The `_target_` that an option's file names, at its root or under its own name; "" where none does."""
    import yaml

    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    node = found.get(file.stem, found) if isinstance(found, dict) else {}
    return str(node.get("_target_", "")) if isinstance(node, dict) else ""


def _maker(tags: Mapping[str, str]) -> str:
    """The version and, where it is known, the commit of ragauge that made a run."""
    commit = tags.get("git_commit", "")
    return f"ragauge {tags.get('ragauge_version', '?')}" + (f" ({commit[:12]})" if commit else "")
