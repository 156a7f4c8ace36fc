"""Parts of a logged config that would run, read or reach something here, and that are not vouched for here.

Vouched for is what stands in a configuration of this installation: conf/, the installed config packages, and
the folder of `--config-dir`. Beside that, ragauge's component classes and code of config packages may run.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.plain_files import open_plain
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact
from ragauge.contract.visible import visible
from ragauge.experiment.setup.config import leaves, logged_yaml
from ragauge.experiment.setup.packages import config_packages

MAX_LINES = 20  # of a list that are printed one by one
# Where ragauge's components are (those of plug-ins are named by their options);
# of its other code (commands, the store's removal) a config runs nothing.
_ROOMS = ("answering", "datasets", "measures", "retrieval", "texts")
_PLAIN = re.compile(r"\$\{[\w.\[\]]+\}")  # the value of another key
_ADDRESS_KEY = re.compile(r"ur[li]|host|endpoint|proxy|proxies|server|api_base|address", re.I)
_LONGEST = 1_000_000  # bytes of a configuration that are read
_OF_FILES = ("may read this file or folder", "writes this file")
_HERE = re.compile(r"(https?://)?(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?(/[\w./-]*)?")


@dataclass(frozen=True)
class Vouched:
    """Names in the configurations of this installation: targets, and other strings that reach outside."""

    packages: frozenset[str] = frozenset()  # top-level names of the installed config packages
    targets: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    values: set[tuple[str, str]] = field(default_factory=set)  # the texts with their keys, such as path
    environment: set[str] = field(default_factory=set)

    def may_run(self, target: str) -> bool:
        """Whether a `_target_` is named here, or is a component of ragauge or code of a config package.

        An attribute that only a module's imports brought there (`ragauge.llms.calls.os.system`) is none.
        """
        if target in self.targets:
            return True
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", target):
            return False
        names = target.split(".")
        top = names[0]
        if not (top in self.packages or (top == "ragauge" and names[1] in _ROOMS)):
            return False
        try:
            found = getattr(import_module(".".join(names[:-1])), names[-1])
        except Exception:  # that it cannot be had is told when it is asked for
            return False
        home = str(getattr(found, "__module__", "")).split(".")
        if top == "ragauge":
            return isinstance(found, type) and home[0] == top and home[1:2] == names[1:2]
        return callable(found) and home[0] == top


def vouched(conf: Path, config_dir: Path | None = None) -> Vouched:
    """Names in conf, the installed config packages and the folder of `--config-dir`."""
    packages = config_packages()
    known = Vouched(frozenset(package.module.split(".")[0] for package in packages) - {"ragauge"})
    folders: list[Traversable] = [conf, *(package.folder for package in packages)]
    for folder in [*folders, *([config_dir] if config_dir is not None else [])]:
        for config in _configs(folder):
            for path, value in leaves(config, whole="_target_"):
                key = path.rpartition(".")[2]
                if not isinstance(value, str):
                    continue
                if key == "_target_":
                    known.targets.add(value)
                elif key.endswith("_env"):
                    known.environment.add(value)
                else:
                    known.texts.add(value)
                    known.values.add((_name(path), value))
    return known


def refuse_foreign(
    run_id: str,
    configs: Sequence[Mapping[str, Any]],
    given: Collection[str],
    conf: Path,
    config_dir: Path | None = None,
) -> None:
    """ConfigError that lists the names in the configs of a logged run that are not vouched for here (`foreign`)."""
    known = vouched(conf, config_dir)
    lines = dict.fromkeys(line for config in configs for line in foreign(config, known, given))
    if lines:
        raise ConfigError(
            f"rerun={run_id}: the logged configuration names what neither conf/ nor an installed "
            "config package does; give the value on the command line, or "
            f"trust=true if you trust whoever logged it\n{_listed(lines)}"
        )


def refuse_foreign_folder(folder: Path, records: Iterable[JobRecord], conf: Path) -> None:
    """ConfigError that lists what the configurations of a folder's jobs name that is not vouched for here.

    These are code, environment variables and addresses: a key of this user's would go there. Vouched for are addresses
    in this process's environment, too. Files are left out: the jobs' outputs are in the store. Of the records the
    addresses of ledgers count.
    """
    known = vouched(conf)
    known.texts.update(value for value in os.environ.values() if "://" in value)
    own_ledger = redact(os.environ.get("RAGAUGE_LEDGER", ""))
    lines: dict[str, None] = {}
    for record in records:
        file = record.folder / ".hydra" / "config.yaml"
        try:
            with open_plain(file) as stream:
                text = stream.read(_LONGEST + 1).decode("utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file}: cannot be read: {error}") from None
        config = logged_yaml(text, str(file))
        if not isinstance(config, Mapping):
            raise ConfigError(f"{file} is no mapping")
        lines |= dict.fromkeys(foreign(config, known, ("tracking", "store"), files=False))
        ledgers = {name for name in record.ledgers.values() if "://" in name and name != own_ledger}
        lines |= dict.fromkeys(f"ledger={name} (reaches this address)" for name in sorted(ledgers))
    if lines:
        raise ConfigError(
            f"{folder}: its jobs wait for their verdicts, and their configuration names what neither conf/ nor the "
            "environment does; this user's keys could go there. --trust if this sweep is yours, or you trust whoever "
            f"wrote it\n{_listed(lines)}"
        )


def _listed(lines: Collection[str]) -> str:
    told = [f"  {visible(redact(line), one_line=True)}" for line in lines]
    more = [f"  and {len(told) - MAX_LINES} more"] if len(told) > MAX_LINES else []
    return "\n".join([*told[:MAX_LINES], *more])


def foreign(config: Mapping[str, Any], known: Vouched, given: Collection[str] = (), files: bool = True) -> list[str]:
    """The parts of an unresolved config that are not vouched for here, as lines `key=value (why)`.

    These are code that is instantiated, interpolations by anything but another key (environment variables and other
    resolvers), and environment variables that a key names. Also addresses that are not this machine's, files and
    folders of this machine, and ledgers that would be written where none is, unless `files` is False. Keys in `given`,
    or below one, are the user's own.
    """
    from omegaconf import OmegaConf

    resolved = OmegaConf.create(dict(config))
    every = list(leaves(config, whole="_target_"))
    references = {path: value for path, value in every if isinstance(value, str) and "${" in value}
    chaining = [path for path, value in references.items() if _PLAIN.search(value)]
    found = []
    for path, value in every:
        if any(_is_within(path, key) for key in given):
            continue
        # A config of this clone names ${dataset} whole; ${.name} would mean another value in every mapping.
        own = path in references and "${." not in value and (_name(path), value) in known.values
        if path in references and not own and _is_chained(path, value, chaining):
            why: str | None = "names a value that is made of others itself"  # a few such fill any memory
        else:
            why = _objection(path, value, known, resolved)
        if why and (files or why not in _OF_FILES):
            found.append(f"{path}={value} ({why})")
    return found


def _objection(path: str, value: Any, known: Vouched, root: Any) -> str | None:
    """The objection to one value of a config; None if there is none."""
    key = path.rpartition(".")[2]
    if key == "_target_":
        if value is None or value == "???" or (isinstance(value, str) and known.may_run(value)):
            return None
        return "runs code"
    if not isinstance(value, str) or (_name(path), value) in known.values:
        return None
    if "${" in value:
        if "${" in _PLAIN.sub("", value):
            known_text = value in known.texts
            return None if known_text else "reads the environment, or what else a resolver does"
        text = _selected(root, path)
        if text is None:
            return "cannot be resolved"
    else:
        text = value
    if key.endswith("_env"):
        return None if text in known.environment else "reads this environment variable"
    if "://" in text or _ADDRESS_KEY.search(key):
        return None if text in known.texts or _HERE.fullmatch(text) else "reaches this address"
    if key == "ledger":
        theirs = Path(text).is_absolute() or ".." in Path(text).parts or os.path.exists(text)
        return _OF_FILES[1] if theirs and not _is_ledger(text) else None
    return None if (_name(path), text) in known.values else _reads(text)


def _reads(text: str) -> str | None:
    """The objection to a text that is a file or folder of this machine, or that leads out of another folder.

    A path may be missing because something is appended to it: `split=/home/me/list` names list.tsv.
    """
    path = re.sub(r"(?i)^file:", "", text.strip())
    outside = path.startswith(("/", "~")) or ".." in path.split("/")
    return _OF_FILES[0] if path and (outside or os.path.exists(path)) else None


def _name(path: str) -> str:
    """The last name of a dotted key, without the number of a list's item."""
    return path.rpartition(".")[2].partition("[")[0]


