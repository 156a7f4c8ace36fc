"""Locates Hydra's configuration, prepares its arguments, and explains errors in them."""

from __future__ import annotations

import argparse
import difflib
import logging
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import MODEL_PACKAGES, installed
from ragauge.contract.groups import GROUPS, RENAMED
from ragauge.contract.option import FOLDERS
from ragauge.contract.visible import visible

log = logging.getLogger(__name__)

_ROOT_FILE = "config.yaml"
# A measure with parameters, AP(rel=2)@10, that stands in a list without quotes; Hydra would not read it.
_BARE = re.compile(r"""(?<=[\[,])\s*([^\s,\[\]()"']+\([^()"]*\)[^\s,\[\]()"']*)\s*(?=[,\]])""")
# A quoted text; one that is not closed goes on to the end.
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)""", re.DOTALL)
_BRACKET = re.compile(r"[\[\](){}]")
_DIGITS = re.compile(r"\d[\d_]*")
_MOST_NESTED, _MOST_INTERPOLATIONS, _MOST_COMMAS = 50, 100, 5_000
_MOST_DIGITS = 400  # 10^308 is the largest float
# What OmegaConf says of a value that its type does not take, and what is allowed instead.
_ALLOWED = (
    (r"could not be converted to Integer", "a whole number"),
    (r"could not be converted to Float", "a number"),
    (r"is not a valid bool", "true or false"),
    (r"is not a ListConfig, list or tuple", "a list, such as [1,2]"),
    (r"Cannot convert '\w+' to string", "a text"),
    (r"is not a subclass of|is not a dict", "to set its keys one by one, such as {key}.<key>=<value>"),
    (r"is not Optional", "any value but null"),
)  # fmt: skip
# key=value, ~key; no option, and no value of one such as a path.
_OVERRIDE = re.compile(r"~|\+{0,2}[\w./@-]+=")


def conf_folder() -> Path:
    """The folder of the configuration, absolute.

    `--config-path`, relative to the working directory; else the first of these with a config.yaml: conf/
    beside the program (a clone's run.py), conf/ in the package (an installed wheel), conf/ of the source tree (an
    editable installation). ConfigError where there is none.
    """
    given = _option("config_path")
    if given is not None:
        folder = Path(given).absolute()
        if not folder.is_dir():
            raise ConfigError(f"--config-path {given}: is no folder")
        return folder
    places = [Path(sys.argv[0]).resolve().parent / "conf", *FOLDERS]
    for place in places:
        if (place / _ROOT_FILE).is_file():
            return place
    raise ConfigError(
        f"no conf/{_ROOT_FILE} in {', '.join(str(p.parent) for p in places)}; name its folder: --config-path"
    )


def config_dir() -> Path | None:
    """The folder that `--config-dir` adds to the configuration, absolute; None without that option."""
    given = _option("config_dir")
    return Path(given).absolute() if given else None


def take_config_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--config-path` and `--config-dir` to a command, for `conf_folder` and `config_dir`."""
    parser.add_argument("--config-path", "-cp", metavar="FOLDER", help="the configuration, in place of conf/")
    parser.add_argument("--config-dir", "-cd", metavar="FOLDER", help="further configuration, beside conf/")


def search_path() -> list[str]:
    """The override that adds `--config-dir` to a manually composed config; [] without that option."""
    added = config_dir()
    if added is None:
        return []
    if not added.is_dir():
        raise ConfigError(f"--config-dir {added}: is no folder")
    return [f"hydra.searchpath=[{as_text(f'file://{added}')}]"]


def as_text(value: str) -> str:
    """The value in double quotes for Hydra's grammar, where a backslash escapes a quote alone."""
    escaped = re.sub(r'(?<!\\)(\\*)("|\Z)', lambda found: found[1] * 2 + ('\\"' if found[2] else ""), value)
    return f'"{escaped}"'


def has_config_path() -> bool:
    """True if the command line names the folder of the configuration."""
    return _option("config_path") is not None


def _option(name: str) -> str | None:
    """The value of an option of Hydra's on the command line."""
    from hydra._internal.utils import get_args_parser

    value: str | None = getattr(get_args_parser().parse_known_args()[0], name)
    return value


def quoted(arguments: Sequence[str]) -> list[str]:
    """The arguments with quotes around measures with parameters, as in measures=[AP(rel=2)], for Hydra.

    Arguments that have quotes already stay as they are.
    """
    return [_BARE.sub(r'"\1"', a) if a.lstrip("+").startswith("measures=") else a for a in arguments]


