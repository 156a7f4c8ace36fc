"""Where the configuration lies that Hydra composes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ragauge.contract.errors import ConfigError

_ROOT_FILE = "config.yaml"
# A measure with parameters, AP(rel=2)@10, that stands in a list without quotes; Hydra would not read it.
_BARE = re.compile(r"""(?<=[\[,])\s*([^\s,\[\]()"']+\([^()"]*\)[^\s,\[\]()"']*)\s*(?=[,\]])""")
_PACKAGE = Path(__file__).resolve().parents[1]


def conf_folder() -> Path:
    """The folder of the configuration, absolute.

    The one that `--config-path` names, relative to the working directory; else the first that has a
    config.yaml of: conf/ beside the program (a clone's run.py), conf/ in the package (an installed wheel),
    conf/ of the source tree (an editable installation). ConfigError where there is none.
    """
    given = _option("config_path")
    if given is not None:
        folder = Path(given).absolute()
        if not folder.is_dir():
            raise ConfigError(f"--config-path {given}: is no folder")
        return folder
    places = [Path(sys.argv[0]).resolve().parent / "conf", _PACKAGE / "conf", _PACKAGE.parents[1] / "conf"]
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
    """Has a command take `--config-path` and `--config-dir`, which `conf_folder` and `config_dir` read."""
    parser.add_argument("--config-path", "-cp", metavar="FOLDER", help="the configuration, in place of conf/")
    parser.add_argument("--config-dir", "-cd", metavar="FOLDER", help="further configuration, beside conf/")


def search_path() -> list[str]:
    """The override that makes what is composed by hand look into `--config-dir`, too; [] without it."""
    added = config_dir()
    if added is None:
        return []
    if not added.is_dir():
        raise ConfigError(f"--config-dir {added}: is no folder")
    return [f"hydra.searchpath=[{as_text(f'file://{added}')}]"]


def as_text(value: str) -> str:
    """The value in double quotes, as Hydra's grammar takes any text."""
    escaped = value.replace('"', '\\"')
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
    """The arguments as Hydra reads them: measures with parameters, as in measures=[AP(rel=2)], in quotes.

    What has quotes already stays as it is.
    """
    return [_BARE.sub(r'"\1"', a) if a.lstrip("+").startswith("measures=") else a for a in arguments]