def _is_within(path: str, key: str) -> bool:
    return path == key or path.startswith((f"{key}.", f"{key}["))


def _is_chained(path: str, value: str, references: Collection[str]) -> bool:
    """Whether an interpolation of the value at the path names one of the references, or what holds one."""
    for dots, name in re.findall(r"\$\{(\.*+)([\w.\[\]]*)\}", value):
        above = re.findall(r"[^.\[\]]+", path)[: -len(dots)] if dots else []
        target = ".".join([*above, *re.findall(r"[^.\[\]]+", name)])
        if any(_is_within(re.sub(r"\[(\w+)\]", r".\1", other), target) for other in references):
            return True
    return False


def _selected(root: Any, path: str) -> str | None:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        return str(OmegaConf.select(root, path, throw_on_missing=True, throw_on_resolution_failure=True))
    except OmegaConfBaseException:
        return None


def _is_ledger(file: str) -> bool:
    """True if the file is a ledger that ragauge made: to open another database would put tables into it."""
    try:
        with closing(sqlite3.connect(f"{Path(file).absolute().as_uri()}?mode=ro", uri=True)) as database:
            return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchone() is not None
    except (sqlite3.Error, ValueError):
        return False


def _configs(folder: Traversable) -> Iterator[Any]:
    """Every YAML file below a folder, unresolved; one that cannot be read vouches for nothing."""
    import yaml
    from omegaconf.errors import OmegaConfBaseException

    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _configs(entry)
        elif entry.name.endswith((".yaml", ".yml")):
            try:
                yield _parsed(entry.read_text("utf-8"))
            except (OSError, ValueError, yaml.YAMLError, OmegaConfBaseException):
                continue


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(OmegaConf.create(text), resolve=False)