def of_base(arguments: Sequence[str]) -> list[str]:
    """The arguments, plus chunker=tokens and llm.by=words as defaults if the embedder cannot run.

    They count as given overrides, so that the job records them. A warning on stderr names them.
    """
    given = {a.lstrip("+~").partition("=")[0].partition(".")[0] for a in arguments}
    chosen = {"embedder", "experiment", "rerun"} & given or has_config_path()
    if chosen or installed(*MODEL_PACKAGES) or not {"--help", "-h"}.isdisjoint(arguments):
        return list(arguments)
    own = [override for override in ("chunker=tokens", "llm.by=words") if re.split("[.=]", override)[0] not in given]
    if own:
        log.warning(
            "%s: what embeds sentences by default has not the packages for it (pip install 'ragauge[embed]')",
            " ".join(own),
        )
    # Beside the other overrides: argparse wants them in one piece.
    first = next((i for i, a in enumerate(arguments) if _OVERRIDE.match(a)), len(arguments))
    return [*arguments[:first], *own, *arguments[first:]]


def refuse_excessive(arguments: Sequence[str]) -> None:
    """ConfigError for an override that would take Hydra minutes or crash it.

    Counted are interpolations, brackets within brackets, commas, and digits of one number, but for texts in quotes.
    """
    for argument in arguments:
        # Interpolations are read in quotes, too.
        bare = argument if "${" in argument else _QUOTED.sub("", argument)
        depth = deepest = 0
        for bracket in _BRACKET.findall(bare):
            depth += 1 if bracket in "([{" else -1
            deepest = max(deepest, depth)
        key = argument.partition("=")[0][:80]
        for what, found, most in (
            ("brackets within brackets", deepest, _MOST_NESTED),
            ("commas outside of quotes", bare.count(","), _MOST_COMMAS),
            ("interpolations (${...})", argument.count("${"), _MOST_INTERPOLATIONS),
            ("digits of one number", max(map(len, _DIGITS.findall(bare)), default=0), _MOST_DIGITS),
        ):
            if found > most:
                raise ConfigError(f"{key}: {found:,} {what}; allowed are up to {most:,}")


_SYSTEMS = ("recorded.system", "retriever.system", "llm.system")  # keys that choose a file's systems


def of_swept(arguments: Sequence[str]) -> list[str]:
    """The arguments; in a sweep over a group (retriever=a,b), its keys (retriever.model=x) become one-value choices.

    Hydra composes once without what is swept, and would refuse a key there that the default option does not have.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    if {"-m", "--multirun"}.isdisjoint(arguments):
        return list(arguments)
    swept = {a.partition("=")[0] for a in arguments if re.fullmatch(r"[a-z_]+=[\w./-]+(,[\w./-]+)+", a)}
    found = list(arguments)
    for place, argument in enumerate(found):
        with suppress(HydraException):  # what cannot be read Hydra tells itself
            of_group = argument.partition(".")[0] in swept
            if of_group and not OverridesParser.create().parse_override(argument).is_sweep_override():
                key, _, value = argument.partition("=")
                found[place] = f"{key}=choice({value})"
    return found


def of_systems(arguments: Sequence[str]) -> list[str]:
    """The arguments; a sweep over a recorded file of several systems takes each of them, unless some are chosen."""
    given = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    named = given.get("recorded.path", "").strip("'\"")
    if {"-m", "--multirun"}.isdisjoint(arguments) or not {*_SYSTEMS}.isdisjoint(given) or not Path(named).is_file():
        return list(arguments)
    from ragauge.commands.given import overrides  # both import for seconds
    from ragauge.datasets.recordings import systems_of

    systems = systems_of(Path(named))
    return [*arguments, *overrides((), {"recorded.system": systems} if systems else {}, swept=True)]


def explain(error: BaseException, config_name: str = "config") -> str:
    """One line on an error of Hydra or OmegaConf, with the allowed keys or options.

    config_name: the name of the composed file of conf/.
    """
    text = str(error).strip()
    cause = str(error.__cause__ or "").strip()
    if (override := getattr(error, "override", None)) is not None:
        return _unread(str(override))
    if unknown := re.search(r"Could not override '([^']+)'", text):
        return _unknown_key(unknown.group(1), cause, text, config_name)
    if merged := re.search(r"Error merging override ([^=\s]+)=(.*)", text):
        return _wrong_value(merged.group(1), merged.group(2), cause, config_name)
    if option := re.search(r"Could not (?:find|load) '(?:([^']+)/)?([^'/]+)'", text):
        return _unknown_option(option.group(1), option.group(2), text)
    if primary := re.search(r"Cannot find primary config '([^']+)'", text):
        where = conf_folder()
        return f"{'--config-path ' if has_config_path() else ''}{where} holds no {primary.group(1)}.yaml"
    both = f"{text} {cause}" if cause and cause not in text else text
    return visible(both, one_line=True)


def _unread(override: str) -> str:
    """An override that Hydra's grammar rejects, and the accepted form with quotes."""
    key, equals, value = override.partition("=")
    if not equals or not re.fullmatch(r"[+~]{0,2}[\w./@:-]+", key):
        return f"{override}: is no key=value"
    return (
        f"{override}: the value cannot be read; a text with quotes, brackets, commas or the like is "
        f"given as {shlex.quote(f'{key}={as_text(value)}')}"
    )


def _unknown_key(key: str, cause: str, text: str, config_name: str) -> str:
    if key in RENAMED:
        return f"the key {key!r} is called {RENAMED[key]!r} now: {RENAMED[key]}=[…] takes the same names"
    if key.startswith("hydra."):
        return f"unknown key {key!r}; --cfg hydra shows Hydra's own"
    within = re.search(r"full_key: (\S+)", cause)
    if within and (key.startswith(f"{within.group(1)}.") or within.group(1).startswith(f"{key}.")):
        # The first part that is not there, or a key inside of a mapping that was given.
        key = within.group(1)
    if "not in" not in cause and cause:
        return f"{key}: {cause.splitlines()[0]}"
    parent, _, name = key.rpartition(".")
    where, allowed = _allowed_keys(parent, name, config_name)
    if not allowed:
        return f"unknown key {key!r}" + (f": {parent} has no keys" if parent else "")
    others = _options_with(parent, name)
    of = f" It is a key of {parent}={', '.join(others)}." if others else ""
    close = "" if of else _did_you_mean(name, allowed, f"{parent}." if parent else "")
    return f"unknown key {key!r}.{of}{close} {where} has: {', '.join(allowed)}"


def _wrong_value(key: str, value: str, cause: str, config_name: str) -> str:
    told = cause.splitlines()[0] if cause else "cannot be set"
    within = re.search(r"full_key: ([^\s\[]+)", cause)
    if re.search(r"Key '[^']+' (?:is )?not in", told):
        return _unknown_key(within.group(1) if within else key, cause, "", config_name)
    for pattern, allowed in _ALLOWED:
        if re.search(pattern, told):
            return f"{key}={value}: allowed is {allowed.format(key=key)}"
    return f"{key}={value}: {told}"


def _unknown_option(group: str | None, name: str, text: str) -> str:
    listed = re.search(r"Available options in '[^']+':\n((?:\t.*\n?)+)", text)
    own = [line.strip() for line in listed.group(1).splitlines()] if listed else []
    options = sorted({*own, *_options(group)})
    if group is None:
        return f"there is no {name}.yaml in {conf_folder()}"
    has = f" Options: {', '.join(options)}" if options else ""
    return f"{group}={name}: there is no such option.{_did_you_mean(name, options)}{has}"


def _options(group: str | None) -> list[str]:
    """A group's options in ragauge, plug-ins, installed packages and `--config-dir`."""
    from ragauge.experiment.setup.packages import owners

    of = f"{group}/" if group else ""
    found = {option for option in owners(conf_folder()) if option.startswith(of)}
    added = config_dir()
    found |= set() if added is None else {f"{of}{file.stem}" for file in (added / of).glob("*.yaml")}
    return sorted(option.removeprefix(of) for option in found if "/" not in option.removeprefix(of))


def _options_with(group: str, key: str) -> list[str]:
    """The group's options whose own file has the key."""
    from ragauge.experiment.setup.packages import config_packages

    folders = [conf_folder(), *(package.folder for package in config_packages())]
    files = (folder / group / f"{option}.yaml" for option in _options(group) for folder in folders)
    has = re.compile(rf"^{re.escape(key)}:", re.M)
    return [file.name.removesuffix(".yaml") for file in files if file.is_file() and has.search(file.read_text("utf-8"))]


def _did_you_mean(name: str, allowed: Sequence[str], before: str = "") -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    return f" Did you mean {before}{close[0]}?" if close else ""


def _allowed_keys(parent: str, name: str, config_name: str) -> tuple[str, list[str]]:
    """The node without an unknown key, and its keys, for the components chosen on the command line.

    With several options in a sweep, the first one that lacks the key.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import DictConfig, OmegaConf

    given = [a for a in sys.argv[1:] if re.fullmatch(r"[a-z_]+=\w+(,\w+)*", a)]
    first = [a.partition(",")[0] for a in given if a.partition("=")[0] in (*GROUPS, "experiment", "rerun")]
    swept = next((a.partition("=")[2].split(",") for a in given if a.startswith(f"{parent}=") and "," in a), [])
    where, keys = parent[:1].upper() + parent[1:] or "The config", []
    GlobalHydra.instance().clear()
    with suppress(Exception), initialize_config_dir(str(conf_folder()), version_base="1.3"):  # it is only a courtesy
        for own in [[f"{parent}={option}"] for option in swept] or [[]]:
            cfg = compose(config_name, overrides=[*first, *own, *search_path()])
            node: Any = OmegaConf.select(cfg, parent) if parent else cfg
            keys = sorted(str(k) for k in node if not str(k).startswith("_")) if isinstance(node, DictConfig) else []
            where = own[0] if own else where
            if name not in keys:
                break
    return where, keys
